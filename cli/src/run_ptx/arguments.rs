//! Compares arguments with a kernel's declaration: their sizes must agree, their types should.

use warpstride::element::DType;
use warpstride::interp::{Kernel, Param};

use super::super::args::{Argument, Value};
use super::super::number;

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

/// A sentence for each argument whose type is not its parameter's; all have the right sizes.
pub(crate) fn notes(kernel: &Kernel, arguments: &[Argument]) -> Vec<String> {
    // The members of a struct have no types in PTX, and there may be any number of them before the
    // next parameter.
    let mut notes = Vec::new();
    let mut arguments = arguments.iter();
    for param in kernel.params() {
        let mut filled = 0_usize;
        while filled < param.size {
            let Some(argument) = arguments.next() else { return notes };
            let size = argument.size();
            filled = filled.next_multiple_of(size.max(1)).saturating_add(size.max(1));
            if size == param.size && !param.ty.starts_with('b') {
                notes.extend(note(param, argument));
            }
        }
    }
    notes
}

fn note(param: &Param, argument: &Argument) -> Option<String> {
    let declared = declared(param)?;
    let passed = match &argument.value {
        &Value::Scalar { dtype, .. } if float(dtype) == declared => return None,
        Value::Buffer { .. } | Value::File(_) if declared.is_none() => return None,
        Value::Scalar { dtype, .. } => format!("passes its bits as {dtype}"),
        Value::Buffer { .. } | Value::File(_) => "passes the address of a buffer".into(),
    };
    Some(format!(
        "note: --arg {argument} {passed} where parameter {:?} is .{}; pass a number of that type if you mean one",
        param.name, param.ty
    ))
}
