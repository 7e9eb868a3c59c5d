//! Doubles numbers on the GPU and copies them back.

use warpstride::{Device, Result, ops};

/// Returns the numbers, doubled by the device.
fn doubled(device: &Device, numbers: &[f32]) -> Result<Vec<f32>> {
    let [work, copies] = [device.stream()?, device.stream()?];
    let source = device.array(&[numbers.len()], numbers)?;
    let mut doubled = device.alloc_array(&[numbers.len()])?;
    ops::scale_into(2.0, &source, &mut doubled, &work)?;

    // The copies have a stream of their own, which waits for the work.
    let is_doubled = device.event()?;
    work.record(&is_doubled)?;
    copies.wait(&is_doubled)?;

    // CHANGE: this copy is the driver's own call, and the promise in the comment is not kept.
    let mut result = device.pinned_zeros::<f32>(numbers.len())?;
    let (to, from) = (result.as_mut_ptr().cast(), doubled.buffer().address());
    // SAFETY: both sides have these bytes, and nothing reads `result` before the copy has run.
    unsafe { device.driver().copy_d2h(to, from, size_of_val(numbers), copies.handle()) }?;

    // Meanwhile the device computes something else from the doubled numbers.
    let mut sum = device.alloc_array(&[numbers.len()])?;
    ops::add_into(&source, &doubled, &mut sum, &work)?;
    work.synchronize()?;
    Ok(result.to_vec())
}

// The check follows. Leave it as it is.

use std::process::ExitCode;
use std::sync::Arc;

use warpstride::driver::soft::Soft;

const SEEDS: u64 = 64;
const SOURCE: &str = include_str!("task.rs");

fn main() -> ExitCode {
    match check() {
        Ok(None) => {
            println!("solved: right for all {SEEDS} seeds, and a read that comes too early does not compile");
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

/// Doubles the numbers in many orders of the queued work, and returns a sentence where that fails.
fn check() -> Result<Option<String>> {
    let numbers: Vec<f32> = (0..1000).map(|i| i as f32 / 256.0).collect();
    let (mut wrong, mut error) = (Vec::new(), 0.0_f32);
    for seed in 0..SEEDS {
        let device = Device::with_driver(Arc::new(Soft::with_seed(seed)))?;
        let found = doubled(&device, &numbers)?;
        if found.len() != numbers.len() {
            return Ok(Some(format!("{} numbers came back, and {} were sent", found.len(), numbers.len())));
        }
        let off = found.iter().zip(&numbers).map(|(found, number)| (found - 2.0 * number).abs());
        let off = off.fold(0.0, f32::max);
        if off > 0.0 {
            wrong.push(seed);
            error = error.max(off);
        }
    }
    if let Some(first) = wrong.first() {
        return Ok(Some(format!(
            "the numbers are wrong for {} of {SEEDS} seeds, first for seed {first}, by up to {error:.1}: the program \
             read them before the copy had run",
            wrong.len()
        )));
    }
    let yours = SOURCE.split("// The check follows").next().unwrap_or_default();
    Ok(yours.lines().any(|line| !line.trim_start().starts_with("//") && line.contains("unsafe")).then(|| {
        format!(
            "the numbers are right for all {SEEDS} seeds, but only a comment promises it; take the copy without `unsafe`, \
             so that the compiler promises it"
        )
    }))
}
