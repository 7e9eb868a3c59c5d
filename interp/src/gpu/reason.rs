//! Why and where a launch stopped, as data; `Display` renders it as part of a sentence.

use std::fmt;

use super::mem::{Nearest, space};
use super::vocabulary::{AccessKind, BARRIERS, Space};
use crate::error::{Error, counted};

/// One thread at one instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line of the PTX, from 1.
    pub line: u32,
    /// The instruction as written.
    pub instruction: String,
    /// File and line that it was compiled from, if the PTX has them; the file alone if the PTX has
    /// line 0.
    pub source: Option<String>,
    /// `blockIdx` in x, y, z.
    pub block: [u32; 3],
    /// `threadIdx` in x, y, z of the first thread concerned.
    pub thread: [u32; 3],
}

impl Place {
    /// The language of the reader: that of the source which the PTX names.
    pub(crate) fn language(&self) -> Language {
        let place = self.source.as_deref().unwrap_or_default();
        let file = place.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(':');
        if file.ends_with(".cu") || file.ends_with(".cuh") { Language::Cuda } else { Language::Ptx }
    }
}

/// The language in which a sentence about a kernel names things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// PTX, which every kernel has.
    Ptx,
    /// CUDA C++.
    Cuda,
}

impl Language {
    /// The name of a memory.
    pub(crate) fn space(self, space: Space) -> String {
        if self == Self::Cuda && space == Space::Shared { "`__shared__`".into() } else { space.to_string() }
    }
}

/// Why a launch stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// An access that no single live allocation contains, or that goes beyond the end of its space.
    OutOfBounds(BadAccess),
    /// An address that is not a multiple of the access's size.
    Misaligned(BadAccess),
    /// A store to constant memory, or an atomic on it.
    ReadOnly(BadAccess),
    /// Threads of one warp wait for each other at different barriers.
    DivergentBarrier {
        /// Lanes at the barrier, a bit each.
        arrived: u32,
        /// Lanes of the same warp that wait at other barriers and so never arrive.
        elsewhere: u32,
    },
    /// Warps of one block wait for each other at different barriers.
    Deadlock {
        /// Each waiting warp.
        waiting: Vec<Waiting>,
    },
    /// A barrier's number is 16 or more, or its thread count is not a multiple of 32.
    BadBarrier {
        /// The number.
        barrier: u32,
        /// The number of threads that it waits for; 0 means all.
        threads: u32,
    },
    /// Lanes of a warp name different barriers or thread counts in one instruction.
    MixedBarrier {
        /// Two such lanes.
        lanes: [u32; 2],
        /// The barriers that they name.
        barriers: [u32; 2],
    },
    /// A thread waits at the barrier of its cluster without having arrived there, or arrives again
    /// before it has waited.
    ClusterBarrier {
        /// True if it arrives again.
        again: bool,
    },
    /// An address in the shared memory of a block that the cluster does not have.
    OutsideCluster {
        /// The rank of that block.
        rank: u32,
        /// The number of blocks of the cluster.
        blocks: u32,
    },
    /// An access to the shared memory of another block of the cluster, which has ended.
    EndedBlock {
        /// The rank of that block.
        rank: u32,
    },
    /// One block alone exceeded the work limit of the launch:
    /// [`crate::gpu::Config::work_limit`].
    WorkLimit(u64),
    /// The blocks of the launch together exceeded the work limit.
    LaunchLimit {
        /// [`crate::gpu::Config::work_limit`]
        limit: u64,
        /// `blockIdx` of the block whose work exceeded the limit.
        block: [u32; 3],
    },
    /// The blocks of the launch would exceed the work limit, whatever they do.
    GridLimit {
        /// [`crate::gpu::Config::work_limit`]
        limit: u64,
        /// Blocks in x, y, z.
        grid: [u32; 3],
        /// The least work that these blocks can do.
        least: u64,
    },
    /// The kernel executed `trap`: in Rust kernels, a panic.
    Trap,
    /// An `assert` of the kernel failed.
    Assertion {
        /// Its condition.
        message: String,
        /// The source file.
        file: String,
        /// The line.
        line: u32,
        /// The function.
        function: String,
    },
    /// A call through an address that belongs to no function, or to a function of another type.
    BadCall {
        /// The address.
        address: u64,
        /// True if the address belongs to a function of another type.
        other: bool,
    },
    /// A `free` of memory that is not a live chunk of the heap.
    BadFree {
        /// The address.
        address: u64,
        /// True if `malloc` had returned it, and it was freed since.
        again: bool,
    },
    /// Nested calls took more local memory than a thread can have; each takes at least 16 bytes.
    StackOverflow {
        /// The function whose call exceeded the limit.
        function: String,
        /// The depth that the nested calls would have reached.
        depth: u32,
        /// The bytes of local memory that they would have needed.
        bytes: u32,
        /// The bytes of local memory that a thread has.
        limit: u32,
    },
    /// An indexed branch has no target for its index.
    BranchIndex {
        /// The index.
        index: u32,
        /// The number of targets.
        targets: u32,
    },
    /// A warp has more copies by `cp.async` under way than the software GPU keeps.
    TooManyCopies {
        /// The most that it keeps.
        limit: u32,
    },
    /// A copy in bulk whose address or size is not a multiple of what it must be.
    BulkAlignment {
        /// The operand: its source, destination, size or barrier.
        what: &'static str,
        /// Its value; the offset in shared memory.
        value: u64,
        /// The number of which it must be a multiple.
        align: u64,
    },
    /// A copy of a box of a tensor, by an address where no tensor map is.
    NoTensorMap {
        /// The address.
        address: u64,
    },
    /// A copy of a box of a tensor that has another number of dimensions than the instruction.
    OtherTensor {
        /// The dimensions of the tensor, and those that the instruction names.
        dimensions: [u32; 2],
    },
    /// A copy of a box that changes a tensor in a way that the type of its elements does not have.
    TensorReduction,
    /// The launch itself is impossible.
    Launch(String),
    /// The kernel uses something that the software GPU does not support.
    Unsupported(Error),
}

