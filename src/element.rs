//! Element types: plain values of 1, 2, 4, 8 or 16 bytes, which host and device represent alike.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::names::written_by_name;

pub use crate::abi::DType;

written_by_name!(DType);

impl FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::argument(format!("`{name}` does not name an element type; give one of {names}"))
        })
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for DType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for DType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

mod sealed {
    /// Keeps [`super::Element`] to the types of this file.
    pub trait Sealed {}
}

/// A type whose values move between host and device as bytes.
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
        // SAFETY: the type is a number, or two numbers of one type side by side: it has no padding,
        // and every pattern is a value; the assertions below check its size.
        unsafe impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
        const _: () = assert!(matches!(size_of::<$type>(), 1 | 2 | 4 | 8 | 16));
        const _: () = assert!(size_of::<$type>() == DType::$dtype.width());
    )*};
}

elements! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, u64 => U64, i64 => I64, f64 => F64,
    [f32; 2] => C64, [f64; 2] => C128,
}

#[cfg(feature = "half")]
elements! { half::f16 => F16, half::bf16 => Bf16 }

/// A number that reductions take: a float or an integer.
pub trait Number: Element {
    /// The type in which sums are computed and returned: the float itself, or `f32` for halves; for
    /// integers a 64-bit one with the same signedness, modulo 2^64.
    type Sum: Number;
}

/// A number that kernels compute with. They compute halves in single precision and other types in
/// their own, and round each result once.
#[diagnostic::on_unimplemented(
    note = "arithmetic and means take floats; cast other numbers first: `ops::mean(&ops::cast::<f64, _>(&a)?, None)`"
)]
pub trait Float: Number {
    /// Returns the exact value.
    fn to_f64(self) -> f64;
}

macro_rules! numbers {
    ($($type:ty => $sum:ty),* $(,)?) => {$(
        impl Number for $type {
            type Sum = $sum;
        }
    )*};
}

numbers! {
    u8 => u64, u16 => u64, u32 => u64, u64 => u64, i8 => i64, i16 => i64, i32 => i64, i64 => i64, f32 => f32, f64 => f64,
}

#[cfg(feature = "half")]
numbers! { half::f16 => f32, half::bf16 => f32 }

macro_rules! floats {
    ($($type:ty: |$value:ident| $double:expr;)*) => {$(
        impl Float for $type {
            fn to_f64(self) -> f64 {
                let $value = self;
                $double
            }
        }
    )*};
}

floats! {
    f32: |value| f64::from(value);
    f64: |value| value;
}

#[cfg(feature = "half")]
floats! {
    half::f16: |value| value.to_f64();
    half::bf16: |value| value.to_f64();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused_with_the_list() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse(), Ok(dtype));
        }
        let error = "f23".parse::<DType>().unwrap_err();
        assert!(error.to_string().contains("`f23`") && error.to_string().contains("bf16, u32"), "{error}");
    }
}
