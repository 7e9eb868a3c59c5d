//! The checkers: side-cars of a launch that say what is wrong with it, under compute-sanitizer's names.
//!
//! | name | finds | how |
//! |---|---|---|
//! | memcheck | accesses out of bounds, misaligned, to freed memory or in the wrong space | what would stop the launch |
//! | initcheck | reads of bytes that nobody wrote, in global, shared and local memory | a bit a byte |
//! | racecheck | accesses of two threads to one place that nothing orders, in shared and global memory | PTX's memory model: who has learnt of whom by barriers, and by what was published and received |
//! | synccheck | barriers that cannot be passed, or not so | what would stop the launch, and a look at lanes |
//!
//! A launch with checkers runs its blocks in order on one host thread, each until it ends or waits
//! for others: so findings come in the same order on every run, and shadows are plain memory.
//! Findings that differ in their threads only are one, with a count: the first is told. A launch
//! without checkers has none of this but a test for it at each access.
//!
//! The idea of checkers as observers of one execution is GPU Ocelot's trace generators and Oclgrind's plugins; one report for
//! a pair of instructions is Oclgrind's.

mod finding;
mod initcheck;
mod memcheck;
mod racecheck;
mod synccheck;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::BitOr;
use std::str::FromStr;

pub use finding::{Finding, Party, Problem, Strength, Within};
pub(crate) use finding::{Found, What, Who};
pub(crate) use racecheck::MAX_BLOCKS as MAX_RACECHECK_BLOCKS;

use super::code::{self, Code};
use super::mem::Allocation;
use super::modifiers::Sync;
use super::vocabulary::{AccessKind, LANES};
use crate::error::{Error, ErrorKind};
use initcheck::Initcheck;
use racecheck::Racecheck;

/// Findings of a launch that are told; further ones are counted.
pub const MAX_FINDINGS: usize = 100;
/// Findings that are told apart, so that each is counted once.
const MAX_COUNTED: usize = 1 << 22;
/// The work of taking note of something that is wrong.
const FINDING_WORK: u64 = 24;
/// The work of following what a strong access publishes and receives at a place, for a lane.
const STRONG_WORK: u64 = 40;

/// One checker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// Accesses that cannot be done.
    Memcheck,
    /// Reads of what was never written.
    Initcheck,
    /// Accesses that nothing orders.
    Racecheck,
    /// Barriers used wrongly.
    Synccheck,
}

/// A set of checkers. As text: `memcheck,racecheck`, or `all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Checks(u8);

impl Check {
    /// All of them, in the order of their names here.
    pub const ALL: [Check; 4] = [Check::Memcheck, Check::Initcheck, Check::Racecheck, Check::Synccheck];

    /// As compute-sanitizer calls it.
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
    /// No checker: as fast as can be.
    pub const NONE: Checks = Checks(0);
    /// Every checker.
    pub const ALL: Checks = Checks(0b1111);

    /// Whether `check` is one of them.
    pub fn contains(self, check: Check) -> bool {
        self.0 & Checks::from(check).0 != 0
    }

    /// Whether there is none.
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
                let context = format!(
                    "`{name}` is no checker; name some of memcheck, initcheck, racecheck and synccheck, or all"
                );
                Error::new(ErrorKind::InvalidArgument, context)
            })?;
            Ok(checks | check.into())
        })
    }
}

/// An access of a warp, as the checkers look at it.
pub(crate) struct Access<'a> {
    pub(crate) warp: u32,
    pub(crate) pc: u32,
    /// The lanes that access; the others have a neighbour's offset.
    pub(crate) mask: u32,
    /// Where, from the beginning of the space or allocation: aligned, and in bounds.
    pub(crate) offsets: &'a [u64; LANES],
    /// Of each lane.
    pub(crate) bytes: u32,
    /// Of an element: of several, where the access is to a vector.
    pub(crate) width: u8,
    pub(crate) kind: AccessKind,
    /// What it orders.
    pub(crate) sync: Sync,
}

impl Access<'_> {
    fn lanes(&self) -> impl Iterator<Item = usize> {
        let mask = self.mask;
        (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
    }

    /// The thread's number in its block.
    fn thread(&self, lane: usize) -> u32 {
        self.warp * LANES as u32 + lane as u32
    }
}

/// The checkers of one launch, and what they have found.
#[derive(Debug)]
pub(crate) struct Checker {
    checks: Checks,
    /// The block that runs, counted with x fastest.
    block: u64,
    initcheck: Option<Initcheck>,
    racecheck: Option<Racecheck>,
    log: Log,
}

/// What checkers keep of a block while it runs.
#[derive(Debug)]
pub(crate) struct OfBlock {
    block: u64,
    initcheck: Option<Initcheck>,
    racecheck: Option<racecheck::OfBlock>,
}

/// Findings in the order in which they were first found.
#[derive(Debug, Default)]
struct Log {
    found: Vec<Found>,
    /// By what makes them one.
    known: HashMap<finding::Key, usize>,
    /// Of those that there was no room for, what makes them one, as 8 bytes: there may be millions.
    more: HashSet<u64>,
    /// The work of taking note of them, since it was last asked for.
    work: u64,
}

impl Log {
    fn add(&mut self, who: Who, what: What) {
        self.work += FINDING_WORK;
        let (next, key) = (self.found.len(), what.key(who.pc));
        if let Some(&known) = self.known.get(&key) {
            self.found[known].times += 1;
        } else if next < MAX_FINDINGS {
            self.known.insert(key, next);
            self.found.push(Found { who, what, times: 1 });
        } else if self.more.len() < MAX_COUNTED {
            self.more.insert(BuildHasherDefault::<DefaultHasher>::new().hash_one(key));
        }
    }
}

