//! Edges of graphs, with data and, for CUDA 12, without.

use crate::arguments::{In, Opaque, Out};
use crate::driver::forward;
use crate::types::{Graph, Node};

#[cfg(not(cuda_12))]
forward! {
    /// Lists the edges of a graph.
    fn cudaGraphGetEdges(graph: Graph, from: Out<Node>, to: Out<Node>, data: Opaque, count: Out<usize>)
        = cuGraphGetEdges_v2;
    /// Lists the nodes for which a node waits.
    fn cudaGraphNodeGetDependencies(node: Node, nodes: Out<Node>, data: Opaque, count: Out<usize>)
        = cuGraphNodeGetDependencies_v2;
    /// Lists the nodes that wait for a node.
    fn cudaGraphNodeGetDependentNodes(node: Node, nodes: Out<Node>, data: Opaque, count: Out<usize>)
        = cuGraphNodeGetDependentNodes_v2;
    /// Adds edges.
    fn cudaGraphAddDependencies(graph: Graph, from: In<Node>, to: In<Node>, data: Opaque, count: usize)
        = cuGraphAddDependencies_v2;
    /// Removes edges.
    fn cudaGraphRemoveDependencies(graph: Graph, from: In<Node>, to: In<Node>, data: Opaque, count: usize)
        = cuGraphRemoveDependencies_v2;
}

#[cfg(cuda_12)]
forward! {
    /// Lists the edges of a graph.
    fn cudaGraphGetEdges(graph: Graph, from: Out<Node>, to: Out<Node>, count: Out<usize>) = cuGraphGetEdges;
    /// Lists the edges of a graph, with their data.
    fn cudaGraphGetEdges_v2(graph: Graph, from: Out<Node>, to: Out<Node>, data: Opaque, count: Out<usize>)
        = cuGraphGetEdges_v2;
    /// Lists the nodes for which a node waits.
    fn cudaGraphNodeGetDependencies(node: Node, nodes: Out<Node>, count: Out<usize>) = cuGraphNodeGetDependencies;
    /// Lists the nodes for which a node waits, with the data of edges.
    fn cudaGraphNodeGetDependencies_v2(node: Node, nodes: Out<Node>, data: Opaque, count: Out<usize>)
        = cuGraphNodeGetDependencies_v2;
    /// Lists the nodes that wait for a node.
    fn cudaGraphNodeGetDependentNodes(node: Node, nodes: Out<Node>, count: Out<usize>) = cuGraphNodeGetDependentNodes;
    /// Lists the nodes that wait for a node, with the data of edges.
    fn cudaGraphNodeGetDependentNodes_v2(node: Node, nodes: Out<Node>, data: Opaque, count: Out<usize>)
        = cuGraphNodeGetDependentNodes_v2;
    /// Adds edges.
    fn cudaGraphAddDependencies(graph: Graph, from: In<Node>, to: In<Node>, count: usize) = cuGraphAddDependencies;
    /// Adds edges, with data.
    fn cudaGraphAddDependencies_v2(graph: Graph, from: In<Node>, to: In<Node>, data: Opaque, count: usize)
        = cuGraphAddDependencies_v2;
    /// Removes edges.
    fn cudaGraphRemoveDependencies(graph: Graph, from: In<Node>, to: In<Node>, count: usize)
        = cuGraphRemoveDependencies;
    /// Removes edges, with data.
    fn cudaGraphRemoveDependencies_v2(graph: Graph, from: In<Node>, to: In<Node>, data: Opaque, count: usize)
        = cuGraphRemoveDependencies_v2;
}
