use super::*;

#[test]
fn a_view_in_c_order_is_one_by_indices() {
    let (three, tall) = (&[6, 70, 66][..], &[5000, 3][..]);
    let orders: [(&[usize], &[usize]); 15] = [
        (&[7], &[0]),
        (&[1, 1], &[1, 0]),
        (&[33, 65], &[1, 0]),
        (&[33, 65], &[0, 1]),
        (tall, &[1, 0]),
        (&[3, 5000], &[1, 0]),
        (&[4, 1, 50, 70], &[0, 3, 1, 2]),
        (&[4, 50, 1, 70], &[0, 2, 3, 1]),
        (&[9, 40, 3, 36], &[0, 2, 1, 3]),
        (&[2, 3, 4, 5, 6, 7], &[5, 3, 1, 4, 2, 0]),
        (&[2, 0, 3], &[2, 0, 1]),
        (three, &[0, 1, 2]),
        (three, &[2, 0, 1]),
        (three, &[1, 2, 0]),
        (three, &[0, 2, 1]),
    ];
    for (shape, axes) in orders {
        let elements: Vec<u32> = (0..shape.iter().product::<usize>() as u32).collect();
        let whole = Layout::row_major(shape).unwrap();
        for steps in [[1, 1, 1], [1, -1, 1], [-1, 1, -1], [2, 1, 3], [-3, 2, -2], [6, 70, 66]] {
            let mut steps = steps.into_iter().take(shape.len()).enumerate();
            let view = steps.try_fold(whole, |view, (axis, step)| view.slice(axis, .., step)).unwrap();
            let view = view.permuted_axes(axes).unwrap();
            let mut index = vec![0; shape.len()];
            let expected: Vec<u32> = (0..view.len())
                .map(|at| {
                    let mut rest = at;
                    for (index, extent) in index.iter_mut().zip(view.shape()).rev() {
                        (*index, rest) = (rest % extent, rest / extent);
                    }
                    elements[view.offset_of(&index).unwrap()]
                })
                .collect();
            assert_eq!(in_c_order(&elements, &view).unwrap(), expected, "{view:?}");
        }
    }
}

#[test]
fn a_complement_differs_in_every_byte() {
    let elements = random::<u16>(1001).unwrap();
    let wrong = complement(&elements).unwrap();
    assert!(elements.iter().zip(&wrong).all(|(right, wrong)| right ^ wrong == 0xffff));
}
