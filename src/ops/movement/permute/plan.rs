//! From two layouts to a launch.

use std::fmt;
use std::ops::Range;

use super::fields::Fields;
use super::packed::Packed;
use super::rows::Rows;
use super::small::{Params, Small};
use super::stacked::Stacked;
use super::tile::Tile;
use crate::abi::{
    ELEMENTS, ELEMENTS_BLOCK, ElementsParams, EntryId, FieldsParams, PackedParams, PatchParams, RowsParams,
    StackedTileParams, TransposeParams, VectorTileParams, elements_per_thread,
};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::layout::Layout;
use crate::ops::canonical::Canonical;
use crate::ops::movement::copy::CopyPlan;
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::operand::{check_bytes, check_disjoint, check_width, entry};
use crate::ops::{Align, Target, TileShape, tuning};

/// How the elements of one layout come to their places in another: with which kernel, in what grid, with which parameters.
///
/// Made from layouts and alignments alone, without a device: it can be compared, printed and kept, and launched as often as
/// one likes on storages of those layouts. The addresses in its parameters are bytes from the starts of the two storages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermutePlan {
    work: Work,
    bytes: u64,
}

#[expect(clippy::large_enum_variant, reason = "a plan is copied, and made without allocating")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Nothing,
    Copy(CopyPlan),
    Small(Small),
    Elements { entry: EntryId, shape: LaunchShape, params: ElementsParams, reason: &'static str },
    Tile(Tile),
    Fields(Fields),
    Rows(Rows),
    Packed(Packed),
    Stacked(Stacked),
}

impl PermutePlan {
    /// Plans `dst[i, j, ...] = src[i, j, ...]` for elements of `width` bytes, in storages whose addresses are multiples of the
    /// alignments.
    ///
    /// Where both sides lie in memory alike, without gaps and on 16 bytes, it is a copy of bytes. Runs that lie off 16 bytes
    /// are moved by `rows`, small arrays by `patch`, `small_tile` and `staggered`, structs of few fields by `deinterleave` and
    /// `interleave`, many small matrices by `stacked_tile`, other transposes by tiles: of one axis a side, or, where those are
    /// short, by `packed` of several. Otherwise
    /// `elements` moves them one by one, or several at a time where they stay together.
    ///
    /// Of arrays of more than 32 MiB, all of these but `rows`, structs by granules and accesses that lie apart have hints to the L2
    /// cache, where `target` knows them: from compute capability 8.0 on. A plan that has them cannot be launched on a device of
    /// less.
    ///
    /// # Errors
    ///
    /// `Layout` where the shapes differ, `dst` may reach an element twice, or the bytes of a storage overflow;
    /// `InvalidArgument` for a width that is not 1, 2, 4, 8 or 16, or an alignment below it.
    pub fn new(
        src: &Layout,
        src_align: Align,
        dst: &Layout,
        dst_align: Align,
        width: usize,
        target: Target,
    ) -> Result<Self> {
        let choice = Choice { target, tiles: TileShape::of(target), may_adapt: true };
        Self::of(src, src_align, dst, dst_align, width, &choice)
    }

    /// The same by kernels for large arrays, whatever the size, and with these tiles: for measuring which are the best. Where
    /// there is no tile of the width, tiles are not used.
    ///
    /// # Errors
    ///
    /// As [`PermutePlan::new`].
    pub fn tuned(
        src: &Layout,
        src_align: Align,
        dst: &Layout,
        dst_align: Align,
        width: usize,
        target: Target,
        tiles: &[TileShape],
    ) -> Result<Self> {
        let choice = Choice { target, tiles, may_adapt: false };
        Self::of(src, src_align, dst, dst_align, width, &choice)
    }

    fn of(
        src: &Layout,
        src_align: Align,
        dst: &Layout,
        dst_align: Align,
        width: usize,
        choice: &Choice<'_>,
    ) -> Result<Self> {
        check_width(width)?;
        check_bytes("source", src, width)?;
        check_bytes("destination", dst, width)?;
        if src.shape() != dst.shape() {
            return Err(Error::new(
                ErrorKind::Layout,
                format!("shape {:?} cannot be copied to shape {:?}; they must be equal", src.shape(), dst.shape()),
            ));
        }
        check_disjoint(dst)?;
        if src.is_empty() {
            return Ok(Self { work: Work::Nothing, bytes: 0 });
        }
        src_align.check("source", width)?;
        dst_align.check("destination", width)?;
        let canonical = Canonical::new(src, dst, width);
        let bytes = (canonical.len() * width) as u64;
        Ok(Self { work: choose(&canonical, src_align, dst_align, choice)?, bytes })
    }

