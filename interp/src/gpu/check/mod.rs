//! The checkers watch a launch and report what is wrong with it, under compute-sanitizer's names.
//!
//! | name | finds | how |
//! |---|---|---|
//! | memcheck | accesses that are out of bounds, misaligned, to freed memory or in the wrong space | reports what would stop the launch |
//! | initcheck | reads of bytes that were never written, in global, shared and local memory | keeps a bit for each byte |
//! | racecheck | accesses of two threads to one place without an order between them, in shared and global memory | follows PTX's memory model: which threads know of which others, through barriers and through values published and received |
//! | synccheck | barriers that cannot complete, or that are used wrongly | reports what would stop the launch, and inspects the lanes at barriers |
//!
//! A launch with checkers runs its blocks in order on one host thread; each runs until it ends or
//! waits for others. Findings therefore come in the same order on every run, and shadows are plain
//! memory. Findings that differ only in their threads are merged into one with a count; it
//! describes the first of them. A launch without checkers pays only for a test at each access.
//!
//! The checkers as observers of one execution follow GPU Ocelot's trace generators and Oclgrind's
//! plugins. The single report for each pair of instructions follows Oclgrind.
//!
//! ```
//! use warpstride_interp::check::{Check, Problem};
//! use warpstride_interp::{Args, Config, Memory, Module, run};
//! use warpstride_interp::launch_shape::LaunchShape;
//!
//! let ptx = "
//!     .version 7.0
//!     .target sm_75
//!     .address_size 64
//!     .visible .entry last(.param .u64 out) {
//!         .reg .b32 %r<2>;
//!         .reg .b64 %rd<2>;
//!         ld.param.u64 %rd1, [out];
//!         mov.u32 %r1, %tid.x;
//!         st.global.u32 [%rd1], %r1;
//!         ret;
//!     }";
//! let module = Module::parse(ptx)?;
//! let kernel = module.kernel("last").expect("it is there");
//! let memory = Memory::new(1 << 20);
//! let params = Args::new(kernel).value(memory.alloc(4)?)?.finish()?;
//! let shape = LaunchShape { grid: [1, 1, 1], block: [64, 1, 1], dynamic_shared: 0 };
//! let config = Config { checks: Check::Racecheck.into(), ..Config::default() };
//! let report = run(kernel, &shape, &params, &memory, &config).map_err(|stop| *stop)?;
//! let finding = &report.findings[0]; // all 64 threads store to one word
//! assert!(matches!(finding.problem, Problem::Race { .. }) && finding.place.line == 10);
//! println!("{finding}");
//! # Ok::<(), warpstride_interp::Error>(())
//! ```

mod faults;
mod finding;
mod initcheck;
mod racecheck;
mod rule;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::BitOr;
use std::str::FromStr;

pub use finding::{Finding, Party, Problem, Strength, Within};
pub(crate) use finding::{Found, What, Who, widen};
pub(crate) use racecheck::MAX_BLOCKS as MAX_RACECHECK_BLOCKS;

use super::code::{self, Code};
use super::invalid;
use super::mem::Allocation;
use super::mem::marked::Marked;
use super::modifiers::Sync;
use super::vocabulary::{AccessKind, LANES};
use crate::error::Error;
use initcheck::Initcheck;
pub(crate) use racecheck::{At, Copy, Part};
use racecheck::{Order, Racecheck};

/// The number of findings that a launch reports in full; further ones are only counted.
pub const MAX_FINDINGS: usize = 100;
/// The number of further findings that are kept distinct, so that each counts once.
const MAX_COUNTED: usize = 1 << 22;
/// The work of recording a finding.
const FINDING_WORK: u64 = 24;
/// The work of following what a strong access publishes and receives at a place, for each lane.
const STRONG_WORK: u64 = 40;

/// One checker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// Accesses that are not possible.
    Memcheck,
    /// Reads of bytes that were never written.
    Initcheck,
    /// Accesses without an order between them.
    Racecheck,
    /// Barriers used wrongly.
    Synccheck,
}

/// A set of checkers. Its text form is `memcheck,racecheck`, or `all`.
///
/// ```
/// use warpstride_interp::Checks;
/// use warpstride_interp::check::Check;
///
/// let checks: Checks = "memcheck,racecheck".parse()?;
/// assert_eq!(checks, Checks::from(Check::Memcheck) | Check::Racecheck.into());
/// # Ok::<(), warpstride_interp::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Checks(u8);

