//! Passes racecheck the memory that copies in bulk read and write.

use super::transfer::{Piece, Place, Source, Transfer, Unit};
use crate::gpu::check::{At, Checker, Copy, Part};

/// A copy that racecheck follows.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) copy: Copy,
    /// The parts of memory of which it has not yet told the end.
    parts: Vec<(Place, Part)>,
}

impl Followed {
    /// Bytes that it takes on the host.
    pub(super) fn room(&self) -> usize {
        size_of::<Self>() + self.parts.len() * size_of::<(Place, Part)>()
    }
}

impl Unit<'_> {
    /// Has racecheck follow a copy that a thread of the running block begins.
    pub(super) fn follow(&mut self, transfer: &mut Transfer, thread: u32, pc: u32) {
        let (bytes, reduces) = (transfer.bytes, transfer.reduce.is_some());
        let copy = self.checker.as_deref_mut().and_then(|checker| checker.begin_copy(thread, pc, bytes, reduces));
        let Some(copy) = copy else { return };
        let parts = parts(&transfer.pieces);
        for &(place, part) in &parts {
            self.at(place, part, |checker, at| checker.begin_part(&copy, part, at));
        }
        transfer.followed = Some(Box::new(Followed { copy, parts }));
    }

    /// Tells racecheck that a thread has seen the end of a copy, or of its reads, or that the copy
    /// was to end unseen.
    pub(super) fn told(&mut self, followed: &mut Followed, seen_by: Option<u32>, reads_alone: bool) {
        let Followed { copy, parts } = followed;
        if let (Some(checker), Some(thread)) = (self.checker.as_deref_mut(), seen_by) {
            checker.end_copy(copy, thread);
        }
        for (place, part) in parts.extract_if(.., |(_, part)| !(reads_alone && part.writes)) {
            self.at(place, part, |checker, at| checker.end_part(copy, seen_by, part, at));
        }
    }

    /// Calls a function of the checkers with the memory of a place.
    fn at(&mut self, place: Place, part: Part, call: impl FnOnce(&mut Checker, At<crate::gpu::check::OfBlock>)) {
        let Some(checker) = self.checker.as_deref_mut() else { return };
        match place {
            Place::Global(address) => {
                if let Some(live) = self.global.find(address).filter(|live| live.offset(address, part.bytes).is_some())
                {
                    call(checker, At::Global(live));
                }
            }
            Place::Shared { rank, .. } if rank as usize == self.neighbours.rank => call(checker, At::Own),
            Place::Shared { rank, .. } => {
                self.neighbours.peers[rank as usize].checked(|peer| call(checker, At::Peer(peer)));
            }
        }
    }
}

/// The parts of memory that pieces read and write. Those side by side become one.
fn parts(pieces: &[Piece]) -> Vec<(Place, Part)> {
    let part =
        |place: Place, bytes: u32, writes: bool| (place, Part { first: place.address(), bytes: bytes.into(), writes });
    let reads = pieces.iter().filter_map(|piece| match piece.from {
        Source::At(place) => Some(part(place, piece.bytes, false)),
        Source::Held(..) => None,
    });
    let mut all: Vec<_> = reads.chain(pieces.iter().map(|piece| part(piece.to, piece.bytes, true))).collect();
    let memory = |place: Place| if let Place::Shared { rank, .. } = place { Some(rank) } else { None };
    all.sort_by_key(|&(place, Part { first, writes, .. })| (writes, memory(place), first));
    all.dedup_by(|next, last| {
        let is_next = memory(next.0) == memory(last.0) && next.1.writes == last.1.writes;
        let is_beside = is_next && next.1.first == last.1.first + last.1.bytes;
        if is_beside {
            last.1.bytes += next.1.bytes;
        }
        is_beside
    });
    all
}
