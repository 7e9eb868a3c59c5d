//! Checks operations on zeros, infinities, NaN, ties and values out of range against
//! `docs/semantics.md`; every line there is a case.

#[path = "../semantics/mod.rs"]
mod page;

use half::{bf16, f16};
use warpstride::DeviceArray;
use warpstride::device::Device;
use warpstride::element::{DType, Element, Float, Number};
use warpstride::layout::Layout;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Affine, Binary, BinaryPlan, Elementwise, ElementwisePlan};
use warpstride::ops::{Align, Normalization, Phase, Target, Term};
use warpstride::view::View;
use warpstride::{ErrorKind, Result};

use page::{Array, Expression, Line};

use crate::backend::{Case, Needs, Setup};
use crate::permutes::device;

/// Returns a case for each line, with its name.
pub(crate) fn cases() -> Vec<Case> {
    page::lines().into_iter().map(case).collect()
}

fn case(line: Line) -> Case {
    // Cases are listed once and live as long as the program.
    let name = format!("{}::{}", module_path!(), line.name).leak();
    Case { name, needs: Needs::Any, body: Box::leak(Box::new(move |setup: &Setup| hold(&line, setup))) }
}

/// Asserts that an expression gives the result of its line.
fn hold(line: &Line, setup: &Setup) {
    let found = evaluate(&device(setup), &page::parse(line.expression));
    let is_right = match (&found, line.ours.strip_prefix("refused: ")) {
        (Err(kind), Some(expected)) => format!("{kind:?}") == expected,
        (Ok(found), None) => is_same(found, line.ours),
        _ => false,
    };
    let told = found.map_or_else(
        |kind| format!("refused: {kind:?}"),
        |array| array.bits.iter().map(|&bits| page::shown(array.dtype, bits)).collect::<Vec<_>>().join(", "),
    );
    assert!(is_right, "{} comes to {told}, and docs/semantics.md says {}", line.expression, line.ours);
}

/// Returns whether elements are those of `[1.0, nan, 2.0 or 3.0]`, bit by bit except for NaN.
fn is_same(found: &Array, expected: &str) -> bool {
    let inside = expected.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inside = inside.unwrap_or_else(|| panic!("no result: {expected}"));
    let expected: Vec<_> = inside.split(", ").filter(|number| !number.is_empty()).collect();
    let is_one_of = |(&bits, one_of): (&u64, &&str)| {
        one_of.split(" or ").any(|number| match number {
            "nan" => page::shown(found.dtype, bits) == "nan",
            number => page::bits(found.dtype, number) == bits,
        })
    };
    found.bits.len() == expected.len() && found.bits.iter().zip(&expected).all(is_one_of)
}

/// An element type of expressions.
trait Sample: Element {
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! samples {
    ($($type:ident: |$bits:ident| $of:expr, |$element:ident| $to:expr;)*) => {$(
        impl Sample for $type {
            fn of($bits: u64) -> Self {
                $of
            }
            fn bits(self) -> u64 {
                let $element = self;
                $to
            }
        }
    )*};
    ($($unsigned:ident $signed:ident),*) => {
        samples! {$(
            $unsigned: |bits| bits as $unsigned, |element| u64::from(element);
            $signed: |bits| bits as $signed, |element| u64::from(element as $unsigned);
        )*}
    };
}

samples! { u8 i8, u16 i16, u32 i32, u64 i64 }
samples! {
    f16: |bits| f16::from_bits(bits as u16), |element| u64::from(element.to_bits());
    bf16: |bits| bf16::from_bits(bits as u16), |element| u64::from(element.to_bits());
    f32: |bits| f32::from_bits(bits as u32), |element| u64::from(element.to_bits());
    f64: |bits| f64::from_bits(bits), |element| element.to_bits();
}

/// Calls a function for the listed type with this name.
macro_rules! typed {
    ($dtype:expr, [$($name:ident $type:ident),*], $function:ident $arguments:tt) => {
        match $dtype {
            $(DType::$name => $function::<$type> $arguments,)*
            other => panic!("{} is for no {other}", stringify!($function)),
        }
    };
    ($dtype:expr, floats, $function:ident $arguments:tt) => {
        typed!($dtype, [F16 f16, Bf16 bf16, F32 f32, F64 f64], $function $arguments)
    };
    ($dtype:expr, all, $function:ident $arguments:tt) => {
        typed!($dtype, [U8 u8, I8 i8, U16 u16, I16 i16, F16 f16, Bf16 bf16, U32 u32, I32 i32, F32 f32, U64 u64, I64 i64,
            F64 f64], $function $arguments)
    };
}

/// Evaluates an expression on a device: the flat result, or the kind of the refusal.
fn evaluate(device: &Device, expression: &Expression<'_>) -> std::result::Result<Array, ErrorKind> {
    let dtype = expression.array(usize::from(!matches!(expression.arguments[0], page::Argument::Array(_)))).dtype;
    let result = match expression.function {
        "add" | "sub" | "mul" | "div" | "scale" if !is_float(dtype) => planned(device, expression, dtype),
        "add" | "sub" | "mul" | "div" => typed!(dtype, floats, binary(device, expression)),
        "scale" | "triad" | "axpy" => typed!(dtype, floats, elementwise(device, expression)),
        "transpose" => typed!(dtype, all, transposed(device, expression)),
        "cast" => typed!(dtype, all, cast_from(device, expression)),
        "affine" => typed!(dtype, [F32 f32, F64 f64], scaled(device, expression)),
        "normalize" => normalized(device, expression),
        "gather_rows" | "scatter_rows" => typed!(dtype, all, by_index(device, expression)),
        "sum" | "min" | "max" | "argmax" => typed!(dtype, all, reduced(device, expression)),
        _ => typed!(dtype, floats, of_rows(device, expression)),
    };
    result.map_err(|error| error.kind())
}

/// Uploads an argument and returns it with its shape.
fn upload<'e, T: Sample>(device: &Device, expression: &'e Expression<'_>, at: usize) -> (DeviceBuffer<T>, &'e [usize]) {
    let array = expression.array(at);
    assert_eq!(array.dtype, T::DTYPE, "argument {at} of {}", expression.function);
    let elements: Vec<T> = array.bits.iter().map(|&bits| T::of(bits)).collect();
    (device.upload(&elements).expect("room for a few elements"), &array.shape)
}

