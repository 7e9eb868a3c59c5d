//! One software GPU of a host: its memory, and how it runs the work of its streams.

use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::state::{Action, Entry, HostBox, HostPointer, Ran};
use super::{Config, Launched, Watch, pool};
use crate::counters::Counters;
use crate::driver::memory::within_the_host;
use crate::driver::{Copy3d, DeviceInfo, Place};
use crate::error::{Error, Result};
use crate::interp::check::MAX_FINDINGS;
use crate::interp::{self, Finding, Memory};
use crate::launch_shape::LaunchShape;
use crate::sync::lock;

/// Bytes of a download that pass through a buffer at a time, which stay in the L1 cache.
const CHUNK: usize = 16 * 1024;

/// The bits of a handle below the number of its GPU.
const HANDLE_BITS: u32 = 32;

/// A software GPU, without its queued work, which it shares with the others of its host.
pub(super) struct Gpu {
    pub(super) info: DeviceInfo,
    pub(super) memory: Memory,
    pub(super) interp: interp::Config,
    watch: Option<Watch>,
    /// The checkers' findings, launch by launch, and the number of further ones.
    pub(super) findings: Mutex<(Vec<Finding>, u64)>,
    /// The launches that have run, where they are kept.
    pub(super) launches: Option<Mutex<Vec<Launched>>>,
    pub(super) counters: Mutex<Counters>,
    /// Why a launch stopped, once one has.
    pub(super) fault: Mutex<Option<interp::stop::Reason>>,
    /// The last handle that it gave out. Handles of different GPUs differ, so a driver detects
    /// another's handle.
    handles: AtomicU64,
}

impl Gpu {
    /// Makes one whose handles begin with `number`.
    pub(super) fn new(number: u64, info: DeviceInfo, memory: Memory, config: &Config) -> Self {
        Self {
            info,
            memory,
            interp: interp::Config {
                footprint: config.interp.footprint || config.follows_order,
                ..config.interp.clone()
            },
            watch: config.watch.clone(),
            findings: Mutex::default(),
            launches: None,
            counters: Mutex::default(),
            fault: Mutex::default(),
            handles: AtomicU64::new(number << HANDLE_BITS),
        }
    }

