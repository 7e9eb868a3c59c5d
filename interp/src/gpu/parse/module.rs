//! Parses the frame of a module: directives, functions, variables and their initial values.

use std::collections::HashMap;

use super::ast::{Bounds, Entry, Formal, Function, Initial, Module, Operand, Signature, Space, Span, Variable};
use super::lexer::{self, Kind};
use super::parser::{MAX_DEPTH, Parser, error};
use crate::error::Result;

/// The names that a module has declared so far.
#[derive(Debug, Default)]
pub(super) struct Known<'t> {
    names: HashMap<&'t str, Name>,
}

/// The kind of a name of the module, and its index in the list of that kind.
#[derive(Debug, Clone, Copy)]
enum Name {
    Entry,
    Function(usize),
    Variable(usize),
}

/// The part of a declaration before the name.
struct Declared<'t> {
    ty: &'t str,
    lanes: u8,
    align: Option<u64>,
    element_bytes: u64,
    managed: bool,
}

impl<'t> Parser<'t> {
    pub(super) fn top_level(&mut self, module: &mut Module<'t>) -> Result<()> {
        let (line, labelled) = (self.line(), self.is_labelled());
        let word = self.expect_word("a directive")?;
        match word {
            // LLVM ends its debug sections with a label.
            _ if labelled => self.expect_mark(b':')?,
            ".address_size" => {
                let line = self.line();
                let bits = self.expect_integer("the address size")?;
                if bits != 64 {
                    return Err(error(line, format!("addresses of {bits} bits are not supported")));
                }
            }
            ".version" => self.version()?,
            ".target" => self.target(module)?,
            ".loc" => drop(self.location()?),
            ".file" => self.file(module)?,
            ".section" => {
                while self.take_word().is_some() {}
                self.skip_braces()?;
            }
            ".visible" | ".weak" | ".common" => {}
            ".extern" => {
                let line = self.line();
                if let Some(space) = self.peek_word().and_then(space) {
                    self.at += 1;
                    self.module_variables(line, space, true, module)?;
                }
            }
            ".entry" => self.entry(module)?,
            ".func" => self.function(module)?,
            ".alias" => self.alias(module)?,
            ".pragma" => self.pragma()?,
            ".reg" | ".sreg" => {
                let registers = self.registers()?;
                module.registers.push(registers);
            }
            // PTX 1 declares textures so.
            ".tex" => {
                let first = module.variables.len();
                self.module_variables(line, Space::Global, false, module)?;
                module.variables[first..].iter_mut().for_each(|variable| variable.ty = "texref");
            }
            _ => match space(word) {
                Some(space) => self.module_variables(line, space, false, module)?,
                None => return Err(error(line, format!("the directive {word:?} is not supported"))),
            },
        }
        Ok(())
    }

    fn version(&mut self) -> Result<()> {
        match self.peek() {
            Some(Kind::F64(version)) => self.version = f64::from_bits(version),
            Some(Kind::Integer(version)) => self.version = version as f64,
            _ => return Err(self.unexpected("a version")),
        }
        self.at += 1;
        Ok(())
    }

    /// `.target sm_90a, texmode_independent`
    fn target(&mut self, module: &mut Module<'t>) -> Result<()> {
        for name in self.separated(|parser| parser.expect_word("a target"))? {
            module.demotes |= name == "map_f64_to_f32";
            if let Some(number) = name.strip_prefix("sm_") {
                module.architecture = number.trim_end_matches(char::is_alphabetic).parse().unwrap_or(0);
            }
        }
        Ok(())
    }

    fn file(&mut self, module: &mut Module<'t>) -> Result<()> {
        let number = self.expect_integer("the number of a file")?;
        if self.peek() != Some(Kind::Text) {
            return Err(self.unexpected("the name of a file"));
        }
        module.files.push((number as u32, lexer::meaning(self.slice(self.span()))));
        self.at += 1;
        // The file's time and size may follow.
        while self.take_mark(b',') {
            self.expect_integer("a time or a size")?;
        }
        Ok(())
    }

    fn entry(&mut self, module: &mut Module<'t>) -> Result<()> {
        let span = self.span();
        let name = self.expect_word("the name of an entry")?;
        let mut params = Vec::new();
        for formal in self.formals()? {
            if formal.is_register {
                return Err(error(span.line, format!("the entry {name:?} has parameters that are not `.param`")));
            }
            params.push(formal.variable);
        }
        let bounds = self.bounds()?;
        if self.peek() != Some(Kind::Mark(b'{')) {
            // It declares an entry that is defined later; PTX 1 and 2 need no semicolon.
            self.take_mark(b';');
            return Ok(());
        }
        // Entries had no list of parameters before PTX 1.4.
        self.declares_params = self.version < 1.4;
        let body = self.scope()?;
        self.declares_params = false;
        params.append(&mut self.params);
        if self.known.names.insert(name, Name::Entry).is_some() {
            return Err(error(span.line, format!("the name {name:?} is declared twice")));
        }
        module.entries.push(Entry { name, span, params, bounds, body });
        Ok(())
    }

