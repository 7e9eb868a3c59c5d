//! The functions that make, change and launch executable graphs.

use std::ffi::{c_int, c_uint};

use super::exec::{Exec, exec, replace, replace_child};
use super::nodes::{copy_work, device_of, fill_work, host_work, manner, operations_work, work_of};
use super::params::{FillParams, HostParams, KernelParams, KernelParams2, NodeParams, OperationsParams};
use super::{Graph, Kind, Node, Work, as_value, graph, graphs};
use crate::arguments::{Handle, In, Opaque, Out};
use crate::code::{Failure, Outcome, code};
use crate::context::Context;
use crate::export::export;
use crate::memory::Copy3d;
use crate::stream::{Event, Stream, stream};

/// The flags of an executable graph: memory is freed at a launch, it is uploaded, the device
/// launches it, priorities of nodes.
const KNOWN_FLAGS: u64 = 0xf;
const FREE_ON_LAUNCH: u64 = 1;
const DEVICE_LAUNCH: u64 = 4;

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct InstantiateParams {
    flags: u64,
    upload: Handle<Stream>,
    error_node: Handle<Node>,
    result: c_uint,
}

/// `CUgraphExecUpdateResultInfo`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct UpdateResult {
    result: c_uint,
    node: Handle<Node>,
    from: Handle<Node>,
}

fn instantiate(made: Out<Handle<Exec>>, of: Handle<Graph>, flags: u64) -> Outcome {
    made.check()?;
    if flags & !KNOWN_FLAGS != 0 {
        return Err(Failure::value(format!("{flags:#x} are not flags of an executable graph")));
    }
    if flags & (FREE_ON_LAUNCH | DEVICE_LAUNCH) == FREE_ON_LAUNCH | DEVICE_LAUNCH {
        return Err(Failure::value(
            "a graph that the device launches cannot free memory at a launch; leave one of the two flags out",
        ));
    }
    if flags & DEVICE_LAUNCH != 0 {
        return Err(Failure::unsupported(
            "kernels of the software GPU launch no graphs; leave the flag of device launches out",
        ));
    }
    made.set(graphs()?.execs.add(Exec::new(&*graph(of)?, flags)?))
}

/// Updates an executable graph, and returns the result with the nodes that do not fit.
fn update(handle: Handle<Exec>, of: Handle<Graph>) -> Outcome<(UpdateResult, Outcome)> {
    let success = UpdateResult { result: 0, node: Handle::NULL, from: Handle::NULL };
    Ok(match exec(handle)?.update(&*graph(of)?)? {
        Ok(()) => (success, Ok(())),
        Err(misfit) => {
            let failure = Failure::new(code::GRAPH_EXEC_UPDATE_FAILURE, misfit.why);
            let (node, from) = (Handle::new(misfit.node), Handle::new(misfit.from));
            (UpdateResult { result: misfit.result, node, from }, Err(failure))
        }
    })
}

fn set(handle: Handle<Exec>, node: Handle<Node>, work: Outcome<Work>) -> Outcome {
    exec(handle)?.change(node, |step| replace(step, work?))
}

