//! The findings of the checkers, as data; `Display` renders them.

use std::collections::HashMap;
use std::fmt;
use std::mem::{Discriminant, discriminant};

use super::Check;
use crate::error::counted;
use crate::gpu::mem::Nearest;
use crate::gpu::reason::{Language, Place, Reason};
use crate::gpu::vocabulary::{AccessKind, LANES, Space};

/// An error in a kernel, or in the way it was launched.
///
/// Findings that differ only in their threads and addresses are merged: this is the first of them,
/// with a count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The checker that found it.
    pub check: Check,
    /// The kernel's name.
    pub kernel: String,
    /// The instruction, and the first thread for which it was found.
    pub place: Place,
    /// The error at that place.
    pub problem: Problem,
    /// The number of threads for which it was found, one after the other: at least 1.
    pub times: u64,
    /// True for a note, which tells of something that does no harm: the plain first load of a loop
    /// around a compare-and-swap, as CUDA's guide writes it.
    #[doc(hidden)]
    pub note: bool,
}

/// The kind of error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// An error that would have stopped the launch without the checker.
    Fault(Reason),
    /// A read of bytes that were never written.
    Uninitialised {
        /// The space.
        space: Space,
        /// The address in global memory; the offset in other spaces.
        address: u64,
        /// The size of the access in bytes; some of these bytes were never written.
        bytes: u32,
        /// For global memory, the allocation.
        allocation: Option<Nearest>,
    },
    /// Two accesses to one place with no order between them. At least one of them writes, and they
    /// are not both atomic in scopes that contain both threads.
    Race {
        /// The space.
        space: Space,
        /// The first address that both access; in spaces other than global, the offset.
        address: u64,
        /// How far apart the threads are that race at these two lines: the widest of all those
        /// races. The lines are those of the PTX where it names no source.
        within: Within,
        /// The access of the finding's own thread. It came later in this run; on a GPU it may come
        /// first.
        later: Party,
        /// The other access.
        earlier: Party,
        /// The instruction and the thread of the other access.
        earlier_place: Place,
    },
    /// Only a part of a warp executes an aligned barrier.
    Unaligned {
        /// Lanes at the barrier, a bit each.
        arrived: u32,
        /// The other live lanes of the same warp.
        absent: u32,
    },
    /// A lane synchronises with a mask of its warp's lanes that does not include the lane itself.
    NoMember {
        /// The mask that it names.
        members: u32,
    },
}

/// One of two accesses that race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Party {
    /// The kind of access.
    pub access: AccessKind,
    /// Says whether it may coincide with other strong accesses.
    pub strength: Strength,
    /// Bytes of the access.
    pub bytes: u32,
}

/// The conditions under which an access may coincide with another one to the same place without a
/// race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// It may not: PTX calls it weak.
    Plain,
    /// `volatile`: it may, wherever the other thread is.
    Volatile,
    /// `relaxed`, `acquire`, `release`, or an atomic operation: it may, within its scope.
    Atomic {
        /// True if its scope is only the block: `.cta`, or `.cluster` where it is one block.
        block: bool,
    },
    /// A copy in bulk, which another unit does: it may not.
    Bulk,
}

/// The smallest part of a launch that contains two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Within {
    /// One warp.
    Warp,
    /// One block.
    Block,
    /// The grid.
    Grid,
}

/// A thread at an instruction, as numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    /// Block and thread count with x fastest.
    pub(crate) block: u64,
    pub(crate) thread: u32,
    pub(crate) pc: u32,
}

impl Who {
    /// The warp's number in its block.
    pub(crate) fn warp(self) -> u32 {
        self.thread / LANES as u32
    }
}

/// A finding before its numbers become names.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) who: Who,
    pub(crate) what: What,
    pub(crate) times: u64,
    pub(crate) note: bool,
}

/// A problem, with places as numbers.
#[derive(Debug)]
pub(crate) enum What {
    /// A problem of one thread, with the checker that found it.
    Named(Check, Problem),
    /// A problem of two threads, of which `other` came first.
    Race { space: Space, address: u64, within: Within, later: Party, earlier: Party, other: Who },
}

/// The key that merges findings: the problem, which is `None` for a race, and its instructions.
pub(super) type Key = (Option<Discriminant<Problem>>, Option<Discriminant<Reason>>, [Option<u32>; 2]);

