//! Analyses control flow: where the lanes of a branch meet again, and which registers may be read
//! before they are written.
//!
//! Lanes meet at the branch's immediate post-dominator, the first place that every path from the
//! branch to the end passes. NVIDIA's compilers do the same for structured code. Post-dominators
//! are dominators of the reversed graph, found by the iterative method of Cooper, Harvey and
//! Kennedy ("A Simple, Fast Dominance Algorithm", 2001).

use super::code::NOWHERE;

/// The most steps along chains of post-dominators in an analysis. Compiled code takes a few for
/// each block, but one can write code for which they grow with the square of its length.
const MAX_STEPS: u64 = 1 << 26;
/// The largest product of blocks and registers for which liveness is computed.
const MAX_LIVENESS: usize = 1 << 26;

/// The successors of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next instruction.
    On,
    /// Another instruction.
    Jump(u32),
    /// Another instruction, or the next one.
    Branch(u32),
    /// Any target of the table with this number; if it has a guard, also the next instruction.
    Table(usize, bool),
    /// The end.
    End,
    /// The end, or the next instruction.
    MayEnd,
    /// None: a thread that exits inside a function does not reach the function's end.
    Nowhere,
}

/// Basic blocks of a piece of code, and its tables. A table is a node of its own, because many
/// branches may share a long one.
pub(crate) struct Graph {
    /// The first pc of each block, ascending; the first is 0.
    starts: Vec<u32>,
    /// The successors of each block, followed by those of each table. The number of nodes stands
    /// for the end.
    successors: Vec<Vec<usize>>,
    len: u32,
}

impl Graph {
    /// Builds the graph of code, with the targets of its tables. The last instruction leads to the
    /// end, or jumps.
    pub(crate) fn new(code: &[Next], tables: &[Vec<u32>]) -> Self {
        let len = code.len() as u32;
        let mut leads = vec![false; code.len() + 1];
        leads[0] = true;
        for (pc, next) in code.iter().enumerate() {
            match next {
                Next::Jump(target) | Next::Branch(target) => leads[*target as usize] = true,
                _ => {}
            }
            leads[pc + 1] |= *next != Next::On;
        }
        tables.iter().flatten().for_each(|&target| leads[target as usize] = true);
        let starts: Vec<u32> = (0..len).filter(|&pc| leads[pc as usize]).collect();
        let mut graph = Self { starts, successors: Vec::new(), len };
        let blocks = graph.starts.len();
        let end = blocks + tables.len();
        graph.successors = (0..blocks).map(|block| graph.leads_to(block, code, end)).collect();
        for targets in tables {
            let mut leads_to: Vec<usize> = targets.iter().map(|&target| graph.block_of(target)).collect();
            leads_to.sort_unstable();
            leads_to.dedup();
            graph.successors.push(leads_to);
        }
        graph
    }

    fn leads_to(&self, block: usize, code: &[Next], end: usize) -> Vec<usize> {
        let last = self.range(block).end - 1;
        match &code[last as usize] {
            Next::On => vec![block + 1],
            Next::Jump(target) => vec![self.block_of(*target)],
            Next::Branch(target) => vec![block + 1, self.block_of(*target)],
            Next::Table(table, on) => {
                [Some(self.starts.len() + table), on.then_some(block + 1)].into_iter().flatten().collect()
            }
            Next::End => vec![end],
            Next::MayEnd => vec![block + 1, end],
            Next::Nowhere => vec![],
        }
    }

    /// The node that stands for the end.
    fn end(&self) -> usize {
        self.successors.len()
    }

    fn block_of(&self, pc: u32) -> usize {
        self.starts.partition_point(|&start| start <= pc) - 1
    }

    fn range(&self, block: usize) -> std::ops::Range<u32> {
        self.starts[block]..self.starts.get(block + 1).copied().unwrap_or(self.len)
    }

    /// For each instruction, the pc where its lanes meet if it splits them, or [`NOWHERE`] if they
    /// do not meet before the end. `None` if the search would take too long.
    pub(crate) fn reconvergence(&self) -> Option<Vec<u32>> {
        // Lanes that end early are not waited for, so lanes meet where the continuing ones meet.
        let (going_on, all) = (self.post_dominators(false)?, self.post_dominators(true)?);
        let mut out = Vec::with_capacity(self.len as usize);
        for block in 0..self.starts.len() {
            let meet = going_on[block].or(all[block]).and_then(|meet| self.starts.get(meet));
            out.extend(self.range(block).map(|_| meet.copied().unwrap_or(NOWHERE)));
        }
        Some(out)
    }

    /// The successors of `block`. With `early_ends` false, the end is left out if it is one of two.
    fn next(&self, block: usize, early_ends: bool) -> impl Iterator<Item = usize> {
        let (successors, end) = (&self.successors[block], self.end());
        successors.iter().copied().filter(move |&next| early_ends || next != end || successors.len() == 1)
    }

    /// For each node, the first block that every path from there to the end passes. An inner `None`
    /// means that no path leads to the end; an outer `None` means that the search exceeded
    /// [`MAX_STEPS`].
    fn post_dominators(&self, early_ends: bool) -> Option<Vec<Option<usize>>> {
        let end = self.end();
        let order = self.reversed_postorder(early_ends);
        let mut rank = vec![usize::MAX; end + 1];
        for (position, &block) in order.iter().enumerate() {
            rank[block] = position;
        }
        let mut immediate = vec![None; end + 1];
        immediate[end] = Some(end);
        let mut steps = 0;
        let mut changed = true;
        while changed {
            changed = false;
            for &block in &order[1..] {
                let known = self.next(block, early_ends).filter(|&next| immediate[next].is_some());
                let new = known.reduce(|a, b| common(&immediate, &rank, a, b, &mut steps));
                if steps > MAX_STEPS {
                    return None;
                }
                changed |= new != immediate[block];
                immediate[block] = new;
            }
        }
        // Lanes do not meet at a table, but at a node after it. Nodes closer to the end come first,
        // so their result is already known.
        for &node in &order[1..] {
            if let Some(table) = immediate[node].filter(|next| (self.starts.len()..end).contains(next)) {
                immediate[node] = immediate[table];
            }
        }
        Some(immediate)
    }

