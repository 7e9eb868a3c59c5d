//! Runs code: lanes within a warp, warps within a block, blocks within a grid.

mod arrivals;
mod atomic;
mod barrier;
mod block;
mod budget;
mod bulk;
mod call;
mod control;
mod copies;
mod dispatch;
mod exchange;
mod fragment;
pub(crate) mod grid;
mod lanes;
mod matrix;
mod memory;
mod observe;
mod patterns;
mod peers;
mod printf;
mod product;
pub(crate) mod registers;
mod runtime;
pub(crate) mod tally;
mod turns;
mod warp;

pub(crate) use dispatch::Engine;
pub use turns::MAX_BEGUN;

use super::check::Checker;
use super::code::{Code, Ins};
use super::mem::cells::Scratch;
use super::mem::{Allocation, Snapshot, Touched};
use super::reason::Reason;
use block::cluster::Neighbours;
use tally::Tally;

/// The state that a warp's instructions act on, besides the warp itself.
struct Context<'a> {
    code: &'a Code,
    global: &'a Snapshot,
    /// The heap, if the code uses it.
    heap: Option<&'a Allocation>,
    params: &'a Scratch,
    shared: &'a Scratch,
    /// The blocks of the cluster.
    neighbours: Neighbours<'a>,
    /// One for each of the code's sites.
    tallies: &'a mut [Tally],
    /// The block's number, counted with x fastest.
    block: u64,
    /// The warp's number in the block.
    warp: u32,
    /// The text that the block has printed.
    printed: &'a mut Vec<u8>,
    /// The checkers, if the launch has any.
    checker: Option<&'a mut Checker>,
    /// The bytes that the launch has touched, if they are counted.
    touched: Option<&'a Touched>,
    /// The work limit of the launch.
    limit: u64,
    /// The work left to the block, as if the blocks of its host thread were the only ones.
    left: u64,
}

/// An instruction, and the lanes that execute it.
#[derive(Clone, Copy)]
struct Issue<'a> {
    ins: &'a Ins,
    mask: u32,
}

/// The reason why a warp does not continue at its pc.
enum Break {
    /// It waits, or has ended.
    Yield,
    Fault(Box<Fault>),
}

impl From<Box<Fault>> for Break {
    fn from(fault: Box<Fault>) -> Self {
        Self::Fault(fault)
    }
}

/// How a warp continues after an instruction. It takes two registers, of which the loop looks at
/// one.
type Flow = std::result::Result<(), Break>;

/// The flow to the instruction at the pc.
const NEXT: Flow = Ok(());

/// The reason why a warp stopped.
struct Fault {
    /// The first lane concerned.
    lane: u32,
    reason: Reason,
}

type Result<T> = std::result::Result<T, Box<Fault>>;

impl Fault {
    fn new(lane: u32, reason: Reason) -> Box<Self> {
        Box::new(Self { lane, reason })
    }
}
