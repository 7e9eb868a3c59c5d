//! Scaled, shifted and converted permutes against the host's arithmetic, bit by bit.

use std::collections::BTreeMap;

use half::{bf16, f16};
use warpstride::device::Device;
use warpstride::element::{DType, Element};
use warpstride::error::ErrorKind;
use warpstride::layout::Layout;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Affine, AffinePlan, Align, Plan, Target};

use crate::backend::{Setup, cases};
use crate::debug_build;
use crate::failures::refusal;
use crate::long::short_or_long;
use crate::matrices::{Random, c_order};
use crate::naive;
use crate::permutes::device;

cases! {
    Any random_layouts_of_every_type,
    Any tiles_end_at_every_edge,
    Any channels_may_be_any_axis_either_way,
    Any structs_whose_fields_become_runs,
    Any few_elements_and_none,
    Any products_and_sums_are_rounded_once,
    Any an_identity_is_a_cast_that_keeps_the_sign_of_zero,
    Any raw_addresses_of_any_alignment,
    Any offsets_beyond_31_bits,
    Any what_cannot_be_mapped_is_refused,
    SoftwareGpu("it counts sectors") whole_tiles_access_each_sector_once,
}

/// A type of elements, and the type of its arithmetic.
trait Kind: Element {
    type Value: Real;
    fn of_bits(bits: u64) -> Self;
    fn value(self) -> Self::Value;
    fn nearest(value: Self::Value) -> Self;
}

trait Real: From<f32> + Into<f64> {
    fn mul_add(self, factor: Self, offset: Self) -> Self;
}

macro_rules! kinds {
    ($($type:ident $value:ident: |$bits:ident| $of_bits:expr, |$element:ident| $to_value:expr, |$near:ident| $nearest:expr;)*) => {$(
        impl Kind for $type {
            type Value = $value;

            fn of_bits($bits: u64) -> Self {
                $of_bits
            }

            fn value(self) -> $value {
                let $element = self;
                $to_value
            }

            fn nearest($near: $value) -> Self {
                $nearest
            }
        }
    )*};
    (real $($real:ident)*) => {$(
        impl Real for $real {
            fn mul_add(self, factor: Self, offset: Self) -> Self {
                self.mul_add(factor, offset)
            }
        }
    )*};
}

kinds! { real f32 f64 }
kinds! {
    u8 f32: |bits| (bits >> 56) as u8, |byte| byte.into(), |_value| unreachable!("bytes are not written");
    f16 f32: |bits| f16::from_bits((bits >> 48) as u16), |half| half.to_f32(), |value| f16::from_f32(value);
    bf16 f32: |bits| bf16::from_bits((bits >> 48) as u16), |half| half.to_f32(), |value| bf16::from_f32(value);
    f32 f32: |bits| f32::from_bits((bits >> 32) as u32), |float| float, |value| value;
    f64 f64: |bits| f64::from_bits(bits), |float| float, |value| value;
}

/// Calls a generic function with every pair of types that has a kernel.
macro_rules! of_every_pair {
    ($function:ident($($argument:expr),* $(,)?)) => {
        of_every_pair!(@ $function($($argument),*) u8 f16 bf16 f32);
        $function::<f64, f64>($($argument),*);
    };
    (@ $function:ident $arguments:tt $($source:ident)*) => {$(
        of_every_pair!(@ $function f16 $source $arguments);
        of_every_pair!(@ $function bf16 $source $arguments);
        of_every_pair!(@ $function f32 $source $arguments);
    )*};
    (@ $function:ident $result:ident $source:ident ($($argument:expr),*)) => {
        $function::<$source, $result>($($argument),*);
    };
}

