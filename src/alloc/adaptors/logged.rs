//! A log of every call in RMM's columns.

use std::fmt;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use super::pass_on;
use crate::alloc::{Allocate, Block, Lane, Request};
use crate::error::Result;
use crate::sync::lock;

/// The first line of a log, as RMM's logging adaptor writes it.
pub const COLUMNS: &str = "Thread,Time,Action,Pointer,Size,Stream";

/// An allocator that writes a line for each allocation and free, in RMM's columns:
/// `Thread,Time,Action,Pointer,Size,Stream`. The time is of the day in UTC, and the stream is the
/// lane's number. `warpstride alloc replay` reads such logs.
///
/// The lines of one address have the order of its calls, whatever threads make them: a free is
/// written before the call, and an allocation after it. Threads wait for each other's lines, but
/// not for each other's calls.
///
/// A line that cannot be written is left out: an allocation does not fail because a disk is full.
pub struct Logged<A> {
    inner: A,
    out: Mutex<Box<dyn Write + Send>>,
}

impl<A: Allocate> Logged<A> {
    /// Wraps `inner`, and writes to `out`, which should be buffered. It is flushed by its own drop.
    pub fn new(inner: A, mut out: Box<dyn Write + Send>) -> Self {
        let _ = writeln!(out, "{COLUMNS}");
        Self { inner, out: Mutex::new(out) }
    }

    fn line(&self, action: &str, block: &Block, lane: &Lane) {
        let mut out = lock(&self.out);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, micros) = (now.as_secs() % 86_400, now.subsec_micros());
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let thread = thread_number();
        let time = format_args!("{hours:02}:{minutes:02}:{seconds:02}.{micros:06}");
        let Block { address, bytes, .. } = block;
        let _ = writeln!(out, "{thread},{time},{action},{address:#x},{bytes},{:#x}", lane.id);
    }
}

/// Returns a number that this thread alone has.
fn thread_number() -> u64 {
    static STARTED: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = STARTED.fetch_add(1, Relaxed);
    }
    NUMBER.with(|number| *number)
}

impl<A: fmt::Debug> fmt::Debug for Logged<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logged").field("inner", &self.inner).finish_non_exhaustive()
    }
}

// SAFETY: the blocks are the inner allocator's, whose promises hold.
unsafe impl<A: Allocate> Allocate for Logged<A> {
    pass_on!(lanes rest figures);

    unsafe fn alloc(&self, request: &Request<'_>) -> Result<Block> {
        // SAFETY: as the caller promises.
        let block = unsafe { self.inner.alloc(request) }?;
        self.line("allocate", &block, request.lane);
        Ok(block)
    }

    unsafe fn free(&self, block: Block, lane: &Lane) -> Result<()> {
        self.line("free", &block, lane);
        // SAFETY: as the caller promises.
        unsafe { self.inner.free(block, lane) }
    }
}
