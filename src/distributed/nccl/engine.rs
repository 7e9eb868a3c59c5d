//! The engine of one rank.

use std::ffi::c_void;
use std::fmt;
use std::ptr::{without_provenance, without_provenance_mut};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::calls::{Live, is_fine};
use super::library::{Code, Comm, IN_PROGRESS, Library, SUCCESS, UniqueId};
use super::windows::{OFFER, Offer, Offered, Windows};
use crate::device::Device;
use crate::distributed::communicator::{WINDOW_RANKS, pause, peer_error};
use crate::distributed::{Combine, Deadline, Engine, Members, Message, Reduce, Window};
use crate::driver::DriverKind;
use crate::element::DType;
use crate::error::{Error, ErrorKind, Result, refuse, require};
use crate::ops::Align;
use crate::stream::{Event, Stream};
use crate::sync::{Arc, AtomicBool, Mutex, lock};

/// One rank that exchanges messages by NCCL.
pub(super) struct Nccl {
    device: Device,
    /// Held from a call of NCCL until it has queued its work: NCCL refuses calls in between.
    calling: Mutex<()>,
    members: Members,
    library: &'static Library,
    /// `None` once it was aborted. Held during each call, so that one thread at a time is in NCCL.
    live: Mutex<Option<Live>>,
    /// True once an abort did not end, so that NCCL may still queue the work of a call.
    stuck: AtomicBool,
    /// Why it was aborted.
    aborted: Mutex<Option<String>>,
    /// Passed when the last call's work has run, with the time that call had.
    last: Mutex<(Event, Duration)>,
    windows: Windows,
}

/// The time in which a communicator that has nothing left to do ends.
const ENDING: Duration = Duration::from_secs(10);
/// The time in which the news of a rank that was lost comes.
const NEWS: Duration = Duration::from_millis(200);

impl Nccl {
    pub(super) fn new(device: &Device, members: Members) -> Result<Self> {
        let by = Deadline::after(members.deadline());
        let begun = Self::begin(device, &members).inspect_err(|error| members.tell_abort(&error.to_string()));
        let (library, live, event) = begun?;
        let (live, last) = (Mutex::new(Some(live)), Mutex::new((event, Duration::ZERO)));
        let engine = Self {
            device: device.clone(),
            calling: Mutex::default(),
            stuck: AtomicBool::new(false),
            members,
            library,
            live,
            aborted: Mutex::default(),
            last,
            windows: Windows::default(),
        };
        engine.settle("ncclCommInitRankConfig", SUCCESS, by).inspect_err(|error| engine.fail(error))?;
        Ok(engine)
    }

    /// Finds the library, and begins to make a communicator.
    fn begin(device: &Device, members: &Members) -> Result<(&'static Library, Live, Event)> {
        let library = Library::find()?;
        let info = device.info();
        require!(
            info.kind == DriverKind::Cuda || library.needs_no_gpu,
            Unavailable,
            "NCCL runs on NVIDIA GPUs, and {} is not one; ranks of software GPUs share a process (`Communicator::local`)",
            info.name
        );
        let ordinal = (info.kind == DriverKind::Cuda).then_some(info.ordinal);
        members.agree("version of NCCL", library.version_number())?;
        let (id, event) = (unique_id(library, members)?, Event::untimed(device)?);
        Ok((library, Live::begin(library, ordinal, [members.rank(), members.ranks()], id)?, event))
    }

    /// Makes a call that queues work on a stream, and waits on the host until NCCL has queued it.
    fn call(
        &self,
        name: &str,
        stream: &Stream,
        by: Deadline,
        call: impl FnOnce(&Library, *mut Comm) -> Code,
    ) -> Result<()> {
        let _calling = lock(&self.calling);
        self.check()?;
        let called = match &*lock(&self.live) {
            Some(live) => live.call(call),
            // It was aborted after the check.
            None => Ok(IN_PROGRESS),
        };
        let queued = called.and_then(|code| self.settle(name, code, by)).and_then(|()| {
            let mut last = lock(&self.last);
            last.1 = by.given();
            stream.record(&last.0)
        });
        queued.inspect_err(|error| self.fail(error))
    }

