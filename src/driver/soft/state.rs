//! The state of the software GPUs of a host: their queued work, their handles, and whether they
//! have failed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::HostCall;
use super::clocks::Piece;
use super::order::Bytes;
use super::region::Region;
use super::schedule::{Condition, Mark, Schedule};
use crate::driver::{Copy3d, EventHandle, FunctionHandle, Place, StreamHandle};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::interp::{Kernel, Module, Touched};
use crate::launch_shape::LaunchShape;

/// The state of the software GPUs of a host, without their memory.
pub(super) struct State {
    pub(super) schedule: Schedule<Queued>,
    /// Live events with their latest record.
    pub(super) events: HashMap<u64, Latest>,
    pub(super) modules: HashMap<u64, Loaded>,
    pub(super) functions: HashMap<u64, Entry>,
    pub(super) host: HashMap<usize, Vec<Line>>,
    /// The captures that have begun, by stream.
    pub(super) captures: HashMap<u64, Capture>,
    pub(super) graphs: HashMap<u64, Nodes>,
    pub(super) execs: HashMap<u64, Exec>,
    /// Registered host memory: first address and bytes.
    pub(super) registered: BTreeMap<usize, usize>,
    /// The bytes of allocations from the pool whose free is not queued yet.
    pub(super) pool: HashMap<u64, u64>,
    /// Why the device has failed, once it has.
    pub(super) failed: Option<Error>,
}

/// The latest record of an event.
#[derive(Clone)]
pub(super) enum Latest {
    Never,
    Queued(Arc<Mark>),
    /// In the capture of this stream with this number, of which launches know nothing.
    Captured(StreamHandle, u64),
}

/// Captured work in its order, shared by a graph, what was instantiated from it, and its launches.
pub(super) type Nodes = Arc<[Arc<Action>]>;

/// The capture of one stream.
pub(super) struct Capture {
    /// A number that no other capture has, for the events that are recorded in it.
    pub(super) id: u64,
    pub(super) nodes: Vec<Arc<Action>>,
    /// Why nothing comes of it, after a call that must not be captured.
    pub(super) broken: Option<Error>,
}

/// A graph that can be launched.
pub(super) struct Exec {
    pub(super) nodes: Nodes,
    /// The end of its last launch, which the next one waits for.
    pub(super) last: Option<Arc<Mark>>,
}

/// A kernel that can be launched.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) kernel: Kernel,
    /// The most bytes of dynamic shared memory of its launches, once a program has allowed them.
    pub(super) allowed_shared: Option<u32>,
    /// True if it is one of this crate's kernels, whose launches end: their work has no limit.
    pub(super) own: bool,
}

/// A module, with the functions that were requested.
pub(super) struct Loaded {
    pub(super) module: Module,
    pub(super) functions: BTreeMap<String, FunctionHandle>,
    /// True if it is one of this crate's.
    pub(super) own: bool,
}

/// A chunk of page-locked memory, for alignment.
#[derive(Clone, Copy)]
#[repr(align(64))]
#[expect(dead_code, reason = "read and written by callers only")]
pub(super) struct Line(pub(super) [u8; 64]);

/// Work on a stream, and the stream for error messages. A graph shares its actions with all its
/// launches.
#[derive(Clone)]
pub(super) struct Queued {
    pub(super) stream: StreamHandle,
    pub(super) action: Arc<Action>,
    /// Its place in the order, if that is followed.
    pub(super) piece: Option<Piece>,
}

