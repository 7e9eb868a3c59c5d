//! Element-wise operations and reductions of every number type, by raw addresses, against the
//! host's arithmetic.
//!
//! Halves are computed in single precision and rounded once, which the host does too: element-wise
//! results are equal bit for bit.

use approx::assert_relative_eq;
use half::{bf16, f16};
use warpstride::device::Device;
use warpstride::driver::StreamHandle;
use warpstride::element::{DType, Element};
use warpstride::error::{ErrorKind, Result};
use warpstride::memory::DeviceBuffer;
use warpstride::ops::probe::{Access, ProbeShape, probe};
use warpstride::ops::{
    self, DotPlan, Elementwise, ElementwisePlan, IteratePlan, Phase, Reduction, ReductionPlan, Scratch, Target,
};
use warpstride::roofline::peak::Peaks;

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::matrices::Random;
use crate::permutes::device;

cases! {
    Any elementwise_operations_are_the_hosts_bit_by_bit,
    Any operands_may_be_the_destination,
    Any steps_are_the_hosts_fused_products_and_sums,
    Any fills_start_and_end_anywhere,
    Any sums_of_whole_numbers_are_exact,
    Any sums_are_near_those_in_double_precision_and_the_same_every_time,
    Any extremes_are_found_wherever_they_are,
    Any what_cannot_be_computed_is_refused,
    Any probes_of_every_shape_move_what_they_say,
    Any probes_that_do_not_fit_are_refused,
    LargeGpu more_elements_than_blocks_take_at_once,
}

macro_rules! bits {
    ($($bits:ident $number:ident $in:ident $sum:ident: |$from:ident| $value:expr, |$to:ident| $nearest:expr;)*) => {$(
        /// The number type with this name.
        pub(crate) struct $number;
        impl $number {
            fn widen($from: $bits) -> $in {
                $value
            }
            fn narrow($to: $in) -> $bits {
                $nearest
            }
        }
        impl Kind for $number {
            type Bits = $bits;
            type Sum = $sum;
            const DTYPE: DType = DType::$number;
            fn nearest(value: f64) -> $bits {
                Self::narrow(value as $in)
            }
            fn value(bits: $bits) -> f64 {
                f64::from(Self::widen(bits))
            }
            fn compute(operation: Elementwise, scalar: f64, old: $bits, a: $bits, b: $bits) -> $bits {
                let (scalar, [old, a, b]) = (scalar as $in, [old, a, b].map(Self::widen));
                Self::narrow(match operation {
                    Elementwise::Mul => scalar * a,
                    Elementwise::Triad => a + scalar * b,
                    Elementwise::NStream => old + (a + scalar * b),
                    Elementwise::Axpy => old + scalar * a,
                })
            }
            fn sum(sum: $sum) -> f64 {
                f64::from(sum)
            }
        }
    )*};
}

/// A number type with its elements as bits, so that halves need no feature.
pub(crate) trait Kind {
    /// The bits.
    type Bits: Element;
    /// The type of sums.
    type Sum: Element;
    /// Its name for the kernels.
    const DTYPE: DType;
    /// Returns the bits nearest to a value.
    fn nearest(value: f64) -> Self::Bits;
    /// Returns the value.
    fn value(bits: Self::Bits) -> f64;
    /// Returns the result of an operation on elements.
    fn compute(operation: Elementwise, scalar: f64, old: Self::Bits, a: Self::Bits, b: Self::Bits) -> Self::Bits;
    /// Returns a sum's value.
    fn sum(sum: Self::Sum) -> f64;
}

bits! {
    u16 F16 f32 f32: |bits| f16::from_bits(bits).to_f32(), |value| f16::from_f32(value).to_bits();
    u16 Bf16 f32 f32: |bits| bf16::from_bits(bits).to_f32(), |value| bf16::from_f32(value).to_bits();
    f32 F32 f32 f32: |bits| bits, |value| value;
    f64 F64 f64 f64: |bits| bits, |value| value;
}

macro_rules! of_every_kind {
    ($function:ident($($argument:expr),*)) => {
        $function::<F16>($($argument),*);
        $function::<Bf16>($($argument),*);
        $function::<F32>($($argument),*);
        $function::<F64>($($argument),*);
    };
}
pub(crate) use of_every_kind;

