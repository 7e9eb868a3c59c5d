//! Windows of processes that share a host: each maps the memory of the others.
//!
//! A rank tells the others that it has come so far by a number in their memory, which its stream
//! writes, and its stream waits for theirs. So neither the host nor a kernel waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fs, thread};

use crate::device::Device;
use crate::distributed::communicator::{WINDOW_RANKS, digest, pause};
use crate::distributed::{Deadline, Window};
use crate::driver::cuda::processes::{BUS, Flag, MemoryHandle, Processes};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::stream::{Event, Stream};
use crate::sync::{Mutex, lock};

/// The bytes of an offer.
pub(super) const OFFER: usize = 128;
/// The memory that the numbers of the ranks take behind a window: those that count meetings, and
/// behind them those of aborts.
const NUMBERS: u64 = 2 * ABORTS;
/// The place of the numbers of aborts.
const ABORTS: u64 = 4 * WINDOW_RANKS as u64;
/// The most meetings that are queued at once. A driver's queue holds about a thousand pieces of
/// work, and a full one holds up the host without a deadline.
const QUEUED: usize = 8;
/// The time for which an abort lets streams go on that wait for peers.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two looks at such streams.
const PAUSE: Duration = Duration::from_millis(1);
/// An abort writes numbers so far ahead. A stream compares them modulo 2^32.
const AHEAD: u32 = 1 << 30;

/// The windows of a rank.
#[derive(Default)]
pub(super) struct Windows {
    known: Mutex<Known>,
    /// Those of the first window.
    meeting: OnceLock<Arc<Meeting>>,
}

#[derive(Default)]
enum Known {
    #[default]
    Unasked,
    /// Some ranks do not reach each other's memory.
    Unreachable,
    Open(Vec<Opened>),
}

/// Memory of this rank that the others have mapped, and theirs.
pub(super) struct Opened {
    processes: Arc<Processes>,
    window: Window,
    rank: usize,
}

/// A rank's words on the memory that it offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offer {
    /// A number of the host; 0 if this rank cannot share memory.
    host: u64,
    bytes: u64,
    bus: [u8; BUS],
    handle: [u8; 64],
}

/// Memory that this rank offers.
pub(super) struct Offered {
    processes: Arc<Processes>,
    address: u64,
    offer: Offer,
}

impl Offer {
    /// Returns an offer of nothing.
    pub(super) fn none() -> Self {
        Self { host: 0, bytes: 0, bus: [0; BUS], handle: [0; 64] }
    }

    /// Returns an offer that names this host, before any memory is allocated for it.
    pub(super) fn of_host() -> Self {
        Self { host: host().unwrap_or_default(), ..Self::none() }
    }

    pub(super) fn to_bytes(self) -> [u8; OFFER] {
        let mut bytes = [0; OFFER];
        bytes[..8].copy_from_slice(&self.host.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[16..16 + BUS].copy_from_slice(&self.bus);
        bytes[16 + BUS..80 + BUS].copy_from_slice(&self.handle);
        bytes
    }

    pub(super) fn of_bytes(bytes: &[u8; OFFER]) -> Self {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let (bus, handle) = (std::array::from_fn(|at| bytes[16 + at]), std::array::from_fn(|at| bytes[16 + BUS + at]));
        Self { host: number(0), bytes: number(8), bus, handle }
    }

    /// Returns whether all of these ranks can share memory. Each rank finds the same.
    pub(super) fn are_of_one_host(all: &[Self]) -> bool {
        all.iter().all(|offer| offer.host != 0 && offer.host == all[0].host)
    }

    /// Refuses offers of ranks that want windows of other sizes.
    pub(super) fn check_bytes(all: &[Self]) -> Result<()> {
        let other = all.iter().position(|offer| offer.bytes != all[0].bytes);
        other.map_or(Ok(()), |rank| {
            let [ours, first] = [rank, 0].map(|rank| counted(all[rank].bytes, "byte").to_string());
            let context =
                format!("rank {rank} asks for a window of {ours}, and rank 0 for {first}; give all ranks one plan");
            Err(Error::new(ErrorKind::Peer, context))
        })
    }
}

/// Returns a number of the host that its processes share, and those of other hosts do not.
fn host() -> Option<u64> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(digest(&boot).max(1))
}

