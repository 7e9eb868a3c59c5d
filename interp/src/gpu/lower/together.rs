//! Lowers the joint operations of threads: barriers, and operations of a warp.

use super::operands::operand_count;
use super::{Draft, Lowering, Result};
use crate::gpu::isa::{Form, Op, Shape};
use crate::gpu::parse::ast::Operand;
use crate::gpu::vocabulary::{File, Kind};

impl<'t> Lowering<'_, 't> {
    /// Lowers a barrier's number, and the number of threads that it waits for.
    pub(super) fn barrier(&mut self, op: Op, operands: &[Operand<'t>]) -> Result<Draft> {
        let mut draft = Draft::new(op);
        let all = Operand::Integer(0);
        let (barrier, threads) = match operands {
            [barrier] => (barrier, &all),
            [barrier, threads] => (barrier, threads),
            _ => return Err("it has a different number of operands than the software GPU supports".to_owned()),
        };
        for (index, operand) in [barrier, threads].into_iter().enumerate() {
            draft.read(index, self.source(operand, Kind::B32)?);
        }
        Ok(draft)
    }

    /// `bar.red`: a result, a barrier, and a predicate.
    pub(super) fn barrier_vote(&mut self, form: &Form, operands: &[Operand<'t>]) -> Result<Vec<Draft>> {
        let [result, barrier @ .., predicate] = operands else { return Err(operand_count()) };
        let file = if form.shape == Shape::BarrierCount { File::B32 } else { File::Pred };
        let mut draft = self.barrier(form.op, barrier)?;
        let (d, mut drafts) = (self.result(result, file)?, Vec::new());
        draft.d = d.1;
        draft.writes.push(d);
        draft.read(2, self.predicate(predicate, &mut drafts)?);
        drafts.push(draft);
        Ok(drafts)
    }

    /// `bar.warp.sync`: the lanes that wait for each other.
    pub(super) fn warp_sync(&mut self, op: Op, operands: &[Operand<'t>]) -> Result<Draft> {
        let [members] = operands else { return Err("it does not have exactly one operand".to_owned()) };
        let mut draft = Draft::new(op);
        draft.read(0, self.source(members, Kind::B32)?);
        Ok(draft)
    }

    pub(super) fn active_mask(&mut self, op: Op, operands: &[Operand<'t>]) -> Result<Draft> {
        let [result] = operands else { return Err(operand_count()) };
        Ok(Draft::step(op, self.result(result, File::B32)?, &[]))
    }

    /// Lowers a hint: an address, and perhaps a number. It has no effect, but its operands must
    /// exist.
    pub(super) fn hint(&mut self, op: Op, operands: &[Operand<'t>]) -> Result<Draft> {
        match operands {
            [Operand::Address { base, .. }] | [Operand::Address { base, .. }, Operand::Integer(_)] => {
                base.map(|name| self.names.resolve(name)).transpose()?;
                Ok(Draft::new(op))
            }
            _ => Err(operand_count()),
        }
    }

    /// Lowers `shfl`, `vote`, `match`, `redux` and `elect`. Forms without `.sync` involve the lanes
    /// that are active.
    pub(super) fn exchange(
        &mut self,
        form: &Form,
        kind: Kind,
        opcode: &str,
        operands: &[Operand<'t>],
    ) -> Result<Vec<Draft>> {
        let [result, sources @ ..] = operands else { return Err(operand_count()) };
        let mut draft = Draft::new(form.op);
        self.exchanged(&mut draft, form, result)?;
        let mut drafts = Vec::new();
        let (sources, members) = match sources {
            [sources @ .., members] if opcode.contains(".sync") => (sources, Some(members)),
            sources => (sources, None),
        };
        match (form.shape, sources) {
            (Shape::Elect(_), []) => {}
            (Shape::Vote(_) | Shape::Reduce(_), [value]) if kind == Kind::Pred => {
                draft.read(0, self.predicate(value, &mut drafts)?);
            }
            (Shape::Reduce(_), [value]) => draft.read(0, self.source(value, kind)?),
            (Shape::Shuffle(_), [value, reach, bounds]) => {
                for (place, operand) in [value, reach, bounds].into_iter().enumerate() {
                    draft.read(place, self.source(operand, Kind::B32)?);
                }
            }
            _ => return Err(operand_count()),
        }
        match members {
            Some(members) => draft.read(3, self.source(members, Kind::B32)?),
            None => {
                let here = self.names.allocate(File::B32)?;
                drafts.push(Draft::step(Op::ActiveMask, here, &[]));
                draft.read(3, here);
            }
        }
        drafts.push(draft);
        Ok(drafts)
    }

    /// The destinations of a value and a predicate; a form may have only one of them.
    fn exchanged(&mut self, draft: &mut Draft, form: &Form, result: &Operand<'t>) -> Result<()> {
        let unused = Operand::Name("_", 0);
        let pair;
        let [value, bit] = match *result {
            Operand::Pair(value, bit) if gives_two(form) => {
                pair = [Operand::Name(value, 0), Operand::Name(bit, 0)];
                [&pair[0], &pair[1]]
            }
            Operand::Pair(..) => return Err("it has one result".to_owned()),
            _ if matches!(form.shape, Shape::Vote(_)) => [&unused, result],
            _ => [result, &unused],
        };
        let [value, bit] = [self.result(value, File::B32)?, self.result(bit, File::Pred)?];
        (draft.d, draft.imm) = (value.1, i32::from(bit.1));
        draft.writes.extend([value, bit]);
        Ok(())
    }
}

/// Returns whether a form returns both a value and a predicate.
fn gives_two(form: &Form) -> bool {
    matches!(form.shape, Shape::Shuffle(_) | Shape::Elect(_)) || matches!(form.op, Op::MatchAll32 | Op::MatchAll64)
}
