//! Modules, libraries, their functions and variables.
//!
//! ```text
//!  image (PTX, fatbinary, file) --> PTX for the GPU --> module --> functions
//!  link (several PTX) --> join --> PTX                     ^
//!  library --> a module for each context ------------------+
//! ```

mod fatbin;
mod function;
mod image;
mod join;
mod library;
mod link;
mod options;

use std::collections::BTreeMap;
use std::ffi::{OsStr, c_uint};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpstride::driver::{ModuleHandle, Modules as _};
use warpstride::interp::{Kernel, Module};

pub(crate) use function::{Function, function, function_in};
pub(crate) use library::Loader;

use crate::arguments::{Handle, In, Opaque, Out, Text};
use crate::code::{Failure, Outcome, code};
use crate::context::{Context, current};
use crate::export::export;
use crate::process::{Gpu, Process, process};
use options::Options;

/// The most bytes of a file that is loaded.
const MOST_FILE_BYTES: u64 = 1 << 31;
/// The answer of `cuModuleGetLoadingMode`: a kernel is prepared on its first use.
const LAZY: c_uint = 2;

/// A loaded module.
pub(crate) struct Image {
    pub(crate) handle: Handle<Image>,
    pub(crate) context: Handle<Context>,
    pub(crate) device: i32,
    pub(crate) soft: ModuleHandle,
    parsed: Module,
    /// The functions that programs have asked for, by name.
    functions: Mutex<BTreeMap<String, Handle<Function>>>,
}

impl Image {
    pub(crate) fn gpu(&self) -> Outcome<&'static Gpu> {
        process()?.gpu(self.device)
    }

    fn functions(&self) -> MutexGuard<'_, BTreeMap<String, Handle<Function>>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the function of this name; the same handle each time.
    fn function(&self, name: &str) -> Outcome<Handle<Function>> {
        let process = process()?;
        let mut known = self.functions();
        if let Some(&handle) = known.get(name) {
            return Ok(handle);
        }
        let Some(kernel) = self.parsed.kernel(name) else {
            let names = self.parsed.kernels().map(Kernel::name).collect::<Vec<_>>().join(", ");
            return Err(Failure::new(code::NOT_FOUND, format!("the module has no kernel {name:?}; it has {names}")));
        };
        let handle = Function::add(process, self, kernel)?;
        known.insert(name.to_owned(), handle);
        Ok(handle)
    }

    /// Returns the address and the bytes of a variable.
    fn variable(&self, name: &str) -> Outcome<(u64, u64)> {
        if !self.parsed.variables().any(|known| known == name) {
            return Err(no_variable(name));
        }
        // SAFETY: the module is live, since its table has it.
        Ok(unsafe { self.gpu()?.soft.variable(self.soft, name) }?)
    }
}

fn no_variable(name: &str) -> Failure {
    Failure::new(code::NOT_FOUND, format!("the module has no variable {name:?}; declare it in the code that is loaded"))
}

/// Refuses PTX for newer GPUs, as NVIDIA's compiler does.
fn check_target(ptx: &str, gpu: &Gpu) -> Outcome {
    let architecture = gpu.model.architecture;
    match join::target(ptx) {
        Some((name, wanted)) if wanted > architecture => Err(Failure::new(
            code::INVALID_PTX,
            format!(
                "the PTX is for {name}, and the software GPU is an sm_{architecture}; compile for that, or choose a newer \
                 model by WARPSTRIDE_RUN_MODEL"
            ),
        )),
        _ => Ok(()),
    }
}

/// Loads PTX into a context.
fn load(context: &Context, ptx: &str) -> Outcome<Handle<Image>> {
    let (process, gpu) = (process()?, context.gpu()?);
    if !ptx.contains(".version") {
        return Err(Failure::new(
            code::INVALID_PTX,
            "the image has no .version, so it is not PTX; pass PTX or a fatbinary",
        ));
    }
    check_target(ptx, gpu)?;
    let soft = gpu.soft.module_load(ptx)?;
    let parsed = gpu.soft.module(soft)?;
    if let Err(failure) = check_kernels(&parsed) {
        // SAFETY: no code but this knows the module.
        unsafe { gpu.soft.module_unload(soft) }?;
        return Err(failure);
    }
    let (owner, device) = (context.handle, context.device);
    let functions = Mutex::default();
    Ok(process.modules.add_with(|handle| Image { handle, context: owner, device, soft, parsed, functions }))
}

/// Refuses a module of which no kernel can run, as a driver refuses PTX that it cannot compile. One
/// that has such kernels among others is loaded, and their launches are refused.
fn check_kernels(module: &Module) -> Outcome {
    let mut first = None;
    for kernel in module.kernels() {
        match kernel.supported() {
            Ok(()) => return Ok(()),
            Err(error) => _ = first.get_or_insert(error),
        }
    }
    first.map_or(Ok(()), |error| Err(warpstride::Error::from(error).into()))
}

