//! Graphs: most functions are the driver's; those of nodes translate the operands.

mod edges;
mod nodes;
mod params;

use std::ffi::c_uint;

use crate::arguments::{Opaque, Out, Text};
use crate::context;
use crate::driver::{driver, forward};
use crate::export::export;
use crate::types::{Context, Event, Exec, Graph, Node, Stream, UserObject};

driver! {
    fn cuGraphConditionalHandleCreate(
        handle: Out<u64>, graph: Graph, context: Context, default: c_uint, flags: c_uint,
    );
}

forward! {
    /// Makes a graph.
    fn cudaGraphCreate(graph: Out<Graph>, flags: c_uint) = cuGraphCreate;
    /// Ends a graph.
    fn cudaGraphDestroy(graph: Graph) = cuGraphDestroy;
    /// Copies a graph.
    fn cudaGraphClone(copy: Out<Graph>, graph: Graph) = cuGraphClone;
    /// Finds the copy of a node.
    fn cudaGraphNodeFindInClone(found: Out<Node>, node: Node, copy: Graph) = cuGraphNodeFindInClone;
    /// Ends a node.
    fn cudaGraphDestroyNode(node: Node) = cuGraphDestroyNode;
    /// Returns the type of a node.
    fn cudaGraphNodeGetType(node: Node, kind: Out<c_uint>) = cuGraphNodeGetType;
    /// Lists the nodes of a graph.
    fn cudaGraphGetNodes(graph: Graph, nodes: Out<Node>, count: Out<usize>) = cuGraphGetNodes;
    /// Lists the nodes of a graph that wait for none.
    fn cudaGraphGetRootNodes(graph: Graph, nodes: Out<Node>, count: Out<usize>) = cuGraphGetRootNodes;
    /// Writes a graph as a drawing.
    fn cudaGraphDebugDotPrint(graph: Graph, path: Text, flags: c_uint) = cuGraphDebugDotPrint;
    /// Prepares a graph for launches.
    fn cudaGraphInstantiate as cudaGraphInstantiateWithFlags(exec: Out<Exec>, graph: Graph, flags: u64)
        = cuGraphInstantiateWithFlags;
    /// Prepares a graph for launches, and says why that failed.
    fn cudaGraphInstantiateWithParams, per_thread cudaGraphInstantiateWithParams_ptsz
        (exec: Out<Exec>, graph: Graph, parameters: Opaque) = cuGraphInstantiateWithParams;
    /// Returns the flags with which a graph was prepared.
    fn cudaGraphExecGetFlags(exec: Exec, flags: Out<u64>) = cuGraphExecGetFlags;
    /// Ends a prepared graph.
    fn cudaGraphExecDestroy(exec: Exec) = cuGraphExecDestroy;
    /// Changes a prepared graph to the operands of another one.
    fn cudaGraphExecUpdate(exec: Exec, graph: Graph, result: Opaque) = cuGraphExecUpdate_v2;
    /// Launches a graph.
    fn cudaGraphLaunch, per_thread cudaGraphLaunch_ptsz (exec: Exec, stream: Stream) = cuGraphLaunch;
    /// Moves a graph to the device before its launch.
    fn cudaGraphUpload, per_thread cudaGraphUpload_ptsz (exec: Exec, stream: Stream) = cuGraphUpload;
    /// Sets whether a node runs.
    fn cudaGraphNodeSetEnabled(exec: Exec, node: Node, is_enabled: c_uint) = cuGraphNodeSetEnabled;
    /// Returns whether a node runs.
    fn cudaGraphNodeGetEnabled(exec: Exec, node: Node, is_enabled: Out<c_uint>) = cuGraphNodeGetEnabled;
    /// Makes an object that graphs retain.
    fn cudaUserObjectCreate(object: Out<UserObject>, data: Opaque, end: Opaque, count: c_uint, flags: c_uint)
        = cuUserObjectCreate;
    /// Retains an object.
    fn cudaUserObjectRetain(object: UserObject, count: c_uint) = cuUserObjectRetain;
    /// Gives up an object.
    fn cudaUserObjectRelease(object: UserObject, count: c_uint) = cuUserObjectRelease;
    /// Lets a graph retain an object.
    fn cudaGraphRetainUserObject(graph: Graph, object: UserObject, count: c_uint, flags: c_uint)
        = cuGraphRetainUserObject;
    /// Lets a graph give up an object.
    fn cudaGraphReleaseUserObject(graph: Graph, object: UserObject, count: c_uint) = cuGraphReleaseUserObject;
}

