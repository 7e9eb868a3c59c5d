//! cuBLAS, whose `geam` adds two matrices, each of them transposed or not. With a factor of 0 for
//! the second one, it transposes.
//!
//! The declarations are those of `cublas_api.h`, with device memory as its address.

use std::ffi::{c_int, c_void};
use std::ptr;

use warpstride::driver::StreamHandle;
use warpstride::error::counted;

use super::Case;
use super::library::{function, load, one};

/// The names of the library, the latest first.
const NAMES: &[&str] = &["libcublas.so.13", "libcublas.so.12", "libcublas.so"];

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, u64) -> c_int;
type GetVersion = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;

/// `cublasSgeam` and those of other types: the handle, what is done to the first and to the second
/// matrix, rows, columns, a factor, the first matrix and its leading dimension, the same for the
/// second one, and the result and its leading dimension.
type Geam = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    *const u64,
    u64,
    c_int,
    *const u64,
    u64,
    c_int,
    u64,
    c_int,
) -> c_int;

/// The values of `cublasOperation_t` for a matrix as it is, and for its transpose.
const AS_IT_IS: c_int = 0;
const TRANSPOSED: c_int = 1;

/// An open cuBLAS, which works on one stream. It is never closed: the process ends after it.
pub(crate) struct Cublas {
    handle: Handle,
    /// The functions for elements of 4, 8 and 16 bytes.
    geams: [Geam; 3],
    pub(crate) version: c_int,
}

impl Cublas {
    /// Opens the library for work on `stream`, in the primary context of the current device.
    pub(crate) fn open(stream: StreamHandle) -> Result<Self, String> {
        let loaded = load("CUBLAS_LIBRARY", NAMES)?;
        // SAFETY: the header declares it so.
        let create: Create = unsafe { function(loaded, "cublasCreate_v2") }?;
        // SAFETY: as above.
        let set_stream: SetStream = unsafe { function(loaded, "cublasSetStream_v2") }?;
        // SAFETY: as above.
        let get_version: GetVersion = unsafe { function(loaded, "cublasGetVersion_v2") }?;
        let geam = |name| {
            // SAFETY: as above. The types of the elements differ, and all are passed by address.
            unsafe { function::<Geam>(loaded, name) }
        };
        let geams = [geam("cublasSgeam")?, geam("cublasDgeam")?, geam("cublasZgeam")?];
        let (mut handle, mut version) = (ptr::null_mut(), 0);
        // SAFETY: `handle` takes the result.
        check("cublasCreate", unsafe { create(&mut handle) })?;
        // SAFETY: the handle is open, and the stream lives as long as the process works on it.
        check("cublasSetStream", unsafe { set_stream(handle, stream.0) })?;
        // SAFETY: the handle is open, and `version` takes the result.
        check("cublasGetVersion", unsafe { get_version(handle, &mut version) })?;
        Ok(Self { handle, geams, version })
    }

    /// Returns a call that queues a case from the first address to the second one.
    pub(crate) fn permute(&self, case: &Case, [from, to]: [u64; 2]) -> Result<impl Fn() + '_, String> {
        let width = case.dtype.width();
        let place = [4, 8, 16].iter().position(|&has| has == width);
        let geam = self.geams[place.ok_or_else(|| format!("geam has no elements of {}", counted(width, "byte")))?];
        let [rows, cols] = case.matrix().ok_or("geam has no permute that is not the transpose of a matrix")?;
        let [rows, cols] = [rows, cols].map(|extent| extent as c_int);
        let (handle, one, zero) = (self.handle, one(width), [0; 2]);
        Ok(move || {
            let (one, zero) = (one.as_ptr(), zero.as_ptr());
            // C order of rows x cols is column-major cols x rows, which cuBLAS expects. SAFETY: the
            // handle is open, the factors have the type of the elements, and the arrays have
            // rows x cols of them. The second matrix has the factor 0, so it is not read.
            let status =
                unsafe { geam(handle, TRANSPOSED, AS_IT_IS, rows, cols, one, from, cols, zero, to, rows, to, rows) };
            check("geam", status).expect("it is queued");
        })
    }
}

fn check(call: &str, status: c_int) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("{call} returned the status {status}")) }
}
