use super::*;

fn map() -> TensorMap {
    TensorMap {
        address: 0x1230,
        element: Element::new(6).unwrap(),
        extents: vec![1 << 32, 7, 9],
        strides: vec![1 << 34, (1 << 40) - 16],
        boxes: vec![64, 256, 3],
        steps: vec![1, 8, 2],
        swizzle: 128,
        fills_with_nan: true,
    }
}

#[test]
fn a_map_is_read_as_it_was_written() {
    assert_eq!(map().wrong(), None);
    assert_eq!(TensorMap::decode(&map().encode()), Some(map()));
    let mut other = map().encode();
    other[0] ^= 1;
    assert_eq!(TensorMap::decode(&other), None);
}

#[test]
fn bytes_that_are_no_map_are_refused() {
    let good = map().encode();
    for at in 0..BYTES {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = good;
            bytes[at] = value;
            assert!(TensorMap::decode(&bytes).is_none_or(|map| map.wrong().is_none()), "{at}: {value}");
        }
    }
}

#[test]
fn a_swizzle_permutes_the_units_of_a_line() {
    for (swizzle, masks) in [(0, [0, 0, 0]), (32, [0, 1, 0]), (64, [0, 1, 2]), (128, [0, 1, 2])] {
        let map = TensorMap { swizzle, ..map() };
        for (line, mask) in masks.into_iter().enumerate() {
            assert_eq!(map.swizzled(128 * line as u64) % 128, 16 * mask, "{swizzle} bytes, line {line}");
        }
    }
    assert_eq!(TensorMap { swizzle: 128, ..map() }.swizzled(128 * 7 + 16), 128 * 7 + 16 * 6);
}