/// Launches every kernel of this file, on few elements.
pub(crate) fn launch_all(device: &Device, random: &mut Random) {
    fn run<S: Kind, D: Kind<Value = S::Value>>(device: &Device, random: &mut Random) {
        for (shape, kernel) in
            [([2, 64, 80], "affine_tile"), ([2, 33, 35], "affine_quads"), ([2, 5, 70], "affine_elements")]
        {
            let dst = c_order(&shape);
            let turned = c_order(&[shape[0], shape[2], shape[1]]).permuted_axes(&[0, 2, 1]).unwrap();
            let stepped = c_order(&[shape[0], shape[1], 2 * shape[2]]).slice(2, .., 2).unwrap();
            let src = if kernel == "affine_elements" { stepped } else { turned };
            for channels in [None, Some(0), Some(1), Some(2)] {
                let entry = check::<S, D>(device, random, src, dst, channels);
                assert!(entry.starts_with(kernel), "{entry} for {shape:?}");
            }
        }
        far_apart::<S, D>(device, random);
    }
    of_every_pair!(run(device, random));
}

/// Factors and offsets: one for all elements, or one for each channel.
struct Values {
    axis: Option<usize>,
    factors: Vec<f32>,
    offsets: Vec<f32>,
    on_device: [DeviceBuffer<f32>; 2],
}

impl Values {
    fn new(device: &Device, random: &mut Random, shape: &[usize], axis: Option<usize>) -> Self {
        let count = axis.map_or(1, |axis| shape[axis]);
        let mut numbers = || -> Vec<f32> { (0..count).map(|_| (random.below(4001) as f32 - 2000.0) / 333.0).collect() };
        let (factors, offsets) = (numbers(), numbers());
        let on_device = [device.upload(&factors).unwrap(), device.upload(&offsets).unwrap()];
        Self { axis, factors, offsets, on_device }
    }

    fn raw(&self) -> Affine<u64> {
        let [factors, offsets] = [0, 1].map(|at| self.on_device[at].address());
        match self.axis {
            Some(axis) => Affine::PerChannel { axis, factors, offsets },
            None => Affine::Uniform { factor: self.factors[0].into(), offset: self.offsets[0].into() },
        }
    }

    /// Maps an element.
    fn map<V: Real>(&self, index: &[usize], value: V) -> V {
        let channel = self.axis.map_or(0, |axis| index[axis]);
        value.mul_add(self.factors[channel].into(), self.offsets[channel].into())
    }

    fn expect<S: Kind, D: Kind<Value = S::Value>>(&self, src: &[S], from: &Layout, dst: &mut [D], to: &Layout) {
        naive::each(from, to, |index, at, place| dst[place] = D::nearest(self.map(index, src[at].value())));
    }
}

/// Returns whether the bits are equal, or both values are NaN.
fn same<D: Kind>(one: D, other: D) -> bool {
    let [one, other] = [one, other].map(|element| -> f64 { element.value().into() });
    one.to_bits() == other.to_bits() || one.is_nan() && other.is_nan()
}

/// Checks a map by the kernels for large arrays; see [`check_plan`].
fn check<S: Kind, D: Kind<Value = S::Value>>(
    device: &Device,
    random: &mut Random,
    src: Layout,
    dst: Layout,
    channels: Option<usize>,
) -> &'static str {
    check_plan::<S, D>(device, random, src, dst, channels, true)
}

