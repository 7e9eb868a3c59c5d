//! Libraries: code that is loaded into each context on its first use there.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use warpstride::error::counted;

use warpstride::interp::{Kernel, Module};

use super::function::{Function, Settings, check_cache, tell_param};
use super::link::Link;
use super::options::Options;
use super::{Image, check_target, end, image, load, no_variable, read_file};
use crate::arguments::{Handle, In, Opaque, Out, Text};
use crate::code::{Failure, Outcome, code};
use crate::context::{Context, current};
use crate::export::export;
use crate::handles::Handles;
use crate::process::process;

/// The most options of a library in CUDA 13.
const MOST_OPTIONS: c_uint = 16;

/// The tables of what is loaded without a context.
pub(crate) struct Loader {
    libraries: Handles<Library>,
    pub(super) kernels: Handles<LibraryKernel>,
    pub(super) links: Handles<Link>,
}

impl Default for Loader {
    fn default() -> Self {
        Self { libraries: Handles::new("library"), kernels: Handles::new("kernel"), links: Handles::new("linker") }
    }
}

/// A library.
pub(crate) struct Library {
    ptx: String,
    parsed: Module,
    /// Its kernels in the order of the text.
    kernels: Mutex<Vec<Handle<LibraryKernel>>>,
    /// Its module in each context, by the context's handle.
    modules: Mutex<HashMap<u64, Handle<Image>>>,
}

/// A kernel of a library.
pub(crate) struct LibraryKernel {
    library: Handle<Library>,
    kernel: Kernel,
    /// Its name, which programs read as long as the library is loaded.
    name: CString,
    /// The settings of the program, by device.
    settings: Mutex<HashMap<c_int, Settings>>,
}

impl Library {
    fn modules(&self) -> MutexGuard<'_, HashMap<u64, Handle<Image>>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its kernels' handles.
    fn kernels(&self) -> Vec<Handle<LibraryKernel>> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns its module in a context; loads it there on the first call.
    fn module(&self, context: &Context) -> Outcome<Arc<Image>> {
        let process = process()?;
        let mut modules = self.modules();
        if let Some(image) = modules.get(&context.handle.0).and_then(|&known| process.modules.find(known)) {
            return Ok(image);
        }
        let loaded = load(context, &self.ptx)?;
        modules.insert(context.handle.0, loaded);
        process.modules.get(loaded)
    }
}

impl LibraryKernel {
    fn settings(&self) -> MutexGuard<'_, HashMap<c_int, Settings>> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the handle of its function in a context.
    pub(super) fn function_in(&self, context: &Context) -> Outcome<Handle<Function>> {
        let process = process()?;
        let image = process.loader.libraries.get(self.library)?.module(context)?;
        let is_new = !image.functions().contains_key(self.kernel.name());
        let handle = image.function(self.kernel.name())?;
        let settings = self.settings().get(&context.device).copied();
        if let Some(settings) = settings.filter(|_| is_new) {
            process.functions.get(handle)?.adopt(settings)?;
        }
        Ok(handle)
    }

    fn attribute(&self, number: c_uint, device: c_int) -> Outcome<c_int> {
        let model = &process()?.gpu(device)?.model;
        let settings = self.settings().get(&device).copied().unwrap_or_default();
        let kernel = self.kernel.on_architecture(model.architecture);
        settings.get(&kernel, self.kernel.architecture(), model, number)
    }

    /// Sets an attribute, on a device and in all its contexts that have loaded the library.
    fn set_attribute(&self, number: c_uint, value: c_int, device: c_int) -> Outcome {
        let process = process()?;
        let model = &process.gpu(device)?.model;
        let mut all = self.settings();
        let settings = all.entry(device).or_default();
        settings.set(&self.kernel.on_architecture(model.architecture), number, value)?;
        let modules: Vec<_> = process.loader.libraries.get(self.library)?.modules().values().copied().collect();
        for image in modules.into_iter().filter_map(|module| process.modules.find(module)) {
            let known = image.functions().get(self.kernel.name()).copied();
            if let Some(function) = known.filter(|_| image.device == device) {
                process.functions.get(function)?.set_attribute(number, value)?;
            }
        }
        Ok(())
    }
}

