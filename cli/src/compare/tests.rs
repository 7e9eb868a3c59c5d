use super::*;

#[test]
fn the_parts_that_are_timed_make_a_transpose() {
    let (rows, cols) = (3, 2 * COLUMNS_AT_ONCE + 5);
    let kernel = Kernel::Transpose(Variant::ColumnLoop);
    let (_, parts) = kernel.samples(cols);
    assert_eq!(parts, [0..256, 256..512, 512..517]);
    assert_eq!(Kernel::Copy.samples(cols).1.len(), 1);
    assert_eq!(kernel.samples(0).1.len(), 1);
    let device = Device::open(Backend::Soft).unwrap();
    for fortran in [false, true] {
        let elements = (0..(rows * cols) as u32).collect();
        let matrix = Matrix { rows, cols, dtype: DType::U32, fortran, elements };
        let (transposed, mut runs) = (matrix.transposed().unwrap(), matrix.runs(&device).unwrap());
        let mut rung = Rung::new(kernel, &matrix, &transposed, &mut runs).unwrap();
        assert!(!rung.is_right().unwrap(), "nothing has run");
        for part in 0..rung.parts() {
            rung.run(0, part).unwrap();
        }
        assert!(rung.is_right().unwrap(), "fortran: {fortran}");
    }
}

#[test]
fn the_footer_claims_what_happened() {
    let all = timed_footer(&[], Some(DriverKind::Soft));
    assert!(all.contains("the software GPU's, for the same"), "{all}");
    assert!(!all.contains("Gaps"), "{all}");
    let less = timed_footer(&["column_loop", "naive"], None);
    assert!(less.contains("Gaps between launches included: column_loop, naive."), "{less}");
    assert!(less.contains("not counted"), "{less}");
}