/// Maps on the device and on the host, and compares all of the destination's storage, including the
/// gaps between its elements. On the software GPU tiles of whole vectors meet no bank conflict. The
/// entry is that of the kernel, which may be one for large arrays.
fn check_plan<S: Kind, D: Kind<Value = S::Value>>(
    device: &Device,
    random: &mut Random,
    src: Layout,
    dst: Layout,
    channels: Option<usize>,
    as_if_large: bool,
) -> &'static str {
    let (align, target) = (Align::ALLOCATION, Target::of(device));
    let plan = AffinePlan::new((&src, align, S::DTYPE), (&dst, align, D::DTYPE), channels, target).unwrap();
    let plan = if as_if_large { plan.as_if_large() } else { plan };
    let elements: Vec<S> = (0..src.storage_len()).map(|_| S::of_bits(random.bits())).collect();
    let mut expected: Vec<D> = (0..dst.storage_len()).map(|_| D::of_bits(random.bits())).collect();
    let (source, mut result) = (device.upload(&elements).unwrap(), device.upload(&expected).unwrap());
    let values = Values::new(device, random, src.shape(), channels);
    values.expect(&elements, &src, &mut expected, &dst);
    let view = |at: usize| values.on_device[at].view(&[values.factors.len()]).unwrap();
    let affine = match channels {
        Some(axis) => Affine::PerChannel { axis, factors: view(0), offsets: view(1) },
        None => Affine::Uniform { factor: values.factors[0].into(), offset: values.offsets[0].into() },
    };
    let before = device.counters().unwrap();
    let (from, to) = (source.view_with(src).unwrap(), result.view_mut_with(dst).unwrap());
    plan.launch(from, affine, to, device.default_stream()).unwrap();
    let got = result.download().unwrap();
    let counted = device.counters().unwrap().zip(before).map(|(after, before)| after - before);
    let wrong = (0..got.len()).find(|&at| !same(got[at], expected[at]));
    let case = format!("{} to {}: {src:?} to {dst:?}, channels {channels:?}, {plan}", S::DTYPE, D::DTYPE);
    assert_eq!(wrong.map(|at| (at, got[at], expected[at])), None, "{case}");
    let entry = plan.entry().unwrap_or_default();
    // Nothing is optimised in a debug build of the kernels.
    if let Some(counters) = counted.filter(|_| family(entry) == "affine_tile" && debug_build::path().is_none()) {
        assert!(counters.shared_load.wavefronts > 0 && counters.shared_store.wavefronts > 0, "{case}: {counters:?}");
        assert_eq!(counters.bank_conflicts(), 0, "{case}: {counters:?}");
    }
    entry
}

/// Returns the kernel of an entry, whatever its types and index.
fn family(entry: &str) -> &'static str {
    ["affine_tile", "affine_quads", "affine_elements", ""].into_iter().find(|name| entry.starts_with(name)).unwrap()
}

/// One pair in two is matrices, or batches of them, that are large enough for tiles.
fn random_layouts_of_every_type(setup: &Setup) {
    fn run<S: Kind, D: Kind<Value = S::Value>>(
        device: &Device,
        random: &mut Random,
        kernels: &mut BTreeMap<&str, usize>,
    ) {
        let shape = if random.coin() { random.matrices(1 << 14) } else { random.shape(1 << 10) };
        let (src, dst) = (random.readable_array(&shape), random.array(&shape));
        let channels = if shape.is_empty() || random.coin() { None } else { Some(random.below(shape.len())) };
        let as_if_large = random.below(4) > 0;
        let entry = check_plan::<S, D>(device, random, src, dst, channels, as_if_large);
        *kernels.entry(family(entry)).or_default() += 1;
    }
    let device = device(setup);
    let (mut random, mut kernels) = (Random::new(90), BTreeMap::new());
    // The short form has a third.
    let rounds = short_or_long(40, 120);
    for _ in 0..rounds {
        of_every_pair!(run(&device, &mut random, &mut kernels));
    }
    println!("{kernels:?}");
    for (kernel, one_in) in [("affine_tile", 80), ("affine_quads", 24), ("affine_elements", 3)] {
        let taken = kernels.get(kernel).copied().unwrap_or_default();
        assert!(taken >= 13 * rounds / one_in, "{kernel} was taken for {taken} pairs: {kernels:?}");
    }
}

