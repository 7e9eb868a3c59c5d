use super::*;

/// Counts sectors by visiting every byte of every element, from the start of a sector.
fn counted(axes: &[(usize, isize)], width: usize) -> u64 {
    let mut places = vec![0_i64];
    for &(extent, stride) in axes {
        let step = stride as i64 * width as i64;
        places = places.iter().flat_map(|place| (0..extent as i64).map(move |index| place + index * step)).collect();
    }
    let sectors = places.iter().flat_map(|place| (0..width as i64).map(move |byte| (place + byte).div_euclid(32)));
    sectors.collect::<std::collections::BTreeSet<_>>().len() as u64
}

#[test]
fn sectors_are_those_that_the_elements_lie_in() {
    for (axes, width) in [
        (vec![(1024, 1)], 4),
        (vec![(1024, 3), (3, 1)], 4),
        (vec![(100, 2)], 8),
        (vec![(64, 64), (16, 1)], 4),
        (vec![(64, 100)], 16),
        (vec![(32, 1), (16, 0), (8, 64)], 2),
        (vec![(5, 4096), (7, 96), (3, 1)], 1),
    ] {
        assert_eq!(sectors(axes.iter().copied(), width), counted(&axes, width), "{axes:?} of {width} bytes");
    }
    // Rows of 64 bytes, 100 bytes apart, start at every multiple of 4 equally often, so their
    // mean is exact.
    let axes = [(800, 25), (16, 1)];
    assert_eq!(sectors(axes.into_iter(), 4), counted(&axes, 4));
}
