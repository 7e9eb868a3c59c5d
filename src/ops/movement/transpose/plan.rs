//! From two layouts to launches.

use std::fmt;

use super::{Variant, not_a_matrix};
use crate::abi::{
    COLUMN_BLOCK, COLUMN_LOOP, ColumnParams, EntryId, Index, NAIVE, PADDED, STAGGERED, TILE, TILE_ROWS, TILED,
    TransposeParams,
};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::{LaunchShape, MAX_GRID_X, MAX_GRID_YZ};
use crate::layout::Layout;
use crate::ops::operand::{check_bytes, check_disjoint, check_width, entry};

/// How a variant transposes: which kernel, how often, in what grid, with which parameters. Made from layouts alone; the
/// addresses in its parameters are bytes from the starts of the two storages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransposePlan {
    work: Work,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Work {
    Nothing,
    Tiles { entry: EntryId, shape: LaunchShape, params: TransposeParams },
    Columns(Columns),
}

/// One launch a column: launch `c` is `first` moved by `c` steps.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Columns {
    entry: EntryId,
    shape: LaunchShape,
    first: ColumnParams,
    count: u64,
    /// Bytes from one column of the source to the next.
    src_step: i64,
    /// Bytes from one row of the destination to the next.
    dst_step: i64,
}

impl TransposePlan {
    /// Plans `dst[c, r] = src[r, c]` for elements of `width` bytes by one of the variants, for whatever layouts.
    ///
    /// # Errors
    ///
    /// `Layout` where one is not a matrix, the shapes do not go together, `dst` may reach an element twice, or there are
    /// more elements than a grid covers; `InvalidArgument` for a width that is not 1, 2, 4, 8 or 16.
    pub fn new(src: &Layout, dst: &Layout, width: usize, variant: Variant) -> Result<Self> {
        check_width(width)?;
        check_bytes("source", src, width)?;
        check_bytes("destination", dst, width)?;
        check_matrices(src, dst)?;
        check_disjoint(dst)?;
        if src.is_empty() {
            return Ok(Self { work: Work::Nothing });
        }
        let work = match variant {
            Variant::ColumnLoop => columns(src, dst, width)?,
            variant => tiles(src, dst, width, variant)?,
        };
        Ok(Self { work })
    }

    /// Number of launches: 0 for no elements, the columns for `column_loop`, else 1.
    pub fn launches(&self) -> u64 {
        match &self.work {
            Work::Nothing => 0,
            Work::Tiles { .. } => 1,
            Work::Columns(columns) => columns.count,
        }
    }

    /// The kernel's entry; `None` where nothing is launched.
    pub fn entry(&self) -> Option<&'static str> {
        match &self.work {
            Work::Nothing => None,
            Work::Tiles { entry, .. } => Some(entry.name()),
            Work::Columns(columns) => Some(columns.entry.name()),
        }
    }

    /// The shape of each launch; `None` where nothing is launched.
    pub fn shape(&self) -> Option<LaunchShape> {
        match &self.work {
            Work::Nothing => None,
            Work::Tiles { shape, .. } => Some(*shape),
            Work::Columns(columns) => Some(columns.shape),
        }
    }

    /// Queues the transpose between storages at these addresses. A plan may be kept and launched any number of times; what
    /// is checked is checked in the plan.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the device does not allow the launch's shape, and what the driver failed with.
    ///
    /// # Safety
    ///
    /// As [`transpose_raw`](super::transpose_raw), for storages of the plan's two layouts at `src` and `dst`; the two sides
    /// share no element, and the addresses are aligned to the width.
    pub unsafe fn launch(&self, device: &Device, src: u64, dst: u64, stream: StreamHandle) -> Result<()> {
        match &self.work {
            Work::Nothing => Ok(()),
            Work::Tiles { entry, shape, params } => {
                let params =
                    TransposeParams { src: src.wrapping_add(params.src), dst: dst.wrapping_add(params.dst), ..*params };
                // SAFETY: the tile kernels take these parameters, and reach exactly the elements of the two layouts; the
                // rest as the caller promises.
                unsafe { device.launch(*entry, shape, &params, stream) }
            }
            Work::Columns(columns) => {
                let mut params = columns.first;
                params.src = src.wrapping_add(params.src);
                params.dst = dst.wrapping_add(params.dst);
                for _ in 0..columns.count {
                    // SAFETY: as above, for one column of the source and one row of the destination.
                    unsafe { device.launch(columns.entry, &columns.shape, &params, stream) }?;
                    params.src = params.src.wrapping_add_signed(columns.src_step);
                    params.dst = params.dst.wrapping_add_signed(columns.dst_step);
                }
                Ok(())
            }
        }
    }
}

