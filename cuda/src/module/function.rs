//! Functions: kernels of modules, and what programs ask and set of them.

use std::ffi::{CString, c_char, c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpstride::driver::{FunctionHandle, Modules as _};
use warpstride::interp::Kernel;
use warpstride::interp::launch_shape::{MAX_BLOCK_THREADS, MAX_SHARED_BYTES};
use warpstride::roofline::model::DeviceModel;

use super::Image;
use crate::arguments::{Handle, Out};
use crate::code::{Failure, Outcome, code};
use crate::context::{Context, current};
use crate::export::export;
use crate::launch::Prepared;
use crate::process::{Gpu, Process, process};

/// The attributes of functions, by their numbers in `cuda.h`.
mod attribute {
    use std::ffi::c_uint;

    pub(super) const MAX_THREADS: c_uint = 0;
    pub(super) const SHARED_BYTES: c_uint = 1;
    pub(super) const CONST_BYTES: c_uint = 2;
    pub(super) const LOCAL_BYTES: c_uint = 3;
    pub(super) const REGISTERS: c_uint = 4;
    pub(super) const PTX_VERSION: c_uint = 5;
    pub(super) const BINARY_VERSION: c_uint = 6;
    pub(super) const CACHE_MODE_CA: c_uint = 7;
    pub(super) const MAX_DYNAMIC_SHARED: c_uint = 8;
    pub(super) const CARVEOUT: c_uint = 9;
    pub(super) const CLUSTER_MUST_BE_SET: c_uint = 10;
    pub(super) const CLUSTER_WIDTH: c_uint = 11;
    pub(super) const CLUSTER_DEPTH: c_uint = 13;
    pub(super) const NON_PORTABLE_CLUSTER: c_uint = 14;
    pub(super) const CLUSTER_SCHEDULING: c_uint = 15;
}

/// The registers of a thread that programs see. The software GPU has no register file that limits a
/// launch; with this number, registers do not limit the blocks of a multiprocessor of any model.
const REGISTERS: c_int = 32;

/// A kernel of a module.
pub(crate) struct Function {
    pub(crate) module: Handle<Image>,
    pub(crate) context: Handle<Context>,
    pub(crate) device: i32,
    pub(crate) soft: FunctionHandle,
    pub(crate) kernel: Kernel,
    /// The architecture that its PTX was compiled for.
    target: u32,
    /// Its name, which programs read as long as the module is loaded.
    name: CString,
    settings: Mutex<Settings>,
    /// The launch that a program prepares by calls of its own.
    pub(crate) prepared: Mutex<Prepared>,
}

/// The settings of a kernel that a program changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    dynamic_shared: Option<u32>,
    carveout: c_int,
    allows_non_portable: c_int,
    scheduling: c_int,
    /// The shape of a cluster in blocks, which is 0 without one.
    cluster: [c_int; 3],
}

impl Default for Settings {
    fn default() -> Self {
        Self { dynamic_shared: None, carveout: -1, allows_non_portable: 0, scheduling: 0, cluster: [0; 3] }
    }
}

impl Settings {
    /// Sets an attribute of a kernel on an architecture.
    pub(super) fn set(&mut self, kernel: &Kernel, number: c_uint, value: c_int) -> Outcome {
        let within = |least: c_int, most: c_int| {
            if (least..=most).contains(&value) {
                return Ok(value);
            }
            let name = kernel.name();
            Err(Failure::value(format!(
                "attribute {number} of kernel {name:?} cannot be {value}; it may be {least} to {most}"
            )))
        };
        match number {
            attribute::MAX_DYNAMIC_SHARED => {
                let most = kernel.shared_limit().saturating_sub(kernel.shared_bytes()) as c_int;
                self.dynamic_shared = Some(within(0, most)?.unsigned_abs());
            }
            attribute::CARVEOUT => self.carveout = within(-1, 100)?,
            attribute::NON_PORTABLE_CLUSTER => self.allows_non_portable = within(0, 1)?,
            attribute::CLUSTER_SCHEDULING => self.scheduling = within(0, 2)?,
            attribute::CLUSTER_WIDTH..=attribute::CLUSTER_DEPTH => {
                // A launch tells whether the three of them are a shape.
                let axis = (number - attribute::CLUSTER_WIDTH) as usize;
                match kernel.cluster() {
                    None => self.cluster[axis] = within(0, c_int::MAX)?,
                    Some(own) if u64::try_from(value) == Ok(own[axis]) => {}
                    Some(own) => {
                        let name = kernel.name();
                        let why = format!(
                            "kernel {name:?} was compiled for clusters of {own:?} blocks; do not set another shape"
                        );
                        return Err(Failure::new(code::NOT_PERMITTED, why));
                    }
                }
            }
            _ => return Err(Failure::value(format!("{number} is not an attribute of a function that can be set"))),
        }
        Ok(())
    }

