//! The software GPU as a driver.
//!
//! It runs late on purpose: work stays queued until a wait, an event, a synchronisation or a release needs it, and then
//! runs in an order drawn from a seed (`schedule.rs`). Asynchronous copies read and write host memory at that moment, so
//! that a program that forgets a wait gets wrong bytes in a test and not in production. `docs/adr/0006-late-soft-driver.md`
//! says what was weighed.
//!
//! What a newcomer may trip over: nothing makes progress by itself. A program that looks for its result in memory, without
//! a wait, looks for ever; one that polls [`Driver::event_query`] gets there, since each poll runs one piece of work.
//! Work that is still queued when the driver is dropped never runs.

mod schedule;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::num::NonZero;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use self::schedule::{Goal, Mark, Schedule};
use super::{DeviceInfo, Driver, DriverKind, EventHandle, FunctionHandle, ModuleHandle, StreamHandle};
use crate::abi::{LaunchShape, MAX_GRID_YZ};
use crate::counters::Counters;
use crate::error::{Error, ErrorKind, Result};
use crate::interp::{self, Kernel, Memory, Module};

/// Bytes of a download that pass through a buffer at a time: they stay in the L1 cache.
const CHUNK: usize = 16 * 1024;

/// How a software GPU is to be.
#[derive(Debug, Clone)]
pub struct Config {
    /// Decides the order of work that may run in several. Even: strictly late. Odd: work that nobody waits for yet may run
    /// in between. Default 0.
    pub seed: u64,
    /// Bytes of device memory. Host memory is taken only as it is allocated. Default 8 GiB.
    pub memory_bytes: u64,
    /// How kernels run.
    pub interp: interp::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self { seed: 0, memory_bytes: 8 << 30, interp: interp::Config::default() }
    }
}

/// An open software GPU.
pub struct Soft {
    info: DeviceInfo,
    memory: Memory,
    interp: interp::Config,
    // Held while work runs; `on_our_threads` says why that is safe.
    state: Mutex<State>,
}

struct State {
    schedule: Schedule<Work>,
    /// Live events with their latest record.
    events: HashMap<u64, Option<Arc<Mark>>>,
    modules: HashMap<u64, Loaded>,
    functions: HashMap<u64, Kernel>,
    host: HashMap<usize, Vec<Line>>,
    counters: Counters,
    /// Why the device has failed, once it has.
    failed: Option<Error>,
    next_handle: u64,
}

struct Loaded {
    module: Module,
    functions: BTreeMap<String, FunctionHandle>,
}

/// Page-locked memory comes in these, for their alignment.
#[derive(Clone, Copy)]
#[repr(align(64))]
#[expect(dead_code, reason = "read and written by callers only")]
struct Line([u8; 64]);

/// Work on a stream, with the stream for the error message.
struct Work {
    stream: StreamHandle,
    action: Action,
}

enum Action {
    Upload { dst: u64, src: HostPointer, bytes: usize },
    Download { dst: HostPointer, src: u64, bytes: usize },
    Copy { dst: u64, src: u64, bytes: u64 },
    Fill { dst: u64, value: u8, bytes: u64 },
    Launch { kernel: Kernel, shape: LaunchShape, params: Box<[u8]> },
}

/// A caller's memory, used later by whichever thread waits.
struct HostPointer(*mut u8);

// SAFETY: who queues a copy promises that the memory stays valid until the copy has run, on any thread.
unsafe impl Send for HostPointer {}

impl Soft {
    /// A software GPU with the default [`Config`].
    pub fn new() -> Self {
        Self::with_config(Config::default())
    }

    /// A software GPU that orders its work by `seed`.
    pub fn with_seed(seed: u64) -> Self {
        Self::with_config(Config { seed, ..Config::default() })
    }

