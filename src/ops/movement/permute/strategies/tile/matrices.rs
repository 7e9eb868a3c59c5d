//! The matrices that tiles are cut from, and their batch.

use crate::abi::{TILE_AXES, ragged_tile_folds};
use crate::layout::MAX_RANK;
use crate::layout::walk::{Axis, Canonical};
use crate::ops::Align;
use crate::ops::tuning::Tiles;
use crate::ops::units::{SECTOR, VECTOR};

/// The axes of a transpose by their role.
#[derive(Debug, Clone)]
pub(super) struct Matrices {
    /// Along the source's run: the first axis has stride 1, and each next continues it.
    pub(super) cols: [Axis; TILE_AXES],
    /// Along the destination's run.
    pub(super) rows: [Axis; TILE_AXES],
    batch: [Axis; MAX_RANK],
    rank: usize,
    pub(super) src_start: usize,
    pub(super) dst_start: usize,
}

/// Returns the axes of a run.
pub(super) fn rank(run: &[Axis; TILE_AXES]) -> usize {
    run.iter().take_while(|axis| axis.extent > 1).count()
}

/// Returns the numbers of the rows at the lowest and at the highest address of the source.
pub(super) fn end_rows(rows: &[Axis; TILE_AXES]) -> [usize; 2] {
    let (mut ends, mut above) = ([0; 2], 1);
    for axis in rows {
        ends[usize::from(axis.src >= 0)] += (axis.extent - 1) * above;
        above *= axis.extent;
    }
    ends
}

/// The sides of a tile that continue into the next axis, whatever the length of the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Long {
    pub(super) rows: bool,
    pub(super) cols: bool,
}

impl Matrices {
    /// Returns the matrices whose rows lie along the axis `row` and whose columns lie along `col`.
    /// A `long` side takes two axes where possible; other sides do if one axis is too short.
    #[inline]
    pub(super) fn new(canonical: &Canonical, [row, col]: [usize; 2], long: Long, tiles: &Tiles) -> Self {
        let axes = canonical.axes();
        let lanes = VECTOR / canonical.width;
        let (mut cols, mut rows) = ([Axis::ONE; TILE_AXES], [Axis::ONE; TILE_AXES]);
        (cols[0], rows[0]) = (axes[col], axes[row]);
        let (mut src_start, mut dst_start) = (canonical.src_start, canonical.dst_start);
        if cols[0].src < 0 {
            // The source runs forwards, so the destination may run backwards.
            cols[0] = cols[0].turned(&mut src_start, &mut dst_start);
        }
        let (mut batch, mut rank) = ([Axis::ONE; MAX_RANK], 0);
        for (position, &axis) in axes.iter().enumerate() {
            let bytes = |run: &[Axis; TILE_AXES]| run[0].extent * canonical.width;
            let short = |run: &[Axis; TILE_AXES]| run[1] == Axis::ONE && bytes(run) < tiles.run;
            // Rows that end within a sector share it with the next index of the outer axis. The
            // rows of a micro-tile have one index of that axis, or two if elements are wide.
            let shares =
                rows[1] == Axis::ONE && bytes(&rows) < tiles.folded_row && !bytes(&rows).is_multiple_of(SECTOR);
            let wide = ragged_tile_folds(canonical.width as u32) && rows[0].extent >= lanes;
            let folds = (long.rows || short(&rows)) && rows[0].extent.is_multiple_of(lanes) || shares && wide;
            if position == row || position == col {
                continue;
            } else if folds && rows[1] == Axis::ONE && axis.dst == rows[0].extent as isize {
                rows[1] = axis;
            } else if (long.cols || short(&cols)) && cols[1] == Axis::ONE && axis.src == cols[0].extent as isize {
                cols[1] = axis;
            } else {
                batch[rank] = axis;
                rank += 1;
            }
        }
        Self { cols, rows, batch, rank, src_start, dst_start }
    }

