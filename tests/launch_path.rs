//! Counts the costs of a launch beside the launch: no allocation on the host, and no call of the
//! driver but the launches, and the waits of streams where the stream changes. Nothing is timed;
//! `benches/launch.rs` has the nanoseconds.

use std::alloc::{GlobalAlloc, Layout as HostLayout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use warpstride::device::Device;
use warpstride::layout::Layout;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target, TileShape, TransposePlan, Variant};

#[path = "../benches/idle/mod.rs"]
mod idle;

use idle::{Calls, Idle};

/// Calls of each operation that are counted.
const REPEATS: u64 = 100;

/// The system's allocator, which counts for each thread: the threads of other tests must not be
/// seen.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: the system's allocator with the same arguments; counting allocates nothing, since the
// counter needs no drop.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: HostLayout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: HostLayout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the allocations and calls that `REPEATS` calls of an operation add, after a first that
/// may load kernels.
fn cost(driver: &Idle, mut operation: impl FnMut() -> warpstride::Result<()>) -> (u64, Calls) {
    operation().expect("the first call");
    let (allocations, before) = (ALLOCATIONS.get(), driver.calls());
    for _ in 0..REPEATS {
        operation().expect("a call");
    }
    let after = driver.calls();
    let calls = Calls {
        launches: after.launches - before.launches,
        orders: after.orders - before.orders,
        others: after.others - before.others,
    };
    (ALLOCATIONS.get() - allocations, calls)
}

/// Holds an operation to nothing but `launches` launches a call.
fn only_launches(what: &str, launches: u64, driver: &Idle, operation: impl FnMut() -> warpstride::Result<()>) {
    let expected = Calls { launches: launches * REPEATS, orders: 0, others: 0 };
    assert_eq!(cost(driver, operation), (0, expected), "allocations and calls of {REPEATS} times {what}");
}

/// A device over an idle driver, and two buffers of 96 * 40 elements, which nothing has used.
fn setup() -> (Arc<Idle>, Device, DeviceBuffer<f32>, DeviceBuffer<f32>) {
    let (driver, device) = Idle::device();
    let [source, destination] = [(); 2].map(|()| device.alloc(96 * 40).expect("it fits"));
    (driver, device, source, destination)
}

#[test]
fn operations_on_views_only_launch() {
    let (driver, device, source, mut destination) = setup();
    let stream = device.stream().unwrap();
    let variants = Variant::ALL.map(|variant| (Some(variant), if variant == Variant::ColumnLoop { 40 } else { 1 }));
    for (variant, launches) in variants.into_iter().chain([(None, 1)]) {
        only_launches(&format!("transpose_into, {variant:?}"), launches, &driver, || {
            ops::transpose_into(source.view(&[96, 40])?, destination.view_mut(&[40, 96])?, variant, &stream)
        });
    }
    only_launches("transpose_into, a copy", 1, &driver, || {
        ops::transpose_into(source.view(&[96, 40])?.t(), destination.view_mut(&[96, 40])?, None, &stream)
    });
    only_launches("transpose_into, a reversed part", 1, &driver, || {
        let part = source.view(&[96, 40])?.slice(0, 1..90, -2)?;
        let target = destination.view_mut(&[40, 96])?.slice(1, ..45, 1)?;
        ops::transpose_into(part, target, None, &stream)
    });
    only_launches("copy_into, a copy", 1, &driver, || {
        ops::copy_into(source.view(&[96, 40])?, destination.view_mut(&[96, 40])?, &stream)
    });
    only_launches("copy_into, a permute", 1, &driver, || {
        let permuted = source.view(&[8, 12, 5, 8])?.permuted_axes(&[2, 0, 3, 1])?;
        ops::copy_into(permuted, destination.view_mut(&[5, 8, 8, 12])?, &stream)
    });
    only_launches("spin", 1, &driver, || ops::spin(&device, Duration::from_nanos(1), &stream));
}