fn download<T: Sample>(buffer: &DeviceBuffer<T>) -> Array {
    let elements = buffer.download().expect("the result of what was queued");
    let bits: Vec<u64> = elements.into_iter().map(T::bits).collect();
    Array { dtype: T::DTYPE, shape: vec![bits.len()], bits }
}

fn downloaded<T: Sample>(array: &DeviceArray<T>) -> Array {
    download(array.buffer())
}

fn one<T: Sample>(element: T) -> Array {
    Array { dtype: T::DTYPE, shape: vec![], bits: vec![element.bits()] }
}

/// Returns a scalar of the elements' type.
fn scalar<T: Sample>(expression: &Expression<'_>, at: usize) -> T {
    T::of(page::bits(T::DTYPE, &expression.number(at).to_string()))
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64)
}

fn binary<T: Sample + Float>(device: &Device, expression: &Expression<'_>) -> Result<Array> {
    let is_array = |at: usize| matches!(expression.arguments[at], page::Argument::Array(_));
    let arrays = [0, 1].map(|at| is_array(at).then(|| upload::<T>(device, expression, at)));
    let term = |at: usize| -> Result<Term<'_, T>> {
        Ok(match &arrays[at] {
            Some((buffer, shape)) => buffer.view(shape)?.into(),
            None => expression.number(at).into(),
        })
    };
    let (a, b) = (term(0)?, term(1)?);
    Ok(downloaded(&match operation(expression) {
        Binary::Add => ops::add(a, b)?,
        Binary::Sub => ops::sub(a, b)?,
        Binary::Mul => ops::mul(a, b)?,
        Binary::Div => ops::div(a, b)?,
    }))
}

fn operation(expression: &Expression<'_>) -> Binary {
    match expression.function {
        "add" => Binary::Add,
        "sub" => Binary::Sub,
        "mul" => Binary::Mul,
        "div" => Binary::Div,
        other => panic!("{other} does not compute with two operands"),
    }
}

/// Plans an operation of floats on integers, for which its function does not compile: the plan is
/// refused.
fn planned(device: &Device, expression: &Expression<'_>, dtype: DType) -> Result<Array> {
    let (target, start) = (Target::of(device), Phase::ALIGNED);
    let plan = if expression.function == "scale" {
        let len = expression.array(1).bits.len() as u64;
        ElementwisePlan::new(Elementwise::Mul, dtype, len, [start; 2], start, target).map(drop)
    } else {
        let layout = Layout::row_major(&expression.array(0).shape)?;
        let (sources, to) = ([Some(&layout); 2], (&layout, Align::ALLOCATION));
        BinaryPlan::new(operation(expression), dtype, sources, to, target).map(drop)
    };
    plan.map(|()| panic!("{} has a plan, and its function does not compile", expression.function))
}

