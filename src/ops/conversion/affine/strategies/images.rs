//! Maps images of bytes to planes, with values as launch parameters.

use super::{Considered, Launch, Step, Task, WITH_LAUNCH, offer};
use crate::abi::{Key, NORMALIZE, NORMALIZE_BLOCK, NORMALIZE_STEPS, NormalizeParams};
use crate::element::DType;
use crate::launch_shape::{LaunchShape, MAX_GRID_YZ};
use crate::layout::{Layout, MAX_RANK};
use crate::ops::Align;
use crate::ops::plan::{at_least, found};
use crate::ops::tuning::Tuning;
use crate::ops::units::wide::VECTOR;

/// Images with interleaved channels, and planes without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::conversion::affine) struct Images {
    count: u64,
    pixels: u64,
    channels: u64,
    /// Bytes from the starts of the storages to the first element of both sides.
    starts: [u64; 2],
    /// The alignment of both first elements.
    aligns: [u64; 2],
}

impl Images {
    /// Returns the images if the layouts of a shape `[n.., c, pixels..]` describe them: the source
    /// lies in C order as `[n.., pixels.., c]`, the destination in C order of its shape.
    pub(in crate::ops::conversion::affine) fn of(
        [src, dst]: [&Layout; 2],
        aligns: [Align; 2],
        types: [DType; 2],
        axis: usize,
    ) -> Option<Self> {
        // The source with its channels last.
        let mut order = [0; MAX_RANK];
        let rank = src.rank();
        let others = (0..rank).filter(|&other| other != axis);
        order.iter_mut().zip(others.chain([axis])).for_each(|(to, axis)| *to = axis);
        let channels_last = src.permuted_axes(&order[..rank]).ok()?;
        if types[0] != DType::U8 || !channels_last.is_standard_layout() || !dst.is_standard_layout() {
            return None;
        }
        let product = |extents: &[usize]| extents.iter().product::<usize>() as u64;
        let shape = dst.shape();
        let [from, to] = [(src, types[0]), (dst, types[1])].map(|(side, of)| (side.offset() * of.width()) as u64);
        Some(Self {
            count: product(&shape[..axis]),
            pixels: product(&shape[axis + 1..]),
            channels: shape[axis] as u64,
            starts: [from, to],
            aligns: [Align::of(from | aligns[0].bytes()).bytes(), Align::of(to | aligns[1].bytes()).bytes()],
        })
    }
}

/// Takes images, with blocks that write all planes of an image or one plane each.
pub(in crate::ops::conversion::affine) fn consider(task: &Task, launch: &mut Option<Launch>) -> Considered {
    let elsewhere = "factors and offsets are uniform or in device memory, not launch parameters";
    at_least(task.with_launch, 1, WITH_LAUNCH, elsewhere)?;
    let others = "the sides are not images of u8 and planes in C order without gaps";
    let images = found(task.images, "sides that are images and their planes", others)?;
    let Images { count, pixels, channels, starts, aligns } = images;
    let to = task.types[1];
    let key = Key::channels(channels as usize).and(Key::dtype(to));
    let of_no_kernel = "images have 1 to 4 channels and become f16, bf16 or f32";
    let entry = found(NORMALIZE.find(key), "kernels for these channels and types", of_no_kernel)?;
    let width = to.width() as u64;
    // The pixels of a vector of a plane, and the access that loads them.
    let lanes = VECTOR / width;
    let access = VECTOR.min(1 << (lanes * channels).trailing_zeros());
    let aligned = aligns[1] >= VECTOR && pixels.is_multiple_of(lanes) && aligns[0] >= access;
    let split = aligned && width >= Tuning::of(task.target).arithmetic.split_planes_from;
    let rows = if split { count * channels } else { count };
    let [src, dst] = starts;
    let [aligned, split] = [aligned, split].map(u64::from);
    let (factors, offsets) = Default::default();
    let params = NormalizeParams { src, dst, images: count, pixels, aligned, split, factors, offsets };
    let y = rows.min(u64::from(MAX_GRID_YZ));
    let chunks = pixels.div_ceil(u64::from(NORMALIZE_BLOCK) * u64::from(NORMALIZE_STEPS) * lanes);
    // The launch refuses extents beyond a grid's.
    let grid = [chunks, y, rows.div_ceil(y)].map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
    let shape = LaunchShape { grid, block: [NORMALIZE_BLOCK, 1, 1], dynamic_shared: 0 };
    *launch = Some(Launch::Images(Step { entry, shape, params }));
    let reason = "images of bytes become planes, and their values are launch parameters";
    Ok(offer(task, reason, |maps| maps.images))
}
