//! The order of a block's threads among each other, and after those of other blocks.

use std::rc::Rc;

use super::clocks::{Known, Lanes};
use super::entry::Entry;
use crate::gpu::vocabulary::{BARRIERS, FULL, LANES, lanes_of};
use publish::Lane;
pub(super) use publish::{Messages, Strong};

mod publish;

/// The threads of the running block, and their knowledge.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The running block.
    pub(super) block: u32,
    warps: Vec<Warp>,
    /// The blocks that have begun and not ended.
    running: Blocks,
    /// The knowledge of a thread at its beginning.
    nothing: Rc<Known>,
    /// The blocks in which some thread has published something to other blocks.
    publishing: Blocks,
    /// The last two pieces of knowledge that were joined, and the result: lanes of a warp mostly
    /// join the same ones.
    joined: Option<[Rc<Known>; 3]>,
    /// The last knowledge that one block published and another converted, with the result: the
    /// lanes of a warp mostly see the same. Each comes with its block.
    moved: Option<[(u32, Rc<Known>); 2]>,
    /// True if a clock has reached its maximum.
    pub(super) exhausted: bool,
    /// True if threads published more than racecheck can keep.
    pub(super) overfull: bool,
    /// The work of joining knowledge since the last call of `take_work`.
    work: u64,
}

/// A set of blocks, a bit each.
#[derive(Debug, Default)]
struct Blocks(Vec<u64>);

impl Blocks {
    #[inline]
    fn contains(&self, block: u32) -> bool {
        self.0.get(block as usize / 64).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    fn insert(&mut self, block: u32) {
        let word = block as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (block % 64);
    }

    fn remove(&mut self, block: u32) {
        if let Some(word) = self.0.get_mut(block as usize / 64) {
            *word &= !(1 << (block % 64));
        }
    }
}

/// A block's number, and its threads.
#[derive(Debug)]
pub(super) struct Threads {
    block: u32,
    warps: Vec<Warp>,
}

/// The knowledge of a block's threads that meet those of the other blocks of their cluster.
pub(crate) struct Met {
    block: u32,
    known: Known,
}

/// The knowledge of a thread that another one will have.
#[derive(Debug, Clone)]
pub(super) struct Told {
    block: u32,
    known: Rc<Known>,
    /// The clock of the thread's warp then.
    pub(super) clock: u32,
}

/// A warp of the block.
#[derive(Debug)]
struct Warp {
    /// Counts the events that matter to other threads: it separates the accesses before an event
    /// from those after it.
    clock: u32,
    /// The common knowledge of all its lanes.
    known: Rc<Known>,
    /// The knowledge of each lane, once they differ.
    apart: Option<Box<[Rc<Known>; LANES]>>,
    /// The knowledge that its lanes have prepared by fences and strong reads.
    lanes: Option<Box<[Lane; LANES]>>,
    /// For each barrier, the knowledge of the lanes that arrived there without waiting.
    /// The last one is the barrier of the block's cluster.
    arrived: [Option<Rc<Known>>; BARRIERS + 1],
}

/// The view of a thread that is about to make an access: it tells which earlier accesses come
/// before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now<'a> {
    order: &'a Order,
    known: &'a Known,
    warp: u32,
    lane: usize,
}

impl<'a> Now<'a> {
    /// The threads of an entry without this one.
    fn others(self, entry: Entry) -> u32 {
        if entry.warp() == self.warp && self.is_own(entry) { entry.lanes & !(1 << self.lane) } else { entry.lanes }
    }

    fn is_own(self, entry: Entry) -> bool {
        entry.block() == self.order.block
    }

