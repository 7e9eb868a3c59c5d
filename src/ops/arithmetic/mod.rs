//! Arithmetic at the speed of the memory: element by element, and along one axis or all.

pub(super) mod elementwise;
pub(super) mod fill;
pub(super) mod reduce;
pub(super) mod rowwise;

use std::fmt;

use crate::abi::{EntryId, Family, Key};
use crate::element::DType;
use crate::error::{Error, ErrorKind, Result};

/// The kernel of a family for elements of a type.
///
/// # Errors
///
/// `InvalidArgument` where there is none.
fn kernel(family: Family, operation: impl fmt::Display, dtype: DType) -> Result<EntryId> {
    family.find(Key::dtype(dtype)).ok_or_else(|| {
        let known = |other: &DType| family.find(Key::dtype(*other)).is_some();
        let types: Vec<_> = DType::ALL.into_iter().filter(known).map(DType::name).collect();
        Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "there is no kernel for the {operation} of {dtype}; cast the elements to one of {} (cast_into)",
                types.join(", ")
            ),
        )
    })
}

/// The type in which sums of elements are computed and returned.
const fn sum_type(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 => DType::F32,
        other => other,
    }
}
