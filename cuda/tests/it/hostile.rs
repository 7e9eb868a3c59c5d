//! Hostile callers of the library.

use crate::api::library;
use crate::hostile_calls::{Target, check};

#[test]
fn a_hostile_caller_gets_codes() {
    let target = Target {
        test: "hostile::a_hostile_caller_gets_codes",
        library,
        functions: include_str!("../data/functions.txt"),
        first: "cuInit",
        // The driver is not initialised there.
        in_fork: Some(3),
    };
    check(&target, &[]);
}
