//! Turns typed kernel arguments into raw parameters; all launches go through here.

use super::Device;
use crate::abi::{EntryId, Params};
use crate::context::{is_cooperative, most_shared};
use crate::driver::{DeviceInfo, StreamHandle};
use crate::error::{Error, Result, counted};
use crate::launch_shape::LaunchShape;

impl Device {
    /// Queues a launch of one of the crate's kernels. The first launch of each loads it; the others
    /// allocate nothing.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the device does not allow the shape, or its compute capability is less
    /// than the entry needs; else the driver's error.
    ///
    /// # Safety
    ///
    /// - `entry` takes a `P`.
    /// - `stream` is a live stream of this device's driver.
    /// - Every address that the kernel reads or writes with `params` lies within a live allocation.
    /// - No other work that may run at the same time writes what the kernel reads or writes, or
    ///   reads what it writes.
    #[inline]
    pub(crate) unsafe fn launch<P: Params>(
        &self,
        entry: EntryId,
        shape: &LaunchShape,
        params: &P,
        stream: StreamHandle,
    ) -> Result<()> {
        debug_assert_eq!(entry.entry().param_bytes, size_of::<P>(), "{entry} takes another parameter");
        check_shape(self.info(), entry, shape)?;
        let function = self.kernels().function(entry)?;
        // SAFETY: a `P` has this number of readable bytes, none of them padding, while `params` is
        // borrowed.
        let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(params).cast::<u8>(), size_of::<P>()) };
        if is_cooperative(entry) {
            // SAFETY: every entry has one parameter, a `P`; the rest as below.
            return unsafe { self.driver().launch_cooperative(function, shape, bytes, stream) };
        }
        // SAFETY: the module lives as long as the device; the rest as the caller promises.
        unsafe { self.driver().launch(function, shape, bytes, stream) }
    }
}

/// Checks that the device allows the shape. Every launch asks, so the common answer takes few
/// steps.
#[inline]
fn check_shape(info: &DeviceInfo, entry: EntryId, shape: &LaunchShape) -> Result<()> {
    // 0 less 1 wraps to the greatest value, so an extent of 0 is outside too.
    let is_outside = |extent: u64, most: u32| extent.wrapping_sub(1) >= u64::from(most);
    let [x, y, z] = shape.block.map(u64::from);
    let threads = (x * y).saturating_mul(z);
    let refused = if shape.grid.iter().zip(info.max_grid).any(|(&extent, most)| is_outside(extent.into(), most)) {
        "a larger grid than it allows"
    } else if is_outside(threads, info.max_block_threads) {
        "more threads in a block than it allows"
    } else if shape.dynamic_shared > info.shared_bytes_per_block && shape.dynamic_shared > most_shared(entry) {
        "more shared memory in a block than it allows"
    } else {
        return Ok(());
    };
    let is_empty = shape.grid.contains(&0) || shape.block.contains(&0);
    Err(refusal(info, entry, shape, if is_empty { "an extent of 0" } else { refused }))
}

#[cold]
fn refusal(info: &DeviceInfo, entry: EntryId, shape: &LaunchShape, refused: &str) -> Error {
    Error::argument(format!(
        "{} cannot launch {entry} with {refused}: grid {:?} of at most {:?}, block {:?} of at most {}, {} of \
         shared memory of at most {}; move the arrays in parts (split_at)",
        info.name,
        shape.grid,
        info.max_grid,
        shape.block,
        counted(info.max_block_threads, "thread"),
        counted(shape.dynamic_shared, "byte"),
        info.shared_bytes_per_block.max(most_shared(entry))
    ))
}

#[cfg(test)]
mod tests;
