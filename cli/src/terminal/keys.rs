//! Keys that a person presses while a command waits.

use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The byte that Ctrl-D types.
pub(crate) const END_OF_INPUT: u8 = 4;
/// It begins the bytes of a key such as an arrow, and stands for those that have no name here.
const ESCAPE: u8 = 0x1b;
/// The arrow up or Page Up, and the arrow down or Page Down. No key begins with such a byte.
pub(crate) const UP: u8 = 0x80;
pub(crate) const DOWN: u8 = 0x81;

/// The bytes that continue the last key: those of an arrow follow an escape (ECMA-48), and those of
/// a letter outside of ASCII its first byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// No byte does.
    Whole,
    Escape,
    /// Bytes up to the final one of a control sequence, with its first parameter byte, or 0.
    Sequence(u8),
    /// One byte, of a keypad's key.
    Keypad,
}

impl Last {
    /// Takes the next byte, and returns the key that it ends or begins. The key Escape alone does
    /// not count, because the next byte alone tells it from an arrow.
    fn takes(&mut self, byte: u8) -> Option<u8> {
        let (next, key) = match (*self, byte) {
            (Self::Escape, b'[') => (Self::Sequence(0), None),
            (Self::Escape, b'O') => (Self::Keypad, None),
            (Self::Sequence(0), 0x20..=0x3f) => (Self::Sequence(byte), None),
            (Self::Sequence(first), 0x20..=0x3f) => (Self::Sequence(first), None),
            (Self::Sequence(first), 0x40..=0x7e) => (Self::Whole, Some(named(first, byte))),
            (Self::Keypad, _) => (Self::Whole, Some(named(0, byte))),
            (_, ESCAPE) => (Self::Escape, None),
            (_, 0x80..=0xbf) => (Self::Whole, None),
            _ => (Self::Whole, Some(byte)),
        };
        *self = next;
        key
    }
}

/// The key of a sequence by its first parameter byte and its final one.
fn named(first: u8, last: u8) -> u8 {
    match (first, last) {
        (_, b'A') | (b'5', b'~') => UP,
        (_, b'B') | (b'6', b'~') => DOWN,
        _ => ESCAPE,
    }
}

/// The keys of standard input, each as it is pressed; on Windows, once Enter follows it.
pub(crate) struct Keys {
    pressed: Receiver<u8>,
    /// True while the command works, and takes the keys alone that end it.
    is_busy: Arc<AtomicBool>,
    end: fn(),
}

/// The time in which the command works; it ends when this is dropped.
pub(crate) struct Busy<'a>(&'a Keys);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.is_busy.store(false, Ordering::SeqCst);
    }
}

/// Returns whether a key ends the command.
fn is_end(key: u8) -> bool {
    matches!(key, b'q' | END_OF_INPUT)
}

impl Keys {
    /// Reads keys from now on, if standard input is a terminal. While the command works, the key q
    /// and Ctrl-D call `end` at once, and other keys do nothing.
    pub(crate) fn of_terminal(end: fn()) -> Option<Self> {
        if !io::stdin().is_terminal() {
            return None;
        }
        unbuffered::begin();
        let (press, pressed) = mpsc::channel();
        let is_busy = Arc::new(AtomicBool::new(false));
        let keys = Self { pressed, is_busy: Arc::clone(&is_busy), end };
        let read = move || {
            let mut last = Last::Whole;
            for key in io::stdin().lock().bytes().map_while(Result::ok).filter_map(|byte| last.takes(byte)) {
                match is_busy.load(Ordering::SeqCst) {
                    true if is_end(key) => end(),
                    true => {}
                    false if press.send(key).is_err() => return,
                    false => {}
                }
            }
        };
        // Without a thread there are no keys, and the command works without them.
        thread::Builder::new().name("keys".into()).spawn(read).ok().map(|_| keys)
    }

    /// The command works from now on. A key that was pressed just before counts as one pressed now.
    pub(crate) fn busy(&self) -> Busy<'_> {
        self.is_busy.store(true, Ordering::SeqCst);
        if self.pressed.try_iter().any(is_end) {
            (self.end)();
        }
        Busy(self)
    }

    /// The next key, if one is pressed within a time; [`END_OF_INPUT`] where the terminal is gone.
    /// [`UP`] and [`DOWN`] are keys of several bytes; another one is its first byte.
    pub(crate) fn within(&self, time: Duration) -> Option<u8> {
        match self.pressed.recv_timeout(time) {
            // Elsewhere keys come with Enter.
            Ok(b'\r' | b'\n') if cfg!(not(unix)) => None,
            Ok(key) => Some(key),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(END_OF_INPUT),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        unbuffered::end();
    }
}

/// Gives the terminal back as it was. A signal that ends or stops the program calls it, too.
pub(crate) fn restore() {
    unbuffered::pause();
}

/// Takes the keys one by one again, where the program did before a signal stopped it.
#[cfg(unix)]
pub(crate) fn resume() {
    unbuffered::resume();
}

#[cfg(unix)]
mod unbuffered {
    use std::io;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::process::getpgrp;
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

    /// The modes of the terminal before, while keys are read.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    fn before() -> MutexGuard<'static, Option<Termios>> {
        BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets modes, but not in the background. There the shell has the terminal, and the system
    /// would stop this program, so that `kill %1` could not end it after Ctrl-Z. A terminal that
    /// does not control the program has no foreground.
    fn set(modes: &Termios) {
        if tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground != getpgrp()) {
            return;
        }
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, modes);
    }

    pub(super) fn begin() {
        *before() = tcgetattr(io::stdin()).ok();
        resume();
    }

    /// Has the terminal give each key at once, and not show it. Ctrl-C stays a signal.
    pub(super) fn resume() {
        if let Some(mut modes) = before().clone() {
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            // Else keys come with Enter.
            set(&modes);
        }
    }

    pub(super) fn pause() {
        if let Some(before) = &*before() {
            // A terminal that is gone needs no modes.
            set(before);
        }
    }

    pub(super) fn end() {
        pause();
        *before() = None;
    }
}

/// Elsewhere the modes stay.
#[cfg(not(unix))]
mod unbuffered {
    pub(super) fn begin() {}

    pub(super) fn pause() {}

    pub(super) fn end() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_several_bytes_are_one_key_each() {
        let keys = |bytes: &[u8]| {
            let mut last = Last::Whole;
            bytes.iter().filter_map(|&byte| last.takes(byte)).collect::<Vec<_>>()
        };
        assert_eq!(keys(b"\x1b[Aq\x1b[B\x1bOB"), [UP, b'q', DOWN, DOWN], "arrows");
        assert_eq!(keys(b"\x1b[5~\x1b[6~\x1b[3~"), [UP, DOWN, ESCAPE], "Page Up, Page Down and Delete");
        assert_eq!(keys(b"\x1b[1;5Ch"), *b"\x1bh", "an arrow with Ctrl");
        assert_eq!(keys(b"\x1bOqn"), *b"\x1bn", "a key of the keypad");
        assert_eq!(keys("\u{e9}q".as_bytes()), [0xc3, b'q'], "a letter of two bytes");
        assert_eq!(keys(b"\x1bq\x1b\x1b[Bh"), [b'q', DOWN, b'h'], "the key Escape itself");
    }
}
