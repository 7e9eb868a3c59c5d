//! Measures the ceilings of a device: by its attributes, and by the best of simple kernels, swept
//! over their launch shapes.

use super::measure::{self, Timing};
use super::model::Ceilings;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result, counted, require};
use crate::memory::DeviceBuffer;
use crate::ops::Target;
use crate::ops::probe::{Access, ProbeShape, memcpy, probe};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Most bytes of an array that ceilings are measured with.
const LARGEST: u64 = 1 << 30;
/// Fewest bytes of one, however small the L2 cache is.
const FEWEST: u64 = 64 << 20;
/// Fewest bytes that the sizes are swept over.
const SMALLEST: u64 = 1 << 20;
/// Timed runs of each probe.
const SAMPLES: usize = 15;
/// Bytes moved by one sample of small arrays, which are moved over and over: launches then weigh
/// little.
const BYTES_A_SAMPLE: u64 = 256 << 20;
/// Most launches of a sample.
const LAUNCHES: u64 = 64;

/// The best of a kind of probe.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Best {
    /// GB/s (10^9 bytes a second), read and written, at the median of its samples.
    pub gbps: f64,
    /// Its launch shape.
    #[doc(hidden)]
    pub shape: ProbeShape,
}

/// The speed of arrays that are moved over and over, by their size: where they fit into the L2
/// cache, of that.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Warm {
    /// Bytes that are touched: of a copy, both sides.
    pub bytes: u64,
    /// GB/s of reading.
    pub read: f64,
    /// GB/s of writing.
    pub write: f64,
    /// GB/s of copying, read and written.
    pub copy: f64,
}

/// The ceilings of a device.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Peaks {
    /// GB/s by the device's attributes: two transfers a clock of the memory, as wide as its bus.
    pub nominal: Option<f64>,
    /// Bytes of each array that the following three and the driver's copy were measured with.
    pub bytes: u64,
    /// The best kernel that only reads.
    pub read: Best,
    /// The best kernel that only writes.
    pub write: Best,
    /// The best kernel that copies.
    pub copy: Best,
    /// GB/s, read and written, of the driver's own copy.
    pub memcpy: f64,
    /// Over sizes, smallest first.
    pub sizes: Vec<Warm>,
    /// True if the device's clocks were low while any of these was measured, throttled or set so.
    /// The peaks then say little of another day.
    #[cfg_attr(feature = "serde", serde(default))]
    pub low_clocks: bool,
}

impl Peaks {
    /// Measures the ceilings, which takes some seconds; `step` is called with the name of the next.
    ///
    /// # Errors
    ///
    /// `Unavailable` on the software GPU, `OutOfMemory` where the device has no room for two arrays
    /// of four times its L2 cache and at least 64 MiB, and what the driver failed with.
    pub fn measure(device: &Device, mut step: impl FnMut(&str)) -> Result<Self> {
        measure::check_has_times(device)?;
        let mut arrays = Arrays::new(device)?;
        let mut best = |access: Access| {
            step(access.name());
            arrays.best(access)
        };
        let (read, write, copy) = (best(Access::Read)?, best(Access::Write)?, best(Access::Copy)?);
        step("memcpy");
        let memcpy = arrays.time(arrays.bytes, 1, memcpy)?.gbps(2 * arrays.bytes);
        let mut sizes = Vec::new();
        let mut bytes = SMALLEST;
        while bytes <= arrays.bytes {
            step("sizes");
            // Hints are for arrays that the cache does not hold.
            let mut warm =
                |access, Best { shape, .. }| arrays.warm(access, ProbeShape { hinted: false, ..shape }, bytes);
            sizes.push(Warm {
                bytes,
                read: warm(Access::Read, read)?,
                write: warm(Access::Write, write)?,
                copy: warm(Access::Copy, copy)?,
            });
            bytes *= 2;
        }
        let nominal = device.info().nominal_bandwidth.map(|bytes| bytes as f64 / 1e9);
        let Arrays { bytes, low_clocks, .. } = arrays;
        Ok(Self { nominal, bytes, read, write, copy, memcpy, sizes, low_clocks })
    }

    /// The ceilings that operations are compared with.
    pub fn ceilings(&self) -> Ceilings {
        Ceilings { read: self.read.gbps, write: self.write.gbps, copy: self.copy.gbps }
    }

