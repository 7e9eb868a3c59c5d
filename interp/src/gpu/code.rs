//! The code of a kernel: flat, over numbered registers, with the data that launches and messages
//! also need.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::isa::Op;
use super::mem::cells::Scratch;
use super::model::atomics::Update;
use super::modifiers::Sync;
use super::parse::ast::Span;
use super::parse::beginning;
use super::reduce::{Change, Number};
use super::vocabulary::{AccessKind, File, LANES, Space};

/// The most instructions of a kernel, far beyond what compilers emit. The limit exists because the
/// analysis of control flow is quadratic in the worst case.
pub(crate) const MAX_INSTRUCTIONS: usize = 1 << 17;
/// A pc that does not exist: the meeting point of a branch whose lanes never meet again.
pub(crate) const NOWHERE: u32 = u32::MAX;
/// Bytes of local memory that a thread may have on any GPU. Here, frames of functions and their
/// saved registers count too.
pub(crate) const MAX_LOCAL: u32 = 512 << 10;
/// Set in [`Ins::guard`] if the guard is negated.
pub(crate) const NEGATED: u16 = 1 << 15;
/// The predicate that is true in every lane: the guard of instructions without one.
pub(crate) const ALWAYS: u16 = 0;

/// One instruction. Operands are register numbers: immediates, parameters and special registers are
/// registers too, filled beforehand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ins {
    /// The operation.
    pub(crate) op: Op,
    /// The predicate that must hold in a lane, perhaps [`NEGATED`].
    pub(crate) guard: u16,
    /// The result; for a load or store, the address.
    pub(crate) d: u16,
    /// The sources; for a load, the results; for an atomic, the first of each: results, operands,
    /// operands to store.
    pub(crate) s: [u16; 4],
    /// For an access to memory, the data that it moves.
    pub(crate) access: Access,
    /// A branch's target; a load's or store's offset in bytes, relative to the frame for an access
    /// to the frame; or the number of a call, a function or a table of targets.
    pub(crate) imm: i32,
    /// For an access to memory, its index in the kernel's [`Code::sites`].
    pub(crate) site: u32,
    /// The work of executing it, without the part that depends on more than the instruction.
    pub(crate) work: u16,
    /// True if an instruction of the PTX begins with it. An instruction of several steps counts
    /// once.
    pub(crate) first: bool,
}

/// The data that an access moves for each lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Access {
    /// Bytes of an element: 1, 2, 4 or 8.
    pub(crate) width: u8,
    /// Elements: 1, 2 or 4.
    pub(crate) count: u8,
    /// True if narrow elements are sign-extended.
    pub(crate) signed: bool,
    /// True if the data registers have 64 bits.
    pub(crate) wide: bool,
    /// True if the address register has 64 bits.
    pub(crate) wide_address: bool,
    /// The order that the access, or a fence, makes.
    pub(crate) sync: Sync,
    /// Global or shared memory, if the instruction says so.
    pub(crate) space: Option<Space>,
}

impl Access {
    /// Bytes moved for a lane.
    #[inline(always)]
    pub(crate) fn bytes(self) -> u32 {
        u32::from(self.width) * u32::from(self.count)
    }
}

/// A register that is filled before the code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Preset {
    pub(crate) file: File,
    pub(crate) slot: u16,
    pub(crate) value: PresetValue,
}

impl Preset {
    /// Returns whether its value differs from block to block.
    pub(crate) fn varies(&self) -> bool {
        self.value.in_block([0; 3]).is_some()
    }
}

/// The value of a preset register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PresetValue {
    /// An immediate.
    Bits(u64),
    /// Bytes of the parameters.
    Param { offset: u32, bytes: u8, signed: bool },
    /// The offset where dynamic shared memory begins.
    DynamicShared,
    /// The address of a variable of the module, plus an offset in bytes.
    Variable { index: u32, offset: i64 },
    /// Bytes of dynamic shared memory; if `fixed`, plus those of static shared memory.
    SharedBytes { fixed: bool },
    /// `%tid`
    Tid(u8),
    /// `%ntid`
    Ntid(u8),
    /// `%ctaid`
    Ctaid(u8),
    /// `%nctaid`
    Nctaid(u8),
    /// `%clusterid`, for clusters of this extent.
    Clusterid(u8, u8),
    /// `%nclusterid`, for clusters of this extent.
    Nclusterid(u8, u8),
    /// `%cluster_ctaid`, for clusters of this extent.
    ClusterCtaid(u8, u8),
    /// `%cluster_ctarank`, for clusters of this shape.
    ClusterCtarank([u8; 3]),
    /// Half of the address of the memory that a cooperative launch has for its grid: the high bits
    /// in `%envreg1`, the low ones in `%envreg2`.
    Workspace { high: bool },
    /// `%laneid`
    Lane,
    /// `%warpid`
    Warp,
    /// `%nwarpid`
    Warps,
    /// `%lanemask_*`: the lanes below, the lane itself, the lanes above, or a union of them.
    LaneMask { below: bool, equal: bool, above: bool },
}

