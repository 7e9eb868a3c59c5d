//! Callers that pass anything that C lets a callee check: stale handles, null, sizes beyond
//! everything, wrong numbers and addresses, from several threads and from a fork. Each call returns
//! a code. A crash, a panic or a hang is a bug of the library.
//!
//! A seed makes the calls of a process. Where one fails, the test prints the seed and the last
//! calls. With one thread the seed repeats them:
//!
//! ```text
//! WARPSTRIDE_HOSTILE=SEED,THREADS cargo test -p warpstride-cuda --test it hostile -- --nocapture
//! ```
//!
//! The tests of `cuda/` and `cudart/` share this file.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use libloading::Library;

use crate::long::{PATIENCE, short_or_long};
use draw::{Draw, Made};

mod draw;

/// The variable with the seed and the number of threads of a process that makes the calls.
const SEED: &str = "WARPSTRIDE_HOSTILE";
/// The variable with the path of its list of calls.
const LIST: &str = "WARPSTRIDE_HOSTILE_CALLS";
/// The calls of a process.
const CALLS: u64 = 3000;
/// The result that no call may return.
const UNKNOWN: u32 = 999;

/// A library that is called.
pub(crate) struct Target {
    /// The test that calls [`check`], by which its processes run.
    pub(crate) test: &'static str,
    pub(crate) library: fn() -> &'static Library,
    /// A line for each function: its name, and what its operands are drawn from.
    pub(crate) functions: &'static str,
    /// The first call, which has to succeed.
    pub(crate) first: &'static str,
    /// The result of every call in a fork, if they have one.
    pub(crate) in_fork: Option<u32>,
}

/// A function by its name, with the kinds of its operands.
struct Function {
    name: &'static str,
    kinds: Vec<&'static str>,
    call: Entry,
}

/// Numbers and pointers of a call in C are words, and a callee ignores those that it does not take.
type Entry = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u32;

impl Target {
    fn entry(&self, name: &str) -> Entry {
        // SAFETY: `functions` has the operands of CUDA's header, all of them words.
        *unsafe { (self.library)().get::<Entry>(name) }.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn functions(&self) -> Vec<Function> {
        let lines = self.functions.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let function = |line: &'static str| {
            let mut words = line.split(' ');
            let name = words.next().expect("a name");
            Function { name, kinds: words.collect(), call: self.entry(name) }
        };
        lines.map(function).collect()
    }
}

/// A thread that makes calls.
struct Caller<'t> {
    name: String,
    draw: Draw,
    list: File,
    functions: &'t [Function],
}

impl Caller<'_> {
    fn note(&mut self, text: &str) {
        writeln!(self.list, "{} {text}", self.name).expect("a place for the list");
    }

    /// Makes a random call and returns its code.
    fn call(&mut self) -> u32 {
        let function = &self.functions[self.draw.random.below(self.functions.len() as u64) as usize];
        let mut operands = self.draw.operands(&function.kinds);
        let shown = operands.iter().zip(&function.kinds).map(|(&operand, kind)| draw::shown(operand, kind));
        self.note(&format!("calls {}({})", function.name, shown.collect::<Vec<_>>().join(", ")));
        operands.resize(14, 0);
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = operands[..] else { unreachable!("14 operands") };
        // SAFETY: `Draw` makes pointers that are null, or valid for the use that the function has.
        let code = unsafe { (function.call)(a, b, c, d, e, f, g, h, i, j, k, l, m, n) };
        self.note(&format!("has {code} of {}", function.name));
        if code == 0 {
            if ["Destroy", "Unload", "Free", "Detach"].iter().any(|word| function.name.contains(word)) {
                self.draw.end(a);
            }
            self.draw.keep();
        }
        code
    }

    /// Makes calls in a fork of this process, which may have a result that all of them return.
    fn fork(&mut self, result: Option<u32>) {
        // SAFETY: the child only makes calls, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: a call that hangs ends the child by a signal.
            unsafe { libc::alarm(PATIENCE.as_secs() as u32) };
            self.draw.shared = None;
            self.name = "fork".into();
            let is_right = (0..40).all(|_| {
                let code = self.call();
                result.map_or(code != UNKNOWN, |result| code == result)
            });
            // SAFETY: the child ends without the handlers of its parent.
            unsafe { libc::_exit(i32::from(!is_right)) };
        }
        let mut status = 0;
        // SAFETY: the status is a place for it.
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((ended, status), (child, 0), "a fork has calls that are not refused, crashes or hangs");
    }
}

