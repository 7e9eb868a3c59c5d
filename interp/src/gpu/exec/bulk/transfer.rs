//! Keeps the copies in bulk that are under way in a cluster, and does them.

use std::collections::HashMap;

use super::super::block::cluster::Neighbours;
use super::follow::Followed;
use crate::gpu::check::{Check, Checker};
use crate::gpu::mem::cells::Cells;
use crate::gpu::mem::marked::Marked;
use crate::gpu::mem::{Snapshot, Touched, Ways};
use crate::gpu::reduce::Reduce;
use crate::gpu::semantics::arrivals;
use crate::gpu::tensor_map::Element;

/// The most copies of a cluster that are under way; the hardware may do the others at once.
const MOST: usize = 1 << 12;
/// The most bytes that they take on the host, unless a single one takes more.
pub(in super::super) const MOST_BYTES: usize = 4 << 20;

/// The copies that a unit of work inspects in a search.
const SEARCHED: u64 = 16;

/// A thread, by its block's rank and its number in the block.
type Thread = (u32, u32);

/// A place in memory, by its address, or by the rank of a block and the offset in its shared
/// memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Place {
    Global(u64),
    Shared { rank: u32, offset: u64 },
}

/// Bytes to be moved.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) to: Place,
    pub(super) from: Source,
    pub(super) bytes: u32,
}

/// The source of bytes.
#[derive(Debug)]
pub(super) enum Source {
    At(Place),
    /// The bytes themselves, and whether something had written all of them.
    Held(Vec<u8>, bool),
}

/// A copy.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) pieces: Vec<Piece>,
    /// Bytes that it announces in all.
    pub(super) bytes: u32,
    /// The barrier where it announces them; `None` for a copy in a group.
    pub(super) barrier: Option<Place>,
    pub(super) reduce: Option<Reduce>,
    /// The type of the elements of a tensor that it loads.
    pub(super) element: Option<Element>,
    /// The copy as racecheck follows it.
    pub(super) followed: Option<Box<Followed>>,
}

/// A copy that is under way.
#[derive(Debug)]
pub(super) struct Begun {
    /// The thread that has begun it, and the number of the group that it is in.
    thread: Thread,
    group: u32,
    pub(super) transfer: Transfer,
    /// True if it has read, and only writes later.
    has_read: bool,
}

/// The copies of a cluster that are under way.
#[derive(Debug, Default)]
pub(in super::super) struct Transfers {
    /// The oldest one is the first.
    list: Vec<Begun>,
    /// Bytes that they take on the host.
    bytes: usize,
    /// The number of groups that each thread has committed.
    groups: HashMap<Thread, u32>,
}

impl Place {
    /// The address, or the offset in shared memory.
    pub(super) fn address(self) -> u64 {
        match self {
            Self::Global(address) => address,
            Self::Shared { offset, .. } => offset,
        }
    }

    /// The same place in the shared memory of another block, if a rank is given.
    pub(super) fn of_rank(self, rank: Option<u32>) -> Self {
        match (self, rank) {
            (Self::Shared { offset, .. }, Some(rank)) => Self::Shared { rank, offset },
            _ => self,
        }
    }
}

impl Transfer {
    /// Bytes that it takes on the host.
    fn room(&self) -> usize {
        let held = |piece: &Piece| if let Source::Held(bytes, _) = &piece.from { bytes.len() } else { 0 };
        let followed = self.followed.as_ref().map_or(0, |followed| followed.room());
        followed + self.pieces.iter().map(|piece| size_of::<Piece>() + held(piece)).sum::<usize>()
    }
}

