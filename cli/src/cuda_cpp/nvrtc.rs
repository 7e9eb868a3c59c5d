//! NVRTC, NVIDIA's compiler as a library, which is found at run time.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fs;
use std::path::Path;
use std::ptr;

use libloading::Library;

/// `nvrtcProgram`
type Program = *mut Opaque;
/// `nvrtcResult`; 0 is success.
type Code = c_int;

enum Opaque {}

/// The first word of a command line by which this program compiles for itself.
pub(super) const WORD: &str = "compile-by-nvrtc";
/// The same where it looks for the library.
pub(super) const FIND_WORD: &str = "find-nvrtc";

/// Declares the functions of `nvrtc.h` that are used, and how the library gives them.
macro_rules! api {
    ($($field:ident = $symbol:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// NVRTC's functions. The library stays loaded for as long as the process runs.
        pub(super) struct Nvrtc {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Nvrtc {
            /// Returns the functions, or the name of the first that is missing.
            fn find(library: &Library) -> Result<Self, &'static str> {
                $(
                    // SAFETY: `nvrtc.h` declares the function so, in every version from 11.2 on.
                    let found = unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) -> $result>($symbol)
                    };
                    let $field = *found.map_err(|_| $symbol)?;
                )*
                Ok(Self { $($field),* })
            }
        }
    };
}

api! {
    version = "nvrtcVersion"(*mut c_int, *mut c_int) -> Code;
    error_string = "nvrtcGetErrorString"(Code) -> *const c_char;
    create = "nvrtcCreateProgram"(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    ) -> Code;
    destroy = "nvrtcDestroyProgram"(*mut Program) -> Code;
    compile = "nvrtcCompileProgram"(Program, c_int, *const *const c_char) -> Code;
    log_size = "nvrtcGetProgramLogSize"(Program, *mut usize) -> Code;
    log = "nvrtcGetProgramLog"(Program, *mut c_char) -> Code;
    ptx_size = "nvrtcGetPTXSize"(Program, *mut usize) -> Code;
    ptx = "nvrtcGetPTX"(Program, *mut c_char) -> Code;
}

/// A program for NVRTC.
pub(super) struct Input {
    pub(super) source: CString,
    /// The file's name in messages and in line numbers.
    pub(super) name: CString,
    /// Names by which `#include` finds text that is in no folder.
    pub(super) headers: Vec<(CString, CString)>,
    pub(super) options: Vec<CString>,
}

/// The PTX, or what NVRTC calls the failure, and the compiler's messages.
pub(super) type Output = (Result<Vec<u8>, String>, Vec<u8>);

impl Nvrtc {
    /// Loads a library by its path, or by a name that the system's loader looks for.
    ///
    /// Code of the library runs, and the loader waits for a pipe's writer: a process that was
    /// started for it calls this, and no other.
    pub(super) fn load(path: &Path) -> Result<Self, String> {
        let is_path = path.parent().is_some_and(|folder| !folder.as_os_str().is_empty());
        if is_path && fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err("it is not a regular file".into());
        }
        // SAFETY: the library is NVIDIA's compiler, or one that the user names; its initialisers
        // have no preconditions.
        let library = unsafe { Library::new(path) }.map_err(|error| error.to_string())?;
        let found = Self::find(&library).map_err(|symbol| format!("it has no function {symbol}"));
        // The functions must stay in place until the process ends.
        std::mem::forget(library);
        found
    }

    /// The version's numbers, such as 12 and 9.
    pub(super) fn version(&self) -> Option<(i32, i32)> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are places for a number.
        let code = unsafe { (self.version)(&raw mut major, &raw mut minor) };
        (code == 0).then_some((major, minor))
    }

    /// Compiles a program.
    pub(super) fn compile(&self, input: &Input) -> Output {
        let program = match Compilation::new(self, input) {
            Ok(program) => program,
            Err(failure) => return (Err(failure), Vec::new()),
        };
        let options: Vec<*const c_char> = input.options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program is live, and `options` has that number of strings.
        let code = unsafe { (self.compile)(program.program, options.len() as c_int, options.as_ptr()) };
        let log = program.text(self.log_size, self.log).unwrap_or_default();
        (self.checked(code).and_then(|()| program.text(self.ptx_size, self.ptx)), log)
    }

    /// Turns a code of NVRTC into its error.
    fn checked(&self, code: Code) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the function takes any number.
        let text = unsafe { (self.error_string)(code) };
        if text.is_null() {
            return Err(format!("error {code}"));
        }
        // SAFETY: NVRTC's strings are constants that end with a zero.
        Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }
}

/// A program of NVRTC's, until it is dropped.
struct Compilation<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

impl<'a> Compilation<'a> {
    fn new(nvrtc: &'a Nvrtc, input: &Input) -> Result<Self, String> {
        let (names, texts): (Vec<_>, Vec<_>) =
            input.headers.iter().map(|(name, text)| (name.as_ptr(), text.as_ptr())).unzip();
        let mut program = ptr::null_mut();
        // SAFETY: `program` is a place for a handle, `texts` and `names` have that number of
        // strings, and NVRTC copies all strings.
        let code = unsafe {
            (nvrtc.create)(
                &raw mut program,
                input.source.as_ptr(),
                input.name.as_ptr(),
                names.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        nvrtc.checked(code).map(|()| Self { nvrtc, program })
    }

    /// Reads a text of the program, whose size counts the zero at its end.
    fn text(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> Code,
        get: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    ) -> Result<Vec<u8>, String> {
        let mut bytes = 0;
        // SAFETY: the program is live, and `bytes` is a place for a number.
        let code = unsafe { size(self.program, &raw mut bytes) };
        self.nvrtc.checked(code)?;
        let mut text = vec![0_u8; bytes];
        // SAFETY: the program is live, and `text` has the size that it says.
        let code = unsafe { get(self.program, text.as_mut_ptr().cast()) };
        self.nvrtc.checked(code)?;
        text.truncate(text.iter().position(|&byte| byte == 0).unwrap_or(bytes));
        Ok(text)
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is live, and nothing uses it later.
        unsafe { (self.nvrtc.destroy)(&raw mut self.program) };
    }
}