    /// The kernel's entry, whose name ends in `_hinted` where it has hints to the L2 cache; `None` where nothing is launched.
    pub fn entry(&self) -> Option<&'static str> {
        match &self.work {
            Work::Nothing => None,
            Work::Copy(copy) => Some(copy.entry.name()),
            Work::Small(small) => Some(small.entry.name()),
            Work::Elements { entry, .. } => Some(entry.name()),
            Work::Tile(tile) => Some(tile.entry.name()),
            Work::Fields(fields) => Some(fields.entry.name()),
            Work::Rows(rows) => Some(rows.entry.name()),
            Work::Packed(packed) => Some(packed.entry.name()),
            Work::Stacked(stacked) => Some(stacked.entry.name()),
        }
    }

    /// The launch's shape; `None` where nothing is launched.
    pub fn shape(&self) -> Option<LaunchShape> {
        match &self.work {
            Work::Nothing => None,
            Work::Copy(copy) => Some(copy.shape()),
            Work::Small(small) => Some(small.shape),
            Work::Elements { shape, .. } => Some(*shape),
            Work::Tile(tile) => Some(tile.shape),
            Work::Fields(fields) => Some(fields.shape),
            Work::Rows(rows) => Some(rows.shape),
            Work::Packed(packed) => Some(packed.shape),
            Work::Stacked(stacked) => Some(stacked.shape),
        }
    }

    /// Why it is this kernel, in words.
    pub fn reason(&self) -> &'static str {
        match &self.work {
            Work::Nothing => "there are no elements",
            Work::Copy(_) => "both sides lie in memory alike, without gaps and on 16 bytes",
            Work::Small(small) => small.reason(),
            Work::Elements { reason, .. } => reason,
            Work::Tile(tile) => tile.reason(),
            Work::Fields(fields) => fields.reason(),
            Work::Rows(rows) => rows.reason(),
            Work::Packed(packed) => packed.reason(),
            Work::Stacked(stacked) => stacked.reason(),
        }
    }

    /// Bytes of the elements: as many are read as written.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Launches on storages at these addresses.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the device does not allow the launch's shape or is of an architecture before the one that the plan
    /// was made for, and what the driver failed with.
    ///
    /// # Safety
    ///
    /// As [`copy_into_raw`](super::copy_into_raw), for the layouts that the plan was made of. The addresses are aligned as
    /// the plan was told, and the two sides share no element.
    pub unsafe fn launch(&self, device: &Device, src: u64, dst: u64, stream: StreamHandle) -> Result<()> {
        match &self.work {
            Work::Nothing => Ok(()),
            // SAFETY: as the caller promises.
            Work::Copy(copy) => unsafe { copy.launch(device, src, dst, stream) },
            // SAFETY: as the caller promises.
            Work::Small(small) => unsafe { launch_small(small, device, src, dst, stream) },
            Work::Elements { entry, shape, params, .. } => {
                let params =
                    ElementsParams { src: src.wrapping_add(params.src), dst: dst.wrapping_add(params.dst), ..*params };
                // SAFETY: `elements` takes these parameters, and reaches exactly the elements of the two layouts, in
                // accesses that the alignments allow; the rest as the caller promises.
                unsafe { device.launch(*entry, shape, &params, stream) }
            }
            Work::Tile(Tile { entry, shape, params, .. }) => {
                let params = tile_at(params, src, dst);
                // SAFETY: as above, of the tile kernels.
                unsafe { device.launch(*entry, shape, &params, stream) }
            }
            Work::Fields(Fields { entry, shape, params }) => {
                let params =
                    FieldsParams { src: src.wrapping_add(params.src), dst: dst.wrapping_add(params.dst), ..*params };
                // SAFETY: as above, of the kernels for fields.
                unsafe { device.launch(*entry, shape, &params, stream) }
            }
            Work::Rows(Rows { entry, shape, params }) => {
                let params =
                    RowsParams { src: src.wrapping_add(params.src), dst: dst.wrapping_add(params.dst), ..*params };
                // SAFETY: as above, of `rows`, which aligns its accesses itself.
                unsafe { device.launch(*entry, shape, &params, stream) }
            }
            Work::Packed(Packed { entry, shape, params }) => {
                let params = packed_at(params, src, dst);
                // SAFETY: as above, of the kernels for packed axes.
                unsafe { device.launch(*entry, shape, &params, stream) }
            }
            Work::Stacked(Stacked { entry, shape, params }) => {
                let (src, dst) = (src.wrapping_add(params.src), dst.wrapping_add(params.dst));
                // SAFETY: as above, of the tiles of several matrices.
                unsafe { device.launch(*entry, shape, &StackedTileParams { src, dst, ..*params }, stream) }
            }
        }
    }
}

