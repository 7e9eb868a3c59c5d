//! What of PTX the software GPU has: read from the instruction table, and looked for in the text of a module.

use std::fmt;

use super::isa::{self, Shape};
use super::module::{self, Kernel};
use super::parse::ast::{Instruction, Module, Statement};
use crate::error::{Error, ErrorKind, Result};

pub use super::vocabulary::Kind;

/// Most instructions that a survey lists: kernels that share functions may have many more than their text.
const MAX_SURVEYED: usize = 1 << 20;

/// A line of the instruction table: an instruction in all its spellings that differ in nothing but modifiers.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    line: &'static isa::Form,
    section: &'static str,
}

/// What operands a form takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Operands {
    /// A result and sources, each a register or, of the sources, an immediate; the result depends on the sources alone.
    Values {
        /// What the result is.
        result: Kind,
        /// What the sources are, in order.
        sources: Vec<Kind>,
    },
    /// Others, named by what the instruction does: `load`, `branch`.
    Other(String),
}

/// Every form, in the table's order.
pub fn forms() -> impl Iterator<Item = Form> {
    isa::FORMS.iter().scan("", |section, line| {
        *section = line.section.unwrap_or(section).trim();
        Some(Form { line, section })
    })
}

/// The alternatives that patterns name (`{type}`), by name.
pub fn sets() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    isa::SETS.iter().copied()
}

impl Form {
    /// The section of the table that it is in.
    pub fn section(&self) -> &'static str {
        self.section
    }

    /// Its spellings as the table has them: alternatives in braces, written out or by the name of one of the [`sets`].
    pub fn pattern(&self) -> &'static str {
        self.line.spelling
    }

    /// Its operands.
    pub fn operands(&self) -> Operands {
        match self.line.shape {
            Shape::Pure { result, sources } => {
                let sources = sources.iter().copied().filter(|kind| *kind != Kind::Modifiers).collect();
                Operands::Values { result, sources }
            }
            other => {
                let name = format!("{other:?}").to_lowercase();
                Operands::Other(name.split([' ', '(']).next().unwrap_or_default().to_owned())
            }
        }
    }

    /// How many spellings it has.
    pub fn spellings(&self) -> usize {
        isa::groups(self.pattern()).map(|(_, choices)| choices.len().max(1)).product()
    }

    /// The spelling of that number, modulo how many there are.
    pub fn spelling(&self, mut number: usize) -> String {
        let mut text = String::new();
        for (literal, choices) in isa::groups(self.pattern()) {
            text.push_str(literal);
            if !choices.is_empty() {
                text.push_str(choices[number % choices.len()]);
                number /= choices.len();
            }
        }
        text
    }
}

impl fmt::Display for Operands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operands::Values { result, sources } => {
                let named = sources.iter().filter(|kind| **kind != Kind::Modifiers);
                let sources: Vec<String> = named.map(Kind::to_string).collect();
                write!(f, "{} -> {result}", sources.join(", "))
            }
            Operands::Other(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// What a kernel is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The kernel's name.
    pub kernel: String,
    /// Why it cannot run, if it cannot: of several reasons the first.
    pub unsupported: Option<String>,
    /// The opcodes in it, sorted.
    pub uses: Vec<Use>,
}

/// What a kernel has of one opcode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The opcode with all its modifiers: `ld.global.nc.v4.b32`.
    pub opcode: String,
    /// The PTX lines that it stands on, in order.
    pub lines: Vec<u32>,
    /// Those on which it is not supported, each with the instruction and the reason.
    pub refused: Vec<Refused>,
}

/// An instruction that is not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its PTX line.
    pub line: u32,
    /// Its text.
    pub instruction: String,
    /// Why, as the end of a sentence.
    pub reason: String,
}

/// What every kernel of a module uses, and which of it is not supported.
///
/// # Errors
///
/// `UnsupportedPtx` with the line where the text is not PTX, and where the kernels have more than a million instructions.
pub fn survey(text: &str) -> Result<Vec<Survey>> {
    let parsed = module::Module::parse(text)?;
    let module = &parsed.source.tree().module;
    let mut count = 0;
    let mut surveys = Vec::with_capacity(module.entries.len());
    for (entry, kernel) in module.entries.iter().zip(parsed.kernels()) {
        let survey = survey_kernel(module, &entry.body, kernel);
        count += survey.uses.iter().map(|used| used.lines.len()).sum::<usize>();
        if count > MAX_SURVEYED {
            let context = format!(
                "the kernels up to {:?} have more than {MAX_SURVEYED} instructions, those of functions counted for each \
                 kernel that calls them; look at fewer kernels at a time",
                kernel.name()
            );
            return Err(Error::new(ErrorKind::UnsupportedPtx, context));
        }
        surveys.push(survey);
    }
    Ok(surveys)
}

