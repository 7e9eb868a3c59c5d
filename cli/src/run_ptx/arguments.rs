//! Whether arguments are what a kernel declares: their sizes must be, their types should.

use warpstride::element::DType;
use warpstride::interp::{Kernel, Param};

use super::super::args::{Argument, Value};

/// What numbers there are, as far as a kernel that takes another one computes something else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    /// An integer of either sign: compilers declare both alike.
    Integer,
    Float(DType),
}

impl Number {
    fn of(dtype: DType) -> Self {
        match dtype {
            DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => Self::Float(dtype),
            _ => Self::Integer,
        }
    }

    /// Returns the kind of a parameter; `None` for plain bits, which take any.
    fn declared(param: &Param) -> Option<Self> {
        Some(match &*param.ty {
            "f16" => Self::Float(DType::F16),
            "bf16" => Self::Float(DType::Bf16),
            "f32" => Self::Float(DType::F32),
            "f64" => Self::Float(DType::F64),
            ty if ty.starts_with(['u', 's']) => Self::Integer,
            _ => return None,
        })
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
    let declared = Number::declared(param)?;
    let passed = match &argument.value {
        &Value::Scalar { dtype, .. } if Number::of(dtype) == declared => return None,
        Value::Buffer { .. } | Value::File(_) if declared == Number::Integer => return None,
        Value::Scalar { dtype, .. } => format!("passes its bits as {dtype}"),
        Value::Buffer { .. } | Value::File(_) => "passes the address of a buffer".into(),
    };
    Some(format!(
        "note: --arg {argument} {passed} where parameter {:?} is .{}; pass a number of that type if you mean one",
        param.name, param.ty
    ))
}
