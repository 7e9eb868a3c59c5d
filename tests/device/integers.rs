//! Reductions of integers of every width, along one axis and over all elements, compared with the
//! host's arithmetic in 128 bits.

use std::fmt;

use warpstride::abi::Divisor;
use warpstride::device::Device;
use warpstride::element::{DType, Number};
use warpstride::error::ErrorKind;
use warpstride::launch_shape::LaunchShape;
use warpstride::ops::{self, Phase, Plan, Reduction, ReductionPlan, Target};

use crate::axes::{EXTENTS, by_column, first_greatest};
use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::matrices::Random;
use crate::permutes::device;
use crate::program::{Module, Program};

cases! {
    Any integers_are_reduced_along_an_axis_as_on_the_host,
    Any integers_of_random_shapes_are_reduced_as_on_the_host,
    Any sums_of_integers_wrap_around,
    Any the_least_integer_everywhere_has_the_first_place,
    Any one_integer_among_others_is_found_wherever_it_is,
    Any bytes_are_found_after_more_loads_than_a_thread_numbers,
    Any integers_are_refused_where_floats_are,
    Any sums_of_signed_integers_share_the_entry_of_unsigned_ones,
}

/// An integer type.
trait Integer: Number<Sum: Copy + PartialEq + fmt::Debug> {
    const LEAST: i128;
    const GREATEST: i128;
    /// Converts a value that the type can hold.
    fn of(value: i128) -> Self;
    fn value(self) -> i128;
    /// Returns a sum, modulo 2^64.
    fn sum(value: i128) -> Self::Sum;
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Integer for $type {
            const LEAST: i128 = $type::MIN as i128;
            const GREATEST: i128 = $type::MAX as i128;
            fn of(value: i128) -> Self {
                $type::try_from(value).expect("a value of the type")
            }
            fn value(self) -> i128 {
                i128::from(self)
            }
            fn sum(value: i128) -> Self::Sum {
                value as Self::Sum
            }
        }
    )*};
}

integers! { u8 i8 u16 i16 u32 i32 u64 i64 }

macro_rules! of_every_integer {
    ($function:ident($($argument:expr),*)) => {
        $function::<u8>($($argument),*);
        $function::<i8>($($argument),*);
        $function::<u16>($($argument),*);
        $function::<i16>($($argument),*);
        $function::<u32>($($argument),*);
        $function::<i32>($($argument),*);
        $function::<u64>($($argument),*);
        $function::<i64>($($argument),*);
    };
}

/// Launches every kernel of this file, on few elements.
pub(crate) fn launch_all(device: &Device, random: &mut Random) {
    of_every_integer!(reduced(device, random, &[[3, 100, 1], [2, 9, 64]]));
}

/// Returns any of the type's values: half of them within four of an end, where ties and overflows
/// occur.
fn any<T: Integer>(random: &mut Random) -> T {
    let value = match random.below(4) {
        0 => T::LEAST + random.below(4) as i128,
        1 => T::GREATEST - random.below(4) as i128,
        _ => T::LEAST + i128::from(random.bits()) % (T::GREATEST - T::LEAST + 1),
    };
    T::of(value)
}

/// The results of all reductions of `[outer, n, inner]` elements: sums, least, greatest, and
/// indices.
type Results<T> = (Vec<<T as Number>::Sum>, Option<(Vec<T>, Vec<T>, Vec<u64>)>);

/// Returns the host's results.
fn expected<T: Integer>(elements: &[T], extents: [usize; 3]) -> Results<T> {
    let values: Vec<i128> = elements.iter().map(|&element| element.value()).collect();
    let sums = by_column(&values, extents, |column| T::sum(column.sum()));
    let rest = (extents[1] > 0 || sums.is_empty()).then(|| {
        (
            by_column(&values, extents, |column| T::of(column.min().expect("an element"))),
            by_column(&values, extents, |column| T::of(column.max().expect("an element"))),
            by_column(&values, extents, first_greatest),
        )
    });
    (sums, rest)
}

/// Returns the device's results for the elements of a shape with this start, along an axis or of
/// all.
fn found<T: Integer>(
    device: &Device,
    elements: &[T],
    start: usize,
    shape: &[usize],
    axis: Option<usize>,
    extents: [usize; 3],
) -> Results<T> {
    let buffer = device.upload(elements).unwrap();
    let len = shape.iter().product::<usize>();
    let all = buffer.view(&[elements.len()]).unwrap().slice(0, start..start + len, 1).unwrap();
    let a = all.split_axis(0, shape).unwrap();
    let [outer, n, inner] = extents;
    let sums = ops::sum(a, axis).unwrap().to_vec().unwrap();
    let rest = (n > 0 || outer * inner == 0).then(|| {
        (
            ops::min(a, axis).unwrap().to_vec().unwrap(),
            ops::max(a, axis).unwrap().to_vec().unwrap(),
            ops::argmax(a, axis).unwrap().to_vec().unwrap(),
        )
    });
    (sums, rest)
}

