//! The earlier accesses to some memory, for comparison with later ones.

use super::entry::Entry;
use super::order::{Messages, Now};
use crate::gpu::mem::filled;

/// Places in a leaf of a shadow.
const LEAF: usize = 16;
/// Leaves in a node.
const NODE: usize = 64;
/// The number of accesses kept at a place from blocks that have ended and published something, and
/// the number kept from before a strong write. It is also the number of accesses beyond which one
/// read of each running block is enough.
const LIMITED: usize = 64;
/// The number of accesses kept at a place in all. A thread appears among the loads only once for
/// each instruction, so this is many times more than the threads of a block need together.
const MEMBERS: usize = 2048;

/// An entry for each place of some memory, in a tree. Memory that is never accessed takes almost no
/// space, because a kernel may step through memory by columns, and many launches of it may follow.
#[derive(Debug)]
struct Places {
    /// The number of places.
    count: usize,
    /// The node for each range of places. As in a node, index 0 is the first one, which always
    /// stays empty.
    roots: Vec<u32>,
    /// The leaf for each range of places.
    nodes: Vec<[u32; NODE]>,
    leaves: Vec<[Entry; LEAF]>,
    /// The last leaf that was used: the number that its places share, and its index.
    last: (usize, usize),
    /// True if the host had no memory for some entry.
    lossy: bool,
}

impl Places {
    fn new(count: usize) -> Self {
        let (roots, nodes, leaves) = (Vec::new(), Vec::new(), Vec::new());
        Self { count, roots, nodes, leaves, last: (usize::MAX, 0), lossy: false }
    }

    #[inline]
    fn get(&self, place: usize) -> Entry {
        if place / LEAF == self.last.0 {
            return self.leaves[self.last.1][place % LEAF];
        }
        let Some(&node) = self.roots.get(place / (LEAF * NODE)) else { return Entry::default() };
        let leaf = self.nodes[node as usize][place / LEAF % NODE];
        self.leaves[leaf as usize][place % LEAF]
    }

    /// The entry of a place, for a change; `None` if the host has too little memory.
    #[inline]
    fn entry(&mut self, place: usize) -> Option<&mut Entry> {
        if place / LEAF != self.last.0 {
            let Some(leaf) = self.leaf(place) else {
                self.lossy = true;
                return None;
            };
            self.last = (place / LEAF, leaf);
        }
        Some(&mut self.leaves[self.last.1][place % LEAF])
    }

    /// The leaf of a place, which it creates if needed; `None` if the host has too little memory.
    fn leaf(&mut self, place: usize) -> Option<usize> {
        if self.roots.is_empty() {
            let roots = filled(self.count.div_ceil(LEAF * NODE), || 0)?;
            added(&mut self.nodes, [0; NODE])?;
            added(&mut self.leaves, [Entry::default(); LEAF])?;
            self.roots = roots;
        }
        let node = &mut self.roots[place / (LEAF * NODE)];
        if *node == 0 {
            *node = added(&mut self.nodes, [0; NODE])?;
        }
        let leaf = &mut self.nodes[*node as usize][place / LEAF % NODE];
        if *leaf == 0 {
            *leaf = added(&mut self.leaves, [Entry::default(); LEAF])?;
        }
        Some(*leaf as usize)
    }
}

/// Adds an item to a list and returns its index; `None` if the host has too little memory.
fn added<T>(list: &mut Vec<T>, item: T) -> Option<u32> {
    list.try_reserve(1).ok()?;
    list.push(item);
    Some(list.len() as u32 - 1)
}

/// The accesses to the places of some memory.
#[derive(Debug)]
pub(super) struct Shadow {
    /// The last plain write.
    writes: Places,
    /// Later accesses that do not race with each other: loads, and strong accesses. An entry holds
    /// one of them, or refers to a list of several.
    crowds: Places,
    lists: Vec<Crowd>,
    /// The lists that no place uses.
    free: Vec<u32>,
    /// The knowledge that the last strong writes pass on.
    pub(super) messages: Messages,
    /// The number of accesses that others were compared with since the last call of `take_work`.
    visits: u64,
}

/// Accesses to one place, in the order of the run.
#[derive(Debug, Default)]
struct Crowd {
    /// The number of the last strong write that was not an update. Updates pass on its value,
    /// changed.
    chain: u32,
    members: Vec<Member>,
}

/// An access, and the write whose value it read, updated or stored.
#[derive(Debug, Clone, Copy)]
struct Member {
    entry: Entry,
    chain: u32,
}

/// The number of recent accesses in which a place looks for a repeated one.
const RECENT: usize = 8;
/// A number that belongs to no write.
const NO_CHAIN: u32 = u32::MAX;

