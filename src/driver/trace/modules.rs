//! Records the calls for modules and launches.

use super::{Call, Trace};
use crate::driver::{FunctionHandle, ModuleHandle, Modules, StreamHandle};
use crate::error::Result;
use crate::launch_shape::LaunchShape;

// Every unsafe method passes on its caller's promises and operands unchanged. SAFETY: a call is the
// inner driver's or is not made, so the inner driver's promises hold.
unsafe impl Modules for Trace {
    fn module_load(&self, ptx: &str) -> Result<ModuleHandle> {
        self.make(
            Call::ModuleLoad { bytes: ptx.len() },
            || self.inner.module_load(ptx),
            |live, &module| {
                live.modules.insert(module);
            },
        )
    }

    unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.module_unload(module) };
        self.release(Call::ModuleUnload { module }, real, |live| {
            live.modules.remove(&module);
        })
    }

    unsafe fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.function(module, name) };
        self.queue(Call::Function { module, name: name.to_owned() }, real)
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()> {
        let call = Call::Launch { function, shape: *shape, params: params.len(), stream };
        // SAFETY: the caller's promises are the inner driver's.
        self.queue(call, || unsafe { self.inner.launch(function, shape, params, stream) })
    }
}
