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

mod clocks;
mod gpu;
mod graphs;
mod locked;
mod memory;
mod modules;
mod order;
mod peers;
#[cfg(feature = "parallel")]
mod pool;
#[cfg(not(feature = "parallel"))]
#[path = "no_pool.rs"]
mod pool;
mod region;
mod schedule;
mod state;
mod streams;
#[cfg(test)]
mod tests;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use self::gpu::Gpu;
use self::locked::Locked;
#[doc(hidden)]
pub use self::order::Unordered;
use self::order::{Found, Order};
#[doc(hidden)]
pub use self::region::Region;
use self::schedule::{Condition, Goal, Next};
use self::state::{Action, Queued, Ran, State, no_such};
use super::{DeviceInfo, Driver, DriverKind, FunctionHandle, ModuleHandle, StreamHandle, available_memory};
use crate::counters::Counters;
use crate::error::Result;
use crate::interp::check::Checks;
use crate::interp::{self, Finding, Kernel, Memory, Stop};
use crate::launch_shape::{LaunchShape, MAX_BLOCK_THREADS, MAX_GRID_X, MAX_GRID_YZ, MAX_SHARED_BYTES};
use crate::sync::lock;

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
    /// The number of GPUs that can use each other's memory, of those of a host: with 2, they do so
    /// in pairs, counted from the first one, and with 1, none does. Default: all of them.
    pub island: usize,
    /// How kernels run.
    pub interp: interp::Config,
    /// True if kernels and copies can use registered memory of the host, and memory of
    /// [`Soft::alloc_shared`], at the host's own addresses.
    #[doc(hidden)]
    pub shares_host_addresses: bool,
    /// Is told of each launch that has run.
    #[doc(hidden)]
    pub watch: Option<Watch>,
    /// True to find work of two streams that uses the same bytes without an order between them.
    #[doc(hidden)]
    pub follows_order: bool,
}

/// A function that is told of each launch that has run, on the thread that ran it. It must not call
/// the driver.
#[doc(hidden)]
#[derive(Clone)]
pub struct Watch(pub Arc<Watcher>);

/// The function of a [`Watch`]: it gets the kernel, the launch's shape, and how the launch ended.
type Watcher = dyn Fn(&Kernel, &LaunchShape, Result<&interp::Report, &Stop>) + Send + Sync;

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

impl Default for Config {
    fn default() -> Self {
        // Beyond what the host can give, the system kills the process instead of refusing an
        // allocation.
        let memory_bytes = available_memory().map_or(MOST_MEMORY_BYTES, |bytes| MOST_MEMORY_BYTES.min(bytes / 2));
        let interp = interp::Config::default();
        Self {
            seed: 0,
            memory_bytes,
            compute_capability: (9, 0),
            island: usize::MAX,
            interp,
            shares_host_addresses: false,
            watch: None,
            follows_order: false,
        }
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

/// A function of the host that work calls.
#[doc(hidden)]
pub type HostCall = Box<dyn Fn() -> Result<()> + Send + Sync>;

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
    host: Arc<Host>,
    /// Its number among those of its host.
    number: usize,
}

/// The software GPUs of one host, which share queued work, so that their streams can wait for each
/// other, and an address space.
struct Host {
    gpus: Vec<Gpu>,
    /// See [`Config::island`].
    island: usize,
    // Locked while work of the GPUs runs; `pool::install` says why that is safe.
    state: Mutex<State>,
    /// Wakes threads that wait for a call of the host to come back.
    returned: Condvar,
    /// The accesses without an order. A function that is told of a launch may read it.
    unordered: Arc<Mutex<Found>>,
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
        let memory = memory_of(&config);
        Self::alone(&config, Gpu::new(next_numbers(1), device_info(&config, 0), memory, &config))
    }

    /// Opens `count` software GPUs of one host, each with this configuration and half of
    /// `memory_bytes` where there are two, and so on. Their streams can wait for each other's
    /// events, and each may [share](crate::driver::Peers::share_with) its memory. When work of one
    /// fails, all of them have failed.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use warpstride::Device;
    /// use warpstride::driver::soft::{Config, Soft};
    ///
    /// let gpus = Soft::host(2, &Config::default());
    /// let mut devices = gpus.into_iter().map(|gpu| Device::with_driver(Arc::new(gpu)));
    /// assert_eq!(devices.nth(1).transpose()?.map(|device| device.info().ordinal), Some(1));
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn host(count: usize, config: &Config) -> Vec<Self> {
        let config = Config { memory_bytes: config.memory_bytes / count.max(1) as u64, ..config.clone() };
        let first = memory_of(&config);
        let others: Vec<_> = (1..count).map(|_| first.beside(config.memory_bytes)).collect();
        let numbers = next_numbers(count as u64);
        let gpu =
            |(ordinal, memory)| Gpu::new(numbers + u64::from(ordinal), device_info(&config, ordinal), memory, &config);
        let gpus = (0..).zip(std::iter::once(first).chain(others).take(count)).map(gpu).collect();
        let host = Arc::new(Host::new(gpus, config.island.max(1), config.seed, config.follows_order));
        (0..count).map(|number| Self { host: Arc::clone(&host), number }).collect()
    }

