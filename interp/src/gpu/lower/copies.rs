//! Lowers `cp.async`, which becomes two instructions, and `ldmatrix`.

use super::operands::operand_count;
use super::{Draft, Lowering, Refusal};
use crate::gpu::code::{Access, PresetValue};
use crate::gpu::isa::Op;
use crate::gpu::parse::ast::Operand;
use crate::gpu::vocabulary::{File, Kind, Space};

impl<'t> Lowering<'_, 't> {
    /// Lowers `cp.async`: a read from global memory into registers of its own, and a write of these
    /// registers to shared memory.
    pub(super) fn copy(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Vec<Draft>, Refusal> {
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
        let slots = (0..words).map(|_| self.names.allocate(File::B32)).collect::<Result<Vec<u16>, _>>()?;
        let access = Access { width: 4, count: words as u8, ..Access::default() };
        let mut read = self.addressed_as(Op::CopyRead, from, Access { space: Some(Space::Global), ..access })?;
        (read.s[0], read.s[1]) = (slots[0], size);
        read.reads.push((File::B32, size));
        read.writes.extend(slots.iter().map(|slot| (File::B32, *slot)));
        let mut write = self.addressed_as(op, to, Access { space: Some(Space::Shared), ..access })?;
        write.s[..slots.len()].copy_from_slice(&slots);
        write.reads.extend(slots.iter().map(|slot| (File::B32, *slot)));
        drafts.extend([read, write]);
        Ok(drafts)
    }

    /// The register with the bytes that a lane reads. The last operand gives them, or it is a
    /// predicate of the lanes that read nothing.
    fn copied_bytes(&mut self, all: u64, rest: &[Operand<'t>]) -> Result<(u16, Vec<Draft>), Refusal> {
        match rest {
            [] => Ok((self.names.constant(File::B32, PresetValue::Bits(all))?, Vec::new())),
            [ignored @ Operand::Name(name, 0)] if self.names.declared(name) == Some("pred") => {
                let ignored = self.source(ignored, Kind::Pred)?;
                let [none, all] = [0, all].map(|bytes| self.names.constant(File::B32, PresetValue::Bits(bytes)));
                let (none, all, d) = (none?, all?, self.names.allocate(File::B32)?);
                let reads = vec![(File::B32, none), (File::B32, all), (File::Pred, ignored)];
                let writes = vec![(File::B32, d)];
                Ok((d, vec![Draft { d, s: [none, all, ignored, 0], reads, writes, ..Draft::new(Op::SelpB32) }]))
            }
            [bytes] => Ok((self.source(bytes, Kind::B32)?, Vec::new())),
            _ => Err(operand_count()),
        }
    }

    /// `cp.async.wait_group`: the number of groups that need not be complete.
    pub(super) fn copy_wait(&mut self, op: Op, operands: &[Operand<'t>]) -> Result<Draft, Refusal> {
        let [Operand::Integer(groups)] = *operands else { return Err("it gives no number of groups".to_owned()) };
        let imm = i32::try_from(groups).map_err(|_| "its number of groups is not one of 0 to 2147483647".to_owned())?;
        Ok(Draft { imm, ..Draft::new(op) })
    }

    /// Lowers `ldmatrix`: a register for each matrix.
    pub(super) fn matrix(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft, Refusal> {
        let [results, address] = operands else { return Err(operand_count()) };
        let has = |part| opcode.split('.').any(|other| other == part);
        let count = if has("x4") { 4 } else { 1 + u8::from(has("x2")) };
        let access = Access { width: 4, count, space: Some(Space::Shared), ..Access::default() };
        let mut draft = self.addressed_as(op, address, access)?;
        for (index, element) in self.elements(results, access)?.into_iter().enumerate() {
            draft.s[index] = self.result(element, File::B32)?;
            draft.writes.push((File::B32, draft.s[index]));
        }
        Ok(draft)
    }
}
