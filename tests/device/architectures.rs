//! Devices of several architectures: each gets kernels that it supports.

use std::sync::Arc;

use warpstride::device::Device;
use warpstride::driver::Driver;
use warpstride::driver::soft::{Config, Soft};
use warpstride::driver::trace::Trace;
use warpstride::layout::Layout;
use warpstride::ops::{Align, PermutePlan, Plan, Target, TileShape};
use warpstride::{ErrorKind, Result};

use crate::backend::{SOFT_MEMORY_BYTES, Setup, cases};

cases! {
    SoftwareGpu("it opens devices of several architectures") a_device_gets_no_kernel_that_its_architecture_has_not,
}

/// Returns the entries whose modules were loaded for a transpose on a device of this compute
/// capability, by plans for it and for another.
fn transpose(compute_capability: (u32, u32), other: (u32, u32)) -> [Result<&'static str>; 2] {
    let config = Config { compute_capability, memory_bytes: SOFT_MEMORY_BYTES, ..Config::default() };
    let trace = Arc::new(Trace::new(Arc::new(Soft::with_config(config))));
    let device = Device::with_driver(Arc::clone(&trace) as Arc<dyn Driver>).unwrap();
    let elements: Vec<u32> = (0..64 * 128).collect();
    let expected: Vec<u32> = (0..64 * 128).map(|place| place % 64 * 128 + place / 64).collect();
    let (src, dst) = (Layout::row_major(&[64, 128]).unwrap().t(), Layout::row_major(&[128, 64]).unwrap());
    let (align, stream) = (Align::ALLOCATION, device.default_stream());
    [Target::of(&device), Target { compute_capability: other }].map(|target| {
        let tiles = TileShape::of(target);
        let plan = PermutePlan::tuned(&src, align, &dst, align, 4, target, tiles).unwrap();
        let (source, result) = (device.upload(&elements).unwrap(), device.zeros::<u32>(elements.len()).unwrap());
        let modules = trace.live().modules.len();
        // SAFETY: both buffers hold the layouts, are aligned as allocations are, and live until the
        // stream is synchronised.
        let launched = unsafe { plan.launch_raw(&device, source.address(), result.address(), stream.handle()) };
        stream.synchronize().unwrap();
        let loaded = trace.live().modules.len() - modules;
        assert_eq!(loaded, usize::from(launched.is_ok()), "what is refused is not loaded");
        launched?;
        assert!(result.download().unwrap() == expected, "{plan}");
        Ok(plan.entry().unwrap())
    })
}

fn a_device_gets_no_kernel_that_its_architecture_has_not(_: &Setup) {
    let [own, other] = transpose((7, 5), (8, 0));
    assert_eq!(own, Ok("vector_tile_b32"));
    let error = other.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("has compute capability 7.5, and vector_tile_b32_hinted needs 8.0"), "{error}");
    assert_eq!(transpose((8, 6), (7, 5)), [Ok("vector_tile_b32_hinted"), Ok("vector_tile_b32")]);
}