fn tiles_end_at_every_edge(setup: &Setup) {
    fn run<S: Kind, D: Kind<Value = S::Value>>(device: &Device, random: &mut Random) {
        let (lanes, rows) = (16 / size_of::<S>(), 16 / size_of::<D>());
        for quads in [[16, 16], [8, 17], [33, 5], [1, 256], [256, 1], [18, 34]] {
            let shape = [quads[1] * rows, quads[0] * lanes];
            // Rows of both sides a vector or more apart, and contiguous.
            for gap in [0, 1] {
                let (src_pitch, dst_pitch) = (shape[1] + gap * lanes, shape[0] + 2 * gap * rows);
                let src = Layout::new(&shape, &[src_pitch as isize, 1], gap * lanes, shape[0] * src_pitch + lanes);
                let dst = Layout::new(&shape, &[1, dst_pitch as isize], 0, shape[1] * dst_pitch);
                let entry = check::<S, D>(device, random, src.unwrap(), dst.unwrap(), Some(gap));
                assert!(entry.starts_with("affine_tile"), "{shape:?} by {entry}");
            }
        }
        for shape in [[64, 64], [63, 65], [65, 63], [32, 200], [200, 33], [127, 129]] {
            // No row of one side or of both starts on a vector.
            let (src, dst) = (random.below(lanes), 1 + random.below(rows - 1));
            let part = c_order(&[shape[0] + 1, shape[1] + lanes]).slice(0, ..shape[0], 1).unwrap();
            let src = part.slice(1, src..src + shape[1], 1).unwrap();
            let part = c_order(&[shape[1], shape[0] + rows + 1]);
            let dst = part.slice(1, dst..dst + shape[0], 1).unwrap().t();
            let entry = check::<S, D>(device, random, src, dst, None);
            assert!(entry.starts_with("affine_quads"), "{shape:?} by {entry}");
        }
    }
    of_every_pair!(run(&device(setup), &mut Random::new(91)));
}

fn whole_tiles_access_each_sector_once(setup: &Setup) {
    fn run<S: Kind, D: Kind<Value = S::Value>>(device: &Device, random: &mut Random) {
        let (lanes, rows) = (16 / size_of::<S>(), 16 / size_of::<D>());
        for quads in [[16, 16], [32, 32], [6, 34], [40, 24], [256, 2], [2, 256], [4, 64], [10, 66], [64, 8]] {
            let shape = [quads[1] * rows, quads[0] * lanes];
            let before = device.counters().unwrap().unwrap();
            let entry = check::<S, D>(device, random, c_order(&shape), Layout::column_major(&shape).unwrap(), None);
            let counted = device.counters().unwrap().unwrap() - before;
            let sectors = [lanes, rows].map(|lanes| (shape[0] * shape[1] / lanes / 2) as u64);
            assert_eq!([counted.global_load.sectors, counted.global_store.sectors], sectors, "{shape:?} by {entry}");
        }
    }
    of_every_pair!(run(&device(setup), &mut Random::new(96)));
}

fn channels_may_be_any_axis_either_way(setup: &Setup) {
    fn run<S: Kind, D: Kind<Value = S::Value>>(device: &Device, random: &mut Random) {
        for shape in [[3, 32, 2, 48], [2, 33, 3, 41]] {
            let [a, b, c, d] = shape;
            let dst = c_order(&shape);
            // A batch of matrices, two of whose axes are exchanged; and images of pixels to planes.
            let turned = c_order(&[a, d, c, b]).permuted_axes(&[0, 3, 2, 1]).unwrap();
            let pixels = c_order(&[a, c, d, b]).permuted_axes(&[0, 3, 1, 2]).unwrap();
            for src in [turned, pixels, dst] {
                for axis in 0..4 {
                    check::<S, D>(device, random, src, dst, Some(axis));
                    let backwards = [src.reverse(axis).unwrap(), dst.reverse(axis).unwrap()];
                    check::<S, D>(device, random, backwards[0], dst, Some(axis));
                    check::<S, D>(device, random, src, backwards[1], Some(axis));
                }
            }
        }
    }
    of_every_pair!(run(&device(setup), &mut Random::new(92)));
}

