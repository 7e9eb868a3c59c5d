//! Graphs: nodes of work with dependencies, which captures and programs make, and which are
//! launched as a whole.
//!
//! ```text
//!  functions on nodes, edges --> Graph --> exec: a copied plan --> launch: streams, events
//!  captures --------------------^                ^-- updates
//! ```

mod edges;
mod exec;
mod exec_calls;
mod nodes;
mod params;
mod plan;
mod user;
mod work;

use std::collections::BTreeSet;
use std::ffi::c_uint;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use params::FillParams;
pub(crate) use work::{Allocated, HostFunction, Kind, Work};

use self::exec::Exec;
use self::user::{Retained, UserObject};
use crate::arguments::{Handle, In, Out, Text};
use crate::code::{Failure, Outcome, code};
use crate::export::export;
use crate::handles::Handles;
use crate::process::process;
use crate::stream;

/// `CUgraphEdgeData`: the ports and the type of a dependency. Each dependency is a full one here,
/// which is what the others allow.
pub(crate) type EdgeData = [u8; 8];

/// The most levels of graphs in graphs.
const MOST_LEVELS: usize = 64;

/// The graphs of the process.
pub(crate) struct Graphs {
    pub(crate) graphs: Handles<Graph>,
    pub(crate) nodes: Handles<Node>,
    pub(crate) execs: Handles<Exec>,
    pub(crate) objects: Handles<UserObject>,
}

/// A graph.
pub(crate) struct Graph {
    pub(crate) handle: Handle<Graph>,
    /// True while it belongs to a capture or to a node, so that programs must not destroy it.
    is_owned: AtomicBool,
    /// True if a capture made it and has not given it to the program.
    is_of_capture: AtomicBool,
    /// The number of graphs that it is within.
    level: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// In the order in which they were made.
    nodes: Vec<Arc<Node>>,
    edges: Vec<Edge>,
    objects: Retained,
}

/// A node.
pub(crate) struct Node {
    pub(crate) handle: Handle<Node>,
    graph: Handle<Graph>,
    /// The node that it is a copy of, if its graph is a copy.
    original: Handle<Node>,
    work: Mutex<Work>,
}

/// A dependency between two nodes.
#[derive(Debug, Clone, Copy)]
struct Edge {
    from: Handle<Node>,
    to: Handle<Node>,
    data: EdgeData,
}

/// A node that another one comes behind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dependency {
    pub(crate) node: Handle<Node>,
    pub(crate) data: EdgeData,
}

impl Dependency {
    pub(crate) fn on(node: Handle<Node>) -> Self {
        Self { node, data: EdgeData::default() }
    }
}

impl Graphs {
    pub(crate) fn new() -> Self {
        Self {
            graphs: Handles::new("graph"),
            nodes: Handles::new("node of a graph"),
            execs: Handles::new("executable graph"),
            objects: Handles::new("user object"),
        }
    }
}

/// Returns the graphs of the process.
fn graphs() -> Outcome<&'static Graphs> {
    Ok(&process()?.graphs)
}

/// CUDA answers a bad handle of a graph or a node as a bad value.
fn as_value(failure: Failure) -> Failure {
    Failure::value(failure.why)
}

/// Returns the graph that a handle names.
pub(crate) fn graph(handle: Handle<Graph>) -> Outcome<Arc<Graph>> {
    graphs()?.graphs.get(handle).map_err(as_value)
}

fn node(handle: Handle<Node>) -> Outcome<Arc<Node>> {
    graphs()?.nodes.get(handle).map_err(as_value)
}

/// Reads a list of dependencies, with their data where there is some.
pub(crate) fn dependencies(nodes: In<Handle<Node>>, data: In<EdgeData>, count: usize) -> Outcome<Vec<Dependency>> {
    let nodes = nodes.list(count)?;
    let data = if data.is_null() { vec![EdgeData::default(); nodes.len()] } else { data.list(count)? };
    if let Some(data) = data.iter().find(|data| data[2] > 1 || data[3..].iter().any(|&byte| byte != 0)) {
        return Err(Failure::value(format!(
            "{data:?} is not the data of a dependency: its type is 0 or 1, and the rest is 0"
        )));
    }
    Ok(nodes.into_iter().zip(data).map(|(node, data)| Dependency { node, data }).collect())
}

