//! The parts of programs: the forms of the instruction table, by the generator's use of them.

use std::collections::HashSet;

use warpstride_interp::coverage::{self, Form, Kind, Operands};

use super::random::Random;
use super::values;

/// The forms that programs are drawn from.
pub(crate) struct Catalog {
    /// The architecture that the programs are for: `sm_90`.
    pub(crate) target: String,
    /// Spellings of functions that the table's patterns have and PTX has not.
    pub(crate) refused: Vec<String>,
    /// Functions of values.
    values: Vec<Function>,
    /// All others.
    others: Vec<Form>,
}

/// A function of values.
pub(crate) struct Function {
    pattern: &'static str,
    spellings: Vec<String>,
    pub(crate) result: Kind,
    pub(crate) sources: Vec<Kind>,
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

/// Bits of a type, by its name; 0 if it is not the name of a type.
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
    /// Takes every form, in the spellings that `accepts` says of a module's text that an assembler
    /// takes.
    pub(crate) fn new(target: &str, accepts: impl Fn(&str) -> bool) -> Self {
        let mut catalog = Self::of(target, coverage::forms(), &[]);
        for function in &mut catalog.values {
            let all = std::mem::take(&mut function.spellings);
            let mut taken = Vec::new();
            sort_out(&all, &|some| accepts(&values::module(target, function, some)), &mut taken, &mut catalog.refused);
            function.spellings = taken;
        }
        catalog.values.retain(|function| !function.spellings.is_empty());
        catalog
    }

    /// Takes the forms with these patterns, without the spellings that were refused. An error names
    /// a pattern that the table lacks.
    pub(crate) fn recorded(target: &str, patterns: &[String], refused: &[String]) -> Result<Self, String> {
        if let Some(lost) = patterns.iter().find(|name| coverage::forms().all(|form| form.pattern() != **name)) {
            return Err(format!("the instruction table has no form `{lost}` any more"));
        }
        let wanted = coverage::forms().filter(|form| patterns.iter().any(|name| name == form.pattern()));
        Ok(Self::of(target, wanted, refused))
    }

    fn of(target: &str, forms: impl Iterator<Item = Form>, refused: &[String]) -> Self {
        let (mut values, mut others) = (Vec::new(), Vec::new());
        let mut seen: HashSet<(String, usize)> = HashSet::new();
        for form in forms {
            let Operands::Values { result, sources } = form.operands() else {
                // A pattern with a space is a step of another instruction, which nothing spells. An
                // instruction that sends registers needs a barrier.
                let sends = ["st.async", "red.async"].iter().any(|name| form.pattern().starts_with(name));
                if !form.pattern().contains(' ') && !sends {
                    others.push(form);
                }
                continue;
            };
            if is_vague(form.pattern()) {
                others.push(form);
                continue;
            }
            // The first line with a spelling is the one that is taken.
            let spellings = (0..form.spellings()).map(|number| form.spelling(number));
            let spellings: Vec<String> =
                spellings.filter(|one| seen.insert((one.clone(), sources.len())) && !refused.contains(one)).collect();
            if !spellings.is_empty() {
                values.push(Function { pattern: form.pattern(), spellings, result, sources });
            }
        }
        Self { target: target.to_owned(), refused: refused.to_vec(), values, others }
    }

    /// The patterns of its forms.
    pub(crate) fn patterns(&self) -> Vec<String> {
        let values = self.values.iter().map(|function| function.pattern);
        let mut patterns: Vec<String> =
            values.chain(self.others.iter().map(Form::pattern)).map(str::to_owned).collect();
        patterns.sort();
        patterns.dedup();
        patterns
    }

    /// A function of values, by its opcode.
    pub(crate) fn value(&self, random: &mut Random) -> (&str, &Function) {
        let function = random.pick(&self.values);
        (&function.spellings[random.below(function.spellings.len())], function)
    }

    /// The functions of values that a text has no spelling of.
    pub(crate) fn not_in(&self, opcodes: &HashSet<String>) -> Vec<&'static str> {
        let absent = self.values.iter().filter(|f| f.spellings.iter().all(|spelling| !opcodes.contains(spelling)));
        absent.map(|function| function.pattern).collect()
    }

    /// An opcode of another form that `allowed` holds for, if there is one among many draws.
    pub(crate) fn other(&self, random: &mut Random, prefix: &str, allowed: impl Fn(&str) -> bool) -> Option<String> {
        let old = self.target.as_str() < "sm_90";
        let allowed = |opcode: &str| allowed(opcode) && !(old && opcode.contains("cluster"));
        let begins = |form: &&Form| {
            let literal = form.pattern().split('{').next().unwrap_or_default();
            literal.starts_with(prefix) || prefix.starts_with(literal)
        };
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

    /// Returns whether there is an opcode of this spelling among the others.
    pub(crate) fn has(&self, opcode: &str) -> bool {
        let root = opcode.split('.').next().unwrap_or_default();
        let spells = |form: &Form| (0..form.spellings()).any(|number| form.spelling(number) == opcode);
        self.others.iter().filter(|form| form.pattern().starts_with(root)).any(spells)
    }

    /// Returns whether there is a line of this pattern.
    pub(crate) fn has_pattern(&self, pattern: &str) -> bool {
        self.others.iter().any(|form| form.pattern() == pattern)
    }
}

/// Finds those that are accepted and those that are not, which mostly lie next to each other.
fn sort_out(all: &[String], accepts: &dyn Fn(&[String]) -> bool, taken: &mut Vec<String>, refused: &mut Vec<String>) {
    if accepts(all) {
        taken.extend_from_slice(all);
    } else if let [one] = all {
        refused.push(one.clone());
    } else {
        let (first, second) = all.split_at(all.len() / 2);
        sort_out(first, accepts, taken, refused);
        sort_out(second, accepts, taken, refused);
    }
}

/// Returns whether its result depends on more than its sources' values, or not on them alone:
/// approximations; addresses in other spaces; policies, which are opaque; parts of an instruction,
/// which do nothing by themselves.
fn is_vague(pattern: &str) -> bool {
    ["approx", "full", "cvta", "isspacep", "mapa", "createpolicy", " "].iter().any(|part| pattern.contains(part))
}
