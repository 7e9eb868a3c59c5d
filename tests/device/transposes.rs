//! Every transpose kernel, from any layout to any layout, compared with the oracle.

use std::sync::Arc;

use warpstride::device::Device;
use warpstride::driver::Driver;
use warpstride::launch_shape::LaunchShape;
use warpstride::layout::Layout;
use warpstride::ops::{self, Plan, Variant};

use crate::backend::{Setup, cases, exact};
use crate::failures::refusal;
use crate::far::Far;
use crate::hooked::Hooked;
use crate::long::{is_long, short_or_long};
use crate::matrices::{Random, Sample, at_every_width};
use crate::naive;
use crate::permutes::device;

cases! {
    Any random_shapes_at_every_width_by_every_variant,
    Any any_layout_to_any_layout,
    Any the_result_of_a_new_buffer_is_in_c_order,
    Any offsets_beyond_31_bits,
    Any more_tiles_than_a_grid_has_in_y,
    Any raw_addresses_on_a_stream_of_the_driver,
}

/// Returns every way to request a transpose: each variant, and the plan's choice.
fn ways() -> impl Iterator<Item = Option<Variant>> {
    Variant::ALL.into_iter().map(Some).chain([None])
}

/// Transposes on the device and by the oracle, and compares all bytes of the destination's storage,
/// including those outside of its elements.
pub(crate) fn check<T: Sample>(
    device: &Device,
    src_layout: Layout,
    dst_layout: Layout,
    variant: Option<Variant>,
    random: &mut Random,
) {
    let src: Vec<T> = random.elements(src_layout.storage_len());
    let mut expected: Vec<T> = random.elements(dst_layout.storage_len());
    let source = device.upload(&src).unwrap();
    let mut result = device.upload(&expected).unwrap();
    naive::transpose(&src, &src_layout, &mut expected, &dst_layout);
    let (from, to) = (source.view_with(src_layout).unwrap(), result.view_mut_with(dst_layout).unwrap());
    ops::transpose_into(from, to, variant, device.default_stream()).unwrap();
    let agrees = result.download().unwrap() == expected;
    assert!(agrees, "{:?} of {}: {src_layout:?} to {dst_layout:?}", variant, T::DTYPE);
}

fn random_shapes_at_every_width_by_every_variant(setup: &Setup) {
    fn run<T: Sample>(device: &Device, [rows, cols]: [usize; 2], random: &mut Random) {
        let (src, dst) = (Layout::row_major(&[rows, cols]).unwrap(), Layout::row_major(&[cols, rows]).unwrap());
        ways().for_each(|variant| check::<T>(device, src, dst, variant, random));
    }
    let device = device(setup);
    let mut random = Random::new(1);
    // The short form has an eighth.
    for _ in 0..short_or_long(32, 256) {
        let shape = [random.extent(), random.extent()];
        at_every_width!(run(&device, shape, &mut random));
    }
}

fn any_layout_to_any_layout(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let [rows, cols] = [random.extent(), random.extent()];
        let (src, dst) = (random.readable_layout([rows, cols]), random.layout([cols, rows]));
        ways().for_each(|variant| check::<T>(device, src, dst, variant, random));
    }
    let device = device(setup);
    let mut random = Random::new(2);
    // The short form has a third.
    for _ in 0..short_or_long(16, 48) {
        at_every_width!(run(&device, &mut random));
    }
}