    /// A software GPU made to measure.
    pub fn with_config(config: Config) -> Self {
        // Handles of different drivers differ, so that one given to the wrong driver is found out.
        static OPENED: AtomicU64 = AtomicU64::new(1);
        let Config { seed, memory_bytes, interp } = config;
        let state = State {
            schedule: Schedule::new(seed),
            events: HashMap::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            host: HashMap::new(),
            counters: Counters::default(),
            failed: None,
            next_handle: OPENED.fetch_add(1, Ordering::Relaxed) << 32,
        };
        Self {
            info: device_info(memory_bytes, interp.threads),
            memory: Memory::new(memory_bytes),
            interp,
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while work runs is a bug of the interpreter's; what it leaves is whole, if incomplete.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, unless the device has failed.
    fn working(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        state.check()?;
        Ok(state)
    }

    /// The state, if the device works and `stream` is live.
    fn streaming(&self, stream: StreamHandle) -> Result<MutexGuard<'_, State>> {
        let state = self.working()?;
        if state.schedule.is_live(stream.0) { Ok(state) } else { Err(no_such("stream", stream.0)) }
    }

    /// Queues an action on `bytes` bytes; on none there is nothing to do.
    fn queue(&self, stream: StreamHandle, bytes: u64, action: Action) -> Result<()> {
        let mut state = self.streaming(stream)?;
        if bytes > 0 {
            state.schedule.push(stream.0, Work { stream, action });
        }
        Ok(())
    }

    /// Runs everything that is queued: before memory goes, since work cannot be asked which memory it uses. On a failed
    /// device nothing is queued.
    fn drain(&self, state: &mut State) -> Result<()> {
        state.check()?;
        let goal = state.schedule.everything();
        self.reach(state, &goal)
    }

    fn reach(&self, state: &mut State, goal: &Goal) -> Result<()> {
        while self.step(state, goal)? {}
        Ok(())
    }

    /// Runs one piece of work towards `goal`; false once it is reached. The first failure makes the device a failed one.
    fn step(&self, state: &mut State, goal: &Goal) -> Result<bool> {
        let Some(work) = state.schedule.next(goal) else { return Ok(false) };
        match self.run(&work) {
            Ok(counters) => state.counters += counters,
            Err(error) => {
                let error = error.while_doing(&work);
                state.schedule.clear();
                state.failed = Some(error.clone());
                return Err(error);
            }
        }
        Ok(true)
    }

    fn run(&self, work: &Work) -> Result<Counters> {
        match &work.action {
            &Action::Upload { dst, src: HostPointer(src), bytes } => {
                // SAFETY: the caller of `copy_h2d` promised that the source is valid, and not written, until this has run.
                let source = unsafe { std::slice::from_raw_parts(src, bytes) };
                self.memory.write(dst, source)?;
            }
            &Action::Download { dst: HostPointer(dst), src, bytes } => self.download(dst, src, bytes)?,
            &Action::Copy { dst, src, bytes } => self.memory.copy(dst, src, bytes)?,
            &Action::Fill { dst, value, bytes } => self.memory.fill(dst, value, bytes)?,
            Action::Launch { kernel, shape, params } => return self.run_kernel(kernel, shape, params),
        }
        Ok(Counters::default())
    }

    /// Copies to the host through a buffer: the target may be uninitialised, so there is no slice of it to read into.
    fn download(&self, dst: *mut u8, src: u64, bytes: usize) -> Result<()> {
        let mut buffer = [0; CHUNK];
        for start in (0..bytes).step_by(CHUNK) {
            let chunk = &mut buffer[..CHUNK.min(bytes - start)];
            self.memory.read(src + start as u64, chunk)?;
            // SAFETY: `start` is below `bytes`, for which the target is valid.
            let target = unsafe { dst.add(start) };
            // SAFETY: the caller of `copy_d2h` promised that the target is valid for writes, and nobody else's, until this has
            // run; the buffer is ours.
            unsafe { target.copy_from_nonoverlapping(chunk.as_ptr(), chunk.len()) };
        }
        Ok(())
    }

    fn run_kernel(&self, kernel: &Kernel, shape: &LaunchShape, params: &[u8]) -> Result<Counters> {
        let run = || interp::run(kernel, shape, params, &self.memory, &self.interp);
        let report = on_our_threads(run)?;
        Ok(report.map_err(|stop| Error::from(*stop))?.counters)
    }

    fn check_launch(&self, kernel: &Kernel, shape: &LaunchShape, params: &[u8]) -> Result<()> {
        kernel.supported()?;
        let LaunchShape { grid, block, dynamic_shared } = *shape;
        let fail =
            |what: String| Err(Error::new(ErrorKind::InvalidArgument, format!("launch of {}: {what}", kernel.name())));
        if grid.iter().zip(self.info.max_grid).any(|(&extent, most)| extent == 0 || extent > most) {
            return fail(format!("a grid of {grid:?} blocks; each extent is 1 to {:?}", self.info.max_grid));
        }
        let threads = block.iter().map(|&extent| u64::from(extent)).product::<u64>();
        if block.contains(&0) || threads > u64::from(self.info.max_block_threads) {
            return fail(format!("a block of {block:?} threads; it has 1 to {}", self.info.max_block_threads));
        }
        let shared = u64::from(kernel.shared_bytes()) + u64::from(dynamic_shared);
        if shared > u64::from(self.info.shared_bytes_per_block) {
            let most = self.info.shared_bytes_per_block;
            return fail(format!(
                "{shared} bytes of shared memory, {dynamic_shared} of them dynamic; a block has {most}"
            ));
        }
        if params.len() < kernel.param_bytes() {
            return fail(format!("{} bytes of parameters; the entry takes {}", params.len(), kernel.param_bytes()));
        }
        Ok(())
    }
}

impl Default for Soft {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    fn check(&self) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(cause) => Err(cause.clone().while_doing("the device failed earlier and has to be opened anew")),
        }
    }

    fn handle(&mut self) -> u64 {
        self.next_handle += 1;
        self.next_handle
    }

    /// The latest record of a live event.
    fn event(&self, event: EventHandle) -> Result<Option<Arc<Mark>>> {
        self.events.get(&event.0).cloned().ok_or_else(|| no_such("event", event.0))
    }
}

