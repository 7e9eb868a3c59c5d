//! Multiplies in a loop, into new memory each time.

use std::sync::Arc;

use warpstride::alloc::DriverMemory;
use warpstride::driver::Driver;
use warpstride::{Device, DeviceArray, Result, ops};

/// Opens the device with an allocator.
fn open(driver: Arc<dyn Driver>) -> Result<Device> {
    // CHANGE: this allocator calls the driver for each array.
    Device::with_allocator(driver, |driver| Ok(Arc::new(DriverMemory::new(driver))))
}

/// Computes `a + a` in each turn, and returns the last result.
fn sums(a: &DeviceArray<f32>, turns: usize) -> Result<DeviceArray<f32>> {
    // CHANGE: this list keeps the results of all turns.
    let mut results = Vec::new();
    results.push(ops::add(a, a)?);
    for _ in 1..turns {
        results.push(ops::add(a, a)?);
    }
    Ok(results.swap_remove(turns - 1))
}

// The check follows. Leave it as it is.

use std::process::ExitCode;

use warpstride::ErrorKind;
use warpstride::driver::soft::{Config, Soft};

const TURNS: usize = 3000;
const LEN: usize = 64 * 64;
/// Calls of the driver's allocator that the loop may make: for two results at a time, and a spare.
const ALLOCATIONS: u64 = 3;

fn main() -> ExitCode {
    match check() {
        Ok(None) => {
            println!("solved: {TURNS} results in the same memory, and no turn waits");
            ExitCode::SUCCESS
        }
        Ok(Some(failure)) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
        Err(error) if error.kind() == ErrorKind::OutOfMemory => {
            println!("the device ran out of memory before turn {TURNS}: {error}");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("the program ended with an error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the loop on a device of 8 MiB, and returns a sentence where it fails.
fn check() -> Result<Option<String>> {
    let device = open(Arc::new(Soft::with_config(Config { memory_bytes: 8 << 20, ..Config::default() })))?;
    let a = device.array(&[LEN], &[1.5_f32; LEN])?;
    ops::add(&a, &a)?; // the first launch loads the kernel
    device.synchronize()?;
    let before = device.stats();
    let last = sums(&a, TURNS)?;
    let stats = device.stats().since(&before);
    if last.to_vec()? != [3.0; LEN] {
        return Ok(Some("the last result is not a + a".into()));
    }
    let launches = stats.calls_of("launch");
    if launches < TURNS as u64 {
        return Ok(Some(format!("the loop launched {launches} kernels; it must compute in each of {TURNS} turns")));
    }
    let allocations = stats.calls_of("alloc") + stats.calls_of("pool_alloc");
    Ok((allocations > ALLOCATIONS).then(|| {
        format!(
            "{TURNS} turns called the driver's allocator {allocations} times, and {} calls could make the host wait; an \
             allocator that keeps freed memory needs {ALLOCATIONS} calls at most",
            stats.can_synchronize
        )
    }))
}