/// An access that is compared with the earlier ones and then kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Newcomer<'a> {
    pub(super) entry: Entry,
    /// True if it has atomically read the value that it overwrites.
    pub(super) update: bool,
    pub(super) now: Now<'a>,
    /// True if accesses of other blocks are ignored, because the memory belongs to the block alone.
    pub(super) alone: bool,
    /// True if the kernel has strong accesses in the scope of a block.
    pub(super) narrow: bool,
}

impl Newcomer<'_> {
    #[inline]
    fn kept(&self, entry: Entry) -> Entry {
        if self.alone && entry.block() != self.entry.block() { Entry::default() } else { entry }
    }

    #[inline]
    fn replaces(&self, earlier: Entry) -> bool {
        self.entry.replaces(earlier, self.narrow)
    }

    /// Returns whether other threads may see it, and so come after it without coming after the
    /// accesses before it.
    #[inline]
    fn may_be_seen(&self) -> bool {
        self.entry.writes() && self.entry.is_strong()
    }

    /// Returns whether it races with an earlier access, if it has not seen that access's value.
    #[inline]
    fn races(&self, earlier: Entry) -> bool {
        earlier.conflicts(self.entry) && !self.now.follows(earlier)
    }
}

impl Shadow {
    pub(super) fn new(places: usize, messages: Messages) -> Self {
        let (writes, crowds) = (Places::new(places), Places::new(places));
        Self { writes, crowds, lists: Vec::new(), free: Vec::new(), messages, visits: 0 }
    }

    /// Makes a shadow of the same size, for the same kind of memory of another block.
    pub(super) fn another(&self) -> Self {
        Self::new(self.writes.count, self.messages.another())
    }

    pub(super) fn is_lossy(&self) -> bool {
        self.writes.lossy || self.crowds.lossy
    }

    /// Returns the work of comparing accesses since the last call: two comparisons take a unit.
    pub(super) fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.visits) / 2
    }

    /// Notes that another block begins, if this is the shared memory of a block.
    pub(super) fn begin(&mut self) {
        self.lists.clear();
        self.free.clear();
    }

    /// Compares an access with the earlier ones and keeps it; returns the access that it races
    /// with. `changes`: whether it is something other than a plain write of the value that is
    /// already there.
    #[inline]
    pub(super) fn meet(&mut self, place: usize, new: Newcomer, changes: impl Fn() -> bool) -> Option<Entry> {
        if new.entry.writes() && !new.entry.is_strong() {
            return self.write(place, new, changes);
        }
        let write = new.kept(self.writes.get(place));
        let races = !write.is_none() && new.races(write) && (!new.entry.writes() || changes());
        let rival = if races { Some(write) } else { None };
        let crowd = self.crowds.entry(place)?;
        let before = new.kept(*crowd);
        if before.is_none() {
            *crowd = new.entry;
            return rival;
        }
        if before.as_list().is_some_and(|list| self.lists[list].has_again(new)) {
            return rival;
        }
        let among = self.rival(before, new, changes);
        self.join(place, new, before);
        rival.or(among)
    }

    /// Compares and keeps a plain write. It comes after all other accesses, or races with them.
    #[inline]
    fn write(&mut self, place: usize, new: Newcomer, changes: impl Fn() -> bool) -> Option<Entry> {
        let write = self.writes.entry(place)?;
        let before = new.kept(*write);
        *write = new.entry;
        let races = !before.is_none() && new.races(before) && changes();
        let rival = if races { Some(before) } else { None };
        let crowd = new.kept(self.crowds.get(place));
        if crowd.is_none() {
            return rival;
        }
        let among = self.rival(crowd, new, changes);
        if let Some(list) = crowd.as_list() {
            self.give_back(list);
        }
        self.keep(place, Entry::default());
        if !self.messages.is_empty() {
            self.messages.remove(place as u64);
        }
        rival.or(among)
    }

    /// Compares an access with the earlier ones and does not keep it.
    pub(super) fn peek(&mut self, place: usize, new: Newcomer) -> Option<Entry> {
        let write = new.kept(self.writes.get(place));
        if !write.is_none() && new.races(write) {
            return Some(write);
        }
        let crowd = new.kept(self.crowds.get(place));
        if crowd.is_none() { None } else { self.rival(crowd, new, || true) }
    }

    /// Forgets the accesses to a place.
    pub(super) fn forget(&mut self, place: usize) {
        if !self.writes.get(place).is_none()
            && let Some(write) = self.writes.entry(place)
        {
            *write = Entry::default();
        }
        let crowd = self.crowds.get(place);
        if !crowd.is_none() {
            if let Some(list) = crowd.as_list() {
                self.give_back(list);
            }
            self.keep(place, Entry::default());
        }
        if !self.messages.is_empty() {
            self.messages.remove(place as u64);
        }
    }

    /// Finds the access of a crowd that the new access races with.
    fn rival(&mut self, crowd: Entry, new: Newcomer, changes: impl Fn() -> bool) -> Option<Entry> {
        match crowd.as_list() {
            Some(list) => {
                let (rival, visits) = self.lists[list].rival(new, changes);
                self.visits += visits;
                rival
            }
            None if new.races(crowd) && (!crowd.writes() || changes()) => Some(crowd),
            None => None,
        }
    }

    fn keep(&mut self, place: usize, crowd: Entry) {
        if let Some(entry) = self.crowds.entry(place) {
            *entry = crowd;
        }
    }

    fn join(&mut self, place: usize, new: Newcomer, crowd: Entry) {
        let kept = match crowd.as_list() {
            Some(list) => return self.join_list(place, new, list),
            None if crowd.is_with(new.entry) && !crowd.writes() => crowd.and(new.entry),
            None => {
                let seen = new.update && crowd.writes() && crowd.may_meet(new.entry);
                if new.replaces(crowd) && (seen || !new.may_be_seen() && new.now.follows(crowd)) {
                    new.entry
                } else if new.now.is_forever(crowd) && crowd.covers(new.entry) {
                    return;
                } else {
                    let list = self.take();
                    self.lists[list].members.push(Member { entry: crowd, chain: 0 });
                    self.visits += self.lists[list].join(new);
                    Entry::list(new.entry.block(), list as u32)
                }
            }
        };
        self.keep(place, kept);
    }

    fn join_list(&mut self, place: usize, new: Newcomer, list: usize) {
        self.visits += self.lists[list].join(new);
        // A list of one member that belongs to the chain is equivalent to that member.
        let kept = match self.lists[list].members[..] {
            [Member { entry, chain }] if chain == self.lists[list].chain || !entry.is_strong() => {
                self.give_back(list);
                entry
            }
            _ => Entry::list(new.entry.block(), list as u32),
        };
        self.keep(place, kept);
    }

    /// Returns an empty list.
    fn take(&mut self) -> usize {
        if let Some(list) = self.free.pop() {
            return list as usize;
        }
        self.lists.push(Crowd::default());
        self.lists.len() - 1
    }

    fn give_back(&mut self, list: usize) {
        self.lists[list] = Crowd::default();
        self.free.push(list as u32);
    }
}

