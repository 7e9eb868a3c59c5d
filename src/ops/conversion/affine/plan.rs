//! From two layouts and their types to a launch.

use std::fmt;

use super::axes::Axes;
use super::{Affine, kernel_type};
use crate::abi::{
    AFFINE_ELEMENTS, AFFINE_ELEMENTS_F64, AFFINE_PADDED, AFFINE_PADDED_BLOCK, AFFINE_PADDED_F64, AFFINE_PADDED_SIDE,
    AFFINE_TILE, AffineElementsParams, AffineTileParams, AffineType, AffineValues, Divisor, ELEMENTS_BLOCK,
    ElementsParams, EntryId, Index, Key, VECTOR_TILE_THREADS, elements_per_thread,
};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::DType;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::layout::{Layout, MAX_RANK};
use crate::ops::canonical::Axis;
use crate::ops::numbering::{axes, divisor, grid};
use crate::ops::operand::{check_bytes, check_disjoint};
use crate::ops::tuning::{Kind, Tuning};
use crate::ops::units::VECTOR as QUAD;
use crate::ops::{Align, Target, TileShape};

/// More elements than the threads of a launch number beyond the last.
const BEYOND: usize = 1 << 16;

/// How the elements of one layout become those of another, of another type: with which kernel, in what grid, with which
/// parameters.
///
/// Made from layouts, alignments and types alone, without a device: it can be compared, printed and kept, and launched as often as
/// one likes on storages of those layouts, with any factors and offsets. The addresses in its parameters are bytes from the starts
/// of the two storages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffinePlan {
    work: Work,
    /// The axis of channels, and how many there are.
    channels: Option<(usize, usize)>,
    read: u64,
    written: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Nothing,
    Elements { entry: EntryId, shape: LaunchShape, params: AffineElementsParams, reversed: bool },
    Tile { entry: EntryId, shape: LaunchShape, params: AffineTileParams, reversed: bool },
}

/// Both sides, planned.
struct Sides {
    axes: Axes,
    types: [AffineType; 2],
    /// Whether a storage starts on 16 bytes, of both sides.
    quads: bool,
}

impl AffinePlan {
    /// Plans `dst[i, j, ...] = fma(src[i, j, ...], factor, offset)` for storages of these layouts, alignments and types, source
    /// first. Factors and offsets are for all elements, or of each index of the axis `channels`.
    ///
    /// Where the sides are contiguous along different axes it is a transpose by tiles: turned in registers where every row of both
    /// sides is whole 16-byte accesses, else through a padded tile. All others go element by element.
    ///
    /// # Errors
    ///
    /// `Layout` where the shapes differ, the destination may reach an element twice, or the bytes of a storage overflow;
    /// `InvalidArgument` where there is no kernel for the types, an alignment is below an element, or the shape has no such axis.
    pub fn new(
        (src, src_align, from): (&Layout, Align, DType),
        (dst, dst_align, to): (&Layout, Align, DType),
        channels: Option<usize>,
        target: Target,
    ) -> Result<Self> {
        let types = kernel_type(from, to)?;
        check_bytes("source", src, from.width())?;
        check_bytes("destination", dst, to.width())?;
        if src.shape() != dst.shape() {
            return Err(Error::new(
                ErrorKind::Layout,
                format!("shape {:?} cannot be mapped to shape {:?}; they must be equal", src.shape(), dst.shape()),
            ));
        }
        check_disjoint(dst)?;
        let channels = match channels {
            Some(axis) => Some((axis, extent(src, axis)?)),
            None => None,
        };
        if src.is_empty() {
            return Ok(Self { work: Work::Nothing, channels, read: 0, written: 0 });
        }
        src_align.check("source", from.width())?;
        dst_align.check("destination", to.width())?;
        let axes = Axes::new(src, dst, channels.map(|(axis, _)| axis))?;
        let quads = src_align.bytes().min(dst_align.bytes()) >= QUAD as u64;
        let sides = Sides { axes, types, quads };
        let work = match sides.tile(target) {
            Some(tile) => tile,
            None => sides.elements(),
        };
        // Of a source that is broadcast, elements are counted as often as they are read, which may be more than memory has.
        let bytes = |len: usize, width: usize| (len as u64).saturating_mul(width as u64);
        let values = channels.map_or(0, |(_, count)| bytes(count, 2 * size_of::<f32>()));
        let read = bytes(axes.len(), from.width()).saturating_add(values);
        let written = bytes(axes.len(), to.width());
        Ok(Self { work, channels, read, written })
    }

