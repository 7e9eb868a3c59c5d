//! Resolves names in their scopes: registers, variables, labels, special registers. A declaration
//! in braces ends with them, so each inlined copy of a piece of assembly has its own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::special::{absent, special};
use super::variables::Symbols;
use super::{Result, Slot};
use crate::gpu::code::{FRAME_ALIGN, Layout, MAX_LOCAL, NEGATED, Param, Preset, PresetValue};
use crate::gpu::isa;
use crate::gpu::mem::space;
use crate::gpu::parse::ast::{Module, RegisterName, Signature, Space, Statement, Variable};
use crate::gpu::parse::{Ranges, type_bytes};
use crate::gpu::vocabulary::File;

/// Bytes of static shared memory that PTX may declare. A block may have more, as dynamic shared
/// memory.
const MAX_STATIC_SHARED: u64 = 48 << 10;

/// The meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Binding {
    /// A register.
    Register(Slot),
    /// A variable's address within its space.
    Address(PresetValue),
    /// A parameter of the kernel, by its offset.
    Param(u64),
    /// An item in the frame of the function: its offset, and its bytes.
    Frame(u32, u32),
    /// The function of this number.
    Function(u32),
    /// An item that may be declared but not used.
    Refused(&'static str),
}

pub(super) struct Names<'m, 't> {
    pub(super) module: &'m Module<'t>,
    pub(super) symbols: &'m Symbols<'t>,
    /// The parameters of the kernel; functions that it calls do not see them.
    params: &'m [Param],
    /// The scopes; the first is the module's.
    scopes: Vec<Scope<'m, 't>>,
    /// True if the code being lowered is a function that the kernel calls.
    pub(super) in_function: bool,
    /// The number of registers allocated so far in each file.
    pub(super) counts: [usize; 3],
    /// A register in each file for results that are not used.
    unread: [Option<Slot>; 3],
    constants: HashMap<(File, PresetValue), Slot>,
    /// The registers to fill beforehand, with their values.
    pub(super) presets: Vec<Preset>,
    /// The registers of the presets.
    pub(super) filled: HashSet<Slot>,
    shared_bytes: u64,
    dynamic_align: u64,
    /// Bytes of the frame.
    pub(super) frame_bytes: u64,
    carry: Option<Slot>,
    /// The shape of a cluster in blocks, if the kernel gives one.
    pub(super) cluster: Option<[u8; 3]>,
    /// True if any vector of registers is declared.
    pub(super) has_vectors: bool,
}

#[derive(Default)]
struct Scope<'m, 't> {
    names: HashMap<&'t str, Binding>,
    /// Declared registers.
    singles: HashMap<&'t str, Declared<'t>>,
    ranges: Ranges<'t, Declared<'t>>,
    /// The registers of vectors' elements.
    lanes: HashMap<(&'t str, u8), Slot>,
    /// Bytes of a variable's elements.
    elements: HashMap<&'t str, u64>,
    labels: HashMap<&'t str, usize>,
    prototypes: HashMap<&'t str, &'m Signature<'t>>,
    tables: HashMap<&'t str, Table<'m, 't>>,
}

/// The type of a declared register, and the elements that it has: 1 unless it is a vector.
#[derive(Debug, Clone, Copy)]
struct Declared<'t> {
    kind: &'t str,
    lanes: u8,
}

/// A list of targets, with its resolved meaning. It is resolved only once, because many
/// instructions may share a long list.
pub(super) struct Table<'m, 't> {
    pub(super) names: &'m [&'t str],
    /// The number of the code's table, if the targets are labels.
    pub(super) branches: Option<Result<u32>>,
    /// The sorted function numbers and the first function, if the targets are functions.
    pub(super) callees: Option<Result<Callees>>,
}

/// The numbers of the functions that a table names, sorted, and that of the first.
pub(super) type Callees = (Arc<[u32]>, u32);

/// The file that holds registers of a type; `None` for an unsupported type.
fn file_of(kind: &str) -> Option<File> {
    match type_bytes(kind) {
        Some(1..=4) => Some(File::B32),
        Some(8) => Some(File::B64),
        _ => (kind == "pred").then_some(File::Pred),
    }
}

/// Bytes that an index of a variable counts: those of its type, also where it has vectors of that
/// type. NVIDIA's assembler counts so.
fn element_bytes(variable: &Variable) -> u64 {
    type_bytes(variable.ty).unwrap_or(variable.shape.0)
}

impl<'t> Scope<'_, 't> {
    /// The register or vector that it declares by that name.
    fn register(&self, name: &str) -> Option<Declared<'t>> {
        self.singles.get(name).or_else(|| self.ranges.get(name)).copied()
    }
}

