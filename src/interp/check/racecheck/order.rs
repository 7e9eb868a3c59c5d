//! What orders the threads of a block among each other and after those of other blocks.

use std::collections::HashMap;
use std::rc::Rc;

use super::clocks::Known;
use super::entry::Entry;
use crate::interp::exec::registers::{FULL, LANES};
use crate::interp::modifiers::Sync;

/// Barriers of a block.
const BARRIERS: usize = 16;
/// Places whose strong reads a thread remembers apart until its next fence.
const PLACES_SEEN: usize = 64;
/// Where a thread remembers its strong reads of further places together, for its next fence: no place is there.
const ELSEWHERE: Location = (u64::MAX, u64::MAX);

/// The threads of the block that runs, and what each knows.
#[derive(Debug)]
pub(super) struct Order {
    block: u32,
    warps: Vec<Warp>,
    /// What threads know at first.
    nothing: Rc<Known>,
    /// Whether a thread of a block published anything for other blocks, for this and earlier ones, a bit each.
    publishing: Vec<u64>,
    /// The last two pieces of knowledge that were joined, and what that gave: lanes of a warp mostly join the same.
    joined: Option<[Rc<Known>; 3]>,
    /// Whether a clock has come to its end.
    exhausted: bool,
    /// The work of joining what threads know, since it was last asked for.
    work: u64,
}

/// A warp of the block.
#[derive(Debug)]
struct Warp {
    /// Counts what makes a difference to others: what came before from what comes after.
    clock: u32,
    /// What all of its lanes know.
    known: Rc<Known>,
    /// Or what each of them knows.
    apart: Option<Box<[Rc<Known>; LANES]>>,
    /// What its lanes have prepared by fences and strong reads.
    lanes: Option<Box<[Lane; LANES]>>,
    /// For each barrier, what arrived there without waiting.
    arrived: [Option<Rc<Known>>; BARRIERS],
}

/// What a thread has begun that another access or a fence may complete.
#[derive(Debug, Default, Clone)]
struct Lane {
    /// What its last fence would publish within the block.
    near: Option<Snapshot>,
    /// What its last fence of a wider scope would publish.
    far: Option<Snapshot>,
    /// What its strong reads have seen since the last fence.
    seen: Vec<Seen>,
}

/// What a thread knew, and how far it had come itself.
#[derive(Debug, Clone)]
struct Snapshot {
    known: Rc<Known>,
    below: u32,
}

/// What a strong read has seen, which a fence receives.
#[derive(Debug, Clone)]
struct Seen {
    at: Location,
    news: News,
}

/// What is published: to threads of the block, and to those of others.
#[derive(Debug, Clone, Default)]
struct News {
    near: Option<Rc<Known>>,
    far: Option<Rc<Known>>,
}

/// A place that is written strongly: the memory's base and the place in it.
pub(super) type Location = (u64, u64);

/// What the strong write that a place holds passes on, its own and that of those whose value it has updated.
#[derive(Debug)]
pub(super) struct Message {
    /// The last write's block, whether its scope is wider than that, and the bytes written.
    block: u32,
    device: bool,
    width: u8,
    news: News,
    /// What threads of the block have published by a release operation here: every strong write of theirs does so again.
    releases: Vec<(u32, News)>,
}

/// A strong access of one thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strong {
    pub(super) warp: u32,
    pub(super) lane: usize,
    pub(super) sync: Sync,
    /// Bytes of the element.
    pub(super) width: u8,
    pub(super) at: Location,
}

/// How accesses stand to a thread that now makes one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now<'a> {
    order: &'a Order,
    known: &'a Known,
    warp: u32,
    lane: usize,
}