    /// Returns this thread's knowledge about the entry's warp.
    #[inline]
    fn known_of(self, entry: Entry) -> Option<&'a Lanes> {
        self.known.of((!self.is_own(entry)).then_some(entry.block()), entry.warp() as usize)
    }

    /// Returns whether the accesses of these lanes of the entry's warp come before.
    #[inline]
    fn knows(self, entry: Entry, lanes: u32) -> bool {
        let is_own = self.is_own(entry);
        is_own && lanes == 0
            || (is_own || self.order.has_published(entry.block()))
                && self.known_of(entry).is_some_and(|known| known.hold(lanes, entry.clock))
    }

    /// Returns whether all accesses of an entry come before this thread's access.
    #[inline]
    pub(super) fn follows(self, entry: Entry) -> bool {
        self.knows(entry, self.others(entry))
    }

    /// Returns whether the access of at least one thread of the entry does.
    pub(super) fn follows_some(self, entry: Entry) -> bool {
        let others = self.others(entry);
        others != entry.lanes || self.known_of(entry).is_some_and(|known| known.hold_any(others, entry.clock))
    }

    /// The first thread of an entry whose access does not come before.
    pub(super) fn stranger(self, entry: Entry) -> u32 {
        let unknown = lanes_of(self.others(entry)).find(|lane| !self.knows(entry, 1 << lane));
        unknown.map_or(entry.lanes.trailing_zeros(), |lane| lane as u32)
    }

    /// Returns whether an entry is a read of a block that has ended and published nothing. Nothing
    /// will ever come after such a read, except accesses that have seen its write.
    pub(super) fn is_forever(self, entry: Entry) -> bool {
        !entry.writes() && !self.order.running.contains(entry.block()) && !self.order.has_published(entry.block())
    }

    pub(super) fn is_of_another_block(self, entry: Entry) -> bool {
        !self.is_own(entry)
    }

    /// Returns whether an entry is a plain read of a block that has yet to end.
    pub(super) fn is_plain_read_of_running(self, entry: Entry) -> bool {
        !entry.writes() && !entry.is_strong() && self.order.running.contains(entry.block())
    }
}

impl Order {
    pub(super) fn new(warps: usize) -> Self {
        let nothing = Rc::new(Known::nothing(warps));
        let warps = (0..warps).map(|_| Warp::new(&nothing)).collect();
        Self { warps, nothing, ..Self::default() }
    }

    /// Makes the threads of a block that will run beside the others.
    pub(super) fn another(&self) -> Threads {
        Threads { block: 0, warps: self.warps.iter().map(|_| Warp::new(&self.nothing)).collect() }
    }

    /// Switches to the threads of another block.
    pub(super) fn swap(&mut self, other: &mut Threads) {
        std::mem::swap(&mut self.block, &mut other.block);
        std::mem::swap(&mut self.warps, &mut other.warps);
    }

    pub(super) fn begin(&mut self, block: u32) {
        self.block = block;
        self.running.insert(block);
        self.joined = None;
        for warp in &mut self.warps {
            (warp.clock, warp.known, warp.apart, warp.lanes) = (0, self.nothing.clone(), None, None);
            warp.arrived.fill(None);
        }
    }

    /// Notes that the block has ended.
    pub(super) fn end(&mut self) {
        self.running.remove(self.block);
    }

    pub(super) fn clock(&self, warp: u32) -> u32 {
        self.warps[warp as usize].clock
    }

