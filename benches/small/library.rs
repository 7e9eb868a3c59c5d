//! NVIDIA's libraries, loaded at run time, so that this builds without them.

use std::env;
use std::ffi::OsString;
use std::result::Result;

use libloading::Library;

/// Loads the library that an environment variable names, or else the first of `names` that the
/// loader finds. It stays loaded until the process ends, so its functions may be called until then.
///
/// # Errors
///
/// Returns the loader's message for each name.
pub(crate) fn load(variable: &str, names: &[&str]) -> Result<&'static Library, String> {
    let named = env::var_os(variable);
    let tried = named.map_or_else(|| names.iter().map(OsString::from).collect(), |name| vec![name]);
    let mut failures = Vec::new();
    for name in tried {
        // SAFETY: the initialisers of NVIDIA's libraries ask nothing of their caller.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok(Box::leak(Box::new(library))),
            Err(error) => failures.push(error.to_string()),
        }
    }
    Err(format!("{}; name its file by {variable}", failures.join("; ")))
}

/// Finds a function.
///
/// # Errors
///
/// Returns the loader's message where the library lacks the function.
///
/// # Safety
///
/// `F` is the type of a pointer to the function, as the library's header declares it.
pub(crate) unsafe fn function<F: Copy>(library: &'static Library, name: &str) -> Result<F, String> {
    // SAFETY: as the caller promises.
    let found = unsafe { library.get::<F>(name) };
    found.map(|function| *function).map_err(|error| error.to_string())
}

/// Returns the memory of the number 1 in the type that peers take for elements of `width` bytes: a
/// half, a float, a double, or the complex number of two doubles.
pub(crate) fn one(width: usize) -> [u64; 2] {
    let bits = match width {
        2 => 0x3C00,
        4 => 1_f32.to_bits().into(),
        _ => 1_f64.to_bits(),
    };
    [bits, 0]
}
