//! Arrays that go through a device tile by tile, because they or their results have no room there.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use warpstride::device::Device;
use warpstride::driver::DriverKind;
use warpstride::io::{ArrayFile, Destination, DestinationKind};
use warpstride::out_of_core::{self, Options, Summary};

use super::output::Output;
use super::permute::Work;
use super::{args, ensure_room};

/// Returns whether an array is to be streamed, or has to be. Says so if an unfinished result is
/// left aside.
pub(super) fn is_needed(
    options: &args::Streamed,
    source: &dyn ArrayFile,
    target: &Destination,
    device: &Device,
    output: &Output,
) -> Result<bool> {
    if options.device_memory.is_some() || options.resume {
        return Ok(true);
    }
    // A stream takes its bytes in order, and so the whole result must be there.
    if target.kind() != DestinationKind::File {
        return Ok(false);
    }
    let (free, _) = device.driver().memory()?;
    // The memory that other programs have taken of the host does not limit the software GPU.
    let fits_device = device.info().kind == DriverKind::Soft || 2 * source.bytes() as u128 <= u128::from(free);
    let is_needed = !fits_device || ensure_room(source.bytes(), 1, &[(device, 2)]).is_err();
    if !is_needed && let Some(left) = out_of_core::unfinished(target) {
        let why = "the array has room as a whole now";
        output.note(format!("{} stays: {why}; remove it if you do not want it", left.display()));
    }
    Ok(is_needed)
}

/// Streams an array with its axes in another order.
pub(super) fn run(
    options: &args::Streamed,
    source: &dyn ArrayFile,
    axes: &[usize],
    target: &Destination,
    work: &Work<'_>,
) -> Result<Summary> {
    let bar = work.output.progress_in_bytes(source.bytes() as u64);
    bar.doing(work.doing);
    let has_begun = AtomicBool::new(false);
    let progress = |bytes| match has_begun.swap(true, Ordering::Relaxed) {
        false => bar.begin_at(bytes),
        true => bar.advance(bytes),
    };
    // The budget is the only limit: a caller may know the host's memory better than the host says.
    work.device.set_pinned_limit(usize::MAX);
    let options = Options {
        device_memory: options.device_memory,
        resume: options.resume,
        progress: Some(&progress),
        ..Options::default()
    };
    Ok(out_of_core::permute_file(work.device, source, axes, target, options)?)
}
