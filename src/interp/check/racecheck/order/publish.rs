//! What strong writes publish, and what strong reads and fences receive.

use std::collections::HashMap;
use std::rc::Rc;

use super::{Known, Order, active};
use crate::interp::exec::registers::LANES;
use crate::interp::modifiers::Sync;

/// Places whose strong reads a thread remembers apart until its next fence.
const PLACES_SEEN: usize = 64;
/// Where a thread remembers its strong reads of further places together, for its next fence: no place is there.
const ELSEWHERE: Location = (u64::MAX, u64::MAX);
/// What strong writes publish at all places together, and what is published by release operations there: the writes that are
/// followed. Each takes up to 1 KiB or so.
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

/// What the strong write that a place holds passes on, its own and that of those whose value it has updated.
#[derive(Debug)]
pub(in super::super) struct Message {
    /// The last write's block, whether its scope is wider than that, and the bytes written.
    block: u32,
    device: bool,
    width: u8,
    news: News,
    /// What threads of running blocks have published by a release operation here: every strong write of theirs does so again. By
    /// block and thread.
    releases: Vec<((u32, u32), News)>,
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
    /// A fence of lanes of a warp: they receive what they have seen, and what they do from now on publishes what they know.
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
    pub(in super::super) fn read(&mut self, message: Option<&Message>, by: Strong) {
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
    pub(in super::super) fn write(&mut self, messages: &mut HashMap<u64, Message>, by: Strong, update: bool) {
        let place = by.at.1;
        let (mut news, released) = self.published(by);
        if messages.is_empty() && news.is_empty() {
            return;
        }
        let before = messages.remove(&place);
        self.kept -= before.as_ref().map_or(0, Message::kept);
        let mut message = before.unwrap_or_else(|| Message {
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
            message.releases.retain(|((block, _), _)| self.running.contains(block));
        }
        let thread = (self.block, by.warp * LANES as u32 + by.lane as u32);
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
        if message.news.is_empty() && message.releases.is_empty() {
            return;
        }
        if self.kept + message.kept() > MAX_PUBLISHED {
            self.overfull = true;
            return;
        }
        self.kept += message.kept();
        messages.insert(place, message);
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

    /// What was published at these places is nothing to anybody any more.
    pub(in super::super) fn forget(&mut self, messages: &mut HashMap<u64, Message>) {
        self.kept -= messages.drain().map(|(_, message)| message.kept()).sum::<usize>();
    }

    /// Whether more was published than can be kept.
    pub(in super::super) fn is_overfull(&self) -> bool {
        self.overfull
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

    /// How many writes it tells of.
    fn kept(&self) -> usize {
        self.releases.len().max(1)
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
