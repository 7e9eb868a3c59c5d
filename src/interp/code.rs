//! The code of a kernel: flat, over numbered registers, with what launches and messages need besides.

use std::sync::Arc;

use super::isa::Op;
use super::mem::cells::Scratch;
use super::model::atomics::Update;
use super::modifiers::Sync;
use super::parse::ast::Span;
use super::parse::beginning;
use super::vocabulary::{AccessKind, File, LANES, Space};

/// Instructions of a kernel, far beyond what compilers emit: the analysis of control flow is
/// quadratic at worst.
pub(crate) const MAX_INSTRUCTIONS: usize = 1 << 17;
/// A pc that is none: where a branch's lanes never meet again.
pub(crate) const NOWHERE: u32 = u32::MAX;
/// Local memory that a thread may have on any GPU, in bytes; here frames of functions and their saved registers count too.
pub(crate) const MAX_LOCAL: u32 = 512 << 10;
/// Set in [`Ins::guard`] where the guard is negated.
pub(crate) const NEGATED: u16 = 1 << 15;
/// The predicate that is true in every lane: the guard of what has none.
pub(crate) const ALWAYS: u16 = 0;

/// One instruction. Operands are registers' numbers: immediates, parameters and special registers are registers too,
/// filled beforehand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ins {
    /// What to do.
    pub(crate) op: Op,
    /// The predicate that lanes must have, perhaps [`NEGATED`].
    pub(crate) guard: u16,
    /// The result; for a load or store, the address.
    pub(crate) d: u16,
    /// The sources; for a load, the results; for an atomic, the first of each: results, operands, operands to store.
    pub(crate) s: [u16; 4],
    /// For what accesses memory, what is moved.
    pub(crate) access: Access,
    /// A branch's target; a load's or store's offset in bytes, within the frame where it is one of the frame's; the number
    /// of a call, a function or a table of targets.
    pub(crate) imm: i32,
    /// Of what accesses memory, which of the kernel's [`Code::sites`] it is.
    pub(crate) site: u32,
    /// The work that executing it is; what depends on more than the instruction comes on top.
    pub(crate) work: u16,
}

/// What an access to memory moves for each lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Access {
    /// Bytes of an element: 1, 2, 4 or 8.
    pub(crate) width: u8,
    /// Elements: 1, 2 or 4.
    pub(crate) count: u8,
    /// Narrow elements are extended by their sign.
    pub(crate) signed: bool,
    /// The data registers are of 64 bits.
    pub(crate) wide: bool,
    /// The address register is of 64 bits.
    pub(crate) wide_address: bool,
    /// What it orders; of a fence as well.
    pub(crate) sync: Sync,
    /// Global or shared memory, where the instruction says so.
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
    /// Whether it is another value in every block.
    pub(crate) fn varies(&self) -> bool {
        matches!(self.value, PresetValue::Ctaid(_))
    }
}

/// With what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PresetValue {
    /// An immediate.
    Bits(u64),
    /// Bytes of the parameters.
    Param { offset: u32, bytes: u8, signed: bool },
    /// Where dynamic shared memory begins.
    DynamicShared,
    /// The address of a variable of the module, and bytes to add.
    Variable { index: u32, offset: i64 },
    /// Bytes of dynamic shared memory, or with the fixed ones of all.
    SharedBytes { fixed: bool },
    /// `%tid`
    Tid(u8),
    /// `%ntid`
    Ntid(u8),
    /// `%ctaid`
    Ctaid(u8),
    /// `%nctaid`
    Nctaid(u8),
    /// `%laneid`
    Lane,
    /// `%warpid`
    Warp,
    /// `%nwarpid`
    Warps,
    /// `%lanemask_*`: lanes below, with oneself or not, and the complements.
    LaneMask { below: bool, equal: bool, above: bool },
}

/// An instruction that accesses memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site {
    /// What it does there.
    pub(crate) kind: AccessKind,
    /// Of an atomic, what it is made of in shared memory.
    pub(crate) update: Update,
    /// Where it stands.
    pub(crate) pc: u32,
}

/// Frames begin at multiples of this, so it is the alignment that a function's variables can have, and what a call takes
/// at least: on a GPU it keeps where to return to.
pub(crate) const FRAME_ALIGN: u64 = 16;

/// A function of the kernel's code.
#[derive(Debug)]
pub(crate) struct Function {
    /// As it is declared.
    pub(crate) name: Box<str>,
    /// Its first instruction.
    pub(crate) entry: u32,
    /// Bytes that an activation takes of each thread's local memory: its parameters and results first, then its variables,
    /// then the saved registers.
    pub(crate) frame_bytes: u32,
    /// Where parameters and results lie in the frame.
    pub(crate) layout: Layout,
    /// Registers to save while it runs, since it may be active already.
    pub(crate) saved: Vec<(File, u16)>,
    /// Where in the frame.
    pub(crate) saved_at: u32,
    /// Whether it may be entered while it is active.
    pub(crate) recursive: bool,
}