fn create(is_owned: bool, is_of_capture: bool) -> Outcome<Arc<Graph>> {
    let graphs = graphs()?;
    let handle = graphs.graphs.add_with(|handle| Graph {
        handle,
        is_owned: AtomicBool::new(is_owned),
        is_of_capture: AtomicBool::new(is_of_capture),
        level: AtomicUsize::new(0),
        inner: Mutex::default(),
    });
    graphs.graphs.get(handle)
}

/// Makes the graph of a capture.
pub(crate) fn create_for_capture() -> Outcome<Arc<Graph>> {
    create(true, true)
}

impl Node {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the graph that the node holds, if it holds one.
    fn child(&self) -> Option<Arc<Graph>> {
        match &*self.work() {
            Work::Child(child) => Some(Arc::clone(child)),
            _ => None,
        }
    }
}

impl Graph {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node behind others.
    pub(crate) fn add(&self, work: Work, behind: &[Dependency]) -> Outcome<Handle<Node>> {
        self.check_nodes(behind)?;
        let distinct: BTreeSet<_> = behind.iter().map(|dependency| dependency.node.0).collect();
        if distinct.len() < behind.len() {
            return Err(Failure::value("a dependency is named twice; name each once"));
        }
        if let Work::Child(child) = &work {
            child.nest(self.level.load(Ordering::Relaxed) + 1).inspect_err(|_| drop(child.destroy()))?;
        }
        Ok(self.add_copy(work, behind, Handle::NULL)?.handle)
    }

    /// Makes the graph one within others, with the graphs within it, unless that is too deep for
    /// functions that call themselves for each level.
    fn nest(&self, level: usize) -> Outcome {
        if level > MOST_LEVELS {
            return Err(Failure::value(format!(
                "graphs are nested more than {MOST_LEVELS} levels deep; nest them less"
            )));
        }
        self.level.store(level, Ordering::Relaxed);
        let nodes = self.lock().nodes.clone();
        nodes.iter().filter_map(|node| node.child()).try_for_each(|child| child.nest(level + 1))
    }

    fn add_copy(&self, work: Work, behind: &[Dependency], original: Handle<Node>) -> Outcome<Arc<Node>> {
        let nodes = &graphs()?.nodes;
        let handle = nodes.add_with(|handle| Node { handle, graph: self.handle, original, work: Mutex::new(work) });
        let node = nodes.get(handle)?;
        let mut inner = self.lock();
        inner.nodes.push(Arc::clone(&node));
        inner.edges.extend(behind.iter().map(|&Dependency { node, data }| Edge { from: node, to: handle, data }));
        Ok(node)
    }

    /// Refuses nodes of other graphs.
    pub(crate) fn check_nodes(&self, nodes: &[Dependency]) -> Outcome {
        for dependency in nodes {
            if node(dependency.node)?.graph != self.handle {
                let (node, graph) = (dependency.node, self.handle);
                return Err(Failure::value(format!(
                    "the node {node:?} is not of the graph {graph:?}; pass nodes of one graph"
                )));
            }
        }
        Ok(())
    }

    /// Returns whether all of `earlier` are among `last`, or come before one of them.
    pub(crate) fn is_behind(&self, last: &[Handle<Node>], earlier: &[Handle<Node>]) -> bool {
        let inner = self.lock();
        let mut before: std::collections::HashMap<u64, Vec<u64>> = std::collections::HashMap::new();
        for edge in &inner.edges {
            before.entry(edge.to.0).or_default().push(edge.from.0);
        }
        let mut seen = BTreeSet::new();
        let mut pending: Vec<u64> = last.iter().map(|node| node.0).collect();
        while let Some(node) = pending.pop() {
            if seen.insert(node) {
                pending.extend(before.get(&node).into_iter().flatten());
            }
        }
        earlier.iter().all(|node| seen.contains(&node.0))
    }

    /// Gives the graph of a capture to the program.
    pub(crate) fn give(&self) {
        if self.is_of_capture.swap(false, Ordering::Relaxed) {
            self.is_owned.store(false, Ordering::Relaxed);
        }
    }

    /// Destroys the graph if a capture made it, which has failed.
    pub(crate) fn drop_if_captured(&self) {
        if self.is_of_capture.load(Ordering::Relaxed) {
            let _ = self.destroy();
        }
    }

