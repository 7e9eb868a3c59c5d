//! Nodes whose operands the runtime translates.

use std::ffi::c_uint;

use super::params::{DriverKernelParams, KernelParams, NodeParams};
use crate::arguments::{In, Opaque, Out};
use crate::code::Outcome;
use crate::context;
use crate::driver::{driver, forward};
use crate::export::export;
use crate::memory::{Copy3d, DriverCopy3d, bytes_of};
use crate::types::{Context, Event, Exec, Graph, Node};

driver! {
    fn cuGraphAddKernelNode_v2(
        node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, parameters: &DriverKernelParams,
    );
    fn cuGraphKernelNodeGetParams_v2(node: Node, parameters: &mut DriverKernelParams);
    fn cuGraphKernelNodeSetParams_v2(node: Node, parameters: &DriverKernelParams);
    fn cuGraphExecKernelNodeSetParams_v2(exec: Exec, node: Node, parameters: &DriverKernelParams);
    fn cuGraphAddMemcpyNode(
        node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, copy: &DriverCopy3d, context: Context,
    );
    fn cuGraphMemcpyNodeGetParams(node: Node, copy: &mut DriverCopy3d);
    fn cuGraphMemcpyNodeSetParams(node: Node, copy: &DriverCopy3d);
    fn cuGraphExecMemcpyNodeSetParams(exec: Exec, node: Node, copy: &DriverCopy3d, context: Context);
    fn cuGraphAddMemsetNode(
        node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, parameters: Opaque, context: Context,
    );
    fn cuGraphExecMemsetNodeSetParams(exec: Exec, node: Node, parameters: Opaque, context: Context);
    #[cfg(cuda_12)]
    fn cuGraphAddNode(node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, parameters: Opaque);
    fn cuGraphAddNode_v2(
        node: Out<Node>, graph: Graph, behind: In<Node>, data: Opaque, count: usize, parameters: Opaque,
    );
    fn cuGraphNodeSetParams(node: Node, parameters: Opaque);
    fn cuGraphExecNodeSetParams(exec: Exec, node: Node, parameters: Opaque);
}

forward! {
    /// Adds a node that does nothing.
    fn cudaGraphAddEmptyNode(node: Out<Node>, graph: Graph, behind: In<Node>, count: usize) = cuGraphAddEmptyNode;
    /// Adds a node that calls a function of the host.
    fn cudaGraphAddHostNode(node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, parameters: Opaque)
        = cuGraphAddHostNode;
    /// Adds a node that is a graph.
    fn cudaGraphAddChildGraphNode(node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, child: Graph)
        = cuGraphAddChildGraphNode;
    /// Adds a node that records an event.
    fn cudaGraphAddEventRecordNode(node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, event: Event)
        = cuGraphAddEventRecordNode;
    /// Adds a node that waits for an event.
    fn cudaGraphAddEventWaitNode(node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, event: Event)
        = cuGraphAddEventWaitNode;
    /// Adds a node that allocates memory.
    fn cudaGraphAddMemAllocNode(node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, parameters: Opaque)
        = cuGraphAddMemAllocNode;
    /// Adds a node that frees memory.
    fn cudaGraphAddMemFreeNode(node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, address: Opaque)
        = cuGraphAddMemFreeNode;
}

/// The places of a new node: itself, its graph, and the nodes for which it waits.
struct New(Out<Node>, Graph, In<Node>, usize);

fn add_copy(new: New, copy: &DriverCopy3d) -> Outcome {
    let New(node, graph, behind, count) = new;
    cuGraphAddMemcpyNode(node, graph, behind, count, copy, context::current_or_primary()?)
}

fn set_copy(exec: Exec, node: Node, copy: &DriverCopy3d) -> Outcome {
    cuGraphExecMemcpyNodeSetParams(exec, node, copy, context::current_or_primary()?)
}