/// Launches every kernel of this file, on few elements.
pub(crate) fn launch_all(device: &Device, random: &mut Random) {
    of_every_kind!(elementwise(device, random, &[1000]));
    steps_of(device, random, &[1000], &[33]);
    of_every_kind!(whole_sums(device, &[5000]));
    of_every_kind!(extremes(device, random, &[33]));
    fill_parts(device, 0x1234_u16);
    for access in Access::ALL {
        ProbeShape::all(access, Target::of(device))
            .filter(|shape| shape.threads == 128)
            .for_each(|shape| probes(device, access, shape));
    }
}

/// Returns numbers from -2 to 2, of which halves represent few.
pub(crate) fn random<K: Kind>(random: &mut Random, len: usize) -> Vec<K::Bits> {
    (0..len).map(|_| K::nearest(random.below(4001) as f64 / 1000.0 - 2.0)).collect()
}

/// Returns the address of an element.
pub(crate) fn at<T: Element>(buffer: &DeviceBuffer<T>, element: usize) -> u64 {
    buffer.address() + (element * size_of::<T>()) as u64
}

pub(crate) fn handle(device: &Device) -> StreamHandle {
    device.default_stream().handle()
}

/// Starts of operands with vectors in common, with none in common, and without vectors.
const STARTS: [[usize; 3]; 4] = [[0, 0, 0], [3, 3, 3], [1, 2, 0], [0, 8, 5]];

fn elementwise_operations_are_the_hosts_bit_by_bit(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(70));
    of_every_kind!(elementwise(&device, &mut random, &[0, 1, 7, 1000, 9001]));
}

/// Plans an operation on these addresses, and queues it.
///
/// # Safety
///
/// As [`ElementwisePlan::launch_raw`].
unsafe fn elementwise_at(
    device: &Device,
    operation: Elementwise,
    dtype: DType,
    scalar: f64,
    len: u64,
    [a, b, dst]: [u64; 3],
) -> Result<()> {
    let (sources, target) = ([a, b], Target::of(device));
    let plan = ElementwisePlan::new(operation, dtype, len, sources.map(Phase::of), Phase::of(dst), target)?;
    // SAFETY: as the caller promises.
    unsafe { plan.launch_raw(device, scalar, sources, dst, handle(device)) }
}

/// Plans a dot product of these addresses, and queues it.
///
/// # Safety
///
/// As [`DotPlan::launch_raw`].
unsafe fn dot_at(device: &Device, dtype: DType, len: u64, operands: [u64; 2], result: u64, scratch: u64) -> Result<()> {
    let plan = DotPlan::new(dtype, len, operands.map(Phase::of))?;
    // SAFETY: as the caller promises.
    unsafe { plan.launch_raw(device, operands, result, scratch, handle(device)) }
}

/// Plans a reduction of these addresses, and queues it.
///
/// # Safety
///
/// As [`ReductionPlan::launch_raw`].
pub(crate) unsafe fn reduce_at(
    device: &Device,
    (reduction, dtype): (Reduction, DType),
    shape: &[usize],
    axis: Option<usize>,
    [a, result, scratch]: [u64; 3],
) -> Result<()> {
    let plan = ReductionPlan::new(reduction, dtype, shape, axis, Phase::of(a), Target::of(device))?;
    // SAFETY: as the caller promises.
    unsafe { plan.launch_raw(device, a, result, scratch, handle(device)) }
}

fn elementwise<K: Kind>(device: &Device, numbers: &mut Random, lengths: &[usize]) {
    for &len in lengths {
        for starts in STARTS {
            let room = len + 16;
            let [old, a, b] = [(); 3].map(|()| random::<K>(numbers, room));
            let [source, other] = [&a, &b].map(|elements| device.upload(elements).unwrap());
            for operation in Elementwise::ALL {
                let result = device.upload(&old).unwrap();
                let [dst, first, second] = starts;
                let operands = [at(&source, first), at(&other, second), at(&result, dst)];
                // SAFETY: `len` elements of buffers that live to the end of the round, which are
                // downloaded after this.
                unsafe { elementwise_at(device, operation, K::DTYPE, 0.3, len as u64, operands) }.unwrap();
                let mut expected = old.clone();
                for i in 0..len {
                    expected[dst + i] = K::compute(operation, 0.3, old[dst + i], a[first + i], b[second + i]);
                }
                let got = result.download().unwrap();
                let wrong = (0..room).find(|&i| got[i] != expected[i]);
                assert_eq!(wrong, None, "{operation} of {len} {:?} from {starts:?}", K::DTYPE);
            }
        }
    }
}

