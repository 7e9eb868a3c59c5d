//! The kernels and variables of a program: nvcc's code names them before `main`, by their addresses
//! on the host.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::arguments::{Handle, Opaque, Out, Text};
use crate::code::{Failure, Outcome, code};
use crate::context;
use crate::driver::driver;
use crate::handles::Handles;
use crate::types::{Function, Kernel, Library};

driver! {
    fn cuLibraryLoadData(
        library: &mut Library, image: Opaque, options: Opaque, values: Opaque, count: c_uint,
        library_options: Opaque, library_values: Opaque, library_count: c_uint,
    );
    fn cuLibraryUnload(library: Library);
    fn cuLibraryGetKernel(kernel: &mut Kernel, library: Library, name: *const c_char);
    fn cuLibraryGetGlobal(address: &mut Opaque, bytes: &mut usize, library: Library, name: *const c_char);
    fn cuLibraryGetManaged(address: &mut Opaque, bytes: &mut usize, library: Library, name: *const c_char);
    fn cuKernelGetFunction(function: &mut Function, kernel: Kernel);
    fn cuLinkCreate_v2(count: c_uint, options: Opaque, values: Opaque, link: &mut Opaque);
    fn cuLinkAddData_v2(
        link: Opaque, kind: c_uint, data: Opaque, bytes: usize, name: *const c_char, count: c_uint, options: Opaque,
        values: Opaque,
    );
    fn cuLinkComplete(link: Opaque, image: &mut Opaque, bytes: &mut usize);
    fn cuLinkDestroy(link: Opaque);
}

/// The structure that nvcc's code registers: a magic number, a version, and pointers to the
/// fatbinary and to more.
#[derive(Clone, Copy)]
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: Opaque,
    more: Opaque,
}

/// The magic number of that structure.
const MAGIC: u32 = 0x4662_43B1;
/// The version of a wrapper whose code is still to be linked: `more` lists fatbinaries, up to null.
const TO_LINK: u32 = 2;
/// The most fatbinaries of such a list.
const MOST_LINKED: usize = 1 << 16;
/// The kind of an input of the linker that is a fatbinary.
const FATBINARY: c_uint = 2;
/// The bytes of a fatbinary's header that say how long it is.
const HEADER: usize = 16;

/// A registered fatbinary.
struct Binary {
    wrapper: Opaque,
    /// The library that it was loaded as, at its first use.
    library: Mutex<Option<Library>>,
    /// Its managed variables: the places of their pointers on the host, and their names.
    managed: Mutex<Vec<(Opaque, CString)>>,
}

/// A variable or kernel of the program.
#[derive(Clone)]
struct Symbol {
    binary: Handle<Binary>,
    name: CString,
}

/// The registrations of the program, by addresses on the host.
#[derive(Default)]
struct Registered {
    kernels: HashMap<u64, Symbol>,
    variables: HashMap<u64, Symbol>,
    /// Handles of kernels, which programs also pass in the place of an address.
    handles: HashSet<u64>,
    /// The handle of each kernel that was used, by its address.
    found: HashMap<u64, Kernel>,
    /// The address of each kernel that was used, by its function in a context.
    functions: HashMap<u64, u64>,
}

static BINARIES: LazyLock<Handles<Binary>> = LazyLock::new(|| Handles::new("fatbinary"));
static REGISTERED: LazyLock<Mutex<Registered>> = LazyLock::new(Mutex::default);

fn registered() -> MutexGuard<'static, Registered> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Links the fatbinaries of a list that ends in null, and loads the result.
fn link(list: Opaque) -> Outcome<Library> {
    let none = Opaque::at(0);
    let mut link = none;
    cuLinkCreate_v2(0, none, none, &mut link)?;
    let linked = (|| {
        let (mut added, mut refused) = (0, Ok(()));
        for image in images(list) {
            let name = c"fatbinary".as_ptr();
            match cuLinkAddData_v2(link, FATBINARY, image, fatbinary_bytes(image), name, 0, none, none) {
                Ok(()) => added += 1,
                // The libraries of nvcc have code for other GPUs, too.
                Err(failure) if failure.code == code::NO_BINARY => refused = Err(failure),
                Err(failure) => return Err(failure),
            }
        }
        if added == 0 {
            refused?;
        }
        let (mut image, mut bytes) = (none, 0);
        cuLinkComplete(link, &mut image, &mut bytes)?;
        load(image)
    })();
    let ended = cuLinkDestroy(link);
    linked.and_then(|library| ended.map(|()| library))
}

/// Returns the pointers of a list that ends in null.
fn images(list: Opaque) -> impl Iterator<Item = Opaque> {
    let pointer = move |number: usize| {
        let mut place = [0; size_of::<u64>()];
        list.read_at(number * size_of::<u64>(), &mut place);
        Opaque::at(u64::from_ne_bytes(place))
    };
    (0..MOST_LINKED).map(pointer).take_while(|image| !image.is_null())
}

