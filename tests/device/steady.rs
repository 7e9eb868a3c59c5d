//! No operation makes the host wait once it has run: the calls to the driver that can are counted,
//! over every public operation, into new memory and into existing memory.

use std::any::Any;
use std::sync::Arc;

use warpstride::alloc::Caching;
use warpstride::device::Device;
use warpstride::error::Result;
use warpstride::memory::PinnedBuffer;
use warpstride::ops::{self, Affine, Normalization, Scratch};

use crate::backend::{Setup, cases};

cases! {
    Any no_operation_into_new_memory_can_wait,
    Any no_operation_into_existing_memory_can_wait,
    Any no_copy_of_pinned_memory_can_wait_until_it_is_asked_to,
    Any a_loop_of_permutes_of_a_mebibyte_can_not_wait,
}

/// Turns of which each must not wait, after some that load kernels and fill the cache.
const TURNS: usize = 5;
const WARM: usize = 2;

fn device(setup: &Setup) -> Device {
    let driver = Arc::clone(&setup.driver);
    Device::with_allocator(driver, |driver| Ok(Arc::new(Caching::new(driver)?))).unwrap()
}

/// Asserts that no turn of `work` but the first ones makes a call that can wait.
#[track_caller]
fn check(device: &Device, what: &str, mut work: impl FnMut() -> Result<()>) {
    for turn in 0..WARM + TURNS {
        let before = device.stats();
        work().unwrap_or_else(|error| panic!("{what}: {error}"));
        let calls = device.stats().since(&before);
        assert!(turn < WARM || calls.can_synchronize == 0, "{what}, turn {turn}: {calls:?}");
    }
    device.synchronize().unwrap();
}

/// Work that makes new memory, and returns it.
type Work<'a> = &'a dyn Fn() -> Result<Box<dyn Any>>;

