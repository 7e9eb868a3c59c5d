//! Ranges that NVIDIA's profilers show, by the library `libnvToolsExt` where it is installed.
//!
//! The library hands its calls to a profiler, and does nothing without one. `WARPSTRIDE_NVTX` names
//! another file.

use std::marker::PhantomData;

/// A range of this thread, which ends when it is dropped.
pub(crate) struct Range {
    #[cfg(feature = "cuda")]
    ranges: Option<&'static library::Ranges>,
    /// A range ends on the thread on which it began.
    here: PhantomData<*mut ()>,
}

impl Range {
    /// Begins a range. It does nothing where the library is missing, as in a build without `cuda`.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    pub(crate) fn new(name: &str) -> Self {
        Self {
            #[cfg(feature = "cuda")]
            ranges: library::ranges().filter(|ranges| ranges.push(name)),
            here: PhantomData,
        }
    }
}

#[cfg(feature = "cuda")]
impl Drop for Range {
    fn drop(&mut self) {
        if let Some(ranges) = self.ranges {
            ranges.pop();
        }
    }
}

#[cfg(feature = "cuda")]
mod library {
    use std::env;
    use std::ffi::{CString, c_char, c_int};
    use std::path::PathBuf;
    use std::sync::OnceLock;

    use libloading::Library;

    const NAMES: &[&str] =
        if cfg!(windows) { &["nvToolsExt64_1.dll"] } else { &["libnvToolsExt.so.1", "libnvToolsExt.so"] };

    /// The two functions, which stay loaded until the process ends.
    pub(super) struct Ranges {
        push: unsafe extern "C" fn(*const c_char) -> c_int,
        pop: unsafe extern "C" fn() -> c_int,
        _library: Library,
    }

    pub(super) fn ranges() -> Option<&'static Ranges> {
        static RANGES: OnceLock<Option<Ranges>> = OnceLock::new();
        RANGES.get_or_init(load).as_ref()
    }

    fn load() -> Option<Ranges> {
        let named = env::var_os("WARPSTRIDE_NVTX").map(PathBuf::from);
        let names = named.map_or_else(|| NAMES.iter().map(PathBuf::from).collect(), |name| vec![name]);
        names.into_iter().find_map(|name| {
            // SAFETY: the library is NVIDIA's, or one that the user names; its start only looks for
            // a profiler.
            let library = unsafe { Library::new(name) }.ok()?;
            // SAFETY: `nvToolsExt.h` declares the function so.
            let push =
                *unsafe { library.get::<unsafe extern "C" fn(*const c_char) -> c_int>(b"nvtxRangePushA\0") }.ok()?;
            // SAFETY: as above.
            let pop = *unsafe { library.get::<unsafe extern "C" fn() -> c_int>(b"nvtxRangePop\0") }.ok()?;
            Some(Ranges { push, pop, _library: library })
        })
    }

    impl Ranges {
        /// Begins a range; whether there is one to end.
        pub(super) fn push(&self, name: &str) -> bool {
            let Ok(name) = CString::new(name) else { return false };
            // SAFETY: the library is loaded, and copies the name, which ends with a zero. A
            // negative answer only says that no profiler listens.
            unsafe { (self.push)(name.as_ptr()) };
            true
        }

        pub(super) fn pop(&self) {
            // SAFETY: the library is loaded, and this thread has begun a range.
            unsafe { (self.pop)() };
        }
    }
}
