//! Rank 0's side of the meeting: it admits the other ranks, and refuses strangers.

use std::hint::black_box;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::calls::seconds;
use super::frame::{Message, VERSION};
use super::place::{self, Open, Place};
use super::ranks::named;
use super::wire::Wire;
use super::{CLOSING, Rendezvous};
use crate::error::{Error, ErrorKind, Result};

/// The time between two looks at the connections.
const ROUND: Duration = Duration::from_millis(2);
/// The time in which a stranger says which rank it is.
const HELLO: Duration = Duration::from_secs(10);
/// The strangers that may wait besides the ranks.
const STRANGERS: usize = 64;

/// Waits for all ranks, and returns their connections in the order of the ranks from 1 on.
pub(super) fn admit(job: &Rendezvous) -> Result<Vec<Wire>> {
    let begin = Instant::now();
    if let Place::File(path) = &job.place {
        place::check_replaceable(path)?;
    }
    let open = open(job, begin)?;
    let mut admission =
        Admission { job, open, strangers: Vec::new(), admitted: (1..job.ranks).map(|_| None).collect() };
    loop {
        admission.round();
        if admission.admitted.iter().all(Option::is_some) {
            return admission.complete();
        }
        if begin.elapsed() >= job.deadline {
            return Err(admission.expire());
        }
        thread::sleep(ROUND);
    }
}

/// Listens. A former run may hold the port for a while.
fn open(job: &Rendezvous, begin: Instant) -> Result<Open> {
    loop {
        match Open::new(&job.place) {
            Ok(open) => return Ok(open),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && begin.elapsed() < job.deadline => {
                thread::sleep(20 * ROUND);
            }
            Err(error) => {
                let place = job.place.named();
                let sentence = format!("rank 0 cannot meet other ranks {place}: {error}; give another place");
                return Err(Error::new(ErrorKind::Io, sentence));
            }
        }
    }
}

struct Admission<'a> {
    job: &'a Rendezvous,
    open: Open,
    /// Connections that have not said which rank they are, the oldest first.
    strangers: Vec<(Wire, Instant)>,
    /// The ranks from 1 on, with the number of their process.
    admitted: Vec<Option<(Wire, u64)>>,
}