    /// Waits on the host until the communicator is no longer busy with a call, but not where the
    /// call failed, at the deadline, or where a peer was lost: the caller aborts then, so that
    /// nothing of the call is queued or all of it is aborted.
    fn settle(&self, name: &str, mut code: Code, by: Deadline) -> Result<()> {
        for round in 0.. {
            self.check_aborted()?;
            let failed = match &*lock(&self.live) {
                Some(live) => {
                    if is_fine(code) {
                        code = live.state();
                    }
                    (!is_fine(code)).then(|| live.error(name, code))
                }
                // It was aborted after the check.
                None => continue,
            };
            if code == SUCCESS {
                return self.check_aborted();
            }
            let late = || by.has_passed().then(|| by.error(format_args!("{name} of rank {}", self.rank())));
            if let Some(error) = self.cause(code).or(failed).or_else(late) {
                return Err(error);
            }
            pause(round);
        }
        unreachable!("the rounds do not end")
    }

    /// Refuses to go on after an abort, and ends the communicator: a thread that aborts cannot do
    /// it while another one uses the communicator. So each use is followed by this check.
    fn check_aborted(&self) -> Result<()> {
        let why = lock(&self.aborted).clone();
        let Some(why) = why else { return Ok(()) };
        self.end();
        Err(aborted(&why))
    }

    /// Returns the error of a rank that was lost, which is often the cause of what NCCL says, in
    /// whatever words: so it waits a little for the news where a call has failed.
    fn cause(&self, code: Code) -> Option<Error> {
        let by = Deadline::after(if is_fine(code) { Duration::ZERO } else { NEWS });
        for round in 0.. {
            if let Some(lost) = self.members.lost() {
                return Some(peer_error(format_args!("rank {} is lost: {}", lost.rank, lost.reason)));
            }
            if by.has_passed() {
                break;
            }
            pause(round);
        }
        None
    }

    /// Aborts after a failure.
    fn fail(&self, error: &Error) {
        self.abort(&error.to_string());
        self.end();
    }

    /// Aborts what NCCL has queued, so that the streams go on. The lock is held meanwhile: so no
    /// call of another thread returns while NCCL may still queue what that call gave it.
    fn end(&self) {
        let mut live = lock(&self.live);
        if let Some(live) = live.take() {
            self.abort_live(live);
        }
    }

    fn abort_live(&self, live: Live) {
        if !live.abort() {
            self.stuck.store(true, Ordering::Release);
        }
    }
}

/// Makes the number of a communicator on rank 0, and tells it to all.
fn unique_id(library: &Library, members: &Members) -> Result<UniqueId> {
    let mut id = UniqueId([0; 128]);
    if members.rank() == 0 {
        // SAFETY: `id` takes the result.
        let code = unsafe { (library.functions.ncclGetUniqueId)(&mut id) };
        if code != SUCCESS {
            let why = format!("ncclGetUniqueId failed with {code}; set NCCL_DEBUG=WARN to see more");
            return Err(Error::new(ErrorKind::Driver, why));
        }
    }
    let told = members.broadcast((members.rank() == 0).then_some(&id.0[..]))?;
    require!(told.len() == id.0.len(), Peer, "rank 0 sent {} of the 128 bytes of NCCL's number", told.len());
    id.0.copy_from_slice(&told);
    Ok(id)
}

fn aborted(why: &str) -> Error {
    peer_error(format_args!("the communicator is aborted: {why}"))
}

/// NCCL's number of a type whose elements are reduced.
fn number_of(dtype: DType) -> Result<u32> {
    Ok(match dtype {
        DType::I8 => 0,
        DType::U8 => BYTES,
        DType::I32 => 2,
        DType::U32 => 3,
        DType::I64 => 4,
        DType::U64 => 5,
        DType::F16 => 6,
        DType::F32 => 7,
        DType::F64 => 8,
        DType::Bf16 => 9,
        other => refuse!(InvalidArgument, "NCCL does not reduce {other}; cast it to a type of 32 bits first"),
    })
}

/// NCCL's number of unsigned bytes.
const BYTES: u32 = 1;

/// NCCL's number of an operation.
fn operation_of(combine: Combine) -> u32 {
    match combine {
        Combine::Sum => 0,
        Combine::Max => 2,
        Combine::Min => 3,
    }
}

/// NCCL's operands are pointers to the device's memory, which the host does not follow.
fn pointer(address: u64) -> *const c_void {
    without_provenance(address as usize)
}

