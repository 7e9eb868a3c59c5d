//! The crate's kernels on one device: each loads with its first launch.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::context::Context;
use crate::abi::{ENTRIES, EntryId, OLDEST};
use crate::driver::{FunctionHandle, ModuleHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::ptx;

/// The crate's kernels on one device, by their places in [`ENTRIES`].
pub(crate) struct Kernels {
    context: Arc<Context>,
    loading: Mutex<()>,
    kernels: [Kernel; ENTRIES.len()],
}

/// One kernel: a module of its own, which its first launch loads, because all of them would take a
/// GPU a second to compile where a program launches a few.
struct Kernel {
    module: OnceLock<ModuleHandle>,
    function: OnceLock<FunctionHandle>,
}

impl Kernels {
    pub(super) fn new(context: Arc<Context>) -> Self {
        let kernels = [const { Kernel { module: OnceLock::new(), function: OnceLock::new() } }; ENTRIES.len()];
        Self { context, loading: Mutex::new(()), kernels }
    }

    /// The function of an entry.
    #[inline]
    pub(crate) fn function(&self, entry: EntryId) -> Result<FunctionHandle> {
        match self.kernels[entry.place()].function.get() {
            Some(&function) => Ok(function),
            None => self.loaded(entry),
        }
    }

    /// The same at an entry's first launch.
    #[cold]
    fn loaded(&self, entry: EntryId) -> Result<FunctionHandle> {
        let module = self.module(entry)?;
        // SAFETY: the module is live until `self` is dropped.
        let function = unsafe { self.context.driver().function(module, entry.name()) }?;
        // Another thread that was as fast found the same.
        Ok(*self.kernels[entry.place()].function.get_or_init(|| function))
    }

    fn module(&self, entry: EntryId) -> Result<ModuleHandle> {
        // std's OnceLock cannot be set by something that fails, so the lock lets one thread try at
        // a time.
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let module = &self.kernels[entry.place()].module;
        if let Some(&module) = module.get() {
            return Ok(module);
        }
        self.check(entry)?;
        let loaded = self.context.driver().module_load(&ptx::module(entry))?;
        Ok(*module.get_or_init(|| loaded))
    }

    /// Whether the device has what the entry needs. A plan for another device may have one that it
    /// has not.
    fn check(&self, entry: EntryId) -> Result<()> {
        let info = self.context.driver().info();
        let (has, needs) = (info.compute_capability, entry.entry().capability);
        // A device that has not even that is refused by its driver.
        if has >= needs || needs == OLDEST {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "{} has compute capability {}.{}, and {entry} needs {}.{}; plan for this device (Target::of)",
                info.name, has.0, has.1, needs.0, needs.1
            ),
        ))
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        for (kernel, entry) in self.kernels.iter().zip(ENTRIES) {
            if let Some(&module) = kernel.module.get() {
                // SAFETY: the module is live, and its function is known to `self` only.
                let unloaded = unsafe { self.context.driver().module_unload(module) };
                self.context.note_drop(unloaded, || format!("unloading {}", entry.name));
            }
        }
    }
}
