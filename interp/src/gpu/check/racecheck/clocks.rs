//! Vector clocks: for each other thread, the clock of its warp below which all of its accesses come
//! before a thread's next access.
//!
//! Knowledge is about threads, but lanes mostly learn together: a warp of the thread's own block
//! takes one number until its lanes differ. A thread knows of other blocks only what it has
//! acquired; they stand in a tree, and threads share the parts of it that are equal.

use std::rc::Rc;

use crate::gpu::vocabulary::{FULL, LANES, lanes_of};

/// Children of a node of the tree, as a power of two.
const BITS: u32 = 4;
/// Levels from the root to a leaf, enough for every block that a launch may have.
const LEVELS: u32 = super::entry::BLOCK_BITS.div_ceil(BITS);

/// The work of making a node of the tree.
const NODE_WORK: u64 = 12;
/// The work of joining the knowledge about each lane of a warp.
const LANE_WORK: u64 = 8;

/// The clock of each lane of a warp below which its accesses are known.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Lanes {
    Alike(u32),
    Each(Rc<[u32; LANES]>),
}

impl Lanes {
    fn get(&self, lane: usize) -> u32 {
        match self {
            Lanes::Alike(clock) => *clock,
            Lanes::Each(clocks) => clocks[lane],
        }
    }

    /// Returns whether the accesses of the lanes `lanes` at `clock` are known.
    pub(super) fn hold(&self, lanes: u32, clock: u32) -> bool {
        match self {
            Lanes::Alike(below) => clock < *below,
            Lanes::Each(below) => lanes_of(lanes).all(|lane| clock < below[lane]),
        }
    }

    /// Tells whether the access of at least one of these lanes is known.
    pub(super) fn hold_any(&self, lanes: u32, clock: u32) -> bool {
        match self {
            Lanes::Alike(below) => clock < *below,
            Lanes::Each(below) => lanes_of(lanes).any(|lane| clock < below[lane]),
        }
    }

    fn raise(&mut self, lanes: u32, below: u32) {
        self.set(|lane, known| if lanes >> lane & 1 == 1 { known.max(below) } else { known }, lanes == FULL);
    }

    fn join(&mut self, other: &Lanes) {
        match (&*self, other) {
            (Lanes::Alike(a), Lanes::Alike(b)) => *self = Lanes::Alike(*a.max(b)),
            (Lanes::Each(a), Lanes::Each(b)) if Rc::ptr_eq(a, b) => {}
            _ => self.set(|lane, known| known.max(other.get(lane)), false),
        }
    }

    fn set(&mut self, to: impl Fn(usize, u32) -> u32, all: bool) {
        if let (Lanes::Alike(known), true) = (&*self, all) {
            *self = Lanes::Alike(to(0, *known));
            return;
        }
        let clocks: [u32; LANES] = std::array::from_fn(|lane| to(lane, self.get(lane)));
        *self = match clocks.iter().all(|clock| *clock == clocks[0]) {
            true => Lanes::Alike(clocks[0]),
            false => Lanes::Each(Rc::new(clocks)),
        };
    }
}

/// The warps of a block.
type Warps = Rc<Vec<Lanes>>;

/// The knowledge of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// The warps of its own block.
    own: Warps,
    others: Tree,
}

impl Known {
    /// No knowledge, in a block of `warps` warps.
    pub(super) fn nothing(warps: usize) -> Self {
        Self { own: Rc::new(vec![Lanes::Alike(0); warps]), others: Tree::default() }
    }

    /// Returns the knowledge about a warp of the own block, or of another one.
    #[inline]
    pub(super) fn of(&self, other: Option<u32>, warp: usize) -> Option<&Lanes> {
        match other {
            None => Some(&self.own[warp]),
            Some(block) => self.others.get(block).map(|warps| &warps[warp]),
        }
    }

    /// Adds the accesses that these lanes of a warp of the own block made below `clock`.
    pub(super) fn raise(&mut self, warp: usize, lanes: u32, clock: u32) {
        Rc::make_mut(&mut self.own)[warp].raise(lanes, clock);
    }

    /// Adds the knowledge of another thread of the block; returns the work.
    pub(super) fn join(&mut self, other: &Known) -> u64 {
        let mut work = join_warps(&mut self.own, &other.own);
        self.others = Tree(merged(&self.others.0, &other.others.0, &mut work));
        work
    }

