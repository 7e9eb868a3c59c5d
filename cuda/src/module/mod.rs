//! Modules, their functions and variables.

use std::ffi::c_uint;
use std::sync::Arc;

use warpstride::driver::{FunctionHandle, ModuleHandle, Modules as _};
use warpstride::interp::Kernel;

use crate::arguments::{Handle, Opaque, Out, Text};
use crate::code::{Failure, Outcome, code};
use crate::context::{Context, current};
use crate::export::export;
use crate::process::{Gpu, Process, process};

/// A loaded module.
pub(crate) struct Image {
    pub(crate) handle: Handle<Image>,
    pub(crate) context: Handle<Context>,
    pub(crate) device: i32,
    pub(crate) soft: ModuleHandle,
}

/// A kernel of a module.
pub(crate) struct Function {
    pub(crate) module: Handle<Image>,
    pub(crate) context: Handle<Context>,
    pub(crate) device: i32,
    pub(crate) soft: FunctionHandle,
    pub(crate) kernel: Kernel,
}

impl Image {
    pub(crate) fn gpu(&self) -> Outcome<&'static Gpu> {
        process()?.gpu(self.device)
    }
}

impl Function {
    pub(crate) fn gpu(&self) -> Outcome<&'static Gpu> {
        process()?.gpu(self.device)
    }
}

/// Loads PTX into the current context.
fn load(ptx: &str) -> Outcome<Handle<Image>> {
    let (process, context) = (process()?, current()?);
    let soft = context.gpu()?.soft.module_load(ptx)?;
    let (owner, device) = (context.handle, context.device);
    Ok(process.modules.add_with(|handle| Image { handle, context: owner, device, soft }))
}

/// Ends what was made in a context.
pub(crate) fn end_of(process: &Process, context: &Context) {
    for module in process.modules.remove_where(|module| module.context == context.handle) {
        end(process, &module);
    }
}

fn end(process: &Process, module: &Arc<Image>) {
    process.functions.remove_where(|function| function.module == module.handle);
    if let Ok(gpu) = process.gpu(module.device) {
        // SAFETY: the tables have neither the module nor its functions any more.
        let _ = unsafe { gpu.soft.module_unload(module.soft) };
    }
}

export! {
    /// Loads a module from PTX in memory.
    fn cuModuleLoadData(module: Out<Handle<Image>>, image: Text) {
        module.check()?;
        module.set(load(&image.string()?)?)
    }

    /// Loads a module from PTX in memory, with options of the compiler.
    fn cuModuleLoadDataEx(
        module: Out<Handle<Image>>, image: Text, _count: c_uint, _options: Opaque, _values: Opaque,
    ) {
        module.check()?;
        module.set(load(&image.string()?)?)
    }

    /// Unloads a module.
    fn cuModuleUnload(module: Handle<Image>) {
        let process = process()?;
        end(process, &process.modules.remove(module)?);
        Ok(())
    }

    /// Finds a kernel of a module.
    fn cuModuleGetFunction(function: Out<Handle<Function>>, module: Handle<Image>, name: Text) {
        function.check()?;
        let (process, name) = (process()?, name.string()?);
        let image = process.modules.get(module)?;
        let gpu = image.gpu()?;
        // SAFETY: the module is live, since the table has it.
        let soft = unsafe { gpu.soft.function(image.soft, &name) };
        let soft = soft.map_err(|error| Failure::new(code::NOT_FOUND, error.to_string()))?;
        let known = process.functions.all().into_iter().find(|(_, known)| known.module == module && known.soft == soft);
        if let Some((handle, _)) = known {
            return function.set(handle);
        }
        let kernel = gpu.soft.kernel(soft)?;
        function.set(process.functions.add(Function { module, context: image.context, device: image.device, soft, kernel }))
    }

    /// Finds a variable of a module.
    fn cuModuleGetGlobal_v2 as cuModuleGetGlobal(
        address: Out<u64>, bytes: Out<usize>, module: Handle<Image>, name: Text,
    ) {
        let name = name.string()?;
        let image = process()?.modules.get(module)?;
        // SAFETY: the module is live, since the table has it.
        let found = unsafe { image.gpu()?.soft.variable(image.soft, &name) };
        let (base, length) = found.map_err(|error| Failure::new(code::NOT_FOUND, error.to_string()))?;
        address.set_if_wanted(base);
        bytes.set_if_wanted(length as usize);
        Ok(())
    }
}
