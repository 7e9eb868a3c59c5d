//! Measuring: the number of launches, and errors. No test asserts a time.

use std::sync::Arc;

use warpstride::device::Device;
use warpstride::roofline::measure;
use warpstride::{ErrorKind, ops};

use crate::backend::{Setup, cases};

cases! {
    Any time_from_launch_to_launch_is_of_launches_that_ran,
    SoftwareGpu("it has no times") the_software_gpu_has_no_times,
}

fn time_from_launch_to_launch_is_of_launches_that_ran(setup: &Setup) {
    let device = Device::with_driver(Arc::clone(&setup.driver)).unwrap();
    let source = device.upload(&[7_u8; 100]).unwrap();
    let mut result = device.zeros::<u8>(100).unwrap();
    let mut launches = 0;
    let stream = device.default_stream();
    let us = measure::launch_us(stream, || {
        launches += 1;
        ops::copy_into(source.view(&[100])?, result.view_mut(&[100])?, stream)
    });
    assert!(us.unwrap() > 0.0);
    // 200 launches, nine times, after three to warm up.
    assert_eq!(launches, 1803);
    assert_eq!(result.download().unwrap(), [7; 100]);
}

fn the_software_gpu_has_no_times(setup: &Setup) {
    let device = Device::with_driver(Arc::clone(&setup.driver)).unwrap();
    let timed = measure::time(&device, device.default_stream(), 3, || panic!("nothing is launched for it"));
    assert_eq!(timed.unwrap_err().kind(), ErrorKind::Unavailable);
}