impl Driver for Soft {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<(u64, u64)> {
        let _state = self.working()?;
        Ok((self.memory.limit() - self.memory.used(), self.memory.limit()))
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.lock().counters)
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        let _state = self.working()?;
        self.memory.alloc(bytes)
    }

    unsafe fn free(&self, address: u64) -> Result<()> {
        let drained = self.drain(&mut self.lock());
        let freed = self.memory.free(address);
        drained.and(freed.map_err(|error| Error::new(ErrorKind::InvalidHandle, error.to_string())))
    }

    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        let mut state = self.working()?;
        let mut lines = Vec::new();
        lines.try_reserve_exact(bytes.div_ceil(size_of::<Line>())).map_err(|_| {
            let context =
                format!("the host cannot allocate {bytes} bytes of page-locked memory; free some or use less");
            Error::new(ErrorKind::OutOfMemory, context)
        })?;
        lines.resize(lines.capacity(), Line([0; 64]));
        let memory = NonNull::from(lines.as_mut_slice()).cast();
        state.host.insert(memory.addr().get(), lines);
        Ok(memory)
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()> {
        let mut state = self.lock();
        let drained = self.drain(&mut state);
        let freed = state.host.remove(&memory.addr().get()).map(drop);
        drained.and(freed.ok_or_else(|| no_such("page-locked memory", memory.addr().get() as u64)))
    }

    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes as u64, Action::Upload { dst, src: HostPointer(src.cast_mut()), bytes })
    }

    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes as u64, Action::Download { dst: HostPointer(dst), src, bytes })
    }

    unsafe fn copy_d2d(&self, dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes, Action::Copy { dst, src, bytes })
    }

    unsafe fn fill(&self, dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()> {
        self.queue(stream, bytes, Action::Fill { dst, value, bytes })
    }

    fn stream_create(&self) -> Result<StreamHandle> {
        let mut state = self.working()?;
        let handle = state.handle();
        state.schedule.open(handle);
        Ok(StreamHandle(handle))
    }

    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()> {
        let mut state = self.lock();
        let closed = state.schedule.close(stream.0);
        state.check()?;
        if closed { Ok(()) } else { Err(no_such("stream", stream.0)) }
    }

    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        let mut state = self.streaming(stream)?;
        let goal = state.schedule.everything_on(stream.0);
        self.reach(&mut state, &goal)
    }

    fn event_create(&self) -> Result<EventHandle> {
        let mut state = self.working()?;
        let handle = state.handle();
        state.events.insert(handle, None);
        Ok(EventHandle(handle))
    }

    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()> {
        let mut state = self.lock();
        let removed = state.events.remove(&event.0);
        state.check()?;
        removed.map(drop).ok_or_else(|| no_such("event", event.0))
    }

    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        let mut state = self.streaming(stream)?;
        state.event(event)?;
        let mark = state.schedule.record(stream.0);
        state.events.insert(event.0, mark);
        Ok(())
    }

    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        let mut state = self.streaming(stream)?;
        if let Some(mark) = state.event(event)? {
            state.schedule.wait(stream.0, &mark);
        }
        Ok(())
    }

    unsafe fn event_query(&self, event: EventHandle) -> Result<bool> {
        let mut state = self.working()?;
        let Some(mark) = state.event(event)? else { return Ok(true) };
        let passed = mark.passed().is_some();
        if !passed {
            // The answer is as of now; the step is so that a program that polls comes to an end.
            let goal = state.schedule.up_to(&mark);
            self.step(&mut state, &goal)?;
        }
        Ok(passed)
    }

    unsafe fn event_synchronize(&self, event: EventHandle) -> Result<()> {
        let mut state = self.working()?;
        let Some(mark) = state.event(event)? else { return Ok(()) };
        let goal = state.schedule.up_to(&mark);
        self.reach(&mut state, &goal)
    }

    unsafe fn event_elapsed_ms(&self, start: EventHandle, end: EventHandle) -> Result<f32> {
        let state = self.working()?;
        let passed = |event: EventHandle| {
            let fail = |what| {
                let context = format!("no time from event {:#x} to {:#x}: {:#x} {what}", start.0, end.0, event.0);
                Error::new(ErrorKind::InvalidArgument, context)
            };
            let mark = state.event(event)?.ok_or_else(|| fail("was never recorded; record both events first"))?;
            mark.passed().ok_or_else(|| fail("is not passed yet; wait for both events first"))
        };
        let (start, end) = (passed(start)?, passed(end)?);
        let forward = end.saturating_duration_since(start).as_secs_f32();
        let backward = start.saturating_duration_since(end).as_secs_f32();
        Ok((forward - backward) * 1000.0)
    }

    fn module_load(&self, ptx: &str) -> Result<ModuleHandle> {
        let mut state = self.working()?;
        let module = Module::parse(ptx)?;
        let handle = state.handle();
        state.modules.insert(handle, Loaded { module, functions: BTreeMap::new() });
        Ok(ModuleHandle(handle))
    }

    unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()> {
        let mut state = self.lock();
        let removed = state.modules.remove(&module.0);
        for function in removed.iter().flat_map(|loaded| loaded.functions.values()) {
            state.functions.remove(&function.0);
        }
        state.check()?;
        removed.map(drop).ok_or_else(|| no_such("module", module.0))
    }

    unsafe fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        let mut state = self.working()?;
        let handle = state.handle();
        let loaded = state.modules.get_mut(&module.0).ok_or_else(|| no_such("module", module.0))?;
        if let Some(&known) = loaded.functions.get(name) {
            return Ok(known);
        }
        let Some(kernel) = loaded.module.kernel(name).cloned() else {
            let names = loaded.module.kernels().map(Kernel::name).collect::<Vec<_>>().join(", ");
            let context = format!("module {:#x} has no entry {name:?}; it has {names}", module.0);
            return Err(Error::new(ErrorKind::InvalidArgument, context));
        };
        loaded.functions.insert(name.to_owned(), FunctionHandle(handle));
        state.functions.insert(handle, kernel);
        Ok(FunctionHandle(handle))
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()> {
        let mut state = self.streaming(stream)?;
        let kernel = state.functions.get(&function.0).ok_or_else(|| no_such("function", function.0))?.clone();
        self.check_launch(&kernel, shape, params)?;
        let action = Action::Launch { kernel, shape: *shape, params: params.into() };
        state.schedule.push(stream.0, Work { stream, action });
        Ok(())
    }
}