/// A warp at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The warp's number in its block.
    pub warp: u32,
    /// The barrier's number, or 16 for the barrier of the block's cluster.
    pub barrier: u32,
    /// The number of threads that it waits for; 0 means all.
    pub threads: u32,
}

/// A memory access that is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadAccess {
    /// The kind of access.
    pub access: AccessKind,
    /// The space accessed. A generic address counts as the space that it points into.
    pub space: Space,
    /// Bytes accessed by the thread.
    pub bytes: u32,
    /// The address in global memory; the offset in other spaces.
    pub address: u64,
    /// For global memory, the allocation that the access was probably meant for.
    pub nearest: Option<Nearest>,
    /// For other spaces, their size in bytes.
    pub space_bytes: u64,
}

impl BadAccess {
    /// Bytes from the nearest allocation to the address: negative before the allocation, 0 or more
    /// past its end. `None` if the address lies within it, or if there is no allocation.
    pub fn distance(&self) -> Option<i64> {
        let nearest = self.nearest?;
        let end = nearest.base.saturating_add(nearest.bytes);
        if self.address < nearest.base {
            return Some(-i64::try_from(nearest.base - self.address).unwrap_or(i64::MAX));
        }
        self.address.checked_sub(end).map(|distance| i64::try_from(distance).unwrap_or(i64::MAX))
    }

    /// Why the access is not possible in a space of so many bytes, if it is not. Its address is to
    /// be a multiple of `align`.
    pub(crate) fn beyond(self, align: u64) -> Option<Reason> {
        let inside = self.address.checked_add(u64::from(self.bytes)).is_some_and(|end| end <= self.space_bytes);
        match (inside, self.address.is_multiple_of(align)) {
            (true, true) => None,
            (true, false) => Some(Reason::Misaligned(self)),
            (false, _) => Some(Reason::OutOfBounds(self)),
        }
    }

