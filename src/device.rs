//! Opening a device, and what belongs to it.
//!
//! The first launch of a kernel on a device loads it: the host waits until a GPU's driver has compiled it, which takes
//! milliseconds, and perhaps for work that runs. So launch once before you measure, and before you capture a CUDA graph or
//! queue behind work that waits for the host.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::abi::{ENTRIES, EntryId, Key, OLDEST, SPIN};
use crate::counters::Counters;
#[cfg(feature = "cuda")]
use crate::driver::cuda;
#[cfg(feature = "interp")]
use crate::driver::soft;
use crate::driver::{DeviceInfo, Driver, FunctionHandle, ModuleHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::ptx;
use crate::stream::{Context, Event, Stream};

/// Which device to open. As text: `auto`, `cuda` (the first GPU), `cuda:1`, `soft`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// The first NVIDIA GPU where there is one that works, else the software GPU; [`Device::choice`] says which and why.
    #[default]
    Auto,
    /// The NVIDIA GPU of this number, from 0.
    Cuda(u32),
    /// The software GPU.
    Soft,
}

impl FromStr for Backend {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // Digits only: the standard library would read a sign too.
        let digits = |number: &&str| number.bytes().all(|byte| byte.is_ascii_digit());
        let ordinal = text.strip_prefix("cuda:").filter(digits).and_then(|number| number.parse().ok());
        match (text, ordinal) {
            ("auto", _) => Ok(Self::Auto),
            ("cuda", _) => Ok(Self::Cuda(0)),
            ("soft", _) => Ok(Self::Soft),
            (_, Some(ordinal)) => Ok(Self::Cuda(ordinal)),
            _ => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("`{text}` names no device; use auto, cuda, cuda:N with N from 0, or soft"),
            )),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            Self::Soft => f.write_str("soft"),
        }
    }
}

/// How cargo had this crate optimised.
const OPT_LEVEL: &str = env!("WARPSTRIDE_OPT_LEVEL");

/// What to say of the software GPU where nothing was optimised, as in the dev build of a program that uses the crate.
fn slow(opt_level: &str) -> &'static str {
    match opt_level {
        "0" => {
            "; warpstride is not optimised in this build, which makes it 20 to 60 times slower: put `opt-level = 3` under \
             [profile.dev.package.warpstride] in your Cargo.toml"
        }
        _ => "",
    }
}

/// One device that could be opened, or the reason why it could not.
#[derive(Debug, Clone)]
pub struct Availability {
    /// What [`Device::open`] would be given.
    pub backend: Backend,
    /// What the device is, or what keeps it from being opened: no driver library, a driver too old, no device.
    pub info: Result<DeviceInfo>,
}

/// Every device that could be opened; where there is no NVIDIA GPU one entry says why, and another for the software GPU.
pub fn probe() -> Vec<Availability> {
    let mut found = match cuda_count() {
        Ok(count) => {
            let one = |ordinal| Availability { backend: Backend::Cuda(ordinal), info: describe_cuda(ordinal) };
            (0..count).map(one).collect()
        }
        Err(reason) => vec![Availability { backend: Backend::Cuda(0), info: Err(reason) }],
    };
    found.push(Availability { backend: Backend::Soft, info: open_soft().map(|driver| driver.info().clone()) });
    found
}

/// An open device. A clone is the same device; it closes when the last clone, stream, event and buffer of it is gone.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    // In the order of their drops: the context closes the driver.
    kernels: Kernels,
    default_stream: Stream,
    choice: String,
    context: Arc<Context>,
}

impl Device {
    /// Opens a device.
    ///
    /// # Errors
    ///
    /// `Unavailable` where the backend is not there, `DriverTooOld` where its driver cannot run our PTX, and what else the
    /// driver failed with. [`Backend::Auto`] fails only if neither a GPU nor the software GPU can be opened.
    pub fn open(backend: Backend) -> Result<Self> {
        match backend {
            Backend::Cuda(ordinal) => Self::open_gpu(ordinal, "as asked"),
            Backend::Soft => Self::with(open_soft()?, &format!("as asked{}", slow(OPT_LEVEL))),
            Backend::Auto => Self::open_gpu(0, "the first NVIDIA GPU").or_else(|no_gpu| match open_soft() {
                // Behind a semicolon our errors say what to do about it: here it was done.
                Ok(driver) => {
                    let no_gpu = no_gpu.to_string();
                    Self::with(driver, &format!("{}{}", no_gpu.split("; ").next().unwrap_or_default(), slow(OPT_LEVEL)))
                }
                Err(no_soft) => {
                    Err(Error::new(ErrorKind::Unavailable, format!("no device can be opened: {no_gpu}; {no_soft}")))
                }
            }),
        }
    }

