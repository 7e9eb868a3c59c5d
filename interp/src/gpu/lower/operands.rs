//! Lowers operands: sources, results, addresses, and instructions that depend on the form of their
//! operands.

use super::names::Binding;
use super::{Draft, Lowering, Refusal, Result, Slot, flat};
use crate::gpu::code::{Access, PresetValue};
use crate::gpu::isa::{self, Form, Op, Shape};
use crate::gpu::modifiers::{Modifiers, Sync};
use crate::gpu::parse::ast::Operand;
use crate::gpu::parse::type_bytes;
use crate::gpu::vocabulary::{File, Kind, Space};

impl<'t> Lowering<'_, 't> {
    /// The register that holds an operand's value; an immediate gets one.
    pub(super) fn source(&mut self, operand: &Operand<'t>, kind: Kind) -> Result<Slot> {
        let file = kind.file();
        let bits = match *operand {
            Operand::Name(name, offset) => return self.named_source(name, offset, file),
            Operand::Lane(name, lane) => return self.lane(name, lane, file),
            Operand::Negated(name) if file == File::Pred => {
                let source = self.names.register(name, file)?;
                return self.before(Op::NotPred, file, &[source]);
            }
            Operand::Integer(value) => integer(value, kind)?,
            Operand::F32(bits) if matches!(kind, Kind::F32 | Kind::B32) => u64::from(bits),
            Operand::F64(bits) if matches!(kind, Kind::F64 | Kind::B64) => bits,
            Operand::F32(bits) if kind == Kind::F64 => f64::from(f32::from_bits(bits)).to_bits(),
            Operand::F64(bits) if kind == Kind::F32 => u64::from((f64::from_bits(bits) as f32).to_bits()),
            _ => return Err("one of its operands has a form that the software GPU does not support".to_owned()),
        };
        self.names.constant(file, PresetValue::Bits(bits))
    }

    /// The registers of all sources. The opcode's modifiers are one of them if the form takes them.
    pub(super) fn sources(&mut self, opcode: &str, kinds: &[Kind], operands: &[Operand<'t>]) -> Result<Vec<Slot>> {
        if !opcode.starts_with("mov.") && operands.iter().any(|operand| matches!(operand, Operand::Vector(_))) {
            return Err("it has a vector where a single value is required".to_owned());
        }
        let mut operands = flat(operands);
        let mut slots = Vec::new();
        for kind in kinds {
            if *kind == Kind::Modifiers {
                slots.push(self.modifiers(opcode)?);
            } else if let Some(operand) = operands.next() {
                slots.push(self.source(operand, *kind)?);
            }
        }
        Ok(slots)
    }

    /// The register that holds an opcode's modifiers.
    pub(super) fn modifiers(&mut self, opcode: &str) -> Result<Slot> {
        let Modifiers(bits) = Modifiers::of(opcode);
        self.names.constant(File::B32, PresetValue::Bits(u64::from(bits)))
    }

    fn named_source(&mut self, name: &'t str, offset: i64, file: File) -> Result<Slot> {
        if let Some(value) = self.names.special(name) {
            let slot = self.names.constant(file, value)?;
            return self.sum(slot, offset);
        }
        let binding = self.names.resolve(name)?;
        match binding {
            Binding::Register(..) => {
                let slot = self.names.register(name, file)?;
                return self.sum(slot, offset);
            }
            Binding::Refused(why) => return Err(format!("{name} {why}")),
            Binding::Frame(place, _) => return self.frame_address(i64::from(place).saturating_add(offset), file),
            Binding::Address(value @ PresetValue::DynamicShared) => {
                let slot = self.names.constant(file, value)?;
                return self.sum(slot, offset);
            }
            Binding::Function(number) => drop(self.taken.insert(number)),
            _ => {}
        }
        let unknown = || format!("{name} with an offset is not supported here");
        let mut value = self.names.address(binding, offset).ok_or_else(unknown)?;
        if file == File::B32 {
            match &mut value {
                // An address before the first variable of a space wraps.
                PresetValue::Bits(bits) if !matches!(binding, Binding::Function(_)) => *bits &= u64::from(u32::MAX),
                _ => return Err(format!("the address of {name} has 64 bits")),
            }
        }
        self.names.constant(file, value)
    }

    /// The sum of a register and a constant, as in `st.u32 [p], a + 4`.
    pub(super) fn sum(&mut self, slot: Slot, offset: i64) -> Result<Slot> {
        let (kind, op) = match slot.0 {
            _ if offset == 0 => return Ok(slot),
            File::B64 => (Kind::B64, Op::AddB64),
            File::B32 => (Kind::B32, Op::AddB32),
            File::Pred => return Err("it adds a number to a predicate".to_owned()),
        };
        let offset = self.source(&Operand::Integer(offset as u64), kind)?;
        self.before(op, slot.0, &[slot, offset])
    }

    /// A register that receives the result of a step before the instruction.
    pub(super) fn before(&mut self, op: Op, file: File, sources: &[Slot]) -> Result<Slot> {
        let d = self.names.allocate(file)?;
        self.prelude.push(Draft::step(op, d, sources));
        Ok(d)
    }

    /// The register of an element of a vector, which must be of `file`.
    fn lane(&mut self, name: &'t str, lane: u8, file: File) -> Result<Slot> {
        let slot = self.names.lane(name, lane)?;
        let other = || format!("{name} is a vector of registers of another width than the instruction's");
        if slot.0 == file { Ok(slot) } else { Err(other()) }
    }

    /// A register that receives the address of an item in the frame.
    fn frame_address(&mut self, offset: i64, file: File) -> Result<Slot> {
        let op = match file {
            File::B64 => Op::FrameB64,
            File::B32 => Op::FrameB32,
            File::Pred => return Err("it has an address where a predicate is required".to_owned()),
        };
        let imm = i32::try_from(offset).map_err(|_| "its offset exceeds 32 bits".to_owned())?;
        let d = self.names.allocate(file)?;
        self.prelude.push(Draft { imm, ..Draft::step(op, d, &[]) });
        Ok(d)
    }

    /// The register that receives a result; for `_`, a register that is never read.
    pub(super) fn result(&mut self, operand: &Operand<'t>, file: File) -> Result<Slot> {
        match *operand {
            Operand::Name("_", 0) => self.names.unread(file),
            Operand::Name(name, 0) => self.names.register(name, file),
            Operand::Lane(name, lane) => self.lane(name, lane, file),
            _ => Err("its result is not a register".to_owned()),
        }
    }

    /// `mov` from a special register that changes while a warp runs.
    pub(super) fn read_special(&mut self, opcode: &str, operands: &[Operand<'t>]) -> Result<Option<Vec<Draft>>> {
        let [result, Operand::Name(name, 0)] = operands else { return Ok(None) };
        if !opcode.starts_with("mov.") || !name.starts_with('%') {
            return Ok(None);
        }
        let Some(form) = isa::forms(name).next() else { return Ok(None) };
        let file = if form.shape == Shape::ReadB64 { File::B64 } else { File::B32 };
        Ok(Some(vec![Draft::step(form.op, self.result(result, file)?, &[])]))
    }

    /// Lowers `ld.param` at a known address to moves, because parameters are constants of the
    /// launch.
    pub(super) fn load_param(&mut self, opcode: &str, operands: &[Operand<'t>]) -> Result<Option<Vec<Draft>>> {
        let [results, Operand::Address { base: Some(name), offset }] = operands else { return Ok(None) };
        if !opcode.starts_with("ld.param") || isa::forms(opcode).next().is_none() {
            return Ok(None);
        }
        let Binding::Param(base) = self.names.resolve(name)? else { return Ok(None) };
        let access = access(opcode)?;
        let first = base.wrapping_add_signed(*offset);
        if first.saturating_add(u64::from(access.bytes())) > self.names.param_bytes() as u64 {
            return Err("it reads past the end of the parameters".to_owned());
        }
        let mut drafts = Vec::new();
        for (index, result) in self.elements(results, access)?.into_iter().enumerate() {
            let file = self.data_file(result, opcode, access)?;
            let offset = (first + index as u64 * u64::from(access.width)) as u32;
            let value = PresetValue::Param { offset, bytes: access.width, signed: access.signed };
            let slot = self.names.constant(file, value)?;
            let d = self.result(result, file)?;
            let op = if file == File::B64 { Op::MovB64 } else { Op::MovB32 };
            drafts.push(Draft::step(op, d, &[slot]));
        }
        Ok(Some(drafts))
    }

    /// `mov.b64 {low, high}, value`: one move for each part that is used.
    pub(super) fn unpack(&mut self, opcode: &str, operands: &[Operand<'t>]) -> Result<Option<Vec<Draft>>> {
        let [Operand::Vector(parts), value] = operands else { return Ok(None) };
        let (kind, ops) = match (opcode, parts.len()) {
            ("mov.b32", 2) => (Kind::B32, [Op::LowB32, Op::HighB32]),
            ("mov.b64", 2) => (Kind::B64, [Op::LowB64, Op::HighB64]),
            ("mov.b64", 4) => (Kind::B64, [Op::Quarter; 2]),
            ("mov.b32" | "mov.b64", _) => return Err("it splits a value into more than four parts".to_owned()),
            _ => return Ok(None),
        };
        let source = self.source(value, kind)?;
        let mut drafts = Vec::new();
        // A part may be the source register only if it comes last; except for 32 bits, the widths
        // rule that out.
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| **part != Operand::Name("_", 0)) {
            let d = self.result(part, File::B32)?;
            if d == source {
                return Err("it splits a register into itself".to_owned());
            }
            let mut draft = Draft::step(ops[index % 2], d, &[source]);
            if draft.op == Op::Quarter {
                draft.read(1, self.names.constant(File::B32, PresetValue::Bits(16 * index as u64))?);
            }
            drafts.push(draft);
        }
        Ok(Some(drafts))
    }

    pub(super) fn load_or_store(&mut self, form: &Form, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft> {
        let [first, second] = self.without_policy(opcode, operands)? else { return Err(operand_count()) };
        let load = form.shape == Shape::Load;
        let (values, address) = if load { (first, second) } else { (second, first) };
        let mut draft = self.addressed(form.op, opcode, address)?;
        self.data(values, load, opcode, &mut draft)?;
        Ok(draft)
    }

    /// The operands of an access without its cache policy, which is present if the opcode has a
    /// hint.
    pub(super) fn without_policy<'o>(
        &mut self,
        opcode: &str,
        operands: &'o [Operand<'t>],
    ) -> Result<&'o [Operand<'t>]> {
        match operands {
            [others @ .., policy] if opcode.contains(".L2::cache_hint") => {
                self.source(policy, Kind::B64).map(|_| others)
            }
            _ => Ok(operands),
        }
    }

    /// The registers that a load or store moves.
    pub(super) fn data(&mut self, operand: &Operand<'t>, load: bool, opcode: &str, draft: &mut Draft) -> Result<()> {
        let mut file = None;
        for (index, element) in self.elements(operand, draft.access)?.into_iter().enumerate() {
            let own = *file.get_or_insert(self.data_file(element, opcode, draft.access)?);
            let kind = if own == File::B64 { Kind::B64 } else { Kind::B32 };
            match load {
                true => draft.fill(index, self.result(element, own)?),
                false => draft.read(index, self.source(element, kind)?),
            }
        }
        draft.access.wide = file == Some(File::B64);
        Ok(())
    }

    pub(super) fn elements<'o>(&self, operand: &'o Operand<'t>, access: Access) -> Result<Vec<&'o Operand<'t>>> {
        let elements: Vec<_> = flat(std::slice::from_ref(operand)).collect();
        if elements.len() == usize::from(access.count) { Ok(elements) } else { Err(operand_count()) }
    }

    /// The file of a register that a load or store moves; the register is at least as wide as the
    /// data.
    fn data_file(&mut self, operand: &Operand<'t>, opcode: &str, access: Access) -> Result<File> {
        if opcode.starts_with("ld") || opcode.starts_with("st") {
            self.check_type(operand, opcode.rsplit('.').next().unwrap_or_default(), access.count > 1)?;
        }
        let natural = if access.width == 8 { File::B64 } else { File::B32 };
        if let Operand::Lane(name, lane) = *operand {
            return self.names.lane(name, lane).map(|slot| slot.0);
        }
        let Operand::Name(name, _) = *operand else { return Ok(natural) };
        if name == "_" || self.names.special(name).is_some() {
            return Ok(natural);
        }
        match self.names.resolve(name)? {
            Binding::Register((File::B64, _)) => Ok(File::B64),
            Binding::Register((File::B32, _)) if natural == File::B32 => Ok(File::B32),
            _ => Err(format!("{name} is not a register of the instruction's width")),
        }
    }

    pub(super) fn addressed(&mut self, op: Op, opcode: &str, operand: &Operand<'t>) -> Result<Draft> {
        let access = Access { sync: self.sync(opcode), ..access(opcode)? };
        let draft = self.addressed_as(op, operand, access)?;
        self.in_cluster(draft, opcode)
    }

    /// An access to an address, and what it moves.
    pub(super) fn addressed_as(&mut self, op: Op, operand: &Operand<'t>, access: Access) -> Result<Draft> {
        let Operand::Address { base, offset } = *operand else { return Err("its address has no brackets".to_owned()) };
        let mut draft = Draft { access, ..Draft::new(op) };
        let binding = base.map(|name| self.names.resolve(name)).transpose()?;
        let slot = match binding {
            Some(Binding::Register(slot @ (File::B32 | File::B64, _))) => {
                draft.imm = i32::try_from(offset).map_err(|_| "its offset exceeds 32 bits".to_owned())?;
                slot
            }
            Some(Binding::Register(..)) => return Err("its address is a predicate".to_owned()),
            Some(Binding::Refused(why)) => return Err(format!("{} {why}", base.unwrap_or_default())),
            Some(Binding::Frame(place, _)) => self.frame_address(i64::from(place).saturating_add(offset), File::B64)?,
            Some(binding) => {
                let value = match self.names.address(binding, offset) {
                    Some(value) => value,
                    None => {
                        draft.imm = i32::try_from(offset).map_err(|_| "its offset exceeds 32 bits".to_owned())?;
                        self.names.address(binding, 0).ok_or("its address has a form that is not supported")?
                    }
                };
                self.names.constant(File::B64, value)?
            }
            None => self.names.constant(File::B64, PresetValue::Bits(offset as u64))?,
        };
        draft.access.wide_address = slot.0 == File::B64;
        draft.d = slot.1;
        draft.reads.push(slot);
        Ok(draft)
    }
}

