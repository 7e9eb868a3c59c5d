//! The modifiers of an opcode, besides its form: rounding, flushing, saturation, a comparison,
//! types.
//!
//! A form with many modifiers takes them as data, as its first source. So `add` in every rounding
//! is one line of the table, and one function to compile. Modifiers are the same in every lane, and
//! sit in a register that is filled beforehand.

use super::vocabulary::{Kind, OperandType, operand_types};

/// Rounding, flags, comparison and types, packed into a register's 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modifiers(pub(crate) u32);

/// The ordering properties of an access or a fence in PTX's memory model, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sync(u8);

/// The rounding of results that do not fit exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
    /// To nearest, ties away from zero.
    Away,
}

/// A type of numbers. Integers come first: in order of their width, unsigned ones before signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
}

const ROUNDINGS: [Rounding; 5] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up, Rounding::Away];

/// The names of types in opcodes; a vector of two halves has the type of one half.
const TYPES: [(Type, &[&str]); 13] = [
    (Type::U8, &["u8", "b8"]),
    (Type::S8, &["s8"]),
    (Type::U16, &["u16", "b16", "u16x2"]),
    (Type::S16, &["s16", "s16x2"]),
    (Type::U32, &["u32", "b32"]),
    (Type::S32, &["s32"]),
    (Type::U64, &["u64", "b64"]),
    (Type::S64, &["s64"]),
    (Type::F16, &["f16", "f16x2"]),
    (Type::Bf16, &["bf16", "bf16x2"]),
    (Type::Tf32, &["tf32"]),
    (Type::F32, &["f32"]),
    (Type::F64, &["f64"]),
];

/// Returns whether a part of an opcode is a type.
pub(crate) fn is_type(part: &str) -> bool {
    TYPES.iter().any(|(_, names)| names.contains(&part)) || matches!(part, "pred" | "b128")
}

const INTEGRAL: u32 = 1 << 3;
const FTZ: u32 = 1 << 4;
const SAT: u32 = 1 << 5;
const RELU: u32 = 1 << 6;
const NAN: u32 = 1 << 7;
const XORSIGN: u32 = 1 << 8;

/// The possible relations of two numbers. A comparison is the set of relations that make it true.
pub(crate) const LESS: u32 = 1 << 12;
pub(crate) const EQUAL: u32 = 1 << 13;
pub(crate) const GREATER: u32 = 1 << 14;
pub(crate) const UNORDERED: u32 = 1 << 15;

const PARTS: &[(&str, u32)] = &[
    ("rz", Rounding::Zero as u32),
    ("rm", Rounding::Down as u32),
    ("rp", Rounding::Up as u32),
    ("rna", Rounding::Away as u32),
    ("rni", INTEGRAL),
    ("rzi", INTEGRAL | Rounding::Zero as u32),
    ("rmi", INTEGRAL | Rounding::Down as u32),
    ("rpi", INTEGRAL | Rounding::Up as u32),
    ("ftz", FTZ),
    ("sat", SAT),
    ("relu", RELU),
    ("NaN", NAN),
    ("xorsign", XORSIGN),
    ("eq", EQUAL),
    ("ne", LESS | GREATER),
    ("lt", LESS),
    ("le", LESS | EQUAL),
    ("gt", GREATER),
    ("ge", GREATER | EQUAL),
    ("equ", EQUAL | UNORDERED),
    ("neu", LESS | GREATER | UNORDERED),
    ("ltu", LESS | UNORDERED),
    ("leu", LESS | EQUAL | UNORDERED),
    ("gtu", GREATER | UNORDERED),
    ("geu", GREATER | EQUAL | UNORDERED),
    ("num", LESS | EQUAL | GREATER),
    ("nan", UNORDERED),
];

/// Methods that tell whether bits are set.
macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident $bit:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name(self) -> bool {
            self.0 & $bit != 0
        }
    )*};
}

operand_types! {
    Modifiers: Modifiers, |bits| Modifiers(bits as u32), |Modifiers(bits)| u64::from(bits);
}

impl Modifiers {
    /// The modifiers of `add.f16`: only a type.
    pub(crate) const F16: Self = Self(8 << 16 | 8 << 24);
    /// The modifiers of `add.bf16`.
    pub(crate) const BF16: Self = Self(9 << 16 | 9 << 24);

