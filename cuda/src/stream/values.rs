//! Operations of streams on single values in memory: writes, and waits for a value.

use std::ffi::c_uint;
use std::sync::Arc;
use warpstride::error::counted;

use warpstride::driver::StreamHandle;

use super::{Stream, stream};
use crate::arguments::{Handle, In};
use crate::code::{Failure, Outcome};
use crate::export::export;
use crate::graph::Work;
use crate::process::Gpu;

/// The kinds of operations of a list.
const WAIT_32: c_uint = 1;
const WRITE_32: c_uint = 2;
const FLUSH: c_uint = 3;
const WAIT_64: c_uint = 4;
const WRITE_64: c_uint = 5;
const BARRIER: c_uint = 6;

/// The comparisons of a wait, and the flag that it also waits for writes of other devices.
const AT_LEAST: c_uint = 0;
const EQUAL: c_uint = 1;
const AND: c_uint = 2;
const NOR: c_uint = 3;
const WAIT_FLUSH: c_uint = 1 << 30;

/// The most operations of a list.
const MOST: c_uint = 256;

/// `CUstreamBatchMemOpParams`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct OperationParams {
    kind: c_uint,
    /// The flags of the operations without an address.
    short_flags: c_uint,
    address: u64,
    value: u64,
    flags: c_uint,
    _reserved: c_uint,
    _alias: u64,
    _more: u64,
}

/// An operation that was checked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Write { address: u64, value: u64, bytes: usize },
    Wait { address: u64, value: u64, bytes: usize, compare: c_uint },
}

fn read(gpu: &Gpu, address: u64, bytes: usize) -> Option<u64> {
    let mut value = [0; 8];
    gpu.soft.memory().read(address, &mut value[..bytes]).ok()?;
    Some(u64::from_ne_bytes(value))
}

/// Checks one operation on a value of 4 or 8 bytes.
fn check(gpu: &Gpu, operation: Operation) -> Outcome<Operation> {
    let (Operation::Write { address, bytes, .. } | Operation::Wait { address, bytes, .. }) = operation;
    if address % bytes as u64 != 0 {
        return Err(Failure::value(format!(
            "{address:#x} is not a multiple of the {bytes} of the value; align it",
            bytes = counted(bytes, "byte")
        )));
    }
    if read(gpu, address, bytes).is_none() {
        return Err(Failure::value(format!("{address:#x} is not in memory of the stream's device; allocate it there")));
    }
    if let Operation::Wait { compare, .. } = operation
        && !matches!(compare & !WAIT_FLUSH, AT_LEAST | EQUAL | AND | NOR)
    {
        return Err(Failure::value(format!(
            "{compare:#x} is not a comparison of a wait; CUDA's documentation lists them"
        )));
    }
    Ok(operation)
}

/// Checks a list of operations. Barriers and flushes order nothing here: an operation has ended
/// before the next one begins.
pub(crate) fn operations(
    gpu: &Gpu,
    params: In<OperationParams>,
    count: c_uint,
    flags: c_uint,
) -> Outcome<Vec<Operation>> {
    if count > MOST || flags != 0 {
        return Err(Failure::value(format!(
            "{count} operations with flags {flags:#x} are refused; pass up to {MOST} and flags 0"
        )));
    }
    let mut checked = Vec::new();
    for OperationParams { kind, address, value, flags, .. } in params.list(count as usize)? {
        let bytes = if matches!(kind, WAIT_32 | WRITE_32) { 4 } else { 8 };
        checked.push(match kind {
            WAIT_32 | WAIT_64 => check(gpu, Operation::Wait { address, value, bytes, compare: flags })?,
            WRITE_32 | WRITE_64 => check(gpu, Operation::Write { address, value, bytes })?,
            FLUSH | BARRIER => continue,
            _ => return Err(Failure::unsupported(format!("{kind} is not an operation that the software GPU has"))),
        });
    }
    Ok(checked)
}

impl Operation {
    fn queue(self, gpu: &Gpu, soft: StreamHandle) -> warpstride::Result<()> {
        let driver = Arc::clone(&gpu.soft);
        match self {
            Self::Write { address, value, bytes } => {
                let write = move || Ok(driver.memory().write(address, &value.to_ne_bytes()[..bytes])?);
                gpu.soft.call_host(soft, "writing a value", Some(Box::default()), Box::new(write))
            }
            Self::Wait { address, value, bytes, compare } => {
                let holds = move || {
                    let mut now = [0; 8];
                    // A free of the memory waits for this operation, so the read succeeds.
                    if driver.memory().read(address, &mut now[..bytes]).is_err() {
                        return true;
                    }
                    is_met(u64::from_ne_bytes(now), value, bytes, compare & !WAIT_FLUSH)
                };
                gpu.soft.wait_until(soft, holds)
            }
        }
    }

