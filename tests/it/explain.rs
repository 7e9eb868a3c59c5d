//! What an explanation expects is what a launch does.

use warpstride::counters::{Counters, GlobalCounters};
use warpstride::device::{Backend, Device};
use warpstride::element::Element;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, Explanation, Target, permute::Requested};

/// What a permute to C order, begun `start` elements into its source, is explained to ask for, and what it counts; with its kernel.
fn both<T: Element>(zero: T, shape: &[usize], axes: &[usize], start: usize) -> (&'static str, Requested, Counters) {
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    let packed = Layout::row_major(shape).expect("a shape").permuted_axes(axes).expect("a permutation");
    let src = Layout::new(packed.shape(), packed.strides(), start, start + packed.len()).expect("as long");
    let dst = Layout::row_major(src.shape()).expect("as many elements");
    let (align, width) = (Align::ALLOCATION, size_of::<T>());
    let explanation = Explanation::new(&src, align, &dst, align, width, Target::of(&device)).expect("a plan");
    let source = device.upload(&vec![zero; src.storage_len()]).expect("it fits");
    let mut result = device.alloc::<T>(dst.len()).expect("it fits");
    let before = device.counters().expect("nothing fails").expect("it counts");
    let (from, to) = (source.view_with(src).expect("it fits"), result.view_mut_with(dst).expect("it fits"));
    ops::copy_into(from, to, device.default_stream()).expect("it runs");
    let counted = device.counters().expect("nothing fails").expect("it counts") - before;
    (explanation.plan.entry().expect("there are elements"), explanation.requested().expect("it is counted"), counted)
}

fn of_width(width: usize, shape: &[usize], axes: &[usize], start: usize) -> (&'static str, Requested, Counters) {
    match width {
        1 => both(0_u8, shape, axes, start),
        2 => both(0_u16, shape, axes, start),
        4 => both(0_u32, shape, axes, start),
        8 => both(0_u64, shape, axes, start),
        _ => both([0_f64; 2], shape, axes, start),
    }
}

#[test]
fn every_kernel_asks_for_what_is_explained() {
    let mut kernels = std::collections::BTreeSet::new();
    for (shape, axes) in [
        (&[1000][..], &[0][..]),
        (&[256, 256], &[1, 0]),
        (&[200, 211], &[1, 0]),
        (&[1000, 3], &[1, 0]),
        (&[50_000, 3], &[1, 0]),
        (&[3, 50_000], &[1, 0]),
        (&[1024, 1024], &[1, 0]),
        (&[40, 32, 32], &[0, 2, 1]),
        (&[10, 37, 90], &[1, 0, 2]),
        (&[6, 5, 4, 3, 2, 7, 2], &[6, 4, 2, 0, 5, 3, 1]),
    ] {
        for width in [1, 2, 4, 8, 16] {
            for start in [0, 1] {
                let (kernel, explained, counted) = of_width(width, shape, axes, start);
                if !explained.exact {
                    // More blocks than are run: below, within a few per cent.
                    continue;
                }
                let expected = (explained.load, explained.store);
                let case = format!("{shape:?} {axes:?} of {width} bytes from {start} by {kernel}");
                assert_eq!(expected, (counted.global_load, counted.global_store), "{case}");
                kernels.insert(kernel.rsplit_once("_b").map_or(kernel, |(family, _)| family));
            }
        }
    }
    for kernel in ["copy", "packed", "rows", "patch", "small_tile", "staggered", "deinterleave", "interleave"] {
        assert!(kernels.contains(kernel), "none of {kernels:?} is {kernel}");
    }
}

#[test]
fn large_grids_ask_for_what_is_explained_within_a_few_per_cent() {
    let mut kernels = std::collections::BTreeSet::new();
    for (shape, axes, width) in [
        (&[2000, 1999][..], &[1, 0][..], 4),
        (&[2304, 2048], &[1, 0], 4),
        (&[999, 4003], &[1, 0], 1),
        (&[64, 64, 1024], &[1, 0, 2], 4),
        (&[2500, 64, 64], &[0, 2, 1], 1),
        (&[100, 90, 80], &[2, 1, 0], 8),
        (&[12, 12, 12, 12, 12, 12], &[4, 2, 0, 5, 3, 1], 2),
    ] {
        let (kernel, explained, counted) = of_width(width, shape, axes, 0);
        kernels.insert(kernel.rsplit_once("_b").map_or(kernel, |(family, _)| family));
        for (expected, counted) in [(explained.load, counted.global_load), (explained.store, counted.global_store)] {
            let GlobalCounters { requests, sectors, .. } = counted;
            for (expected, counted) in [(expected.requests, requests), (expected.sectors, sectors)] {
                let case = format!("{shape:?} {axes:?} of {width} bytes by {kernel}: {expected}, but {counted}");
                assert!(expected.abs_diff(counted) * 20 <= counted, "{case}");
            }
        }
    }
    for kernel in ["vector_tile", "ragged_tile", "stacked_tile", "packed", "elements"] {
        assert!(kernels.contains(kernel), "none of {kernels:?} is {kernel}");
    }
}

#[test]
fn arrays_that_no_host_holds_are_explained() {
    let (shape, target) = ([64, 1080, 1920, 300], Target { compute_capability: (9, 0) });
    let src = Layout::row_major(&shape).unwrap().permuted_axes(&[0, 3, 1, 2]).unwrap();
    let dst = Layout::row_major(src.shape()).unwrap();
    let align = Align::ALLOCATION;
    let explanation = Explanation::new(&src, align, &dst, align, 8, target).unwrap();
    let requested = explanation.requested().unwrap();
    let (expected, ideal) = (requested.load.sectors, explanation.source.sectors);
    assert!(!requested.exact && expected.abs_diff(ideal) * 20 <= ideal, "{requested:?} of {ideal}");
}