/// Returns how long a fatbinary is, by its header.
fn fatbinary_bytes(image: Opaque) -> usize {
    let mut header = [0; HEADER];
    image.read_at(0, &mut header);
    let [.., own, high] = header.split_at(8).0 else { return HEADER };
    let own = usize::from(u16::from_le_bytes([*own, *high]));
    let entries = header.split_at(8).1.iter().rev().fold(0, |bytes, &byte| bytes << 8 | usize::from(byte));
    own.saturating_add(entries)
}

fn load(image: Opaque) -> Outcome<Library> {
    let none = Opaque::at(0);
    let mut library = Library::NULL;
    cuLibraryLoadData(&mut library, image, none, none, 0, none, none, 0)?;
    Ok(library)
}

impl Binary {
    /// Returns its library; loads it on the first call.
    fn library(&self) -> Outcome<Library> {
        let mut library = self.library.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = *library {
            return Ok(known);
        }
        context::ready()?;
        let wrapper = self.wrapper.operands::<Wrapper>().get()?;
        if wrapper.magic != MAGIC {
            let why = format!(
                "the code that the program registered begins with {:#x} and not with {MAGIC:#x}",
                wrapper.magic
            );
            return Err(Failure::new(code::INVALID_IMAGE, why));
        }
        let is_to_link = wrapper.version == TO_LINK && !wrapper.more.is_null();
        let loaded = if is_to_link { link(wrapper.more)? } else { load(wrapper.data)? };
        *library = Some(loaded);
        Ok(loaded)
    }

    /// Points the program's managed variables to their memory.
    fn manage(&self) -> Outcome {
        let managed = std::mem::take(&mut *self.managed.lock().unwrap_or_else(PoisonError::into_inner));
        for (place, name) in managed {
            let (mut address, mut bytes) = (Opaque::at(0), 0);
            cuLibraryGetManaged(&mut address, &mut bytes, self.library()?, name.as_ptr())?;
            place.results().set(address)?;
        }
        Ok(())
    }
}

fn binary(handle: Handle<Binary>) -> Outcome<Arc<Binary>> {
    BINARIES.get(handle)
}

/// Returns the handle of a kernel, which a program names by its address or by that handle.
pub(crate) fn kernel(host: Opaque) -> Outcome<Kernel> {
    let address = host.address();
    let symbol = {
        let registered = registered();
        if let Some(&known) = registered.found.get(&address) {
            return Ok(known);
        }
        if registered.handles.contains(&address) {
            return Ok(Kernel::new(address));
        }
        registered.kernels.get(&address).cloned()
    };
    let symbol = symbol.ok_or_else(|| {
        Failure::new(
            code::INVALID_FUNCTION,
            format!("the program has no kernel at {address:#x}; pass a __global__ function"),
        )
    })?;
    let library = binary(symbol.binary)?.library()?;
    let mut kernel = Kernel::NULL;
    cuLibraryGetKernel(&mut kernel, library, symbol.name.as_ptr())
        .map_err(|failure| if failure.code == code::NOT_FOUND { missing(&symbol.name) } else { failure })?;
    let mut registered = registered();
    registered.handles.insert(kernel.0);
    registered.found.insert(address, kernel);
    Ok(kernel)
}

fn missing(name: &CStr) -> Failure {
    Failure::new(code::INVALID_FUNCTION, format!("the program's code for the device has no kernel {name:?}"))
}

/// Notes handles of kernels, which programs may pass in the place of an address.
pub(crate) fn note_kernel(kernel: Kernel) {
    registered().handles.insert(kernel.0);
}

/// Returns a kernel's function in the current context.
pub(crate) fn function(host: Opaque) -> Outcome<Function> {
    context::ready()?;
    let mut function = Function::NULL;
    cuKernelGetFunction(&mut function, kernel(host)?)?;
    registered().functions.insert(function.0, host.address());
    Ok(function)
}

/// Returns what names a kernel for the program: its address on the host, or its handle.
pub(crate) fn host_of(function: Function, kernel: Kernel) -> Opaque {
    let registered = registered();
    let by_kernel =
        || registered.found.iter().find(|(_, known)| !kernel.is_null() && **known == kernel).map(|(&at, _)| at);
    let address = registered.functions.get(&function.0).copied().or_else(by_kernel);
    Opaque::at(address.unwrap_or(if kernel.is_null() { function.0 } else { kernel.0 }))
}

/// Returns the address of a variable on the current device, and its bytes.
pub(crate) fn variable(host: Opaque) -> Outcome<(Opaque, usize)> {
    context::ready()?;
    let address = host.address();
    let symbol = registered().variables.get(&address).cloned();
    let symbol = symbol.ok_or_else(|| {
        let why = format!("the program has no variable at {address:#x}; pass a __device__ or __constant__ variable");
        Failure::new(code::INVALID_SYMBOL, why)
    })?;
    let binary = binary(symbol.binary)?;
    let (mut place, mut bytes) = (Opaque::at(0), 0);
    cuLibraryGetGlobal(&mut place, &mut bytes, binary.library()?, symbol.name.as_ptr())?;
    Ok((place, bytes))
}

