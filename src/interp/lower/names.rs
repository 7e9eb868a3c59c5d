//! What names mean where they stand: registers, variables, labels, special registers. Declarations in braces end with them,
//! so two inlinings of one piece of assembly have each their own.

use std::collections::HashMap;

use super::Refusal;
use crate::interp::code::{NEGATED, Param, Preset, PresetValue};
use crate::interp::exec::registers::File;
use crate::interp::parse::Ranges;
use crate::interp::parse::ast::{Module, RegisterName, Space, Variable};

/// Static shared memory that PTX may declare, in bytes; a block may have more, as dynamic shared memory.
const MAX_STATIC_SHARED: u64 = 48 << 10;
/// Local memory that a thread may have on any GPU, in bytes.
const MAX_LOCAL: u64 = 512 << 10;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Binding {
    /// A register.
    Register(File, u16),
    /// A variable's address within its space.
    Address(PresetValue),
    /// A parameter: where it begins.
    Param(u64),
    /// Something that can be declared but not used.
    Refused(&'static str),
}

pub(super) struct Names<'m, 't> {
    module: &'m Module<'t>,
    params: &'m [Param],
    scopes: Vec<Scope<'t>>,
    /// Registers given so far, by file.
    counts: [usize; 3],
    /// Registers for what nobody reads, by file.
    unread: [Option<u16>; 3],
    constants: HashMap<(File, PresetValue), u16>,
    presets: Vec<Preset>,
    shared_bytes: u64,
    dynamic_align: u64,
    local_bytes: u64,
    carry: Option<u16>,
}

#[derive(Default)]
struct Scope<'t> {
    names: HashMap<&'t str, Binding>,
    /// Declared registers that nothing has named yet, and their file; `None` for a type we do not have.
    singles: HashMap<&'t str, Option<File>>,
    ranges: Ranges<'t, Option<File>>,
    labels: HashMap<&'t str, usize>,
}

impl<'m, 't> Names<'m, 't> {
    pub(super) fn new(module: &'m Module<'t>, params: &'m [Param]) -> Self {
        Self {
            module,
            params,
            scopes: Vec::new(),
            counts: [0; 3],
            unread: [None; 3],
            constants: HashMap::new(),
            presets: Vec::new(),
            shared_bytes: 0,
            dynamic_align: 1,
            local_bytes: 0,
            carry: None,
        }
    }

    /// Opens a scope that has these labels; each gets a number, the index of its place in `places`.
    pub(super) fn open(&mut self, labels: impl Iterator<Item = &'t str>, places: &mut Vec<Option<u32>>) {
        let mut scope = Scope::default();
        for name in labels {
            scope.labels.insert(name, places.len());
            places.push(None);
        }
        self.scopes.push(scope);
    }

    pub(super) fn close(&mut self) {
        self.scopes.pop();
    }

    /// The number of the innermost label of that name.
    pub(super) fn label(&self, name: &str) -> Option<usize> {
        self.scopes.iter().rev().find_map(|scope| scope.labels.get(name).copied())
    }

    /// Declares registers.
    pub(super) fn registers(&mut self, kind: &str, names: &[RegisterName<'t>]) {
        let file = match kind {
            "pred" => Some(File::Pred),
            "b8" | "u8" | "s8" | "b16" | "u16" | "s16" | "f16" | "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16"
            | "bf16x2" => Some(File::B32),
            "b64" | "u64" | "s64" | "f64" => Some(File::B64),
            _ => None,
        };
        let Some(scope) = self.scopes.last_mut() else { return };
        for name in names {
            match name.count {
                Some(count) => scope.ranges.insert(name.name, count, file),
                None => drop(scope.singles.insert(name.name, file)),
            }
        }
    }

    /// Declares a variable of function scope.
    pub(super) fn variable(&mut self, variable: &Variable<'t>) {
        let binding = self.place(variable);
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(variable.name, binding);
        }
    }

    fn place(&mut self, variable: &Variable) -> Binding {
        let within = |used: &mut u64| {
            let offset = used.checked_next_multiple_of(variable.align).unwrap_or(u64::MAX);
            *used = offset.saturating_add(variable.bytes.unwrap_or(0));
            Binding::Address(PresetValue::Bits(offset))
        };
        match (variable.space, variable.bytes) {
            (Space::Shared, Some(_)) => within(&mut self.shared_bytes),
            (Space::Shared, None) => {
                self.dynamic_align = self.dynamic_align.max(variable.align);
                Binding::Address(PresetValue::DynamicShared)
            }
            (Space::Local, Some(_)) => within(&mut self.local_bytes),
            (Space::Global | Space::Const, _) => {
                Binding::Refused("is a variable of the module, which the software GPU does not have")
            }
            _ => Binding::Refused("is a kind of variable that the software GPU does not have"),
        }
    }

