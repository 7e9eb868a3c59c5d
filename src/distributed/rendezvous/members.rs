//! The operations of the processes that have met.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::frame::{Call, MOST};
use super::hub::Hub;
use super::inbox::{Inbox, Lost};
use super::spoke::Spoke;
use super::{Rendezvous, admission, joining};
use crate::error::{Error, ErrorKind, Result, counted, require};
use crate::sync::lock;

/// The time after the deadline in which rank 0 says which ranks are missing.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The processes of a job that have met.
///
/// Every rank calls the same operations in the same order. Each of them waits for all ranks, and
/// ends within a second after the [deadline](Rendezvous::with_deadline) of the rendezvous. Where a
/// process dies, the system closes its connection, and every rank learns its name: operations fail,
/// and [`Members::lost`] returns it. Rank 0 relays what the others say, so it keeps its members
/// until the last operation of all. Dropping the members says goodbye, so that the rank is not
/// lost; in a panic it tells the others that this rank aborts.
///
/// ```
/// use std::thread;
/// use warpstride::distributed::Rendezvous;
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("job");
/// let rank = |rank| {
///     let members = Rendezvous::file(&file, rank, 2)?.meet()?;
///     let words = members.broadcast((rank == 0).then_some(b"words of rank 0"))?;
///     members.agree("plan", 19)?;
///     Ok::<_, warpstride::Error>(words)
/// };
/// thread::scope(|scope| {
///     let other = scope.spawn(|| rank(1)); // in a job it is another process
///     for words in [rank(0), other.join().expect("no panic")] {
///         assert_eq!(words.as_deref(), Ok(&b"words of rank 0"[..]));
///     }
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Members {
    rank: usize,
    ranks: usize,
    local_rank: usize,
    deadline: Duration,
    inbox: Arc<Inbox>,
    link: Link,
    /// The number of operations so far. One operation holds it at a time.
    number: Mutex<u64>,
}

/// The way to the other ranks.
#[derive(Debug)]
enum Link {
    Alone,
    Hub(Hub),
    Spoke(Spoke),
}

impl Members {
    pub(super) fn meet(job: &Rendezvous) -> Result<Self> {
        let inbox = Arc::new(Inbox::default());
        let link = if job.ranks == 1 {
            Ok(Link::Alone)
        } else if job.rank == 0 {
            Hub::start(admission::admit(job)?, Arc::clone(&inbox), job.deadline).map(Link::Hub)
        } else {
            let (stream, frames) = joining::join(job)?;
            Spoke::start(stream, frames, Arc::clone(&inbox)).map(Link::Spoke)
        };
        let link = link.map_err(|error| {
            let advice = "end other programs, or raise the limits on processes and open files (`ulimit -u -n`)";
            let sentence = format!("the system does not serve the connections of rank {}: {error}; {advice}", job.rank);
            Error::new(ErrorKind::Unavailable, sentence)
        })?;
        let &Rendezvous { rank, ranks, local_rank, deadline, .. } = job;
        Ok(Self { rank, ranks, local_rank, deadline, inbox, link, number: Mutex::new(0) })
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of processes.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The time in which each operation must end.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The number of this process on its host, by which it takes its GPU.
    pub fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// Gives every rank the bytes of rank 0, which passes them; the others pass `None`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if another rank than 0 passes bytes, if rank 0 passes none, or more than
    /// 4096; `Peer` if a rank is lost, has left or calls another operation; `Deadline` if a rank
    /// does not call it in time.
    pub fn broadcast(&self, from_first: Option<&[u8]>) -> Result<Vec<u8>> {
        require!(
            from_first.is_some() == (self.rank == 0),
            InvalidArgument,
            "a broadcast takes its bytes from rank 0 alone, and this is rank {}; pass bytes on rank 0, and None on \
             every other rank",
            self.rank
        );
        let payload = from_first.unwrap_or_default();
        require!(
            payload.len() <= MOST,
            InvalidArgument,
            "a broadcast has at most {MOST} bytes, and these are {}; send less",
            counted(payload.len(), "byte")
        );
        self.call(&Call::Broadcast(payload.to_vec()), self.deadline)
    }

    /// Fails on every rank if the digests of some ranks differ from that of rank 0. `about` is the
    /// noun that the error has for what the digest is of, such as `plan`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `about` has more than 256 bytes; `Peer` if digests differ, or a rank is
    /// lost, has left or calls another operation; `Deadline` if a rank does not call it in time.
    pub fn agree(&self, about: &str, digest: u64) -> Result<()> {
        require!(
            about.len() <= super::LONGEST_NAME,
            InvalidArgument,
            "an agreement is about a name of at most {}, and this has {}; name it in a word",
            counted(super::LONGEST_NAME, "byte"),
            about.len()
        );
        self.call(&Call::Agree { digest, about: about.into() }, self.deadline).map(drop)
    }

    /// Waits until every rank has called this.
    ///
    /// # Errors
    ///
    /// `Peer` if a rank is lost, has left or calls another operation; `Deadline` if a rank does not
    /// call it in time.
    pub fn barrier(&self) -> Result<()> {
        self.barrier_within(self.deadline)
    }

    /// As [`Members::barrier`], with a time of its own.
    pub(in crate::distributed) fn barrier_within(&self, time: Duration) -> Result<()> {
        self.call(&Call::Barrier, time).map(drop)
    }

    /// Returns the first process that died, or said that it aborts. This never waits.
    pub fn lost(&self) -> Option<Lost> {
        self.inbox.lost()
    }

    /// Tells all other ranks that this one cannot go on: [`Members::lost`] returns this rank there,
    /// and their operations fail. This waits for at most a second, and never panics.
    pub fn tell_abort(&self, reason: &str) {
        match &self.link {
            Link::Alone => {}
            Link::Hub(hub) => hub.abort(reason),
            Link::Spoke(spoke) => spoke.abort(reason),
        }
    }

    fn call(&self, call: &Call, time: Duration) -> Result<Vec<u8>> {
        let mut last = lock(&self.number);
        self.inbox.check(call)?;
        *last += 1;
        let number = *last;
        match &self.link {
            Link::Alone => {
                return Ok(if let Call::Broadcast(payload) = call { payload.clone() } else { Vec::new() });
            }
            Link::Hub(hub) => hub.enter(number, call.clone()),
            Link::Spoke(spoke) => spoke.enter(number, call.clone()),
        }
        self.inbox.answer(number, call, time + LAST_WORD)
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        if thread::panicking() {
            self.tell_abort("a thread of it panicked");
        }
    }
}