    /// Parses the directives between an entry's parameters and its body. Only those that change
    /// neither results nor the launches that are possible are left out of the bounds.
    fn bounds(&mut self) -> Result<Bounds> {
        let mut bounds = Bounds::default();
        while let Some(word) = self.peek_word() {
            match word {
                ".maxntid" | ".reqntid" | ".reqnctapercluster" | ".maxclusterrank" => {
                    self.at += 1;
                    let extents = self.extents()?;
                    match word {
                        ".maxntid" => bounds.max_threads = Some(extents.iter().fold(1, |a, b| a.saturating_mul(*b))),
                        ".reqntid" => bounds.required = Some(extents),
                        ".maxclusterrank" => bounds.max_cluster = Some(extents[0]),
                        _ => bounds.cluster = Some(extents),
                    }
                }
                ".explicitcluster" => {
                    self.at += 1;
                    bounds.has_clusters = true;
                }
                ".blocksareclusters" => {
                    self.at += 1;
                    bounds.foreign = Some(".blocksareclusters");
                }
                _ if self.attribute()? => {}
                _ => break,
            }
        }
        Ok(bounds)
    }

    /// Parses one extent to three: `256, 1, 1`.
    fn extents(&mut self) -> Result<[u64; 3]> {
        let mut extents = [self.expect_integer("a number")?, 1, 1];
        for extent in &mut extents[1..] {
            if self.take_mark(b',') {
                *extent = self.expect_integer("a number")?;
            }
        }
        Ok(extents)
    }

    /// Parses the directives between a function's parameters and its body.
    pub(super) fn attributes(&mut self) -> Result<()> {
        while self.attribute()? {}
        Ok(())
    }

