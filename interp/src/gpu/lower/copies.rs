//! Lowers `cp.async`, which becomes two instructions, `ldmatrix` and `stmatrix`.

use super::operands::operand_count;
use super::{Draft, Lowering, Result, Slot};
use crate::gpu::code::{Access, PresetValue};
use crate::gpu::isa::Op;
use crate::gpu::parse::ast::Operand;
use crate::gpu::vocabulary::{File, Kind, Space};

impl<'t> Lowering<'_, 't> {
    /// Lowers `cp.async`: a read from global memory into registers of its own, and a write of these
    /// registers to shared memory.
    pub(super) fn copy(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Vec<Draft>> {
        let [to, from, Operand::Integer(bytes), rest @ ..] = self.without_policy(opcode, operands)? else {
            return Err(operand_count());
        };
        let words = match (*bytes, opcode.contains(".cg")) {
            (16, _) => 4,
            (8, false) => 2,
            (4, false) => 1,
            _ => return Err("it copies 4, 8 or 16 bytes with .ca, and 16 with .cg".to_owned()),
        };
        let (size, mut drafts) = self.copied_bytes(16.min(4 * words), rest)?;
        let slots = (0..words).map(|_| self.names.allocate(File::B32)).collect::<Result<Vec<Slot>, _>>()?;
        let access = Access { width: 4, count: words as u8, ..Access::default() };
        let mut read = self.addressed_as(Op::CopyRead, from, Access { space: Some(Space::Global), ..access })?;
        read.s[0] = slots[0].1;
        read.read(1, size);
        read.writes.extend(&slots);
        let mut write = self.addressed_as(op, to, Access { space: Some(Space::Shared), ..access })?;
        slots.into_iter().enumerate().for_each(|(place, slot)| write.read(place, slot));
        drafts.extend([read, write]);
        Ok(drafts)
    }

    /// The register with the bytes that a lane reads. The last operand gives them, or it is a
    /// predicate of the lanes that read nothing.
    fn copied_bytes(&mut self, all: u64, rest: &[Operand<'t>]) -> Result<(Slot, Vec<Draft>)> {
        match rest {
            [] => Ok((self.names.constant(File::B32, PresetValue::Bits(all))?, Vec::new())),
            [ignored @ Operand::Name(name, 0)] if self.names.declared(name) == Some("pred") => {
                let ignored = self.source(ignored, Kind::Pred)?;
                let [none, all] = [0, all].map(|bytes| self.names.constant(File::B32, PresetValue::Bits(bytes)));
                let (none, all, d) = (none?, all?, self.names.allocate(File::B32)?);
                Ok((d, vec![Draft::step(Op::SelpB32, d, &[none, all, ignored])]))
            }
            [bytes] => Ok((self.source(bytes, Kind::B32)?, Vec::new())),
            _ => Err(operand_count()),
        }
    }

    /// `cp.async.wait_group`: the number of groups that need not be complete.
    pub(super) fn copy_wait(&mut self, op: Op, operands: &[Operand<'t>]) -> Result<Draft> {
        let [Operand::Integer(groups)] = *operands else { return Err("it gives no number of groups".to_owned()) };
        let imm = i32::try_from(groups).map_err(|_| "its number of groups is not one of 0 to 2147483647".to_owned())?;
        Ok(Draft { imm, ..Draft::new(op) })
    }

    /// Lowers `ldmatrix`: a register for each matrix.
    pub(super) fn matrix(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft> {
        let [results, address] = operands else { return Err(operand_count()) };
        let access = matrices(opcode);
        let mut draft = self.addressed_as(op, address, access)?;
        for (index, element) in self.elements(results, access)?.into_iter().enumerate() {
            draft.fill(index, self.result(element, File::B32)?);
        }
        Ok(draft)
    }

    /// Lowers `stmatrix`: a register for each matrix.
    pub(super) fn matrix_store(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft> {
        let [address, sources] = operands else { return Err(operand_count()) };
        let access = matrices(opcode);
        let mut draft = self.addressed_as(op, address, access)?;
        for (index, element) in self.elements(sources, access)?.into_iter().enumerate() {
            draft.read(index, self.source(element, Kind::B32)?);
        }
        Ok(draft)
    }
}

/// The access to the matrices of an opcode.
fn matrices(opcode: &str) -> Access {
    let has = |part| opcode.split('.').any(|other| other == part);
    let count = if has("x4") { 4 } else { 1 + u8::from(has("x2")) };
    Access { width: 4, count, space: Some(Space::Shared), ..Access::default() }
}