/// Loads an image in memory into the current context.
fn load_image(module: Out<Handle<Image>>, image: Opaque, mut options: Options) -> Outcome {
    module.check()?;
    if image.is_null() {
        return Err(Failure::value("the pointer to the image is null; pass PTX or a fatbinary"));
    }
    let context = current()?;
    let loaded = image::ptx(image, context.gpu()?.model.architecture).and_then(|ptx| load(&context, &ptx));
    module.set(options.told(loaded)?)
}

/// Reads a file that is to be loaded.
fn read_file(path: Text) -> Outcome<Vec<u8>> {
    let path = std::path::Path::new(OsStr::from_bytes(path.get()?.to_bytes()));
    let missing = |why: &dyn std::fmt::Display| {
        Failure::new(code::FILE_NOT_FOUND, format!("the file {path:?} cannot be read ({why}); check its path"))
    };
    let about = std::fs::metadata(path).map_err(|error| missing(&error))?;
    if !about.is_file() {
        return Err(missing(&"it is not a file of bytes"));
    }
    if about.len() > MOST_FILE_BYTES {
        return Err(Failure::new(
            code::INVALID_IMAGE,
            format!("the file {path:?} has more than {MOST_FILE_BYTES} bytes"),
        ));
    }
    std::fs::read(path).map_err(|error| missing(&error))
}

/// Ends what was made in a context.
pub(crate) fn end_of(process: &Process, context: &Context) {
    for module in process.modules.remove_where(|module| module.context == context.handle) {
        end(process, &module);
    }
}

fn end(process: &Process, module: &Arc<Image>) {
    for (_, function) in std::mem::take(&mut *module.functions()) {
        let _ = process.functions.remove(function);
    }
    if let Ok(gpu) = process.gpu(module.device) {
        // SAFETY: the tables have neither the module nor its functions any more.
        let _ = unsafe { gpu.soft.module_unload(module.soft) };
    }
}

export! {
    /// Loads a module from a file: PTX or a fatbinary.
    fn cuModuleLoad(module: Out<Handle<Image>>, path: Text) {
        module.check()?;
        let context = current()?;
        let ptx = image::ptx_of_file(&read_file(path)?, context.gpu()?.model.architecture)?;
        module.set(load(&context, &ptx)?)
    }

    /// Loads a module from an image in memory.
    fn cuModuleLoadData(module: Out<Handle<Image>>, image: Opaque) {
        load_image(module, image, Options::NONE)
    }

    /// Loads a module from an image in memory, with options of the compiler.
    fn cuModuleLoadDataEx(
        module: Out<Handle<Image>>, image: Opaque, count: c_uint, kinds: In<c_uint>, values: Opaque,
    ) {
        load_image(module, image, Options::read(count, kinds, values)?)
    }

    /// Loads a module from a fatbinary in memory.
    fn cuModuleLoadFatBinary(module: Out<Handle<Image>>, image: Opaque) {
        load_image(module, image, Options::NONE)
    }

    /// Unloads a module.
    fn cuModuleUnload(module: Handle<Image>) {
        let process = process()?;
        end(process, &process.modules.remove(module)?);
        Ok(())
    }

    /// Returns whether kernels are prepared on their first use.
    fn cuModuleGetLoadingMode(mode: Out<c_uint>) {
        process()?;
        mode.set(LAZY)
    }

    /// Finds a kernel of a module.
    fn cuModuleGetFunction(function: Out<Handle<Function>>, module: Handle<Image>, name: Text) {
        function.check()?;
        let image = process()?.modules.get(module)?;
        function.set(image.function(&name.string()?)?)
    }

    /// Returns the number of kernels of a module.
    fn cuModuleGetFunctionCount(count: Out<c_uint>, module: Handle<Image>) {
        count.set(process()?.modules.get(module)?.parsed.kernels().count() as c_uint)
    }

    /// Lists the kernels of a module until the caller's list is full.
    fn cuModuleEnumerateFunctions(functions: Out<Handle<Function>>, room: c_uint, module: Handle<Image>) {
        let image = process()?.modules.get(module)?;
        let names = image.parsed.kernels().take(room as usize).map(Kernel::name);
        let found: Outcome<Vec<_>> = names.map(|name| image.function(name)).collect();
        functions.set_all(found?, room as usize)
    }

    /// Finds a variable of a module.
    fn cuModuleGetGlobal_v2 as cuModuleGetGlobal(
        address: Out<u64>, bytes: Out<usize>, module: Handle<Image>, name: Text,
    ) {
        let (base, length) = process()?.modules.get(module)?.variable(&name.string()?)?;
        address.set_if_wanted(base);
        bytes.set_if_wanted(length as usize);
        Ok(())
    }
}
