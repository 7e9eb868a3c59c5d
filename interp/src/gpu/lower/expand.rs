//! Expands instructions into several: comparisons that are combined or give two results, and sums
//! with a carry.
//!
//! All steps but the last write registers of their own, so that no source is lost: an operand may
//! also be a destination.

use super::{Draft, Lowering, Result, Slot};
use crate::gpu::code::PresetValue;
use crate::gpu::isa::{self, Form, Op, Shape};
use crate::gpu::parse::ast::Operand;
use crate::gpu::vocabulary::{File, Kind};

/// The instruction with which an opcode combines a comparison and a predicate.
fn combination(part: &str) -> Option<Op> {
    Some(match part {
        "and" => Op::AndPred,
        "or" => Op::OrPred,
        "xor" => Op::XorPred,
        _ => return None,
    })
}

/// The forms that make up sums with a carry, for each width: low half and high halves of products,
/// unsigned and signed; result and carry of a sum; result and carry of a difference. A difference
/// adds the complement; its carry is the negated borrow, as on an H100.
const CARRYING: [(Kind, [Op; 7]); 2] = [
    (Kind::B32, [Op::MulB32, Op::MulHiU32, Op::MulHiS32, Op::AddC32, Op::AddCarry32, Op::SubC32, Op::SubCarry32]),
    (Kind::B64, [Op::MulB64, Op::MulHiU64, Op::MulHiS64, Op::AddC64, Op::AddCarry64, Op::SubC64, Op::SubCarry64]),
];