fn survey_kernel(module: &Module, body: &[Statement], kernel: &Kernel) -> Survey {
    let mut instructions = Vec::new();
    collect(body, &mut instructions);
    // What it calls is its own too.
    let called =
        kernel.inner.lowered().called.iter().filter_map(|&number| module.functions[number as usize].body.as_ref());
    called.for_each(|body| collect(body, &mut instructions));
    instructions.sort_by_key(|instruction| (instruction.opcode, instruction.span.start));
    let uses = instructions.chunk_by(|a, b| a.opcode == b.opcode).map(|same| {
        let refused = same.iter().filter_map(|instruction| refused(instruction, kernel)).collect();
        let lines = same.iter().map(|instruction| instruction.span.line).collect();
        Use { opcode: same[0].opcode.to_owned(), lines, refused }
    });
    Survey {
        kernel: kernel.name().to_owned(),
        unsupported: kernel.supported().err().map(|error| error.to_string()),
        uses: uses.collect(),
    }
}

fn collect<'a, 't>(body: &'a [Statement<'t>], instructions: &mut Vec<&'a Instruction<'t>>) {
    for statement in body {
        match statement {
            Statement::Instruction(instruction) => instructions.push(instruction),
            Statement::Scope(inner) => collect(inner, instructions),
            _ => {}
        }
    }
}

fn refused(instruction: &Instruction, kernel: &Kernel) -> Option<Refused> {
    let same = |span: &super::parse::ast::Span| span.start == instruction.span.start;
    let (span, reason) = kernel.inner.lowered().refusals.iter().find(|(span, _)| same(span))?;
    Some(Refused { line: span.line, instruction: kernel.inner.source.listing.line(*span), reason: reason.clone() })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn spellings_of_every_form_are_found_again() {
        for form in forms().filter(|form| !form.pattern().contains(' ')) {
            let count = form.spellings();
            // All, or where there are many every so many-th of them.
            for number in (0..count).step_by(count / 64 + 1) {
                let text = form.spelling(number);
                assert!(isa::forms(&text).any(|found| found.op == form.line.op), "{text} of {}", form.pattern());
            }
            let spelled: HashSet<String> = (0..count.min(1000)).map(|number| form.spelling(number)).collect();
            assert!(count < 4 || spelled.len() > 2, "{}", form.pattern());
        }
    }

    #[test]
    fn forms_are_listed_by_section_with_their_operands() {
        let all: Vec<Form> = forms().collect();
        let wide = all.iter().find(|form| form.pattern() == "mad.wide.u16").unwrap();
        assert_eq!(
            (wide.section(), wide.operands().to_string()),
            ("Integer arithmetic", "b16, b16, b32 -> b32".into())
        );
        let load = all.iter().find(|form| form.pattern().starts_with("ld{read}.shared")).unwrap();
        assert_eq!((load.section(), load.operands().to_string()), ("Memory", "load".into()));
        assert!(all.iter().all(|form| !form.section().is_empty()));
    }

    #[test]
    fn a_survey_names_every_refusal_and_counts_what_is_had() {
        let text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<3>;\n\
            mov.u32 %r1, 1;\nwgmma.fence.sync.aligned;\n{ mov.u32 %r2, 2; }\nadd.s32 %r1, %r2, %q;\n}\n\
            .visible .entry fine() { ret; }";
        let surveys = survey(text).unwrap();
        let [broken, fine] = &surveys[..] else { panic!("{surveys:?}") };
        let named = |opcode: &str| broken.uses.iter().find(|used| used.opcode == opcode).unwrap();
        assert_eq!((&named("mov.u32").lines[..], named("mov.u32").refused.len()), (&[6, 8][..], 0));
        assert_eq!(named("wgmma.fence.sync.aligned").refused[0].line, 7);
        assert_eq!(named("add.s32").refused[0].instruction, "add.s32 %r1, %r2, %q");
        assert!(broken.unsupported.as_ref().unwrap().contains("PTX line 7"));
        assert_eq!((fine.unsupported.clone(), fine.uses.len()), (None, 1));
    }
}
