//! Estimates the time of a box, from figures that were fitted to timed boxes.
//!
//! Memory on one side, and shared memory, instructions and latency on the other, hide each other as
//! far as a norm of degree four says. So a roofline has a rounded corner.

use super::banks::{Gathering, guess, shared};
use super::cut::Cut;
use super::work::Work;
use crate::abi::{HAS_EDGES, ON_VECTORS, ROWS_DIFFER, TAKES_HEADS};
use crate::context::BOXES_SHARED;
use crate::launch_shape::{MAX_SHARED_BYTES, WARP};
use crate::ops::tuning::{Boxes, BoxesBlock};
use crate::ops::units::wide::{SECTOR, VECTOR};

/// Blocks of a multiprocessor.
const MOST_RESIDENT: u32 = 32;

/// The parts of a box's time that do not depend on the threads of a block, in cycles of a
/// multiprocessor.
pub(super) struct Model<'a> {
    policy: &'a Boxes,
    cut: &'a Cut,
    /// Bytes of an element, and elements of a vector.
    width: f64,
    n: f64,
    /// The part of its elements that a mean box has.
    used: f64,
    /// The part of the boxes that have edges.
    edged: f64,
    memory: f64,
    /// Bytes of shared memory of a block.
    shared: u64,
}

impl<'a> Model<'a> {
    pub(super) fn new(policy: &'a Boxes, work: &Work, cut: &'a Cut) -> Self {
        let (width, [first, second]) = (work.width as f64, cut.counts.map(|count| count as f64));
        let used = (work.elements as f64 / (cut.boxes * cut.lines * cut.line) as f64).min(1.0);
        let heads = cut.flags & TAKES_HEADS != 0;
        let edged = match cut.flags & HAS_EDGES != 0 {
            true if heads => (2.0 / if cut.goes_by_dst { first } else { second }).min(1.0),
            is => f64::from(u8::from(is)),
        };
        let shared = shared(cut, work.granule);
        let mut model = Self { policy, cut, width, n: VECTOR as f64 / width, used, edged, memory: 0.0, shared };
        model.memory = model.memory();
        model
    }

    /// Returns the cycles that memory takes.
    fn memory(&self) -> f64 {
        let (policy, cut) = (&self.policy.memory, self.cut);
        let (rows, lines) = (cut.rows as f64, cut.lines as f64);
        let [row, line] = [cut.row as f64, cut.line as f64 * self.width];
        let moved = [rows * row, lines * line];
        let [read, written] = [0, 1].map(|side| (cut.sectors[side] * SECTOR as f64 - moved[side]).max(0.0));
        // Sectors that boxes share are read again where the neighbour comes much later.
        let is_cut = cut.counts[0] > 1;
        let far = if cut.goes_by_dst && is_cut || cut.boxes == 1 {
            read
        } else if is_cut {
            written
        } else {
            0.0
        };
        let [narrow, wide] = policy.split_read;
        let [at_sectors, at_edges] = policy.split_written;
        let split_read = if self.width == 16.0 { wide } else { narrow };
        let split_written = if cut.flags & (HAS_EDGES | TAKES_HEADS) == HAS_EDGES { at_edges } else { at_sectors };
        let short = |bytes: f64| (policy.long - bytes).max(0.0);
        let bytes = moved[0]
            + moved[1]
            + split_read * read
            + split_written * written
            + rows * (policy.row + policy.short_row * short(row))
            + lines * (policy.line + policy.short_line * short(line))
            + policy.far * far;
        policy.byte * self.used * bytes
    }

    /// Returns the cycles of instructions and shared memory.
    fn work(&self, gathering: Gathering) -> f64 {
        let (shared, issue, cut) = (&self.policy.shared, &self.policy.issue, self.cut);
        let warp = f64::from(WARP);
        let (lines, k) = (cut.lines as f64, cut.vectors as f64);
        let words = lines * cut.line as f64 * self.width / (warp * VECTOR as f64);
        let items = (cut.rows * cut.granules) as f64 / warp;
        let vectors = lines * k / warp;
        let looked = vectors * self.n / gathering.slice;
        let edges = 2.0 * lines * self.n * self.edged / warp;
        let rebuilt = if cut.flags & ROWS_DIFFER != 0 { cut.line as f64 / warp } else { 0.0 };
        let [narrow, wide] = shared.granule;
        let stored = shared.gather * words * self.n * gathering.conflicts * (self.width / 4.0).max(1.0)
            + if self.width == 16.0 { wide } else { narrow } * items
            + shared.look_up * looked
            + shared.store * words
            + shared.edge * edges;
        let issued = issue.granule * items
            + issue.element * vectors * self.n
            + issue.vector * vectors
            + issue.look_up * looked
            + issue.edge * edges
            + issue.rebuilt * rebuilt;
        self.used * (stored * if self.width < 8.0 { shared.narrow } else { 1.0 } + issued)
    }

