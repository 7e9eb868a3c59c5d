use super::*;

fn extents(split: &Split, axis: usize) -> Vec<usize> {
    (0..split.ranks()).map(|rank| split.part(rank).shape()[axis]).collect()
}

#[test]
fn an_axis_is_cut_into_more_parts_than_it_has() {
    let split = Split::whole(&[3, 2]).unwrap().cut(0, 5).unwrap();
    assert_eq!(extents(&split, 0), [1, 1, 1, 0, 0]);
    assert_eq!((split.part(4).start(), split.part(4).is_empty()), ([3, 0].as_slice(), true));
    assert_eq!(split.ranks_in(&[0..3, 0..2]), [0, 1, 2], "empty parts get nothing");
}

#[test]
fn an_extent_of_0_or_1_is_cut() {
    for (extent, expected) in [(0, [0, 0, 0]), (1, [1, 0, 0])] {
        let split = Split::whole(&[extent, 4]).unwrap().cut(0, 3).unwrap();
        assert_eq!(extents(&split, 0), expected);
        assert_eq!((0..3).map(|rank| split.part(rank).len()).sum::<usize>(), 4 * extent);
    }
    let within_nothing = Split::whole(&[0, 4]).unwrap().cut(1, 2).unwrap();
    assert_eq!(extents(&within_nothing, 1), [2, 2]);
    assert_eq!(within_nothing.ranks_in(&[0..0, 0..4]), [0; 0]);
}

#[test]
fn a_rank_beyond_the_parts_has_nothing() {
    let split = Split::whole(&[4, 6]).unwrap().cut(1, 2).unwrap().padded(&[5, 3]).unwrap();
    assert_eq!(split.part(1).layout().storage_len(), 15);
    for rank in [2, 3, usize::MAX] {
        let part = split.part(rank);
        assert_eq!((part.len(), part.layout().storage_len()), (0, 0), "rank {rank}");
    }
}

#[test]
fn padding_makes_all_parts_as_large() {
    let split = Split::whole(&[5, 3]).unwrap().cut_at(0, &[5, 0]).unwrap().padded(&[6, 4]).unwrap();
    let stored: Vec<_> = (0..2).map(|rank| split.part(rank).layout().storage_len()).collect();
    assert_eq!((stored, split.part(0).layout().strides()), (vec![24, 24], [4, 1].as_slice()));
    assert_eq!(split.to_string(), "[5, 3] by 0:5+0, padded to [6, 4]");
}

#[test]
fn there_are_at_most_65536_ranks() {
    let split = Split::whole(&[256, 1 << 20]).unwrap().cut(0, 256).unwrap().cut(1, 256).unwrap();
    assert_eq!((split.ranks(), split.part(65_535).start()), (65_536, [255, 4096 * 255].as_slice()));
    assert_eq!(split.ranks_in(&[7..8, 4095..4097]), [7 * 256, 7 * 256 + 1]);
    let one = Split::whole(&[1]).unwrap().cut(0, 65_536).unwrap();
    assert_eq!((one.part(0).len(), one.part(65_535).len()), (1, 0));
    assert!(split.cut_at(1, &[1]).is_err());
    assert!(Split::whole(&[7]).unwrap().cut(0, 65_537).is_err());
    assert!(Split::whole(&[7]).unwrap().cut(0, usize::MAX).is_err(), "it makes no list of the parts first");
}

#[test]
fn the_boxes_of_the_host_are_those_of_the_parts() {
    let split = Split::parse(&[3, 4, 2], "1:2+0+2,0:2").unwrap();
    let mut elements: Vec<u8> = (0..24).collect();
    let whole = Layout::row_major(&[3, 4, 2]).unwrap();
    let boxes = split.boxes(HostSliceMut::with_layout(&mut elements, whole).unwrap()).unwrap();
    let given: Vec<bool> = boxes.iter().map(Option::is_some).collect();
    let parts: Vec<bool> = (0..split.ranks()).map(|rank| !split.part(rank).is_empty()).collect();
    assert_eq!((given.len(), given), (6, parts));
}

#[test]
fn what_is_written_is_read_again() {
    for text in ["", "0:4", "0:3+1+4", "1:2,0:8", "0:0+8,1:6+0"] {
        let split = Split::parse(&[8, 6], text).unwrap();
        let written = split.to_string();
        assert_eq!(written.strip_prefix("[8, 6]").unwrap().trim_start_matches(" by "), text);
    }
    let even = Split::whole(&[8, 6]).unwrap().cut_at(0, &[4, 4]).unwrap();
    assert_eq!(even.to_string(), "[8, 6] by 0:2");
}
