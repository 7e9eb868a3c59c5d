//! The calls of the process by function, and those that failed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::code::{CODES, CUresult, Failure, code};

/// The calls so far. Functions and codes are few, so this stays small.
#[derive(Default)]
pub(super) struct Calls {
    succeeded: BTreeMap<&'static str, u64>,
    failed: BTreeMap<(&'static str, CUresult, Option<&'static str>), Failed>,
}

/// The calls of one function that failed with one code, and broke the same rule or none.
struct Failed {
    count: u64,
    /// The reason of the first of them.
    why: String,
}

impl Calls {
    pub(super) fn succeeded(&mut self, name: &'static str) {
        *self.succeeded.entry(name).or_default() += 1;
    }

    pub(super) fn failed(&mut self, name: &'static str, failure: &Failure) {
        // A program that asks whether work has run gets this answer until it has.
        if failure.code == code::NOT_READY {
            return self.succeeded(name);
        }
        let failed = self.failed.entry((name, failure.code, failure.rule));
        failed.or_insert_with(|| Failed { count: 0, why: failure.why.clone() }).count += 1;
    }

    /// Returns the number of calls of each function that did what was asked.
    pub(super) fn json(&self) -> Value {
        json!(self.succeeded)
    }

    pub(super) fn failures_json(&self) -> Value {
        let failures = self.failed.iter().map(|(&(name, code, rule), failed)| {
            let known = CODES.iter().find(|(number, ..)| *number == code);
            json!({
                "function": name,
                "code": code,
                "name": known.map(|(_, name, _)| name.to_string_lossy()),
                "count": failed.count,
                "why": failed.why,
                "rule": rule,
            })
        });
        failures.collect()
    }
}
