use super::*;
use crate::abi::{BOXES, COPY, Index, Key};
use crate::driver::DriverKind;
use crate::error::ErrorKind;

#[test]
fn shapes_are_held_to_the_devices_limits() {
    let (entry, info) = (COPY.get(Key::ONLY), DeviceInfo::of_none("a device", DriverKind::Soft));
    let fits = LaunchShape { grid: [1, 65_535, 65_535], block: [32, 32, 1], dynamic_shared: 48 << 10 };
    assert_eq!(check_shape(&info, entry, &fits), Ok(()));
    for (wrong, expected) in [
        (LaunchShape { grid: [0, 1, 1], ..fits }, "extent of 0"),
        (LaunchShape { block: [32, 0, 1], ..fits }, "extent of 0"),
        (LaunchShape { grid: [1, 65_536, 1], ..fits }, "larger grid"),
        (LaunchShape { block: [32, 33, 1], ..fits }, "more threads"),
        (LaunchShape { block: [1 << 16, 1 << 16, 1], ..fits }, "more threads"),
        (LaunchShape { dynamic_shared: (48 << 10) + 1, ..fits }, "more shared memory"),
    ] {
        let error = check_shape(&info, entry, &wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let boxes = BOXES.entry(1, Index::Narrow).expect("an entry");
    let with = |dynamic_shared| check_shape(&info, boxes, &LaunchShape { dynamic_shared, ..fits });
    assert_eq!(with(64 << 10), Ok(()), "boxes ask for more");
    assert!(with((64 << 10) + 1).unwrap_err().to_string().contains("of at most 65536"));
}
