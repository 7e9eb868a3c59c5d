//! Sends a frame to the GPU and back, again and again.

use warpstride::{Device, Result};

/// Copies the frame to the device and back `trips` times, and returns what came back last.
fn round_trips(device: &Device, frame: &[f32], trips: usize) -> Result<Vec<f32>> {
    let stream = device.stream()?;
    let mut on_device = device.alloc_array(&[frame.len()])?;
    // CHANGE: both sides of the copies are ordinary memory, which no copy engine can use.
    let input = frame.to_vec();
    let mut output = vec![0.0; frame.len()];
    for _ in 0..trips {
        stream.scope(|s| {
            s.upload(&input, &mut on_device)?;
            s.download(&on_device, &mut output)
        })?; // the scope waits here until both copies have run
    }
    Ok(output.to_vec())
}

// The check follows. Leave it as it is.

use std::process::ExitCode;
use std::sync::Arc;

use warpstride::driver::soft::Soft;

const TRIPS: u64 = 100;
/// Calls that may wait before the first trip and after the last: they take and give back memory.
const ONCE: u64 = 10;

fn main() -> ExitCode {
    match check() {
        Ok(None) => {
            println!("solved: the host waits once a trip, and the copy engine does the rest");
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

/// Runs the round trips, and returns a sentence where they fail.
fn check() -> Result<Option<String>> {
    let device = Device::with_driver(Arc::new(Soft::with_seed(15)))?;
    let frame: Vec<f32> = (0..3 * 64 * 36).map(|i| i as f32).collect();
    let before = device.stats();
    let back = round_trips(&device, &frame, TRIPS as usize)?;
    let stats = device.stats().since(&before);
    if back != frame {
        return Ok(Some("the frame that came back is not the one that was sent".into()));
    }
    let copies = stats.calls_of("copy_h2d").min(stats.calls_of("copy_d2h"));
    if copies < TRIPS {
        return Ok(Some(format!("the frame made {copies} of {TRIPS} trips; copy it there and back in each")));
    }
    let waits = stats.can_synchronize;
    Ok((waits > TRIPS + ONCE).then(|| {
        format!(
            "{TRIPS} round trips have {waits} calls that can make the host wait; with pinned memory on both sides, taken \
             before the loop, each trip has 1"
        )
    }))
}