impl Crowd {
    /// Returns whether the newcomer is a read that is already here, with only reads after it, as a
    /// waiting thread makes them.
    fn has_again(&self, new: Newcomer) -> bool {
        let since = self.members.iter().rev().take(RECENT).take_while(|member| !member.entry.writes());
        let is_same = |member: &Member| member.entry.is_with(new.entry) && new.entry.lanes & !member.entry.lanes == 0;
        !new.entry.writes() && since.into_iter().any(is_same)
    }

    /// Finds the first member that the newcomer races with; also returns the number of members
    /// inspected.
    fn rival(&self, new: Newcomer, changes: impl Fn() -> bool) -> (Option<Entry>, u64) {
        let mut visits = self.members.len();
        let races = |&(index, member): &(usize, &Member)| {
            new.races(member.entry) && {
                visits += self.members.len() - index;
                !self.is_seen(index, new) && (!member.entry.writes() || changes())
            }
        };
        let rival = self.members.iter().enumerate().find(races).map(|(_, member)| member.entry);
        (rival, visits as u64)
    }

    /// Returns whether the newcomer comes after a read that has seen the strong write at this
    /// index. Such a write comes before everything after that read, although the earlier accesses
    /// of its thread do not.
    fn is_seen(&self, index: usize, new: Newcomer) -> bool {
        let Member { entry, chain } = self.members[index];
        let saw = |other: &Member| other.entry.is_strong() && other.chain == chain && new.now.follows_some(other.entry);
        entry.writes() && chain != NO_CHAIN && self.members[index + 1..].iter().any(saw)
    }

    /// Adds the newcomer; returns the number of members inspected.
    fn join(&mut self, new: Newcomer) -> u64 {
        let chain = self.chain_of(new);
        let mut visits = 3 * self.members.len() as u64;
        self.outdate(new);
        // A strong read is not the same as an earlier one if a write came in between.
        let since = match new.entry.is_strong() {
            true => self.members.iter().rposition(|member| member.entry.writes()).map_or(0, |last| last + 1),
            false => 0,
        };
        let same = |member: &&mut Member| member.entry.is_with(new.entry) && member.chain == chain;
        if let Some(same) = self.members[since..].iter_mut().find(same) {
            same.entry = same.entry.and(new.entry);
            return visits;
        }
        visits += self.forget(new, chain);
        let witness = self.last_write(self.members.len(), new.entry, chain).is_some();
        if witness || !self.members.iter().any(|other| new.now.is_forever(other.entry) && other.entry.covers(new.entry))
        {
            self.members.push(Member { entry: new.entry, chain });
        }
        visits
    }