fn pointer_mut(address: u64) -> *mut c_void {
    without_provenance_mut(address as usize)
}

// SAFETY: NCCL's calls read and write their operands as work of the stream that they are given.
// After a failure the communicator is aborted, which ends that work, or `may_still_run` tells that
// it did not.
unsafe impl Engine for Nccl {
    fn device(&self) -> &Device {
        &self.device
    }

    fn rank(&self) -> usize {
        self.members.rank()
    }

    fn ranks(&self) -> usize {
        self.members.ranks()
    }

    unsafe fn exchange(&self, sends: &[Message], receives: &[Message], stream: &Stream, by: Deadline) -> Result<()> {
        let some = |message: &&Message| message.bytes > 0;
        if sends.iter().chain(receives).all(|message| message.bytes == 0) {
            return self.check();
        }
        let queue = pointer_mut(stream.handle().0);
        self.call("a group of messages", stream, by, |library, comm| {
            let functions = &library.functions;
            // SAFETY: the group is ended on this thread.
            let mut code = unsafe { (functions.ncclGroupStart)() };
            if code != SUCCESS {
                return code;
            }
            for Message { peer, address, bytes } in sends.iter().filter(some) {
                if is_fine(code) {
                    let (from, peer) = (pointer(*address), *peer as i32);
                    // SAFETY: as the caller promises; the communicator and the stream are live.
                    code = unsafe { (functions.ncclSend)(from, *bytes as usize, BYTES, peer, comm, queue) };
                }
            }
            for Message { peer, address, bytes } in receives.iter().filter(some) {
                if is_fine(code) {
                    let (to, peer) = (pointer_mut(*address), *peer as i32);
                    // SAFETY: as above.
                    code = unsafe { (functions.ncclRecv)(to, *bytes as usize, BYTES, peer, comm, queue) };
                }
            }
            // SAFETY: the group was started on this thread.
            let ended = unsafe { (functions.ncclGroupEnd)() };
            if is_fine(code) { ended } else { code }
        })
    }

    unsafe fn broadcast(&self, address: u64, bytes: u64, root: usize, stream: &Stream, by: Deadline) -> Result<()> {
        if bytes == 0 {
            return self.check();
        }
        let (from, to, queue) = (pointer(address), pointer_mut(address), pointer_mut(stream.handle().0));
        self.call("a broadcast", stream, by, |library, comm| {
            // SAFETY: as the caller promises; the communicator and the stream are live.
            unsafe { (library.functions.ncclBroadcast)(from, to, bytes as usize, BYTES, root as i32, comm, queue) }
        })
    }

    unsafe fn reduce(&self, reduce: Reduce, stream: &Stream, by: Deadline) -> Result<()> {
        let (dtype, operation) = (number_of(reduce.dtype)?, operation_of(reduce.combine));
        let (from, to, len) = (pointer(reduce.from), pointer_mut(reduce.to), reduce.len as usize);
        let queue = pointer_mut(stream.handle().0);
        if len == 0 {
            return self.check();
        }
        self.call("a reduction", stream, by, |library, comm| match reduce.root {
            // SAFETY: as the caller promises; the communicator and the stream are live.
            Some(root) => unsafe {
                (library.functions.ncclReduce)(from, to, len, dtype, operation, root as i32, comm, queue)
            },
            // SAFETY: as above.
            None => unsafe { (library.functions.ncclAllReduce)(from, to, len, dtype, operation, comm, queue) },
        })
    }

    fn window(&self, bytes: u64, by: Deadline) -> Result<Option<Window>> {
        require!(bytes > 0, InvalidArgument, "a window has at least 1 byte, and 0 were asked for");
        self.check()?;
        if self.library.needs_no_gpu || !(2..=WINDOW_RANKS).contains(&self.ranks()) {
            return Ok(None);
        }
        // The numbers behind it are aligned so.
        let bytes = bytes.next_multiple_of(Align::ALLOCATION.bytes());
        match self.windows.known(bytes) {
            Ok(known) => Ok(known),
            Err(()) => self.open_window(bytes, by).inspect_err(|error| self.fail(error)),
        }
    }