    /// Parses one directive of a function that changes no result, if there is one: it advises the
    /// compiler, or limits the choice of a launch that it is not for this crate to make.
    fn attribute(&mut self) -> Result<bool> {
        let Some(word) = self.peek_word() else { return Ok(false) };
        match word {
            ".noreturn" => self.at += 1,
            ".minnctapersm"
            | ".maxnctapersm"
            | ".maxnreg"
            | ".local_maxnreg"
            | ".abi_preserve"
            | ".abi_preserve_control" => {
                self.at += 1;
                self.extents()?;
            }
            ".attribute" => {
                self.at += 1;
                self.skip_parentheses()?;
            }
            ".pragma" => {
                self.at += 1;
                self.pragma()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Parses `.func (.param .b32 result) name (.param .b64 first) .noreturn { ... }`, or the same
    /// with a semicolon in place of the body.
    fn function(&mut self, module: &mut Module<'t>) -> Result<()> {
        let (span, signature) = self.signature()?;
        let name = self.slice(span);
        self.attributes()?;
        let body = if self.peek() == Some(Kind::Mark(b'{')) { Some(self.scope()?) } else { None };
        // A prototype of PTX 1 and 2 needs no semicolon.
        if body.is_none() {
            self.take_mark(b';');
        }
        let function = Function { name, span, signature, body };
        match self.known.names.get(name) {
            None => {
                self.known.names.insert(name, Name::Function(module.functions.len()));
                module.functions.push(function);
            }
            Some(&Name::Function(known)) if function.body.is_none() || module.functions[known].body.is_none() => {
                if function.body.is_some() {
                    module.functions[known] = function;
                }
            }
            Some(_) => return Err(error(span.line, format!("the name {name:?} is declared twice"))),
        }
        Ok(())
    }

    /// Parses `(results) name (params)`; the span is that of the name.
    pub(super) fn signature(&mut self) -> Result<(Span, Signature<'t>)> {
        let results = self.formals()?;
        let span = self.span();
        self.expect_word("the name of a function")?;
        let params = self.formals()?;
        Ok((span, Signature { results, params }))
    }

    /// `(.param .b32 a, .reg .u32 b)`, or nothing.
    fn formals(&mut self) -> Result<Vec<Formal<'t>>> {
        if !self.take_mark(b'(') || self.take_mark(b')') {
            return Ok(Vec::new());
        }
        let formals = self.separated(Self::formal)?;
        self.expect_mark(b')')?;
        Ok(formals)
    }

    fn formal(&mut self) -> Result<Formal<'t>> {
        let kind = self.expect_word("`.param`")?;
        if !matches!(kind, ".param" | ".reg") {
            self.at -= 1;
            return Err(self.unexpected("`.param`"));
        }
        let declared = self.declared()?;
        let is_register = kind == ".reg";
        let variable = self.declarator(Space::Param, &declared)?;
        if is_register && !variable.shape.1.is_empty() {
            return Err(error(self.line(), format!("the register {:?} is declared as an array", variable.name)));
        }
        Ok(Formal { variable, ty: declared.ty, is_register, lanes: declared.lanes })
    }

    /// `.alias name, of;`
    fn alias(&mut self, module: &mut Module<'t>) -> Result<()> {
        let name = self.expect_word("a name")?;
        self.expect_mark(b',')?;
        module.aliases.push((name, self.expect_word("the name of a function")?));
        self.expect_mark(b';')
    }

    fn module_variables(&mut self, line: u32, space: Space, external: bool, module: &mut Module<'t>) -> Result<()> {
        for variable in self.variables(space, external)? {
            match self.known.names.get(variable.name) {
                None => {
                    self.known.names.insert(variable.name, Name::Variable(module.variables.len()));
                    module.variables.push(variable);
                }
                // A definition replaces a declaration.
                Some(&Name::Variable(known)) if external || module.variables[known].external => {
                    if !external {
                        module.variables[known] = variable;
                    }
                }
                Some(_) => return Err(error(line, format!("the name {:?} is declared twice", variable.name))),
            }
        }
        Ok(())
    }

    /// Parses the declarations after a state space, including the semicolon.
    pub(super) fn variables(&mut self, space: Space, external: bool) -> Result<Vec<Variable<'t>>> {
        // PTX 1 and 2 number the banks of constant memory.
        if space == Space::Const && self.take_mark(b'[') {
            self.expect_integer("the number of a bank")?;
            self.expect_mark(b']')?;
        }
        let declared = self.declared()?;
        let variables = self.separated(|parser| {
            let mut variable = parser.declarator(space, &declared)?;
            variable.external = external;
            if is_opaque(variable.ty) && parser.take_mark(b'=') {
                parser.sampler(0)?;
            } else if parser.take_mark(b'=') {
                variable.initial = Some(parser.initial(0)?);
                // `x[] = {1, 2}` takes its length from its initialiser.
                if let (None, Some(Initial::List(list))) = (variable.bytes, &variable.initial) {
                    variable.shape.1[0] = list.len() as u64;
                    variable.bytes = Some(parser.array_bytes(&variable)?);
                }
            }
            Ok(variable)
        })?;
        self.expect_mark(b';')?;
        Ok(variables)
    }

