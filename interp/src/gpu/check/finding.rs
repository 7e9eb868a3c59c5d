//! The findings of the checkers, as data; `Display` renders them.

use std::fmt;
use std::mem::{Discriminant, discriminant};

use super::Check;
use crate::error::counted;
use crate::gpu::mem::Nearest;
use crate::gpu::reason::{Place, Reason};
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
        /// How far apart the two threads are.
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
        /// True if its scope is only the block: `.cta`, or `.cluster`, which is one block here.
        block: bool,
    },
}

/// The smallest part of a launch that contains two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        Finding { check, kernel: kernel.to_owned(), place: place(self.who), problem, times: self.times }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (strength, scope) = match self.strength {
            Strength::Plain => ("", ""),
            Strength::Volatile => ("volatile ", ""),
            Strength::Atomic { block: false } => ("atomic ", ""),
            Strength::Atomic { block: true } => ("atomic ", " in .cta scope"),
        };
        write!(f, "{strength}{} of {}{scope}", self.access.verb(), counted(self.bytes, "byte"))
    }
}

/// The advice that ends a race.
fn remedy(within: Within, parties: [&Party; 2]) -> &'static str {
    let strong = parties.iter().all(|party| party.strength != Strength::Plain);
    let narrow = parties.iter().any(|party| matches!(party.strength, Strength::Atomic { block: true }));
    match within {
        Within::Grid if strong && narrow => "between blocks an atomic access needs .gpu scope; give it to both",
        _ if strong => "atomic accesses may coincide only if they have the same width; give both the same",
        Within::Warp => "put a bar.warp.sync between them, or make both atomic",
        Within::Block => "put a barrier between them, or make both atomic",
        Within::Grid => {
            "publish the earlier one by a release in .gpu scope and acquire it before the later one, or make both atomic"
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Fault(reason) => reason.fmt(f),
            Problem::Uninitialised { space, address, bytes, allocation } => {
                write!(f, "reads {bytes} at {address:#x} of {space} memory", bytes = counted(bytes, "byte"))?;
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
                "races with another thread for {space} memory at {address:#x}: its {later} and an\n  earlier {earlier} by \
                 {earlier_place}\n  are not ordered; {}",
                remedy(*within, [later, earlier])
            ),
            Problem::Unaligned { arrived, absent } => write!(
                f,
                "is at an aligned instruction with lanes {arrived:#010x} of its warp and without lanes {absent:#010x}; move \
                 it out of the condition"
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
        let Self { check, kernel, place, problem, times } = self;
        write!(f, "{check}: kernel {kernel:?} at {place}\n  {problem}")?;
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
        let mut fields = serializer.serialize_struct("Finding", 9)?;
        fields.serialize_field("check", self.check.name())?;
        fields.serialize_field("kernel", &self.kernel)?;
        fields.serialize_field("line", line)?;
        fields.serialize_field("instruction", instruction)?;
        fields.serialize_field("source", source)?;
        fields.serialize_field("block", block)?;
        fields.serialize_field("thread", thread)?;
        fields.serialize_field("times", &self.times)?;
        fields.serialize_field("text", &self.to_string())?;
        fields.end()
    }
}