/// An action and its operands.
pub(super) enum Action {
    Upload { dst: u64, src: HostPointer, bytes: usize },
    Download { dst: HostPointer, src: u64, bytes: usize },
    Copy { dst: u64, src: u64, bytes: u64 },
    CopyBox(HostBox),
    Fill { dst: u64, value: u8, bytes: u64 },
    PoolFree { address: u64, bytes: u64 },
    Launch { entry: Entry, shape: LaunchShape, params: Box<[u8]>, cooperative: bool },
    Call { what: &'static str, uses: Option<Box<[Region]>>, call: HostCall },
    Until(Condition),
}

/// A caller's memory, which the thread that waits uses later.
pub(super) struct HostPointer(pub(super) *mut u8);

// SAFETY: the code that queues a copy promises that the memory stays valid until the copy has run,
// on any thread.
unsafe impl Send for HostPointer {}
// SAFETY: threads share it through a graph's work alone, which runs under the state's lock.
unsafe impl Sync for HostPointer {}

/// A copy of a box, which may have a side in a caller's memory.
pub(super) struct HostBox(pub(super) Copy3d);

// SAFETY: as for `HostPointer`.
unsafe impl Send for HostBox {}
// SAFETY: as for `HostPointer`.
unsafe impl Sync for HostBox {}

/// Bytes that no allocation of a device has, nor the distance from one to the next.
pub(super) const MOST_BYTES: u64 = 1 << 40;

/// The bytes that a launch has touched, if they are followed.
pub(super) type Ran = Option<Arc<Touched>>;

impl Action {
    /// Returns the bytes that it uses, without those of a kernel; `None` for a call of the
    /// program's own function.
    fn uses(&self) -> Option<Vec<Region>> {
        let of = |host: &HostPointer| host.0.addr() as u64;
        Some(match self {
            Self::Upload { dst, src, bytes } => pair(*dst, of(src), *bytes as u64),
            Self::Download { dst, src, bytes } => pair(of(dst), *src, *bytes as u64),
            Self::Copy { dst, src, bytes } => pair(*dst, *src, *bytes),
            Self::CopyBox(HostBox(copy)) => copy_regions(copy).into(),
            Self::Fill { dst, bytes, .. } => vec![Region::row(*dst, *bytes, true)],
            // Work without an order with it may come too late.
            Self::PoolFree { address, bytes } => vec![Region::row(*address, *bytes, true)],
            Self::Launch { .. } | Self::Until(_) => Vec::new(),
            Self::Call { uses, .. } => uses.as_ref()?.to_vec(),
        })
    }

    /// Returns its name among the work that has no order.
    fn name(&self) -> String {
        match self {
            Self::Launch { entry, .. } => entry.kernel.name().to_owned(),
            action => action.to_string(),
        }
    }
}

/// The regions of a copy of one row.
fn pair(dst: u64, src: u64, bytes: u64) -> Vec<Region> {
    vec![Region::row(dst, bytes, true), Region::row(src, bytes, false)]
}

fn copy_regions(copy: &Copy3d) -> [Region; 2] {
    [(&copy.dst, true), (&copy.src, false)].map(|(side, is_written)| Region {
        address: match side.place {
            Place::Device(address) => address,
            Place::Host(memory) => memory.addr() as u64,
        },
        row_bytes: copy.width as u64,
        row_pitch: side.row_pitch as u64,
        row_count: copy.height as u64,
        slice_pitch: side.slice_pitch as u64,
        slice_count: copy.depth as u64,
        is_written,
    })
}

impl State {
    /// Makes a state without streams, events or modules. `seed` decides the order of work.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            schedule: Schedule::new(seed),
            events: HashMap::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            host: HashMap::new(),
            captures: HashMap::new(),
            graphs: HashMap::new(),
            execs: HashMap::new(),
            registered: BTreeMap::new(),
            pool: HashMap::new(),
            failed: None,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(cause) => Err(cause.clone().while_doing("the device failed earlier and has to be opened anew")),
        }
    }

    /// Returns the latest record of a live event.
    pub(super) fn latest(&self, event: EventHandle) -> Result<Latest> {
        self.events.get(&event.0).cloned().ok_or_else(|| no_such("event", event.0))
    }

    /// Returns the latest record of a live event, if there is one. One in a capture is refused,
    /// because it is passed at no time.
    pub(super) fn event(&mut self, event: EventHandle) -> Result<Option<Arc<Mark>>> {
        match self.latest(event)? {
            Latest::Never => Ok(None),
            Latest::Queued(mark) => Ok(Some(mark)),
            Latest::Captured(stream, id) => {
                let what = format!(
                    "event {:#x} was recorded in a capture of stream {:#x}, so it is passed at no time; record it outside of the \
                     capture",
                    event.0, stream.0
                );
                match self.captures.get(&stream.0) {
                    Some(capture) if capture.id == id => Err(self.refuse(stream, what)),
                    _ => Err(Error::argument(what)),
                }
            }
        }
    }

    /// Breaks the capture of `stream`, if there is one still, and returns the error that says why.
    pub(super) fn refuse(&mut self, stream: StreamHandle, what: String) -> Error {
        let error = Error::argument(what);
        if let Some(capture) = self.captures.get_mut(&stream.0) {
            capture.broken.get_or_insert_with(|| error.clone());
        }
        error
    }

    /// Queues an action on a live stream, as the kind of work that it is.
    pub(super) fn push(&mut self, stream: StreamHandle, action: Arc<Action>) {
        if let Action::Until(condition) = &*action {
            return self.schedule.push_until(stream.0, condition.clone());
        }
        let piece = self.schedule.order().map(|order| {
            let piece = order.clocks.next(stream.0);
            // The program's function may tell the host that it has run.
            if matches!(&*action, Action::Call { uses: None, .. }) {
                order.clocks.mark(stream.0);
            }
            piece
        });
        let queued = Queued { stream, action, piece };
        match &*queued.action {
            Action::Call { .. } => self.schedule.push_call(stream.0, queued),
            _ => self.schedule.push(stream.0, queued),
        }
    }

    /// Runs work with `run`. A failure, or a panic, marks the device as failed, and no queued work
    /// runs from then on: the code that queued a copy may then reuse the memory.
    pub(super) fn run(&mut self, work: &Queued, run: impl FnOnce(&Queued) -> Result<Ran>) -> Result<()> {
        let guard = FailOnUnwind(self);
        let result = run(work);
        let ended = guard.0.end(work, result);
        std::mem::forget(guard);
        ended
    }

    /// Notes that a call of the host begins. The program's own function may tell the host that all
    /// before it has run, as soon as it runs.
    pub(super) fn begin_call(&mut self, call: &Queued) {
        if let (Some(order), Some(piece), None) = (self.schedule.order(), &call.piece, call.action.uses()) {
            order.clocks.host_has(piece.clock());
        }
    }

    /// Notes how work ended.
    pub(super) fn end(&mut self, work: &Queued, result: Result<Ran>) -> Result<()> {
        let touched = result.map_err(|error| error.while_doing(work)).inspect_err(|error| self.fail(error.clone()))?;
        if let (Some(order), Some(piece)) = (self.schedule.order(), &work.piece) {
            match work.action.uses() {
                None => {}
                Some(regions) => order.ran(piece, &work.action.name(), Bytes { touched, regions }),
            }
            order.clocks.ran(piece.stream);
            if let Action::PoolFree { address, bytes } = *work.action {
                order.forget(address, bytes);
            }
        }
        Ok(())
    }

    /// Notes that memory is freed.
    pub(super) fn forget(&mut self, address: u64, bytes: u64) {
        if let Some(order) = self.schedule.order() {
            order.forget(address, bytes);
        }
    }

    pub(super) fn fail(&mut self, cause: Error) {
        self.schedule.clear();
        self.failed.get_or_insert(cause);
    }

    /// Marks the device as failed after a panic of its work.
    pub(super) fn panicked(&mut self) {
        let context = "the software GPU panicked while it ran queued work; please report this as a bug";
        self.fail(Error::new(ErrorKind::Driver, context));
    }
}

