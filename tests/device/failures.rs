//! Failures: kernels that stop, and every call made to fail in turn.

use std::sync::Arc;

use warpstride::device::Device;
use warpstride::driver::trace::{Call, Method, Trace};
use warpstride::driver::{Copy3d, Driver, HostKind, Multiprocessors, Pitched, Place};
use warpstride::{Error, ErrorKind, Result};

use crate::backend::{Setup, cases};
use crate::program::{AFFINE, Buffer, COUNT, Program, Stream, VARIABLE, assert_same, cover};

cases! {
    DeviceToLose a_kernel_out_of_bounds_is_a_fault_that_stays,
    DeviceToLose a_failed_device_still_releases,
    DeviceToLose a_copy_behind_a_fault_never_runs,
    Any every_call_fails_once_and_nothing_leaks,
    Any every_method_fails_always_and_nothing_leaks,
    Any a_trace_records_operands,
}

/// Returns parameters of `affine` with which it reads unallocated memory, on any device.
fn faulty_params(dst: &Buffer<'_>) -> Vec<u8> {
    let foreign = 64_u64;
    let parts = [&dst.address.to_le_bytes()[..], &foreign.to_le_bytes(), &1_u32.to_le_bytes(), &1_u32.to_le_bytes()];
    parts.concat()
}

fn a_kernel_out_of_bounds_is_a_fault_that_stays(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let affine = program.affine().unwrap();
    let stream = program.stream().unwrap();
    let target = program.buffer(400).unwrap();
    // SAFETY: not in bounds, on a device to lose.
    unsafe { stream.launch(affine.function, &cover(1), &faulty_params(&target)) }.unwrap();
    let cause = stream.synchronize().unwrap_err();
    assert_eq!(cause.kind(), ErrorKind::KernelFault, "{cause}");
    // CUDA reports that a kernel failed, but not which.
    assert!(!setup.is_soft() || cause.to_string().contains("affine"), "it names the kernel: {cause}");

    let (driver, wide) = (&setup.driver, u64::from(u32::MAX));
    let later: Vec<Error> = vec![
        driver.memory().unwrap_err(),
        driver.alloc(1).unwrap_err(),
        driver.alloc(wide).unwrap_err(),
        driver.alloc_host(1, HostKind::Cached).unwrap_err(),
        stream.pooled(1).err().unwrap(),
        driver.stream_create().unwrap_err(),
        driver.event_create().unwrap_err(),
        driver.module_load(AFFINE).unwrap_err(),
        affine.module.function("affine").unwrap_err(),
        stream.fill(&target, 0, 0, 1).unwrap_err(),
        stream.synchronize().unwrap_err(),
    ];
    for error in later {
        assert_eq!(error.kind(), ErrorKind::KernelFault, "{error}");
        assert!(error.to_string().contains(&cause.to_string()), "the original cause: {error}");
    }
}

fn a_failed_device_still_releases(setup: &Setup) {
    let trace = Arc::new(Trace::new(Arc::clone(&setup.driver)));
    let program = Program::new(&(Arc::clone(&trace) as Arc<dyn Driver>));
    {
        let affine = program.affine().unwrap();
        let (stream, _event) = (program.stream().unwrap(), program.event().unwrap());
        let _host = program.pinned(100).unwrap();
        let buffer = program.upload(&[0; 40]).unwrap();
        // SAFETY: not in bounds, on a device to lose.
        unsafe { stream.launch(affine.function, &cover(1), &faulty_params(&buffer)) }.unwrap();
        stream.synchronize().unwrap_err();
    }
    assert!(trace.live().is_empty(), "{:?}", trace.live());
    assert_eq!(program.failure().unwrap().kind(), ErrorKind::KernelFault);
}

/// A download whose wait fails returns the caller's memory, so its copy, which is queued after the
/// fault, must never run.
fn a_copy_behind_a_fault_never_runs(setup: &Setup) {
    let device = Device::with_driver(Arc::clone(&setup.driver)).unwrap();
    let program = Program::new(&setup.driver);
    let affine = program.affine().unwrap();
    let (buffer, target) = (device.upload(&[7_u8; 4096]).unwrap(), program.buffer(4).unwrap());
    let stream = device.default_stream().handle();
    // SAFETY: not in bounds, on a device to lose.
    unsafe { setup.driver.launch(affine.function, &cover(1), &faulty_params(&target), stream) }.unwrap();
    let mut host = [1_u8; 4096];
    refusal(buffer.download_into(&mut host)).of(ErrorKind::KernelFault);
    device.synchronize().unwrap_err();
    drop((buffer, device));
    assert_eq!(host, [1; 4096]);
}