    /// Parses `{ addr_mode_0 = wrap, filter_mode = linear }`, or a list of such, of a variable that
    /// nothing here can use.
    fn sampler(&mut self, depth: u32) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(error(self.line(), format!("lists nested more than {MAX_DEPTH} deep are not supported")));
        }
        self.expect_mark(b'{')?;
        self.separated(|parser| {
            if parser.peek() == Some(Kind::Mark(b'{')) {
                return parser.sampler(depth + 1);
            }
            parser.expect_word("a property of a sampler or texture")?;
            parser.expect_mark(b'=')?;
            if parser.take_word().is_none() {
                parser.expect_integer("a value")?;
            }
            Ok(())
        })?;
        self.expect_mark(b'}')
    }

    fn initial(&mut self, depth: u32) -> Result<Initial<'t>> {
        if depth > MAX_DEPTH {
            return Err(error(self.line(), format!("lists nested more than {MAX_DEPTH} deep are not supported")));
        }
        if self.take_mark(b'{') {
            let mut list = Vec::new();
            while !self.take_mark(b'}') {
                list.push(self.initial(depth + 1)?);
                if !self.take_mark(b',') {
                    self.expect_mark(b'}')?;
                    break;
                }
            }
            return Ok(Initial::List(list));
        }
        let value = self.scalar().ok_or_else(|| self.unexpected("a value"))?;
        let opened = self.take_mark(b'(');
        match value {
            // A global variable's address is its generic address.
            Operand::Name("generic", 0) if opened => self.address_of(u64::MAX),
            Operand::Integer(mask) if opened => self.address_of(mask),
            _ if opened => Err(self.unexpected("a value")),
            Operand::Name(name, offset) => Ok(Initial::Address { name, inner: None, offset, mask: u64::MAX }),
            number => Ok(Initial::Number(number)),
        }
    }

    /// Parses `name+8)`, `generic(name)+8)` or `generic(name))+8`, after the parenthesis that a
    /// mask or `generic` opened.
    fn address_of(&mut self, mask: u64) -> Result<Initial<'t>> {
        let name = self.expect_word("the name of a variable")?;
        let generic = name == "generic" && self.take_mark(b'(');
        let name = if generic { self.expect_word("the name of a variable")? } else { name };
        let mut offset = 0_i64;
        for _ in 0..=u32::from(generic) {
            let beyond = |parser: &Self| parser.unexpected("an offset");
            offset = offset.wrapping_add(self.offset().ok_or_else(|| beyond(self))?);
            self.expect_mark(b')')?;
        }
        offset = offset.wrapping_add(self.offset().ok_or_else(|| self.unexpected("an offset"))?);
        Ok(Initial::Address { name, inner: None, offset, mask })
    }

    /// Parses `.align 8 .v2 .b32` and the attributes that may stand between them.
    fn declared(&mut self) -> Result<Declared<'t>> {
        let (mut align, mut ty, mut bytes, mut lanes, mut managed) = (None, "", None, 1, false);
        while let Some(word) = self.peek_word().filter(|word| word.starts_with('.')) {
            let line = self.line();
            self.at += 1;
            match word {
                ".align" => {
                    let value = self.expect_integer("an alignment")?;
                    if !value.is_power_of_two() || value > 1 << 20 {
                        return Err(error(line, format!("an alignment of {value} is not supported")));
                    }
                    // After `.ptr` it is the alignment of the pointer's target.
                    align = align.or(bytes.is_none().then_some(value));
                }
                ".v2" => lanes = 2,
                ".v4" => lanes = 4,
                ".ptr" | ".global" | ".const" | ".shared" | ".local" => {}
                ".attribute" => {
                    let first = self.at;
                    self.expect_mark(b'(')?;
                    managed |= self.peek_word() == Some(".managed");
                    self.at = first;
                    self.skip_parentheses()?;
                }
                _ => {
                    ty = word.trim_start_matches('.');
                    // A handle of a texture, a surface or a sampler.
                    let known = if is_opaque(ty) { Some(8) } else { type_bytes(ty) };
                    bytes = Some(known.ok_or_else(|| error(line, format!("the type {word:?} is not supported")))?);
                }
            }
        }
        let element_bytes = bytes.ok_or_else(|| self.unexpected("a type"))? * u64::from(lanes);
        Ok(Declared { ty, lanes, align, element_bytes, managed })
    }

    /// `name[4][2]`
    fn declarator(&mut self, space: Space, declared: &Declared<'t>) -> Result<Variable<'t>> {
        let name = self.expect_word("the name of a variable")?;
        let (mut extents, mut sized) = (Vec::new(), true);
        while self.take_mark(b'[') {
            let extent = self.take_integer();
            sized &= extent.is_some();
            extents.push(extent.unwrap_or(0));
            self.expect_mark(b']')?;
        }
        let align = declared.align.unwrap_or(declared.element_bytes);
        let (ty, shape) = (declared.ty, (declared.element_bytes, extents));
        let managed = declared.managed;
        let mut variable =
            Variable { space, name, ty, align, bytes: None, shape, initial: None, external: false, managed };
        if sized {
            variable.bytes = Some(self.array_bytes(&variable)?);
        }
        Ok(variable)
    }

    /// The size in bytes of a variable of this shape.
    fn array_bytes(&self, Variable { name, shape: (element, extents), .. }: &Variable) -> Result<u64> {
        let times = |bytes: u64, extent: &u64| bytes.checked_mul(*extent).filter(|&bytes| bytes < 1 << 40);
        let bytes = extents.iter().try_fold(*element, times);
        bytes.ok_or_else(|| error(self.line(), format!("{name:?} is larger than any memory")))
    }
}

pub(super) fn space(word: &str) -> Option<Space> {
    Some(match word {
        ".global" => Space::Global,
        ".const" => Space::Const,
        ".shared" => Space::Shared,
        ".local" => Space::Local,
        ".param" => Space::Param,
        _ => return None,
    })
}

/// Returns whether a type is that of textures, surfaces or samplers.
pub(crate) fn is_opaque(name: &str) -> bool {
    matches!(name, "texref" | "surfref" | "samplerref")
}

/// Bytes of a fundamental type.
pub(crate) fn type_bytes(name: &str) -> Option<u64> {
    Some(match name {
        "b8" | "u8" | "s8" => 1,
        "b16" | "u16" | "s16" | "f16" | "bf16" => 2,
        "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16x2" => 4,
        "b64" | "u64" | "s64" | "f64" => 8,
        "b128" => 16,
        _ => return None,
    })
}
