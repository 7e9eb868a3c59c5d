//! Modules and launches.

use std::ffi::{CString, c_int, c_void};
use std::ptr;

use super::api::{CUfunction, CUmodule, FunctionAttribute, JitOption};
use super::error::code;
use super::facts::until_nul;
use super::graphs::Release;
use super::{Cuda, api};
use crate::driver::{FunctionHandle, ModuleHandle, Modules, StreamHandle};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::LaunchShape;

/// Bytes of compiler messages that are kept from a failed load.
const LOG_BYTES: usize = 16 * 1024;

// SAFETY: the CUDA driver runs the function that it is given.
unsafe impl Modules for Cuda {
    fn module_load(&self, ptx: &str) -> Result<ModuleHandle> {
        let api = self.enter()?;
        let call = format!("cuModuleLoadDataEx(PTX of {})", counted(ptx.len(), "byte"));
        let text = CString::new(ptx).map_err(|_| {
            Error::new(ErrorKind::UnsupportedPtx, format!("{call}: the PTX has a NUL character in it; remove it"))
        })?;
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options = [JitOption::CU_JIT_ERROR_LOG_BUFFER, JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG_BYTES)];
        let mut module: CUmodule = ptr::null_mut();
        // SAFETY: `text` ends in NUL, both arrays have two entries, the log has the size its option
        // says, and `module` takes the result.
        let code = unsafe {
            (api.cuModuleLoadDataEx)(
                &mut module,
                text.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if code == code::SUCCESS {
            return Ok(ModuleHandle(module as usize as u64));
        }
        let log = until_nul(&log);
        if log.is_empty() {
            return Err(self.failure(code, format_args!("{call}")));
        }
        // Drivers before CUDA 11.1 had no separate code for PTX that is too new.
        let code = if log.contains("Unsupported .version") { code::UNSUPPORTED_PTX_VERSION } else { code };
        let lines = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
        Err(self.failure(code, format_args!("{call}: {lines}")))
    }

    unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()> {
        self.release(Release::Module(module))
    }

    unsafe fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        let api = self.enter()?;
        let entry = CString::new(name)
            .map_err(|_| Error::argument(format!("an entry has no NUL character in its name, as {name:?} has")))?;
        let mut function: CUfunction = ptr::null_mut();
        // SAFETY: the caller promises a live module; `entry` ends in NUL, and `function` takes the
        // result.
        let code = unsafe { (api.cuModuleGetFunction)(&mut function, module.raw(), entry.as_ptr()) };
        self.check(code, format_args!("cuModuleGetFunction({name:?} of module {:#x})", module.0))?;
        Ok(FunctionHandle(function as usize as u64))
    }

    unsafe fn variable(&self, module: ModuleHandle, name: &str) -> Result<(u64, u64)> {
        let api = self.enter()?;
        let symbol = CString::new(name)
            .map_err(|_| Error::argument(format!("a variable has no NUL character in its name, as {name:?} has")))?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the caller promises a live module; `symbol` ends in NUL, and the others take the
        // results.
        let code = unsafe { (api.cuModuleGetGlobal_v2)(&mut address, &mut bytes, module.raw(), symbol.as_ptr()) };
        self.check(code, format_args!("cuModuleGetGlobal({name:?} of module {:#x})", module.0))?;
        Ok((address, bytes as u64))
    }

    unsafe fn allow_dynamic_shared(&self, function: FunctionHandle, bytes: u32) -> Result<()> {
        let api = self.enter()?;
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let value = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        // SAFETY: the caller promises the function.
        let code = unsafe { (api.cuFuncSetAttribute)(function.raw(), attribute, value) };
        self.check(
            code,
            format_args!("cuFuncSetAttribute({:#x}, {} of dynamic shared memory)", function.0, counted(bytes, "byte")),
        )
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()> {
        let api = self.enter()?;
        let mut size = params.len();
        // The driver copies the parameters before the call returns.
        let mut extra = [
            api::LAUNCH_PARAM_BUFFER_POINTER,
            params.as_ptr().cast_mut().cast(),
            api::LAUNCH_PARAM_BUFFER_SIZE,
            (&raw mut size).cast(),
            api::LAUNCH_PARAM_END,
        ];
        let extra = if params.is_empty() { ptr::null_mut() } else { extra.as_mut_ptr() };
        let LaunchShape { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared } = *shape;
        let (entry, kernel_params) = (function.raw(), ptr::null_mut());
        // SAFETY: the caller promises the function, the stream, the layout of the parameters and
        // every address in them.
        let code = unsafe {
            (api.cuLaunchKernel)(entry, gx, gy, gz, bx, by, bz, dynamic_shared, stream.raw(), kernel_params, extra)
        };
        self.check_launch(code, "cuLaunchKernel", function, shape, params, stream)
    }

    unsafe fn launch_cooperative(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()> {
        let api = self.enter()?;
        // The driver copies the parameter before the call returns.
        let mut only = [params.as_ptr().cast_mut().cast()];
        let LaunchShape { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared } = *shape;
        let (entry, queue) = (function.raw(), stream.raw());
        // SAFETY: the caller promises the function, the stream, the layout of the only parameter
        // and every address in it.
        let code = unsafe {
            (api.cuLaunchCooperativeKernel)(entry, gx, gy, gz, bx, by, bz, dynamic_shared, queue, only.as_mut_ptr())
        };
        self.check_launch(code, "cuLaunchCooperativeKernel", function, shape, params, stream)
    }
}

impl Cuda {
    /// Returns the error of a launch, if its result code says so.
    fn check_launch(
        &self,
        code: u32,
        call: &str,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()> {
        self.check(
            code,
            format_args!(
                "{call}({:#x}, {shape}, {} of dynamic shared memory, {} of parameters, stream {:#x})",
                function.0,
                counted(shape.dynamic_shared, "byte"),
                counted(params.len(), "byte"),
                stream.0
            ),
        )
    }
}
