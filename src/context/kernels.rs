//! The crate's kernels on one device. The first launch of each loads it.

use std::sync::{Arc, Mutex, OnceLock};

use super::Context;
use crate::abi::{BOXES, ENTRIES, EntryId, OLDEST, SOFTMAX_PARTS};
use crate::driver::{FunctionHandle, ModuleHandle};
use crate::error::{Result, require};
use crate::launch_shape::MAX_SHARED_BYTES;
use crate::ptx;
use crate::sync::lock;

/// Most bytes of shared memory of a block of `boxes`: more than a kernel gets unasked, and what
/// every GPU from compute capability 7.5 on has.
pub(crate) const BOXES_SHARED: u32 = 64 << 10;

/// The crate's kernels on one device, by their positions in [`ENTRIES`].
pub(crate) struct Kernels {
    context: Arc<Context>,
    loading: Mutex<()>,
    kernels: [Kernel; ENTRIES.len()],
}

/// One kernel in its own module, which its first launch loads: compiling all kernels would take a
/// GPU a second, and a program launches a few.
struct Kernel {
    module: OnceLock<ModuleHandle>,
    function: OnceLock<FunctionHandle>,
}

impl Kernels {
    pub(super) fn new(context: &Arc<Context>) -> Arc<Self> {
        let kernels = [const { Kernel { module: OnceLock::new(), function: OnceLock::new() } }; ENTRIES.len()];
        let kernels = Arc::new(Self { context: Arc::clone(context), loading: Mutex::new(()), kernels });
        context.enter_kernels(&kernels);
        kernels
    }

    /// Returns the function of an entry.
    #[inline]
    pub(crate) fn function(&self, entry: EntryId) -> Result<FunctionHandle> {
        match self.kernels[entry.place()].function.get() {
            Some(&function) => Ok(function),
            None => self.loaded(entry),
        }
    }

    /// Returns the function at an entry's first launch.
    #[cold]
    fn loaded(&self, entry: EntryId) -> Result<FunctionHandle> {
        let module = self.module(entry)?;
        // SAFETY: the module is live until `self` is dropped.
        let function = unsafe { self.context.driver().function(module, entry.name()) }?;
        let shared = most_shared(entry);
        if shared > MAX_SHARED_BYTES {
            // SAFETY: as above.
            unsafe { self.context.driver().allow_dynamic_shared(function, shared) }?;
        }
        // Another thread that came first found the same function.
        Ok(*self.kernels[entry.place()].function.get_or_init(|| function))
    }

    fn module(&self, entry: EntryId) -> Result<ModuleHandle> {
        // A fallible function cannot set std's OnceLock, so the lock lets one thread try at a time.
        let _loading = lock(&self.loading);
        let module = &self.kernels[entry.place()].module;
        if let Some(&module) = module.get() {
            return Ok(module);
        }
        let info = self.context.driver().info();
        let (has, needs) = (info.compute_capability, entry.entry().capability);
        // A plan for another device may use an unsupported entry. The driver refuses a device below
        // the oldest architecture.
        require!(
            has >= needs || needs == OLDEST,
            InvalidArgument,
            "{} has compute capability {}.{}, and {entry} needs {}.{}; plan for this device (Target::of)",
            info.name,
            has.0,
            has.1,
            needs.0,
            needs.1
        );
        let loaded = self.context.driver().module_load(&ptx::module(entry))?;
        Ok(*module.get_or_init(|| loaded))
    }
}

/// Returns the most bytes of shared memory that a block of the entry may have.
pub(crate) const fn most_shared(entry: EntryId) -> u32 {
    if BOXES.has(entry) { BOXES_SHARED } else { MAX_SHARED_BYTES }
}

/// Returns whether blocks of the entry wait for each other, so that all of a launch must run at the
/// same time.
#[inline]
pub(crate) const fn is_cooperative(entry: EntryId) -> bool {
    SOFTMAX_PARTS.has(entry)
}

impl Drop for Kernels {
    fn drop(&mut self) {
        for (kernel, entry) in self.kernels.iter().zip(ENTRIES) {
            if let Some(&module) = kernel.module.get() {
                // SAFETY: the module is live, and only `self` knows its function.
                let unloaded = unsafe { self.context.driver().module_unload(module) };
                self.context.note_drop(unloaded, || format!("unloading {}", entry.name));
            }
        }
    }
}