impl Check {
    /// All checkers, in the order of this enum.
    pub const ALL: [Check; 4] = [Check::Memcheck, Check::Initcheck, Check::Racecheck, Check::Synccheck];

    /// The name that compute-sanitizer gives it.
    pub fn name(self) -> &'static str {
        match self {
            Check::Memcheck => "memcheck",
            Check::Initcheck => "initcheck",
            Check::Racecheck => "racecheck",
            Check::Synccheck => "synccheck",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Checks {
    /// No checker: the fastest launch.
    pub const NONE: Checks = Checks(0);
    /// Every checker.
    pub const ALL: Checks = Checks(0b1111);

    /// Returns whether the set contains `check`.
    pub fn contains(self, check: Check) -> bool {
        self.0 & Checks::from(check).0 != 0
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }
}

impl From<Check> for Checks {
    fn from(check: Check) -> Self {
        Checks(1 << check as u8)
    }
}

impl BitOr for Checks {
    type Output = Checks;

    fn bitor(self, other: Self) -> Self {
        Checks(self.0 | other.0)
    }
}

impl FromStr for Checks {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "all" {
            return Ok(Self::ALL);
        }
        text.split(',').try_fold(Self::NONE, |checks, name| {
            let check = Check::ALL.into_iter().find(|check| check.name() == name).ok_or_else(|| {
                invalid(format!(
                    "`{name}` is not a checker; choose from memcheck, initcheck, racecheck and synccheck, or all"
                ))
            })?;
            Ok(checks | check.into())
        })
    }
}

/// An access of a warp, in the form that the checkers inspect.
pub(crate) struct Access<'a> {
    pub(crate) warp: u32,
    pub(crate) pc: u32,
    /// The lanes that access memory. The other lanes have the offset of a neighbour.
    pub(crate) mask: u32,
    /// Offsets from the beginning of the space or allocation: aligned, and in bounds.
    pub(crate) offsets: &'a [u64; LANES],
    /// Bytes that each lane accesses.
    pub(crate) bytes: u32,
    /// Bytes of one element; an access to a vector has several elements.
    pub(crate) width: u8,
    pub(crate) kind: AccessKind,
    /// The order that the access makes.
    pub(crate) sync: Sync,
}

impl Access<'_> {
    /// The thread's number in its block.
    fn thread(&self, lane: usize) -> u32 {
        self.warp * LANES as u32 + lane as u32
    }
}

/// The checkers of one launch, and their findings.
#[derive(Debug)]
pub(crate) struct Checker {
    checks: Checks,
    /// The running block, counted with x fastest.
    block: u64,
    initcheck: Option<Initcheck>,
    racecheck: Option<Racecheck>,
    log: Log,
}

/// The state that checkers keep for a block while it runs.
#[derive(Debug)]
pub(crate) struct OfBlock {
    block: u64,
    initcheck: Option<Initcheck>,
    racecheck: Option<racecheck::OfBlock>,
}

impl<'a> At<'a, OfBlock> {
    /// The same memory for racecheck; `None` if that is off.
    fn of_racecheck(self) -> Option<At<'a, racecheck::OfBlock>> {
        Some(match self {
            Self::Own => At::Own,
            Self::Peer(peer) => At::Peer(peer.racecheck.as_mut()?),
            Self::Global(allocation) => At::Global(allocation),
        })
    }
}

impl OfBlock {
    /// The bytes of the block's shared memory that have been written, if initcheck follows them.
    pub(crate) fn written(&self) -> Option<&Marked> {
        self.initcheck.as_ref().map(Initcheck::of_shared)
    }
}

/// Findings, in the order of their first occurrence.
#[derive(Debug, Default)]
struct Log {
    found: Vec<Found>,
    /// Those that are notes.
    notes: Vec<Found>,
    /// The pairs of pcs whose races are notes.
    guesses: HashSet<[u32; 2]>,
    /// The index of each finding or note, by the key that merges equal ones.
    known: HashMap<finding::Key, usize>,
    /// The keys of the faults beyond the limit, as 8-byte hashes, because there may be millions.
    more: HashSet<u64>,
    /// The work of recording findings since the last call of `take_work`.
    work: u64,
}