    /// Opens one that counts and gives no results: it runs at most `most_blocks` blocks of a
    /// launch, memory keeps no data, and [`Soft::take_launches`] has the launches.
    #[doc(hidden)]
    pub fn counting(most_blocks: u64) -> Self {
        let interp = interp::Config { most_blocks, ..interp::Config::default() };
        let config = Config { memory_bytes: u64::MAX, interp, ..Config::default() };
        let mut gpu = Gpu::new(next_numbers(1), device_info(&config, 0), Memory::hollow(), &config);
        gpu.launches = Some(Mutex::default());
        Self::alone(&config, gpu)
    }

    fn alone(config: &Config, gpu: Gpu) -> Self {
        Self { host: Arc::new(Host::new(vec![gpu], 1, config.seed, config.follows_order)), number: 0 }
    }

    fn gpu(&self) -> &Gpu {
        &self.host.gpus[self.number]
    }

    /// Its memory.
    #[doc(hidden)]
    pub fn memory(&self) -> &Memory {
        &self.gpu().memory
    }

    /// Returns the kernel of a function.
    #[doc(hidden)]
    pub fn kernel(&self, function: FunctionHandle) -> Result<Kernel> {
        let state = self.working()?;
        let entry = state.functions.get(&function.0).ok_or_else(|| no_such("function", function.0))?;
        Ok(entry.kernel.clone())
    }

    /// Returns the parsed module of a handle.
    #[doc(hidden)]
    pub fn module(&self, module: ModuleHandle) -> Result<interp::Module> {
        let state = self.working()?;
        let loaded = state.modules.get(&module.0).ok_or_else(|| no_such("module", module.0))?;
        Ok(loaded.module.clone())
    }

    /// Returns why a launch stopped on a GPU of the host, after which all of them have failed.
    #[doc(hidden)]
    pub fn fault(&self) -> Option<interp::stop::Reason> {
        self.host.gpus.iter().find_map(|gpu| lock(&gpu.fault).clone())
    }

    /// Queues a call of a function of the host. `what` describes it for errors: "calling a host
    /// function". `uses` has the bytes that it reads and writes, if it does nothing else. A graph
    /// calls it at each launch. Other threads may use the driver while it runs, and work of other
    /// streams may run. The function itself must not wait for work of the driver, since work of its
    /// own stream, and a wait for all work, wait for its return.
    #[doc(hidden)]
    pub fn call_host(
        &self,
        stream: StreamHandle,
        what: &'static str,
        uses: Option<Box<[Region]>>,
        call: HostCall,
    ) -> Result<()> {
        self.streaming(stream)?.queue(stream, Action::Call { what, uses, call })
    }

    /// Gives a stream a name for [`Soft::unordered`].
    #[doc(hidden)]
    pub fn name_stream(&self, stream: StreamHandle, name: String) {
        if let Some(order) = self.lock().schedule.order() {
            order.clocks.set_name(stream.0, name);
        }
    }

    /// Returns the accesses of streams of the host's GPUs without an order between them, and the
    /// number of those that are not listed.
    #[doc(hidden)]
    pub fn unordered(&self) -> (Vec<Unordered>, u64) {
        let Found { list, more } = lock(&self.host.unordered).clone();
        (list, more)
    }

    /// Holds work that is queued on a stream from now on back until `holds` returns true. It must
    /// not call the driver, except to read memory, and must not block. A wait that needs the work
    /// polls it, and lets other work run meanwhile.
    #[doc(hidden)]
    pub fn wait_until(&self, stream: StreamHandle, holds: impl Fn() -> bool + Send + Sync + 'static) -> Result<()> {
        self.streaming(stream)?.queue(stream, Action::Until(Condition(Arc::new(holds))))
    }

