//! Every call of the driver fails in turn: an error that names it, no hang, and no result that
//! looks complete.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use warpstride::driver::trace::Method;
use warpstride::out_of_core::{self, Options};
use warpstride::{Device, Result};

use super::{Files, budget, bytes, expected, read, traced};
use crate::long::is_long;

const SHAPE: [usize; 2] = [30, 50];
const MEMORY: usize = 12 * 4 * 300;

/// Runs `work`, which must end.
fn ended<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || drop(sender.send(work())));
    ended.recv_timeout(Duration::from_secs(60)).expect("the run hangs or panics")
}

/// Makes each call of `run` fail, some of them where there are many, and then each method always.
/// `check` looks at what is left.
fn each_call_fails<R: Send + 'static>(
    run: impl Fn(&Device) -> Result<R> + Copy + Send + 'static,
    check: impl Fn(Result<R>, bool),
) {
    let calls = {
        let (trace, device) = traced();
        let before = trace.calls().len();
        check(run(&device), true);
        before..trace.calls().len()
    };
    let step = if is_long() { 1 } else { calls.len().div_ceil(70) };
    for index in calls.step_by(step) {
        let (outcome, failed) = ended(move || {
            let (trace, device) = traced();
            trace.fail_nth(index);
            let outcome = run(&device);
            // Threads make the number of calls vary.
            let failed = trace.calls().get(index).map(ToString::to_string);
            drop(device);
            assert!(trace.live().is_empty(), "call {index}: {:?}", trace.live());
            (outcome, failed)
        });
        if let (Err(error), Some(call)) = (&outcome, failed) {
            assert!(error.to_string().contains("injected failure"), "{call}: {error}");
        }
        check(outcome, false);
    }
    for method in [Method::Launch, Method::CopyH2d, Method::CopyD2h, Method::Copy3d, Method::EventQuery] {
        let outcome = ended(move || {
            let (trace, device) = traced();
            trace.fail_method(method);
            run(&device)
        });
        check(outcome, false);
    }
}

fn slices(device: &Device, is_registered: bool) -> Result<Vec<u32>> {
    let mut source: Vec<u32> = (0..1500).collect();
    let mut result = vec![0; source.len()];
    if is_registered {
        device.default_stream().scope(|s| {
            let (source, mut result) = (s.register(&mut source)?, s.register(&mut result)?);
            out_of_core::permute(device, &source, &SHAPE, &[1, 0], &mut result, budget(MEMORY))
        })?;
    } else {
        out_of_core::permute(device, &source, &SHAPE, &[1, 0], &mut result, budget(MEMORY))?;
    }
    // A failure of a release is the next call's.
    device.take_drop_error().map_or(Ok(result), Err)
}

fn check_slice(outcome: Result<Vec<u32>>, must: bool) {
    let source: Vec<u32> = (0..1500).collect();
    match outcome {
        Ok(result) => assert!(result == expected(&source, &SHAPE, &[1, 0], false)),
        Err(error) => assert!(!must, "{error}"),
    }
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
        let outcome = files.permute(device, &[1, 0], budget(MEMORY)).map(|_| ());
        Ok((files, outcome))
    };
    each_call_fails(run, |outcome, must| {
        let (files, outcome) = outcome.expect("files");
        if let Err(error) = outcome {
            assert!(!must, "{error}");
            assert!(!files.path("out.npy").exists(), "{error}");
            // What is there can be completed, wherever the run ended.
            let options = Options { resume: true, ..budget(MEMORY) };
            files.permute(&super::device(), &[1, 0], options).expect("the rest");
        }
        assert_eq!(files.names(), ["out.npy"]);
        assert!(read(&files.path("out.npy")) == expected);
    });
}