impl PresetValue {
    /// Returns the value in the block of this index, if it differs from block to block.
    pub(crate) fn in_block(self, block: [u32; 3]) -> Option<u64> {
        let of = |axis: u8| block[usize::from(axis)];
        Some(u64::from(match self {
            Self::Ctaid(axis) => of(axis),
            Self::Clusterid(axis, extent) => of(axis) / u32::from(extent),
            Self::ClusterCtaid(axis, extent) => of(axis) % u32::from(extent),
            Self::ClusterCtarank(shape) => {
                let within = |axis: usize| block[axis] % u32::from(shape[axis]);
                let [x, y, _] = shape.map(u32::from);
                within(0) + x * (within(1) + y * within(2))
            }
            _ => return None,
        }))
    }

    /// Returns whether the lanes of a warp may have different values.
    pub(crate) fn is_by_lane(self) -> bool {
        matches!(self, Self::Tid(_) | Self::Lane | Self::LaneMask { .. })
    }
}

/// An instruction that accesses memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site {
    /// Its effect on memory.
    pub(crate) kind: AccessKind,
    /// For an atomic, the way in which shared memory performs it.
    pub(crate) update: Update,
    /// The round of loads that it is part of, if a warp waits for its result.
    pub(crate) round: Option<u32>,
    /// Its pc.
    pub(crate) pc: u32,
}

/// Frames begin at multiples of this. It is therefore the largest alignment of a function's
/// variables, and the least memory that a call takes: on a GPU, that memory holds the return
/// address.
pub(crate) const FRAME_ALIGN: u64 = 16;

/// A function of the kernel's code.
#[derive(Debug)]
pub(crate) struct Function {
    /// Its declared name.
    pub(crate) name: Box<str>,
    /// Its first instruction.
    pub(crate) entry: u32,
    /// Bytes that an activation takes of each thread's local memory: first its parameters and
    /// results, then its variables, then the saved registers.
    pub(crate) frame_bytes: u32,
    /// The places of parameters and results in the frame.
    pub(crate) layout: Layout,
    /// Registers to save while it runs, because it may be active already.
    pub(crate) saved: Vec<(File, u16)>,
    /// The offset of the saved registers in the frame.
    pub(crate) saved_at: u32,
    /// True if it may be entered while it is active.
    pub(crate) recursive: bool,
}

impl Function {
    /// The work of a call and its return beyond that of an instruction: the data that is copied,
    /// lane by lane.
    pub(crate) fn call_work(&self) -> u64 {
        let words = |bytes: u32| if bytes.is_multiple_of(4) { bytes / 4 } else { bytes };
        let Layout { params, results } = &self.layout;
        let copied: u32 = params.iter().chain(results).map(|&(_, bytes)| words(bytes)).sum();
        2 + 8 * (u64::from(copied) + self.saved.len() as u64)
    }
}

/// The places of a function's parameters and results in its frame: offset and bytes of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) params: Vec<(u32, u32)>,
    pub(crate) results: Vec<(u32, u32)>,
}

impl Layout {
    /// The total bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.params.iter().chain(&self.results).map(|(offset, bytes)| offset + bytes).max().unwrap_or(0)
    }
}

/// A call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) target: Target,
    /// The places of its arguments and results in the caller's frame.
    pub(crate) passed: Layout,
    /// The places of the same data in the function's frame. For a call through a pointer, every
    /// possible function must have them there.
    pub(crate) layout: Layout,
}

/// The function that is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// The function of this number.
    Function(u32),
    /// The function whose address a register holds: any function, or one of this sorted list.
    Pointer(Option<Arc<[u32]>>),
    /// `vprintf` of the CUDA runtime.
    Print,
    /// `__assertfail` of the CUDA runtime.
    Assert,
    /// `malloc` of the CUDA runtime.
    Malloc,
    /// `free` of the CUDA runtime.
    Free,
}