/// Adds a library of PTX.
fn add(ptx: String) -> Outcome<Handle<Library>> {
    let process = process()?;
    check_target(&ptx, process.gpu(0)?)?;
    let parsed = Module::parse(&ptx).map_err(warpstride::Error::from)?;
    let (kernels, modules) = (Mutex::default(), Mutex::default());
    let handle = process.loader.libraries.add(Library { ptx, parsed: parsed.clone(), kernels, modules });
    let named = parsed.kernels().map(|kernel| LibraryKernel {
        library: handle,
        kernel: kernel.clone(),
        name: CString::new(kernel.name()).unwrap_or_default(),
        settings: Mutex::default(),
    });
    let handles: Vec<_> = named.map(|kernel| process.loader.kernels.add(kernel)).collect();
    let library = process.loader.libraries.get(handle)?;
    *library.kernels.lock().unwrap_or_else(PoisonError::into_inner) = handles;
    Ok(handle)
}

/// Refuses more options of a library than there are; none changes anything here.
fn check_options(count: c_uint, kinds: In<c_uint>) -> Outcome {
    const LAST: c_uint = 1;
    if count > MOST_OPTIONS {
        return Err(Failure::value(format!("a library has {count} options, and CUDA has {}", LAST + 1)));
    }
    match kinds.list(count as usize)?.into_iter().find(|&kind| kind > LAST) {
        Some(unknown) => Err(Failure::value(format!("{unknown} is not an option of a library"))),
        None => Ok(()),
    }
}

fn library(handle: Handle<Library>) -> Outcome<Arc<Library>> {
    process()?.loader.libraries.get(handle)
}

fn kernel(handle: Handle<LibraryKernel>) -> Outcome<Arc<LibraryKernel>> {
    process()?.loader.kernels.get(handle)
}

/// Says why a symbol of a library is not to be had: the library lacks it, or the software GPU does.
fn not_to_be_had(of: &Library, name: &str, is_there: bool, what: &str) -> Failure {
    if is_there {
        return Failure::unsupported(format!("{name:?} is {what}, which the software GPU does not have"));
    }
    let kernels = of.parsed.kernels().count();
    Failure::new(
        code::NOT_FOUND,
        format!("the library, of {kernels}, has nothing of the name {name:?}", kernels = counted(kernels, "kernel")),
    )
}

