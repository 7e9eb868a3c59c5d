//! A section of the report, which a program asks for while it runs: the kernels that ran in a test,
//! and the expectations that the test has of them.
//!
//! The functions are this library's own. Their names begin with `warpstride`, so that no program
//! takes them for NVIDIA's.

use std::ffi::{CString, c_char};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use warpstride::interp::expect::judge;

use super::kernels::Kernels;
use super::{REPORT, order};
use crate::arguments::{Out, Text};
use crate::code::Failure;
use crate::export::export;
use crate::process::process;

/// The most bytes of a list of expectations.
const MOST_BYTES: usize = 1 << 20;

/// The section that is open.
static SECTION: Mutex<Section> = Mutex::new(Section { kernels: None, document: None });

struct Section {
    /// The kernels since it began, once one has begun.
    kernels: Option<Kernels>,
    /// The document that was read last, which its reader may use until the next one.
    document: Option<CString>,
}

/// An expectation of a kernel, or of all.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    kernel: Option<String>,
    expectation: String,
}

fn section() -> MutexGuard<'static, Section> {
    SECTION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a launch to the section that is open.
pub(super) fn add(add: impl FnOnce(&mut Kernels)) {
    if let Some(kernels) = &mut section().kernels {
        add(kernels);
    }
}

export! {
    /// Begins a section of the report, and ends the one before.
    fn warpstrideSectionBegin() {
        section().kernels = Some(Kernels::default());
        Ok(())
    }

    /// Reads the section so far: a JSON document with `kernels`, `order` and `failures` as in the
    /// report, and `verdicts`, one for each of the `expectations`. These are a JSON list of objects
    /// with `kernel`, a name or null for all kernels, and `expectation`. The document stays until
    /// the next one is read. Work that is queued runs before, unless it waits for something.
    /// Findings in calls and streams count since the process began.
    fn warpstrideSectionRead(expectations: Text, document: Out<*const c_char>) {
        document.check()?;
        let expected = expectations.get()?.to_bytes();
        if expected.len() > MOST_BYTES {
            return Err(Failure::value(format!("the expectations have more than {MOST_BYTES} bytes; name fewer")));
        }
        let expected: Vec<Expected> =
            serde_json::from_slice(expected).map_err(|error| Failure::value(format!("the expectations: {error}")))?;
        // Launches run late, and belong to the section in which the program made them. A fault is
        // among its kernels.
        if let Some(gpu) = process().ok().and_then(|process| process.gpus.first()) {
            let _ = gpu.soft.run_ready();
        }
        // The report is locked before the section.
        let failures = REPORT.get().map(|report| report.lock().calls.failures_json());
        let mut section = section();
        let Some(kernels) = &section.kernels else {
            return Err(Failure::value("no section has begun; call warpstrideSectionBegin before"));
        };
        let text = json!({
            "kernels": kernels.json(),
            "order": order::json(),
            "failures": failures,
            "verdicts": expected.iter().map(|expected| verdict(kernels, expected)).collect::<Vec<_>>(),
        });
        let text = CString::new(text.to_string()).map_err(|_| Failure::value("the document has a NUL"))?;
        document.set(section.document.insert(text).as_ptr())
    }
}

/// Holds the launches of a kernel to an expectation.
fn verdict(kernels: &Kernels, expected: &Expected) -> Value {
    let Expected { kernel, expectation } = expected;
    let Some(sum) = kernels.sum(|name| kernel.as_ref().is_none_or(|kernel| is_named(name, kernel))) else {
        let error = match kernel {
            Some(kernel) => format!("no kernel {kernel} ran"),
            None => "no kernel ran".to_owned(),
        };
        return json!({ "kernel": kernel, "expectation": expectation, "held": false, "error": error });
    };
    match judge(&sum, &[expectation]) {
        Ok(verdicts) => {
            let row = &verdicts.rows[0];
            json!({
                "kernel": kernel, "expectation": row.expectation, "held": row.held, "found": row.found, "wanted": row.wanted
            })
        }
        Err(error) => {
            json!({ "kernel": kernel, "expectation": expectation, "held": false, "error": error.to_string() })
        }
    }
}

/// Returns whether a kernel has a name, as PTX has it or as its source does: a mangled name holds
/// that behind its length.
fn is_named(kernel: &str, name: &str) -> bool {
    kernel == name || (kernel.starts_with("_Z") && kernel.contains(&format!("{}{name}", name.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_the_names_of_their_sources() {
        for (kernel, name, is_so) in [
            ("copy", "copy", true),
            ("_Z4copyPKfPf", "copy", true),
            ("_ZN6cudapy8__main__4axpyB2v1E", "axpy", true),
            ("_Z8fastcopyPf", "copy", false),
            ("copy_all", "copy", false),
        ] {
            assert_eq!(is_named(kernel, name), is_so, "{kernel} {name}");
        }
    }
}
