//! Every element is where an element-by-element permute puts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warpstride::driver::soft::{Config, Soft};
use warpstride::element::Element;
use warpstride::out_of_core::{self, Options};
use warpstride::random::SplitMix64;
use warpstride::{Device, ErrorKind};

use super::{Files, budget, bytes, device, drawn, expected, read};
use crate::long::is_long;

/// Permutes an array in ordinary memory and in registered memory.
fn check_slices<T: Element + Default>(
    device: &Device,
    shape: &[usize],
    axes: &[usize],
    source: &mut [T],
    memory: usize,
) {
    let expected = expected(source, shape, axes, false);
    let bytes = size_of_val(source) as u64;
    for is_registered in [false, true] {
        let (mut result, told) = (vec![T::default(); source.len()], AtomicU64::new(0));
        let progress = |bytes| {
            told.fetch_add(bytes, Ordering::Relaxed);
        };
        let options = Options { progress: Some(&progress), ..budget(memory) };
        let case = format!("{} {shape:?} {axes:?} in {memory} bytes, registered: {is_registered}", T::DTYPE);
        let done = if is_registered && !source.is_empty() {
            device.default_stream().scope(|s| {
                let source = s.register(source)?;
                let mut result = s.register(&mut result)?;
                out_of_core::permute(device, &source, shape, axes, &mut result, options)
            })
        } else {
            out_of_core::permute(device, source, shape, axes, &mut result, options)
        };
        let done = done.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(result == expected, "{case}");
        assert_eq!((done.device_memory, done.resumed_tiles), (memory, 0), "{case}");
        assert_eq!(done.kernel.is_none(), source.is_empty(), "{case}");
        assert_eq!(told.into_inner(), bytes, "{case}");
        assert!(done.tiles * memory as u64 / 12 >= bytes, "{case}: {} tiles", done.tiles);
    }
}

#[test]
fn slices_of_all_widths() {
    let (device, mut random) = (device(), SplitMix64(1));
    for case in 0..if is_long() { 200 } else { 20 } {
        let (shape, axes) = drawn(&mut random);
        let (len, tile) = (shape.iter().product::<usize>(), 1 + random.below(900) as usize);
        let numbers = || (0..len as u64).map(|at| SplitMix64::at(7, at));
        match case % 5 {
            0 => check_slices(&device, &shape, &axes, &mut numbers().map(|n| n as u8).collect::<Vec<_>>(), 12 * tile),
            1 => check_slices(&device, &shape, &axes, &mut numbers().map(|n| n as i16).collect::<Vec<_>>(), 24 * tile),
            2 => {
                let mut source: Vec<f32> = numbers().map(|n| n as u32 as f32).collect();
                check_slices(&device, &shape, &axes, &mut source, 48 * tile);
            }
            3 => check_slices(&device, &shape, &axes, &mut numbers().collect::<Vec<_>>(), 96 * tile),
            _ => {
                let mut source: Vec<[f64; 2]> = numbers().map(|n| [n as f64, 0.5]).collect();
                check_slices(&device, &shape, &axes, &mut source, 192 * tile);
            }
        }
    }
}

#[test]
fn registered_memory_needs_no_slots_on_the_host() {
    let device = device();
    let (mut source, mut result) = (vec![1_u32; 1 << 16], vec![0; 1 << 16]);
    let mut locked = |shape: &[usize], axes: &[usize]| {
        device.trim_pinned(0).expect("no work");
        let before = device.stats();
        let run = device.default_stream().scope(|s| {
            let (source, mut result) = (s.register(&mut source)?, s.register(&mut result)?);
            out_of_core::permute(&device, &source, shape, axes, &mut result, budget(48 << 10))
        });
        run.expect("a result");
        device.stats().since(&before).calls_of("alloc_host")
    };
    assert_eq!(locked(&[256, 256], &[1, 0]), 0);
    assert_eq!(locked(&[16, 64, 64], &[2, 0, 1]), 0);
    // No call of a copy engine takes such a tile.
    assert!(locked(&[2; 16], &[0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15]) > 0);
}

#[test]
fn files_of_both_orders() {
    let (device, mut random) = (device(), SplitMix64(2));
    for case in 0..if is_long() { 200 } else { 25 } {
        let (shape, axes) = drawn(&mut random);
        let (descr, width) = [("|i1", 1), (">u2", 2), ("<f4", 4), ("<f8", 8), ("<c16", 16)][case % 5];
        let len = shape.iter().product::<usize>();
        let memory = 12 * width * (1 + random.below(900) as usize);
        let (data, is_fortran) = (bytes(len * width), random.below(2) == 1);
        let files = Files::new(descr, &shape, &data);
        if is_fortran {
            let path = files.path("in.npy");
            let text = std::fs::read(&path).expect("the input");
            let at = text.windows(5).position(|word| word == b"False").expect("the order");
            std::fs::write(&path, [&text[..at], b"True ", &text[at + 5..]].concat()).expect("room");
        }
        let done = files.permute(&device, &axes, budget(memory)).expect("a result");
        let elements: Vec<&[u8]> = data.chunks(width).collect();
        let expected = expected(&elements, &shape, &axes, is_fortran).concat();
        let permuted: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
        assert!(
            read(&files.path("out.npy")) == (permuted, expected),
            "{descr} {shape:?} {axes:?} {is_fortran} {memory}"
        );
        assert_eq!(files.names(), ["out.npy"]);
        assert!(done.tiles as usize * memory / 12 >= data.len());
    }
}

#[test]
fn work_runs_as_late_as_it_may() {
    for seed in 0..if is_long() { 64 } else { 8 } {
        let device = Device::with_driver(Arc::new(Soft::with_seed(seed))).expect("the software GPU");
        let mut source: Vec<u16> = (0..60 * 70).collect();
        check_slices(&device, &[60, 70], &[1, 0], &mut source, 24 * 200);
    }
}

#[test]
fn a_budget_is_chosen_from_what_is_free() {
    let config = Config { memory_bytes: 1 << 20, ..Config::default() };
    let device = Device::with_driver(Arc::new(Soft::with_config(config))).expect("the software GPU");
    let source: Vec<u32> = (0..1 << 19).collect();
    let mut result = vec![0; source.len()];
    let done = out_of_core::permute(&device, &source, &[1 << 9, 1 << 10], &[1, 0], &mut result, Options::default());
    assert_eq!(done.expect("a result").device_memory, 3 << 18);
    assert!(result == expected(&source, &[1 << 9, 1 << 10], &[1, 0], false));
}

#[test]
fn no_more_device_memory_than_the_budget() {
    let device = device();
    let source: Vec<u32> = (0..1 << 18).collect();
    let mut result = vec![0; source.len()];
    let memory = 120_000;
    out_of_core::permute(&device, &source, &[1 << 8, 1 << 10], &[1, 0], &mut result, budget(memory)).expect("room");
    let active = device.allocator().figures().peak_active;
    assert!(active <= memory as u64, "{active} bytes of {memory}");
}

#[test]
fn what_no_run_can_do_is_refused() {
    let device = device();
    let mut result = vec![0_u16; 6];
    let mut refused = |shape: &[usize], axes: &[usize], memory, part: &str| {
        let outcome = out_of_core::permute(&device, &[1_u16; 6], shape, axes, &mut result, budget(memory));
        let error = outcome.expect_err(part);
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    };
    refused(&[2, 3], &[0, 0], 1000, "once");
    refused(&[2, 4], &[1, 0], 1000, "has 8");
    refused(&[2, 3], &[1, 0], 23, "at least 24");
}