    pub(crate) fn queue_all(all: &[Self], gpu: &Gpu, soft: StreamHandle) -> warpstride::Result<()> {
        all.iter().try_for_each(|operation| operation.queue(gpu, soft))
    }
}

/// Returns whether a wait for `wanted` ends at `now`.
fn is_met(now: u64, wanted: u64, bytes: usize, compare: c_uint) -> bool {
    let mask = if bytes == 4 { u64::from(u32::MAX) } else { u64::MAX };
    let (now, wanted) = (now & mask, wanted & mask);
    match compare {
        // The difference counts round the end of the numbers.
        AT_LEAST if bytes == 4 => (now as u32).wrapping_sub(wanted as u32).cast_signed() >= 0,
        AT_LEAST => now.wrapping_sub(wanted).cast_signed() >= 0,
        EQUAL => now == wanted,
        AND => now & wanted != 0,
        _ => !(now | wanted) & mask != 0,
    }
}

fn queue(on: Handle<Stream>, make: impl FnOnce(&Gpu) -> Outcome<Vec<Operation>>) -> Outcome {
    let stream = stream(on)?;
    let operations = make(stream.gpu()?)?;
    stream.queue_work(Work::Operations { device: stream.device, operations: operations.into() })
}

fn write(on: Handle<Stream>, address: u64, value: u64, bytes: usize, flags: c_uint) -> Outcome {
    if flags & !1 != 0 {
        return Err(Failure::value(format!("{flags:#x} are not flags of a write; pass 0, or 1 for no barrier")));
    }
    queue(on, |gpu| Ok(vec![check(gpu, Operation::Write { address, value, bytes })?]))
}

fn wait(on: Handle<Stream>, address: u64, value: u64, bytes: usize, compare: c_uint) -> Outcome {
    queue(on, |gpu| Ok(vec![check(gpu, Operation::Wait { address, value, bytes, compare })?]))
}

export! {
    /// Writes a value of 32 bits, once the work before it has run.
    fn cuStreamWriteValue32 as cuStreamWriteValue32_v2,
        per_thread cuStreamWriteValue32_ptsz, per_thread cuStreamWriteValue32_v2_ptsz (
        on: Handle<Stream>, address: u64, value: u32, flags: c_uint,
    ) {
        write(on, address, value.into(), 4, flags)
    }

    /// Writes a value of 64 bits, once the work before it has run.
    fn cuStreamWriteValue64 as cuStreamWriteValue64_v2,
        per_thread cuStreamWriteValue64_ptsz, per_thread cuStreamWriteValue64_v2_ptsz (
        on: Handle<Stream>, address: u64, value: u64, flags: c_uint,
    ) {
        write(on, address, value, 8, flags)
    }

    /// Holds a stream back until memory has a value of 32 bits.
    fn cuStreamWaitValue32 as cuStreamWaitValue32_v2,
        per_thread cuStreamWaitValue32_ptsz, per_thread cuStreamWaitValue32_v2_ptsz (
        on: Handle<Stream>, address: u64, value: u32, flags: c_uint,
    ) {
        wait(on, address, value.into(), 4, flags)
    }

    /// Holds a stream back until memory has a value of 64 bits.
    fn cuStreamWaitValue64 as cuStreamWaitValue64_v2,
        per_thread cuStreamWaitValue64_ptsz, per_thread cuStreamWaitValue64_v2_ptsz (
        on: Handle<Stream>, address: u64, value: u64, flags: c_uint,
    ) {
        wait(on, address, value, 8, flags)
    }

    /// Does several such operations, one after the other.
    fn cuStreamBatchMemOp as cuStreamBatchMemOp_v2,
        per_thread cuStreamBatchMemOp_ptsz, per_thread cuStreamBatchMemOp_v2_ptsz (
        on: Handle<Stream>, count: c_uint, params: In<OperationParams>, flags: c_uint,
    ) {
        queue(on, |gpu| operations(gpu, params, count, flags))
    }
}
