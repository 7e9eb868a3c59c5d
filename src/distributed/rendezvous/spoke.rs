//! The connection of a rank to rank 0, and the thread that reads from it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::CLOSING;
use super::frame::{Call, Frames, Message};
use super::inbox::Inbox;
use super::wire::{CLOSED, broken};
use crate::sync::lock;

#[derive(Debug)]
pub(super) struct Spoke {
    stream: Mutex<TcpStream>,
    inbox: Arc<Inbox>,
    /// This rank closes the connection.
    closes: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spoke {
    /// Reads from rank 0 from here on; `frames` has what was read before.
    pub(super) fn start(stream: TcpStream, frames: Frames, inbox: Arc<Inbox>) -> io::Result<Self> {
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(Some(CLOSING))?;
        let closes = Arc::new(AtomicBool::new(false));
        let mut reading =
            Reading { stream: stream.try_clone()?, frames, inbox: Arc::clone(&inbox), closes: Arc::clone(&closes) };
        let thread = Builder::new().name("rendezvous".into()).spawn(move || reading.run())?;
        Ok(Self { stream: Mutex::new(stream), inbox, closes, thread: Some(thread) })
    }

    pub(super) fn enter(&self, number: u64, call: Call) {
        self.send(&Message::Enter { number, call });
    }

    pub(super) fn abort(&self, reason: &str) {
        self.send(&Message::Abort(reason.into()));
    }

    fn send(&self, message: &Message) {
        let mut stream = lock(&self.stream);
        if let Err(error) = stream.write_all(&message.frame())
            && matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
        {
            // A part of the message may have been sent, so nothing can follow it. After another
            // error the thread reads how the connection ended, or a goodbye.
            self.inbox.lose_first("it does not read what is sent to it".into());
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Spoke {
    fn drop(&mut self) {
        self.closes.store(true, Ordering::Release);
        self.send(&Message::Goodbye);
        let _ = lock(&self.stream).shutdown(Shutdown::Write);
        // Rank 0 closes the connection when it has read the goodbye.
        let begin = Instant::now();
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && begin.elapsed() < CLOSING {
            thread::sleep(Duration::from_millis(1));
        }
        let _ = lock(&self.stream).shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Reading {
    stream: TcpStream,
    frames: Frames,
    inbox: Arc<Inbox>,
    closes: Arc<AtomicBool>,
}

impl Reading {
    fn run(&mut self) {
        let ended = self.read();
        let is_in_order = ended.is_none() || self.closes.load(Ordering::Acquire);
        if let Some(reason) = ended.filter(|_| !is_in_order) {
            self.inbox.lose_first(reason);
        }
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Reads until the connection ends. Returns how it ended, unless rank 0 said goodbye.
    fn read(&mut self) -> Option<String> {
        let mut piece = [0; 4096];
        loop {
            loop {
                match self.frames.next() {
                    Ok(None) => break,
                    Ok(Some(message)) => {
                        let is_goodbye = message == Message::Goodbye;
                        if !self.inbox.deliver(message) {
                            return Some("it sent a message out of turn".into());
                        }
                        if is_goodbye {
                            return None;
                        }
                    }
                    Err(_) => return Some("it sent bytes that are not a message".into()),
                }
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return Some(CLOSED.into()),
                Ok(read) => self.frames.add(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Some(broken(&error)),
            }
        }
    }
}
