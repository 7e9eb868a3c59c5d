//! The backends that cases run on, and the list of cases.

use std::sync::Arc;

use libtest_mimic::{Completion, Failed, Trial};
use warpstride::alloc::{Caching, DriverMemory};
use warpstride::driver::trace::Trace;
use warpstride::driver::{Driver, DriverKind};
use warpstride::{Device, Error};

use crate::long::{LONG, is_long};
use crate::program::{Program, Stream};

/// Device memory of the software GPUs under test: small, so that running out of it costs nothing.
pub(crate) const SOFT_MEMORY_BYTES: u64 = 64 << 20;

/// The modules whose cases are about the driver.
const DRIVER: [&str; 12] = [
    "attacks",
    "captures",
    "copies",
    "events",
    "failures",
    "graphs",
    "host",
    "late",
    "memory",
    "modules",
    "streams",
    "transfers",
];
/// The software GPU behind a trace, which runs the other cases in the long form.
const TRACED: &str = "trace(soft)";

/// The modules whose cases use memory again while work on it may be queued.
const REUSE: [&str; 5] = ["attacks", "captures", "host", "reuse", "transfers"];
/// The software GPU with the allocator of a GPU, which divides memory into blocks.
const DIVIDED: &str = "soft, divided";

/// Device memory that cases of billions of elements need.
const LARGE_GPU_GIB: u64 = 23;

/// A test of a device.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    /// `crate::module::name`.
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    pub(crate) body: &'static (dyn Fn(&Setup) + Sync),
}

impl Case {
    /// Returns `module::name`, without the crate's name.
    fn place(&self) -> &'static str {
        self.name.split_once("::").map_or(self.name, |(_crate, rest)| rest)
    }

    /// Returns whether its module is one of these.
    fn is_of(&self, modules: &[&str]) -> bool {
        modules.iter().any(|module| self.place().split("::").next() == Some(*module))
    }
}

/// A case's requirement on its backend.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No requirement.
    Any,
    /// A separate device, which it leaves failed: on CUDA in a separate process.
    DeviceToLose,
    /// A promise of the software GPU only, and why.
    SoftwareGpu(&'static str),
    /// The software GPU, and a debug build of the kernels.
    DebugBuild,
    /// A GPU with room for billions of elements.
    LargeGpu,
    /// Two NVIDIA GPUs or more in one host.
    #[cfg(feature = "distributed")]
    SeveralGpus,
    /// Memory of other crates on an NVIDIA GPU.
    #[cfg(feature = "cudarc")]
    NvidiaGpu,
}

/// Lists the cases of a module:
/// `cases! { Any copies_come_back, SoftwareGpu("its work runs late") nothing_has_happened }`.
macro_rules! cases {
    ($($needs:ident $(($why:literal))? $name:ident),* $(,)?) => {
        pub(crate) fn cases() -> Vec<crate::backend::Case> {
            vec![$(crate::backend::Case {
                name: concat!(module_path!(), "::", stringify!($name)),
                needs: crate::backend::Needs::$needs $(($why))?,
                body: &$name,
            }),*]
        }
    };
}
pub(crate) use cases;

/// The arguments of a case.
pub(crate) struct Setup {
    /// The driver under test: on CUDA one for all cases, else a separate one.
    pub(crate) driver: Arc<dyn Driver>,
    /// Makes another driver of the same kind with a seed, if a seed decides its order.
    seeded: Option<fn(u64) -> Arc<dyn Driver>>,
    /// True if [`open`](Self::open) takes the allocator that divides memory on any driver.
    divides: bool,
}

/// Opens a device whose buffers are allocations of the driver each, freed by their drops. A cache
/// keeps and divides larger ones.
pub(crate) fn exact(driver: &Arc<dyn Driver>) -> Device {
    let driver = Arc::clone(driver);
    Device::with_allocator(driver, |driver| Ok(Arc::new(DriverMemory::new(driver)))).unwrap()
}

impl Setup {
    /// Opens a device over a driver with the allocator under test.
    pub(crate) fn open(&self, driver: Arc<dyn Driver>) -> Result<Device, Error> {
        if self.divides {
            Device::with_allocator(driver, |driver| Ok(Arc::new(Caching::new(driver)?)))
        } else {
            Device::with_driver(driver)
        }
    }

    /// Opens a device over the driver under test.
    pub(crate) fn device(&self) -> Device {
        self.open(Arc::clone(&self.driver)).unwrap()
    }

    /// Returns a driver like the one under test, with half a GiB of memory or more.
    pub(crate) fn roomy(&self) -> Arc<dyn Driver> {
        #[cfg(feature = "interp")]
        if self.is_soft() {
            use warpstride::driver::soft::{Config, Soft};
            return Arc::new(Soft::with_config(Config { memory_bytes: 1 << 29, ..Config::default() }));
        }
        Arc::clone(&self.driver)
    }