    /// Returns whether other work need not wait for a stream: all its work has run. This runs no
    /// work. Where the order of work is followed, a wait has to say that there is one.
    #[doc(hidden)]
    pub fn needs_no_wait(&self, stream: StreamHandle) -> Result<bool> {
        let mut state = self.streaming(stream)?;
        Ok(state.schedule.is_idle(stream.0) && state.schedule.order().is_none())
    }

    /// Returns whether all work of a stream has run. Each poll that returns false has run one piece
    /// of work, if one could run.
    #[doc(hidden)]
    pub fn poll_stream(&self, stream: StreamHandle) -> Result<bool> {
        let mut state = self.streaming(stream)?;
        state.not_captured(stream, "polling")?;
        let goal = state.schedule.everything_on(stream.0);
        let is_reached = self.step(&mut state, &goal)? == Progress::Reached;
        if is_reached {
            state.schedule.host_knows(&goal);
        }
        Ok(is_reached)
    }

    /// Takes the launches that have run since the last time, of a device that counts only.
    #[doc(hidden)]
    pub fn take_launches(&self) -> Vec<Launched> {
        self.gpu().launches.as_ref().map(|launches| std::mem::take(&mut *lock(launches))).unwrap_or_default()
    }

    /// Returns the findings of the checkers of `Config::interp.checks` in all launches that have
    /// run so far, in the order in which they ran. A launch with findings does not fail: it
    /// continues. The list keeps the first [`MAX_FINDINGS`](crate::interp::check::MAX_FINDINGS) of
    /// each launch, and of all together.
    pub fn findings(&self) -> Vec<Finding> {
        self.found().0.clone()
    }

    /// Returns the number of findings beyond the list.
    pub fn more_findings(&self) -> u64 {
        self.found().1
    }

    fn found(&self) -> MutexGuard<'_, (Vec<Finding>, u64)> {
        lock(&self.gpu().findings)
    }

    fn lock(&self) -> Locked<'_> {
        // A panic while work runs is a bug of the interpreter. It leaves the state consistent, if
        // incomplete.
        Locked::new(&self.host.state)
    }

    /// Returns the state, unless the device has failed.
    fn working(&self) -> Result<Locked<'_>> {
        let state = self.lock();
        state.check()?;
        Ok(state)
    }

    /// Returns the state if the device works and `stream` is live.
    fn streaming(&self, stream: StreamHandle) -> Result<Locked<'_>> {
        let state = self.working()?;
        let is_live = self.gpu().gave(stream.0) && state.schedule.is_live(stream.0);
        if is_live { Ok(state) } else { Err(no_such("stream", stream.0)) }
    }

    /// Refuses a handle that another GPU gave out.
    fn check_own(&self, what: &str, handle: u64) -> Result<()> {
        if self.gpu().gave(handle) { Ok(()) } else { Err(no_such(what, handle)) }
    }

    /// Queues an action on `bytes` bytes. An action on 0 bytes does nothing.
    fn queue(&self, stream: StreamHandle, bytes: u64, action: Action) -> Result<()> {
        let mut state = self.streaming(stream)?;
        if bytes > 0 { state.queue(stream, action) } else { Ok(()) }
    }

    /// Runs all queued work of this GPU, and the work that it waits for. This comes before memory
    /// is freed, because work does not say which memory it uses. A failed device has no queued
    /// work.
    fn drain(&self, state: &mut Locked<'_>) -> Result<()> {
        state.check()?;
        let goal = state.schedule.everything_where(|stream| self.gpu().gave(stream));
        self.reach(state, &goal)
    }

    /// Runs all queued work of the host's GPUs, before memory of the host is freed, which copies of
    /// any of them may use.
    fn drain_host(&self, state: &mut Locked<'_>) -> Result<()> {
        state.check()?;
        let goal = state.schedule.everything_where(|_| true);
        self.reach(state, &goal)
    }

    /// Runs queued work of the host's GPUs, as far as it waits for nothing. The program has not
    /// waited for it.
    #[doc(hidden)]
    pub fn run_ready(&self) -> Result<()> {
        let mut state = self.working()?;
        let goal = state.schedule.everything_where(|_| true);
        while let Progress::Ran = self.step(&mut state, &goal)? {}
        Ok(())
    }

    /// Runs work until `goal` is reached. The lock is free while a call of the host runs, and while
    /// the thread waits for one or for a condition.
    fn reach(&self, state: &mut Locked<'_>, goal: &Goal) -> Result<()> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            match self.step(state, goal)? {
                Progress::Reached => {
                    state.schedule.host_knows(goal);
                    return Ok(());
                }
                Progress::Ran => pause = SHORTEST_PAUSE,
                Progress::Busy => state.wait(&self.host.returned, None),
                // The host or another process may make the condition hold, and tells no thread.
                Progress::Unmet => {
                    state.wait(&self.host.returned, Some(pause));
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
            }
        }
    }

    /// Runs one piece of work towards `goal`, if one can run now.
    fn step(&self, state: &mut Locked<'_>, goal: &Goal) -> Result<Progress> {
        // Another thread's call may have failed while this one waited.
        state.check()?;
        let next = state.schedule.next(goal);
        match next.inspect_err(|error| state.fail(error.clone()))? {
            Next::Reached => return Ok(Progress::Reached),
            Next::Busy => return Ok(Progress::Busy),
            Next::Unmet => return Ok(Progress::Unmet),
            Next::Work(work) => state.run(&work, |work| self.host.run(work))?,
            Next::Call(call) => self.call(state, &call)?,
        }
        Ok(Progress::Ran)
    }

    /// Runs a call of the host while the lock is free.
    fn call(&self, state: &mut Locked<'_>, call: &Queued) -> Result<()> {
        state.begin_call(call);
        let result = state.unlocked(|| catch_unwind(AssertUnwindSafe(|| self.host.run(call))));
        state.schedule.finish(call.stream.0);
        let ended = match result {
            Ok(result) => state.end(call, result),
            Err(panic) => {
                state.panicked();
                self.host.returned.notify_all();
                resume_unwind(panic)
            }
        };
        self.host.returned.notify_all();
        ended
    }
}

