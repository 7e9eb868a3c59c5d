//! Modules, their kernels and launches.

use std::collections::BTreeMap;

use super::Soft;
use super::state::{Action, Entry, Loaded, no_such};
use crate::driver::{FunctionHandle, ModuleHandle, Modules, StreamHandle};
use crate::error::{Error, Result, counted, refuse};
use crate::interp::{self, Kernel, Module};
use crate::launch_shape::LaunchShape;

// SAFETY: the queued launch has the handle's kernel, and the operands are unchanged.
unsafe impl Modules for Soft {
    fn module_load(&self, ptx: &str) -> Result<ModuleHandle> {
        let mut state = self.working()?;
        let module = Module::parse(ptx)?;
        module.load(self.memory())?;
        let handle = self.gpu().handle();
        let own = crate::ptx::is_own(ptx);
        state.modules.insert(handle, Loaded { module, functions: BTreeMap::new(), own });
        Ok(ModuleHandle(handle))
    }

    unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()> {
        self.check_own("module", module.0)?;
        let mut state = self.lock();
        // Unloading frees the module's variables, and queued work may use them.
        let uses_memory = state.modules.get(&module.0).is_some_and(|loaded| loaded.module.variables().next().is_some());
        let drained = if uses_memory { self.drain(&mut state) } else { Ok(()) };
        let removed = state.modules.remove(&module.0);
        let freed = removed.as_ref().map_or(Ok(()), |loaded| Ok(loaded.module.unload(self.memory())?));
        for function in removed.iter().flat_map(|loaded| loaded.functions.values()) {
            state.functions.remove(&function.0);
        }
        state.check()?;
        removed.map(drop).ok_or_else(|| no_such("module", module.0)).and(drained).and(freed)
    }

    unsafe fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        let mut state = self.working()?;
        self.check_own("module", module.0)?;
        let handle = self.gpu().handle();
        let loaded = state.modules.get_mut(&module.0).ok_or_else(|| no_such("module", module.0))?;
        if let Some(&known) = loaded.functions.get(name) {
            return Ok(known);
        }
        let Some(kernel) = loaded.module.kernel(name).cloned() else {
            let names = loaded.module.kernels().map(Kernel::name).collect::<Vec<_>>().join(", ");
            refuse!(InvalidArgument, "module {:#x} has no entry {name:?}; it has {names}", module.0)
        };
        loaded.functions.insert(name.to_owned(), FunctionHandle(handle));
        let (major, minor) = self.gpu().info.compute_capability;
        let kernel = kernel.on_architecture(10 * major + minor);
        let entry = Entry { kernel, allowed_shared: None, own: loaded.own };
        state.functions.insert(handle, entry);
        Ok(FunctionHandle(handle))
    }

    unsafe fn variable(&self, module: ModuleHandle, name: &str) -> Result<(u64, u64)> {
        let state = self.working()?;
        self.check_own("module", module.0)?;
        let loaded = state.modules.get(&module.0).ok_or_else(|| no_such("module", module.0))?;
        let Some(place) = loaded.module.variable(self.memory(), name)? else {
            let mut names = loaded.module.variables().collect::<Vec<_>>().join(", ");
            if names.is_empty() {
                names = "no variables".into();
            }
            refuse!(InvalidArgument, "module {:#x} has no variable {name:?}; it has {names}", module.0)
        };
        Ok(place)
    }

    unsafe fn allow_dynamic_shared(&self, function: FunctionHandle, bytes: u32) -> Result<()> {
        let mut state = self.working()?;
        let entry = state.functions.get_mut(&function.0).ok_or_else(|| no_such("function", function.0))?;
        let (fixed, most) = (entry.kernel.shared_bytes(), entry.kernel.shared_limit());
        if bytes > most.saturating_sub(fixed) {
            refuse!(
                InvalidArgument,
                "kernel {:?} cannot have {} of dynamic shared memory beside {fixed} of static: a block has at most {most}",
                entry.kernel.name(),
                counted(bytes, "byte")
            )
        }
        entry.allowed_shared = Some(bytes);
        Ok(())
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()> {
        self.queue_launch(function, shape, None, params, stream, false)
    }

    unsafe fn launch_cooperative(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()> {
        self.queue_launch(function, shape, None, params, stream, true)
    }
}

/// Refuses a cooperative launch whose blocks do not all run at the same time.
fn check_cooperative(shape: &LaunchShape) -> Result<()> {
    let blocks = shape.grid.iter().fold(1_u64, |blocks, &extent| blocks.saturating_mul(extent.into()));
    if blocks > interp::MAX_BEGUN {
        refuse!(
            InvalidArgument,
            "a cooperative launch of {} cannot begin, since the software GPU runs at most {} at once; use a smaller \
             grid, or make the plan for this device (`Target::of`)",
            counted(blocks, "block"),
            interp::MAX_BEGUN
        )
    }
    Ok(())
}

impl Soft {
    /// Queues a launch, in clusters of this shape in blocks if there is one; cooperative or not.
    ///
    /// # Safety
    ///
    /// - As for [`launch`](Modules::launch).
    #[doc(hidden)]
    pub unsafe fn launch_in_clusters(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        cluster: Option<[u32; 3]>,
        params: &[u8],
        stream: StreamHandle,
        cooperative: bool,
    ) -> Result<()> {
        self.queue_launch(function, shape, cluster, params, stream, cooperative)
    }

    /// Queues a launch that is possible, in clusters of the kernel's own shape if there is no other
    /// one.
    fn queue_launch(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        cluster: Option<[u32; 3]>,
        params: &[u8],
        stream: StreamHandle,
        cooperative: bool,
    ) -> Result<()> {
        // Every launch sets blocks that wait aside for others.
        if cooperative {
            check_cooperative(shape)?;
        }
        let mut state = self.streaming(stream)?;
        self.check_own("function", function.0)?;
        let mut entry = state.functions.get(&function.0).ok_or_else(|| no_such("function", function.0))?.clone();
        if let Some(cluster) = cluster {
            entry.kernel = entry.kernel.in_clusters(cluster)?;
        }
        interp::check_launch(&entry.kernel, shape, params).map_err(|stop| Error::from(*stop))?;
        let is_allowed = match entry.allowed_shared {
            Some(bytes) => shape.dynamic_shared <= bytes,
            None => entry.kernel.shared_to_allow(shape).is_none(),
        };
        if !is_allowed {
            refuse!(
                InvalidArgument,
                "a launch of kernel {:?} with {} of dynamic shared memory needs allow_dynamic_shared before, which is \
                 cuFuncSetAttribute on a GPU",
                entry.kernel.name(),
                counted(shape.dynamic_shared, "byte")
            )
        }
        let action = Action::Launch { entry, shape: *shape, params: params.into(), cooperative };
        state.queue(stream, action)
    }
}