fn the_result_of_a_new_buffer_is_in_c_order(setup: &Setup) {
    let device = device(setup);
    let elements: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let source = device.upload(&elements).unwrap();
    let transposed = ops::transpose(source.view(&[2, 3]).unwrap()).unwrap();
    assert_eq!(transposed.to_vec().unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    // The transpose of the transpose's view is a copy of the elements.
    let again = ops::transpose(source.view(&[2, 3]).unwrap().t()).unwrap();
    assert_eq!(again.to_vec().unwrap(), elements);
    let none = device.upload::<f32>(&[]).unwrap();
    assert!(ops::transpose(none.view(&[0, 5]).unwrap()).unwrap().to_vec().unwrap().is_empty());
    let one = ops::transpose(source.view(&[6]).unwrap().slice(0, 3..4, 1).unwrap().insert_axis(0).unwrap()).unwrap();
    assert_eq!(one.to_vec().unwrap(), [3.0]);
}

/// 65 537 tiles: the last two lie in the grid's second layer. The short form launches five instead,
/// in layers of three.
fn more_tiles_than_a_grid_has_in_y(setup: &Setup) {
    let sides = |tiles: usize| {
        let [rows, cols] = [(tiles - 1) * 32 + 8, 2];
        [[rows, cols], [cols, rows]].map(|shape| Layout::row_major(&shape).unwrap())
    };
    let [src, dst] = sides(65_537);
    let plan = ops::TransposePlan::new(&src, &dst, 1, Variant::Padded).unwrap();
    assert_eq!(plan.shape().unwrap().grid, [1, 65_535, 2]);
    let (device, [src, dst]) = if is_long() { (device(setup), [src, dst]) } else { (in_layers(setup), sides(5)) };
    check::<u8>(&device, src, dst, Some(Variant::Padded), &mut Random::new(11));
}

/// Returns a device that launches grids of five blocks along y in two layers of three, as plans do
/// with more blocks than y has.
pub(crate) fn in_layers(setup: &Setup) -> Device {
    let shape = |shape: LaunchShape, _: &[u8]| {
        assert_eq!(shape.grid, [1, 5, 1]);
        LaunchShape { grid: [1, 3, 2], ..shape }
    };
    let hooked = Hooked { shape: Box::new(shape), ..Hooked::new(Arc::clone(&setup.driver)) };
    exact(&(Arc::new(hooked) as Arc<dyn Driver>))
}

/// A matrix of two rows that lie more than 2^31 elements apart, read and written by every variant.
fn offsets_beyond_31_bits(setup: &Setup) {
    let device = device(setup);
    let mut far = Far::new(&device, 33);
    let (rows, near) = (far.layout(&[2, 33], [0, 0], 1), Layout::row_major(&[33, 2]).unwrap());
    for variant in Variant::ALL {
        let plan = ops::TransposePlan::new(&rows, &near, 1, variant).unwrap();
        assert!(plan.entry().unwrap().ends_with("_wide"), "{plan}");
        let (before, result) = (far.renew(), device.alloc::<u8>(66).unwrap());
        let raw = |from: u64, src: &Layout, to: u64, dst: &Layout| {
            let stream = device.default_stream().handle();
            // SAFETY: both rows and the result live until the device is waited for.
            unsafe { ops::transpose_raw(&device, from, src, to, dst, 1, Some(variant), stream) }.unwrap();
            device.synchronize().unwrap();
        };
        raw(far.start(), &rows, result.address(), &near);
        let mut expected = vec![0; 66];
        naive::transpose(&before.concat(), &Layout::row_major(&[2, 33]).unwrap(), &mut expected, &near);
        assert_eq!(result.download().unwrap(), expected, "{plan}");
        far.renew();
        raw(result.address(), &near, far.start(), &rows);
        assert!(far.read() == before, "{variant} and back");
    }
}

fn raw_addresses_on_a_stream_of_the_driver(setup: &Setup) {
    let device = device(setup);
    let elements: Vec<u16> = Random::new(6).elements(100 * 33);
    let (src, dst) = (Layout::row_major(&[100, 33]).unwrap(), Layout::row_major(&[33, 100]).unwrap());
    let source = device.upload(&elements).unwrap();
    let result = device.alloc::<u16>(elements.len()).unwrap();
    let raw = |from: u64, to: u64| {
        // SAFETY: both buffers live until the stream is synchronised; a refused call queues
        // nothing.
        unsafe { ops::transpose_raw(&device, from, &src, to, &dst, 2, None, device.default_stream().handle()) }
    };
    raw(source.address(), result.address()).unwrap();
    device.default_stream().synchronize().unwrap();
    let mut expected = elements.clone();
    naive::transpose(&elements, &src, &mut expected, &dst);
    assert!(result.download().unwrap() == expected);
    refusal(raw(source.address(), source.address() + 100)).says("overlap");
    refusal(raw(source.address() + 1, result.address())).says("not aligned");
}