/// Runs all operations of a device, and returns the computed bytes.
fn whole_program(program: &Program) -> Result<Vec<u8>> {
    let n = 100;
    program.driver.memory()?;
    program.driver.reset_persisting_l2()?;
    let itself = program.driver.info().ordinal;
    assert!(program.driver.can_share_with(itself)?);
    program.driver.share_with(itself)?;
    drop(program.stream_on(Multiprocessors { first: 0, count: 1 })?);
    let (uploads, computes) = (program.stream()?, program.stream()?);
    let (start, uploaded, end) = (program.event()?, program.untimed_event()?, program.event()?);
    let (source, target) = (program.buffer(4 * n)?, program.buffer(4 * n)?);
    let (input, output) = (program.pinned(4 * n)?, program.pinned(4 * n)?);
    input.set(&vec![1; 4 * n]);
    pass_through_the_pool(program, &uploads)?;
    uploads.record(&start)?;
    uploads.h2d((&source, 0), (&input, 0), 4 * n)?;
    uploads.fill(&target, 0, 0, 4 * n)?;
    uploads.record(&uploaded)?;
    let affine = program.affine()?;
    let graph = computes.capture(|| {
        computes.affine(&affine, [&target, &source], n as u32, 3)?;
        computes.d2d((&source, 0), (&target, 0), 4 * n)
    })?;
    assert_eq!((graph.nodes()?, computes.is_capturing()?), (2, false));
    program.module(VARIABLE)?.variable("cells")?;
    affine.module.allow_dynamic_shared(affine.function, 1)?;
    let exec = graph.instantiate()?;
    assert!(exec.update(&graph)?);
    computes.wait(&uploaded)?;
    exec.launch(&computes)?;
    let count = program.module(COUNT)?;
    // SAFETY: the kernel takes the address of a word, and the target has one.
    unsafe { computes.launch_cooperative(count.function("count")?, &cover(1), &target.address.to_le_bytes()) }?;
    computes.d2h((&output, 0), (&source, 0), 4 * n)?;
    computes.record(&end)?;
    while !end.query()? {}
    end.synchronize()?;
    start.ms_until(&end)?;
    computes.synchronize()?;
    uploads.synchronize()?;
    Ok(output.get())
}

/// Copies a box from the pool's memory to registered memory, where the device has a pool.
fn pass_through_the_pool(program: &Program, stream: &Stream<'_>) -> Result<()> {
    let (registered, target) = (program.registered(64)?, program.buffer(64)?);
    let pooled = if program.driver.has_pool() { Some(stream.pooled(64)?) } else { None };
    let src = Place::Device(pooled.as_ref().map_or(target.address, |pooled| pooled.address));
    let src = Pitched { place: src, row_pitch: 8, slice_pitch: 32 };
    let dst = Pitched { place: Place::Host(registered.memory.as_ptr()), row_pitch: 4, slice_pitch: 16 };
    let copy = Copy3d { dst, src, width: 4, height: 4, depth: 2 };
    // SAFETY: every row lies within 64 bytes; the drops below let the copy run first.
    unsafe { program.driver.copy_3d(&copy, stream.handle) }?;
    drop(pooled);
    stream.synchronize()?;
    program.driver.pool_trim(0)
}

/// Runs the program over `inner` with the failures that `inject` requests. Returns its outcome,
/// including the failures of releases, and its calls. No object may stay alive.
fn run_with(inner: &Arc<dyn Driver>, inject: impl FnOnce(&Trace)) -> (Result<Vec<u8>>, Vec<Call>) {
    let trace = Arc::new(Trace::new(Arc::clone(inner)));
    inject(&trace);
    let program = Program::new(&(Arc::clone(&trace) as Arc<dyn Driver>));
    let outcome = whole_program(&program);
    let outcome = match (outcome, program.failure()) {
        (Ok(_), Some(error)) => Err(error),
        (outcome, _) => outcome,
    };
    assert!(trace.live().is_empty(), "alive after {outcome:?}: {:?}", trace.live());
    (outcome, trace.calls())
}

/// The error of a call that fails.
pub(crate) struct Refusal(Error);

/// Asserts that a call fails, and returns its error to be looked at.
#[track_caller]
pub(crate) fn refusal<T>(outcome: Result<T>) -> Refusal {
    Refusal(outcome.err().expect("it must not succeed"))
}