    fn tell(&self, f: &mut fmt::Formatter<'_>, language: Language) -> fmt::Result {
        write!(f, "{}s {} at {:#x}", self.access.verb(), counted(self.bytes, "byte"), self.address)?;
        if self.space != Space::Global {
            let (space, bytes) = (language.space(self.space), counted(self.space_bytes, "byte"));
            return write!(f, " of {space} memory, which has {bytes}");
        }
        if let Some(other) = space::named(self.address) {
            return write!(f, ", which is an address of {other} memory, not of global memory");
        }
        let Some(nearest) = self.nearest else { return f.write_str(", and nothing is allocated") };
        let what = if nearest.freed { "a freed allocation" } else { "an allocation" };
        match self.distance() {
            Some(distance) if distance < 0 => write!(f, ", {} before {what}", counted(-distance, "byte"))?,
            Some(distance) => write!(f, ", {distance} past the end of {what}", distance = counted(distance, "byte"))?,
            None if nearest.freed => f.write_str(", in memory that has been freed,")?,
            None => write!(f, " of {what}")?,
        }
        write!(f, " of {} at {:#x}", counted(nearest.bytes, "byte"), nearest.base)?;
        nearest.foreign.map_or(Ok(()), |gpu| write!(f, " of GPU {gpu}, which does not share it"))
    }

    /// Returns whether the memory is another GPU's, which does not share it.
    fn is_foreign(&self) -> bool {
        self.nearest.is_some_and(|nearest| nearest.foreign.is_some()) && self.distance().is_none()
    }
}

/// In the words of PTX.
impl fmt::Display for BadAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tell(f, Language::Ptx)
    }
}

/// In the words of PTX.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tell(f, Language::Ptx)
    }
}

