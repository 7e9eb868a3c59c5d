//! The functions that add nodes and change them.

use std::ffi::c_uint;
use std::sync::Arc;

use super::params::{
    AllocParams, AnyParams, FillParams, HostParams, KernelParams, KernelParams2, NodeParams, OperationsParams,
};
use super::work::{Allocated, CopyWork};
use super::{EdgeData, Graph, Kind, Node, Work, as_value, dependencies, graph, node};
use crate::arguments::{Handle, In, Opaque, Out};
use crate::code::{Failure, Outcome};
use crate::context::{Context, current};
use crate::export::export;
use crate::launch::Manner;
use crate::memory::Copy3d;
use crate::process::process;
use crate::stream::{Event, given, operations};

/// Returns the device of a context, or of the current one for null.
fn device_in(context: Handle<Context>) -> Outcome<i32> {
    if context.is_null() {
        return Ok(current()?.device);
    }
    Ok(process()?.contexts.get(context).map_err(as_value)?.device)
}

/// Returns the device of an event.
pub(super) fn device_of(event: Handle<Event>) -> Outcome<i32> {
    Ok(process()?.events.get(event).map_err(as_value)?.device)
}

pub(super) fn copy_work(params: Copy3d, context: Handle<Context>) -> Outcome<Work> {
    CopyWork::work(params, device_in(context)?)
}

pub(super) fn fill_work(params: FillParams, context: Handle<Context>) -> Outcome<Work> {
    params.work(device_in(context)?)
}

pub(super) fn host_work(HostParams { function, data }: HostParams) -> Outcome<Work> {
    Ok(Work::Host { function: given(function)?, data })
}

pub(super) fn operations_work(params: OperationsParams) -> Outcome<Work> {
    let device = device_in(params.context)?;
    let list = operations(process()?.gpu(device)?, params.list, params.count, params.flags)?;
    Ok(Work::Operations { device, operations: list.into() })
}

fn alloc_work(params: &mut AllocParams) -> Outcome<Work> {
    const PINNED: c_uint = 1;
    const DEVICE: c_uint = 1;
    if params.kind != PINNED || params.handles != 0 || params.place != DEVICE {
        return Err(Failure::unsupported(
            "a graph allocates pinned memory of a device, without handles for other processes",
        ));
    }
    let allocated = Allocated::new(params.device, params.bytes)?;
    params.address = allocated.address;
    Ok(Work::Alloc(Arc::new(allocated)))
}

macro_rules! member {
    ($params:expr, $name:ident) => {{
        // SAFETY: each member is made of numbers and of pointers that are checked before they are
        // followed, except for functions, which C promises to be null or valid where the kind says
        // that there is one.
        unsafe { $params.any.$name }
    }};
}

impl NodeParams {
    /// Returns the graph of operands of the kind of graphs within graphs.
    pub(super) fn child(&self) -> Outcome<Arc<Graph>> {
        graph(member!(self, child))
    }
}

/// Makes the work that operands describe, except for allocations.
pub(super) fn work_of(params: &NodeParams) -> Outcome<Work> {
    const KERNEL: c_uint = Kind::Kernel as c_uint;
    const COPY: c_uint = Kind::Copy as c_uint;
    const FILL: c_uint = Kind::Fill as c_uint;
    const HOST: c_uint = Kind::Host as c_uint;
    const CHILD: c_uint = Kind::Child as c_uint;
    const EMPTY: c_uint = Kind::Empty as c_uint;
    const WAIT: c_uint = Kind::Wait as c_uint;
    const RECORD: c_uint = Kind::Record as c_uint;
    const FREE: c_uint = Kind::Free as c_uint;
    const OPERATIONS: c_uint = Kind::Operations as c_uint;
    match params.kind {
        KERNEL => member!(params, kernel).work(Manner::default()),
        COPY => {
            let copy = member!(params, copy);
            copy_work(copy.copy, copy.context)
        }
        FILL => {
            let fill = member!(params, fill);
            fill_work(fill.fill, fill.context)
        }
        HOST => host_work(member!(params, host)),
        CHILD => Work::child(&*params.child()?),
        EMPTY => Ok(Work::Empty),
        WAIT => event_work(member!(params, event), Work::Wait),
        RECORD => event_work(member!(params, event), Work::Record),
        FREE => Ok(Work::Free(member!(params, free))),
        OPERATIONS => operations_work(member!(params, operations)),
        kind => Err(Failure::unsupported(format!("the software GPU has no nodes of kind {kind}"))),
    }
}

