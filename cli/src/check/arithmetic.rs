//! Arithmetic of oracles, with the results of a CPU: integers wrap around, and floats are rounded
//! once.

use anyhow::Result;
use warpstride::element::DType;

use super::super::{number, require};

/// An operation on two elements, or on one and a factor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    Add,
    Mul,
    /// `factor * x + y`, rounded once.
    Axpy,
}

impl Operation {
    /// Computes the operation with the sum, the product and the `axpy` of a type.
    fn compute<T>(self, [factor, x, y]: [T; 3], add: fn(T, T) -> T, mul: fn(T, T) -> T, axpy: fn(T, T, T) -> T) -> T {
        match self {
            Self::Add => add(x, y),
            Self::Mul => mul(x, y),
            Self::Axpy => axpy(factor, x, y),
        }
    }
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
    require!(
        !dtype.is_complex(),
        InvalidArgument,
        "oracles do not compute with {dtype}; save the result and give its file"
    );
    let width = dtype.width();
    let factor = factor.unwrap_or(&[0; 8][..width]);
    let sources = x.chunks_exact(width).zip(y.chunks_exact(width));
    for (to, (x, y)) in result.chunks_exact_mut(width).zip(sources) {
        if number::is_float(dtype) {
            let numbers = [factor, x, y].map(|element| number::float(dtype, element));
            let value = if dtype == DType::F64 {
                operation.compute(numbers, |x, y| x + y, |x, y| x * y, f64::mul_add)
            } else {
                // Double precision holds the product of two shorter floats exactly. A sum is
                // rounded to odd, so that `write_float` rounds it once.
                operation.compute(numbers, number::odd_sum, |x, y| x * y, |factor, x, y| number::odd_sum(factor * x, y))
            };
            number::write_float(dtype, value, to);
        } else {
            let numbers = [factor, x, y].map(|element| number::integer(dtype, element));
            let axpy = |factor: i128, x, y| factor.wrapping_mul(x).wrapping_add(y);
            // The last bits of the result count.
            let value = operation.compute(numbers, i128::wrapping_add, i128::wrapping_mul, axpy);
            to.copy_from_slice(&value.to_le_bytes()[..width]);
        }
    }
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
mod tests;
