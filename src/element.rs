//! What may cross to the device and back: plain values of 1, 2, 4, 8 or 16 bytes.

use std::fmt;

use crate::abi::NumberType;

/// An element type as data: for files, command lines and reports, where the type is known only at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
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
    /// Every element type, narrow ones first.
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

    /// Bytes of one element.
    pub fn width(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
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
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    /// Keeps [`super::Element`] to the types of this file.
    pub trait Sealed {}
}

/// A type whose values are moved between host and device as bytes.
///
/// # Safety
///
/// - Every pattern of `size_of::<Self>()` bytes is a value, and no byte of a value is padding.
/// - `size_of::<Self>()` is 1, 2, 4, 8 or 16, and equals `DTYPE.width()`.
pub unsafe trait Element: sealed::Sealed + Copy + Send + Sync + PartialEq + fmt::Debug + 'static {
    /// The type as data.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $type {}
        // SAFETY: a number, or two of one type beside each other: no padding, every pattern is a value; the assertion
        // below holds its size to that of the data type.
        unsafe impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
        const _: () = assert!(matches!(size_of::<$type>(), 1 | 2 | 4 | 8 | 16));
    )*};
}

elements! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, u64 => U64, i64 => I64, f64 => F64,
    [f32; 2] => C64, [f64; 2] => C128,
}

#[cfg(feature = "half")]
elements! { half::f16 => F16, half::bf16 => Bf16 }

/// A number that kernels compute with: halves in single precision, the others in their own, and rounded once.
pub trait Number: Element {
    /// The type as the kernels are named by it.
    const NUMBER: NumberType;
    /// What sums of it are made and given in.
    type Sum: Number;
    /// The value, exactly.
    fn to_f64(self) -> f64;
}

macro_rules! numbers {
    ($($type:ty => $number:ident, $sum:ty, |$value:ident| $double:expr;)*) => {$(
        impl Number for $type {
            const NUMBER: NumberType = NumberType::$number;
            type Sum = $sum;

            fn to_f64(self) -> f64 {
                let $value = self;
                $double
            }
        }
    )*};
}

numbers! {
    f32 => F32, f32, |value| f64::from(value);
    f64 => F64, f64, |value| value;
}

#[cfg(feature = "half")]
numbers! {
    half::f16 => F16, f32, |value| value.to_f64();
    half::bf16 => Bf16, f32, |value| value.to_f64();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_data_types_widths() {
        fn check<T: Element>() {
            assert_eq!(size_of::<T>(), T::DTYPE.width(), "{}", T::DTYPE);
        }
        check::<u8>();
        check::<i8>();
        check::<u16>();
        check::<i16>();
        check::<u32>();
        check::<i32>();
        check::<f32>();
        check::<u64>();
        check::<i64>();
        check::<f64>();
        check::<[f32; 2]>();
        check::<[f64; 2]>();
        #[cfg(feature = "half")]
        check::<half::f16>();
        #[cfg(feature = "half")]
        check::<half::bf16>();
    }
}