export! {
    /// Makes an executable graph of a graph; a log is not written.
    fn cuGraphInstantiate as cuGraphInstantiate_v2(
        made: Out<Handle<Exec>>, of: Handle<Graph>, error_node: Out<Handle<Node>>, _log: Opaque, _bytes: usize,
    ) {
        error_node.set_if_wanted(Handle::NULL);
        instantiate(made, of, 0)
    }

    /// Makes an executable graph of a graph.
    fn cuGraphInstantiateWithFlags(made: Out<Handle<Exec>>, of: Handle<Graph>, flags: u64) {
        instantiate(made, of, flags)
    }

    /// Makes an executable graph of a graph, and says what was wrong.
    fn cuGraphInstantiateWithParams, per_thread cuGraphInstantiateWithParams_ptsz (
        made: Out<Handle<Exec>>, of: Handle<Graph>, params: Out<InstantiateParams>,
    ) {
        let mut given = params.get()?;
        let result = instantiate(made, of, given.flags);
        given.error_node = Handle::NULL;
        given.result = c_uint::from(result.is_err());
        params.set(given)?;
        result
    }

    /// Destroys an executable graph; launches that are queued still run.
    fn cuGraphExecDestroy(handle: Handle<Exec>) {
        graphs()?.execs.remove(handle).map_err(as_value)?.end();
        Ok(())
    }

    /// Returns the flags of an executable graph.
    fn cuGraphExecGetFlags(handle: Handle<Exec>, flags: Out<u64>) {
        flags.set(exec(handle)?.flags)
    }

    /// Queues a launch of all work of an executable graph.
    fn cuGraphLaunch, per_thread cuGraphLaunch_ptsz (handle: Handle<Exec>, on: Handle<Stream>) {
        exec(handle)?.launch(&*stream(on)?)
    }

    /// Prepares a launch, for which the software GPU needs nothing.
    fn cuGraphUpload, per_thread cuGraphUpload_ptsz (handle: Handle<Exec>, on: Handle<Stream>) {
        exec(handle)?;
        stream(on).map(drop)
    }

    /// Takes over the operands of a graph with the same nodes and dependencies.
    fn cuGraphExecUpdate(
        handle: Handle<Exec>, of: Handle<Graph>, error_node: Out<Handle<Node>>, result: Out<c_uint>,
    ) {
        let (found, outcome) = update(handle, of)?;
        error_node.set_if_wanted(found.node);
        result.set_if_wanted(found.result);
        outcome
    }

    /// Takes over the operands of a graph with the same nodes and dependencies.
    fn cuGraphExecUpdate_v2(handle: Handle<Exec>, of: Handle<Graph>, result: Out<UpdateResult>) {
        let (found, outcome) = update(handle, of)?;
        result.set_if_wanted(found);
        outcome
    }

    /// Changes a launch of a kernel.
    fn cuGraphExecKernelNodeSetParams(handle: Handle<Exec>, node: Handle<Node>, params: In<KernelParams>) {
        set(handle, node, KernelParams2::of(params.get()?).work(manner(node)))
    }

    /// Changes a launch of a kernel.
    fn cuGraphExecKernelNodeSetParams_v2(handle: Handle<Exec>, node: Handle<Node>, params: In<KernelParams2>) {
        set(handle, node, params.get()?.work(manner(node)))
    }

    /// Changes a copy.
    fn cuGraphExecMemcpyNodeSetParams(
        handle: Handle<Exec>, node: Handle<Node>, params: In<Copy3d>, context: Handle<Context>,
    ) {
        set(handle, node, copy_work(params.get()?, context))
    }

    /// Changes a fill.
    fn cuGraphExecMemsetNodeSetParams(
        handle: Handle<Exec>, node: Handle<Node>, params: In<FillParams>, context: Handle<Context>,
    ) {
        set(handle, node, fill_work(params.get()?, context))
    }

    /// Changes a call of a function of the host.
    fn cuGraphExecHostNodeSetParams(handle: Handle<Exec>, node: Handle<Node>, params: In<HostParams>) {
        set(handle, node, host_work(params.get()?))
    }

    /// Changes operations on values in memory.
    fn cuGraphExecBatchMemOpNodeSetParams(handle: Handle<Exec>, node: Handle<Node>, params: In<OperationsParams>) {
        set(handle, node, operations_work(params.get()?))
    }

    /// Changes the event of a record.
    fn cuGraphExecEventRecordNodeSetEvent(handle: Handle<Exec>, node: Handle<Node>, event: Handle<Event>) {
        device_of(event)?;
        set(handle, node, Ok(Work::Record(event)))
    }

    /// Changes the event of a wait.
    fn cuGraphExecEventWaitNodeSetEvent(handle: Handle<Exec>, node: Handle<Node>, event: Handle<Event>) {
        device_of(event)?;
        set(handle, node, Ok(Work::Wait(event)))
    }

    /// Changes the operands of a graph within the graph.
    fn cuGraphExecChildGraphNodeSetParams(handle: Handle<Exec>, node: Handle<Node>, child: Handle<Graph>) {
        let child = graph(child)?;
        exec(handle)?.change(node, |step| replace_child(step, &child))
    }

    /// Changes the operands of a node of any kind.
    fn cuGraphExecNodeSetParams(handle: Handle<Exec>, node: Handle<Node>, params: In<NodeParams>) {
        let params = params.get()?;
        if params.kind == Kind::Child as c_uint {
            let child = params.child()?;
            return exec(handle)?.change(node, |step| replace_child(step, &child));
        }
        set(handle, node, work_of(&params))
    }

    /// Switches a kernel, a copy or a fill on or off.
    fn cuGraphNodeSetEnabled(handle: Handle<Exec>, node: Handle<Node>, is_enabled: c_uint) {
        exec(handle)?.change(node, |step| {
            if !matches!(step.work.kind(), Kind::Kernel | Kind::Copy | Kind::Fill) {
                return Err(Failure::value("only kernels, copies and fills can be switched off"));
            }
            step.is_enabled = is_enabled != 0;
            Ok(())
        })
    }

    /// Returns whether a node is on.
    fn cuGraphNodeGetEnabled(handle: Handle<Exec>, node: Handle<Node>, is_enabled: Out<c_uint>) {
        exec(handle)?.change(node, |step| is_enabled.set(c_uint::from(step.is_enabled)))
    }

    /// Returns the bytes that graphs have, of the present or the most, in use or kept: graphs keep
    /// none here.
    fn cuDeviceGetGraphMemAttribute(device: c_int, attribute: c_uint, value: Out<u64>) {
        crate::process::process()?.gpu(device)?;
        if attribute > 3 {
            return Err(Failure::value(format!("{attribute} is not an attribute of the memory of graphs")));
        }
        value.set(0)
    }

    /// Resets such a number.
    fn cuDeviceSetGraphMemAttribute(device: c_int, attribute: c_uint, value: In<u64>) {
        crate::process::process()?.gpu(device)?;
        if !matches!(attribute, 1 | 3) || value.get()? != 0 {
            return Err(Failure::value("only the greatest numbers of bytes can be set, and only to 0"));
        }
        Ok(())
    }

    /// Gives back memory that graphs keep: they keep none here.
    fn cuDeviceGraphMemTrim(device: c_int) {
        crate::process::process()?.gpu(device).map(drop)
    }
}
