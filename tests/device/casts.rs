//! Casts between all number types, and rows by their indices, against the host.

use half::{bf16, f16};
use warpstride::DeviceArray;
use warpstride::device::Device;
use warpstride::element::{DType, Element};
use warpstride::error::{ErrorKind, Result};
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Align, CastPlan, Indexed, IndexedPlan, Phase, Target};

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::matrices::{Random, Sample, at_every_width};
use crate::permutes::device;

cases! {
    Any every_type_is_cast_to_every_other_as_the_host_does,
    Any casts_start_and_end_anywhere,
    Any rows_are_taken_and_put_by_their_indices,
    Any rows_that_are_not_there_are_left_out,
    Any what_cannot_be_cast_or_found_is_refused,
}

/// Launches every kernel of this file, on few elements.
pub(crate) fn launch_all(device: &Device, random: &mut Random) {
    fn rows<T: Sample>(device: &Device, random: &mut Random) {
        indexed::<T>(device, random, [20, 3, 9]);
    }
    every_pair(device, random);
    at_every_width!(rows(device, random));
}

/// A number as the host casts it: an `f64` cannot hold integers of up to 64 bits.
#[derive(Debug, Clone, Copy)]
enum Exact {
    Whole(i128),
    Float(f64),
}

/// Returns the value of an element's bits.
fn value(dtype: DType, bits: u64) -> Exact {
    match dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Exact::Whole(i128::from(bits)),
        DType::I8 => Exact::Whole(i128::from(bits as i8)),
        DType::I16 => Exact::Whole(i128::from(bits as i16)),
        DType::I32 => Exact::Whole(i128::from(bits as i32)),
        DType::I64 => Exact::Whole(i128::from(bits as i64)),
        DType::F16 => Exact::Float(f16::from_bits(bits as u16).to_f64()),
        DType::Bf16 => Exact::Float(bf16::from_bits(bits as u16).to_f64()),
        DType::F32 => Exact::Float(f64::from(f32::from_bits(bits as u32))),
        _ => Exact::Float(f64::from_bits(bits)),
    }
}

/// Returns the bits of a cast number; `None` for NaN.
fn cast(number: Exact, to: DType) -> Option<u64> {
    let whole = |number: Exact, least: i128, most: i128| match number {
        // The low bits.
        Exact::Whole(whole) => whole as u64,
        Exact::Float(float) => (float as i128).clamp(least, most) as u64,
    };
    let mask = if to.width() == 8 { u64::MAX } else { (1 << (8 * to.width())) - 1 };
    let bits = match to {
        DType::U8 => whole(number, 0, u8::MAX.into()),
        DType::I8 => whole(number, i8::MIN.into(), i8::MAX.into()),
        DType::U16 => whole(number, 0, u16::MAX.into()),
        DType::I16 => whole(number, i16::MIN.into(), i16::MAX.into()),
        DType::U32 => whole(number, 0, u32::MAX.into()),
        DType::I32 => whole(number, i32::MIN.into(), i32::MAX.into()),
        DType::U64 => whole(number, 0, u64::MAX.into()),
        DType::I64 => whole(number, i64::MIN.into(), i64::MAX.into()),
        _ if matches!(number, Exact::Float(float) if float.is_nan()) => return None,
        DType::F16 => nearest(number, to, f16::INFINITY.to_bits()),
        DType::Bf16 => nearest(number, to, bf16::INFINITY.to_bits()),
        DType::F32 => u64::from(match number {
            Exact::Whole(whole) => (whole as f32).to_bits(),
            Exact::Float(float) => (float as f32).to_bits(),
        }),
        _ => match number {
            Exact::Whole(whole) => (whole as f64).to_bits(),
            Exact::Float(float) => float.to_bits(),
        },
    };
    Some(bits & mask)
}

