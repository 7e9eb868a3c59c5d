//! Programs that must end in time, and with this one.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group};

/// The most bytes that a program's answer has.
const MOST: u64 = 64 << 10;
/// The time in which the last bytes of a program that has ended are read. A busy machine may let
/// the thread that reads wait for seconds, and a child of the program may hold its streams longer.
const LAST_BYTES: Duration = Duration::from_secs(10);
/// The line that ends a text whose stream did not end in time.
const OPEN: &str = "(the stream is still open, and more may follow)\n";
/// The time for an answer that takes milliseconds, but for seconds where the machine is busy.
const ANSWER: Duration = Duration::from_secs(60);

/// Runs a program as the leader of a group of processes. A watcher in the group waits for the end
/// of a pipe, which is standard input before, and kills the group. Without a line in the pipe, the
/// process that guards the program has died, and the watcher also removes the folder. Signals that
/// the group is sent leave the watcher there.
const GUARDED: &str = "exec 3<&0 </dev/null; trap 'exit 125' EXIT; \
     { trap '' HUP INT QUIT TERM; read -r x <&3 || rm -rf -- \"$1\"; kill -9 0; } >/dev/null 2>&1 & \
     trap - EXIT; exec 3<&-; shift; exec \"$0\" \"$@\"";
/// Bounds the memory of a program, which a hostile source would fill.
const BOUNDED: &str = "ulimit -v 8388608 2>/dev/null; ";
/// The status of a shell that does not find a program.
const NOT_FOUND: i32 = 127;
/// The status of the shell for which the system does not start the watcher.
const NOT_STARTED: i32 = 125;

