//! What a signal does to a file that is not complete: the file goes, and the program ends as by the
//! signal.

use std::io;
use std::sync::{Mutex, PoisonError};

use warpstride::io::remove_unfinished_and;

/// Has a signal that ends the program remove the files that are not complete, from the first call
/// on.
pub(super) fn watch() -> io::Result<()> {
    static IS_WATCHED: Mutex<bool> = Mutex::new(false);
    let mut is_watched = IS_WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_watched {
        handle_signals()?;
        *is_watched = true;
    }
    Ok(())
}

/// Watches for the signals that end the program, but for those that its parent had it ignore, as
/// `nohup` does. A file that grows over the limit that `ulimit -f` sets becomes an error and no
/// death.
#[cfg(unix)]
fn handle_signals() -> io::Result<()> {
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, mpsc};

    use signal_hook::consts::{
        SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
    };
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    if !is_ignored(SIGXFSZ) {
        signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    }
    let deadly = [SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU].into_iter();
    let mut signals = Signals::new(deadly.filter(|&signal| !is_ignored(signal)))?;
    let (started, has_started) = mpsc::channel();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let _ = started.send(());
        for signal in signals.forever() {
            // Dies of the signal, as whoever waits for this program expects: 130 to a shell, or
            // 143.
            remove_unfinished_and(|| {
                let _ = emulate_default_handler(signal);
            });
        }
    })?;
    // The thread is there before the first file is.
    let _ = has_started.recv();
    Ok(())
}

/// Whether the program was started with a signal ignored.
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
#[cfg(windows)]
fn handle_signals() -> io::Result<()> {
    /// As of a program that does not handle Ctrl-C: STATUS_CONTROL_C_EXIT.
    const INTERRUPTED: i32 = 0xc000_013a_u32 as i32;
    ctrlc::set_handler(|| remove_unfinished_and(|| std::process::exit(INTERRUPTED))).map_err(io::Error::other)
}

/// Elsewhere nothing tells in time.
#[cfg(not(any(unix, windows)))]
fn handle_signals() -> io::Result<()> {
    Ok(())
}
