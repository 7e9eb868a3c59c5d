//! Sums, differences, products and quotients of drawn layouts, by raw addresses, against the host's
//! arithmetic.

use warpstride::ErrorKind;
use warpstride::counters::Counters;
use warpstride::device::Device;
use warpstride::element::DType;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, Binary, BinaryPlan, Plan, Target};

use crate::arithmetic::{Bf16, F16, F32, F64, Kind, handle, of_every_kind, random};
use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::long::short_or_long;
use crate::matrices::{Random, c_order};
use crate::permutes::device;

cases! {
    Any drawn_operands_give_the_hosts_results_bit_by_bit,
    Any an_operand_may_be_the_destination,
    Any more_axes_than_the_kernel_walks_take_several_launches,
    Any zeros_infinities_and_nan_are_those_of_ieee_754,
    Any numbers_and_arrays_stand_on_either_side,
    Any vectors_with_hints_do_as_those_without,
    Any neighbours_and_repeated_rows_move_no_sector_twice,
    Any operands_that_do_not_fit_are_refused,
}

/// An operand: a number, or elements under a layout.
#[expect(clippy::large_enum_variant, reason = "there are two at a time")]
enum Drawn<K: Kind> {
    Number(f64),
    Elements(Vec<K::Bits>, Layout),
}

impl<K: Kind> Drawn<K> {
    fn layout(&self) -> Option<&Layout> {
        match self {
            Self::Number(_) => None,
            Self::Elements(_, layout) => Some(layout),
        }
    }

    /// Returns the value at an index of the shape to which it is broadcast.
    fn at(&self, index: &[usize], shape: &[usize]) -> f64 {
        match self {
            // A number has the type of the arithmetic.
            Self::Number(number) if size_of::<K::Bits>() == 8 => *number,
            Self::Number(number) => f64::from(*number as f32),
            Self::Elements(elements, layout) => {
                K::value(elements[layout.broadcast(shape).unwrap().offset_of(index).unwrap()])
            }
        }
    }
}

/// Returns what the host makes of two values.
fn computed<K: Kind>(operation: Binary, a: f64, b: f64) -> K::Bits {
    let (x, y) = (a as f32, b as f32);
    let is_double = size_of::<K::Bits>() == 8;
    K::nearest(match operation {
        Binary::Add if is_double => a + b,
        Binary::Sub if is_double => a - b,
        Binary::Mul if is_double => a * b,
        Binary::Div if is_double => a / b,
        Binary::Add => f64::from(x + y),
        Binary::Sub => f64::from(x - y),
        Binary::Mul => f64::from(x * y),
        Binary::Div => f64::from(x / y),
    })
}

/// Returns all indices of a shape in C order.
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let len: usize = shape.iter().product();
    (0..len).map(move |mut number| {
        let mut index: Vec<usize> = shape
            .iter()
            .rev()
            .map(|extent| {
                let position = number % extent;
                number /= extent;
                position
            })
            .collect();
        index.reverse();
        index
    })
}

/// Draws a layout of a shape: axes in any order, with steps, backwards, and an offset.
pub(crate) fn drawn_layout(random: &mut Random, shape: &[usize]) -> Layout {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    if random.below(3) == 0 {
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at + 1));
        }
    }
    let steps: Vec<usize> = shape.iter().map(|_| if random.below(6) == 0 { 2 } else { 1 }).collect();
    let starts: Vec<usize> = shape.iter().map(|_| if random.below(5) == 0 { random.below(4) } else { 0 }).collect();
    let room: Vec<usize> = (0..shape.len()).map(|axis| starts[axis] + steps[axis] * shape[axis]).collect();
    let stored: Vec<usize> = order.iter().map(|&axis| room[axis]).collect();
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| back[axis] = at);
    let mut layout = c_order(&stored).permuted_axes(&back).unwrap();
    for (axis, &extent) in shape.iter().enumerate() {
        let step = steps[axis] as isize * if random.below(6) == 0 { -1 } else { 1 };
        layout = layout.slice(axis, starts[axis]..starts[axis] + steps[axis] * extent, step).unwrap();
    }
    assert_eq!(layout.shape(), shape);
    layout
}