impl<'t> Lowering<'_, 't> {
    /// The instructions that replace this one, if it is such an instruction.
    pub(super) fn expand(&mut self, opcode: &str, operands: &[Operand<'t>]) -> Result<Option<Vec<Draft>>> {
        let parts: Vec<&str> = opcode.split('.').collect();
        let combined = parts.iter().any(|part| combination(part).is_some());
        let packed = parts.last().is_some_and(|name| name.ends_with("x2"));
        let [first, sources @ ..] = operands else { return Ok(None) };
        match parts[0] {
            "setp" if combined || packed || matches!(first, Operand::Pair(..)) => self.compare(&parts, first, sources),
            "set" if !packed => self.set(&parts, first, sources),
            "addc" | "subc" | "madc" => self.carrying(&parts, first, sources),
            "add" | "sub" | "mad" if parts.contains(&"cc") => self.carrying(&parts, first, sources),
            _ => return Ok(None),
        }
        .map(Some)
    }

    /// `setp.lt.and.s32 p|q, a, b, !c`
    fn compare(&mut self, parts: &[&str], first: &Operand<'t>, sources: &[Operand<'t>]) -> Result<Vec<Draft>> {
        let mut drafts = Vec::new();
        let values = self.comparison(parts, sources, &mut drafts)?;
        let results = match *first {
            Operand::Pair(p, q) => vec![Operand::Name(p, 0), Operand::Name(q, 0)],
            _ => vec![first.clone()],
        };
        for (result, value) in results.iter().zip(values) {
            drafts.push(Draft::step(Op::MovPred, self.result(result, File::Pred)?, &[value]));
        }
        Ok(drafts)
    }

    /// `set.lt.u32.f32 d, a, b`: all ones or 1.0 if the comparison holds, else 0.
    fn set(&mut self, parts: &[&str], result: &Operand<'t>, sources: &[Operand<'t>]) -> Result<Vec<Draft>> {
        let [compare @ .., to, from] = parts else { return Err("it names no types".to_owned()) };
        let yes = match *to {
            "u32" | "s32" | "s16" => u64::from(u32::MAX),
            "u16" => 0xffff,
            "f32" => u64::from(1_f32.to_bits()),
            "f16" => 0x3c00,
            "bf16" => 0x3f80,
            _ => return Err(format!("a result of type {to:?} is not supported")),
        };
        let mut drafts = Vec::new();
        let value = self.comparison(&[compare, &[*from]].concat(), sources, &mut drafts)?[0];
        let d = self.result(result, File::B32)?;
        let [yes, no] = [yes, 0].map(|bits| self.names.constant(File::B32, PresetValue::Bits(bits)));
        drafts.push(Draft::step(Op::SelpB32, d, &[yes?, no?, value]));
        Ok(drafts)
    }

    /// A comparison's two results: `a < b` and its opposite, or for packed halves the result of
    /// each half; combined as the opcode says.
    fn comparison(&mut self, parts: &[&str], sources: &[Operand<'t>], drafts: &mut Vec<Draft>) -> Result<[Slot; 2]> {
        // The combination stands in third place, as in `setp.CmpOp.BoolOp`.
        let combine = parts.get(2).and_then(|part| combination(part));
        if sources.len() != 2 + usize::from(combine.is_some()) {
            return Err("its number of operands does not fit its opcode".to_owned());
        }
        let is_plain = |&(place, _): &(usize, &&str)| place != 0 && (place != 2 || combine.is_none());
        let plain: Vec<&str> = parts.iter().enumerate().filter(is_plain).map(|(_, part)| *part).collect();
        let opcode = format!("setp.{}", plain.join("."));
        let scalar = opcode.strip_suffix("x2").unwrap_or(&opcode);
        let form = isa::forms(scalar).next();
        let Some(&Form { op, shape: Shape::Pure { sources: kinds, .. }, .. }) = form else {
            return Err("the software GPU does not support this comparison".to_owned());
        };
        let mut values = [self.names.allocate(File::Pred)?, self.names.allocate(File::Pred)?];
        if scalar == opcode {
            let slots = self.sources(&opcode, kinds, &sources[..2])?;
            drafts.push(Draft::step(op, values[0], &slots));
            drafts.push(Draft::step(Op::NotPred, values[1], &values[..1]));
        } else {
            let modifiers = self.modifiers(scalar)?;
            let wholes = self.sources(scalar, &[Kind::B32; 2], &sources[..2])?;
            for (take, value) in [Op::LowB32, Op::HighB32].into_iter().zip(values) {
                let halves = [self.names.allocate(File::B32)?, self.names.allocate(File::B32)?];
                drafts.push(Draft::step(take, halves[0], &wholes[..1]));
                drafts.push(Draft::step(take, halves[1], &wholes[1..]));
                drafts.push(Draft::step(op, value, &[modifiers, halves[0], halves[1]]));
            }
        }
        if let Some(op) = combine {
            let with = self.source(&sources[2], Kind::Pred)?;
            for value in &mut values {
                let combined = self.names.allocate(File::Pred)?;
                drafts.push(Draft::step(op, combined, &[*value, with]));
                *value = combined;
            }
        }
        Ok(values)
    }

    /// Lowers `add.cc`, `addc`, `addc.cc`, the same forms of `sub`, and those of `mad`, where half
    /// of a product replaces `a`. The carry is one predicate for the whole kernel.
    fn carrying(&mut self, parts: &[&str], result: &Operand<'t>, sources: &[Operand<'t>]) -> Result<Vec<Draft>> {
        let unknown = || "the software GPU does not support this instruction".to_owned();
        let ((kind, forms), signed) = match parts.last() {
            Some(&name @ ("u32" | "s32")) => (CARRYING[0], name == "s32"),
            Some(&name @ ("u64" | "s64")) => (CARRYING[1], name == "s64"),
            _ => return Err(unknown()),
        };
        let gives = parts.contains(&"cc");
        let file = kind.file();
        let [low, high, signed_high, sum, carries, difference, borrows] = forms;
        let product = match (parts[0], parts[1]) {
            ("mad" | "madc", "lo") => Some(low),
            ("mad" | "madc", "hi") => Some(if signed { signed_high } else { high }),
            _ => None,
        };
        let named = 2 + usize::from(product.is_some()) + usize::from(gives);
        if parts.len() != named || sources.len() != 2 + usize::from(product.is_some()) {
            return Err(unknown());
        }
        let mut slots = Vec::new();
        for operand in sources {
            slots.push(self.source(operand, kind)?);
        }
        let mut drafts = Vec::new();
        if let Some(op) = product {
            let half = self.names.allocate(file)?;
            drafts.push(Draft::step(op, half, &slots[..2]));
            slots = vec![half, slots[2]];
        }
        let carry = self.names.carry()?;
        let differs = parts[0].starts_with("sub");
        let first = self.names.constant(File::Pred, PresetValue::Bits(u64::from(differs)))?;
        slots.push(if parts[0].ends_with('c') { carry } else { first });
        let (sum, carries) = if differs { (difference, borrows) } else { (sum, carries) };
        let next = self.names.allocate(File::Pred)?;
        if gives {
            drafts.push(Draft::step(carries, next, &slots));
        }
        drafts.push(Draft::step(sum, self.result(result, file)?, &slots));
        if gives {
            drafts.push(Draft::step(Op::MovPred, carry, &[next]));
        }
        Ok(drafts)
    }
}