    /// The kernel's entry; `None` where nothing is launched.
    pub fn entry(&self) -> Option<&'static str> {
        match &self.work {
            Work::Nothing => None,
            Work::Elements { entry, .. } | Work::Tile { entry, .. } => Some(entry.name()),
        }
    }

    /// The launch's shape; `None` where nothing is launched.
    pub fn shape(&self) -> Option<LaunchShape> {
        match &self.work {
            Work::Nothing => None,
            Work::Elements { shape, .. } | Work::Tile { shape, .. } => Some(*shape),
        }
    }

    /// Bytes that are read: the source's elements, and factors and offsets where channels have their own.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Bytes that are written: the destination's elements.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Launches on storages at these addresses.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the plan is for channels of another axis, or for none, or the device does not allow the launch's
    /// shape; and what the driver failed with.
    ///
    /// # Safety
    ///
    /// As [`affine_into_raw`](super::affine_into_raw), for the layouts that the plan was made of. The addresses are aligned as
    /// the plan was told, those of factors and offsets are multiples of 4 and not 0, and the destination shares no element with
    /// what is read.
    pub unsafe fn launch(
        &self,
        device: &Device,
        src: u64,
        dst: u64,
        affine: Affine<u64>,
        stream: StreamHandle,
    ) -> Result<()> {
        if affine.axis() != self.channels.map(|(axis, _)| axis) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "the plan is for channels along {:?} and the factors are for {:?}; make a plan for these",
                    self.channels.map(|(axis, _)| axis),
                    affine.axis()
                ),
            ));
        }
        match &self.work {
            Work::Nothing => Ok(()),
            Work::Elements { entry, shape, params, reversed } => {
                let of = &params.elements;
                let elements = ElementsParams { src: src.wrapping_add(of.src), dst: dst.wrapping_add(of.dst), ..*of };
                let values = self.values(&params.values, affine, *reversed);
                let params = AffineElementsParams { elements, values, ..*params };
                // SAFETY: the entry takes these parameters, and reaches exactly the elements of the two layouts and the values of
                // their channels; the rest as the caller promises.
                unsafe { device.launch(*entry, shape, &params, stream) }
            }
            Work::Tile { entry, shape, params, reversed } => {
                let (src, dst) = (src.wrapping_add(params.src), dst.wrapping_add(params.dst));
                let values = self.values(&params.values, affine, *reversed);
                // SAFETY: as above, in accesses that the alignments allow.
                unsafe { device.launch(*entry, shape, &AffineTileParams { src, dst, values, ..*params }, stream) }
            }
        }
    }

    /// The values of a launch, by the channels' order.
    fn values(&self, planned: &AffineValues, affine: Affine<u64>, reversed: bool) -> AffineValues {
        match affine {
            Affine::Uniform { factor, offset } => {
                AffineValues { factor: factor.to_bits(), offset: offset.to_bits(), ..*planned }
            }
            Affine::PerChannel { factors, offsets, .. } => {
                let last = self.channels.map_or(0, |(_, count)| ((count - 1) * size_of::<f32>()) as u64);
                let (first, step) = if reversed { (last, -1) } else { (0, 1) };
                AffineValues { factors: factors + first, offsets: offsets + first, step, ..*planned }
            }
        }
    }
}

/// The extent of an axis of channels.
fn extent(layout: &Layout, axis: usize) -> Result<usize> {
    layout.shape().get(axis).copied().ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "shape {:?} has no axis {axis} for the channels; give one of its {}, counted from 0",
                layout.shape(),
                counted(layout.rank(), "axis")
            ),
        )
    })
}

/// What is the same for all launches: the elements, or images, of one channel that follow each other, and the channels; of none, as
/// of one.
fn channels(axes: &[Axis], channel: Option<usize>, divisor: fn(u64) -> Divisor) -> AffineValues {
    let (inner, count) =
        channel.map_or((1, 1), |at| (axes[..at].iter().map(|axis| axis.extent).product::<usize>(), axes[at].extent));
    let [inner, channels] = [inner, count].map(|number| divisor(number as u64));
    AffineValues { factor: 0, offset: 0, factors: 0, offsets: 0, step: 0, inner, channels }
}

