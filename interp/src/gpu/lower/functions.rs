//! Lowers functions and calls.
//!
//! Each function that a kernel may reach is lowered once, after the kernel's own code. An
//! activation has a frame in each thread's local memory. The frame begins after its caller's frame,
//! at a multiple of 16. It holds the parameters and results first, which a call copies, then the
//! variables. Registers belong to the function; if a function may already be active when it is
//! entered, it saves them in its frame.

use std::sync::Arc;

use super::names::{Binding, Callees};
use super::operands::access;
use super::{Draft, Lowering, Refused, Result, Slot, flat, recursion};
use crate::error::counted;
use crate::gpu::code::{ALWAYS, Access, Call, FRAME_ALIGN, Function, Layout, MAX_LOCAL, Target};
use crate::gpu::isa::Op;
use crate::gpu::parse::ast::{self, Formal, Operand, RegisterName, Signature};
use crate::gpu::vocabulary::{File, Kind};

/// The offsets of a function's parameters and results in its frame.
fn layout(signature: &Signature) -> Result<Layout> {
    let mut end = 0_u64;
    let mut place = |formal: &Formal| {
        let variable = &formal.variable;
        let bytes = variable.bytes.ok_or("a parameter without a size is not supported")?;
        if variable.align > FRAME_ALIGN {
            return Err(format!("parameters of functions aligned to more than {FRAME_ALIGN} bytes are not supported"));
        }
        let offset = end.next_multiple_of(variable.align);
        end = offset.saturating_add(bytes);
        if end > u64::from(MAX_LOCAL) {
            return Err(format!("parameters of {end} bytes are more than any GPU's local memory"));
        }
        Ok((offset as u32, bytes as u32))
    };
    let params = signature.params.iter().map(&mut place).collect::<Result<_>>()?;
    Ok(Layout { params, results: signature.results.iter().map(place).collect::<Result<_>>()? })
}

/// The register file for this type.
fn file(kind: &str) -> Result<File> {
    match kind {
        "pred" => Err("a predicate as a parameter is not supported".to_owned()),
        kind if kind.ends_with("64") => Ok(File::B64),
        _ => Ok(File::B32),
    }
}

/// A load or store of a whole register in the frame.
fn whole(op: Op, slot: Slot, (offset, bytes): (u32, u32)) -> Draft {
    let access = Access { width: bytes as u8, count: 1, wide: slot.0 == File::B64, ..Access::default() };
    let mut draft = Draft { access, imm: offset as i32, ..Draft::new(op) };
    if op == Op::LdFrame {
        draft.fill(0, slot)
    } else {
        draft.read(0, slot)
    }
    draft
}

impl<'m, 't> Lowering<'m, 't> {
    /// Lowers every function that the code lowered so far may call.
    pub(super) fn reachable(&mut self) -> Result<(), Refused> {
        loop {
            while let Some(number) = self.pending.pop() {
                let lowered = self.code.functions.get(number as usize).is_some_and(Option::is_some);
                if !lowered {
                    self.function(number)?;
                }
            }
            // A call through a pointer may reach any function whose address is taken.
            if self.calls_pointers() {
                let taken = self.names.symbols.taken.iter().copied().chain(self.taken.iter().copied());
                let open = |&number: &u32| {
                    let known = self.code.functions.get(number as usize).is_some_and(Option::is_some);
                    !known && self.names.module.functions[number as usize].body.is_some()
                };
                self.pending = taken.filter(open).collect();
            }
            if self.pending.is_empty() {
                return Ok(());
            }
        }
    }

    fn calls_pointers(&self) -> bool {
        self.code.calls.iter().any(|call| call.target == Target::Pointer(None))
    }

    fn function(&mut self, number: u32) -> Result<(), Refused> {
        let module = self.names.module;
        let function = &module.functions[number as usize];
        let here = |refusal| Refused::whole(function.span, refusal);
        let undefined = || here("this module does not define it".to_owned());
        let body = function.body.as_ref().ok_or_else(undefined)?;
        let layout = layout(&function.signature).map_err(here)?;
        let (first, before) = (self.code.instructions.len(), self.names.counts);
        self.names.enter(&layout);
        self.names.open(&[], &mut self.labels);
        let end = self.labels.len();
        self.labels.push(None);
        (self.end, self.current, self.span) = (Some(end), Some(number), function.span);
        let Signature { params, results } = &function.signature;
        self.formals(params, &layout.params, Op::LdFrame, function.span).map_err(here)?;
        self.formals(results, &layout.results, Op::Return, function.span).map_err(here)?;
        self.scope(body);
        self.labels[end] = Some(self.code.instructions.len() as u32);
        for (formal, &place) in results.iter().zip(&layout.results) {
            if formal.is_register {
                for (slot, place) in self.registers_of(formal, place).map_err(here)? {
                    self.emit(whole(Op::StFrame, slot, place), ALWAYS, function.span);
                }
            }
        }
        self.names.close();
        self.emit(Draft { imm: number as i32, ..Draft::new(Op::Return) }, ALWAYS, function.span);
        self.finish_part(first).map_err(here)?;
        let saved = self.names.registers_since(before);
        let frame_bytes = self.names.frame_bytes.next_multiple_of(FRAME_ALIGN) as u32;
        let functions = &mut self.code.functions;
        functions.resize_with(functions.len().max(number as usize + 1), || None);
        self.called.push(number);
        let (name, entry) = (function.name.into(), first as u32);
        let lowered = Function { name, entry, frame_bytes, layout, saved, saved_at: 0, recursive: false };
        functions[number as usize] = Some(lowered);
        Ok(())
    }

