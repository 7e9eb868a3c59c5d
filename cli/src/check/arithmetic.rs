//! Arithmetic of oracles, with the results of a CPU: integers wrap around, and floats are rounded
//! once.

use anyhow::Result;
use half::{bf16, f16};
use warpstride::element::DType;

use super::super::{refuse, require};
use super::number;

/// What is computed of two elements, or of one and a factor.
#[derive(Clone, Copy)]
pub(super) enum Operation {
    Add,
    Mul,
    /// `factor * x + y`, rounded once.
    Axpy,
}

/// A number that a buffer holds.
trait Number: Copy {
    const WIDTH: usize;
    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
    fn compute(operation: Operation, factor: Self, x: Self, y: Self) -> Self;
}

macro_rules! numbers {
    ($($type:ty: |$operation:ident, $factor:ident, $x:ident, $y:ident| $value:expr;)*) => {$(
        impl Number for $type {
            const WIDTH: usize = size_of::<Self>();
            fn read(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<Self>()];
                own.copy_from_slice(bytes);
                Self::from_le_bytes(own)
            }
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            fn compute($operation: Operation, $factor: Self, $x: Self, $y: Self) -> Self {
                $value
            }
        }
    )*};
}

macro_rules! integers {
    ($($type:ty)*) => {
        numbers! {$(
            $type: |operation, factor, x, y| match operation {
                Operation::Add => x.wrapping_add(y),
                Operation::Mul => x.wrapping_mul(y),
                Operation::Axpy => factor.wrapping_mul(x).wrapping_add(y),
            };
        )*}
    };
}

integers! { u8 i8 u16 i16 u32 i32 u64 i64 }

numbers! {
    f32: |operation, factor, x, y| match operation {
        Operation::Add => x + y,
        Operation::Mul => x * y,
        Operation::Axpy => factor.mul_add(x, y),
    };
    f64: |operation, factor, x, y| match operation {
        Operation::Add => x + y,
        Operation::Mul => x * y,
        Operation::Axpy => factor.mul_add(x, y),
    };
    f16: |operation, factor, x, y| f16::from_f32(of_halves(operation, factor.into(), x.into(), y.into()));
    bf16: |operation, factor, x, y| bf16::from_f32(of_halves(operation, factor.into(), x.into(), y.into()));
}

/// The result of an operation on halves, to be rounded to a half. Double precision holds the
/// product of two of them exactly.
fn of_halves(operation: Operation, factor: f64, x: f64, y: f64) -> f32 {
    number::odd(match operation {
        Operation::Add => number::odd_sum(x, y),
        Operation::Mul => x * y,
        Operation::Axpy => number::odd_sum(factor * x, y),
    })
}

macro_rules! by_number {
    ($dtype:expr, $type:ident => $body:expr) => {
        match $dtype {
            DType::U8 => by_number!(@ u8, $type, $body),
            DType::I8 => by_number!(@ i8, $type, $body),
            DType::U16 => by_number!(@ u16, $type, $body),
            DType::I16 => by_number!(@ i16, $type, $body),
            DType::F16 => by_number!(@ f16, $type, $body),
            DType::Bf16 => by_number!(@ bf16, $type, $body),
            DType::U32 => by_number!(@ u32, $type, $body),
            DType::I32 => by_number!(@ i32, $type, $body),
            DType::F32 => by_number!(@ f32, $type, $body),
            DType::U64 => by_number!(@ u64, $type, $body),
            DType::I64 => by_number!(@ i64, $type, $body),
            DType::F64 => by_number!(@ f64, $type, $body),
            dtype @ (DType::C64 | DType::C128) => {
                refuse!(InvalidArgument, "oracles do not compute with {dtype}; save the result and give its file")
            }
        }
    };
    (@ $number:ty, $type:ident, $body:expr) => {{
        type $type = $number;
        $body
    }};
}

/// `operation` of the elements of `x` and `y` one by one, into `result`. `factor` is one element,
/// and all have the type `dtype`.
pub(super) fn elementwise(
    operation: Operation,
    dtype: DType,
    factor: Option<&[u8]>,
    [x, y]: [&[u8]; 2],
    result: &mut [u8],
) -> Result<()> {
    by_number!(dtype, T => {
        let zero = [0; 16];
        let factor = T::read(factor.unwrap_or(&zero[..T::WIDTH]));
        let width = T::WIDTH;
        let sources = x.chunks_exact(width).zip(y.chunks_exact(width));
        for (to, (x, y)) in result.chunks_exact_mut(width).zip(sources) {
            let (x, y) = (T::read(x), T::read(y));
            T::compute(operation, factor, x, y).write(to);
        }
    });
    Ok(())
}

/// The sum of all elements of `source`, into the one element `result`. Floats are summed in double
/// precision, and the sum is rounded once.
pub(super) fn sum(from: DType, source: &[u8], to: DType, result: &mut [u8]) -> Result<()> {
    require!(
        !from.is_complex() && !to.is_complex(),
        InvalidArgument,
        "oracles do not sum {from} into {to}; save the result and give its file"
    );
    let elements = source.chunks_exact(from.width());
    if number::is_float(to) {
        number::write_float(to, elements.fold(0.0, |sum, element| sum + number::float(from, element)), result);
        return Ok(());
    }
    require!(!number::is_float(from), InvalidArgument, "oracles do not sum {from} into {to}; use a result of floats");
    let sum = elements.fold(0_i128, |sum, element| sum.wrapping_add(number::integer(from, element)));
    result.copy_from_slice(&sum.to_le_bytes()[..to.width()]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_products_of_halves_are_rounded_once() {
        let [factor, x] = [1.020_507_8, 0.000_478_506_1].map(f16::from_f32);
        assert_eq!(f16::compute(Operation::Axpy, factor, x, f16::ONE).to_f32(), 1.000_976_6);
        let [factor, tiny] = [136.0, 2.0_f32.powi(-60)].map(bf16::from_f32);
        assert_eq!(bf16::compute(Operation::Axpy, factor, factor, tiny).to_f32(), 18560.0);
        assert_eq!(bf16::compute(Operation::Axpy, factor, factor, -tiny).to_f32(), 18432.0);
        assert_eq!(bf16::compute(Operation::Axpy, factor, -factor, -tiny).to_f32(), -18560.0);
        let middle = bf16::from_f32(1.0 / 256.0);
        assert_eq!(bf16::compute(Operation::Add, factor, bf16::ONE, middle).to_f32(), 1.0);
        assert!(f16::compute(Operation::Mul, f16::ONE, f16::ZERO, -f16::ONE).is_sign_negative());
    }
}
