//! Keys that a person presses while a command waits.

use std::io::{self, IsTerminal, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The keys of standard input, each as it is pressed; on Windows, once Enter follows it.
pub(crate) struct Keys {
    pressed: Receiver<u8>,
}

impl Keys {
    /// Reads keys from now on, if standard input is a terminal.
    pub(crate) fn of_terminal() -> Option<Self> {
        if !io::stdin().is_terminal() {
            return None;
        }
        unbuffered::begin();
        let (press, pressed) = mpsc::channel();
        let read = move || {
            for key in io::stdin().lock().bytes().map_while(Result::ok) {
                if press.send(key).is_err() {
                    return;
                }
            }
        };
        // Without a thread there are no keys, and the command works without them.
        let _ = thread::Builder::new().name("keys".into()).spawn(read);
        Some(Self { pressed })
    }

    /// The next key, if one is pressed within a time.
    pub(crate) fn within(&self, time: Duration) -> Option<u8> {
        match self.pressed.recv_timeout(time) {
            Ok(key) => Some(key),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(time);
                None
            }
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back as it was. A signal that ends the program calls it, too.
pub(crate) fn restore() {
    unbuffered::end();
}

#[cfg(unix)]
mod unbuffered {
    use std::io;
    use std::sync::{Mutex, PoisonError};

    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// The modes of the terminal before.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    /// Has the terminal give each key at once, and not show it. Ctrl-C stays a signal.
    pub(super) fn begin() {
        let Ok(before) = tcgetattr(io::stdin()) else { return };
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        if tcsetattr(io::stdin(), OptionalActions::Now, &modes).is_ok() {
            *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        }
    }

    pub(super) fn end() {
        if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A terminal that is gone needs no modes.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
    }
}

/// Elsewhere the modes stay.
#[cfg(not(unix))]
mod unbuffered {
    pub(super) fn begin() {}

    pub(super) fn end() {}
}
