//! Packed structs of few fields, one side, and one plane a field, the other: arrays of structs and structs of arrays, images
//! with their channels inside or outside.

use std::fmt;

use super::canonical::{Axis as Walk, Canonical};
use super::plan::{axes, divisor, grid, index};
use crate::abi::{DEINTERLEAVE, Divisor, EntryId, FIELDS_THREADS, FieldsParams, INTERLEAVE, LaunchShape, fields_steps};
use crate::ops::Align;
use crate::ops::copy::Shape;
use crate::ops::tuning::{MOST_FIELDS, SMALLEST_IMAGE};

/// Bytes that the 32 banks of shared memory serve at once.
const BANKS: usize = 128;
/// Lanes of a warp.
const WARP: usize = 32;
// Each thread moves one element of those that fill no granule: of bytes, up to three of each field.
const _: () = assert!(3 * MOST_FIELDS <= FIELDS_THREADS as usize);

/// A launch of `deinterleave`, or of `interleave`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) entry: EntryId,
    pub(super) shape: LaunchShape,
    /// Addresses from the starts of the storages.
    pub(super) params: FieldsParams,
}

/// The axes by their part.
#[derive(Debug, Clone, Copy)]
struct Images {
    /// Whether the source is the packed side.
    is_packed_src: bool,
    fields: usize,
    /// Elements from one plane to the next.
    pitch: isize,
    structs: usize,
    src_start: usize,
    dst_start: usize,
    /// Where the two axes are; the others are the batch.
    axes: [usize; 2],
}

impl Images {
    fn of(canonical: &Canonical) -> Option<Self> {
        let axes = canonical.axes();
        let inner = axes.iter().position(|axis| axis.dst == 1)?;
        let Canonical { src_start, dst_start, .. } = *canonical;
        let Walk { extent, src, .. } = axes[inner];
        let outer = |found: &dyn Fn(&Walk) -> bool| axes.iter().position(found).filter(|&outer| outer != inner);
        let few = |extent: usize| extent <= MOST_FIELDS;
        // Planes one behind the other are structs as well, of very many fields.
        if let Some(planes) =
            outer(&|axis| axis.src.unsigned_abs() == 1 && axis.extent as isize == src && few(axis.extent))
        {
            let fields = axes[planes];
            // Forwards in the structs, then, and backwards among the planes.
            let flipped = if fields.src < 0 { (fields.extent - 1) as isize } else { 0 };
            return Some(Self {
                is_packed_src: true,
                fields: fields.extent,
                pitch: fields.dst * fields.src,
                structs: extent,
                src_start: src_start.wrapping_add_signed(flipped * fields.src),
                dst_start: dst_start.wrapping_add_signed(flipped * fields.dst),
                axes: [inner, planes],
            });
        }
        let planes = outer(&|axis| axis.src == 1 && axis.dst == extent as isize && few(extent))?;
        let structs = axes[planes].extent;
        let axes = [inner, planes];
        Some(Self { is_packed_src: false, fields: extent, pitch: src, structs, src_start, dst_start, axes })
    }
}

impl Fields {
    /// The plan, where one side is packed structs that are not whole 16-byte accesses, which tiles have.
    pub(super) fn of(canonical: &Canonical, src_align: Align, dst_align: Align) -> Option<Self> {
        let width = canonical.width;
        let images = Images::of(canonical)?;
        let granule = width.max(4);
        let lanes = granule / width;
        let batch = || {
            let others = canonical.axes().iter().enumerate().filter(|(place, _)| !images.axes.contains(place));
            others.map(|(_, axis)| axis)
        };
        let offsets =
            batch().fold(images.src_start | images.dst_start, |bits, axis| bits | (axis.src | axis.dst) as usize);
        let align = src_align.min(dst_align).bytes();
        // Two's complement: negative strides are multiples of a power of two alike.
        let in_squares = (offsets | images.pitch as usize | images.structs).is_multiple_of(16 / width) && align >= 16;
        if in_squares && (images.fields * width).is_multiple_of(16) {
            return None;
        }
        if align < granule as u64 || !(offsets | images.pitch as usize).is_multiple_of(lanes) {
            return None;
        }
        // As many structs as fit, in whole warps of granules.
        let granules = fields_steps(width, images.is_packed_src) * FIELDS_THREADS as usize;
        let run = granules / images.fields / WARP * WARP;
        let chunks = images.structs.div_ceil(run * lanes);
        if images.structs * images.fields * width < SMALLEST_IMAGE {
            // Blocks would be mostly idle.
            return None;
        }
        let banks = BANKS / granule;
        let group = banks >> images.fields.trailing_zeros().min(banks.trailing_zeros());
        debug_assert!(run > 0 && images.fields * group >= WARP / 2, "{images:?} do not fit what the kernel holds");
        let (index, family) = (index(canonical), if images.is_packed_src { DEINTERLEAVE } else { INTERLEAVE });
        let divisor = divisor(index);
        let params = FieldsParams {
            src: (images.src_start * width) as u64,
            dst: (images.dst_start * width) as u64,
            structs: images.structs as u64,
            fields: Divisor::narrow(images.fields as u64),
            pitch: images.pitch as i64,
            run: Divisor::narrow(run as u64),
            chunks: divisor(chunks as u64),
            group: Divisor::narrow((images.fields * group) as u64),
            group_log2: u64::from(group.trailing_zeros()),
            rank: batch().count() as u64,
            axes: axes(batch(), divisor),
        };
        let blocks = chunks * batch().map(|axis| axis.extent).product::<usize>();
        let shape = LaunchShape { grid: grid(blocks as u64), block: [FIELDS_THREADS, 1, 1], dynamic_shared: 0 };
        Some(Self { entry: family.entry(width, index)?, shape, params })
    }

    pub(super) fn reason(&self) -> &'static str {
        if self.entry.name().starts_with("de") {
            "the source is packed structs of few fields: runs of them are read as they lie and parted by field"
        } else {
            "the destination is packed structs of few fields: runs of them are put together and written as they lie"
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FieldsParams { structs, fields, .. } = self.params;
        let images: u64 = self.params.axes[..self.params.rank as usize].iter().map(|axis| axis.extent.value).product();
        let Self { entry, shape, .. } = self;
        write!(f, "{entry}: {images} of {structs} structs of {} fields, {}", fields.value, Shape(shape))
    }
}
