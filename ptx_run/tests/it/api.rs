//! The library, loaded as programs load it, and kernels for it.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::Library;

/// Returns the path of a library: cargo puts it next to the tests.
pub(crate) fn library(name: &str) -> PathBuf {
    std::env::current_exe().expect("this program").with_file_name(name)
}

/// The type of `ptx_run`.
type Function = unsafe extern "C" fn(
    *const c_char,
    c_int,
    *const *mut c_void,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
) -> c_int;

/// Calls the library.
pub(crate) fn ptx_run(
    source: *const c_char,
    count: c_int,
    arguments: *const *mut c_void,
    block: [c_int; 3],
    grid: [c_int; 3],
    shared: c_int,
) -> c_int {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        // SAFETY: loading the library runs no code of its own.
        unsafe { Library::new(library("libwarpstride_ptx_run.so")) }.expect("the library")
    });
    // SAFETY: the type is that of `ptx_run.h`.
    let function = unsafe { library.get::<Function>("ptx_run") }.expect("the function");
    let ([block_x, block_y, block_z], [grid_x, grid_y, grid_z]) = (block, grid);
    // SAFETY: tests pass pointers that are null or valid, and kernels that write to their memory
    // alone.
    unsafe { function(source, count, arguments, block_x, block_y, block_z, grid_x, grid_y, grid_z, shared) }
}

/// Launches a kernel with these values.
pub(crate) fn launch(ptx: &str, values: &[u64], block: c_int, grid: c_int, shared: c_int) -> c_int {
    let source = CString::new(ptx).expect("a text without NUL");
    let values: Vec<_> = values.iter().map(|&value| std::ptr::with_exposed_provenance_mut(value as usize)).collect();
    ptx_run(source.as_ptr(), values.len() as c_int, values.as_ptr(), [block, 1, 1], [grid, 1, 1], shared)
}

/// Returns the address of a list, which kernels may write.
pub(crate) fn address<T>(list: &mut [T]) -> u64 {
    list.as_mut_ptr().expose_provenance() as u64
}

/// A text with one kernel.
pub(crate) fn kernel(params: &str, body: &str) -> String {
    format!(
        ".version 7.5\n.target sm_35\n.address_size 64\n.visible .entry k({params}) {{\n\
         .reg .b16 %h<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n.reg .f32 %f<4>;\n{body}\nret;\n}}\n"
    )
}

/// Stores 7 at the address in its parameter.
pub(crate) fn store_7() -> String {
    kernel(".param .u64 out", "ld.param.u64 %d1, [out];\nmov.u32 %r1, 7;\nst.global.u32 [%d1], %r1;")
}
