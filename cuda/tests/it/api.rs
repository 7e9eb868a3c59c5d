//! The library, loaded as programs load NVIDIA's driver, and what most tests need of it.

use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::Library;

/// Returns the library, which is built before the tests.
pub(crate) fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let test = std::env::current_exe().expect("the path of the test");
        let path: PathBuf = test.parent().expect("a folder").join("libwarpstride_cuda.so");
        // SAFETY: loading the library runs no code of its own.
        unsafe { Library::new(&path) }.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    })
}

/// Declares functions of the library, which return results as numbers.
macro_rules! declare {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {$(
        #[allow(non_snake_case, clippy::too_many_arguments)]
        fn $name($($argument: $type),*) -> u32 {
            type Function = unsafe extern "C" fn($($type),*) -> u32;
            // SAFETY: the declaration has the types of CUDA's header.
            let function = unsafe { $crate::api::library().get::<Function>(stringify!($name)) };
            // SAFETY: tests pass pointers that are null or valid.
            unsafe { function.expect(stringify!($name))($($argument),*) }
        }
    )*};
}
pub(crate) use declare;

declare! {
    fn cuInit(flags: u32);
    fn cuCtxCreate_v2(context: *mut u64, flags: u32, device: i32);
    fn cuCtxDestroy_v2(context: u64);
    fn cuModuleLoadData(module: *mut u64, image: *const c_void);
    fn cuModuleGetFunction(function: *mut u64, module: u64, name: *const c_void);
    fn cuLaunchKernel(
        function: u64, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: u64,
        params: *mut *mut c_void, extra: *mut *mut c_void,
    );
}

/// A context of the calling thread. Only one test has one at a time, since a call that frees memory
/// runs the work of all of them.
pub(crate) struct Context {
    pub(crate) handle: u64,
    _one: MutexGuard<'static, ()>,
}

impl Context {
    pub(crate) fn new() -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(cuInit(0), 0);
        let mut handle = 0;
        assert_eq!(cuCtxCreate_v2(&mut handle, 0, 0), 0);
        Self { handle, _one: one }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        assert_eq!(cuCtxDestroy_v2(self.handle), 0);
    }
}

/// Loads the kernel `name` of a PTX text that ends in NUL.
pub(crate) fn kernel(ptx: &str, name: &str) -> u64 {
    assert!(ptx.ends_with('\0') && name.ends_with('\0'));
    let (mut module, mut function) = (0, 0);
    assert_eq!(cuModuleLoadData(&mut module, ptx.as_ptr().cast()), 0);
    assert_eq!(cuModuleGetFunction(&mut function, module, name.as_ptr().cast()), 0);
    function
}

/// Launches one block of a kernel whose parameters are numbers of 8 bytes.
pub(crate) fn launch(function: u64, threads: u32, stream: u64, params: &mut [u64]) -> u32 {
    let mut places: Vec<*mut c_void> = params.iter_mut().map(|param| std::ptr::from_mut(param).cast()).collect();
    cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, places.as_mut_ptr(), std::ptr::null_mut())
}
