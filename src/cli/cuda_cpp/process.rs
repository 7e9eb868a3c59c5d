//! Programs that must end in time.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The most bytes that a program's answer has.
const MOST: u64 = 64 << 10;

/// The standard output of a short program; `None` if it does not start, fails, or takes longer.
pub(super) fn output(mut command: Command, limit: Duration) -> Option<String> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let status = wait(&mut child, limit)?;
    let mut text = String::new();
    // What the answers here need fits into a pipe, so that the program can end before it is read.
    child.stdout.take()?.take(MOST).read_to_string(&mut text).ok()?;
    status.success().then_some(text)
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
