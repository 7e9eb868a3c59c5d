//! Instructions before their place is known, and the registers that each touches.

use super::Slot;
use super::contract::Role;
use crate::gpu::code::Access;
use crate::gpu::isa::Op;

/// The registers that an instruction reads and writes, and whether it has a guard.
pub(super) struct Touched {
    pub(super) reads: Vec<Slot>,
    pub(super) writes: Vec<Slot>,
    pub(super) conditional: bool,
    pub(super) role: Role,
}

/// An instruction before its place is known.
pub(super) struct Draft {
    pub(super) op: Op,
    pub(super) reads: Vec<Slot>,
    pub(super) writes: Vec<Slot>,
    pub(super) d: u16,
    pub(super) s: [u16; 4],
    pub(super) access: Access,
    pub(super) imm: i32,
}

impl Draft {
    pub(super) fn new(op: Op) -> Self {
        Self { op, reads: Vec::new(), writes: Vec::new(), d: 0, s: [0; 4], access: Access::default(), imm: 0 }
    }

    /// A step between registers.
    pub(super) fn step(op: Op, result: Slot, sources: &[Slot]) -> Self {
        let mut draft = Self { d: result.1, reads: sources.to_vec(), writes: vec![result], ..Self::new(op) };
        draft.s.iter_mut().zip(sources).for_each(|(place, source)| *place = source.1);
        draft
    }

    /// Adds a source.
    pub(super) fn read(&mut self, place: usize, source: Slot) {
        self.s[place] = source.1;
        self.reads.push(source);
    }

    /// Adds a result that stands where other instructions have a source.
    pub(super) fn fill(&mut self, place: usize, result: Slot) {
        self.s[place] = result.1;
        self.writes.push(result);
    }
}
