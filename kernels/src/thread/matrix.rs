//! A matrix in global memory, and the elements that one thread moves.

use core::marker::PhantomData;

use crate::abi::{TILE, TILE_ROWS, TransposeParams};
use crate::index::Index;
use crate::thread::{self, Global, Word};

/// Elements that one thread moves.
pub const STEPS: u32 = TILE / TILE_ROWS;

/// A strided matrix; extents and strides in elements.
#[derive(Clone, Copy)]
pub struct Matrix<I> {
    start: Global,
    rows: I,
    cols: I,
    row_stride: I,
    col_stride: I,
}

impl<I: Index> Matrix<I> {
    /// Returns the matrix to read.
    #[inline(always)]
    pub fn src(params: &TransposeParams) -> Self {
        Matrix {
            start: Global::new(params.src),
            rows: I::truncate(params.rows),
            cols: I::truncate(params.cols),
            row_stride: I::truncate(params.src_row_stride as u64),
            col_stride: I::truncate(params.src_col_stride as u64),
        }
    }

    /// Returns the matrix to write, which has a row for each column of the source.
    #[inline(always)]
    pub fn dst(params: &TransposeParams) -> Self {
        Matrix {
            start: Global::new(params.dst),
            rows: I::truncate(params.cols),
            cols: I::truncate(params.rows),
            row_stride: I::truncate(params.dst_row_stride as u64),
            col_stride: I::truncate(params.dst_col_stride as u64),
        }
    }

    /// Returns the same memory with rows and columns exchanged.
    #[inline(always)]
    pub fn t(self) -> Self {
        Matrix { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }
}

/// The elements that one thread moves of the tile at `(row, column)`, both in tiles: those at its
/// own column and at the rows `thread_y`, `thread_y + TILE_ROWS`, ... of the tile, inside the
/// matrix.
pub struct Strip<W, I> {
    start: Global,
    offset: I,
    step: I,
    /// Rows of the matrix from the first element on; none if the column is outside.
    rows_left: I,
    of: PhantomData<W>,
}

impl<W: Word, I: Index> Strip<W, I> {
    /// Returns this thread's strip of a tile.
    #[inline(always)]
    pub fn new(matrix: Matrix<I>, (row, col): (I, I)) -> Self {
        let row = row * I::new(TILE) + I::new(thread::thread_y());
        let col = col * I::new(TILE) + I::new(thread::thread_x());
        let inside = row < matrix.rows && col < matrix.cols;
        Strip {
            start: matrix.start,
            offset: row * matrix.row_stride + col * matrix.col_stride,
            step: I::new(TILE_ROWS) * matrix.row_stride,
            rows_left: if inside { matrix.rows - row } else { I::new(0) },
            of: PhantomData,
        }
    }

    /// Returns the address of element `step`, if it is inside the matrix.
    #[inline(always)]
    fn at(&self, step: u32) -> Option<Global> {
        let offset = self.offset + I::new(step) * self.step;
        (I::new(step * TILE_ROWS) < self.rows_left).then(|| self.start.offset(offset.bytes::<W>()))
    }

    /// Loads the strip, zero outside the matrix: all loads are in flight before the first value is
    /// used.
    ///
    /// # Safety
    ///
    /// The matrix lies in allocated memory, aligned to the width, and is not written meanwhile.
    #[inline(always)]
    pub unsafe fn load(&self) -> [W; STEPS as usize] {
        let mut held = [W::ZERO; STEPS as usize];
        for (step, value) in (0..).zip(&mut held) {
            if let Some(address) = self.at(step) {
                // SAFETY: an element of the matrix; the rest as the caller promises.
                *value = unsafe { W::load_global(address) };
            }
        }
        held
    }

    /// Stores `value(step)` to each element of the strip inside the matrix.
    ///
    /// # Safety
    ///
    /// The matrix lies in allocated memory, aligned to the width, and no other thread accesses the
    /// strip meanwhile.
    #[inline(always)]
    pub unsafe fn store(&self, value: impl Fn(u32) -> W) {
        for step in 0..STEPS {
            if let Some(address) = self.at(step) {
                // SAFETY: an element of the matrix; the rest as the caller promises.
                unsafe { value(step).store_global(address) };
            }
        }
    }
}
