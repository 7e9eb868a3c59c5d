//! Messages between GPUs of one process, through the memory that they share.
//!
//! A rank that receives posts the address, with an event that is recorded when the memory may be
//! written. The rank that sends waits on the host for the post, then queues a copy behind that
//! event and answers with an event of its own, behind which the receiver's stream goes on.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar};

use super::engine::{Deadline, Engine, Message, Reduce, Window};
use super::windows::Windows;
use super::{disagreement, peer_error, reduce};
use crate::device::Device;
use crate::distributed::Gpus;
use crate::error::{Error, Result, counted, require};
use crate::memory::DeviceBuffer;
use crate::stream::{Event, Stream};
use crate::sync::{AtomicU64, Mutex, MutexGuard, lock};

/// One rank of GPUs that share memory.
pub(super) struct Local {
    rank: usize,
    device: Device,
    hub: Arc<Hub>,
    /// The number of calls of `agree`.
    agreed: AtomicU64,
    /// The number of windows that it has opened.
    opened: Mutex<usize>,
    /// Events of earlier exchanges, which are recorded again once no peer holds them.
    events: Mutex<Vec<Arc<Event>>>,
}

/// The place where ranks meet.
struct Hub {
    /// Keeps the memory shared.
    gpus: Arc<Gpus>,
    state: Mutex<State>,
    /// Notified when the state changes.
    changed: Condvar,
}

struct State {
    /// Why nothing is exchanged any more.
    aborted: Option<String>,
    /// The ranks that were dropped.
    ended: Vec<bool>,
    /// The calls of `agree` that some ranks have not left.
    rounds: BTreeMap<u64, Round>,
    /// The posts of the ranks that receive, by receiver and sender, in their order.
    posts: Vec<Vec<VecDeque<Arc<Post>>>>,
    windows: Windows,
}

/// A call of `agree`.
struct Round {
    /// The numbers of the ranks.
    digests: Vec<Option<u64>>,
    /// The ranks that have compared them.
    left: usize,
}

/// Bytes that a rank receives.
struct Post {
    message: Message,
    /// The number of the work that ranks meet for; 0 for other messages.
    about: u64,
    /// Passed when they may be written.
    ready: Arc<Event>,
    answer: Mutex<Answer>,
}

/// The outcome of a post.
#[derive(Clone)]
enum Answer {
    /// No rank has taken it.
    Open,
    /// A rank queues the copy, and answers soon.
    Taken,
    /// The bytes are there when the event is passed.
    Sent(Arc<Event>),
    /// No copy writes them.
    Dropped,
}

/// Makes the engines of all ranks.
pub(super) fn engines(gpus: &Arc<Gpus>) -> Result<Vec<Local>> {
    let ranks = gpus.len();
    let posts = (0..ranks).map(|_| vec![VecDeque::new(); ranks]).collect();
    let (ended, rounds, windows) = (vec![false; ranks], BTreeMap::new(), Windows::default());
    let state = Mutex::new(State { aborted: None, ended, rounds, posts, windows });
    let hub = Arc::new(Hub { gpus: Arc::clone(gpus), state, changed: Condvar::new() });
    let engine = |rank| {
        let device = hub.gpus.device(rank).clone();
        let (agreed, opened, events) = (AtomicU64::new(0), Mutex::default(), Mutex::default());
        Local { rank, device, hub: Arc::clone(&hub), agreed, opened, events }
    };
    Ok((0..ranks).map(engine).collect())
}

// SAFETY: a copy into a receiver's memory is queued behind the event that it posted, and the
// receiver's stream waits for the sender's answer before the call returns, also after an error: see
// `Local::settle`. The sender's own reads are work of its stream.
unsafe impl Engine for Local {
    fn device(&self) -> &Device {
        &self.device
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.hub.gpus.len()
    }

