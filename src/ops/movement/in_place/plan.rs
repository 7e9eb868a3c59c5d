//! Plans launches from a layout.

use std::fmt;

use super::not_in_place;
use crate::abi::{
    Divisor, EntryId, Index, LINES_BLOCK, LINES_SHARED, LinesParams, PERMUTE_LINES, SPILL_LINES, SWAP_TILES,
    SquareParams, TILE, TILE_ROWS, square_side,
};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Element;
use crate::error::{Error, Result, counted};
use crate::launch_shape::{LaunchShape, MAX_GRID_X, MAX_GRID_YZ};
use crate::layout::Layout;
use crate::ops::Plan;
use crate::ops::numbering::{checked_grid, divisor, index_of};
use crate::ops::operand::{
    Operand, byte_range, bytes_from, check_aligned, check_bytes, check_named_apart, check_width, entry, queue,
};
use crate::ops::plan::{AnyStep, Explanation, Step, placed};
use crate::ops::tuning::{InPlace, Tuning};
use crate::ops::units::wide::SECTOR;
use crate::stream::Stream;
use crate::view::ViewMut;

/// A plan of a transpose in place: the kernels, the grids and the parameters.
///
/// Only a layout decides a plan. A program can keep it and launch it any number of times.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::ops::InPlacePlan;
/// use warpstride::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let mut matrix = device.array(&[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// let plan = InPlacePlan::new(matrix.layout(), size_of::<i32>())?;
/// let mut scratch = device.alloc_array(&[plan.scratch_bytes()])?; // for many launches
/// plan.launch(&mut matrix, &mut scratch, device.default_stream())?;
/// assert_eq!(matrix.into_buffer().download()?, [1, 4, 2, 5, 3, 6]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InPlacePlan {
    /// The single launch of a square matrix.
    square: Option<Step<SquareParams>>,
    /// The passes of any other matrix.
    passes: [Option<Pass>; 3],
    layout: Layout,
    width: usize,
}

/// One permutation within each row, or within each column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pass {
    /// The first launch. The last launch through scratch may have fewer panels in y.
    step: Step<LinesParams>,
    /// The number of panels of all matrices.
    panels: u64,
    /// Panels that the scratch can hold; 0 if panels go through shared memory, all in one launch.
    spilled: u64,
}

placed! {
    SquareParams: |own, matrix: u64| Self { matrix: matrix.wrapping_add(own.matrix), ..own };
    LinesParams: |own, [matrix, scratch]: [u64; 2]| Self { matrix: matrix.wrapping_add(own.matrix), scratch, ..own };
}

/// Contiguous matrices with no more rows than columns, as the passes need them.
#[derive(Clone, Copy)]
struct Grid {
    start: u64,
    rows: u64,
    cols: u64,
    batches: u64,
    width: u64,
}

impl InPlacePlan {
    /// Plans the transpose of a matrix, or of each matrix of a batch, with elements of `width`
    /// bytes.
    ///
    /// A square matrix exchanges its tiles across the diagonal, through shared memory. Any other
    /// matrix, contiguous in C order, is transposed by the decomposition of Catanzaro, Keller and
    /// Garland (2014): two or three passes permute within columns or within rows. Panels of them go
    /// through shared memory, or through scratch memory if they are too long. A matrix with more
    /// rows than columns runs the passes of its transpose backwards, so that columns are shorter
    /// than rows and a panel takes several.
    ///
    /// # Errors
    ///
    /// `Layout` if it does not have two or three axes, is neither square nor contiguous in C order,
    /// may reach an element twice, or has more elements than a grid covers; `InvalidArgument` if
    /// the width is not 1, 2, 4, 8 or 16.
    pub fn new(layout: &Layout, width: usize) -> Result<Self> {
        check_width(width)?;
        check_bytes("matrix", layout, width)?;
        let (batches, rows, cols) = match *layout.shape() {
            [rows, cols] => (1, rows, cols),
            [batches, rows, cols] => (batches, rows, cols),
            _ => return Err(not_matrices(layout)),
        };
        if layout.overlaps_itself() {
            return Err(Error::layout(format!(
                "{} may reach an element twice and cannot be transposed in place; use a layout that does not overlap \
                     itself",
                layout.described()
            )));
        }
        if rows != cols && !layout.is_standard_layout() {
            return Err(not_in_place(layout));
        }
        let mut plan = Self { square: None, passes: [None; 3], layout: *layout, width };
        if layout.is_empty() || rows == 1 || cols == 1 {
            return Ok(plan);
        }
        if rows == cols {
            plan.square = Some(square(layout, width)?);
        } else {
            let start = (layout.offset() * width) as u64;
            let [short, long] = [rows.min(cols) as u64, rows.max(cols) as u64];
            let grid = Grid { start, rows: short, cols: long, batches: batches as u64, width: width as u64 };
            plan.passes = grid.passes(rows > cols).ok_or_else(|| too_large(layout))?;
        }
        Ok(plan)
    }

