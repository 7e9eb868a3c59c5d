//! Functions that are found by name and version.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::arguments::{Out, Text};
use crate::code::{Failure, Outcome, code};
use crate::device::VERSION;
use crate::export::export;

/// All names, with the versions from which on functions are found.
const NAMES: &str = include_str!("../../names.txt");

/// The statuses of a search: found, not found, and found for newer versions only.
const FOUND: c_uint = 0;
const NOT_FOUND: c_uint = 1;
const TOO_OLD: c_uint = 2;

/// The flags of a search: the functions whose stream 0 is the legacy default stream, which are also
/// the default, and those whose stream 0 is the thread's.
const DEFAULT: u64 = 0;
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// The endings of the names of functions whose stream 0 is the thread's.
const PER_THREAD_ENDINGS: [&str; 2] = ["_ptds", "_ptsz"];

/// The versions of one function.
#[derive(Default)]
struct Versions {
    legacy: Vec<Version>,
    per_thread: Vec<Version>,
}

/// A version of a function: the version of CUDA from which on it is found, and its exported name.
struct Version {
    since: c_int,
    name: &'static str,
}

/// Returns the name without the ending of its version.
fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((base, digits)) if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) => base,
        _ => name,
    }
}

/// Returns the functions that are found by name, under their names without ending.
fn functions() -> &'static HashMap<&'static str, Versions> {
    static FUNCTIONS: OnceLock<HashMap<&str, Versions>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let mut functions: HashMap<_, Versions> = HashMap::new();
        for (name, since) in NAMES.lines().filter_map(|line| line.split_once(' ')) {
            let Ok(since) = since.parse() else { continue };
            let legacy = PER_THREAD_ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
            let versions = functions.entry(without_version(legacy.unwrap_or(name))).or_default();
            let list = if legacy.is_some() { &mut versions.per_thread } else { &mut versions.legacy };
            list.push(Version { since, name });
        }
        functions
    })
}

/// Returns the newest version that is not newer than `most`.
fn newest(versions: &[Version], most: c_int) -> Option<&Version> {
    versions.iter().filter(|version| version.since <= most).max_by_key(|version| version.since)
}

/// Returns the exported name of a function, or the status that says why it was not found.
fn exported(base: &str, version: c_int, flags: u64) -> Result<&'static str, c_uint> {
    let versions = functions().get(base).ok_or(NOT_FOUND)?;
    let legacy = newest(&versions.legacy, version).ok_or(TOO_OLD)?;
    // The thread's variant has the parameters of the legacy one, so it is the variant of that very
    // version.
    let is_variant = |of: &&Version| {
        of.since <= version
            && of.name.strip_prefix(legacy.name).is_some_and(|ending| PER_THREAD_ENDINGS.contains(&ending))
    };
    let variant = versions.per_thread.iter().find(is_variant).filter(|_| flags == PER_THREAD);
    Ok(variant.unwrap_or(legacy).name)
}

/// Returns the address of an exported function of this library.
fn address(name: &CStr) -> Option<*mut c_void> {
    /// The handle of this library, as a number.
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let library = *LIBRARY.get_or_init(|| open().map_or(0, |handle| handle.addr()));
    if library == 0 {
        return None;
    }
    // SAFETY: the handle is this library's and is never closed, and the name ends in NUL.
    let found = unsafe { libc::dlsym(std::ptr::without_provenance_mut(library), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Opens this library, by the path from which it was loaded.
fn open() -> Option<*mut c_void> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is a byte of this library, and the place is valid for the result.
    let found = unsafe { libc::dladdr(NAMES.as_ptr().cast(), info.as_mut_ptr()) };
    // SAFETY: all zero is a value of the type, and `dladdr` writes values.
    let info = unsafe { info.assume_init() };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` gave a path that ends in NUL and lives as long as the library. Nothing is
    // loaded, so nothing runs.
    let handle = unsafe { libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    (!handle.is_null()).then_some(handle)
}

/// Looks a function up, and writes its address, or null, and the status.
fn find(base: Text, function: Out<*mut c_void>, version: c_int, flags: u64, status: Out<c_uint>) -> Outcome {
    function.check()?;
    let base = base.string()?;
    if !matches!(flags, DEFAULT | LEGACY | PER_THREAD) {
        return Err(Failure::value(format!("{flags:#x} are not flags of a search for a function")));
    }
    let found = exported(&base, version, flags).and_then(|name| {
        let name = CString::new(name).map_err(|_| NOT_FOUND)?;
        address(&name).ok_or(NOT_FOUND)
    });
    function.set(*found.as_ref().unwrap_or(&std::ptr::null_mut()))?;
    status.set_if_wanted(found.err().unwrap_or(FOUND));
    match found {
        Ok(_) => Ok(()),
        Err(TOO_OLD) => {
            let why = format!("{base} is in CUDA, but not in its version {version}; ask for a newer one");
            Err(Failure::new(code::NOT_FOUND, why))
        }
        Err(_) => Err(Failure::new(code::NOT_FOUND, format!("CUDA {VERSION} has no function {base}"))),
    }
}

export! {
    /// Finds a function by its name without `_v2` and the like, and the version of CUDA that the
    /// caller knows.
    fn cuGetProcAddress(base: Text, function: Out<*mut c_void>, version: c_int, flags: u64) {
        find(base, function, version, flags, Out::NULL)
    }

    /// Finds a function in the same way, and says why it was not found.
    fn cuGetProcAddress_v2(
        base: Text, function: Out<*mut c_void>, version: c_int, flags: u64, status: Out<c_uint>,
    ) {
        find(base, function, version, flags, status)
    }
}
