//! The knowledge that strong writes publish, and that strong reads and fences receive.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use super::{Known, Order, Told};
use crate::gpu::modifiers::Sync;
use crate::gpu::vocabulary::lanes_of;

/// The number of places for which a thread remembers its strong reads separately until its next
/// fence, and the number of places for which it remembers its releases.
const PLACES_SEEN: usize = 64;
/// The stand-in for all further places, which a thread remembers together. No real place has this
/// location.
const ELSEWHERE: Location = (u64::MAX, u64::MAX);
/// The number of places, in all memory together, for which racecheck follows what threads publish.
/// Each takes up to about 1 KiB.
const MAX_PUBLISHED: usize = 1 << 19;

/// A place that receives strong writes: the base of the memory, and the place in it.
type Location = (u64, u64);

/// The half of a synchronisation that a thread has begun, which another access or a fence may
/// complete.
#[derive(Debug, Default, Clone)]
pub(super) struct Lane {
    /// The snapshot that its last fence would publish within the block.
    near: Option<Snapshot>,
    /// The snapshot that its last fence of a wider scope would publish.
    far: Option<Snapshot>,
    /// The knowledge that its strong reads have seen since the last fence, and that a fence
    /// receives.
    seen: Vec<(Location, News)>,
    /// The snapshots that it has published by release operations. Each of its strong writes to the
    /// same place publishes them again.
    released: Vec<Released>,
}

/// The snapshots that a thread has published at a place by release operations: within the block,
/// and beyond it.
#[derive(Debug, Clone)]
struct Released {
    at: Location,
    near: Snapshot,
    far: Option<Snapshot>,
}

/// The knowledge of a thread at some time, and its own clock then.
#[derive(Debug, Clone)]
struct Snapshot {
    known: Rc<Known>,
    below: u32,
}

/// Published knowledge: for threads of the block, and for those of other blocks.
#[derive(Debug, Clone, Default)]
struct News {
    near: Option<Rc<Known>>,
    far: Option<Rc<Known>>,
}

/// The knowledge that the strong write at a place passes on: its own, and that of the writes whose
/// value it has updated.
#[derive(Debug)]
pub(in super::super) struct Message {
    /// The last write: its block, whether its scope is wider than the block, and its width in
    /// bytes.
    block: u32,
    device: bool,
    width: u8,
    news: News,
}

/// The messages at the places of some memory.
#[derive(Debug)]
pub(in super::super) struct Messages {
    by_place: HashMap<u64, Message>,
    /// The number of messages in all memory.
    count: Rc<Cell<usize>>,
}

impl Messages {
    pub(in super::super) fn new() -> Self {
        Self { by_place: HashMap::new(), count: Rc::default() }
    }

    /// Makes the messages of other memory of the same launch.
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

    /// Sets the message at a place; returns false if there are too many.
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
    /// Executes a fence in lanes of a warp: they receive what they have seen, and their later
    /// writes publish what they know now.
    pub(crate) fn fence(&mut self, warp: u32, lanes: u32, sync: Sync) {
        let below = self.clock(warp).saturating_add(1);
        for lane in lanes_of(lanes) {
            if sync.acquires() && self.warps[warp as usize].lanes.is_some() {
                let prepared = self.warps[warp as usize].lane(lane);
                let mut seen = std::mem::take(&mut prepared.seen);
                for (_, news) in &mut seen {
                    self.receive(warp, lane, news, sync.is_device_wide());
                }
                seen.retain(|(_, news)| news.far.is_some());
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

    /// Adds the news for its own block to a thread's knowledge, and with a wider scope also the
    /// news for other blocks. Received news is taken out.
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

    /// Adds what another thread has told to a thread's knowledge.
    pub(in super::super) fn learn(&mut self, warp: u32, lane: usize, told: &Told) {
        let known = match told.block == self.block {
            true => told.known.clone(),
            false => {
                let (known, work) = told.known.moved(told.block, self.block);
                self.work += work;
                Rc::new(known)
            }
        };
        self.receive(warp, lane, &mut News { near: Some(known), far: None }, false);
    }

    /// Follows a strong read of a place that holds this message, if there is one.
    pub(in super::super) fn read(&mut self, message: Option<&Message>, by: Strong) {
        let Strong { warp, lane, sync, at, .. } = by;
        let message = message.filter(|message| message.reaches(self.block, by));
        let mut news = message.map(|message| self.news(message));
        if sync.acquires() {
            // An acquire also receives what earlier strong reads saw at this place.
            let before = self.warps[warp as usize].lanes.as_mut().map(|lanes| &mut lanes[lane].seen);
            let before: Vec<_> = before.into_iter().flat_map(|seen| seen.extract_if(.., |seen| seen.0 == at)).collect();
            for (_, mut news) in before {
                self.receive(warp, lane, &mut news, sync.is_device_wide());
                self.keep(at, news, warp, lane);
            }
            if let Some(news) = &mut news {
                self.receive(warp, lane, news, sync.is_device_wide());
            }
        }
        if let Some(news) = news.filter(|_| !sync.is_reduction()) {
            self.keep(at, news, warp, lane);
        }
    }

    /// The news in a message for a thread of the running block.
    fn news(&mut self, message: &Message) -> News {
        if message.block == self.block {
            return message.news.clone();
        }
        let Some(far) = &message.news.far else { return News::default() };
        let (from, to) = (message.block, self.block);
        let known = match &self.moved {
            Some([before, after]) if (before.0, after.0) == (from, to) && Rc::ptr_eq(&before.1, far) => after.1.clone(),
            _ => {
                let (known, work) = far.moved(from, to);
                self.work += work;
                let known = Rc::new(known);
                self.moved = Some([(from, far.clone()), (to, known.clone())]);
                known
            }
        };
        News { near: None, far: Some(known) }
    }

    /// Keeps what a thread has seen for a later fence.
    fn keep(&mut self, at: Location, news: News, warp: u32, lane: usize) {
        if news.is_empty() {
            return;
        }
        let all = &mut self.warps[warp as usize].lane(lane).seen;
        let is_apart = all.len() < PLACES_SEEN || all.iter().any(|before| before.0 == at);
        let at = if is_apart { at } else { ELSEWHERE };
        match all.iter_mut().find(|before| before.0 == at) {
            Some((_, before)) => self.work += before.add(&news),
            None => all.push((at, news)),
        }
    }

    /// Follows a strong write to a place of these messages. `update`: whether it has atomically
    /// read the old value.
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

    /// The news that a strong write of a thread publishes: the snapshot of its last fence, the
    /// snapshots that it has released at the place, and for a release the thread's knowledge now. A
    /// thread's knowledge only grows, so the latest snapshot contains the others.
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
}

impl Snapshot {
    fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.known, &other.known) && self.below == other.below
    }
}

/// The later of two snapshots of a thread.
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

    /// Adds the news of others; returns the work.
    fn add(&mut self, other: &News) -> u64 {
        if self.is_one() && other.is_one() {
            self.far = None;
            let work = add(&mut self.near, &other.near);
            self.far = self.near.clone();
            return work;
        }
        add(&mut self.near, &other.near) + add(&mut self.far, &other.far)
    }

    /// Returns whether the news is the same for threads of the block and for those of other blocks.
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
    /// Returns whether a strong access that reads this message's value receives the message: both
    /// must be strong for each other.
    fn reaches(&self, block: u32, by: Strong) -> bool {
        self.width == by.width && (self.block == block || self.device && by.sync.is_device_wide())
    }
}
