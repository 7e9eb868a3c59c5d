//! Plans launches from two layouts.

use std::fmt;

use super::{Variant, not_a_matrix};
use crate::abi::{
    COLUMN_BLOCK, COLUMN_LOOP, ColumnParams, Index, NAIVE, PADDED, STAGGERED, TILE, TILE_ROWS, TILED, TransposeParams,
};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Element;
use crate::error::{Error, Result, counted};
use crate::launch_shape::{LaunchShape, MAX_GRID_YZ};
use crate::layout::Layout;
use crate::ops::Plan;
use crate::ops::numbering::{checked_grid, index_of};
use crate::ops::operand::{
    Operand, byte_range, check_aligned, check_apart, check_bytes, check_disjoint, check_width, entry, queue,
};
use crate::ops::plan::{AnyStep, Explanation, Step, placed};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// A plan of a transpose by one variant: the kernel, its launches, the grid and the parameters.
///
/// Only layouts decide a plan. A program can keep it and launch it any number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransposePlan {
    launches: Launches,
    src: Layout,
    dst: Layout,
    width: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Launches {
    None,
    Tiles(Step<TransposeParams>),
    Columns(Columns),
}

/// One launch per column: launch `c` is `first` with its addresses advanced by `c` steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Columns {
    first: Step<ColumnParams>,
    count: u64,
    /// Bytes from one column of the source to the next.
    src_step: i64,
    /// Bytes from one row of the destination to the next.
    dst_step: i64,
}

placed!(ColumnParams);

impl TransposePlan {
    /// Plans `dst[c, r] = src[r, c]` for elements of `width` bytes by one variant, for any layouts.
    ///
    /// # Errors
    ///
    /// `Layout` if an operand is not a matrix, the shapes do not fit, `dst` may reach an element
    /// twice, or there are more elements than a grid covers; `InvalidArgument` if the width is not
    /// 1, 2, 4, 8 or 16.
    pub fn new(src: &Layout, dst: &Layout, width: usize, variant: Variant) -> Result<Self> {
        check_width(width)?;
        check_bytes("source", src, width)?;
        check_bytes("destination", dst, width)?;
        check_matrices(src, dst)?;
        check_disjoint(dst)?;
        let launches = match variant {
            _ if src.is_empty() => Launches::None,
            Variant::ColumnLoop => columns(src, dst, width)?,
            variant => tiles(src, dst, width, variant)?,
        };
        Ok(Self { launches, src: *src, dst: *dst, width })
    }

    /// Queues the transpose of `src` into `dst` on `stream`.
    ///
    /// # Errors
    ///
    /// `Layout` if the views are not the planned ones; `InvalidArgument` if the operands and the
    /// stream are not on one device, or the device does not allow the launch; else the driver's
    /// error.
    pub fn launch<'a, T: Element>(
        &self,
        src: impl Into<View<'a, T>>,
        dst: impl Into<ViewMut<'a, T>>,
        stream: &Stream,
    ) -> Result<()> {
        let (src, dst) = (src.into(), dst.into());
        let operands = [Operand::read("source", &src), Operand::written("destination", &dst)];
        operands[0].check(&self.src, self.width)?;
        operands[1].check(&self.dst, self.width)?;
        queue(operands, stream, &|device, operands, stream| {
            // SAFETY: the views have the planned layouts, as `Operand::check` saw, and a view's
            // layout lies within its buffer, which a view borrows. `dst` is borrowed exclusively,
            // so the two sides share no element. Both addresses are those of allocations, which are
            // aligned to 256 bytes. `queue` holds all to one device and orders other work on both.
            unsafe { self.queue(device, operands, stream) }
        })
    }

    /// Queues the transpose between storages at these addresses, in memory that others own.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an address is not a multiple of the element's width, the two sides
    /// overlap, or the device does not allow the launch; else the driver's error.
    ///
    /// # Safety
    ///
    /// [The raw contract](crate::ops#the-raw-contract), for storages of the planned layouts.
    pub unsafe fn launch_raw(&self, device: &Device, src: u64, dst: u64, stream: StreamHandle) -> Result<()> {
        if self.launches() == 0 {
            return Ok(());
        }
        let width = self.width as u64;
        check_aligned(&[("source", src, width), ("destination", dst, width)])?;
        check_apart(byte_range(src, &self.src, self.width), byte_range(dst, &self.dst, self.width))?;
        // SAFETY: `check_aligned` and `check_apart` saw that the addresses are aligned to the width
        // and that the two sides share no byte; the caller promises the rest of the raw contract.
        unsafe { self.queue(device, [src, dst], stream) }
    }

    /// Returns the first launch.
    fn first(&self) -> Option<&dyn AnyStep<[u64; 2]>> {
        match &self.launches {
            Launches::None => None,
            Launches::Tiles(step) => Some(step),
            Launches::Columns(columns) => Some(&columns.first),
        }
    }

    /// Queues every launch.
    ///
    /// # Safety
    ///
    /// As [`TransposePlan::launch_raw`]; the two sides share no element, and the addresses are
    /// aligned to the width.
    unsafe fn queue(&self, device: &Device, operands: [u64; 2], stream: StreamHandle) -> Result<()> {
        match &self.launches {
            Launches::None => Ok(()),
            // SAFETY: `tiles` made the parameters of the two layouts, and the kernels compare each
            // row and column with the extents, so they reach the layouts' elements and no others.
            // The caller promises that those exist, are aligned and are apart.
            Launches::Tiles(step) => unsafe { step.queue(device, operands, stream) },
            Launches::Columns(columns) => {
                let mut step = columns.first;
                for _ in 0..columns.count {
                    // SAFETY: `columns` made the parameters for the first column of the source and
                    // the first row of the destination, whose elements the kernel counts; each step
                    // moves both to the next, of which there are `count`. The caller promises that
                    // their elements exist, are aligned and are apart.
                    unsafe { step.queue(device, operands, stream) }?;
                    step.params.src = step.params.src.wrapping_add_signed(columns.src_step);
                    step.params.dst = step.params.dst.wrapping_add_signed(columns.dst_step);
                }
                Ok(())
            }
        }
    }
}