pub(super) fn operand_count() -> Refusal {
    "its number of operands does not fit its type".to_owned()
}

fn integer(value: u64, kind: Kind) -> Result<u64> {
    Ok(match kind {
        Kind::Pred => u64::from(value != 0),
        Kind::B8 => value & 0xff,
        Kind::B16 => value & 0xffff,
        Kind::B32 => value & 0xffff_ffff,
        Kind::B64 => value,
        Kind::F32 | Kind::F64 | Kind::Modifiers => {
            return Err("it has an integer where a floating-point number is required".to_owned());
        }
    })
}

/// The access of `ld.global.v2.b64` and similar opcodes, from their spelling.
pub(super) fn access(opcode: &str) -> Result<Access> {
    let kind = opcode.rsplit('.').next().unwrap_or_default();
    let width = type_bytes(kind).filter(|&bytes| bytes <= 8);
    let width = width.ok_or_else(|| format!("the type {kind:?} is not supported"))? as u8;
    let count = if opcode.contains(".v2.") {
        2
    } else if opcode.contains(".v4.") {
        4
    } else {
        1
    };
    if width * count > 16 {
        return Err("no access is wider than 16 bytes".to_owned());
    }
    let (sync, space) = (Sync::of(opcode), space(opcode));
    Ok(Access { width, count, signed: kind.starts_with('s'), sync, space, ..Access::default() })
}

/// Global or shared memory, if the opcode says so.
pub(super) fn space(opcode: &str) -> Option<Space> {
    opcode.split('.').find_map(|part| match part {
        "global" => Some(Space::Global),
        "shared" | "shared::cta" => Some(Space::Shared),
        _ => None,
    })
}
