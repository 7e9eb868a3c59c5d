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

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use crate::api::library;
use crate::long::{PATIENCE, short_or_long};
use draw::{Draw, Made};

mod draw;

/// The variable with the seed and the number of threads of a process that makes the calls.
const SEED: &str = "WARPSTRIDE_HOSTILE";
/// The variable with the path of its list of calls.
const LIST: &str = "WARPSTRIDE_HOSTILE_CALLS";
/// The calls of a process.
const CALLS: u64 = 3000;
/// Results that no call may return, and the one of every call in a fork.
const UNKNOWN: u32 = 999;
const NOT_INITIALIZED: u32 = 3;

/// A function by its name, with the kinds of its operands.
struct Function {
    name: &'static str,
    kinds: Vec<&'static str>,
    call: Entry,
}

/// Numbers and pointers of a call in C are words, and a callee ignores those that it does not take.
type Entry = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u32;

static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let lines = include_str!("functions.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let function = |line: &'static str| {
        let mut words = line.split(' ');
        let name = words.next().expect("a name");
        // SAFETY: `functions.txt` has the operands of CUDA's header, all of them words.
        let call = unsafe { library().get::<Entry>(name) }.unwrap_or_else(|error| panic!("{name}: {error}"));
        Function { name, kinds: words.collect(), call: *call }
    };
    lines.map(function).collect()
});

/// Makes a random call and returns its code.
fn call(draw: &mut Draw, list: &mut File, caller: &str) -> u32 {
    let function = &FUNCTIONS[draw.random.below(FUNCTIONS.len() as u64) as usize];
    let mut operands = draw.operands(&function.kinds);
    let shown: Vec<_> =
        operands.iter().zip(&function.kinds).map(|(&operand, kind)| draw::shown(operand, kind)).collect();
    writeln!(list, "{caller}: {}({})", function.name, shown.join(", ")).expect("a place for the list");
    operands.resize(14, 0);
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = operands[..] else { unreachable!("14 operands") };
    // SAFETY: `Draw` makes pointers that are null, or valid for the use that the function has.
    let code = unsafe { (function.call)(a, b, c, d, e, f, g, h, i, j, k, l, m, n) };
    writeln!(list, "{caller} has {code} of {}", function.name).expect("a place for the list");
    if code == 0 {
        if ["Destroy", "Unload", "Free", "Detach"].iter().any(|word| function.name.contains(word)) {
            draw.end(a);
        }
        draw.keep();
    }
    code
}

/// Makes calls in a fork of this process, all of which have to be refused.
fn fork(draw: &mut Draw, list: &mut File) {
    // SAFETY: the child only makes calls, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a call that hangs ends the child by a signal.
        unsafe { libc::alarm(60) };
        draw.shared = None;
        let refused = (0..40).all(|_| call(draw, list, "fork") == NOT_INITIALIZED);
        // SAFETY: the child ends without the handlers of its parent.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = 0;
    // SAFETY: the status is a place for it.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, status), (child, 0), "a fork has calls that are not refused, crashes or hangs");
}

/// Makes the calls of one thread.
fn calls_of_thread(seed: u64, thread: u64, calls: u64, list: &Path, made: &'static Mutex<Made>) {
    let mut list = OpenOptions::new().append(true).create(true).open(list).expect("a file");
    // A fault of a kernel ends the use of the device, so most seeds have none.
    let mut draw = Draw::new(seed << 8 | thread, made, seed.is_multiple_of(8));
    for number in 0..calls {
        let code = call(&mut draw, &mut list, &format!("thread {thread}"));
        assert_ne!(code, UNKNOWN, "a panic of the library");
        if thread == 0 && number % 500 == 499 {
            fork(&mut draw, &mut list);
        }
    }
}

/// Makes the calls of a process.
fn make_the_calls(seed_and_threads: &str, list: &Path) {
    let (seed, threads) = seed_and_threads.split_once(',').expect("SEED,THREADS");
    let (seed, threads): (u64, u64) = (seed.parse().expect("a seed"), threads.parse().expect("a number"));
    let made: &'static Mutex<Made> = Box::leak(Box::default());
    LazyLock::force(&FUNCTIONS);
    assert_eq!(crate::calls::call!(cuInit(0_u32)), 0);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || calls_of_thread(seed, thread, CALLS / threads, list, made));
        }
    });
}

/// Runs a process with a seed, and fails with its last calls where it does.
fn process(seed: u64, threads: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let [list, told] = ["calls", "told"].map(|name| folder.path().join(name));
    let this = "hostile::a_hostile_caller_gets_codes";
    let out = File::create(&told).expect("a file");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    if seed % 4 == 3 {
        command.env("WARPSTRIDE_RUN_REPORT", folder.path()).env("WARPSTRIDE_RUN_CHECKS", "all");
    }
    let mut child = command
        .args(["--exact", this, "--nocapture"])
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
        last(&list, 40)
    );
}

#[test]
fn a_hostile_caller_gets_codes() {
    match (std::env::var(SEED), std::env::var_os(LIST)) {
        (Ok(seed), Some(list)) => return make_the_calls(&seed, list.as_ref()),
        (Ok(seed), None) => {
            let (seed, threads) = seed.split_once(',').expect("SEED,THREADS");
            return process(seed.parse().expect("a seed"), threads.parse().expect("a number"));
        }
        _ => {}
    }
    // The short form has the first seeds of the long one.
    for seed in 0..short_or_long(8, 1000) {
        process(seed, 1);
        if seed % 2 == 1 {
            process(seed, 16);
        }
    }
}
