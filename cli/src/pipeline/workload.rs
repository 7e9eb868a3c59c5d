//! The work of a pipeline on the device, and the same on a CPU.

use std::marker::PhantomData;

use warpstride::array::DeviceArray;
use warpstride::device::Device;
use warpstride::error::Result;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Affine, Normalization};
use warpstride::pipeline::Work;
use warpstride::pipeline::frames;
use warpstride::stream::Stream;
use warpstride::view::{View, ViewMut};

/// Means and deviations of red, green and blue in ImageNet, as torchvision has them. Frames of more
/// channels take them in turn.
const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const DEVIATION: [f64; 3] = [0.229, 0.224, 0.225];

/// An element of a frame. It converts into a single.
pub(crate) trait Pixel: frames::Pixel + Into<f32> {
    /// The factor from an element to its value from 0 to 1.
    const SCALE: f64;
}

impl Pixel for u8 {
    const SCALE: f64 = 1.0 / 255.0;
}

impl Pixel for f32 {
    const SCALE: f64 = 1.0;
}

/// Factor and offset of the model's steps: values stay near 1, and each step changes them.
const FACTOR: f32 = 0.999;
const OFFSET: f32 = 0.001;

/// Frames, and what the device does with them: it normalises each channel, and takes each element
/// through a model of some steps, unless they are 0. Results are planes of `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workload {
    /// Channels, height and width of a frame.
    pub(crate) shape: [usize; 3],
    /// True if frames are planes (C, H, W) before they go to the device, too; else they are rows of
    /// pixels (H, W, C).
    pub(crate) is_planar: bool,
    /// The steps of the model; 0 where there is no model.
    pub(crate) steps: u32,
}

/// Returns the steps of a model with a number of floating-point operations for each byte that it
/// reads or writes; `None` if they are too many.
pub(crate) fn steps(intensity: f64) -> Option<u32> {
    // Two operations a step, and eight bytes an element.
    let steps = (4.0 * intensity).round();
    (0.0..=f64::from(u32::MAX)).contains(&steps).then_some(steps as u32)
}

impl Workload {
    /// Returns the number of elements of a frame.
    pub(crate) fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns floating-point operations for each byte that the model reads or writes.
    pub(crate) fn intensity(&self) -> f64 {
        f64::from(self.steps) / 4.0
    }

    /// Returns factor and offset of a channel.
    fn values<I: Pixel>(channel: usize) -> [f32; 2] {
        let (mean, deviation) = (MEAN[channel % 3], DEVIATION[channel % 3]);
        [(I::SCALE / deviation) as f32, (-mean / deviation) as f32]
    }

    /// Takes the first planes of `from` through the model into `to`, both of one axis.
    fn model(&self, from: View<'_, f32>, to: ViewMut<'_, f32>, frames: usize, stream: &Stream) -> Result<()> {
        let elements = frames * self.elements();
        let (from, to) = (from.slice(0, 0..elements, 1)?, to.slice(0, 0..elements, 1)?);
        ops::iterate_into(FACTOR, OFFSET, self.steps, from, to, stream)
    }

    /// Returns an element of a frame's result by a CPU, which has the same bits.
    pub(crate) fn expected<I: Pixel>(&self, frame: &[I], element: usize) -> f32 {
        let [channels, height, width] = self.shape;
        let (channel, pixel) = (element / (height * width), element % (height * width));
        let source = frame[if self.is_planar { element } else { pixel * channels + channel }];
        let [factor, offset] = Self::values::<I>(channel);
        let normalised = source.into().mul_add(factor, offset);
        (0..self.steps).fold(normalised, |x, _| x.mul_add(FACTOR, OFFSET))
    }
}

/// The work with its memory on the device, which is one batch large: the stream of the work takes
/// one batch after the other.
pub(super) struct Stages<I: Pixel> {
    normalizer: Normalizer<I>,
    /// The planes that the model reads; `None` where frames are normalised alone.
    planes: Option<DeviceBuffer<f32>>,
}

