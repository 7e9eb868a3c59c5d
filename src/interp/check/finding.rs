//! What a checker found, as data; `Display` renders it.

use std::fmt;
use std::mem::{Discriminant, discriminant};

use super::Check;
use crate::error::counted;
use crate::interp::mem::Nearest;
use crate::interp::reason::{Place, Reason};
use crate::interp::vocabulary::{AccessKind, LANES, Space};

/// Something wrong with a kernel, or with how it was launched.
///
/// What differs only in its threads and addresses is one finding: the first of them, and how often it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Who found it.
    pub check: Check,
    /// The kernel's name.
    pub kernel: String,
    /// The instruction, and the first thread that was found at it.
    pub place: Place,
    /// What is wrong there.
    pub problem: Problem,
    /// How many threads were found so, one after the other: at least 1.
    pub times: u64,
}

/// What is wrong at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// What would have stopped the launch without the checker.
    Fault(Reason),
    /// A read of bytes that nobody has written.
    Uninitialised {
        /// The space.
        space: Space,
        /// The address, or the offset in spaces other than global.
        address: u64,
        /// Bytes of the access, of which some were never written.
        bytes: u32,
        /// In global memory, the allocation.
        allocation: Option<Nearest>,
    },
    /// Two accesses to one place that nothing orders, and of which one writes, and that are not both atomic in scopes that have both threads.
    Race {
        /// The space.
        space: Space,
        /// The first address that both access, or the offset in spaces other than global.
        address: u64,
        /// How far apart the two threads are.
        within: Within,
        /// The finding's own thread: the later access here, which need not be so on a GPU.
        later: Party,
        /// The other one.
        earlier: Party,
        /// Where that stands, and whose it is.
        earlier_place: Place,
    },
    /// An aligned barrier that a part of a warp executes.
    Unaligned {
        /// Lanes at the barrier, a bit each.
        arrived: u32,
        /// Lanes of the same warp that are not, and have not ended.
        absent: u32,
    },
    /// A lane synchronises with members of its warp, of which it is none.
    NoMember {
        /// The mask that it names.
        members: u32,
    },
}

/// One of two accesses that race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Party {
    /// What it does.
    pub access: AccessKind,
    /// Whether it may meet others like it.
    pub strength: Strength,
    /// Bytes of the access.
    pub bytes: u32,
}

/// Whether an access may meet others like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// It may not: PTX calls it weak.
    Plain,
    /// `volatile`: it may, wherever the other is.
    Volatile,
    /// `relaxed`, `acquire`, `release`, or an atomic operation.
    Atomic {
        /// It may only within the block: its scope is `.cta`, or `.cluster`, which is one block here.
        block: bool,
    },
}

/// The least part of a launch that two threads are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// One warp.
    Warp,
    /// One block.
    Block,
    /// The grid.
    Grid,
}

/// A thread at an instruction, in numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    /// Counted with x fastest, like the thread in its block.
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

/// A finding in the making.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) who: Who,
    pub(crate) what: What,
    pub(crate) times: u64,
}

/// A [`Problem`], in numbers.
#[derive(Debug)]
pub(crate) enum What {
    Fault(Check, Reason),
    Uninitialised { space: Space, address: u64, bytes: u32, allocation: Option<Nearest> },
    Race { space: Space, address: u64, within: Within, later: Party, earlier: Party, other: Who },
    Unaligned { arrived: u32, absent: u32 },
    NoMember { members: u32 },
}

/// What makes findings one: the problem and its instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    problem: Discriminant<What>,
    reason: Option<Discriminant<Reason>>,
    pc: u32,
    other: Option<u32>,
}

impl What {
    pub(super) fn key(&self, pc: u32) -> Key {
        let reason = match self {
            What::Fault(_, reason) => Some(discriminant(reason)),
            _ => None,
        };
        let other = match self {
            What::Race { other, .. } => Some(other.pc),
            _ => None,
        };
        Key { problem: discriminant(self), reason, pc, other }
    }
}

impl Found {
    /// With names for the numbers: `place` gives where a thread was.
    pub(crate) fn told(self, kernel: &str, place: impl Fn(Who) -> Place) -> Finding {
        let (check, problem) = match self.what {
            What::Fault(check, reason) => (check, Problem::Fault(reason)),
            What::Uninitialised { space, address, bytes, allocation } => {
                (Check::Initcheck, Problem::Uninitialised { space, address, bytes, allocation })
            }
            What::Race { space, address, within, later, earlier, other } => {
                let earlier_place = place(other);
                (Check::Racecheck, Problem::Race { space, address, within, later, earlier, earlier_place })
            }
            What::Unaligned { arrived, absent } => (Check::Synccheck, Problem::Unaligned { arrived, absent }),
            What::NoMember { members } => (Check::Synccheck, Problem::NoMember { members }),
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

/// What ends a race.
fn remedy(within: Within, parties: [&Party; 2]) -> &'static str {
    let strong = parties.iter().all(|party| party.strength != Strength::Plain);
    let narrow = parties.iter().any(|party| matches!(party.strength, Strength::Atomic { block: true }));
    match within {
        Within::Grid if strong && narrow => "between blocks an atomic access needs .gpu scope; give it to both",
        _ if strong => "atomic accesses may meet where they are of one width; give them one",
        Within::Warp => "put a bar.warp.sync between them, or make both atomic",
        Within::Block => "put a barrier between them, or make both atomic",
        Within::Grid => {
            "publish the earlier one by a release in .gpu scope and acquire it before the later, or make both atomic"
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
                 {earlier_place}\n  are in no order; {}",
                remedy(*within, [later, earlier])
            ),
            Problem::Unaligned { arrived, absent } => write!(
                f,
                "is at an aligned barrier with lanes {arrived:#010x} of its warp and without lanes {absent:#010x}; move the \
                 barrier out of the condition"
            ),
            Problem::NoMember { members } => {
                write!(f, "synchronises with lanes {members:#010x} of its warp and is none of them; add it to the mask")
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

/// Flat: where it is, how often, and the whole of it as text.
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