impl Sides {
    fn widths(&self) -> [usize; 2] {
        self.types.map(AffineType::width)
    }

    /// Element by element.
    fn elements(&self) -> Work {
        let Self { axes: walk, types: [from, to], .. } = self;
        let [src_width, dst_width] = self.widths();
        let is_narrow = walk.len().max(walk.reach()) <= i32::MAX as usize - BEYOND;
        let index = if is_narrow { Index::Narrow } else { Index::Wide };
        let elements = ElementsParams {
            src: (walk.src_start * src_width) as u64,
            dst: (walk.dst_start * dst_width) as u64,
            len: walk.len() as u64,
            rank: walk.as_slice().len() as u64,
            axes: axes(walk.as_slice(), divisor(index)),
        };
        let blocks = elements.len.div_ceil(u64::from(ELEMENTS_BLOCK * elements_per_thread(4)));
        let values = channels(walk.as_slice(), walk.channel, divisor(index));
        let params = AffineElementsParams { elements, src_type: *from as u64, dst_type: *to as u64, values };
        let shape = LaunchShape { grid: grid(blocks), block: [ELEMENTS_BLOCK, 1, 1], dynamic_shared: 0 };
        let entry = if *to == AffineType::F64 { AFFINE_ELEMENTS_F64 } else { AFFINE_ELEMENTS }.get(Key::index(index));
        Work::Elements { entry, shape, params, reversed: walk.reversed }
    }

    /// By tiles, where they are worth it.
    fn tile(&self, target: Target) -> Option<Work> {
        let axes_of = self.axes.as_slice();
        let row = axes_of.iter().position(|axis| axis.dst == 1 && axis.src.unsigned_abs() != 1)?;
        let col = axes_of.iter().position(|axis| axis.src.unsigned_abs() == 1)?;
        let walk = self.axes.forwards_in_source(col);
        let matrices = Matrices::new(&walk, row, col);
        let whole = if matrices.are_whole_quads(self) { self.rectangles(&matrices, target) } else { None };
        let tile = whole.or_else(|| self.padded(&matrices))?;
        let [from, to] = self.types;
        let [src_width, dst_width] = self.widths();
        let (rows, cols) = (matrices.rows.extent, matrices.cols.extent);
        let [across, down] = [cols.div_ceil(tile.width), rows.div_ceil(tile.height)];
        // Where rows of the destination go on in the tile below, that writes the rest of a sector: soon, while the L2 cache has it.
        let down_first = whole.is_none()
            && rows.saturating_mul(tile.width * src_width.max(dst_width)) <= Tuning::of(target).permutes.tiles.column;
        let along = |at: usize| u64::from(walk.channel == Some(at));
        let images: usize = matrices.batch().iter().map(|axis| axis.extent).product();
        let params = AffineTileParams {
            src: (walk.src_start * src_width) as u64,
            dst: (walk.dst_start * dst_width) as u64,
            rows: rows as u64,
            cols: cols as u64,
            src_pitch: matrices.rows.src as i64,
            dst_pitch: matrices.cols.dst as i64,
            across_log2: u64::from(tile.across_log2),
            tiles_across: Divisor::wide(across as u64),
            tiles_down: Divisor::wide(down as u64),
            down_first: u64::from(down_first),
            src_type: from as u64,
            dst_type: to as u64,
            values: channels(matrices.batch(), matrices.channel, Divisor::wide),
            along_rows: along(row),
            along_cols: along(col),
            rank: matrices.batch().len() as u64,
            axes: axes(matrices.batch(), Divisor::wide),
        };
        let blocks = across as u64 * down as u64 * images as u64;
        let shape = LaunchShape { grid: grid(blocks), block: [tile.threads, 1, 1], dynamic_shared: 0 };
        Some(Work::Tile { entry: tile.entry, shape, params, reversed: walk.reversed })
    }