    fn meet(&self, _about: u64, stream: &Stream, by: Deadline) -> Result<()> {
        self.check()?;
        require!(
            Arc::ptr_eq(stream.context(), self.device.context()),
            InvalidArgument,
            "the stream is of another device than rank {}; give one of its own",
            self.rank()
        );
        let Some(meeting) = self.windows.meeting() else {
            refuse!(InvalidArgument, "rank {} has no window to meet by; open one first", self.rank());
        };
        // It only looks: the end of NCCL's communicator may need what the meeting holds.
        let check = || match &*lock(&self.aborted) {
            Some(why) => Err(aborted(why)),
            None => Ok(()),
        };
        meeting.meet(stream, by, check).inspect_err(|error| self.fail(error))
    }

    fn confirm(&self) -> Result<()> {
        let told = self.windows.meeting().map_or(Ok(None), |meeting| meeting.aborted_rank())?;
        let lost = told.map(|rank| peer_error(format_args!("rank {rank} aborted")));
        match self.check() {
            Ok(()) => lost.map_or(Ok(()), |error| {
                self.fail(&error);
                Err(error)
            }),
            // It knows why.
            Err(error) => Err(error),
        }
    }

    fn agree(&self, about: &str, digest: u64, _by: Deadline) -> Result<()> {
        self.check()?;
        self.members.agree(about, digest).inspect_err(|error| self.fail(error))
    }

    fn check(&self) -> Result<()> {
        self.check_aborted()?;
        let (code, failed) = match &*lock(&self.live) {
            Some(live) => {
                let code = live.state();
                (code, (!is_fine(code)).then(|| live.error("work of the communicator", code)))
            }
            // It was aborted after the check.
            None => (SUCCESS, None),
        };
        if let Some(error) = self.cause(code).or(failed) {
            self.fail(&error);
            return Err(error);
        }
        self.check_aborted()
    }

    fn may_still_run(&self) -> bool {
        self.stuck.load(Ordering::Acquire)
    }

    fn abort(&self, why: &str) {
        let mut aborted = lock(&self.aborted);
        if aborted.is_some() {
            return;
        }
        *aborted = Some(why.to_owned());
        drop(aborted);
        if let Some(meeting) = self.windows.meeting() {
            meeting.release_beside();
        }
        self.members.tell_abort(why);
        // A thread that has the lock checks for an abort next, and ends the communicator itself.
        // The lock is held meanwhile, as in `end`.
        if let Ok(mut live) = self.live.try_lock()
            && let Some(live) = live.take()
        {
            self.abort_live(live);
        }
    }
}

impl Drop for Nccl {
    /// Waits for the last call's work for as long as that call had, and ends the communicator.
    fn drop(&mut self) {
        let live = lock(&self.live).take();
        let Some(live) = live else { return };
        let (event, given) = &*lock(&self.last);
        let has_left = || self.windows.meeting().is_none_or(|meeting| meeting.has_ended());
        // The default stream has what exchanges do behind their meetings.
        let behind = Event::untimed(&self.device);
        let behind = behind.and_then(|event| self.device.default_stream().record(&event).map(|()| event)).ok();
        let is_behind = || behind.as_ref().is_none_or(|event| event.query() != Ok(false));
        let has_run = self.holds_within(*given, || event.query() != Ok(false) && has_left() && is_behind());
        if has_run {
            self.close_windows();
        } else {
            if let Some(meeting) = self.windows.meeting() {
                meeting.release_beside();
            }
            self.members.tell_abort("it dropped its communicator, whose work did not end");
        }
        if has_run && self.is_finalized(&live) {
            live.destroy();
        } else {
            live.abort();
        }
    }
}

impl Nccl {
    /// Opens a window with all ranks; `None` if some do not reach each other's memory.
    fn open_window(&self, bytes: u64, by: Deadline) -> Result<Option<Window>> {
        let gathered = |mine: Offer| {
            let told = self.gather(mine.to_bytes(), by)?;
            Ok::<Vec<Offer>, Error>(told.iter().map(Offer::of_bytes).collect())
        };
        // Before any memory is allocated.
        if !Offer::are_of_one_host(&gathered(Offer::of_host())?) {
            return self.windows.remember(&self.device, None);
        }
        let offered = Offered::new(&self.device, bytes)?;
        let offers = gathered(offered.as_ref().map_or_else(Offer::none, Offered::offer))?;
        let opened = match &offered {
            Some(offered) if Offer::are_of_one_host(&offers) => {
                Offer::check_bytes(&offers)?;
                offered.open(&offers, self.rank())
            }
            _ => None,
        };
        let all_are_open = self.gather([u8::from(opened.is_some()); OFFER], by)?.iter().all(|told| told[0] == 1);
        if all_are_open {
            return self.windows.remember(&self.device, opened);
        }
        if let Some(opened) = opened {
            opened.close();
        }
        // All ranks have closed what they had opened once they have all come here.
        self.gather([0; OFFER], by)?;
        if let Some(offered) = &offered {
            // SAFETY: no rank has it open any more, and none has used it.
            unsafe { offered.free() };
        }
        self.windows.remember(&self.device, None)
    }

