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
    align: Option<u64>,
    element_bytes: u64,
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
            ".version" => self.skip_list(),
            ".target" => self.target(module)?,
            ".loc" => drop(self.location()?),
            ".file" => self.file(module)?,
            ".section" => {
                self.take_word();
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
            ".pragma" => self.skip_statement()?,
            _ => match space(word) {
                Some(space) => self.module_variables(line, space, false, module)?,
                None => return Err(error(line, format!("the directive {word:?} is not supported"))),
            },
        }
        Ok(())
    }

    /// `.target sm_90a, texmode_independent`
    fn target(&mut self, module: &mut Module<'t>) -> Result<()> {
        for name in self.separated(|parser| parser.expect_word("a target"))? {
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
        // The file's time and size may follow.
        self.skip_list();
        Ok(())
    }

    fn entry(&mut self, module: &mut Module<'t>) -> Result<()> {
        let span = self.span();
        let name = self.expect_word("the name of an entry")?;
        let mut params = Vec::new();
        for formal in self.formals()? {
            if formal.register.is_some() {
                return Err(error(span.line, format!("the entry {name:?} has parameters that are not `.param`")));
            }
            params.push(formal.variable);
        }
        let bounds = self.bounds()?;
        if self.take_mark(b';') {
            // It declares an entry that is defined later.
            return Ok(());
        }
        let body = self.scope()?;
        if self.known.names.insert(name, Name::Entry).is_some() {
            return Err(error(span.line, format!("the name {name:?} is declared twice")));
        }
        module.entries.push(Entry { name, span, params, bounds, body });
        Ok(())
    }

    /// Parses `.maxntid 256, 1, 1`, `.reqntid 16, 16`, and hints without effect here, such as
    /// `.minnctapersm 2`.
    fn bounds(&mut self) -> Result<Bounds> {
        let mut bounds = Bounds::default();
        while let Some(word) = self.take_word() {
            match word {
                ".pragma" => self.skip_statement()?,
                _ if self.peek() == Some(Kind::Mark(b'(')) => self.skip_parentheses()?,
                _ => {}
            }
            let mut extents = [1; 3];
            let mut given = 0;
            while given < 3 && (given == 0 || self.take_mark(b',')) {
                let Some(extent) = self.take_integer() else { break };
                extents[given] = extent;
                given += 1;
            }
            match word {
                ".maxntid" if given > 0 => {
                    bounds.max_threads = Some(extents.iter().fold(1, |a, b| a.saturating_mul(*b)))
                }
                ".reqntid" if given > 0 => bounds.required = Some(extents),
                ".maxntid" | ".reqntid" => return Err(self.unexpected("a number of threads")),
                _ => {}
            }
        }
        Ok(bounds)
    }

    /// Parses `.func (.param .b32 result) name (.param .b64 first) .noreturn { ... }`, or the same
    /// with a semicolon in place of the body.
    fn function(&mut self, module: &mut Module<'t>) -> Result<()> {
        let (span, signature) = self.signature()?;
        let name = self.slice(span);
        // `.noreturn`, `.attribute(.unified(0x1, 0x2))` and `.abi_preserve 4` have no effect here.
        while !matches!(self.peek(), None | Some(Kind::Mark(b'{' | b';'))) {
            self.at += 1;
        }
        let body = if self.take_mark(b';') { None } else { Some(self.scope()?) };
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
        let register = (kind == ".reg").then(|| self.peek_word().unwrap_or_default().trim_start_matches('.'));
        let declared = self.declared()?;
        let variable = self.declarator(Space::Param, &declared)?;
        if register.is_some() && !variable.shape.1.is_empty() {
            return Err(error(self.line(), format!("the register {:?} is declared as an array", variable.name)));
        }
        Ok(Formal { variable, register })
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
        let declared = self.declared()?;
        let variables = self.separated(|parser| {
            let mut variable = parser.declarator(space, &declared)?;
            variable.external = external;
            if parser.take_mark(b'=') {
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
            Operand::Name(name, offset) => Ok(Initial::Address { name, offset, mask: u64::MAX }),
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
        Ok(Initial::Address { name, offset, mask })
    }

    /// Parses `.align 8 .v2 .b32` and the attributes that may stand between them.
    fn declared(&mut self) -> Result<Declared<'t>> {
        let (mut align, mut ty, mut bytes, mut lanes) = (None, "", None, 1);
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
                ".attribute" => self.skip_parentheses()?,
                _ => {
                    ty = word.trim_start_matches('.');
                    let known = type_bytes(ty);
                    bytes = Some(known.ok_or_else(|| error(line, format!("the type {word:?} is not supported")))?);
                }
            }
        }
        let element_bytes = bytes.ok_or_else(|| self.unexpected("a type"))? * lanes;
        Ok(Declared { ty, align, element_bytes })
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
        let mut variable = Variable { space, name, ty, align, bytes: None, shape, initial: None, external: false };
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
