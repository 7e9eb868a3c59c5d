//! Batches of images made ready for a network: interleaved bytes to normalised planes, read once and written once.

use crate::abi::{DType, EntryId, Key, MAX_CHANNELS, NORMALIZE, NORMALIZE_BLOCK, NORMALIZE_STEPS, NormalizeParams};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Number;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::{LaunchShape, MAX_GRID_YZ};
use crate::ops::operand::queue_among;
use crate::ops::operand::{check_contiguous_addresses, start};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// What becomes of the bytes of each channel: `(scale * x - mean) / deviation`.
///
/// It is computed as one multiply-add in single precision, `fma(x, factor, offset)` with `factor = scale / deviation` and
/// `offset = -mean / deviation`, both computed in double precision and rounded to single. That is rounded once more to halves. So a
/// CPU that does the same ([`apply`](Self::apply)) gets the same bits; a chain of divisions, of which each is rounded, differs from
/// it in the last places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalization {
    channels: usize,
    factors: [f32; MAX_CHANNELS],
    offsets: [f32; MAX_CHANNELS],
}

impl Normalization {
    /// With a mean and a deviation for each of 1 to 4 channels. For bytes that stand for 0 to 1, as torchvision's `ToTensor` and
    /// `Normalize` take them, the scale is `1.0 / 255.0`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where there are not as many deviations as means, not 1 to 4 of them, or what follows from them is not
    /// finite, as for a deviation of 0.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::device::{Backend, Device};
    /// use warpstride::ops::{Normalization, normalize};
    ///
    /// let device = Device::open(Backend::Soft)?;
    /// // One image of 1 x 2 pixels.
    /// let images = device.upload(&[0_u8, 64, 128, 192, 254, 255])?;
    /// let mut planes = device.alloc::<f32>(6)?;
    /// let around = Normalization::new(1.0, &[128.0; 3], &[2.0; 3])?;
    /// let stream = device.default_stream();
    /// normalize(images.view(&[1, 1, 2, 3])?, &around, planes.view_mut(&[1, 3, 1, 2])?, stream)?;
    /// assert_eq!(planes.download()?, [-64.0, 32.0, -32.0, 63.0, 0.0, 63.5]);
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn new(scale: f64, mean: &[f64], deviation: &[f64]) -> Result<Self> {
        let channels = mean.len();
        if channels != deviation.len() || !(1..=MAX_CHANNELS).contains(&channels) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "{channels} and {} were given; give one of each for 1 to {MAX_CHANNELS} channels",
                    counted(deviation.len(), "deviation"),
                    channels = counted(channels, "mean")
                ),
            ));
        }
        let mut result = Self { channels, factors: [0.0; MAX_CHANNELS], offsets: [0.0; MAX_CHANNELS] };
        for channel in 0..channels {
            let (mean, deviation) = (mean[channel], deviation[channel]);
            let (factor, offset) = ((scale / deviation) as f32, (-mean / deviation) as f32);
            if !factor.is_finite() || !offset.is_finite() {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!(
                        "a scale of {scale}, mean of {mean} and deviation of {deviation} in channel {channel} give no finite \
                         numbers; the deviation must not be 0"
                    ),
                ));
            }
            result.factors[channel] = factor;
            result.offsets[channel] = offset;
        }
        Ok(result)
    }

    /// Channels that it is for.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// What becomes of a byte of a channel, to the bit as in planes of `f32`; `None` of a channel that it is not for.
    pub fn apply(&self, channel: usize, byte: u8) -> Option<f32> {
        let known = channel < self.channels;
        known.then(|| f32::from(byte).mul_add(self.factors[channel], self.offsets[channel]))
    }
}

/// Queues the normalisation of images `src` of shape `[n, h, w, c]` into planes `dst` of shape `[n, c, h, w]` on `stream`, in
/// half or single precision. Reads `n h w c` bytes and writes as many elements.
///
/// # Errors
///
/// `Layout` where the shapes do not belong together or an operand does not lie in C order without gaps; `InvalidArgument` where
/// the normalisation is for another number of channels, elements are doubles, or the three are not of one device; and what the
/// driver failed with.
pub fn normalize<T: Number>(
    src: View<'_, u8>,
    normalization: &Normalization,
    dst: ViewMut<'_, T>,
    stream: &Stream,
) -> Result<()> {
    let (from, to) = (src.layout().shape(), dst.layout().shape());
    let &[n, h, w, c] = from else { return Err(shapes(from, to)) };
    if to != [n, c, h, w] {
        return Err(shapes(from, to));
    }
    if c != normalization.channels {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "the images have {}, and the normalisation is for {}; make one for {c}",
                counted(c, "channel"),
                normalization.channels
            ),
        ));
    }
    let starts = [start::<u8>(src.layout())?, start::<T>(dst.layout())?];
    let memories = [src.memory(), dst.memory()];
    queue_among(memories, stream, || {
        let [src, to] = [0, 1].map(|at| memories[at].address() + starts[at]);
        let images = Images { src, dst: to, count: n as u64, pixels: (h * w) as u64 };
        // SAFETY: views of as many contiguous elements, which lie within buffers that live until their drops; what is written is
        // borrowed exclusively; other work is ordered by `queue_among`, which also holds all to one device.
        unsafe { normalize_raw(dst.device(), normalization, T::DTYPE, &images, stream.handle()) }
    })
}

