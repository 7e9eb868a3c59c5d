//! The messages of one rank, step by step, and the kernels before and after them.

use super::arrivals::{BEGIN, between};
use super::pieces::{Piece, Sizes, pieces};
use crate::distributed::{Communicator, Message, Move, Redistribution};
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::{Align, PermutePlan, Target};

/// The messages that a rank sends and receives at once.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) sends: Vec<Leg>,
    pub(super) receives: Vec<Leg>,
}

/// One end of a message.
#[derive(Debug)]
pub(super) struct Leg {
    pub(super) peer: usize,
    pub(super) bytes: u64,
    /// The place of the bytes: their offset in the array's part, or in the buffer between.
    pub(super) at: u64,
    /// The kernel between the part and the buffer; `None` if the bytes travel from or to the part
    /// itself.
    pub(super) kernel: Option<PermutePlan>,
}

/// The steps of a rank.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) steps: Vec<Step>,
    /// The copy of the rank to itself.
    pub(super) own: Option<PermutePlan>,
    /// The bytes that the steps of even and of odd numbers need for packed elements, and for those
    /// that are sorted.
    pub(super) buffers: [[u64; 2]; 2],
}

impl Steps {
    pub(super) fn new(plan: &Redistribution, communicator: &Communicator, sizes: Sizes) -> Result<Self> {
        let (rank, target) = (communicator.rank(), Target::of(communicator.device()));
        let cut = |of: &Move| pieces(of, plan.axes(), plan.width(), sizes);
        let (from, to) = (plan.moves_from(rank), plan.moves_to(rank));
        let own = from.iter().find(|part| part.to == rank).map(|part| kernel(&part.src, &part.dst, plan, target));
        let mut all = Self { steps: Vec::new(), own: own.transpose()?, buffers: [[0; 2]; 2] };
        for of in from.iter().filter(|part| part.to != rank) {
            for piece in cut(of) {
                let kernel =
                    piece.is_packed().then(|| kernel(&piece.src, &between(&piece), plan, target)).transpose()?;
                all.step(piece.step).sends.push(leg(of.to, &piece, &piece.src, kernel, plan));
            }
        }
        for of in to.iter().filter(|part| part.from != rank) {
            for piece in cut(of) {
                let kernel =
                    piece.is_unpacked().then(|| kernel(&between(&piece), &piece.dst, plan, target)).transpose()?;
                all.step(piece.step).receives.push(leg(of.from, &piece, &piece.dst, kernel, plan));
            }
        }
        all.place();
        Ok(all)
    }

    fn step(&mut self, number: usize) -> &mut Step {
        if self.steps.len() <= number {
            self.steps.resize_with(number + 1, Step::default);
        }
        &mut self.steps[number]
    }

    /// Gives each message that has a kernel a place in the buffer between.
    fn place(&mut self) {
        for (number, step) in self.steps.iter_mut().enumerate() {
            for (legs, halves) in [&mut step.sends, &mut step.receives].into_iter().zip(&mut self.buffers) {
                let mut end = 0;
                for leg in legs.iter_mut().filter(|leg| leg.kernel.is_some()) {
                    leg.at = end;
                    end += leg.bytes.next_multiple_of(BEGIN);
                }
                let most = &mut halves[number % 2];
                *most = (*most).max(end);
            }
        }
    }
}

fn kernel(src: &Layout, dst: &Layout, plan: &Redistribution, target: Target) -> Result<PermutePlan> {
    PermutePlan::new(src, Align::ALLOCATION, dst, Align::ALLOCATION, plan.width(), target)
}

fn leg(peer: usize, piece: &Piece, in_part: &Layout, kernel: Option<PermutePlan>, plan: &Redistribution) -> Leg {
    Leg { peer, bytes: piece.bytes, at: in_part.offset() as u64 * plan.width() as u64, kernel }
}

impl Leg {
    /// Returns the message, where the part and the buffer between lie at these addresses.
    pub(super) fn message(&self, part: u64, between: u64) -> Message {
        let base = if self.kernel.is_some() { between } else { part };
        Message { peer: self.peer, address: base + self.at, bytes: self.bytes }
    }
}