impl Now<'_> {
    /// The threads of an entry besides this one.
    fn others(self, entry: Entry) -> u32 {
        let own = entry.warp() == self.warp && entry.block() == self.order.block;
        if own { entry.lanes & !(1 << self.lane) } else { entry.lanes }
    }

    /// Whether what lanes of the entry's warp did is before.
    #[inline]
    fn knows(self, entry: Entry, lanes: u32) -> bool {
        let (warp, clock) = (entry.warp() as usize, entry.clock);
        if entry.block() == self.order.block {
            return lanes == 0 || self.known.holds(warp, lanes, clock);
        }
        self.order.has_published(entry.block()) && self.known.holds_of(entry.block(), warp, lanes, clock)
    }

    /// Whether all of an entry is before what the thread does.
    #[inline]
    pub(super) fn follows(self, entry: Entry) -> bool {
        self.knows(entry, self.others(entry))
    }

    /// Whether what some thread of the entry did is.
    pub(super) fn follows_some(self, entry: Entry) -> bool {
        let (others, warp, clock) = (self.others(entry), entry.warp() as usize, entry.clock);
        others != entry.lanes
            || match entry.block() == self.order.block {
                true => self.known.holds_any(warp, others, clock),
                false => self.known.holds_any_of(entry.block(), warp, others, clock),
            }
    }

    /// The first thread of an entry whose access is not.
    pub(super) fn stranger(self, entry: Entry) -> u32 {
        let others = self.others(entry);
        let unknown = |lane: &u32| others >> lane & 1 == 1 && !self.knows(entry, 1 << lane);
        (0..LANES as u32).find(unknown).unwrap_or(entry.lanes.trailing_zeros())
    }

    /// Whether an entry is of a block that has ended and published nothing, so that nothing will ever follow it but what has
    /// seen its write.
    pub(super) fn is_forever(self, entry: Entry) -> bool {
        !entry.writes() && entry.block() != self.order.block && !self.order.has_published(entry.block())
    }

    pub(super) fn is_of_another_block(self, entry: Entry) -> bool {
        entry.block() != self.order.block
    }
}

impl Order {
    pub(super) fn new(warps: usize) -> Self {
        let nothing = Rc::new(Known::nothing(warps));
        let warp = || Warp {
            clock: 0,
            known: nothing.clone(),
            apart: None,
            lanes: None,
            arrived: std::array::from_fn(|_| None),
        };
        let warps = (0..warps).map(|_| warp()).collect();
        Self { block: 0, warps, nothing, publishing: Vec::new(), joined: None, exhausted: false, work: 0 }
    }

    pub(super) fn begin(&mut self, block: u32) {
        self.block = block;
        self.joined = None;
        for warp in &mut self.warps {
            (warp.clock, warp.known, warp.apart, warp.lanes) = (0, self.nothing.clone(), None, None);
            warp.arrived.fill(None);
        }
    }

    pub(super) fn block(&self) -> u32 {
        self.block
    }

    pub(super) fn clock(&self, warp: u32) -> u32 {
        self.warps[warp as usize].clock
    }