/// The end of a program, with the text that it printed.
pub(super) struct Ended {
    /// `None` if it took longer than the limit.
    pub(super) status: Option<ExitStatus>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs a program to its end, or to a limit of time, and takes the first `most` bytes of each of
/// its streams.
///
/// # Errors
///
/// If it does not start, or no thread starts that reads its streams.
pub(super) fn run(mut command: Command, limit: Duration, most: u64) -> io::Result<Ended> {
    let mut child = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let stdout = child.stdout.take().map(|out| Reading::new(out, most)).transpose();
    let stderr = child.stderr.take().map(|out| Reading::new(out, most)).transpose();
    let ((stdout, stderr), status) = match stdout.and_then(|stdout| Ok((stdout, stderr?))) {
        Ok(streams) => (streams, wait(&mut child, limit)),
        Err(error) => {
            wait(&mut child, Duration::ZERO);
            return Err(error);
        }
    };
    let [stdout, stderr] =
        [stdout, stderr].map(|reading| reading.map_or_else(String::new, |reading| reading.text(LAST_BYTES)));
    status.map_or(Ok(()), |status| check_started(status, &stderr))?;
    Ok(Ended { status, stdout, stderr })
}

/// Fails if this is the end of the shell that guards a program, and not of the program.
pub(super) fn check_started(status: ExitStatus, stderr: &str) -> io::Result<()> {
    match status.code() {
        Some(NOT_FOUND) => Err(io::ErrorKind::NotFound.into()),
        Some(NOT_STARTED) => Err(io::Error::new(io::ErrorKind::WouldBlock, stderr.trim())),
        _ => Ok(()),
    }
}

/// A stream that a thread reads, in pieces. The channel closes at the end of the stream, or of the
/// bytes that are kept.
struct Reading(Receiver<Vec<u8>>);

impl Reading {
    /// Keeps the first `most` bytes of a stream, and reads the others too, so that the program does
    /// not wait for its reader.
    fn new(mut stream: impl Read + Send + 'static, most: u64) -> io::Result<Self> {
        let (pieces, reading) = mpsc::channel();
        thread::Builder::new().name("reading".into()).spawn(move || {
            let (mut kept, mut piece) = (stream.by_ref().take(most), [0; 8 << 10]);
            loop {
                match kept.read(&mut piece) {
                    Ok(0) => break,
                    // The reader may have gone, and the program goes on.
                    Ok(read) => _ = pieces.send(piece[..read].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            drop(pieces);
            let _ = io::copy(&mut stream, &mut io::sink());
        })?;
        Ok(Self(reading))
    }

    /// Returns the text that has come when the stream ends, or after this time. In the latter case
    /// the text ends with a line that says so.
    fn text(self, last_bytes: Duration) -> String {
        let (begin, mut bytes) = (Instant::now(), Vec::new());
        let is_open = loop {
            match self.0.recv_timeout(last_bytes.saturating_sub(begin.elapsed())) {
                Ok(piece) => bytes.extend(piece),
                Err(end) => break end == RecvTimeoutError::Timeout,
            }
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        if is_open { text + line_end + OPEN } else { text }
    }
}

/// Returns the standard output of a short program, with replacement characters for bytes that are
/// not UTF-8. The inner error is the end of a sentence about a program that is not there, fails, or
/// never ends.
///
/// # Errors
///
/// If the system starts no process or thread.
pub(super) fn output(command: Command) -> io::Result<Result<String, String>> {
    let ended = match run(command, ANSWER, MOST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Err(format!("does not start: {error}"))),
        ended => ended?,
    };
    Ok(match ended.status {
        Some(status) if status.success() => Ok(ended.stdout),
        Some(status) => Err(format!("fails with {status}: {}", ended.stderr.trim())),
        None => Err("does not end".into()),
    })
}

/// Starts a program of [`command`] or [`bounded`] with nothing to read. Together with all that it
/// starts, it ends when the child is dropped and when this process ends, also by a signal that
/// cannot be handled.
pub(super) fn start(command: &mut Command) -> io::Result<Child> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    // The pipe that the watcher waits for. The system closes it where this process does not.
    command.stdin(Stdio::piped()).spawn()
}

/// Waits for the end of a program, and ends what it left running. Kills it after the limit, and
/// then returns `None`.
pub(super) fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if begin.elapsed() < limit => thread::sleep(Duration::from_millis(2)),
            // A program that cannot be asked, or killed, is left to the system.
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    end_rest(child);
    status
}

/// Ends what a program left running when it ended.
pub(super) fn end_rest(child: &mut Child) {
    if let Some(mut watcher) = child.stdin.take() {
        // A watcher that has ended already reads no line.
        let _ = watcher.write_all(b"\n");
    }
}

/// Sends a signal to a program of [`start`] that has not been waited for, and to all that it has
/// started. Elsewhere than on Unix a console does so itself.
pub(super) fn signal(child: &mut Child, signal: i32) {
    #[cfg(unix)]
    if let (Some(group), Some(signal)) =
        (i32::try_from(child.id()).ok().and_then(Pid::from_raw), Signal::from_named_raw(signal))
    {
        // A group that has ended needs no signal.
        let _ = kill_process_group(group, signal);
    }
    #[cfg(not(unix))]
    let _ = (child, signal);
}

/// Asks such a program to end. Only Unix can ask; elsewhere this ends it.
pub(super) fn terminate(child: &mut Child) {
    #[cfg(unix)]
    signal(child, Signal::TERM.as_raw());
    #[cfg(not(unix))]
    kill(child);
}

/// Ends such a program.
pub(super) fn kill(child: &mut Child) {
    #[cfg(unix)]
    signal(child, Signal::KILL.as_raw());
    #[cfg(not(unix))]
    let _ = child.kill();
}

/// A program that [`start`] guards.
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    guarded("", program.as_ref(), Path::new(""))
}

/// The same in bounded memory.
pub(super) fn bounded(program: impl AsRef<OsStr>) -> Command {
    bounded_in(Path::new(""), program)
}

/// The same with a folder of its own, which goes if this process dies before the program has ended.
pub(super) fn bounded_in(folder: &Path, program: impl AsRef<OsStr>) -> Command {
    guarded(BOUNDED, program.as_ref(), folder)
}

fn guarded(before: &str, program: &OsStr, folder: &Path) -> Command {
    if cfg!(unix) {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("{before}{GUARDED}")).arg(program).arg(folder);
        command
    } else {
        Command::new(program)
    }
}

#[cfg(test)]
mod tests;