/// Returns the half nearest to a number, ties to even, found by bisection: without their sign,
/// halves are ordered as their bits. The infinite half stands for the power of two that would
/// follow the largest.
fn nearest(number: Exact, to: DType, infinity: u16) -> u64 {
    let negative = match number {
        Exact::Whole(whole) => whole < 0,
        Exact::Float(float) => float.is_sign_negative(),
    };
    let size = |bits: u16| match value(to, u64::from(bits)) {
        Exact::Float(float) if float.is_infinite() && to == DType::F16 => 65536.0,
        Exact::Float(float) if float.is_infinite() => 2.0_f64.powi(128),
        Exact::Float(float) => float,
        Exact::Whole(_) => unreachable!("halves are floats"),
    };
    // Compares a point of at most 25 bits with the number's magnitude.
    let compare = |point: f64| match number {
        Exact::Whole(whole) if point < 2.0_f64.powi(100) && whole.unsigned_abs() >= 1 => {
            // Points that are not whole are small, so they are compared as doubles.
            if point.fract() == 0.0 {
                (point as u128).cmp(&whole.unsigned_abs())
            } else {
                point.total_cmp(&(whole.unsigned_abs() as f64))
            }
        }
        Exact::Whole(whole) => point.total_cmp(&(whole.unsigned_abs() as f64)),
        Exact::Float(float) => point.total_cmp(&float.abs()),
    };
    let (mut below, mut above) = (0, infinity);
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if compare(size(middle)).is_le() { below = middle } else { above = middle }
    }
    let found = match compare((size(below) + size(above)) / 2.0) {
        std::cmp::Ordering::Less => above,
        std::cmp::Ordering::Greater => below,
        std::cmp::Ordering::Equal => below + (below & 1),
    };
    u64::from(found) | u64::from(negative) << 15
}

/// Returns bits of a type near roundings and limits, and random ones.
fn samples(dtype: DType, random: &mut Random, len: usize) -> Vec<u64> {
    let mut bits: Vec<u64> = Vec::new();
    let around = [0.0, 0.5, 1.0, 1.5, 2.5, 127.5, 255.5, 256.0, 2049.0, 32767.5, 65519.0, 65520.0, 65535.5, 65536.0];
    let powers =
        [24, 25, 31, 32, 53, 63, 64, 127, 128, -14, -24, -25, -126, -133, -134, -149].map(|power| 2.0_f64.powi(power));
    for number in around.into_iter().chain(powers) {
        for number in [
            number,
            -number,
            number * (1.0 + f64::EPSILON),
            number * (1.0 + 2.0_f64.powi(-9)),
            -number * (1.0 - f64::EPSILON),
        ] {
            bits.extend(cast(Exact::Float(number), dtype));
        }
    }
    for power in 0..64 {
        for whole in [(1_i128 << power) - 1, 1 << power, (1 << power) + 1, (1 << power) + (1 << power >> 9) + 1] {
            bits.extend([whole, -whole].map(|whole| cast(Exact::Whole(whole), dtype).unwrap()));
        }
    }
    bits.extend([f64::INFINITY, f64::NEG_INFINITY].map(|float| cast(Exact::Float(float), dtype).unwrap()));
    bits.push(match dtype {
        DType::F16 => u64::from(f16::NAN.to_bits()),
        DType::Bf16 => u64::from(bf16::NAN.to_bits()),
        DType::F32 => u64::from(f32::NAN.to_bits()),
        DType::F64 => f64::NAN.to_bits(),
        _ => 7,
    });
    let mask = if dtype.width() == 8 { u64::MAX } else { (1 << (8 * dtype.width())) - 1 };
    bits.extend((0..len).map(|_| random.elements::<u64>(1)[0] & mask));
    bits
}

/// Returns elements as bytes.
fn packed(dtype: DType, bits: &[u64]) -> Vec<u8> {
    bits.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(dtype.width())).collect()
}

fn every_type_is_cast_to_every_other_as_the_host_does(setup: &Setup) {
    every_pair(&device(setup), &mut Random::new(90));
}

fn every_pair(device: &Device, random: &mut Random) {
    // The number types come first, and the complex ones behind them.
    for &from in &DType::ALL[..12] {
        let bits = samples(from, random, 500);
        for &to in &DType::ALL[..12] {
            check(device, (from, 0), (to, 0), &bits);
        }
    }
}

/// Plans the cast of elements at two addresses, and queues it.
///
/// # Safety
///
/// As [`CastPlan::launch_raw`].
unsafe fn cast_at(device: &Device, (src, from): (u64, DType), (dst, to): (u64, DType), len: u64) -> Result<()> {
    let plan = CastPlan::new((Phase::of(src), from), (Phase::of(dst), to), len, Target::of(device))?;
    // SAFETY: as the caller promises.
    unsafe { plan.launch_raw(device, src, dst, device.default_stream().handle()) }
}