    /// A GPU, if it can run our kernels: a driver that cannot says so only when it loads one, and the smallest tells.
    fn open_gpu(ordinal: u32, why: &str) -> Result<Self> {
        let device = Self::with(open_cuda(ordinal)?, why)?;
        device.kernels().function(SPIN.get(Key::ONLY))?;
        Ok(device)
    }

    /// A device over a driver of your own making: a software GPU with another seed, or a driver that traces another.
    ///
    /// # Errors
    ///
    /// What the driver failed with when it made the default stream.
    pub fn with_driver(driver: Arc<dyn Driver>) -> Result<Self> {
        Self::with(driver, "the driver was given")
    }

    fn with(driver: Arc<dyn Driver>, why: &str) -> Result<Self> {
        let choice = format!("{}: {why}", driver.info().name);
        let context = Context::new(driver);
        let default_stream = Stream::new(&context)?;
        let kernels = Kernels::new(Arc::clone(&context));
        Ok(Self { inner: Arc::new(Inner { kernels, default_stream, choice, context }) })
    }

    /// What the device is and allows.
    pub fn info(&self) -> &DeviceInfo {
        self.driver().info()
    }

    /// Which device was taken, and why, as a sentence to show.
    pub fn choice(&self) -> &str {
        &self.inner.choice
    }

    /// The driver, for what this interface leaves out.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        self.inner.context.driver()
    }

    /// What all launches so far counted, added up; `None` on a device that does not count. Waits for all work first.
    ///
    /// # Errors
    ///
    /// What the work failed with.
    pub fn counters(&self) -> Result<Option<Counters>> {
        self.synchronize()?;
        Ok(self.driver().counters())
    }

    /// See [`Driver::reset_persisting_l2`](crate::driver::Driver::reset_persisting_l2).
    pub(crate) fn reset_persisting_l2(&self) -> Result<()> {
        self.driver().reset_persisting_l2()
    }

    /// The stream that is used where none is named. It is a stream like any other: CUDA's legacy default stream is never
    /// used.
    pub fn default_stream(&self) -> &Stream {
        &self.inner.default_stream
    }

    /// A new stream.
    ///
    /// # Errors
    ///
    /// What the driver failed with.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(&self.inner.context)
    }

    /// A new event, not recorded yet.
    ///
    /// # Errors
    ///
    /// What the driver failed with.
    pub fn event(&self) -> Result<Event> {
        Event::new(&self.inner.context)
    }

    /// Waits for all work on all streams of this device, also of streams that were dropped.
    ///
    /// # Errors
    ///
    /// What the work failed with.
    pub fn synchronize(&self) -> Result<()> {
        self.inner.context.synchronize()
    }

    /// The first failure of a drop (of a buffer, stream or event) since this was last asked, which the drop itself could not
    /// return. What it failed to free may be lost to the device. Work is not: that of a dropped stream is waited for all the
    /// same, in the drop itself where the driver left no other way.
    pub fn take_drop_error(&self) -> Option<Error> {
        self.inner.context.take_drop_error()
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.inner.kernels
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.inner.choice).finish()
    }
}

/// The crate's kernels on one device, by their places in [`ENTRIES`].
pub(crate) struct Kernels {
    context: Arc<Context>,
    loading: Mutex<()>,
    kernels: [Kernel; ENTRIES.len()],
}

/// One kernel: a module of its own, which its first launch loads, because all of them would take a GPU a second to compile
/// where a program launches a few.
struct Kernel {
    module: OnceLock<ModuleHandle>,
    function: OnceLock<FunctionHandle>,
}

impl Kernels {
    fn new(context: Arc<Context>) -> Self {
        let kernels = [const { Kernel { module: OnceLock::new(), function: OnceLock::new() } }; ENTRIES.len()];
        Self { context, loading: Mutex::new(()), kernels }
    }

    /// The function of an entry.
    pub(crate) fn function(&self, entry: EntryId) -> Result<FunctionHandle> {
        let kernel = &self.kernels[entry.place()];
        if let Some(&function) = kernel.function.get() {
            return Ok(function);
        }
        let module = self.module(entry)?;
        // SAFETY: the module is live until `self` is dropped.
        let function = unsafe { self.context.driver().function(module, entry.name()) }?;
        // Another thread that was as fast found the same.
        Ok(*kernel.function.get_or_init(|| function))
    }

