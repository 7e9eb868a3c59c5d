//! The engine of one rank.

use std::ffi::c_void;
use std::fmt;
use std::ptr::{without_provenance, without_provenance_mut};
use std::time::Duration;

use super::calls::Live;
use super::library::{Code, Comm, IN_PROGRESS, Library, SUCCESS, UniqueId};
use crate::device::Device;
use crate::distributed::communicator::{pause, peer_error};
use crate::distributed::{Combine, Deadline, Engine, Members, Message, Reduce};
use crate::driver::DriverKind;
use crate::element::DType;
use crate::error::{Error, ErrorKind, Result, refuse, require};
use crate::stream::{Event, Stream};
use crate::sync::{Mutex, lock};

/// One rank that exchanges messages by NCCL.
pub(super) struct Nccl {
    members: Members,
    library: &'static Library,
    /// `None` once it was aborted. Held during each call, so that one thread at a time is in NCCL.
    live: Mutex<Option<Live>>,
    /// Why it was aborted.
    aborted: Mutex<Option<String>>,
    /// Passed when the last call's work has run, with the time that call had.
    last: Mutex<(Event, Duration)>,
}

/// The time in which a communicator that has nothing left to do ends.
const ENDING: Duration = Duration::from_secs(10);

impl Nccl {
    pub(super) fn new(device: &Device, members: Members) -> Result<Self> {
        let by = Deadline::after(members.deadline());
        let begun = Self::begin(device, &members).inspect_err(|error| members.tell_abort(&error.to_string()));
        let (library, live, event) = begun?;
        let (live, last) = (Mutex::new(Some(live)), Mutex::new((event, Duration::ZERO)));
        let engine = Self { members, library, live, aborted: Mutex::default(), last };
        engine.settle("ncclCommInitRankConfig", SUCCESS, by)?;
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
        self.check()?;
        let code = match &*lock(&self.live) {
            Some(live) => live.call(call)?,
            None => IN_PROGRESS,
        };
        self.settle(name, code, by)?;
        let mut last = lock(&self.last);
        stream.record(&last.0)?;
        last.1 = by.given();
        Ok(())
    }

    /// Waits on the host until the communicator is no longer busy with a call. Then, after a
    /// failure, at the deadline, or where a peer was lost, nothing of the call is queued or all of
    /// it is aborted.
    fn settle(&self, name: &str, mut code: Code, by: Deadline) -> Result<()> {
        for round in 0.. {
            if let Some(why) = lock(&self.aborted).clone() {
                self.end();
                return Err(aborted(&why));
            }
            let failed = match &*lock(&self.live) {
                None => Some(aborted("it has failed before")),
                Some(live) => {
                    if code == SUCCESS || code == IN_PROGRESS {
                        code = live.state();
                    }
                    match code {
                        SUCCESS => return Ok(()),
                        IN_PROGRESS => None,
                        code => Some(live.error(name, code)),
                    }
                }
            };
            let late = || by.has_passed().then(|| by.error(format_args!("{name} of rank {}", self.rank())));
            // A rank that was lost is the cause of what NCCL says.
            if let Some(error) = self.lost().or(failed).or_else(late) {
                self.fail(&error);
                return Err(error);
            }
            pause(round);
        }
        unreachable!("the rounds do not end")
    }

    /// Returns the error of a rank that was lost.
    fn lost(&self) -> Option<Error> {
        self.members.lost().map(|lost| peer_error(format_args!("rank {} {}", lost.rank, lost.reason)))
    }

    /// Aborts after a failure.
    fn fail(&self, error: &Error) {
        self.abort(&error.to_string());
        self.end();
    }

    /// Aborts what NCCL has queued, so that the streams go on.
    fn end(&self) {
        if let Some(live) = lock(&self.live).take() {
            live.abort();
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
// After a failure the communicator is aborted, which ends that work.
unsafe impl Engine for Nccl {
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
            let mut code = SUCCESS;
            let mut note = |of: Code| {
                if code == SUCCESS || code == IN_PROGRESS {
                    code = of;
                }
            };
            // SAFETY: a group is begun and ended on this thread.
            note(unsafe { (functions.ncclGroupStart)() });
            for Message { peer, address, bytes } in sends.iter().filter(some) {
                let (from, peer) = (pointer(*address), *peer as i32);
                // SAFETY: as the caller promises; the communicator and the stream are live.
                note(unsafe { (functions.ncclSend)(from, *bytes as usize, BYTES, peer, comm, queue) });
            }
            for Message { peer, address, bytes } in receives.iter().filter(some) {
                let (to, peer) = (pointer_mut(*address), *peer as i32);
                // SAFETY: as above.
                note(unsafe { (functions.ncclRecv)(to, *bytes as usize, BYTES, peer, comm, queue) });
            }
            // SAFETY: as above.
            note(unsafe { (functions.ncclGroupEnd)() });
            code
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

    fn agree(&self, about: &str, digest: u64, _by: Deadline) -> Result<()> {
        self.check()?;
        self.members.agree(about, digest).inspect_err(|error| self.fail(error))
    }

    fn check(&self) -> Result<()> {
        if let Some(why) = lock(&self.aborted).clone() {
            self.end();
            return Err(aborted(&why));
        }
        let failed = match &*lock(&self.live) {
            None => Some(aborted("it has failed before")),
            Some(live) => match live.state() {
                SUCCESS | IN_PROGRESS => None,
                code => Some(live.error("work of the communicator", code)),
            },
        };
        match self.lost().or(failed) {
            Some(error) => {
                self.fail(&error);
                Err(error)
            }
            None => Ok(()),
        }
    }

    fn abort(&self, why: &str) {
        let mut aborted = lock(&self.aborted);
        if aborted.is_some() {
            return;
        }
        *aborted = Some(why.to_owned());
        drop(aborted);
        self.members.tell_abort(why);
        // A thread that is in a call sees it, and ends the communicator itself.
        if let Ok(mut live) = self.live.try_lock()
            && let Some(live) = live.take()
        {
            live.abort();
        }
    }
}

impl Drop for Nccl {
    /// Waits for the last call's work for as long as that call had, and ends the communicator.
    fn drop(&mut self) {
        let Some(live) = lock(&self.live).take() else { return };
        let (event, given) = &*lock(&self.last);
        let by = Deadline::after(*given);
        for round in 0.. {
            if event.query() != Ok(false) {
                break;
            }
            if by.has_passed() || self.members.lost().is_some() {
                live.abort();
                return;
            }
            pause(round);
        }
        let (by, mut code) = (Deadline::after(ENDING), SUCCESS);
        // SAFETY: the communicator is live, and only destroyed or aborted afterwards.
        let finalized = live.call(|library, comm| unsafe { (library.functions.ncclCommFinalize)(comm) });
        if let Ok(SUCCESS | IN_PROGRESS) = finalized {
            for round in 0.. {
                code = live.state();
                if code != IN_PROGRESS || by.has_passed() {
                    break;
                }
                pause(round);
            }
        }
        if code == SUCCESS { live.destroy() } else { live.abort() }
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (library, members) = (self.library, &self.members);
        write!(f, "Nccl(rank {} of {}, {})", members.rank(), members.ranks(), library.version())
    }
}