    /// Returns whether a block may have the shared memory.
    pub(super) fn fits(&self) -> bool {
        // Gaps and alignment take some more.
        self.shared <= u64::from(BOXES_SHARED - (1 << 10))
    }

    /// Guesses the wavefronts of a gathering before the box is laid out.
    pub(super) fn conflicts(&self, work: &Work) -> f64 {
        guess(work, self.cut, self.policy.layout.turned).max(self.policy.guess.conflicts)
    }

    /// Guesses the slices of a gathering with these wavefronts.
    pub(super) fn sliced(&self, threads: u32, conflicts: f64) -> Gathering {
        let most = (self.cut.lines * self.cut.vectors) as f64 / f64::from(threads);
        let slice = up(most).clamp(1.0, self.policy.guess.slice);
        Gathering { slice, slices: up(self.cut.lines as f64 / slice), conflicts }
    }

    /// Returns the cycles that a launch takes at least: those of its memory.
    pub(super) fn least(&self) -> f64 {
        self.memory * (self.boxes() + self.policy.latency.tail)
    }

    /// Returns the cycles of the launch.
    pub(super) fn cycles(&self, threads: u32, gathering: Gathering) -> f64 {
        let resident = self.policy.resident(self.shared as u32, threads);
        if resident == 0 {
            return f64::INFINITY;
        }
        let (latency, resident) = (&self.policy.latency, f64::from(resident));
        let cycles = self.each(threads, resident, gathering) * (self.boxes() + latency.tail * resident)
            + latency.start
            + self.tables(f64::from(threads));
        if self.shared > u64::from(MAX_SHARED_BYTES) { self.policy.larger * cycles } else { cycles }
    }

    /// Returns the boxes that a multiprocessor moves.
    fn boxes(&self) -> f64 {
        self.cut.boxes as f64 / f64::from(self.policy.multiprocessors)
    }

    /// Returns the cycles that a multiprocessor takes for a box of so many blocks.
    fn each(&self, threads: u32, resident: f64, gathering: Gathering) -> f64 {
        let (policy, cut) = (&self.policy.latency, self.cut);
        let block = f64::from(threads);
        let rounds = up((cut.rows * cut.granules) as f64 / block * self.policy.guess.rounds);
        let edges = up(2.0 * cut.lines as f64 * self.n / block) * self.edged;
        let drain = up(gathering.slices * cut.vectors as f64 / block);
        let latency = policy.load
            + policy.load_round * rounds
            + drain * (policy.round + policy.element * self.n + policy.line * gathering.slice)
            + policy.thread * block
            + policy.edges * edges
            + if cut.flags & ROWS_DIFFER != 0 { policy.rebuilt } else { 0.0 };
        let busy = self.work(gathering) + latency / resident;
        let fourth = |cycles: f64| (cycles * cycles) * (cycles * cycles);
        (fourth(self.memory) + fourth(busy)).sqrt().sqrt()
    }

    /// Returns what other kernels' estimates are compared with, relative to a copy: the time of all
    /// boxes, that of their memory, and the part of written sectors that boxes share, less than 0.
    pub(super) fn costs(&self, threads: u32, gathering: Gathering, work: &Work) -> [f64; 3] {
        let cut = self.cut;
        let copy = 2.0 * self.policy.memory.byte * work.elements as f64 * self.width / cut.boxes as f64;
        let written = (cut.lines * cut.line) as f64 * self.width / SECTOR as f64;
        let resident = f64::from(self.policy.resident(self.shared as u32, threads));
        [self.each(threads, resident, gathering) / copy, self.memory / copy, 1.0 - cut.sectors[1] / written]
    }

    /// Returns the cycles in which a block writes its tables.
    fn tables(&self, threads: f64) -> f64 {
        let (cut, [row, place, line]) = (self.cut, self.policy.latency.tables);
        let rounds = |entries: u64| up(entries as f64 / threads);
        // Lines in an order are counted before they are written.
        let times = if cut.flags & ON_VECTORS != 0 { 1.0 } else { 2.0 };
        row * rounds(cut.rows) + place * rounds(cut.line + cut.heads) + line * times * rounds(cut.lines)
    }
}

/// Rounds a count up. Without SSE 4.1, `f64::ceil` is a call.
fn up(count: f64) -> f64 {
    let whole = count as i64 as f64;
    if whole < count { whole + 1.0 } else { whole }
}

impl Boxes {
    /// Returns the blocks of so many threads that run on a multiprocessor at once.
    pub(super) fn resident(&self, shared: u32, threads: u32) -> u32 {
        let ([room, of_block], [registers, of_thread]) = (self.room, self.registers);
        (room / (shared + of_block))
            .min(registers / (of_thread * threads))
            .min(self.threads / threads)
            .min(MOST_RESIDENT)
    }
}

impl BoxesBlock {
    /// Returns whether the block suits boxes of so many bytes.
    pub(super) fn suits(&self, bytes: u64) -> bool {
        (self.tile[0]..=self.tile[1]).contains(&bytes)
    }
}
