//! A launch on a GPU.

use std::sync::Arc;

use anyhow::Result;
use warpstride::device::Device;
use warpstride::driver::{Driver, FunctionHandle, ModuleHandle};
use warpstride::error::Error;
use warpstride::memory::DeviceBuffer;
use warpstride::roofline::measure::{self, RotatingBuffer, Rotation, Timing};

use super::buffer::Buffer;
use super::report::Outcome;
use super::{Launch, ensure_room, parameters};

/// A kernel in its loaded module, until it is dropped.
struct Loaded<'a> {
    launch: &'a Launch<'a>,
    device: &'a Device,
    module: ModuleHandle,
    function: FunctionHandle,
}

impl<'a> Loaded<'a> {
    fn new(launch: &'a Launch<'a>, device: &'a Device) -> Result<Self> {
        let driver = device.driver();
        let module = driver.module_load(launch.text)?;
        // SAFETY: the module is live.
        let function =
            unsafe { driver.function(module, launch.kernel.name()) }.inspect_err(|_| unload(driver, module))?;
        let loaded = Self { launch, device, module, function };
        let shared = launch.shape().dynamic_shared;
        if shared > 0 {
            // SAFETY: the module is live.
            unsafe { driver.allow_dynamic_shared(function, shared) }?;
        }
        // SAFETY: the module is live, and made of the launch's PTX.
        launch.variables.iter().try_for_each(|variable| unsafe { variable.fill_on_gpu(device, module) })?;
        Ok(loaded)
    }

    /// Queues a launch with these addresses of buffers on the default stream.
    ///
    /// The user is responsible for what their PTX does: we cannot check its addresses on a GPU.
    ///
    /// # Safety
    ///
    /// - The buffers live, and nothing else uses them, until the stream is synchronised. So does
    ///   this module.
    unsafe fn queue(&self, address: impl Fn(usize) -> u64) -> Result<(), Error> {
        let params = parameters(self.launch.kernel, &self.launch.args.arguments, address)?;
        let stream = self.device.default_stream();
        // SAFETY: module and stream are live, and `params` is laid out as the entry declares. Its
        // addresses are those of buffers for which the caller answers; that the kernel stays within
        // them is what its user answers for.
        unsafe { self.device.driver().launch(self.function, &self.launch.shape(), &params, stream.handle()) }
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        unload(self.device.driver(), self.module);
    }
}

/// Unloads a module whose functions are no longer used.
fn unload(driver: &Arc<dyn Driver>, module: ModuleHandle) {
    // A failure is ignored: the process is about to exit. SAFETY: the module is live, and its
    // functions are known to its owner only, which ends.
    let _ = unsafe { driver.module_unload(module) };
}

impl Launch<'_> {
    /// Runs it on an NVIDIA GPU.
    pub(super) fn on_gpu(&self, buffers: Vec<Option<Buffer>>, device: &Device) -> Result<Outcome> {
        let places = buffers.into_iter().map(|buffer| place(device, buffer)).collect::<Result<Vec<_>>>()?;
        let seconds = self.seconds(device, &places)?;
        let dump = |&argument: &usize| places[argument].as_ref().map_or(Ok(Vec::new()), DeviceBuffer::download);
        let dumped = self.dumps.iter().map(dump).collect::<Result<_, _>>()?;
        Ok(Outcome { seconds, report: None, stopped: None, dumped })
    }

    /// Launches with these buffers as arguments and waits; returns the seconds that it took by the
    /// GPU's clock.
    fn seconds(&self, device: &Device, places: &[Option<DeviceBuffer<u8>>]) -> Result<f64> {
        let loaded = Loaded::new(self, device)?;
        let stream = device.default_stream();
        let (start, end) = (device.event()?, device.event()?);
        stream.record(&start)?;
        // SAFETY: the buffers are borrowed, and nothing else uses them, until the stream is
        // synchronised below.
        unsafe { loaded.queue(|position| places[position].as_ref().map_or(0, DeviceBuffer::address)) }?;
        stream.record(&end)?;
        stream.synchronize()?;
        Ok(f64::from(end.elapsed_ms_since(&start)?) / 1000.0)
    }

    /// Device times of it, each on a set of its buffers that a launch which touches `touched` bytes
    /// of them does not find in the L2 cache.
    pub(super) fn timing(
        &self,
        device: &Device,
        buffers: Vec<Option<Buffer>>,
        touched: u64,
        samples: usize,
    ) -> Result<Timing> {
        let mut rotation = Rotation::new(device, &[usize::try_from(touched).unwrap_or(usize::MAX)]);
        let set = buffers.iter().flatten().map(|buffer| Rotation::padded(buffer.bytes));
        ensure_room(set.fold(0, usize::saturating_add), 1, &[(device, rotation.arrays(1))])?;
        let places = buffers.into_iter().map(|buffer| rotate(&rotation, buffer)).collect::<Result<Vec<_>>>()?;
        let loaded = Loaded::new(self, device)?;
        let timing = measure::time(device, device.default_stream(), samples, || {
            let set = rotation.advance();
            // SAFETY: the buffers are used by these launches alone, one after the other, and live
            // until the stream is synchronised below.
            unsafe { loaded.queue(|position| places[position].as_ref().map_or(0, |place| place.address(set))) }
        });
        // Also where a launch failed, and those before it run.
        device.default_stream().synchronize().and(timing).map_err(Into::into)
    }
}

/// An argument's buffer on the device.
fn place(device: &Device, buffer: Option<Buffer>) -> Result<Option<DeviceBuffer<u8>>> {
    let Some(buffer) = buffer else { return Ok(None) };
    // First of all, since it knows what there is room for.
    let mut place = device.alloc::<u8>(buffer.bytes)?;
    if let Some(contents) = buffer.contents()? {
        place.upload_from(&contents)?;
    }
    Ok(Some(place))
}

/// An argument's buffer in each set of a rotation.
fn rotate(rotation: &Rotation, buffer: Option<Buffer>) -> Result<Option<RotatingBuffer<u8>>> {
    let Some(buffer) = buffer.filter(|buffer| buffer.bytes > 0) else { return Ok(None) };
    let bytes = buffer.bytes;
    Ok(Some(match buffer.contents()? {
        Some(contents) => rotation.upload(&contents)?,
        None => rotation.zeros(bytes)?,
    }))
}

#[cfg(test)]
mod tests;