    /// Returns the bytes that each rank gives, and waits for them.
    fn gather(&self, mine: [u8; OFFER], by: Deadline) -> Result<Vec<[u8; OFFER]>> {
        let (rank, ranks) = (self.rank(), self.ranks());
        // All of it is on a stream of its own: others may wait for ranks that are not here.
        let (stream, driver) = (self.device.stream()?, self.device.driver());
        let memory = self.device.alloc_on::<u8>(ranks * OFFER, &stream)?;
        let begin = memory.memory().address();
        let at = |peer: usize| Message { peer, address: begin + (peer * OFFER) as u64, bytes: OFFER as u64 };
        let peers = || (0..ranks).filter(|&peer| peer != rank);
        let sends: Vec<Message> = peers().map(|peer| Message { peer, ..at(rank) }).collect();
        let receives: Vec<Message> = peers().map(at).collect();
        let arrived = || {
            // SAFETY: the memory has room for each rank's bytes, and no other stream uses it. Those
            // of this rank live until the wait below.
            unsafe { driver.copy_h2d(at(rank).address, mine.as_ptr(), OFFER, stream.handle()) }?;
            // SAFETY: as above.
            unsafe { self.exchange(&sends, &receives, &stream, by) }?;
            let event = Event::untimed(&self.device)?;
            stream.record(&event)?;
            let in_time = self.holds_within(by.left(), || event.query() != Ok(false));
            self.check()?;
            if in_time { Ok(()) } else { Err(by.error(format_args!("the opening of a window by rank {rank}"))) }
        };
        if let Err(error) = arrived() {
            self.fail(&error);
            // Aborted work may still use it.
            std::mem::forget(memory);
            return Err(error);
        }
        let mut bytes = vec![0; ranks * OFFER];
        // SAFETY: the bytes live until the wait below.
        let copied = unsafe { driver.copy_d2h(bytes.as_mut_ptr(), begin, bytes.len(), stream.handle()) };
        stream.synchronize().and(copied)?;
        Ok(bytes.chunks_exact(OFFER).map(|told| std::array::from_fn(|at| told[at])).collect())
    }

    /// Unmaps the windows, and frees this rank's memory once all ranks have done so. A rank that
    /// does not come in time may still have it mapped, and then it is never freed.
    fn close_windows(&self) {
        if self.windows.close() && self.members.barrier_within(ENDING).is_ok() {
            // SAFETY: all ranks have closed their windows before the barrier.
            unsafe { self.windows.free() };
        }
    }

    /// Waits until NCCL has nothing left to do.
    fn is_finalized(&self, live: &Live) -> bool {
        // SAFETY: the communicator is live, and only destroyed or aborted afterwards.
        let finalized = live.call(|library, comm| unsafe { (library.functions.ncclCommFinalize)(comm) });
        finalized.is_ok_and(is_fine)
            && self.holds_within(ENDING, || live.state() != IN_PROGRESS)
            && live.state() == SUCCESS
    }

    /// Waits until a condition holds. It returns false if that takes too long, or a rank was lost.
    fn holds_within(&self, time: Duration, mut holds: impl FnMut() -> bool) -> bool {
        let by = Deadline::after(time);
        for round in 0.. {
            if holds() {
                return true;
            }
            if by.has_passed() || self.members.lost().is_some() {
                return false;
            }
            pause(round);
        }
        unreachable!("the rounds do not end")
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (library, members) = (self.library, &self.members);
        write!(f, "Nccl(rank {} of {}, {})", members.rank(), members.ranks(), library.version())
    }
}
