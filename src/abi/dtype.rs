//! The types of elements, as data.

/// An element type as data: for files, command lines and reports, where the type is known only at
/// run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 16 bits.
    I16,
    /// IEEE 754 half precision.
    F16,
    /// The upper half of an `f32`.
    Bf16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// IEEE 754 single precision.
    F32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 64 bits.
    I64,
    /// IEEE 754 double precision.
    F64,
    /// Complex of two `f32`: real, imaginary.
    C64,
    /// Complex of two `f64`: real, imaginary.
    C128,
}

impl DType {
    /// All element types, narrow ones first.
    pub const ALL: [Self; 14] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::F16,
        Self::Bf16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::U64,
        Self::I64,
        Self::F64,
        Self::C64,
        Self::C128,
    ];

    /// Returns the bytes of one element.
    pub const fn width(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// Returns the name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
            Self::C64 => "c64",
            Self::C128 => "c128",
        }
    }

    /// Returns whether values have two parts.
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::C64 | Self::C128)
    }
}