impl Admission<'_> {
    /// Looks at every connection once.
    fn round(&mut self) {
        // Nothing comes from a rank that waits, but the end of its connection.
        for rank in &mut self.admitted {
            if rank.as_mut().is_some_and(|(wire, _)| wire.flush().is_err() || !matches!(wire.next(), Ok(None))) {
                *rank = None;
            }
        }
        self.accept();
        for (mut wire, since) in std::mem::take(&mut self.strangers) {
            match wire.next() {
                Ok(None) if since.elapsed() < HELLO => self.strangers.push((wire, since)),
                Ok(Some(message)) => self.judge(wire, &message),
                Ok(None) | Err(_) => {}
            }
        }
    }

    fn accept(&mut self) {
        let most = self.job.ranks + STRANGERS;
        for listener in &self.open.listeners {
            for _ in 0..most {
                // The system's error, such as one of a connection that has ended, is for one only.
                let Ok((stream, _)) = listener.accept() else { break };
                let Ok(wire) = Wire::new(stream) else { continue };
                if self.strangers.len() >= most {
                    // A rank that waited for so long tries again.
                    self.strangers.remove(0);
                }
                self.strangers.push((wire, Instant::now()));
            }
        }
    }

    /// Admits a stranger by its first message, or refuses it.
    fn judge(&mut self, mut wire: Wire, message: &Message) {
        match self.refusal(message) {
            None => {
                if let &Message::Hello { rank, process, .. } = message
                    && wire.send(&Message::Admitted).is_ok()
                {
                    self.admitted[rank as usize - 1] = Some((wire, process));
                }
            }
            Some((again, reason)) => {
                let _ = wire.send(&Message::Refused { again, reason });
            }
        }
    }

    /// Returns the reason against a stranger, and whether it may try again.
    fn refusal(&self, message: &Message) -> Option<(bool, String)> {
        let of_job = self.job.ranks;
        let (ranks, rank, nonce, number, token) = match message {
            Message::Hello { ranks, rank, nonce, process, token } => {
                (*ranks as usize, *rank as usize, nonce, *process, token)
            }
            Message::OtherVersion(version) => {
                let reason = format!(
                    "it speaks version {version} of the protocol, and rank 0 version {VERSION}; give every rank the \
                     same version of warpstride"
                );
                return Some((false, reason));
            }
            _ => return Some((false, "it did not say which rank it is".into())),
        };
        if !is_same(&nonce.to_le_bytes(), &self.open.nonce.to_le_bytes()) {
            return Some((true, "it read a file of another run".into()));
        }
        if !is_same(token, self.job.token.as_bytes()) {
            return Some((
                false,
                "its token is another one; set WARPSTRIDE_TOKEN to the same text on every rank".into(),
            ));
        }
        let reason = if ranks != of_job {
            format!("it is of a job of {ranks} ranks, and rank 0 of one of {of_job}; give every rank the same number")
        } else if rank == 0 || rank >= of_job {
            format!("there is no place for a rank {rank}; give every process its own rank below {of_job}")
        } else if self.admitted[rank - 1].as_ref().is_some_and(|(_, process)| *process != number) {
            format!("rank {rank} has come already; give every process its own rank")
        } else {
            return None;
        };
        Some((false, reason))
    }

    /// Tells all ranks that they are complete.
    fn complete(mut self) -> Result<Vec<Wire>> {
        if !self.open.is_own() {
            let reason = "another run has replaced or removed the file";
            self.refuse_all(true, reason);
            let sentence = format!("{reason} of the rendezvous ({}); give each run its own", self.job.place.named());
            return Err(Error::new(ErrorKind::Peer, sentence));
        }
        let admitted = std::mem::take(&mut self.admitted).into_iter().flatten();
        let mut wires: Vec<Wire> = admitted.map(|(wire, _)| wire).collect();
        for wire in &mut wires {
            // A connection that has ended is found by the next read.
            let _ = wire.send(&Message::Complete);
        }
        Ok(wires)
    }

    /// Tells the ranks that have come which ones are missing.
    fn expire(&mut self) -> Error {
        let missing: Vec<usize> = (1..self.job.ranks).filter(|&rank| self.admitted[rank - 1].is_none()).collect();
        let reason = format!(
            "{} of {} did not come within {}; check that every rank was started and reaches rank 0 {}, or allow more \
             time",
            named(&missing),
            self.job.ranks,
            seconds(self.job.deadline),
            self.job.place.named()
        );
        self.refuse_all(false, &reason);
        Error::new(ErrorKind::Deadline, reason)
    }

    fn refuse_all(&mut self, again: bool, reason: &str) {
        let begin = Instant::now();
        let mut wires: Vec<Wire> = self.admitted.iter_mut().filter_map(Option::take).map(|(wire, _)| wire).collect();
        wires.retain_mut(|wire| wire.send(&Message::Refused { again, reason: reason.into() }).is_ok());
        while begin.elapsed() < CLOSING && !wires.iter().all(Wire::is_flushed) {
            wires.retain_mut(|wire| wire.flush().is_ok());
            thread::sleep(ROUND);
        }
    }
}

/// Compares in a time that does not depend on where the texts differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |differing, (one, other)| black_box(differing | (one ^ other)));
    one.len() == other.len() && differing == 0
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_equal_texts_are_the_same() {
        let is_same = |one: &str, other: &str| super::is_same(one.as_bytes(), other.as_bytes());
        assert!(is_same("", "") && is_same("token", "token"));
        assert!(!is_same("token", "tokem") && !is_same("", "t") && !is_same("toke", "token"));
    }
}
