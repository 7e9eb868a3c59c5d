//! Compares arguments with a kernel's declaration: their sizes must agree, their types should.

use warpstride::element::DType;
use warpstride::interp::{Kernel, Param};

use super::super::args::{Argument, Value};
use super::super::{kernel_names, number};

/// The type of a number if that is a float; compilers declare integers of either sign alike, and a
/// kernel that takes a number of another kind computes something else.
fn float(dtype: DType) -> Option<DType> {
    Some(dtype).filter(|&dtype| number::is_float(dtype))
}

/// The same of a parameter; `None` for plain bits, which take any number.
fn declared(param: &Param) -> Option<Option<DType>> {
    match &*param.ty {
        "f16" | "bf16" | "f32" | "f64" => Some(param.ty.parse().ok()),
        ty => ty.starts_with(['u', 's']).then_some(None),
    }
}

/// A sentence for each argument whose type is not its parameter's; all have the right sizes, and
/// lie at these offsets. The members of a struct have no types in PTX.
pub(crate) fn notes(kernel: &Kernel, arguments: &[Argument], places: &[usize]) -> Vec<String> {
    let note = |(argument, &place): (&Argument, &usize)| {
        let is_whole = |param: &Param| param.offset == place && param.size == argument.size();
        let number = kernel.params().iter().position(is_whole)?;
        note(kernel, number, argument)
    };
    arguments.iter().zip(places).filter_map(note).collect()
}

fn note(kernel: &Kernel, number: usize, argument: &Argument) -> Option<String> {
    let param = &kernel.params()[number];
    let declared = declared(param)?;
    let passed = match &argument.value {
        &Value::Scalar { dtype, .. } if float(dtype) == declared => return None,
        Value::Buffer { .. } | Value::File(_) if declared.is_none() => return None,
        Value::Scalar { dtype, .. } => format!("passes its bits as {dtype}"),
        Value::Buffer { .. } | Value::File(_) => "passes the address of a buffer".into(),
    };
    Some(kernel_names::readable(&format!(
        "note: --arg {argument} {passed} where {} is .{}; pass a number of that type if you mean one",
        kernel.argument(number),
        param.ty
    )))
}
