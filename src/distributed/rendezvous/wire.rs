//! A connection that never blocks: what has come from a peer, and what waits to be sent to it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

use super::frame::{Frames, Message};

/// The most bytes that wait for a peer. A peer that reads so little has stopped.
const MOST_WAITING: usize = 1 << 20;

/// The end of a connection, as the end of a sentence that begins with its rank.
pub(super) type Ended = String;

#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    frames: Frames,
    waiting: Vec<u8>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, frames: Frames::default(), waiting: Vec::new() })
    }

    /// Queues a message, and sends as much as the system takes.
    pub(super) fn send(&mut self, message: &Message) -> Result<(), Ended> {
        self.waiting.extend(message.frame());
        self.flush()
    }

    /// Sends as much of what waits as the system takes.
    pub(super) fn flush(&mut self) -> Result<(), Ended> {
        while !self.waiting.is_empty() {
            match self.stream.write(&self.waiting) {
                Ok(0) => return Err("its connection is closed".into()),
                Ok(sent) => drop(self.waiting.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(&error)),
            }
        }
        if self.waiting.len() > MOST_WAITING { Err("it does not read what is sent to it".into()) } else { Ok(()) }
    }

    /// Returns whether nothing waits.
    pub(super) fn is_flushed(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the next message if one has come.
    pub(super) fn next(&mut self) -> Result<Option<Message>, Ended> {
        let mut piece = [0; 4096];
        loop {
            if let Some(message) = self.frames.next().map_err(|_| "it sent bytes that are not a message")? {
                return Ok(Some(message));
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(CLOSED.into()),
                Ok(read) => self.frames.add(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(&error)),
            }
        }
    }

    /// Says that nothing more will be sent.
    pub(super) fn finish(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Reads and drops what has come. Returns whether more may come.
    pub(super) fn drain(&mut self) -> bool {
        let mut piece = [0; 4096];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }
}

/// The system closes the connections of a process that ends.
pub(super) const CLOSED: &str = "its connection closed, as that of a process that ended";

pub(super) fn broken(error: &io::Error) -> Ended {
    format!("its connection broke, as that of a process that ended ({error})")
}
