//! Keys that a person presses while a command waits.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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
    queue: Arc<Queue>,
    end: fn(),
}

/// The keys that nothing has taken yet, between the thread that reads them and the command.
#[derive(Default)]
struct Queue {
    pressed: Mutex<Pressed>,
    has_more: Condvar,
}

#[derive(Default)]
struct Pressed {
    keys: VecDeque<u8>,
    /// True while the command works, and takes the keys alone that end it.
    is_busy: bool,
    /// True where no keys come any more.
    is_over: bool,
}

/// The time in which the command works; it ends when this is dropped.
pub(crate) struct Busy<'a>(&'a Keys);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.queue.lock().is_busy = false;
    }
}

/// Returns whether a key ends the command.
fn is_end(key: u8) -> bool {
    matches!(key, b'q' | END_OF_INPUT)
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Pressed> {
        self.pressed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a key that is pressed, and returns whether it ends the command at once. While the
    /// command works, it drops other keys.
    fn press(&self, key: u8) -> bool {
        let mut pressed = self.lock();
        if pressed.is_busy {
            return is_end(key);
        }
        pressed.keys.push_back(key);
        self.has_more.notify_one();
        false
    }

    /// The command works from now on. Returns whether one of the keys that were pressed before ends
    /// it. The others stay until it has done its work.
    fn begin_work(&self) -> bool {
        let mut pressed = self.lock();
        pressed.is_busy = true;
        pressed.keys.iter().any(|key| is_end(*key))
    }

    /// No keys come any more.
    fn close(&self) {
        self.lock().is_over = true;
        self.has_more.notify_one();
    }

    /// The next key, if one is pressed within a time; [`END_OF_INPUT`] where none comes any more.
    fn within(&self, time: Duration) -> Option<u8> {
        let is_waiting = |pressed: &mut Pressed| pressed.keys.is_empty() && !pressed.is_over;
        let waited = self.has_more.wait_timeout_while(self.lock(), time, is_waiting);
        let (mut pressed, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let over = pressed.is_over.then_some(END_OF_INPUT);
        pressed.keys.pop_front().or(over)
    }
}

impl Keys {
    /// Reads keys from now on, if standard input is a terminal. While the command works, the key q
    /// and Ctrl-D call `end` at once, and other keys do nothing.
    pub(crate) fn of_terminal(end: fn()) -> Option<Self> {
        if !io::stdin().is_terminal() {
            return None;
        }
        unbuffered::begin();
        let queue = Arc::new(Queue::default());
        let keys = Self { queue: Arc::clone(&queue), end };
        let read = move || {
            let mut last = Last::Whole;
            for key in io::stdin().lock().bytes().map_while(Result::ok).filter_map(|byte| last.takes(byte)) {
                if queue.press(key) {
                    end();
                }
            }
            queue.close();
        };
        // Without a thread there are no keys, and the command works without them.
        thread::Builder::new().name("keys".into()).spawn(read).ok().map(|_| keys)
    }

    /// The command works from now on. A key that was pressed just before ends it if that would end
    /// it now, and else waits until the work is done.
    pub(crate) fn busy(&self) -> Busy<'_> {
        if self.queue.begin_work() {
            (self.end)();
        }
        Busy(self)
    }

    /// The next key, if one is pressed within a time; [`END_OF_INPUT`] where the terminal is gone.
    /// [`UP`] and [`DOWN`] are keys of several bytes; another one is its first byte.
    pub(crate) fn within(&self, time: Duration) -> Option<u8> {
        // Elsewhere keys come with Enter.
        self.queue.within(time).filter(|key| cfg!(unix) || !matches!(key, b'\r' | b'\n'))
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
mod tests;