/// A product of matrices: the sum of `addend` and of the product of `first` and `second`.
#[derive(Debug, Clone)]
pub(crate) struct Product {
    /// Rows of the first matrix and of the sum: 8 or 16.
    pub(crate) rows: u8,
    /// Columns of the first matrix, and rows of the second.
    pub(crate) depth: u16,
    /// The elements of the first matrix.
    pub(crate) a: Element,
    /// The elements of the second matrix.
    pub(crate) b: Element,
    /// The elements of the sum.
    pub(crate) sum: Sum,
    /// True if sums of integers stay at the ends of their range.
    pub(crate) saturates: bool,
    /// For single bits, true if those that differ are counted.
    pub(crate) differs: bool,
    /// The registers of each matrix.
    pub(crate) first: Box<[u16]>,
    pub(crate) second: Box<[u16]>,
    pub(crate) addend: Box<[u16]>,
    pub(crate) result: Box<[u16]>,
}

/// A matrix of `wmma` in registers, which a load fills and a store reads.
#[derive(Debug)]
pub(crate) struct Fragment {
    /// Its registers, those of each tile side by side. There may be more, which then have copies.
    pub(crate) slots: Box<[u16]>,
    /// For each tile, its place down and right, in tiles. A tile has 8 rows.
    pub(crate) tiles: Box<[(u8, u8)]>,
    /// The offset of the address in bytes.
    pub(crate) offset: i32,
    /// Bytes of an element.
    pub(crate) bytes: u8,
    /// The elements of a row of a tile that a lane has. The row has four times as many.
    pub(crate) side_by_side: u8,
    /// True if the elements of a row lie side by side in memory, and not those of a column.
    pub(crate) along: bool,
}

/// The registers of a tile, of which a lane has so many elements of so many bytes.
pub(crate) fn registers_of_tile(bytes: u8, side_by_side: u8) -> usize {
    usize::from(bytes * side_by_side) / if bytes == 8 { 8 } else { 4 }
}

/// A copy in bulk: its registers, and what it does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bulk {
    /// Generic addresses.
    pub(crate) to: u16,
    pub(crate) from: u16,
    /// The number of bytes.
    pub(crate) size: u16,
    /// The address of the barrier where it ends; `None` for a copy in a group.
    pub(crate) barrier: Option<u16>,
    /// The ranks of the blocks that get the bytes, a bit each, if there may be several.
    pub(crate) ranks: Option<u16>,
    /// The change that it makes of what is there, if it is not a plain copy.
    pub(crate) change: Option<Change>,
    /// The type of the elements that it changes; a tensor has its own.
    pub(crate) number: Option<Number>,
    pub(crate) to_shared: bool,
    pub(crate) from_shared: bool,
    /// The box of a tensor that it copies, in place of bytes side by side.
    pub(crate) tensor: Option<Tensor>,
}

/// The registers that name a box of a tensor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tensor {
    /// The generic address of the tensor's map.
    pub(crate) map: u16,
    /// The place in each dimension.
    pub(crate) at: [u16; 5],
    /// The number of dimensions.
    pub(crate) dimensions: u8,
}

/// The type of an element of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    F16,
    Bf16,
    Tf32,
    F64,
    E4M3,
    E5M2,
    U8,
    S8,
    U4,
    S4,
    Bit,
    /// 32 bits side by side.
    Word,
}

impl Element {
    /// The type of this name in an opcode.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "tf32" => Self::Tf32,
            "f64" => Self::F64,
            "e4m3" => Self::E4M3,
            "e5m2" => Self::E5M2,
            "u8" => Self::U8,
            "s8" => Self::S8,
            "u4" => Self::U4,
            "s4" => Self::S4,
            "b1" => Self::Bit,
            _ => return None,
        })
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::F64 => 64,
            Self::Tf32 | Self::Word => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::E4M3 | Self::E5M2 | Self::U8 | Self::S8 => 8,
            Self::U4 | Self::S4 => 4,
            Self::Bit => 1,
        }
    }
}

/// The type of the elements of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    F16,
    F32,
    F64,
    S32,
}

impl Sum {
    /// The type of this name in an opcode.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "f16" => Self::F16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => Self::S32,
        }
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::F16 => 16,
            Self::F32 | Self::S32 => 32,
            Self::F64 => 64,
        }
    }
}

/// The source of an instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// Its text.
    pub(crate) span: Span,
    /// File number and line of the last `.loc`.
    pub(crate) source: Option<(u32, u32)>,
}

/// One parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name in the PTX.
    pub name: String,
    /// Its offset in the launch's parameter bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
    /// Its alignment in bytes.
    pub align: usize,
    /// Its type, or that of its elements, as in the PTX: `u64`.
    pub ty: String,
}

