//! The linker: several PTX texts become one image.

use std::ffi::c_uint;
use std::sync::{Mutex, MutexGuard, PoisonError};
use warpstride::error::counted;

use warpstride::interp::{MAX_TEXT_BYTES, Module};

use super::image::{no_ptx, ptx_of_file};
use super::options::Options;
use super::{MOST_FILE_BYTES, join, read_file};
use crate::arguments::{Handle, In, Opaque, Out, Text};
use crate::code::{Failure, Outcome, code};
use crate::context::current;
use crate::export::export;
use crate::process::process;

/// The kinds of input.
const CUBIN: c_uint = 0;
const PTX: c_uint = 1;
const FATBINARY: c_uint = 2;
const OBJECT: c_uint = 3;
const LIBRARY: c_uint = 4;
const NVVM: c_uint = 5;

/// The name of the library of CUDA's runtime for kernels, whose functions the software GPU has by
/// itself.
const RUNTIME: &str = "libcudadevrt";

/// A linker.
pub(crate) struct Link(Mutex<State>);

struct State {
    /// The options that it was made with, whose logs are written until it ends.
    options: Options,
    texts: Vec<String>,
    /// The linked text with its NUL, once it is complete.
    image: Option<Box<[u8]>>,
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds an input, which has a name for errors.
    fn add(&mut self, kind: c_uint, name: &str, read: impl FnOnce() -> Outcome<Vec<u8>>) -> Outcome {
        if self.image.is_some() {
            return Err(Failure::value("the linker is complete; make another one for more inputs"));
        }
        if kind == LIBRARY && name.rsplit('/').next().is_some_and(|file| file.starts_with(RUNTIME)) {
            return Ok(());
        }
        match kind {
            PTX | FATBINARY => {}
            CUBIN => return Err(no_ptx(&format!("the cubin {name:?}"))),
            OBJECT | LIBRARY => {
                return Err(Failure::unsupported(format!(
                    "{name:?} is an object or a library of machine code, and the software GPU links PTX alone; pass the PTX"
                )));
            }
            NVVM => return Err(Failure::unsupported(format!("{name:?} is code of NVVM; compile it to PTX first"))),
            other => return Err(Failure::value(format!("{other} is not a kind of input of the linker"))),
        }
        let text = ptx_of_file(&read()?, current()?.gpu()?.model.architecture)?;
        let bytes = self.texts.iter().map(String::len).sum::<usize>().saturating_add(text.len());
        if bytes > MAX_TEXT_BYTES {
            return Err(Failure::value(format!(
                "the inputs of a linker have {bytes}; the limit is {MAX_TEXT_BYTES}",
                bytes = counted(bytes, "byte")
            )));
        }
        self.texts.push(text);
        Ok(())
    }

    /// Links the inputs.
    fn complete(&mut self) -> Outcome<(*const u8, usize)> {
        if self.image.is_none() {
            if self.texts.is_empty() {
                return Err(Failure::value("the linker has no inputs; add PTX first"));
            }
            let text = join::join(&self.texts).map_err(|why| Failure::new(code::INVALID_PTX, why))?;
            Module::parse(&text).map_err(warpstride::Error::from)?;
            let mut image = text.into_bytes();
            image.push(0);
            self.image = Some(image.into());
        }
        let image = self.image.as_deref().unwrap_or_default();
        Ok((image.as_ptr(), image.len()))
    }

    fn told<T>(&mut self, outcome: Outcome<T>) -> Outcome<T> {
        self.options.told(outcome)
    }
}

fn named(name: Text) -> Outcome<String> {
    if name.is_null() { Ok("an input".into()) } else { name.string() }
}

export! {
    /// Makes a linker.
    fn cuLinkCreate_v2 as cuLinkCreate(count: c_uint, kinds: In<c_uint>, values: Opaque, link: Out<Handle<Link>>) {
        link.check()?;
        current()?;
        let options = Options::read(count, kinds, values)?;
        let state = State { options, texts: Vec::new(), image: None };
        link.set(process()?.loader.links.add(Link(Mutex::new(state))))
    }

    /// Adds an input in memory.
    fn cuLinkAddData_v2 as cuLinkAddData(
        link: Handle<Link>, kind: c_uint, data: Opaque, bytes: usize, name: Text,
        count: c_uint, kinds: In<c_uint>, values: Opaque,
    ) {
        let link = process()?.loader.links.get(link)?;
        Options::read(count, kinds, values)?;
        if data.is_null() || bytes == 0 || bytes as u64 > MOST_FILE_BYTES {
            return Err(Failure::value(format!("an input of {bytes} cannot be linked; pass PTX", bytes = counted(bytes, "byte"))));
        }
        let mut state = link.lock();
        let added = state.add(kind, &named(name)?, || data.bytes(bytes));
        state.told(added)
    }

    /// Adds the input of a file.
    fn cuLinkAddFile_v2 as cuLinkAddFile(
        link: Handle<Link>, kind: c_uint, path: Text, count: c_uint, kinds: In<c_uint>, values: Opaque,
    ) {
        let link = process()?.loader.links.get(link)?;
        Options::read(count, kinds, values)?;
        let mut state = link.lock();
        let added = state.add(kind, &path.string()?, || read_file(path));
        state.told(added)
    }

    /// Links the inputs into an image, which lives as long as the linker.
    fn cuLinkComplete(link: Handle<Link>, image: Out<*const u8>, bytes: Out<usize>) {
        image.check()?;
        let link = process()?.loader.links.get(link)?;
        let mut state = link.lock();
        let completed = state.complete();
        let (place, length) = state.told(completed)?;
        bytes.set_if_wanted(length);
        image.set(place)
    }

    /// Ends a linker, with its image.
    fn cuLinkDestroy(link: Handle<Link>) {
        process()?.loader.links.remove(link).map(drop)
    }
}