impl Function {
    /// The work of a call beyond that of an instruction, and of its return: what is copied, lane by lane.
    pub(crate) fn call_work(&self) -> u64 {
        let words = |bytes: u32| if bytes.is_multiple_of(4) { bytes / 4 } else { bytes };
        let Layout { params, results } = &self.layout;
        let copied: u32 = params.iter().chain(results).map(|&(_, bytes)| words(bytes)).sum();
        2 + 8 * (u64::from(copied) + self.saved.len() as u64)
    }
}

/// Where the parameters and results of a function lie in its frame: offset and bytes of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) params: Vec<(u32, u32)>,
    pub(crate) results: Vec<(u32, u32)>,
}

impl Layout {
    /// Bytes of all of them.
    pub(crate) fn bytes(&self) -> u32 {
        self.params.iter().chain(&self.results).map(|(offset, bytes)| offset + bytes).max().unwrap_or(0)
    }
}

/// A call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) target: Target,
    /// Where what it passes and gets lies in the caller's frame.
    pub(crate) passed: Layout,
    /// Where the function has the same; of a call through a pointer, where any must have it.
    pub(crate) layout: Layout,
}

/// What is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// The function of this number.
    Function(u32),
    /// The one whose address a register holds: any, or one of these, which are sorted.
    Pointer(Option<Arc<[u32]>>),
    /// `vprintf` of the CUDA runtime.
    Print,
    /// `__assertfail` of the CUDA runtime.
    Assert,
}

/// Where an instruction comes from.
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
    /// Where it begins in the launch's parameter bytes.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
    /// Its alignment in bytes.
    pub align: usize,
    /// Its type, or that of its elements, as the PTX has it: `u64`.
    pub ty: String,
}

/// The code of one kernel.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// Ends in an exit.
    pub(crate) instructions: Vec<Ins>,
    /// For each instruction that is a branch, where its lanes meet again.
    pub(crate) reconvergence: Vec<u32>,
    /// The instructions that access memory, in order.
    pub(crate) sites: Vec<Site>,
    /// For each instruction, where it comes from.
    pub(crate) origins: Vec<Origin>,
    /// Registers to fill.
    pub(crate) presets: Vec<Preset>,
    /// Registers that may be read before they are written; cleared for each block, so that every run is alike.
    pub(crate) cleared: Vec<(File, u16)>,
    /// Registers of each file: predicates, 32 bits, 64 bits.
    pub(crate) registers: [usize; 3],
    /// Bytes of static shared memory.
    pub(crate) shared_bytes: u32,
    /// Alignment of dynamic shared memory.
    pub(crate) dynamic_align: u32,
    /// Bytes of local memory that a thread declares; calls add frames to them.
    pub(crate) local_bytes: u32,
    /// The functions that it may call, by their numbers in the module.
    pub(crate) functions: Vec<Option<Function>>,
    /// Its calls.
    pub(crate) calls: Vec<Call>,
    /// The targets of its indexed branches, of which several may have one table.
    pub(crate) tables: Vec<Vec<u32>>,
}

impl Code {
    /// Where dynamic shared memory begins: behind the static one.
    pub(crate) fn dynamic_base(&self) -> u32 {
        self.shared_bytes.next_multiple_of(self.dynamic_align.max(1))
    }

    /// Bytes from one lane's local memory to the next one's, which begins where every alignment is met.
    pub(crate) fn local_stride(&self) -> u64 {
        u64::from(self.local_bytes).next_multiple_of(16)
    }

    /// Local memory of a warp, as no call has added to it; `None` where the host has not so much.
    pub(crate) fn new_local(&self) -> Option<Scratch> {
        Scratch::new(LANES as u64 * self.local_stride())
    }

    /// Bytes that a warp's registers, local memory and counts take on the host.
    pub(crate) fn warp_bytes(&self) -> u64 {
        let [pred, b32, b64] = self.registers.map(|count| count as u64);
        let lanes = LANES as u64;
        4 * pred + lanes * (4 * b32 + 8 * b64 + self.local_stride()) + 16 * self.sites.len() as u64
    }

    /// Bytes of local memory that calls may come to take of each thread, at most.
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
    /// `.file` directives.
    pub(crate) files: Vec<(u32, String)>,
}

impl Listing {
    /// The text of a span, on one line, or how a very long one begins.
    pub(crate) fn line(&self, span: Span) -> String {
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        beginning(&text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// `src/gemm.rs:44`
    pub(crate) fn source(&self, (file, line): (u32, u32)) -> Option<String> {
        let (_, name) = self.files.iter().find(|(number, _)| *number == file)?;
        Some(format!("{name}:{line}"))
    }
}