/// Draws a shape of up to five axes.
pub(crate) fn drawn_shape(random: &mut Random) -> Vec<usize> {
    const EXTENTS: [usize; 10] = [1, 1, 2, 3, 4, 5, 7, 8, 16, 33];
    loop {
        let rank = random.below(6);
        let mut shape: Vec<usize> = (0..rank).map(|_| EXTENTS[random.below(EXTENTS.len())]).collect();
        if let Some(last) = shape.last_mut().filter(|_| random.coin()) {
            *last = [64, 100, 257][random.below(3)];
        }
        if let Some(axis) = (0..rank).next().filter(|_| random.below(25) == 0) {
            shape[axis] = 0;
        }
        if shape.iter().product::<usize>() <= 6000 {
            return shape;
        }
    }
}

/// Draws an operand that is broadcast to a shape.
fn drawn<K: Kind>(numbers: &mut Random, shape: &[usize]) -> Drawn<K> {
    let mut own = shape.to_vec();
    if numbers.below(3) == 0 {
        own.drain(..numbers.below(shape.len() + 1));
        own.iter_mut().filter(|_| numbers.below(3) == 0).for_each(|extent| *extent = 1);
    }
    let layout = drawn_layout(numbers, &own);
    Drawn::Elements(random::<K>(numbers, layout.storage_len()), layout)
}

/// Computes on the device, and returns the destination's elements.
fn on_device<K: Kind>(
    device: &Device,
    operation: Binary,
    operands: [&Drawn<K>; 2],
    (old, layout): (&[K::Bits], &Layout),
    target: Target,
) -> Vec<K::Bits> {
    let sources = operands.map(Drawn::layout);
    let plan = BinaryPlan::new(operation, K::DTYPE, sources, (layout, Align::ALLOCATION), target).unwrap();
    let result = device.upload(old).unwrap();
    let buffers = operands.map(|operand| match operand {
        Drawn::Number(_) => None,
        Drawn::Elements(elements, _) => Some(device.upload(elements).unwrap()),
    });
    let address = |at: usize| buffers[at].as_ref().map_or(0, |buffer| buffer.address());
    let number = |at: usize| if let Drawn::Number(number) = operands[at] { *number } else { 0.0 };
    let sides = [0, 1].map(|at| (address(at), number(at)));
    // SAFETY: the buffers are the storages of the layouts, and live until the download.
    unsafe { plan.launch_raw(device, sides, result.address(), handle(device)) }.unwrap();
    result.download().unwrap()
}

/// Compares every element of the destination's storage with what the host computes.
fn check<K: Kind>(
    device: &Device,
    operation: Binary,
    operands: [&Drawn<K>; 2],
    (old, layout): (&[K::Bits], &Layout),
    target: Target,
) {
    let got = on_device(device, operation, operands, (old, layout), target);
    let mut expected = old.to_vec();
    for index in indices(layout.shape()) {
        let [a, b] = operands.map(|operand| operand.at(&index, layout.shape()));
        expected[layout.offset_of(&index).unwrap()] = computed::<K>(operation, a, b);
    }
    // A quotient of zeros is NaN, whose bits may differ.
    let differs = |&at: &usize| {
        let [got, expected] = [K::value(got[at]), K::value(expected[at])];
        got.to_bits() != expected.to_bits() && !(got.is_nan() && expected.is_nan())
    };
    let wrong = (0..expected.len()).find(differs);
    let described = operands.map(|operand| operand.layout().copied());
    assert_eq!(wrong, None, "{operation} of {described:?} into {layout:?}, {}", K::DTYPE);
}

fn drawn_operands_give_the_hosts_results_bit_by_bit(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(90));
    of_every_kind!(draws(&device, &mut random, short_or_long(120, 3000)));
}

