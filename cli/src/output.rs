//! Prints results on standard output, and notes and progress on standard error.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use warpstride::device::{Device, TuningFile};
use warpstride::driver::DeviceInfo;
use warpstride::error::printable_line;
use warpstride::roofline::record::SCHEMA;
use warpstride::roofline::run::{Machine, Policy};

use super::{require, terminal};

/// Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two drawings of a bar that nothing advances.
const TICK: Duration = Duration::from_millis(100);

/// How the person, or the script, wants to be told.
pub(super) struct Output {
    json: bool,
    quiet: bool,
    /// True once the document was printed.
    printed: Cell<bool>,
    /// True if an array or another file goes to standard output, and nothing else may.
    taken: Cell<bool>,
    /// The open devices whose calls are counted for `--stats`; `None` without it.
    watched: Option<RefCell<Vec<Device>>>,
    /// The text that kernels have printed, while a screen shows it later.
    kept: RefCell<Option<String>>,
}

impl Output {
    pub(super) fn new(json: bool, quiet: bool, stats: bool) -> Self {
        let watched = stats.then(RefCell::default);
        Self { json, quiet, printed: Cell::new(false), taken: Cell::new(false), watched, kept: RefCell::default() }
    }

    /// Remembers a device that the command opened, for `--stats`.
    pub(super) fn watch(&self, device: &Device) {
        if let Some(devices) = &self.watched {
            devices.borrow_mut().push(device.clone());
        }
    }

    /// Prints the counted calls of each device after the command, unless a document has them.
    pub(super) fn stats(&self) {
        for device in self.watched.iter().filter(|_| !self.json).flat_map(RefCell::take) {
            terminal::say(&format!("{}: {}", printable_line(&device.info().name), device.stats()));
        }
    }

    /// Returns whether standard output is for one document.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// The counted calls of each device so far, as the member `stats` of a document.
    fn add_stats(&self, document: &mut Value) {
        if let Some(devices) = &self.watched {
            let stats = |device: &Device| {
                let mut entry = json!(device.stats());
                entry["device"] = device.info().name.as_str().into();
                entry
            };
            document["stats"] = devices.borrow().iter().map(stats).collect();
        }
    }

    /// Leaves standard output to the file `path`; results are notes from now on.
    pub(super) fn leave_to(&self, path: &Path) -> Result<()> {
        require!(
            !self.json,
            InvalidArgument,
            "{} is standard output, where --json prints its document; name another output, or leave out --json",
            path.display()
        );
        self.taken.set(true);
        Ok(())
    }

    /// Prints a command's result: `text`, or a JSON document with `members` behind its schema. The
    /// text fits the terminal.
    pub(super) fn result(&self, text: &str, members: Value) -> Result<()> {
        self.print(text, members, terminal::print)
    }

    /// Prints a page, which fits the terminal also where a pager shows it.
    pub(super) fn page(&self, text: &str, members: Value) -> Result<()> {
        self.print(text, members, terminal::print_page)
    }

    /// Prints a result that is a file of a program, such as a script: its lines stay as they are.
    pub(super) fn file(&self, text: &str, members: Value) -> Result<()> {
        self.print(text, members, terminal::print_as_it_is)
    }

    fn print(&self, text: &str, members: Value, print: fn(&str) -> io::Result<()>) -> Result<()> {
        if self.taken.get() {
            self.messages(text.trim_end());
            return Ok(());
        }
        self.printed.set(true);
        let printed = if self.json {
            let mut document = json!({ "schema": SCHEMA, "ptx": warpstride::ptx::PROVENANCE });
            if let (Value::Object(document), Value::Object(members)) = (&mut document, members) {
                document.extend(members);
            }
            self.add_stats(&mut document);
            terminal::print_document(&document)
        } else {
            print(text)
        };
        printed.context("cannot write the result to standard output; check where it goes")
    }

    /// Prints the document of a failure, where one is wanted and the command printed none.
    pub(super) fn failure(&self, error: Value) {
        if self.json && !self.printed.get() {
            let mut document = json!({ "schema": SCHEMA, "error": error });
            self.add_stats(&mut document);
            // Standard error says the same.
            let _ = terminal::print_document(&document);
        }
    }

