//! What programs are made of: the forms of the instruction table, by what the generator does with them.

use warpstride::interp::coverage::{self, Form, Kind, Operands};

use super::random::Random;

/// The forms that programs are drawn from.
pub(crate) struct Catalog {
    /// Functions of values.
    values: Vec<Form>,
    /// All others.
    others: Vec<Form>,
}

/// The widths that registers are declared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Pred,
    B16,
    B32,
    B64,
}

impl Class {
    pub(crate) const ALL: [Class; 4] = [Class::Pred, Class::B16, Class::B32, Class::B64];

    /// The class of registers that hold a type, by its name: `pred`, `s8`, `f16x2`.
    pub(crate) fn of(name: &str) -> Class {
        match bits(name) {
            0 => Class::Pred,
            8 | 16 => Class::B16,
            32 => Class::B32,
            _ => Class::B64,
        }
    }

    pub(crate) fn of_kind(kind: Kind) -> Class {
        Class::of(&kind.to_string())
    }

    pub(crate) fn bytes(self) -> usize {
        match self {
            Class::Pred => 0,
            Class::B16 => 2,
            Class::B32 => 4,
            Class::B64 => 8,
        }
    }
}

/// Bits of a type, by its name; 0 of what is none.
pub(crate) fn bits(name: &str) -> u32 {
    let digits = name.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    match digits.strip_suffix("x2") {
        Some(half) => 2 * half.parse().unwrap_or(0),
        None => digits.parse().unwrap_or(0),
    }
}

/// The type that an opcode ends with.
pub(crate) fn last_type(opcode: &str) -> &str {
    opcode.rsplit('.').next().unwrap_or_default()
}

impl Catalog {
    /// Of the forms with these patterns, or of all. An error names a pattern that the table lacks.
    pub(crate) fn new(patterns: Option<&[String]>) -> Result<Self, String> {
        if let Some(lost) = patterns.into_iter().flatten().find(|name| coverage::forms().all(|f| f.pattern() != **name))
        {
            return Err(format!("the instruction table has no form `{lost}` any more"));
        }
        let wanted = |form: &Form| patterns.is_none_or(|names| names.iter().any(|name| name == form.pattern()));
        let (values, others) = coverage::forms().filter(wanted).partition(is_value);
        Ok(Self { values, others })
    }

    /// The patterns of its forms.
    pub(crate) fn patterns(&self) -> Vec<String> {
        let mut patterns: Vec<String> =
            self.values.iter().chain(&self.others).map(|f| f.pattern().to_owned()).collect();
        patterns.dedup();
        patterns
    }

    /// The functions of values, by all their spellings.
    pub(crate) fn value_spellings(&self) -> impl Iterator<Item = String> {
        self.values.iter().flat_map(|form| (0..form.spellings()).map(|number| form.spelling(number)))
    }

    /// A function of values: its opcode, result and sources.
    pub(crate) fn value(&self, random: &mut Random) -> (String, Kind, &'static [Kind]) {
        let form = random.pick(&self.values);
        let Operands::Values { result, sources } = form.operands() else { unreachable!("it was asked before") };
        (form.spelling(random.below(form.spellings())), result, sources)
    }

    /// An opcode of another form that `allowed` holds for, if there is one among many draws.
    pub(crate) fn other(&self, random: &mut Random, prefix: &str, allowed: impl Fn(&str) -> bool) -> Option<String> {
        let begins = |form: &&Form| form.pattern().starts_with(prefix) || form.pattern().starts_with('{');
        let forms: Vec<&Form> = self.others.iter().filter(begins).collect();
        let mut draw = || {
            let form = random.pick(&forms);
            form.spelling(random.below(form.spellings()))
        };
        if forms.is_empty() {
            return None;
        }
        (0..2000).map(|_| draw()).find(|opcode| opcode.starts_with(prefix) && allowed(opcode))
    }

    /// Whether there is an opcode of this spelling.
    pub(crate) fn has(&self, opcode: &str) -> bool {
        let spells = |form: &Form| (0..form.spellings()).any(|number| form.spelling(number) == opcode);
        let root = opcode.split('.').next().unwrap_or_default();
        self.others.iter().chain(&self.values).filter(|form| form.pattern().starts_with(root)).any(spells)
    }
}

/// Whether its result is defined, bit for bit, by sources of any value. Addresses in other spaces are not, nor are
/// approximations, and halves of a move are no instructions by themselves.
fn is_value(form: &Form) -> bool {
    let pattern = form.pattern();
    let vague = [".approx", ".full", "cvta", "isspacep", " "].iter().any(|part| pattern.contains(part));
    matches!(form.operands(), Operands::Values { .. }) && !vague
}
