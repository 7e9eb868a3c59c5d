//! A launch on a GPU.

use std::sync::Arc;

use anyhow::Result;
use warpstride::device::Device;
use warpstride::driver::{Driver, ModuleHandle};
use warpstride::memory::DeviceBuffer;

use super::buffer::Buffer;
use super::report::Outcome;
use super::{Launch, parameters};

/// A loaded module, until it is dropped.
struct Loaded<'a> {
    driver: &'a Arc<dyn Driver>,
    module: ModuleHandle,
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        // A failure has nobody to tell that could act upon it: the process ends soon.
        // SAFETY: the module is live, and its functions are known to `timed` only, which has ended.
        let _ = unsafe { self.driver.module_unload(self.module) };
    }
}

impl Launch<'_> {
    /// Runs it on an NVIDIA GPU.
    pub(super) fn on_gpu(&self, buffers: Vec<Option<Buffer>>, device: &Device) -> Result<Outcome> {
        let mut places = Vec::with_capacity(buffers.len());
        for buffer in buffers {
            places.push(place(device, buffer)?);
        }
        let seconds = self.timed(device, &places)?;
        let mut dumped = Vec::with_capacity(self.dumps.len());
        for &argument in &self.dumps {
            dumped.push(places[argument].as_ref().map_or(Ok(Vec::new()), DeviceBuffer::download)?);
        }
        Ok(Outcome { seconds, report: None, dumped })
    }

    /// Launches with these buffers as arguments and waits; returns the seconds that it took by the GPU's clock.
    ///
    /// What foreign PTX does is for whoever runs it to answer, as with any program: nothing could check which addresses it
    /// makes.
    fn timed(&self, device: &Device, places: &[Option<DeviceBuffer<u8>>]) -> Result<f64> {
        let address = |position: usize| places[position].as_ref().map_or(0, DeviceBuffer::address);
        let params = parameters(self.kernel, self.arguments, address)?;
        let driver = device.driver();
        let loaded = Loaded { driver, module: driver.module_load(self.text)? };
        // SAFETY: the module is live until the end of this function.
        let function = unsafe { driver.function(loaded.module, self.kernel.name()) }?;
        let stream = device.default_stream();
        let (start, end) = (device.event()?, device.event()?);
        stream.record(&start)?;
        // SAFETY: module and stream are live, and `params` is laid out as the entry declares. Its addresses are those of
        // buffers that are borrowed, and that nothing else uses, until the stream is synchronised below; that the kernel
        // stays within them is what its user answers for.
        unsafe { driver.launch(function, &self.shape, &params, stream.handle()) }?;
        stream.record(&end)?;
        stream.synchronize()?;
        Ok(f64::from(end.elapsed_ms_since(&start)?) / 1000.0)
    }
}

/// An argument's buffer on the device.
fn place(device: &Device, buffer: Option<Buffer>) -> Result<Option<DeviceBuffer<u8>>> {
    let Some(buffer) = buffer else { return Ok(None) };
    // First of all, since it knows what there is room for.
    let mut place = device.alloc::<u8>(buffer.bytes)?;
    place.upload_from(&buffer.into_contents()?)?;
    Ok(Some(place))
}