struct Normalizer<I: Pixel> {
    workload: Workload,
    /// For the kernel for images of bytes, where frames are such images.
    images: Option<Normalization>,
    /// Factors and offsets of the channels, for other frames.
    values: [DeviceArray<f32>; 2],
    of: PhantomData<I>,
}

impl<I: Pixel> Stages<I> {
    pub(super) fn new(device: &Device, workload: Workload, batch: usize) -> Result<Self> {
        let planes = (workload.steps > 0).then(|| device.zeros(batch * workload.elements())).transpose()?;
        Ok(Self { normalizer: Normalizer::new(device, workload)?, planes })
    }

    /// Queues the work of a batch of a pipeline.
    pub(super) fn queue(&mut self, work: &mut Work<'_, I, f32>, frames: usize) -> Result<()> {
        let stream = work.stream().clone();
        let Self { normalizer, planes } = self;
        match planes {
            None => work.range("normalization", |work| {
                normalizer.normalize(work.input, work.output.view_mut(), frames, &stream)
            })?,
            Some(planes) => {
                let room = [planes.len()];
                work.range("normalization", |work| {
                    normalizer.normalize(work.input, planes.view_mut(&room)?, frames, &stream)
                })?;
                work.range("model", |work| {
                    normalizer.workload.model(planes.view(&room)?, work.output.view_mut(), frames, &stream)
                })?;
            }
        }
        work.keep(frames * normalizer.workload.elements());
        Ok(())
    }

    /// Queues the work alone.
    pub(super) fn queue_on(
        &mut self,
        input: &DeviceBuffer<I>,
        output: ViewMut<'_, f32>,
        frames: usize,
        stream: &Stream,
    ) -> Result<()> {
        let Self { normalizer, planes } = self;
        let Some(planes) = planes else { return normalizer.normalize(input, output, frames, stream) };
        let room = [planes.len()];
        normalizer.normalize(input, planes.view_mut(&room)?, frames, stream)?;
        normalizer.workload.model(planes.view(&room)?, output, frames, stream)
    }
}

impl<I: Pixel> Normalizer<I> {
    fn new(device: &Device, workload: Workload) -> Result<Self> {
        let channels = workload.shape[0];
        let is_image = size_of::<I>() == 1 && !workload.is_planar && channels <= MEAN.len();
        let images = Normalization::new(I::SCALE, &MEAN[..channels.min(3)], &DEVIATION[..channels.min(3)])?;
        let values: Vec<_> = (0..channels).map(Workload::values::<I>).collect();
        let [factors, offsets] = [0, 1].map(|at| values.iter().map(|value| value[at]).collect::<Vec<_>>());
        let values = [device.array(&[channels], &factors)?, device.array(&[channels], &offsets)?];
        Ok(Self { workload, images: is_image.then_some(images), values, of: PhantomData })
    }

    /// Normalises the first frames of `input` into the first planes of `to`, which is one axis.
    fn normalize(&self, input: &DeviceBuffer<I>, to: ViewMut<'_, f32>, frames: usize, stream: &Stream) -> Result<()> {
        let [channels, height, width] = self.workload.shape;
        let elements = frames * self.workload.elements();
        let planes = [frames, channels, height, width];
        let input = input.view(&[input.len()])?.slice(0, 0..elements, 1)?;
        let frames = if self.workload.is_planar {
            input.split_axis(0, &planes)?
        } else {
            input.split_axis(0, &[frames, height, width, channels])?.permuted_axes(&[0, 3, 1, 2])?
        };
        let to = to.slice(0, 0..elements, 1)?.split_axis(0, &planes)?;
        let [factors, offsets] = &self.values;
        let in_memory = Affine::PerChannel { axis: 1, factors: factors.view(), offsets: offsets.view() };
        let map = self.images.map_or(in_memory, |by| Affine::Normalized { axis: 1, by });
        ops::affine_into(frames, map, to, stream)
    }
}