#[test]
fn raw_operations_and_kept_plans_only_launch() {
    let (driver, device, source, destination) = setup();
    let (from, to, stream) = (source.address(), destination.address(), device.default_stream().handle());
    let [matrix, turned] = [[96, 40], [40, 96]].map(|shape| Layout::row_major(&shape).unwrap());
    only_launches("transpose_raw", 1, &driver, || {
        // SAFETY: two buffers of as many elements as the layouts have, on a driver that touches
        // nothing.
        unsafe { ops::transpose_raw(&device, from, &matrix, to, &turned, 4, None, stream) }
    });
    only_launches("copy_into_raw", 1, &driver, || {
        // SAFETY: as above.
        unsafe { ops::copy_into_raw(&device, from, &matrix, to, &matrix, 4, stream) }
    });
    let plan = TransposePlan::new(&matrix, &turned, 4, Variant::Padded).unwrap();
    only_launches("a kept transpose", 1, &driver, || {
        // SAFETY: as above.
        unsafe { plan.launch_raw(&device, from, to, stream) }
    });
    let (align, target) = (Align::ALLOCATION, Target::of(&device));
    let permute = |src: &Layout, dst: &Layout| PermutePlan::new(src, align, dst, align, 4, target);
    for (what, layout) in [("a kept copy", matrix), ("a kept permute", turned.t())] {
        let plan = permute(&matrix, &layout).unwrap();
        only_launches(what, 1, &driver, || {
            // SAFETY: as above.
            unsafe { plan.launch_raw(&device, from, to, stream) }
        });
    }
    let plan = PermutePlan::tuned(&matrix, align, &turned.t(), align, 4, target, &TileShape::of(target)).unwrap();
    only_launches("a kept permute by a kernel for large arrays", 1, &driver, || {
        // SAFETY: as above.
        unsafe { plan.launch_raw(&device, from, to, stream) }
    });
    only_launches("a plan of a permute", 0, &driver, || permute(&matrix, &turned.t()).map(drop));
}

#[test]
fn every_kind_of_permute_only_launches() {
    let (driver, device, source, destination) = setup();
    let (from, to, stream) = (source.address(), destination.address(), device.default_stream().handle());
    let c_order = |shape: &[usize]| Layout::row_major(shape).unwrap();
    let pitched = |rows, cols, pitch| Layout::new(&[rows, cols], &[pitch as isize, 1], 0, rows * pitch).unwrap();
    for (kernel, src, dst) in [
        ("elements", c_order(&[50]).reverse(0).unwrap(), c_order(&[50])),
        ("rows", Layout::new(&[2000], &[1], 1, 2001).unwrap(), c_order(&[2000])),
        ("deinterleave_b", c_order(&[1001, 3]).t(), c_order(&[3, 1001])),
        ("interleave_b", c_order(&[3, 1001]).t(), c_order(&[1001, 3])),
        ("deinterleave_quads", c_order(&[1000, 3]).t(), c_order(&[3, 1000])),
        ("interleave_quads", c_order(&[3, 1000]).t(), c_order(&[1000, 3])),
        ("vector_tile", c_order(&[96, 40]).t(), c_order(&[40, 96])),
        // Rows apart: side by side they were structs of 63 fields.
        ("ragged_tile", pitched(50, 63, 65), pitched(63, 50, 53).t()),
        ("packed_quads", c_order(&[9, 7, 11, 5]).permuted_axes(&[3, 1, 0, 2]).unwrap(), c_order(&[5, 7, 9, 11])),
        ("patch", c_order(&[20, 30]).t(), c_order(&[30, 20])),
    ] {
        let (align, target) = (Align::ALLOCATION, Target::of(&device));
        let plan = || {
            if kernel == "patch" {
                PermutePlan::new(&src, align, &dst, align, 4, target)
            } else {
                PermutePlan::tuned(&src, align, &dst, align, 4, target, &TileShape::of(target))
            }
        };
        // The kernel's own plan, which may not be the fastest for so small an array.
        let fastest = plan().unwrap();
        let mut ways = [fastest, fastest.as_if_large()].into_iter().chain(fastest.ways());
        let is_kernel = |way: &PermutePlan| way.entry().is_some_and(|entry| entry.starts_with(kernel));
        let way = ways.find(is_kernel).unwrap_or_else(|| panic!("{fastest} is not a {kernel}"));
        only_launches(kernel, 1, &driver, || {
            // SAFETY: two buffers of at least as many elements as the layouts have, on a driver
            // that touches nothing.
            plan().and_then(|_| unsafe { way.launch_raw(&device, from, to, stream) })
        });
    }
}