/// The shortest and the longest pause between two looks at a condition.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// The outcome of a step.
#[derive(PartialEq, Eq)]
enum Progress {
    /// Nothing: the goal is reached.
    Reached,
    Ran,
    /// Nothing, since a call of the host that another thread runs is not back.
    Busy,
    /// Nothing, since a condition does not hold.
    Unmet,
}

impl Default for Soft {
    fn default() -> Self {
        Self::new()
    }
}
// SAFETY: all parts share one state and one memory.
unsafe impl Driver for Soft {
    fn info(&self) -> &DeviceInfo {
        &self.gpu().info
    }

    fn counters(&self) -> Option<Counters> {
        Some(*lock(&self.gpu().counters))
    }

    fn has_checkers(&self) -> bool {
        self.gpu().interp.checks != Checks::NONE
    }
}

impl fmt::Debug for Soft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Soft").field("memory", self.memory()).finish_non_exhaustive()
    }
}

impl Host {
    fn new(gpus: Vec<Gpu>, island: usize, seed: u64, follows_order: bool) -> Self {
        let unordered = Arc::default();
        let mut state = State::new(seed);
        if follows_order {
            state.schedule.follow(Order::new(Arc::clone(&unordered)));
        }
        Self { gpus, island, state: Mutex::new(state), returned: Condvar::new(), unordered }
    }

    /// Runs work on the GPU of its stream.
    fn run(&self, work: &Queued) -> Result<Ran> {
        let own = self.gpus.iter().find(|gpu| gpu.gave(work.stream.0));
        own.map_or(Ok(None), |gpu| gpu.run(&work.action))
    }
}

/// Makes the memory of the first GPU of a host.
fn memory_of(config: &Config) -> Memory {
    if config.shares_host_addresses {
        Memory::with_addresses_of_host(config.memory_bytes)
    } else {
        Memory::new(config.memory_bytes)
    }
}

/// Takes numbers of GPUs that no other one has, and returns the first.
fn next_numbers(count: u64) -> u64 {
    static OPENED: AtomicU64 = AtomicU64::new(1);
    OPENED.fetch_add(count, Ordering::Relaxed)
}

fn device_info(config: &Config, ordinal: u32) -> DeviceInfo {
    let threads = if config.interp.threads > 0 { config.interp.threads } else { pool::threads() };
    DeviceInfo {
        name: "software GPU".to_owned(),
        kind: DriverKind::Soft,
        ordinal,
        compute_capability: config.compute_capability,
        driver_version: env!("CARGO_PKG_VERSION").to_owned(),
        multiprocessors: threads as u32,
        memory_bytes: config.memory_bytes,
        l2_bytes: 0,
        nominal_bandwidth: None,
        max_block_threads: MAX_BLOCK_THREADS,
        max_grid: [MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ],
        shared_bytes_per_block: MAX_SHARED_BYTES,
        pci_bus_id: None,
    }
}