/// Whether the shapes are those of a matrix and its transpose.
pub(super) fn check_matrices(src: &Layout, dst: &Layout) -> Result<()> {
    let &[rows, cols] = src.shape() else { return Err(not_a_matrix("source", src)) };
    if dst.rank() != 2 {
        return Err(not_a_matrix("destination", dst));
    }
    if dst.shape() == [cols, rows] {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Layout,
        format!(
            "the transpose of shape {:?} has shape {:?}, and the destination has {:?}",
            src.shape(),
            [cols, rows],
            dst.shape()
        ),
    ))
}

fn tiles(src: &Layout, dst: &Layout, width: usize, variant: Variant) -> Result<Work> {
    let (rows, cols) = (src.shape()[0], src.shape()[1]);
    let params = TransposeParams {
        src: (src.offset() * width) as u64,
        dst: (dst.offset() * width) as u64,
        rows: rows as u64,
        cols: cols as u64,
        src_row_stride: src.strides()[0] as i64,
        src_col_stride: src.strides()[1] as i64,
        dst_row_stride: dst.strides()[0] as i64,
        dst_col_stride: dst.strides()[1] as i64,
    };
    let (tiles_y, tiles_x) = (params.rows.div_ceil(u64::from(TILE)), params.cols.div_ceil(u64::from(TILE)));
    let y = tiles_y.min(u64::from(MAX_GRID_YZ));
    let z = tiles_y.div_ceil(y);
    if tiles_x > u64::from(MAX_GRID_X) || z > u64::from(MAX_GRID_YZ) {
        return Err(too_large(src));
    }
    let family = match variant {
        Variant::Naive => NAIVE,
        Variant::Tiled => TILED,
        Variant::Padded => PADDED,
        Variant::Staggered => STAGGERED,
        Variant::ColumnLoop => return columns(src, dst, width),
    };
    let entry = entry(&family, width, index(src, dst))?;
    let shape =
        LaunchShape { grid: [tiles_x as u32, y as u32, z as u32], block: [TILE, TILE_ROWS, 1], dynamic_shared: 0 };
    Ok(Work::Tiles { entry, shape, params })
}

fn columns(src: &Layout, dst: &Layout, width: usize) -> Result<Work> {
    let (rows, cols) = (src.shape()[0] as u64, src.shape()[1] as u64);
    let first = ColumnParams {
        src: (src.offset() * width) as u64,
        dst: (dst.offset() * width) as u64,
        len: rows,
        src_stride: src.strides()[0] as i64,
        dst_stride: dst.strides()[1] as i64,
    };
    let blocks = rows.div_ceil(u64::from(COLUMN_BLOCK));
    if blocks > u64::from(MAX_GRID_X) {
        return Err(too_large(src));
    }
    let shape = LaunchShape { grid: [blocks as u32, 1, 1], block: [COLUMN_BLOCK, 1, 1], dynamic_shared: 0 };
    // Wrapping: of a single column the stride never counts, and might overflow.
    let step = |stride: isize| (stride as i64).wrapping_mul(width as i64);
    Ok(Work::Columns(Columns {
        entry: entry(&COLUMN_LOOP, width, index(src, dst))?,
        shape,
        first,
        count: cols,
        src_step: step(src.strides()[1]),
        dst_step: step(dst.strides()[0]),
    }))
}

/// The arithmetic that is enough for both sides.
fn index(src: &Layout, dst: &Layout) -> Index {
    if [src, dst].map(crate::ops::numbering::index_of) == [Index::Narrow; 2] { Index::Narrow } else { Index::Wide }
}

fn too_large(src: &Layout) -> Error {
    Error::new(
        ErrorKind::Layout,
        format!(
            "a matrix of shape {:?} has more tiles than a grid covers; transpose it in parts (split_at)",
            src.shape()
        ),
    )
}

impl fmt::Display for TransposePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.work {
            Work::Nothing => f.write_str("nothing to transpose"),
            Work::Tiles { entry, shape, params } => {
                write!(f, "{entry}: {} x {} elements, {}", params.rows, params.cols, shape)
            }
            Work::Columns(columns) => {
                let Columns { entry, shape, first, count, .. } = columns;
                write!(
                    f,
                    "{entry}: {count} of {} each, {}",
                    counted(first.len, "element"),
                    shape,
                    count = counted(count, "launch")
                )
            }
        }
    }
}
