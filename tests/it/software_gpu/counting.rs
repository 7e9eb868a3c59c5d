//! The software GPU that counts a part of each launch and keeps no data.

use std::sync::Arc;

use warpstride::driver::soft::Soft;
use warpstride::{Device, ops};

#[test]
fn the_host_gets_zeros_and_the_launches() {
    let soft = Arc::new(Soft::counting(4));
    let device = Device::with_driver(soft.clone()).expect("it opens");
    let matrix = device.array(&[1024, 1024], &vec![7_u32; 1 << 20]).expect("a matrix");
    let transposed = ops::transpose(&matrix).expect("its transpose");
    assert!(transposed.to_vec().expect("values").iter().all(|&value| value == 0));
    let launches = soft.take_launches();
    let [launch] = &launches[..] else { panic!("{launches:?}") };
    // The whole grid would load 2^17 sectors.
    let sectors = launch.report.global_load.sectors;
    assert!((1..1 << 17).contains(&sectors), "{} loads {sectors} sectors", launch.kernel);
    assert!(soft.take_launches().is_empty());
}
