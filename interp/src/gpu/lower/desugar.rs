//! Rewrites operands to plain ones: elements of arrays, vectors of registers, and special registers
//! that are vectors.

use std::borrow::Cow;

use super::names::Binding;
use super::operands::operand_count;
use super::special::VECTORS;
use super::{Draft, Lowering, Result, Slot};
use crate::gpu::code::PresetValue;
use crate::gpu::isa::Op;
use crate::gpu::modifiers::is_type;
use crate::gpu::parse::ast::Operand;
use crate::gpu::parse::type_bytes;
use crate::gpu::vocabulary::{File, Kind};

/// Instructions whose memory operand may be an element of an array.
const ACCESSES: [&str; 6] = ["ld", "ldu", "st", "atom", "red", "prefetch"];

/// The operand in the precision that the opcode works in, if it is a number of the other precision
/// and the opcode takes bits.
fn literal<'t>(opcode: &str, operand: &Operand<'_>) -> Option<Operand<'t>> {
    let plain = match *operand {
        Operand::F64(bits) => Operand::F32((f64::from_bits(bits) as f32).to_bits()),
        Operand::F32(bits) => Operand::F64(f64::from(f32::from_bits(bits)).to_bits()),
        _ => return None,
    };
    let kind = if matches!(plain, Operand::F32(_)) { "f32" } else { "f64" };
    let mut types = opcode.split('.').filter(|part| is_type(part));
    let taken = match opcode.split('.').next() {
        Some("mov" | "selp" | "slct" | "st") => types.next(),
        // The first is that of the result.
        Some("cvt") => types.next_back(),
        _ => None,
    };
    (taken == Some(kind)).then_some(plain)
}

/// Returns whether an opcode has types, and all of them are those of integers.
pub(super) fn takes_integers(opcode: &str) -> bool {
    let mut types = opcode.split('.').filter(|part| is_type(part)).peekable();
    types.peek().is_some() && types.all(|kind| kind.starts_with(['u', 's']))
}

/// The file for results of an opcode's last type.
fn file_of_result(opcode: &str) -> File {
    if opcode.ends_with("64") { File::B64 } else { File::B32 }
}

