//! Turns tokens into a tree, by recursive descent.
//!
//! Only the frame must be correct: directives, declarations, braces, semicolons. A statement in a
//! body whose operands have an unknown form becomes an instruction without operands. One exotic
//! instruction therefore makes one kernel unusable, not the whole module.

use std::borrow::Cow;
use std::collections::HashMap;

use super::ast::{Guard, Initial, Instruction, Module, Operand, RegisterName, Space, Span, Statement, Variable};
use super::declarations::Declarations;
use super::lexer::{self, Kind, Token};
use super::module::{Known, space, type_bytes};
use super::{MAX_TEXT_BYTES, beginning};
use crate::error::{Error, ErrorKind, Result};

/// The deepest nesting of scopes that is accepted; the parser calls itself for each.
pub(super) const MAX_DEPTH: u32 = 64;

/// The most statements of a module. The tree takes some hundred bytes for each statement, far more
/// than the text of the shortest ones.
const MAX_STATEMENTS: usize = 1 << 20;

/// Parses a module.
pub(crate) fn parse(text: &str) -> Result<Module<'_>> {
    if text.len() > MAX_TEXT_BYTES {
        let (bytes, most) = (text.len(), MAX_TEXT_BYTES >> 20);
        return Err(error(1, format!("the module has {bytes} bytes; at most {most} MiB are supported")));
    }
    let mut parser = Parser {
        text,
        tokens: lexer::tokens(text),
        known: Known::default(),
        inner: Vec::new(),
        scopes: Vec::new(),
        params: Vec::new(),
        declares_params: false,
        version: f64::INFINITY,
        at: 0,
        statements: 0,
    };
    let mut module = Module::default();
    while !parser.at_end() {
        parser.top_level(&mut module)?;
    }
    module.named = module.variables.len();
    module.variables.append(&mut parser.inner);
    Ok(module)
}

pub(super) fn error(line: u32, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::UnsupportedPtx, format!("PTX line {line}: {what}"))
}