/// The code of one kernel.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// The instructions; the last one is an exit.
    pub(crate) instructions: Vec<Ins>,
    /// For each branch, the pc where its lanes meet again.
    pub(crate) reconvergence: Vec<u32>,
    /// The instructions that access memory, in order.
    pub(crate) sites: Vec<Site>,
    /// The source of each instruction.
    pub(crate) origins: Vec<Origin>,
    /// Registers to fill.
    pub(crate) presets: Vec<Preset>,
    /// Registers that may be read before they are written. They are cleared for each block, so that
    /// every run gives the same result.
    pub(crate) cleared: Vec<(File, u16)>,
    /// The number of registers in each file: predicates, 32 bits, 64 bits.
    pub(crate) registers: [usize; 3],
    /// The shape of a cluster in blocks, if the kernel gives one.
    pub(crate) cluster: Option<[u8; 3]>,
    /// Bytes of static shared memory.
    pub(crate) shared_bytes: u32,
    /// Alignment of dynamic shared memory.
    pub(crate) dynamic_align: u32,
    /// Bytes of local memory that the kernel itself declares for a thread; calls add frames to
    /// them.
    pub(crate) local_bytes: u32,
    /// The functions that it may call, by their numbers in the module.
    pub(crate) functions: Vec<Option<Function>>,
    /// Its calls.
    pub(crate) calls: Vec<Call>,
    /// Its products of matrices, those of each instruction.
    pub(crate) products: Vec<Box<[Product]>>,
    /// Its fragments of matrices that are loaded or stored.
    pub(crate) fragments: Vec<Fragment>,
    /// Its copies in bulk.
    pub(crate) bulks: Vec<Bulk>,
    /// The targets of its indexed branches. Several branches may share a table.
    pub(crate) tables: Vec<Vec<u32>>,
    /// Pairs of pcs, in both orders: a load of a guess, and the compare-and-swap that refuses it
    /// where it is wrong.
    pub(crate) guesses: HashSet<[u32; 2]>,
}

impl Code {
    /// The shape of a cluster in blocks. Without clusters, each block is its own.
    pub(crate) fn cluster_shape(&self) -> [u64; 3] {
        self.cluster.map_or([1; 3], |shape| shape.map(u64::from))
    }

    /// The blocks of a cluster.
    pub(crate) fn cluster_blocks(&self) -> u64 {
        self.cluster_shape().iter().product()
    }

    /// The offset where dynamic shared memory begins: after the static shared memory.
    pub(crate) fn dynamic_base(&self) -> u32 {
        self.shared_bytes.next_multiple_of(self.dynamic_align.max(1))
    }

    /// Bytes from one lane's local memory to the next lane's, which satisfies every alignment.
    pub(crate) fn local_stride(&self) -> u64 {
        u64::from(self.local_bytes).next_multiple_of(16)
    }

    /// Returns whether it may use the heap of kernels.
    pub(crate) fn uses_heap(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.target, Target::Malloc | Target::Free))
    }

    /// Returns whether it reads the address of a cooperative launch's memory.
    pub(crate) fn uses_workspace(&self) -> bool {
        self.presets.iter().any(|preset| matches!(preset.value, PresetValue::Workspace { .. }))
    }

    /// Local memory of a warp before calls enlarge it; `None` if the host has too little memory.
    pub(crate) fn new_local(&self) -> Option<Scratch> {
        Scratch::new(LANES as u64 * self.local_stride())
    }

    /// Bytes that a warp's registers, local memory and counts take on the host.
    pub(crate) fn warp_bytes(&self) -> u64 {
        let [pred, b32, b64] = self.registers.map(|count| count as u64);
        let lanes = LANES as u64;
        4 * pred + lanes * (4 * b32 + 8 * b64 + self.local_stride()) + 16 * self.sites.len() as u64
    }

    /// The most bytes of local memory that a thread may take, with all calls.
    pub(crate) fn most_local(&self) -> u64 {
        let functions = || self.functions.iter().flatten();
        let frames = match functions().any(|function| function.recursive) {
            true => u64::from(MAX_LOCAL),
            false => functions().map(|function| u64::from(function.frame_bytes)).sum(),
        };
        (self.local_stride() + frames).min(u64::from(MAX_LOCAL)).max(self.local_stride())
    }
}

/// The text of a module, for messages.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) text: Arc<str>,
    /// `.file` directives by their numbers.
    pub(crate) files: BTreeMap<u32, String>,
}

impl Listing {
    /// The text of a span on one line, shortened if it is very long.
    pub(crate) fn line(&self, span: Span) -> String {
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        beginning(&text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The file and line: `src/gemm.rs:44`. The file alone where the line is 0, which compilers
    /// give to instructions that no line asked for.
    pub(crate) fn source(&self, (file, line): (u32, u32)) -> Option<String> {
        let file = self.files.get(&file)?;
        Some(if line == 0 { file.clone() } else { format!("{file}:{line}") })
    }
}