/// Lanes of structs of 8 elements of 1 or 2 bytes gather for different runs of the destination.
fn structs_whose_fields_become_runs(setup: &Setup) {
    fn run<S: Kind, D: Kind<Value = S::Value>>(device: &Device, random: &mut Random) {
        for fields in [8, 4] {
            let dst = c_order(&[2, fields, 3001]);
            let src = c_order(&[2, 3001, fields]).permuted_axes(&[0, 2, 1]).unwrap();
            for channels in [None, Some(1)] {
                check::<S, D>(device, random, src, dst, channels);
            }
        }
    }
    of_every_pair!(run(&device(setup), &mut Random::new(97)));
}

fn few_elements_and_none(setup: &Setup) {
    fn run<S: Kind, D: Kind<Value = S::Value>>(device: &Device, random: &mut Random) {
        for shape in [&[][..], &[0], &[1], &[1, 1, 1], &[3, 0, 5], &[1, 7], &[2, 1, 3], &[1025], &[1023, 1], &[3, 5, 7]]
        {
            let dst = c_order(shape);
            let backwards = (0..shape.len()).fold(dst, |layout, axis| layout.reverse(axis).unwrap());
            for src in [dst, backwards, Layout::column_major(shape).unwrap()] {
                for channels in (0..shape.len()).map(Some).chain([None]) {
                    check::<S, D>(device, random, src, dst, channels);
                }
            }
        }
    }
    of_every_pair!(run(&device(setup), &mut Random::new(93)));
}

fn products_and_sums_are_rounded_once(setup: &Setup) {
    let device = device(setup);
    // The square of 1 + 2^-12 has a last bit that a rounded product loses.
    let number = 1.0 + 1.0 / 4096.0_f32;
    let (source, mut result) = (device.upload(&[number]).unwrap(), device.zeros::<f32>(1).unwrap());
    let affine = Affine::Uniform { factor: number.into(), offset: -1.0 };
    let (from, to) = (source.view(&[1]).unwrap(), result.view_mut(&[1]).unwrap());
    ops::affine_into(from, affine, to, device.default_stream()).unwrap();
    let once = 2.0 / 4096.0 + 1.0 / (4096.0 * 4096.0_f32);
    assert_eq!(result.download().unwrap(), [once]);
    assert_ne!(number * number - 1.0, once, "the numbers show the difference");
}

fn an_identity_is_a_cast_that_keeps_the_sign_of_zero(setup: &Setup) {
    let device = device(setup);
    let numbers = [0.0, -0.0, 1.5, -65520.0, 65519.0, f32::INFINITY, 1e-8, -1e-40];
    let (source, mut result) = (device.upload(&numbers).unwrap(), device.zeros::<f16>(8).unwrap());
    let (from, to) = (source.view(&[8]).unwrap(), result.view_mut(&[8]).unwrap());
    ops::affine_into(from, Affine::IDENTITY, to, device.default_stream()).unwrap();
    let bits = |half: &f16| half.to_bits();
    let expected = numbers.map(f16::from_f32);
    let got = result.download().unwrap();
    assert!(got.iter().map(bits).eq(expected.iter().map(bits)), "{got:?} and not {expected:?}");
}