fn elementwise<T: Sample + Float>(device: &Device, expression: &Expression<'_>) -> Result<Array> {
    let (a, shape) = upload::<T>(device, expression, usize::from(expression.function != "triad"));
    let from = a.view(shape)?;
    match expression.function {
        "scale" => Ok(downloaded(&ops::scale(scalar(expression, 0), from)?)),
        "triad" => {
            let (b, other) = upload(device, expression, 2);
            Ok(downloaded(&ops::triad(from, scalar(expression, 1), b.view(other)?)?))
        }
        _ => {
            let (mut sum, shape) = upload::<T>(device, expression, 2);
            ops::axpy_into(scalar(expression, 0), from, sum.view_mut(shape)?, device.default_stream())?;
            Ok(download(&sum))
        }
    }
}

fn reduced<T>(device: &Device, expression: &Expression<'_>) -> Result<Array>
where
    T: Sample + Number<Sum: Sample>,
{
    let (buffer, shape) = upload::<T>(device, expression, 0);
    let a = buffer.view(shape)?;
    let axis = (expression.arguments.len() > 1).then(|| expression.number(1) as usize);
    Ok(match expression.function {
        "sum" => downloaded(&ops::sum(a, axis)?),
        "min" => downloaded(&ops::min(a, axis)?),
        "max" => downloaded(&ops::max(a, axis)?),
        _ => downloaded(&ops::argmax(a, axis)?),
    })
}

fn of_rows<T>(device: &Device, expression: &Expression<'_>) -> Result<Array>
where
    T: Sample + Float<Sum: Sample>,
{
    let (buffer, shape) = upload::<T>(device, expression, 0);
    let a = buffer.view(shape)?;
    Ok(match expression.function {
        "dot" => {
            let (b, other) = upload(device, expression, 1);
            one(ops::dot(a, b.view(other)?)?.item()?)
        }
        "argmin" => {
            let negated = ops::scale(T::of(page::bits(T::DTYPE, "-1.0")), a)?;
            one(ops::argmax(&negated, None)?.item()?)
        }
        "mean" => downloaded(&ops::mean(a, shape.len() - 1)?),
        "variance" => downloaded(&ops::mean_variance(a, shape.len() - 1)?.1),
        "softmax" => downloaded(&ops::softmax(a)?),
        other => panic!("no function of docs/semantics.md is {other}"),
    })
}

fn transposed<T: Sample>(device: &Device, expression: &Expression<'_>) -> Result<Array> {
    let (buffer, shape) = upload::<T>(device, expression, 0);
    Ok(downloaded(&ops::transpose(buffer.view(shape)?)?))
}

fn cast_from<S: Sample>(device: &Device, expression: &Expression<'_>) -> Result<Array> {
    fn to<D: Sample>(from: View<'_, impl Element>) -> Result<Array> {
        Ok(downloaded(&ops::cast::<D, _>(from)?))
    }
    let (buffer, shape) = upload::<S>(device, expression, 0);
    let from = buffer.view(shape)?;
    typed!(expression.dtype(1), all, to(from))
}

fn scaled<T: Sample>(device: &Device, expression: &Expression<'_>) -> Result<Array> {
    let (buffer, shape) = upload::<T>(device, expression, 0);
    let mut result = device.alloc::<T>(buffer.len())?;
    let affine = Affine::Uniform { factor: expression.number(1), offset: expression.number(2) };
    ops::affine_into(buffer.view(shape)?, affine, result.view_mut(shape)?, device.default_stream())?;
    Ok(download(&result))
}

fn normalized(device: &Device, expression: &Expression<'_>) -> Result<Array> {
    let (images, shape) = upload::<u8>(device, expression, 0);
    let [divisor, mean, deviation] = [1, 2, 3].map(|at| expression.number(at));
    let &[n, h, w, c] = shape else { panic!("images are [n, h, w, c]") };
    let normalization = Normalization::new(1.0 / divisor, &vec![mean; c], &vec![deviation; c])?;
    let mut planes = device.alloc::<f32>(images.len())?;
    let to = planes.view_mut(&[n, c, h, w])?;
    ops::normalize_into(images.view(shape)?, &normalization, to, device.default_stream())?;
    Ok(download(&planes))
}

fn by_index<T: Sample>(device: &Device, expression: &Expression<'_>) -> Result<Array> {
    fn with<T: Sample, I: Sample>(device: &Device, expression: &Expression<'_>) -> Result<Array> {
        let ((rows, shape), (indices, count)) =
            (upload::<T>(device, expression, 0), upload::<I>(device, expression, 1));
        let (mut result, to) = upload::<T>(device, expression, 2);
        let (rows, indices, to) = (rows.view(shape)?, indices.view(count)?, result.view_mut(to)?);
        match expression.function {
            "gather_rows" => ops::gather_rows(rows, indices, to, device.default_stream())?,
            _ => ops::scatter_rows(rows, indices, to, device.default_stream())?,
        }
        Ok(download(&result))
    }
    match expression.array(1).dtype {
        DType::U32 => with::<T, u32>(device, expression),
        _ => with::<T, i64>(device, expression),
    }
}
