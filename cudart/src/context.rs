//! The device of each thread, whose primary context is made current before a call of the driver.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::code::{Failure, Outcome, code};
use crate::driver::{driver, initialize};
use crate::export::forget;
use crate::types::Context;

driver! {
    fn cuCtxGetCurrent(context: &mut Context);
    fn cuCtxSetCurrent(context: Context);
    fn cuCtxGetDevice(device: &mut c_int);
    fn cuDeviceGetCount(count: &mut c_int);
    fn cuDevicePrimaryCtxRetain(context: &mut Context, device: c_int);
    fn cuDevicePrimaryCtxRelease_v2(device: c_int);
    fn cuDevicePrimaryCtxReset_v2(device: c_int);
    fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint);
    fn cuDevicePrimaryCtxGetState(device: c_int, flags: &mut c_uint, active: &mut c_int);
}

/// The primary contexts that this library retains, by device.
static PRIMARIES: Mutex<BTreeMap<c_int, Context>> = Mutex::new(BTreeMap::new());
/// The number of resets of devices: a context that was made current before the last one may be
/// gone.
static RESETS: AtomicU64 = AtomicU64::new(0);
/// The devices that threads take which set no device, in order of preference.
static VALID: Mutex<Vec<c_int>> = Mutex::new(Vec::new());

/// A context that this library made current in a thread.
#[derive(Clone, Copy)]
struct Bound {
    context: Context,
    resets: u64,
}

thread_local! {
    static DEVICE: Cell<Option<c_int>> = const { Cell::new(None) };
    static BOUND: Cell<Option<Bound>> = const { Cell::new(None) };
}

fn primaries() -> MutexGuard<'static, BTreeMap<c_int, Context>> {
    PRIMARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the thread's current context, unless it went with a reset of its device.
fn current() -> Outcome<Option<Context>> {
    let mut context = Context::NULL;
    cuCtxGetCurrent(&mut context)?;
    let is_stale = |bound: Bound| bound.context == context && bound.resets != RESETS.load(Ordering::Acquire);
    Ok((!context.is_null() && !BOUND.get().is_some_and(is_stale)).then_some(context))
}

/// Makes a context current, unless the thread has one: one of the program, or its device's primary
/// one.
pub(crate) fn ready() -> Outcome {
    initialize()?;
    if current()?.is_none() {
        bind(chosen())?;
    }
    Ok(())
}

/// Returns the context that a call is in, which is current afterwards.
pub(crate) fn current_or_primary() -> Outcome<Context> {
    ready()?;
    Ok(current()?.unwrap_or(Context::NULL))
}

/// Returns the device that the thread has chosen.
fn chosen() -> c_int {
    let valid = || VALID.lock().unwrap_or_else(PoisonError::into_inner).first().copied();
    DEVICE.get().or_else(valid).unwrap_or(0)
}

/// Makes the primary context of a device current.
fn bind(device: c_int) -> Outcome {
    let resets = RESETS.load(Ordering::Acquire);
    let context = primary(device)?;
    cuCtxSetCurrent(context)?;
    BOUND.set(Some(Bound { context, resets }));
    Ok(())
}

/// Returns the primary context of a device, which this library retains.
pub(crate) fn primary(device: c_int) -> Outcome<Context> {
    let mut primaries = primaries();
    if let Some(&known) = primaries.get(&device) {
        return Ok(known);
    }
    let mut context = Context::NULL;
    cuDevicePrimaryCtxRetain(&mut context, device)?;
    primaries.insert(device, context);
    Ok(context)
}

/// Returns the number of devices.
pub(crate) fn count() -> Outcome<c_int> {
    initialize()?;
    let mut count = 0;
    cuDeviceGetCount(&mut count)?;
    Ok(count)
}

/// Refuses a device that does not exist.
pub(crate) fn check(device: c_int) -> Outcome {
    let count = count()?;
    if (0..count).contains(&device) {
        return Ok(());
    }
    Err(Failure::new(code::INVALID_DEVICE, format!("there is no device {device}: there are {count}, numbered from 0")))
}

/// Returns the thread's device: that of its context, or the one that it would take.
pub(crate) fn device() -> Outcome<c_int> {
    initialize()?;
    let Some(_) = current()? else { return Ok(chosen()) };
    let mut device = 0;
    cuCtxGetDevice(&mut device)?;
    Ok(device)
}

/// Gives the thread a device.
pub(crate) fn set_device(device: c_int) -> Outcome {
    check(device)?;
    DEVICE.set(Some(device));
    bind(device)
}

/// Names the devices that threads take which set no device.
pub(crate) fn set_valid(devices: Vec<c_int>) -> Outcome {
    for &device in &devices {
        check(device)?;
    }
    *VALID.lock().unwrap_or_else(PoisonError::into_inner) = devices;
    Ok(())
}

/// Ends all that was made in the primary context of the thread's device.
pub(crate) fn reset() -> Outcome {
    let device = device()?;
    let mut primaries = primaries();
    RESETS.fetch_add(1, Ordering::AcqRel);
    if primaries.remove(&device).is_some() {
        cuDevicePrimaryCtxRelease_v2(device)?;
    }
    cuDevicePrimaryCtxReset_v2(device)?;
    forget();
    Ok(())
}

/// Returns the flags of a device's primary context.
pub(crate) fn flags(device: c_int) -> Outcome<c_uint> {
    let (mut flags, mut active) = (0, 0);
    cuDevicePrimaryCtxGetState(device, &mut flags, &mut active)?;
    Ok(flags)
}

/// Sets the flags of a device's primary context.
pub(crate) fn set_flags(device: c_int, flags: c_uint) -> Outcome {
    cuDevicePrimaryCtxSetFlags_v2(device, flags)
}
