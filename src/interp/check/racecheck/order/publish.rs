//! What strong writes publish, and what strong reads and fences receive.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use super::{Known, Order, active};
use crate::interp::modifiers::Sync;

/// Places whose strong reads a thread remembers apart until its next fence, and places that it has
/// released at.
const PLACES_SEEN: usize = 64;
/// Where a thread remembers further places together: no place is there.
const ELSEWHERE: Location = (u64::MAX, u64::MAX);
/// Places at which racecheck follows what is published, in all memory together. Each takes up to 1
/// KiB or so.
const MAX_PUBLISHED: usize = 1 << 19;

/// A place that is written strongly: the memory's base and the place in it.
type Location = (u64, u64);

/// What a thread has begun that another access or a fence may complete.
#[derive(Debug, Default, Clone)]
pub(super) struct Lane {
    /// What its last fence would publish within the block.
    near: Option<Snapshot>,
    /// What its last fence of a wider scope would publish.
    far: Option<Snapshot>,
    /// What its strong reads have seen since the last fence.
    seen: Vec<Seen>,
    /// What it has published by release operations: every strong write of its to the same place
    /// does so again.
    released: Vec<Released>,
}

/// What a thread has published at a place by release operations: within the block, and beyond it.
#[derive(Debug, Clone)]
struct Released {
    at: Location,
    near: Snapshot,
    far: Option<Snapshot>,
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

/// What the strong write that a place holds passes on, its own and that of those whose value it has
/// updated.
#[derive(Debug)]
pub(in super::super) struct Message {
    /// The last write's block, whether its scope is wider than that, and the bytes written.
    block: u32,
    device: bool,
    width: u8,
    news: News,
}

/// The messages at the places of some memory.
#[derive(Debug)]
pub(in super::super) struct Messages {
    by_place: HashMap<u64, Message>,
    /// How many there are in all memory.
    count: Rc<Cell<usize>>,
}

/// What is known of a message by a thread of another block.
#[derive(Debug)]
pub(super) struct Moved {
    from: (u32, Rc<Known>),
    to: (u32, Rc<Known>),
}

impl Messages {
    pub(in super::super) fn new() -> Self {
        Self { by_place: HashMap::new(), count: Rc::default() }
    }

    /// For other memory of the same launch.
    pub(in super::super) fn another(&self) -> Self {
        Self { by_place: HashMap::new(), count: self.count.clone() }
    }

    #[inline]
    pub(in super::super) fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    pub(in super::super) fn get(&self, place: u64) -> Option<&Message> {
        self.by_place.get(&place)
    }

    pub(in super::super) fn remove(&mut self, place: u64) {
        let removed = usize::from(self.by_place.remove(&place).is_some());
        self.count.set(self.count.get() - removed);
    }

    pub(in super::super) fn clear(&mut self) {
        self.count.set(self.count.get() - self.by_place.len());
        self.by_place.clear();
    }

    /// Puts a message at a place, whether or not there is one; false where there are too many.
    fn put(&mut self, place: u64, message: Message) -> bool {
        self.remove(place);
        let count = self.count.get();
        if count == MAX_PUBLISHED {
            return false;
        }
        self.count.set(count + 1);
        self.by_place.insert(place, message);
        true
    }
}

/// A strong access of one thread.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Strong {
    pub(in super::super) warp: u32,
    pub(in super::super) lane: usize,
    pub(in super::super) sync: Sync,
    /// Bytes of the element.
    pub(in super::super) width: u8,
    pub(in super::super) at: Location,
}

