//! Functions called by loading the library, without nvcc: with operands that no program should
//! pass.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use libloading::Library;

use crate::names::library;

/// Results, as `driver_types.h` numbers them.
const SUCCESS: u32 = 0;
const INVALID_VALUE: u32 = 1;
const INVALID_SYMBOL: u32 = 13;
const INVALID_DIRECTION: u32 = 21;
const INSUFFICIENT_DRIVER: u32 = 35;
const MISSING_CONFIGURATION: u32 = 52;
const INVALID_FUNCTION: u32 = 98;
const INVALID_DEVICE: u32 = 101;
const NOT_SUPPORTED: u32 = 801;

/// Set in a process whose library finds a driver, and in one whose library finds none.
const CHILD: &str = "WARPSTRIDE_TEST_CHILD";

/// Makes a folder where programs find the software GPU's driver, and both runtimes.
pub(crate) fn libraries() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (from, to) in [
        ("libwarpstride_cuda.so", "libcuda.so.1"),
        ("libwarpstride_cudart.so", "libcudart.so.13"),
        ("libwarpstride_cudart_12.so", "libcudart.so.12"),
    ] {
        std::os::unix::fs::symlink(library(from), folder.path().join(to)).expect("a link");
    }
    folder
}

/// Runs a test of this file again, with the libraries of a folder.
fn in_child(test: &str, folder: &Path) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let child = command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .expect("a process");
    let told = [child.stdout, child.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(child.status.success() && told.contains("1 passed"), "{}:\n{told}", child.status);
    told
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Returns the runtime of CUDA 13.
pub(crate) fn runtime() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        // SAFETY: loading the library runs no code of its own.
        unsafe { Library::new(library("libwarpstride_cudart.so")) }.expect("the library")
    })
}

/// Declares functions of the library.
macro_rules! declare {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {$(
        #[allow(non_snake_case, clippy::too_many_arguments)]
        fn $name($($argument: $type),*) -> declare!(@ $($result)?) {
            type Function = unsafe extern "C" fn($($type),*) -> declare!(@ $($result)?);
            // SAFETY: the declaration has the types of CUDA's header.
            let function = unsafe { runtime().get::<Function>(stringify!($name)) };
            // SAFETY: tests pass pointers that are null or valid.
            unsafe { function.expect(stringify!($name))($($argument),*) }
        }
    )*};
    (@) => { u32 };
    (@ $result:ty) => { $result };
}

declare! {
    fn cudaGetLastError();
    fn cudaPeekAtLastError();
    fn cudaGetErrorName(result: u32) -> *const c_char;
    fn cudaGetErrorString(result: u32) -> *const c_char;
    fn cudaGetDeviceCount(count: *mut c_int);
    fn cudaSetDevice(device: c_int);
    fn cudaMalloc(address: *mut *mut c_void, bytes: usize);
    fn cudaFree(address: *mut c_void);
    fn cudaMemcpy(dst: *mut c_void, src: *const c_void, count: usize, kind: u32);
    fn cudaMemcpyToSymbol(symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: u32);
    fn cudaMallocArray(array: *mut u64, description: *const c_void, width: usize, height: usize, flags: u32);
    fn cudaStreamSynchronize(stream: u64);
    fn cudaFuncGetAttributes(attributes: *mut c_void, function: *const c_void);
    fn cudaGraphDestroy(graph: u64);
    fn cudaRuntimeGetVersion(version: *mut c_int);
    fn cudaDriverGetVersion(version: *mut c_int);
    fn __cudaRegisterFatBinary(wrapper: *const c_void) -> u64;
    fn __cudaRegisterFunction(
        binary: u64, host: *const c_void, device: *const c_void, name: *const c_char, threads: c_int, a: u64, b: u64,
        c: u64, d: u64, e: u64,
    );
    fn __cudaUnregisterFatBinary(binary: u64);
    fn __cudaInitModule(binary: u64) -> c_char;
    fn __cudaPopCallConfiguration(grid: *mut [u32; 3], block: *mut [u32; 3], shared: *mut usize, stream: *mut u64);
}

fn text(pointer: *const c_char) -> &'static CStr {
    // SAFETY: the library returns texts that live as long as it.
    unsafe { CStr::from_ptr(pointer) }
}

#[test]
fn results_have_names_and_descriptions() {
    for (result, name, description) in [
        (0, c"cudaSuccess", c"no error"),
        (700, c"cudaErrorIllegalAddress", c"an illegal memory access was encountered"),
        (12_345, c"unrecognized error code", c"unrecognized error code"),
    ] {
        assert_eq!(text(cudaGetErrorName(result)), name);
        assert_eq!(text(cudaGetErrorString(result)), description);
    }
}