    /// Returns the bytes of scratch memory that the transpose needs. This is 0 for a square matrix,
    /// and if panels fit in shared memory. Otherwise it is at most the greatest of 1/64 of the
    /// matrix's bytes, one row or column along its longer axis, and 32 bytes for each index of its
    /// shorter one.
    pub fn scratch_bytes(&self) -> usize {
        // Panels are parts of the matrix, so their bytes fit a usize.
        self.passes.iter().flatten().map(|pass| pass.spilled * pass.panel_bytes(self.width)).max().unwrap_or(0) as usize
    }

    /// Returns the entry of each pass, in order. Each pass reads every element from the matrix once
    /// and writes it back.
    pub fn entries(&self) -> impl Iterator<Item = &'static str> {
        let square = self.square.iter().map(|square| square.entry);
        square.chain(self.passes.iter().flatten().map(|pass| pass.step.entry)).map(EntryId::name)
    }

    /// Queues the transpose of `matrix` in its own memory on `stream`, and returns the view of the
    /// result. `scratch` has at least [`InPlacePlan::scratch_bytes`], without gaps.
    ///
    /// # Errors
    ///
    /// `Layout` if the matrix is not the planned one; `InvalidArgument` if the scratch is too small
    /// or not aligned to the elements, or the operands and the stream are not on one device; else
    /// the driver's error, after which the elements may be in any order.
    pub fn launch<'a, 'b, T: Element>(
        &self,
        matrix: impl Into<ViewMut<'a, T>>,
        scratch: impl Into<ViewMut<'b, u8>>,
        stream: &Stream,
    ) -> Result<ViewMut<'a, T>> {
        let (matrix, scratch) = (matrix.into(), scratch.into());
        let operands = [Operand::written("matrix", &matrix), Operand::written("scratch", &scratch)];
        operands[0].check(&self.layout, self.width)?;
        let start = operands[1].first_byte()?;
        if scratch.len() < self.scratch_bytes() || !start.is_multiple_of(self.width as u64) {
            return Err(Error::argument(format!(
                "the scratch has {} from byte {start}; give {} from a multiple of {}",
                counted(scratch.len(), "byte"),
                self.scratch_bytes(),
                self.width
            )));
        }
        queue(operands, stream, &|device, [matrix, scratch], stream| {
            // SAFETY: the matrix has the planned layout, as `Operand::check` saw, which lies within
            // its buffer. The scratch has the bytes that the plan asks for and starts on a multiple
            // of the width, as checked above. Both are borrowed exclusively, so they share no byte.
            // `queue` requires one device and orders other work on both.
            unsafe { self.queue(device, matrix, scratch + start, stream) }
        })?;
        let transposed = match *self.layout.shape() {
            [rows, cols] if rows != cols => matrix.reshape(&[cols, rows])?,
            [batches, rows, cols] if rows != cols => matrix.reshape(&[batches, cols, rows])?,
            _ => return Ok(matrix),
        };
        transposed.view().ok_or_else(|| not_in_place(&self.layout))
    }

    /// Queues the transpose in memory that others own, with a storage and a scratch at these
    /// addresses.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an address is not a multiple of the element's width, the scratch
    /// overlaps the matrix, or the device does not allow a launch; else the driver's error.
    ///
    /// # Safety
    ///
    /// [The raw contract](crate::ops#the-raw-contract), for a storage of the planned layout and a
    /// scratch of [`InPlacePlan::scratch_bytes`], or any address if those are 0. Both are read and
    /// written.
    pub unsafe fn launch_raw(&self, device: &Device, matrix: u64, scratch: u64, stream: StreamHandle) -> Result<()> {
        if self.launches() == 0 {
            return Ok(());
        }
        let bytes = self.scratch_bytes() as u128;
        let width = self.width as u64;
        check_aligned(&[("matrix", matrix, width)])?;
        if bytes > 0 {
            check_aligned(&[("scratch", scratch, width)])?;
            let of_matrix = byte_range(matrix, &self.layout, self.width);
            check_named_apart(["matrix", "scratch"], of_matrix, bytes_from(scratch, bytes))?;
        }
        // SAFETY: `check_aligned` and `check_named_apart` saw that the addresses are aligned and
        // that matrix and scratch share no byte; the caller promises the rest of the raw contract.
        unsafe { self.queue(device, matrix, scratch, stream) }
    }

    /// Queues every launch.
    ///
    /// # Safety
    ///
    /// As [`InPlacePlan::launch_raw`]; the addresses are aligned to the width, and the scratch does
    /// not overlap the matrix.
    unsafe fn queue(&self, device: &Device, matrix: u64, scratch: u64, stream: StreamHandle) -> Result<()> {
        if let Some(square) = &self.square {
            // SAFETY: `square` made the parameters of the layout, so that the kernel reaches its
            // elements and no others; `new` refused layouts that reach one twice. The caller
            // promises that they exist and are aligned, and that no other work is on them.
            unsafe { square.queue(device, matrix, stream) }?;
        }
        for pass in self.passes.iter().flatten() {
            // SAFETY: `new` made the pass of this layout, and the scratch has room for
            // `pass.spilled` panels, the greatest of which `scratch_bytes` gives.
            unsafe { pass.launch(device, [matrix, scratch], stream) }?;
        }
        Ok(())
    }
}