impl What {
    pub(super) fn key(&self, pc: u32) -> Key {
        match self {
            What::Race { other, .. } => (None, None, [Some(pc), Some(other.pc)]),
            What::Named(_, problem @ Problem::Fault(reason)) => {
                (Some(discriminant(problem)), Some(discriminant(reason)), [Some(pc), None])
            }
            What::Named(_, problem) => (Some(discriminant(problem)), None, [Some(pc), None]),
        }
    }
}

impl What {
    /// Takes the wider of two races of the same instructions.
    pub(super) fn widen(&mut self, other: &What) {
        if let (What::Race { within, .. }, What::Race { within: other, .. }) = (self, other) {
            *within = (*within).max(*other);
        }
    }
}

/// Gives the races of each pair of lines the widest extent of them, so that their advice ends all
/// of them.
pub(crate) fn widen(findings: &mut [Finding]) {
    let line = |place: &Place| place.source.clone().unwrap_or_else(|| place.line.to_string());
    let lines = |finding: &Finding, earlier_place: &Place| {
        let mut lines = [line(&finding.place), line(earlier_place)];
        lines.sort();
        lines
    };
    let mut widest = HashMap::new();
    for finding in &*findings {
        if let Problem::Race { within, earlier_place, .. } = &finding.problem {
            let known = widest.entry(lines(finding, earlier_place)).or_insert(*within);
            *known = (*known).max(*within);
        }
    }
    for finding in findings {
        let Problem::Race { earlier_place, .. } = &finding.problem else { continue };
        let found = widest.get(&lines(finding, earlier_place)).copied();
        if let (Problem::Race { within, .. }, Some(found)) = (&mut finding.problem, found) {
            *within = found;
        }
    }
}

impl Found {
    /// Turns the numbers into names; `place` gives the place of a thread.
    pub(crate) fn told(self, kernel: &str, place: impl Fn(Who) -> Place) -> Finding {
        let (check, problem) = match self.what {
            What::Named(check, problem) => (check, problem),
            What::Race { space, address, within, later, earlier, other } => {
                let earlier_place = place(other);
                (Check::Racecheck, Problem::Race { space, address, within, later, earlier, earlier_place })
            }
        };
        Finding {
            check,
            kernel: kernel.to_owned(),
            place: place(self.who),
            problem,
            times: self.times,
            note: self.note,
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (strength, scope) = match self.strength {
            Strength::Plain => ("", ""),
            Strength::Volatile => ("volatile ", ""),
            Strength::Bulk => ("asynchronous ", ""),
            Strength::Atomic { block: false } => ("atomic ", ""),
            Strength::Atomic { block: true } => ("atomic ", " in .cta scope"),
        };
        write!(f, "{strength}{} of {}{scope}", self.access.verb(), counted(self.bytes, "byte"))
    }
}

/// The barrier at which only a part of a warp arrives, by its instruction if it is known.
fn barrier(language: Language, instruction: Option<&str>) -> String {
    let Some(instruction) = instruction else { return "an aligned instruction".into() };
    let is_sync = ["bar.sync", "barrier.sync"].iter().any(|name| instruction.contains(name));
    if language == Language::Cuda && is_sync { "`__syncthreads()`".into() } else { format!("`{instruction}`") }
}

/// Says which lanes a mask has: `lanes 0 to 15`.
fn lanes(mask: u32) -> String {
    let (mut ranges, mut rest) = (Vec::new(), u64::from(mask));
    while rest != 0 {
        let first = rest.trailing_zeros();
        let count = (rest >> first).trailing_ones();
        rest &= !(((1_u64 << count) - 1) << first);
        ranges.push(if count == 1 { first.to_string() } else { format!("{first} to {}", first + count - 1) });
    }
    match &*ranges {
        [] => "no lane".into(),
        [lane] if mask.is_power_of_two() => format!("lane {lane}"),
        // Many ranges are hard to read.
        _ if ranges.len() > 4 => format!("lanes {mask:#010x}"),
        _ => format!("lanes {}", ranges.join(", ")),
    }
}

/// Why the first load of a loop around a compare-and-swap does no harm.
const HARMLESS: &str = "the compare-and-swap refuses a value that is not the latest, and the loop tries again; make the load volatile or \
     atomic to leave no doubt";

/// The advice that ends a race.
fn remedy(space: Space, within: Within, parties: [&Party; 2], language: Language) -> &'static str {
    match parties.map(|party| party.strength) {
        [_, Strength::Bulk] => return "let the thread wait for the copy before, at its mbarrier or for its group",
        [Strength::Bulk, _] => return "let the copy begin only behind a barrier that both threads have passed",
        _ => {}
    }
    let strong = parties.iter().all(|party| party.strength != Strength::Plain);
    let narrow = parties.iter().any(|party| matches!(party.strength, Strength::Atomic { block: true }));
    // The blocks of a cluster have shared memory together.
    let in_cluster = within == Within::Grid && space == Space::Shared;
    match within {
        _ if in_cluster && strong && narrow => {
            "between blocks of a cluster an atomic access needs .cluster scope; give it to both"
        }
        _ if in_cluster && !strong && language == Language::Cuda => {
            "put `cluster.sync()` between them, or make both atomic"
        }
        _ if in_cluster && !strong => {
            "put `barrier.cluster.arrive` and `barrier.cluster.wait` between them, or make both atomic"
        }
        Within::Grid if strong && narrow => "between blocks an atomic access needs .gpu scope; give it to both",
        _ if strong => "atomic accesses may coincide only if they have the same width; give both the same",
        Within::Warp if language == Language::Cuda => "put `__syncwarp()` between them, or make both atomic",
        Within::Warp => "put a bar.warp.sync between them, or make both atomic",
        Within::Block if language == Language::Cuda => "put `__syncthreads()` between them, or make both atomic",
        Within::Block => "put a bar.sync between them, or make both atomic",
        Within::Grid if language == Language::Cuda => {
            "order them by `__threadfence()` and a flag that both blocks access atomically, or make both atomic"
        }
        Within::Grid => {
            "publish the earlier one by a release in .gpu scope and acquire it before the later one, or make both atomic"
        }
    }
}

