//! The places of what arrives in a rank's window. Each rank knows those of all.

use super::pieces::{Piece, even};
use crate::distributed::Redistribution;
use crate::layout::Layout;
use crate::ops::Align;

/// The pieces that a rank gets from its peers.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) all: Vec<Arrival>,
    /// The bytes that the steps of even and of odd numbers need.
    pub(super) halves: [u64; 2],
}

/// A piece that arrives.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) from: usize,
    /// Its offset in the half of the window that its step uses.
    pub(super) at: u64,
    pub(super) piece: Piece,
}

/// Pieces begin at multiples of so many bytes, as allocations do.
pub(super) const BEGIN: u64 = Align::ALLOCATION.bytes();

impl Arrivals {
    /// Places the pieces of a rank, of at most `most` bytes each where that is given.
    pub(super) fn new(plan: &Redistribution, rank: usize, most: Option<u64>) -> Self {
        let peers = plan.ranks().saturating_sub(1).max(1) as u64;
        let (mut all, mut ends) = (Vec::new(), Vec::new());
        for of in plan.moves_to(rank).into_iter().filter(|part| part.from != rank) {
            for piece in even(&of, plan.axes(), plan.width(), (most, peers)) {
                if ends.len() <= piece.step {
                    ends.resize(piece.step + 1, 0);
                }
                let end = &mut ends[piece.step];
                let at = *end;
                *end += piece.bytes.next_multiple_of(BEGIN);
                all.push(Arrival { from: of.from, at, piece });
            }
        }
        let most_of = |half: usize| ends.iter().skip(half).step_by(2).copied().max().unwrap_or(0);
        Self { all, halves: [most_of(0), most_of(1)] }
    }

    /// Returns the number of steps.
    pub(super) fn steps(&self) -> usize {
        self.all.iter().map(|arrival| arrival.piece.step + 1).max().unwrap_or(0)
    }
}

/// The elements of a piece while they lie between the parts.
pub(super) fn between(piece: &Piece) -> Layout {
    Layout::row_major(piece.src.shape()).expect("a piece is no larger than the array")
}