pub(super) struct Parser<'t> {
    text: &'t str,
    pub(super) tokens: Vec<Token>,
    /// The names of the module so far.
    pub(super) known: Known<'t>,
    /// Variables of global and constant memory that bodies declare.
    inner: Vec<Variable<'t>>,
    /// For each open scope, the names of those that it declares, and their numbers.
    scopes: Vec<HashMap<&'t str, usize>>,
    /// Parameters that the body of the entry declares.
    pub(super) params: Vec<Variable<'t>>,
    /// True in the body of an entry where `.param` declares parameters of it.
    pub(super) declares_params: bool,
    /// The number after `.version`.
    pub(super) version: f64,
    pub(super) at: usize,
    statements: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn peek(&self) -> Option<Kind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    pub(super) fn span(&self) -> Span {
        let last = || self.tokens.last().map_or(Span { line: 1, ..Span::default() }, |token| token.span);
        self.tokens.get(self.at).map_or_else(last, |token| token.span)
    }

    pub(super) fn line(&self) -> u32 {
        self.span().line
    }

    pub(super) fn slice(&self, span: Span) -> &'t str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The next token's text, if it is a word.
    pub(super) fn peek_word(&self) -> Option<&'t str> {
        (self.peek() == Some(Kind::Word)).then(|| self.slice(self.span()))
    }

    /// Returns whether a colon follows the next token.
    pub(super) fn is_labelled(&self) -> bool {
        self.tokens.get(self.at + 1).is_some_and(|next| next.kind == Kind::Mark(b':'))
    }

    pub(super) fn take_word(&mut self) -> Option<&'t str> {
        let word = self.peek_word()?;
        self.at += 1;
        Some(word)
    }

    pub(super) fn take_mark(&mut self, mark: u8) -> bool {
        let found = self.peek() == Some(Kind::Mark(mark));
        self.at += usize::from(found);
        found
    }

    pub(super) fn take_integer(&mut self) -> Option<u64> {
        let Some(Kind::Integer(value) | Kind::Unsigned(value)) = self.peek() else { return None };
        self.at += 1;
        Some(value)
    }

    pub(super) fn expect_word(&mut self, what: &str) -> Result<&'t str> {
        self.take_word().ok_or_else(|| self.unexpected(what))
    }

    pub(super) fn expect_mark(&mut self, mark: u8) -> Result<()> {
        if self.take_mark(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{}`", mark as char))) }
    }

    pub(super) fn expect_integer(&mut self, what: &str) -> Result<u64> {
        self.take_integer().ok_or_else(|| self.unexpected(what))
    }

    pub(super) fn unexpected(&self, wanted: &str) -> Error {
        if self.at_end() {
            return error(self.line(), format!("the text ends where {wanted} was expected; is the file complete?"));
        }
        error(self.line(), format!("found `{}` where {wanted} was expected", beginning(self.slice(self.span()))))
    }

    /// Parses one item or more, with commas between them.
    pub(super) fn separated<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.take_mark(b',') {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Skips to the next semicolon, inclusive. A closing brace without its opening brace is an
    /// error.
    pub(super) fn skip_statement(&mut self) -> Result<()> {
        self.skip_past(b';')
    }

    /// Skips a `{ ... }` with any content.
    pub(super) fn skip_braces(&mut self) -> Result<()> {
        self.expect_mark(b'{')?;
        self.skip_past(b'}')
    }

    /// Skips a `( ... )`, which may hold others.
    pub(super) fn skip_parentheses(&mut self) -> Result<()> {
        self.expect_mark(b'(')?;
        let mut open = 1_u32;
        while open > 0 {
            match self.peek() {
                Some(Kind::Mark(b'(')) => open += 1,
                Some(Kind::Mark(b')')) => open -= 1,
                Some(Kind::Mark(b'{' | b'}' | b';')) | None => return self.expect_mark(b')'),
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Skips past the next `mark` that is not within braces.
    fn skip_past(&mut self, mark: u8) -> Result<()> {
        let mut open = 0_u32;
        while open > 0 || !self.take_mark(mark) {
            match self.peek() {
                Some(Kind::Mark(b'{')) => open += 1,
                Some(Kind::Mark(b'}')) if open > 0 => open -= 1,
                Some(Kind::Mark(b'}')) | None => return self.expect_mark(mark),
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// `.loc 1 44 5, function_name $L__info_string0+8, inlined_at 1 40 3`
    pub(super) fn location(&mut self) -> Result<Statement<'t>> {
        let [file, line] = self.place()?;
        let mut inlined_at = None;
        while self.take_mark(b',') {
            match self.expect_word("`function_name` or `inlined_at`")? {
                "function_name" => {
                    self.expect_word("a label")?;
                    if self.take_mark(b'+') {
                        self.expect_integer("an offset")?;
                    }
                }
                "inlined_at" => inlined_at = Some(self.place()?).map(|[file, line]| (file, line)),
                _ => {
                    self.at -= 1;
                    return Err(self.unexpected("`function_name` or `inlined_at`"));
                }
            }
        }
        Ok(Statement::Location { file, line, inlined_at })
    }

    /// Parses file and line, and skips the column after them.
    fn place(&mut self) -> Result<[u32; 2]> {
        let file = self.expect_integer("the number of a file")?;
        let line = self.expect_integer("a line of a file")?;
        self.expect_integer("a column of a line")?;
        Ok([file as u32, line as u32])
    }

    /// `{ statements }`
    pub(super) fn scope(&mut self) -> Result<Vec<Statement<'t>>> {
        self.expect_mark(b'{')?;
        self.scopes.push(HashMap::new());
        if self.scopes.len() > MAX_DEPTH as usize {
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
        self.scopes.pop();
        Ok(statements)
    }

    fn statement(&mut self, out: &mut Vec<Statement<'t>>) -> Result<()> {
        self.statements += 1;
        if self.statements > MAX_STATEMENTS {
            let context = format!("modules of more than {MAX_STATEMENTS} statements are not supported");
            return Err(error(self.line(), context));
        }
        match self.peek() {
            Some(Kind::Mark(b'{')) => out.push(Statement::Scope(self.scope()?)),
            Some(Kind::Mark(b';')) => self.at += 1,
            Some(Kind::Mark(b'@')) => {
                let start = self.span();
                self.at += 1;
                let negated = self.take_mark(b'!');
                let name = self.expect_word("a predicate")?;
                let opcode = self.expect_word("an instruction")?;
                out.push(self.instruction(opcode, start, Some(Guard { name, negated }))?);
            }
            Some(Kind::Word) => return self.worded_statement(out),
            _ => return Err(self.unexpected("a statement or `}`")),
        }
        Ok(())
    }

    fn worded_statement(&mut self, out: &mut Vec<Statement<'t>>) -> Result<()> {
        let (start, labelled) = (self.span(), self.is_labelled());
        let word = self.expect_word("a statement")?;
        match word {
            _ if labelled => {
                self.at += 1;
                out.push(self.labelled(word)?);
            }
            ".reg" => out.push(self.registers()?),
            ".loc" => out.push(self.location()?),
            ".pragma" => self.pragma()?,
            // The variable comes after it.
            ".extern" | ".visible" | ".weak" => {}
            _ => match space(word) {
                Some(Space::Global | Space::Const) => self.inner_variables(word, out)?,
                Some(Space::Param) if self.declares_params => {
                    let mut params = self.variables(Space::Param, false)?;
                    self.params.append(&mut params);
                }
                Some(space) => out.extend(self.variables(space, false)?.into_iter().map(Statement::Variable)),
                None => out.push(self.instruction(word, start, None)?),
            },
        }
        Ok(())
    }

    /// Parses variables of global or constant memory in a body. They lie beside the module's, but
    /// only their scope knows their names.
    fn inner_variables(&mut self, word: &str, out: &mut Vec<Statement<'t>>) -> Result<()> {
        let space = space(word).unwrap_or(Space::Global);
        for mut variable in self.variables(space, false)? {
            out.push(Statement::Inner(variable.name, self.inner.len()));
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(variable.name, self.inner.len());
            }
            if let Some(initial) = &mut variable.initial {
                self.find_inner(initial);
            }
            self.inner.push(variable);
        }
        Ok(())
    }

    /// Finds the variables of bodies that an initial value has the addresses of. It sees only those
    /// declared so far, the variable itself included.
    fn find_inner(&self, initial: &mut Initial<'t>) {
        match initial {
            Initial::Number(_) => {}
            Initial::Address { name, inner, .. } => {
                *inner = self.scopes.iter().rev().find_map(|scope| scope.get(name).copied());
            }
            Initial::List(list) => list.iter_mut().for_each(|element| self.find_inner(element)),
        }
    }

    /// Parses `"nounroll", "used_bytes_mask 3";`, advice for compilers that changes no result.
    pub(super) fn pragma(&mut self) -> Result<()> {
        self.separated(|parser| match parser.peek() {
            Some(Kind::Text) => {
                parser.at += 1;
                Ok(())
            }
            _ => Err(parser.unexpected("a string")),
        })?;
        self.expect_mark(b';')
    }

    /// Parses the statement after a name and a colon; usually a label.
    fn labelled(&mut self, name: &'t str) -> Result<Statement<'t>> {
        match self.peek_word() {
            Some(".callprototype") => {
                self.at += 1;
                let (_, signature) = self.signature()?;
                self.attributes()?;
                self.expect_mark(b';')?;
                Ok(Statement::Prototype(name, signature))
            }
            Some(".branchtargets" | ".calltargets") => {
                self.at += 1;
                let targets = self.separated(|parser| parser.expect_word("a target"))?;
                self.expect_mark(b';')?;
                Ok(Statement::Targets(name, targets))
            }
            _ => Ok(Statement::Label(name)),
        }
    }

    pub(super) fn registers(&mut self) -> Result<Statement<'t>> {
        let lanes = match self.peek_word() {
            Some(".v2") => 2,
            Some(".v4") => 4,
            _ => 1,
        };
        self.at += usize::from(lanes > 1);
        let line = self.line();
        let kind = self.expect_word("a register type")?.trim_start_matches('.');
        if lanes > 1 && type_bytes(kind).is_none_or(|bytes| bytes * u64::from(lanes) > 16) {
            let what = format!("a vector of registers has at most 16 bytes of numbers, unlike `.v{lanes} .{kind}`");
            return Err(error(line, what));
        }
        let names = self.separated(|parser| {
            let name = parser.expect_word("a register name")?;
            let mut count = None;
            if parser.take_mark(b'<') {
                count = Some(parser.expect_integer("a number of registers")?);
                parser.expect_mark(b'>')?;
            }
            Ok(RegisterName { name, count })
        })?;
        self.expect_mark(b';')?;
        Ok(Statement::Registers { kind, lanes, names })
    }

    fn instruction(&mut self, opcode: &'t str, start: Span, guard: Option<Guard<'t>>) -> Result<Statement<'t>> {
        let opcode = self.opcode(opcode);
        let first = self.at;
        let mut operands = self.operands(opcode.starts_with("call"));
        if operands.is_none() || self.peek() != Some(Kind::Mark(b';')) {
            operands = None;
            self.at = first;
        }
        self.skip_statement()?;
        // The token before the semicolon; at least the opcode is there.
        let end = self.tokens[self.at - 2].span.end;
        Ok(Statement::Instruction(Instruction { guard, opcode, operands, span: Span { end, ..start } }))
    }

    /// Parses the modifiers that blanks part from the rest of their opcode, and `ld.const[2].u32`,
    /// whose bank PTX 2 gave up.
    fn opcode(&mut self, first: &'t str) -> Cow<'t, str> {
        let mut opcode = Cow::Borrowed(first);
        loop {
            let at = self.at;
            if opcode.ends_with(".const") && self.take_mark(b'[') && self.take_integer().is_some() {
                self.take_mark(b']');
            }
            match self.peek_word().filter(|word| word.starts_with('.')) {
                Some(modifier) => opcode.to_mut().push_str(modifier),
                None => {
                    self.at = at;
                    return opcode;
                }
            }
            self.at += 1;
        }
    }

    fn operands(&mut self, is_call: bool) -> Option<Vec<Operand<'t>>> {
        let mut operands = Vec::new();
        if self.peek() == Some(Kind::Mark(b';')) {
            return Some(operands);
        }
        loop {
            operands.push(match self.peek()? {
                Kind::Mark(b'[') => self.address()?,
                Kind::Mark(b'{') => Operand::Vector(self.list(b'}')?),
                Kind::Mark(b'(') if is_call => Operand::List(self.list(b')')?),
                _ => self.scalar()?,
            });
            if !self.take_mark(b',') {
                return Some(operands);
            }
        }
    }

    pub(super) fn scalar(&mut self) -> Option<Operand<'t>> {
        let after_mark = self.tokens.get(self.at + 1).is_some_and(|next| next.kind == Kind::Word);
        if after_mark && self.peek() == Some(Kind::Mark(b'!')) {
            self.at += 1;
            return self.take_word().map(Operand::Negated);
        }
        if self.peek_word() == Some("WARP_SZ") {
            return self.constant();
        }
        let Some(word) = self.take_word() else { return self.constant() };
        if self.take_mark(b'|') {
            return Some(Operand::Pair(word, self.take_word()?));
        }
        if self.take_mark(b'[') {
            return self.element(word);
        }
        Some(Operand::Name(word, self.offset()?))
    }

    /// Parses `2]`, `%r1]` or `%r1+2]` after the name of an array and the opening bracket.
    fn element(&mut self, array: &'t str) -> Option<Operand<'t>> {
        let start = self.tokens[self.at - 2].span;
        let register = if self.peek_word() == Some("WARP_SZ") { None } else { self.take_word() };
        let index = if register.is_some() { self.offset()? } else { self.integer()? };
        let text = self.slice(Span { end: self.span().end, ..start });
        self.take_mark(b']').then_some(Operand::Element { text, array, register, index })
    }

    /// Parses the content of braces or parentheses.
    fn list(&mut self, close: u8) -> Option<Vec<Operand<'t>>> {
        self.at += 1;
        if close == b')' && self.take_mark(close) {
            return Some(Vec::new());
        }
        let mut elements = vec![self.scalar()?];
        while self.take_mark(b',') {
            elements.push(self.scalar()?);
        }
        self.take_mark(close).then_some(elements)
    }

    fn address(&mut self) -> Option<Operand<'t>> {
        self.at += 1;
        let operand = match self.take_word() {
            Some(base) => Operand::Address { base: Some(base), offset: self.offset()? },
            None => Operand::Address { base: None, offset: self.integer()? },
        };
        if self.take_mark(b',') {
            let at = if self.peek() == Some(Kind::Mark(b'{')) { self.list(b'}')? } else { return None };
            let map = Box::new(operand);
            return self.take_mark(b']').then_some(Operand::Tensor { map, at });
        }
        self.take_mark(b']').then_some(operand)
    }
}