/// Only the addresses say how the storages are aligned.
fn raw_addresses_of_any_alignment(setup: &Setup) {
    let device = device(setup);
    let mut random = Random::new(94);
    let stream = device.default_stream();
    let (src, dst) = (c_order(&[64, 128]), c_order(&[128, 64]).t());
    for (from, to, kernel) in [
        (0, 0, "affine_tile_u8_f16"),
        (16, 8, "affine_tile_u8_f16"),
        (1, 0, "affine_quads_f16"),
        (0, 1, "affine_quads_f16"),
        (7, 5, "affine_quads_f16"),
    ] {
        let elements: Vec<u8> = (0..64 * 128 + 20).map(|_| u8::of_bits(random.bits())).collect();
        let mut expected = vec![f16::ZERO; 64 * 128 + 20];
        let (source, result) = (device.upload(&elements).unwrap(), device.upload(&expected).unwrap());
        for channels in [None, Some(0), Some(1)] {
            let values = Values::new(&device, &mut random, src.shape(), channels);
            values.expect(&elements[from..], &src, &mut expected[to..], &dst);
            let (source, before) = (source.address() + from as u64, 2 * to as u64);
            let sides = ((source, &src, DType::U8), (result.address() + before, &dst, DType::F16));
            // SAFETY: the buffers hold the layouts after these offsets, and live until the
            // download.
            unsafe { ops::affine_into_raw(&device, sides.0, sides.1, values.raw(), stream.handle()) }.unwrap();
            assert!(result.download().unwrap() == expected, "from {from} to {to}, channels {channels:?}");
            let aligned = |(address, layout, dtype)| (layout, Align::of(address), dtype);
            let plan = AffinePlan::new(aligned(sides.0), aligned(sides.1), channels, Target::of(&device)).unwrap();
            let large = plan.as_if_large();
            assert_eq!(large.entry(), Some(kernel));
            let result = device.zeros::<f16>(expected.len()).unwrap();
            // SAFETY: as above.
            unsafe { large.launch_raw(&device, source, values.raw(), result.address() + before, stream.handle()) }
                .unwrap();
            assert!(result.download().unwrap() == expected, "from {from} to {to}, channels {channels:?}, {large}");
        }
    }
}

fn offsets_beyond_31_bits(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(95));
    if setup.is_soft() {
        of_every_pair!(far_apart(&device, &mut random));
    } else {
        // Most GPUs have the memory for bytes.
        far_apart::<u8, f16>(&device, &mut random);
    }
}

/// Maps images that lie more than 2^31 elements apart: the ends of one buffer or, on the software
/// GPU, whose memory is small but whose allocations lie far apart, two buffers.
fn far_apart<S: Kind, D: Kind<Value = S::Value>>(device: &Device, random: &mut Random) {
    const ROOM: usize = 64 * 64;
    let elements: Vec<S> = (0..2 * ROOM).map(|_| S::of_bits(random.bits())).collect();
    let is_soft = device.info().kind == warpstride::driver::DriverKind::Soft;
    let held: Vec<DeviceBuffer<S>> = if is_soft {
        vec![device.upload(&elements[..ROOM]).unwrap(), device.upload(&elements[ROOM..]).unwrap()]
    } else {
        let mut all = device.alloc::<S>((1 << 31) + 2 * ROOM).unwrap();
        let near = device.upload(&elements).unwrap();
        let len = all.len();
        for (part, at) in [(0, 0..ROOM), (1, len - ROOM..len)] {
            let from = near.view(&[2, ROOM]).unwrap().index_axis(0, part).unwrap();
            let to = all.view_mut(&[len]).unwrap().slice(0, at, 1).unwrap();
            ops::copy_into(from, to, device.default_stream()).unwrap();
        }
        vec![all]
    };
    let starts = match &held[..] {
        [one, other] => [one.address(), other.address()],
        [all] => [all.address(), all.address() + ((all.len() - ROOM) * size_of::<S>()) as u64],
        _ => unreachable!("one or two"),
    };
    // If the first image lies after the second, it is the source's last.
    let backwards = starts[0] > starts[1];
    let distance = starts[0].abs_diff(starts[1]) as usize / size_of::<S>();
    for [rows, cols] in [[64, 64], [61, 63], [5, 9]] {
        let strides = [distance as isize, cols as isize, 1];
        let far = Layout::new(&[2, rows, cols], &strides, 0, distance + ROOM).unwrap();
        let near = Layout::new(&[2, rows, cols], &[ROOM as isize, cols as isize, 1], 0, 2 * ROOM).unwrap();
        let (far, order) = if backwards { (far.reverse(0).unwrap(), 1) } else { (far, 0) };
        let dst = c_order(&[2, cols, rows]).permuted_axes(&[0, 2, 1]).unwrap();
        let values = Values::new(device, random, far.shape(), Some(0));
        let mut expected = vec![D::nearest(0.0_f32.into()); dst.len()];
        values.expect(&elements, &near, &mut expected, &dst);
        let result = device.upload(&expected).unwrap();
        let sides = ((starts[order], &far, S::DTYPE), (result.address(), &dst, D::DTYPE));
        let stream = device.default_stream();
        // SAFETY: both images and the result live until the download.
        unsafe { ops::affine_into_raw(device, sides.0, sides.1, values.raw(), stream.handle()) }.unwrap();
        let got = result.download().unwrap();
        assert!((0..got.len()).all(|at| same(got[at], expected[at])), "{rows} x {cols} of {}", S::DTYPE);
    }
}

