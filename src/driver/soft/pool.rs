//! A thread pool that only runs kernels.

use std::fmt;
use std::num::NonZero;
use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, ErrorKind, Result};

/// Returns the number of threads.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs `work` on threads that run no task of a caller.
///
/// The state is locked while a launch runs. If its blocks ran in a pool that callers use too, all
/// workers might wait for that lock. Also, a worker that waits for blocks takes other tasks of its
/// pool, and one of them may need the lock that the worker holds. So blocks have a separate pool,
/// and a worker of another pool waits for them through a plain thread, which takes no tasks.
pub(super) fn install<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    static POOL: OnceLock<Result<ThreadPool, String>> = OnceLock::new();
    let pool = POOL.get_or_init(|| ThreadPoolBuilder::new().build().map_err(|error| error.to_string()));
    let pool = pool.as_ref().map_err(|reason| no_threads(reason))?;
    if rayon::current_thread_index().is_none() {
        return Ok(pool.install(work));
    }
    let joined = std::thread::scope(|scope| {
        let helper = std::thread::Builder::new().spawn_scoped(scope, || pool.install(work))?;
        Ok(helper.join())
    });
    let joined = joined.map_err(|reason: std::io::Error| no_threads(&reason))?;
    Ok(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

fn no_threads(reason: &dyn fmt::Display) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("no threads to run kernels on: {reason}; end other programs, or set RAYON_NUM_THREADS=1"),
    )
}

#[cfg(test)]
mod tests;
