//! The part of a driver for PTX modules and the launches of their kernels.

use super::{FunctionHandle, ModuleHandle, StreamHandle};
use crate::error::Result;
use crate::launch_shape::LaunchShape;

/// The part of a [`Driver`](super::Driver) that loads kernels and launches them.
///
/// # Errors
///
/// The errors that [`Driver`](super::Driver) lists for all methods.
///
/// # Safety
///
/// An implementation promises, to callers that keep their side of the contract:
///
/// - A launch runs the given kernel on the given stream, and nothing else.
pub unsafe trait Modules: Send + Sync {
    /// Loads PTX.
    fn module_load(&self, ptx: &str) -> Result<ModuleHandle>;

    /// Unloads a module; launches already queued still run. It waits as
    /// [`Memory::free`](super::Memory::free) does.
    ///
    /// # Safety
    ///
    /// - `module` is live; neither it nor its functions are used from now on.
    unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()>;

    /// Returns the entry `name` of a module; an error of kind `InvalidArgument` if the module has
    /// no such entry.
    ///
    /// # Safety
    ///
    /// - `module` is live.
    unsafe fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle>;

    /// Returns the address and the bytes of a variable of a module in global or constant memory; an
    /// error of kind `InvalidArgument` if the module has no such variable.
    ///
    /// # Safety
    ///
    /// - `module` is live.
    unsafe fn variable(&self, module: ModuleHandle, name: &str) -> Result<(u64, u64)>;

    /// Lets launches of a kernel have up to this number of bytes of dynamic shared memory, from now
    /// on. Without it, static and dynamic shared memory of a block have 48 KiB together.
    ///
    /// # Safety
    ///
    /// - `function`'s module is live.
    unsafe fn allow_dynamic_shared(&self, function: FunctionHandle, bytes: u32) -> Result<()>;

    /// Queues a launch. `params` holds the kernel's parameters at their offsets, as the PTX
    /// declares them.
    ///
    /// # Safety
    ///
    /// - `function`'s module and `stream` are live.
    /// - `params` has the layout that the entry declares.
    /// - Every address the kernel reads or writes with these parameters lies within a live
    ///   allocation.
    /// - No other work that may run at the same time writes what the kernel reads or writes, or
    ///   reads what it writes.
    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()>;

    /// Queues a launch whose blocks all run at the same time, so that they may wait for each other:
    /// a cooperative launch. The driver refuses a grid that is too large for that, with an error of
    /// kind `InvalidArgument`.
    ///
    /// # Safety
    ///
    /// - As for [`launch`](Self::launch).
    /// - The entry takes one parameter.
    unsafe fn launch_cooperative(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()>;
}
