//! The software GPU as a driver.
//!
//! It runs late on purpose: work stays queued until a wait, an event, a synchronisation or a
//! release needs it, and then runs in an order drawn from a seed (`schedule.rs`). Asynchronous
//! copies read and write host memory at that moment, so a program that forgets a wait gets wrong
//! bytes in a test and not in production. `docs/adr/0006-late-soft-driver.md` has the alternatives.
//!
//! Beware: queued work makes no progress by itself. A program that polls memory for its result
//! without a wait polls for ever. One that polls
//! [`Streams::event_query`](super::Streams::event_query) ends, since each poll runs one piece of
//! work. Work that is still queued when the driver is dropped never runs.

mod graphs;
mod memory;
mod modules;
#[cfg(feature = "parallel")]
mod pool;
#[cfg(not(feature = "parallel"))]
#[path = "no_pool.rs"]
mod pool;
mod schedule;
mod state;
mod streams;

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use self::schedule::Goal;
use self::state::{Action, Entry, HostBox, HostPointer, Queued, State, no_such};
use super::memory::within_the_host;
use super::{Copy3d, DeviceInfo, Driver, DriverKind, Place, StreamHandle, available_memory};
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::interp::check::{Checks, MAX_FINDINGS};
use crate::interp::{self, Finding, Memory};
use crate::launch_shape::{LaunchShape, MAX_BLOCK_THREADS, MAX_GRID_X, MAX_GRID_YZ, MAX_SHARED_BYTES};
use crate::sync::lock;

/// Bytes of a download that pass through a buffer at a time, which stay in the L1 cache.
const CHUNK: usize = 16 * 1024;

/// The default limit of a software GPU's memory.
const MOST_MEMORY_BYTES: u64 = 8 << 30;

/// The configuration of a software GPU.
#[derive(Debug, Clone)]
pub struct Config {
    /// Decides the order of work where several orders are legal. Even: strictly late. Odd: work
    /// that no wait needs yet may run in between. Default 0.
    pub seed: u64,
    /// Bytes of device memory. Host memory is taken only as it is allocated. Default 8 GiB, or half
    /// of the host's available memory if that is less and the system reports it.
    pub memory_bytes: u64,
    /// The compute capability that it reports, major and minor. Plans choose kernels by it; kernels
    /// run and count alike. Default 9.0, an H100's, whose counters it reproduces.
    pub compute_capability: (u32, u32),
    /// How kernels run.
    pub interp: interp::Config,
}

impl Default for Config {
    fn default() -> Self {
        // Beyond what the host can give, the system kills the process instead of refusing an
        // allocation.
        let memory_bytes = available_memory().map_or(MOST_MEMORY_BYTES, |bytes| MOST_MEMORY_BYTES.min(bytes / 2));
        Self { seed: 0, memory_bytes, compute_capability: (9, 0), interp: interp::Config::default() }
    }
}

/// A launch that a device counted.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Launched {
    /// The kernel's name.
    pub kernel: String,
    /// Its grid and block.
    pub shape: LaunchShape,
    /// The counts of the blocks that ran.
    pub report: interp::Report,
}

/// An open software GPU.
///
/// ```
/// use std::sync::Arc;
///
/// use warpstride::driver::soft::{Config, Soft};
/// use warpstride::interp::{self, Checks};
/// use warpstride::{Device, ops};
///
/// // Finds races, reads of unwritten bytes, and the like, in all kernels on the device.
/// let interp = interp::Config { checks: Checks::ALL, ..interp::Config::default() };
/// let soft = Arc::new(Soft::with_config(Config { interp, ..Config::default() }));
/// let device = Device::with_driver(soft.clone())?;
/// let matrix = device.array(&[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// assert_eq!(ops::transpose(&matrix)?.to_vec()?, [1, 4, 2, 5, 3, 6]);
/// assert_eq!(soft.findings(), []);
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct Soft {
    info: DeviceInfo,
    memory: Memory,
    interp: interp::Config,
    /// The checkers' findings, launch by launch, and the number of further ones.
    findings: Mutex<(Vec<Finding>, u64)>,
    /// The launches that have run, where they are kept.
    launches: Option<Mutex<Vec<Launched>>>,
    // Locked while work runs; `pool::install` says why that is safe.
    state: Mutex<State>,
}

impl Soft {
    /// Opens a software GPU with the default [`Config`].
    pub fn new() -> Self {
        Self::with_config(Config::default())
    }

    /// Opens a software GPU that orders its work by `seed`.
    pub fn with_seed(seed: u64) -> Self {
        Self::with_config(Config { seed, ..Config::default() })
    }

    /// Opens a software GPU with a configuration.
    pub fn with_config(config: Config) -> Self {
        // Handles of different drivers differ, so a driver detects another's handle.
        static OPENED: AtomicU64 = AtomicU64::new(1);
        let Config { seed, memory_bytes, compute_capability, interp } = config;
        let state = State::new(seed, OPENED.fetch_add(1, Ordering::Relaxed) << 32);
        Self {
            info: device_info(memory_bytes, compute_capability, interp.threads),
            memory: Memory::new(memory_bytes),
            interp,
            findings: Mutex::default(),
            launches: None,
            state: Mutex::new(state),
        }
    }

