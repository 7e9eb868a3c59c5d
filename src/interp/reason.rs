//! What stops a launch, and where, as data; `Display` renders it as a part of a sentence.

use std::fmt;

use super::mem::{Nearest, space};
use super::vocabulary::{AccessKind, Space};
use crate::error::{Error, counted};

/// One thread at one instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line of the PTX, from 1.
    pub line: u32,
    /// The instruction as written.
    pub instruction: String,
    /// File and line that it was compiled from, where the PTX tells.
    pub source: Option<String>,
    /// `blockIdx` in x, y, z.
    pub block: [u32; 3],
    /// `threadIdx` in x, y, z: the first of the threads concerned.
    pub thread: [u32; 3],
}

/// What stops a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// An access that is not all in one live allocation, or beyond the end of its space.
    OutOfBounds(BadAccess),
    /// An address that is no multiple of the bytes accessed.
    Misaligned(BadAccess),
    /// A store to constant memory, or an atomic there.
    ReadOnly(BadAccess),
    /// Barriers at which threads of one warp wait for each other.
    DivergentBarrier {
        /// Lanes at the barrier, a bit each.
        arrived: u32,
        /// Lanes of the same warp that wait at others, and so never come.
        elsewhere: u32,
    },
    /// Barriers that wait for each other's warps.
    Deadlock {
        /// Each waiting warp.
        waiting: Vec<Waiting>,
    },
    /// A barrier's number is not below 16, or its thread count no multiple of 32.
    BadBarrier {
        /// The number.
        barrier: u32,
        /// How many threads it waits for, or 0 for all.
        threads: u32,
    },
    /// Lanes of a warp name different barriers, or thread counts, in one instruction.
    MixedBarrier {
        /// Two such lanes.
        lanes: [u32; 2],
        /// The barriers that they name.
        barriers: [u32; 2],
    },
    /// One block alone was more work than the launch may be: [`crate::interp::Config::work_limit`].
    WorkLimit(u64),
    /// The blocks of the launch were more work than it may be.
    LaunchLimit {
        /// [`crate::interp::Config::work_limit`]
        limit: u64,
        /// `blockIdx` of the block at whose end that was so.
        block: [u32; 3],
    },
    /// The blocks of the launch would be more work than it may be, whatever they do.
    GridLimit {
        /// [`crate::interp::Config::work_limit`]
        limit: u64,
        /// Blocks in x, y, z.
        grid: [u32; 3],
        /// The work that they are at least.
        least: u64,
    },
    /// The kernel executed `trap`: in Rust kernels, a panic.
    Trap,
    /// An `assert` of the kernel failed.
    Assertion {
        /// Its condition.
        message: String,
        /// Where it stands.
        file: String,
        /// The line.
        line: u32,
        /// The function.
        function: String,
    },
    /// A call through an address that is no function's, or that of another kind of function.
    BadCall {
        /// The address.
        address: u64,
        /// Whether there is a function.
        other: bool,
    },
    /// Calls within calls took more local memory than a thread can have; each takes at least 16 bytes.
    StackOverflow {
        /// The function whose call was one too many.
        function: String,
        /// How many calls within calls that would have been.
        depth: u32,
        /// Bytes that it would have needed.
        bytes: u32,
        /// How many there are.
        limit: u32,
    },
    /// An indexed branch has no target for its index.
    BranchIndex {
        /// The index.
        index: u32,
        /// How many targets there are.
        targets: u32,
    },
    /// The launch itself is impossible.
    Launch(String),
    /// The kernel needs what the software GPU does not have.
    Unsupported(Error),
}

/// A warp at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The warp's number in its block.
    pub warp: u32,
    /// The barrier's number.
    pub barrier: u32,
    /// How many threads it waits for, or 0 for all.
    pub threads: u32,
}

/// A memory access that cannot be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadAccess {
    /// What was to be done.
    pub access: AccessKind,
    /// The space accessed; a generic address counts as the space it lies in.
    pub space: Space,
    /// Bytes accessed by the thread.
    pub bytes: u32,
    /// The address, or the offset in spaces other than global.
    pub address: u64,
    /// In global memory, the allocation it was probably meant for.
    pub nearest: Option<Nearest>,
    /// In other spaces, their size in bytes.
    pub space_bytes: u64,
}