    /// Opens a device over a trace of a driver.
    pub(crate) fn traced(&self, driver: &Arc<dyn Driver>) -> (Arc<Trace>, Device) {
        let trace = Arc::new(Trace::new(Arc::clone(driver)));
        (Arc::clone(&trace), self.open(trace).unwrap())
    }

    /// Runs `body` as [`for_each_seed`](Self::for_each_seed) does, on a device.
    pub(crate) fn for_each_device(&self, body: impl Fn(Device)) {
        self.for_each_seed(|driver| body(self.open(Arc::clone(driver)).unwrap()));
    }

    /// Runs `body` as [`for_each_seed`](Self::for_each_seed) does, in a program.
    pub(crate) fn for_each_program(&self, body: impl Fn(&Program)) {
        self.for_each_seed(|driver| body(&Program::new(driver)));
    }

    /// Runs `body` as [`for_each_seed`](Self::for_each_seed) does, on a stream of a program.
    pub(crate) fn for_each_stream(&self, body: impl for<'p> Fn(&'p Program, Stream<'p>)) {
        self.for_each_program(|program| body(program, program.stream().unwrap()));
    }

    /// Runs `body` on the driver under 64 seeds where it has one, else once; a failing seed is
    /// named.
    pub(crate) fn for_each_seed(&self, body: impl Fn(&Arc<dyn Driver>)) {
        self.for_seeds(64, body);
    }

