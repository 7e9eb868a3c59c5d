//! `warpstride launch -n N COMMAND`: starts the processes of a job on this host, passes their lines
//! on, and ends all when one fails.

use std::collections::hash_map::RandomState;
use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use super::args::Launch;
use super::output::Output;
use super::process;
use super::refusal::refuse;
use super::signals::Caught;
use super::terminal;

mod lines;

use lines::{Lines, To};

/// The time that the other ranks have to end after one has failed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// The time between two looks at the processes.
const ROUND: Duration = Duration::from_millis(5);

/// The variables by which an outer launcher would send the ranks elsewhere.
const OF_OTHERS: [&str; 6] = [
    "WARPSTRIDE_RANK",
    "WARPSTRIDE_RANKS",
    "WARPSTRIDE_LOCAL_RANK",
    "WARPSTRIDE_ADDRESS",
    "WARPSTRIDE_FILE",
    "TORCHELASTIC_USE_AGENT_STORE",
];

/// The failure of a program, whose status the program ends with.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) sentence: String,
    pub(super) status: u8,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Failed {}

pub(super) fn run(args: &Launch, output: &Output) -> Result<()> {
    let Some((program, words)) = args.command.split_first() else {
        refuse!(InvalidArgument, "a command is missing; name the program that each rank runs")
    };
    check_program(program)?;
    let mut caught = Caught::new().context("cannot watch for signals")?;
    let mut job = Job { ranks: Vec::new(), first: None, ends: None };
    let (port, token) = (free_port()?, token());
    let lines = Lines::new();
    for rank in 0..args.ranks {
        let mut command = process::command(program);
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        set_variables(&mut command, rank, args.ranks, port, &token);
        let started = process::start(&mut command);
        let mut child =
            started.with_context(|| format!("cannot start rank {rank}; raise the limits (`ulimit -u -n`)"))?;
        let of_first = rank == 0 && !output.is_json();
        lines.pass(child.stdout.take(), if of_first { To::Output } else { To::Errors(rank) })?;
        lines.pass(child.stderr.take(), To::Errors(rank))?;
        job.ranks.push(Rank { child, status: None });
    }
    while !job.has_ended() {
        while let Some(signal) = caught.next() {
            job.forward(signal);
        }
        job.look();
        job.end_late();
        thread::sleep(ROUND);
    }
    lines.finish();
    match job.first {
        Some((rank, status)) => {
            let sentence = format!("rank {rank} of {} {}", args.ranks, ending(status));
            Err(Failed { sentence, status: exit_status(status) }.into())
        }
        None if output.is_json() => output.result("", json!({ "ranks": args.ranks })),
        None => Ok(()),
    }
}

/// Fails if there is no program of this name.
pub(super) fn check_program(program: &OsStr) -> Result<()> {
    let shown = program.to_string_lossy();
    if !cfg!(unix) {
        // The system has rules of its own for names.
        return Ok(());
    }
    if Path::new(program).components().count() > 1 {
        if !Path::new(program).is_file() {
            refuse!(Io, "there is no program {shown}; check its path");
        }
        return Ok(());
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    if program.is_empty() || !env::split_paths(&folders).any(|folder| folder.join(program).is_file()) {
        refuse!(Io, "there is no program {shown} in the folders of PATH; check its name, or give its path");
    }
    Ok(())
}

fn set_variables(command: &mut Command, rank: usize, ranks: usize, port: u16, token: &str) {
    OF_OTHERS.iter().for_each(|name| _ = command.env_remove(name));
    for (name, value) in [("RANK", rank), ("WORLD_SIZE", ranks), ("LOCAL_RANK", rank), ("LOCAL_WORLD_SIZE", ranks)] {
        command.env(name, value.to_string());
    }
    command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string()).env("WARPSTRIDE_TOKEN", token);
}

/// A port that is free now. Rank 0 takes it soon, and tries again where another program was faster.
fn free_port() -> Result<u16> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    Ok(port.context("cannot find a free port of this host")?.port())
}

/// A word that other jobs do not have: the keys of the standard library's hash maps are random.
fn token() -> String {
    let draw = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", draw(), draw())
}

struct Rank {
    child: Child,
    status: Option<ExitStatus>,
}

struct Job {
    ranks: Vec<Rank>,
    /// The first rank that failed.
    first: Option<(usize, ExitStatus)>,
    /// The time since which the ranks have to end, and what they were sent then.
    ends: Option<(Instant, Sent)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Sent {
    Nothing,
    /// A signal that this program received.
    Forwarded,
    Term,
    Kill,
}

impl Job {
    fn has_ended(&self) -> bool {
        self.ranks.iter().all(|rank| rank.status.is_some())
    }

    /// Looks which ranks have ended.
    fn look(&mut self) {
        for at in 0..self.ranks.len() {
            let rank = &mut self.ranks[at];
            let (None, Ok(Some(status))) = (rank.status, rank.child.try_wait()) else { continue };
            rank.status = Some(status);
            process::end_rest(&mut rank.child);
            if !status.success() {
                self.fail(at, status);
            }
        }
    }

    /// Says which rank has failed, unless a signal was sent to it.
    fn fail(&mut self, at: usize, status: ExitStatus) {
        let left = self.ranks.iter().filter(|rank| rank.status.is_none()).count();
        let sent = self.ends.map(|(_, sent)| sent);
        if sent.is_none() && left > 0 {
            terminal::say(&format!("rank {at} {}; the others have {} s to end\n", ending(status), GRACE.as_secs()));
        } else if sent == Some(Sent::Nothing) {
            terminal::say(&format!("rank {at} {}\n", ending(status)));
        }
        self.first.get_or_insert((at, status));
        self.ends.get_or_insert((Instant::now(), Sent::Nothing));
    }

    /// Passes on a signal that this program received, and has the ranks end.
    fn forward(&mut self, signal: i32) {
        self.send(|child| process::signal(child, signal));
        if self.ends.is_none_or(|(_, sent)| sent == Sent::Nothing) {
            self.ends = Some((Instant::now(), Sent::Forwarded));
        }
    }

    /// Ends ranks that do not end by themselves.
    fn end_late(&mut self) {
        let Some((_, sent)) = self.ends.filter(|(since, _)| since.elapsed() >= GRACE) else { return };
        let next = if matches!(sent, Sent::Nothing | Sent::Forwarded) { Sent::Term } else { Sent::Kill };
        self.ends = Some((Instant::now(), next));
        self.send(if next == Sent::Term { process::terminate } else { process::kill });
    }

    fn send(&mut self, act: impl Fn(&mut Child)) {
        for rank in self.ranks.iter_mut().filter(|rank| rank.status.is_none()) {
            act(&mut rank.child);
        }
    }
}

/// The end of a process, as the end of a sentence that begins with its name.
pub(super) fn ending(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = signal_hook::low_level::signal_name(signal).map(|name| format!(" ({name})"));
        return format!("was ended by signal {signal}{}", name.unwrap_or_default());
    }
    status.code().map_or_else(|| "failed".into(), |code| format!("ended with status {code}"))
}

/// The status that a shell has for such an end.
pub(super) fn exit_status(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(1);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn an_end_has_the_status_that_a_shell_has_for_it() {
        let of = |raw| {
            let status = std::os::unix::process::ExitStatusExt::from_raw(raw);
            (ending(status), exit_status(status))
        };
        assert_eq!(of(3 << 8), ("ended with status 3".into(), 3));
        assert_eq!(of(9), ("was ended by signal 9 (SIGKILL)".into(), 137));
    }

    #[test]
    fn tokens_differ() {
        assert_ne!(token(), token());
    }
}