impl Plan for InPlacePlan {
    fn entry(&self) -> Option<&'static str> {
        self.entries().next()
    }

    fn shape(&self) -> Option<LaunchShape> {
        let first = self.passes.iter().flatten().next().map(|pass| pass.step.shape);
        self.square.map(|square| square.shape).or(first)
    }

    fn launches(&self) -> u64 {
        u64::from(self.square.is_some()) + self.passes.iter().flatten().map(Pass::launches).sum::<u64>()
    }

    fn explain(&self) -> Explanation {
        let passes = self.entries().count();
        let moved = (self.layout.len() * self.width * passes) as u64;
        let reason = match passes {
            0 => "there is nothing to exchange",
            _ if self.square.is_some() => "the matrix is square: tiles are exchanged across the diagonal",
            2 => "rows and columns have no common divisor: elements move within rows, then within columns",
            _ => "rows and columns have a common divisor: columns are rotated before the other two passes",
        };
        Explanation::of(self, reason.into(), moved, moved)
    }
}

impl Pass {
    /// Returns the pass with this permutation.
    fn with(mut self, factor: u64, period: Divisor, section: Divisor, scatter: bool) -> Self {
        self.step.params = LinesParams { factor, period, section, scatter: u64::from(scatter), ..self.step.params };
        self
    }

    fn panel_bytes(&self, width: usize) -> u64 {
        self.step.params.height * self.step.params.width.value * width as u64
    }

    fn launches(&self) -> u64 {
        if self.spilled == 0 { 1 } else { 2 * self.panels.div_ceil(self.spilled) }
    }

    /// # Safety
    ///
    /// As [`InPlacePlan::queue`].
    unsafe fn launch(&self, device: &Device, operands: [u64; 2], stream: StreamHandle) -> Result<()> {
        if self.spilled == 0 {
            // SAFETY: `permute_lines` reaches exactly the elements of the layout; a panel fits in
            // its shared memory, and the partners are one to one by the paper's lemmas. The rest as
            // the caller promises.
            return unsafe { self.step.queue(device, operands, stream) };
        }
        let mut step = self.step;
        while step.params.first < self.panels {
            step.params.end = self.panels.min(step.params.first + self.spilled);
            // At most `spilled`, which is at most the y extent of a grid.
            step.shape.grid[1] = (step.params.end - step.params.first) as u32;
            for back in [0, 1] {
                step.params.back = back;
                // SAFETY: as above, and the scratch has room for `spilled` panels, the second
                // launch's filled by the first.
                unsafe { step.queue(device, operands, stream) }?;
            }
            step.params.first = step.params.end;
        }
        Ok(())
    }
}

