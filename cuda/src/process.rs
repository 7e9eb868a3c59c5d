//! The state of the process: its software GPUs, and the tables of what handles name.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use warpstride::driver::soft::{Config, Soft};
use warpstride::roofline::model::DeviceModel;

use crate::code::{Failure, Outcome, code};
use crate::context::{Context, Primary};
use crate::graph::Graphs;
use crate::handles::Handles;
use crate::memory::Memory;
use crate::module::{Function, Image, Loader};
use crate::report;
use crate::stream::{Event, Stream};

/// The variable with the model of GPU that programs see: a name of [`DeviceModel::ALL`].
const MODEL: &str = "WARPSTRIDE_RUN_MODEL";
/// The variable with the number of GPUs.
const GPUS: &str = "WARPSTRIDE_RUN_GPUS";
/// CUDA's variable with the GPUs that programs see, of those.
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
/// The variable with the seed that orders work: see `warpstride::driver::soft`.
const SEED: &str = "WARPSTRIDE_RUN_SEED";
/// The variable that asks for fused products and sums: see `Config::contract` of the software GPU.
const CONTRACT: &str = "WARPSTRIDE_RUN_CONTRACT";
/// The variable with the work after which a launch is stopped: see `Config::work_limit` of the
/// software GPU.
const LIMIT: &str = "WARPSTRIDE_RUN_LIMIT";
/// The variable with the bytes of memory that the GPUs have together.
const MEMORY: &str = "WARPSTRIDE_RUN_MEMORY";
/// The most GPUs of a process.
const MOST_GPUS: usize = 64;

/// The state of the process.
pub(crate) struct Process {
    pub(crate) gpus: Vec<Gpu>,
    /// True if a checker looks at what kernels do.
    pub(crate) is_checked: bool,
    pub(crate) contexts: Handles<Context>,
    pub(crate) streams: Handles<Stream>,
    pub(crate) events: Handles<Event>,
    pub(crate) modules: Handles<Image>,
    pub(crate) functions: Handles<Function>,
    pub(crate) loader: Loader,
    pub(crate) memory: Memory,
    pub(crate) graphs: Graphs,
}

/// One software GPU.
pub(crate) struct Gpu {
    /// Its number among the GPUs of the host, of which the program may see some.
    pub(crate) number: usize,
    pub(crate) soft: Arc<Soft>,
    pub(crate) model: DeviceModel,
    pub(crate) primary: Primary,
}

static PROCESS: OnceLock<Process> = OnceLock::new();
static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn in_the_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Returns the failure of every call in a process that was forked from one that had called
/// `cuInit`, as NVIDIA's driver refuses them: its threads and locks are not the child's.
pub(crate) fn forked() -> Option<Failure> {
    FORKED.load(Ordering::Relaxed).then(|| {
        Failure::new(
            code::NOT_INITIALIZED,
            "the process was forked after cuInit; begin to use CUDA in the child, or spawn it",
        )
    })
}

/// Returns the state, after `cuInit`.
pub(crate) fn process() -> Outcome<&'static Process> {
    PROCESS.get().ok_or_else(|| Failure::new(code::NOT_INITIALIZED, "cuInit has not been called; call it first"))
}

/// Makes the state, on the first call.
pub(crate) fn initialize() -> Outcome {
    if PROCESS.get().is_some() {
        return Ok(());
    }
    let made = Process::new()?;
    if PROCESS.set(made).is_ok() {
        // SAFETY: the handler is a function of this library, which is never unloaded once it is
        // initialised, and it only sets a flag.
        unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
        report::begin();
    }
    Ok(())
}

/// Returns the numbers of the GPUs that the program sees, of `count`.
fn visible(model: &DeviceModel, count: usize) -> Outcome<Vec<usize>> {
    let Some(list) = std::env::var_os(VISIBLE) else { return Ok((0..count).collect()) };
    let list = list.to_string_lossy();
    let uuids: Vec<_> = (0..count)
        .map(|number| crate::device::identity::uuid_text(crate::device::identity::uuid(model, number)))
        .collect();
    match crate::device::identity::visible(&list, &uuids) {
        none if none.is_empty() => Err(Failure::new(
            code::NO_DEVICE,
            format!("{VISIBLE}={list} names none of the {count} devices; list some of them, or unset the variable"),
        )),
        numbers => Ok(numbers),
    }
}

impl Process {
    fn new() -> Outcome<Self> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let bad = |name: &str, value: &str, wanted: &str| Failure::value(format!("{name}={value} is not {wanted}"));
        let model = match set(MODEL) {
            None => DeviceModel::H100,
            Some(name) => DeviceModel::ALL
                .into_iter()
                .find(|model| model.name == name)
                .ok_or_else(|| bad(MODEL, &name, "a GPU that there is a model of"))?,
        };
        let count = match set(GPUS) {
            None => 1,
            Some(text) => text
                .parse()
                .ok()
                .filter(|count| (1..=MOST_GPUS).contains(count))
                .ok_or_else(|| bad(GPUS, &text, "a number of GPUs from 1 to 64"))?,
        };
        let seed = match set(SEED) {
            None => 0,
            Some(text) => text.parse().map_err(|_| bad(SEED, &text, "a whole number"))?,
        };
        let numbers = visible(&model, count)?;
        let mut config = Config {
            seed,
            compute_capability: (model.architecture / 10, model.architecture % 10),
            shares_host_addresses: true,
            ..Config::default()
        };
        config.interp.contract = set(CONTRACT).is_some();
        if let Some(text) = set(LIMIT) {
            config.interp.work_limit = text.parse().map_err(|_| bad(LIMIT, &text, "an amount of work"))?;
        }
        if let Some(text) = set(MEMORY) {
            config.memory_bytes = text.parse().map_err(|_| bad(MEMORY, &text, "a number of bytes"))?;
        }
        report::configure(&mut config, set(MODEL).map(|_| model))?;
        let gpus = Soft::host(numbers.len(), &config)
            .into_iter()
            .zip(numbers)
            .map(|(soft, number)| Gpu { number, soft: Arc::new(soft), model, primary: Primary::default() })
            .collect();
        Ok(Self {
            gpus,
            is_checked: !config.interp.checks.is_empty(),
            contexts: Handles::new("context"),
            streams: Handles::new("stream"),
            events: Handles::new("event"),
            modules: Handles::new("module"),
            functions: Handles::new("function"),
            loader: Loader::default(),
            memory: Memory::default(),
            graphs: Graphs::new(),
        })
    }

    /// Returns the GPU of this number.
    pub(crate) fn gpu(&self, device: i32) -> Outcome<&Gpu> {
        let found = usize::try_from(device).ok().and_then(|number| self.gpus.get(number));
        found.ok_or_else(|| {
            Failure::new(
                code::INVALID_DEVICE,
                format!("there is no device {device}: there are {}, numbered from 0", self.gpus.len()),
            )
        })
    }
}