    /// Opens one that counts and gives no results: it runs at most `most_blocks` blocks of a
    /// launch, memory keeps no data, and [`Soft::take_launches`] has the launches.
    #[doc(hidden)]
    pub fn counting(most_blocks: u64) -> Self {
        let interp = interp::Config { most_blocks, ..interp::Config::default() };
        let config = Config { memory_bytes: u64::MAX, interp, ..Config::default() };
        Self { memory: Memory::hollow(), launches: Some(Mutex::default()), ..Self::with_config(config) }
    }

    /// Takes the launches that have run since the last time, of a device that counts only.
    #[doc(hidden)]
    pub fn take_launches(&self) -> Vec<Launched> {
        self.launches.as_ref().map(|launches| std::mem::take(&mut *lock(launches))).unwrap_or_default()
    }

    /// Returns the findings of the checkers of `Config::interp.checks` in all launches that have
    /// run so far, in the order in which they ran. A launch with findings does not fail: it
    /// continues. The list keeps the first [`MAX_FINDINGS`] of each launch, and of all together.
    pub fn findings(&self) -> Vec<Finding> {
        self.found().0.clone()
    }

    /// Returns the number of findings beyond the list.
    pub fn more_findings(&self) -> u64 {
        self.found().1
    }

    fn found(&self) -> MutexGuard<'_, (Vec<Finding>, u64)> {
        lock(&self.findings)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while work runs is a bug of the interpreter. It leaves the state consistent, if
        // incomplete.
        lock(&self.state)
    }

    /// Returns the state, unless the device has failed.
    fn working(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        state.check()?;
        Ok(state)
    }

    /// Returns the state if the device works and `stream` is live.
    fn streaming(&self, stream: StreamHandle) -> Result<MutexGuard<'_, State>> {
        let state = self.working()?;
        if state.schedule.is_live(stream.0) { Ok(state) } else { Err(no_such("stream", stream.0)) }
    }

    /// Queues an action on `bytes` bytes. An action on 0 bytes does nothing.
    fn queue(&self, stream: StreamHandle, bytes: u64, action: Action) -> Result<()> {
        let mut state = self.streaming(stream)?;
        if bytes > 0 { state.queue(stream, action) } else { Ok(()) }
    }

    /// Runs all queued work. This comes before memory is freed, because work does not say which
    /// memory it uses. A failed device has no queued work.
    fn drain(&self, state: &mut State) -> Result<()> {
        state.check()?;
        let goal = state.schedule.everything();
        self.reach(state, &goal)
    }

    fn reach(&self, state: &mut State, goal: &Goal) -> Result<()> {
        while self.step(state, goal)? {}
        Ok(())
    }

    /// Runs one piece of work towards `goal`; false once it is reached.
    fn step(&self, state: &mut State, goal: &Goal) -> Result<bool> {
        state.step(goal, |work| self.run(work))
    }

    fn run(&self, work: &Queued) -> Result<Counters> {
        match &*work.action {
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
            &Action::PoolFree { address } => self.memory.free(address)?,
            &Action::Copy { dst, src, bytes } => self.memory.copy(dst, src, bytes)?,
            &Action::Fill { dst, value, bytes } => self.memory.fill(dst, value, bytes)?,
            Action::Launch { entry, shape, params } => return self.run_kernel(entry, shape, params),
        }
        Ok(Counters::default())
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

    fn run_kernel(&self, entry: &Entry, shape: &LaunchShape, params: &[u8]) -> Result<Counters> {
        let mut config = self.interp.clone();
        if entry.own {
            config.work_limit = u64::MAX;
        }
        let run = || interp::run(&entry.kernel, shape, params, &self.memory, &config);
        let mut report = pool::install(run)?;
        let (new, more, printed) = match &mut report {
            Ok(report) => (&mut report.findings, report.more_findings, &report.printed),
            Err(stop) => (&mut stop.findings, stop.more_findings, &stop.printed),
        };
        let mut found = self.found();
        let room = MAX_FINDINGS.saturating_sub(found.0.len()).min(new.len());
        found.1 = found.1.saturating_add(more + (new.len() - room) as u64);
        found.0.extend(new.drain(..room));
        drop(found);
        // There is no other output for it, and standard output belongs to the program. A closed
        // stream has no reader.
        let _ = io::stderr().write_all(printed.as_bytes());
        let report = report.map_err(|stop| Error::from(*stop))?;
        let counters = report.counters;
        if let Some(launches) = &self.launches {
            lock(launches).push(Launched { kernel: entry.kernel.name().to_owned(), shape: *shape, report });
        }
        Ok(counters)
    }
}

impl Default for Soft {
    fn default() -> Self {
        Self::new()
    }
}
// SAFETY: all parts share one state and one memory.
unsafe impl Driver for Soft {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.lock().counters)
    }

    fn has_checkers(&self) -> bool {
        self.interp.checks != Checks::NONE
    }
}

impl fmt::Debug for Soft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Soft").field("memory", &self.memory).finish_non_exhaustive()
    }
}

fn device_info(memory_bytes: u64, compute_capability: (u32, u32), threads: usize) -> DeviceInfo {
    let threads = if threads > 0 { threads } else { pool::threads() };
    DeviceInfo {
        name: "software GPU".to_owned(),
        kind: DriverKind::Soft,
        ordinal: 0,
        compute_capability,
        driver_version: env!("CARGO_PKG_VERSION").to_owned(),
        multiprocessors: threads as u32,
        memory_bytes,
        l2_bytes: 0,
        nominal_bandwidth: None,
        max_block_threads: MAX_BLOCK_THREADS,
        max_grid: [MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ],
        shared_bytes_per_block: MAX_SHARED_BYTES,
        pci_bus_id: None,
    }
}
