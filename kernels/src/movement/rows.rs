//! Moves runs of bytes that are contiguous on both sides, whatever their starts.

use crate::abi::{ROWS_BLOCK, ROWS_PER_THREAD, RowsParams};
use crate::block;
use crate::index::Index;
use crate::index::axes;
use crate::thread::quad;
use crate::thread::{self, B8, Global, Quad};
use crate::unrolled;

const STEPS: usize = ROWS_PER_THREAD as usize;

/// Numbers the aligned vectors of the destination that hold runs, run by run. Each is joined from
/// the two vectors of the source that hold its bytes. Only at the ends of runs, which may share
/// their vectors with others, fewer bytes are loaded and stored.
///
/// # Safety
///
/// See [`RowsParams`]: both layouts are allocated, and no other work writes them.
#[inline(always)]
pub unsafe fn rows<I: Index>(params: RowsParams) {
    let first = block::linear::<I>() * I::new(ROWS_BLOCK * ROWS_PER_THREAD) + I::new(thread::thread_x());
    let len = I::truncate(params.len);
    let (src, dst) = (Global::new(params.src), Global::new(params.dst));
    let (mut numbers, mut runs) = ([first; STEPS], [first; STEPS]);
    unrolled!(step < STEPS => {
        numbers[step] = first + I::new(step as u32 * ROWS_BLOCK);
        runs[step] = numbers[step].divide(&params.quads);
    });
    let starts = axes::offsets(runs, &params.axes, params.rank);

    let mut pieces = [Piece::NONE; STEPS];
    let mut held = [[[0; 4]; 2]; STEPS];
    unrolled!(step < STEPS => {
        if numbers[step] < len {
            let quad = axes::remainder(numbers[step], runs[step], &params.quads);
            let src = src.offset(starts[step].src.sign_extend());
            let dst = dst.offset(starts[step].dst.sign_extend());
            pieces[step] = Piece::new::<I>(src, dst, quad, &params);
        }
    });
    unrolled!(step < STEPS => {
        // SAFETY: a piece of a run of the source, as the caller promises, or no piece.
        held[step] = unsafe { pieces[step].load() };
    });
    unrolled!(step < STEPS => {
        // SAFETY: as above; no two threads have one number, so no two have the same vector of the
        // same run.
        unsafe { pieces[step].finish(held[step]) };
    });
}

/// The part of a run in one aligned vector of the destination.
#[derive(Clone, Copy)]
struct Piece {
    /// The last multiple of 16 before the byte that goes to the vector's first byte.
    src: Global,
    /// Bytes from there to that byte.
    off: u32,
    /// The vector.
    dst: Global,
    /// Bytes of the run before the vector, or a smaller number if there are many; negative before
    /// the run.
    before: i32,
    /// Bytes of the run from the vector's first byte on, or a smaller number if there are many.
    left: i32,
}

impl Piece {
    const NONE: Self = Piece { src: Global::NONE, off: 0, dst: Global::NONE, before: 0, left: 0 };

    /// Returns vector `number` of those that may hold the run from `src` to `dst`.
    #[inline(always)]
    fn new<I: Index>(src: Global, dst: Global, number: I, params: &RowsParams) -> Self {
        let lead = dst.low() & (params.grain as u32 - 1);
        let at = number * I::new(16);
        let bytes = at.sign_extend().wrapping_sub(u64::from(lead));
        let (src, end) = (src.offset(bytes), I::truncate(params.run) + I::new(lead));
        // The limit exceeds the offset of any vector of either side.
        let near = |distance: I| if distance < I::new(1024) { distance.low() as i32 } else { 1024 };
        Piece {
            src: src.offset(u64::from(src.misalignment()).wrapping_neg()),
            off: src.misalignment(),
            dst: dst.offset(bytes),
            before: near(at) - lead as i32,
            left: if at < end { near(end - at) } else { 0 },
        }
    }

    /// Returns whether the vector, and those of the source that hold its bytes, lie within the run.
    #[inline(always)]
    fn is_whole(&self) -> bool {
        let off = self.off as i32;
        self.before >= off && self.left >= if off == 0 { 16 } else { 32 - off }
    }

    /// Loads the vectors of the source if all are whole: the common case, in which no load waits
    /// for another.
    ///
    /// # Safety
    ///
    /// The run is allocated and nothing writes it.
    #[inline(always)]
    unsafe fn load(&self) -> [Quad; 2] {
        let mut held = [[0; 4]; 2];
        if self.is_whole() {
            // SAFETY: aligned, and no byte before the run's first or after its last.
            held[0] = unsafe { thread::load_quad(self.src) };
        }
        if self.is_whole() && self.off != 0 {
            // SAFETY: as above: the next 16 bytes hold some of the vector's.
            held[1] = unsafe { thread::load_quad(self.src.offset(16)) };
        }
        held
    }

    /// Stores the bytes of the vector; if all are whole, [`load`](Self::load) has loaded them.
    ///
    /// # Safety
    ///
    /// As [`load`](Self::load), and no other thread has the vector's part of the run.
    #[inline(always)]
    unsafe fn finish(&self, [low, high]: [Quad; 2]) {
        if self.is_whole() {
            // SAFETY: a whole aligned vector of the run in the destination, which no other thread
            // has.
            unsafe { thread::store_quad(self.dst, quad::shift::<B8>(low, high, self.off)) };
        } else if self.left > 0 && self.before > -16 {
            let off = self.off as i32;
            // SAFETY: aligned, and only bytes of the run are loaded.
            let low = unsafe { quad::load_part(self.src, off - self.before, self.left + off) };
            // SAFETY: as above.
            let high = unsafe { quad::load_part(self.src.offset(16), off - self.before - 16, self.left + off - 16) };
            let shifted = quad::shift::<B8>(low, high, self.off);
            // SAFETY: aligned, and only bytes of the run in the destination are stored: others may
            // be another thread's.
            unsafe { quad::store_part(self.dst, -self.before, self.left, shifted) };
        }
    }
}
