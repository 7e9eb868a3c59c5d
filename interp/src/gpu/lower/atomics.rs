//! Lowers atomics: their operands, and the hardware instructions that they become.

use std::collections::HashSet;

use super::operands::operand_count;
use super::{Draft, Lowering, Result, Slot, Touched, flat};
use crate::gpu::code::{Code, Preset, PresetValue};
use crate::gpu::isa::{self, Op};
use crate::gpu::model::atomics::Update;
use crate::gpu::parse::ast::Operand;
use crate::gpu::vocabulary::{AccessKind, File, Kind, Space};

impl<'t> Lowering<'_, 't> {
    /// Lowers `atom` and `red`. The elements of a vector stand side by side in registers of their
    /// own, with moves before and after.
    pub(super) fn atomic(
        &mut self,
        op: Op,
        kinds: &[Kind],
        opcode: &str,
        operands: &[Operand<'t>],
    ) -> Result<Vec<Draft>> {
        let unused = Operand::Name("_", 0);
        let (result, address, values) = match operands {
            [address, values @ ..] if opcode.starts_with("red") => (&unused, address, values),
            [result, address, values @ ..] => (result, address, values),
            _ => return Err(operand_count()),
        };
        let mut draft = self.addressed(op, opcode, address)?;
        if draft.access.count > 1 && draft.access.space != Some(Space::Global) {
            return Err("vectors are supported only in global memory".to_owned());
        }
        let count = usize::from(draft.access.count);
        let (file, values) = (kinds[0].file(), flat(values).collect::<Vec<_>>());
        if values.len() != kinds.len() * count {
            return Err(operand_count());
        }
        if count == 1 {
            draft.fill(0, self.result(result, file)?);
            for (place, (value, kind)) in values.into_iter().zip(kinds).enumerate() {
                draft.read(1 + place, self.source(value, *kind)?);
            }
            return Ok(vec![draft]);
        }
        let results = match result {
            Operand::Name("_", 0) => Vec::new(),
            vector => self.elements(vector, draft.access)?,
        };
        self.side_by_side(draft, kinds[0], &results, &values)
    }

    fn side_by_side(
        &mut self,
        mut draft: Draft,
        kind: Kind,
        results: &[&Operand<'t>],
        values: &[&Operand<'t>],
    ) -> Result<Vec<Draft>> {
        let file = kind.file();
        let mut block = || values.iter().map(|_| self.names.allocate(file)).collect::<Result<Vec<Slot>, _>>();
        let (got, given) = (block()?, block()?);
        let mut drafts = Vec::new();
        for (value, slot) in values.iter().zip(&given) {
            drafts.push(Draft::step(Op::MovB32, *slot, &[self.source(value, kind)?]));
        }
        (draft.s[0], draft.s[1]) = (got[0].1, given[0].1);
        draft.reads.extend(&given);
        draft.writes.extend(&got);
        drafts.push(draft);
        for (result, slot) in results.iter().zip(&got).filter(|(result, _)| ***result != Operand::Name("_", 0)) {
            drafts.push(Draft::step(Op::MovB32, self.result(result, file)?, &[*slot]));
        }
        Ok(drafts)
    }
}

/// The atomics for which the hardware has an instruction in shared memory.
const NATIVE: [Op; 13] = [
    Op::AtomAddU32,
    Op::AtomAddS32,
    Op::AtomMinU32,
    Op::AtomMinS32,
    Op::AtomMaxU32,
    Op::AtomMaxS32,
    Op::AtomInc,
    Op::AtomDec,
    Op::AtomAnd32,
    Op::AtomOr32,
    Op::AtomXor32,
    Op::AtomExch32,
    Op::AtomExch64,
];

/// Classifies atomics as NVIDIA's assembler does. An atomic in global memory whose result is not
/// used becomes a reduction, except for exchanges and for atomics at generic addresses. In shared
/// memory, counts by one and loops are distinguished.
pub(super) fn classify(code: &mut Code, touched: &[Touched]) {
    let read = read(code, touched);
    for site in &mut code.sites {
        let ins = &code.instructions[site.pc as usize];
        let spelling = isa::FORMS[ins.op as usize].spelling;
        let may = site.kind == AccessKind::Atomic && ins.access.space == Some(Space::Global);
        let unread = touched[site.pc as usize].writes.iter().all(|result| !read.contains(result));
        if may && unread && spelling.starts_with("{atom,red}") {
            site.kind = AccessKind::Reduction;
        }
        let by_one = || code.presets.iter().any(|preset| preset.slot == ins.s[1] && is_one(preset));
        site.update = match ins.op {
            Op::AtomAddU32 if unread && by_one() => Update::Count,
            Op::AtomCas32 | Op::AtomCas64 => Update::Compare,
            op if NATIVE.contains(&op) => Update::Native,
            _ => Update::Loop,
        };
    }
}

fn is_one(preset: &Preset) -> bool {
    preset.file == File::B32 && preset.value == PresetValue::Bits(1)
}

/// The registers that some instruction reads. A move to a register that is never read does not
/// count.
fn read(code: &Code, touched: &[Touched]) -> HashSet<Slot> {
    let is_move = |pc: &usize| matches!(code.instructions[*pc].op, Op::MovB16 | Op::MovB32 | Op::MovB64);
    let (mut moves, others): (Vec<usize>, Vec<usize>) = (0..touched.len()).partition(is_move);
    let mut read: HashSet<Slot> = others.iter().flat_map(|&pc| touched[pc].reads.iter().copied()).collect();
    loop {
        let live = |pc: &mut usize| touched[*pc].writes.iter().any(|result| read.contains(result));
        let found: Vec<usize> = moves.extract_if(.., live).collect();
        if found.is_empty() {
            return read;
        }
        read.extend(found.into_iter().flat_map(|pc| touched[pc].reads.iter().copied()));
    }
}