impl Log {
    fn add(&mut self, who: Who, what: What) {
        self.work += FINDING_WORK;
        let key = what.key(who.pc);
        let note = matches!(&what, What::Race { other, .. } if self.guesses.contains(&[who.pc, other.pc]));
        let found = if note { &mut self.notes } else { &mut self.found };
        if let Some(&known) = self.known.get(&key) {
            found[known].times += 1;
            found[known].what.widen(&what);
        } else if found.len() < MAX_FINDINGS {
            self.known.insert(key, found.len());
            found.push(Found { who, what, times: 1, note });
        } else if !note && self.more.len() < MAX_COUNTED {
            self.more.insert(BuildHasherDefault::<DefaultHasher>::new().hash_one(key));
        }
    }
}

impl Checker {
    /// Makes checkers for blocks of `warps` warps and `shared_bytes` bytes of shared memory; `None`
    /// if the host has too little memory.
    pub(crate) fn new(checks: Checks, code: &Code, warps: u32, shared_bytes: u64) -> Option<Self> {
        let initcheck = match checks.contains(Check::Initcheck) {
            true => Some(Initcheck::new(code, warps, shared_bytes)?),
            false => None,
        };
        let racecheck = checks.contains(Check::Racecheck).then(|| Racecheck::new(code, warps, shared_bytes));
        Some(Self {
            checks,
            block: 0,
            initcheck,
            racecheck,
            log: Log { guesses: code.guesses.clone(), ..Log::default() },
        })
    }

    /// Returns the findings in order, faults before the notes for which there is room, and the
    /// number of further faults.
    pub(crate) fn into_found(self) -> (Vec<Found>, u64) {
        let Log { mut found, notes, more, .. } = self.log;
        found.extend(notes);
        found.truncate(MAX_FINDINGS);
        (found, more.len() as u64)
    }

