//! Uses of an allocation are ordered one after the other, those by a graph too.

use loom::sync::Arc;
use loom::thread;

use super::home::Home;
use super::joint::Joint;
use super::last_use::{LastUse, queue_in_order};
use super::{Allocation, Shared};
use crate::stream::{Stream, streams};

crate::models! {
    a_graph_is_launched_while_its_memory_is_used,
    a_graph_is_launched_while_an_operation_uses_its_memory,
    a_graph_is_launched_by_two,
    two_graphs_share_memory,
}

/// Makes allocations that have been used on no stream yet. They are in the order of their
/// addresses, in which they are locked, because loom wants the same order in each run.
fn allocations(home: &Stream) -> [Shared<Allocation>; 2] {
    let make = |number| Shared::new(Allocation { last_use: LastUse::new(Home(home.clone()), true), number });
    let mut made = [0, 1].map(make);
    made.sort_by_key(Shared::place);
    made
}

fn launch(graph: &Joint, stream: &Stream, used: &[u32]) {
    let Ok(()) = graph.queue(stream, || {
        stream.work(used);
        Ok(())
    });
}

/// Uses allocations as an operation does.
fn use_all<const N: usize>(memory: [&Shared<Allocation>; N], stream: &Stream) {
    let Ok(()) = queue_in_order(stream, memory, || {
        stream.work(&memory.map(|memory| memory.number));
        Ok(())
    });
}

fn a_graph_is_launched_while_its_memory_is_used() {
    let streams = streams();
    let memory = allocations(&streams[0]);
    let graph = Arc::new(Joint::new(memory.to_vec()));
    launch(&graph, &streams[0], &[0, 1]);
    let launches = thread::spawn({
        let (graph, stream) = (Arc::clone(&graph), streams[1].clone());
        move || launch(&graph, &stream, &[0, 1])
    });
    let [first, second] = memory;
    use_all([&first], &streams[2]);
    use_all([&second], &streams[0]);
    // The graph has handles of its own.
    drop((first, second));
    launches.join().unwrap();
    launch(&graph, &streams[2], &[0, 1]);
}

/// Both lock all of the memory.
fn a_graph_is_launched_while_an_operation_uses_its_memory() {
    let streams = streams();
    let memory = allocations(&streams[0]);
    let graph = Joint::new(memory.to_vec());
    let launches = thread::spawn({
        let stream = streams[1].clone();
        move || launch(&graph, &stream, &[0, 1])
    });
    let [first, second] = memory;
    use_all([&second, &first], &streams[2]);
    launches.join().unwrap();
}

fn a_graph_is_launched_by_two() {
    let streams = streams();
    let [memory, _] = allocations(&streams[0]);
    let graph = Arc::new(Joint::new(vec![memory.clone()]));
    let threads = [1, 2].map(|number| {
        let (graph, stream, used) = (Arc::clone(&graph), streams[number].clone(), [memory.number]);
        thread::spawn(move || launch(&graph, &stream, &used))
    });
    use_all([&memory], &streams[0]);
    drop(graph);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Each launch takes memory out of the other graph's joint use.
fn two_graphs_share_memory() {
    let streams = streams();
    let memory = allocations(&streams[0]);
    let [first, second] = memory.clone();
    let graphs = [vec![first.clone(), second.clone()], vec![second, first]].map(Joint::new);
    let mut threads = Vec::new();
    for (graph, stream) in graphs.into_iter().zip(&streams[1..]) {
        let stream = stream.clone();
        threads.push(thread::spawn(move || launch(&graph, &stream, &[0, 1])));
    }
    drop(memory);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