fn integers_are_reduced_along_an_axis_as_on_the_host(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(91));
    of_every_integer!(reduced(&device, &mut random, &EXTENTS));
}

fn reduced<T: Integer>(device: &Device, random: &mut Random, all: &[[usize; 3]]) {
    for &extents in all {
        let len = extents.iter().product::<usize>();
        let elements: Vec<T> = (0..len + 8).map(|_| any(random)).collect();
        // On a vector, and off it.
        for start in [0, 3] {
            let found = found(device, &elements, start, &extents, Some(1), extents);
            let expected = expected(&elements[start..start + len], extents);
            assert!(found == expected, "{extents:?} {} from {start}", T::DTYPE);
        }
    }
}

fn integers_of_random_shapes_are_reduced_as_on_the_host(setup: &Setup) {
    fn check<T: Integer>(device: &Device, random: &mut Random) {
        for _ in 0..20 {
            let shape = random.shape(3000);
            let (axis, start) = (random.below(shape.len() + 1), random.below(20));
            let axis = (axis < shape.len()).then_some(axis);
            let product = |extents: &[usize]| extents.iter().product::<usize>();
            let extents = axis.map_or([1, product(&shape), 1], |axis| {
                [product(&shape[..axis]), shape[axis], product(&shape[axis + 1..])]
            });
            let len = product(&shape);
            let elements: Vec<T> = (0..start + len).map(|_| any(random)).collect();
            let found = found(device, &elements, start, &shape, axis, extents);
            let expected = expected(&elements[start..], extents);
            assert!(found == expected, "{shape:?} along {axis:?} of {} from {start}", T::DTYPE);
        }
    }
    let (device, mut random) = (device(setup), Random::new(92));
    of_every_integer!(check(&device, &mut random));
}

fn sums_of_integers_wrap_around(setup: &Setup) {
    fn check<T: Integer>(device: &Device) {
        // Down columns by vectors, along rows in parts, and down few columns.
        for extents in [[1, 20_001, 1], [2, 3001, 16], [1, 5011, 3]] {
            let len = extents.iter().product::<usize>();
            for value in [T::LEAST, T::GREATEST] {
                let elements = vec![T::of(value); len];
                let expected = vec![T::sum(extents[1] as i128 * value); extents[0] * extents[2]];
                let (sums, _) = found(device, &elements, 0, &extents, Some(1), extents);
                assert!(sums == expected, "{extents:?} times {value} of {}", T::DTYPE);
            }
        }
    }
    let device = device(setup);
    of_every_integer!(check(&device));
    let sum = |elements: &[u64]| {
        let buffer = device.upload(elements).unwrap();
        ops::sum(buffer.view(&[elements.len()]).unwrap(), None).unwrap().item().unwrap()
    };
    assert_eq!((sum(&[u64::MAX, 3]), sum(&[])), (2, 0));
    let signed = device.upload(&[i64::MIN, -1]).unwrap();
    assert_eq!(ops::sum(signed.view(&[2]).unwrap(), 0).unwrap().item().unwrap(), i64::MAX);
}

fn the_least_integer_everywhere_has_the_first_place(setup: &Setup) {
    fn check<T: Integer>(device: &Device) {
        for extents in [[3, 1000, 1], [1, 20_003, 1], [2, 300, 16], [1, 5000, 3]] {
            let elements = vec![T::of(T::LEAST); extents.iter().product()];
            let (_, rest) = found(device, &elements, 0, &extents, Some(1), extents);
            let (least, greatest, places) = rest.unwrap();
            let is_least = |value: &T| value.value() == T::LEAST;
            assert!(least.iter().chain(&greatest).all(is_least), "{extents:?} {}", T::DTYPE);
            assert!(places.iter().all(|&place| place == 0), "{extents:?} {}", T::DTYPE);
        }
    }
    let device = device(setup);
    of_every_integer!(check(&device));
}

fn one_integer_among_others_is_found_wherever_it_is(setup: &Setup) {
    fn check<T: Integer>(device: &Device) {
        for extents in [[1, 300, 1], [1, 9000, 1], [1, 100, 16], [1, 100, 3]] {
            let [_, n, inner] = extents;
            for place in [0, n / 3, n - 1] {
                for (one, rest) in [(T::LEAST, T::LEAST + 1), (T::GREATEST, T::GREATEST - 1), (T::LEAST + 1, T::LEAST)]
                {
                    let mut elements = vec![T::of(rest); n * inner];
                    elements[place * inner + inner - 1] = T::of(one);
                    let found = found(device, &elements, 0, &extents, Some(1), extents);
                    assert!(found == expected(&elements, extents), "{extents:?} {} at {place}", T::DTYPE);
                }
            }
        }
    }
    let device = device(setup);
    of_every_integer!(check(&device));
}