    /// Returns the work of recording findings since the last call.
    pub(crate) fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.log.work)
    }

    /// Returns the work of inspecting an access of `lanes` lanes, plus that of the findings since
    /// the last call.
    pub(crate) fn access_work(&mut self, lanes: u32, access: code::Access) -> u64 {
        let place = if access.sync.is_strong() { STRONG_WORK } else { 1 };
        let places = self.racecheck.as_ref().map_or(0, |racecheck| access.bytes().div_ceil(racecheck.place_bytes()));
        self.take_work() + u64::from(lanes) * (1 + u64::from(places) * place)
    }

    /// Notes that another block begins.
    pub(crate) fn begin(&mut self, block: u64) {
        self.block = block;
        if let Some(initcheck) = &mut self.initcheck {
            initcheck.begin();
        }
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.begin(block);
        }
    }

    /// Notes that the block has ended.
    pub(crate) fn end(&mut self) {
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.end();
        }
    }

    /// The most bytes that these checkers keep for a block, without the data that threads publish:
    /// two entries for each byte of shared memory, and the knowledge of each thread.
    pub(crate) fn of_block_bytes(checks: Checks, warps: u32, shared_bytes: u64) -> u64 {
        match checks.contains(Check::Racecheck) {
            true => racecheck::PLACE_BYTES * shared_bytes + racecheck::THREAD_BYTES * u64::from(warps) * LANES as u64,
            false => 0,
        }
    }

    /// Makes the state for a block that will run beside the others.
    pub(crate) fn another(&self) -> OfBlock {
        let initcheck = self.initcheck.as_ref().map(Initcheck::another);
        OfBlock { block: 0, initcheck, racecheck: self.racecheck.as_ref().map(Racecheck::another) }
    }

    /// Switches to another block.
    pub(crate) fn swap(&mut self, other: &mut OfBlock) {
        std::mem::swap(&mut self.block, &mut other.block);
        std::mem::swap(&mut self.initcheck, &mut other.initcheck);
        if let (Some(racecheck), Some(other)) = (&mut self.racecheck, &mut other.racecheck) {
            racecheck.swap(other);
        }
    }

    /// Checks an access to global memory. `known`: whether initcheck saw every write of kernels to
    /// the allocation.
    #[cold]
    pub(crate) fn global(
        &mut self,
        access: &Access,
        allocation: &Allocation,
        known: bool,
        changes: impl Fn(usize) -> bool,
    ) {
        if let (Some(_), true) = (&self.initcheck, known) {
            initcheck::global(&mut self.log, self.block, access, allocation);
        }
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.look(&mut self.log, access, At::Global(allocation), changes);
        }
    }

    /// Notes that a chunk of the heap has a new owner, which the accesses of earlier ones do not
    /// concern.
    pub(crate) fn renewed(&mut self, heap: &Allocation, chunk: u64, bytes: u64) {
        if let Some(racecheck) = &mut self.racecheck {
            self.log.work += racecheck.forget(heap.base, chunk - heap.base, bytes);
        }
    }

    /// Checks an access to shared memory. If it is `issued`, it is a copy that may write from now
    /// on. Its bytes are not there before it ends, which is an access of its own.
    #[cold]
    pub(crate) fn shared(&mut self, access: &Access, issued: bool, changes: impl Fn(usize) -> bool) {
        if let Some(initcheck) = self.initcheck.as_mut().filter(|_| !issued) {
            initcheck.shared(&mut self.log, self.block, access);
        }
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.look(&mut self.log, access, At::Own, changes);
        }
    }

    /// Checks an access to the shared memory of another block of the cluster, whose state is
    /// `peer`.
    #[cold]
    pub(crate) fn peer(&mut self, access: &Access, peer: &mut OfBlock, changes: impl Fn(usize) -> bool) {
        if let Some(initcheck) = &peer.initcheck {
            initcheck.shared(&mut self.log, self.block, access);
        }
        if let (Some(racecheck), Some(peer)) = (&mut self.racecheck, &mut peer.racecheck) {
            racecheck.look(&mut self.log, access, At::Peer(peer), changes);
        }
    }

    /// The bytes of the block's shared memory that have been written, if initcheck follows them.
    pub(crate) fn written(&self) -> Option<&Marked> {
        self.initcheck.as_ref().map(Initcheck::of_shared)
    }

    /// Returns whether this checker is on.
    pub(crate) fn has(&self, check: Check) -> bool {
        self.checks.contains(check)
    }

    /// Notes that a thread of the running block begins a copy in bulk, whose parts follow; `None`
    /// if racecheck is off.
    pub(crate) fn begin_copy(&mut self, thread: u32, pc: u32, bytes: u32, reduces: bool) -> Option<Copy> {
        let who = Who { block: self.block, thread, pc };
        self.racecheck.as_mut().map(|racecheck| racecheck.begin_copy(who, bytes, reduces))
    }

    /// Checks a part of a copy that begins.
    pub(crate) fn begin_part(&mut self, copy: &Copy, part: Part, at: At<OfBlock>) {
        if let (Some(racecheck), Some(at)) = (&mut self.racecheck, at.of_racecheck()) {
            racecheck.begin_part(&mut self.log, copy, part, at);
        }
    }

    /// Notes that a thread of the running block sees the end of a copy, whose parts follow.
    pub(crate) fn end_copy(&mut self, copy: &Copy, thread: u32) {
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.end_copy(copy, thread);
        }
    }

    /// Notes the end of a part of a copy, which a thread of the running block has seen, or which
    /// was not to be seen.
    pub(crate) fn end_part(&mut self, copy: &Copy, seen_by: Option<u32>, part: Part, at: At<OfBlock>) {
        if let (Some(racecheck), Some(at)) = (&mut self.racecheck, at.of_racecheck()) {
            racecheck.end_part(&mut self.log, copy, seen_by, part, at);
        }
    }

    /// Checks an access to local memory. `stride` is the distance in bytes between the memory of
    /// neighbouring lanes.
    #[cold]
    pub(crate) fn local(&mut self, access: &Access, stride: u64) {
        if let Some(initcheck) = &mut self.initcheck {
            initcheck.local(&mut self.log, self.block, access, stride);
        }
    }

    /// The order of the running block's threads, if racecheck follows it.
    pub(crate) fn order(&mut self) -> Option<&mut Order> {
        self.racecheck.as_mut().map(|racecheck| &mut racecheck.order)
    }

    /// Says in words why racecheck may have missed races, if it may have.
    pub(crate) fn missed(&self) -> Option<&'static str> {
        self.racecheck.as_ref().and_then(Racecheck::missed)
    }

    fn who(&self, warp: u32, lane: u32, pc: u32) -> Who {
        Who { block: self.block, thread: warp * LANES as u32 + lane, pc }
    }
}
