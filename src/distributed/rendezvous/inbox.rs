//! The messages that a rank has been told: the answer to its operation, and which ranks are lost.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use super::calls::{left_by, lost, name, seconds};
use super::frame::{Call, Failure, Message};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::lock;

/// A process that died, or said that it cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The rank of the process.
    pub rank: usize,
    /// A clause about how its connection ended, or the reason that it gave.
    pub reason: String,
}

#[derive(Debug, Default)]
struct Told {
    answer: Option<(u64, Result<Vec<u8>>)>,
    lost: Option<Lost>,
    /// Rank 0 has left in order.
    first_left: bool,
}

#[derive(Debug, Default)]
pub(super) struct Inbox {
    told: Mutex<Told>,
    changed: Condvar,
}

impl Inbox {
    /// Takes a message of rank 0. Returns whether it is one that rank 0 sends to members.
    pub(super) fn deliver(&self, message: Message) -> bool {
        let mut told = lock(&self.told);
        match message {
            Message::Done { number, payload } => told.answer = Some((number, Ok(payload))),
            Message::Failed { number, failure, reason } => {
                let kind = match failure {
                    Failure::Deadline => ErrorKind::Deadline,
                    Failure::Peer => ErrorKind::Peer,
                };
                told.answer = Some((number, Err(Error::new(kind, reason))));
            }
            Message::Lost { rank, reason } => _ = told.lost.get_or_insert(Lost { rank: rank as usize, reason }),
            Message::Goodbye => told.first_left = true,
            _ => return false,
        }
        self.changed.notify_all();
        true
    }

    /// The connection to rank 0 has ended without a goodbye.
    pub(super) fn lose_first(&self, reason: String) {
        let mut told = lock(&self.told);
        if !told.first_left {
            told.lost.get_or_insert(Lost { rank: 0, reason });
        }
        self.changed.notify_all();
    }

    pub(super) fn lost(&self) -> Option<Lost> {
        lock(&self.told).lost.clone()
    }

    /// Fails if no operation can succeed any more.
    pub(super) fn check(&self, call: &Call) -> Result<()> {
        check(&lock(&self.told), call)
    }

    /// Waits for the answer to the operation of a number.
    pub(super) fn answer(&self, number: u64, call: &Call, patience: Duration) -> Result<Vec<u8>> {
        let begin = Instant::now();
        let mut told = lock(&self.told);
        loop {
            if let Some((_, answer)) = told.answer.take_if(|(answered, _)| *answered == number) {
                return answer;
            }
            check(&told, call)?;
            let left = patience.saturating_sub(begin.elapsed());
            if left.is_zero() {
                let sentence = format!(
                    "{} failed: rank 0 did not answer within {}; check that its process runs and that this host \
                     reaches it, or allow more time",
                    name(call),
                    seconds(patience)
                );
                return Err(Error::new(ErrorKind::Deadline, sentence));
            }
            let waited = self.changed.wait_timeout(told, left);
            told = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }
}

fn check(told: &Told, call: &Call) -> Result<()> {
    let reason = match &told.lost {
        Some(gone) => lost(gone.rank, &gone.reason),
        None if told.first_left => left_by(&[0]),
        None => return Ok(()),
    };
    Err(Error::new(ErrorKind::Peer, format!("{} failed: {reason}", name(call))))
}