    /// The work of joining what threads know since this was last asked for.
    pub(super) fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.work)
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    pub(super) fn now(&self, warp: u32, lane: usize) -> Now<'_> {
        Now { order: self, known: self.warps[warp as usize].known(lane), warp, lane }
    }

    fn has_published(&self, block: u32) -> bool {
        self.publishing.get(block as usize / 64).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    /// What the warp does from now on is later than what it did.
    pub(super) fn tick(&mut self, warp: u32) {
        let clock = &mut self.warps[warp as usize].clock;
        *clock = clock.saturating_add(1);
        self.exhausted |= *clock == u32::MAX;
    }

    /// Warps have passed a barrier together; those of `ended` had ended before.
    pub(super) fn barrier(&mut self, barrier: u32, passed: &[u32], ended: &[u32]) {
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

    /// Lanes of a warp arrive at a barrier and go on.
    pub(super) fn arrive(&mut self, barrier: u32, warp: u32, lanes: u32) {
        let mut known = self.together(warp, lanes);
        let arrived = &mut self.warps[warp as usize].arrived[barrier as usize];
        if let Some(before) = arrived {
            self.work += known.join(before);
        }
        *arrived = Some(Rc::new(known));
        self.tick(warp);
    }

    /// Lanes of a warp have waited for each other. `all`: nobody else of it is left.
    pub(super) fn warp_barrier(&mut self, warp: u32, lanes: u32, all: bool) {
        let known = Rc::new(self.together(warp, lanes));
        let state = &mut self.warps[warp as usize];
        if all {
            (state.known, state.apart) = (known, None);
        } else {
            active(lanes).for_each(|lane| state.learn(lane, known.clone()));
        }
        self.tick(warp);
    }

    /// What lanes of a warp know and did.
    fn together(&mut self, warp: u32, lanes: u32) -> Known {
        let state = &self.warps[warp as usize];
        let mut known = Known::clone(state.known(lanes.trailing_zeros() as usize % LANES));
        if state.apart.is_some() {
            self.work += active(lanes).map(|lane| known.join(state.known(lane))).sum::<u64>();
        }
        known.raise(warp as usize, lanes, state.clock.saturating_add(1));
        known
    }

    /// A fence of lanes of a warp: they receive what they have seen, and what they do from now on publishes what they know.
    pub(super) fn fence(&mut self, warp: u32, lanes: u32, sync: Sync) {
        let below = self.clock(warp).saturating_add(1);
        for lane in active(lanes) {
            if sync.acquires() && self.warps[warp as usize].lanes.is_some() {
                let prepared = self.warps[warp as usize].lane(lane);
                let mut seen = std::mem::take(&mut prepared.seen);
                for Seen { news, .. } in &mut seen {
                    self.receive(warp, lane, news, sync.is_device_wide());
                }
                seen.retain(|seen| seen.news.far.is_some());
                self.warps[warp as usize].lane(lane).seen = seen;
            }
            if sync.releases() {
                let known = self.warps[warp as usize].known(lane).clone();
                let prepared = self.warps[warp as usize].lane(lane);
                prepared.near = Some(Snapshot { known, below });
                if sync.is_device_wide() {
                    prepared.far = prepared.near.clone();
                }
            }
        }
        self.tick(warp);
    }

    /// A thread learns what is for its block, and with a scope that is wider what is for others: that is taken out.
    fn receive(&mut self, warp: u32, lane: usize, news: &mut News, device: bool) {
        let far = if device { news.far.take() } else { None };
        for news in [news.near.take(), far].into_iter().flatten() {
            let state = &mut self.warps[warp as usize];
            let known = state.known(lane);
            let learnt = match &self.joined {
                Some([a, b, both]) if Rc::ptr_eq(a, known) && Rc::ptr_eq(b, &news) => both.clone(),
                _ => {
                    let mut both = Known::clone(known);
                    self.work += 8 + both.join(&news);
                    let both = Rc::new(both);
                    self.joined = Some([known.clone(), news, both.clone()]);
                    both
                }
            };
            state.learn(lane, learnt);
        }
    }

    /// A strong read of a place that holds this message, if it holds one.
    pub(super) fn read(&mut self, message: Option<&Message>, by: Strong) {
        let Strong { warp, lane, sync, at, .. } = by;
        let message = message.filter(|message| message.reaches(self.block, by));
        let mut news = message.map(|message| message.news(self.block, &mut self.work));
        if sync.acquires() {
            // What it has read there before is received too.
            let before = self.warps[warp as usize].lanes.as_mut().map(|lanes| &mut lanes[lane].seen);
            let before: Vec<Seen> =
                before.into_iter().flat_map(|seen| seen.extract_if(.., |seen| seen.at == at)).collect();
            for mut seen in before {
                self.receive(warp, lane, &mut seen.news, sync.is_device_wide());
                self.keep(seen, warp, lane);
            }
            if let Some(news) = &mut news {
                self.receive(warp, lane, news, sync.is_device_wide());
            }
        }
        if let Some(news) = news.filter(|_| !sync.is_reduction()) {
            self.keep(Seen { at, news }, warp, lane);
        }
    }

    /// Keeps for a later fence what a thread has seen.
    fn keep(&mut self, seen: Seen, warp: u32, lane: usize) {
        if seen.news.near.is_none() && seen.news.far.is_none() {
            return;
        }
        let all = &mut self.warps[warp as usize].lane(lane).seen;
        let is_apart = all.len() < PLACES_SEEN || all.iter().any(|before| before.at == seen.at);
        let at = if is_apart { seen.at } else { ELSEWHERE };
        match all.iter_mut().find(|before| before.at == at) {
            Some(before) => self.work += before.news.add(&seen.news),
            None => all.push(Seen { at, ..seen }),
        }
    }

    /// A strong write to a place of these messages; `update` where it has read what was there at once.
    pub(super) fn write(&mut self, messages: &mut HashMap<u64, Message>, by: Strong, update: bool) {
        let place = by.at.1;
        let (mut news, released) = self.published(by);
        if messages.is_empty() && news.is_empty() {
            return;
        }
        let mut message = messages.remove(&place).unwrap_or_else(|| Message {
            block: self.block,
            device: by.sync.is_device_wide(),
            width: by.width,
            news: News::default(),
            releases: Vec::new(),
        });
        if update && message.reaches(self.block, by) {
            let told = message.news(self.block, &mut self.work);
            self.work += news.add(&told);
        }
        if message.block != self.block {
            message.releases.clear();
        }
        let thread = by.warp * LANES as u32 + by.lane as u32;
        let mut own = message.releases.iter_mut().find(|(other, _)| *other == thread);
        if let Some((_, before)) = &mut own {
            self.work += news.add(before);
        }
        match (released, own) {
            (Some(released), Some((_, before))) => self.work += before.add(&released),
            (Some(released), None) => message.releases.push((thread, released)),
            (None, _) => {}
        }
        (message.block, message.device, message.width) = (self.block, by.sync.is_device_wide(), by.width);
        message.news = news;
        if !message.news.is_empty() || !message.releases.is_empty() {
            messages.insert(place, message);
        }
    }

    /// What a strong write of a thread publishes: what its fences have prepared, and if it is a release what the thread knows
    /// now; that again alone.
    fn published(&mut self, by: Strong) -> (News, Option<News>) {
        let Strong { warp, lane, sync, .. } = by;
        let state = &self.warps[warp as usize];
        let told = |Snapshot { known, below }: &Snapshot| {
            let mut known = Known::clone(known);
            known.raise(warp as usize, 1 << lane, *below);
            Rc::new(known)
        };
        let mut news = News::default();
        if let Some(prepared) = state.lanes.as_ref().map(|lanes| &lanes[lane]) {
            news = News { near: prepared.near.as_ref().map(told), far: prepared.far.as_ref().map(told) };
        }
        let mut released = None;
        if sync.releases() {
            let now = told(&Snapshot { known: state.known(lane).clone(), below: state.clock });
            let far = sync.is_device_wide().then(|| now.clone());
            let of_now = News { near: Some(now), far };
            self.work += news.add(&of_now);
            released = Some(of_now);
        }
        if news.far.is_some() {
            let word = self.block as usize / 64;
            if self.publishing.len() <= word {
                self.publishing.resize(word + 1, 0);
            }
            self.publishing[word] |= 1 << (self.block % 64);
        }
        (news, released)
    }
}

impl Warp {
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

impl News {
    fn is_empty(&self) -> bool {
        self.near.is_none() && self.far.is_none()
    }

    /// Adds what others have published: the work of it.
    fn add(&mut self, other: &News) -> u64 {
        let mut work = 0;
        for (own, other) in [(&mut self.near, &other.near), (&mut self.far, &other.far)] {
            match (own, other) {
                (Some(own), Some(other)) if !Rc::ptr_eq(own, other) => work += 4 + Rc::make_mut(own).join(other),
                (own @ None, Some(other)) => *own = Some(other.clone()),
                _ => {}
            }
        }
        work
    }
}

impl Message {
    /// Whether a strong access that reads what this was written with sees it, for that both must be strong for each other.
    fn reaches(&self, block: u32, by: Strong) -> bool {
        self.width == by.width && (self.block == block || self.device && by.sync.is_device_wide())
    }

    /// What it tells a thread of a block. Adds the work of it to `work`.
    fn news(&self, block: u32, work: &mut u64) -> News {
        if self.block == block {
            return self.news.clone();
        }
        let moved = |far: &Rc<Known>| {
            let (far, of_it) = far.moved(self.block, block);
            *work += of_it;
            Rc::new(far)
        };
        News { near: None, far: self.news.far.as_ref().map(moved) }
    }
}

/// The lanes of a mask.
fn active(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::super::entry::Deed;
    use super::*;

    fn entry(warp: u32, lane: usize, clock: u32) -> Entry {
        Entry::new(0, warp, lane, Deed::new(0, true, Sync::default(), 4), clock)
    }

    #[test]
    fn barriers_of_some_warps_order_those_and_whom_they_followed() {
        let mut order = Order::new(3);
        order.begin(0);
        let follows = |order: &Order, later: u32, earlier: Entry| order.now(later, 5).follows(earlier);
        order.barrier(1, &[0, 1], &[]);
        assert!(follows(&order, 1, entry(0, 5, 0)) && follows(&order, 0, entry(1, 7, 0)));
        assert!(!follows(&order, 2, entry(0, 5, 0)), "it was not there");
        assert!(!follows(&order, 1, entry(0, 5, 1)), "what came after the barrier");
        order.barrier(2, &[1, 2], &[]);
        assert!(follows(&order, 2, entry(0, 5, 0)), "by way of warp 1");
        assert!(!follows(&order, 2, entry(0, 5, 1)) && !follows(&order, 0, entry(2, 5, 0)));
        order.begin(0);
        assert!(!follows(&order, 1, entry(0, 5, 0)));
    }

    #[test]
    fn lanes_follow_those_whom_they_waited_for() {
        let mut order = Order::new(1);
        order.begin(0);
        order.warp_barrier(0, 0b11, false);
        assert!(order.now(0, 1).follows(entry(0, 0, 0)) && !order.now(0, 2).follows(entry(0, 0, 0)));
        assert!(!order.now(0, 1).follows(entry(0, 2, 0)) && order.now(0, 2).follows(entry(0, 2, 9)), "itself");
        assert_eq!(order.now(0, 1).stranger(entry(0, 0, 0).and(entry(0, 2, 0))), 2);
    }

    #[test]
    fn a_clock_that_comes_to_its_end_is_told_of() {
        let mut order = Order::new(1);
        order.begin(0);
        order.warps[0].clock = u32::MAX - 2;
        order.tick(0);
        assert!(!order.is_exhausted());
        order.tick(0);
        assert!(order.is_exhausted());
    }
}
