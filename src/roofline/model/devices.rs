//! The devices that there is a model of, with the sources of their figures.

use super::Ceilings;

/// The limits of a device that bound a kernel that moves elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceModel {
    /// As the command line calls it.
    pub name: &'static str,
    /// Memory, in GB/s.
    pub memory: Ceilings,
    /// The L2 cache, in GB/s.
    #[doc(hidden)]
    pub l2_gbps: f64,
    /// Lines of 128 bytes that requests store, whole or in part, 10^9 a second.
    #[doc(hidden)]
    pub stored_lines: f64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Their clock in GHz. Each looks up a line in its L1 cache a clock, or makes one pass through
    /// shared memory.
    pub sm_ghz: f64,
    /// Warps that a multiprocessor holds.
    #[doc(hidden)]
    pub warps: u32,
    /// Blocks that a multiprocessor holds.
    #[doc(hidden)]
    pub blocks: u32,
    /// Bytes of shared memory of a multiprocessor. Each block takes 1 KiB besides its own.
    #[doc(hidden)]
    pub shared_bytes: u32,
    /// MiB of the L2 cache.
    #[doc(hidden)]
    pub l2_mib: u32,
    /// True if the figures were measured, and not read in a data sheet.
    #[doc(hidden)]
    pub is_measured: bool,
    /// The architecture for which NVIDIA's assembler compiles, such as 90.
    #[doc(hidden)]
    pub architecture: u32,
    /// Microseconds that a launch takes to start, to fill the memory's pipes and to drain them.
    #[doc(hidden)]
    pub ramp_us: f64,
    /// Microseconds of the device from one launch to the next, of kernels as small as a column's
    /// that were queued before.
    #[doc(hidden)]
    pub launch_us: f64,
    /// The factors of a predicted time between which nine of ten measured times lie.
    #[doc(hidden)]
    pub interval: [f64; 2],
}

/// The parts of the nominal bandwidth that a read, a write and a copy reached on the H100.
const REACHED: Ceilings = Ceilings { read: 3191.0 / 3352.0, write: 3278.0 / 3352.0, copy: 3047.0 / 3352.0 };

impl DeviceModel {
    /// The NVIDIA H100 SXM, measured on one.
    pub const H100: Self = Self {
        name: "h100",
        // `warpstride peaks` of 2026-11-21, arrays of 1 GiB.
        memory: Ceilings { read: 3191.0, write: 3278.0, copy: 3047.0 },
        // Fitted to the permutes of `benches/record/2026-11-27-h100/guard-across.json` and to the
        // lessons of `benches/record/2026-11-23-h100/lessons.md`.
        l2_gbps: 12_000.0,
        stored_lines: 59.0,
        // The device's attribute; the clock by NVML under load. A kernel of nothing but 32-way bank
        // conflicts makes 261.4 x 10^9 passes a second, which is one a clock of each.
        multiprocessors: 132,
        sm_ghz: 1.98,
        // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
        warps: 64,
        blocks: 32,
        shared_bytes: 228 << 10,
        l2_mib: 50,
        is_measured: true,
        architecture: 90,
        // The time of `copy` at 4096 x 4096 beyond that of its bytes at the speed above
        // (`benches/record`, 2026-11-20).
        ramp_us: 4.4,
        // The middle of what `column_loop` takes over its launches in six processes: 2.16 to 2.52
        // at 4096 x 4096, 2.27 to 2.63 at 16384 x 16384, its samples in one within 0.2 %.
        launch_us: 2.4,
        // `docs/model.md`.
        interval: [0.9, 1.1],
    };

    /// The devices that there is a model of. Only the H100 was measured. Of the others, the
    /// bandwidth, the multiprocessors and their boost clock come from NVIDIA's data sheets (H200
    /// SXM, A100 80GB SXM, L4, T4) and the Ada architecture's white paper (RTX 4090), and what a
    /// multiprocessor holds comes from the CUDA C++ Programming Guide, "Technical Specifications
    /// per Compute Capability".
    #[doc(hidden)]
    pub const ALL: [Self; 6] = [
        Self::H100,
        sheet("h200", 90, 4800.0, [132, 64, 32, 228, 50], 1.98),
        sheet("a100", 80, 2039.0, [108, 64, 32, 164, 40], 1.41),
        sheet("l4", 89, 300.0, [58, 48, 24, 100, 48], 2.04),
        sheet("t4", 75, 320.0, [40, 32, 16, 64, 4], 1.59),
        sheet("rtx4090", 89, 1008.0, [128, 48, 24, 100, 72], 2.52),
    ];

    /// The model of a device by the name that its driver gives it, if there is one.
    pub fn of(device: &str) -> Option<Self> {
        // The boards for PCIe have fewer multiprocessors and another memory, and a slice (`H100
        // 80GB HBM3 MIG 1g.10gb`) a part of both.
        let others = ["PCIe", "NVL", "MIG"];
        (device.contains("H100") && !others.iter().any(|other| device.contains(other))).then_some(Self::H100)
    }
}

/// The model of a device by its data sheet: the architecture, GB/s, then the multiprocessors, the
/// warps, blocks and KiB of shared memory of each and the MiB of the L2 cache, then GHz. The
/// figures that a data sheet does not tell are the H100's, by the number of multiprocessors and
/// their clock.
const fn sheet(
    name: &'static str,
    architecture: u32,
    nominal: f64,
    [multiprocessors, warps, blocks, shared_kib, l2_mib]: [u32; 5],
    sm_ghz: f64,
) -> DeviceModel {
    let h100 = DeviceModel::H100;
    let share = multiprocessors as f64 * sm_ghz / (h100.multiprocessors as f64 * h100.sm_ghz);
    let Ceilings { read, write, copy } = REACHED;
    DeviceModel {
        name,
        memory: Ceilings { read: nominal * read, write: nominal * write, copy: nominal * copy },
        l2_gbps: h100.l2_gbps * share,
        stored_lines: h100.stored_lines * share,
        multiprocessors,
        sm_ghz,
        warps,
        blocks,
        shared_bytes: shared_kib << 10,
        l2_mib,
        is_measured: false,
        architecture,
        interval: [0.7, 1.5],
        ..h100
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
}