    /// Collects the modifiers in an opcode; parts that only name its form contribute none.
    pub(crate) fn of(opcode: &str) -> Self {
        let mut bits = 0;
        let mut types = Vec::new();
        for part in opcode.split('.').skip(1) {
            types.extend(TYPES.iter().position(|(_, names)| names.contains(&part)));
            bits |= PARTS.iter().find(|(name, _)| *name == part).map_or(0, |(_, bit)| *bit);
        }
        // The order is `cvt.TO.FROM`; a single type serves as both.
        if let (Some(to), Some(from)) = (types.first(), types.last()) {
            bits |= (*to as u32) << 16 | (*from as u32) << 24;
        }
        Self(bits)
    }

    #[inline(always)]
    pub(crate) fn rounding(self) -> Rounding {
        ROUNDINGS[(self.0 & 7).min(4) as usize]
    }

    /// The same modifiers, but denormals are kept.
    pub(crate) fn without_flushing(self) -> Self {
        Self(self.0 & !FTZ)
    }

    /// The same modifiers, but rounding towards zero.
    pub(crate) fn towards_zero(self) -> Self {
        Self(self.0 & !7 | Rounding::Zero as u32)
    }

    flags! {
        /// Tells whether results are rounded to integers within their type: `.rni` and similar.
        integral INTEGRAL;
        /// Tells whether denormal operands and results become zero.
        flushes FTZ;
        /// Tells whether results are clamped to 0..1, or to the range of their type.
        saturates SAT;
        /// Tells whether results below zero become zero.
        relu RELU;
        /// Tells whether a NaN operand makes the result a NaN.
        keeps_nan NAN;
        /// Tells whether magnitudes are compared, and the result gets the product of the signs.
        xorsign XORSIGN;
    }

    /// Returns whether the comparison is true for operands in this relation.
    #[inline(always)]
    pub(crate) fn holds(self, relation: u32) -> bool {
        self.0 & relation != 0
    }

    /// The type of the result; the only type if there is one.
    #[inline(always)]
    pub(crate) fn to(self) -> Type {
        TYPES[(self.0 >> 16 & 0xff).min(12) as usize].0
    }

    /// The type of the sources; the only type if there is one.
    #[inline(always)]
    pub(crate) fn from(self) -> Type {
        TYPES[(self.0 >> 24).min(12) as usize].0
    }
}

impl Sync {
    const STRONG: u8 = 1;
    const ACQUIRE: u8 = 1 << 1;
    const RELEASE: u8 = 1 << 2;
    const DEVICE: u8 = 1 << 3;
    const VOLATILE: u8 = 1 << 4;
    const REDUCTION: u8 = 1 << 5;

    /// The ordering that an opcode specifies, for `ld`, `st`, `atom`, `red`, `fence` and `membar`.
    /// Volatile accesses are relaxed in `.sys` scope. Unless they say otherwise, atomics are
    /// relaxed in `.gpu` scope, and fences both acquire and release. The scope of
    /// a cluster is the block; for larger clusters see `lower::clusters`.
    pub(crate) fn of(opcode: &str) -> Self {
        let says = |any: &[&str]| opcode.split('.').any(|part| any.contains(&part));
        let (fence, atomic) = (says(&["fence", "membar"]), says(&["atom", "red"]));
        let strong = fence || atomic || says(&["volatile", "relaxed", "acquire", "release", "acq_rel"]);
        let bits = [
            (Self::STRONG, strong),
            (Self::ACQUIRE, says(&["acquire", "acq_rel"]) || fence && !says(&["release"])),
            (Self::RELEASE, says(&["release", "acq_rel"]) || fence && !says(&["acquire"])),
            (Self::DEVICE, strong && !says(&["cta", "cluster"])),
            (Self::VOLATILE, says(&["volatile"])),
            (Self::REDUCTION, says(&["red"])),
        ];
        Self(bits.into_iter().fold(0, |bits, (bit, set)| if set { bits | bit } else { bits }))
    }

    flags! {
        /// Tells whether it may coincide with other strong accesses, and moves 8 bytes as one.
        is_strong Self::STRONG;
        /// Tells whether its thread's later accesses come after those that were published at the
        /// place it reads.
        acquires Self::ACQUIRE;
        /// Tells whether it publishes its thread's earlier accesses.
        releases Self::RELEASE;
        /// Tells whether its scope is wider than the block.
        is_device_wide Self::DEVICE;
        /// Tells whether it is `.volatile`.
        is_volatile Self::VOLATILE;
        /// Tells whether it is a `red`, whose read receives nothing.
        is_reduction Self::REDUCTION;
    }
}

#[cfg(test)]
mod tests;