impl Plan for TransposePlan {
    fn entry(&self) -> Option<&'static str> {
        self.first().map(|step| step.entry().name())
    }

    fn shape(&self) -> Option<LaunchShape> {
        self.first().map(|step| step.shape())
    }

    /// Counts the launches: 0 for no elements, the columns for `column_loop`, else 1.
    fn launches(&self) -> u64 {
        match &self.launches {
            Launches::None => 0,
            Launches::Tiles(_) => 1,
            Launches::Columns(columns) => columns.count,
        }
    }

    fn explain(&self) -> Explanation {
        let bytes = (self.src.len() * self.width) as u64;
        Explanation::of(self, "the caller asks for this variant".into(), bytes, bytes)
    }
}

/// Checks that the shapes are those of a matrix and its transpose.
pub(super) fn check_matrices(src: &Layout, dst: &Layout) -> Result<()> {
    let &[rows, cols] = src.shape() else { return Err(not_a_matrix("source", src)) };
    if dst.rank() != 2 {
        return Err(not_a_matrix("destination", dst));
    }
    if dst.shape() == [cols, rows] {
        return Ok(());
    }
    Err(Error::layout(format!(
        "the transpose of shape {:?} has shape {:?}, and the destination has {:?}",
        src.shape(),
        [cols, rows],
        dst.shape()
    )))
}

fn tiles(src: &Layout, dst: &Layout, width: usize, variant: Variant) -> Result<Launches> {
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
    let grid = checked_grid([tiles_x, y, tiles_y.div_ceil(y)]).ok_or_else(|| too_large(src))?;
    let family = match variant {
        Variant::Naive => NAIVE,
        Variant::Tiled => TILED,
        Variant::Padded => PADDED,
        Variant::Staggered => STAGGERED,
        Variant::ColumnLoop => return columns(src, dst, width),
    };
    let entry = entry(&family, width, index(src, dst))?;
    let shape = LaunchShape { grid, block: [TILE, TILE_ROWS, 1], dynamic_shared: 0 };
    Ok(Launches::Tiles(Step { entry, shape, params }))
}

fn columns(src: &Layout, dst: &Layout, width: usize) -> Result<Launches> {
    let (rows, cols) = (src.shape()[0] as u64, src.shape()[1] as u64);
    let params = ColumnParams {
        src: (src.offset() * width) as u64,
        dst: (dst.offset() * width) as u64,
        len: rows,
        src_stride: src.strides()[0] as i64,
        dst_stride: dst.strides()[1] as i64,
    };
    let blocks = rows.div_ceil(u64::from(COLUMN_BLOCK));
    let grid = checked_grid([blocks, 1, 1]).ok_or_else(|| too_large(src))?;
    let shape = LaunchShape { grid, block: [COLUMN_BLOCK, 1, 1], dynamic_shared: 0 };
    // Wrapping, because the stride of a single column is not used and might overflow.
    let step = |stride: isize| (stride as i64).wrapping_mul(width as i64);
    let entry = entry(&COLUMN_LOOP, width, index(src, dst))?;
    Ok(Launches::Columns(Columns {
        first: Step { entry, shape, params },
        count: cols,
        src_step: step(src.strides()[1]),
        dst_step: step(dst.strides()[0]),
    }))
}

/// Returns the narrowest arithmetic that is enough for both sides.
fn index(src: &Layout, dst: &Layout) -> Index {
    if [src, dst].map(index_of) == [Index::Narrow; 2] { Index::Narrow } else { Index::Wide }
}

fn too_large(src: &Layout) -> Error {
    Error::layout(format!(
        "a matrix of shape {:?} has more tiles than a grid covers; transpose it in parts (split_at)",
        src.shape()
    ))
}

impl fmt::Display for TransposePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.launches {
            Launches::None => f.write_str("nothing to transpose"),
            Launches::Tiles(Step { entry, shape, params }) => {
                write!(f, "{entry}: {} x {} elements, {}", params.rows, params.cols, shape)
            }
            Launches::Columns(columns) => {
                let Columns { first: Step { entry, shape, params }, count, .. } = columns;
                write!(
                    f,
                    "{entry}: {count} of {} each, {}",
                    counted(params.len, "element"),
                    shape,
                    count = counted(count, "launch")
                )
            }
        }
    }
}
