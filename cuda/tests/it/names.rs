//! The names that the library exports, and those by which it finds functions.

use std::collections::BTreeSet;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;

use object::{Object as _, ObjectSymbol as _};

use crate::api::{declare, library};
use crate::child::{in_child, is_child};

/// Results, as `cuda.h` numbers them.
const SUCCESS: u32 = 0;
const INVALID_VALUE: u32 = 1;
const NOT_FOUND: u32 = 500;
const NOT_SUPPORTED: u32 = 801;

declare! {
    fn cuGetProcAddress(base: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64);
    fn cuGetProcAddress_v2(
        base: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64, status: *mut u32,
    );
    fn cuArrayCreate_v2(array: *mut u64, descriptor: *const c_void);
}

/// The names that NVIDIA's library exports, each with the version from which on it is found, or
/// what it is.
const NAMES: &str = include_str!("../../names.txt");

fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '))
}

/// The statuses of a search for a function.
const FOUND: u32 = 0;
const UNKNOWN: u32 = 1;
const TOO_OLD: u32 = 2;

/// The flags of a search: the default, and the functions whose stream 0 is the thread's.
const DEFAULT: u64 = 0;
const PER_THREAD: u64 = 2;

/// Looks a function up, and returns the result, the address and the status.
fn find(base: &str, version: c_int, flags: u64) -> (u32, *mut c_void, u32) {
    let base = CString::new(base).expect("no NUL");
    let (mut function, mut status) = (std::ptr::dangling_mut(), 9);
    let result = cuGetProcAddress_v2(base.as_ptr(), &mut function, version, flags, &mut status);
    (result, function, status)
}

/// Returns the address of an exported function.
fn exported(name: &str) -> *mut c_void {
    // SAFETY: the symbol is read as an address alone.
    let symbol = unsafe { library().get::<*mut c_void>(name) }.expect(name);
    // SAFETY: as above.
    unsafe { symbol.into_raw() }.as_raw_ptr()
}

/// Returns a name without the ending for the thread's stream, and whether it has one.
fn without_stream(name: &str) -> (&str, bool) {
    let legacy = ["_ptds", "_ptsz"].iter().find_map(|ending| name.strip_suffix(ending));
    (legacy.unwrap_or(name), legacy.is_some())
}

/// Returns a name without the ending of its version.
fn base(name: &str) -> &str {
    let (name, _) = without_stream(name);
    let is_version = |ending: &str| !ending.is_empty() && ending.bytes().all(|byte| byte.is_ascii_digit());
    name.rsplit_once("_v").filter(|(_, ending)| is_version(ending)).map_or(name, |(base, _)| base)
}

/// Returns the path of the library: cargo puts it next to the tests.
fn library_path() -> PathBuf {
    std::env::current_exe().expect("this program").with_file_name("libwarpstride_cuda.so")
}

#[test]
fn the_library_exports_the_names_of_nvidias_and_no_others() {
    let file = std::fs::read(library_path()).expect("the library");
    let file = object::File::parse(&*file).expect("a shared library");
    let defined = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    // Its own functions have its own name.
    let exported: BTreeSet<_> =
        defined.filter_map(|symbol| symbol.name().ok()).filter(|name| !name.starts_with("warpstride")).collect();
    let wanted: BTreeSet<_> = names().map(|(name, _)| name).collect();
    assert_eq!(wanted.len(), 707);
    let missing: Vec<_> = wanted.difference(&exported).copied().collect();
    let more: Vec<_> = exported.difference(&wanted).copied().collect();
    assert!(more.is_empty(), "NVIDIA's library does not export these:\n{}", more.join("\n"));
    assert!(
        missing.is_empty(),
        "these {} names are missing; support them, or add them to `unsupported!` in cuda/src/names/unsupported.rs:\n{}",
        missing.len(),
        missing.chunks(3).map(|line| format!("    {}", line.join(" "))).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn each_function_is_found_by_its_name_and_version() {
    for (name, version) in names() {
        let Ok(version) = version.parse::<c_int>() else { continue };
        let (_, is_per_thread) = without_stream(name);
        let flags = if is_per_thread { PER_THREAD } else { DEFAULT };
        assert_eq!(find(base(name), version, flags), (SUCCESS, exported(name), FOUND), "{name} {version}");
    }
}

#[test]
fn a_newer_caller_gets_the_newest_function() {
    for version in [3020, 12_000, 13_000, 99_000] {
        assert_eq!(find("cuMemAlloc", version, DEFAULT).1, exported("cuMemAlloc_v2"));
    }
    assert_eq!(find("cuMemAlloc", 3010, DEFAULT).1, exported("cuMemAlloc"));
    assert_eq!(find("cuGetProcAddress", 11_030, DEFAULT).1, exported("cuGetProcAddress"));
    assert_eq!(find("cuGetProcAddress", 12_000, DEFAULT).1, exported("cuGetProcAddress_v2"));
}

#[test]
fn a_function_without_a_variant_for_the_threads_stream_is_found_with_the_flag() {
    assert_eq!(find("cuInit", 13_000, PER_THREAD), (SUCCESS, exported("cuInit"), FOUND));
    // The variant came with CUDA 7.
    assert_eq!(find("cuStreamQuery", 6050, PER_THREAD).1, exported("cuStreamQuery"));
    assert_eq!(find("cuStreamQuery", 7000, PER_THREAD).1, exported("cuStreamQuery_ptsz"));
}

#[test]
fn what_is_not_found_has_a_status() {
    let null = std::ptr::null_mut();
    for unknown in ["cuNone", "", "cuMemAlloc_v2", "cudbgMain", "cuStreamQuery_ptsz", "main"] {
        assert_eq!(find(unknown, 13_000, DEFAULT), (NOT_FOUND, null, UNKNOWN), "{unknown}");
    }
    assert_eq!(find("cuLaunchKernelEx", 11_050, DEFAULT), (NOT_FOUND, null, TOO_OLD));
    assert_eq!(find("cuInit", 0, DEFAULT), (NOT_FOUND, null, TOO_OLD));
    assert_eq!(find("cuInit", -1, DEFAULT), (NOT_FOUND, null, TOO_OLD));
}

#[test]
fn a_search_without_operands_fails() {
    let mut function = std::ptr::null_mut();
    let null = std::ptr::null::<c_char>();
    let name = c"cuInit".as_ptr();
    let place: *mut *mut c_void = &mut function;
    assert_eq!(cuGetProcAddress(null, place, 13_000, 0), INVALID_VALUE);
    assert_eq!(cuGetProcAddress(name, std::ptr::null_mut(), 13_000, 0), INVALID_VALUE);
    assert_eq!(cuGetProcAddress(name, place, 13_000, 3), INVALID_VALUE);
    assert_eq!(cuGetProcAddress(name, place, 13_000, 0), SUCCESS);
    assert_eq!(function, exported("cuInit"));
}

#[test]
fn an_unsupported_function_says_so_once() {
    if is_child() {
        for _ in 0..3 {
            assert_eq!(cuArrayCreate_v2(std::ptr::null_mut(), std::ptr::null()), NOT_SUPPORTED);
        }
        return;
    }
    let told = in_child("names::an_unsupported_function_says_so_once", &[]);
    let says = "warpstride: the program called cuArrayCreate_v2, which the software GPU does not support";
    assert_eq!(told.matches(says).count(), 1, "{told}");
}