fn operands_may_be_the_destination(setup: &Setup) {
    let device = device(setup);
    let numbers = random::<F32>(&mut Random::new(71), 5000);
    for operation in Elementwise::ALL {
        let buffer = device.upload(&numbers).unwrap();
        let operands = [buffer.address(); 3];
        // SAFETY: the buffer has 5000 elements, and is downloaded after this.
        unsafe { elementwise_at(&device, operation, DType::F32, -1.5, 5000, operands) }.unwrap();
        let expected: Vec<f32> = numbers.iter().map(|&x| F32::compute(operation, -1.5, x, x, x)).collect();
        assert!(buffer.download().unwrap() == expected, "{operation} in place");
    }
}

fn steps_are_the_hosts_fused_products_and_sums(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(72));
    steps_of(&device, &mut random, &[0, 1, 7, 1000, 9001], &[0, 1, 5, 32, 100]);
    // In place, and what a raw call refuses.
    let mut expected = self::random::<F32>(&mut random, 5000);
    let buffer = device.upload(&expected).unwrap();
    let (factor, offset, steps) = (-0.75, 0.1, 40);
    let raw = |src: u64, dst: u64| {
        let plan = IteratePlan::new(5000, [src, dst].map(Phase::of))?;
        // SAFETY: the buffer has 5000 elements and is downloaded after this, and what is refused
        // does not run.
        unsafe { plan.launch_raw(&device, factor, offset, steps, [src, dst], handle(&device)) }
    };
    raw(buffer.address(), buffer.address()).unwrap();
    expected.iter_mut().for_each(|x| *x = stepped((factor, offset, steps), *x));
    assert!(buffer.download().unwrap() == expected, "in place");
    for (src, dst) in [(0, 4), (4, 0), (0, 2), (2, 2)] {
        let launched = raw(buffer.address() + src, buffer.address() + dst).map_err(|error| error.kind());
        assert_eq!(launched, Err(ErrorKind::InvalidArgument), "{src} to {dst}");
    }
}

fn stepped((factor, offset, steps): (f32, f32, u32), x: f32) -> f32 {
    (0..steps).fold(x, |x, _| x.mul_add(factor, offset))
}

fn steps_of(device: &Device, numbers: &mut Random, lengths: &[usize], steps: &[u32]) {
    for &len in lengths {
        for [start, from, _] in STARTS {
            let (old, source) = (random::<F32>(numbers, len + 16), random::<F32>(numbers, len + 16));
            let from_buffer = device.upload(&source).unwrap();
            for &steps in steps {
                let mut result = device.upload(&old).unwrap();
                let part = |start: usize| start..start + len;
                let src = from_buffer.view(&[len + 16]).unwrap().slice(0, part(from), 1).unwrap();
                let dst = result.view_mut(&[len + 16]).unwrap().slice(0, part(start), 1).unwrap();
                ops::iterate_into(0.9, -0.3, steps, src, dst, device.default_stream()).unwrap();
                let mut expected = old.clone();
                for i in 0..len {
                    expected[start + i] = stepped((0.9, -0.3, steps), source[from + i]);
                }
                assert!(result.download().unwrap() == expected, "{steps} steps of {len} from {from} to {start}");
            }
        }
    }
}

fn fills_start_and_end_anywhere(setup: &Setup) {
    let device = device(setup);
    fill_parts(&device, 0x5a_u8);
    fill_parts(&device, 0x1234_u16);
    fill_parts(&device, 1.5_f32);
    fill_parts(&device, -2.5_f64);
    fill_parts(&device, [1.25_f64, -7.5]);
}

