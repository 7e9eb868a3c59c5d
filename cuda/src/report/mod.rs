//! The report of a process, for `warpstride run`, which it writes as one JSON document into the
//! folder that `run` names.
//!
//! ```text
//!  launches (watched by the driver) --> kernels --+
//!  calls, and those that failed ------> calls ----+--> document --> FOLDER/PID-TIME.json
//!  allocations, transfers ------------> memory ---+
//!  launches since a test began -------> section --> the program, where it asks for them
//! ```
//!
//! The process writes the document when it ends. It also writes it after a launch that stopped or
//! has a new finding, and after others as often as costs little, because a process that is killed
//! writes nothing at its end. A document is whole at any time: it is written under a temporary
//! name, and renamed.

mod calls;
mod kernels;
mod memory;
mod order;
mod section;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use warpstride::driver::soft::{Config, Watch};
use warpstride::interp::Checks;
use warpstride::interp::check::Check;
use warpstride::roofline::model::DeviceModel;

use crate::code::{Failure, Outcome};
use crate::process::{forked, process};
use calls::Calls;
use kernels::Kernels;

/// The variable with the checkers to use: `all`, or names by comma.
const CHECKS: &str = "WARPSTRIDE_RUN_CHECKS";
/// The variable with the folder for the document of the process.
const FOLDER: &str = "WARPSTRIDE_RUN_REPORT";
/// The variable that asks for a row for each instruction that accesses memory.
const INSTRUCTIONS: &str = "WARPSTRIDE_RUN_INSTRUCTIONS";
/// The variable that asks for a line on standard error for each call that fails.
const LOG: &str = "WARPSTRIDE_RUN_LOG";

/// The version of the document.
const SCHEMA: u32 = 1;
/// The time that a process may spend on documents before its end: this much, and this part of the
/// time that it has run.
const FREE: Duration = Duration::from_millis(100);
const PART: u32 = 20;
/// The longest time that the end of the process waits for a thread that notes something.
const PATIENCE: Duration = Duration::from_secs(2);

/// The report of the process.
struct Report {
    /// The file, and its temporary name.
    path: [PathBuf; 2],
    /// The process that began the report. A fork has another number, and writes nothing.
    process: u32,
    begin: Instant,
    checks: Checks,
    predicted: Option<DeviceModel>,
    state: Mutex<State>,
    could_not_write: AtomicBool,
}

#[derive(Default)]
struct State {
    kernels: Kernels,
    calls: Calls,
    /// The time that was spent on documents.
    spent: Duration,
}

static REPORT: OnceLock<Report> = OnceLock::new();

/// Returns the value of a variable that is set.
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Sets what the software GPUs count and check. With a model, the report predicts the time of
/// launches.
pub(crate) fn configure(config: &mut Config, predicted: Option<DeviceModel>) -> Outcome {
    if let Some(names) = set(CHECKS) {
        let checks = names.parse().map_err(|error| Failure::value(format!("{CHECKS}={names}: {error}")))?;
        config.interp.checks = checks;
        config.follows_order = checks.contains(Check::Racecheck);
    }
    let Some(folder) = set(FOLDER) else { return Ok(()) };
    config.interp.footprint = predicted.is_some();
    let with_instructions = set(INSTRUCTIONS).is_some();
    let checks = config.interp.checks;
    let report = REPORT.get_or_init(|| Report::new(folder.into(), checks, predicted));
    config.watch = Some(Watch(Arc::new(move |kernel, shape, result| {
        let mut state = report.lock();
        let model = report.predicted.as_ref();
        let is_urgent = state.kernels.add(kernel, shape, result, model, with_instructions);
        section::add(|kernels| _ = kernels.add(kernel, shape, result, model, true));
        let is_due = state.spent < FREE + report.begin.elapsed() / PART;
        if is_urgent || is_due {
            report.write(&mut state, false);
        }
    })));
    Ok(())
}

/// Begins the report of the process.
pub(crate) fn begin() {
    if REPORT.get().is_some() {
        // SAFETY: the handler is a function of this library, and the C library calls it before it
        // unloads the library.
        let registered = unsafe { libc::atexit(at_exit) };
        if registered != 0 {
            eprintln!(
                "warpstride: the process has no room for a function at its end, so its report may miss what comes last"
            );
        }
    }
}

extern "C" fn at_exit() {
    // A panic must not leave a function that C calls.
    let _ = std::panic::catch_unwind(|| {
        if let Some(report) = noting()
            && let Some(mut state) = report.lock_in_time()
        {
            report.write(&mut state, true);
        }
    });
}

/// Returns the report, if calls of this process are noted. In a fork another thread of the parent
/// may hold the lock for ever.
fn noting() -> Option<&'static Report> {
    REPORT.get().filter(|_| forked().is_none())
}

/// Notes a call that did what was asked.
pub(crate) fn succeeded(name: &'static str) {
    if let Some(report) = noting() {
        report.lock().calls.succeeded(name);
    }
}

/// Notes a call that failed.
pub(crate) fn failed(name: &'static str, failure: &Failure) {
    if std::env::var_os(LOG).is_some() {
        eprintln!("warpstride: {name} returned {}: {}", failure.code, failure.why);
    }
    if let Some(report) = noting() {
        report.lock().calls.failed(name, failure);
    }
}

impl Report {
    fn new(folder: PathBuf, checks: Checks, predicted: Option<DeviceModel>) -> Self {
        let process = std::process::id();
        // A system gives the number of a process again.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let path = ["json", "incomplete"].map(|extension| folder.join(format!("{process}-{now}.{extension}")));
        Self {
            path,
            process,
            begin: Instant::now(),
            checks,
            predicted,
            state: Mutex::default(),
            could_not_write: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state unless another thread holds it for long: a process that ends in the midst of
    /// a call must end.
    fn lock_in_time(&self) -> Option<MutexGuard<'_, State>> {
        let begin = Instant::now();
        loop {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::Poisoned(state)) => return Some(state.into_inner()),
                Err(TryLockError::WouldBlock) if begin.elapsed() >= PATIENCE => return None,
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Writes the document, unless this is a fork of the process that began it.
    fn write(&self, state: &mut State, has_ended: bool) {
        if std::process::id() != self.process {
            return;
        }
        let begin = Instant::now();
        let document = self.document(state, has_ended).to_string();
        let [path, incomplete] = &self.path;
        let written = fs::write(incomplete, document).and_then(|()| fs::rename(incomplete, path));
        if let Err(error) = written
            && !self.could_not_write.swap(true, Ordering::Relaxed)
        {
            eprintln!("warpstride: cannot write the report {}: {error}", path.display());
        }
        state.spent += begin.elapsed();
    }

    fn document(&self, state: &State, has_ended: bool) -> Value {
        let command: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let gpus: Vec<&str> =
            process().map_or(Vec::new(), |process| process.gpus.iter().map(|gpu| gpu.model.name).collect());
        let checks = Check::ALL.into_iter().filter(|&check| self.checks.contains(check));
        json!({
            "schema": SCHEMA,
            "process": self.process,
            "command": command,
            "ended": has_ended,
            "gpus": gpus,
            "checks": checks.map(|check| check.name()).collect::<Vec<_>>(),
            "model": self.predicted.as_ref().map(|model| model.name),
            "kernels": state.kernels.json(),
            "calls": state.calls.json(),
            "failures": state.calls.failures_json(),
            "order": order::json(),
            "memory": memory::json(has_ended, self.checks.contains(Check::Initcheck)),
        })
    }
}
