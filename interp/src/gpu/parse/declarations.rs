//! The names that one scope declares; none may be declared twice.
//!
//! `%r<59>` declares `%r0` to `%r58`. A name ends in few digits, so it is looked up under each stem
//! that it may have. That keeps a scope with many declarations fast.

use std::collections::{HashMap, HashSet};

use super::ast::Statement;

/// The declarations so far.
#[derive(Debug, Default)]
pub(super) struct Declarations<'t> {
    labels: HashSet<&'t str>,
    /// Single registers and variables.
    names: HashSet<&'t str>,
    ranges: Ranges<'t, ()>,
    /// For each stem, the least number that follows it in a single name or in the first name of a
    /// range.
    numbered: HashMap<&'t str, u64>,
}

impl<'t> Declarations<'t> {
    /// Adds the declarations of a statement, or returns a name that was declared before.
    pub(super) fn add(&mut self, statement: &Statement<'t>) -> Result<(), &'t str> {
        match statement {
            Statement::Label(label) | Statement::Prototype(label, _) | Statement::Targets(label, _) => {
                fresh(self.labels.insert(label), label)
            }
            Statement::Variable(variable) => self.single(variable.name),
            Statement::Inner(name, _) => self.single(name),
            Statement::Registers { names, .. } => names.iter().try_for_each(|name| match name.count {
                Some(count) => self.range(name.name, count),
                None => self.single(name.name),
            }),
            _ => Ok(()),
        }
    }

    fn single(&mut self, name: &'t str) -> Result<(), &'t str> {
        let is_fresh = self.names.insert(name) && self.ranges.get(name).is_none();
        stems(name).for_each(|(stem, number)| self.note(stem, number));
        fresh(is_fresh, name)
    }

    fn range(&mut self, prefix: &'t str, count: u64) -> Result<(), &'t str> {
        // If two ranges share a name, one begins within the other: `%r<20>` has `%r10`, the first
        // of `%r1<5>`.
        let tens = |(stem, number): (&'t str, u64)| Some((stem, number.checked_mul(10)?)).filter(|_| number > 0);
        let first: Vec<_> = stems(prefix).filter_map(tens).chain([(prefix, 0)]).filter(|_| count > 0).collect();
        let begins_within = first.iter().any(|&(stem, number)| self.ranges.find(stem, number).is_some());
        let contains = self.numbered.get(prefix).is_some_and(|&number| number < count);
        first.into_iter().for_each(|(stem, number)| self.note(stem, number));
        self.ranges.insert(prefix, count, ());
        fresh(!begins_within && !contains, prefix)
    }

    fn note(&mut self, stem: &'t str, number: u64) {
        let least = self.numbered.entry(stem).or_insert(number);
        *least = number.min(*least);
    }
}

fn fresh(is_fresh: bool, name: &str) -> Result<(), &str> {
    if is_fresh { Ok(()) } else { Err(name) }
}

/// Ranges of names, with a value for each range.
#[derive(Debug)]
pub(crate) struct Ranges<'t, T>(HashMap<&'t str, (u64, T)>);

impl<T> Default for Ranges<'_, T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<'t, T> Ranges<'t, T> {
    /// Adds `prefix<count>`, which shares no name with another range.
    pub(crate) fn insert(&mut self, prefix: &'t str, count: u64, value: T) {
        if count > 0 {
            self.0.insert(prefix, (count, value));
        }
    }

    /// The value of the range that contains `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        stems(name).find_map(|(stem, number)| self.find(stem, number))
    }

    fn find(&self, stem: &str, number: u64) -> Option<&T> {
        self.0.get(stem).filter(|(count, _)| number < *count).map(|(_, value)| value)
    }
}

/// The ways to read a name as a member of a range: the range's stem, and the number after it. A
/// number has no leading zeros.
fn stems(name: &str) -> impl Iterator<Item = (&str, u64)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    // No number of a range has more than 20 digits.
    (1..=digits.min(20)).filter_map(move |digits| {
        let (stem, number) = name.split_at(name.len() - digits);
        (digits == 1 || !number.starts_with('0')).then(|| Some((stem, number.parse().ok()?))).flatten()
    })
}

#[cfg(test)]
mod tests;
