//! The driver, `libcuda.so.1`: it is loaded at the first call, and each of its functions at its
//! own.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::code::{CUresult, Failure, Outcome, code};
use crate::export::is_per_thread;

/// The name of the driver.
const NAME: &CStr = c"libcuda.so.1";

/// The endings of functions whose stream 0 is the thread's own.
const PER_THREAD_ENDINGS: [&str; 2] = ["_ptsz", "_ptds"];

/// A function of the driver, as an address.
pub(crate) struct Slot {
    name: &'static str,
    legacy: OnceLock<usize>,
    per_thread: OnceLock<usize>,
}

/// Returns the handle of the driver, as a number.
fn library() -> Outcome<usize> {
    static LIBRARY: OnceLock<Result<usize, String>> = OnceLock::new();
    let opened = LIBRARY.get_or_init(|| {
        // SAFETY: the name ends in NUL; the driver may run code of its own, as every program with
        // CUDA lets it.
        let handle = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW) };
        if handle.is_null() { Err(why()) } else { Ok(handle.expose_provenance()) }
    });
    opened.clone().map_err(|why| {
        let why =
            format!("the driver cannot be loaded ({why}); run the program by `warpstride run`, or install a driver");
        Failure::new(code::INSUFFICIENT_DRIVER, why)
    })
}

/// Returns why the last call of `dlopen` failed.
fn why() -> String {
    // SAFETY: `dlerror` has no parameters.
    let text: *const c_char = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason is known".into();
    }
    // SAFETY: `dlerror` returns a text that ends in NUL and lives until the thread's next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Returns the address of an exported function of the driver.
fn symbol(name: &str) -> Outcome<Option<usize>> {
    let library = library()?;
    let Ok(name) = CString::new(name) else { return Ok(None) };
    // SAFETY: the handle is the driver's, which is never closed, and the name ends in NUL.
    let found = unsafe { libc::dlsym(std::ptr::with_exposed_provenance_mut(library), name.as_ptr()) };
    Ok((!found.is_null()).then(|| found.expose_provenance()))
}

impl Slot {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, legacy: OnceLock::new(), per_thread: OnceLock::new() }
    }

    /// Returns the address of the function: of its variant for the thread's stream, in a call for
    /// that.
    pub(crate) fn get(&self) -> Outcome<*mut c_void> {
        let place = if is_per_thread() { &self.per_thread } else { &self.legacy };
        if let Some(&known) = place.get() {
            return Ok(std::ptr::with_exposed_provenance_mut(known));
        }
        let mut found = None;
        if is_per_thread() {
            for ending in PER_THREAD_ENDINGS {
                found = found.or(symbol(&format!("{}{ending}", self.name))?);
            }
        }
        if found.is_none() {
            found = symbol(self.name)?;
        }
        let found = found.ok_or_else(|| {
            Failure::unsupported(format!("the driver has no function {}; install a newer one", self.name))
        })?;
        Ok(std::ptr::with_exposed_provenance_mut(*place.get_or_init(|| found)))
    }

    /// Turns what the function returned into an outcome.
    pub(crate) fn outcome(&self, result: CUresult) -> Outcome {
        match result {
            code::SUCCESS => Ok(()),
            code => Err(Failure::new(code, format!("{} returned {code}", self.name))),
        }
    }
}

/// Declares functions of the driver under their exported names.
macro_rules! driver {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {$(
        $(#[$meta])*
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub(crate) fn $name($($argument: $type),*) -> $crate::code::Outcome {
            type Signature = unsafe extern "C" fn($($type),*) -> $crate::code::CUresult;
            static SLOT: $crate::driver::Slot = $crate::driver::Slot::new(stringify!($name));
            let address = SLOT.get()?;
            // SAFETY: the driver's function of this name has these parameters, as `cuda.h` declares
            // it.
            let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Signature>(address) };
            // SAFETY: its pointers are references, or a program's own, which it promises to be
            // valid.
            SLOT.outcome(unsafe { function($($argument),*) })
        }
    )*};
}
pub(crate) use driver;

/// Exports functions that are one of the driver's with the same parameters, once the thread has a
/// context, or with `without context;` before them, once the driver is initialised.
macro_rules! forward {
    (without context; $($functions:tt)*) => {
        $crate::driver::forward! { @after $crate::driver::initialize; $($functions)* }
    };
    (
        @after $ready:path;
        $(
            $(#[$doc:meta])*
            fn $name:ident $(as $alias:ident)* $(, per_thread $per_thread:ident)*
                ($($argument:ident: $type:ty),* $(,)?) = $driver:ident;
        )*
    ) => {$(
        $crate::export::export! {
            $(#[$doc])*
            fn $name $(as $alias)* $(, per_thread $per_thread)* ($($argument: $type),*) {
                $crate::driver::driver! { fn $driver($($argument: $type),*); }
                $ready()?;
                $driver($($argument),*)
            }
        }
    )*};
    ($($functions:tt)*) => {
        $crate::driver::forward! { @after $crate::context::ready; $($functions)* }
    };
}
pub(crate) use forward;

driver! {
    fn cuInit(flags: c_uint);
    fn cuDriverGetVersion(version: &mut c_int);
}

/// Initialises the driver, once.
pub(crate) fn initialize() -> Outcome {
    static READY: OnceLock<Outcome> = OnceLock::new();
    READY.get_or_init(|| cuInit(0)).clone()
}
