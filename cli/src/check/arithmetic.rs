//! Arithmetic of oracles, with the results of a CPU: integers wrap around, and floats are rounded
//! once.

use anyhow::Result;
use warpstride::element::DType;

use super::super::{number, require};

/// What is computed of two elements, or of one and a factor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    Add,
    Mul,
    /// `factor * x + y`, rounded once.
    Axpy,
}

impl Operation {
    /// Computes doubles, which are rounded as usual.
    fn of_doubles(self, factor: f64, x: f64, y: f64) -> f64 {
        match self {
            Self::Add => x + y,
            Self::Mul => x * y,
            Self::Axpy => factor.mul_add(x, y),
        }
    }

    /// Computes shorter floats, to be rounded to their type. Double precision holds the product
    /// of two of them exactly.
    fn of_floats(self, factor: f64, x: f64, y: f64) -> f64 {
        match self {
            Self::Add => number::odd_sum(x, y),
            Self::Mul => x * y,
            Self::Axpy => number::odd_sum(factor * x, y),
        }
    }

    /// Computes integers; the last bits of the result count.
    fn of_integers(self, factor: i128, x: i128, y: i128) -> i128 {
        match self {
            Self::Add => x.wrapping_add(y),
            Self::Mul => x.wrapping_mul(y),
            Self::Axpy => factor.wrapping_mul(x).wrapping_add(y),
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
            let [factor, x, y] = [factor, x, y].map(|element| number::float(dtype, element));
            let of = if dtype == DType::F64 { Operation::of_doubles } else { Operation::of_floats };
            number::write_float(dtype, of(operation, factor, x, y), to);
        } else {
            let [factor, x, y] = [factor, x, y].map(|element| number::integer(dtype, element));
            to.copy_from_slice(&operation.of_integers(factor, x, y).to_le_bytes()[..width]);
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
mod tests {
    use half::{bf16, f16};

    use super::*;

    #[test]
    fn sums_of_products_are_rounded_once() {
        let computed = |operation, dtype, factor: &[u8], x: &[u8], y: &[u8]| {
            let mut result = [0; 4];
            elementwise(operation, dtype, Some(factor), [x, y], &mut result[..x.len()]).unwrap();
            number::float(dtype, &result[..x.len()])
        };
        let half = |operation, factor: f32, x: f32, y: f32| {
            let [factor, x, y] = [factor, x, y].map(|value| f16::from_f32(value).to_le_bytes());
            computed(operation, DType::F16, &factor, &x, &y)
        };
        let brain = |operation, factor: f32, x: f32, y: f32| {
            let [factor, x, y] = [factor, x, y].map(|value| bf16::from_f32(value).to_le_bytes());
            computed(operation, DType::Bf16, &factor, &x, &y)
        };
        assert_eq!(half(Operation::Axpy, 1.020_507_8, 0.000_478_506_1, 1.0), f64::from(1.000_976_6_f32));
        let tiny = 2.0_f32.powi(-60);
        assert_eq!(brain(Operation::Axpy, 136.0, 136.0, tiny), 18560.0);
        assert_eq!(brain(Operation::Axpy, 136.0, 136.0, -tiny), 18432.0);
        assert_eq!(brain(Operation::Axpy, 136.0, -136.0, -tiny), -18560.0);
        assert_eq!(brain(Operation::Add, 0.0, 1.0, 1.0 / 256.0), 1.0);
        assert!(half(Operation::Mul, 0.0, 0.0, -1.0).is_sign_negative());
        // As the CPU rounds them, also where the sum and the product are just beyond a middle.
        let float = |operation, [factor, x, y]: [f32; 3]| {
            let [factor, x, y] = [factor, x, y].map(f32::to_le_bytes);
            computed(operation, DType::F32, &factor, &x, &y) as f32
        };
        let near = f32::from_bits(0x3f80_0001);
        for numbers in
            [[near, near, tiny], [near, -near, -tiny], [near, tiny, near], [1e30, 1e30, f32::MIN], [3.0, 1e-45, 1e-38]]
        {
            let [factor, x, y] = numbers;
            assert_eq!(float(Operation::Add, numbers), x + y);
            assert_eq!(float(Operation::Mul, numbers), x * y);
            assert_eq!(float(Operation::Axpy, numbers), factor.mul_add(x, y));
        }
    }
}