    /// Returns a new handle.
    pub(super) fn handle(&self) -> u64 {
        self.handles.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns whether it gave out a handle.
    pub(super) fn gave(&self, handle: u64) -> bool {
        handle >> HANDLE_BITS == self.handles.load(Ordering::Relaxed) >> HANDLE_BITS
    }

    /// Runs an action of one of its streams.
    pub(super) fn run(&self, action: &Action) -> Result<Ran> {
        match action {
            // Memory without data gives zeros: the host may read what it asked for.
            &Action::Download { dst: HostPointer(dst), bytes, .. } if self.is_hollow() => {
                // SAFETY: the caller of `copy_d2h` promised that the target is valid for writes of
                // so many bytes, and that no other code uses it, until this has run.
                unsafe { dst.write_bytes(0, bytes) };
            }
            Action::CopyBox(HostBox(copy)) if self.is_hollow() => {
                for row in copy.rows() {
                    if let [Place::Host(dst), _] = row {
                        // SAFETY: the caller of `copy_3d` promised that each row of the target is
                        // valid for writes, and that no other code uses it, until this has run.
                        unsafe { dst.write_bytes(0, copy.width) };
                    }
                }
            }
            Action::Upload { .. } | Action::Copy { .. } | Action::Fill { .. } if self.is_hollow() => {}
            // SAFETY: the caller of `copy_h2d` promised that the source is valid, and not written,
            // until this has run.
            &Action::Upload { dst, src: HostPointer(src), bytes } => unsafe { self.upload(dst, src, bytes) }?,
            // SAFETY: the caller of `copy_d2h` promised that the target is valid for writes, and
            // that no other code uses it, until this has run.
            &Action::Download { dst: HostPointer(dst), src, bytes } => unsafe { self.download(dst, src, bytes) }?,
            Action::CopyBox(HostBox(copy)) => self.copy_box(copy)?,
            &Action::PoolFree { address, .. } => self.memory.free(address)?,
            &Action::Copy { dst, src, bytes } => self.memory.copy(dst, src, bytes)?,
            &Action::Fill { dst, value, bytes } => self.memory.fill(dst, value, bytes)?,
            Action::Launch { entry, shape, params, cooperative } => {
                return self.run_kernel(entry, shape, params, *cooperative);
            }
            Action::Call { call, .. } => call()?,
            Action::Until(_) => {}
        }
        Ok(None)
    }

    /// Returns whether memory keeps no data.
    fn is_hollow(&self) -> bool {
        self.launches.is_some()
    }

    fn copy_box(&self, copy: &Copy3d) -> Result<()> {
        copy.rows().try_for_each(|row| match row {
            [Place::Device(dst), Place::Device(src)] => Ok(self.memory.copy(dst, src, copy.width as u64)?),
            // SAFETY: the caller of `copy_3d` promised that each row of the source is valid, and
            // not written, until this has run.
            [Place::Device(dst), Place::Host(src)] => unsafe { self.upload(dst, src, copy.width) },
            // SAFETY: the caller of `copy_3d` promised that each row of the target is valid for
            // writes, and that no other code uses it, until this has run.
            [Place::Host(dst), Place::Device(src)] => unsafe { self.download(dst, src, copy.width) },
            [Place::Host(_), Place::Host(_)] => Err(within_the_host()),
        })
    }

    /// Copies from the host.
    ///
    /// # Safety
    ///
    /// - `src` is valid for reads of `bytes` bytes, which no other code writes meanwhile.
    unsafe fn upload(&self, dst: u64, src: *const u8, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        Ok(self.memory.write(dst, unsafe { std::slice::from_raw_parts(src, bytes) })?)
    }

    /// Copies to the host through a buffer: the target may be uninitialised, so no slice of it can
    /// be read into.
    ///
    /// # Safety
    ///
    /// - `dst` is valid for writes of `bytes` bytes, which no other code uses meanwhile.
    unsafe fn download(&self, dst: *mut u8, src: u64, bytes: usize) -> Result<()> {
        let mut buffer = [0; CHUNK];
        for start in (0..bytes).step_by(CHUNK) {
            let chunk = &mut buffer[..CHUNK.min(bytes - start)];
            self.memory.read(src + start as u64, chunk)?;
            // SAFETY: `start` is less than `bytes`, for which the target is valid.
            let target = unsafe { dst.add(start) };
            // SAFETY: the caller promises that the target is valid for writes, and that no other
            // code uses it; the buffer is ours.
            unsafe { target.copy_from_nonoverlapping(chunk.as_ptr(), chunk.len()) };
        }
        Ok(())
    }

    fn run_kernel(&self, entry: &Entry, shape: &LaunchShape, params: &[u8], cooperative: bool) -> Result<Ran> {
        let mut config = interp::Config { cooperative, ..self.interp.clone() };
        if entry.own {
            config.work_limit = u64::MAX;
        }
        let run = || interp::run(&entry.kernel, shape, params, &self.memory, &config);
        let mut report = pool::install(run)?;
        if let Some(Watch(tell)) = &self.watch {
            tell(&entry.kernel, shape, report.as_ref().map_err(|stop| &**stop));
        }
        let (new, more, printed) = match &mut report {
            Ok(report) => (&mut report.findings, report.more_findings, &report.printed),
            Err(stop) => (&mut stop.findings, stop.more_findings, &stop.printed),
        };
        let mut found = lock(&self.findings);
        let room = MAX_FINDINGS.saturating_sub(found.0.len()).min(new.len());
        found.1 = found.1.saturating_add(more + (new.len() - room) as u64);
        found.0.extend(new.drain(..room));
        drop(found);
        // There is no other output for it, and standard output belongs to the program. A closed
        // stream has no reader.
        let _ = io::stderr().write_all(printed.as_bytes());
        let mut report = report.map_err(|stop| {
            lock(&self.fault).get_or_insert_with(|| stop.reason.clone());
            Error::from(*stop)
        })?;
        *lock(&self.counters) += report.counters;
        let touched = report.touched.take();
        if let Some(launches) = &self.launches {
            lock(launches).push(Launched { kernel: entry.kernel.name().to_owned(), shape: *shape, report });
        }
        Ok(touched)
    }
}
