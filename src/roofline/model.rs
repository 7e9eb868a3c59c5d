//! Predicts times by arithmetic that knows nothing of devices.

use crate::counters::{Counters, SECTOR_BYTES};
use crate::names::named;

/// The best bandwidths that were measured on a device, in GB/s (10^9 bytes a second).
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ceilings {
    /// GB/s of an operation that only reads.
    pub read: f64,
    /// GB/s of an operation that only writes.
    pub write: f64,
    /// GB/s of a copy, which writes the number of bytes that it reads.
    pub copy: f64,
}

impl Ceilings {
    /// Returns the GB/s that the memory could reach for these bytes read and written. The lesser of
    /// the two numbers is copied, and the rest is only read or only written. Without bytes, it is
    /// the speed of a copy.
    pub fn of(&self, read: u64, written: u64) -> f64 {
        let both = read.min(written);
        if read == 0 && written == 0 {
            return self.copy;
        }
        let [pairs, reads, writes] = [2 * both, read - both, written - both].map(|bytes| bytes as f64);
        (pairs + reads + writes) / (pairs / self.copy + reads / self.read + writes / self.write)
    }
}

/// The limits of a device that bound a kernel that moves elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceModel {
    /// As the command line calls it.
    pub name: &'static str,
    /// Memory, in GB/s.
    pub memory: Ceilings,
    /// The L2 cache, in GB/s, for sectors that are used whole.
    pub l2_gbps: f64,
    /// Sectors that a request loads beyond those its bytes fill, 10^9 a second.
    pub scattered_loads: f64,
    /// Sectors that a request stores beyond those its bytes fill, 10^9 a second.
    pub scattered_stores: f64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Their clock in GHz. Each issues a request to its L1 cache a clock, and makes one pass
    /// through shared memory.
    pub sm_ghz: f64,
    /// Microseconds that a launch takes to start, to fill the memory's pipes and to drain them.
    pub ramp_us: f64,
    /// Microseconds of the device from one launch to the next, of kernels as small as a column's
    /// that were queued before.
    pub launch_us: f64,
}

named! {
    /// Returns the name in tables.
    name;

    /// The limit of a kernel's speed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
    pub enum Bound {
        /// Bytes from and to memory.
        Memory = "memory",
        /// Sectors from and to the L2 cache.
        L2 = "L2",
        /// Requests to the L1 cache, and passes through shared memory beside it.
        Shared = "shared",
        /// Launches.
        Launches = "launches",
    }
}

/// A predicted time.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Prediction {
    /// Milliseconds.
    pub ms: f64,
    /// The limit that takes that long.
    pub bound: Bound,
}

impl DeviceModel {
    /// The NVIDIA H100 SXM, measured on one.
    pub const H100: Self = Self {
        name: "h100",
        // `warpstride peaks` of 2026-11-21, arrays of 1 GiB.
        memory: Ceilings { read: 3191.0, write: 3278.0, copy: 3047.0 },
        // The same: reading 32 MiB over and over.
        l2_gbps: 4417.0,
        // A kernel whose warps access 32 rows of a 16384 x 16384 matrix of f32 at once, loading or
        // storing.
        scattered_loads: 249.6,
        scattered_stores: 60.1,
        // The device's attribute; the clock by NVML under load. A kernel of nothing but 32-way bank
        // conflicts makes 261.4 x 10^9 passes a second, which is one a clock of each.
        multiprocessors: 132,
        sm_ghz: 1.98,
        // The time of `copy` at 4096 x 4096 beyond that of its bytes at the speed above
        // (`benches/record`, 2026-11-20).
        ramp_us: 4.4,
        // The middle of what `column_loop` takes over its launches in six processes: 2.16 to 2.52
        // at 4096 x 4096, 2.27 to 2.63 at 16384 x 16384, its samples in one within 0.2 %.
        launch_us: 2.4,
    };

