//! The work of nodes.

use std::sync::Arc;

use warpstride::driver::{Memory as _, StreamHandle};

use super::params::FillParams;
use super::{Graph, graphs};
use crate::arguments::{Handle, Opaque};
use crate::code::{Failure, Outcome};
use crate::launch::Launch;
use crate::memory::{Copy3d, PlannedCopy, PlannedFill, room};
use crate::process::{Gpu, process};
use crate::stream::{Event, Operation, host_call};

/// A function of the host.
pub(crate) type HostFunction = unsafe extern "C" fn(Opaque);

/// The kinds of nodes, as C numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    Kernel = 0,
    Copy = 1,
    Fill = 2,
    Host = 3,
    Child = 4,
    Empty = 5,
    Wait = 6,
    Record = 7,
    Alloc = 10,
    Free = 11,
    Operations = 12,
}

/// Work that is queued by each launch.
type Queue = Arc<dyn Fn(&Gpu, StreamHandle) -> warpstride::Result<()> + Send + Sync>;

/// The work of a node.
#[derive(Clone)]
pub(crate) enum Work {
    Kernel(Arc<Launch>),
    Copy(Arc<CopyWork>),
    Fill {
        params: FillParams,
        device: i32,
        /// The fill; `None` if it writes nothing.
        fill: Option<PlannedFill>,
    },
    Host {
        function: HostFunction,
        data: Opaque,
    },
    Child(Arc<Graph>),
    Empty,
    Wait(Handle<Event>),
    Record(Handle<Event>),
    Alloc(Arc<Allocated>),
    Free(u64),
    Operations {
        device: i32,
        operations: Arc<[Operation]>,
    },
    /// Work of a captured stream that programs cannot ask for its operands.
    Recorded {
        kind: Kind,
        device: i32,
        queue: Queue,
    },
}

/// A copy of a box.
pub(crate) struct CopyWork {
    pub(super) params: Copy3d,
    device: i32,
    /// The copy; `None` if it moves nothing.
    copy: Option<PlannedCopy>,
}

/// Memory that a graph allocates: from the making of its node on, at the same address in each
/// launch.
pub(crate) struct Allocated {
    pub(super) address: u64,
    pub(super) bytes: usize,
    pub(super) device: i32,
}

impl Drop for Allocated {
    fn drop(&mut self) {
        if let Ok(gpu) = process().and_then(|process| process.gpu(self.device)) {
            // SAFETY: no node has the allocation any more, and the free waits for queued work.
            let _ = unsafe { gpu.soft.free(self.address) };
        }
    }
}

impl Allocated {
    pub(crate) fn new(device: i32, bytes: usize) -> Outcome<Self> {
        if bytes == 0 {
            return Err(Failure::value("a graph allocates at least 1 byte"));
        }
        let address = process()?.gpu(device)?.soft.alloc(room(bytes)? as u64)?;
        Ok(Self { address, bytes, device })
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl FillParams {
    pub(super) fn work(self, device: i32) -> Outcome<Work> {
        process()?.gpu(device)?;
        Ok(Work::Fill { params: self, device, fill: PlannedFill::of_graph(&self)? })
    }
}

impl CopyWork {
    /// Makes the work that a copy is.
    pub(super) fn work(params: Copy3d, device: i32) -> Outcome<Work> {
        process()?.gpu(device)?;
        Ok(Work::Copy(Arc::new(Self { params, device, copy: params.plan()? })))
    }
}

impl Work {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Kernel(_) => Kind::Kernel,
            Self::Copy(_) => Kind::Copy,
            Self::Fill { .. } => Kind::Fill,
            Self::Host { .. } => Kind::Host,
            Self::Child(_) => Kind::Child,
            Self::Empty => Kind::Empty,
            Self::Wait(_) => Kind::Wait,
            Self::Record(_) => Kind::Record,
            Self::Alloc(_) => Kind::Alloc,
            Self::Free(_) => Kind::Free,
            Self::Operations { .. } => Kind::Operations,
            Self::Recorded { kind, .. } => *kind,
        }
    }

    /// Returns the device that the work needs; `None` if each one will do.
    pub(super) fn device(&self) -> Option<i32> {
        match self {
            Self::Kernel(launch) => Some(launch.function.device),
            Self::Copy(copy) => Some(copy.device),
            Self::Fill { device, .. } | Self::Operations { device, .. } | Self::Recorded { device, .. } => {
                Some(*device)
            }
            Self::Record(event) => process().ok()?.events.find(*event).map(|event| event.device),
            Self::Host { .. } | Self::Child(_) | Self::Empty | Self::Wait(_) | Self::Alloc(_) | Self::Free(_) => None,
        }
    }

    /// Queues the work on a software stream of its device. A graph within the graph is not queued
    /// here.
    pub(crate) fn queue(&self, gpu: &Gpu, soft: StreamHandle) -> Outcome {
        match self {
            Self::Kernel(launch) => launch.queue(gpu, soft)?,
            Self::Copy(work) => work.copy.as_ref().map_or(Ok(()), |copy| copy.queue(gpu, soft))?,
            Self::Fill { fill, .. } => fill.as_ref().map_or(Ok(()), |fill| fill.queue(gpu, soft))?,
            &Self::Host { function, data } => host_call(gpu, soft, function, data)?,
            Self::Wait(event) => process()?.events.get(*event)?.wait_on(gpu, soft)?,
            Self::Record(event) => process()?.events.get(*event)?.record_on(gpu, soft)?,
            Self::Operations { operations, .. } => Operation::queue_all(operations, gpu, soft)?,
            Self::Recorded { queue, .. } => queue(gpu, soft)?,
            Self::Child(_) | Self::Empty | Self::Alloc(_) | Self::Free(_) => {}
        }
        Ok(())
    }

    /// Makes the work that embeds a copy of a graph.
    pub(super) fn child(of: &Graph) -> Outcome<Self> {
        graphs()?;
        Ok(Self::Child(of.copy(true)?))
    }
}