#[test]
fn calls_without_a_driver_say_so() {
    if is_child() {
        let mut count = 9;
        assert_eq!(cudaGetDeviceCount(&mut count), INSUFFICIENT_DRIVER);
        assert_eq!(count, 0);
        assert_eq!(cudaFree(std::ptr::null_mut()), INSUFFICIENT_DRIVER);
        let mut version = 9;
        assert_eq!(cudaDriverGetVersion(&mut version), SUCCESS);
        assert_eq!(version, 0);
        assert_eq!(cudaRuntimeGetVersion(&mut version), SUCCESS);
        assert_eq!(version / 1000, 13);
        return;
    }
    let empty = tempfile::tempdir().expect("a folder");
    // With a driver installed, no call is without one.
    // SAFETY: the driver may run code of its own, as every program with CUDA lets it.
    if unsafe { Library::new("libcuda.so.1") }.is_err() {
        in_child("untyped::calls_without_a_driver_say_so", empty.path());
    }
}

#[test]
fn hostile_operands_are_refused() {
    if !is_child() {
        let told = in_child("untyped::hostile_operands_are_refused", libraries().path());
        let says = "warpstride: the program called cudaMallocArray, which the software GPU does not support";
        assert_eq!(told.matches(says).count(), 1, "{told}");
        return;
    }
    let (null, mut place) = (std::ptr::null_mut::<c_void>(), std::ptr::null_mut());
    assert_eq!(cudaMalloc(std::ptr::null_mut(), 8), INVALID_VALUE);
    assert_eq!(cudaGetDeviceCount(std::ptr::null_mut()), INVALID_VALUE);
    for device in [-1, 99, c_int::MIN, c_int::MAX] {
        assert_eq!(cudaSetDevice(device), INVALID_DEVICE);
    }
    assert_eq!(cudaMalloc(&mut place, 64), SUCCESS);
    assert_eq!(cudaMemcpy(place, null, 8, 1), INVALID_VALUE);
    assert_eq!(cudaMemcpy(place, place, 8, 9), INVALID_DIRECTION);
    assert_eq!(cudaMemcpy(place, place, usize::MAX, 3), INVALID_VALUE);
    for symbol in [null, std::ptr::without_provenance_mut(8)] {
        assert_eq!(cudaMemcpyToSymbol(symbol, null, 8, 0, 1), INVALID_SYMBOL);
        assert_eq!(cudaFuncGetAttributes([0_u8; 256].as_mut_ptr().cast(), symbol), INVALID_FUNCTION);
    }
    assert_ne!(cudaStreamSynchronize(0xdead), SUCCESS);
    assert_ne!(cudaGraphDestroy(0xdead), SUCCESS);
    assert_ne!(cudaFree(std::ptr::without_provenance_mut(16)), SUCCESS);
    for _ in 0..3 {
        assert_eq!(cudaMallocArray(std::ptr::null_mut(), null, 1, 1, 0), NOT_SUPPORTED);
    }
    assert_eq!(cudaPeekAtLastError(), NOT_SUPPORTED);
    assert_eq!(cudaGetLastError(), NOT_SUPPORTED);
    assert_eq!(cudaGetLastError(), SUCCESS);
}

#[test]
fn registrations_without_code_are_refused() {
    if !is_child() {
        in_child("untyped::registrations_without_code_are_refused", libraries().path());
        return;
    }
    let null = std::ptr::null::<c_void>();
    let binary = __cudaRegisterFatBinary(null);
    let host = std::ptr::from_ref(&CHILD).cast();
    __cudaRegisterFunction(binary, host, null, c"kernel".as_ptr(), -1, 0, 0, 0, 0, 0);
    __cudaRegisterFunction(binary, host, null, std::ptr::null(), -1, 0, 0, 0, 0, 0);
    assert_eq!(__cudaInitModule(binary), 0);
    assert_eq!(cudaFuncGetAttributes([0_u8; 256].as_mut_ptr().cast(), host), INVALID_VALUE);
    __cudaUnregisterFatBinary(binary);
    __cudaUnregisterFatBinary(binary);
    __cudaUnregisterFatBinary(0);
    assert_eq!(cudaFuncGetAttributes([0_u8; 256].as_mut_ptr().cast(), host), INVALID_FUNCTION);
    let (mut size, mut shared, mut stream) = ([0; 3], 0, 0);
    let grid: *mut [u32; 3] = &mut size;
    assert_eq!(__cudaPopCallConfiguration(grid, grid, &mut shared, &mut stream), MISSING_CONFIGURATION);
}