fn fill_parts<T: Element + Default>(device: &Device, value: T) {
    for (start, len) in [(0, 0), (0, 1), (1, 2), (3, 40), (5, 5000), (0, 4096)] {
        let room = start + len + 3;
        let mut buffer = device.zeros::<T>(room).unwrap();
        let view = buffer.view_mut(&[room]).unwrap().slice(0, start..start + len, 1).unwrap();
        ops::fill_into(value, view, device.default_stream()).unwrap();
        let got = buffer.download().unwrap();
        let right = |(i, &element): (usize, &T)| {
            element == if (start..start + len).contains(&i) { value } else { T::default() }
        };
        assert!(got.iter().enumerate().all(right), "{len} {} from {start}", T::DTYPE);
    }
}

/// Reduces elements of a shape from an index on, along an axis or all of them.
pub(crate) fn reduce<K: Kind, R: Element>(
    device: &Device,
    reduction: Reduction,
    source: (&DeviceBuffer<K::Bits>, usize),
    shape: &[usize],
    axis: Option<usize>,
) -> Vec<R> {
    let scratch = device.alloc::<u8>(Scratch::BYTES).unwrap();
    let results = axis.map_or(1, |axis| [&shape[..axis], &shape[axis + 1..]].concat().iter().product());
    let result = device.alloc::<R>(results).unwrap();
    let operands = [at(source.0, source.1), result.address(), scratch.address()];
    // SAFETY: the buffers have this number of elements, results and the scratch, and live until the
    // download.
    unsafe { reduce_at(device, (reduction, K::DTYPE), shape, axis, operands) }.unwrap();
    result.download().unwrap()
}

/// Returns the sum of a number of elements from an index on.
fn sum<K: Kind>(device: &Device, source: (&DeviceBuffer<K::Bits>, usize), len: usize) -> f64 {
    K::sum(reduce::<K, K::Sum>(device, Reduction::Sum, source, &[len], None)[0])
}

/// Returns the dot product of elements from these indices on.
fn dot<K: Kind>(device: &Device, [a, b]: [(&DeviceBuffer<K::Bits>, usize); 2], len: usize) -> f64 {
    let scratch = device.alloc::<u8>(Scratch::BYTES).unwrap();
    let result = device.alloc::<K::Sum>(1).unwrap();
    let (operands, to, room) = ([at(a.0, a.1), at(b.0, b.1)], result.address(), scratch.address());
    // SAFETY: as above.
    unsafe { dot_at(device, K::DTYPE, len as u64, operands, to, room) }.unwrap();
    K::sum(result.download().unwrap()[0])
}

/// Lengths of no, one and several blocks, with and without a remainder.
const LENGTHS: [usize; 6] = [0, 1, 33, 5000, 32_768, 200_003];

fn sums_of_whole_numbers_are_exact(setup: &Setup) {
    let device = device(setup);
    of_every_kind!(whole_sums(&device, &LENGTHS));
}

fn whole_sums<K: Kind>(device: &Device, lengths: &[usize]) {
    for &len in lengths {
        // The values are so small that every partial sum is a number of 24 bits.
        let numbers = |step: usize| (0..len + 8).map(|i| K::nearest((i * step % 7) as f64 - 3.0)).collect::<Vec<_>>();
        let (a, b) = (numbers(1), numbers(3));
        let [source, other] = [&a, &b].map(|elements| device.upload(elements).unwrap());
        for [first, second] in [[0, 0], [5, 5], [3, 4]] {
            let terms = (0..len).map(|i| K::value(a[first + i]));
            let sides = [(&source, first), (&other, second)];
            let sum = sum::<K>(device, sides[0], len);
            assert_eq!(sum, terms.clone().sum::<f64>(), "the sum of {len} {:?} from {first}", K::DTYPE);
            let products: f64 = terms.enumerate().map(|(i, a)| a * K::value(b[second + i])).sum();
            let dot = dot::<K>(device, sides, len);
            assert_eq!(dot, products, "the dot product of {len} {:?} from {first}, {second}", K::DTYPE);
        }
    }
}