    fn module(&self, entry: EntryId) -> Result<ModuleHandle> {
        // std's OnceLock cannot be set by something that fails, so the lock lets one thread try at a time.
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let module = &self.kernels[entry.place()].module;
        if let Some(&module) = module.get() {
            return Ok(module);
        }
        self.check(entry)?;
        let loaded = self.context.driver().module_load(&ptx::module(entry))?;
        Ok(*module.get_or_init(|| loaded))
    }

    /// Whether the device has what the entry needs. A plan for another device may have one that it has not.
    fn check(&self, entry: EntryId) -> Result<()> {
        let info = self.context.driver().info();
        let (has, needs) = (info.compute_capability, entry.entry().capability);
        // A device that has not even that is refused by its driver.
        if has >= needs || needs == OLDEST {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "{} has compute capability {}.{}, and {entry} needs {}.{}; plan for this device (Target::of)",
                info.name, has.0, has.1, needs.0, needs.1
            ),
        ))
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        for (kernel, entry) in self.kernels.iter().zip(ENTRIES) {
            if let Some(&module) = kernel.module.get() {
                // SAFETY: the module is live, and its function is known to `self` only.
                let unloaded = unsafe { self.context.driver().module_unload(module) };
                self.context.note_drop(unloaded, || format!("unloading {}", entry.name));
            }
        }
    }
}

#[cfg(feature = "cuda")]
fn cuda_count() -> Result<u32> {
    cuda::count()
}

#[cfg(feature = "cuda")]
fn describe_cuda(ordinal: u32) -> Result<DeviceInfo> {
    cuda::describe(ordinal)
}

#[cfg(feature = "cuda")]
fn open_cuda(ordinal: u32) -> Result<Arc<dyn Driver>> {
    Ok(Arc::new(cuda::Cuda::open(ordinal)?))
}

#[cfg(not(feature = "cuda"))]
fn cuda_count() -> Result<u32> {
    Err(without("NVIDIA GPUs", "cuda"))
}

#[cfg(not(feature = "cuda"))]
fn describe_cuda(_ordinal: u32) -> Result<DeviceInfo> {
    Err(without("NVIDIA GPUs", "cuda"))
}

#[cfg(not(feature = "cuda"))]
fn open_cuda(_ordinal: u32) -> Result<Arc<dyn Driver>> {
    Err(without("NVIDIA GPUs", "cuda"))
}

#[cfg(feature = "interp")]
fn open_soft() -> Result<Arc<dyn Driver>> {
    Ok(Arc::new(soft::Soft::new()))
}

#[cfg(not(feature = "interp"))]
fn open_soft() -> Result<Arc<dyn Driver>> {
    Err(without("the software GPU", "interp"))
}

#[cfg(not(all(feature = "cuda", feature = "interp")))]
fn without(what: &str, feature: &str) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("warpstride was built without {what}; build it with the feature `{feature}`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_read_as_they_are_written() {
        for backend in [Backend::Auto, Backend::Cuda(0), Backend::Cuda(12), Backend::Soft] {
            assert_eq!(backend.to_string().parse(), Ok(backend));
        }
        assert_eq!("cuda".parse(), Ok(Backend::Cuda(0)));
        for text in ["", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cuda:+1", "soft:0"] {
            let error = text.parse::<Backend>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    #[cfg(feature = "interp")]
    fn the_software_gpu_is_always_there() {
        let soft = Device::open(Backend::Soft).unwrap();
        assert!(soft.choice().starts_with(&soft.info().name), "{}", soft.choice());
        let auto = Device::open(Backend::Auto).unwrap();
        assert!(auto.choice().len() > auto.info().name.len() + 2, "it says why: {}", auto.choice());
        let found = probe();
        assert!(found.iter().any(|device| device.backend == Backend::Soft && device.info.is_ok()));
        assert!(found.iter().any(|device| matches!(device.backend, Backend::Cuda(_))), "a GPU, or why there is none");
    }

    #[test]
    fn a_build_without_optimisation_says_how_to_have_one() {
        assert!(slow("0").contains("opt-level = 3") && slow("0").contains("[profile.dev.package.warpstride]"));
        assert_eq!(["1", "2", "3", "s", "z"].map(slow), [""; 5]);
        // This build's.
        #[cfg(feature = "interp")]
        assert_eq!(Device::open(Backend::Soft).unwrap().choice().contains("not optimised"), OPT_LEVEL == "0");
    }

    #[test]
    fn a_gpu_beyond_the_last_is_unavailable() {
        let error = Device::open(Backend::Cuda(4096)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}
