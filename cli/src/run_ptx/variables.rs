//! The variables of a module that are filled before a launch, as `cudaMemcpyToSymbol` fills them.

use std::fmt::Display;

use anyhow::Result;
use warpstride::device::Device;
use warpstride::driver::ModuleHandle;
use warpstride::error::counted;
use warpstride::interp::{Memory, Module};

use super::super::args::{Set, Value};
use super::super::output::Output;
use super::super::{kernel_names, require};
use super::buffer::Buffer;

/// A variable, and the value that is to be in it.
pub(crate) struct Variable<'a> {
    module: &'a Module,
    /// Its name in the PTX.
    name: &'a str,
    set: &'a Set,
    /// Bytes of the value.
    pub(crate) bytes: usize,
}

/// Finds the variables that are to be filled, and checks that their values have room.
pub(crate) fn found<'a>(
    module: &'a Module,
    sets: &'a [Set],
    file: impl Display,
    output: &Output,
) -> Result<Vec<Variable<'a>>> {
    let mut found: Vec<Variable<'_>> = Vec::new();
    for set in sets {
        let variable = Variable::new(module, set, &file, output)?;
        require!(
            found.iter().all(|before| before.name != variable.name),
            InvalidArgument,
            "--set {set}: the variable `{}` has a value already; give it one value",
            kernel_names::short(variable.name)
        );
        found.push(variable);
    }
    Ok(found)
}

impl<'a> Variable<'a> {
    fn new(module: &'a Module, set: &'a Set, file: impl Display, output: &Output) -> Result<Self> {
        let name = kernel_names::find_variable(module, &set.name, file)?;
        let room = module.variable_bytes(name).unwrap_or(0);
        let bytes = match &set.value.value {
            Value::Scalar { bytes, .. } => bytes.len(),
            Value::Buffer { .. } | Value::File(_) => Buffer::of(&set.value)?.map_or(0, |buffer| {
                buffer.note(output);
                buffer.bytes
            }),
        };
        let variable = Self { module, name, set, bytes };
        variable.check(bytes, room)?;
        Ok(variable)
    }

    /// Checks that the variable has room for a value.
    fn check(&self, bytes: usize, room: u64) -> Result<()> {
        require!(
            bytes as u64 <= room,
            InvalidArgument,
            "--set {}: the value has {} and the variable `{}` has {}; pass at most as many",
            self.set,
            counted(bytes, "byte"),
            kernel_names::short(self.name),
            counted(room, "byte")
        );
        Ok(())
    }

    /// Makes or reads the value; `None` where the variable is to stay as it is.
    fn contents(&self) -> Result<Option<Vec<u8>>> {
        Ok(match &self.set.value.value {
            Value::Scalar { bytes, .. } => Some(bytes.clone()),
            Value::Buffer { .. } | Value::File(_) => Buffer::of(&self.set.value)?.map_or(Ok(None), Buffer::contents)?,
        })
    }

    /// Fills it in the software GPU's memory.
    pub(super) fn fill_on_soft(&self, memory: &Memory) -> Result<()> {
        if let (Some(contents), Some((address, room))) = (self.contents()?, self.module.variable(memory, self.name)?) {
            self.check(contents.len(), room)?;
            memory.write(address, &contents)?;
        }
        Ok(())
    }

    /// Fills it where a driver has loaded the module.
    ///
    /// # Safety
    ///
    /// - `loaded` is a live module of the device's driver, made of the PTX of this module.
    pub(super) unsafe fn fill_on_gpu(&self, device: &Device, loaded: ModuleHandle) -> Result<()> {
        let Some(contents) = self.contents()? else { return Ok(()) };
        let (driver, stream) = (device.driver(), device.default_stream());
        // SAFETY: the caller promises a live module.
        let (address, room) = unsafe { driver.variable(loaded, self.name) }?;
        // A file may have grown since its length was looked up.
        self.check(contents.len(), room)?;
        // SAFETY: the variable has at least as many bytes, and the contents live until the stream
        // is synchronised. No other work runs that uses the module.
        unsafe { driver.copy_h2d(address, contents.as_ptr(), contents.len(), stream.handle()) }?;
        Ok(stream.synchronize()?)
    }
}