    /// Returns the places of the batch's axes among those of the work, in order.
    pub(super) fn batch_places(&self, canonical: &Canonical) -> [u8; MAX_RANK] {
        let mut places = [0; MAX_RANK];
        for (to, axis) in places.iter_mut().zip(self.batch()) {
            // No two axes have one stride in the destination, and none of the batch was turned.
            *to = canonical.axes().iter().position(|of| of.dst == axis.dst).expect("an axis of the work") as u8;
        }
        places
    }

    /// Returns the axes of the batch.
    pub(super) fn batch(&self) -> &[Axis] {
        &self.batch[..self.rank]
    }

    /// Sorts the axes of the batch by the source's stride.
    pub(super) fn sort_batch_by_source(&mut self) {
        self.batch[..self.rank].sort_unstable_by_key(|axis| axis.src.unsigned_abs());
    }

    /// Returns the number of matrices.
    pub(super) fn images(&self) -> usize {
        self.batch().iter().map(|axis| axis.extent).product()
    }

    /// Returns the numbers of columns and of rows.
    pub(super) fn extents(&self) -> [usize; 2] {
        [&self.cols, &self.rows].map(|run| run.iter().map(|axis| axis.extent).product())
    }

    /// Joins axes of the batch to the shorter side whose run they continue, and to the other side
    /// if none does, until neither side's run goes on.
    pub(super) fn join(&mut self) {
        for run in [&mut self.cols, &mut self.rows] {
            if run[1] != Axis::ONE {
                self.batch[self.rank] = std::mem::replace(&mut run[1], Axis::ONE);
                self.rank += 1;
            }
        }
        self.batch[..self.rank].sort_unstable_by_key(|axis| axis.dst.unsigned_abs());
        loop {
            let [cols, rows] = self.extents();
            let of_rows = self.next(&self.rows, |axis| axis.dst.unsigned_abs() == rows);
            let of_cols = self.next(&self.cols, |axis| axis.src.unsigned_abs() == cols);
            let (position, is_row) = match (of_rows, of_cols) {
                (Some(position), None) => (position, true),
                (Some(position), Some(_)) if rows <= cols => (position, true),
                (_, Some(position)) => (position, false),
                (None, None) => break,
            };
            let mut axis = self.batch[position];
            self.batch.copy_within(position + 1..self.rank, position);
            self.rank -= 1;
            if (if is_row { axis.dst } else { axis.src }) < 0 {
                axis = axis.turned(&mut self.src_start, &mut self.dst_start);
            }
            let run = if is_row { &mut self.rows } else { &mut self.cols };
            let end = rank(run);
            run[end] = axis;
        }
    }

    /// Returns the position in the batch of an axis that a run has room for.
    fn next(&self, run: &[Axis; TILE_AXES], goes_on: impl Fn(&Axis) -> bool) -> Option<usize> {
        self.batch().iter().position(goes_on).filter(|_| rank(run) < TILE_AXES)
    }

    /// Returns the bitwise or of all offsets at which rows start, in elements: source, destination.
    pub(super) fn starts(&self) -> [usize; 2] {
        let src = self.rows.iter().chain(self.batch()).fold(self.src_start, |bits, axis| bits | axis.src as usize);
        let dst = self.cols.iter().chain(self.batch()).fold(self.dst_start, |bits, axis| bits | axis.dst as usize);
        [src, dst]
    }

    /// Returns whether tiles of whole vectors are better: every row of both sides starts on a
    /// vector of `lanes` elements and holds whole vectors. If the L2 cache does not hold what is
    /// written, the destination's rows must also start on sectors: a sector that two tiles write
    /// costs an H100 a fifth of its speed.
    pub(super) fn are_whole(&self, lanes: usize, [src_align, dst_align]: [Align; 2], small: bool) -> bool {
        let [src, dst] = self.starts();
        let write = if small { VECTOR } else { SECTOR };
        let [cols, _] = self.extents();
        let vectors = (src | dst | self.rows[0].extent | cols).is_multiple_of(lanes);
        vectors
            && dst.is_multiple_of(lanes * write / VECTOR)
            && src_align.bytes() >= VECTOR as u64
            && dst_align.bytes() >= write as u64
    }
}
