//! The changes that copies in bulk make of the elements that are there.

/// The function by which a copy changes the elements that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Add,
    Min,
    Max,
    Inc,
    Dec,
    And,
    Or,
    Xor,
}

/// The type of the elements that a copy changes. Bits are whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    U32,
    S32,
    U64,
    S64,
    F16,
    Bf16,
    F32,
    F64,
}

/// A change of elements of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reduce {
    pub(crate) change: Change,
    pub(crate) number: Number,
}

impl Change {
    /// The change that an opcode makes, if it makes one.
    pub(crate) fn of(opcode: &str) -> Option<Self> {
        let rest = ["cp.reduce.", "red.async."].iter().find_map(|name| opcode.strip_prefix(name))?;
        let mut parts = rest.split('.');
        parts.find_map(|part| {
            Some(match part {
                "add" => Self::Add,
                "min" => Self::Min,
                "max" => Self::Max,
                "inc" => Self::Inc,
                "dec" => Self::Dec,
                "and" => Self::And,
                "or" => Self::Or,
                "xor" => Self::Xor,
                _ => return None,
            })
        })
    }
}

impl Number {
    /// The type at the end of an opcode.
    pub(crate) fn of(opcode: &str) -> Option<Self> {
        Some(match opcode.rsplit('.').next()? {
            "u32" | "b32" => Self::U32,
            "s32" => Self::S32,
            "u64" | "b64" => Self::U64,
            "s64" => Self::S64,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => return None,
        })
    }
}
