//! Finds the place of a box from its number.

use super::Tile;
use super::tables::{DIGITS, divided};
use crate::abi::{BACKWARDS, ENDS_LINES, ENDS_ROWS, GOES_ON};
use crate::thread::{B32, B32x2, B64, Global, Word};

/// The box that a block moves.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) src: Global,
    pub(super) dst: Global,
    pub(super) rows: u32,
    /// Elements of a line.
    pub(super) len: u32,
    /// Bytes of a row.
    pub(super) row: u32,
    /// Indices of the axis that ends rows.
    pub(super) limit: u32,
    /// Bytes that rows lack at their start.
    pub(super) lacking: u32,
    /// Its lines are the first of their axis (bit 0), the last (bit 1), and the place it is kept in
    /// (bit 2): one register for all, because threads have few.
    ends: u32,
}

impl Place {
    /// Returns whether its lines are the first of their axis.
    #[inline(always)]
    pub(super) fn is_first(&self) -> bool {
        self.ends & 1 != 0
    }

    /// Returns whether its lines are the last of their axis.
    #[inline(always)]
    pub(super) fn is_last(&self) -> bool {
        self.ends & 2 != 0
    }

    /// Returns the place that it is kept in.
    #[inline(always)]
    pub(super) fn which(&self) -> u32 {
        self.ends >> 2
    }
}

impl Tile<'_> {
    /// Returns the place of a box.
    #[inline(always)]
    fn locate(&self, which: u32, number: u32) -> Place {
        let params = self.params;
        let (mut src, mut dst, mut rest) = (Global::new(params.src), Global::new(params.dst), number);
        let (mut ends_lines, mut ends_rows, mut is_first, mut is_last) = (false, false, true, true);
        let mut digit = 0;
        while digit < params.digit_rank {
            let at = self.state(DIGITS + 32 * digit, 0);
            // SAFETY: within the state, where the digits have been written.
            let (by, with) = unsafe { (B32x2::load_shared(at), B32x2::load_shared(at.offset(8))) };
            // SAFETY: as above.
            let [from, to] = [16_u32, 24].map(|bytes| unsafe { B64::load_shared(at.offset(bytes)) }.low());
            let above = divided(rest, by.high(), with.low());
            let index = rest - above * by.low();
            src = src.offset(u64::from(index).wrapping_mul(from));
            dst = dst.offset(u64::from(index).wrapping_mul(to));
            let ends = index + 1 == by.low();
            ends_lines |= ends && with.high() & ENDS_LINES != 0;
            ends_rows |= ends && with.high() & ENDS_ROWS != 0;
            if with.high() & GOES_ON != 0 {
                (is_first, is_last) = (index == 0, ends);
            }
            rest = above;
            digit += 1;
        }
        let lacking = if ends_rows && self.has(BACKWARDS) { params.shorter } else { 0 };
        Place {
            src: src.offset(u64::from(lacking)),
            dst,
            rows: if ends_lines { params.last_rows } else { params.rows },
            len: if ends_lines { params.last_len } else { params.len },
            row: if ends_rows { params.row - params.shorter } else { params.row },
            limit: if ends_rows { params.last_limit } else { params.limit },
            lacking,
            ends: u32::from(is_first) | u32::from(is_last) << 1 | which << 2,
        }
    }

    /// Writes the place of a box for the other threads.
    ///
    /// # Safety
    ///
    /// No other thread accesses this place before the next barrier.
    #[inline(always)]
    pub(super) unsafe fn write_place(&self, which: u32, number: u32) {
        let place = self.locate(which, number);
        let at = |word: u32| self.state(48 * which, 2 * word);
        // SAFETY: within the state; the rest as the caller promises.
        unsafe { B64::new(place.src.bits()).store_shared(at(0)) };
        // SAFETY: as above.
        unsafe { B64::new(place.dst.bits()).store_shared(at(1)) };
        // SAFETY: as above.
        unsafe { B32x2::new(place.rows, place.len).store_shared(at(2)) };
        // SAFETY: as above.
        unsafe { B32x2::new(place.row, place.limit).store_shared(at(3)) };
        // SAFETY: as above.
        unsafe { B32x2::new(place.lacking, place.ends).store_shared(at(4)) };
        // SAFETY: as above.
        unsafe { B32::new(number).store_shared(at(5)) };
    }

    /// Reads the place of a box.
    ///
    /// # Safety
    ///
    /// It has been written.
    #[inline(always)]
    pub(super) unsafe fn read_place(&self, which: u32) -> Place {
        let at = |word: u32| self.state(48 * which, 2 * word);
        // SAFETY: as the caller promises.
        let pair = |word| unsafe { B32x2::load_shared(at(word)) };
        // SAFETY: as the caller promises.
        let address = |word| Global::of_bits(unsafe { B64::load_shared(at(word)) }.low());
        Place {
            src: address(0),
            dst: address(1),
            rows: pair(2).low(),
            len: pair(2).high(),
            row: pair(3).low(),
            limit: pair(3).high(),
            lacking: pair(4).low(),
            ends: pair(4).high(),
        }
    }

    /// Reads the number of a box.
    ///
    /// # Safety
    ///
    /// Its place has been written.
    #[inline(always)]
    pub(super) unsafe fn number_of(&self, which: u32) -> u32 {
        // SAFETY: as the caller promises.
        unsafe { B32::load_shared(self.state(48 * which, 10)) }.low()
    }
}