fn event_work(event: Handle<Event>, work: impl FnOnce(Handle<Event>) -> Work) -> Outcome<Work> {
    device_of(event)?;
    Ok(work(event))
}

/// The place of a new node: its graph, and the nodes that it comes behind.
struct Place {
    made: Out<Handle<Node>>,
    graph: Handle<Graph>,
    behind: In<Handle<Node>>,
    data: In<EdgeData>,
    count: usize,
}

impl Place {
    fn add(&self, work: impl FnOnce() -> Outcome<Work>) -> Outcome {
        self.made.check()?;
        let (graph, behind) = (graph(self.graph)?, dependencies(self.behind, self.data, self.count)?);
        graph.check_nodes(&behind)?;
        self.made.set(graph.add(work()?, &behind)?)
    }

    fn add_any(&self, params: Out<NodeParams>) -> Outcome {
        let mut given = params.get()?;
        if given.reserved != [0; 3] {
            return Err(Failure::value("the reserved operands of a node must be 0"));
        }
        if given.kind != Kind::Alloc as c_uint {
            return self.add(|| work_of(&given));
        }
        let mut alloc = member!(given, alloc);
        self.add(|| alloc_work(&mut alloc))?;
        given.any = AnyParams { words: [0; 29] };
        given.any.alloc = alloc;
        params.set(given)
    }
}

/// Replaces the work of a node by work of the same kind.
fn replace(handle: Handle<Node>, work: Outcome<Work>) -> Outcome {
    let node = node(handle)?;
    let work = work?;
    let mut own = node.work();
    if own.kind() != work.kind() {
        let (own, new) = (own.kind(), work.kind());
        return Err(Failure::value(format!(
            "the node {handle:?} is of kind {own:?}, and the operands are of kind {new:?}"
        )));
    }
    if matches!(*own, Work::Alloc(_) | Work::Free(_) | Work::Child(_)) {
        return Err(Failure::unsupported("a node that allocates or frees memory, or holds a graph, cannot be changed"));
    }
    *own = work;
    Ok(())
}

/// Returns how the blocks of a node's launch run, which other operands do not change.
pub(super) fn manner(handle: Handle<Node>) -> Manner {
    match node(handle).map(|node| node.work().clone()) {
        Ok(Work::Kernel(launch)) => launch.manner,
        _ => Manner::default(),
    }
}

/// Returns what `find` finds in the work of a node; otherwise the node is of another kind, or was
/// captured without operands.
fn operand<T>(handle: Handle<Node>, what: &str, find: impl FnOnce(&Work) -> Option<T>) -> Outcome<T> {
    let node = node(handle)?;
    let work = node.work();
    let kind = work.kind();
    let refused =
        || Failure::value(format!("the node {handle:?} is of kind {kind:?} and has no operands of {what} to return"));
    find(&work).ok_or_else(refused)
}

fn kernel_params(handle: Handle<Node>) -> Outcome<KernelParams> {
    operand(handle, "a kernel", |work| match work {
        Work::Kernel(launch) => Some(KernelParams {
            function: launch.handle,
            grid: launch.shape.grid,
            block: launch.shape.block,
            dynamic_shared: launch.shape.dynamic_shared,
            each: launch.addresses(),
            extra: Opaque(std::ptr::null_mut()),
        }),
        _ => None,
    })
}

