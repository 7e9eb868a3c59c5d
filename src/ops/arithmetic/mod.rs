//! Arithmetic at memory speed: element by element, and along one axis or all.

pub(super) mod binary;
pub(super) mod elementwise;
pub(super) mod fill;
pub(super) mod iterate;
pub(super) mod reduce;
pub(super) mod rowwise;

use std::fmt;

use crate::abi::{EntryId, Family, Key};
use crate::element::DType;
use crate::error::{Error, Result};

/// Returns the kernel of a family for elements of a type.
///
/// # Errors
///
/// `InvalidArgument` if there is none.
fn kernel(family: Family, operation: impl fmt::Display, dtype: DType) -> Result<EntryId> {
    entry(family, dtype).ok_or_else(|| {
        let known = |other: &DType| entry(family, *other).is_some();
        let types: Vec<_> = DType::ALL.into_iter().filter(known).map(DType::name).collect();
        Error::argument(format!(
            "there is no kernel for the {operation} of {dtype}; cast the elements to one of {} (cast_into)",
            types.join(", ")
        ))
    })
}

/// Returns the entry of a family for elements of a type, if it has one. An `i64` without its own
/// entry uses that of `u64`: their sums are the same bits.
fn entry(family: Family, dtype: DType) -> Option<EntryId> {
    let own = family.find(Key::dtype(dtype));
    if dtype == DType::I64 { own.or_else(|| family.find(Key::dtype(DType::U64))) } else { own }
}

/// Returns the type in which sums of elements are computed and returned.
const fn sum_type(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 => DType::F32,
        DType::U8 | DType::U16 | DType::U32 => DType::U64,
        DType::I8 | DType::I16 | DType::I32 => DType::I64,
        other => other,
    }
}
