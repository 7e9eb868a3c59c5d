//! The types of arithmetic.

use super::Scalar;

/// Number types that arithmetic comes in, in the order of a family's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberType {
    /// IEEE 754 half precision, computed in single precision and rounded once.
    F16,
    /// The upper half of an `f32`, computed in single precision and rounded once.
    Bf16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
}

impl NumberType {
    /// Bytes of one.
    pub const fn width(self) -> u64 {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The same among all types.
    pub const fn scalar(self) -> Scalar {
        match self {
            Self::F16 => Scalar::F16,
            Self::Bf16 => Scalar::Bf16,
            Self::F32 => Scalar::F32,
            Self::F64 => Scalar::F64,
        }
    }

    /// What sums of such numbers are made in.
    pub const fn sum(self) -> Self {
        match self {
            Self::F64 => Self::F64,
            _ => Self::F32,
        }
    }
}
