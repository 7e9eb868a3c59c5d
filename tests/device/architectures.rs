//! Devices of several architectures: each gets kernels that it supports.

use std::sync::Arc;

use warpstride::device::{Device, Tuned};
use warpstride::driver::Driver;
use warpstride::driver::soft::{Config, Soft};
use warpstride::driver::trace::Trace;
use warpstride::layout::Layout;
use warpstride::ops::{Align, FillPlan, PermutePlan, Phase, Plan, Target, TileShape};
use warpstride::{DType, ErrorKind, Result};

use crate::backend::{SOFT_MEMORY_BYTES, Setup, cases};
use crate::failures::refusal;

cases! {
    SoftwareGpu("it opens devices of several architectures") a_device_gets_no_kernel_that_its_architecture_has_not,
    SoftwareGpu("it runs the plans of every architecture") plans_for_every_gpu_move_what_they_say,
    Any copies_and_fills_take_blocks_of_any_whole_warps,
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
    [Target::of(&device), Target::new(other)].map(|target| {
        let tiles = &TileShape::of(target);
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
    refusal(other)
        .of(ErrorKind::InvalidArgument)
        .says("has compute capability 7.5, and vector_tile_b32_hinted needs 8.0");
    assert_eq!(transpose((8, 6), (7, 5)), [Ok("vector_tile_b32_hinted"), Ok("vector_tile_b32")]);
}

/// Returns the place in storage of every element, in C order of the layout's indices.
fn in_c_order(layout: &Layout) -> Vec<u32> {
    let axes = layout.shape().iter().zip(layout.strides());
    axes.fold(vec![0], |places, (&extent, &stride)| {
        places.iter().flat_map(|place| (0..extent as u32).map(move |index| place + index * stride as u32)).collect()
    })
}

fn plans_for_every_gpu_move_what_they_say(_: &Setup) {
    let config = Config { compute_capability: (12, 0), memory_bytes: SOFT_MEMORY_BYTES, ..Config::default() };
    let device = Device::with_driver(Arc::new(Soft::with_config(config))).unwrap();
    let (align, stream) = (Align::ALLOCATION, device.default_stream());
    let mut hinted = 0;
    for (shape, axes) in [
        (&[100_000, 3][..], &[1, 0][..]),
        (&[3, 100_000], &[1, 0]),
        (&[5, 256, 260], &[0, 2, 1]),
        (&[5, 257, 259], &[0, 2, 1]),
        (&[131, 97], &[1, 0]),
        (&[100, 100], &[0, 1]),
        // `packed_quads` takes large arrays.
        (&[1100, 33, 31], &[0, 2, 1]),
    ] {
        let src = Layout::row_major(shape).unwrap().permuted_axes(axes).unwrap();
        let dst = Layout::row_major(src.shape()).unwrap();
        let elements: Vec<u32> = (0..src.len() as u32).collect();
        let source = device.upload(&elements).unwrap();
        let expected = in_c_order(&src);
        for (compute_capability, gigabytes) in [((7, 5), 8), ((8, 0), 14), ((8, 6), 11), ((9, 0), 60), ((12, 0), 10)] {
            // With so small a cache these arrays are large ones.
            for l2_bytes in [1 << 10, 64 << 20] {
                let mut target = Target::new(compute_capability);
                (target.bandwidth_per_multiprocessor, target.l2_bytes) = (gigabytes * 1_000_000_000, l2_bytes);
                let plan = PermutePlan::new(&src, align, &dst, align, 4, target).unwrap();
                for plan in [plan, plan.as_if_large()] {
                    hinted += usize::from(plan.entry().unwrap().ends_with("_hinted"));
                    let mut result = device.zeros::<u32>(elements.len()).unwrap();
                    let (from, to) = (source.view_with(src).unwrap(), result.view_mut_with(dst).unwrap());
                    plan.launch(from, to, stream).unwrap();
                    assert!(result.download().unwrap() == expected, "{plan} for {target:?}");
                }
            }
        }
    }
    assert!(hinted > 10, "{hinted} plans have hints");
}

fn copies_and_fills_take_blocks_of_any_whole_warps(setup: &Setup) {
    let device = Device::with_driver(Arc::clone(&setup.driver)).unwrap();
    let (align, stream) = (Align::ALLOCATION, device.default_stream());
    for (block, len) in [32, 96, 256, 512, 1024].into_iter().flat_map(|block| [1, 15, 17, 4099].map(|len| (block, len)))
    {
        let row = Tuned::new([[0; 2]; 5], block, block).unwrap();
        let target = Target::of_info(device.info(), Some(row), None);
        let bytes: Vec<u8> = (0..len).map(|byte| (byte % 251) as u8).collect();
        let (source, mut result) = (device.upload(&bytes).unwrap(), device.zeros::<u8>(len + 3).unwrap());
        let layout = Layout::row_major(&[len]).unwrap();
        let plan = PermutePlan::new(&layout, align, &layout, align, 1, target).unwrap();
        assert_eq!(plan.shape().unwrap().block, [block, 1, 1]);
        let to = result.view_mut(&[len + 3]).unwrap().slice(0, ..len, 1).unwrap();
        plan.launch(source.view(&[len]).unwrap(), to, stream).unwrap();
        assert!(result.download().unwrap() == [&bytes[..], &[0; 3]].concat(), "{plan}");
        // From an odd byte on.
        let fill = FillPlan::new(DType::U8, len as u64, Phase::of(1), target).unwrap();
        assert_eq!(fill.shape().unwrap().block, [block, 1, 1]);
        fill.launch(7_u8, result.view_mut(&[len + 3]).unwrap().slice(0, 1..=len, 1).unwrap(), stream).unwrap();
        assert!(result.download().unwrap() == [&bytes[..1], &vec![7; len], &[0; 2]].concat(), "{fill}");
    }
}
