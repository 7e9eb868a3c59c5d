//! Words that the parts of the interpreter share: lanes, registers and their files, operands, accesses and spaces.

use std::fmt;

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;
/// Every lane.
pub(crate) const FULL: u32 = u32::MAX;

/// The register file that a value lives in. 8-bit and 16-bit values live in 32-bit registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum File {
    /// One bit a lane.
    Pred,
    /// 32 bits a lane.
    B32,
    /// 64 bits a lane.
    B64,
}

/// How an operand is read: its file, and what an immediate means there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A predicate.
    Pred,
    /// 8 bits, in a 32-bit register.
    B8,
    /// 16 bits, in a 32-bit register.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// No operand: what the opcode says, in a 32-bit register.
    Modifiers,
}

impl Kind {
    /// Where such values live.
    pub(crate) fn file(self) -> File {
        match self {
            Kind::Pred => File::Pred,
            Kind::B8 | Kind::B16 | Kind::B32 | Kind::F32 | Kind::Modifiers => File::B32,
            Kind::B64 | Kind::F64 => File::B64,
        }
    }
}

/// A type that operands of instructions have: the instruction table names operands by such types.
pub(crate) trait HasKind: Copy {
    /// What operands of this type are.
    const KIND: Kind;
}

macro_rules! kinds {
    ($($type:ty: $kind:ident),*) => {$(
        impl HasKind for $type {
            const KIND: Kind = Kind::$kind;
        }
    )*};
}

kinds! {
    bool: Pred, u8: B8, i8: B8, u16: B16, i16: B16, u32: B32, i32: B32, u64: B64, i64: B64, f32: F32, f64: F64
}

/// What an instruction does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum AccessKind {
    /// `ld`
    Load,
    /// `st`
    Store,
    /// `atom`: memory is read and written at once, and what was there returned.
    Atomic,
    /// `red`, or an atomic whose result nobody reads.
    Reduction,
}

/// A state space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Space {
    /// Device memory.
    Global,
    /// The block's shared memory.
    Shared,
    /// The thread's own.
    Local,
    /// The launch's parameters.
    Param,
}

impl AccessKind {
    /// What a thread does with memory.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic | AccessKind::Reduction => "update",
        }
    }

    /// Whether memory is read.
    pub(crate) fn reads(self) -> bool {
        self != AccessKind::Store
    }

    /// Whether memory is written.
    pub(crate) fn writes(self) -> bool {
        self != AccessKind::Load
    }

    /// Whether others may do the like at the same time.
    pub(crate) fn is_update(self) -> bool {
        matches!(self, AccessKind::Atomic | AccessKind::Reduction)
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Param => "parameter",
        })
    }
}
