//! Packed structs of few fields, one side, and one plane a field, the other: arrays of structs and structs of arrays, images
//! with their channels inside or outside.

use std::fmt;

use crate::abi::{
    DEINTERLEAVE, DEINTERLEAVE_QUADS, Divisor, EntryId, FIELDS_QUADS, FIELDS_THREADS, Family, FieldsParams, INTERLEAVE,
    INTERLEAVE_QUADS, Index, Key, fields_steps,
};
use crate::launch_shape::LaunchShape;
use crate::ops::canonical::{Axis as Walk, Canonical};
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::tuning::{FIELDS_QUADS_THREADS, IDLE, MOST_FIELDS, SMALLEST_IMAGE, fields_room};
use crate::ops::units::{BANKS, VECTOR, WARP, WORD};
use crate::ops::{Align, Target};

// Each thread of a block by granules moves one element of those that fill none: of bytes, up to three of each field.
const _: () = assert!(3 * MOST_FIELDS <= FIELDS_THREADS as usize);

/// A launch of `deinterleave` or `interleave`, whose lanes move granules or quads.
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

/// How structs are cut for blocks, whose lanes move one share at a time: a granule or a quad.
#[derive(Debug, Clone, Copy)]
struct Cut {
    bytes: usize,
    /// Of each field in a chunk.
    run: usize,
    /// Of each field in a group.
    group: usize,
    threads: usize,
}

impl Cut {
    /// Granules: as many structs as fit, in whole warps.
    fn granules(width: usize, images: &Images) -> Self {
        let (bytes, threads) = (width.max(WORD), FIELDS_THREADS as usize);
        let run = fields_steps(width, images.is_packed_src) * threads / images.fields / WARP * WARP;
        let group = Self::group(bytes, images.fields);
        debug_assert!(run > 0 && images.fields * group >= WARP / 2, "{images:?} do not fit what the kernel holds");
        Self { bytes, run, group, threads }
    }

    /// Quads; `None` where lanes would share banks.
    fn quads(width: usize, images: &Images) -> Option<Self> {
        let run = (FIELDS_QUADS * FIELDS_QUADS_THREADS / images.fields / WARP * WARP).max(WARP);
        let threads = (run * images.fields).div_ceil(FIELDS_QUADS).next_multiple_of(WARP);
        let granule = width.max(WORD);
        let group = Self::group(granule, images.fields);
        (group >= VECTOR / granule).then_some(Self { bytes: VECTOR, run, group, threads })
    }

    /// Whether hardly any shares of the last chunk are idle where so many bytes are of each field.
    fn is_filled(&self, bytes: usize) -> bool {
        let chunk = self.run * self.bytes;
        bytes.div_ceil(chunk) * chunk <= bytes + bytes / IDLE
    }

    /// The granules of all banks, less the power of two that the fields share with them.
    fn group(granule: usize, fields: usize) -> usize {
        let banks = BANKS / granule;
        banks >> fields.trailing_zeros().min(banks.trailing_zeros())
    }
}

impl Fields {
    /// The plan, where one side is packed structs. Those that are whole 16-byte accesses tiles have, unless lanes move quads of them
    /// without sharing banks and images fill the blocks.
    pub(super) fn of(canonical: &Canonical, src_align: Align, dst_align: Align) -> Option<Self> {
        let width = canonical.width;
        let images = Images::of(canonical)?;
        let batch = || {
            let others = canonical.axes().iter().enumerate().filter(|(place, _)| !images.axes.contains(place));
            others.map(|(_, axis)| axis)
        };
        let offsets =
            batch().fold(images.src_start | images.dst_start, |bits, axis| bits | (axis.src | axis.dst) as usize);
        let align = src_align.min(dst_align).bytes();
        // Two's complement: negative strides are multiples of a power of two alike.
        let start_on =
            |bytes: usize| align >= bytes as u64 && (offsets | images.pitch as usize).is_multiple_of(bytes / width);
        let in_squares = start_on(VECTOR) && (images.structs | images.fields).is_multiple_of(VECTOR / width);
        let bytes = images.structs * images.fields * width;
        // Of less, blocks would be mostly idle.
        if bytes < SMALLEST_IMAGE || !start_on(width.max(WORD)) {
            return None;
        }
        let quads = if start_on(VECTOR) { Cut::quads(width, &images) } else { None };
        if in_squares && quads.is_none_or(|cut| !cut.is_filled(images.structs * width)) {
            return None;
        }
        let shares = quads.unwrap_or_else(|| Cut::granules(width, &images));
        let index = if quads.is_some() { Index::Wide } else { index(canonical) };
        let family = match (images.is_packed_src, quads.is_some()) {
            (true, false) => DEINTERLEAVE,
            (true, true) => DEINTERLEAVE_QUADS,
            (false, false) => INTERLEAVE,
            (false, true) => INTERLEAVE_QUADS,
        };
        let divisor = divisor(index);
        let chunks = images.structs.div_ceil(shares.run * shares.bytes / width);
        let params = FieldsParams {
            src: (images.src_start * width) as u64,
            dst: (images.dst_start * width) as u64,
            structs: images.structs as u64,
            fields: Divisor::narrow(images.fields as u64),
            pitch: images.pitch as i64,
            run: Divisor::narrow(shares.run as u64),
            chunks: divisor(chunks as u64),
            group: Divisor::narrow((images.fields * shares.group) as u64),
            group_log2: u64::from(shares.group.trailing_zeros()),
            rank: batch().count() as u64,
            axes: axes(batch(), divisor),
        };
        let blocks = chunks * batch().map(|axis| axis.extent).product::<usize>();
        let dynamic_shared = if quads.is_some() { shares.run * images.fields * VECTOR } else { 0 } as u32;
        let shape = LaunchShape { grid: grid(blocks as u64), block: [shares.threads as u32, 1, 1], dynamic_shared };
        // By 16 bytes a lane it is 64-bit throughout.
        let key = if quads.is_some() { Key::width(width) } else { Key::width(width).and(Key::index(index)) };
        Some(Self { entry: family.find(key)?, shape, params })
    }

    /// The same with hints to the L2 cache, and as few blocks at once as are best for large arrays.
    pub(super) fn hinted(mut self, entry: EntryId, target: Target) -> Self {
        self.entry = entry;
        self.shape.dynamic_shared = fields_room(self.shape.dynamic_shared, target);
        self
    }

    pub(super) fn reason(&self) -> &'static str {
        let is_of = |families: [Family; 2]| families.iter().any(|family| family.has(self.entry));
        let is_packed_src = is_of([DEINTERLEAVE, DEINTERLEAVE_QUADS]);
        match (is_packed_src, is_of([DEINTERLEAVE_QUADS, INTERLEAVE_QUADS])) {
            (true, false) => {
                "the source is packed structs of few fields: runs of them are read as they lie and parted by field"
            }
            (true, true) => {
                "the source is packed structs of few fields, and images and planes start on 16 bytes: runs of structs are read \
                 as they lie and parted by field, 16 bytes a lane"
            }
            (false, false) => {
                "the destination is packed structs of few fields: runs of them are put together and written as they lie"
            }
            (false, true) => {
                "the destination is packed structs of few fields, and images and planes start on 16 bytes: runs of structs are \
                 put together and written as they lie, 16 bytes a lane"
            }
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FieldsParams { structs, fields, .. } = self.params;
        let images: u64 = self.params.axes[..self.params.rank as usize].iter().map(|axis| axis.extent.value).product();
        let Self { entry, shape, .. } = self;
        write!(f, "{entry}: {images} of {structs} structs of {} fields, {}", fields.value, shape)
    }
}