    unsafe fn exchange(&self, sends: &[Message], receives: &[Message], stream: &Stream, by: Deadline) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.exchange_about(0, [sends, receives], stream, by) }
    }

    unsafe fn reduce(&self, reduce: Reduce, stream: &Stream, by: Deadline) -> Result<()> {
        // SAFETY: as the caller promises.
        let reduced = unsafe { reduce::by_exchange(self, &self.device, reduce, stream, by) };
        // Peers that wait for this rank's part must not get that of a later call.
        reduced.inspect_err(|error| self.fail(error))
    }

    fn meet(&self, about: u64, stream: &Stream, by: Deadline) -> Result<()> {
        let others = (0..self.ranks()).filter(|&peer| peer != self.rank);
        let empty: Vec<Message> = others.map(|peer| Message { peer, address: 0, bytes: 0 }).collect();
        // SAFETY: messages of 0 bytes use no memory.
        unsafe { self.exchange_about(about, [&empty, &empty], stream, by) }
    }

    fn window(&self, bytes: u64, by: Deadline) -> Result<Option<Window>> {
        require!(bytes > 0, InvalidArgument, "a window has at least 1 byte, and 0 were asked for");
        let mut opened = lock(&self.opened);
        let known = self.hub.check(self.hub.lock())?.windows.known(bytes, *opened);
        if known.is_some() {
            return Ok(known);
        }
        let made = self.device.alloc::<u8>(bytes as usize);
        let window = made.and_then(|mine| self.hub.open(*opened, self.rank, (bytes, mine), by));
        *opened += 1;
        window.map(Some).inspect_err(|error| self.fail(error))
    }

    fn agree(&self, about: &str, digest: u64, by: Deadline) -> Result<()> {
        let round = self.agreed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let agreed = self.hub.agree(round, self.rank, digest, by, about);
        if let Err(error) = &agreed {
            self.fail(error);
        }
        agreed
    }

    fn check(&self) -> Result<()> {
        self.hub.check(self.hub.lock()).map(drop)
    }

    fn abort(&self, why: &str) {
        self.hub.lock().aborted.get_or_insert_with(|| why.to_owned());
        self.hub.changed.notify_all();
    }
}

impl Local {
    /// Exchanges messages with ranks that do so for the same work.
    ///
    /// # Safety
    ///
    /// - As [`Engine::exchange`].
    unsafe fn exchange_about(
        &self,
        about: u64,
        [sends, receives]: [&[Message]; 2],
        stream: &Stream,
        by: Deadline,
    ) -> Result<()> {
        self.check()?;
        let ranks = self.ranks();
        for message in sends.iter().chain(receives) {
            require!(
                message.peer < ranks,
                InvalidArgument,
                "there is no rank {}; give one below {ranks}",
                message.peer
            );
        }
        let posted = self.post(receives, about, stream).inspect_err(|error| self.fail(error))?;
        // From here on peers may write, so each way out goes through `settle`.
        let settle = SettleOnUnwind { local: self, posted: &posted, stream };
        // SAFETY: as the caller promises.
        let sent = unsafe { self.send(sends, about, stream, by) };
        let received = sent.and_then(|()| self.await_all(&posted, by));
        std::mem::forget(settle);
        if let Err(error) = &received {
            self.fail(error);
        }
        received.and(self.settle(&posted, stream))
    }

    /// Posts what this rank receives, behind what is queued on the stream.
    fn post(&self, receives: &[Message], about: u64, stream: &Stream) -> Result<Vec<Arc<Post>>> {
        if receives.is_empty() {
            return Ok(Vec::new());
        }
        let ready = self.event()?;
        stream.record(&ready)?;
        let answer = || Mutex::new(Answer::Open);
        let post = |&message| Arc::new(Post { message, about, ready: Arc::clone(&ready), answer: answer() });
        let posted: Vec<_> = receives.iter().map(post).collect();
        let mut state = self.hub.lock();
        for post in &posted {
            state.posts[self.rank][post.message.peer].push_back(Arc::clone(post));
        }
        drop(state);
        self.hub.changed.notify_all();
        Ok(posted)
    }

    /// Queues copies into what peers have posted.
    ///
    /// # Safety
    ///
    /// - As [`Engine::exchange`] for `sends`.
    unsafe fn send(&self, sends: &[Message], about: u64, stream: &Stream, by: Deadline) -> Result<()> {
        let mut taken = Taken { posts: Vec::with_capacity(sends.len()), hub: &self.hub, queued: None };
        // SAFETY: as the caller promises.
        let sent = unsafe { self.send_taking((sends, about), &mut taken, stream, by) };
        if let Err(error) = &sent {
            // Before the posts are answered, so that the receivers know why.
            self.fail(error);
        }
        sent
    }

