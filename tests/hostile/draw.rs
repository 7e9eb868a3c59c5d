//! Operands of random calls. A pointer is null or leads to memory that is there for ever, because
//! queued work uses it later. The words there are drawn, too: C lets a callee check them.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use warpstride::random::SplitMix64;

/// Bytes of the memory of the host that a thread copies from and to: more than any size of
/// [`Draw::bytes`] that an allocation can have.
const HOST_BYTES: usize = 80 << 10;
/// The most items of a list.
const MOST_LISTED: u64 = 8;
/// The most handles and addresses of a kind that are kept.
const MOST_KEPT: usize = 64;

/// Kernels that end, and a variable. `store` is launched with any address, and so it may fault.
const PTX: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.global .u64 variable;\n.global .attribute(.managed) .u32 managed;
    .visible .entry nothing(.param .u64 a, .param .u32 b) { ret; }
    .visible .entry store(.param .u64 a) {\n.reg .b64 %d<2>;\nld.param.u64 %d1, [a];\nst.global.u64 [%d1], %d1;\nret;\n}\0";
const IMAGES: [&str; 5] = [
    PTX,
    "\0",
    "garbage\0",
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { trap\0",
    "\x7fELF\0",
];
const NAMES: [&str; 9] = [
    "nothing\0",
    "nothing\0",
    "variable\0",
    "managed\0",
    "\0",
    "/nonexistent/file\0",
    "cuMemAlloc\0",
    "cuLaunchKernel\0",
    "store\0",
];

/// The handles and addresses that calls returned, by kind; the objects may have ended since.
pub(super) type Made = HashMap<&'static str, Vec<u64>>;

/// The operands of one thread.
pub(super) struct Draw {
    pub(super) random: SplitMix64,
    /// Those that this thread's calls returned, and those of them that no call has ended.
    own: Made,
    live: Made,
    /// Those of all threads; `None` in a fork, where another thread may hold the lock.
    pub(super) shared: Option<&'static Mutex<Made>>,
    host: u64,
    may_fault: bool,
    /// True if all pointers of the current call are null, so that its counts may be anything.
    is_null: bool,
    /// True if the current call is one that a program could make. Without such calls, most others
    /// would fail at their first check.
    is_likely: bool,
    last_length: u64,
    /// The places for results of the current call that become operands.
    results: Vec<(&'static str, *const u64)>,
}

extern "C" fn callback() {}

extern "C" fn shared_of(_block: i32) -> usize {
    0
}

/// Makes memory with these words, which stays for ever.
fn leaked(words: Vec<u64>) -> u64 {
    Box::leak(words.into_boxed_slice()).as_mut_ptr().expose_provenance() as u64
}

/// Shows an operand, with the words of a structure.
pub(super) fn shown(operand: u64, kind: &str) -> String {
    let is_structure = operand != 0 && ["copy", "params", "config"].iter().any(|part| kind.contains(part));
    if !is_structure || kind == "params" {
        return format!("{operand:#x}");
    }
    let words = std::ptr::with_exposed_provenance::<[u64; 7]>(operand as usize);
    // SAFETY: the shortest structure has two words, and `leaked` makes whole lines of eight.
    format!("{operand:#x} {:x?}", unsafe { words.read() })
}

impl Draw {
    pub(super) fn new(seed: u64, shared: &'static Mutex<Made>, may_fault: bool) -> Self {
        // It begins with a page.
        let host = leaked(vec![0; HOST_BYTES / 8 + 512]).next_multiple_of(4096);
        let (own, live, results) = (Made::new(), Made::new(), Vec::new());
        let (shared, random) = (Some(shared), SplitMix64(seed));
        Self { random, own, live, shared, host, may_fault, is_null: false, is_likely: false, last_length: 0, results }
    }

    /// Returns whether something unlikely is drawn.
    fn one_in(&mut self, count: u64) -> bool {
        !self.is_likely && self.random.below(count) == 0
    }

    fn pick(&mut self, list: &[u64]) -> u64 {
        list[self.random.below(list.len() as u64) as usize]
    }

    /// Draws the operands of a function by their kinds.
    pub(super) fn operands(&mut self, kinds: &[&'static str]) -> Vec<u64> {
        self.results.clear();
        self.is_likely = self.random.below(3) != 0;
        self.is_null = self.one_in(12);
        kinds.iter().map(|kind| self.operand(kind)).collect()
    }

    /// Keeps the results of a call that succeeded.
    pub(super) fn keep(&mut self) {
        for (kind, place) in std::mem::take(&mut self.results) {
            // SAFETY: the place is one of `leaked`.
            let value = unsafe { place.read() };
            let mut shared = self.shared.map(|shared| shared.lock().unwrap_or_else(PoisonError::into_inner));
            for made in [Some(&mut self.own), Some(&mut self.live), shared.as_deref_mut()].into_iter().flatten() {
                let kept = made.entry(kind).or_default();
                if kept.len() == MOST_KEPT {
                    kept.remove(0);
                }
                kept.push(value);
            }
        }
    }

    /// Notes that a call has ended an object.
    pub(super) fn end(&mut self, object: u64) {
        self.live.values_mut().for_each(|kept| kept.retain(|&kept| kept != object));
    }

    /// A handle or address of a kind, live or stale, or another number.
    fn made(&mut self, kind: &str) -> u64 {
        let drawn = self.random.draw() as usize;
        if self.is_likely {
            // Most programs use the last few that they made.
            let live = self.live.get(kind).map_or(&[][..], Vec::as_slice);
            return live.iter().rev().nth(drawn % 4).or(live.last()).copied().unwrap_or(0);
        }
        let newest = |kept: &Vec<u64>| match drawn % 3 {
            0 => kept[kept.len() - 1],
            _ => kept[drawn / 3 % kept.len()],
        };
        let found = match self.shared.filter(|_| drawn % 5 < 2) {
            Some(shared) => shared.lock().unwrap_or_else(PoisonError::into_inner).get(kind).map(newest),
            None => self.own.get(kind).map(newest),
        };
        match self.random.below(16) {
            0 => self.pick(&[0, 1, 2, 3, 0x57_0000_0008, u64::MAX, 1 << 63]),
            1 => {
                let other = ["context", "stream", "event", "graph", "node", "address"][drawn % 6];
                self.own.get(other).map_or(0, newest)
            }
            _ => found.unwrap_or(0),
        }
    }

    /// An address that the library knows or not, and does not follow unless it does.
    fn address(&mut self) -> u64 {
        let offsets = [0, 0, 0, 0, 1, 4, 250, 4096, 65536, 1 << 40, u64::MAX];
        let offset = self.pick(if self.is_likely { &offsets[..4] } else { &offsets });
        self.made("address").wrapping_add(offset)
    }

    /// An address where the library takes the host's, too, and follows any that a program can have.
    fn unified(&mut self) -> u64 {
        let address = self.address();
        if address < 1 << 47 { 0 } else { address }
    }

    /// A size: at most that of a thread's memory of the host, or more than any memory.
    fn bytes(&mut self) -> u64 {
        let sizes = [0, 1, 2, 4, 7, 8, 256, 4096, 65536, 1 << 33, 1 << 40, 1 << 63, u64::MAX - 7, u64::MAX];
        let rank = if self.one_in(4) { 0..sizes.len() } else { 0..9 };
        self.pick(&sizes[if self.is_likely { 3..7 } else { rank }])
    }

    fn number(&mut self) -> u64 {
        if self.one_in(8) {
            self.pick(&[u64::from(u32::MAX), 1 << 31, (1 << 31) - 1, 1 << 16, 1000, 255])
        } else {
            self.random.below(if self.is_likely { 4 } else { 20 })
        }
    }

    fn pointer(&mut self, words: impl FnOnce(&mut Self) -> Vec<u64>) -> u64 {
        if self.is_null || self.one_in(32) {
            return 0;
        }
        leaked(words(self))
    }

    fn list(&mut self, mut item: impl FnMut(&mut Self) -> u64) -> u64 {
        self.pointer(|draw| (0..64).map(|_| item(draw)).collect())
    }

    /// A list of numbers of 4 bytes.
    fn halves(&mut self, mut item: impl FnMut(&mut Self) -> u64) -> u64 {
        self.list(|draw| item(draw) & 0xffff_ffff | item(draw) << 32)
    }

    fn text(&mut self, texts: &'static [&'static str]) -> u64 {
        let text = texts[self.random.below(texts.len() as u64) as usize];
        self.last_length = text.len() as u64;
        if self.is_null || self.one_in(32) { 0 } else { text.as_ptr().expose_provenance() as u64 }
    }

    fn operand(&mut self, kind: &'static str) -> u64 {
        match kind {
            "=" => self.pointer(|_| vec![0; 512]),
            "none" | "null" => 0,
            "one" => 1,
            "flags" => self.pick(&[0, 1]),
            "mode" => self.pick(&[0, 1, 2]),
            "device" if self.is_likely => 0,
            "extent" if self.is_likely => 1,
            "extents" => self.operand("extent") | self.operand("extent") << 32,
            "shared" if self.is_likely => 0,
            "few" if self.is_likely => self.pick(&[0, 0, 1, 2]),
            "device" => self.pick(&[0, 0, 0, 0, 1, 2, u64::from(u32::MAX), 1 << 31]),
            "location" => self.number() & 0xffff_ffff | self.pick(&[0, 1, 0xffff_ffff]) << 32,
            "number" => self.number(),
            "bytes" => self.bytes(),
            "width" => self.pick(&[0, 1, 3, 4, 8, 16]),
            "room" => self.pick(&[0, 1, 5, 4096, 1 << 31, 0xffff_ffff]),
            "few" if self.is_null => self.number(),
            "few" => self.random.below(MOST_LISTED),
            "length" => self.last_length,
            "extent" => self.pick(&[0, 1, 1, 1, 1, 2, 33, 1025, 65536, 0xffff_ffff]),
            "shared" => self.pick(&[0, 0, 0, 16, 4096, 1 << 20, 0xffff_ffff]),
            "address" => self.address(),
            "unified" => self.unified(),
            "nowhere" => self.pick(&[0, 2, 3, 1 << 60, u64::MAX]),
            "inout" => self.pointer(|draw| vec![draw.random.below(64)]),
            "symbol" => self.pick(&[0, 8, self.host, u64::MAX]),
            "values" => self.list(|draw| draw.random.below(4)),
            "edges" => self.list(|draw| if draw.one_in(8) { 1 } else { 0 }),
            "options" => self.halves(|draw| draw.pick(&[0, 7, 9, 12, 1000][..if draw.is_likely { 2 } else { 5 }])),
            "numbers" => self.list(Self::bytes),
            "addresses" => self.list(Self::unified),
            "nodes" => self.list(|draw| draw.made("node")),
            "places" => self.list(|draw| draw.pointer(|_| vec![0; 16])),
            "host" if self.is_null => 0,
            "host" => self.host + self.pick(&[0, 0, 0, 8, 1, 4096]),
            "image" if self.is_likely => self.text(&IMAGES[..1]),
            "image" => self.text(&IMAGES),
            "name" if self.is_likely => self.text(&NAMES[..4]),
            // The last one may fault.
            "name" => self.text(&NAMES[..NAMES.len() - usize::from(!self.may_fault)]),
            "nofile" => self.text(&["/nonexistent/file\0", "\0"]),
            "callback" | "shared_of" if self.is_null || self.one_in(8) => 0,
            "callback" => (callback as extern "C" fn() as *const c_void).addr() as u64,
            "shared_of" => (shared_of as extern "C" fn(i32) -> usize as *const c_void).addr() as u64,
            "params" => self.params(),
            "extra" if self.one_in(8) => self.extra(),
            "extra" => 0,
            _ => self.structure(kind),
        }
    }

    /// The places of parameters: as many as the kernel with the most has.
    fn params(&mut self) -> u64 {
        self.list(|draw| {
            let value = draw.address();
            leaked(vec![value; 2])
        })
    }

    /// Parameters in a buffer, by the list of `cuLaunchKernel`'s `extra`.
    fn extra(&mut self) -> u64 {
        let size = self.pick(&[0, 8, 12, 16, 1 << 40]);
        let (buffer, size) = (leaked(vec![0; 64]), leaked(vec![if self.one_in(2) { 12 } else { size.min(512) }]));
        self.pointer(|draw| vec![draw.pick(&[0, 1, 1, 2]), buffer, draw.pick(&[0, 2, 2]), size, 0, 0])
    }

    fn structure(&mut self, kind: &'static str) -> u64 {
        match kind {
            "copy2d" => self.pointer(Self::copy2d),
            "copy3d" => self.pointer(Self::copy3d),
            "parms3d" => self.pointer(Self::copy3d_of_the_runtime),
            "fillparams" => self.pointer(Self::fill),
            "hostparams" => self.pointer(Self::host_call),
            "kernelparams" => self.pointer(Self::launch),
            "allocparams" => self.pointer(Self::allocation),
            "operations" => self.operations(),
            "operationsparams" => self.pointer(Self::batch),
            "nodeparams" => self.pointer(Self::node),
            "config" => self.pointer(Self::config),
            "properties" => self.pointer(|draw| {
                let most = draw.bytes();
                let most = if draw.is_likely { 0 } else { most };
                let place = if draw.is_likely { 1 } else { draw.pick(&[1, 1, 0, 2, 1 << 32 | 1]) };
                vec![draw.pick(&[1, 1, 1, 0, 9]), place, 0, most, 0, 0, 0, 0, 0, 0, 0]
            }),
            _ => match kind.strip_prefix('=') {
                Some(kind) => {
                    let place = self.pointer(|_| vec![0; 64]);
                    if place != 0 {
                        self.results.push((kind, std::ptr::with_exposed_provenance(place as usize)));
                    }
                    place
                }
                None => self.made(kind),
            },
        }
    }

    /// One side of a copy of boxes: its kind, address of the host, address of the device, array,
    /// and whether its numbers must be small, because the library cannot know the host's memory.
    fn side(&mut self) -> ([u64; 4], bool) {
        let kind = self.pick(&[1, 2, 2, 2, 4, 3, 0, 99][..if self.is_likely { 5 } else { 8 }]);
        let host = self.host + self.pick(&[0, 4, 64]);
        let device = match kind {
            4 if self.one_in(2) => host,
            4 => self.unified(),
            _ => self.address(),
        };
        ([kind, host, device, 0], matches!(kind, 1 | 4))
    }

    /// A number of a box: with `small`, one of the few that stay within the host's memory.
    fn of_box(&mut self, small: bool) -> u64 {
        if small { self.random.below(8) } else { self.bytes() }
    }

    fn copy2d(&mut self) -> Vec<u64> {
        let (sides, small) =
            [self.side(), self.side()].map(|(side, small)| (side, small)).into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        let small = small.contains(&true);
        let mut words = Vec::new();
        for side in sides {
            words.extend([self.of_box(small), self.of_box(small)]);
            words.extend(side);
            words.push(self.of_box(small) * if small { 8 } else { 1 });
        }
        words.extend([self.of_box(small), self.of_box(small)]);
        words
    }

    fn copy3d(&mut self) -> Vec<u64> {
        let (one, other) = (self.side(), self.side());
        let small = one.1 || other.1;
        let mut words = Vec::new();
        for (side, _) in [one, other] {
            words.extend([self.of_box(small), self.of_box(small), self.of_box(small), 0]);
            words.extend(side);
            words.extend([self.pick(&[0, 0, 0, 1]), self.of_box(small), self.of_box(small)]);
        }
        words.extend([self.of_box(small), self.of_box(small), self.of_box(small)]);
        words
    }

    /// A copy of boxes of the runtime: arrays, places and pointers of both sides, the extent, and
    /// the direction. Its numbers are small, because either side may be the host's.
    fn copy3d_of_the_runtime(&mut self) -> Vec<u64> {
        let mut words = Vec::new();
        for _ in 0..2 {
            let base = if self.random.below(2) == 0 { self.host } else { self.unified() };
            let array = if self.one_in(16) { 16 } else { 0 };
            words.extend([array, self.of_box(true), self.of_box(true), self.of_box(true)]);
            words.extend([base, self.of_box(true) * 8, self.of_box(true), self.of_box(true)]);
        }
        words.extend([self.of_box(true), self.of_box(true), self.of_box(true), self.number()]);
        words
    }

    fn fill(&mut self) -> Vec<u64> {
        let element = self.pick(&[1, 1, 2, 4, 0, 3, 0xffff_ffff][..if self.is_likely { 4 } else { 7 }]);
        vec![self.address(), self.bytes(), 7 | element << 32, self.bytes(), self.bytes(), self.made("context")]
    }

    fn host_call(&mut self) -> Vec<u64> {
        vec![self.operand("callback"), 0]
    }

    fn launch(&mut self) -> Vec<u64> {
        let extents: Vec<u64> = (0..6).map(|_| self.operand("extent")).collect();
        let shared = self.operand("shared");
        let params = if self.one_in(8) { 0 } else { self.params() };
        let function = self.operand("function");
        let pairs = [0, 2, 4].map(|at: usize| extents[at] | extents[at + 1] << 32);
        vec![function, pairs[0], pairs[1], pairs[2], shared, params, 0, self.operand("function"), self.made("context")]
    }

    fn allocation(&mut self) -> Vec<u64> {
        let (place, kind, access) = if self.is_likely {
            (1, 1, 0)
        } else {
            let place = self.pick(&[1, 1, 0, 2]) | self.pick(&[0, 0, 1, 0xffff_ffff]) << 32;
            (place, self.pick(&[1, 1, 1, 0, 9]), self.operand("values"))
        };
        let accesses = if access == 0 { 0 } else { self.random.below(3) };
        let bytes = self.bytes();
        vec![kind, place, 0, 0, 0, 0, 0, 0, 0, 0, 0, access, accesses, bytes, 0]
    }

    /// Writes to memory, barriers and others, but no wait: it would wait for ever.
    fn operations(&mut self) -> u64 {
        self.pointer(|draw| {
            let one = |draw: &mut Self| {
                let kind = draw.pick(&[2, 5, 2, 5, 3, 6, 0, 99][..if draw.is_likely { 4 } else { 8 }]);
                let flags = if draw.is_likely { 0 } else { draw.number() };
                vec![kind, draw.address(), draw.number(), flags, 0, 0, 0, 0]
            };
            (0..MOST_LISTED).flat_map(|_| one(draw)).collect()
        })
    }

    fn batch(&mut self) -> Vec<u64> {
        let list = self.operations();
        let count = if list == 0 { 0 } else { self.random.below(MOST_LISTED) };
        vec![self.made("context"), count, list, self.number()]
    }

    fn node(&mut self) -> Vec<u64> {
        let kind = self.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 99][..if self.is_likely { 11 } else { 13 }]);
        let mut words = vec![kind, 0];
        words.extend(match kind {
            0 => self.launch(),
            1 => [vec![0, self.made("context")], self.copy3d()].concat(),
            2 => self.fill(),
            3 => self.host_call(),
            4 => vec![self.made("graph")],
            6 | 7 => vec![self.made("event")],
            10 => self.allocation(),
            11 => vec![self.address()],
            12 => self.batch(),
            _ => Vec::new(),
        });
        words.resize(32, 0);
        words
    }

    fn config(&mut self) -> Vec<u64> {
        let mut extent = || u64::from(self.random.below(5) != 0);
        let pairs = [0; 3].map(|_| extent() | extent() << 32);
        let (shared, stream) = (self.operand("shared"), self.made("stream"));
        let attributes = self.pointer(|draw| {
            let one = |draw: &mut Self| {
                let value = if draw.one_in(2) { draw.made("event") } else { 1 };
                vec![draw.number(), value, 1, 1, 1, 0, 0, 0, 0]
            };
            (0..MOST_LISTED).flat_map(|_| one(draw)).collect()
        });
        let count = if attributes == 0 { 0 } else { self.random.below(MOST_LISTED) };
        vec![pairs[0], pairs[1], pairs[2], shared, stream, attributes, count]
    }
}
