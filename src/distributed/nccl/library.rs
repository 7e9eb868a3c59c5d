//! NCCL's functions, declared here and found in its library at run time.
//!
//! Results are plain numbers: a newer library may answer with codes that this crate does not know.
//! The declarations follow `nccl.h` of 2.18 to 2.30. Python's packages have the library under one
//! name alone, `libnccl.so.2`, and in folders that no loader searches.

use std::env;
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};

use crate::error::{Error, ErrorKind, Result, require};

/// The variable that has the library's path.
const VARIABLE: &str = "WARPSTRIDE_NCCL";
/// The names under which the system's loader is asked.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];
/// The oldest version with all that is used here, as NCCL writes it: 2.18.0.
const OLDEST: c_int = 21_800;

/// A communicator of NCCL.
pub(super) enum Comm {}

/// The number of a communicator that all its ranks know.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct UniqueId(pub(super) [u8; 128]);

/// A result of NCCL.
pub(super) type Code = c_uint;
pub(super) const SUCCESS: Code = 0;
pub(super) const IN_PROGRESS: Code = 7;

/// How a communicator is made, as `nccl.h` of 2.18 has it; the library knows the size by its first
/// member, and takes what is behind as undefined.
#[repr(C)]
pub(super) struct Config {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
    cga_cluster_size: c_int,
    min_ctas: c_int,
    max_ctas: c_int,
    net_name: *const c_char,
    split_share: c_int,
}

impl Config {
    /// Makes calls return before they have ended, so that they cannot hang.
    pub(super) fn nonblocking() -> Self {
        const UNDEFINED: c_int = c_int::MIN;
        Self {
            size: size_of::<Self>(),
            magic: 0xcafe_beef,
            version: OLDEST as c_uint,
            blocking: 0,
            cga_cluster_size: UNDEFINED,
            min_ctas: UNDEFINED,
            max_ctas: UNDEFINED,
            net_name: std::ptr::null(),
            split_share: UNDEFINED,
        }
    }
}

macro_rules! functions {
    ($($symbol:ident($($argument:ty),* $(,)?) -> $result:ty;)*) => {
        /// The functions of the library.
        #[allow(non_snake_case)]
        pub(super) struct Functions {
            $(pub(super) $symbol: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn load(library: &Loaded) -> Result<Self, &'static str> {
                Ok(Self {
                    $($symbol: {
                        type Function = unsafe extern "C" fn($($argument),*) -> $result;
                        // SAFETY: NCCL's header declares the function so.
                        let found = unsafe { library.get::<Function>(stringify!($symbol)) };
                        *found.map_err(|_| stringify!($symbol))?
                    },)*
                })
            }
        }
    };
}

functions! {
    ncclGetVersion(*mut c_int) -> Code;
    ncclGetUniqueId(*mut UniqueId) -> Code;
    ncclGetErrorString(Code) -> *const c_char;
    ncclGetLastError(*mut Comm) -> *const c_char;
    ncclCommInitRankConfig(*mut *mut Comm, c_int, UniqueId, c_int, *mut Config) -> Code;
    ncclCommGetAsyncError(*mut Comm, *mut Code) -> Code;
    ncclCommFinalize(*mut Comm) -> Code;
    ncclCommDestroy(*mut Comm) -> Code;
    ncclCommAbort(*mut Comm) -> Code;
    ncclGroupStart() -> Code;
    ncclGroupEnd() -> Code;
    ncclSend(*const c_void, usize, c_uint, c_int, *mut Comm, *mut c_void) -> Code;
    ncclRecv(*mut c_void, usize, c_uint, c_int, *mut Comm, *mut c_void) -> Code;
    ncclBroadcast(*const c_void, *mut c_void, usize, c_uint, c_int, *mut Comm, *mut c_void) -> Code;
    ncclReduce(*const c_void, *mut c_void, usize, c_uint, c_uint, c_int, *mut Comm, *mut c_void) -> Code;
    ncclAllReduce(*const c_void, *mut c_void, usize, c_uint, c_uint, *mut Comm, *mut c_void) -> Code;
}

/// NCCL's library, as it was found.
pub struct Library {
    path: PathBuf,
    version: c_int,
    pub(super) functions: Functions,
    /// True for a library that needs no GPU, as this crate's tests have one.
    pub(super) needs_no_gpu: bool,
}

