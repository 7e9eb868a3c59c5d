//! From a layout to launches.

use std::fmt;

use super::not_in_place;
use crate::abi::{
    Divisor, EntryId, Index, LINES_BLOCK, LINES_SHARED, LinesParams, PERMUTE_LINES, SPILL_LINES, SWAP_TILES,
    SquareParams, TILE, TILE_ROWS, square_side,
};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::{LaunchShape, MAX_GRID_X, MAX_GRID_YZ, MAX_SHARED_BYTES};
use crate::layout::Layout;
use crate::ops::numbering::index_of;
use crate::ops::operand::{byte_range, check_bytes, check_width, entry};
use crate::ops::units;

/// Bytes of a row of a panel that keep the sectors of device memory whole.
const SECTOR: u64 = units::SECTOR as u64;
/// The scratch for long lines has at most this part of the matrix's bytes, or what one panel needs.
const SCRATCH_PART: u64 = 64;
/// Panels are made smaller than they might be until there are as many: two for each multiprocessor of an H100.
const ENOUGH_PANELS: u64 = 264;
const _: () = assert!(LINES_SHARED <= MAX_SHARED_BYTES, "the kernel does not ask for more");

/// How a transpose in place is done: which kernels, in what grids, with which parameters. Made from a layout alone; the
/// address in its parameters is bytes from the start of the storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InPlacePlan {
    /// Of a square matrix.
    square: Option<Square>,
    /// Of any other.
    passes: [Option<Pass>; 3],
    width: usize,
}

/// The one launch that a square matrix takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Square {
    entry: EntryId,
    shape: LaunchShape,
    params: SquareParams,
}

/// One permutation of all rows in themselves, or of all columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pass {
    entry: EntryId,
    /// Of each launch; of the scratch's, the last may have fewer panels in y.
    shape: LaunchShape,
    /// Of the first launch.
    params: LinesParams,
    /// Panels of all matrices.
    panels: u64,
    /// Panels that the scratch has room for; 0 where they go through shared memory, all in one launch.
    spilled: u64,
}

/// Contiguous matrices as the passes see them, with no more rows than columns.
#[derive(Clone, Copy)]
struct Grid {
    start: u64,
    rows: u64,
    cols: u64,
    batches: u64,
    width: u64,
}

impl InPlacePlan {
    /// Plans the transpose of a matrix, or of each of a batch, of elements of `width` bytes.
    ///
    /// A square matrix exchanges its tiles across the diagonal, through shared memory. Any other, contiguous in C order, is
    /// transposed by the decomposition of Catanzaro, Keller and Garland (2014): two or three passes that permute columns or
    /// rows in themselves, for which panels of them go through shared memory, or through scratch memory where they are too
    /// long. A matrix of more rows than columns runs the passes of its transpose backwards, so that columns are the shorter
    /// lines, of which a panel takes several.
    ///
    /// # Errors
    ///
    /// `Layout` where it has not two or three axes, is neither square nor contiguous in C order, may reach an element twice,
    /// or has more elements than a grid covers; `InvalidArgument` for a width that is not 1, 2, 4, 8 or 16.
    pub fn new(layout: &Layout, width: usize) -> Result<Self> {
        check_width(width)?;
        check_bytes("matrix", layout, width)?;
        let (batches, rows, cols) = match *layout.shape() {
            [rows, cols] => (1, rows, cols),
            [batches, rows, cols] => (batches, rows, cols),
            _ => return Err(not_matrices(layout)),
        };
        if layout.overlaps_itself() {
            return Err(Error::new(
                ErrorKind::Layout,
                format!(
                    "shape {:?} with strides {:?} may reach an element twice and cannot be transposed in place; use a layout \
                     that does not overlap itself",
                    layout.shape(),
                    layout.strides()
                ),
            ));
        }
        if rows != cols && !layout.is_standard_layout() {
            return Err(not_in_place(layout));
        }
        let mut plan = Self { square: None, passes: [None; 3], width };
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

    /// Bytes of scratch memory that the transpose needs beside the matrix: none for a square one, nor where panels of it fit in
    /// shared memory. Else at most the greatest of 1/64 of the matrix's bytes, one line of elements along its longer axis, and
    /// 32 bytes for each index of its shorter one.
    pub fn scratch_bytes(&self) -> usize {
        // What is left of the matrix's own bytes, which fit.
        self.passes.iter().flatten().map(|pass| pass.spilled * pass.panel_bytes(self.width)).max().unwrap_or(0) as usize
    }

    /// How often each element is read from the matrix and written back to it.
    pub fn passes(&self) -> usize {
        self.entries().count()
    }

    /// Number of launches.
    pub fn launches(&self) -> u64 {
        let square = if self.square.is_some() { 1 } else { 0 };
        square + self.passes.iter().flatten().map(Pass::launches).sum::<u64>()
    }

    /// The kernel's entry of each pass, in their order.
    pub fn entries(&self) -> impl Iterator<Item = &'static str> {
        let square = self.square.iter().map(|square| square.entry);
        square.chain(self.passes.iter().flatten().map(|pass| pass.entry)).map(EntryId::name)
    }

