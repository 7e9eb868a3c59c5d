//! Writes the tables of a block: rows, places, lines and slices.

use core::num::NonZero;

use super::{SECTOR, Tile};
use crate::abi::{
    BOX_AXES, BOX_DIGITS, BOXES_STATE, BoxAxis, BoxDigit, Divisor, NUMBERS_LINES, NUMBERS_ROWS, ON_VECTORS,
    ROWS_DIFFER, WITHIN_BOTH,
};
use crate::index::quotient;
use crate::thread::{self, B32, B32x2, B64, Word};
use crate::unrolled;

/// The starts of the parts of a block's state: two places of boxes, the classes' next lines, and
/// the first line and the first slice of each class.
const NEXT: u32 = 96;
const LINES: u32 = NEXT + 4 * SECTOR;
const SLICES: u32 = LINES + 4 * (SECTOR + 1);
/// The places of the parameters' axes and digits in the state.
const AXES: u32 = SLICES + 4 * (SECTOR + 1);
pub(super) const DIGITS: u32 = AXES + 24 * BOX_AXES as u32;
const _: () = assert!(DIGITS + 32 * BOX_DIGITS as u32 == BOXES_STATE, "the host makes room for the state");

/// The offsets of a number along some axes of a box.
struct Offsets {
    /// In the source.
    src: u32,
    /// In the destination.
    dst: u32,
    /// The number of the row.
    row: u32,
    /// The index along the axis that ends rows.
    index: u32,
}

/// Divides a number by a divisor in three parts.
#[inline(always)]
pub(super) fn divided(number: u32, multiplier: u32, shift: u32) -> u32 {
    quotient(number, &Divisor { value: 0, multiplier: u64::from(multiplier), shift: u64::from(shift) })
}

/// Divides by a number that is not 0. Rust checks other divisors.
#[inline(always)]
fn over(number: u32, by: u32) -> u32 {
    NonZero::new(by).map_or(0, |by| number / by)
}

