//! The names that one scope declares, none of them twice.

use std::collections::HashSet;

use super::ast::Statement;

/// What has been declared so far.
#[derive(Debug, Default)]
pub(super) struct Declarations<'t> {
    labels: HashSet<&'t str>,
    /// Single registers and variables.
    names: HashSet<&'t str>,
    /// `%r<59>`: what the names begin with, and how many there are.
    ranges: Vec<(&'t str, u64)>,
}

impl<'t> Declarations<'t> {
    /// Adds what a statement declares, or names what was declared before.
    pub(super) fn add(&mut self, statement: &Statement<'t>) -> Result<(), &'t str> {
        match statement {
            Statement::Label(label) | Statement::Prototype(label, _) | Statement::Targets(label, _) => {
                fresh(self.labels.insert(label), label)
            }
            Statement::Variable(variable) => self.single(variable.name),
            Statement::Registers { names, .. } => names.iter().try_for_each(|name| match name.count {
                Some(count) => self.range(name.name, count),
                None => self.single(name.name),
            }),
            _ => Ok(()),
        }
    }

    fn single(&mut self, name: &'t str) -> Result<(), &'t str> {
        let in_range = self.ranges.iter().any(|&(prefix, count)| is_in_range(name, prefix, count));
        fresh(self.names.insert(name) && !in_range, name)
    }

    fn range(&mut self, prefix: &'t str, count: u64) -> Result<(), &'t str> {
        // Of two ranges that share a name, one begins within the other: `%r<20>` has `%r10`, the first of `%r1<5>`.
        let begins_in = |a: (&str, u64), b: (&str, u64)| a.1 > 0 && is_in_range(&format!("{}0", a.0), b.0, b.1);
        let new = (prefix, count);
        let overlaps = self.ranges.iter().any(|&old| begins_in(new, old) || begins_in(old, new));
        let known = overlaps || self.names.iter().any(|name| is_in_range(name, prefix, count));
        self.ranges.push(new);
        fresh(!known, prefix)
    }
}

fn fresh(is_fresh: bool, name: &str) -> Result<(), &str> {
    if is_fresh { Ok(()) } else { Err(name) }
}

/// Whether `name` is one of the `count` that `prefix<count>` declares.
pub(crate) fn is_in_range(name: &str, prefix: &str, count: u64) -> bool {
    let Some(digits) = name.strip_prefix(prefix) else { return false };
    let canonical = digits == "0" || !digits.starts_with(['0', '+']);
    canonical && digits.parse::<u64>().is_ok_and(|index| index < count)
}