    /// Returns the work of joining knowledge since the last call.
    pub(super) fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.work)
    }

    pub(super) fn now(&self, warp: u32, lane: usize) -> Now<'_> {
        Now { order: self, known: self.warps[warp as usize].known(lane), warp, lane }
    }

    fn has_published(&self, block: u32) -> bool {
        self.publishing.contains(block)
    }

    /// Separates the warp's later accesses from its earlier ones.
    pub(super) fn tick(&mut self, warp: u32) {
        let clock = &mut self.warps[warp as usize].clock;
        *clock = clock.saturating_add(1);
        self.exhausted |= *clock == u32::MAX;
    }

    /// Notes that warps have passed a barrier together; those in `ended` had ended before.
    pub(crate) fn barrier(&mut self, barrier: u32, passed: &[u32], ended: &[u32]) {
        let mut joined = Known::clone(&self.warps[passed[0] as usize].known);
        for &warp in passed.iter().chain(ended) {
            let Warp { clock, known, apart, .. } = &self.warps[warp as usize];
            match apart {
                Some(apart) => self.work += apart.iter().map(|known| joined.join(known)).sum::<u64>(),
                None => self.work += joined.join(known),
            }
            joined.raise(warp as usize, FULL, clock.saturating_add(1));
        }
        for warp in &mut self.warps {
            if let Some(arrived) = warp.arrived[barrier as usize].take() {
                self.work += joined.join(&arrived);
            }
        }
        let joined = Rc::new(joined);
        for &warp in passed {
            let state = &mut self.warps[warp as usize];
            (state.known, state.apart) = (joined.clone(), None);
            self.tick(warp);
        }
    }

    /// Notes that lanes of a warp have arrived at a barrier without waiting.
    pub(crate) fn arrive(&mut self, barrier: u32, warp: u32, lanes: u32) {
        let mut known = self.together(warp, lanes);
        let arrived = &mut self.warps[warp as usize].arrived[barrier as usize];
        if let Some(before) = arrived {
            self.work += known.join(before);
        }
        *arrived = Some(Rc::new(known));
        self.tick(warp);
    }

    /// The knowledge of a thread now, with its accesses so far, for the thread that learns it.
    pub(super) fn tell(&mut self, warp: u32, lane: usize) -> Told {
        let told = Told { block: self.block, known: Rc::new(self.together(warp, 1 << lane)), clock: self.clock(warp) };
        self.publishing.insert(self.block);
        self.tick(warp);
        told
    }

    /// The knowledge with which the block's threads have arrived at the barrier of their cluster.
    /// The warps in `ended` had ended before.
    pub(crate) fn leave(&mut self, barrier: u32, ended: &[u32]) -> Met {
        let mut joined = Known::clone(&self.nothing);
        for &warp in ended {
            let known = self.together(warp, FULL);
            self.work += joined.join(&known);
        }
        for warp in &mut self.warps {
            if let Some(arrived) = warp.arrived[barrier as usize].take() {
                self.work += joined.join(&arrived);
            }
        }
        self.publishing.insert(self.block);
        Met { block: self.block, known: joined }
    }

    /// Gives all threads of the block the knowledge with which those of the cluster have arrived.
    pub(crate) fn enter(&mut self, cluster: &[Met]) {
        let mut news = Known::clone(&self.nothing);
        for Met { block, known } in cluster {
            let work = match *block == self.block {
                true => news.join(known),
                false => {
                    let (moved, work) = known.moved(*block, self.block);
                    work + news.join(&moved)
                }
            };
            self.work += work;
        }
        for warp in 0..self.warps.len() as u32 {
            let Warp { known, apart, .. } = &mut self.warps[warp as usize];
            for known in apart.as_deref_mut().map_or(std::slice::from_mut(known), |apart| apart.as_mut_slice()) {
                self.work += Rc::make_mut(known).join(&news);
            }
            self.tick(warp);
        }
    }

    /// Notes that lanes of a warp have waited for each other. `all`: no other lane of it is left.
    pub(crate) fn warp_barrier(&mut self, warp: u32, lanes: u32, all: bool) {
        let known = Rc::new(self.together(warp, lanes));
        let state = &mut self.warps[warp as usize];
        if all {
            (state.known, state.apart) = (known, None);
        } else {
            lanes_of(lanes).for_each(|lane| state.learn(lane, known.clone()));
        }
        self.tick(warp);
    }

    /// The joint knowledge of lanes of a warp, including their own accesses.
    fn together(&mut self, warp: u32, lanes: u32) -> Known {
        let state = &self.warps[warp as usize];
        let mut known = Known::clone(state.known(lanes.trailing_zeros() as usize % LANES));
        if state.apart.is_some() {
            self.work += lanes_of(lanes).map(|lane| known.join(state.known(lane))).sum::<u64>();
        }
        known.raise(warp as usize, lanes, state.clock.saturating_add(1));
        known
    }
}

impl Warp {
    fn new(nothing: &Rc<Known>) -> Self {
        let arrived = std::array::from_fn(|_| None);
        Self { clock: 0, known: nothing.clone(), apart: None, lanes: None, arrived }
    }

    #[inline]
    fn known(&self, lane: usize) -> &Rc<Known> {
        self.apart.as_ref().map_or(&self.known, |apart| &apart[lane])
    }

    fn learn(&mut self, lane: usize, known: Rc<Known>) {
        let all = &self.known;
        self.apart.get_or_insert_with(|| Box::new(std::array::from_fn(|_| all.clone())))[lane] = known;
    }

    fn lane(&mut self, lane: usize) -> &mut Lane {
        &mut self.lanes.get_or_insert_with(|| Box::new(std::array::from_fn(|_| Lane::default())))[lane]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_comes_to_its_end_is_told_of() {
        let mut order = Order::new(1);
        order.begin(0);
        order.warps[0].clock = u32::MAX - 2;
        order.tick(0);
        assert!(!order.exhausted);
        order.tick(0);
        assert!(order.exhausted);
    }
}