impl<'t> Lowering<'_, 't> {
    /// The operands in plain form.
    pub(super) fn plain<'o>(&mut self, opcode: &str, operands: &'o [Operand<'t>]) -> Result<Cow<'o, [Operand<'t>]>> {
        if operands.iter().any(|operand| self.is_special(opcode, operand)) {
            return self.each_plain(opcode, operands).map(Cow::Owned);
        }
        Ok(Cow::Borrowed(operands))
    }

    fn is_special(&self, opcode: &str, operand: &Operand) -> bool {
        match operand {
            Operand::Element { .. } => true,
            Operand::F32(_) | Operand::F64(_) => literal(opcode, operand).is_some(),
            Operand::Name(name, _) => self.names.has_vectors || VECTORS.iter().any(|(vector, _)| vector == name),
            Operand::Vector(list) | Operand::List(list) => list.iter().any(|operand| self.is_special(opcode, operand)),
            _ => false,
        }
    }

    fn each_plain(&mut self, opcode: &str, operands: &[Operand<'t>]) -> Result<Vec<Operand<'t>>> {
        operands.iter().map(|operand| self.plain_operand(opcode, operand)).collect()
    }

    fn plain_operand(&mut self, opcode: &str, operand: &Operand<'t>) -> Result<Operand<'t>> {
        if let Some(plain) = literal(opcode, operand) {
            return Ok(plain);
        }
        Ok(match *operand {
            Operand::Element { text, array, register, index } => {
                let bytes = self.names.element_bytes(array).ok_or_else(|| format!("{array} is not an array"))? as i64;
                let accesses = ACCESSES.contains(&opcode.split('.').next().unwrap_or_default());
                let (name, offset) = match register {
                    None => (array, index.wrapping_mul(bytes)),
                    Some(register) => {
                        let file = if accesses { self.address_file(opcode, array)? } else { file_of_result(opcode) };
                        let slot = self.element(array, register, index, bytes, file)?;
                        // No other name has brackets.
                        self.names.bind(text, Binding::Register(slot));
                        (text, 0)
                    }
                };
                if accesses { Operand::Address { base: Some(name), offset } } else { Operand::Name(name, offset) }
            }
            Operand::Name(name, 0) => {
                let vector = || VECTORS.iter().find(|(vector, _)| *vector == name);
                if let Some(lanes) = self.names.vector(name) {
                    Operand::Vector((0..lanes).map(|lane| Operand::Lane(name, lane)).collect())
                } else if let Some((name, lane)) = self.lane_of(name) {
                    Operand::Lane(name, lane)
                } else if let Some((_, elements)) = vector() {
                    Operand::Vector(elements.map(|element| Operand::Name(element, 0)).to_vec())
                } else {
                    operand.clone()
                }
            }
            Operand::Vector(ref list) => Operand::Vector(self.each_plain(opcode, list)?),
            Operand::List(ref list) => Operand::List(self.each_plain(opcode, list)?),
            _ => operand.clone(),
        })
    }

    /// The address of `array[register+index]`, in a register of `file`. As NVIDIA's assembler has
    /// it, the index is scaled in 32 bits, and then extended with zeros.
    fn element(&mut self, array: &'t str, register: &'t str, index: i64, bytes: i64, file: File) -> Result<Slot> {
        let factors = [self.index(register, index)?, self.source(&Operand::Integer(bytes as u64), Kind::B32)?];
        let scaled = self.before(Op::MulB32, File::B32, &factors)?;
        let (scaled, kind, add) = match file {
            File::B64 => (self.before(Op::Cvt64FromU32, file, &[scaled])?, Kind::B64, Op::AddB64),
            _ => (scaled, Kind::B32, Op::AddB32),
        };
        let base = self.source(&Operand::Name(array, 0), kind)?;
        self.before(add, file, &[base, scaled])
    }

    /// The index `register+index`, in 32 bits. As NVIDIA's assembler has it, only the low half of a
    /// register of 64 bits counts. A register of 16 bits or less is added to in 16 bits, and the
    /// sum has a sign where the register's type has one.
    fn index(&mut self, register: &'t str, index: i64) -> Result<Slot> {
        let name = Operand::Name(register, 0);
        let slot = match self.index_file(register)? {
            File::B64 => {
                let whole = self.source(&name, Kind::B64)?;
                self.before(Op::LowB64, File::B32, &[whole])?
            }
            _ => self.source(&name, Kind::B32)?,
        };
        let (from_8, from_16) = match self.names.declared(register) {
            Some("s8") => (Some(Op::Cvt32FromS8), Op::Cvt32FromS16),
            Some("u8" | "b8") => (Some(Op::Cvt32FromU8), Op::Cvt32FromU16),
            Some("s16") => (None, Op::Cvt32FromS16),
            Some("u16" | "b16") => (None, Op::Cvt32FromU16),
            _ => return self.sum(slot, index),
        };
        let slot = from_8.map_or(Ok(slot), |op| self.before(op, File::B32, &[slot]))?;
        let sum = self.sum(slot, index)?;
        self.before(from_16, File::B32, &[sum])
    }

    /// The file of a register that counts elements.
    fn index_file(&mut self, register: &'t str) -> Result<File> {
        let counts = self.names.declared(register).is_none_or(|kind| kind.starts_with(['b', 'u', 's']));
        match self.names.special(register) {
            Some(_) => Ok(File::B32),
            None => match self.names.resolve(register)? {
                Binding::Register((file @ (File::B32 | File::B64), _)) if counts => Ok(file),
                _ => Err(format!("the index {register} is not a register of integers")),
            },
        }
    }

    /// The file for the addresses of a variable: only those of global and constant memory, which
    /// are generic addresses too, have 64 bits.
    fn address_file(&mut self, opcode: &str, variable: &'t str) -> Result<File> {
        match self.names.resolve(variable)? {
            Binding::Address(PresetValue::Variable { .. }) => Ok(File::B64),
            Binding::Frame(..) if opcode.contains(".param") => {
                Err(format!("a register is the index of {variable}, a parameter of a function"))
            }
            _ => Ok(File::B32),
        }
    }

    /// The vector and the element that `v.y` names.
    fn lane_of(&self, name: &'t str) -> Option<(&'t str, u8)> {
        let (vector, element) = name.rsplit_once('.')?;
        let lane = ["x", "y", "z", "w"].iter().position(|known| *known == element);
        let lane = lane.or_else(|| ["r", "g", "b", "a"].iter().position(|known| *known == element))? as u8;
        self.names.vector(vector).filter(|&lanes| lane < lanes).map(|_| (vector, lane))
    }

    /// `mov.v4.u32 {a, b, c, d}, %tid;`
    pub(super) fn move_vector(&mut self, opcode: &str, operands: &[Operand<'t>]) -> Result<Option<Vec<Draft>>> {
        let kind = opcode.strip_prefix("mov.v2.").or_else(|| opcode.strip_prefix("mov.v4."));
        let (Some(bytes), [Operand::Vector(results), Operand::Vector(sources)]) = (kind.and_then(type_bytes), operands)
        else {
            return Ok(None);
        };
        let lanes = if opcode.starts_with("mov.v2") { 2 } else { 4 };
        if results.len() != lanes || sources.len() != lanes {
            return Err(operand_count());
        }
        let (kind, op) = if bytes == 8 { (Kind::B64, Op::MovB64) } else { (Kind::B32, Op::MovB32) };
        let (mut drafts, mut copies) = (Vec::new(), Vec::new());
        for source in sources {
            let (source, copy) = (self.source(source, kind)?, self.names.allocate(kind.file())?);
            drafts.push(Draft::step(op, copy, &[source]));
            copies.push(copy);
        }
        for (result, copy) in results.iter().zip(copies) {
            let file: File = kind.file();
            drafts.push(Draft::step(op, self.result(result, file)?, &[copy]));
        }
        Ok(Some(drafts))
    }
}