export! {
    /// Loads a library from an image in memory, into no context yet.
    fn cuLibraryLoadData(
        out: Out<Handle<Library>>, image: Opaque, kinds: In<c_uint>, values: Opaque, count: c_uint,
        library_kinds: In<c_uint>, _library_values: Opaque, library_count: c_uint,
    ) {
        out.check()?;
        if image.is_null() {
            return Err(Failure::value("the pointer to the image is null; pass PTX or a fatbinary"));
        }
        check_options(library_count, library_kinds)?;
        let mut options = Options::read(count, kinds, values)?;
        let added = image::ptx(image, process()?.gpu(0)?.model.architecture).and_then(add);
        out.set(options.told(added)?)
    }

    /// Loads a library from a file.
    fn cuLibraryLoadFromFile(
        out: Out<Handle<Library>>, path: Text, kinds: In<c_uint>, values: Opaque, count: c_uint,
        library_kinds: In<c_uint>, _library_values: Opaque, library_count: c_uint,
    ) {
        out.check()?;
        check_options(library_count, library_kinds)?;
        let mut options = Options::read(count, kinds, values)?;
        let bytes = read_file(path)?;
        let added = image::ptx_of_file(&bytes, process()?.gpu(0)?.model.architecture).and_then(add);
        out.set(options.told(added)?)
    }

    /// Unloads a library, in all contexts.
    fn cuLibraryUnload(of: Handle<Library>) {
        let process = process()?;
        let removed = process.loader.libraries.remove(of)?;
        for kernel in removed.kernels() {
            let _ = process.loader.kernels.remove(kernel);
        }
        for (_, module) in std::mem::take(&mut *removed.modules()) {
            if let Ok(image) = process.modules.remove(module) {
                end(process, &image);
            }
        }
        Ok(())
    }

    /// Finds a kernel of a library.
    fn cuLibraryGetKernel(out: Out<Handle<LibraryKernel>>, of: Handle<Library>, name: Text) {
        out.check()?;
        let (library, name) = (library(of)?, name.string()?);
        let found = library.parsed.kernels().position(|kernel| kernel.name() == name);
        let handle = found.and_then(|number| library.kernels().get(number).copied());
        out.set(handle.ok_or_else(|| not_to_be_had(&library, &name, false, "a kernel"))?)
    }

    /// Returns the number of kernels of a library.
    fn cuLibraryGetKernelCount(count: Out<c_uint>, of: Handle<Library>) {
        count.set(library(of)?.kernels().len() as c_uint)
    }

    /// Lists the kernels of a library until the caller's list is full.
    fn cuLibraryEnumerateKernels(kernels: Out<Handle<LibraryKernel>>, room: c_uint, of: Handle<Library>) {
        kernels.set_all(library(of)?.kernels(), room as usize)
    }

    /// Returns the module of a library in the current context.
    fn cuLibraryGetModule(module: Out<Handle<Image>>, of: Handle<Library>) {
        module.check()?;
        module.set(library(of)?.module(&*current()?)?.handle)
    }

    /// Finds a variable of a library in the current context.
    fn cuLibraryGetGlobal(address: Out<u64>, bytes: Out<usize>, of: Handle<Library>, name: Text) {
        let (library, name) = (library(of)?, name.string()?);
        let (base, length) = library.module(&*current()?)?.variable(&name)?;
        address.set_if_wanted(base);
        bytes.set_if_wanted(length as usize);
        Ok(())
    }

    /// Finds a managed variable of a library, which the host uses at the same address.
    fn cuLibraryGetManaged(address: Out<u64>, bytes: Out<usize>, of: Handle<Library>, name: Text) {
        let (library, name) = (library(of)?, name.string()?);
        if !library.parsed.is_managed(&name) {
            return Err(no_variable(&name));
        }
        let (base, length) = library.module(&*current()?)?.variable(&name)?;
        address.set_if_wanted(base);
        bytes.set_if_wanted(length as usize);
        Ok(())
    }

    /// Finds a function that host and GPU call by the same pointer, which the software GPU does not
    /// have.
    fn cuLibraryGetUnifiedFunction(_out: Out<Opaque>, of: Handle<Library>, name: Text) {
        let (library, name) = (library(of)?, name.string()?);
        let is_there = library.parsed.kernel(&name).is_some();
        Err(not_to_be_had(&library, &name, is_there, "a function of a unified pointer"))
    }

    /// Returns the function of a kernel in the current context.
    fn cuKernelGetFunction(function: Out<Handle<Function>>, of: Handle<LibraryKernel>) {
        function.check()?;
        function.set(kernel(of)?.function_in(&*current()?)?)
    }

    /// Returns the library of a kernel.
    fn cuKernelGetLibrary(out: Out<Handle<Library>>, of: Handle<LibraryKernel>) {
        out.set(kernel(of)?.library)
    }

    /// Returns the name of a kernel.
    fn cuKernelGetName(name: Out<*const c_char>, of: Handle<LibraryKernel>) {
        name.set(kernel(of)?.name.as_ptr())
    }

    /// Returns an attribute of a kernel on a device.
    fn cuKernelGetAttribute(value: Out<c_int>, number: c_uint, of: Handle<LibraryKernel>, device: c_int) {
        value.check()?;
        value.set(kernel(of)?.attribute(number, device)?)
    }

    /// Sets an attribute of a kernel on a device.
    fn cuKernelSetAttribute(number: c_uint, value: c_int, of: Handle<LibraryKernel>, device: c_int) {
        kernel(of)?.set_attribute(number, value, device)
    }

    /// Prefers shared memory or the L1 cache, which changes nothing on the software GPU.
    fn cuKernelSetCacheConfig(of: Handle<LibraryKernel>, config: c_uint, device: c_int) {
        kernel(of)?;
        process()?.gpu(device)?;
        check_cache(config)
    }

    /// Returns the place of a parameter among those of a launch.
    fn cuKernelGetParamInfo(of: Handle<LibraryKernel>, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        tell_param(&kernel(of)?.kernel, index, offset, bytes)
    }
}