impl Offered {
    /// Allocates memory for the other ranks. `None` if the device or its driver cannot share any.
    pub(super) fn new(device: &Device, bytes: u64) -> Result<Option<Self>> {
        let Some(processes) = Processes::of(device.info().ordinal).ok() else { return Ok(None) };
        let address = processes.alloc(bytes.saturating_add(NUMBERS))?;
        let tell = || {
            let MemoryHandle(handle) = processes.export(address)?;
            // SAFETY: the numbers lie there, and no other process knows them yet.
            unsafe { processes.try_flags(address + bytes) }?;
            // SAFETY: as above.
            unsafe { processes.write_beside(&[(address + bytes, 0, 1)]) }?;
            Ok::<_, Error>(Offer { bytes, bus: processes.bus()?, handle, ..Offer::of_host() })
        };
        match tell() {
            Ok(offer) => Ok(Some(Self { processes: Arc::new(processes), address, offer })),
            Err(_) => {
                // SAFETY: it was just allocated, and no other process knows it.
                unsafe { processes.free(address) };
                Ok(None)
            }
        }
    }

    pub(super) fn offer(&self) -> Offer {
        self.offer
    }

    /// Maps the memory of the other ranks. `None` if this rank does not reach it.
    pub(super) fn open(&self, all: &[Offer], rank: usize) -> Option<Opened> {
        let window = Window { addresses: Vec::new(), bytes: self.offer.bytes };
        let mut opened = Opened { processes: Arc::clone(&self.processes), window, rank };
        for (peer, offer) in all.iter().enumerate() {
            let address = if peer == rank {
                Some(self.address)
            } else if self.processes.stores_fast_to(&offer.bus) {
                self.processes.open(MemoryHandle(offer.handle)).ok()
            } else {
                None
            };
            let Some(address) = address else {
                opened.close();
                return None;
            };
            opened.window.addresses.push(address);
        }
        Some(opened)
    }

    /// Frees the memory.
    ///
    /// # Safety
    ///
    /// - No other process has it open, and no work uses it.
    pub(super) unsafe fn free(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.processes.free(self.address) };
    }
}

impl Opened {
    /// Unmaps the memory of the other ranks, which no work uses.
    pub(super) fn close(&self) {
        for (peer, &address) in self.window.addresses.iter().enumerate() {
            if peer != self.rank {
                // SAFETY: it was opened, and all work that used it has ended.
                unsafe { self.processes.close(address) };
            }
        }
    }
}

impl Windows {
    /// Returns a known window that has room, or `Err` where all ranks have to open one together.
    pub(super) fn known(&self, bytes: u64) -> Result<Option<Window>, ()> {
        match &*lock(&self.known) {
            Known::Unreachable => Ok(None),
            Known::Unasked => Err(()),
            Known::Open(all) => {
                let found = all.iter().find(|opened| opened.window.bytes >= bytes);
                found.map(|opened| Some(opened.window.clone())).ok_or(())
            }
        }
    }

    /// Remembers what the ranks found together. The first window also has the numbers by which they
    /// meet.
    pub(super) fn remember(&self, device: &Device, opened: Option<Opened>) -> Result<Option<Window>> {
        let mut known = lock(&self.known);
        let Some(opened) = opened else {
            // A larger window may not be possible where a smaller one is.
            if matches!(&*known, Known::Unasked) {
                *known = Known::Unreachable;
            }
            return Ok(None);
        };
        let window = opened.window.clone();
        if self.meeting.get().is_none() {
            let meeting = Meeting {
                processes: Arc::clone(&opened.processes),
                numbers: window.addresses.iter().map(|address| address + window.bytes).collect(),
                rank: opened.rank,
                round: AtomicU32::new(0),
                is_unsure: AtomicBool::new(false),
                behind: Mutex::default(),
                device: device.clone(),
            };
            let _ = self.meeting.set(Arc::new(meeting));
        }
        match &mut *known {
            Known::Open(all) => all.push(opened),
            _ => *known = Known::Open(vec![opened]),
        }
        Ok(Some(window))
    }

    /// Returns the numbers by which the ranks meet.
    pub(super) fn meeting(&self) -> Option<&Arc<Meeting>> {
        self.meeting.get()
    }

    /// Unmaps all memory of the other ranks, whose work has ended. Returns whether there was any.
    pub(super) fn close(&self) -> bool {
        let Known::Open(all) = &*lock(&self.known) else { return false };
        all.iter().for_each(Opened::close);
        true
    }

    /// Frees this rank's memory.
    ///
    /// # Safety
    ///
    /// - All ranks have closed their windows.
    pub(super) unsafe fn free(&self) {
        let Known::Open(all) = std::mem::take(&mut *lock(&self.known)) else { return };
        for Opened { processes, window, rank } in all {
            // SAFETY: as the caller promises.
            unsafe { processes.free(window.addresses[rank]) };
        }
    }
}

