//! Threads, which a system may refuse to start.

use std::error::Error as _;
use std::fmt;
use std::sync::OnceLock;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use rayon::ThreadPoolBuilder;
use warpstride::error::{Error, ErrorKind, Result};

/// Starts a thread of a scope; where the system starts no more, `work` is dropped.
pub(super) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().name(name.into()).spawn_scoped(scope, work).map_err(|error| refused(&error))
}

/// Starts the threads of rayon's global pool, whose first use would panic where the system starts
/// none.
pub(super) fn start_all() -> Result<()> {
    static STARTED: OnceLock<Result<()>> = OnceLock::new();
    let start = || match ThreadPoolBuilder::new().build_global() {
        Err(error) if error.source().is_some() => Err(refused(&error)),
        // Else they have started already.
        _ => Ok(()),
    };
    STARTED.get_or_init(start).clone()
}

fn refused(error: &dyn fmt::Display) -> Error {
    let advice = "end other programs, raise the limit on processes (`ulimit -u`), or set RAYON_NUM_THREADS to fewer";
    Error::new(ErrorKind::Unavailable, format!("the system does not start a thread: {error}; {advice}"))
}