fn shapes(from: &[usize], to: &[usize]) -> Error {
    Error::new(
        ErrorKind::Layout,
        format!("images of shape {from:?} do not become planes of shape {to:?}; give [n, h, w, c] and [n, c, h, w]"),
    )
}

/// Where images lie, and the planes that they become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Images {
    /// Device address of the first byte.
    pub src: u64,
    /// Device address of the first element to write.
    pub dst: u64,
    /// Images.
    pub count: u64,
    /// Pixels of each.
    pub pixels: u64,
}

/// Queues a normalisation of images in memory that others own: see [`ops`](super).
///
/// # Errors
///
/// `InvalidArgument` where the destination is not a multiple of an element, the two overlap, elements are doubles, or there are
/// more images than a grid has blocks in y and z; and what the driver failed with.
///
/// # Safety
///
/// - From `src`, as many bytes as all images have, and from `dst`, as many elements of the type, lie within memory that `device`
///   can access, live until it has run.
/// - `stream` is a live stream of `device`'s context.
/// - From this call until it has run, no other work writes the images or touches the planes, unless it is ordered before or after
///   it on `stream` or by events.
pub unsafe fn normalize_raw(
    device: &Device,
    normalization: &Normalization,
    number: DType,
    images: &Images,
    stream: StreamHandle,
) -> Result<()> {
    let &Images { src, dst, count, pixels } = images;
    let (entry, width) = (normalize_entry(normalization.channels, number)?, number.width() as u64);
    let elements = u128::from(count) * u128::from(pixels) * normalization.channels as u128;
    check_contiguous_addresses([(src, 1), (dst, width)], [elements, elements * u128::from(width)])?;
    if elements == 0 {
        return Ok(());
    }
    // The pixels of a quad of a plane, and what they are loaded by.
    let lanes = 16 / width;
    let access = 16.min(1 << (lanes * normalization.channels as u64).trailing_zeros());
    let aligned = dst.is_multiple_of(16) && pixels.is_multiple_of(lanes) && src.is_multiple_of(access);
    let [factors, offsets] = [normalization.factors, normalization.offsets].map(|all| all.map(f32::to_bits));
    // On an H100, blocks of a plane each make 95 % of the ceiling of single precision and those of all 91 %, but 92 and 94 of halves.
    let split = aligned && width == 4;
    let rows = if split { count * normalization.channels as u64 } else { count };
    let [aligned, split] = [aligned, split].map(u64::from);
    let params = NormalizeParams { src, dst, images: count, pixels, aligned, split, factors, offsets };
    let y = rows.min(u64::from(MAX_GRID_YZ));
    let chunks = pixels.div_ceil(u64::from(NORMALIZE_BLOCK) * u64::from(NORMALIZE_STEPS) * lanes);
    // More than a grid has of anything is refused with the launch.
    let grid = [chunks, y, rows.div_ceil(y)].map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
    let shape = LaunchShape { grid, block: [NORMALIZE_BLOCK, 1, 1], dynamic_shared: 0 };
    // SAFETY: the entry takes these parameters; the shape has a thread for every pixel of every image; the rest as the caller
    // promises.
    unsafe { device.launch(entry, &shape, &params, stream) }
}

/// The kernel that normalises images of so many channels to planes of such numbers.
///
/// # Errors
///
/// `InvalidArgument` where there is none: of more than 4 channels or of none, and of doubles.
pub fn normalize_entry(channels: usize, number: DType) -> Result<EntryId> {
    NORMALIZE.find(Key::channels(channels).and(Key::dtype(number))).ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "images of {channels} are not normalised to {number:?}, but of 1 to {MAX_CHANNELS} to f16, bf16 or f32; cast \
                 planes of f32 for doubles",
                channels = counted(channels, "channel")
            ),
        )
    })
}
