//! Lowers copies in bulk: `cp.async.bulk` and `cp.reduce.async.bulk`.

use super::operands::operand_count;
use super::{Draft, Lowering, Result, Slot};
use crate::gpu::code::{Access, Bulk, PresetValue, Reduce};
use crate::gpu::isa::Op;
use crate::gpu::mem::space;
use crate::gpu::parse::ast::Operand;
use crate::gpu::vocabulary::{File, Kind};

impl<'t> Lowering<'_, 't> {
    /// Lowers a copy of bytes that lie side by side.
    pub(super) fn bulk(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Vec<Draft>> {
        let has = |part| opcode.split('.').any(|other| other == part);
        let [to, from, size, rest @ ..] = self.without_policy(opcode, operands)? else { return Err(operand_count()) };
        let mut places = opcode.split('.').filter(|part| part.starts_with("shared") || *part == "global");
        let [to_shared, from_shared] = [places.next(), places.next()].map(|place| place != Some("global"));
        let (to, from) = (self.place(op, to, to_shared)?, self.place(op, from, from_shared)?);
        let size = self.source(size, Kind::B32)?;
        let (barrier, ranks) = match rest {
            [] if has("bulk_group") => (None, None),
            [barrier] if !has("bulk_group") && !has("multicast::cluster") => {
                (Some(self.place(op, barrier, true)?), None)
            }
            [barrier, ranks] if has("multicast::cluster") => {
                (Some(self.place(op, barrier, true)?), Some(self.source(ranks, Kind::B16)?))
            }
            _ => return Err(operand_count()),
        };
        let number = |slot: Option<Slot>| slot.map(|(_, number)| number);
        let imm = self.code.bulks.len() as i32;
        self.code.bulks.push(Bulk {
            to: to.1,
            from: from.1,
            size: size.1,
            barrier: number(barrier),
            ranks: number(ranks),
            reduce: Reduce::of(opcode),
            to_shared,
            from_shared,
        });
        let reads = [to, from, size].into_iter().chain(barrier).chain(ranks).collect();
        Ok(vec![Draft { imm, reads, ..Draft::new(op) }])
    }

    /// Lowers a hint that bytes will be copied.
    pub(super) fn bulk_hint(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft> {
        let [from, size] = self.without_policy(opcode, operands)? else { return Err(operand_count()) };
        self.source(size, Kind::B32)?;
        self.hint(op, std::slice::from_ref(from))
    }

    /// A register of 64 bits with the generic address of an operand.
    pub(super) fn place(&mut self, op: Op, operand: &Operand<'t>, is_shared: bool) -> Result<Slot> {
        let Draft { access, d, imm, .. } = self.addressed_as(op, operand, Access::default())?;
        let slot = match access.wide_address {
            true => (File::B64, d),
            false => self.before(Op::Cvt64FromU32, File::B64, &[(File::B32, d)])?,
        };
        let window = if is_shared { space::SHARED as i64 } else { 0 };
        self.sum(slot, window + i64::from(imm))
    }

    /// Lowers `cp.async.bulk.wait_group`.
    pub(super) fn bulk_wait(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft> {
        let mut draft = self.copy_wait(op, operands)?;
        let only_read = self.names.constant(File::Pred, PresetValue::Bits(u64::from(opcode.ends_with(".read"))))?;
        draft.read(0, only_read);
        Ok(draft)
    }
}