    /// What can be seen to be wrong with raw addresses.
    pub(super) fn check_addresses(&self, layout: &Layout, matrix: u64, scratch: u64) -> Result<()> {
        let bytes = self.scratch_bytes();
        let scratch = if bytes == 0 { 0 } else { scratch };
        for (which, address) in [("matrix", matrix), ("scratch", scratch)] {
            if self.launches() > 0 && address % self.width as u64 != 0 {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!(
                        "the {which}'s address {address:#x} is not aligned to the matrix's elements of {0} bytes; pass a \
                         multiple of {0}",
                        self.width
                    ),
                ));
            }
        }
        let (of_matrix, from) = (byte_range(matrix, layout, self.width), u128::from(scratch));
        if bytes > 0 && of_matrix.start < from + bytes as u128 && from < of_matrix.end {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "the matrix, bytes {:#x} to {:#x}, and the scratch, {bytes} from {scratch:#x}, overlap; use other \
                     memory for the scratch",
                    of_matrix.start,
                    of_matrix.end,
                    bytes = counted(bytes, "byte")
                ),
            ));
        }
        Ok(())
    }

    /// Launches on a storage and a scratch at these addresses.
    ///
    /// # Safety
    ///
    /// As [`transpose_in_place_raw`](super::transpose_in_place_raw); the addresses are aligned to the width, and the scratch
    /// does not overlap the matrix.
    pub(super) unsafe fn launch(&self, device: &Device, matrix: u64, scratch: u64, stream: StreamHandle) -> Result<()> {
        if let Some(Square { entry, shape, params }) = &self.square {
            let params = SquareParams { matrix: matrix.wrapping_add(params.matrix), ..*params };
            // SAFETY: `swap_tiles` takes these parameters, and reaches exactly the elements of the layout, which reaches none
            // twice; the rest as the caller promises.
            unsafe { device.launch(*entry, shape, &params, stream) }?;
        }
        for pass in self.passes.iter().flatten() {
            // SAFETY: as the caller promises.
            unsafe { pass.launch(device, matrix, scratch, stream) }?;
        }
        Ok(())
    }
}

impl Pass {
    /// The pass with its permutation.
    fn with(mut self, factor: u64, period: Divisor, section: Divisor, scatter: bool) -> Self {
        self.params = LinesParams { factor, period, section, scatter: u64::from(scatter), ..self.params };
        self
    }

    fn panel_bytes(&self, width: usize) -> u64 {
        self.params.height * self.params.width.value * width as u64
    }

    fn launches(&self) -> u64 {
        if self.spilled == 0 { 1 } else { 2 * self.panels.div_ceil(self.spilled) }
    }

    /// # Safety
    ///
    /// As [`InPlacePlan::launch`].
    unsafe fn launch(&self, device: &Device, matrix: u64, scratch: u64, stream: StreamHandle) -> Result<()> {
        let mut params = LinesParams { matrix: matrix.wrapping_add(self.params.matrix), scratch, ..self.params };
        if self.spilled == 0 {
            // SAFETY: `permute_lines` takes these parameters, and reaches exactly the elements of the layout; a panel fits
            // in its shared memory, and the partners are one to one by the paper's lemmas. The rest as the caller promises.
            return unsafe { device.launch(self.entry, &self.shape, &params, stream) };
        }
        while params.first < self.panels {
            params.end = self.panels.min(params.first + self.spilled);
            let mut shape = self.shape;
            // At most `spilled`, which is at most what a grid has in y.
            shape.grid[1] = (params.end - params.first) as u32;
            for back in [0, 1] {
                params.back = back;
                // SAFETY: as above, and the scratch has room for `spilled` panels, the second launch's filled by the first.
                unsafe { device.launch(self.entry, &shape, &params, stream) }?;
            }
            params.first = params.end;
        }
        Ok(())
    }
}

