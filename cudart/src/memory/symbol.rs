//! Copies from and to variables of the program.

use std::ffi::c_uint;

use super::copy::{copy, copy_in};
use crate::arguments::Opaque;
use crate::code::{Failure, Outcome};
use crate::export::export;
use crate::registry::variable;
use crate::types::Stream;

/// Returns the address of bytes of a variable.
pub(crate) fn bytes_of(symbol: Opaque, count: usize, offset: usize) -> Outcome<Opaque> {
    let (base, bytes) = variable(symbol)?;
    if offset.checked_add(count).is_none_or(|end| end > bytes) {
        return Err(Failure::value(format!(
            "a variable of {bytes} B has no {count} B from byte {offset} on; copy less"
        )));
    }
    Ok(Opaque::at(base.address() + offset as u64))
}

export! {
    /// Copies to a variable.
    fn cudaMemcpyToSymbol, per_thread cudaMemcpyToSymbol_ptds (
        symbol: Opaque, src: Opaque, count: usize, offset: usize, kind: c_uint,
    ) {
        copy(bytes_of(symbol, count, offset)?, src, count, kind)
    }

    /// Copies to a variable in a stream.
    fn cudaMemcpyToSymbolAsync, per_thread cudaMemcpyToSymbolAsync_ptsz (
        symbol: Opaque, src: Opaque, count: usize, offset: usize, kind: c_uint, stream: Stream,
    ) {
        copy_in(stream, bytes_of(symbol, count, offset)?, src, count, kind)
    }

    /// Copies from a variable.
    fn cudaMemcpyFromSymbol, per_thread cudaMemcpyFromSymbol_ptds (
        dst: Opaque, symbol: Opaque, count: usize, offset: usize, kind: c_uint,
    ) {
        copy(dst, bytes_of(symbol, count, offset)?, count, kind)
    }

    /// Copies from a variable in a stream.
    fn cudaMemcpyFromSymbolAsync, per_thread cudaMemcpyFromSymbolAsync_ptsz (
        dst: Opaque, symbol: Opaque, count: usize, offset: usize, kind: c_uint, stream: Stream,
    ) {
        copy_in(stream, dst, bytes_of(symbol, count, offset)?, count, kind)
    }
}
