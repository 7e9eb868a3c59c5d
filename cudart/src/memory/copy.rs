//! Copies of bytes.

use std::ffi::{c_int, c_uint};

use crate::arguments::Opaque;
#[cfg(cuda_12)]
use crate::arguments::Out;
use crate::code::{Failure, Outcome, code};
use crate::context;
use crate::driver::{driver, forward};
use crate::export::export;
use crate::types::{Context, Stream};

driver! {
    fn cuMemcpy(dst: Opaque, src: Opaque, count: usize);
    fn cuMemcpyHtoD_v2(dst: Opaque, src: Opaque, count: usize);
    fn cuMemcpyDtoH_v2(dst: Opaque, src: Opaque, count: usize);
    fn cuMemcpyDtoD_v2(dst: Opaque, src: Opaque, count: usize);
    fn cuMemcpyAsync(dst: Opaque, src: Opaque, count: usize, stream: Stream);
    fn cuMemcpyHtoDAsync_v2(dst: Opaque, src: Opaque, count: usize, stream: Stream);
    fn cuMemcpyDtoHAsync_v2(dst: Opaque, src: Opaque, count: usize, stream: Stream);
    fn cuMemcpyDtoDAsync_v2(dst: Opaque, src: Opaque, count: usize, stream: Stream);
    fn cuMemcpyPeer(dst: Opaque, to: Context, src: Opaque, from: Context, count: usize);
    fn cuMemcpyPeerAsync(dst: Opaque, to: Context, src: Opaque, from: Context, count: usize, stream: Stream);
}

/// The direction of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    /// As the addresses say.
    Default,
}

impl Direction {
    /// Returns the direction of this number of `cudaMemcpyKind`.
    pub(crate) fn of(kind: c_uint) -> Outcome<Self> {
        Ok(match kind {
            0 => Self::HostToHost,
            1 => Self::HostToDevice,
            2 => Self::DeviceToHost,
            3 => Self::DeviceToDevice,
            4 => Self::Default,
            other => {
                return Err(Failure::new(code::INVALID_DIRECTION, format!("{other} is not a direction of a copy")));
            }
        })
    }
}

/// Copies bytes, and waits for that as the driver does.
pub(super) fn copy(dst: Opaque, src: Opaque, count: usize, kind: c_uint) -> Outcome {
    let direction = Direction::of(kind)?;
    context::ready()?;
    match direction {
        Direction::HostToHost | Direction::Default => cuMemcpy(dst, src, count),
        Direction::HostToDevice => cuMemcpyHtoD_v2(dst, src, count),
        Direction::DeviceToHost => cuMemcpyDtoH_v2(dst, src, count),
        Direction::DeviceToDevice => cuMemcpyDtoD_v2(dst, src, count),
    }
}

/// Copies bytes in a stream.
pub(super) fn copy_in(stream: Stream, dst: Opaque, src: Opaque, count: usize, kind: c_uint) -> Outcome {
    let direction = Direction::of(kind)?;
    context::ready()?;
    match direction {
        Direction::HostToHost | Direction::Default => cuMemcpyAsync(dst, src, count, stream),
        Direction::HostToDevice => cuMemcpyHtoDAsync_v2(dst, src, count, stream),
        Direction::DeviceToHost => cuMemcpyDtoHAsync_v2(dst, src, count, stream),
        Direction::DeviceToDevice => cuMemcpyDtoDAsync_v2(dst, src, count, stream),
    }
}

#[cfg(not(cuda_12))]
forward! {
    /// Makes several copies.
    fn cudaMemcpyBatchAsync, per_thread cudaMemcpyBatchAsync_ptsz (
        dsts: Opaque, srcs: Opaque, sizes: Opaque, count: usize, attributes: Opaque, first: Opaque, kinds: usize,
        stream: Stream,
    ) = cuMemcpyBatchAsync_v2;
    /// Makes several copies of boxes.
    fn cudaMemcpy3DBatchAsync, per_thread cudaMemcpy3DBatchAsync_ptsz
        (count: usize, copies: Opaque, flags: u64, stream: Stream) = cuMemcpy3DBatchAsync_v2;
}

#[cfg(cuda_12)]
forward! {
    /// Makes several copies.
    fn cudaMemcpyBatchAsync, per_thread cudaMemcpyBatchAsync_ptsz (
        dsts: Opaque, srcs: Opaque, sizes: Opaque, count: usize, attributes: Opaque, first: Opaque, kinds: usize,
        failed: Out<usize>, stream: Stream,
    ) = cuMemcpyBatchAsync;
    /// Makes several copies of boxes.
    fn cudaMemcpy3DBatchAsync, per_thread cudaMemcpy3DBatchAsync_ptsz
        (count: usize, copies: Opaque, failed: Out<usize>, flags: u64, stream: Stream) = cuMemcpy3DBatchAsync;
}

export! {
    /// Copies bytes.
    fn cudaMemcpy, per_thread cudaMemcpy_ptds (dst: Opaque, src: Opaque, count: usize, kind: c_uint) {
        copy(dst, src, count, kind)
    }

    /// Copies bytes in a stream.
    fn cudaMemcpyAsync, per_thread cudaMemcpyAsync_ptsz (
        dst: Opaque, src: Opaque, count: usize, kind: c_uint, stream: Stream,
    ) {
        copy_in(stream, dst, src, count, kind)
    }

    /// Copies bytes between devices.
    fn cudaMemcpyPeer(dst: Opaque, to: c_int, src: Opaque, from: c_int, count: usize) {
        context::check(to)?;
        context::check(from)?;
        context::ready()?;
        cuMemcpyPeer(dst, context::primary(to)?, src, context::primary(from)?, count)
    }

    /// Copies bytes between devices in a stream.
    fn cudaMemcpyPeerAsync(dst: Opaque, to: c_int, src: Opaque, from: c_int, count: usize, stream: Stream) {
        context::check(to)?;
        context::check(from)?;
        context::ready()?;
        cuMemcpyPeerAsync(dst, context::primary(to)?, src, context::primary(from)?, count, stream)
    }
}
