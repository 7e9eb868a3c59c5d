//! The functions on the nodes and the dependencies of a graph.

use std::collections::HashMap;
use std::ffi::c_uint;

use super::{Dependency, Edge, EdgeData, Graph, Node, dependencies, graph, node};
use crate::arguments::{Handle, In, Out};
use crate::code::{Failure, Outcome, code};
use crate::export::export;

/// Writes a list into the places of a program, whose number comes in `count` and goes out: without
/// places, the length of the list; otherwise the number of places that were written. Places beyond
/// the list become `rest`.
fn list<T: Copy>(places: Out<T>, count: Out<usize>, values: &[T], rest: T) -> Outcome {
    if places.is_null() {
        return count.set(values.len());
    }
    let room = count.get()?;
    let padding = std::iter::repeat_n(rest, room.saturating_sub(values.len()).min(1 << 20));
    places.set_all(values.iter().copied().chain(padding), room)?;
    count.set(room.min(values.len()))
}

/// Writes the edges into the places of a program.
fn edges(
    edges: &[Edge],
    from: Out<Handle<Node>>,
    to: Out<Handle<Node>>,
    data: Option<Out<EdgeData>>,
    count: Out<usize>,
) -> Outcome {
    count.check()?;
    if from.is_null() && to.is_null() {
        return count.set(edges.len());
    }
    let wants_data = data.is_some_and(|data| !data.is_null());
    if !wants_data && edges.iter().any(|edge| edge.data != EdgeData::default()) {
        return Err(Failure::new(code::LOSSY_QUERY, "the dependencies have data; ask for it, too"));
    }
    let room = count.get()?;
    if let Some(data) = data.filter(|_| wants_data) {
        data.set_all(edges.iter().map(|edge| edge.data), room)?;
    }
    if !from.is_null() {
        from.set_all(edges.iter().map(|edge| edge.from), room)?;
    }
    if !to.is_null() {
        to.set_all(edges.iter().map(|edge| edge.to), room)?;
    }
    count.set(room.min(edges.len()))
}

impl Graph {
    fn edges_where(&self, is_meant: impl Fn(&Edge) -> bool) -> Vec<Edge> {
        self.lock().edges.iter().filter(|edge| is_meant(edge)).copied().collect()
    }

    /// Adds dependencies, unless one is there already or they would close a circle.
    fn connect(&self, new: Vec<Edge>) -> Outcome {
        let mut inner = self.lock();
        let mut all = inner.edges.clone();
        for edge in new {
            if edge.from == edge.to || all.iter().any(|known| known.from == edge.from && known.to == edge.to) {
                let (from, to) = (edge.from, edge.to);
                return Err(Failure::value(format!(
                    "the dependency of {to:?} on {from:?} is there already, or is on itself"
                )));
            }
            all.push(edge);
        }
        if has_circle(&all) {
            return Err(Failure::value("the dependencies would form a circle; leave one out"));
        }
        inner.edges = all;
        Ok(())
    }

    fn disconnect(&self, old: &[Edge]) -> Outcome {
        let mut inner = self.lock();
        let is_same = |a: &Edge, b: &Edge| a.from == b.from && a.to == b.to;
        if let Some(missing) = old.iter().find(|edge| !inner.edges.iter().any(|known| is_same(known, edge))) {
            let (from, to) = (missing.from, missing.to);
            return Err(Failure::value(format!(
                "there is no dependency of {to:?} on {from:?}; pass one that was made"
            )));
        }
        inner.edges.retain(|known| !old.iter().any(|edge| is_same(known, edge)));
        Ok(())
    }

    fn read_edges(
        &self,
        from: In<Handle<Node>>,
        to: In<Handle<Node>>,
        data: In<EdgeData>,
        count: usize,
    ) -> Outcome<Vec<Edge>> {
        let (from, to) = (dependencies(from, data, count)?, dependencies(to, In::NULL, count)?);
        self.check_nodes(&from)?;
        self.check_nodes(&to)?;
        let edge = |(from, to): (Dependency, Dependency)| Edge { from: from.node, to: to.node, data: from.data };
        Ok(from.into_iter().zip(to).map(edge).collect())
    }
}

/// Returns whether edges lead from a node back to itself.
fn has_circle(edges: &[Edge]) -> bool {
    let mut open: HashMap<u64, usize> = HashMap::new();
    let mut behind: HashMap<u64, Vec<u64>> = HashMap::new();
    for edge in edges {
        open.entry(edge.from.0).or_default();
        *open.entry(edge.to.0).or_default() += 1;
        behind.entry(edge.from.0).or_default().push(edge.to.0);
    }
    let mut ready: Vec<u64> = open.iter().filter(|(_, count)| **count == 0).map(|(&node, _)| node).collect();
    let mut done = 0;
    while let Some(node) = ready.pop() {
        done += 1;
        for next in behind.get(&node).into_iter().flatten() {
            if let Some(count) = open.get_mut(next) {
                *count -= 1;
                if *count == 0 {
                    ready.push(*next);
                }
            }
        }
    }
    done < open.len()
}