#[test]
fn transposes_in_place_only_launch() {
    let (driver, device, _, mut matrix) = setup();
    let stream = device.stream().unwrap();
    for (shape, launches) in [([60, 60], 1), ([60, 40], 3), ([41, 60], 2)] {
        let layout = Layout::row_major(&shape).unwrap();
        only_launches(&format!("transpose_in_place, {shape:?}"), launches, &driver, || {
            ops::transpose_in_place(matrix.view_mut_with(layout)?, &stream).map(drop)
        });
    }
}

/// Each turn to the other stream is one event recorded and one wait, for both buffers together.
#[test]
fn a_change_of_stream_costs_waits_of_streams_and_nothing_else() {
    let (driver, device, source, mut destination) = setup();
    let streams = [(); 2].map(|()| device.stream().unwrap());
    let mut turn = 0;
    let (allocations, calls) = cost(&driver, || {
        turn += 1;
        ops::copy_into(source.view(&[96, 40])?, destination.view_mut(&[96, 40])?, &streams[turn % 2])
    });
    assert_eq!((allocations, calls), (0, Calls { launches: REPEATS, orders: 2 * REPEATS, others: 0 }));
}

/// A launch of a graph is one call of the driver, however many kernels and buffers it has, and the
/// waits of streams are those of any operation.
#[test]
fn a_graph_is_one_launch() {
    let (driver, device, source, mut destination) = setup();
    let streams = [(); 2].map(|()| device.stream().unwrap());
    let small = streams[0].capture(|s| {
        (0..100).try_for_each(|_| ops::copy_into(source.view(&[96, 40])?, destination.view_mut(&[96, 40])?, s))
    });
    let small = small.unwrap();
    only_launches("a graph of 100 copies", 1, &driver, || small.launch(&streams[0]));
    let mut buffers: Vec<_> = (0..200).map(|_| device.alloc::<f32>(100).unwrap()).collect();
    let large =
        streams[0].capture(|s| buffers.iter_mut().try_for_each(|b| ops::fill_into(1.0, b.view_mut(&[100])?, s)));
    let large = large.unwrap();
    only_launches("a graph of 200 buffers", 1, &driver, || large.launch(&streams[0]));
    let mut turn = 0;
    let (allocations, calls) = cost(&driver, || {
        turn += 1;
        large.launch(&streams[turn % 2])
    });
    assert_eq!((allocations, calls), (0, Calls { launches: REPEATS, orders: 2 * REPEATS, others: 0 }));
    // Another use in between is ordered after the former launch, and before the next one.
    let (allocations, calls) = cost(&driver, || {
        ops::fill_into(2.0, buffers[7].view_mut(&[100])?, &streams[1])?;
        large.launch(&streams[0])
    });
    assert_eq!((allocations, calls), (0, Calls { launches: 2 * REPEATS, orders: 4 * REPEATS, others: 0 }));
}

#[test]
fn what_is_counted_is_seen() {
    let (driver, device, ..) = setup();
    let stream = device.stream().unwrap();
    let (allocations, calls) = cost(&driver, || {
        drop(std::hint::black_box(vec![1]));
        stream.synchronize()
    });
    assert_eq!(
        (allocations, calls),
        (REPEATS, Calls { launches: 0, orders: 0, others: REPEATS }),
        "a vector and a wait"
    );
}

#[test]
fn a_new_buffer_comes_from_the_cache_and_goes_back_there() {
    let (driver, _device, source, _) = setup();
    let (_, calls) = cost(&driver, || ops::transpose(source.view(&[96, 40])?).map(drop));
    assert_eq!(calls, Calls { launches: REPEATS, orders: 0, others: 0 });
}