impl Grid {
    /// The passes that turn `rows` x `cols` into `cols` x `rows`, or back: then each inverse, in the opposite order. `None`
    /// where a grid does not cover them.
    ///
    /// In the terms of [`LinesParams`], with `c` the greatest common divisor: first each column is rotated by the multiple of
    /// `cols / c` that it has reached, which spreads the elements of a row over all columns; then each element goes to its
    /// column, and at last to its row. Elements of a row that nothing divides are spread already.
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

    /// The arithmetic that all elements' numbers fit in.
    fn index(&self) -> Index {
        let elements = self.batches * self.rows * self.cols;
        if elements <= i32::MAX as u64 { Index::Narrow } else { Index::Wide }
    }

    /// What the kernels divide by `value` with.
    fn divisor(&self, value: u64) -> Divisor {
        match self.index() {
            Index::Narrow => Divisor::narrow(value),
            Index::Wide => Divisor::wide(value),
        }
    }

    /// Most bytes that the scratch has for panels of which the least has so many.
    fn scratch(&self, least: u64) -> u64 {
        let whole = self.batches * self.rows * self.cols * self.width;
        (whole / SCRATCH_PART).max(least)
    }

    /// Rows as many as fit in shared memory, or one through the scratch.
    fn row_panels(&self) -> Option<Pass> {
        let fit = u64::from(LINES_SHARED) / (self.cols * self.width);
        let height = (self.rows * self.batches).div_ceil(ENOUGH_PANELS).min(fit).clamp(1, self.rows);
        self.pass(0, height, self.cols, self.rows.div_ceil(height), fit == 0)
    }

    /// Columns as many as fit in shared memory, a sector wide at least, or more of them through the scratch.
    fn column_panels(&self) -> Option<Pass> {
        let line = self.rows * self.width;
        let sector = SECTOR / self.width;
        let fit = u64::from(LINES_SHARED) / line;
        // Where a sector is wider than the matrix, its columns are as short, and a panel fits.
        let spilled = fit < sector.min(self.cols);
        let most = if spilled { self.scratch(self.rows * SECTOR) / line } else { fit };
        // Four sectors are a line of the cache.
        let wanted = if spilled { most } else { (self.cols * self.batches).div_ceil(ENOUGH_PANELS).max(4 * sector) };
        let width = (wanted.next_multiple_of(sector).min(most) / sector * sector).max(most.min(sector)).min(self.cols);
        self.pass(1, self.rows, width, self.cols.div_ceil(width), spilled)
    }

