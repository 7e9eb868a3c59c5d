//! The order in which the nodes of a graph are queued, and how.

use std::collections::HashMap;
use std::sync::Arc;

use warpstride::driver::{EventHandle, StreamHandle, Streams as _};

use super::{Edge, EdgeData, Graph, Work};
use crate::arguments::Handle;
use crate::code::{Failure, Outcome};
use crate::process::{Gpu, process};

/// The nodes of a graph at one moment, in the order of the graph.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// An order in which each node comes behind those that it depends on.
    order: Vec<usize>,
}

/// A node of a plan.
#[derive(Clone)]
pub(super) struct Step {
    /// The handle of the node that it was made of.
    pub(super) node: u64,
    pub(super) work: Work,
    /// The plan of a graph within the graph.
    pub(super) child: Option<Plan>,
    /// The steps that it comes behind, in increasing order.
    pub(super) behind: Vec<usize>,
    pub(super) is_enabled: bool,
}

impl Plan {
    /// Copies the nodes of a graph.
    pub(super) fn of(graph: &Graph) -> Outcome<Self> {
        let inner = graph.lock();
        let numbers: HashMap<u64, usize> =
            inner.nodes.iter().enumerate().map(|(at, node)| (node.handle.0, at)).collect();
        let mut behind = vec![Vec::new(); inner.nodes.len()];
        for edge in &inner.edges {
            if let (Some(&from), Some(&to)) = (numbers.get(&edge.from.0), numbers.get(&edge.to.0)) {
                behind[to].push(from);
            }
        }
        let nodes = inner.nodes.clone();
        drop(inner);
        let mut steps = Vec::with_capacity(nodes.len());
        for (node, mut behind) in nodes.iter().zip(behind) {
            behind.sort_unstable();
            let work = node.work().clone();
            let child = match &work {
                Work::Child(child) => Some(Self::of(child)?),
                _ => None,
            };
            steps.push(Step { node: node.handle.0, work, child, behind, is_enabled: true });
        }
        let order = ordered(&steps)?;
        Ok(Self { steps, order })
    }

    /// Makes a graph of the nodes, as they are now, for a node that holds it.
    pub(super) fn graph(&self) -> Outcome<Arc<Graph>> {
        let made = super::create(true, false)?;
        let mut nodes = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let work = match &step.child {
                Some(child) => Work::Child(child.graph()?),
                None if step.is_enabled => step.work.clone(),
                None => Work::Empty,
            };
            nodes.push(made.add_copy(work, &[], Handle::NULL)?.handle);
        }
        let behind = |(at, step): (usize, &Step)| step.behind.iter().map(|&before| (before, at)).collect::<Vec<_>>();
        let edges = self.steps.iter().enumerate().flat_map(behind);
        made.lock().edges =
            edges.map(|(from, to)| Edge { from: nodes[from], to: nodes[to], data: EdgeData::default() }).collect();
        Ok(made)
    }

    /// Returns the step that was made of a node, in this plan or in one of a graph within it.
    pub(super) fn step(&mut self, node: u64) -> Option<&mut Step> {
        for step in &mut self.steps {
            if step.node == node {
                return Some(step);
            }
            if let Some(found) = step.child.as_mut().and_then(|child| child.step(node)) {
                return Some(found);
            }
        }
        None
    }

    /// Queues all work behind what a stream has, so that later work on the stream comes behind it.
    pub(super) fn queue(&self, device: i32, main: StreamHandle) -> Outcome {
        let mut lanes = Lanes { main, device, fork: None, opened: Vec::new(), events: Vec::new() };
        let queued = self.queue_on(&mut lanes);
        lanes.end();
        queued
    }

    fn queue_on(&self, lanes: &mut Lanes) -> Outcome {
        let mut dependents = vec![0_usize; self.steps.len()];
        for &before in self.steps.iter().flat_map(|step| &step.behind) {
            dependents[before] += 1;
        }
        // For each step its lane, and the event behind it once another lane needs it.
        let mut places: Vec<Option<(Lane, Option<EventHandle>)>> = vec![None; self.steps.len()];
        let mut tails: HashMap<u64, usize> = HashMap::new();
        if self.steps.iter().filter(|step| step.behind.is_empty()).count() > 1 {
            lanes.fork()?;
        }
        for &at in &self.order {
            let step = &self.steps[at];
            let device = step.work.device().unwrap_or(lanes.device);
            let goes_on = step.behind.iter().find_map(|&before| {
                let (lane, _) = places[before]?;
                (lane.device == device && tails.get(&lane.soft.0) == Some(&before)).then_some(lane)
            });
            let main_is_free = !tails.contains_key(&lanes.main.0) && device == lanes.device && step.behind.is_empty();
            let lane = match goes_on {
                Some(lane) => lane,
                None if main_is_free => Lane { device, soft: lanes.main },
                None => lanes.open(device, step.behind.is_empty())?,
            };
            let gpu = process()?.gpu(device)?;
            for &before in &step.behind {
                let Some((of, event)) = &mut places[before] else { continue };
                if of.soft != lane.soft {
                    let event = match event {
                        Some(event) => *event,
                        None => *event.insert(lanes.record(*of)?),
                    };
                    wait(gpu, lane.soft, event)?;
                }
            }
            if step.is_enabled {
                match &step.child {
                    Some(child) => child.queue(device, lane.soft)?,
                    None => step.work.queue(gpu, lane.soft)?,
                }
            }
            tails.insert(lane.soft.0, at);
            // Others than the next step of this lane will wait for this step, and not for what
            // comes behind it there.
            let event = if dependents[at] > 1 { Some(lanes.record(lane)?) } else { None };
            places[at] = Some((lane, event));
        }
        lanes.join()
    }
}

