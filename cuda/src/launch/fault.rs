//! The fault of a kernel, as a result code.

use warpstride::interp::stop::Reason;

use crate::code::{CUresult, code};
use crate::process::process;

/// Returns the code of the fault that stopped a launch, after which every call fails: the GPUs of a
/// process fail together.
pub(crate) fn fault() -> Option<CUresult> {
    let reason = process().ok()?.gpus.first()?.soft.fault()?;
    Some(match reason {
        Reason::OutOfBounds(_) | Reason::ReadOnly(_) | Reason::BadFree { .. } => code::ILLEGAL_ADDRESS,
        Reason::Misaligned(_) => code::MISALIGNED_ADDRESS,
        Reason::Trap => code::ILLEGAL_INSTRUCTION,
        Reason::WorkLimit(_) | Reason::LaunchLimit { .. } | Reason::GridLimit { .. } => code::LAUNCH_TIMEOUT,
        Reason::Assertion { .. } => code::ASSERT,
        Reason::StackOverflow { .. } => code::HARDWARE_STACK_ERROR,
        Reason::BadCall { .. } => code::INVALID_PC,
        _ => code::LAUNCH_FAILED,
    })
}
