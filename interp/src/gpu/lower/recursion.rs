//! Finds the functions that may be active when they are entered: those on a cycle of calls.
//!
//! A pointer may call any function of a list. The list is a node of its own, because many calls may
//! share a long one. The cycles are Tarjan's strongly connected components ("Depth-First Search and
//! Linear Graph Algorithms", 1972), found without recursion.

use std::collections::HashMap;
use std::sync::Arc;

use crate::gpu::code::Target;

/// For each of `functions` functions, whether it may call itself, directly or through others. Each
/// call comes with its caller.
pub(super) fn recursive<'a>(functions: usize, calls: impl Iterator<Item = (u32, &'a Target)>) -> Vec<bool> {
    let mut cyclic = cyclic(&graph(functions, calls));
    cyclic.truncate(functions);
    cyclic
}

/// The nodes that each node leads to. After the functions comes one node for all of them, then one
/// for each list.
fn graph<'a>(functions: usize, calls: impl Iterator<Item = (u32, &'a Target)>) -> Vec<Vec<u32>> {
    let any = functions;
    let mut nodes: Vec<Vec<u32>> = vec![Vec::new(); functions];
    nodes.push((0..functions as u32).collect());
    let mut lists = HashMap::new();
    for (caller, target) in calls {
        let callee = match target {
            Target::Function(number) => *number,
            Target::Pointer(None) => any as u32,
            Target::Pointer(Some(list)) => *lists.entry(Arc::as_ptr(list)).or_insert_with(|| {
                nodes.push(list.to_vec());
                nodes.len() as u32 - 1
            }),
            Target::Print | Target::Assert | Target::Malloc | Target::Free => continue,
        };
        nodes[caller as usize].push(callee);
    }
    nodes
}

/// For each node, whether a path leads from it to itself.
fn cyclic(nodes: &[Vec<u32>]) -> Vec<bool> {
    const UNSEEN: u32 = u32::MAX;
    let mut found = vec![false; nodes.len()];
    // The time when each node was first seen; for open nodes, the earliest node that they lead back
    // to.
    let (mut seen, mut back) = (vec![UNSEEN; nodes.len()], vec![0; nodes.len()]);
    let mut is_open = vec![false; nodes.len()];
    let (mut open, mut path, mut time) = (Vec::new(), Vec::new(), 0);
    for root in 0..nodes.len() {
        if seen[root] != UNSEEN {
            continue;
        }
        path.push((root, 0));
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            if *next == 0 {
                (seen[node], back[node], is_open[node]) = (time, time, true);
                time += 1;
                open.push(node);
            }
            if let Some(&to) = nodes[node].get(*next) {
                *next += 1;
                let to = to as usize;
                found[node] |= to == node;
                if seen[to] == UNSEEN {
                    path.push((to, 0));
                } else if is_open[to] {
                    back[node] = back[node].min(seen[to]);
                }
                continue;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
                back[*before] = back[*before].min(back[node]);
            }
            if back[node] == seen[node] {
                let first = open.iter().rposition(|&other| other == node).unwrap_or(0);
                let several = open.len() - first > 1;
                for member in open.drain(first..) {
                    is_open[member] = false;
                    found[member] |= several;
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
