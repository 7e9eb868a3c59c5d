//! A log of every call in RMM's columns.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fmt, mem};

use super::pass_on;
use crate::alloc::{Allocate, Block, Lane, Request};
use crate::error::Result;
use crate::sync::lock;

/// The first line of a log, as RMM's logging adaptor writes it.
pub const COLUMNS: &str = "Thread,Time,Action,Pointer,Size,Stream";

/// The action of a row that stands for rows that were not written. Its size is their number.
pub const LOST: &str = "lost";

/// Most bytes that wait for the writer, and about the most that one call writes.
const MOST_WAITING: usize = 1 << 20;

/// An allocator that writes a line for each allocation and free, in RMM's columns:
/// `Thread,Time,Action,Pointer,Size,Stream`. The time is of the day in UTC, and the stream is the
/// lane's number. `warpstride alloc replay` reads such logs.
///
/// The lines of one address have the order of its calls, whatever threads make them: a free is
/// logged before the call, and an allocation after it. One thread at a time writes, its own lines
/// and those that others add meanwhile, about 1 MiB of them in one call. No thread waits for it:
/// what a call leaves is written by the next call, or when the allocator is dropped.
///
/// At most 1 MiB of lines wait. If the writer is slower than that, calls go on and their lines are
/// lost; a row with the action `lost` has their number as its size and stands in their place.
/// `alloc replay` refuses such a log.
///
/// The writer may use the device. Calls that it makes itself have no lines, which would have no
/// end. A line that cannot be written is left out: an allocation does not fail because a disk is
/// full.
pub struct Logged<A> {
    inner: A,
    lines: Mutex<Lines>,
}

struct Lines {
    /// Lines that are to be written.
    waiting: Vec<u8>,
    /// The number of lines that were lost after those.
    lost: u64,
    /// `None` while a thread writes with it, without the lock.
    out: Option<Box<dyn Write + Send>>,
    /// The number of the thread that writes, or wrote last.
    thread: u64,
}

impl Lines {
    /// Adds a line, or counts it as lost.
    fn add(&mut self, thread: u64, action: &str, [address, bytes]: [u64; 2], lane: u32) {
        if self.waiting.len() >= MOST_WAITING {
            self.lost += 1;
            return;
        }
        self.push(thread, action, [address, bytes], lane);
    }

    fn push(&mut self, thread: u64, action: &str, [address, bytes]: [u64; 2], lane: u32) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, micros) = (now.as_secs() % 86_400, now.subsec_micros());
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let time = format_args!("{hours:02}:{minutes:02}:{seconds:02}.{micros:06}");
        let _ = writeln!(self.waiting, "{thread},{time},{action},{address:#x},{bytes},{lane:#x}");
    }

    /// Takes the lines that wait, and the row of those that were lost after them.
    fn take(&mut self) -> Vec<u8> {
        let lost = mem::take(&mut self.lost);
        if lost > 0 {
            self.push(self.thread, LOST, [0, lost], 0);
        }
        mem::take(&mut self.waiting)
    }
}

/// A thread's turn to write. Its end gives the writer back, also if it panics.
struct Turn<'l> {
    lines: &'l Mutex<Lines>,
    out: Option<Box<dyn Write + Send>>,
}

impl Turn<'_> {
    /// Writes until no lines wait, or this thread has written as many as may wait: others could add
    /// lines for ever. The writer runs without the lock.
    fn write_all(mut self) {
        let mut written = 0;
        while let Some(out) = &mut self.out {
            let mut lines = lock(self.lines);
            if lines.waiting.is_empty() || written >= MOST_WAITING {
                lines.out = self.out.take();
                return;
            }
            let waiting = lines.take();
            drop(lines);
            written += waiting.len();
            let _ = out.write_all(&waiting);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(out) = self.out.take() {
            lock(self.lines).out = Some(out);
        }
    }
}

impl<A: Allocate> Logged<A> {
    /// Wraps `inner`, and writes to `out`, which should be buffered. It is flushed by its own drop.
    pub fn new(inner: A, mut out: Box<dyn Write + Send>) -> Self {
        let _ = writeln!(out, "{COLUMNS}");
        Self { inner, lines: Mutex::new(Lines { waiting: Vec::new(), lost: 0, out: Some(out), thread: 0 }) }
    }

    fn line(&self, action: &str, block: &Block, lane: &Lane) {
        let thread = thread_number();
        let mut lines = lock(&self.lines);
        if lines.out.is_none() && lines.thread == thread {
            return;
        }
        lines.add(thread, action, [block.address, block.bytes], lane.id);
        if let Some(out) = lines.out.take() {
            lines.thread = thread;
            drop(lines);
            Turn { lines: &self.lines, out: Some(out) }.write_all();
        }
    }
}

impl<A> Drop for Logged<A> {
    fn drop(&mut self) {
        let out = lock(&self.lines).out.take();
        Turn { lines: &self.lines, out }.write_all();
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