/// Passes on every operation that makes new memory, by its name. Each returns what it has made.
pub(crate) fn operations(device: &Device, mut pass_on: impl FnMut(&str, Work<'_>)) {
    fn made<T: Any>(result: T) -> Box<dyn Any> {
        Box::new(result)
    }
    let a = device.array(&[2, 6, 8, 3], &[1.5_f32; 288]).unwrap();
    let flat = device.array(&[288], &[1.5_f32; 288]).unwrap();
    let matrix = device.array(&[96, 3], &[1.5_f32; 288]).unwrap();
    let bytes = device.array(&[2, 6, 8, 3], &[7_u8; 288]).unwrap();
    let normalization = Normalization::new(1.0 / 255.0, &[0.5; 3], &[0.5; 3]).unwrap();
    let works: [(&str, Work<'_>); 19] = [
        ("permute", &|| ops::permute(&a, [0, 3, 1, 2]).map(made)),
        ("contiguous", &|| ops::contiguous(a.slice(2, .., 2)?).map(made)),
        ("transpose", &|| ops::transpose(&matrix).map(made)),
        ("scale", &|| ops::scale(2.0, &flat).map(made)),
        ("add", &|| ops::add(&flat, &flat).map(made)),
        ("mul", &|| ops::mul(&flat, 2.0).map(made)),
        ("triad", &|| ops::triad(&flat, 2.0, &flat).map(made)),
        ("sum", &|| ops::sum(&flat, None).map(made)),
        ("sum along an axis", &|| ops::sum(&matrix, 0).map(made)),
        ("min", &|| ops::min(&flat, None).map(made)),
        ("max along an axis", &|| ops::max(&matrix, 1).map(made)),
        ("argmax", &|| ops::argmax(&flat, None).map(made)),
        ("dot", &|| ops::dot(&flat, &flat).map(made)),
        ("softmax", &|| ops::softmax(&matrix).map(made)),
        ("mean_variance", &|| ops::mean_variance(&matrix, 1).map(made)),
        ("cast", &|| ops::cast::<f64, f32>(&flat).map(made)),
        ("normalize", &|| ops::normalize::<f32>(&bytes, &normalization).map(made)),
        ("affine", &|| ops::affine::<f32, u8>(&bytes, Affine::scale(2.0)).map(made)),
        ("alloc", &|| device.alloc::<u8>(1 << 20).map(made)),
    ];
    works.into_iter().for_each(|(what, work)| pass_on(what, work));
}

fn no_operation_into_new_memory_can_wait(setup: &Setup) {
    let device = device(setup);
    operations(&device, |what, work| check(&device, what, || work().map(drop)));
}

fn no_operation_into_existing_memory_can_wait(setup: &Setup) {
    let device = device(setup);
    let [stream, other] = [device.stream().unwrap(), device.stream().unwrap()];
    let a = device.array(&[96, 3], &[1.5_f32; 288]).unwrap();
    let flat = device.array(&[288], &[1.5_f32; 288]).unwrap();
    let rows = device.array(&[4], &[3_u32, 1, 0, 2]).unwrap();
    let mut matrix = device.array(&[96, 3], &[0.0_f32; 288]).unwrap();
    let mut turned = device.array(&[3, 96], &[0.0_f32; 288]).unwrap();
    let mut b = device.array(&[288], &[0.0_f32; 288]).unwrap();
    let mut four = device.array(&[4, 3], &[0.0_f32; 12]).unwrap();
    let long = device.array(&[2, 40_000], &vec![1.5_f32; 80_000]).unwrap();
    let mut long_result = device.alloc_array::<f32>(&[2, 40_000]).unwrap();
    let mut one = device.alloc_array::<f32>(&[]).unwrap();
    let mut scratch = Scratch::new(&device).unwrap();
    check(&device, "copy_into on two streams", || {
        ops::copy_into(&flat, &mut b, &stream)?;
        ops::copy_into(&flat, &mut b, &other)
    });
    check(&device, "transpose_into", || ops::transpose_into(&a, &mut turned, None, &stream));
    check(&device, "transpose_in_place", || ops::transpose_in_place(&mut matrix, &stream).map(drop));
    check(&device, "fill_into", || ops::fill_into(1.0, &mut b, &stream));
    check(&device, "scale_into", || ops::scale_into(2.0, &flat, &mut b, &stream));
    check(&device, "nstream_into", || ops::nstream_into(&flat, 2.0, &flat, &mut b, &stream));
    check(&device, "axpy_into", || ops::axpy_into(2.0, &flat, &mut b, &stream));
    check(&device, "iterate_into", || ops::iterate_into(0.5, 1.0, 3, &flat, &mut b, &stream));
    check(&device, "sum_into", || ops::sum_into(&flat, None, &mut scratch, &mut one, &stream));
    check(&device, "dot_into", || ops::dot_into(&flat, &flat, &mut scratch, &mut one, &stream));
    check(&device, "softmax_into", || ops::softmax_into(&a, &mut matrix, &stream));
    check(&device, "softmax_into of long rows", || ops::softmax_into(&long, &mut long_result, &stream));
    check(&device, "cast_into", || ops::cast_into(&flat, &mut b, &stream));
    check(&device, "gather_rows", || ops::gather_rows(&a, &rows, &mut four, &stream));
    check(&device, "scatter_rows", || ops::scatter_rows(&four, &rows, &mut matrix, &stream));
    check(&device, "a copy by the copy engine", || stream.copy(&flat, &mut b));
    let graph = stream.capture(|s| ops::scale_into(2.0, &flat, &mut b, s)).unwrap();
    check(&device, "a graph", || graph.launch(&other));
}

fn no_copy_of_pinned_memory_can_wait_until_it_is_asked_to(setup: &Setup) {
    let device = device(setup);
    let stream = device.stream().unwrap();
    let mut array = device.alloc_array::<u32>(&[1000]).unwrap();
    let mut host: Option<PinnedBuffer<u32>> = Some(device.pinned_zeros(1000).unwrap());
    for turn in 0..WARM + TURNS {
        let before = device.stats();
        let up = stream.upload(host.take().unwrap(), &mut array).unwrap();
        assert!(turn < WARM || device.stats().since(&before).can_synchronize == 0, "upload, turn {turn}");
        let up = up.wait().unwrap();
        let before = device.stats();
        let down = stream.download(&array, up).unwrap();
        assert!(turn < WARM || device.stats().since(&before).can_synchronize == 0, "download, turn {turn}");
        host = Some(down.wait().unwrap());
    }
}

fn a_loop_of_permutes_of_a_mebibyte_can_not_wait(setup: &Setup) {
    let device = device(setup);
    let source = device.array(&[64, 64, 64], &vec![1.0_f32; 1 << 18]).unwrap();
    let turns = if setup.is_soft() { 3 } else { 1000 };
    for _ in 0..WARM {
        ops::permute(&source, [2, 0, 1]).unwrap();
    }
    let before = device.stats();
    for _ in 0..turns {
        ops::permute(&source, [2, 0, 1]).unwrap();
    }
    let calls = device.stats().since(&before);
    assert_eq!(calls.can_synchronize, 0, "{calls:?}");
    device.synchronize().unwrap();
}