export! {
    /// Adds a launch of a kernel.
    fn cuGraphAddKernelNode(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, params: In<KernelParams>,
    ) {
        Place { made, graph, behind, data: In::NULL, count }.add(|| KernelParams2::of(params.get()?).work(Manner::default()))
    }

    /// Adds a launch of a kernel.
    fn cuGraphAddKernelNode_v2(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, params: In<KernelParams2>,
    ) {
        Place { made, graph, behind, data: In::NULL, count }.add(|| params.get()?.work(Manner::default()))
    }

    /// Adds a copy.
    fn cuGraphAddMemcpyNode(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, params: In<Copy3d>,
        context: Handle<Context>,
    ) {
        Place { made, graph, behind, data: In::NULL, count }.add(|| copy_work(params.get()?, context))
    }

    /// Adds a fill.
    fn cuGraphAddMemsetNode(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, params: In<FillParams>,
        context: Handle<Context>,
    ) {
        Place { made, graph, behind, data: In::NULL, count }.add(|| fill_work(params.get()?, context))
    }

    /// Adds a call of a function of the host.
    fn cuGraphAddHostNode(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, params: In<HostParams>,
    ) {
        Place { made, graph, behind, data: In::NULL, count }.add(|| host_work(params.get()?))
    }

    /// Adds a copy of a graph.
    fn cuGraphAddChildGraphNode(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, child: Handle<Graph>,
    ) {
        Place { made, graph, behind, data: In::NULL, count }.add(|| Work::child(&*super::graph(child)?))
    }

    /// Adds a node that does nothing.
    fn cuGraphAddEmptyNode(made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize) {
        Place { made, graph, behind, data: In::NULL, count }.add(|| Ok(Work::Empty))
    }

    /// Adds a record of an event.
    fn cuGraphAddEventRecordNode(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, event: Handle<Event>,
    ) {
        Place { made, graph, behind, data: In::NULL, count }.add(|| event_work(event, Work::Record))
    }

    /// Adds a wait for an event.
    fn cuGraphAddEventWaitNode(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, event: Handle<Event>,
    ) {
        Place { made, graph, behind, data: In::NULL, count }.add(|| event_work(event, Work::Wait))
    }

    /// Adds an allocation. Its memory is there from now on, and lasts as long as the graph and what
    /// was made of it.
    fn cuGraphAddMemAllocNode(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, params: Out<AllocParams>,
    ) {
        let mut alloc = params.get()?;
        Place { made, graph, behind, data: In::NULL, count }.add(|| alloc_work(&mut alloc))?;
        params.set(alloc)
    }

    /// Adds a free, which changes nothing until the graph is destroyed.
    fn cuGraphAddMemFreeNode(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, address: u64,
    ) {
        Place { made, graph, behind, data: In::NULL, count }.add(|| Ok(Work::Free(address)))
    }

    /// Adds operations on values in memory.
    fn cuGraphAddBatchMemOpNode(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, params: In<OperationsParams>,
    ) {
        Place { made, graph, behind, data: In::NULL, count }.add(|| operations_work(params.get()?))
    }

    /// Adds a node of any kind.
    fn cuGraphAddNode(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, count: usize, params: Out<NodeParams>,
    ) {
        Place { made, graph, behind, data: In::NULL, count }.add_any(params)
    }

    /// Adds a node of any kind, with data of the dependencies.
    fn cuGraphAddNode_v2(
        made: Out<Handle<Node>>, graph: Handle<Graph>, behind: In<Handle<Node>>, data: In<EdgeData>, count: usize,
        params: Out<NodeParams>,
    ) {
        Place { made, graph, behind, data, count }.add_any(params)
    }

    /// Changes a node of any kind.
    fn cuGraphNodeSetParams(node: Handle<Node>, params: In<NodeParams>) {
        replace(node, work_of(&params.get()?))
    }

    /// Returns the launch of a kernel.
    fn cuGraphKernelNodeGetParams(node: Handle<Node>, params: Out<KernelParams>) {
        params.set(kernel_params(node)?)
    }

    /// Returns the launch of a kernel.
    fn cuGraphKernelNodeGetParams_v2(node: Handle<Node>, params: Out<KernelParams2>) {
        params.set(KernelParams2::of(kernel_params(node)?))
    }

    /// Changes the launch of a kernel.
    fn cuGraphKernelNodeSetParams(node: Handle<Node>, params: In<KernelParams>) {
        replace(node, KernelParams2::of(params.get()?).work(manner(node)))
    }

    /// Changes the launch of a kernel.
    fn cuGraphKernelNodeSetParams_v2(node: Handle<Node>, params: In<KernelParams2>) {
        replace(node, params.get()?.work(manner(node)))
    }

    /// Returns a copy.
    fn cuGraphMemcpyNodeGetParams(node: Handle<Node>, params: Out<Copy3d>) {
        params.set(operand(node, "a copy", |work| match work {
            Work::Copy(copy) => Some(copy.params),
            _ => None,
        })?)
    }

    /// Changes a copy.
    fn cuGraphMemcpyNodeSetParams(node: Handle<Node>, params: In<Copy3d>) {
        replace(node, copy_work(params.get()?, Handle::NULL))
    }

    /// Returns a fill.
    fn cuGraphMemsetNodeGetParams(node: Handle<Node>, params: Out<FillParams>) {
        params.set(operand(node, "a fill", |work| match work {
            Work::Fill { params, .. } => Some(*params),
            _ => None,
        })?)
    }

    /// Changes a fill.
    fn cuGraphMemsetNodeSetParams(node: Handle<Node>, params: In<FillParams>) {
        replace(node, fill_work(params.get()?, Handle::NULL))
    }

    /// Returns a call of a function of the host.
    fn cuGraphHostNodeGetParams(node: Handle<Node>, params: Out<HostParams>) {
        params.set(operand(node, "a call", |work| match work {
            &Work::Host { function, data } => Some(HostParams { function: Some(function), data }),
            _ => None,
        })?)
    }

    /// Changes a call of a function of the host.
    fn cuGraphHostNodeSetParams(node: Handle<Node>, params: In<HostParams>) {
        replace(node, host_work(params.get()?))
    }

    /// Returns the graph of a node, which the node owns.
    fn cuGraphChildGraphNodeGetGraph(node: Handle<Node>, child: Out<Handle<Graph>>) {
        child.set(operand(node, "a graph", |work| match work {
            Work::Child(child) => Some(child.handle),
            _ => None,
        })?)
    }

    /// Returns the event of a record.
    fn cuGraphEventRecordNodeGetEvent(node: Handle<Node>, event: Out<Handle<Event>>) {
        event.set(operand(node, "a record", |work| match work {
            Work::Record(event) => Some(*event),
            _ => None,
        })?)
    }

    /// Changes the event of a record.
    fn cuGraphEventRecordNodeSetEvent(node: Handle<Node>, event: Handle<Event>) {
        replace(node, event_work(event, Work::Record))
    }

    /// Returns the event of a wait.
    fn cuGraphEventWaitNodeGetEvent(node: Handle<Node>, event: Out<Handle<Event>>) {
        event.set(operand(node, "a wait", |work| match work {
            Work::Wait(event) => Some(*event),
            _ => None,
        })?)
    }

    /// Changes the event of a wait.
    fn cuGraphEventWaitNodeSetEvent(node: Handle<Node>, event: Handle<Event>) {
        replace(node, event_work(event, Work::Wait))
    }

    /// Returns an allocation.
    fn cuGraphMemAllocNodeGetParams(node: Handle<Node>, params: Out<AllocParams>) {
        params.set(operand(node, "an allocation", |work| match work {
            Work::Alloc(allocated) => Some(AllocParams::of(allocated)),
            _ => None,
        })?)
    }

    /// Returns the address of a free.
    fn cuGraphMemFreeNodeGetParams(node: Handle<Node>, address: Out<u64>) {
        address.set(operand(node, "a free", |work| match work {
            Work::Free(address) => Some(*address),
            _ => None,
        })?)
    }

    /// Changes operations on values in memory.
    fn cuGraphBatchMemOpNodeSetParams(node: Handle<Node>, params: In<OperationsParams>) {
        replace(node, operations_work(params.get()?))
    }
}

impl AllocParams {
    fn of(allocated: &Allocated) -> Self {
        let Allocated { address, bytes, device } = *allocated;
        let access = Opaque(std::ptr::null_mut());
        Self {
            kind: 1,
            handles: 0,
            place: 1,
            device,
            _security: 0,
            most: 0,
            usage: 0,
            _reserved: [0; 6],
            access,
            accesses: 0,
            bytes,
            address,
        }
    }
}