/// The numbers by which ranks tell each other how far they have come.
pub(super) struct Meeting {
    device: Device,
    processes: Arc<Processes>,
    /// The addresses of the ranks' numbers: each has one for every rank, in that one's memory.
    numbers: Vec<u64>,
    rank: usize,
    /// The number of the last meeting.
    round: AtomicU32,
    /// True if a meeting may be queued behind which no event is.
    is_unsure: AtomicBool,
    /// The events behind the last meetings, the latest one last.
    behind: Mutex<VecDeque<Event>>,
}

impl Meeting {
    /// Queues a meeting, unless `check` refuses it. It waits on the host until few meetings are
    /// queued.
    pub(super) fn meet(&self, stream: &Stream, by: Deadline, check: impl Fn() -> Result<()>) -> Result<()> {
        stream.check_not_capturing("a meeting of ranks")?;
        self.await_room(by, &check)?;
        let mut behind = lock(&self.behind);
        let event = match behind.len() {
            QUEUED => behind.pop_front(),
            _ => None,
        };
        let event = event.map_or_else(|| Event::untimed(&self.device), Ok)?;
        let value = self.round.load(Ordering::Acquire).wrapping_add(1);
        let peers = || self.numbers.iter().enumerate().filter(|&(peer, _)| peer != self.rank);
        let write = |(_, &numbers): (usize, &u64)| Flag::Write { address: numbers + 4 * self.rank as u64, value };
        let own = self.numbers[self.rank];
        let wait = |(peer, _): (usize, &u64)| Flag::Await { address: own + 4 * peer as u64, value };
        let flags: Vec<Flag> = peers().map(write).chain(peers().map(wait)).collect();
        // Before the check, so that an abort which the check does not see releases this meeting.
        self.is_unsure.store(true, Ordering::SeqCst);
        self.round.store(value, Ordering::SeqCst);
        check()?;
        // SAFETY: the caller checked that the stream is the device's, whose context is the primary
        // one. The numbers lie behind the windows, where nothing else is, and those stay until all
        // ranks have closed them or for ever.
        unsafe { self.processes.queue(stream.handle(), &flags) }?;
        stream.record(&event)?;
        behind.push_back(event);
        self.is_unsure.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Waits until the oldest of the last meetings is over.
    fn await_room(&self, by: Deadline, check: impl Fn() -> Result<()>) -> Result<()> {
        for round in 0.. {
            let is_full = {
                let behind = lock(&self.behind);
                behind.len() == QUEUED && behind[0].query() == Ok(false)
            };
            if !is_full {
                break;
            }
            check()?;
            if by.has_passed() {
                return Err(by.error(format_args!("a meeting of rank {} with its peers", self.rank)));
            }
            pause(round);
        }
        Ok(())
    }

    /// Returns whether the streams have left the last meeting.
    pub(super) fn has_ended(&self) -> bool {
        // A stream that has failed waits for nothing.
        let last = || lock(&self.behind).back().is_none_or(|event| event.query() != Ok(false));
        !self.is_unsure.load(Ordering::SeqCst) && last()
    }

    /// Returns the first rank that has told that it aborts.
    pub(super) fn aborted_rank(&self) -> Result<Option<usize>> {
        let own = self.numbers[self.rank] + ABORTS;
        // SAFETY: these are this rank's own numbers, which stay as `meet` says.
        let told = unsafe { self.processes.read_beside(own, self.numbers.len()) }?;
        Ok(told.iter().position(|&number| number != 0))
    }

    /// Lets streams go on that wait for peers which do not come, after [`Meeting::meet`] was
    /// refused for good. A peer that still comes writes a smaller number over this one's, so this
    /// goes on until the streams have left.
    ///
    /// These streams may then do their work too early, and to the memory of peers: so the peers
    /// are told first, in the same memory. Whatever they read afterwards, they do not confirm.
    fn release(&self) {
        let value = self.round.load(Ordering::SeqCst).wrapping_add(AHEAD);
        let told = |(_, &numbers): (usize, &u64)| (numbers + ABORTS + 4 * self.rank as u64, 1, 1);
        let mut writes: Vec<_> =
            self.numbers.iter().enumerate().filter(|&(peer, _)| peer != self.rank).map(told).collect();
        writes.push((self.numbers[self.rank], value, self.numbers.len()));
        let by = Deadline::after(PATIENCE);
        loop {
            // SAFETY: the numbers stay as `meet` says.
            let _ = unsafe { self.processes.write_beside(&writes) };
            thread::sleep(PAUSE);
            if self.has_ended() || by.has_passed() {
                break;
            }
        }
    }

    /// As [`Meeting::release`], on a thread of its own.
    pub(super) fn release_beside(self: &Arc<Self>) {
        let meeting = Arc::clone(self);
        // Without a thread the streams wait until the process ends.
        let _ = thread::Builder::new().name("window release".into()).spawn(move || meeting.release());
    }
}

#[cfg(test)]
mod tests;
