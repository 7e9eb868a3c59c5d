//! Words that the parts of the interpreter share: lanes, registers and their files, operands,
//! accesses and spaces.

use std::fmt;

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;
/// Barriers of a block.
pub(crate) const BARRIERS: usize = 16;
/// Every lane.
pub(crate) const FULL: u32 = u32::MAX;

/// Calls a function of the lane for all lanes. It is a loop, because a closure that `map` calls on
/// an array stays a call for each lane where the compiler does not optimise across code units.
#[inline(always)]
pub(crate) fn each<T: Copy + Default>(value: impl Fn(usize) -> T) -> [T; LANES] {
    let mut row = [T::default(); LANES];
    for (lane, slot) in row.iter_mut().enumerate() {
        *slot = value(lane);
    }
    row
}

/// The lanes of a mask, in order.
#[inline(always)]
pub(crate) fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
}

/// The lanes of `mask` for which `holds`, which is asked for every lane.
#[inline(always)]
pub(crate) fn lanes_where(mask: u32, holds: impl Fn(usize) -> bool) -> u32 {
    mask & (0..LANES).fold(0, |lanes, lane| lanes | u32::from(holds(lane)) << lane)
}

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

/// How an instruction reads an operand: the operand's register file, and the meaning of an
/// immediate.
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
    /// Not an operand: the modifiers of the opcode, in a 32-bit register.
    Modifiers,
}

impl Kind {
    /// The register file that holds such values.
    pub(crate) fn file(self) -> File {
        match self {
            Kind::Pred => File::Pred,
            Kind::B8 | Kind::B16 | Kind::B32 | Kind::F32 | Kind::Modifiers => File::B32,
            Kind::B64 | Kind::F64 => File::B64,
        }
    }
}

/// A type that operands of instructions have. The instruction table names operands by these types.
pub(crate) trait OperandType: Copy {
    /// The kind of operands of this type.
    const KIND: Kind;
    /// The value in the low bits of a register or of memory.
    fn of_bits(bits: u64) -> Self;
    /// The bits of a register that holds the value.
    fn bits(self) -> u64;
}

macro_rules! operand_types {
    ($($type:ty: $kind:ident, $of_bits:expr, $bits:expr;)*) => {$(
        impl OperandType for $type {
            const KIND: Kind = Kind::$kind;
            #[inline(always)]
            fn of_bits(bits: u64) -> Self {
                $of_bits(bits)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                $bits(self)
            }
        }
    )*};
}
pub(crate) use operand_types;

// A signed value narrower than its register is sign-extended, as PTX has it.
operand_types! {
    bool: Pred, |bits: u64| bits & 1 != 0, u64::from;
    u8: B8, |bits| bits as u8, u64::from;
    i8: B8, |bits| bits as i8, |value| u64::from(value as u32);
    u16: B16, |bits| bits as u16, u64::from;
    i16: B16, |bits| bits as i16, |value| u64::from(value as u32);
    u32: B32, |bits| bits as u32, u64::from;
    i32: B32, |bits| bits as i32, |value| u64::from(value as u32);
    u64: B64, |bits| bits, |value| value;
    i64: B64, |bits| bits as i64, |value| value as u64;
    f32: F32, |bits| f32::from_bits(bits as u32), |value: f32| u64::from(value.to_bits());
    f64: F64, f64::from_bits, f64::to_bits;
}

/// The effect of an instruction on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum AccessKind {
    /// `ld`
    Load,
    /// `st`
    Store,
    /// `atom`: reads and writes memory in one step, and returns the old value.
    Atomic,
    /// `red`, or an atomic whose result is not used.
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
    /// The thread's own memory.
    Local,
    /// The launch's parameters.
    Param,
}

impl AccessKind {
    /// The verb for this access, as messages use it.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic | AccessKind::Reduction => "update",
        }
    }

    /// The operation, as Nsight Compute names it.
    pub(crate) fn operation(self) -> &'static str {
        match self {
            AccessKind::Load => "ld",
            AccessKind::Store => "st",
            AccessKind::Atomic => "atom",
            AccessKind::Reduction => "red",
        }
    }

    /// Returns whether it reads memory.
    pub(crate) fn reads(self) -> bool {
        self != AccessKind::Store
    }

    /// Returns whether it writes memory.
    pub(crate) fn writes(self) -> bool {
        self != AccessKind::Load
    }

    /// Returns whether it is an atomic update, which other threads may do at the same time.
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
