//! Tokens to tree, by recursive descent.
//!
//! Only the frame must be right: directives, declarations, braces, semicolons. A statement in a body whose operands have a
//! form not known here is kept as an instruction without operands, so that one exotic instruction spoils one kernel and
//! not the module.

use std::collections::HashSet;

use super::ast::{Bounds, Entry, Guard, Instruction, Module, Operand, RegisterName, Space, Span, Statement, Variable};
use super::declarations::Declarations;
use super::lexer::{self, Kind, Token};
use crate::error::{Error, ErrorKind, Result};
use crate::interp::MAX_TEXT_BYTES;
use crate::interp::code::beginning;

/// Scopes within scopes, beyond which the text is not taken for PTX: the parser calls itself for each.
const MAX_DEPTH: u32 = 64;

/// Parses a module.
pub(crate) fn parse(text: &str) -> Result<Module<'_>> {
    if text.len() > MAX_TEXT_BYTES {
        let (bytes, most) = (text.len(), MAX_TEXT_BYTES >> 20);
        return Err(error(1, format!("a module of {bytes} bytes; those of more than {most} MiB are not supported")));
    }
    let mut parser = Parser { text, tokens: lexer::tokens(text), entries: HashSet::new(), at: 0, depth: 0 };
    let mut module = Module::default();
    while !parser.at_end() {
        parser.top_level(&mut module)?;
    }
    Ok(module)
}

fn error(line: u32, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::UnsupportedPtx, format!("PTX line {line}: {what}"))
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    entries: HashSet<&'t str>,
    at: usize,
    depth: u32,
}

/// What precedes the name in a declaration.
struct Declared {
    align: Option<u64>,
    element_bytes: u64,
}

impl<'t> Parser<'t> {
    fn at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn peek(&self) -> Option<Kind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn span(&self) -> Span {
        let last = || self.tokens.last().map_or(Span { line: 1, ..Span::default() }, |token| token.span);
        self.tokens.get(self.at).map_or_else(last, |token| token.span)
    }

    fn line(&self) -> u32 {
        self.span().line
    }