    /// Removes a thread from those of its earlier loads that its new access makes redundant:
    /// whatever comes after the new access comes after them. A list therefore has a thread once for
    /// each kind of load, however often it loads.
    fn outdate(&mut self, new: Newcomer) {
        if new.may_be_seen() {
            return;
        }
        for Member { entry, .. } in &mut self.members {
            let is_own = entry.is_of_warp_of(new.entry) && entry.clock != new.entry.clock;
            if is_own && !entry.is_strong() && new.replaces(*entry) {
                entry.lanes &= !new.entry.lanes;
            }
        }
        self.members.retain(|member| member.entry.lanes != 0);
    }

    /// The number of the write whose value the newcomer reads, updates or stores.
    fn chain_of(&mut self, new: Newcomer) -> u32 {
        if !new.entry.is_strong() {
            return NO_CHAIN;
        }
        let last = self.members.iter().rfind(|member| member.entry.writes() && member.chain == self.chain);
        let sees = last.is_none_or(|last| last.entry.may_meet(new.entry));
        match (new.entry.writes(), sees) {
            (false, true) => self.chain,
            (false, false) => NO_CHAIN,
            (true, true) if new.update => self.chain,
            (true, _) => {
                self.chain += 1;
                self.chain
            }
        }
    }

    /// Drops the members that no later access needs a comparison with. Some members that a later
    /// access might need can be very numerous; the oldest of those go as well. Returns the number
    /// of members inspected.
    fn forget(&mut self, new: Newcomer, chain: u32) -> u64 {
        let mut visits = 4 * self.members.len();
        let follows = |entry: Entry| new.replaces(entry) && new.now.follows(entry);
        let is_limited = |entry: Entry| match new.now.is_of_another_block(entry) {
            true => !new.now.is_forever(entry) && !new.now.is_plain_read_of_running(entry),
            false => new.may_be_seen() && follows(entry),
        };
        if self.members.len() > LIMITED {
            visits += self.thin(new);
        }
        let limited = self.members.iter().filter(|member| is_limited(member.entry)).count();
        let mut excess = limited.saturating_sub(LIMITED);
        let mut forever: Option<Entry> = None;
        let mut index = 0;
        while index < self.members.len() {
            let Member { entry, chain: of } = self.members[index];
            let seen = new.update && entry.writes() && of == chain && new.replaces(entry);
            let replaced = seen || !new.may_be_seen() && follows(entry);
            let gone = replaced || forever.is_some_and(|forever| forever.covers(entry));
            let oldest = excess > 0 && is_limited(entry) || self.members.len() > MEMBERS;
            visits += if gone { index } else { 0 };
            if oldest || gone && !self.is_witness(index) {
                excess = excess.saturating_sub(usize::from(oldest));
                visits += self.members.len() - index;
                self.members.remove(index);
                continue;
            }
            if new.now.is_forever(entry) {
                forever = Some(entry);
            }
            index += 1;
        }
        visits as u64
    }

    /// Keeps one plain read of each other running block, if there are many: such reads mostly
    /// become ordered together. Returns the number of members inspected.
    fn thin(&mut self, new: Newcomer) -> usize {
        let before = self.members.len();
        let mut last: Option<Entry> = None;
        self.members.retain(|&Member { entry, .. }| {
            let is_other = new.now.is_of_another_block(entry) && new.now.is_plain_read_of_running(entry);
            let again = is_other && last.is_some_and(|last| last.block() == entry.block() && last.covers(entry));
            if is_other && !again {
                last = Some(entry);
            }
            !again
        });
        before
    }

    /// Returns whether a strong access has seen a write that is still kept, and no earlier access
    /// shows the same.
    fn is_witness(&self, index: usize) -> bool {
        let Member { entry, chain } = self.members[index];
        let Some(last) = self.last_write(index, entry, chain) else { return false };
        let tells = |other: &Member| {
            other.entry.is_strong() && other.chain == chain && other.entry.is_of_warp_of(entry) && {
                entry.lanes & !other.entry.lanes == 0
            }
        };
        !self.members[last + 1..index].iter().any(tells)
    }

    /// The last write before this index that an entry of this chain has seen.
    fn last_write(&self, index: usize, entry: Entry, chain: u32) -> Option<usize> {
        let wrote = |other: &Member| other.entry.writes() && other.chain == chain;
        if entry.is_strong() && chain != NO_CHAIN { self.members[..index].iter().rposition(wrote) } else { None }
    }
}

#[cfg(test)]
mod tests;