impl Checker {
    /// For blocks of so many warps with so many bytes of shared memory; `None` where the host has not the memory.
    pub(crate) fn new(checks: Checks, code: &Code, warps: u32, shared_bytes: u64) -> Option<Self> {
        let initcheck = match checks.contains(Check::Initcheck) {
            true => Some(Initcheck::new(code, warps, shared_bytes)?),
            false => None,
        };
        let racecheck = checks.contains(Check::Racecheck).then(|| Racecheck::new(code, warps, shared_bytes));
        Some(Self { checks, block: 0, initcheck, racecheck, log: Log::default() })
    }

    /// What was found, in order, and how much besides.
    pub(crate) fn into_found(self) -> (Vec<Found>, u64) {
        (self.log.found, self.log.more.len() as u64)
    }

    /// The work of taking note of what was found since this was last asked for.
    pub(crate) fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.log.work)
    }

    /// The work of looking at an access of `lanes` lanes, and of what was found since the last one.
    pub(crate) fn access_work(&mut self, lanes: u32, access: code::Access) -> u64 {
        let place = if access.sync.is_strong() { STRONG_WORK } else { 1 };
        let places = self.racecheck.as_ref().map_or(0, |racecheck| access.bytes().div_ceil(racecheck.place_bytes()));
        self.take_work() + u64::from(lanes) * (1 + u64::from(places) * place)
    }

    /// Another block begins.
    pub(crate) fn begin(&mut self, block: u64) {
        self.block = block;
        if let Some(initcheck) = &mut self.initcheck {
            initcheck.begin();
        }
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.begin(block);
        }
    }

    /// The block has ended.
    pub(crate) fn end(&mut self) {
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.end();
        }
    }

    /// Bytes that such checkers come to keep of a block at most, but for what threads publish: two
    /// entries for each byte of shared memory, and what each thread has seen.
    pub(crate) fn of_block_bytes(checks: Checks, warps: u32, shared_bytes: u64) -> u64 {
        match checks.contains(Check::Racecheck) {
            true => racecheck::PLACE_BYTES * shared_bytes + racecheck::THREAD_BYTES * u64::from(warps) * LANES as u64,
            false => 0,
        }
    }

    /// For a block that is to run beside the others.
    pub(crate) fn another(&self) -> OfBlock {
        let initcheck = self.initcheck.as_ref().map(Initcheck::another);
        OfBlock { block: 0, initcheck, racecheck: self.racecheck.as_ref().map(Racecheck::another) }
    }

    /// Goes on with another block.
    pub(crate) fn swap(&mut self, other: &mut OfBlock) {
        std::mem::swap(&mut self.block, &mut other.block);
        std::mem::swap(&mut self.initcheck, &mut other.initcheck);
        if let (Some(racecheck), Some(other)) = (&mut self.racecheck, &mut other.racecheck) {
            racecheck.swap(other);
        }
    }

    /// An access to global memory. `known`: whether all that kernels wrote to the allocation was seen.
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
            racecheck.global(&mut self.log, access, allocation, changes);
        }
    }

    /// An access to shared memory.
    #[cold]
    pub(crate) fn shared(&mut self, access: &Access, changes: impl Fn(usize) -> bool) {
        if let Some(initcheck) = &mut self.initcheck {
            initcheck.shared(&mut self.log, self.block, access);
        }
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.shared(&mut self.log, access, changes);
        }
    }

    /// An access to local memory; `stride` bytes lie between the lanes' beginnings.
    #[cold]
    pub(crate) fn local(&mut self, access: &Access, stride: u64) {
        if let Some(initcheck) = &mut self.initcheck {
            initcheck.local(&mut self.log, self.block, access, stride);
        }
    }

    /// Warps have passed a barrier together. Those of `ended` had ended before.
    pub(crate) fn barrier(&mut self, barrier: u32, passed: &[u32], ended: &[u32]) {
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.barrier(barrier, passed, ended);
        }
    }

    /// Lanes of a warp have arrived at a barrier and go on.
    pub(crate) fn arrive(&mut self, barrier: u32, warp: u32, lanes: u32) {
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.arrive(barrier, warp, lanes);
        }
    }

    /// Lanes of a warp have waited for each other. `all`: no other lane of it is left.
    pub(crate) fn warp_barrier(&mut self, warp: u32, lanes: u32, all: bool) {
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.warp_barrier(warp, lanes, all);
        }
    }

    /// Lanes of a warp have executed a fence.
    pub(crate) fn fence(&mut self, warp: u32, lanes: u32, sync: Sync) {
        if let Some(racecheck) = &mut self.racecheck {
            racecheck.fence(warp, lanes, sync);
        }
    }

    /// Why racecheck may have missed something, if it may, in words.
    pub(crate) fn missed(&self) -> Option<&'static str> {
        self.racecheck.as_ref().and_then(Racecheck::missed)
    }

    fn who(&self, warp: u32, lane: u32, pc: u32) -> Who {
        Who { block: self.block, thread: warp * LANES as u32 + lane, pc }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkers_are_named_as_compute_sanitizer_names_them() {
        assert_eq!("all".parse::<Checks>().unwrap(), Checks::ALL);
        let two: Checks = "memcheck,racecheck".parse().unwrap();
        assert_eq!(Check::ALL.map(|check| two.contains(check)), [true, false, true, false]);
        let wrong = "memcheck,leakcheck".parse::<Checks>().unwrap_err().to_string();
        assert!(wrong.contains("`leakcheck` is no checker; name some of memcheck, initcheck"), "{wrong}");
        assert!(Checks::default().is_empty() && !Checks::ALL.is_empty());
    }
}