    /// A pass over panels of `height` x `width`, that does not say yet how it permutes; `None` where a grid does not cover
    /// them.
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
        Some(Pass {
            entry: entry(&family, self.width as usize, self.index()).ok()?,
            shape: LaunchShape { grid: checked_grid([x, y, 1])?, block: [LINES_BLOCK, 1, 1], dynamic_shared: 0 },
            params,
            panels: all,
            spilled: if spilled { room } else { 0 },
        })
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A grid of these extents, where CUDA allows it.
fn checked_grid([x, y, z]: [u64; 3]) -> Option<[u32; 3]> {
    let most = u64::from(MAX_GRID_YZ);
    (x <= u64::from(MAX_GRID_X) && y <= most && z <= most).then_some([x as u32, y as u32, z as u32])
}

fn square(layout: &Layout, width: usize) -> Result<Square> {
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
    Ok(Square { entry: entry(&SWAP_TILES, width, index_of(layout))?, shape, params })
}

fn not_matrices(layout: &Layout) -> Error {
    Error::new(
        ErrorKind::Layout,
        format!(
            "shape {:?}, of {}, cannot be transposed in place; it must have two, or three of which the first is the batch \
             (index_axis and merge_axes make fewer, insert_axis more)",
            layout.shape(),
            counted(layout.rank(), "axis")
        ),
    )
}

fn too_large(layout: &Layout) -> Error {
    Error::new(
        ErrorKind::Layout,
        format!("a matrix of shape {:?} has more parts than a grid covers; transpose it in parts", layout.shape()),
    )
}

impl fmt::Display for InPlacePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Square { entry, shape, params }) = &self.square {
            let SquareParams { n, batches, .. } = params;
            return write!(f, "{entry}: {batches} x {n} x {n} elements in place, {}", shape);
        }
        if self.launches() == 0 {
            return f.write_str("nothing to transpose");
        }
        for pass in self.passes.iter().flatten() {
            let LinesParams { columns, height, width, .. } = pass.params;
            let (lines, together) = if columns != 0 { ("columns", width.value) } else { ("rows", height) };
            write!(f, "{} on {lines}, {together} a panel; ", pass.entry)?;
        }
        write!(f, "{}, {} of scratch", counted(self.launches(), "launch"), counted(self.scratch_bytes(), "byte"))
    }
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use super::*;
    use crate::device::Backend;

    /// The plan with 64-bit arithmetic, as if the storage were larger.
    fn wide(mut plan: InPlacePlan) -> InPlacePlan {
        let width = plan.width;
        let other = |narrow: EntryId| {
            let families = [SWAP_TILES, PERMUTE_LINES, SPILL_LINES];
            let of = |index| families.map(|family| family.entry(width, index).unwrap());
            let at = of(Index::Narrow).iter().position(|&known| known == narrow).unwrap();
            of(Index::Wide)[at]
        };
        plan.square.iter_mut().for_each(|square| square.entry = other(square.entry));
        for pass in plan.passes.iter_mut().flatten() {
            pass.entry = other(pass.entry);
            let LinesParams { rows, cols, width, panels, period, section, .. } = &mut pass.params;
            for divisor in [rows, cols, width, panels, period, section] {
                *divisor = Divisor::wide(divisor.value);
            }
        }
        plan
    }

    /// Every entry, narrow and wide, on elements of `WIDTH` bytes.
    fn check<const WIDTH: usize>(device: &Device) {
        let long = LINES_SHARED as usize / WIDTH + 5;
        for [rows, cols] in [[70, 70], [12, 18], [18, 12], [100, 7], [3, long], [long, 2]] {
            let layout = Layout::row_major(&[2, rows, cols]).unwrap();
            let narrow = InPlacePlan::new(&layout, WIDTH).unwrap();
            let spills = narrow.entries().any(|entry| entry.starts_with("spill_lines"));
            assert_eq!(spills, rows.max(cols) == long, "{narrow}");
            for plan in [wide(narrow.clone()), narrow] {
                let bytes: Vec<u8> = (0..2 * rows * cols * WIDTH).map(|at| (at * 167 + at / 251) as u8).collect();
                let (matrix, scratch) =
                    (device.upload(&bytes).unwrap(), device.alloc::<u8>(plan.scratch_bytes()).unwrap());
                let stream = device.default_stream();
                // SAFETY: both buffers are live until the stream is synchronised, and as long as the plan asks for.
                unsafe { plan.launch(device, matrix.address(), scratch.address(), stream.handle()) }.unwrap();
                stream.synchronize().unwrap();
                let result = matrix.download().unwrap();
                for (at, element) in bytes.chunks(WIDTH).enumerate() {
                    let (batch, row, col) = (at / cols / rows, at / cols % rows, at % cols);
                    let to = batch * rows * cols + col * rows + row;
                    assert_eq!(result[to * WIDTH..][..WIDTH], *element, "{plan}");
                }
            }
        }
    }

    /// No test has memory for 2^31 elements; the wide kernels are right of fewer as well.
    #[test]
    fn narrow_and_wide_kernels_of_every_width_are_right() {
        let device = Device::open(Backend::Soft).unwrap();
        check::<1>(&device);
        check::<2>(&device);
        check::<4>(&device);
        check::<8>(&device);
        check::<16>(&device);
    }
}
