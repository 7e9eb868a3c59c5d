//! Tells the crate at which level cargo optimises it.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=WARPSTRIDE_OPT_LEVEL={}", env::var("OPT_LEVEL").unwrap_or_default());
}