    fn slice(&self, span: Span) -> &'t str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The next token's text, if it is a word.
    fn peek_word(&self) -> Option<&'t str> {
        (self.peek() == Some(Kind::Word)).then(|| self.slice(self.span()))
    }

    fn take_word(&mut self) -> Option<&'t str> {
        let word = self.peek_word()?;
        self.at += 1;
        Some(word)
    }

    fn take_mark(&mut self, mark: u8) -> bool {
        let found = self.peek() == Some(Kind::Mark(mark));
        self.at += usize::from(found);
        found
    }

    fn take_integer(&mut self) -> Option<u64> {
        let Some(Kind::Integer(value)) = self.peek() else { return None };
        self.at += 1;
        Some(value)
    }

    fn expect_word(&mut self, what: &str) -> Result<&'t str> {
        self.take_word().ok_or_else(|| self.unexpected(what))
    }

    fn expect_mark(&mut self, mark: u8) -> Result<()> {
        if self.take_mark(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{}`", mark as char))) }
    }

    fn expect_integer(&mut self, what: &str) -> Result<u64> {
        self.take_integer().ok_or_else(|| self.unexpected(what))
    }

    fn unexpected(&self, wanted: &str) -> Error {
        if self.at_end() {
            return error(self.line(), format!("the text ends where {wanted} was expected; is the file whole?"));
        }
        error(self.line(), format!("found `{}` where {wanted} was expected", beginning(self.slice(self.span()))))
    }

    /// Over words and numbers between commas: PTX has no lines that would end a directive.
    fn skip_list(&mut self) {
        self.at += usize::from(!self.at_end());
        while self.take_mark(b',') {
            self.at += usize::from(!self.at_end());
        }
    }

    /// Up to and over the next semicolon. A brace that closes what was not opened inside ends no statement.
    fn skip_statement(&mut self) -> Result<()> {
        let mut open = 0_u32;
        while open > 0 || !self.take_mark(b';') {
            match self.peek() {
                Some(Kind::Mark(b'{')) => open += 1,
                Some(Kind::Mark(b'}')) if open > 0 => open -= 1,
                Some(Kind::Mark(b'}')) | None => return Err(self.unexpected("`;`")),
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Over a `{ ... }`, whatever is inside.
    fn skip_braces(&mut self) -> Result<()> {
        self.expect_mark(b'{')?;
        let mut open = 1_u32;
        while open > 0 {
            match self.peek() {
                Some(Kind::Mark(b'{')) => open += 1,
                Some(Kind::Mark(b'}')) => open -= 1,
                None => return Err(self.unexpected("`}`")),
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    fn top_level(&mut self, module: &mut Module<'t>) -> Result<()> {
        let Some(word) = self.peek_word() else { return Err(self.unexpected("a directive")) };
        match word {
            ".address_size" => {
                self.at += 1;
                let line = self.line();
                let bits = self.expect_integer("the address size")?;
                if bits != 64 {
                    Err(error(line, format!("addresses of {bits} bits are not supported")))
                } else {
                    Ok(())
                }
            }
            ".version" | ".target" => {
                self.at += 1;
                self.skip_list();
                Ok(())
            }
            ".loc" => self.location().map(|_| ()),
            ".file" => self.file(module),
            ".section" => {
                self.at += 1;
                self.take_word();
                self.skip_braces()
            }
            ".visible" | ".weak" | ".extern" | ".common" => {
                self.at += 1;
                Ok(())
            }
            ".entry" => {
                let entry = self.entry()?;
                if !self.entries.insert(entry.name) {
                    return Err(error(entry.span.line, format!("the entry {:?} is there twice", entry.name)));
                }
                module.entries.push(entry);
                Ok(())
            }
            ".func" => self.skip_function(),
            ".alias" | ".pragma" => self.skip_statement(),
            _ => match space(word) {
                Some(space) => {
                    self.at += 1;
                    self.variables(space, &mut module.variables)
                }
                None => Err(error(self.line(), format!("the directive {word:?} is not supported"))),
            },
        }
    }

    fn file(&mut self, module: &mut Module<'t>) -> Result<()> {
        self.at += 1;
        let number = self.expect_integer("the number of a file")?;
        if self.peek() != Some(Kind::Text) {
            return Err(self.unexpected("the name of a file"));
        }
        module.files.push((number as u32, self.slice(self.span()).trim_matches('"')));
        // Its time and size may follow.
        self.skip_list();
        Ok(())
    }

    /// `.loc 1 44 5, function_name $L__info_string0+8, inlined_at 1 40 3`
    fn location(&mut self) -> Result<Statement<'t>> {
        self.at += 1;
        let [file, line] = self.place()?;
        while self.take_mark(b',') {
            match self.expect_word("`function_name` or `inlined_at`")? {
                "function_name" => {
                    self.expect_word("a label")?;
                    if self.take_mark(b'+') {
                        self.expect_integer("an offset")?;
                    }
                }
                "inlined_at" => {
                    self.place()?;
                }
                _ => {
                    self.at -= 1;
                    return Err(self.unexpected("`function_name` or `inlined_at`"));
                }
            }
        }
        Ok(Statement::Location { file, line })
    }

    /// File and line; a column follows.
    fn place(&mut self) -> Result<[u32; 2]> {
        let file = self.expect_integer("the number of a file")?;
        let line = self.expect_integer("a line of a file")?;
        self.expect_integer("a column of a line")?;
        Ok([file as u32, line as u32])
    }

    fn entry(&mut self) -> Result<Entry<'t>> {
        self.at += 1;
        let span = self.span();
        let name = self.expect_word("the name of an entry")?;
        let mut params = Vec::new();
        if self.take_mark(b'(') && !self.take_mark(b')') {
            loop {
                if self.expect_word("`.param`")? != ".param" {
                    self.at -= 1;
                    return Err(self.unexpected("`.param`"));
                }
                let declared = self.declared()?;
                params.push(self.declarator(Space::Param, &declared)?);
                if !self.take_mark(b',') {
                    break;
                }
            }
            self.expect_mark(b')')?;
        }
        let bounds = self.bounds()?;
        let body = self.scope()?;
        Ok(Entry { name, span, params, bounds, body })
    }

    /// `.maxntid 256, 1, 1`, `.reqntid 16, 16`, and hints that nothing depends on: `.minnctapersm 2`.
    fn bounds(&mut self) -> Result<Bounds> {
        let mut bounds = Bounds::default();
        while let Some(word) = self.take_word() {
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

    /// A function that is no entry: a call to it is refused where it stands.
    fn skip_function(&mut self) -> Result<()> {
        while !matches!(self.peek(), None | Some(Kind::Mark(b'{' | b';'))) {
            self.at += 1;
        }
        if self.take_mark(b';') { Ok(()) } else { self.skip_braces() }
    }

    /// `{ statements }`
    fn scope(&mut self) -> Result<Vec<Statement<'t>>> {
        self.expect_mark(b'{')?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(error(self.line(), format!("scopes nested more than {MAX_DEPTH} deep are not supported")));
        }
        let mut statements = Vec::new();
        let mut declared = Declarations::default();
        while !self.take_mark(b'}') {
            let (line, known) = (self.line(), statements.len());
            self.statement(&mut statements)?;
            for statement in &statements[known..] {
                let twice = |name| error(line, format!("the name {name:?} is declared twice in one scope"));
                declared.add(statement).map_err(twice)?;
            }
        }
        self.depth -= 1;
        Ok(statements)
    }

    fn statement(&mut self, out: &mut Vec<Statement<'t>>) -> Result<()> {
        match self.peek() {
            Some(Kind::Mark(b'{')) => out.push(Statement::Scope(self.scope()?)),
            Some(Kind::Mark(b';')) => self.at += 1,
            Some(Kind::Mark(b'@')) => {
                let start = self.span();
                self.at += 1;
                let negated = self.take_mark(b'!');
                let name = self.expect_word("a predicate")?;
                out.push(self.instruction(start, Some(Guard { name, negated }))?);
            }
            Some(Kind::Word) => return self.worded_statement(out),
            _ => return Err(self.unexpected("a statement or `}`")),
        }
        Ok(())
    }

    fn worded_statement(&mut self, out: &mut Vec<Statement<'t>>) -> Result<()> {
        let word = self.peek_word().unwrap_or_default();
        if self.tokens.get(self.at + 1).is_some_and(|next| next.kind == Kind::Mark(b':')) {
            self.at += 2;
            out.push(Statement::Label(word));
            return Ok(());
        }
        match word {
            ".reg" => out.push(self.registers()?),
            ".loc" => out.push(self.location()?),
            ".pragma" => self.skip_statement()?,
            _ => match space(word) {
                Some(space) => {
                    self.at += 1;
                    let mut variables = Vec::new();
                    self.variables(space, &mut variables)?;
                    out.extend(variables.into_iter().map(Statement::Variable));
                }
                // `.extern .shared` and the like: the variable follows.
                None if matches!(word, ".extern" | ".visible" | ".weak") => self.at += 1,
                None => out.push(self.instruction(self.span(), None)?),
            },
        }
        Ok(())
    }

    fn registers(&mut self) -> Result<Statement<'t>> {
        self.at += 1;
        let kind = self.expect_word("a register type")?.trim_start_matches('.');
        let mut names = Vec::new();
        loop {
            let name = self.expect_word("a register name")?;
            let mut count = None;
            if self.take_mark(b'<') {
                count = Some(self.expect_integer("a number of registers")?);
                self.expect_mark(b'>')?;
            }
            names.push(RegisterName { name, count });
            if !self.take_mark(b',') {
                break;
            }
        }
        self.expect_mark(b';')?;
        Ok(Statement::Registers { kind, names })
    }

    /// The declarations after a state space, up to and over the semicolon.
    fn variables(&mut self, space: Space, out: &mut Vec<Variable<'t>>) -> Result<()> {
        let declared = self.declared()?;
        loop {
            out.push(self.declarator(space, &declared)?);
            if !self.take_mark(b',') {
                break;
            }
        }
        // An initialiser: those variables are refused where they are used.
        self.skip_statement()
    }

    /// `.align 8 .v2 .b32` and the attributes that may stand between.
    fn declared(&mut self) -> Result<Declared> {
        let (mut align, mut bytes, mut lanes) = (None, None, 1);
        while let Some(word) = self.peek_word().filter(|word| word.starts_with('.')) {
            let line = self.line();
            self.at += 1;
            match word {
                ".align" => {
                    let value = self.expect_integer("an alignment")?;
                    if !value.is_power_of_two() || value > 1 << 20 {
                        return Err(error(line, format!("an alignment of {value} is not supported")));
                    }
                    // After `.ptr` it is that of what the pointer points to.
                    align = align.or(bytes.is_none().then_some(value));
                }
                ".v2" => lanes = 2,
                ".v4" => lanes = 4,
                ".ptr" | ".global" | ".const" | ".shared" | ".local" => {}
                ".attribute" => self.skip_parentheses()?,
                _ => {
                    let known = type_bytes(word.trim_start_matches('.'));
                    bytes = Some(known.ok_or_else(|| error(line, format!("the type {word:?} is not supported")))?);
                }
            }
        }
        let element_bytes = bytes.ok_or_else(|| self.unexpected("a type"))? * lanes;
        Ok(Declared { align, element_bytes })
    }

    fn skip_parentheses(&mut self) -> Result<()> {
        self.expect_mark(b'(')?;
        while !self.take_mark(b')') {
            if self.at_end() {
                return Err(self.unexpected("`)`"));
            }
            self.at += 1;
        }
        Ok(())
    }

    /// `name[4][2]`
    fn declarator(&mut self, space: Space, declared: &Declared) -> Result<Variable<'t>> {
        let line = self.line();
        let name = self.expect_word("the name of a variable")?;
        let mut bytes = Some(declared.element_bytes);
        while self.take_mark(b'[') {
            let extent = self.take_integer();
            self.expect_mark(b']')?;
            bytes = match (bytes, extent) {
                (Some(bytes), Some(extent)) => {
                    let product = bytes.checked_mul(extent).filter(|&product| product < 1 << 40);
                    Some(product.ok_or_else(|| error(line, format!("{name:?} is larger than any memory")))?)
                }
                _ => None,
            };
        }
        let align = declared.align.unwrap_or(declared.element_bytes);
        Ok(Variable { space, name, align, bytes })
    }

    fn instruction(&mut self, start: Span, guard: Option<Guard<'t>>) -> Result<Statement<'t>> {
        let opcode = self.expect_word("an instruction")?;
        let first = self.at;
        let mut operands = self.operands();
        if operands.is_none() || self.peek() != Some(Kind::Mark(b';')) {
            operands = None;
            self.at = first;
        }
        self.skip_statement()?;
        // The token before the semicolon; there is at least the opcode.
        let end = self.tokens[self.at - 2].span.end;
        Ok(Statement::Instruction(Instruction { guard, opcode, operands, span: Span { end, ..start } }))
    }

    fn operands(&mut self) -> Option<Vec<Operand<'t>>> {
        let mut operands = Vec::new();
        if self.peek() == Some(Kind::Mark(b';')) {
            return Some(operands);
        }
        loop {
            operands.push(match self.peek()? {
                Kind::Mark(b'[') => self.address()?,
                Kind::Mark(b'{') => self.vector()?,
                _ => self.scalar()?,
            });
            if !self.take_mark(b',') {
                return Some(operands);
            }
        }
    }

    fn scalar(&mut self) -> Option<Operand<'t>> {
        if self.take_mark(b'!') {
            return self.take_word().map(Operand::Negated);
        }
        if let Some(word) = self.take_word() {
            if self.take_mark(b'|') {
                return Some(Operand::Pair(word, self.take_word()?));
            }
            return Some(Operand::Name(word, self.offset()?));
        }
        let negative = self.take_mark(b'-');
        let operand = match self.peek()? {
            Kind::Integer(value) => Operand::Integer(if negative { value.wrapping_neg() } else { value }),
            Kind::F32(bits) => Operand::F32(bits ^ u32::from(negative) << 31),
            Kind::F64(bits) => Operand::F64(bits ^ u64::from(negative) << 63),
            _ => return None,
        };
        self.at += 1;
        Some(operand)
    }

    fn vector(&mut self) -> Option<Operand<'t>> {
        self.at += 1;
        let mut elements = Vec::new();
        loop {
            elements.push(self.scalar()?);
            if !self.take_mark(b',') {
                break;
            }
        }
        self.take_mark(b'}').then_some(Operand::Vector(elements))
    }

    fn address(&mut self) -> Option<Operand<'t>> {
        self.at += 1;
        let operand = match self.take_word() {
            Some(base) => Operand::Address { base: Some(base), offset: self.offset()? },
            None => Operand::Address { base: None, offset: self.take_integer()? as i64 },
        };
        self.take_mark(b']').then_some(operand)
    }

    /// `+4`, `-4`, `+-4` or nothing.
    fn offset(&mut self) -> Option<i64> {
        let plus = self.take_mark(b'+');
        let minus = self.take_mark(b'-');
        if !plus && !minus {
            return Some(0);
        }
        let value = self.take_integer()? as i64;
        Some(if minus { value.wrapping_neg() } else { value })
    }
}

fn space(word: &str) -> Option<Space> {
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
fn type_bytes(name: &str) -> Option<u64> {
    Some(match name {
        "b8" | "u8" | "s8" => 1,
        "b16" | "u16" | "s16" | "f16" | "bf16" => 2,
        "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16x2" => 4,
        "b64" | "u64" | "s64" | "f64" => 8,
        "b128" => 16,
        _ => return None,
    })
}