    /// Converts the knowledge of a thread of block `from` to that of a thread of block `to`; also
    /// returns the work.
    pub(super) fn moved(&self, from: u32, to: u32) -> (Self, u64) {
        let mut others = self.others.clone();
        let work = others.add(from, &self.own);
        let own = others.get(to).cloned().unwrap_or_else(|| Rc::new(vec![Lanes::Alike(0); self.own.len()]));
        (Self { own, others }, work)
    }
}

/// Joins the knowledge about some warps with other knowledge about them; returns the work.
fn join_warps(warps: &mut Warps, others: &Warps) -> u64 {
    if Rc::ptr_eq(warps, others) {
        return 0;
    }
    let mut joined = Vec::clone(warps);
    joined.iter_mut().zip(others.iter()).for_each(|(warp, other)| warp.join(other));
    // Very many threads may have the same knowledge, so they share it.
    if joined == **others {
        *warps = others.clone();
    } else if joined != **warps {
        *warps = Rc::new(joined);
    }
    others.iter().map(|warp| if matches!(warp, Lanes::Each(_)) { LANE_WORK } else { 1 }).sum()
}

/// The warps of each of some blocks. A tree never changes in place, so clones are cheap.
#[derive(Debug, Clone, Default)]
struct Tree(Option<Rc<Node>>);

#[derive(Debug, Clone)]
enum Node {
    Inner([Option<Rc<Node>>; 1 << BITS]),
    Leaf(Warps),
}

impl Tree {
    fn get(&self, block: u32) -> Option<&Warps> {
        let mut node = self.0.as_ref()?;
        for level in (0..LEVELS).rev() {
            let Node::Inner(children) = &**node else { return None };
            node = children[child(block, level)].as_ref()?;
        }
        match &**node {
            Node::Leaf(warps) => Some(warps),
            Node::Inner(_) => None,
        }
    }

    /// Adds the knowledge about a block; returns the work.
    fn add(&mut self, block: u32, warps: &Warps) -> u64 {
        let mut work = u64::from(LEVELS) * NODE_WORK;
        let mut path = Rc::new(Node::Leaf(warps.clone()));
        for level in 0..LEVELS {
            let mut children = <[Option<Rc<Node>>; 1 << BITS]>::default();
            children[child(block, level)] = Some(path);
            path = Rc::new(Node::Inner(children));
        }
        self.0 = merged(&self.0, &Some(path), &mut work);
        work
    }
}

fn child(block: u32, level: u32) -> usize {
    (block >> (level * BITS)) as usize % (1 << BITS)
}

/// Merges two trees. It skips the nodes that they share, and reuses a node of either tree that
/// already equals the result. Adds its work to `work`.
fn merged(a: &Option<Rc<Node>>, b: &Option<Rc<Node>>, work: &mut u64) -> Option<Rc<Node>> {
    let (x, y) = match (a, b) {
        (Some(x), Some(y)) if !Rc::ptr_eq(x, y) => (x, y),
        (Some(one), _) | (None, Some(one)) => return Some(one.clone()),
        (None, None) => return None,
    };
    let (p, q) = match (&**x, &**y) {
        (Node::Inner(p), Node::Inner(q)) => (p, q),
        (Node::Leaf(p), Node::Leaf(q)) => {
            let mut warps = p.clone();
            *work += 1 + join_warps(&mut warps, q);
            return Some(match () {
                () if Rc::ptr_eq(&warps, p) => x.clone(),
                () if Rc::ptr_eq(&warps, q) => y.clone(),
                () => Rc::new(Node::Leaf(warps)),
            });
        }
        _ => return Some(x.clone()),
    };
    *work += NODE_WORK;
    let children: [Option<Rc<Node>>; 1 << BITS] = std::array::from_fn(|child| merged(&p[child], &q[child], work));
    let same = |others: &[Option<Rc<Node>>]| {
        children.iter().zip(others).all(|(a, b)| match (a, b) {
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        })
    };
    Some(if same(p) {
        x.clone()
    } else if same(q) {
        y.clone()
    } else {
        Rc::new(Node::Inner(children))
    })
}

#[cfg(test)]
mod tests;