impl Refusal {
    #[track_caller]
    pub(crate) fn of(self, kind: ErrorKind) -> Self {
        assert_eq!(self.0.kind(), kind, "{}", self.0);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Self {
        assert!(self.0.to_string().contains(part), "{part:?} is not in {:?}", self.0.to_string());
        self
    }
}

/// Asserts that the outcome reports the injected failure of `call`.
pub(crate) fn assert_names<T: std::fmt::Debug>(outcome: Result<T>, call: &Call) {
    let error = outcome.expect_err(&format!("{call} failed, and no error was returned"));
    assert!(error.to_string().contains("injected failure"), "{error}");
    assert!(error.to_string().contains(&call.to_string()), "it names {call}: {error}");
}

/// Makes each call of `everything` fail in turn: the error names the call, and nothing stays alive.
pub(crate) fn every_call(setup: &Setup, everything: fn(&Setup, Arc<Trace>) -> Result<()>) {
    let clean = Arc::new(Trace::new(Arc::clone(&setup.driver)));
    everything(setup, clean.clone()).unwrap();
    let calls = clean.calls();
    assert!(clean.live().is_empty(), "{:?}", clean.live());
    assert!(calls.iter().any(|call| matches!(call, Call::Launch { .. })), "{calls:?}");
    let closing = calls.iter().position(|call| matches!(call, Call::ModuleUnload { .. })).unwrap();
    for (index, call) in calls.iter().enumerate() {
        let trace = Arc::new(Trace::new(Arc::clone(&setup.driver)));
        trace.fail_nth(index);
        let outcome = everything(setup, trace.clone());
        assert!(trace.live().is_empty(), "failing {call} left {:?}", trace.live());
        // Closing the device can report its failures to no caller.
        if outcome.is_err() || index < closing {
            assert_names(outcome, &trace.calls()[index]);
        }
    }
}

fn expected() -> Vec<u8> {
    (0x0101_0101_u32 * 3 + 1).to_le_bytes().repeat(100)
}

fn every_call_fails_once_and_nothing_leaks(setup: &Setup) {
    let (outcome, calls) = run_with(&setup.driver, |_| ());
    assert_same(&outcome.unwrap(), &expected(), "the program's output");
    assert!(calls.len() > 30, "{calls:?}");
    for index in 0..calls.len() {
        // Polling makes the number of calls vary on a GPU.
        let (outcome, calls) = run_with(&setup.driver, |trace| trace.fail_nth(index));
        match calls.get(index) {
            Some(call) => assert_names(outcome, call),
            None => assert_eq!(outcome.unwrap(), expected()),
        }
    }
    let (outcome, _) = run_with(&setup.driver, |_| ());
    assert_same(&outcome.unwrap(), &expected(), "the device is as good as before");
}

fn every_method_fails_always_and_nothing_leaks(setup: &Setup) {
    let of_the_pool = [Method::PoolAlloc, Method::PoolFree];
    for &method in Method::ALL.iter().filter(|method| setup.driver.has_pool() || !of_the_pool.contains(method)) {
        let (outcome, calls) = run_with(&setup.driver, |trace| trace.fail_method(method));
        let call = calls.iter().find(|call| call.method() == method);
        assert_names(outcome, call.unwrap_or_else(|| panic!("the program does not call {}", method.name())));
    }
}

fn a_trace_records_operands(setup: &Setup) {
    let trace = Arc::new(Trace::new(Arc::clone(&setup.driver)));
    let program = Program::new(&(Arc::clone(&trace) as Arc<dyn Driver>));
    let (stream, buffer) = (program.stream().unwrap(), program.buffer(100).unwrap());
    trace.fail_method(Method::Alloc);
    assert_eq!(program.buffer(7).err().unwrap().kind(), ErrorKind::Driver);
    trace.fail_nothing();
    stream.fill(&buffer, 1, 2, 3).unwrap();
    assert_eq!(trace.live().allocations.values().collect::<Vec<_>>(), [&100]);
    assert_eq!(trace.live().streams, [stream.handle].into());
    let text = trace.calls().iter().map(Call::to_string).collect::<Vec<_>>();
    let fill = format!("fill {{ dst: {:#x}, value: 2, bytes: 3, stream: {:?} }}", buffer.address + 1, stream.handle);
    assert_eq!(text, ["stream_create", "alloc { bytes: 100 }", "alloc { bytes: 7 }", &fill]);
}