    /// Tiles turned in registers, of as many rectangles as those of `vector_tile` have squares: unless most of one is empty.
    fn rectangles(&self, matrices: &Matrices, target: Target) -> Option<Tile> {
        let [lanes, rows] = self.widths().map(|width| QUAD / width);
        let tuned = TileShape::of(target).iter().find(|shape| shape.width() == QUAD / lanes)?;
        let tiles = &Tuning::of(target).permutes.tiles;
        let split = tuned.split(Kind::Whole, matrices.cols.extent / lanes, matrices.rows.extent / rows, tiles);
        let (across_log2, down_log2) =
            (split.used >= split.fewest(tiles)).then_some((split.across_log2, split.down_log2()))?;
        let [from, to] = self.types.map(AffineType::scalar);
        let entry = AFFINE_TILE.find(Key::types(from, to))?;
        let [height, width] = [rows << down_log2, lanes << across_log2];
        Some(Tile { entry, threads: VECTOR_TILE_THREADS, across_log2, height, width })
    }

    /// Padded tiles, unless most of one is empty.
    fn padded(&self, matrices: &Matrices) -> Option<Tile> {
        let side = AFFINE_PADDED_SIDE as usize;
        let used = matrices.rows.extent.min(side) * matrices.cols.extent.min(side);
        let entry = if self.types[1] == AffineType::F64 { AFFINE_PADDED_F64 } else { AFFINE_PADDED }.get(Key::ONLY);
        let tile = Tile { entry, threads: AFFINE_PADDED_BLOCK, across_log2: 0, height: side, width: side };
        (4 * used >= side * side).then_some(tile)
    }
}

/// How tiles are cut.
#[derive(Debug, Clone, Copy)]
struct Tile {
    entry: EntryId,
    threads: u32,
    across_log2: u32,
    /// In elements.
    height: usize,
    width: usize,
}

/// The matrix that tiles are cut from, and how often there is one.
struct Matrices {
    rows: Axis,
    cols: Axis,
    batch: [Axis; MAX_RANK],
    rank: usize,
    /// The place of the channels' axis in the batch.
    channel: Option<usize>,
    /// The lowest bits of all places that rows start at, of both sides.
    starts: [usize; 2],
}

impl Matrices {
    fn new(walk: &Axes, row: usize, col: usize) -> Self {
        let none = Axis { extent: 1, src: 0, dst: 0 };
        let (rows, cols) = (walk.as_slice()[row], walk.as_slice()[col]);
        let starts = [walk.src_start | rows.src as usize, walk.dst_start | cols.dst as usize];
        let batch = [none; MAX_RANK];
        let mut matrices = Self { rows, cols, batch, rank: 0, channel: None, starts };
        for (place, axis) in walk.as_slice().iter().enumerate().filter(|&(place, _)| place != row && place != col) {
            if walk.channel == Some(place) {
                matrices.channel = Some(matrices.rank);
            }
            matrices.batch[matrices.rank] = *axis;
            matrices.rank += 1;
            matrices.starts[0] |= axis.src as usize;
            matrices.starts[1] |= axis.dst as usize;
        }
        matrices
    }

    fn batch(&self) -> &[Axis] {
        &self.batch[..self.rank]
    }

    /// Whether every row of both sides starts on 16 bytes and holds whole ones.
    fn are_whole_quads(&self, sides: &Sides) -> bool {
        let [lanes, rows] = sides.widths().map(|width| QUAD / width);
        sides.quads
            && (self.starts[0] | self.cols.extent).is_multiple_of(lanes)
            && (self.starts[1] | self.rows.extent).is_multiple_of(rows)
    }
}

impl fmt::Display for AffinePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.work {
            Work::Nothing => f.write_str("nothing to map"),
            Work::Elements { entry, shape, params, .. } => {
                let AffineElementsParams { elements: ElementsParams { len, rank, .. }, .. } = params;
                write!(
                    f,
                    "{entry}: {len} along {rank}, {}",
                    shape,
                    len = counted(len, "element"),
                    rank = counted(rank, "axis")
                )
            }
            Work::Tile { entry, shape, params: AffineTileParams { rows, cols, rank, axes, .. }, .. } => {
                let images: u64 = axes[..*rank as usize].iter().map(|axis| axis.extent.value).product();
                write!(f, "{entry}: {images} of {rows} x {cols} elements, {}", shape)
            }
        }
    }
}