fn what_cannot_be_mapped_is_refused(setup: &Setup) {
    let device = device(setup);
    let stream = device.default_stream();
    let (source, mut result) = (device.zeros::<f32>(24).unwrap(), device.zeros::<f32>(24).unwrap());
    let values = device.zeros::<f32>(8).unwrap();
    let whole = values.view(&[8]).unwrap();
    for (from, to, axis, factors, step, wrong) in [
        (&[6, 4][..], &[4, 6][..], 1, 4, 1, "[6, 4]"),
        (&[6, 4], &[6, 4], 2, 4, 1, "no axis 2"),
        (&[6, 4], &[6, 4], 1, 3, 1, "[3], and each channel has one; give a view of shape [4]"),
        (&[6, 4], &[6, 4], 1, 8, 2, "contiguous"),
    ] {
        let (from, to) = (source.view(from).unwrap(), result.view_mut(to).unwrap());
        let [factors, offsets] = [(factors, step), (4, 1)].map(|(end, step)| whole.slice(0, ..end, step).unwrap());
        refusal(ops::affine_into(from, Affine::PerChannel { axis, factors, offsets }, to, stream)).says(wrong);
    }
    let mut doubles = device.zeros::<f64>(24).unwrap();
    let (from, to) = (source.view(&[24]).unwrap(), doubles.view_mut(&[24]).unwrap());
    refusal(ops::affine_into(from, Affine::IDENTITY, to, stream))
        .of(ErrorKind::InvalidArgument)
        .says("f32 are not mapped to f64");

    let (row, f32) = (c_order(&[4]), DType::F32);
    let at = |element: u64| source.address() + element;
    let channels = |factors, offsets| Affine::PerChannel { axis: 0, factors, offsets };
    for (src, dst, affine, wrong) in [
        (at(0), at(12), Affine::IDENTITY, "overlap"),
        (at(2), at(48), Affine::IDENTITY, "aligned"),
        (at(0), at(50), Affine::IDENTITY, "aligned"),
        (at(0), at(48), channels(at(60), at(16)), "overlap"),
        (at(0), at(48), channels(at(16), at(36)), "overlap"),
        (at(0), at(48), channels(at(18), at(32)), "aligned"),
    ] {
        let sides = ((src, &row, f32), (dst, &row, f32));
        // SAFETY: refused before any work is queued.
        refusal(unsafe { ops::affine_into_raw(&device, sides.0, sides.1, affine, stream.handle()) })
            .of(ErrorKind::InvalidArgument)
            .says(wrong);
    }
    let aligned = (&row, Align::of(16), f32);
    let plan = AffinePlan::new(aligned, aligned, None, Target::of(&device)).unwrap();
    for (dst, affine, wrong) in
        [(at(48), channels(at(16), at(32)), "make a plan"), (at(52), Affine::IDENTITY, "aligned to 16")]
    {
        // SAFETY: refused before any work is queued.
        refusal(unsafe { plan.launch_raw(&device, at(0), affine, dst, stream.handle()) }).says(wrong);
    }
}
