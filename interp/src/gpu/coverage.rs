//! Lists the PTX that the software GPU supports, from the instruction table, and looks for it in
//! the text of a module.

use std::fmt;

use super::isa::{self, Shape};
use super::module::{self, Kernel};
use super::parse::ast::{Instruction, Module, Statement};
use crate::error::{Error, ErrorKind, Result};

pub use super::vocabulary::Kind;

/// The most instructions that a survey lists. Kernels that share functions may have many more
/// instructions than their text.
const MAX_SURVEYED: usize = 1 << 20;

/// A line of the instruction table: an instruction in all spellings that differ only in modifiers.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    line: &'static isa::Form,
    section: &'static str,
}

/// The operands that a form takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Operands {
    /// A result and sources. Each is a register; a source may also be an immediate. The result
    /// depends only on the sources.
    Values {
        /// The kind of the result.
        result: Kind,
        /// The kinds of the sources, in order.
        sources: Vec<Kind>,
    },
    /// Other operands, named after the instruction's action: `load`, `branch`.
    Other(String),
}

/// Every form, in the table's order.
pub fn forms() -> impl Iterator<Item = Form> {
    isa::FORMS.iter().scan("", |section, line| {
        *section = line.section.unwrap_or(section).trim();
        Some(Form { line, section })
    })
}

/// The alternatives that patterns refer to by name (`{type}`).
pub fn sets() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    isa::SETS.iter().copied()
}

impl Form {
    /// The section of the table that contains it.
    pub fn section(&self) -> &'static str {
        self.section
    }

    /// Its spellings as in the table, with alternatives in braces: either written out, or the name
    /// of one of the [`sets`].
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

    /// The number of its spellings.
    pub fn spellings(&self) -> usize {
        isa::groups(self.pattern()).map(|(_, choices)| choices.len().max(1)).product()
    }

    /// The spelling with this number, modulo the number of spellings.
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
                let sources: Vec<String> = sources.iter().map(Kind::to_string).collect();
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

/// The instructions that a kernel uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The kernel's name.
    pub kernel: String,
    /// Why it cannot run, if it cannot: the first of the reasons.
    pub unsupported: Option<String>,
    /// Its opcodes, sorted.
    pub uses: Vec<Use>,
}

/// A kernel's use of one opcode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The opcode with all its modifiers: `ld.global.nc.v4.b32`.
    pub opcode: String,
    /// The PTX lines that contain it, in order.
    pub lines: Vec<u32>,
    /// The unsupported ones among them, each with the instruction and the reason.
    pub refused: Vec<Refused>,
}

/// An instruction that is not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its PTX line.
    pub line: u32,
    /// Its text.
    pub instruction: String,
    /// The reason, as the end of a sentence.
    pub reason: String,
}

/// Lists the instructions that each kernel of a module uses, and those among them that are not
/// supported.
///
/// # Errors
///
/// `UnsupportedPtx` with the line if the text is not PTX, or if the kernels have more than a
/// million instructions.
pub fn survey(text: &str) -> Result<Vec<Survey>> {
    let parsed = module::Module::parse(text)?;
    let module = parsed.source.tree();
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
    // The functions that it calls count as part of it.
    let called =
        kernel.inner.lowered().called.iter().filter_map(|&number| module.functions[number as usize].body.as_ref());
    called.for_each(|body| collect(body, &mut instructions));
    instructions.sort_by_key(|&instruction| (&*instruction.opcode, instruction.span.start));
    let uses = instructions.chunk_by(|a, b| a.opcode == b.opcode).map(|same| {
        let refused = same.iter().filter_map(|instruction| refused(instruction, kernel)).collect();
        let lines = same.iter().map(|instruction| instruction.span.line).collect();
        Use { opcode: same[0].opcode.clone().into_owned(), lines, refused }
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
    let refusals = &kernel.inner.lowered().refusals;
    let refusal = refusals.iter().find(|refusal| refusal.span.start == instruction.span.start)?;
    let (span, reason) = (refusal.span, refusal.why.clone());
    Some(Refused { line: span.line, instruction: kernel.inner.source.listing.line(span), reason })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn spellings_of_every_form_are_found_again() {
        for form in forms().filter(|form| !form.pattern().contains(' ')) {
            let count = form.spellings();
            // All spellings, or an even sample if there are many.
            for number in (0..count).step_by(count / 64 + 1) {
                let text = form.spelling(number);
                assert!(isa::forms(&text).any(|found| found.op == form.line.op), "{text} of {}", form.pattern());
            }
            let spelled: HashSet<String> = (0..count.min(1000)).map(|number| form.spelling(number)).collect();
            assert!(count < 4 || spelled.len() > 2, "{}", form.pattern());
        }
    }
}
