//! cuTENSOR 2, which permutes by a plan that it makes beforehand.
//!
//! The declarations are those of `cutensor.h`, with device memory as its address.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use libloading::Library;
use warpstride::driver::StreamHandle;
use warpstride::error::counted;

use super::Case;
use super::library::{function, load, one};

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type GetVersion = unsafe extern "C" fn() -> usize;
type GetErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
type CreateTensorDescriptor =
    unsafe extern "C" fn(Handle, *mut Handle, u32, *const i64, *const i64, c_int, u32) -> c_int;
type CreatePermutation =
    unsafe extern "C" fn(Handle, *mut Handle, Handle, *const i32, c_int, Handle, *const i32, *const c_void) -> c_int;
type CreatePlanPreference = unsafe extern "C" fn(Handle, *mut Handle, c_int, c_int) -> c_int;
type CreatePlan = unsafe extern "C" fn(Handle, *mut Handle, Handle, Handle, u64) -> c_int;
type Permute = unsafe extern "C" fn(Handle, Handle, *const u64, u64, u64, u64) -> c_int;

/// The values of `cutensorOperator_t`, `cutensorAlgo_t` and `cutensorJitMode_t` that a permute
/// takes.
const IDENTITY: c_int = 1;
const ALGO_DEFAULT: c_int = -1;
const JIT_NONE: c_int = 0;

/// Bytes to a multiple of which all arrays are aligned.
const ALIGN: u32 = 256;

/// The type that stands for elements of a width, as `cudaDataType_t`, and the variable that has the
/// precision of the computation.
const TYPES: [(usize, c_int, &str); 4] = [
    (2, 2, "CUTENSOR_COMPUTE_DESC_16F"),
    (4, 0, "CUTENSOR_COMPUTE_DESC_32F"),
    (8, 1, "CUTENSOR_COMPUTE_DESC_64F"),
    (16, 5, "CUTENSOR_COMPUTE_DESC_64F"),
];

/// An open cuTENSOR. It is never closed, and neither are its plans: the process ends after them.
pub(crate) struct Cutensor {
    loaded: &'static Library,
    handle: Handle,
    permute: Permute,
    stream: StreamHandle,
    pub(crate) version: usize,
}

impl Cutensor {
    /// Opens the library for work on `stream`. cuTENSOR needs a library of cuBLAS, which it finds
    /// where cuBLAS is open.
    pub(crate) fn open(stream: StreamHandle) -> Result<Self, String> {
        let loaded = load("CUTENSOR_LIBRARY", &["libcutensor.so.2"])?;
        // SAFETY: the header declares it so.
        let create: Create = unsafe { function(loaded, "cutensorCreate") }?;
        // SAFETY: as above.
        let get_version: GetVersion = unsafe { function(loaded, "cutensorGetVersion") }?;
        // SAFETY: as above.
        let permute: Permute = unsafe { function(loaded, "cutensorPermute") }?;
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` takes the result.
        let status = unsafe { create(&mut handle) };
        // SAFETY: the function asks nothing of its caller.
        let version = unsafe { get_version() };
        let cutensor = Self { loaded, handle, permute, stream, version };
        cutensor.check("cutensorCreate", status)?;
        Ok(cutensor)
    }

    /// Returns a call that queues a case from the first address to the second one.
    pub(crate) fn permute(&self, case: &Case, [from, to]: [u64; 2]) -> Result<impl Fn() + '_, String> {
        let (plan, one) = (self.plan(case)?, one(case.dtype.width()));
        Ok(move || {
            // SAFETY: the handle is open, the plan is for the case, the factor has the type of its
            // computation, and the arrays hold the case's elements.
            let status = unsafe { (self.permute)(self.handle, plan, one.as_ptr(), from, to, self.stream.0) };
            self.check("cutensorPermute", status).expect("it is queued");
        })
    }

    fn plan(&self, case: &Case) -> Result<Handle, String> {
        let width = case.dtype.width();
        let found = TYPES.iter().find(|&&(has, ..)| has == width);
        let &(_, of_width, compute) =
            found.ok_or_else(|| format!("it has no elements of {}", counted(width, "byte")))?;
        // SAFETY: the header declares a variable that holds an address.
        let compute: *const *const c_void = unsafe { function(self.loaded, compute) }?;
        let source = case.source();
        let modes = |axes: &[usize]| axes.iter().map(|&axis| axis as i32).rev().collect::<Vec<_>>();
        let (source_modes, result_modes) = (modes(&(0..case.axes.len()).collect::<Vec<_>>()), modes(&case.axes));
        let [from, to] = [&*case.shape, source.shape()].map(|shape| self.descriptor(shape, of_width));
        let (from, to) = (from?, to?);
        // SAFETY: the header declares it so.
        let create_permutation: CreatePermutation = unsafe { function(self.loaded, "cutensorCreatePermutation") }?;
        let (mut operation, mut preference, mut plan) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let (handle, sources, results) = (self.handle, source_modes.as_ptr(), result_modes.as_ptr());
        // SAFETY: the library holds the variable as long as it is loaded.
        let compute = unsafe { *compute };
        // SAFETY: the descriptors are live, each has as many modes as axes, and `operation` takes
        // the result.
        let status =
            unsafe { create_permutation(handle, &mut operation, from, sources, IDENTITY, to, results, compute) };
        self.check("cutensorCreatePermutation", status)?;
        // SAFETY: the header declares it so.
        let prefer: CreatePlanPreference = unsafe { function(self.loaded, "cutensorCreatePlanPreference") }?;
        // SAFETY: `preference` takes the result.
        let status = unsafe { prefer(handle, &mut preference, ALGO_DEFAULT, JIT_NONE) };
        self.check("cutensorCreatePlanPreference", status)?;
        // SAFETY: the header declares it so.
        let create_plan: CreatePlan = unsafe { function(self.loaded, "cutensorCreatePlan") }?;
        // SAFETY: the operation and the preference are live, and `plan` takes the result.
        let status = unsafe { create_plan(handle, &mut plan, operation, preference, 0) };
        self.check("cutensorCreatePlan", status)?;
        Ok(plan)
    }

    /// Describes an array in C order. cuTENSOR names the axis first that varies fastest.
    fn descriptor(&self, shape: &[usize], of_width: c_int) -> Result<Handle, String> {
        let extents: Vec<i64> = shape.iter().rev().map(|&extent| extent as i64).collect();
        // SAFETY: the header declares it so.
        let create: CreateTensorDescriptor = unsafe { function(self.loaded, "cutensorCreateTensorDescriptor") }?;
        let (mut made, rank, without_gaps) = (ptr::null_mut(), extents.len() as u32, ptr::null());
        // SAFETY: there are as many extents as the rank says, and `made` takes the result.
        let status = unsafe { create(self.handle, &mut made, rank, extents.as_ptr(), without_gaps, of_width, ALIGN) };
        self.check("cutensorCreateTensorDescriptor", status)?;
        Ok(made)
    }

    fn check(&self, call: &str, status: c_int) -> Result<(), String> {
        if status == 0 { Ok(()) } else { Err(format!("{call}: {}", self.error(status)?)) }
    }

    #[cold]
    fn error(&self, status: c_int) -> Result<String, String> {
        // SAFETY: the header declares it so.
        let error: GetErrorString = unsafe { function(self.loaded, "cutensorGetErrorString") }?;
        // SAFETY: the function takes any status.
        let text = unsafe { error(status) };
        // SAFETY: it returns a text that ends in NUL and lives as long as the library.
        Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }
}