    /// Prints a note to standard error. A failure to print it is ignored.
    pub(super) fn note(&self, text: impl AsRef<str>) {
        self.messages(&printable_line(text.as_ref()));
    }

    /// Says something beside the result on as many lines as it has.
    pub(super) fn messages(&self, text: &str) {
        if !self.quiet && !text.is_empty() {
            terminal::say(&format!("{text}\n"));
        }
    }

    /// Says what a kernel prints, unless it is kept.
    pub(super) fn of_kernel(&self, printed: &str) {
        match &mut *self.kept.borrow_mut() {
            Some(kept) => *kept += printed,
            None => terminal::say(printed),
        }
    }

    /// Runs something, and keeps what kernels print meanwhile.
    pub(super) fn keeping<T>(&self, run: impl FnOnce() -> T) -> (T, String) {
        self.kept.replace(Some(String::new()));
        let result = run();
        (result, self.kept.take().unwrap_or_default())
    }

    /// A bar of `steps` steps, seen on a terminal once the work has taken more than a second.
    pub(super) fn progress(&self, steps: usize) -> Progress {
        Progress::start(steps as u64, self.quiet, "{spinner} {bar:24} {pos}/{len} {msg} ({elapsed})")
    }

    /// The same with the steps a second and the time left, for many steps that take equally long.
    pub(super) fn progress_with_rate(&self, steps: u64) -> Progress {
        Progress::start(steps, self.quiet, "{spinner} {bar:24} {pos}/{len} {msg}, {per_sec}, {eta} left")
    }

    /// A bar of `bytes` bytes, with their rate and the time left.
    pub(super) fn progress_in_bytes(&self, bytes: u64) -> Progress {
        let shown =
            "{spinner} {bar:24} {decimal_bytes}/{decimal_total_bytes} {msg}, {decimal_bytes_per_sec}, {eta} left";
        Progress::start(bytes, self.quiet, shown)
    }
}

/// A progress bar; gone when dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    // Dropped with the rest, which is what its receiver waits for.
    _finished: Sender<()>,
}

impl Progress {
    fn start(steps: u64, quiet: bool, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let (finished, wait) = mpsc::channel();
        if !quiet {
            let shown = bar.clone();
            // A run for which the system starts no thread shows no bar.
            let _ = thread::Builder::new().name("progress".into()).spawn(move || {
                let goes_on = |time| wait.recv_timeout(time) == Err(mpsc::RecvTimeoutError::Timeout);
                if goes_on(PATIENCE) {
                    // The bar hides itself unless standard error is a terminal.
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    // A steady tick of the bar's own would panic without a thread.
                    while goes_on(TICK) {
                        shown.tick();
                    }
                }
            });
        }
        Self { bar, _finished: finished }
    }

    /// Says what is being done now.
    pub(super) fn doing(&self, what: impl Into<String>) {
        self.bar.set_message(printable_line(&what.into()));
    }

    /// One step is done.
    pub(super) fn step(&self) {
        self.advance(1);
    }

    /// Some steps were done before, and count nothing in the rate.
    pub(super) fn begin_at(&self, steps: u64) {
        self.bar.set_position(steps);
        self.bar.tick();
        self.bar.reset_eta();
    }

    /// Some steps are done.
    pub(super) fn advance(&self, steps: u64) {
        self.bar.inc(steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A device as JSON documents describe it.
pub(super) fn info_json(info: &DeviceInfo) -> Value {
    json!(Machine::of_info(info))
}

/// Describes, for people and in JSON, where the thresholds of a device's plans come from. It notes
/// why the user's file is not part of them.
pub(super) fn policy(info: &DeviceInfo, file: &TuningFile, output: &Output) -> (String, Value) {
    let policy = Policy::of(info, file);
    output.note(file.note().unwrap_or_default());
    let mut json = json!(policy);
    json["note"] = file.note().into();
    (policy.to_string(), json)
}