    /// # Safety
    ///
    /// - As [`Engine::exchange`] for `sends`.
    unsafe fn send_taking<'a>(
        &self,
        (sends, about): (&[Message], u64),
        taken: &mut Taken<'a>,
        stream: &'a Stream,
        by: Deadline,
    ) -> Result<()> {
        // All are taken before anything is queued: a failure up to here leaves nothing behind.
        for send in sends {
            self.take(send, about, taken, by)?;
        }
        if sends.is_empty() {
            return Ok(());
        }
        let sent = self.event()?;
        taken.queued = Some((stream, None));
        for (send, post) in sends.iter().zip(&taken.posts) {
            stream.wait_across(&post.ready)?;
            // SAFETY: the caller promises it for the source. The receiver promised it for what it
            // posted, and keeps the memory until it has our answer. The GPUs share their memory.
            unsafe { self.device.driver().copy_d2d(post.message.address, send.address, send.bytes, stream.handle()) }?;
        }
        stream.record(&sent)?;
        taken.queued = Some((stream, Some(sent)));
        Ok(())
    }

    fn fail(&self, error: &Error) {
        self.abort(&format!("rank {} failed: {error}", self.rank));
    }

    /// Takes the first post of the receiver for this rank, once there is one.
    fn take(&self, send: &Message, about: u64, taken: &mut Taken<'_>, by: Deadline) -> Result<()> {
        let mut state = self.hub.lock();
        let post = loop {
            state = self.hub.check(state)?;
            if let Some(post) = state.posts[send.peer][self.rank].pop_front() {
                break post;
            }
            let what =
                || format!("the {} that rank {} sends to rank {}", counted(send.bytes, "byte"), self.rank, send.peer);
            state = self.hub.wait(state, send.peer, by, what)?;
        };
        *lock(&post.answer) = Answer::Taken;
        let (received, wanted) = (post.message.bytes, post.about);
        taken.posts.push(post);
        drop(state);
        require!(
            received == send.bytes,
            Peer,
            "rank {} sends {} to rank {}, which receives {}; give both calls one shape and type",
            self.rank,
            counted(send.bytes, "byte"),
            send.peer,
            counted(received, "byte")
        );
        require!(
            wanted == about,
            Peer,
            "rank {} and rank {} are at different work; make the same calls in the same order on all ranks",
            self.rank,
            send.peer
        );
        Ok(())
    }

    /// Waits until each post has its answer.
    fn await_all(&self, posted: &[Arc<Post>], by: Deadline) -> Result<()> {
        let mut state = self.hub.lock();
        for post in posted {
            let Message { peer, bytes, .. } = post.message;
            while matches!(*lock(&post.answer), Answer::Open | Answer::Taken) {
                let what =
                    || format!("the {} that rank {} receives from rank {peer}", counted(bytes, "byte"), self.rank);
                state = self.hub.check(state)?;
                state = self.hub.wait(state, peer, by, what)?;
            }
            if matches!(*lock(&post.answer), Answer::Dropped) {
                drop(self.hub.check(state)?);
                return Err(peer_error(format_args!("rank {peer} failed before it sent {}", counted(bytes, "byte"))));
            }
        }
        Ok(())
    }

    /// Takes back the posts that no peer has taken, and makes the stream wait for the copies of the
    /// others. A peer that has taken one answers once it has those of its other messages, or when
    /// the hub is aborted, which it is here unless all posts are answered.
    fn settle(&self, posted: &[Arc<Post>], stream: &Stream) -> Result<()> {
        let mut state = self.hub.lock();
        for post in posted {
            if matches!(*lock(&post.answer), Answer::Open) {
                state.posts[self.rank][post.message.peer].retain(|other| !Arc::ptr_eq(other, post));
                *lock(&post.answer) = Answer::Dropped;
            }
            while matches!(*lock(&post.answer), Answer::Taken) {
                state = self.hub.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
        }
        drop(state);
        let (mut waited, mut outcome): (Vec<Arc<Event>>, Result<()>) = (Vec::new(), Ok(()));
        for post in posted {
            match &*lock(&post.answer) {
                Answer::Sent(event) if !waited.iter().any(|other| Arc::ptr_eq(other, event)) => {
                    if let Err(error) = stream.wait_across(event) {
                        // Nothing else orders later uses after the copies.
                        let _ = event.synchronize();
                        self.fail(&error);
                        outcome = outcome.and(Err(error));
                    }
                    waited.push(Arc::clone(event));
                }
                _ => {}
            }
        }
        outcome
    }

    /// Returns an event that no peer holds.
    fn event(&self) -> Result<Arc<Event>> {
        let mut events = lock(&self.events);
        if let Some(free) = events.iter().find(|event| Arc::strong_count(event) == 1) {
            return Ok(Arc::clone(free));
        }
        let event = Arc::new(Event::untimed(&self.device)?);
        events.push(Arc::clone(&event));
        Ok(event)
    }
}

