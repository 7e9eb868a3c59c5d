//! Programs that must end in time.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The most bytes that a program's answer has.
const MOST: u64 = 64 << 10;
/// The time in which the last bytes of a program that has ended are read. A busy machine may let
/// the thread that reads wait for seconds, and a child of the program may hold its streams longer.
const LAST_BYTES: Duration = Duration::from_secs(10);
/// The line that ends a text whose stream did not end in time.
const OPEN: &str = "(the stream is still open, and more may follow)\n";
/// The time for an answer that takes milliseconds, but for seconds where the machine is busy.
const ANSWER: Duration = Duration::from_secs(60);

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
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
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
    Ok(Ended { status, stdout, stderr })
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
/// not UTF-8; `None` if it does not start, fails, or never ends.
pub(super) fn output(command: Command) -> Option<String> {
    let Ended { status, stdout, .. } = run(command, ANSWER, MOST).ok()?;
    status?.success().then_some(stdout)
}

/// Waits for the end; kills the program after the limit, and then returns `None`.
pub(super) fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begin.elapsed() < limit => thread::sleep(Duration::from_millis(2)),
            // A program that cannot be asked, or killed, is left to the system.
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// A program in bounded memory, which a hostile source would fill.
pub(super) fn bounded(program: &Path) -> Command {
    if cfg!(unix) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "ulimit -v 8388608 2>/dev/null; exec \"$0\" \"$@\""]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_though_its_stream_stays_open() {
        let (pieces, reading) = mpsc::channel();
        pieces.send(b"text".to_vec()).unwrap();
        assert_eq!(Reading(reading).text(Duration::ZERO), format!("text\n{OPEN}"));
    }

    #[test]
    fn text_ends_at_its_most_bytes() {
        let reading = Reading::new(&b"text and more"[..], 4).unwrap();
        assert_eq!(reading.text(ANSWER), "text");
    }
}