/// In the words of PTX.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tell(f, Language::Ptx, None, false)
    }
}

impl Problem {
    fn tell(
        &self,
        f: &mut fmt::Formatter<'_>,
        language: Language,
        instruction: Option<&str>,
        note: bool,
    ) -> fmt::Result {
        match self {
            Problem::Fault(reason) => reason.tell(f, language),
            Problem::Uninitialised { space, address, bytes, allocation } => {
                let (bytes, space) = (counted(bytes, "byte"), language.space(*space));
                write!(f, "reads {bytes} at {address:#x} of {space} memory")?;
                if let Some(Nearest { base, bytes, .. }) = allocation {
                    write!(
                        f,
                        ", {} into an allocation of {bytes} at {base:#x}",
                        counted(address - base, "byte"),
                        bytes = counted(bytes, "byte")
                    )?;
                }
                f.write_str(", not all of which have been written; fill them first")
            }
            Problem::Race { space, address, within, later, earlier, earlier_place } => write!(
                f,
                "races with another thread for {} memory at {address:#x}: its {later} and an earlier {earlier} at \
                 {earlier_place} are not ordered; {}",
                language.space(*space),
                if note { HARMLESS } else { remedy(*space, *within, [later, earlier], language) }
            ),
            Problem::Unaligned { arrived, absent } => write!(
                f,
                "comes to {} with {} of its warp and without {}; move it out of the condition",
                barrier(language, instruction),
                lanes(*arrived),
                lanes(*absent)
            ),
            Problem::NoMember { members } => {
                write!(
                    f,
                    "synchronises with lanes {members:#010x} of its warp but is not one of them; add it to the mask"
                )
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { check, kernel, place, problem, times, note } = self;
        let note = if *note { ", a note" } else { "" };
        write!(f, "{check}{note}: kernel {kernel:?} at {place}\n  ")?;
        problem.tell(f, place.language(), Some(&place.instruction), self.note)?;
        match times {
            1 => Ok(()),
            2 => f.write_str("\n  and once more"),
            more => write!(f, "\n  and {} more", counted(more - 1, "time")),
        }
    }
}

/// Serializes a flat record: the place, the count, and the whole finding as text.
#[cfg(feature = "serde")]
impl serde::Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let Place { line, instruction, source, block, thread } = &self.place;
        let mut fields = serializer.serialize_struct("Finding", 10)?;
        fields.serialize_field("check", self.check.name())?;
        fields.serialize_field("kernel", &self.kernel)?;
        fields.serialize_field("line", line)?;
        fields.serialize_field("instruction", instruction)?;
        fields.serialize_field("source", source)?;
        fields.serialize_field("block", block)?;
        fields.serialize_field("thread", thread)?;
        fields.serialize_field("times", &self.times)?;
        fields.serialize_field("note", &self.note)?;
        fields.serialize_field("text", &self.to_string())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests;