    /// What `name` means here; a register gets its number when it is first asked for.
    pub(super) fn resolve(&mut self, name: &'t str) -> Result<Binding, Refusal> {
        for index in (0..self.scopes.len()).rev() {
            if let Some(binding) = self.scopes[index].names.get(name) {
                return Ok(*binding);
            }
            let scope = &self.scopes[index];
            if let Some(&file) = scope.singles.get(name).or_else(|| scope.ranges.get(name)) {
                let file = file.ok_or_else(|| format!("{name} is of a type that the software GPU does not have"))?;
                let binding = Binding::Register(file, self.allocate(file)?);
                self.scopes[index].names.insert(name, binding);
                return Ok(binding);
            }
        }
        if let Some(param) = self.params.iter().find(|param| param.name == name) {
            return Ok(Binding::Param(param.offset as u64));
        }
        let module = self.module;
        let variable = module.variables.iter().find(|variable| variable.name == name);
        let binding = self.place(variable.ok_or_else(|| format!("the name {name:?} is not declared"))?);
        if let Some(outermost) = self.scopes.first_mut() {
            outermost.names.insert(name, binding);
        }
        Ok(binding)
    }

    /// The register of that name, which must be of `file`.
    pub(super) fn register(&mut self, name: &'t str, file: File) -> Result<u16, Refusal> {
        match self.resolve(name)? {
            Binding::Register(found, slot) if found == file => Ok(slot),
            Binding::Register(..) => Err(format!("{name} is a register of another width than the instruction's")),
            Binding::Refused(why) => Err(format!("{name} {why}")),
            _ => Err(format!("{name} is no register")),
        }
    }

    /// A register of its own.
    pub(super) fn allocate(&mut self, file: File) -> Result<u16, Refusal> {
        let count = &mut self.counts[file as usize];
        if *count >= usize::from(NEGATED) {
            return Err(format!("kernels of more than {} registers are not supported", NEGATED));
        }
        *count += 1;
        Ok((*count - 1) as u16)
    }

    /// The register for results that nobody reads.
    pub(super) fn unread(&mut self, file: File) -> Result<u16, Refusal> {
        if let Some(slot) = self.unread[file as usize] {
            return Ok(slot);
        }
        let slot = self.allocate(file)?;
        self.unread[file as usize] = Some(slot);
        Ok(slot)
    }

    /// The register that holds a value from the start.
    pub(super) fn constant(&mut self, file: File, value: PresetValue) -> Result<u16, Refusal> {
        if let Some(&slot) = self.constants.get(&(file, value)) {
            return Ok(slot);
        }
        let slot = self.allocate(file)?;
        self.constants.insert((file, value), slot);
        self.presets.push(Preset { file, slot, value });
        Ok(slot)
    }

    /// The predicate that `add.cc` leaves its carry in: one for the whole kernel.
    pub(super) fn carry(&mut self) -> Result<u16, Refusal> {
        let slot = self.carry.map_or_else(|| self.allocate(File::Pred), Ok)?;
        Ok(*self.carry.insert(slot))
    }

    /// Bytes of the parameters.
    pub(super) fn param_bytes(&self) -> usize {
        self.params.last().map_or(0, |param| param.offset + param.size)
    }

    /// Registers of each file.
    pub(super) fn counts(&self) -> [usize; 3] {
        self.counts
    }

    /// Registers to fill.
    pub(super) fn presets(&mut self) -> Vec<Preset> {
        std::mem::take(&mut self.presets)
    }

    /// Bytes of static shared memory, alignment of the dynamic one, and bytes of local memory.
    pub(super) fn memory(&self) -> Result<(u32, u32, u32), Refusal> {
        let (shared, local) = (self.shared_bytes, self.local_bytes);
        if shared > MAX_STATIC_SHARED {
            return Err(format!(
                "{shared} bytes of static shared memory; there may be {MAX_STATIC_SHARED}, more as dynamic shared memory"
            ));
        }
        if local > MAX_LOCAL {
            return Err(format!("{local} bytes of local memory are more than any GPU has"));
        }
        Ok((shared as u32, self.dynamic_align as u32, local as u32))
    }
}

/// The value of a special register that keeps it while a block runs.
pub(super) fn special(name: &str) -> Option<PresetValue> {
    let mask = |below, equal, above| PresetValue::LaneMask { below, equal, above };
    Some(match name {
        "%laneid" => PresetValue::Lane,
        "%warpid" => PresetValue::Warp,
        "%nwarpid" => PresetValue::Warps,
        "WARP_SZ" => PresetValue::Bits(32),
        // One multiprocessor and one launch; a block is a cluster of its own.
        "%smid" | "%gridid" | "%cluster_ctarank" | "%is_explicit_cluster" => PresetValue::Bits(0),
        "%nsmid" | "%cluster_nctarank" => PresetValue::Bits(1),
        "%dynamic_smem_size" => PresetValue::SharedBytes { fixed: false },
        "%total_smem_size" => PresetValue::SharedBytes { fixed: true },
        "%lanemask_lt" => mask(true, false, false),
        "%lanemask_le" => mask(true, true, false),
        "%lanemask_eq" => mask(false, true, false),
        "%lanemask_ge" => mask(false, true, true),
        "%lanemask_gt" => mask(false, false, true),
        _ => {
            let (register, axis) = name.split_once('.')?;
            let axis = ["x", "y", "z"].iter().position(|known| *known == axis)? as u8;
            match register {
                "%tid" => PresetValue::Tid(axis),
                "%ntid" => PresetValue::Ntid(axis),
                "%ctaid" | "%clusterid" => PresetValue::Ctaid(axis),
                "%nctaid" | "%nclusterid" => PresetValue::Nctaid(axis),
                "%cluster_ctaid" => PresetValue::Bits(0),
                "%cluster_nctaid" => PresetValue::Bits(1),
                _ => return None,
            }
        }
    })
}
