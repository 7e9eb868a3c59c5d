use super::*;
use crate::layout::walk::Reach;

fn c_order(shape: &[usize]) -> Layout {
    Layout::row_major(shape).unwrap()
}

#[test]
fn the_channels_axis_stays_its_own() {
    let images = c_order(&[2, 3, 4, 5]);
    let fused = Axes::new(&images, &images, None).unwrap();
    assert_eq!(fused.walk.axes(), [Axis { extent: 120, src: 1, dst: 1 }]);
    let axes = Axes::new(&images, &images, Some(1)).unwrap();
    let axis = |extent, stride| Axis { extent, src: stride, dst: stride };
    assert_eq!(axes.walk.axes(), [axis(20, 1), axis(3, 20), axis(2, 60)]);
    assert_eq!((axes.channel, axes.reversed, axes.walk.len()), (Some(1), false, 120));
    // One channel makes no axis.
    assert_eq!(Axes::new(&c_order(&[1, 9]), &c_order(&[1, 9]), Some(0)).unwrap().channel, None);
}

#[test]
fn channels_that_run_backwards_are_known() {
    let (src, dst) = (c_order(&[3, 4]), c_order(&[3, 4]).reverse(0).unwrap());
    let axes = Axes::new(&src, &dst, Some(0)).unwrap();
    assert_eq!((axes.channel, axes.reversed), (Some(1), true));
    assert_eq!((axes.walk.src_start, axes.walk.dst_start), (8, 0));
    assert_eq!(axes.walk.axes()[1], Axis { extent: 3, src: -4, dst: 4 });
    let back = axes.forwards_in_source(1);
    assert_eq!((back.reversed, back.walk.src_start, back.walk.dst_start), (false, 0, 8));
    assert_eq!(back.walk.axes()[1], Axis { extent: 3, src: 4, dst: -4 });
    // Both walks reach the same bytes.
    let all = [Reach { first: 0, end: 12 }, Reach { first: 0, end: 48 }];
    assert_eq!([axes.walk.reach([1, 4]), back.walk.reach([1, 4])], [all; 2]);
}
