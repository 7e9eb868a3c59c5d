//! The types of affine maps.

use super::Scalar;

/// Types that these kernels know, in the order of a family's entries: all are read, and all but bytes are written. A parameter
/// names one by its place here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AffineType {
    /// Unsigned, 8 bits.
    U8,
    /// IEEE 754 half precision.
    F16,
    /// The upper half of an `f32`.
    Bf16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision: to itself alone.
    F64,
}

impl AffineType {
    /// The same among all types.
    pub const fn scalar(self) -> Scalar {
        match self {
            Self::U8 => Scalar::U8,
            Self::F16 => Scalar::F16,
            Self::Bf16 => Scalar::Bf16,
            Self::F32 => Scalar::F32,
            Self::F64 => Scalar::F64,
        }
    }

    /// Bytes of one.
    pub const fn width(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}
