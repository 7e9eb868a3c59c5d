use half::{bf16, f16};

use super::*;

#[test]
fn sums_of_products_are_rounded_once() {
    let computed = |dtype: DType, operation, numbers: [f32; 3]| {
        let bytes = |number: f32| match dtype {
            DType::F16 => f16::from_f32(number).to_le_bytes().to_vec(),
            DType::Bf16 => bf16::from_f32(number).to_le_bytes().to_vec(),
            _ => number.to_le_bytes().to_vec(),
        };
        let ([factor, x, y], mut result) = (numbers.map(bytes), vec![0; dtype.width()]);
        elementwise(operation, dtype, Some(&factor), [&x, &y], &mut result).unwrap();
        number::float(dtype, &result) as f32
    };
    let tiny = 2.0_f32.powi(-60);
    for (dtype, operation, numbers, expected) in [
        (DType::F16, Operation::Axpy, [1.020_507_8, 0.000_478_506_1, 1.0], 1.000_976_6),
        (DType::Bf16, Operation::Axpy, [136.0, 136.0, tiny], 18560.0),
        (DType::Bf16, Operation::Axpy, [136.0, 136.0, -tiny], 18432.0),
        (DType::Bf16, Operation::Axpy, [136.0, -136.0, -tiny], -18560.0),
        (DType::Bf16, Operation::Add, [0.0, 1.0, 1.0 / 256.0], 1.0),
    ] {
        assert_eq!(computed(dtype, operation, numbers), expected, "{operation:?} of {numbers:?}");
    }
    assert!(computed(DType::F16, Operation::Mul, [0.0, 0.0, -1.0]).is_sign_negative());
    // As the CPU rounds them, also where the sum and the product are just beyond a middle.
    let near = f32::from_bits(0x3f80_0001);
    for numbers in
        [[near, near, tiny], [near, -near, -tiny], [near, tiny, near], [1e30, 1e30, f32::MIN], [3.0, 1e-45, 1e-38]]
    {
        let [factor, x, y] = numbers;
        assert_eq!(computed(DType::F32, Operation::Add, numbers), x + y);
        assert_eq!(computed(DType::F32, Operation::Mul, numbers), x * y);
        assert_eq!(computed(DType::F32, Operation::Axpy, numbers), factor.mul_add(x, y));
    }
}
