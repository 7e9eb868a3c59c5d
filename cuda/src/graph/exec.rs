//! Executable graphs.

use std::ffi::c_uint;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpstride::driver::{EventHandle, StreamHandle, Streams as _};

use super::plan::{Plan, Step};
use super::user::Retained;
use super::{Graph, Kind, Node, Work, graphs};
use crate::arguments::Handle;
use crate::code::{Failure, Outcome, code};
use crate::process::{Gpu, process};
use crate::stream::Stream;

/// A graph that can be launched.
pub(crate) struct Exec {
    pub(super) flags: u64,
    state: Mutex<Planned>,
}

struct Planned {
    plan: Plan,
    _objects: Retained,
    /// The end of its last launch, which the next one waits for, and the device of that.
    last: Option<(i32, EventHandle)>,
}

/// Why an update changes nothing.
pub(super) struct Misfit {
    pub(super) result: c_uint,
    pub(super) node: u64,
    pub(super) from: u64,
    pub(super) why: String,
}

/// The results of an update.
pub(super) const TOPOLOGY_CHANGED: c_uint = 2;
pub(super) const KIND_CHANGED: c_uint = 3;
pub(super) const NOT_SUPPORTED: c_uint = 6;

impl Exec {
    pub(super) fn new(of: &Graph, flags: u64) -> Outcome<Self> {
        let plan = Plan::of(of)?;
        let objects = of.lock().objects.clone();
        Ok(Self { flags, state: Mutex::new(Planned { plan, _objects: objects, last: None }) })
    }

    fn lock(&self) -> MutexGuard<'_, Planned> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a launch on a stream, after the launch before it.
    pub(super) fn launch(&self, stream: &Stream) -> Outcome {
        if stream.record(|| Ok(Work::Child(self.lock().plan.graph()?)))? {
            return Ok(());
        }
        let mut planned = self.lock();
        stream.launch(|gpu, soft| planned.queue(stream.device, gpu, soft))
    }

    /// Changes one step by its own node.
    pub(super) fn change(&self, node: Handle<Node>, change: impl FnOnce(&mut Step) -> Outcome) -> Outcome {
        let mut planned = self.lock();
        let step = planned.plan.step(node.0).ok_or_else(|| {
            Failure::value(format!(
                "the executable graph was not made of a graph with the node {node:?}; pass a node of that"
            ))
        })?;
        change(step)
    }

    /// Puts the work of a graph in the place of its own, if both have the same nodes and
    /// dependencies.
    pub(super) fn update(&self, graph: &Graph) -> Outcome<Result<(), Misfit>> {
        let new = Plan::of(graph)?;
        let mut planned = self.lock();
        if let Err(misfit) = compare(&planned.plan, &new) {
            return Ok(Err(misfit));
        }
        planned.plan.take(new);
        Ok(Ok(()))
    }

    /// Ends what belongs to it.
    pub(super) fn end(&self) {
        let mut planned = self.lock();
        if let Some((device, event)) = planned.last.take() {
            end_event(device, event);
        }
    }
}

fn end_event(device: i32, event: EventHandle) {
    if let Ok(gpu) = process().and_then(|process| process.gpu(device)) {
        // SAFETY: no other code knows the event, and queued waits hold without it.
        let _ = unsafe { gpu.soft.event_destroy(event) };
    }
}

impl Planned {
    fn queue(&mut self, device: i32, gpu: &Gpu, soft: StreamHandle) -> Outcome {
        if let Some((of, event)) = self.last.take() {
            // SAFETY: the event is live until the next line.
            let waits = unsafe { gpu.soft.event_wait(event, soft) };
            end_event(of, event);
            waits?;
        }
        self.plan.queue(device, soft)?;
        let event = gpu.soft.event_create_untimed()?;
        self.last = Some((device, event));
        // SAFETY: both are live.
        Ok(unsafe { gpu.soft.event_record(event, soft) }?)
    }
}

impl Plan {
    /// Takes over the work of a plan of the same form. The steps keep the nodes that they were made
    /// of.
    pub(super) fn take(&mut self, new: Self) {
        for (own, new) in self.steps.iter_mut().zip(new.steps) {
            own.work = new.work;
            match (&mut own.child, new.child) {
                (Some(own), Some(new)) => own.take(new),
                (own, new) => *own = new,
            }
        }
    }
}

/// Compares the form of two plans: the numbers of nodes, their kinds, and their dependencies.
pub(super) fn compare(old: &Plan, new: &Plan) -> Result<(), Misfit> {
    let misfit = |result, node, from, why: String| Err(Misfit { result, node, from, why });
    if old.steps.len() != new.steps.len() {
        let why = format!("the graph has {} nodes, and the executable graph {}", new.steps.len(), old.steps.len());
        return misfit(TOPOLOGY_CHANGED, 0, 0, why);
    }
    for (own, other) in old.steps.iter().zip(&new.steps) {
        if own.behind != other.behind {
            let changed = other.behind.iter().find(|at| !own.behind.contains(at));
            let from = changed.map_or(0, |&at| new.steps[at].node);
            return misfit(TOPOLOGY_CHANGED, other.node, from, "a node has other dependencies".to_owned());
        }
        if own.work.kind() != other.work.kind() {
            let (own, now) = (own.work.kind(), other.work.kind());
            return misfit(KIND_CHANGED, other.node, 0, format!("a node was of kind {own:?} and is of kind {now:?}"));
        }
        if let (Work::Alloc(own), Work::Alloc(new)) = (&own.work, &other.work)
            && own.address != new.address
        {
            return misfit(NOT_SUPPORTED, other.node, 0, "a node that allocates memory cannot be updated".to_owned());
        }
        if let (Some(own), Some(new)) = (&own.child, &other.child) {
            compare(own, new)?;
        }
    }
    Ok(())
}

/// Replaces the work of a step of the same kind.
pub(super) fn replace(step: &mut Step, work: Work) -> Outcome {
    let (own, new) = (step.work.kind(), work.kind());
    if own != new {
        return Err(Failure::value(format!("the node is of kind {own:?}, and the operands are of kind {new:?}")));
    }
    if matches!(own, Kind::Alloc | Kind::Free) {
        return Err(Failure::unsupported("a node that allocates or frees memory cannot be changed"));
    }
    step.work = work;
    Ok(())
}

/// Replaces the graph within a step by one of the same form.
pub(super) fn replace_child(step: &mut Step, graph: &Graph) -> Outcome {
    let new = Plan::of(graph)?;
    let Some(own) = &mut step.child else {
        return Err(Failure::value("the node holds no graph; pass a node that was made with one"));
    };
    if let Err(misfit) = compare(own, &new) {
        return Err(Failure::new(code::GRAPH_EXEC_UPDATE_FAILURE, misfit.why));
    }
    own.take(new);
    Ok(())
}

/// Returns the executable graph that a handle names.
pub(super) fn exec(handle: Handle<Exec>) -> Outcome<Arc<Exec>> {
    graphs()?.execs.get(handle).map_err(super::as_value)
}
