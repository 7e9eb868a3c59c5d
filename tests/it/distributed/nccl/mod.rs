//! Ranks that are processes, over a stub of NCCL: how they start, fail and end.
//!
//! The stub (`tests/nccl/stub.c`) moves no bytes, so no values are compared.

mod child;
mod discovery;
mod failures;
mod starts;
mod stub;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use stub::Variant;
use tempfile::TempDir;

/// The variable has the task of a child: see [`child::child`].
const TASK: &str = "WARPSTRIDE_CHILD_OF_TEST";
/// Lines of a child that the parent reads begin so.
const MARK: &str = "@@ ";

/// Milliseconds that are long enough for anything that ends by itself.
const AMPLE: u64 = 240_000;

/// The way by which the ranks of a job meet.
enum Meeting {
    File,
    Tcp,
}

/// Some processes that meet.
struct Job {
    ranks: usize,
    place: String,
    token: String,
    folder: TempDir,
}

/// A process. It is killed when this is dropped.
struct Rank {
    child: Child,
    lines: BufReader<ChildStdout>,
}

/// The last words of a process.
#[derive(Debug, Clone)]
struct Outcome {
    /// `ok`, or the kind of an error.
    kind: String,
    /// The words that the task found, or the error.
    words: String,
    /// The seconds that the last call took.
    seconds: f64,
}

impl Job {
    fn new(ranks: usize, meeting: &Meeting) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let folder = tempfile::tempdir().expect("a folder");
        let place = match meeting {
            Meeting::File => format!("file:{}", folder.path().join("meeting").display()),
            Meeting::Tcp => {
                let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
                format!("tcp:{}", free.local_addr().expect("its address"))
            }
        };
        // Ranks of another test that has the port next are refused.
        let token = format!("{} {}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        Self { ranks, place, token, folder }
    }

    /// Starts a rank with a task, a deadline in milliseconds and variables.
    fn start(&self, rank: usize, task: &str, deadline: u64, variables: &[(&str, &str)]) -> Rank {
        let library = stub::compiled(Variant::Whole);
        let task = format!("{task} {rank} {} {deadline} {}", self.ranks, self.place);
        let mut command = command(&task);
        command.env("WARPSTRIDE_NCCL", library).env("TMPDIR", self.folder.path());
        command.env("WARPSTRIDE_TOKEN", &self.token).envs(variables.iter().copied());
        Rank::start(command)
    }

    /// Runs the same task on all ranks. `variables` has those of a rank.
    fn run<'a>(&self, task: &str, deadline: u64, variables: impl Fn(usize) -> Vec<(&'a str, &'a str)>) -> Vec<Outcome> {
        let start = |rank| self.start(rank, task, deadline, &variables(rank));
        let started: Vec<Rank> = (0..self.ranks).map(start).collect();
        started.into_iter().map(Rank::end).collect()
    }
}

/// A process of this binary that does a task. Nothing of this process's environment is a setting of
/// NCCL.
fn command(task: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test's binary"));
    command.args(["--exact", "distributed::nccl::child::child", "--nocapture", "--test-threads=1"]);
    for name in ["WARPSTRIDE_NCCL", "NCCL_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"] {
        command.env_remove(name);
    }
    command.env(TASK, task).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

impl Rank {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, lines }
    }

    /// Reads the child's next word. It is `None` if the child ended before.
    fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).expect("lines") == 0 {
                return None;
            }
            // The test harness may have begun the line.
            if let Some((_, word)) = line.trim_end().split_once(MARK) {
                return Some(word.to_owned());
            }
        }
    }

    /// Waits until the child has ended, and returns its last words.
    #[track_caller]
    fn end(mut self) -> Outcome {
        let mut last = None;
        while let Some(word) = self.hear() {
            last = Some(word);
        }
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "a child ended by {status} after {last:?}");
        let last = last.expect("last words");
        let words: Vec<&str> = last.splitn(3, ' ').collect();
        let [kind, seconds, words] = words[..] else { panic!("{last}") };
        Outcome { kind: kind.into(), words: words.into(), seconds: seconds.parse().expect("seconds") }
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Outcome {
    #[track_caller]
    fn is(&self, kind: &str, words: &[&str]) {
        assert_eq!(self.kind, kind, "{self:?}");
        for part in words {
            assert!(self.words.contains(part), "{part}: {self:?}");
        }
    }
}

/// Runs a task that has no rank, in an environment.
fn alone(task: &str, variables: &[(&str, PathBuf)]) -> Outcome {
    let mut command = command(task);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    Rank::start(command).end()
}