    /// Takes the graph and its nodes out of the tables, with the graphs within it.
    fn destroy(&self) -> Outcome {
        let graphs = graphs()?;
        graphs.graphs.remove(self.handle).map_err(as_value)?;
        let inner = std::mem::take(&mut *self.lock());
        inner.nodes.iter().try_for_each(|node| forget(node))
    }

    /// Copies the graph, with the graphs within it.
    fn copy(&self, is_owned: bool) -> Outcome<Arc<Self>> {
        let (nodes, edges, objects) = {
            let inner = self.lock();
            (inner.nodes.clone(), inner.edges.clone(), inner.objects.clone())
        };
        let made = create(is_owned, false)?;
        let mut copies = std::collections::HashMap::new();
        for node in &nodes {
            let work = node.work().clone();
            let work = match work {
                Work::Child(child) => Work::Child(child.copy(true)?),
                other => other,
            };
            copies.insert(node.handle.0, made.add_copy(work, &[], node.handle)?.handle);
        }
        let copy = |edge: &Edge| Some(Edge { from: *copies.get(&edge.from.0)?, to: *copies.get(&edge.to.0)?, ..*edge });
        let mut inner = made.lock();
        inner.edges = edges.iter().filter_map(copy).collect();
        inner.objects = objects;
        drop(inner);
        Ok(made)
    }
}

/// Takes a node out of the table, with the graph that it owns.
fn forget(node: &Node) -> Outcome {
    let _ = graphs()?.nodes.remove(node.handle);
    node.child().map_or(Ok(()), |child| child.destroy())
}

export! {
    /// Makes a graph without nodes.
    fn cuGraphCreate(made: Out<Handle<Graph>>, flags: c_uint) {
        made.check()?;
        if flags != 0 {
            return Err(Failure::value(format!("the flags of a graph must be 0, and are {flags:#x}")));
        }
        made.set(create(false, false)?.handle)
    }

    /// Destroys a graph with its nodes. Executable graphs that were made of it stay.
    fn cuGraphDestroy(of: Handle<Graph>) {
        let graph = graph(of)?;
        if graph.is_owned.load(Ordering::Relaxed) || stream::is_captured_into(of) {
            let why = "the graph belongs to a node or to a capture; destroy the node, or end the capture";
            return Err(Failure::value(why));
        }
        graph.destroy()
    }

    /// Copies a graph.
    fn cuGraphClone(made: Out<Handle<Graph>>, original: Handle<Graph>) {
        made.check()?;
        made.set(graph(original)?.copy(false)?.handle)
    }

    /// Finds the copy of a node in a copied graph.
    fn cuGraphNodeFindInClone(found: Out<Handle<Node>>, original: Handle<Node>, copied: Handle<Graph>) {
        found.check()?;
        let copy = graph(copied)?.lock().nodes.iter().find(|node| node.original == original).map(|node| node.handle);
        let missing = || Failure::value(format!("the graph {copied:?} has no copy of the node {original:?}"));
        found.set(copy.ok_or_else(missing)?)
    }

    /// Destroys a node.
    fn cuGraphDestroyNode(handle: Handle<Node>) {
        let node = node(handle)?;
        if matches!(&*node.work(), Work::Alloc(_) | Work::Free(_)) {
            let why = "a node that allocates or frees memory is not destroyed alone; destroy the graph";
            return Err(Failure::unsupported(why));
        }
        let graph = graph(node.graph)?;
        let mut inner = graph.lock();
        inner.nodes.retain(|other| other.handle != handle);
        inner.edges.retain(|edge| edge.from != handle && edge.to != handle);
        drop(inner);
        forget(&node)
    }

    /// Writes a graph as text for Graphviz.
    fn cuGraphDebugDotPrint(of: Handle<Graph>, path: Text, _flags: c_uint) {
        let graph = graph(of)?;
        let path = path.string()?;
        let mut text = format!("digraph graph_{:x} {{\n", of.0);
        let inner = graph.lock();
        for node in &inner.nodes {
            text += &format!("  \"{:?}\" [label=\"{:?} {:?}\"];\n", node.handle, node.work().kind(), node.handle);
        }
        for edge in &inner.edges {
            text += &format!("  \"{:?}\" -> \"{:?}\";\n", edge.from, edge.to);
        }
        drop(inner);
        text += "}\n";
        let written = std::fs::write(&path, text);
        written.map_err(|error| Failure::new(code::OPERATING_SYSTEM, format!("cannot write {path}: {error}")))
    }
}