fn draws<K: Kind>(device: &Device, numbers: &mut Random, count: usize) {
    let target = Target::of(device);
    for _ in 0..count {
        let shape = drawn_shape(numbers);
        let layout = if numbers.coin() { c_order(&shape) } else { drawn_layout(numbers, &shape) };
        let old = random::<K>(numbers, layout.storage_len());
        let mut operands = [(); 2].map(|()| drawn::<K>(numbers, &shape));
        if numbers.below(4) == 0 {
            operands[numbers.below(2)] = Drawn::Number(0.1 + numbers.below(100) as f64);
        }
        let operation = Binary::ALL[numbers.below(4)];
        check(device, operation, operands.each_ref(), (&old, &layout), target);
    }
}

/// Launches every kernel of this file.
pub(crate) fn launch_all(device: &Device, random: &mut Random) {
    of_every_kind!(draws(device, random, 3));
    of_every_kind!(hinted(device, random));
}

fn an_operand_may_be_the_destination(setup: &Setup) {
    let (device, mut numbers) = (device(setup), Random::new(91));
    let target = Target::of(&device);
    let layouts = [c_order(&[37, 41]), c_order(&[41, 37]).t(), c_order(&[37, 45]).slice(1, 4.., -1).unwrap()];
    for (operation, layout) in Binary::ALL.into_iter().flat_map(|of| layouts.map(|layout| (of, layout))) {
        let old = random::<F32>(&mut numbers, layout.storage_len());
        let row = c_order(&[41]);
        let elements = random::<F32>(&mut numbers, 41);
        let (buffer, other) = (device.upload(&old).unwrap(), device.upload(&elements).unwrap());
        let sources = [Some(&layout), Some(&row)];
        let plan = BinaryPlan::new(operation, DType::F32, sources, (&layout, Align::ALLOCATION), target).unwrap();
        let sides = [(buffer.address(), 0.0), (other.address(), 0.0)];
        // SAFETY: the buffers are the storages of the layouts, and live until the download.
        unsafe { plan.launch_raw(&device, sides, buffer.address(), handle(&device)) }.unwrap();
        let mut expected = old.clone();
        for index in indices(layout.shape()) {
            let at = layout.offset_of(&index).unwrap();
            expected[at] = computed::<F32>(operation, old[at].into(), elements[index[1]].into());
        }
        assert!(buffer.download().unwrap() == expected, "{operation} in place of {layout:?}");
    }
}

fn more_axes_than_the_kernel_walks_take_several_launches(setup: &Setup) {
    let (device, mut numbers) = (device(setup), Random::new(92));
    let shape = [2, 3, 2, 2, 3, 2, 5];
    let turned = c_order(&[5, 2, 3, 2, 2, 3, 2]).permuted_axes(&[6, 5, 4, 3, 2, 1, 0]).unwrap();
    let layout = c_order(&shape);
    let a = Drawn::<F32>::Elements(random::<F32>(&mut numbers, turned.storage_len()), turned);
    let b = Drawn::Elements(random::<F32>(&mut numbers, 720), layout);
    let old = random::<F32>(&mut numbers, 720);
    check(&device, Binary::Sub, [&a, &b], (&old, &layout), Target::of(&device));
    let sources = [Some(&turned), Some(&layout)];
    let plan = BinaryPlan::new(Binary::Sub, DType::F32, sources, (&layout, Align::ALLOCATION), Target::of(&device));
    assert_eq!(plan.unwrap().launches(), 6);
    // By vectors, the explanation counts the rows of all launches.
    let shape = [2, 3, 2, 2, 3, 2, 4];
    let (layout, turned) = (c_order(&shape), c_order(&shape.map(|extent| extent + 1)));
    let gaps = (0..7).fold(turned, |of, axis| of.slice(axis, ..shape[axis], 1).unwrap());
    let sources = [Some(&gaps), Some(&layout)];
    let plan = BinaryPlan::new(Binary::Sub, DType::F32, sources, (&layout, Align::ALLOCATION), Target::of(&device));
    let plan = plan.unwrap();
    let reason = plan.explain().reason;
    assert!(
        plan.launches() > 1 && reason.contains("in 144 rows of 4 elements"),
        "{} launches: {reason}",
        plan.launches()
    );
}