    /// For each block and the end, the blocks that lead to it.
    fn predecessors(&self, early_ends: bool) -> Vec<Vec<usize>> {
        let end = self.end();
        let mut predecessors = vec![Vec::new(); end + 1];
        for block in 0..end {
            for next in self.next(block, early_ends) {
                predecessors[next].push(block);
            }
        }
        predecessors
    }

    /// The blocks from which the end can be reached: the end first, and each block after one of its
    /// successors.
    fn reversed_postorder(&self, early_ends: bool) -> Vec<usize> {
        let end = self.end();
        let predecessors = self.predecessors(early_ends);
        let mut seen = vec![false; end + 1];
        seen[end] = true;
        let mut postorder = Vec::new();
        // Each block on the path from the end, and the number of its predecessors that have been
        // visited.
        let mut path = vec![(end, 0)];
        while let Some((block, visited)) = path.last_mut() {
            if let Some(&before) = predecessors[*block].get(*visited) {
                *visited += 1;
                if !seen[before] {
                    seen[before] = true;
                    path.push((before, 0));
                }
            } else {
                postorder.push(*block);
                path.pop();
            }
        }
        postorder.reverse();
        postorder
    }

    /// The registers, of `count`, that may be read before they are written: those live at the first
    /// block. Liveness is computed for one word's bits of registers at a time, so that memory does
    /// not grow with the number of registers. If the analysis would be too large, it returns all
    /// registers.
    pub(crate) fn read_before_written(&self, uses: &[Uses], count: usize) -> Vec<usize> {
        if self.starts.len().saturating_mul(count) > MAX_LIVENESS {
            return (0..count).collect();
        }
        let touched = self.touched(uses, count);
        self.live_at_first(&touched).0
    }

    /// The registers that are live at the first block, and how many blocks were taken from the
    /// queue to find them.
    fn live_at_first(&self, touched: &[Touched]) -> (Vec<usize>, usize) {
        let predecessors = self.predecessors(true);
        let mut live = vec![0_u64; self.end()];
        let mut written = vec![0_u64; self.end()];
        let (mut out, mut steps) = (Vec::new(), 0);
        for (chunk, registers) in touched.chunks(64).enumerate() {
            live.fill(0);
            written.fill(0);
            let mut work = Vec::new();
            for (bit, register) in registers.iter().enumerate() {
                register.writes.iter().for_each(|&block| written[block as usize] |= 1 << bit);
                register.reads.iter().for_each(|&block| live[block as usize] |= 1 << bit);
                work.extend(register.reads.iter().map(|&block| block as usize));
            }
            // The queue is processed from its end, usually the last block first: that is the short
            // way backwards.
            work.sort_unstable();
            work.dedup();
            while let Some(block) = work.pop() {
                steps += 1;
                for &before in &predecessors[block] {
                    let new = live[block] & !written[before] & !live[before];
                    if new != 0 {
                        live[before] |= new;
                        work.push(before);
                    }
                }
            }
            let first = live.first().copied().unwrap_or(0);
            out.extend((0..registers.len()).filter(|bit| first >> bit & 1 == 1).map(|bit| chunk * 64 + bit));
        }
        (out, steps)
    }

    /// For each of `count` registers, the blocks that touch it.
    fn touched(&self, uses: &[Uses], count: usize) -> Vec<Touched> {
        let mut touched = vec![Touched::default(); count];
        for block in 0..self.starts.len() {
            self.touch(block, uses, &mut touched);
        }
        touched
    }

    /// Records the registers that a block reads before it writes them, and those that it always
    /// writes.
    fn touch(&self, block: usize, uses: &[Uses], touched: &mut [Touched]) {
        let number = block as u32;
        for pc in self.range(block) {
            let Uses { reads, writes, conditional } = &uses[pc as usize];
            for &register in reads {
                let register = &mut touched[register];
                if register.writes.last() != Some(&number) && register.reads.last() != Some(&number) {
                    register.reads.push(number);
                }
            }
            for &register in writes.iter().filter(|_| !conditional) {
                let register = &mut touched[register];
                if register.writes.last() != Some(&number) {
                    register.writes.push(number);
                }
            }
        }
    }
}

/// The blocks that touch a register, ascending.
#[derive(Debug, Clone, Default)]
struct Touched {
    /// Blocks that read it before they write it.
    reads: Vec<u32>,
    /// Blocks that always write it.
    writes: Vec<u32>,
}

/// The registers, numbered through all files, that an instruction touches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uses {
    pub(crate) reads: Vec<usize>,
    pub(crate) writes: Vec<usize>,
    /// True if it has a guard, and so may leave its destinations unchanged.
    pub(crate) conditional: bool,
}

/// The first block that both chains of post-dominators pass.
fn common(immediate: &[Option<usize>], rank: &[usize], mut a: usize, mut b: usize, steps: &mut u64) -> usize {
    while a != b {
        *steps += 1;
        let later = if rank[a] > rank[b] { &mut a } else { &mut b };
        match immediate[*later] {
            Some(next) => *later = next,
            None => return immediate.len() - 1,
        }
    }
    a
}

#[cfg(test)]
mod tests;
