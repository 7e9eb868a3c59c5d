//! Handles registers wider than an instruction's type, which PTX allows only for `cvt`, `ld` and
//! `st`: see the PTX ISA's "Operand Size Exceeding Instruction-Type Size". An instruction uses the
//! low bits of such a source. It extends a result to the register's width, with the sign if its
//! type has one.

use super::operands::operand_count;
use super::{Draft, Lowering, Result};
use crate::gpu::isa::{Form, Op, Shape};
use crate::gpu::parse::ast::Operand;
use crate::gpu::vocabulary::{File, Kind};

/// Class and bits of a type: `u32` is `("u", 32)`. `None` for packed types and predicates.
fn parts(kind: &str) -> Option<(&str, u32)> {
    let (class, bits) = kind.split_at_checked(1)?;
    matches!(class, "b" | "u" | "s" | "f").then_some((class, bits.parse().ok()?))
}

/// Returns whether a register declared as `register` may hold a value of type `kind`, or an element
/// of a vector of that type. If [`parts`] does not know one of the two types, only the register
/// file matters, and that is checked elsewhere.
fn holds(register: &str, kind: &str, is_element: bool) -> bool {
    let (Some((class, bits)), Some((own, least))) = (parts(register), parts(kind)) else { return register != "pred" };
    bits >= least
        && match (class, own) {
            ("b", _) | (_, "b") => true,
            ("f", "f") => bits == least,
            ("f", _) => false,
            // The ISA has no such rule, but NVIDIA's assembler accepts it.
            (_, "f") => is_element && bits == least,
            _ => true,
        }
}

/// The destination and source types of a `cvt` of one value.
fn types(opcode: &str) -> Option<(&str, &str)> {
    let mut parts = opcode.strip_prefix("cvt.")?.rsplit('.');
    let (from, to) = (parts.next()?, parts.next()?);
    (!opcode.starts_with("cvt.pack.")).then_some((to, from))
}

impl<'t> Lowering<'_, 't> {
    /// Checks that a register may be loaded, stored or converted as that type. Operands other than
    /// registers are refused elsewhere.
    pub(super) fn check_type(&self, operand: &Operand, kind: &str, is_element: bool) -> Result<()> {
        let (Operand::Name(name, 0) | Operand::Lane(name, _)) = *operand else { return Ok(()) };
        match self.names.declared(name) {
            Some(register) if !holds(register, kind, is_element) => {
                Err(format!("{name} is a register of type .{register}, which does not hold one of type .{kind}"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether an operand is a 64-bit register although the instruction works on 32 bits or
    /// fewer.
    fn is_wider(&self, operand: &Operand, file: File) -> bool {
        let (Operand::Name(name, 0) | Operand::Lane(name, _)) = *operand else { return false };
        let declared = self.names.declared(name).and_then(parts);
        file == File::B32 && self.names.special(name).is_none() && declared.is_some_and(|(_, bits)| bits == 64)
    }

    /// Lowers a `cvt`. A step before it takes the low half of a wider source, and a step after it
    /// extends to a wider result.
    pub(super) fn convert(
        &mut self,
        form: &Form,
        opcode: &str,
        operands: &[Operand<'t>],
    ) -> Result<Option<Vec<Draft>>> {
        let (Some((to, from)), Shape::Pure { result, sources }) = (types(opcode), form.shape) else { return Ok(None) };
        let [into, rest @ ..] = operands else { return Err(operand_count()) };
        self.check_type(into, to, false)?;
        for operand in rest {
            self.check_type(operand, from, false)?;
        }
        let value = sources.iter().find(|kind| **kind != Kind::Modifiers).map_or(File::B64, |kind| kind.file());
        let wide_source = rest.iter().any(|operand| self.is_wider(operand, value));
        let wide_result = self.is_wider(into, result.file());
        if rest.len() != 1 || !wide_source && !wide_result {
            return Ok(None);
        }
        let reads = if wide_source {
            let (whole, low) = (self.source(&rest[0], Kind::B64)?, self.names.allocate(File::B32)?);
            self.prelude.push(Draft::step(Op::Cvt32From64, low, &[whole]));
            let of = |kind: &Kind| if *kind == Kind::Modifiers { self.modifiers(opcode) } else { Ok(low) };
            sources.iter().map(of).collect::<Result<_, _>>()?
        } else {
            self.sources(opcode, sources, rest)?
        };
        let d = if wide_result { self.names.allocate(File::B32)? } else { self.result(into, result.file())? };
        let mut drafts = vec![Draft::step(form.op, d, &reads)];
        if wide_result {
            let extend = if to.starts_with('s') { Op::Cvt64FromS32 } else { Op::Cvt64FromU32 };
            drafts.push(Draft::step(extend, self.result(into, File::B64)?, &[d]));
        }
        Ok(Some(drafts))
    }
}

#[cfg(test)]
mod tests;
