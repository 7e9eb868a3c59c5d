//! The lines of the ranks, which keep whole on their way.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::super::terminal;

/// The most bytes that are kept of a line without an end.
const MOST: u64 = 64 << 10;
/// The time in which the last lines are read when all ranks have ended. A process that has left the
/// group of its rank may hold the streams for longer.
const LAST_LINES: Duration = Duration::from_secs(5);

/// The place that lines go to.
#[derive(Clone, Copy)]
pub(super) enum To {
    /// Standard output, as they are.
    Output,
    /// Standard error, behind the rank that they come from.
    Errors(usize),
}

/// Threads that pass lines on. The channel closes when all have ended.
pub(super) struct Lines(Sender<()>, Receiver<()>);

impl Lines {
    pub(super) fn new() -> Self {
        let (open, ended) = mpsc::channel();
        Self(open, ended)
    }

    /// Passes the lines of a stream on, to its end.
    pub(super) fn pass(&self, stream: Option<impl Read + Send + 'static>, to: To) -> Result<()> {
        let Some(stream) = stream else { return Ok(()) };
        let open = self.0.clone();
        let pass = move || {
            pass(BufReader::new(stream), |line| match to {
                To::Output => terminal::pass_output(line),
                To::Errors(rank) => terminal::pass_errors(&marked(rank, line)),
            });
            drop(open);
        };
        let started = thread::Builder::new().name("lines".into()).spawn(pass);
        started.context("the system does not start a thread for the lines of a rank").map(drop)
    }

    /// Waits for the last lines.
    pub(super) fn finish(self) {
        let Self(open, ended) = self;
        drop(open);
        let begin = Instant::now();
        while ended.recv_timeout(LAST_LINES.saturating_sub(begin.elapsed())).is_ok() {}
    }
}

/// Calls `write` with each line and its end, or with the pieces of a long one.
fn pass(mut stream: impl BufRead, write: impl Fn(&[u8])) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match stream.by_ref().take(MOST).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) => write(&line),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// A line behind its rank, with an end.
fn marked(rank: usize, line: &[u8]) -> Vec<u8> {
    let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
    [format!("[rank {rank}] ").as_bytes(), line, end].concat()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn lines_are_whole_and_the_last_one_gets_its_end() {
        let lines = RefCell::new(Vec::new());
        pass(&b"one\ntwo\xff\n\nlast"[..], |line| lines.borrow_mut().push(marked(3, line)));
        let lines = lines.into_inner();
        assert_eq!(lines, [&b"[rank 3] one\n"[..], b"[rank 3] two\xff\n", b"[rank 3] \n", b"[rank 3] last\n"]);
    }

    #[test]
    fn a_line_without_an_end_is_passed_in_pieces() {
        let pieces = RefCell::new(Vec::new());
        pass(&vec![b'x'; MOST as usize + 1][..], |piece| pieces.borrow_mut().push(piece.len()));
        assert_eq!(pieces.into_inner(), [MOST as usize, 1]);
    }
}