impl Order {
    /// A fence of lanes of a warp: they receive what they have seen, and what they do from now on
    /// publishes what they know.
    pub(in super::super) fn fence(&mut self, warp: u32, lanes: u32, sync: Sync) {
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

    /// A thread learns what is for its block, and with a scope that is wider what is for others:
    /// that is taken out.
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
    pub(in super::super) fn read(&mut self, message: Option<&Message>, by: Strong) {
        let Strong { warp, lane, sync, at, .. } = by;
        let message = message.filter(|message| message.reaches(self.block, by));
        let mut news = message.map(|message| self.news(message));
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

    /// What a message tells a thread of the block.
    fn news(&mut self, message: &Message) -> News {
        if message.block == self.block {
            return message.news.clone();
        }
        let Some(far) = &message.news.far else { return News::default() };
        let is_last = |moved: &&Moved| {
            let (from, to) = (&moved.from, &moved.to);
            (from.0, to.0) == (message.block, self.block) && Rc::ptr_eq(&from.1, far)
        };
        let known = match self.moved.as_ref().filter(is_last) {
            Some(moved) => moved.to.1.clone(),
            None => {
                let (known, work) = far.moved(message.block, self.block);
                self.work += work;
                let known = Rc::new(known);
                let (from, to) = ((message.block, far.clone()), (self.block, known.clone()));
                self.moved = Some(Moved { from, to });
                known
            }
        };
        News { near: None, far: Some(known) }
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

    /// A strong write to a place of these messages; `update` where it has read what was there at
    /// once.
    pub(in super::super) fn write(&mut self, messages: &mut Messages, by: Strong, update: bool) {
        let place = by.at.1;
        let mut news = self.published(by);
        if messages.is_empty() && news.is_empty() {
            return;
        }
        let before = messages.get(place).filter(|before| update && before.reaches(self.block, by));
        if let Some(before) = before {
            let told = self.news(before);
            self.work += news.add(&told);
        }
        if news.is_empty() {
            return messages.remove(place);
        }
        let (block, device, width) = (self.block, by.sync.is_device_wide(), by.width);
        self.overfull |= !messages.put(place, Message { block, device, width, news });
    }

    /// What a strong write of a thread publishes: what its last fence has prepared, what it has
    /// released at the place, or if it is a release what the thread knows now. A thread knows ever
    /// more: the last one has all.
    fn published(&mut self, by: Strong) -> News {
        let Strong { warp, lane, sync, at, .. } = by;
        let state = &mut self.warps[warp as usize];
        if sync.releases() {
            let now = Snapshot { known: state.known(lane).clone(), below: state.clock };
            state.lane(lane).release(at, now, sync.is_device_wide());
        }
        let Some(prepared) = state.lanes.as_ref().map(|lanes| &lanes[lane]) else { return News::default() };
        let (mut near, mut far) = (prepared.near.as_ref(), prepared.far.as_ref());
        for released in prepared.released.iter().filter(|released| released.at == at || released.at == ELSEWHERE) {
            near = later(near, Some(&released.near));
            far = later(far, released.far.as_ref());
        }
        let told = |Snapshot { known, below }: &Snapshot| {
            let mut known = Known::clone(known);
            known.raise(warp as usize, 1 << lane, *below);
            Rc::new(known)
        };
        let is_one = near.zip(far).is_some_and(|(near, far)| near.is(far));
        let near = near.map(told);
        let far = if is_one { near.clone() } else { far.map(told) };
        if far.is_some() {
            self.publishing.insert(self.block);
        }
        News { near, far }
    }

    /// Whether more was published than can be kept.
    pub(in super::super) fn is_overfull(&self) -> bool {
        self.overfull
    }
}

impl Snapshot {
    fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.known, &other.known) && self.below == other.below
    }
}

/// The later one of two snapshots of a thread.
fn later<'a>(a: Option<&'a Snapshot>, b: Option<&'a Snapshot>) -> Option<&'a Snapshot> {
    a.into_iter().chain(b).max_by_key(|snapshot| snapshot.below)
}

impl Lane {
    /// Remembers a release operation.
    fn release(&mut self, at: Location, now: Snapshot, device: bool) {
        let all = &mut self.released;
        let is_apart = all.len() < PLACES_SEEN || all.iter().any(|before| before.at == at);
        let at = if is_apart { at } else { ELSEWHERE };
        let far = device.then(|| now.clone());
        match all.iter_mut().find(|before| before.at == at) {
            Some(before) => (before.near, before.far) = (now, far.or(before.far.take())),
            None => all.push(Released { at, near: now, far }),
        }
    }
}

impl News {
    fn is_empty(&self) -> bool {
        self.near.is_none() && self.far.is_none()
    }

    /// Adds what others have published: the work of it.
    fn add(&mut self, other: &News) -> u64 {
        if self.is_one() && other.is_one() {
            self.far = None;
            let work = add(&mut self.near, &other.near);
            self.far = self.near.clone();
            return work;
        }
        add(&mut self.near, &other.near) + add(&mut self.far, &other.far)
    }

    /// Whether it is the same for threads of the block and of others.
    fn is_one(&self) -> bool {
        match (&self.near, &self.far) {
            (Some(near), Some(far)) => Rc::ptr_eq(near, far),
            (near, far) => near.is_none() && far.is_none(),
        }
    }
}

fn add(own: &mut Option<Rc<Known>>, other: &Option<Rc<Known>>) -> u64 {
    match (own, other) {
        (Some(own), Some(other)) if !Rc::ptr_eq(own, other) => 4 + Rc::make_mut(own).join(other),
        (own @ None, Some(other)) => {
            *own = Some(other.clone());
            0
        }
        _ => 0,
    }
}

impl Message {
    /// Whether a strong access that reads what this was written with sees it, for that both must be
    /// strong for each other.
    fn reaches(&self, block: u32, by: Strong) -> bool {
        self.width == by.width && (self.block == block || self.device && by.sync.is_device_wide())
    }
}