/// Returns an order in which each step comes behind those that it depends on: that of the graph
/// where it can be.
fn ordered(steps: &[Step]) -> Outcome<Vec<usize>> {
    let mut open: Vec<usize> = steps.iter().map(|step| step.behind.len()).collect();
    let mut behind = vec![Vec::new(); steps.len()];
    for (at, step) in steps.iter().enumerate() {
        step.behind.iter().for_each(|&before| behind[before].push(at));
    }
    let mut ready: std::collections::BTreeSet<usize> = (0..steps.len()).filter(|&at| open[at] == 0).collect();
    let mut order = Vec::with_capacity(steps.len());
    while let Some(at) = ready.pop_first() {
        order.push(at);
        for &next in &behind[at] {
            open[next] -= 1;
            if open[next] == 0 {
                ready.insert(next);
            }
        }
    }
    if order.len() < steps.len() {
        return Err(Failure::value("the dependencies of the graph form a circle; take one away"));
    }
    Ok(order)
}

/// A software stream of a launch.
#[derive(Clone, Copy)]
struct Lane {
    device: i32,
    soft: StreamHandle,
}

/// The software streams of a launch: the one that it is queued on, and one for each parallel
/// branch.
struct Lanes {
    main: StreamHandle,
    device: i32,
    /// The event at the beginning, which the branches wait for.
    fork: Option<EventHandle>,
    opened: Vec<Lane>,
    /// All events, with their devices.
    events: Vec<(i32, EventHandle)>,
}

/// Makes a software stream wait for an event, which may be of another GPU.
fn wait(gpu: &Gpu, soft: StreamHandle, event: EventHandle) -> Outcome {
    // SAFETY: the software GPU refuses handles that are not live.
    Ok(unsafe { gpu.soft.event_wait(event, soft) }?)
}

impl Lanes {
    /// Opens a lane; a first step of it waits for the work before the graph.
    fn open(&mut self, device: i32, is_first: bool) -> Outcome<Lane> {
        let gpu = process()?.gpu(device)?;
        let lane = Lane { device, soft: gpu.soft.stream_create()? };
        gpu.soft.name_stream(lane.soft, "a branch of a graph".to_owned());
        self.opened.push(lane);
        if is_first {
            let fork = self.fork()?;
            wait(gpu, lane.soft, fork)?;
        }
        Ok(lane)
    }

    /// Returns the event at the beginning: the first call comes before all work.
    fn fork(&mut self) -> Outcome<EventHandle> {
        match self.fork {
            Some(fork) => Ok(fork),
            None => {
                let fork = self.record(Lane { device: self.device, soft: self.main })?;
                Ok(*self.fork.insert(fork))
            }
        }
    }

    /// Returns an event behind what a lane has now.
    fn record(&mut self, lane: Lane) -> Outcome<EventHandle> {
        let gpu = process()?.gpu(lane.device)?;
        let event = gpu.soft.event_create_untimed()?;
        self.events.push((lane.device, event));
        // SAFETY: both are live.
        unsafe { gpu.soft.event_record(event, lane.soft) }?;
        Ok(event)
    }

    /// Makes the stream of the launch wait for all lanes.
    fn join(&mut self) -> Outcome {
        for lane in self.opened.clone() {
            let event = self.record(lane)?;
            wait(process()?.gpu(self.device)?, self.main, event)?;
        }
        Ok(())
    }

    fn end(&self) {
        for lane in &self.opened {
            if let Ok(gpu) = process().and_then(|process| process.gpu(lane.device)) {
                // SAFETY: no other code knows the stream, and what is queued still runs.
                let _ = unsafe { gpu.soft.stream_destroy(lane.soft) };
            }
        }
        for &(device, event) in &self.events {
            if let Ok(gpu) = process().and_then(|process| process.gpu(device)) {
                // SAFETY: no other code knows the event, and queued waits hold without it.
                let _ = unsafe { gpu.soft.event_destroy(event) };
            }
        }
    }
}