impl Library {
    /// Returns NCCL's library, which is loaded once in a process. It is the first one of these that
    /// there is: the file that the variable `WARPSTRIDE_NCCL` names; the one that the process has
    /// loaded, such as PyTorch's; `libnccl.so.2` and `libnccl.so` on the path of the system's
    /// loader; that of `$NCCL_HOME/lib`; that of the Python environment in `$VIRTUAL_ENV` or
    /// `$CONDA_PREFIX`.
    ///
    /// # Errors
    ///
    /// `Unavailable` if it finds no library, with the files that it tried; `DriverTooOld` if it is
    /// older than 2.18.
    pub fn find() -> Result<&'static Self> {
        static FOUND: OnceLock<Result<Library>> = OnceLock::new();
        FOUND.get_or_init(search).as_ref().map_err(Clone::clone)
    }

    /// Returns its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its version: `2.28.9`.
    pub fn version(&self) -> String {
        let version = self.version;
        // Versions before 2.9 have one digit for the second number.
        let (first, second) = if version < 10_000 {
            (version / 1000, version / 100 % 10)
        } else {
            (version / 10_000, version / 100 % 100)
        };
        format!("{first}.{second}.{}", version % 100)
    }

    pub(super) fn version_number(&self) -> u64 {
        self.version as u64
    }

    fn of(loaded: Loaded, name: &Path) -> Result<Self> {
        let functions = Functions::load(&loaded).map_err(|missing| {
            let context =
                format!("{} lacks {missing}; install NCCL 2.18 or newer, or name one in {VARIABLE}", name.display());
            Error::new(ErrorKind::DriverTooOld, context)
        })?;
        let mut version = 0;
        // SAFETY: `version` takes the result.
        let code = unsafe { (functions.ncclGetVersion)(&mut version) };
        require!(
            code == SUCCESS,
            Unavailable,
            "{} does not tell its version (error {code}); name another file in {VARIABLE}",
            name.display()
        );
        let path = file_of(functions.ncclGetVersion as *const c_void).unwrap_or_else(|| name.to_owned());
        // SAFETY: the symbol is looked up and not used.
        let needs_no_gpu = unsafe { loaded.get::<*const c_void>("warpstrideNeedsNoGpu") }.is_ok();
        let library = Self { path, version, functions, needs_no_gpu };
        require!(
            version >= OLDEST,
            DriverTooOld,
            "{} is NCCL {}; install 2.18 or newer, or name one in {VARIABLE}",
            library.path.display(),
            library.version()
        );
        // The functions stay in place until the process ends.
        std::mem::forget(loaded);
        Ok(library)
    }
}

/// Returns the file that has a function.
fn file_of(function: *const c_void) -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is a function's, and `info` takes the result.
    let found = unsafe { libc::dladdr(function, info.as_mut_ptr()) };
    // SAFETY: all zero is a value of the type, and `dladdr` writes values.
    let name = unsafe { info.assume_init() }.dli_fname;
    if found == 0 || name.is_null() {
        return None;
    }
    // SAFETY: the loader's name of a loaded file ends with a zero, and lives as long as the file.
    let name = unsafe { CStr::from_ptr(name) };
    Some(PathBuf::from(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name.to_bytes())))
}

fn search() -> Result<Library> {
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        let loaded = load(&path, RTLD_NOW | RTLD_LOCAL).map_err(|why| {
            let advice = "name the file of NCCL's library there, such as libnccl.so.2";
            let context = format!("{VARIABLE} names {}, which cannot be loaded: {why}; {advice}", path.display());
            Error::new(ErrorKind::Unavailable, context)
        })?;
        return Library::of(loaded, &path);
    }
    let mut tried = Vec::new();
    for (path, flags) in candidates() {
        match load(&path, flags) {
            Ok(loaded) => return Library::of(loaded, &path),
            // The loader's word on a file that is there: it may lack another library.
            Err(why) if path.exists() => tried.push(format!("{} ({why})", path.display())),
            Err(_) => tried.push(path.display().to_string()),
        }
    }
    tried.dedup();
    let context = format!(
        "NCCL was not found: neither {}; install it (`pip install nvidia-nccl-cu12`), and name its file in {VARIABLE} where it lies \
         elsewhere",
        tried.join(" nor ")
    );
    Err(Error::new(ErrorKind::Unavailable, context))
}

/// Returns the files that are tried, with the loader's flags.
fn candidates() -> Vec<(PathBuf, c_int)> {
    let mut all: Vec<(PathBuf, c_int)> = vec![(NAMES[0].into(), RTLD_NOW | RTLD_LOCAL | libc::RTLD_NOLOAD)];
    let mut add = |path: PathBuf| all.push((path, RTLD_NOW | RTLD_LOCAL));
    NAMES.iter().for_each(|name| add(name.into()));
    let folder = |variable: &str| env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(home) = folder("NCCL_HOME") {
        NAMES.iter().for_each(|name| add(home.join("lib").join(name)));
    }
    for environment in ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(folder) {
        for python in pythons(&environment.join("lib")) {
            add(python.join("site-packages/nvidia/nccl/lib").join(NAMES[0]));
        }
    }
    all
}

/// Returns the folders of Python's versions, in their order.
fn pythons(lib: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(lib).into_iter().flatten().flatten();
    let is_python = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("python3");
    let mut folders: Vec<PathBuf> = entries.filter(is_python).map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// Loads a file. The error is the loader's sentence.
fn load(path: &Path, flags: c_int) -> Result<Loaded, String> {
    // SAFETY: the initialisers of NCCL's library have no preconditions.
    let loaded = unsafe { Loaded::open(Some(path), flags) };
    // The error itself says no more than "dlopen failed".
    loaded.map_err(|error| std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
}
