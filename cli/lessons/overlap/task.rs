//! Sends batches through a device: upload, work, download.

use warpstride::{Device, DeviceArray, PinnedBuffer, Result, ops};

/// The device memory of one batch.
struct Slot {
    input: DeviceArray<f32>,
    output: DeviceArray<f32>,
}

/// Doubles the numbers of each batch on the device, into the results.
fn run(device: &Device, batches: &[PinnedBuffer<f32>], results: &mut [PinnedBuffer<f32>]) -> Result<()> {
    // CHANGE: one stream runs one thing after the other.
    let stream = device.stream()?;
    let [mut this, mut next] = [slot(device)?, slot(device)?];
    for (batch, result) in batches.iter().zip(results) {
        // CHANGE: each scope waits for its end, so the device waits for the host.
        stream.scope(|s| s.upload(batch, &mut this.input))?;
        ops::scale_into(2.0, &this.input, &mut this.output, &stream)?;
        stream.scope(|s| s.download(&this.output, result))?;
        std::mem::swap(&mut this, &mut next);
    }
    Ok(())
}

fn slot(device: &Device) -> Result<Slot> {
    Ok(Slot { input: device.alloc_array(&[LEN])?, output: device.alloc_array(&[LEN])? })
}

// The check follows. Leave it as it is.

use std::process::ExitCode;
use std::sync::Arc;

use warpstride::driver::soft::Soft;

const LEN: usize = 1000;
const BATCHES: u64 = 50;
/// Waits between streams, at least: four a batch, but for the first batches.
const HANDED_OVER: u64 = 4 * BATCHES - 10;
const SEEDS: u64 = 16;
/// Calls that may wait before the first batch and after the last.
const ONCE: u64 = 10;

fn main() -> ExitCode {
    match check() {
        Ok(None) => {
            println!("solved: no batch waits for the host, and uploads, work and downloads have streams of their own");
            ExitCode::SUCCESS
        }
        Ok(Some(failure)) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("the program ended with an error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the batches in many orders of the queued work, and returns a sentence where that fails.
fn check() -> Result<Option<String>> {
    for seed in 0..SEEDS {
        let device = Device::with_driver(Arc::new(Soft::with_seed(seed)))?;
        let number = |batch: u64, at: usize| (batch * 7 + at as u64) as f32;
        let batch = |batch| device.pinned_from(&(0..LEN).map(|at| number(batch, at)).collect::<Vec<_>>());
        let batches = (0..BATCHES).map(batch).collect::<Result<Vec<_>>>()?;
        let mut results = (0..BATCHES).map(|_| device.pinned_zeros(LEN)).collect::<Result<Vec<_>>>()?;
        let before = device.stats();
        run(&device, &batches, &mut results)?;
        let stats = device.stats().since(&before);
        for (batch, result) in (0..).zip(&results) {
            if (0..LEN).any(|at| result[at] != 2.0 * number(batch, at)) {
                return Ok(Some(format!("with seed {seed}, the result of batch {batch} is not its double")));
            }
        }
        let waits = stats.can_synchronize;
        if waits > ONCE {
            return Ok(Some(format!(
                "{BATCHES} batches have {waits} calls that can make the host wait; queue all of them, and wait once for \
                 each stream at the end"
            )));
        }
        // A stream that takes up what another did has to wait for it: each batch goes on twice, and
        // the memory of both its ends comes back.
        let handed_over = stats.calls_of("event_wait");
        if handed_over < HANDED_OVER {
            return Ok(Some(format!(
                "the host does not wait, but streams handed a batch over {handed_over} times, and {} are expected; give \
                 uploads, work and downloads a stream each",
                HANDED_OVER
            )));
        }
    }
    Ok(None)
}