impl Reason {
    #[expect(clippy::too_many_lines, reason = "a table: a sentence for each reason")]
    pub(crate) fn tell(&self, f: &mut fmt::Formatter<'_>, language: Language) -> fmt::Result {
        if let Reason::OutOfBounds(access) | Reason::Misaligned(access) | Reason::ReadOnly(access) = self {
            access.tell(f, language)?;
        }
        match self {
            Reason::OutOfBounds(access) if access.is_foreign() => f.write_str("; let that GPU share its memory first"),
            // The extents and strides of an array reach a kernel as its parameters. In CUDA C++, an
            // index may be wrong without any.
            Reason::OutOfBounds(access) if language == Language::Ptx && access.space == Space::Global => {
                f.write_str(": out of bounds; check the extents and strides that were passed")
            }
            Reason::OutOfBounds(_) => f.write_str(
                ": out of bounds; test the index against the number of elements, or look at how the line computes it",
            ),
            Reason::Misaligned(access) => {
                write!(f, ": misaligned, it must be a multiple of {}; check the offset", access.bytes)
            }
            Reason::ReadOnly(_) => {
                f.write_str(": constant memory, which kernels only read; use a `.global` variable to write to")
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
                        0 if *barrier == BARRIERS as u32 => write!(f, " warp {warp} at the barrier of its cluster,")?,
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
            Reason::ClusterBarrier { again: false } => f.write_str(
                "waits at the barrier of its cluster, where it has not arrived; let it execute `barrier.cluster.arrive` first",
            ),
            Reason::ClusterBarrier { again: true } => f.write_str(
                "arrives again at the barrier of its cluster; let it execute `barrier.cluster.wait` in between",
            ),
            Reason::OutsideCluster { rank, blocks } => write!(
                f,
                "accesses the shared memory of block {rank} of its cluster, which has {}; check the rank",
                counted(blocks, "block")
            ),
            Reason::EndedBlock { rank } => write!(
                f,
                "accesses the shared memory of block {rank} of its cluster, which has ended; let all blocks meet at the \
                 barrier of the cluster before they end"
            ),
            Reason::WorkLimit(limit) => write!(
                f,
                "was running when its block had done {limit} units of work; look for a loop that never ends, or raise \
                 `Config::work_limit`"
            ),
            Reason::LaunchLimit { limit, block: [x, y, z] } => write!(
                f,
                "its blocks up to ({x}, {y}, {z}) took more than {limit} units of work; launch a smaller grid, or raise \
                 `Config::work_limit`"
            ),
            Reason::GridLimit { limit, grid, least } => write!(
                f,
                "a grid of {grid:?} blocks, which take at least {least} units of work; the limit is {limit}: launch a \
                 smaller one, or raise `Config::work_limit`"
            ),
            Reason::Trap => f.write_str("executed a trap: the kernel panicked or asserted"),
            Reason::Assertion { message, file, line, function } => {
                write!(
                    f,
                    "failed the assertion `{message}` at {file}:{line} in {function}; find out why it does not hold"
                )
            }
            Reason::BadCall { address, other: true } => {
                write!(
                    f,
                    "calls the function at {address:#x}, which has other parameters or results; check the pointer"
                )
            }
            Reason::BadCall { address, .. } => {
                write!(f, "calls {address:#x}, which is not the address of a function; check the pointer")
            }
            Reason::BadFree { address, again: true } => {
                write!(f, "frees {address:#x}, which has been freed before; free it once")
            }
            Reason::BadFree { address, .. } => {
                write!(f, "frees {address:#x}, which `malloc` did not return in a kernel; free what it returned")
            }
            Reason::StackOverflow { function, depth, bytes, limit } => write!(
                f,
                "calls {function:?}, {} deep, which takes {} of local memory and a thread has {limit}; look for a recursion that \
                 never ends",
                counted(depth, "call"),
                counted(bytes, "byte")
            ),
            Reason::BranchIndex { index, targets } => {
                write!(f, "branches to target {index} of a table of {targets}; check the index")
            }
            Reason::TooManyCopies { limit } => write!(
                f,
                "begins another copy while {limit} copies of its warp are under way, the most that the software GPU \
                 keeps; wait for earlier ones first"
            ),
            Reason::BulkAlignment { what: "size", value, align } => write!(
                f,
                "copies {} in bulk: its size must be a multiple of {align}; copy the rest with plain stores",
                counted(*value, "byte")
            ),
            Reason::BulkAlignment { what: "first coordinate", value, align } => write!(
                f,
                "copies a box of a tensor at a first coordinate that is {} from 0: misaligned, it must be a multiple of {align}; check \
                 the coordinate",
                counted(*value, "byte")
            ),
            Reason::BulkAlignment { what, value, align } => {
                write!(f, "copies in bulk with its {what} at {value:#x}: misaligned, it must be a multiple of {align}; check the offset")
            }
            Reason::NoTensorMap { address } => write!(
                f,
                "copies a box of a tensor, but there is no tensor map at {address:#x}; pass one of `cuTensorMapEncodeTiled` as a \
                 parameter, or copy it to global memory"
            ),
            Reason::OtherTensor { dimensions: [has, names] } => write!(
                f,
                "copies a box of a tensor that has {}, and it names {names}; make the map for as many",
                counted(*has, "dimension")
            ),
            Reason::TensorReduction => f.write_str(
                "changes a tensor by a reduction that elements of its type do not have; make the map for another type",
            ),
            Reason::Launch(context) => f.write_str(context),
            Reason::Unsupported(error) => fmt::Display::fmt(error, f),
        }
    }
}

/// In CUDA C++ the line of the source stands first.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, instruction, source, block: [bx, by, bz], thread: [tx, ty, tz] } = self;
        match source {
            Some(source) if self.language() == Language::Cuda => {
                write!(f, "{source} (PTX line {line}, `{instruction}`)")?;
            }
            Some(source) => write!(f, "`{instruction}` (PTX line {line}, {source})")?,
            None => write!(f, "`{instruction}` (PTX line {line})")?,
        }
        write!(f, ": thread ({tx}, {ty}, {tz}) of block ({bx}, {by}, {bz})")
    }
}
