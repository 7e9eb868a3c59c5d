//! Removes a file that is not complete, and a folder of temporary files, when a signal ends the
//! program. The program then ends as by the signal.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use warpstride::io::remove_unfinished_and;

use super::terminal;

/// The folders of temporary files that are there now. A thread that makes or removes one holds the
/// lock meanwhile.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder of temporary files, which goes when it is dropped or a signal ends the program.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        watch()?;
        let mut folders = folders();
        let path = tempfile::Builder::new().prefix("warpstride-").tempdir()?.keep();
        folders.push(path.clone());
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let mut folders = folders();
        // The system keeps a folder that cannot be removed.
        let _ = fs::remove_dir_all(&self.0);
        folders.retain(|path| *path != self.0);
    }
}

/// Removes what is not complete, and calls `end` before anything else of that kind is made.
fn remove_all_and(end: impl FnOnce()) {
    remove_unfinished_and(|| {
        let folders = folders();
        for path in &*folders {
            let _ = fs::remove_dir_all(path);
        }
        end();
    });
}

/// Ends the program as one that did what was asked, from any thread and in the midst of work.
pub(super) fn end() {
    terminal::restore();
    remove_all_and(|| std::process::exit(0));
}

/// Has a signal that ends the program remove the files that are not complete and the folders, from
/// the first call on.
pub(super) fn watch() -> io::Result<()> {
    static WATCHED: OnceLock<io::Result<()>> = OnceLock::new();
    let watched = WATCHED.get_or_init(handle_signals);
    watched.as_ref().copied().map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// The signals that people and systems end programs with, for a program that passes them on. A
/// program that has them does not [`watch`].
pub(super) struct Caught(#[cfg(unix)] signal_hook::iterator::Signals);

impl Caught {
    #[cfg(unix)]
    pub(super) fn new() -> io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

        let signals = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
        signal_hook::iterator::Signals::new(signals.into_iter().filter(|&signal| !is_ignored(signal))).map(Self)
    }

    /// A console sends Ctrl-C to all of its programs, so this one only has to stay.
    #[cfg(not(unix))]
    pub(super) fn new() -> io::Result<Self> {
        ctrlc::set_handler(|| ()).map_err(io::Error::other).map(|()| Self())
    }

    /// The next signal that has come.
    pub(super) fn next(&mut self) -> Option<i32> {
        #[cfg(unix)]
        return self.0.pending().next();
        #[cfg(not(unix))]
        None
    }
}

/// Watches for the signals that people and systems end programs with, but for those that its parent
/// had it ignore, as `nohup` does. A file that grows over the limit that `ulimit -f` sets becomes
/// an error, and does not end the program.
#[cfg(unix)]
fn handle_signals() -> io::Result<()> {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    if !is_ignored(SIGXFSZ) {
        signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    }
    let signals = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGCONT];
    let mut signals = Signals::new(signals.into_iter().filter(|&signal| !is_ignored(signal)))?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGTSTP => stop(),
                SIGCONT => terminal::resume(),
                // Dies of the signal, as a parent expects: 130 to a shell, or 143.
                _ => {
                    terminal::restore();
                    remove_all_and(|| {
                        let _ = emulate_default_handler(signal);
                    });
                }
            }
        }
    })?;
    Ok(())
}

/// Stops the program, as Ctrl-Z does, with the terminal as it was. The system does not stop a
/// program that no shell could continue, so SIGSTOP would not do.
#[cfg(unix)]
fn stop() {
    use std::mem::MaybeUninit;
    use std::ptr;

    terminal::restore();
    let (mut usual, mut ours) = (MaybeUninit::<libc::sigaction>::zeroed(), MaybeUninit::<libc::sigaction>::zeroed());
    // SAFETY: zeros are a value of this struct of numbers and sets of bits, and mean the default
    // action without flags.
    let usual = unsafe { usual.assume_init_mut() };
    usual.sa_sigaction = libc::SIG_DFL;
    // SAFETY: both pointers are to places of their type.
    if unsafe { libc::sigaction(libc::SIGTSTP, usual, ours.as_mut_ptr()) } == 0 {
        // SAFETY: the default action runs no code of this program. It continues here.
        unsafe { libc::raise(libc::SIGTSTP) };
        // SAFETY: the first call wrote the action that it replaced.
        unsafe { libc::sigaction(libc::SIGTSTP, ours.as_ptr(), ptr::null_mut()) };
    }
    terminal::resume();
}

/// Returns whether the program was started with a signal ignored.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action nothing changes, and the old one is written to a place of its
    // type.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: it was written, and where it was not it is zeros, which are a value of this struct of
    // numbers and sets of bits.
    let action = unsafe { action.assume_init() };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Watches for Ctrl-C, a closed window and the end of the session.
#[cfg(not(unix))]
fn handle_signals() -> io::Result<()> {
    /// As of a program that does not handle Ctrl-C: STATUS_CONTROL_C_EXIT.
    const INTERRUPTED: i32 = 0xc000_013a_u32 as i32;
    ctrlc::set_handler(|| remove_all_and(|| std::process::exit(INTERRUPTED))).map_err(io::Error::other)
}
