//! Every call of the driver fails in turn: an error that names it, no hang, and no result that
//! looks complete.

use std::sync::mpsc;
use std::thread;

use warpstride::driver::trace::Method;
use warpstride::out_of_core::{self, Options};
use warpstride::{Device, Result};

use super::{Files, budget, bytes, expected, read, traced};
use crate::long::{PATIENCE, is_long};

const SHAPE: [usize; 2] = [30, 50];
const MEMORY: usize = 12 * 4 * 300;

/// Runs `work`, which must end.
fn ended<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || drop(sender.send(work())));
    ended.recv_timeout(PATIENCE).expect("the run hangs or panics")
}

/// The number of calls that fail in one test; with the three tests, more than 200.
const FAULTS: usize = 70;

/// Makes each call of `run` fail, some of them where there are many, and then each method always.
/// `run` returns what it leaves besides its outcome. `check` looks at that.
fn each_call_fails<R: Send + 'static>(
    run: impl Fn(&Device) -> (R, Result<()>) + Copy + Send + 'static,
    check: impl Fn(R, bool),
) {
    let (first, calls) = {
        let (trace, device) = traced();
        let before = trace.calls().len();
        let (left, outcome) = run(&device);
        outcome.expect("nothing fails");
        check(left, true);
        (before, trace.calls().split_off(before))
    };
    // Threads ask whether work has landed as often as they have time to, so the number of calls
    // varies, and some are behind a run's last one. Then the calls between are taken as well.
    let step = if is_long() { 1 } else { (calls.len() / (FAULTS + 10)).max(1) };
    let each = (0..step).flat_map(|offset| (first + offset..first + calls.len()).step_by(step));
    let mut faults = 0;
    for (turn, index) in each.enumerate() {
        if turn >= calls.len().div_ceil(step) && faults >= FAULTS {
            break;
        }
        let (left, outcome, failed) = ended(move || {
            let (trace, device) = traced();
            trace.fail_nth(index);
            let (left, outcome) = run(&device);
            let failed = trace.calls().get(index).map(ToString::to_string);
            drop(device);
            assert!(trace.live().is_empty(), "call {index}: {:?}", trace.live());
            (left, outcome, failed)
        });
        if let Err(error) = &outcome {
            assert!(error.to_string().contains("injected failure"), "{failed:?}: {error}");
        }
        faults += usize::from(failed.is_some());
        check(left, outcome.is_ok());
    }
    assert!(faults >= FAULTS, "{faults} faults in {} calls", calls.len());
    for method in [Method::Launch, Method::CopyH2d, Method::CopyD2h, Method::Copy3d, Method::EventQuery] {
        let (left, outcome) = ended(move || {
            let (trace, device) = traced();
            trace.fail_method(method);
            run(&device)
        });
        if method != Method::EventQuery && calls.iter().any(|call| call.method() == method) {
            let error = outcome.as_ref().expect_err("this method fails").to_string();
            assert!(error.contains("injected failure"), "{method:?}: {error}");
        }
        check(left, outcome.is_ok());
    }
}

fn slices(device: &Device, is_registered: bool) -> (Vec<u32>, Result<()>) {
    let mut source: Vec<u32> = (0..1500).collect();
    let mut result = vec![0; source.len()];
    let done = if is_registered {
        device.default_stream().scope(|s| {
            let (source, mut result) = (s.register(&mut source)?, s.register(&mut result)?);
            out_of_core::permute(device, &source, &SHAPE, &[1, 0], &mut result, budget(MEMORY))
        })
    } else {
        out_of_core::permute(device, &source, &SHAPE, &[1, 0], &mut result, budget(MEMORY))
    };
    // A failure of a release is the next call's.
    let released = device.take_drop_error().map_or(Ok(()), Err);
    (result, done.map(drop).and(released))
}

fn check_slice(result: Vec<u32>, is_done: bool) {
    let source: Vec<u32> = (0..1500).collect();
    assert!(!is_done || result == expected(&source, &SHAPE, &[1, 0], false));
}

#[test]
fn slices_in_ordinary_memory() {
    each_call_fails(|device| slices(device, false), check_slice);
}

#[test]
fn slices_in_registered_memory() {
    each_call_fails(|device| slices(device, true), check_slice);
}

#[test]
fn files() {
    let data = bytes(6000);
    let elements: Vec<&[u8]> = data.chunks(4).collect();
    let expected = (vec![50, 30], expected(&elements, &SHAPE, &[1, 0], false).concat());
    let run = |device: &Device| {
        let files = Files::new("<u4", &SHAPE, &bytes(6000));
        let done = files.permute(device, &[1, 0], budget(MEMORY));
        let released = device.take_drop_error().map_or(Ok(()), Err);
        ((files, done.is_ok()), done.map(drop).and(released))
    };
    each_call_fails(run, |(files, is_done), _| {
        if !is_done {
            assert!(!files.path("out.npy").exists());
            // The part that is there can be completed, wherever the run ended.
            let options = Options { resume: true, ..budget(MEMORY) };
            files.permute(&super::device(), &[1, 0], options).expect("the rest");
        }
        assert_eq!(files.names(), ["out.npy"]);
        assert!(read(&files.path("out.npy")) == expected);
    });
}
