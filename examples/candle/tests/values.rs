//! Values and gradients against candle's own, on the CPU and, with the feature `cuda`, on a GPU
//! where there is one.

use std::process::ExitCode;

use candle_core::{D, DType, Device, Error, Result, Tensor, Var};
use libtest_mimic::{Arguments, Failed, Trial};
use warpstride_candle::{contiguous, permute, transpose};

type Case = fn(&Device) -> Result<()>;

const CASES: &[(&str, Case)] = &[
    ("every_order_of_axes_is_as_candles", every_order_of_axes_is_as_candles),
    ("every_type_is_moved", every_type_is_moved),
    ("slices_and_broadcasts_are_moved", slices_and_broadcasts_are_moved),
    ("empty_tensors_and_scalars_are_moved", empty_tensors_and_scalars_are_moved),
    ("large_matrices_are_moved", large_matrices_are_moved),
    ("what_lies_right_is_not_moved", what_lies_right_is_not_moved),
    ("axes_that_are_no_order_are_refused", axes_that_are_no_order_are_refused),
    ("gradients_are_as_candles", gradients_are_as_candles),
    ("gradients_of_a_broadcast_sum", gradients_of_a_broadcast_sum),
];

fn main() -> ExitCode {
    let devices = [("cpu", Ok(Device::Cpu)), ("cuda:0", Device::new_cuda(0).map_err(first_line))];
    let trials = devices.iter().flat_map(|(name, device)| {
        CASES.iter().map(move |(case, run)| match device.clone() {
            Ok(device) => Trial::test(*case, move || run(&device).map_err(Failed::from)).with_kind(*name),
            Err(reason) => Trial::test(*case, || Ok(())).with_kind(format!("{name}: {reason}")).with_ignored_flag(true),
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// Below it candle may print a backtrace.
fn first_line(error: Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// 0, 1, 2 ... of this shape.
fn numbers(shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    // Every type but that of 8 bits has each of them exactly.
    let numbers: Vec<f32> = (0..count).map(|i| (i % 113) as f32).collect();
    Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(dtype)?.to_device(device)
}

/// Values, shape and type. As f32, which has every number here: what candle 0.11 has from f8e4m3 to
/// f64 calls itself for ever.
fn same(ours: &Tensor, candles: &Tensor) -> Result<()> {
    assert!(ours.is_contiguous());
    assert_eq!((ours.dims(), ours.dtype()), (candles.dims(), candles.dtype()));
    let values = |tensor: &Tensor| -> Result<Vec<f32>> {
        tensor.to_device(&Device::Cpu)?.contiguous()?.to_dtype(DType::F32)?.flatten_all()?.to_vec1()
    };
    assert!(values(ours)? == values(candles)?, "the values of {candles:?} differ");
    Ok(())
}

fn orders(rank: usize) -> Vec<Vec<usize>> {
    if rank == 0 {
        return vec![Vec::new()];
    }
    let insert = |order: Vec<usize>| {
        (0..rank).map(move |place| {
            let mut longer = order.clone();
            longer.insert(place, rank - 1);
            longer
        })
    };
    orders(rank - 1).into_iter().flat_map(insert).collect()
}

fn every_order_of_axes_is_as_candles(device: &Device) -> Result<()> {
    for shape in [&[7, 5][..], &[4, 1, 6], &[2, 3, 4, 5], &[2, 3, 2, 3, 2]] {
        let tensor = numbers(shape, DType::F32, device)?;
        for axes in orders(shape.len()) {
            same(&permute(&tensor, &axes)?, &tensor.permute(axes)?)?;
        }
    }
    Ok(())
}

fn every_type_is_moved(device: &Device) -> Result<()> {
    use DType::*;
    for dtype in [U8, U32, I16, I32, I64, BF16, F16, F32, F64, F8E4M3] {
        let tensor = numbers(&[3, 33, 65], dtype, device)?;
        same(&permute(&tensor, &[2, 0, 1])?, &tensor.permute((2, 0, 1))?)?;
    }
    Ok(())
}

fn slices_and_broadcasts_are_moved(device: &Device) -> Result<()> {
    let tensor = numbers(&[6, 10, 8], DType::F32, device)?;
    let sliced = tensor.narrow(0, 1, 4)?.narrow(2, 3, 5)?;
    same(&contiguous(&sliced)?, &sliced)?;
    same(&transpose(&sliced, 0, D::Minus1)?, &sliced.transpose(0, 2)?)?;
    let shown_often = tensor.narrow(1, 2, 1)?.broadcast_as((6, 9, 8))?;
    same(&permute(&shown_often, &[1, 2, 0])?, &shown_often.permute((1, 2, 0))?)
}

fn empty_tensors_and_scalars_are_moved(device: &Device) -> Result<()> {
    let empty = numbers(&[3, 0, 2], DType::F32, device)?;
    assert_eq!(permute(&empty, &[2, 0, 1])?.dims(), [2, 3, 0]);
    let scalar = numbers(&[], DType::F32, device)?;
    same(&contiguous(&scalar)?, &scalar)
}

fn large_matrices_are_moved(device: &Device) -> Result<()> {
    let tensor = numbers(&[1031, 517], DType::F32, device)?;
    same(&transpose(&tensor, 0, 1)?, &tensor.t()?)?;
    let images = numbers(&[4, 65, 127, 3], DType::U8, device)?;
    same(&permute(&images, &[0, 3, 1, 2])?, &images.permute((0, 3, 1, 2))?)
}

fn what_lies_right_is_not_moved(device: &Device) -> Result<()> {
    let tensor = numbers(&[4, 1, 6], DType::F32, device)?;
    // An axis of one element may go anywhere.
    let shared = |a: &Tensor, b: &Tensor| std::ptr::eq(&*a.storage_and_layout().0, &*b.storage_and_layout().0);
    assert!(shared(&permute(&tensor, &[1, 0, 2])?, &tensor));
    assert!(shared(&contiguous(&tensor)?, &tensor));
    assert!(!shared(&permute(&tensor, &[2, 1, 0])?, &tensor));
    Ok(())
}

fn axes_that_are_no_order_are_refused(device: &Device) -> Result<()> {
    let tensor = numbers(&[4, 5], DType::F32, device)?;
    for axes in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2]] {
        assert!(permute(&tensor, axes).is_err(), "{axes:?}");
    }
    assert!(transpose(&tensor, 0, 2).is_err());
    Ok(())
}

/// A weight for each place of the result tells its gradients apart.
fn gradients_are_as_candles(device: &Device) -> Result<()> {
    for axes in orders(4) {
        let variable = Var::from_tensor(&numbers(&[2, 3, 4, 5], DType::F32, device)?)?;
        let candles = variable.permute(axes.clone())?;
        let weights = numbers(candles.dims(), DType::F32, device)?;
        let gradient = |moved: &Tensor| -> Result<Tensor> {
            let loss = (moved.sqr()? * &weights)?.sum_all()?;
            Ok(loss.backward()?.get(&variable).expect("it depends on the variable").clone())
        };
        same(&gradient(&permute(&variable, &axes)?)?.contiguous()?, &gradient(&candles.contiguous()?)?)?;
    }
    Ok(())
}

/// The gradient of a sum is a broadcast number: `bwd` gets a tensor that does not lie row by row.
fn gradients_of_a_broadcast_sum(device: &Device) -> Result<()> {
    let variable = Var::from_tensor(&numbers(&[6, 7], DType::F32, device)?)?;
    let loss = transpose(&variable, 0, 1)?.sum_all()?;
    let gradient = loss.backward()?.get(&variable).expect("it depends on the variable").clone();
    same(&gradient.contiguous()?, &Tensor::ones((6, 7), DType::F32, device)?)
}
