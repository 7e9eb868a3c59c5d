//! Lowers copies in bulk: `cp.async.bulk` and `cp.reduce.async.bulk`.

use super::operands::{access, operand_count};
use super::{Draft, Lowering, Refusal, Result, Slot};
use crate::gpu::code::{Access, Bulk, PresetValue, Tensor};
use crate::gpu::isa::Op;
use crate::gpu::mem::space;
use crate::gpu::parse::ast::Operand;
use crate::gpu::reduce::{Change, Number};
use crate::gpu::vocabulary::{File, Kind};

impl<'t> Lowering<'_, 't> {
    /// Lowers a copy of bytes that lie side by side, of a box of a tensor, or of registers.
    pub(super) fn bulk(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Vec<Draft>> {
        if !opcode.starts_with("cp.") {
            return Ok(vec![self.send(op, opcode, operands)?]);
        }
        let has = |part| opcode.split('.').any(|other| other == part);
        let operands = self.without_policy(opcode, operands)?;
        let mut places = opcode.split('.').filter(|part| part.starts_with("shared") || *part == "global");
        let [to_shared, from_shared] = [places.next(), places.next()].map(|place| place != Some("global"));
        let mut reads = Vec::new();
        let [to, from, rest @ ..] = operands else { return Err(operand_count()) };
        let mut tensor = None;
        let mut end = |operand: &Operand<'t>, is_shared: bool| match operand {
            Operand::Tensor { map, at } => {
                tensor = Some(self.tensor(op, opcode, map, at, &mut reads)?);
                Ok(0)
            }
            _ => {
                let slot = self.place(op, operand, is_shared)?;
                reads.push(slot);
                Ok::<u16, Refusal>(slot.1)
            }
        };
        let (to, from) = (end(to, to_shared)?, end(from, from_shared)?);
        let (size, rest) = match (has("tensor"), tensor, rest) {
            (true, Some(_), _) => (0, rest),
            (false, None, [size, rest @ ..]) => {
                let size = self.source(size, Kind::B32)?;
                reads.push(size);
                (size.1, rest)
            }
            _ => return Err(operand_count()),
        };
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
        reads.extend(barrier.into_iter().chain(ranks));
        let number = |slot: Option<Slot>| slot.map(|(_, number)| number);
        let (barrier, ranks, change) = (number(barrier), number(ranks), Change::of(opcode));
        let number = Number::of(opcode);
        let imm = self.code.bulks.len() as i32;
        self.code.bulks.push(Bulk { to, from, size, barrier, ranks, change, number, to_shared, from_shared, tensor });
        Ok(vec![Draft { imm, reads, ..Draft::new(op) }])
    }

    /// Lowers `st.async` and `red.async`, which store registers as late as a copy.
    fn send(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft> {
        let [to, values, barrier] = operands else { return Err(operand_count()) };
        let (to, barrier) = (self.place(op, to, true)?, self.place(op, barrier, true)?);
        let mut draft = Draft { access: access(opcode)?, ..Draft::new(op) };
        self.data(values, false, opcode, &mut draft)?;
        draft.reads.extend([to, barrier]);
        draft.imm = self.code.bulks.len() as i32;
        self.code.bulks.push(Bulk {
            to: to.1,
            from: 0,
            size: 0,
            barrier: Some(barrier.1),
            ranks: None,
            change: Change::of(opcode),
            number: Number::of(opcode),
            to_shared: true,
            from_shared: false,
            tensor: None,
        });
        Ok(draft)
    }

    /// The registers of a box of a tensor, which are added to `reads`.
    fn tensor(
        &mut self,
        op: Op,
        opcode: &str,
        map: &Operand<'t>,
        at: &[Operand<'t>],
        reads: &mut Vec<Slot>,
    ) -> Result<Tensor> {
        let dimensions = at.len() as u8;
        if !opcode.split('.').any(|part| part == format!("{dimensions}d")) {
            return Err(operand_count());
        }
        let map = self.place(op, map, false)?;
        reads.push(map);
        let mut slots = [0; 5];
        for (slot, coordinate) in slots.iter_mut().zip(at) {
            let coordinate = self.source(coordinate, Kind::B32)?;
            reads.push(coordinate);
            *slot = coordinate.1;
        }
        Ok(Tensor { map: map.1, at: slots, dimensions })
    }

    /// Lowers a hint that a box of a tensor will be copied.
    pub(super) fn tensor_hint(&mut self, op: Op, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft> {
        let [Operand::Tensor { map, at }] = self.without_policy(opcode, operands)? else { return Err(operand_count()) };
        self.tensor(op, opcode, map, at, &mut Vec::new())?;
        Ok(Draft::new(op))
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