impl BadAccess {
    /// Bytes from the address to the nearest allocation: negative before it, 0 or more behind its end.
    /// `None` within it, or without one.
    pub fn distance(&self) -> Option<i64> {
        let nearest = self.nearest?;
        let end = nearest.base.saturating_add(nearest.bytes);
        if self.address < nearest.base {
            return Some(-i64::try_from(nearest.base - self.address).unwrap_or(i64::MAX));
        }
        self.address.checked_sub(end).map(|distance| i64::try_from(distance).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for BadAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s {} at {:#x}", self.access.verb(), counted(self.bytes, "byte"), self.address)?;
        if self.space != Space::Global {
            return write!(f, " of {} memory, which has {}", self.space, counted(self.space_bytes, "byte"));
        }
        if let Some(other) = space::named(self.address) {
            return write!(f, ", which is an address of {other} memory and none of global memory");
        }
        let Some(nearest) = self.nearest else { return f.write_str(", and nothing is allocated") };
        let what = if nearest.freed { "a freed allocation" } else { "an allocation" };
        match self.distance() {
            Some(distance) if distance < 0 => write!(f, ", {} before {what}", counted(-distance, "byte"))?,
            Some(distance) => write!(f, ", {distance} past the end of {what}", distance = counted(distance, "byte"))?,
            None if nearest.freed => f.write_str(", in memory that has been freed,")?,
            None => write!(f, " of {what}")?,
        }
        write!(f, " of {} at {:#x}", counted(nearest.bytes, "byte"), nearest.base)
    }
}

impl fmt::Display for Reason {
    #[expect(clippy::too_many_lines, reason = "a table: a sentence for each reason")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::OutOfBounds(access) => {
                write!(f, "{access}: out of bounds; check the extents and strides that were passed")
            }
            Reason::Misaligned(access) => {
                write!(f, "{access}: misaligned, it must be a multiple of {}; check the offset", access.bytes)
            }
            Reason::ReadOnly(access) => {
                write!(f, "{access}: constant memory, which kernels only read; use a `.global` variable to write to")
            }
            Reason::DivergentBarrier { arrived, elsewhere } => write!(
                f,
                "is at a barrier with lanes {arrived:#010x} of its warp while lanes {elsewhere:#010x} wait at another: a \
                 deadlock; move the barrier out of the condition"
            ),
            Reason::Deadlock { waiting } => {
                f.write_str("waits at a barrier for warps that wait at another:")?;
                for Waiting { warp, barrier, threads } in waiting.iter().take(4) {
                    match threads {
                        0 => write!(f, " warp {warp} at barrier {barrier},")?,
                        threads => write!(
                            f,
                            " warp {warp} at barrier {barrier} for {threads},",
                            threads = counted(threads, "thread")
                        )?,
                    }
                }
                write!(f, " {} waiting in all; let every warp pass the same barriers", waiting.len())?;
                f.write_str(" with the same number of threads")
            }
            Reason::BadBarrier { barrier, threads } => write!(
                f,
                "uses barrier {barrier} for {threads}; barriers are 0 to 15, and counts multiples of 32",
                threads = counted(threads, "thread")
            ),
            Reason::MixedBarrier { lanes: [a, b], barriers: [of_a, of_b] } => write!(
                f,
                "waits at barrier {of_a} in lane {a} and {of_b} in lane {b} of its warp, or for different counts; let a \
                 warp name one barrier and count"
            ),
            Reason::WorkLimit(limit) => write!(
                f,
                "ran when its block had done {limit} units of work without ending; look for a loop that never ends, or raise \
                 `Config::work_limit`"
            ),
            Reason::LaunchLimit { limit, block: [x, y, z] } => write!(
                f,
                "its blocks up to ({x}, {y}, {z}) were more than {limit} units of work; launch a smaller grid, or raise \
                 `Config::work_limit`"
            ),
            Reason::GridLimit { limit, grid, least } => write!(
                f,
                "a grid of {grid:?} blocks; they are at least {least} units of work, and the limit is {limit}: launch a \
                 smaller one, or raise `Config::work_limit`"
            ),
            Reason::Trap => f.write_str("executed a trap: the kernel panicked or asserted"),
            Reason::Assertion { message, file, line, function } => {
                write!(f, "failed the assertion `{message}` at {file}:{line} in {function}; look why it does not hold")
            }
            Reason::BadCall { address, other: true } => {
                write!(f, "calls the function at {address:#x}, which takes or gives something else; check the pointer")
            }
            Reason::BadCall { address, .. } => {
                write!(f, "calls {address:#x}, which is no function's address here; check the pointer")
            }
            Reason::StackOverflow { function, depth, bytes, limit } => write!(
                f,
                "calls {function:?}, {} deep, which takes {} of local memory and a thread has {limit}; look for a recursion that \
                 never ends",
                counted(depth, "call"),
                counted(bytes, "byte")
            ),
            Reason::BranchIndex { index, targets } => {
                write!(f, "picks target {index} of {targets}; check the index")
            }
            Reason::Launch(context) => f.write_str(context),
            Reason::Unsupported(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (PTX line {}", self.instruction, self.line)?;
        if let Some(source) = &self.source {
            write!(f, ", {source}")?;
        }
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(f, "): thread ({tx}, {ty}, {tz}) of block ({bx}, {by}, {bz})")
    }
}