    /// Runs `body` as [`for_each_seed`](Self::for_each_seed) does, under `count` seeds.
    pub(crate) fn for_seeds(&self, count: u64, body: impl Fn(&Arc<dyn Driver>)) {
        let Some(seeded) = self.seeded else { return body(&self.driver) };
        for seed in 0..count {
            let driver = seeded(seed);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&driver)));
            if let Err(panic) = outcome {
                eprintln!("failed with seed {seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// Returns whether the driver is the software GPU.
    pub(crate) fn is_soft(&self) -> bool {
        self.driver.info().kind == DriverKind::Soft
    }
}

/// A backend on this machine.
struct Backend {
    name: String,
    kind: DriverKind,
    open: Result<Arc<dyn Fn() -> Setup + Send + Sync>, Error>,
}

/// Returns every case on every backend.
pub(crate) fn trials(cases: &[Case]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for backend in software().into_iter().chain([cuda()]) {
        for &case in cases {
            let name = format!("[{}] {}", backend.name, case.place());
            trials.push(match open_or_reason(&backend, &case) {
                Ok(_) if backend.kind == DriverKind::Cuda && case.needs == Needs::DeviceToLose && !is_child() => {
                    Trial::test(name.clone(), move || run_in_child(&name))
                }
                Ok(open) => Trial::test(name, move || run(case, &open())),
                Err(reason) => Trial::ignorable_test(name, move || Ok(Completion::ignored_with(reason))),
            });
        }
    }
    trials
}

fn run(case: Case, setup: &Setup) -> Result<(), Failed> {
    (case.body)(setup);
    Ok(())
}

/// Set in a process that runs one case, whose device it may lose.
const CHILD: &str = "WARPSTRIDE_TEST_LOSES_ITS_DEVICE";

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs the case with this name in another process: a GPU is lost to the process in which a kernel
/// faulted.
fn run_in_child(name: &str) -> Result<(), Failed> {
    let child =
        std::process::Command::new(std::env::current_exe()?).args(["--exact", name]).env(CHILD, "1").output()?;
    let told = [child.stdout, child.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    // A filter that matches no test succeeds with zero tests.
    if child.status.success() && told.contains("1 passed") {
        return Ok(());
    }
    Err(format!("in a process of its own ({}):\n{told}", child.status).into())
}

/// Returns a function that opens the backend for a case, or the reason why the case is ignored
/// there, and what runs it.
fn open_or_reason(backend: &Backend, case: &Case) -> Result<Arc<dyn Fn() -> Setup + Send + Sync>, String> {
    let open = match &backend.open {
        Ok(open) => Arc::clone(open),
        Err(error) if backend.kind == DriverKind::Cuda => return Err(format!("an NVIDIA GPU runs it: {error}")),
        Err(error) => return Err(error.to_string()),
    };
    match (backend.kind, case.needs) {
        (_, Needs::DebugBuild) if crate::debug_build::path().is_none() => {
            Err("scripts/debug-kernels runs it: it needs a debug build of the kernels".to_owned())
        }
        (DriverKind::Cuda, Needs::SoftwareGpu(why)) => Err(format!("the software GPU alone runs it, since {why}")),
        (DriverKind::Cuda, Needs::DebugBuild) => {
            Err("scripts/debug-kernels runs it on the software GPU, which holds what it asserts".to_owned())
        }
        (DriverKind::Soft, Needs::LargeGpu) => {
            Err(format!("an NVIDIA GPU of {LARGE_GPU_GIB} GiB runs it: it moves billions of elements"))
        }
        (DriverKind::Cuda, Needs::LargeGpu) => match open().driver.info().memory_bytes >> 30 {
            memory if memory < LARGE_GPU_GIB => {
                Err(format!("an NVIDIA GPU of {LARGE_GPU_GIB} GiB runs it, and this one has {memory}"))
            }
            _ => Ok(open),
        },
        #[cfg(feature = "distributed")]
        (DriverKind::Soft, Needs::SeveralGpus) => {
            Err("two NVIDIA GPUs run it: `tests/it/distributed` has several software GPUs".to_owned())
        }
        #[cfg(all(feature = "distributed", feature = "cuda"))]
        (DriverKind::Cuda, Needs::SeveralGpus) => match warpstride::driver::cuda::count() {
            Ok(0 | 1) => Err("two NVIDIA GPUs run it, and there is 1".to_owned()),
            _ => Ok(open),
        },
        #[cfg(feature = "cudarc")]
        (DriverKind::Soft, Needs::NvidiaGpu) => {
            Err("an NVIDIA GPU runs it: it moves memory that cudarc allocates there".to_owned())
        }
        (DriverKind::Soft, _) if backend.name == TRACED && !is_long() && !case.is_of(&DRIVER) => {
            Err(format!("{LONG}=1 runs it: [soft] does, and the trace is the same for all operations"))
        }
        (DriverKind::Soft, _) if backend.name == TRACED && case.is_of(&["random_layouts"]) => {
            Err("[soft] runs it: it takes minutes, and the trace is the same for all operations".to_owned())
        }
        (DriverKind::Soft, _) if backend.name == DIVIDED && !case.is_of(&REUSE) => {
            Err("[soft] runs it: it does not depend on the allocator".to_owned())
        }
        _ => Ok(open),
    }
}

#[cfg(feature = "interp")]
fn open_soft(seed: u64) -> Arc<dyn Driver> {
    use warpstride::driver::soft::{Config, Soft};
    let mut config = Config { seed, memory_bytes: SOFT_MEMORY_BYTES, ..Config::default() };
    if crate::debug_build::path().is_some() {
        // The software GPU does not recognise a debug build of our kernels as this crate's, and it
        // takes many times the work.
        config.interp.work_limit = u64::MAX;
    }
    Arc::new(Soft::with_config(config))
}

/// The software GPU, over the allocator of a GPU, and behind a trace.
#[cfg(feature = "interp")]
fn software() -> [Backend; 3] {
    let open_traced = |seed| Arc::new(Trace::new(open_soft(seed))) as Arc<dyn Driver>;
    let over = |name: &str, open: fn(u64) -> Arc<dyn Driver>, divides: bool| Backend {
        name: name.to_owned(),
        kind: DriverKind::Soft,
        open: Ok(Arc::new(move || Setup { driver: open(0), seeded: Some(open), divides })),
    };
    [over("soft", open_soft, false), over(DIVIDED, open_soft, true), over(TRACED, open_traced, false)]
}

#[cfg(feature = "cuda")]
fn cuda() -> Backend {
    use warpstride::driver::cuda::{Cuda, count};
    let driver = count().and_then(|_| Cuda::open(0)).map(|driver| Arc::new(driver) as Arc<dyn Driver>);
    let name = driver.as_ref().map_or("cuda:0".to_owned(), |driver| format!("cuda:0 {}", driver.info().name));
    let open = driver.map(|driver| {
        let open = move || Setup { driver: Arc::clone(&driver), seeded: None, divides: false };
        Arc::new(open) as Arc<dyn Fn() -> Setup + Send + Sync>
    });
    Backend { name, kind: DriverKind::Cuda, open }
}

#[cfg(not(feature = "interp"))]
fn software() -> [Backend; 3] {
    ["soft", DIVIDED, TRACED].map(|name| left_out(name, DriverKind::Soft, "interp"))
}

#[cfg(not(feature = "cuda"))]
fn cuda() -> Backend {
    left_out("cuda:0", DriverKind::Cuda, "cuda")
}

#[cfg(not(all(feature = "interp", feature = "cuda")))]
fn left_out(name: &str, kind: DriverKind, feature: &str) -> Backend {
    let error = Error::new(warpstride::ErrorKind::Unavailable, format!("built without feature `{feature}`"));
    Backend { name: name.to_owned(), kind, open: Err(error) }
}