    /// Declares parameters or results; fills the registers among the parameters.
    fn formals(&mut self, formals: &[Formal<'t>], places: &[(u32, u32)], op: Op, span: ast::Span) -> Result<()> {
        for (formal, &place) in formals.iter().zip(places) {
            let name = formal.variable.name;
            if !formal.is_register {
                self.names.declare(&formal.variable, Binding::Frame(place.0, place.1));
                continue;
            }
            self.names.registers(formal.ty, formal.lanes, &[RegisterName { name, count: None }]);
            for (slot, place) in self.registers_of(formal, place)? {
                if op == Op::LdFrame {
                    self.emit(whole(op, slot, place), ALWAYS, span);
                }
            }
        }
        Ok(())
    }

    /// The register of a parameter, or those of a vector's elements, and the place of each.
    fn registers_of(&mut self, formal: &Formal<'t>, place: (u32, u32)) -> Result<Vec<(Slot, (u32, u32))>> {
        let (name, file) = (formal.variable.name, file(formal.ty)?);
        if formal.lanes == 1 {
            return Ok(vec![(self.names.register(name, file)?, place)]);
        }
        let (offset, bytes) = (place.0, place.1 / u32::from(formal.lanes));
        let lanes =
            (0..formal.lanes).map(|lane| Ok((self.names.lane(name, lane)?, (offset + u32::from(lane) * bytes, bytes))));
        lanes.collect()
    }

    /// Lowers `call (results), function, (arguments), prototype;`. Everything but the function may
    /// be absent.
    pub(super) fn call(&mut self, operands: &[Operand<'t>]) -> Result<Vec<Draft>> {
        let unknown = || "it has operands that a call cannot have".to_owned();
        let (results, operands) = match operands {
            [Operand::List(results), rest @ ..] => (results.as_slice(), rest),
            all => (&[][..], all),
        };
        let [Operand::Name(callee, 0), operands @ ..] = operands else { return Err(unknown()) };
        let (arguments, operands) = match operands {
            [Operand::List(arguments), rest @ ..] => (arguments.as_slice(), rest),
            all => (&[][..], all),
        };
        let table = match operands {
            [] => None,
            [Operand::Name(table, 0)] => Some(*table),
            _ => return Err(unknown()),
        };
        let mut call = Draft { imm: self.code.calls.len() as i32, ..Draft::new(Op::Call) };
        let (target, signature) = match self.names.resolve(callee)? {
            Binding::Function(number) => self.direct(number)?,
            Binding::Register(slot @ (File::B64, _)) => {
                call.read(0, slot);
                self.indirect(table)?
            }
            _ => return Err(format!("{callee} is neither a function nor a register that could hold one's address")),
        };
        if (arguments.len(), results.len()) != (signature.params.len(), signature.results.len()) {
            return Err(format!("{callee} has a different number of parameters or results"));
        }
        let layout = layout(signature)?;
        let (mut before, mut after, mut passed) = (Vec::new(), Vec::new(), Layout::default());
        for ((operand, formal), &(_, bytes)) in arguments.iter().zip(&signature.params).zip(&layout.params) {
            let offset = self.argument(operand, formal, bytes, &mut before)?;
            passed.params.push((offset, bytes));
        }
        for ((operand, formal), &(_, bytes)) in results.iter().zip(&signature.results).zip(&layout.results) {
            let offset = self.call_result(operand, formal, bytes, &mut after)?;
            passed.results.push((offset, bytes));
        }
        self.code.calls.push(Call { target, passed, layout });
        self.callers.push(self.current);
        before.push(call);
        before.extend(after);
        Ok(before)
    }

    fn direct(&mut self, number: u32) -> Result<(Target, &'m Signature<'t>)> {
        let module = self.names.module;
        let function = &module.functions[number as usize];
        let target = match (&function.body, function.name) {
            (Some(_), _) => {
                self.pending.push(number);
                Target::Function(number)
            }
            (None, "vprintf") => Target::Print,
            (None, "__assertfail") => Target::Assert,
            (None, "malloc") => Target::Malloc,
            (None, "free") => Target::Free,
            (None, name) => {
                return Err(format!("this module does not define the function {name:?}, and no other is linked"));
            }
        };
        let runtime: Option<[&[u64]; 2]> = match target {
            Target::Print => Some([&[8, 8], &[4]]),
            Target::Assert => Some([&[8, 8, 4, 8, 8], &[]]),
            Target::Malloc => Some([&[8], &[8]]),
            Target::Free => Some([&[8], &[]]),
            _ => None,
        };
        let differ = |formals: &[Formal], known: &[u64]| {
            !formals.iter().map(|formal| formal.variable.bytes).eq(known.iter().copied().map(Some))
        };
        let Signature { params, results } = &function.signature;
        if runtime.is_some_and(|known| differ(params, known[0]) || differ(results, known[1])) {
            return Err(format!("the declaration of {:?} differs from the CUDA runtime's", function.name));
        }
        Ok((target, &function.signature))
    }

    fn indirect(&mut self, table: Option<&'t str>) -> Result<(Target, &'m Signature<'t>)> {
        let table = table.ok_or("a call through a register without a prototype is not supported")?;
        if let Some(signature) = self.names.prototype(table) {
            return Ok((Target::Pointer(None), signature));
        }
        let (callees, first) = self.callees(table)?;
        let signature = &self.names.module.functions[first as usize].signature;
        Ok((Target::Pointer(Some(callees)), signature))
    }

    /// The functions that a table names, sorted, and its first function.
    fn callees(&mut self, table: &str) -> Result<Callees> {
        let unknown = || format!("there is no prototype {table:?} in scope");
        let (_, known) = self.names.table(table).ok_or_else(unknown)?;
        if let Some(callees) = &known.callees {
            return callees.clone();
        }
        let names = known.names;
        let mut number_of = |name: &&str| {
            let number = self.names.symbols.functions.get(*name).copied();
            let number = number.ok_or_else(|| format!("there is no function {name:?}"))?;
            self.direct(number).map(|_| number)
        };
        let callees = names.iter().map(&mut number_of).collect::<Result<Vec<u32>>>().map(|mut numbers| {
            let first = numbers[0];
            numbers.sort_unstable();
            (Arc::from(numbers), first)
        });
        if let Some((_, known)) = self.names.table(table) {
            known.callees = Some(callees.clone());
        }
        callees
    }

    /// The values that a call passes as a parameter or takes as a result, and the bytes of each.
    fn passed<'o>(operand: &'o Operand<'t>, formal: &Formal, bytes: u32) -> Result<(Vec<&'o Operand<'t>>, u32)> {
        let values: Vec<_> = flat(std::slice::from_ref(operand)).collect();
        let each = bytes / u32::from(formal.lanes);
        match values.len() == usize::from(formal.lanes) && matches!(each, 1 | 2 | 4 | 8) {
            true => Ok((values, each)),
            false => Err("it passes a value where a variable or a vector is required".to_owned()),
        }
    }

    /// The offset of an argument in the frame. A value is stored there first.
    fn argument(&mut self, operand: &Operand<'t>, formal: &Formal, bytes: u32, before: &mut Vec<Draft>) -> Result<u32> {
        if let Some(offset) = self.variable(operand, bytes)? {
            return Ok(offset);
        }
        let (values, each) = Self::passed(operand, formal, bytes)?;
        let kind = match (each, formal.ty) {
            (8, "f64") => Kind::F64,
            (8, _) => Kind::B64,
            (4, "f32") => Kind::F32,
            _ => Kind::B32,
        };
        let offset = self.names.reserve(u64::from(bytes), formal.variable.align.max(u64::from(each)))?;
        for (value, place) in values.into_iter().zip((offset..).step_by(each as usize)) {
            before.push(whole(Op::StFrame, self.source(value, kind)?, (place, each)));
        }
        Ok(offset)
    }

    /// The offset of a result in the frame. A register is loaded from there.
    fn call_result(
        &mut self,
        operand: &Operand<'t>,
        formal: &Formal,
        bytes: u32,
        after: &mut Vec<Draft>,
    ) -> Result<u32> {
        if let Some(offset) = self.variable(operand, bytes)? {
            return Ok(offset);
        }
        let unused = *operand == Operand::Name("_", 0);
        let (results, each) = if unused { (Vec::new(), 1) } else { Self::passed(operand, formal, bytes)? };
        let file = if each == 8 { File::B64 } else { File::B32 };
        let offset = self.names.reserve(u64::from(bytes), formal.variable.align.max(u64::from(each)))?;
        for (result, place) in results.into_iter().zip((offset..).step_by(each as usize)) {
            after.push(whole(Op::LdFrame, self.result(result, file)?, (place, each)));
        }
        Ok(offset)
    }

    /// The offset of a `.param` variable, if the operand of a call is one.
    fn variable(&mut self, operand: &Operand<'t>, bytes: u32) -> Result<Option<u32>> {
        let Operand::Name(name, 0) = *operand else { return Ok(None) };
        if name == "_" || self.names.special(name).is_some() {
            return Ok(None);
        }
        match self.names.resolve(name)? {
            Binding::Frame(offset, size) if size == bytes => Ok(Some(offset)),
            Binding::Frame(_, size) => {
                Err(format!("{name} has {size}, but the function expects {bytes}", size = counted(size, "byte")))
            }
            _ => Ok(None),
        }
    }

    /// Lowers `ld.param` and `st.param` of data in the frame.
    pub(super) fn frame(&mut self, opcode: &str, operands: &[Operand<'t>]) -> Result<Option<Vec<Draft>>> {
        let load = opcode.starts_with("ld.param");
        let (values, address) = match operands {
            [values, address] if load => (values, address),
            [address, values] if opcode.starts_with("st.param") => (values, address),
            _ => return Ok(None),
        };
        let &Operand::Address { base: Some(name), offset } = address else {
            return if load && !self.names.in_function {
                Ok(None)
            } else {
                Err("its address is not a variable".to_owned())
            };
        };
        let (base, size) = match self.names.resolve(name)? {
            Binding::Frame(base, size) => (base, size),
            _ if load && !self.names.in_function => return Ok(None),
            _ => return Err(format!("{name} is not a parameter of a function")),
        };
        let access = access(opcode)?;
        let end = offset.checked_add(i64::from(access.bytes()));
        if offset < 0 || end.is_none_or(|end| end > i64::from(size)) {
            return Err(format!("it reaches beyond the {size} of {name}", size = counted(size, "byte")));
        }
        let place = i64::from(base) + offset;
        if place % i64::from(access.width) != 0 {
            return Err("its address is misaligned".to_owned());
        }
        let mut draft = Draft { access, imm: place as i32, ..Draft::new(if load { Op::LdFrame } else { Op::StFrame }) };
        self.data(values, load, opcode, &mut draft)?;
        Ok(Some(vec![draft]))
    }

    /// `brx.idx index, table;`
    pub(super) fn branch_table(&mut self, op: Op, operands: &[Operand<'t>]) -> Result<Draft> {
        let [index, Operand::Name(table, 0)] = operands else { return Err("it has no table of targets".to_owned()) };
        let number = self.branches(table)?;
        let mut draft = Draft { imm: number as i32, ..Draft::new(op) };
        draft.read(0, self.source(index, Kind::B32)?);
        Ok(draft)
    }

    /// Converts a table of labels to a table of the code. The labels are resolved from the table's
    /// own scope; the code's table holds their numbers until all pcs are known.
    fn branches(&mut self, table: &str) -> Result<u32> {
        let unknown = || format!("there is no table {table:?} in scope");
        let (scopes, known) = self.names.table(table).ok_or_else(unknown)?;
        if let Some(branches) = &known.branches {
            return branches.clone();
        }
        let names = known.names;
        let label = |name: &&str| {
            let label = self.names.label_from(scopes, name).map(|label| label as u32);
            label.ok_or_else(|| format!("there is no label {name:?} in scope"))
        };
        let branches = names.iter().map(label).collect::<Result<Vec<u32>>>().map(|targets| {
            self.code.tables.push(targets);
            self.code.tables.len() as u32 - 1
        });
        if let Some((_, known)) = self.names.table(table) {
            known.branches = Some(branches.clone());
        }
        branches
    }

    /// Lets a function save its registers only if it may be active when it is entered.
    pub(super) fn save_registers(&mut self) {
        let calls = self.callers.iter().zip(&self.code.calls);
        let calls = calls.filter_map(|(caller, call)| Some(((*caller)?, &call.target)));
        let recursive = recursion::recursive(self.code.functions.len(), calls);
        for (function, recursive) in self.code.functions.iter_mut().zip(recursive) {
            let Some(function) = function else { continue };
            function.recursive = recursive;
            if !recursive {
                function.saved.clear();
                continue;
            }
            function.saved_at = function.frame_bytes;
            let bytes: u32 = function.saved.iter().map(|(file, _)| if *file == File::B64 { 8 } else { 4 }).sum();
            function.frame_bytes = (function.frame_bytes + bytes).next_multiple_of(FRAME_ALIGN as u32);
            // Wide registers come first, so that each is aligned.
            function.saved.sort_by_key(|(file, _)| *file != File::B64);
        }
    }
}