/// Makes the calls of a process.
fn make_the_calls(target: &Target, seed: u64, threads: u64, list: &Path) {
    let made: &'static Mutex<Made> = Box::leak(Box::default());
    let functions = target.functions();
    // SAFETY: the first call takes numbers or nothing.
    assert_eq!(unsafe { target.entry(target.first)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }, 0);
    let calls = |thread: u64| {
        let list = OpenOptions::new().append(true).create(true).open(list).expect("a file");
        // A fault of a kernel ends the use of the device, so most seeds have none.
        let draw = Draw::new(seed << 8 | thread, made, seed.is_multiple_of(8));
        let mut caller = Caller { name: format!("thread {thread}"), draw, list, functions: &functions };
        for number in 0..CALLS / threads {
            assert_ne!(caller.call(), UNKNOWN, "a panic of the library");
            if thread == 0 && number % 500 == 499 {
                caller.fork(target.in_fork);
            }
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|thread| _ = scope.spawn(move || calls(thread))));
}

/// Returns the seed and the number of threads that a variable names.
fn seed_and_threads() -> Option<(u64, u64)> {
    let text = std::env::var(SEED).ok()?;
    let (seed, threads) = text.split_once(',').expect("SEED,THREADS");
    Some((seed.parse().expect("a seed"), threads.parse().expect("a number")))
}

/// Runs a process with a seed, and fails with its last calls where it does.
fn process(target: &Target, variables: &[(&str, &Path)], seed: u64, threads: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let [list, told] = ["calls", "told"].map(|name| folder.path().join(name));
    let out = File::create(&told).expect("a file");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    if seed % 4 == 3 {
        command.env("WARPSTRIDE_RUN_REPORT", folder.path()).env("WARPSTRIDE_RUN_CHECKS", "all");
    }
    let mut child = command
        .args(["--exact", target.test, "--nocapture"])
        .envs(variables.iter().copied())
        .env(SEED, format!("{seed},{threads}"))
        .env(LIST, &list)
        .env("WARPSTRIDE_RUN_MEMORY", (64 << 20).to_string())
        .env("WARPSTRIDE_RUN_GPUS", "2")
        .stdout(Stdio::null())
        .stderr(out)
        .spawn()
        .expect("a process");
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().expect("a process") {
            Some(status) => break Some(status),
            None if begin.elapsed() > PATIENCE => break None,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    if status.is_some_and(|status| status.success()) {
        return;
    }
    // A process that has ended cannot be ended.
    let _ = child.kill();
    let last = |path: &Path, count: usize| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    };
    panic!(
        "WARPSTRIDE_HOSTILE={seed},{threads}: {}\n{}\nthe last calls:\n{}",
        status.map_or("it hangs".into(), |status| status.to_string()),
        last(&told, 30),
        last(&list, 80)
    );
}

/// Checks a library; its processes have these variables.
pub(crate) fn check(target: &Target, variables: &[(&str, &Path)]) {
    match (seed_and_threads(), std::env::var_os(LIST)) {
        (Some((seed, threads)), Some(list)) => return make_the_calls(target, seed, threads, list.as_ref()),
        (Some((seed, threads)), None) => return process(target, variables, seed, threads),
        (None, _) => {}
    }
    // The short form has the first seeds of the long one.
    for seed in 0..short_or_long(8, 1000) {
        process(target, variables, seed, 1);
        if seed % 2 == 1 {
            process(target, variables, seed, 16);
        }
    }
}