/// Launches on storages at these addresses.
///
/// # Safety
///
/// As [`PermutePlan::launch`].
unsafe fn launch_small(small: &Small, device: &Device, src: u64, dst: u64, stream: StreamHandle) -> Result<()> {
    match small.params {
        Params::Patch(params) => {
            let params = PatchParams { src: src.wrapping_add(params.src), dst: dst.wrapping_add(params.dst), ..params };
            // SAFETY: `patch` takes these parameters, and reaches exactly the elements of the two layouts; the rest as the
            // caller promises.
            unsafe { device.launch(small.entry, &small.shape, &params, stream) }
        }
        Params::Matrix(params) => {
            let (src, dst) = (src.wrapping_add(params.src), dst.wrapping_add(params.dst));
            let params = TransposeParams { src, dst, ..params };
            // SAFETY: as above, of `small_tile` and `staggered`; `small_tile` has rows of whole quads.
            unsafe { device.launch(small.entry, &small.shape, &params, stream) }
        }
    }
}

/// The parameters on storages at these addresses.
fn tile_at(params: &VectorTileParams, src: u64, dst: u64) -> VectorTileParams {
    let (src_start, src_end) = span_at(src, params.src_start, params.src_end);
    VectorTileParams {
        src: src.wrapping_add(params.src),
        dst: dst.wrapping_add(params.dst),
        src_start,
        src_end,
        ..*params
    }
}

/// The same for packed axes.
fn packed_at(params: &PackedParams, src: u64, dst: u64) -> PackedParams {
    let (src_start, src_end) = span_at(src, params.src_start, params.src_end);
    PackedParams { src: src.wrapping_add(params.src), dst: dst.wrapping_add(params.dst), src_start, src_end, ..*params }
}

/// The addresses of a source without gaps; 0 of others.
fn span_at(src: u64, start: u64, end: u64) -> (u64, u64) {
    if end == 0 { (0, 0) } else { (src.wrapping_add(start), src.wrapping_add(end)) }
}

/// What the kernel depends on besides the work.
struct Choice<'a> {
    target: Target,
    tiles: &'a [TileShape],
    /// Whether small arrays have kernels of their own, and tiles that would be empty are cut otherwise.
    may_adapt: bool,
}

impl Choice<'_> {
    /// The entry, with hints to the L2 cache where they are for so many elements, or for large arrays.
    fn hinted(&self, entry: EntryId, canonical: &Canonical) -> EntryId {
        let bytes = if self.may_adapt { (canonical.len() * canonical.width) as u64 } else { u64::MAX };
        tuning::hinted(entry, bytes, self.target)
    }
}

/// The kernel for this work, which has elements.
fn choose(canonical: &Canonical, src_align: Align, dst_align: Align, choice: &Choice<'_>) -> Result<Work> {
    if let Some(mut copy) = CopyPlan::of(canonical, src_align, dst_align) {
        copy.entry = choice.hinted(copy.entry, canonical);
        return Ok(Work::Copy(copy));
    }
    if let Some(rows) = Rows::of(canonical, src_align, dst_align) {
        return Ok(Work::Rows(rows));
    }
    let widened = canonical.widened(src_align, dst_align);
    if let Some(small) = Small::of(&widened, src_align, dst_align).filter(|_| choice.may_adapt) {
        return Ok(Work::Small(small));
    }
    if let Some(fields) = Fields::of(&widened, src_align, dst_align) {
        let entry = choice.hinted(fields.entry, &widened);
        return Ok(Work::Fields(if entry == fields.entry { fields } else { fields.hinted(entry, choice.target) }));
    }
    if let Some(stacked) = Stacked::of(&widened, src_align, dst_align) {
        return Ok(Work::Stacked(Stacked { entry: choice.hinted(stacked.entry, &widened), ..stacked }));
    }
    let tile = Tile::of(&widened, src_align, dst_align, choice.tiles, choice.may_adapt);
    if let Some(packed) = Packed::of(&widened, src_align, dst_align, tile.as_ref()) {
        return Ok(Work::Packed(Packed { entry: choice.hinted(packed.entry, &widened), ..packed }));
    }
    let Some(tile) = tile else { return elements(&widened, choice) };
    Ok(Work::Tile(Tile { entry: choice.hinted(tile.entry, &widened), ..tile }))
}

