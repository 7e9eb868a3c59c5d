//! The checkers, on our own kernels and through the driver.

use std::sync::Arc;
use std::time::Duration;

use warpstride::device::Device;
use warpstride::driver::soft::{self, Soft};
use warpstride::element::Element;
use warpstride::interp::check::Check;
use warpstride::interp::{Checks, Config};
use warpstride::ops::{self, Variant};

/// Transposes a matrix of this shape by every variant.
fn transposed<T: Element + Default>(device: &Device, [rows, cols]: [usize; 2]) {
    let source = device.upload(&vec![T::default(); rows * cols]).unwrap();
    for variant in Variant::ALL {
        let mut result = device.alloc::<T>(rows * cols).unwrap();
        let to = result.view_mut(&[cols, rows]).unwrap();
        ops::transpose_into(source.view(&[rows, cols]).unwrap(), to, Some(variant), device.default_stream()).unwrap();
    }
}

/// Runs every variant at every width, in whole and partial tiles, copies of every alignment, and
/// the gate. `kernels` covers the forms that only large matrices use.
#[test]
fn our_own_kernels_are_clean() {
    let config = Config { checks: Checks::ALL, ..Config::default() };
    let soft = Arc::new(Soft::with_config(soft::Config { interp: config, ..soft::Config::default() }));
    let device = Device::with_driver(soft.clone()).unwrap();
    for shape in [[64, 32], [1, 1], [45, 77], [3, 130], [33, 31]] {
        transposed::<u8>(&device, shape);
        transposed::<u16>(&device, shape);
        transposed::<u32>(&device, shape);
        transposed::<u64>(&device, shape);
        transposed::<[f64; 2]>(&device, shape);
    }
    for (len, from, to) in [(1023, 0, 0), (1023, 1, 1), (512, 2, 6), (77, 4, 8), (640, 8, 0), (33, 3, 16)] {
        let source = device.upload(&vec![1_u8; len + 32]).unwrap();
        let mut result = device.alloc::<u8>(len + 32).unwrap();
        let from = source.view(&[len + 32]).unwrap().slice(0, from..from + len, 1).unwrap();
        let to = result.view_mut(&[len + 32]).unwrap().slice(0, to..to + len, 1).unwrap();
        ops::copy_into(from, to, device.default_stream()).unwrap();
    }
    ops::spin(&device, Duration::from_micros(10), device.default_stream()).unwrap();
    device.synchronize().unwrap();
    assert_eq!(soft.findings(), []);
}

/// A program that reads its output buffer too early is found through the driver as well, and
/// continues.
#[test]
fn the_driver_keeps_what_was_found() {
    let config = Config { checks: Checks::ALL, ..Config::default() };
    let soft = Arc::new(Soft::with_config(soft::Config { interp: config, ..soft::Config::default() }));
    let device = Device::with_driver(soft.clone()).unwrap();
    let source = device.alloc::<u32>(64).unwrap();
    let mut result = device.alloc::<u32>(64).unwrap();
    ops::copy_into(source.view(&[64]).unwrap(), result.view_mut(&[64]).unwrap(), device.default_stream()).unwrap();
    result.download().unwrap();
    let findings = soft.findings();
    assert!(!findings.is_empty() && findings.iter().all(|finding| finding.check == Check::Initcheck));
    assert!(findings[0].to_string().contains("not all of which have been written"), "{}", findings[0]);
}