/// Returns a copy to a variable.
fn to_symbol(symbol: Opaque, src: Opaque, bytes: usize, offset: usize, kind: c_uint) -> Outcome<DriverCopy3d> {
    DriverCopy3d::of_bytes(bytes_of(symbol, bytes, offset)?, src, bytes, kind)
}

/// Returns a copy from a variable.
fn from_symbol(dst: Opaque, symbol: Opaque, bytes: usize, offset: usize, kind: c_uint) -> Outcome<DriverCopy3d> {
    DriverCopy3d::of_bytes(dst, bytes_of(symbol, bytes, offset)?, bytes, kind)
}

export! {
    /// Adds a node that launches a kernel.
    fn cudaGraphAddKernelNode(
        node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, parameters: In<KernelParams>,
    ) {
        cuGraphAddKernelNode_v2(node, graph, behind, count, &parameters.get()?.for_driver()?)
    }

    /// Returns the kernel of a node.
    fn cudaGraphKernelNodeGetParams(node: Node, parameters: Out<KernelParams>) {
        parameters.check()?;
        context::ready()?;
        let mut found = DriverKernelParams::none();
        cuGraphKernelNodeGetParams_v2(node, &mut found)?;
        parameters.set(found.for_runtime())
    }

    /// Sets the kernel of a node.
    fn cudaGraphKernelNodeSetParams(node: Node, parameters: In<KernelParams>) {
        cuGraphKernelNodeSetParams_v2(node, &parameters.get()?.for_driver()?)
    }

    /// Sets the kernel of a prepared node.
    fn cudaGraphExecKernelNodeSetParams(exec: Exec, node: Node, parameters: In<KernelParams>) {
        cuGraphExecKernelNodeSetParams_v2(exec, node, &parameters.get()?.for_driver()?)
    }

    /// Adds a node that copies slices.
    fn cudaGraphAddMemcpyNode(
        node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, copy: In<Copy3d>,
    ) {
        add_copy(New(node, graph, behind, count), &copy.get()?.for_driver()?)
    }

    /// Adds a node that copies bytes.
    fn cudaGraphAddMemcpyNode1D(
        node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, dst: Opaque, src: Opaque, bytes: usize,
        kind: c_uint,
    ) {
        add_copy(New(node, graph, behind, count), &DriverCopy3d::of_bytes(dst, src, bytes, kind)?)
    }

    /// Adds a node that copies to a variable.
    fn cudaGraphAddMemcpyNodeToSymbol(
        node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, symbol: Opaque, src: Opaque, bytes: usize,
        offset: usize, kind: c_uint,
    ) {
        add_copy(New(node, graph, behind, count), &to_symbol(symbol, src, bytes, offset, kind)?)
    }

    /// Adds a node that copies from a variable.
    fn cudaGraphAddMemcpyNodeFromSymbol(
        node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, dst: Opaque, symbol: Opaque, bytes: usize,
        offset: usize, kind: c_uint,
    ) {
        add_copy(New(node, graph, behind, count), &from_symbol(dst, symbol, bytes, offset, kind)?)
    }

    /// Returns the copy of a node.
    fn cudaGraphMemcpyNodeGetParams(node: Node, copy: Out<Copy3d>) {
        copy.check()?;
        context::ready()?;
        let mut found = DriverCopy3d::none();
        cuGraphMemcpyNodeGetParams(node, &mut found)?;
        copy.set(found.for_runtime()?)
    }

    /// Sets the copy of a node.
    fn cudaGraphMemcpyNodeSetParams(node: Node, copy: In<Copy3d>) {
        cuGraphMemcpyNodeSetParams(node, &copy.get()?.for_driver()?)
    }

    /// Sets the copy of bytes of a node.
    fn cudaGraphMemcpyNodeSetParams1D(node: Node, dst: Opaque, src: Opaque, bytes: usize, kind: c_uint) {
        cuGraphMemcpyNodeSetParams(node, &DriverCopy3d::of_bytes(dst, src, bytes, kind)?)
    }

    /// Sets the copy of a node to one to a variable.
    fn cudaGraphMemcpyNodeSetParamsToSymbol(
        node: Node, symbol: Opaque, src: Opaque, bytes: usize, offset: usize, kind: c_uint,
    ) {
        cuGraphMemcpyNodeSetParams(node, &to_symbol(symbol, src, bytes, offset, kind)?)
    }

    /// Sets the copy of a node to one from a variable.
    fn cudaGraphMemcpyNodeSetParamsFromSymbol(
        node: Node, dst: Opaque, symbol: Opaque, bytes: usize, offset: usize, kind: c_uint,
    ) {
        cuGraphMemcpyNodeSetParams(node, &from_symbol(dst, symbol, bytes, offset, kind)?)
    }

    /// Sets the copy of a prepared node.
    fn cudaGraphExecMemcpyNodeSetParams(exec: Exec, node: Node, copy: In<Copy3d>) {
        set_copy(exec, node, &copy.get()?.for_driver()?)
    }

    /// Sets the copy of bytes of a prepared node.
    fn cudaGraphExecMemcpyNodeSetParams1D(
        exec: Exec, node: Node, dst: Opaque, src: Opaque, bytes: usize, kind: c_uint,
    ) {
        set_copy(exec, node, &DriverCopy3d::of_bytes(dst, src, bytes, kind)?)
    }

    /// Sets the copy of a prepared node to one to a variable.
    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
        exec: Exec, node: Node, symbol: Opaque, src: Opaque, bytes: usize, offset: usize, kind: c_uint,
    ) {
        set_copy(exec, node, &to_symbol(symbol, src, bytes, offset, kind)?)
    }

    /// Sets the copy of a prepared node to one from a variable.
    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
        exec: Exec, node: Node, dst: Opaque, symbol: Opaque, bytes: usize, offset: usize, kind: c_uint,
    ) {
        set_copy(exec, node, &from_symbol(dst, symbol, bytes, offset, kind)?)
    }

    /// Adds a node that fills memory.
    fn cudaGraphAddMemsetNode(
        node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, parameters: Opaque,
    ) {
        cuGraphAddMemsetNode(node, graph, behind, count, parameters, context::current_or_primary()?)
    }

    /// Sets the fill of a prepared node.
    fn cudaGraphExecMemsetNodeSetParams(exec: Exec, node: Node, parameters: Opaque) {
        cuGraphExecMemsetNodeSetParams(exec, node, parameters, context::current_or_primary()?)
    }

    /// Sets the operands of any node.
    fn cudaGraphNodeSetParams(node: Node, parameters: Opaque) {
        context::ready()?;
        cuGraphNodeSetParams(node, NodeParams::of(parameters)?.place())
    }

    /// Sets the operands of any prepared node.
    fn cudaGraphExecNodeSetParams(exec: Exec, node: Node, parameters: Opaque) {
        context::ready()?;
        cuGraphExecNodeSetParams(exec, node, NodeParams::of(parameters)?.place())
    }
}

#[cfg(not(cuda_12))]
export! {
    /// Adds a node of any type.
    fn cudaGraphAddNode(
        node: Out<Node>, graph: Graph, behind: In<Node>, data: Opaque, count: usize, parameters: Opaque,
    ) {
        context::ready()?;
        cuGraphAddNode_v2(node, graph, behind, data, count, NodeParams::of(parameters)?.place())
    }
}

#[cfg(cuda_12)]
export! {
    /// Adds a node of any type.
    fn cudaGraphAddNode(node: Out<Node>, graph: Graph, behind: In<Node>, count: usize, parameters: Opaque) {
        context::ready()?;
        cuGraphAddNode(node, graph, behind, count, NodeParams::of(parameters)?.place())
    }

    /// Adds a node of any type, with the data of edges.
    fn cudaGraphAddNode_v2(
        node: Out<Node>, graph: Graph, behind: In<Node>, data: Opaque, count: usize, parameters: Opaque,
    ) {
        context::ready()?;
        cuGraphAddNode_v2(node, graph, behind, data, count, NodeParams::of(parameters)?.place())
    }
}
