//! Lowers `mbarrier`: atomics on the 64 bits of a barrier, and what is made of the bits.

use super::operands::operand_count;
use super::{Draft, Lowering, Result, Slot};
use crate::gpu::code::{Access, PresetValue};
use crate::gpu::isa::Op;
use crate::gpu::modifiers::Sync;
use crate::gpu::parse::ast::Operand;
use crate::gpu::semantics::arrivals;
use crate::gpu::vocabulary::{File, Kind, Space};

impl<'t> Lowering<'_, 't> {
    /// Lowers an instruction on a barrier in shared memory.
    pub(super) fn arrival(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Vec<Draft>> {
        let has = |part| opcode.split('.').any(|other| other == part);
        let unused = Operand::Name("_", 0);
        // The rows of the table for another block's barriers stand for those for the block's own.
        let op = match op {
            Op::MbarArriveAt if has("arrive_drop") => Op::MbarDrop,
            Op::MbarArriveAt => Op::MbarArrive,
            Op::MbarExpectAt if has("complete_tx") => Op::MbarComplete,
            Op::MbarExpectAt => Op::MbarExpect,
            op => op,
        };
        match (op, operands) {
            (Op::MbarArrive | Op::MbarDrop, [state, address, rest @ ..]) => {
                let one = self.names.constant(File::B64, PresetValue::Bits(1))?;
                let (count, bytes) = match (rest, has("expect_tx")) {
                    ([], false) => (one, None),
                    ([count], false) => (self.widened(count)?, None),
                    ([bytes], true) => (one, Some(self.widened(bytes)?)),
                    _ => return Err(operand_count()),
                };
                Ok(vec![self.on_barrier(op, opcode, address, state, [Some(count), bytes])?])
            }
            (Op::MbarExpect, [address, bytes]) => {
                let bytes = self.widened(bytes)?;
                Ok(vec![self.on_barrier(op, opcode, address, &unused, [None, Some(bytes)])?])
            }
            (Op::MbarComplete, [address, bytes]) => {
                let (none, bytes) = (self.names.constant(File::B64, PresetValue::Bits(0))?, self.widened(bytes)?);
                let less = self.before(Op::SubB64, File::B64, &[none, bytes])?;
                Ok(vec![self.on_barrier(op, opcode, address, &unused, [None, Some(less)])?])
            }
            // The last operand of `try_wait` is a time, after which it answers anyway.
            (Op::MbarLook, [holds, address, phase] | [holds, address, phase, _]) => {
                let phase = if has("parity") { self.widened(phase)? } else { self.source(phase, Kind::B64)? };
                let now = self.names.allocate(File::B64)?;
                // Copies in bulk end only where the phase is not over without them.
                let mut look = self.on_barrier(op, opcode, address, &unused, [Some(phase), None])?;
                look.fill(0, now);
                let holds = self.result(holds, File::Pred)?;
                Ok(vec![look, Draft::step(Op::MbarHasLeft, holds, &[now, phase])])
            }
            // The copies that the thread has begun write now, which is as early as the hardware
            // may.
            (Op::CopyArrive, [address]) => {
                let count = self.names.constant(File::B64, PresetValue::Bits(u64::from(has("noinc"))))?;
                let arrive = self.on_barrier(op, opcode, address, &unused, [Some(count), None])?;
                Ok(vec![Draft::new(Op::CopyWaitAll), arrive])
            }
            _ => Err(operand_count()),
        }
    }

    /// Lowers `mbarrier.init`, a store of the first state, and `mbarrier.inval`, a store of 0.
    pub(super) fn barrier_state(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Vec<Draft>> {
        let (address, state) = match (operands, opcode.contains("init")) {
            ([_, Operand::Integer(count)], true) if !(1..=arrivals::MOST).contains(count) => {
                return Err(format!("its count is not one of 1 to {}", arrivals::MOST));
            }
            ([address, count], true) => {
                let count = self.widened(count)?;
                (address, self.before(Op::MbarInitial, File::B64, &[count])?)
            }
            ([address], false) => (address, self.names.constant(File::B64, PresetValue::Bits(0))?),
            _ => return Err(operand_count()),
        };
        let space = opcode.contains(".shared").then_some(Space::Shared);
        let access = Access { width: 8, count: 1, space, wide: true, ..Access::default() };
        let mut draft = self.addressed_as(op, address, access)?;
        draft.read(0, state);
        Ok(vec![draft])
    }

    /// An atomic on the bits of a barrier: the old ones, a count and a number of bytes; those that
    /// are left out are 0.
    fn on_barrier(
        &mut self,
        op: Op,
        opcode: &str,
        address: &Operand<'t>,
        old: &Operand<'t>,
        operands: [Option<Slot>; 2],
    ) -> Result<Draft> {
        let says = |any: &[&str]| opcode.split('.').any(|part| any.contains(&part));
        let space = says(&["shared", "shared::cta"]).then_some(Space::Shared);
        // An arrival publishes what its thread did before, and a look that finds the end of a phase
        // receives that, unless they say `.relaxed`. For racecheck, both have the scope of the
        // block, or of the device where clusters have several blocks.
        let scope = if self.is_clustered() { "gpu" } else { "cta" };
        let order = if says(&["relaxed"]) { "relaxed" } else { "acq_rel" };
        let sync = Sync::of(&format!("atom.{order}.{scope}"));
        let access = Access { width: 8, count: 1, space, sync, wide: true, ..Access::default() };
        let draft = self.addressed_as(op, address, access)?;
        let mut draft = self.in_cluster(draft, opcode)?;
        draft.fill(0, self.result(old, File::B64)?);
        for (place, operand) in operands.into_iter().enumerate() {
            let operand = match operand {
                Some(slot) => slot,
                None => self.names.constant(File::B64, PresetValue::Bits(0))?,
            };
            draft.read(1 + place, operand);
        }
        Ok(draft)
    }

    /// A 64-bit register with a 32-bit operand.
    fn widened(&mut self, operand: &Operand<'t>) -> Result<Slot> {
        if let Operand::Integer(value) = *operand {
            return self.names.constant(File::B64, PresetValue::Bits(value & u64::from(u32::MAX)));
        }
        let narrow = self.source(operand, Kind::B32)?;
        self.before(Op::Cvt64FromU32, File::B64, &[narrow])
    }
}