fn elements(canonical: &Canonical, choice: &Choice<'_>) -> Result<Work> {
    let (index, width) = (index(canonical), canonical.width);
    let divisor = divisor(index);
    let params = ElementsParams {
        src: (canonical.src_start * width) as u64,
        dst: (canonical.dst_start * width) as u64,
        len: canonical.len() as u64,
        rank: canonical.axes().len() as u64,
        axes: axes(canonical.axes(), divisor),
    };
    let blocks = params.len.div_ceil(u64::from(ELEMENTS_BLOCK * elements_per_thread(width as u32)));
    let shape = LaunchShape { grid: grid(blocks), block: [ELEMENTS_BLOCK, 1, 1], dynamic_shared: 0 };
    let reason = why_elements(canonical);
    let entry = entry(&ELEMENTS, width, index)?;
    // Where accesses lie apart, a half of a sector waits in the cache for the other.
    let has_runs = canonical.axes().iter().any(|axis| axis.dst == 1 && axis.src == 1);
    let entry = if has_runs { choice.hinted(entry, canonical) } else { entry };
    Ok(Work::Elements { entry, shape, params, reason })
}

/// Why no other kernel takes them.
fn why_elements(canonical: &Canonical) -> &'static str {
    let axes = canonical.axes();
    let beside =
        |along: fn(&crate::ops::canonical::Axis) -> isize| axes.iter().any(|axis| along(axis).unsigned_abs() == 1);
    if axes.is_empty() {
        "it is one element"
    } else if canonical.width == 16 {
        "what both sides keep together is whole 16-byte accesses, and no tile is filled by them"
    } else if !beside(|axis| axis.dst) || !beside(|axis| axis.src) {
        "the elements of a side lie apart, so that no neighbours can be moved together"
    } else if axes.iter().any(|axis| axis.dst == 1 && axis.src == 1) {
        "both sides keep the same elements together, in runs too short to be shifted to 16-byte accesses"
    } else if axes.iter().any(|axis| axis.dst == 1 && axis.src == -1) {
        "the sides have the same neighbours in opposite order"
    } else {
        "the sides are contiguous along different axes, too short ones: most of a tile would be empty"
    }
}

/// The storage from the source's first element to its last, where each is there once and nothing else is; else empty.
pub(super) fn span(canonical: &Canonical) -> Range<usize> {
    // Without gaps, every stride is the product of the extents of the shorter ones.
    let (mut len, mut below) = (1, 0);
    while let Some(axis) = canonical.axes().iter().find(|axis| axis.src.unsigned_abs() == len) {
        if axis.src < 0 {
            below += len * (axis.extent - 1);
        }
        len *= axis.extent;
    }
    if len == canonical.len() { canonical.src_start - below..canonical.src_start - below + len } else { 0..0 }
}

impl fmt::Display for PermutePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.work {
            Work::Nothing => f.write_str("nothing to move"),
            Work::Copy(copy) => write!(f, "{copy}: both sides lie in memory alike"),
            Work::Elements { entry, shape, params, .. } => {
                write!(
                    f,
                    "{entry}: {} along {}, {}",
                    counted(params.len, "element"),
                    counted(params.rank, "axis"),
                    shape
                )
            }
            Work::Small(small) => small.fmt(f),
            Work::Tile(tile) => tile.fmt(f),
            Work::Fields(fields) => fields.fmt(f),
            Work::Rows(rows) => rows.fmt(f),
            Work::Packed(packed) => packed.fmt(f),
            Work::Stacked(stacked) => stacked.fmt(f),
        }
    }
}
