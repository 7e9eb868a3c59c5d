//! Memory of devices and of the host, copies and fills.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use warpstride::driver::Memory as _;

use crate::arguments::{Handle, Opaque, Out};
use crate::code::Failure;
use crate::context::{Context, current};
use crate::export::export;
use crate::process::{Process, process};
use crate::stream::stream;

/// What programs have allocated, by first address.
#[derive(Default)]
pub(crate) struct Memory(Mutex<BTreeMap<u64, Allocation>>);

/// An allocation.
#[derive(Debug, Clone)]
pub(crate) struct Allocation {
    pub(crate) bytes: u64,
    pub(crate) context: Handle<Context>,
    pub(crate) device: i32,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Allocation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees what was allocated in a context.
pub(crate) fn end_of(process: &Process, context: &Context) {
    let mut all = process.memory.lock();
    let owned: Vec<u64> =
        all.iter().filter(|(_, allocation)| allocation.context == context.handle).map(|(&base, _)| base).collect();
    for base in owned {
        all.remove(&base);
        if let Ok(gpu) = process.gpu(context.device) {
            // SAFETY: the allocation was taken out of the table, and work of the context has ended.
            let _ = unsafe { gpu.soft.free(base) };
        }
    }
}

export! {
    /// Allocates memory of the current context's device.
    fn cuMemAlloc_v2 as cuMemAlloc(address: Out<u64>, bytes: usize) {
        address.check()?;
        let (process, context) = (process()?, current()?);
        let base = context.gpu()?.soft.alloc(bytes as u64)?;
        let made = Allocation { bytes: bytes as u64, context: context.handle, device: context.device };
        process.memory.lock().insert(base, made);
        address.set(base)
    }

    /// Frees memory of a device.
    fn cuMemFree_v2 as cuMemFree(address: u64) {
        if address == 0 {
            return Ok(());
        }
        let process = process()?;
        let Some(allocation) = process.memory.lock().remove(&address) else {
            return Err(Failure::value(format!("{address:#x} is not the beginning of an allocation")));
        };
        // SAFETY: the allocation was taken out of the table.
        Ok(unsafe { process.gpu(allocation.device)?.soft.free(address) }?)
    }

    /// Copies from the host, and waits for that.
    fn cuMemcpyHtoD_v2 as cuMemcpyHtoD, per_thread cuMemcpyHtoD_v2_ptds (dst: u64, src: Opaque, bytes: usize) {
        let stream = stream(Handle::NULL)?;
        stream.queue(|gpu, soft| {
            // SAFETY: the caller promises the host's memory until the copy has run, which the wait below ensures.
            unsafe { gpu.soft.copy_h2d(dst, src.0.cast_const(), bytes, soft) }
        })?;
        stream.wait()
    }

    /// Copies to the host, and waits for that.
    fn cuMemcpyDtoH_v2 as cuMemcpyDtoH, per_thread cuMemcpyDtoH_v2_ptds (dst: Opaque, src: u64, bytes: usize) {
        let stream = stream(Handle::NULL)?;
        stream.queue(|gpu, soft| {
            // SAFETY: the caller promises the host's memory until the copy has run, which the wait below ensures.
            unsafe { gpu.soft.copy_d2h(dst.0, src, bytes, soft) }
        })?;
        stream.wait()
    }

    /// Returns the free and the whole memory of the current context's device.
    fn cuMemGetInfo_v2 as cuMemGetInfo(free: Out<usize>, total: Out<usize>) {
        let (left, all) = warpstride::driver::Memory::memory(&*current()?.gpu()?.soft)?;
        free.set_if_wanted(left as usize);
        total.set_if_wanted(all as usize);
        Ok(())
    }
}