forward! {
    /// Copies the attributes of a kernel's node.
    fn cudaGraphKernelNodeCopyAttributes(to: Node, from: Node) = cuGraphKernelNodeCopyAttributes;
    /// Returns an attribute of a kernel's node.
    fn cudaGraphKernelNodeGetAttribute(node: Node, attribute: c_uint, value: Opaque) = cuGraphKernelNodeGetAttribute;
    /// Sets an attribute of a kernel's node.
    fn cudaGraphKernelNodeSetAttribute(node: Node, attribute: c_uint, value: Opaque) = cuGraphKernelNodeSetAttribute;
    /// Returns the function of the host of a node.
    fn cudaGraphHostNodeGetParams(node: Node, parameters: Opaque) = cuGraphHostNodeGetParams;
    /// Sets the function of the host of a node.
    fn cudaGraphHostNodeSetParams(node: Node, parameters: Opaque) = cuGraphHostNodeSetParams;
    /// Sets the function of the host of a prepared node.
    fn cudaGraphExecHostNodeSetParams(exec: Exec, node: Node, parameters: Opaque) = cuGraphExecHostNodeSetParams;
    /// Returns the fill of a node.
    fn cudaGraphMemsetNodeGetParams(node: Node, parameters: Opaque) = cuGraphMemsetNodeGetParams;
    /// Sets the fill of a node.
    fn cudaGraphMemsetNodeSetParams(node: Node, parameters: Opaque) = cuGraphMemsetNodeSetParams;
    /// Returns the graph of a node.
    fn cudaGraphChildGraphNodeGetGraph(node: Node, graph: Out<Graph>) = cuGraphChildGraphNodeGetGraph;
    /// Sets the graph of a prepared node.
    fn cudaGraphExecChildGraphNodeSetParams(exec: Exec, node: Node, graph: Graph) = cuGraphExecChildGraphNodeSetParams;
    /// Returns the event that a node records.
    fn cudaGraphEventRecordNodeGetEvent(node: Node, event: Out<Event>) = cuGraphEventRecordNodeGetEvent;
    /// Sets the event that a node records.
    fn cudaGraphEventRecordNodeSetEvent(node: Node, event: Event) = cuGraphEventRecordNodeSetEvent;
    /// Sets the event that a prepared node records.
    fn cudaGraphExecEventRecordNodeSetEvent(exec: Exec, node: Node, event: Event) = cuGraphExecEventRecordNodeSetEvent;
    /// Returns the event for which a node waits.
    fn cudaGraphEventWaitNodeGetEvent(node: Node, event: Out<Event>) = cuGraphEventWaitNodeGetEvent;
    /// Sets the event for which a node waits.
    fn cudaGraphEventWaitNodeSetEvent(node: Node, event: Event) = cuGraphEventWaitNodeSetEvent;
    /// Sets the event for which a prepared node waits.
    fn cudaGraphExecEventWaitNodeSetEvent(exec: Exec, node: Node, event: Event) = cuGraphExecEventWaitNodeSetEvent;
    /// Returns the allocation of a node.
    fn cudaGraphMemAllocNodeGetParams(node: Node, parameters: Opaque) = cuGraphMemAllocNodeGetParams;
    /// Returns the address that a node frees.
    fn cudaGraphMemFreeNodeGetParams(node: Node, address: Opaque) = cuGraphMemFreeNodeGetParams;
}

#[cfg(not(cuda_12))]
forward! {
    /// Returns the graph of which a node is.
    fn cudaGraphNodeGetContainingGraph(node: Node, graph: Out<Graph>) = cuGraphNodeGetContainingGraph;
    /// Returns the number of a node in its graph.
    fn cudaGraphNodeGetLocalId(node: Node, id: Out<c_uint>) = cuGraphNodeGetLocalId;
    /// Returns the number of a node for tools.
    fn cudaGraphNodeGetToolsId(node: Node, id: Out<u64>) = cuGraphNodeGetToolsId;
    /// Returns the number of a graph.
    fn cudaGraphGetId(graph: Graph, id: Out<c_uint>) = cuGraphGetId;
    /// Returns the number of a prepared graph.
    fn cudaGraphExecGetId(exec: Exec, id: Out<c_uint>) = cuGraphExecGetId;
}

export! {
    /// Makes a condition of a graph.
    fn cudaGraphConditionalHandleCreate(handle: Out<u64>, graph: Graph, default: c_uint, flags: c_uint) {
        cuGraphConditionalHandleCreate(handle, graph, context::current_or_primary()?, default, flags)
    }
}

#[cfg(not(cuda_12))]
export! {
    /// Makes a condition of a graph, in a context.
    fn cudaGraphConditionalHandleCreate_v2(
        handle: Out<u64>, graph: Graph, context: Context, default: c_uint, flags: c_uint,
    ) {
        let current = context::current_or_primary()?;
        let context = if context.is_null() { current } else { context };
        cuGraphConditionalHandleCreate(handle, graph, context, default, flags)
    }
}
