//! This program, started once more to load NVRTC and to call it.

use std::env;
use std::ffi::{CString, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use super::headers;
use super::nvrtc::{FIND_WORD, Input, Nvrtc, Output, WORD};

/// NVRTC descends into nested expressions; the stack of a program's first thread is small.
const STACK_BYTES: usize = 256 << 20;

/// The exit status where no library loads.
pub(super) const NOT_LOADED: u8 = 3;

/// Looks for NVRTC or compiles, if this process was started for it: PTX goes to standard output,
/// messages to standard error. `None` in any other process.
pub(crate) fn compiled() -> Option<ExitCode> {
    let mut words = env::args_os().skip(1);
    let word = words.next()?;
    if word == FIND_WORD {
        return Some(found(words));
    }
    if word != WORD {
        return None;
    }
    let words: Vec<OsString> = words.collect();
    if let Some(Err(wrong)) = words.first().map(|library| Nvrtc::load(Path::new(library))) {
        let _ = io::stderr().write_all(wrong.as_bytes());
        return Some(ExitCode::from(NOT_LOADED));
    }
    let work = move || compile(&words).unwrap_or_else(|failure| (Err(failure), Vec::new()));
    let (ptx, log) = match thread::Builder::new().stack_size(STACK_BYTES).spawn(work) {
        Ok(thread) => thread.join().ok()?,
        Err(error) => (Err(format!("the system does not start a thread with a stack for NVRTC: {error}")), Vec::new()),
    };
    // The process that reads this misses what cannot be written.
    let _ = io::stderr().write_all(&log);
    let _ = match &ptx {
        Ok(ptx) => io::stdout().write_all(ptx),
        Err(failure) if log.is_empty() => io::stderr().write_all(failure.as_bytes()),
        Err(_) => Ok(()),
    };
    Some(if ptx.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the number of the first library that loads, from 0, and its version. Where none does, the
/// message says why the last one does not.
fn found(libraries: impl Iterator<Item = OsString>) -> ExitCode {
    let mut wrong = String::new();
    for (number, library) in libraries.enumerate() {
        let loaded = Nvrtc::load(Path::new(&library));
        match loaded.and_then(|library| library.version().ok_or_else(|| "it does not tell its version".into())) {
            Ok((major, minor)) => {
                let _ = writeln!(io::stdout(), "{number} {major}.{minor}");
                return ExitCode::SUCCESS;
            }
            Err(why) => wrong = why,
        }
    }
    let _ = io::stderr().write_all(wrong.as_bytes());
    ExitCode::from(NOT_LOADED)
}

/// `words` are the library, the source's name, the file that holds it, and NVRTC's options.
fn compile(words: &[OsString]) -> Result<Output, String> {
    let [library, name, source, options @ ..] = words else { return Err("words are missing".into()) };
    let string = |text: &str| CString::new(text).map_err(|error| error.to_string());
    let source = fs::read_to_string(source).map_err(|error| error.to_string())?;
    let headers = headers::for_nvrtc().map(|(name, text)| Ok((string(name)?, string(text)?)));
    let headers = headers.collect::<Result<Vec<_>, String>>()?;
    let options = options.iter().map(|option| string(&option.to_string_lossy())).collect::<Result<Vec<_>, _>>()?;
    // A name that begins with `-` would be an option.
    let name = Path::new(name).display().to_string();
    let name = if name.starts_with('-') { format!("./{name}") } else { name };
    let input = Input { source: string(&source)?, name: string(&name)?, headers, options };
    Ok(Nvrtc::load(Path::new(library))?.compile(&input))
}