impl Grid {
    /// Returns the passes that transpose `rows` x `cols`. With `back`, it returns their inverses in
    /// the opposite order. `None` if a grid does not cover them.
    ///
    /// In the terms of [`LinesParams`], with `c` the greatest common divisor: first each column is
    /// rotated by its multiple of `cols / c`, which spreads the elements of a row over all columns;
    /// then each element goes to its column, and last to its row. If rows and columns have no
    /// common divisor, the elements are spread already.
    fn passes(&self, back: bool) -> Option<[Option<Pass>; 3]> {
        let common = gcd(self.rows, self.cols);
        let by = |value| self.divisor(value);
        let section = by(self.cols / common);
        let (rows, columns) = (self.row_panels()?, self.column_panels()?);
        let rotate = columns.with(1, by(self.rows), section, back);
        let to_columns = rows.with(1, by(self.rows), section, !back);
        let to_rows = columns.with(self.cols % self.rows, by(self.rows / common), by(1), back);
        let rotate = (common > 1).then_some(rotate);
        let passes = [rotate, Some(to_columns), Some(to_rows)];
        let [first, second, third] = passes;
        Some(if back { [third, second, first] } else { passes })
    }

    /// Returns the narrowest arithmetic that holds all elements' numbers.
    fn index(&self) -> Index {
        let elements = self.batches * self.rows * self.cols;
        if elements <= i32::MAX as u64 { Index::Narrow } else { Index::Wide }
    }

    /// Returns the constants by which the kernels divide by `value`.
    fn divisor(&self, value: u64) -> Divisor {
        divisor(self.index())(value)
    }

    /// Returns the most bytes of scratch for panels, at least `least`.
    fn scratch(&self, least: u64) -> u64 {
        let whole = self.batches * self.rows * self.cols * self.width;
        (whole / Tuning::common().in_place.scratch_part).max(least)
    }

    /// Returns panels with the most rows that fit in shared memory, or one row through the scratch.
    fn row_panels(&self) -> Option<Pass> {
        let fit = u64::from(LINES_SHARED) / (self.cols * self.width);
        let height =
            (self.rows * self.batches).div_ceil(Tuning::common().in_place.enough_panels).min(fit).clamp(1, self.rows);
        self.pass(0, height, self.cols, self.rows.div_ceil(height), fit == 0)
    }

    /// Returns panels with the most columns that fit in shared memory, at least a sector wide, or
    /// more of them through the scratch.
    fn column_panels(&self) -> Option<Pass> {
        let line = self.rows * self.width;
        let sector = SECTOR / self.width;
        let fit = u64::from(LINES_SHARED) / line;
        // If a sector is wider than the matrix, columns are as short as its rows, and a panel fits.
        let spilled = fit < sector.min(self.cols);
        let most = if spilled { self.scratch(self.rows * SECTOR) / line } else { fit };
        let InPlace { enough_panels, panel_sectors, .. } = Tuning::common().in_place;
        let wanted = (self.cols * self.batches).div_ceil(enough_panels).max(panel_sectors * sector);
        let wanted = if spilled { most } else { wanted };
        let width = (wanted.next_multiple_of(sector).min(most) / sector * sector).max(most.min(sector)).min(self.cols);
        self.pass(1, self.rows, width, self.cols.div_ceil(width), spilled)
    }