    /// Returns an attribute of a kernel whose PTX was compiled for `target`.
    pub(super) fn get(&self, kernel: &Kernel, target: u32, model: &DeviceModel, number: c_uint) -> Outcome<c_int> {
        let count = |number: u64| c_int::try_from(number).unwrap_or(c_int::MAX);
        Ok(match number {
            attribute::MAX_THREADS => count(max_threads(kernel).into()),
            attribute::SHARED_BYTES => count(kernel.shared_bytes().into()),
            attribute::CONST_BYTES => count(kernel.constant_bytes()),
            attribute::LOCAL_BYTES => count(kernel.local_bytes().into()),
            attribute::REGISTERS => REGISTERS,
            attribute::PTX_VERSION => count(target.into()),
            attribute::BINARY_VERSION => count(model.architecture.into()),
            attribute::CACHE_MODE_CA => 0,
            attribute::MAX_DYNAMIC_SHARED => count(self.dynamic_shared(kernel).into()),
            attribute::CARVEOUT => self.carveout,
            attribute::CLUSTER_MUST_BE_SET => c_int::from(kernel.asks_for_clusters()),
            attribute::CLUSTER_WIDTH..=attribute::CLUSTER_DEPTH => {
                let axis = (number - attribute::CLUSTER_WIDTH) as usize;
                kernel.cluster().map_or(self.cluster[axis], |extents| count(extents[axis]))
            }
            attribute::NON_PORTABLE_CLUSTER => self.allows_non_portable,
            attribute::CLUSTER_SCHEDULING => self.scheduling,
            _ => return Err(Failure::value(format!("{number} is not an attribute of a function"))),
        })
    }

    /// Returns the most bytes of dynamic shared memory of a launch.
    fn dynamic_shared(&self, kernel: &Kernel) -> u32 {
        self.dynamic_shared.unwrap_or_else(|| MAX_SHARED_BYTES.saturating_sub(kernel.shared_bytes()))
    }
}

/// Returns the most threads of a block of a kernel.
fn max_threads(kernel: &Kernel) -> u32 {
    let own = kernel.max_threads().and_then(|threads| u32::try_from(threads).ok());
    own.unwrap_or(MAX_BLOCK_THREADS).min(MAX_BLOCK_THREADS)
}

impl Function {
    /// Adds the function of a kernel of a module.
    pub(super) fn add(process: &Process, image: &Image, parsed: &Kernel) -> Outcome<Handle<Self>> {
        let soft_gpu = &image.gpu()?.soft;
        // SAFETY: the module is live, since its table has it.
        let soft = unsafe { soft_gpu.function(image.soft, parsed.name()) }?;
        let kernel = soft_gpu.kernel(soft)?;
        Ok(process.functions.add(Self {
            module: image.handle,
            context: image.context,
            device: image.device,
            soft,
            kernel,
            target: parsed.architecture(),
            name: CString::new(parsed.name()).unwrap_or_default(),
            settings: Mutex::default(),
            prepared: Mutex::default(),
        }))
    }

    pub(crate) fn gpu(&self) -> Outcome<&'static Gpu> {
        process()?.gpu(self.device)
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the most threads of its blocks.
    pub(crate) fn max_threads(&self) -> u32 {
        max_threads(&self.kernel)
    }

    /// Returns whether its launches may have clusters that not every GPU has.
    pub(crate) fn allows_non_portable(&self) -> bool {
        self.settings().allows_non_portable != 0
    }

    /// Returns the shape of the clusters of its launches in blocks, if a program has set one.
    pub(crate) fn set_cluster(&self) -> Option<[c_uint; 3]> {
        let cluster = self.settings().cluster;
        (cluster != [0; 3]).then(|| cluster.map(c_int::unsigned_abs))
    }

    pub(super) fn attribute(&self, number: c_uint) -> Outcome<c_int> {
        self.settings().get(&self.kernel, self.target, &self.gpu()?.model, number)
    }

