//! Boxes of bytes that copies and fills use.

#![forbid(unsafe_code)]

/// The most rows of a box that are looked at, one by one.
const MOST_ROWS: u64 = 1 << 16;

/// A box of bytes that work reads or writes: rows of a slice, and slices.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The address of its first byte.
    pub address: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Bytes from a row to the next, and the number of rows of a slice.
    pub row_pitch: u64,
    /// See [`Region::row_pitch`].
    pub row_count: u64,
    /// Bytes from a slice to the next, and the number of slices.
    pub slice_pitch: u64,
    /// See [`Region::slice_pitch`].
    pub slice_count: u64,
    /// True if the work writes it.
    pub is_written: bool,
}

impl Region {
    /// Makes a region of one row.
    pub fn row(address: u64, bytes: u64, is_written: bool) -> Self {
        Self { address, row_bytes: bytes, row_pitch: 0, row_count: 1, slice_pitch: 0, slice_count: 1, is_written }
    }

    /// Makes a region whose rows follow each other without a gap one of fewer rows.
    fn packed(self) -> Self {
        let is_flat = self.row_count == 1 || self.row_pitch == self.row_bytes;
        let flat = self.row_bytes.saturating_mul(self.row_count);
        let is_whole = is_flat && (self.slice_count == 1 || self.slice_pitch == flat);
        match (is_whole, is_flat) {
            (true, _) => Self::row(self.address, flat.saturating_mul(self.slice_count), self.is_written),
            (false, true) => Self { row_bytes: flat, row_count: 1, ..self },
            (false, false) => self,
        }
    }

    /// The first addresses of its rows, at most [`MOST_ROWS`] of them.
    pub(super) fn rows(&self) -> impl Iterator<Item = u64> {
        let of = *self;
        let count = of.row_count.saturating_mul(of.slice_count).min(MOST_ROWS);
        (0..count).map(move |number| {
            let (slice, row) = (number / of.row_count.max(1), number % of.row_count.max(1));
            of.address
                .saturating_add(slice.saturating_mul(of.slice_pitch))
                .saturating_add(row.saturating_mul(of.row_pitch))
        })
    }

    /// The end of its last row.
    fn end(&self) -> u64 {
        let last = |count: u64, pitch: u64| count.saturating_sub(1).saturating_mul(pitch);
        self.address
            .saturating_add(last(self.slice_count, self.slice_pitch))
            .saturating_add(last(self.row_count, self.row_pitch))
            .saturating_add(self.row_bytes)
    }

    /// Returns the first byte of one region in another, as far as the rows of one are looked at.
    pub(super) fn meets(&self, other: &Self) -> Option<u64> {
        let (own, its) = (self.packed(), other.packed());
        if own.address >= its.end() || its.address >= own.end() {
            return None;
        }
        let rows = |region: &Self| region.row_count.saturating_mul(region.slice_count);
        let (few, many) = if rows(&own) <= rows(&its) { (own, its) } else { (its, own) };
        few.rows().find_map(|row| many.first_in(row, row.saturating_add(few.row_bytes)))
    }

    /// Returns the first byte of the region in a range.
    fn first_in(&self, from: u64, to: u64) -> Option<u64> {
        let extent = self.row_count.saturating_sub(1).saturating_mul(self.row_pitch).saturating_add(self.row_bytes);
        let start = |slice: u64| self.address.saturating_add(slice.saturating_mul(self.slice_pitch));
        // The first slice that ends beyond the beginning of the range.
        let skipped = from.saturating_sub(self.address.saturating_add(extent.saturating_sub(1)));
        let slices = if self.slice_pitch == 0 { 0..1 } else { skipped.div_ceil(self.slice_pitch)..self.slice_count };
        slices.take(MOST_ROWS as usize).map(start).take_while(|&start| start < to).find_map(|start| {
            // The first row that ends beyond the beginning of the range.
            let skipped = from.saturating_sub(start.saturating_add(self.row_bytes.saturating_sub(1)));
            let number = if self.row_count == 1 { 0 } else { skipped.div_ceil(self.row_pitch.max(1)) };
            let first = start.saturating_add(number.saturating_mul(self.row_pitch));
            let byte = first.max(from);
            let is_met = number < self.row_count && byte < to && byte < first.saturating_add(self.row_bytes);
            is_met.then_some(byte)
        })
    }
}
