//! The images that programs load: PTX as text, fatbinaries that hold PTX, and machine code, which
//! the software GPU refuses.

use std::sync::Once;

use super::fatbin::{self, Entry};
use super::join;
use crate::arguments::Opaque;
use crate::code::{Failure, Outcome, code};

/// The magic number of the structure through which the code that nvcc generates names a container.
const WRAPPER: u32 = 0x4662_43B1;
/// The version of a wrapper that also names the containers of single files, which the driver may
/// have to link.
const LINKED: u32 = 2;
/// The most such containers.
const MOST_CONTAINERS: usize = 1 << 12;
/// The first bytes of machine code.
const ELF: u32 = 0x464C_457F;

/// The wrapper: `__fatBinC_Wrapper_t` of nvcc's `fatbinary_section.h`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: Opaque,
    /// Null, or a list of containers that ends in null.
    others: Opaque,
}

/// Returns the PTX of an image that a GPU of an architecture runs.
pub(super) fn ptx(image: Opaque, architecture: u32) -> Outcome<String> {
    match magic(image)? {
        fatbin::MAGIC => best(&container(image)?, architecture)?.ok_or_else(|| no_ptx("a fatbinary")),
        WRAPPER => {
            let wrapper: Wrapper = image.operands().get()?;
            if let Some(text) = best(&container(wrapper.data)?, architecture)? {
                return Ok(text);
            }
            let linked = if wrapper.version == LINKED { linked(wrapper.others, architecture)? } else { None };
            linked.ok_or_else(|| no_ptx("a fatbinary"))
        }
        ELF => Err(no_ptx("a cubin")),
        _ => image.text().string(),
    }
}

/// Returns the PTX of the bytes of a file.
pub(super) fn ptx_of_file(bytes: &[u8], architecture: u32) -> Outcome<String> {
    let magic = bytes.first_chunk().map_or(0, |&first| u32::from_le_bytes(first));
    match magic {
        fatbin::MAGIC => best(bytes, architecture)?.ok_or_else(|| no_ptx("a fatbinary")),
        ELF => Err(no_ptx("a cubin")),
        _ => {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
        }
    }
}

/// Reads the first four bytes, and no byte beyond those of a shorter text.
fn magic(image: Opaque) -> Outcome<u32> {
    let mut number = 0;
    for count in 1..=4 {
        let first = image.bytes(count)?;
        let mut whole = [0; 4];
        whole[..count].copy_from_slice(&first);
        number = u32::from_le_bytes(whole);
        if first.last() == Some(&0) {
            break;
        }
    }
    Ok(number)
}

fn container(image: Opaque) -> Outcome<Vec<u8>> {
    let bytes = fatbin::container_bytes(&image.bytes(fatbin::HEADER)?).map_err(invalid)?;
    image.bytes(bytes)
}

fn invalid(why: String) -> Failure {
    Failure::new(code::INVALID_IMAGE, why)
}

/// Returns the PTX of the highest architecture that the GPU runs; `None` if a container has no PTX.
fn best(container: &[u8], architecture: u32) -> Outcome<Option<String>> {
    let found = fatbin::entries(container).map_err(invalid)?;
    let best = found.iter().filter(|entry| entry.runs_on(architecture)).max_by_key(|entry| entry.architecture);
    match best {
        Some(entry) => entry.text().map(Some).map_err(invalid),
        None if found.is_empty() => Ok(None),
        None => Err(too_new(&found, architecture)),
    }
}

/// Links the PTX of the containers of single files; `None` if they have none.
fn linked(list: Opaque, architecture: u32) -> Outcome<Option<String>> {
    let mut texts = Vec::new();
    for number in 0..MOST_CONTAINERS {
        if list.is_null() {
            break;
        }
        let next = list.operands::<Opaque>().list(number + 1)?[number];
        if next.is_null() {
            break;
        }
        // CUDA's library for kernels that launch kernels is machine code.
        texts.extend(best(&container(next)?, architecture)?);
    }
    if texts.is_empty() {
        return Ok(None);
    }
    join::join(&texts).map(Some).map_err(|why| Failure::new(code::INVALID_PTX, why))
}

fn too_new(found: &[Entry<'_>], architecture: u32) -> Failure {
    let mut names: Vec<_> = found.iter().map(|entry| format!("compute_{}", entry.architecture)).collect();
    names.dedup();
    let why = format!(
        "the image has PTX for {}, and the software GPU is an sm_{architecture}; compile with -arch=compute_80, or choose a \
         newer model by WARPSTRIDE_RUN_MODEL",
        names.join(", ")
    );
    say(&why);
    Failure::new(code::NO_BINARY_FOR_GPU, why)
}

/// Says on standard error, once, why an image has nothing to run, since programs show the code
/// alone.
fn say(why: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| eprintln!("warpstride: {why}"));
}

/// Says what to do about machine code.
pub(super) fn no_ptx(what: &str) -> Failure {
    const WHY: &str = "the module holds no PTX; compile with -arch=compute_80 or set CUDA_FORCE_PTX_JIT=1";
    say(WHY);
    Failure::new(
        code::NO_BINARY_FOR_GPU,
        format!("{what} has machine code alone, which the software GPU does not run: {WHY}"),
    )
}
