use super::*;

fn groups(layout: &Layout, axes: &[usize]) -> Option<Vec<(usize, bool)>> {
    let reduced = Along::from(axes).reduced(layout.shape()).unwrap();
    let groups = Groups::new(layout, &reduced, false)?;
    Some(groups.as_slice().iter().map(|group| (group.extent, group.reduced)).collect())
}

#[test]
fn neighbours_in_memory_are_one_group() {
    let cube = Layout::row_major(&[2, 3, 1, 4]).unwrap();
    assert_eq!(groups(&cube, &[1, 3]), Some(vec![(2, false), (12, true)]));
    assert_eq!(groups(&cube, &[0, 3]), Some(vec![(2, true), (3, false), (4, true)]));
    assert_eq!(groups(&cube, &[2]), Some(vec![(24, false), (1, true)]));
    assert_eq!(groups(&cube.t(), &[0]), None, "the others would come in another order");
    assert_eq!(groups(&Layout::row_major(&[3, 5]).unwrap().t(), &[0]), Some(vec![(3, false), (5, true)]));
    assert_eq!(groups(&cube.slice(3, ..2, 1).unwrap(), &[3]), None);
    assert_eq!(groups(&cube.reverse(0).unwrap(), &[0]), None);
}

#[test]
fn axes_that_a_shape_lacks_or_that_come_twice_are_refused() {
    let says = |axes: &[usize]| Along::from(axes).reduced(&[2, 3]).unwrap_err().to_string();
    assert!(says(&[2]).contains("no axis 2") && says(&[1, 1]).contains("named twice"));
    assert!(says(&[0; 40]).contains("named twice"));
}
