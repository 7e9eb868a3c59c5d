//! Running code: lanes within a warp, warps within a block, blocks within a grid.

mod atomic;
mod barrier;
mod block;
mod budget;
mod call;
mod control;
mod dispatch;
mod exchange;
pub(crate) mod grid;
mod lanes;
mod memory;
mod observe;
mod patterns;
mod printf;
pub(crate) mod registers;
mod runtime;
pub(crate) mod tally;
mod threads;
mod turns;
mod warp;

use super::check::Checker;
use super::code::Code;
use super::mem::Snapshot;
use super::mem::cells::Scratch;
use super::reason::Reason;
use tally::Tally;

/// What a warp's instructions act on, besides the warp.
struct Context<'a> {
    code: &'a Code,
    global: &'a Snapshot,
    params: &'a Scratch,
    shared: &'a Scratch,
    /// One for each of the code's sites.
    tallies: &'a mut [Tally],
    /// The block's number, counted with x fastest.
    block: u64,
    /// The warp's number in the block.
    warp: u32,
    /// What the block has printed.
    printed: &'a mut Vec<u8>,
    /// Where there is something to look for.
    checker: Option<&'a mut Checker>,
    /// Work that a launch may do.
    limit: u64,
    /// What is left of it for the block, were its host thread's blocks alone.
    left: u64,
}

/// How a warp goes on after an instruction.
enum Flow {
    /// At its pc.
    Next,
    /// Not now: it waits, or has ended.
    Yield,
    /// Not at all.
    Stop(Box<Fault>),
}

/// What stopped a warp.
struct Fault {
    /// The first lane concerned.
    lane: u32,
    reason: Reason,
}

impl Fault {
    fn new(lane: u32, reason: Reason) -> Box<Self> {
        Box::new(Self { lane, reason })
    }
}