/// Casts elements that start this number of elements after an allocation's start, and checks the
/// bytes around them too.
fn check(device: &Device, (from, src_start): (DType, usize), (to, dst_start): (DType, usize), bits: &[u64]) {
    let mut elements = vec![0; src_start];
    elements.extend(bits);
    let source = device.upload(&packed(from, &elements)).unwrap();
    let room = dst_start + bits.len() + 5;
    let result = device.zeros::<u8>(room * to.width()).unwrap();
    let at = |buffer: &DeviceBuffer<u8>, dtype: DType, start: usize| buffer.address() + (start * dtype.width()) as u64;
    let (src, dst) = ((at(&source, from, src_start), from), (at(&result, to, dst_start), to));
    // SAFETY: both buffers have the elements from there on, and live until the download.
    unsafe { cast_at(device, src, dst, bits.len() as u64) }.unwrap();
    let got = result.download().unwrap();
    for (place, found) in got.chunks_exact(to.width()).enumerate() {
        let mut eight = [0; 8];
        eight[..to.width()].copy_from_slice(found);
        let found = u64::from_le_bytes(eight);
        let element = place.checked_sub(dst_start).and_then(|at| bits.get(at));
        let right = match element {
            None => found == 0,
            Some(&bits) if from == to => found == bits,
            Some(&bits) => match cast(value(from, bits), to) {
                Some(expected) => found == expected,
                None => matches!(value(to, found), Exact::Float(float) if float.is_nan()),
            },
        };
        let number = element.map(|&bits| value(from, bits));
        assert!(right, "{number:?} as {from} became {found:#x} as {to}, at {place} from {src_start} to {dst_start}");
    }
}

fn casts_start_and_end_anywhere(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(91));
    for (from, to) in [
        (DType::U8, DType::F32),
        (DType::F32, DType::F16),
        (DType::F64, DType::I8),
        (DType::Bf16, DType::F16),
        (DType::I8, DType::U8),
        (DType::F32, DType::F32),
    ] {
        for (src, dst) in [(0, 0), (1, 1), (3, 3), (4, 8), (2, 0), (0, 5), (16, 32)] {
            for len in [0, 1, 7, 64, 3001] {
                let mut bits = samples(from, &mut random, 3001);
                bits.truncate(len);
                check(&device, (from, src), (to, dst), &bits);
            }
        }
    }
}

/// Takes rows by indices and puts them back.
fn indexed<T: Sample>(device: &Device, random: &mut Random, [rows, count, row]: [usize; 3]) {
    let elements: Vec<T> = random.elements(rows * row);
    let mut left: Vec<u32> = (0..rows as u32).collect();
    let indices: Vec<u32> = (0..count).map(|_| left.swap_remove(random.below(left.len()))).collect();
    let taken: Vec<T> = indices.iter().flat_map(|&at| elements[at as usize * row..][..row].iter().copied()).collect();
    let zero = device.zeros::<T>(1).unwrap().download().unwrap()[0];
    let mut put = vec![zero; rows * row];
    for &at in &indices {
        let place = at as usize * row..(at as usize + 1) * row;
        put[place.clone()].copy_from_slice(&elements[place]);
    }
    let source = device.upload(&elements).unwrap();
    there_and_back(&source, [rows, row], &indices, [&taken, &put]);
    let long: Vec<i64> = indices.into_iter().map(i64::from).collect();
    there_and_back(&source, [rows, row], &long, [&taken, &put]);
}

/// Takes rows by indices of a type, puts them back, and compares both results.
fn there_and_back<T: Sample, I: Element>(
    source: &DeviceBuffer<T>,
    [rows, row]: [usize; 2],
    indices: &[I],
    [taken, put]: [&[T]; 2],
) {
    let (device, count) = (source.device(), indices.len());
    let (indices, stream) = (device.array(&[count], indices).unwrap(), device.default_stream());
    let mut result = device.alloc_array::<T>(&[count, row]).unwrap();
    let mut back = DeviceArray::new(device.zeros(rows * row).unwrap(), &[rows, row]).unwrap();
    ops::gather_rows(source.view(&[rows, row]).unwrap(), &indices, &mut result, stream).unwrap();
    ops::scatter_rows(&result, &indices, &mut back, stream).unwrap();
    let what = format!("{count} of {rows} rows of {row} {} by {}", T::DTYPE, I::DTYPE);
    assert!(result.to_vec().unwrap() == taken, "taken: {what}");
    assert!(back.to_vec().unwrap() == put, "put: {what}");
}

fn rows_are_taken_and_put_by_their_indices(setup: &Setup) {
    fn check<T: Sample>(device: &Device, random: &mut Random) {
        for shape in [[1, 1, 1], [100, 37, 16], [50, 50, 33], [1000, 700, 3], [7, 3, 2000], [5, 0, 8], [5, 4, 0]] {
            indexed::<T>(device, random, shape);
        }
    }
    let (device, mut random) = (device(setup), Random::new(92));
    at_every_width!(check(&device, &mut random));
}

