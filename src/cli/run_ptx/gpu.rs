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
        Ok(Outcome { seconds, report: None, stopped: None, dumped })
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
    buffer.hand_to(|contents| place.upload_from(contents))?;
    Ok(Some(place))
}

#[cfg(test)]
mod tests {
    use warpstride::device::Backend;
    use warpstride::interp::{Checks, Module};
    use warpstride::launch_shape::LaunchShape;

    use super::*;
    use crate::cli::argument::Argument;

    const PTX: &str = "
        .version 7.0
        .target sm_80
        .address_size 64
        .visible .entry add(.param .u64 cells, .param .u64 none, .param .u32 n) {
            .reg .b32 %r<5>; .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [cells]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
            mad.wide.u32 %rd2, %r2, 4, %rd1;
            ld.global.u32 %r3, [%rd2]; add.s32 %r4, %r3, %r1; st.global.u32 [%rd2], %r4;
            ret;
        }";

    /// The driver of the software GPU stands for a GPU's: both ways must give the same bytes.
    #[test]
    fn through_a_driver_it_does_what_it_does_without() {
        let module = Module::parse(PTX).unwrap();
        let arguments: Vec<Argument> =
            ["u32[40]=iota", "f32[0]=zeros", "u32:5"].iter().map(|text| text.parse().unwrap()).collect();
        let launch = Launch {
            text: PTX,
            kernel: module.kernel("add").unwrap(),
            shape: LaunchShape { grid: [1, 1, 1], block: [32, 1, 1], dynamic_shared: 0 },
            arguments: &arguments,
            dumps: vec![0, 1],
            checks: Checks::NONE,
            limit: warpstride::interp::DEFAULT_WORK,
        };
        let buffers = || arguments.iter().map(Buffer::of).collect::<Result<Vec<_>>>().unwrap();
        let device = Device::open(Backend::Soft).unwrap();
        let through = launch.on_gpu(buffers(), &device).unwrap();
        let without = launch.on_soft(buffers(), 1 << 20).unwrap();
        assert_eq!(through.dumped, without.dumped);
        let cells: Vec<u8> = (0..40).flat_map(|i: u32| (if i < 32 { i + 5 } else { i }).to_le_bytes()).collect();
        assert_eq!(through.dumped, [cells, Vec::new()]);
        assert!(through.report.is_none() && without.report.is_some_and(|report| report.thread_instructions == 8 * 32));
    }
}