    /// Returns a pass over panels of `height` x `width`, without its permutation; `None` if a grid
    /// does not cover them.
    fn pass(&self, columns: u64, height: u64, width: u64, panels: u64, spilled: bool) -> Option<Pass> {
        let all = panels * self.batches;
        let len = height * width;
        let bytes = len * self.width;
        debug_assert!(
            spilled || bytes <= u64::from(LINES_SHARED),
            "{height} x {width} elements do not fit shared memory"
        );
        let room = (self.scratch(bytes) / bytes).min(all).min(u64::from(MAX_GRID_YZ));
        let (family, [x, y]) = if spilled {
            (SPILL_LINES, [len.div_ceil(u64::from(LINES_BLOCK)), room])
        } else {
            let x = all.min(u64::from(MAX_GRID_X));
            (PERMUTE_LINES, [x, all.div_ceil(x)])
        };
        let params = LinesParams {
            matrix: self.start,
            scratch: 0,
            rows: self.divisor(self.rows),
            cols: self.divisor(self.cols),
            columns,
            scatter: 0,
            height,
            width: self.divisor(width),
            panels: self.divisor(panels),
            first: 0,
            end: all,
            factor: 0,
            period: self.divisor(1),
            section: self.divisor(1),
            back: 0,
        };
        let step = Step {
            entry: entry(&family, self.width as usize, self.index()).ok()?,
            shape: LaunchShape { grid: checked_grid([x, y, 1])?, block: [LINES_BLOCK, 1, 1], dynamic_shared: 0 },
            params,
        };
        Some(Pass { step, panels: all, spilled: if spilled { room } else { 0 } })
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn square(layout: &Layout, width: usize) -> Result<Step<SquareParams>> {
    let (batches, n, batch_stride, strides) = match (layout.shape(), layout.strides()) {
        (&[batches, n, _], &[of_batch, of_row, of_col]) => (batches, n, of_batch, [of_row, of_col]),
        (&[n, _], &[of_row, of_col]) => (1, n, 0, [of_row, of_col]),
        _ => return Err(not_matrices(layout)),
    };
    // The kernel runs along columns. Exchanging the axes is the same transpose.
    let [row_stride, col_stride] =
        if strides[0].unsigned_abs() < strides[1].unsigned_abs() { [strides[1], strides[0]] } else { strides };
    let params = SquareParams {
        matrix: (layout.offset() * width) as u64,
        n: n as u64,
        row_stride: row_stride as i64,
        col_stride: col_stride as i64,
        batches: batches as u64,
        batch_stride: batch_stride as i64,
    };
    let tiles = params.n.div_ceil(u64::from(square_side(width as u32)));
    let pairs = u128::from(tiles) * u128::from(tiles + 1) / 2;
    let y = params.batches.min(u64::from(MAX_GRID_YZ));
    let grid = u64::try_from(pairs).ok().and_then(|pairs| checked_grid([pairs, y, params.batches.div_ceil(y)]));
    let grid = grid.ok_or_else(|| too_large(layout))?;
    let shape = LaunchShape { grid, block: [TILE, TILE_ROWS, 1], dynamic_shared: 0 };
    Ok(Step { entry: entry(&SWAP_TILES, width, index_of(layout))?, shape, params })
}

fn not_matrices(layout: &Layout) -> Error {
    Error::layout(format!(
        "shape {:?}, of {}, cannot be transposed in place; it must have two, or three of which the first is the batch \
             (index_axis and merge_axes make fewer, insert_axis more)",
        layout.shape(),
        counted(layout.rank(), "axis")
    ))
}

fn too_large(layout: &Layout) -> Error {
    Error::layout(format!(
        "a matrix of shape {:?} has more parts than a grid covers; transpose it in parts",
        layout.shape()
    ))
}

impl fmt::Display for InPlacePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Step { entry, shape, params }) = &self.square {
            let SquareParams { n, batches, .. } = params;
            return write!(f, "{entry}: {batches} x {n} x {n} elements in place, {}", shape);
        }
        if self.launches() == 0 {
            return f.write_str("nothing to transpose");
        }
        for pass in self.passes.iter().flatten() {
            let LinesParams { columns, height, width, .. } = pass.step.params;
            let (lines, together) = if columns != 0 { ("columns", width.value) } else { ("rows", height) };
            write!(f, "{} on {lines}, {together} a panel; ", pass.step.entry)?;
        }
        write!(f, "{}, {} of scratch", counted(self.launches(), "launch"), counted(self.scratch_bytes(), "byte"))
    }
}