    pub(super) fn set_attribute(&self, number: c_uint, value: c_int) -> Outcome {
        let mut settings = *self.settings();
        settings.set(&self.kernel, number, value)?;
        self.adopt(settings)
    }

    /// Takes over what a program has set.
    pub(super) fn adopt(&self, settings: Settings) -> Outcome {
        if let Some(bytes) = settings.dynamic_shared {
            // SAFETY: the function is live, since its table has it.
            unsafe { self.gpu()?.soft.allow_dynamic_shared(self.soft, bytes) }?;
        }
        *self.settings() = settings;
        Ok(())
    }
}

/// Returns the function of a handle; the handle of a library's kernel means its function in the
/// current context.
pub(crate) fn function(handle: Handle<Function>) -> Outcome<Arc<Function>> {
    find(handle, current)
}

/// Returns the function of a handle; the handle of a library's kernel means its function in this
/// context.
pub(crate) fn function_in(handle: Handle<Function>, context: Handle<Context>) -> Outcome<Arc<Function>> {
    find(handle, || process()?.contexts.get(context))
}

fn find(handle: Handle<Function>, context: impl FnOnce() -> Outcome<Arc<Context>>) -> Outcome<Arc<Function>> {
    let process = process()?;
    if let Some(function) = process.functions.find(handle) {
        return Ok(function);
    }
    match process.loader.kernels.find(Handle::new(handle.0)) {
        Some(kernel) => process.functions.get(kernel.function_in(&*context()?)?),
        None => process.functions.get(handle),
    }
}

/// Writes the place of a parameter among those of a launch.
pub(super) fn tell_param(kernel: &Kernel, index: usize, offset: Out<usize>, bytes: Out<usize>) -> Outcome {
    offset.check()?;
    let Some(param) = kernel.params().get(index) else {
        let (name, count) = (kernel.name(), kernel.params().len());
        return Err(Failure::value(format!(
            "kernel {name:?} has no parameter {index}: it has {count}, counted from 0"
        )));
    };
    bytes.set_if_wanted(param.size);
    offset.set(param.offset)
}

/// Refuses a preference between shared memory and the L1 cache that CUDA does not have.
pub(super) fn check_cache(config: c_uint) -> Outcome {
    if config <= 3 { Ok(()) } else { Err(Failure::value(format!("{config} is not a preference of caches"))) }
}

export! {
    /// Returns an attribute of a function.
    fn cuFuncGetAttribute(value: Out<c_int>, number: c_uint, of: Handle<Function>) {
        value.check()?;
        value.set(function(of)?.attribute(number)?)
    }

    /// Sets an attribute of a function.
    fn cuFuncSetAttribute(of: Handle<Function>, number: c_uint, value: c_int) {
        function(of)?.set_attribute(number, value)
    }

    /// Prefers shared memory or the L1 cache, which changes nothing on the software GPU.
    fn cuFuncSetCacheConfig(of: Handle<Function>, config: c_uint) {
        function(of)?;
        check_cache(config)
    }

    /// Sets the width of the banks of shared memory, which no GPU since Maxwell changes.
    fn cuFuncSetSharedMemConfig(of: Handle<Function>, config: c_uint) {
        function(of)?;
        if config <= 2 { Ok(()) } else { Err(Failure::value(format!("{config} is not a width of banks"))) }
    }

    /// Returns the module of a function.
    fn cuFuncGetModule(module: Out<Handle<Image>>, of: Handle<Function>) {
        module.set(function(of)?.module)
    }

    /// Returns the name of a function.
    fn cuFuncGetName(name: Out<*const c_char>, of: Handle<Function>) {
        name.set(function(of)?.name.as_ptr())
    }

    /// Returns the place of a parameter among those of a launch.
    fn cuFuncGetParamInfo(of: Handle<Function>, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        tell_param(&function(of)?.kernel, index, offset, bytes)
    }

    /// Returns whether a function is loaded, as all are that have a handle.
    fn cuFuncIsLoaded(state: Out<c_uint>, of: Handle<Function>) {
        const LOADED: c_uint = 1;
        function(of)?;
        state.set(LOADED)
    }

    /// Loads a function, and says whether the software GPU can run it.
    fn cuFuncLoad(of: Handle<Function>) {
        Ok(function(of)?.kernel.supported().map_err(warpstride::Error::from)?)
    }
}
