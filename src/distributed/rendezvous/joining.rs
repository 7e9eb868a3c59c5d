//! The meeting of a rank other than 0: it connects to rank 0 until it is admitted, and waits there.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::Rendezvous;
use super::calls::seconds;
use super::frame::{Frames, Message};
use super::place::random;
use super::wire::{CLOSED, broken};
use crate::error::{Error, ErrorKind, Result};

/// The longest time for a connection.
const CONNECTING: Duration = Duration::from_secs(5);
/// The time in which rank 0 admits a rank. It doubles with each try, for a busy machine.
const ADMITTING: Duration = Duration::from_secs(2);
/// The time after the deadline in which rank 0, which may have come later, says which ranks are
/// missing.
const LAST_WORD: Duration = Duration::from_secs(1);
/// The times between two tries.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// The end of one try.
enum Tried {
    Met(TcpStream, Frames),
    /// Rank 0 refuses this rank for good.
    Refused(String),
    /// There is a clause about why the next try may do better.
    Again(String),
}

/// Connects to rank 0, and waits until all ranks have come.
pub(super) fn join(job: &Rendezvous) -> Result<(TcpStream, Frames)> {
    let mut joining =
        Joining { job, end: Instant::now() + job.deadline, admitting: ADMITTING, process: random() as u64 };
    let mut pause = PAUSES.0;
    loop {
        let last = match joining.try_all() {
            Tried::Met(stream, frames) => return Ok((stream, frames)),
            Tried::Refused(reason) => return Err(Error::new(ErrorKind::Peer, reason)),
            Tried::Again(reason) => reason,
        };
        let left = joining.left();
        if left.is_zero() {
            let sentence = format!(
                "rank {} of {} did not meet the others {} within {}: {last}; check that rank 0 runs and that this \
                 host reaches it, or allow more time",
                job.rank,
                job.ranks,
                job.place.named(),
                seconds(job.deadline)
            );
            return Err(Error::new(ErrorKind::Deadline, sentence));
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(PAUSES.1);
    }
}

struct Joining<'a> {
    job: &'a Rendezvous,
    end: Instant,
    admitting: Duration,
    /// The number by which rank 0 knows this process when it tries again.
    process: u64,
}

impl Joining<'_> {
    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Tries each address of rank 0 once.
    fn try_all(&mut self) -> Tried {
        let (addresses, nonce) = match self.job.place.look_up() {
            Ok(found) => found,
            Err(reason) => return Tried::Again(reason),
        };
        let mut last = "its name has no address".into();
        for address in addresses {
            match self.try_one(address, nonce) {
                Ok(Tried::Again(reason)) => last = reason,
                Ok(tried) => return tried,
                Err(error) => last = format!("{address} does not answer ({error})"),
            }
        }
        Tried::Again(last)
    }

    fn try_one(&mut self, address: SocketAddr, nonce: u128) -> io::Result<Tried> {
        // A time of 0 is an error.
        let connecting = CONNECTING.min(self.left()).max(Duration::from_millis(1));
        let mut stream = TcpStream::connect_timeout(&address, connecting)?;
        if stream.local_addr()? == stream.peer_addr()? {
            // The system may connect a port of this host with itself while nothing listens there.
            return Ok(Tried::Again(format!("nothing listens at {address}")));
        }
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(connecting))?;
        let hello = Message::hello(self.job.ranks, self.job.rank, nonce, self.process, &self.job.token);
        stream.write_all(&hello.frame())?;
        let mut frames = Frames::default();
        let admitted = read(&mut stream, &mut frames, (Instant::now() + self.admitting).min(self.end));
        if !matches!(admitted, Ok(Some(Message::Admitted))) {
            return Ok(self.not_admitted(address, admitted));
        }
        Ok(match read(&mut stream, &mut frames, self.end + LAST_WORD) {
            Ok(Some(Message::Complete)) => Tried::Met(stream, frames),
            Ok(Some(Message::Refused { again: false, reason })) => Tried::Refused(reason),
            Ok(Some(Message::Refused { again: true, reason })) => Tried::Again(reason),
            Ok(Some(_)) => Tried::Again(format!("rank 0 at {address} sent a message out of turn")),
            Ok(None) => Tried::Again("not all ranks have come to rank 0".into()),
            Err(ended) => Tried::Again(format!("rank 0 at {address} did not wait: {ended}")),
        })
    }

    fn not_admitted(&mut self, address: SocketAddr, answer: Result<Option<Message>, String>) -> Tried {
        match answer {
            Ok(Some(Message::Refused { again, reason })) => {
                let sentence = format!("rank 0 at {address} refuses rank {}: {reason}", self.job.rank);
                if again { Tried::Again(sentence) } else { Tried::Refused(sentence) }
            }
            Ok(Some(_)) => Tried::Again(format!("rank 0 at {address} sent a message out of turn")),
            Ok(None) => {
                self.admitting *= 2;
                Tried::Again(format!("{address} takes connections and does not answer"))
            }
            Err(ended) => Tried::Again(format!("{address} is not that of rank 0: {ended}")),
        }
    }
}

/// Reads the next message. Returns `None` if it has not come at the end of the time, and the
/// clause about how the connection ended if it has.
fn read(stream: &mut TcpStream, frames: &mut Frames, end: Instant) -> Result<Option<Message>, String> {
    let mut piece = [0; 4096];
    loop {
        if let Some(message) = frames.next().map_err(|_| "it sent bytes that are not a message")? {
            return Ok(Some(message));
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left)).map_err(|error| broken(&error))?;
        match stream.read(&mut piece) {
            Ok(0) => return Err(CLOSED.into()),
            Ok(read) => frames.add(&piece[..read]),
            Err(error) if is_late(&error) || error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(broken(&error)),
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