fn rows_that_are_not_there_are_left_out(setup: &Setup) {
    let device = device(setup);
    let stream = device.default_stream();
    let source = device.upload(&[1_u32, 2, 3, 4, 5, 6]).unwrap();
    let indices = device.upload(&[2_i64, 3, -1, i64::MIN, 0, i64::MAX]).unwrap();
    let mut taken = device.upload(&[9_u32; 12]).unwrap();
    let (rows, all) = (source.view(&[3, 2]).unwrap(), indices.view(&[6]).unwrap());
    ops::gather_rows(rows, all, taken.view_mut(&[6, 2]).unwrap(), stream).unwrap();
    assert_eq!(taken.download().unwrap(), [5, 6, 9, 9, 9, 9, 9, 9, 1, 2, 9, 9]);
    let mut put = device.upload(&[7_u32; 6]).unwrap();
    let rows = taken.view(&[6, 2]).unwrap();
    ops::scatter_rows(rows, all, put.view_mut(&[3, 2]).unwrap(), stream).unwrap();
    assert_eq!(put.download().unwrap(), [1, 2, 7, 7, 5, 6]);
    let short = device.upload(&[1_u32, 3, u32::MAX]).unwrap();
    let mut taken = device.upload(&[9_u32; 6]).unwrap();
    let (rows, short) = (source.view(&[3, 2]).unwrap(), short.view(&[3]).unwrap());
    ops::gather_rows(rows, short, taken.view_mut(&[3, 2]).unwrap(), stream).unwrap();
    assert_eq!(taken.download().unwrap(), [3, 4, 9, 9, 9, 9]);
}

fn what_cannot_be_cast_or_found_is_refused(setup: &Setup) {
    let device = device(setup);
    let stream = device.default_stream();
    let complex = device.zeros::<[f32; 2]>(6).unwrap();
    let mut single = device.zeros::<f32>(6).unwrap();
    refusal(ops::cast_into(complex.view(&[6]).unwrap(), single.view_mut(&[6]).unwrap(), stream))
        .says("complex")
        .says("last axis of 2");
    let (floats, mut bytes) = (device.zeros::<f32>(6).unwrap(), device.zeros::<u8>(6).unwrap());
    refusal(ops::cast_into(complex.view(&[6]).unwrap(), bytes.view_mut(&[6]).unwrap(), stream)).says("last axis of 2");
    refusal(ops::cast_into(floats.view(&[6]).unwrap(), bytes.view_mut(&[2, 3]).unwrap(), stream))
        .of(ErrorKind::Layout)
        .says("[6] and [2, 3]");
    let turned = floats.view(&[2, 3]).unwrap().t();
    refusal(ops::cast_into(turned, bytes.view_mut(&[3, 2]).unwrap(), stream)).says("contiguous");
    let address = floats.address();
    for (src, dst, wrong) in [(address + 2, bytes.address(), "multiple of 4"), (address, address + 20, "overlap")] {
        // SAFETY: refused before any work is queued.
        let error = unsafe { cast_at(&device, (src, DType::F32), (dst, DType::U8), 6) };
        refusal(error).says(wrong);
    }

    let (indices, mut rows) = (device.zeros::<u32>(3).unwrap(), device.zeros::<f32>(6).unwrap());
    let mut refused = |from: &[usize], indices: warpstride::view::View<'_, u32>, to: &[usize]| {
        let (from, to) = (floats.view(from).unwrap(), rows.view_mut(to).unwrap());
        ops::gather_rows(from, indices, to, stream).unwrap_err().to_string()
    };
    assert!(refused(&[2, 3], indices.view(&[3]).unwrap(), &[2, 3]).contains("[3]"));
    assert!(refused(&[3, 2], indices.view(&[3]).unwrap(), &[3, 1, 2]).contains("one shape"));
    assert!(refused(&[3, 2], indices.view(&[1, 3]).unwrap(), &[3, 2]).contains("one axis of indices"));
    let doubles = device.zeros::<f64>(3).unwrap();
    let (from, to) = (floats.view(&[3, 2]).unwrap(), rows.view_mut(&[3, 2]).unwrap());
    refusal(ops::gather_rows(from, doubles.view(&[3]).unwrap(), to, stream))
        .of(ErrorKind::InvalidArgument)
        .says("u32 or i64");
    let (src, indices, dst) = (floats.address(), indices.address(), rows.address());
    let plan = IndexedPlan::new(Indexed::Scatter, 3, 3, 8, DType::U32, Align::of(8)).unwrap();
    for (operands, wrong) in
        [([src, indices + 1, dst], "multiple of 4"), ([dst + 8, indices, dst], "overlap"), ([src, dst, dst], "overlap")]
    {
        // SAFETY: refused before any work is queued.
        refusal(unsafe { plan.launch_raw(&device, operands, stream.handle()) }).says(wrong);
    }
}