impl Tile<'_> {
    /// Returns the offsets of a number along the axes of a kind; along those that number rows too,
    /// where the kind is [`WITHIN_BOTH`].
    #[inline(always)]
    fn walk<const KIND: u32>(&self, number: u32) -> Offsets {
        let (mut rest, mut weight) = (number, 1);
        let mut offsets = Offsets { src: 0, dst: 0, row: 0, index: 0 };
        let mut axis = 0;
        while axis < self.params.rank {
            // SAFETY: within the state, where the axes have been written.
            let pair = |part: u32| unsafe { B32x2::load_shared(self.state(AXES + 24 * axis, 2 * part)) };
            let (first, second) = (pair(0), pair(1));
            let (taken, multiplier, shift, kind) = (first.low(), first.high(), second.low(), second.high());
            let numbers_rows = KIND == WITHIN_BOTH && kind == NUMBERS_ROWS;
            if kind == KIND || numbers_rows {
                let strides = pair(2);
                // The multiplier of a last axis is 0, so that its digit is the whole rest.
                let above = divided(rest, multiplier, shift);
                let digit = rest - above * taken;
                if numbers_rows {
                    offsets.row += digit * weight;
                    weight *= taken;
                } else {
                    offsets.src = offsets.src.wrapping_add(digit.wrapping_mul(strides.low()));
                }
                offsets.dst = offsets.dst.wrapping_add(digit.wrapping_mul(strides.high()));
                if KIND == NUMBERS_LINES && self.params.ended == axis {
                    offsets.index = digit * self.params.step;
                }
                rest = above;
            }
            axis += 1;
        }
        offsets
    }

    /// Copies the axes from the parameters, which have no index at run time, to the state.
    ///
    /// # Safety
    ///
    /// No other thread accesses them before the next barrier.
    #[inline(always)]
    pub(super) unsafe fn write_axes(&self) {
        let thread = thread::thread_x();
        unrolled!(number < 8 => {
            let first = number as u32 / 4 * 32;
            if thread == first && (number as u32) < self.params.rank {
                let BoxAxis { taken, multiplier, shift, kind, src, dst } = self.params.axes[number];
                for (part, pair) in [(taken, multiplier), (shift, kind), (src, dst)].into_iter().enumerate() {
                    let to = self.state(AXES + 24 * number as u32, 2 * part as u32);
                    // SAFETY: within the state; the rest as the caller promises.
                    unsafe { B32x2::new(pair.0, pair.1).store_shared(to) };
                }
            }
            if thread == first + 64 && (number as u32) < self.params.digit_rank {
                let BoxDigit { count, multiplier, shift, roles, src, dst } = self.params.digits[number];
                let to = self.state(DIGITS + 32 * number as u32, 0);
                // SAFETY: as above.
                unsafe { B32x2::new(count, multiplier).store_shared(to) };
                // SAFETY: as above.
                unsafe { B32x2::new(shift, roles).store_shared(to.offset(8)) };
                // SAFETY: as above.
                unsafe { B64::new(src as u64).store_shared(to.offset(16)) };
                // SAFETY: as above.
                unsafe { B64::new(dst as u64).store_shared(to.offset(24)) };
            }
        });
    }

    /// Writes the table of rows.
    ///
    /// # Safety
    ///
    /// No thread accesses the table before the next barrier.
    #[inline(always)]
    pub(super) unsafe fn write_rows<const N: usize>(&self) {
        let params = self.params;
        let (thread, threads) = (thread::thread_x(), thread::block_width());
        let mut row = thread;
        while row < params.rows {
            let src = self.walk::<NUMBERS_ROWS>(row).src.wrapping_add(params.rows_low);
            let to = row * params.pitch + row / N as u32 * params.gap;
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { B32x2::new(src, to).store_shared(self.tables.offset(8 * row)) };
            row += threads;
        }
        if thread < SECTOR {
            // SAFETY: within the state.
            unsafe { B32::new(0).store_shared(self.state(NEXT, thread)) };
        }
    }

    /// Writes the other tables.
    ///
    /// # Safety
    ///
    /// Every thread of the block calls it together, and no thread accesses the tables meanwhile;
    /// the table of rows has been written.
    #[inline(always)]
    pub(super) unsafe fn write_tables<const N: usize>(&self) {
        let params = self.params;
        let (thread, threads) = (thread::thread_x(), thread::block_width());
        let mut element = thread;
        while element < params.len + params.heads {
            let found = self.walk::<WITHIN_BOTH>(element);
            // SAFETY: the table of rows has been written.
            let row = unsafe { B32x2::load_shared(self.tables.offset(8 * found.row)) };
            let place = found.src.wrapping_add(params.places_low) + row.high();
            // SAFETY: within the table, and each thread has its own entries.
            unsafe {
                if self.has(ROWS_DIFFER) {
                    let to = self.tables.offset(params.raw_places + 4 * element);
                    B32::new(place << 4 | row.low() & 15).store_shared(to);
                } else {
                    B32::new(place).store_shared(self.place_entry::<N>(element));
                }
            }
            element += threads;
        }
        if self.has(ON_VECTORS) {
            let mut line = thread;
            while line < params.lines {
                // SAFETY: as the caller promises; each line has a place of its own.
                unsafe { self.write_line(line, &self.walk::<NUMBERS_LINES>(line)) };
                line += threads;
            }
            return;
        }
        let mut line = thread;
        while line < params.lines {
            let class = self.walk::<NUMBERS_LINES>(line).dst.wrapping_add(params.lines_low) & (self.aligned() - 1);
            // SAFETY: within the state; only atomic additions access it before the barrier.
            unsafe { thread::add_shared(self.state(NEXT, class), 1) };
            line += threads;
        }
        // SAFETY: every thread comes here.
        unsafe { thread::barrier() };
        // SAFETY: as the caller promises; the lines of each class have been counted.
        unsafe { self.write_slices() };
        let mut line = thread;
        while line < params.lines {
            let found = self.walk::<NUMBERS_LINES>(line);
            let dst = found.dst.wrapping_add(params.lines_low);
            // SAFETY: within the state; only atomic additions access it before the next barrier.
            let at = unsafe { thread::add_shared(self.state(NEXT, dst & (self.aligned() - 1)), 1) };
            // SAFETY: each line has a place of its own.
            unsafe { self.write_line(at, &found) };
            line += threads;
        }
    }

    /// Writes the entries of a line.
    ///
    /// # Safety
    ///
    /// No other thread accesses them before the next barrier.
    #[inline(always)]
    unsafe fn write_line(&self, at: u32, found: &Offsets) {
        let params = self.params;
        let entry = B32x2::new(found.src.wrapping_add(params.starts_low), found.dst.wrapping_add(params.lines_low));
        // SAFETY: within the table; the rest as the caller promises.
        unsafe { entry.store_shared(self.tables.offset(params.line_table + 8 * at)) };
        // SAFETY: as above.
        unsafe { B32::new(found.index).store_shared(self.tables.offset(params.indices + 4 * at)) };
    }

    /// Writes the places of a box whose rows keep different distances from granules.
    ///
    /// # Safety
    ///
    /// This thread has written its entries, and no other thread accesses the table of places before
    /// the next barrier.
    #[inline(always)]
    pub(super) unsafe fn move_places<const N: usize, const G: u32>(&self, lead: u32) {
        let mut element = thread::thread_x();
        while element < self.params.len + self.params.heads {
            // SAFETY: an entry that this thread wrote.
            let raw = unsafe { B32::load_shared(self.tables.offset(self.params.raw_places + 4 * element)) }.low();
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { B32::new((raw >> 4) + (raw + lead & (G - 1))).store_shared(self.place_entry::<N>(element)) };
            element += thread::block_width();
        }
    }

    /// Cuts the lines of each class into slices. The counts become the first lines of the classes.
    ///
    /// # Safety
    ///
    /// As [`write_tables`](Self::write_tables); the lines have been counted.
    #[inline(always)]
    unsafe fn write_slices(&self) {
        let (params, thread) = (self.params, thread::thread_x());
        if thread < SECTOR {
            // SAFETY: within the state.
            let count = unsafe { B32::load_shared(self.state(NEXT, thread)) }.low();
            let parts = over(count + params.slice - 1, params.slice);
            let each = over(count + parts - 1, parts);
            // The sums over the classes before this one, and over all: of lines in the lower half,
            // of slices in the upper one.
            let (mut before, mut all) = (0, count | parts << 16);
            let mut across = 1;
            while across < SECTOR {
                // SAFETY: the whole warp comes here.
                let other = unsafe { thread::from_across(all, across) };
                if thread & across != 0 {
                    before += other;
                }
                all += other;
                across *= 2;
            }
            let first = before & 0xffff;
            // SAFETY: within the state; each thread has its own words.
            unsafe { B32::new(first).store_shared(self.state(NEXT, thread)) };
            // SAFETY: as above.
            unsafe { B32::new(first | each << 16).store_shared(self.state(LINES, thread)) };
            // SAFETY: as above.
            unsafe { B32::new(before >> 16).store_shared(self.state(SLICES, thread)) };
            if thread == SECTOR - 1 {
                // SAFETY: as above.
                unsafe { B32::new(all & 0xffff).store_shared(self.state(LINES, SECTOR)) };
            }
        }
        // SAFETY: every thread comes here.
        unsafe { thread::barrier() };
        let mut slice = thread;
        while slice < params.slices {
            let (mut class, mut half) = (0, SECTOR / 2);
            while half > 0 {
                // SAFETY: within the state, which has been written.
                let first = unsafe { B32::load_shared(self.state(SLICES, class + half)) }.low();
                if first <= slice {
                    class += half;
                }
                half /= 2;
            }
            // SAFETY: as above.
            let at = |word, class| unsafe { B32::load_shared(self.state(word, class)) }.low();
            let lines = at(LINES, class);
            let (first, each, end) = (lines & 0xffff, lines >> 16, at(LINES, class + 1) & 0xffff);
            let from = first + (slice - at(SLICES, class)) * each;
            let count = if end < from + each { end.saturating_sub(from) } else { each };
            let entry = B32x2::new(from | count << 16, class);
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { entry.store_shared(self.tables.offset(params.slice_table + 8 * slice)) };
            slice += thread::block_width();
        }
    }
}