impl Transfers {
    pub(in super::super) fn clear(&mut self) {
        if !self.list.is_empty() || !self.groups.is_empty() {
            *self = Self::default();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The work of a search among them.
    pub(super) fn search_work(&self) -> u64 {
        self.list.len() as u64 / SEARCHED
    }

    /// Takes up a copy. Returns the older half of all, which are to be done, if there are too many.
    pub(super) fn start(&mut self, thread: Thread, transfer: Transfer) -> Vec<Transfer> {
        let group = self.groups.get(&thread).copied().unwrap_or(0);
        self.bytes += transfer.room();
        self.list.push(Begun { thread, group, transfer, has_read: false });
        let (mut left, mut bytes) = (self.list.len(), self.bytes);
        if left <= MOST && bytes <= MOST_BYTES {
            return Vec::new();
        }
        self.take(|begun| {
            let is_due = left > MOST / 2 || left > 1 && bytes > MOST_BYTES / 2;
            (left, bytes) = (left - 1, bytes - begun.transfer.room());
            is_due
        })
    }

    pub(super) fn commit(&mut self, thread: Thread) {
        let group = self.groups.entry(thread).or_default();
        *group = group.wrapping_add(1);
    }

    /// Takes the copies of a warp's groups but the latest `left` of each lane; `to_read`: only
    /// those that have not read yet.
    pub(super) fn of_groups(&mut self, (rank, warp, lanes): (u32, u32, u32), left: u32, to_read: bool) -> Vec<Begun> {
        let groups = &self.groups;
        let due = |Begun { thread, group, transfer, has_read }: &mut Begun| {
            let is_own = thread.0 == rank && thread.1 / 32 == warp && lanes >> (thread.1 % 32) & 1 == 1;
            let now = || groups.get(thread).copied().unwrap_or(0);
            is_own && transfer.barrier.is_none() && !(to_read && *has_read) && now().wrapping_sub(*group) > left
        };
        let taken: Vec<Begun> = self.list.extract_if(.., due).collect();
        self.bytes -= taken.iter().map(|begun| begun.transfer.room()).sum::<usize>();
        taken
    }

    /// Takes up a copy again, which has read.
    pub(super) fn put_back(&mut self, begun: Begun) {
        self.bytes += begun.transfer.room();
        self.list.push(Begun { has_read: true, ..begun });
    }

    /// Returns whether copies take more bytes than they may.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// Takes the copies that announce themselves at a barrier.
    pub(super) fn at(&mut self, barrier: Place) -> Vec<Transfer> {
        self.take(|begun| begun.transfer.barrier == Some(barrier))
    }

    /// Takes the copies in groups of the block of this rank.
    pub(super) fn of_block(&mut self, rank: u32) -> Vec<Transfer> {
        self.take(|begun| begun.thread.0 == rank && begun.transfer.barrier.is_none())
    }

    /// Takes all copies.
    pub(super) fn all(&mut self) -> Vec<Transfer> {
        self.take(|_| true)
    }

    /// Takes the copies that are due, in their order.
    fn take(&mut self, mut due: impl FnMut(&Begun) -> bool) -> Vec<Transfer> {
        let taken: Vec<Transfer> = self.list.extract_if(.., |begun| due(begun)).map(|begun| begun.transfer).collect();
        self.bytes -= taken.iter().map(Transfer::room).sum::<usize>();
        taken
    }
}

/// The unit that does copies.
pub(super) struct Unit<'a> {
    pub(super) neighbours: Neighbours<'a>,
    pub(super) global: &'a Snapshot,
    pub(super) touched: Option<&'a Touched>,
    /// The checkers, with the state of the block that looks or waits.
    pub(super) checker: Option<&'a mut Checker>,
}

impl Unit<'_> {
    /// Does a copy in a group, which its own thread has seen.
    pub(super) fn finish_own(&mut self, transfer: Transfer) {
        let thread = transfer.followed.as_ref().map(|followed| followed.copy.who.thread);
        self.finish(transfer, thread);
    }

    /// Does a copy, and announces its bytes. A thread of the running block may have seen it.
    pub(super) fn finish(&mut self, mut transfer: Transfer, seen_by: Option<u32>) {
        if let Some(followed) = &mut transfer.followed {
            self.told(followed, seen_by, false);
        }
        for Piece { to, from, bytes } in transfer.pieces {
            let (held, is_written) = self.read(from, bytes, transfer.element);
            self.write(to, &held, is_written, transfer.reduce);
        }
        if let Some(Place::Shared { rank, offset }) = transfer.barrier {
            let less = u64::from(transfer.bytes).wrapping_neg();
            let shared = &self.neighbours.peers[rank as usize].shared;
            shared.update(offset, 8, |bits| arrivals::arrive(bits, 0, less));
        }
    }

