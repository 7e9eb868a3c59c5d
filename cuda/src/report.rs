//! What ran, for `warpstride run`.

use warpstride::driver::soft::Config;

use crate::code::Failure;

/// Sets what the software GPUs count and check.
pub(crate) fn configure(_config: &mut Config) {}

/// Begins the report of the process.
pub(crate) fn begin() {}

/// Notes a call that failed.
pub(crate) fn failed(name: &'static str, failure: &Failure) {
    if std::env::var_os("WARPSTRIDE_RUN_LOG").is_some() {
        eprintln!("warpstride: {name} returned {}: {}", failure.code, failure.why);
    }
}