impl<'m, 't> Names<'m, 't> {
    pub(super) fn new(module: &'m Module<'t>, symbols: &'m Symbols<'t>, params: &'m [Param]) -> Self {
        Self {
            module,
            symbols,
            params,
            scopes: vec![Scope::default()],
            in_function: false,
            counts: [0; 3],
            unread: [None; 3],
            constants: HashMap::new(),
            presets: Vec::new(),
            filled: HashSet::new(),
            shared_bytes: 0,
            dynamic_align: 1,
            frame_bytes: 0,
            carry: None,
            cluster: None,
            has_vectors: false,
        }
    }

    /// Begins a function with this layout of its frame.
    pub(super) fn enter(&mut self, layout: &Layout) {
        self.in_function = true;
        self.frame_bytes = u64::from(layout.bytes());
    }

    /// Opens the scope of these statements. Each label gets a number, the index of its place in
    /// `places`.
    pub(super) fn open(&mut self, statements: &'m [Statement<'t>], places: &mut Vec<Option<u32>>) {
        let mut scope = Scope::default();
        for statement in statements {
            match statement {
                Statement::Label(name) => {
                    scope.labels.insert(name, places.len());
                    places.push(None);
                }
                Statement::Prototype(name, signature) => drop(scope.prototypes.insert(name, signature)),
                Statement::Targets(name, names) => {
                    drop(scope.tables.insert(name, Table { names, branches: None, callees: None }));
                }
                _ => {}
            }
        }
        self.scopes.push(scope);
    }

    pub(super) fn close(&mut self) {
        self.scopes.pop();
    }

    /// The number of the innermost label of that name.
    pub(super) fn label(&self, name: &str) -> Option<usize> {
        self.label_from(self.scopes.len(), name)
    }

    /// The same, seen from the innermost of the first `scopes` scopes.
    pub(super) fn label_from(&self, scopes: usize, name: &str) -> Option<usize> {
        self.scopes[..scopes].iter().rev().find_map(|scope| scope.labels.get(name).copied())
    }

    /// The innermost prototype of that name.
    pub(super) fn prototype(&self, name: &str) -> Option<&'m Signature<'t>> {
        self.scopes.iter().rev().find_map(|scope| scope.prototypes.get(name).copied())
    }

    /// The innermost list of targets of that name, and the number of scopes that see it.
    pub(super) fn table(&mut self, name: &str) -> Option<(usize, &mut Table<'m, 't>)> {
        let scopes = self.scopes.iter_mut().enumerate().rev();
        scopes.into_iter().find_map(|(number, scope)| Some((number + 1, scope.tables.get_mut(name)?)))
    }

    /// Gives a name a meaning.
    pub(super) fn bind(&mut self, name: &'t str, binding: Binding) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name, binding);
        }
    }

    /// Declares registers, or vectors of this many.
    pub(super) fn registers(&mut self, kind: &'t str, lanes: u8, names: &[RegisterName<'t>]) {
        self.has_vectors |= lanes > 1;
        let Some(scope) = self.scopes.last_mut() else { return };
        let declared = Declared { kind, lanes };
        for name in names {
            match name.count {
                Some(count) => scope.ranges.insert(name.name, count, declared),
                None => drop(scope.singles.insert(name.name, declared)),
            }
        }
    }

    /// The type that a register was declared with, without the dot.
    pub(super) fn declared(&self, name: &str) -> Option<&'t str> {
        let declared = |scope: &Scope<'m, 't>| Some(scope.register(name)?.kind);
        self.scopes.iter().rev().find_map(declared)
    }

    /// The elements of a vector of registers.
    pub(super) fn vector(&self, name: &str) -> Option<u8> {
        let declares = |scope: &&Scope<'m, 't>| scope.register(name).is_some() || scope.names.contains_key(name);
        let scope = self.scopes.iter().rev().find(declares)?;
        scope.register(name).map(|declared| declared.lanes).filter(|&lanes| lanes > 1)
    }

    /// The register of an element of a vector.
    pub(super) fn lane(&mut self, name: &'t str, lane: u8) -> Result<Slot> {
        let declares = |scope: &Scope<'m, 't>| scope.register(name).is_some();
        let index = self.scopes.iter().rposition(declares).ok_or_else(|| format!("{name} is not a vector"))?;
        if let Some(&slot) = self.scopes[index].lanes.get(&(name, lane)) {
            return Ok(slot);
        }
        let kind = self.scopes[index].register(name).map_or("", |declared| declared.kind);
        let file =
            file_of(kind).ok_or_else(|| format!("{name} is of a type that the software GPU does not support"))?;
        let slot = self.allocate(file)?;
        self.scopes[index].lanes.insert((name, lane), slot);
        Ok(slot)
    }

    /// Bytes of an element of a variable or parameter.
    pub(super) fn element_bytes(&self, name: &str) -> Option<u64> {
        let inner = self.scopes.iter().rev().find_map(|scope| scope.elements.get(name).copied());
        let param = || self.params.iter().find(|param| param.name == name).and_then(|param| type_bytes(&param.ty));
        let outer = || self.symbols.variables.get(name).map(|&index| element_bytes(&self.module.variables[index]));
        inner.or_else(|| param().filter(|_| !self.in_function)).or_else(outer)
    }

    /// The value of a special register that stays constant while a block runs.
    pub(super) fn special(&self, name: &str) -> Option<PresetValue> {
        special(name, self.cluster)
    }

    /// Declares a variable that has this meaning.
    pub(super) fn declare(&mut self, variable: &Variable<'t>, binding: Binding) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(variable.name, binding);
            scope.elements.insert(variable.name, element_bytes(variable));
        }
    }

    /// Declares a variable of function scope.
    pub(super) fn variable(&mut self, variable: &Variable<'t>) -> Result<()> {
        let binding = self.place(variable)?;
        self.declare(variable, binding);
        Ok(())
    }

    /// Declares a variable of global or constant memory in a body, by its index in the module.
    pub(super) fn inner(&mut self, index: usize) -> Result<()> {
        let binding = self.in_memory(index)?;
        self.declare(&self.module.variables[index], binding);
        Ok(())
    }

    /// Reserves space in the frame.
    pub(super) fn reserve(&mut self, bytes: u64, align: u64) -> Result<u32> {
        if self.in_function && align > FRAME_ALIGN {
            return Err(format!("variables of functions aligned to more than {FRAME_ALIGN} bytes are not supported"));
        }
        let offset = self.frame_bytes.checked_next_multiple_of(align).unwrap_or(u64::MAX);
        self.frame_bytes = offset.saturating_add(bytes);
        if self.frame_bytes > u64::from(MAX_LOCAL) {
            let needed = self.frame_bytes;
            return Err(format!("{needed} bytes of local memory; no GPU has more than {MAX_LOCAL} for a thread"));
        }
        Ok(offset as u32)
    }

    fn place(&mut self, variable: &Variable) -> Result<Binding> {
        Ok(match (variable.space, variable.bytes) {
            (Space::Shared, Some(bytes)) => {
                let offset = self.shared_bytes.checked_next_multiple_of(variable.align).unwrap_or(u64::MAX);
                self.shared_bytes = offset.saturating_add(bytes);
                Binding::Address(PresetValue::Bits(offset))
            }
            (Space::Shared, None) => {
                self.dynamic_align = self.dynamic_align.max(variable.align);
                Binding::Address(PresetValue::DynamicShared)
            }
            (Space::Local, Some(bytes)) => match self.reserve(bytes, variable.align)? {
                offset if self.in_function => Binding::Frame(offset, bytes as u32),
                offset => Binding::Address(PresetValue::Bits(u64::from(offset))),
            },
            (Space::Param, Some(bytes)) => Binding::Frame(self.reserve(bytes, variable.align)?, bytes as u32),
            _ => Binding::Refused("is a kind of variable that the software GPU does not support"),
        })
    }

    /// The meaning of `name` here. A register gets its number on first use.
    pub(super) fn resolve(&mut self, name: &'t str) -> Result<Binding> {
        for index in (0..self.scopes.len()).rev() {
            if let Some(binding) = self.scopes[index].names.get(name) {
                return Ok(*binding);
            }
            let scope = &self.scopes[index];
            if let Some(Declared { kind, lanes }) = scope.register(name) {
                if lanes > 1 {
                    return Err(format!("{name} is a vector; name one of its elements, such as {name}.x"));
                }
                let file = file_of(kind)
                    .ok_or_else(|| format!("{name} is of a type that the software GPU does not support"))?;
                let binding = Binding::Register(self.allocate(file)?);
                self.scopes[index].names.insert(name, binding);
                return Ok(binding);
            }
        }
        if !self.in_function
            && let Some(param) = self.params.iter().find(|param| param.name == name)
        {
            return Ok(Binding::Param(param.offset as u64));
        }
        let binding = self.of_module(name)?;
        self.scopes[0].names.insert(name, binding);
        Ok(binding)
    }

    fn of_module(&mut self, name: &str) -> Result<Binding> {
        if let Some(function) = self.symbols.functions.get(name).copied() {
            return Ok(Binding::Function(function));
        }
        let index = *self.symbols.variables.get(name).ok_or_else(|| {
            absent(name).unwrap_or_else(|| match isa::forms(name).next() {
                Some(_) if name.starts_with('%') => format!("it reads {name} with another instruction than `mov`"),
                _ => format!("the name {name:?} is not declared"),
            })
        })?;
        let variable = &self.module.variables[index];
        match variable.space {
            Space::Global | Space::Const => self.in_memory(index),
            Space::Shared => self.place(variable),
            // The frame of a kernel begins where its local memory does.
            Space::Local if !self.in_function => self.place(variable),
            _ => Err(format!("{name} is a kind of variable that the software GPU does not support in a module")),
        }
    }

    /// The address of the variable of this index, in global or constant memory.
    fn in_memory(&self, index: usize) -> Result<Binding> {
        let name = self.module.variables[index].name;
        let place = self.symbols.places[index].clone().map_err(|why| format!("the variable {name:?} {why}"))?;
        Ok(Binding::Address(PresetValue::Variable { index: place as u32, offset: 0 }))
    }

    /// The value of an address, if it is known before the code runs.
    pub(super) fn address(&mut self, binding: Binding, offset: i64) -> Option<PresetValue> {
        match binding {
            Binding::Address(PresetValue::Bits(base)) | Binding::Param(base) => {
                Some(PresetValue::Bits(base.wrapping_add_signed(offset)))
            }
            Binding::Address(PresetValue::Variable { index, offset: known }) => {
                Some(PresetValue::Variable { index, offset: known.wrapping_add(offset) })
            }
            Binding::Address(value) if offset == 0 => Some(value),
            Binding::Function(number) if offset == 0 => Some(PresetValue::Bits(space::function_address(number))),
            _ => None,
        }
    }

    /// The register of that name, which must be of `file`.
    pub(super) fn register(&mut self, name: &'t str, file: File) -> Result<Slot> {
        match self.resolve(name)? {
            Binding::Register(slot) if slot.0 == file => Ok(slot),
            Binding::Register(..) => Err(format!("{name} is a register of another width than the instruction's")),
            Binding::Refused(why) => Err(format!("{name} {why}")),
            _ => Err(format!("{name} is not a register")),
        }
    }

    /// Allocates a new register.
    pub(super) fn allocate(&mut self, file: File) -> Result<Slot> {
        let count = &mut self.counts[file as usize];
        if *count >= usize::from(NEGATED) {
            return Err(format!("kernels of more than {} registers are not supported", NEGATED));
        }
        *count += 1;
        Ok((file, (*count - 1) as u16))
    }

    /// The register for results that are not used.
    pub(super) fn unread(&mut self, file: File) -> Result<Slot> {
        let slot = self.unread[file as usize].map_or_else(|| self.allocate(file), Ok)?;
        Ok(*self.unread[file as usize].insert(slot))
    }

    /// The register that holds a value from the start.
    pub(super) fn constant(&mut self, file: File, value: PresetValue) -> Result<Slot> {
        if let Some(&slot) = self.constants.get(&(file, value)) {
            return Ok(slot);
        }
        let slot = self.allocate(file)?;
        self.constants.insert((file, value), slot);
        self.presets.push(Preset { file, slot: slot.1, value });
        self.filled.insert(slot);
        Ok(slot)
    }

    /// The predicate that holds the carry of `add.cc`: one for the whole kernel.
    pub(super) fn carry(&mut self) -> Result<Slot> {
        let slot = self.carry.map_or_else(|| self.allocate(File::Pred), Ok)?;
        Ok(*self.carry.insert(slot))
    }

    /// Bytes of the parameters.
    pub(super) fn param_bytes(&self) -> usize {
        self.params.last().map_or(0, |param| param.offset.saturating_add(param.size))
    }

    /// The registers allocated since the counts were `before`, except for those that are filled
    /// beforehand.
    pub(super) fn registers_since(&self, before: [usize; 3]) -> Vec<Slot> {
        let files = [File::Pred, File::B32, File::B64].into_iter();
        let all =
            files.flat_map(|file| (before[file as usize]..self.counts[file as usize]).map(move |n| (file, n as u16)));
        all.filter(|register| !self.filled.contains(register)).collect()
    }

    /// Bytes of static shared memory, and the alignment of dynamic shared memory.
    pub(super) fn shared(&self) -> Result<(u32, u32)> {
        let shared = self.shared_bytes;
        if shared > MAX_STATIC_SHARED {
            return Err(format!(
                "{shared} bytes of static shared memory; there may be {MAX_STATIC_SHARED}, more as dynamic shared memory"
            ));
        }
        Ok((shared as u32, self.dynamic_align as u32))
    }
}
