//! Permutes and copies from any layout to any layout, against the oracle.

use std::sync::Arc;

use warpstride::device::Device;
use warpstride::layout::Layout;
use warpstride::ops;

use crate::backend::{Setup, cases};
use crate::matrices::{Random, Sample, at_every_width};
use crate::naive;

cases! {
    Any random_layouts_at_every_width,
}

fn device(setup: &Setup) -> Device {
    Device::with_driver(Arc::clone(&setup.driver)).unwrap()
}

/// Copies on the device and by the oracle; all bytes of the destination's storage must agree, those that no element of the
/// destination has included.
fn check<T: Sample>(device: &Device, src_layout: Layout, dst_layout: Layout, random: &mut Random) {
    let src: Vec<T> = random.elements(src_layout.storage_len());
    let mut expected: Vec<T> = random.elements(dst_layout.storage_len());
    let source = device.upload(&src).unwrap();
    let mut result = device.upload(&expected).unwrap();
    naive::copy(&src, &src_layout, &mut expected, &dst_layout);
    let (from, to) = (source.view_with(src_layout).unwrap(), result.view_mut_with(dst_layout).unwrap());
    ops::copy_into(from, to, device.default_stream()).unwrap();
    let agrees = result.download().unwrap() == expected;
    assert!(agrees, "{}: {src_layout:?} to {dst_layout:?}", T::DTYPE);
}

fn random_layouts_at_every_width(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let shape = random.shape(1024);
        let (src, dst) = (random.readable_array(&shape), random.array(&shape));
        check::<T>(device, src, dst, random);
    }
    let device = device(setup);
    let mut random = Random::new(20);
    for _ in 0..400 {
        at_every_width!(run(&device, &mut random));
    }
}