    /// Reads the bytes of a copy, which it writes later.
    pub(super) fn hold(&mut self, transfer: &mut Transfer) {
        if let Some(followed) = &mut transfer.followed {
            let thread = followed.copy.who.thread;
            self.told(followed, Some(thread), true);
        }
        for piece in &mut transfer.pieces {
            let from = std::mem::replace(&mut piece.from, Source::Held(Vec::new(), true));
            let (bytes, is_written) = self.read(from, piece.bytes, transfer.element);
            piece.from = Source::Held(bytes, is_written);
        }
    }

    /// The bytes of a source, and whether something has written all of them.
    fn read(&mut self, from: Source, bytes: u32, element: Option<Element>) -> (Vec<u8>, bool) {
        match from {
            Source::Held(held, is_written) => (held, is_written),
            Source::At(Place::Global(address)) => {
                // A chunk of the heap may have been freed since.
                let Some(live) = self.global.find(address) else { return (vec![0; bytes as usize], true) };
                let offset = live.place(address);
                if let Some(touched) = self.touched {
                    let ways = Ways { loads: true, stores: false, is_strong: false };
                    touched.mark(live, ways, address, u64::from(bytes));
                }
                if self.checker.as_ref().is_some_and(|checker| checker.has(Check::Initcheck)) {
                    live.read.add(offset, u64::from(bytes));
                }
                let is_written = !self.global.knows(live) || live.written.holds(offset, u64::from(bytes));
                let loaded = load(live, offset, bytes);
                (if let Some(element) = element { element.loaded(loaded) } else { loaded }, is_written)
            }
            Source::At(Place::Shared { rank, offset }) => {
                let mut is_written = true;
                self.of_block(rank, |written| is_written = written.holds(offset, u64::from(bytes)));
                (load(&self.neighbours.peers[rank as usize].shared, offset, bytes), is_written)
            }
        }
    }

    fn write(&mut self, to: Place, bytes: &[u8], is_written: bool, reduce: Option<Reduce>) {
        let count = bytes.len() as u64;
        match to {
            Place::Global(address) => {
                let Some(live) = self.global.find(address) else { return };
                let offset = live.place(address);
                if let Some(touched) = self.touched {
                    let ways = Ways { loads: reduce.is_some(), stores: true, is_strong: reduce.is_some() };
                    touched.mark(live, ways, address, count);
                }
                if is_written && self.checker.as_ref().is_some_and(|checker| checker.has(Check::Initcheck)) {
                    live.written.add(offset, count);
                }
                store(live, offset, bytes, reduce);
            }
            Place::Shared { rank, offset } => {
                if is_written {
                    self.of_block(rank, |written| written.add(offset, count));
                }
                store(&self.neighbours.peers[rank as usize].shared, offset, bytes, reduce);
            }
        }
    }

    /// Passes what initcheck knows of a block's shared memory.
    fn of_block(&self, rank: u32, with: impl FnMut(&Marked)) {
        let Some(checker) = self.checker.as_deref() else { return };
        if rank as usize == self.neighbours.rank {
            checker.written().into_iter().for_each(with);
        } else {
            self.neighbours.peers[rank as usize].checked(|peer| peer.written().into_iter().for_each(with));
        }
    }
}

/// Bytes of some memory.
fn load(cells: &impl Cells, offset: u64, bytes: u32) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes as usize);
    while all.len() < bytes as usize {
        let (at, left) = (offset + all.len() as u64, bytes as usize - all.len());
        match at.is_multiple_of(4) && left >= 4 {
            true => all.extend(cells.load32(at).to_le_bytes()),
            false => all.push(cells.load8(at)),
        }
    }
    all
}

/// Stores bytes, or changes the elements that are there by theirs.
fn store(cells: &impl Cells, offset: u64, bytes: &[u8], reduce: Option<Reduce>) {
    if let Some(reduce) = reduce {
        let width = reduce.width();
        for (index, element) in bytes.chunks_exact(usize::from(width)).enumerate() {
            let added = element.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
            cells.update(offset + index as u64 * u64::from(width), width, |old| reduce.apply(old, added));
        }
        return;
    }
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        let at = offset + done as u64;
        match rest.first_chunk().filter(|_| at.is_multiple_of(4)) {
            Some(&word) => {
                cells.store32(at, u32::from_le_bytes(word));
                done += 4;
            }
            None => {
                cells.store8(at, rest[0]);
                done += 1;
            }
        }
    }
}