    /// Divides GB/s by the nominal bandwidth. The result is `None` where the device names none, and
    /// above 1: then a cache held a part of the bytes, and memory moved fewer.
    pub fn fraction_of_nominal(&self, gbps: f64) -> Option<f64> {
        self.nominal.map(|nominal| gbps / nominal).filter(|&part| part <= 1.0)
    }

    /// Returns the GB/s, read and written, of the fastest copy whose two sides fit into an L2 cache
    /// of `l2_bytes` bytes; `None` where no copy fits.
    pub fn l2_copy(&self, l2_bytes: u64) -> Option<f64> {
        let within = self.sizes.iter().filter(|warm| warm.bytes <= l2_bytes);
        within.map(|warm| warm.copy).max_by(f64::total_cmp)
    }
}

/// Returns the bytes of an array for a device with `free` bytes, a power of two, and the fewest
/// bytes that still measure memory. Launches move the array again and again, so an L2 cache must
/// not hold a large part of it, as in a [`measure::Rotation`].
fn array_bytes(free: u64, l2_bytes: u64) -> (u64, u64) {
    let least = measure::cold_bytes(l2_bytes).max(FEWEST);
    let bytes = (free / 4).clamp(1, LARGEST.max(least.next_power_of_two()));
    let bytes = if bytes.is_power_of_two() { bytes } else { bytes.next_power_of_two() / 2 };
    (bytes, least)
}

/// Two arrays to move.
struct Arrays {
    src: DeviceBuffer<u8>,
    dst: DeviceBuffer<u8>,
    /// The bytes of each buffer: a power of two.
    bytes: u64,
    /// True if the clocks were low at any time.
    low_clocks: bool,
}

impl Arrays {
    fn new(device: &Device) -> Result<Self> {
        let ((free, _), info) = (device.driver().memory()?, device.info());
        let (bytes, least) = array_bytes(free, info.l2_bytes);
        require!(
            bytes >= least,
            OutOfMemory,
            "{} has {free} of memory free, and its ceilings are measured with arrays of a quarter of them, of {least} at \
             least, so that its L2 cache holds little of them; end other programs that use it",
            info.name,
            free = counted(free, "byte"),
            least = counted(least, "byte")
        );
        let room = bytes as usize;
        Ok(Self { src: device.zeros(room)?, dst: device.zeros(room)?, bytes, low_clocks: false })
    }

    /// Times `launches` launches on that number of bytes of each array, as one sample.
    fn time(
        &mut self,
        bytes: u64,
        launches: u64,
        launch: impl Fn(View<'_, u8>, ViewMut<'_, u8>, &Stream) -> Result<()>,
    ) -> Result<Timing> {
        let Self { src, dst, .. } = self;
        let (device, room) = (src.device().clone(), src.len());
        let timing = measure::time(&device, device.default_stream(), SAMPLES, || {
            for _ in 0..launches {
                let from = src.view(&[room])?.slice(0, ..bytes as usize, 1)?;
                let to = dst.view_mut(&[room])?.slice(0, ..bytes as usize, 1)?;
                launch(from, to, device.default_stream())?;
            }
            Ok(())
        })?;
        self.low_clocks |= timing.clocks().is_some_and(|clocks| clocks.are_low());
        Ok(timing)
    }

    /// Times launches of a probe.
    fn probe(&mut self, access: Access, shape: ProbeShape, bytes: u64, launches: u64) -> Result<Timing> {
        self.time(bytes, launches, |from, to, stream| probe(access, shape, from, to, stream))
    }

    fn best(&mut self, access: Access) -> Result<Best> {
        let device = self.src.device();
        let (most, target) = (device.info().max_block_threads, Target::of(device));
        let mut best = None;
        for shape in ProbeShape::all(access, target).filter(|shape| shape.threads <= most) {
            let gbps = self.probe(access, shape, self.bytes, 1)?.gbps(access.bytes() * self.bytes);
            if best.is_none_or(|best: Best| best.gbps < gbps) {
                best = Some(Best { gbps, shape });
            }
        }
        best.ok_or_else(|| Error::new(ErrorKind::Unavailable, "the device takes no block of 128 threads"))
    }

    /// GB/s where `bytes` bytes in all are moved over and over.
    fn warm(&mut self, access: Access, shape: ProbeShape, bytes: u64) -> Result<f64> {
        let launches = (BYTES_A_SAMPLE / bytes).clamp(1, LAUNCHES);
        let timing = self.probe(access, shape, bytes / access.bytes(), launches)?;
        Ok(timing.gbps(bytes * launches))
    }
}

#[cfg(test)]
mod tests;