impl fmt::Debug for Soft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Soft").field("memory", &self.memory).finish_non_exhaustive()
    }
}

/// What was being done, for the error of a failure that comes late.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            Action::Upload { dst, bytes, .. } => write!(f, "copying {bytes} bytes from the host to {dst:#x}"),
            Action::Download { src, bytes, .. } => write!(f, "copying {bytes} bytes from {src:#x} to the host"),
            Action::Copy { dst, src, bytes } => write!(f, "copying {bytes} bytes from {src:#x} to {dst:#x}"),
            Action::Fill { dst, value, bytes } => write!(f, "filling {bytes} bytes at {dst:#x} with {value}"),
            Action::Launch { kernel, shape: LaunchShape { grid, block, .. }, .. } => {
                write!(f, "running {} on a grid of {grid:?} blocks of {block:?} threads", kernel.name())
            }
        }?;
        write!(f, ", queued on stream {:#x}", self.stream.0)
    }
}

/// Runs `work` on threads that no caller's task runs on.
///
/// The state is locked while a launch runs. Were its blocks to run in a thread pool that callers use too, its workers might
/// all be waiting for that lock; and a worker that waits for blocks takes up other tasks of its pool, one of which may want
/// the lock that it holds itself. So blocks have a pool of their own, and a worker of another pool waits for them by way of
/// a plain thread, which takes up nothing.
fn on_our_threads<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    static POOL: OnceLock<Result<ThreadPool, String>> = OnceLock::new();
    let pool = POOL.get_or_init(|| ThreadPoolBuilder::new().build().map_err(|error| error.to_string()));
    let pool = pool.as_ref().map_err(|reason| {
        Error::new(
            ErrorKind::Unavailable,
            format!("no threads to run kernels on: {reason}; end other programs, or set RAYON_NUM_THREADS=1"),
        )
    })?;
    if rayon::current_thread_index().is_none() {
        return Ok(pool.install(work));
    }
    let joined = std::thread::scope(|scope| scope.spawn(|| pool.install(work)).join());
    Ok(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

fn no_such(what: &str, handle: u64) -> Error {
    let context = format!("{handle:#x} is no live {what} of this software GPU; use what it gave, until it is released");
    Error::new(ErrorKind::InvalidHandle, context)
}

fn device_info(memory_bytes: u64, threads: usize) -> DeviceInfo {
    let threads = if threads > 0 { threads } else { std::thread::available_parallelism().map_or(1, NonZero::get) };
    DeviceInfo {
        name: "software GPU".to_owned(),
        kind: DriverKind::Soft,
        ordinal: 0,
        // The counters are those of an H100, so it says that it is one of these.
        compute_capability: (9, 0),
        driver_version: env!("CARGO_PKG_VERSION").to_owned(),
        multiprocessors: threads as u32,
        memory_bytes,
        l2_bytes: 0,
        nominal_bandwidth: None,
        max_block_threads: 1024,
        max_grid: [i32::MAX as u32, MAX_GRID_YZ, MAX_GRID_YZ],
        shared_bytes_per_block: 48 * 1024,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;

    /// A caller's task that the waiting worker took up would find the driver locked by the worker itself.
    #[test]
    fn a_worker_that_waits_for_a_launch_takes_up_nothing_else() {
        let callers = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let taken_up = Arc::new(AtomicBool::new(false));
        let seen = callers.install(|| {
            let task = Arc::clone(&taken_up);
            rayon::spawn(move || task.store(true, Ordering::SeqCst));
            on_our_threads(|| {
                // The launch's own blocks run in parallel meanwhile.
                rayon::scope(|scope| scope.spawn(|_| std::thread::sleep(Duration::from_millis(50))));
                taken_up.load(Ordering::SeqCst)
            })
        });
        assert!(!seen.unwrap(), "the caller's task ran on the worker that waits");
    }
}