fn sums_are_near_those_in_double_precision_and_the_same_every_time(setup: &Setup) {
    fn check<K: Kind>(device: &Device, numbers: &mut Random) {
        let len = 200_003;
        // All have one sign, so that cancellation does not hide an error.
        let elements: Vec<_> = (0..len).map(|_| K::nearest(1.0 + numbers.below(1000) as f64 / 1000.0)).collect();
        let source = device.upload(&elements).unwrap();
        let from = (&source, 1);
        let [sum, again] = [(); 2].map(|()| sum::<K>(device, from, len - 1));
        let expected: f64 = elements[1..].iter().map(|&element| K::value(element)).sum();
        // A thread joins a few of them in sequence, and the rest pair by pair: some roundings of
        // 2^-24 each.
        let tolerance = if size_of::<K::Sum>() == 8 { 1e-14 } else { 2e-6 };
        assert_relative_eq!(sum, expected, max_relative = tolerance);
        assert_eq!(sum.to_bits(), again.to_bits(), "{:?}", K::DTYPE);
    }
    let (device, mut random) = (device(setup), Random::new(72));
    of_every_kind!(check(&device, &mut random));
}

fn extremes_are_found_wherever_they_are(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(73));
    of_every_kind!(extremes(&device, &mut random, &[1, 33, 100_001]));
}

fn extremes<K: Kind>(device: &Device, numbers: &mut Random, lengths: &[usize]) {
    for &len in lengths {
        let elements = random::<K>(numbers, len);
        for place in [0, len / 3, len - 1] {
            for (value, reduction) in [
                (-9.0, Reduction::Min),
                (9.0, Reduction::Max),
                (f64::INFINITY, Reduction::Max),
                (f64::NAN, Reduction::Min),
                (f64::NAN, Reduction::Max),
            ] {
                let mut elements = elements.clone();
                elements[place] = K::nearest(value);
                let source = device.upload(&elements).unwrap();
                let found = K::value(reduce::<K, K::Bits>(device, reduction, (&source, 0), &[len], None)[0]);
                let right = if value.is_nan() { found.is_nan() } else { found == value };
                assert!(right, "{value} at {place} of {len} {:?} is not the {reduction}, but {found}", K::DTYPE);
            }
        }
    }
}

fn what_cannot_be_computed_is_refused(setup: &Setup) {
    let device = device(setup);
    let stream = device.default_stream();
    let a = device.upload(&[1.0_f32; 12]).unwrap();
    let mut c = device.zeros::<f32>(12).unwrap();
    let error = ops::add_into(a.view(&[3, 4]).unwrap(), a.view(&[4, 3]).unwrap(), c.view_mut(&[3, 4]).unwrap(), stream);
    refusal(error)
        .of(ErrorKind::Layout)
        .says("the second operand of add has shape [4, 3], which cannot be broadcast to the destination's shape [3, 4]")
        .says("insert an axis (insert_axis)");
    let error = ops::mul_into(a.view(&[12]).unwrap(), 2.0, c.view_mut(&[3, 4]).unwrap(), stream);
    refusal(error).of(ErrorKind::Layout).says("the first operand of multiply has shape [12]").says("[3, 4]");
    refusal(ops::scale_into(2.0, a.view(&[3, 4]).unwrap().t(), c.view_mut(&[4, 3]).unwrap(), stream))
        .of(ErrorKind::Layout)
        .says("contiguous");
    let none = a.view(&[12]).unwrap().slice(0, ..0, 1).unwrap();
    refusal(ops::min(none, None)).says("no min of no elements");
    assert_eq!(ops::sum(none, None).unwrap().to_vec().unwrap(), [0.0]);
    assert_eq!(ops::dot(none, none).unwrap().to_vec().unwrap(), [0.0]);
    let mut two = device.zeros::<f32>(2).unwrap();
    let mut scratch = Scratch::new(&device).unwrap();
    refusal(ops::sum_into(a.view(&[12]).unwrap(), None, &mut scratch, two.view_mut(&[2]).unwrap(), stream))
        .says("shape [2]");

    let (from, to) = (a.address(), c.address());
    for (operands, wrong) in [([from + 2, from, to], "multiple of 4"), ([from, to + 4, to], "overlaps the destination")]
    {
        // SAFETY: refused before any work is queued.
        let error = unsafe { elementwise_at(&device, Elementwise::Triad, DType::F32, 0.0, 6, operands) };
        refusal(error).says(wrong);
    }
    let room = device.alloc::<u8>(2 * Scratch::BYTES).unwrap();
    let (scratch, len) = (room.address(), 1_u64 << 16);
    let long = device.zeros::<f32>(len as usize).unwrap();
    let (apart, same) = ([from, long.address()], [long.address(); 2]);
    for (operands, len, to, scratch, parts) in [
        (apart, 12, from + 4, scratch, ["the first operand, bytes", "and the result"]),
        (apart, 12, long.address() + 44, scratch, ["the second operand, bytes", "overlap"]),
        (same, len, to, long.address() + 16, ["the first operand, bytes", "and the scratch"]),
        (same, len, scratch + 16, scratch, ["the result, bytes", "and the scratch"]),
    ] {
        // SAFETY: refused before any work is queued.
        let error = unsafe { dot_at(&device, DType::F32, len, operands, to, scratch) };
        refusal(error).says(parts[0]).says(parts[1]);
    }
    let elsewhere = crate::permutes::device(setup);
    let theirs = elsewhere.upload(&[1.0_f32; 12]).unwrap();
    refusal(ops::dot(a.view(&[12]).unwrap(), theirs.view(&[12]).unwrap())).of(ErrorKind::InvalidArgument);
}