    /// The devices that there is a model of.
    pub const ALL: [Self; 1] = [Self::H100];

    /// The model of a device by the name that its driver gives it, if there is one.
    pub fn of(device: &str) -> Option<Self> {
        // The boards for PCIe have fewer multiprocessors and another memory, and a slice (`H100
        // 80GB HBM3 MIG 1g.10gb`) a part of both.
        let others = ["PCIe", "NVL", "MIG"];
        (device.contains("H100") && !others.iter().any(|other| device.contains(other))).then_some(Self::H100)
    }

    /// Predicts the time of `launches` launches that read and write these bytes, each once, by the
    /// counted accesses. The time is a plain bound. Memory, L2 cache, L1 cache and launching work
    /// at the same time, so the slowest of them decides. No counter shows barriers, or latency that
    /// too few warps hide; these make a real kernel slower.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::roofline::model::DeviceModel;
    /// use warpstride::{Backend, Device, ops};
    ///
    /// let device = Device::open(Backend::Soft)?;
    /// let matrix = device.array(&[256, 256], &[1.0_f32; 256 * 256])?;
    /// ops::transpose(&matrix)?;
    /// let counters = device.counters()?.expect("the software GPU counts");
    /// let predicted = DeviceModel::H100.predict(&counters, 4 << 16, 4 << 16, 1);
    /// println!("{:.4} ms on an H100, bound by {}", predicted.ms, predicted.bound.name());
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn predict(&self, counters: &Counters, read: u64, written: u64, launches: u64) -> Prediction {
        if launches == 0 {
            return Prediction { ms: 0.0, bound: Bound::Launches };
        }
        let Counters { global_load, global_store, shared_load, shared_store, .. } = counters;
        let memory = (read + written) as f64 / self.memory.of(read, written);
        let scattered = |sectors: u64, bytes: u64| (sectors as f64 - bytes as f64 / SECTOR_BYTES as f64).max(0.0);
        let l2 = (read + written) as f64 / self.l2_gbps
            + scattered(global_load.sectors, read) / self.scattered_loads
            + scattered(global_store.sectors, written) / self.scattered_stores;
        let passes = global_load.requests + global_store.requests + shared_load.wavefronts + shared_store.wavefronts;
        let shared = passes as f64 / (f64::from(self.multiprocessors) * self.sm_ghz);
        let (nanoseconds, bound) = [(memory, Bound::Memory), (l2, Bound::L2), (shared, Bound::Shared)]
            .into_iter()
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((memory, Bound::Memory));
        let (moving, launching) = (nanoseconds / 1e6 + self.ramp_us / 1e3, launches as f64 * self.launch_us / 1e3);
        // A single launch's is hidden behind what was queued before it.
        if launches > 1 && launching > moving {
            return Prediction { ms: launching, bound: Bound::Launches };
        }
        Prediction { ms: moving, bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_boards_of_the_kind_are_modelled() {
        assert_eq!(DeviceModel::of("NVIDIA H100 80GB HBM3"), Some(DeviceModel::H100));
        for other in
            ["NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA A100-SXM4-40GB"]
        {
            assert_eq!(DeviceModel::of(other), None, "{other}");
        }
    }

    #[test]
    fn a_mix_lies_between_what_it_is_made_of() {
        let ceilings = Ceilings { read: 3200.0, write: 3300.0, copy: 3000.0 };
        assert_eq!(ceilings.of(0, 0), 3000.0);
        assert_eq!(ceilings.of(10, 0), 3200.0);
        assert_eq!(ceilings.of(0, 10), 3300.0);
        assert_eq!(ceilings.of(10, 10), 3000.0);
        // Two arrays read, one written: 2 at the speed of a copy and one read.
        let triad = 3.0 / (2.0 / 3000.0 + 1.0 / 3200.0);
        assert!((ceilings.of(20, 10) - triad).abs() < 1e-9);
    }
}
