//! Hostile callers of the runtime, over the driver that is the software GPU.

use crate::hostile_calls::{Target, check};
use crate::untyped::{libraries, runtime};

#[test]
fn a_hostile_caller_gets_codes() {
    let target = Target {
        test: "hostile::a_hostile_caller_gets_codes",
        library: runtime,
        functions: include_str!("../data/functions.txt"),
        first: "cudaDeviceSynchronize",
        // Some functions ask the driver nothing.
        in_fork: None,
    };
    check(&target, &[("LD_LIBRARY_PATH", libraries().path())]);
}