/// A thread numbers 256 loads, and then it begins again. No plan for an array of a test's size has
/// a thread load so often, so this test launches the kernels itself: 128 threads along a row, and
/// 128 down 16 columns.
fn bytes_are_found_after_more_loads_than_a_thread_numbers(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let rows = program.module(include_str!("../../src/ptx/argmax_rows.ptx")).unwrap();
    let columns = program.module(include_str!("../../src/ptx/argmax_columns.ptx")).unwrap();
    let stream = program.stream().unwrap();
    let (n, inner, mut random) = (128 * 300 + 17, 16, Random::new(93));
    let len = n * inner;
    let shape = LaunchShape { grid: [1; 3], block: [128, 1, 1], dynamic_shared: 0 };
    for (name, sign) in [("u8", 0), ("i8", 0x80)] {
        let mut late = vec![sign; len];
        // The greatest of the row, and of the first column, come in a thread's 270th load.
        late[128 * 270 * inner..128 * 280 * inner].fill(sign ^ 0xff);
        let drawn = (0..len).map(|_| random.below(256) as u8).collect();
        for elements in [vec![sign; len], vec![sign ^ 0x80; len], late, drawn] {
            let (from, to) = (program.upload(&elements).unwrap(), program.upload(&vec![0; 8 * inner]).unwrap());
            let values: Vec<u8> = elements.iter().map(|&byte| byte ^ sign).collect();
            let launch = |module: &Module<'_>, entry: &str, params: &[u64]| {
                let function = module.function(&format!("{entry}_{name}")).unwrap();
                // SAFETY: the parameters are the entry's, the array has the elements, and there is
                // room for 16 results.
                unsafe { stream.launch(function, &shape, &bytes_of64(params)) }.unwrap();
                program.download(&to, &stream).unwrap()
            };
            let (a, result, of_row, of_column) = (from.address, to.address, len as u64, n as u64);
            let found = launch(&rows, "argmax_rows", &[a, result, 0, 1, of_row, of_row, 128]);
            assert_eq!(found[..8], bytes_of64(&by_column(&values, [1, len, 1], first_greatest)), "{name} along a row");
            let [lanes, across] = [Divisor::wide(1), Divisor::narrow(1)].map(|by| [by.value, by.multiplier, by.shift]);
            let [first, last] = [&[a, 0, result, 0, 1][..], &[of_column, of_column]];
            let found = launch(&columns, "argmax_columns", &[first, &lanes, last, &across, &[1]].concat());
            assert_eq!(found, bytes_of64(&by_column(&values, [1, n, inner], first_greatest)), "{name} down columns");
        }
    }
}

fn bytes_of64(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn integers_are_refused_where_floats_are(setup: &Setup) {
    let device = device(setup);
    let buffer = device.upload(&[7_u8; 12]).unwrap();
    let view = buffer.view(&[3, 4]).unwrap();
    assert_eq!(ops::sum(view, 2).unwrap_err().kind(), ErrorKind::Layout);
    assert_eq!(ops::sum(view.t(), 2).unwrap_err().kind(), ErrorKind::Layout);
    assert_eq!(ops::max(view.reverse(1).unwrap(), 3).unwrap_err().kind(), ErrorKind::Layout);
    let none = view.slice(1, ..0, 1).unwrap();
    for axis in [None, Some(1)] {
        refusal(ops::min(none, axis)).says("no min of no elements");
        refusal(ops::argmax(none, axis)).says("no argmax of no elements");
    }
    assert_eq!(ops::sum(none, 1).unwrap().to_vec().unwrap(), [0; 3]);
    assert_eq!(ops::sum(none, None).unwrap().item().unwrap(), 0);
    assert!(ops::max(none, 0).unwrap().is_empty());
}

fn sums_of_signed_integers_share_the_entry_of_unsigned_ones(setup: &Setup) {
    let target = Target::of(&device(setup));
    let plan = |reduction, dtype| {
        ReductionPlan::new(reduction, dtype, &[100, 64], Some(0), Phase::ALIGNED, target).unwrap().entry().unwrap()
    };
    assert_eq!(plan(Reduction::Sum, DType::I64), "sum_columns_u64");
    assert_eq!(plan(Reduction::Sum, DType::I32), "sum_columns_i32");
    assert_eq!(plan(Reduction::Max, DType::I64), "max_columns_i64");
    refusal(ReductionPlan::new(Reduction::Sum, DType::C64, &[100], None, Phase::ALIGNED, target))
        .says("cast the elements to one of u8, i8, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64");
}