/// Marks the device as failed when dropped, which happens only if work panicked.
struct FailOnUnwind<'a>(&'a mut State);

impl Drop for FailOnUnwind<'_> {
    fn drop(&mut self) {
        self.0.panicked();
    }
}

/// Describes the work, for a failure that is reported late.
impl fmt::Display for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, queued on stream {:#x}", self.action, self.stream.0)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Upload { dst, bytes, .. } => {
                write!(f, "copying {bytes} from the host to {dst:#x}", bytes = counted(bytes, "byte"))
            }
            Action::Download { src, bytes, .. } => {
                write!(f, "copying {bytes} from {src:#x} to the host", bytes = counted(bytes, "byte"))
            }
            Action::Copy { dst, src, bytes } => {
                write!(f, "copying {bytes} from {src:#x} to {dst:#x}", bytes = counted(bytes, "byte"))
            }
            Action::CopyBox(HostBox(Copy3d { width, height, depth, .. })) => {
                let width = counted(width, "byte");
                write!(f, "copying a box of {width} x {height} x {depth}")
            }
            Action::PoolFree { address, .. } => write!(f, "freeing {address:#x} into the pool"),
            Action::Fill { dst, value, bytes } => {
                write!(f, "filling {bytes} at {dst:#x} with {value}", bytes = counted(bytes, "byte"))
            }
            Action::Launch { entry, shape: LaunchShape { grid, block, .. }, .. } => {
                write!(f, "running {} on a grid of {grid:?} blocks of {block:?} threads", entry.kernel.name())
            }
            Action::Call { what, .. } => f.write_str(what),
            Action::Until(_) => f.write_str("waiting for a condition"),
        }
    }
}

pub(super) fn no_such(what: &str, handle: u64) -> Error {
    let context =
        format!("{handle:#x} is not a live {what} of this software GPU; use its own handles, until they are released");
    Error::new(ErrorKind::InvalidHandle, context)
}

#[cfg(test)]
mod tests;