/// Posts that this rank has taken. Its drop answers them, after a failure too.
struct Taken<'a> {
    posts: Vec<Arc<Post>>,
    hub: &'a Hub,
    /// The stream, once copies may be queued on it, and the event behind all of them.
    queued: Option<(&'a Stream, Option<Arc<Event>>)>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let answer = match self.queued.take() {
            None => Answer::Dropped,
            Some((_, Some(sent))) => Answer::Sent(sent),
            Some((stream, None)) => {
                // Some copies may be queued. A stream whose wait fails has stopped its work.
                let _ = stream.synchronize();
                Answer::Dropped
            }
        };
        // Under the lock of the state, so that no waiter misses the notice.
        let _state = self.hub.lock();
        self.posts.iter().for_each(|post| *lock(&post.answer) = answer.clone());
        self.hub.changed.notify_all();
    }
}

/// Settles the posts when dropped, which happens only if a driver panicked.
struct SettleOnUnwind<'a> {
    local: &'a Local,
    posted: &'a [Arc<Post>],
    stream: &'a Stream,
}

impl Drop for SettleOnUnwind<'_> {
    fn drop(&mut self) {
        self.local.abort(&format!("rank {} panicked", self.local.rank));
        let _ = self.local.settle(self.posted, self.stream);
    }
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Waits for the numbers of all ranks in a round, and compares them.
    fn agree(&self, round: u64, rank: usize, digest: u64, by: Deadline, about: &str) -> Result<()> {
        let mut state = self.check(self.lock())?;
        let ranks = self.gpus.len();
        let new = || Round { digests: vec![None; ranks], left: 0 };
        state.rounds.entry(round).or_insert_with(new).digests[rank] = Some(digest);
        self.changed.notify_all();
        while let Some(missing) = state.rounds[&round].digests.iter().position(Option::is_none) {
            let what = || format!("the check of rank {rank} that all ranks have one {about}");
            state = self.wait(state, missing, by, what)?;
            state = self.check(state)?;
        }
        let Some(Round { digests, left }) = state.rounds.get_mut(&round) else { return Ok(()) };
        let others: Vec<usize> = (0..ranks).filter(|&other| digests[other] != digests[0]).collect();
        *left += 1;
        if *left == ranks {
            state.rounds.remove(&round);
        }
        drop(state);
        disagreement(about, &others)
    }

    /// Brings a rank's memory for the window with a number, and waits for that of the others.
    fn open(&self, number: usize, rank: usize, mine: (u64, DeviceBuffer<u8>), by: Deadline) -> Result<Window> {
        let mut state = self.check(self.lock())?;
        state.windows.bring(number, (rank, self.gpus.len()), mine)?;
        self.changed.notify_all();
        loop {
            match state.windows.opened(number) {
                Ok(window) => return Ok(window),
                Err(missing) => {
                    let what = || format!("the window of rank {rank}");
                    state = self.wait(state, missing, by, what)?;
                    state = self.check(state)?;
                }
            }
        }
    }

    /// Refuses to go on after an abort.
    fn check<'a>(&self, state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>> {
        match &state.aborted {
            Some(why) => Err(peer_error(format_args!("the communicator is aborted: {why}"))),
            None => Ok(state),
        }
    }

    /// Waits for a change that `peer` makes.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        peer: usize,
        by: Deadline,
        what: impl Fn() -> String,
    ) -> Result<MutexGuard<'a, State>> {
        if state.ended[peer] {
            return Err(peer_error(format_args!("rank {peer} has ended, so {} cannot be exchanged", what())));
        }
        if by.has_passed() {
            return Err(by.error(what()));
        }
        let waited = self.changed.wait_timeout(state, by.left());
        Ok(waited.unwrap_or_else(std::sync::PoisonError::into_inner).0)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.hub.lock().ended[self.rank] = true;
        self.hub.changed.notify_all();
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Local(rank {} of {})", self.rank, self.hub.gpus.len())
    }
}