fn zeros_infinities_and_nan_are_those_of_ieee_754(setup: &Setup) {
    fn of<K: Kind>(device: &Device) {
        let special = [0.0, -0.0, 1.0, -1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let column = c_order(&[special.len(), 1]);
        let row = c_order(&[special.len()]);
        let elements: Vec<K::Bits> = special.iter().map(|&value| K::nearest(value)).collect();
        let layout = c_order(&[special.len(); 2]);
        let old = vec![K::nearest(3.0); layout.len()];
        for operation in Binary::ALL {
            let operands = [column, row].map(|layout| Drawn::<K>::Elements(elements.clone(), layout));
            check(device, operation, operands.each_ref(), (&old, &layout), Target::of(device));
        }
    }
    let device = device(setup);
    of_every_kind!(of(&device));
}

fn numbers_and_arrays_stand_on_either_side(setup: &Setup) {
    let device = device(setup);
    let matrix = device.array(&[2, 2], &[1.0_f32, 2.0, 4.0, 8.0]).unwrap();
    let doubles = device.array(&[2], &[0.1_f64, 3.0]).unwrap();
    assert_eq!(ops::mul(&matrix, 2.0).unwrap().to_vec().unwrap(), [2.0, 4.0, 8.0, 16.0]);
    assert_eq!(ops::mul(0.5_f32, &matrix).unwrap().to_vec().unwrap(), [0.5, 1.0, 2.0, 4.0]);
    assert_eq!(ops::div(1.0, matrix.view().t()).unwrap().to_vec().unwrap(), [1.0, 0.25, 0.5, 0.125]);
    assert_eq!(ops::sub(matrix.view(), 1.0).unwrap().to_vec().unwrap(), [0.0, 1.0, 3.0, 7.0]);
    assert_eq!(ops::add(0.2, &doubles).unwrap().to_vec().unwrap(), [0.1 + 0.2, 3.2]);
    let row = matrix.view().index_axis(0, 1).unwrap();
    assert_eq!(ops::add(row, &matrix).unwrap().to_vec().unwrap(), [5.0, 10.0, 8.0, 16.0]);
    let mut into = device.zeros::<f32>(8).unwrap();
    let every_second = into.view_mut(&[2, 4]).unwrap().slice(1, .., 2).unwrap();
    ops::div_into(&matrix, 4.0, every_second, device.default_stream()).unwrap();
    assert_eq!(into.download().unwrap(), [0.25, 0.0, 0.5, 0.0, 1.0, 0.0, 2.0, 0.0]);
}

fn vectors_with_hints_do_as_those_without(setup: &Setup) {
    let (device, mut random) = (device(setup), Random::new(93));
    of_every_kind!(hinted(&device, &mut random));
}

/// Plans for a GPU with so small a cache that vectors have hints.
fn hinted<K: Kind>(device: &Device, numbers: &mut Random) {
    let mut target = Target::new(device.info().compute_capability);
    target.l2_bytes = 4096;
    let (layout, row) = (c_order(&[33, 256]), c_order(&[256]));
    let old = random::<K>(numbers, layout.len());
    let a = Drawn::<K>::Elements(random::<K>(numbers, layout.len()), layout);
    let b = Drawn::Elements(random::<K>(numbers, row.len()), row);
    let sources = [Some(&layout), Some(&row)];
    let plan = BinaryPlan::new(Binary::Add, K::DTYPE, sources, (&layout, Align::ALLOCATION), target).unwrap();
    let is_hinted = plan.entry().unwrap().ends_with("_hinted");
    assert_eq!(is_hinted, device.info().compute_capability >= (8, 0), "{plan}");
    for operation in Binary::ALL {
        check(device, operation, [&a, &b], (&old, &layout), target);
    }
}

fn neighbours_and_repeated_rows_move_no_sector_twice(setup: &Setup) {
    let device = device(setup);
    let Some(before) = device.counters().unwrap() else { return };
    let mut last = before;
    let mut counted = |work: &dyn Fn()| -> Counters {
        work();
        let now = device.counters().unwrap().unwrap();
        let counted = now - last;
        last = now;
        counted
    };
    let (rows, columns) = (64, 256);
    let matrix = device.array(&[rows, columns], &vec![1.0_f32; rows * columns]).unwrap();
    let (row, column) = (matrix.view().slice(0, ..1, 1).unwrap(), matrix.view().slice(1, ..1, 1).unwrap());
    // Sectors of a matrix, and requests of its vectors by warps of 32.
    let (sectors, warps) = (rows * columns / 8, rows * columns / 128);
    for (what, repeated, b) in
        [("itself", sectors, matrix.view()), ("a row", sectors, row), ("a column", warps, column)]
    {
        let got = counted(&|| drop(ops::add(&matrix, b).unwrap()));
        let [load, store] = [got.global_load, got.global_store];
        assert_eq!([load.sectors, store.sectors], [sectors + repeated, sectors].map(|of| of as u64), "{what}");
        assert_eq!([load.requests, store.requests], [2 * warps, warps].map(|of| of as u64), "{what}");
    }
    let got = counted(&|| drop(ops::mul(&matrix, 2.0).unwrap()));
    assert_eq!([got.global_load.sectors, got.global_store.sectors], [sectors as u64; 2], "a number");
}

fn operands_that_do_not_fit_are_refused(setup: &Setup) {
    let device = device(setup);
    let (a, b) = (device.array(&[3, 4], &[1.0_f32; 12]).unwrap(), device.array(&[5], &[1.0_f32; 5]).unwrap());
    refusal(ops::add(&a, &b)).of(ErrorKind::Layout).says("[3, 4] and [5]").says("4 and 5 differ");
    refusal(ops::mul::<f32>(2.0, 3.0)).of(ErrorKind::InvalidArgument).says("numbers").says("give an array");
    let mut small = device.alloc_array::<f32>(&[4]).unwrap();
    refusal(ops::sub_into(&a, 1.0, &mut small, device.default_stream())).of(ErrorKind::Layout).says("[3, 4]");
    let elsewhere = crate::permutes::device(setup);
    let theirs = elsewhere.array(&[4], &[1.0_f32; 4]).unwrap();
    refusal(ops::add(&a, &theirs)).of(ErrorKind::InvalidArgument);

    let layout = c_order(&[6]);
    let target = Target::of(&device);
    let sources = [Some(&layout); 2];
    let plan = BinaryPlan::new(Binary::Add, DType::F32, sources, (&layout, Align::of(4)), target).unwrap();
    let (from, to) = (a.view().storage_address(), a.view().storage_address() + 4);
    for (sides, wrong) in [
        ([(from, 0.0), (to, 0.0)], "overlap"),
        ([(from + 2, 0.0), (to, 0.0)], "aligned to 4"),
        ([(to, 0.0), (0, 0.0)], "address 0"),
    ] {
        // SAFETY: refused before any work is queued.
        refusal(unsafe { plan.launch_raw(&device, sides, to, handle(&device)) }).says(wrong);
    }
    // SAFETY: as above.
    let nowhere = unsafe { plan.launch_raw(&device, [(from, 0.0); 2], 0, handle(&device)) };
    refusal(nowhere).says("the destination has the address 0");
    let mut result = device.alloc_array::<f32>(&[12]).unwrap();
    refusal(plan.launch(&a, &a, &mut result, device.default_stream())).of(ErrorKind::Layout);
    let integers = BinaryPlan::new(Binary::Add, DType::I32, sources, (&layout, Align::ALLOCATION), target);
    refusal(integers).says("cast the elements");
}