fn nodes_before(handle: Handle<Node>) -> Outcome<Vec<Edge>> {
    Ok(graph(node(handle)?.graph)?.edges_where(|edge| edge.to == handle))
}

fn nodes_behind(handle: Handle<Node>) -> Outcome<Vec<Edge>> {
    Ok(graph(node(handle)?.graph)?.edges_where(|edge| edge.from == handle))
}

export! {
    /// Returns the nodes of a graph.
    fn cuGraphGetNodes(of: Handle<Graph>, nodes: Out<Handle<Node>>, count: Out<usize>) {
        let handles: Vec<_> = graph(of)?.lock().nodes.iter().map(|node| node.handle).collect();
        list(nodes, count, &handles, Handle::NULL)
    }

    /// Returns the nodes of a graph that come behind no other one.
    fn cuGraphGetRootNodes(of: Handle<Graph>, nodes: Out<Handle<Node>>, count: Out<usize>) {
        let graph = graph(of)?;
        let inner = graph.lock();
        let behind: std::collections::BTreeSet<u64> = inner.edges.iter().map(|edge| edge.to.0).collect();
        let all = inner.nodes.iter().map(|node| node.handle);
        let roots: Vec<_> = all.filter(|node| !behind.contains(&node.0)).collect();
        drop(inner);
        list(nodes, count, &roots, Handle::NULL)
    }

    /// Returns the dependencies of a graph.
    fn cuGraphGetEdges(of: Handle<Graph>, from: Out<Handle<Node>>, to: Out<Handle<Node>>, count: Out<usize>) {
        edges(&graph(of)?.edges_where(|_| true), from, to, None, count)
    }

    /// Returns the dependencies of a graph, with their data.
    fn cuGraphGetEdges_v2(
        of: Handle<Graph>, from: Out<Handle<Node>>, to: Out<Handle<Node>>, data: Out<EdgeData>, count: Out<usize>,
    ) {
        edges(&graph(of)?.edges_where(|_| true), from, to, Some(data), count)
    }

    /// Returns the nodes that a node comes behind.
    fn cuGraphNodeGetDependencies(of: Handle<Node>, nodes: Out<Handle<Node>>, count: Out<usize>) {
        edges(&nodes_before(of)?, nodes, Out::NULL, None, count)
    }

    /// Returns the nodes that a node comes behind, with the data of the dependencies.
    fn cuGraphNodeGetDependencies_v2(
        of: Handle<Node>, nodes: Out<Handle<Node>>, data: Out<EdgeData>, count: Out<usize>,
    ) {
        edges(&nodes_before(of)?, nodes, Out::NULL, Some(data), count)
    }

    /// Returns the nodes that come behind a node.
    fn cuGraphNodeGetDependentNodes(of: Handle<Node>, nodes: Out<Handle<Node>>, count: Out<usize>) {
        edges(&nodes_behind(of)?, Out::NULL, nodes, None, count)
    }

    /// Returns the nodes that come behind a node, with the data of the dependencies.
    fn cuGraphNodeGetDependentNodes_v2(
        of: Handle<Node>, nodes: Out<Handle<Node>>, data: Out<EdgeData>, count: Out<usize>,
    ) {
        edges(&nodes_behind(of)?, Out::NULL, nodes, Some(data), count)
    }

    /// Adds dependencies.
    fn cuGraphAddDependencies(of: Handle<Graph>, from: In<Handle<Node>>, to: In<Handle<Node>>, count: usize) {
        let graph = graph(of)?;
        graph.connect(graph.read_edges(from, to, In::NULL, count)?)
    }

    /// Adds dependencies with data.
    fn cuGraphAddDependencies_v2(
        of: Handle<Graph>, from: In<Handle<Node>>, to: In<Handle<Node>>, data: In<EdgeData>, count: usize,
    ) {
        let graph = graph(of)?;
        graph.connect(graph.read_edges(from, to, data, count)?)
    }

    /// Takes dependencies away.
    fn cuGraphRemoveDependencies(of: Handle<Graph>, from: In<Handle<Node>>, to: In<Handle<Node>>, count: usize) {
        let graph = graph(of)?;
        graph.disconnect(&graph.read_edges(from, to, In::NULL, count)?)
    }

    /// Takes dependencies with data away.
    fn cuGraphRemoveDependencies_v2(
        of: Handle<Graph>, from: In<Handle<Node>>, to: In<Handle<Node>>, data: In<EdgeData>, count: usize,
    ) {
        let graph = graph(of)?;
        graph.disconnect(&graph.read_edges(from, to, data, count)?)
    }

    /// Returns the kind of a node.
    fn cuGraphNodeGetType(of: Handle<Node>, kind: Out<c_uint>) {
        kind.set(node(of)?.work().kind() as c_uint)
    }
}