fn more_elements_than_blocks_take_at_once(setup: &Setup) {
    let device = device(setup);
    let len = (1 << 29) + 12_345;
    let mut ones = device.alloc::<u16>(len).unwrap();
    ops::fill_into(f16::ONE.to_bits(), ones.view_mut(&[len]).unwrap(), device.default_stream()).unwrap();
    assert_relative_eq!(sum::<F16>(&device, (&ones, 1), len - 1), (len - 1) as f64, max_relative = 1e-7);
}

fn probes_of_every_shape_move_what_they_say(setup: &Setup) {
    let device = device(setup);
    for access in Access::ALL {
        ProbeShape::all(access, Target::of(&device)).for_each(|shape| probes(&device, access, shape));
    }
}

/// Runs three blocks of a probe.
fn probes(device: &Device, access: Access, shape: ProbeShape) {
    let bytes = 3 * shape.block_bytes() as usize;
    let elements: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    let source = device.upload(&elements).unwrap();
    let mut result = device.zeros::<u8>(bytes).unwrap();
    let (src, dst) = (source.view(&[bytes]).unwrap(), result.view_mut(&[bytes]).unwrap());
    probe(access, shape, src, dst, device.default_stream()).unwrap();
    let got = result.download().unwrap();
    let expected = match access {
        Access::Read => vec![0; bytes],
        Access::Write => {
            (0..bytes as u32 / 4).flat_map(|word| (16 * (word / 4) + 4 * (word % 4)).to_le_bytes()).collect()
        }
        Access::Copy => elements,
    };
    assert!(got == expected, "{access} with {shape}");
}

fn probes_that_do_not_fit_are_refused(setup: &Setup) {
    let device = device(setup);
    let (source, mut result) = (device.zeros::<u8>(8192).unwrap(), device.zeros::<u8>(8192).unwrap());
    for (shape, part, wrong) in [
        (ProbeShape { steps: 1, threads: 128, hinted: false }, 0..2000, "multiple of 2048 bytes"),
        (ProbeShape { steps: 3, threads: 128, hinted: false }, 0..6144, "multiple of 6144 bytes"),
        (ProbeShape { steps: 1, threads: 128, hinted: false }, 8..2056, "multiple of 16 bytes"),
        (ProbeShape { steps: 1, threads: 0, hinted: false }, 0..2048, "multiple of 0 bytes"),
        (ProbeShape { steps: u32::MAX, threads: u32::MAX, hinted: false }, 0..2048, "cannot copy"),
    ] {
        let src = source.view(&[8192]).unwrap().slice(0, part.clone(), 1).unwrap();
        let dst = result.view_mut(&[8192]).unwrap().slice(0, part, 1).unwrap();
        refusal(probe(Access::Copy, shape, src, dst, device.default_stream()))
            .of(ErrorKind::InvalidArgument)
            .says(wrong);
    }
    if setup.is_soft() {
        refusal(Peaks::measure(&device, |_| ())).of(ErrorKind::Unavailable).says("software GPU");
    }
}