/// Calls a function that cannot fail for its caller, and catches its panics.
fn quietly<T: Default>(name: &'static str, body: impl FnOnce() -> Outcome<T>) -> T {
    let mut result = T::default();
    crate::export::call(name, || {
        result = body()?;
        Ok(())
    });
    result
}

/// Registers a fatbinary.
///
/// # Safety
///
/// - The wrapper is null, or one that nvcc made, as are the others below.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: Opaque) -> Opaque {
    quietly("__cudaRegisterFatBinary", || {
        let binary = Binary { wrapper, library: Mutex::default(), managed: Mutex::default() };
        Ok(Some(Opaque::at(BINARIES.add(binary).0)))
    })
    .unwrap_or(Opaque::at(0))
}

/// Ends the registration of a fatbinary's kernels and variables.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_binary: Opaque) {}

/// Forgets a fatbinary.
///
/// # Safety
///
/// - As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaUnregisterFatBinary(handle: Opaque) {
    quietly("__cudaUnregisterFatBinary", || {
        let handle = Handle::new(handle.address());
        let removed = BINARIES.remove(handle)?;
        let mut registered = registered();
        let of_others = |_: &u64, symbol: &mut Symbol| symbol.binary != handle;
        registered.variables.retain(of_others);
        let gone: Vec<_> =
            registered.kernels.extract_if(|_, symbol| symbol.binary == handle).map(|(at, _)| at).collect();
        for address in gone {
            registered.functions.retain(|_, host| *host != address);
            if let Some(kernel) = registered.found.remove(&address) {
                registered.handles.remove(&kernel.0);
            }
        }
        drop(registered);
        let library = removed.library.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The driver may have ended before the program's last functions run.
        let _ = library.map(cuLibraryUnload);
        Ok(())
    })
}

/// Registers a kernel.
///
/// # Safety
///
/// - As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFunction(
    binary: Opaque,
    host: Opaque,
    _device: Opaque,
    name: Text,
    _threads: c_int,
    _thread: Opaque,
    _block: Opaque,
    _block_dim: Opaque,
    _grid_dim: Opaque,
    _warp: Opaque,
) {
    quietly("__cudaRegisterFunction", || {
        let symbol = Symbol { binary: Handle::new(binary.address()), name: name.get()?.to_owned() };
        registered().kernels.insert(host.address(), symbol);
        Ok(())
    })
}

/// Registers a variable.
///
/// # Safety
///
/// - As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterVar(
    binary: Opaque,
    host: Opaque,
    _device: Opaque,
    name: Text,
    _ext: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    quietly("__cudaRegisterVar", || {
        let symbol = Symbol { binary: Handle::new(binary.address()), name: name.get()?.to_owned() };
        registered().variables.insert(host.address(), symbol);
        Ok(())
    })
}

/// Registers a managed variable, whose pointer on the host is null until `__cudaInitModule` sets
/// it.
///
/// # Safety
///
/// - As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterManagedVar(
    handle: Opaque,
    place: Opaque,
    _device: Opaque,
    name: Text,
    _ext: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    quietly("__cudaRegisterManagedVar", || {
        let handle = Handle::new(handle.address());
        let name = name.get()?.to_owned();
        let binary = binary(handle)?;
        binary.managed.lock().unwrap_or_else(PoisonError::into_inner).push((place, name.clone()));
        registered().variables.insert(place.address(), Symbol { binary: handle, name });
        Ok(())
    })
}

/// Loads a fatbinary, and points its managed variables to their memory. Returns whether that
/// worked.
///
/// # Safety
///
/// - As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaInitModule(handle: Opaque) -> c_char {
    quietly("__cudaInitModule", || {
        let binary = binary(Handle::new(handle.address()))?;
        binary.library()?;
        binary.manage()?;
        Ok(1)
    })
}

crate::export::export! {
    /// Returns the handle of a kernel.
    fn __cudaGetKernel as cudaGetKernel(out: Out<Kernel>, host: Opaque) {
        out.check()?;
        out.set(kernel(host)?)
    }

    /// Returns a kernel's function in the current context.
    fn cudaGetFuncBySymbol(out: Out<Function>, host: Opaque) {
        out.check()?;
        out.set(function(host)?)
    }

    /// Returns the address of a variable on the current device.
    fn cudaGetSymbolAddress(out: Out<Opaque>, host: Opaque) {
        out.check()?;
        out.set(variable(host)?.0)
    }

    /// Returns the bytes of a variable.
    fn cudaGetSymbolSize(out: Out<usize>, host: Opaque) {
        out.check()?;
        out.set(variable(host)?.1)
    }
}
