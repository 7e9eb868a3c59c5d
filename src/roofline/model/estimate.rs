//! The arithmetic of the model: the time of each limit, and of all together.

use super::{Bound, DeviceModel, Prediction, Work};
use crate::counters::SECTOR_BYTES;
use crate::error::{Error, ErrorKind, Result};
use crate::launch_shape::WARP;

/// The exponent of the norm of the limits' times.
const NORM: f64 = 3.0;
/// Permutes and lessons take this much longer than their bytes at the speed of a copy, a read or a
/// write of 1 GiB.
const MEMORY: f64 = 1.02;
/// Nanoseconds from a load to its value, of a block that has the multiprocessor to itself.
const LATENCY_NS: f64 = 475.0;
/// Clocks that each warp adds to the time of its block.
const WARP_CLOCKS: f64 = 36.0;
/// Clocks that each line or pass of shared memory adds to the time of its block.
const PASS_CLOCKS: f64 = 1.57;
/// Issue slots of an instruction of the PTX: NVIDIA's assembler makes fewer of them.
const SLOTS: f64 = 0.284;
/// Instructions that a multiprocessor issues in a clock.
const ISSUED: f64 = 4.0;
/// Registers of a multiprocessor, which warps get 256 at a time.
const REGISTERS: u64 = 1 << 16;
/// Parts of a multiprocessor, each of which has a fourth of the registers and of the warps.
const PARTS: u64 = 4;
/// Bytes of shared memory that a block takes besides its own, from compute capability 8.0 on.
const RESERVED: u64 = 1 << 10;
/// The most instructions of a lane for each byte. Of the launches of 64 MiB and more to which the
/// model was fitted, one has 18.75, and no other has more than 14.
const MOST_INSTRUCTIONS: f64 = 19.0;

/// A prediction with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The time, and what bounds it.
    pub prediction: Prediction,
    /// Milliseconds between which nine of ten measured times of such launches lie.
    pub between_ms: [f64; 2],
    /// Each limit with the milliseconds that it alone takes.
    pub limits: Vec<(Bound, f64)>,
    /// Blocks that a multiprocessor holds, and what limits their number.
    pub resident: (u32, Resident),
    /// Warps that a multiprocessor holds of those that it could.
    pub occupancy: f64,
    /// Bytes of loads that are in flight on the whole device, and those that the memory needs.
    pub in_flight: [f64; 2],
    /// Instructions of a lane for each byte that is read or written, and those that the device
    /// issues at the speed of a copy.
    pub instructions_per_byte: [f64; 2],
}

/// A limit of the number of blocks on a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resident {
    /// The warps that a multiprocessor holds.
    Threads,
    /// The blocks that it holds.
    Blocks,
    /// Its registers.
    Registers,
    /// Its shared memory.
    SharedMemory,
    /// The blocks of the grid.
    Grid,
}

impl DeviceModel {
    /// Predicts the time of `launches` equal launches, which start with a cold L2 cache.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no block fits this device, or the launch computes more for each byte
    /// than those that the model was fitted to.
    ///
    /// ```
    /// use warpstride::interp::{Args, Config, Memory, Module, run};
    /// use warpstride::launch_shape::LaunchShape;
    /// use warpstride::roofline::model::{DeviceModel, Work};
    ///
    /// let module = Module::parse(
    ///     ".version 7.0 .target sm_80 .address_size 64
    ///     .visible .entry fill(.param .u64 out) {
    ///         .reg .b32 %r<5>; .reg .b64 %rd<3>;
    ///         ld.param.u64 %rd1, [out];
    ///         mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    ///         mad.lo.u32 %r4, %r1, %r2, %r3; mad.wide.u32 %rd2, %r4, 4, %rd1;
    ///         st.global.u32 [%rd2], %r4; ret;
    ///     }",
    /// )?;
    /// let kernel = module.kernel("fill").expect("it is there");
    /// let memory = Memory::new(1 << 24);
    /// let params = Args::new(kernel).value(memory.upload(&vec![0_u32; 1 << 20])?)?.finish()?;
    /// let shape = LaunchShape { grid: [1 << 12, 1, 1], block: [256, 1, 1], dynamic_shared: 0 };
    /// let config = Config { footprint: true, ..Config::default() };
    /// let report = run(kernel, &shape, &params, &memory, &config).map_err(|stop| *stop)?;
    /// let predicted = DeviceModel::H100.predict(&Work::of(&report, &shape)?, 1)?;
    /// println!("{:.4} ms on an H100, bound by {}", predicted.ms, predicted.bound.name());
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn predict(&self, work: &Work, launches: u64) -> Result<Prediction> {
        let moving = self.estimate(work)?.prediction;
        // A single launch's is hidden behind what was queued before it.
        let launching = launches as f64 * self.launch_us / 1e3;
        let all = (moving.ms - self.ramp_us / 1e3) * launches as f64 + self.ramp_us / 1e3;
        Ok(match launches {
            0 => Prediction { ms: 0.0, bound: Bound::Launches },
            2.. if launching > all => Prediction { ms: launching, bound: Bound::Launches },
            _ => Prediction { ms: all, ..moving },
        })
    }

    /// Predicts the time of a launch, with the reasons.
    ///
    /// # Errors
    ///
    /// As those of [`DeviceModel::predict`].
    #[doc(hidden)]
    pub fn estimate(&self, work: &Work) -> Result<Estimate> {
        let instructions = work.thread_instructions / work.bytes().max(1.0);
        if instructions > MOST_INSTRUCTIONS {
            return refuse(format_args!(
                "the launch executes {instructions:.0} instructions of a lane for each byte, and the model was fitted to at \
                 most {MOST_INSTRUCTIONS}, so it predicts no time of kernels that compute"
            ));
        }
        let resident = self.resident(work)?;
        let limits = self.limits(work, resident.0);
        let prediction = self.normed(&limits);
        // A sector that is loaded again may have left the L2 cache.
        let again = Work { read: work.read.max((work.loaded_sectors * SECTOR_BYTES as f64) as u64), ..work.clone() };
        let is_beyond = work.bytes() > f64::from(self.l2_mib) * (1 << 20) as f64;
        let longest = if is_beyond { self.normed(&self.limits(&again, resident.0)).ms } else { prediction.ms };
        let [low, high] = self.interval;
        let (moved, loaded) = (self.memory.of(work.read, work.written), work.loaded_sectors * SECTOR_BYTES as f64);
        let waiting = limits.iter().find(|(bound, _)| *bound == Bound::Latency).map_or(0.0, |(_, ns)| *ns);
        Ok(Estimate {
            prediction,
            between_ms: [low * prediction.ms, high * prediction.ms.max(longest)],
            limits: limits.map(|(bound, ns)| (bound, ns / 1e6)).into(),
            resident,
            occupancy: f64::from(resident.0 * work.warps_of_block) / f64::from(self.warps),
            in_flight: [
                LATENCY_NS * loaded / waiting.max(1.0),
                LATENCY_NS * moved * work.read as f64 / work.bytes().max(1.0),
            ],
            instructions_per_byte: [instructions, f64::from(WARP) * ISSUED * self.clocks() / self.memory.copy],
        })
    }

    /// Clocks of all multiprocessors together, 10^9 a second.
    fn clocks(&self) -> f64 {
        f64::from(self.multiprocessors) * self.sm_ghz
    }

    /// Returns the time of all limits together, with the one that takes longest.
    fn normed(&self, limits: &[(Bound, f64); 5]) -> Prediction {
        let (bound, _) = limits.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(limits[0]);
        let norm = limits.iter().map(|(_, ns)| ns.powf(NORM)).sum::<f64>().powf(1.0 / NORM);
        Prediction { ms: norm / 1e6 + self.ramp_us / 1e3, bound }
    }

    /// Returns the nanoseconds that each limit alone takes, where a multiprocessor holds `resident`
    /// blocks.
    fn limits(&self, work: &Work, resident: u32) -> [(Bound, f64); 5] {
        let clocks = self.clocks();
        let moved = self.memory.of(work.read, work.written);
        let l2 = ((work.loaded_sectors + work.stored_sectors) * SECTOR_BYTES as f64 / self.l2_gbps)
            .max(work.stored_lines / self.stored_lines);
        let passes = work.wavefronts + work.loaded_lines + work.stored_lines;
        [
            (Bound::Memory, MEMORY * work.bytes() / moved),
            (Bound::L2, l2),
            (Bound::Shared, passes / clocks),
            (Bound::Instructions, SLOTS * work.warp_instructions / (ISSUED * clocks)),
            (Bound::Latency, self.waiting(work, resident, passes)),
        ]
    }

    /// Nanoseconds that blocks take that wait for their loads one after the other, as many at a
    /// time as the device holds.
    fn waiting(&self, work: &Work, resident: u32, passes: f64) -> f64 {
        let blocks = work.blocks.max(1) as f64;
        let warps = f64::from(work.warps_of_block);
        let rounds = work.rounds / (blocks * warps);
        let turns = (blocks / (f64::from(self.multiprocessors) * f64::from(resident))).max(1.0);
        turns * (rounds * LATENCY_NS + (WARP_CLOCKS * warps + PASS_CLOCKS * passes / blocks) / self.sm_ghz)
    }

    /// Returns the blocks that a multiprocessor holds, and what limits their number.
    fn resident(&self, work: &Work) -> Result<(u32, Resident)> {
        let warps = u64::from(work.warps_of_block.max(1));
        let of_registers = work.registers.map(|registers| {
            let of_warp = (u64::from(registers.max(1)) * u64::from(WARP)).next_multiple_of(256);
            (PARTS * (REGISTERS / PARTS / of_warp) / warps, Resident::Registers)
        });
        let reserved = if self.architecture >= 80 { RESERVED } else { 0 };
        let shared = (work.shared_bytes.saturating_add(reserved)).next_multiple_of(128);
        let of_shared =
            (work.shared_bytes > 0).then(|| (u64::from(self.shared_bytes) / shared, Resident::SharedMemory));
        let of_grid = work.blocks.div_ceil(u64::from(self.multiprocessors)).max(1);
        let limits = [(u64::from(self.warps) / warps, Resident::Threads), (u64::from(self.blocks), Resident::Blocks)];
        let limits = limits.into_iter().chain(of_registers).chain(of_shared).chain([(of_grid, Resident::Grid)]);
        match limits.min_by_key(|(blocks, _)| *blocks) {
            Some((0, _)) | None => {
                let name = self.name;
                refuse(format_args!(
                    "no block fits a multiprocessor of {name}; use fewer threads, registers or bytes of shared memory"
                ))
            }
            Some((blocks, limit)) => Ok((blocks as u32, limit)),
        }
    }
}

fn refuse<T>(why: impl std::fmt::Display) -> Result<T> {
    Err(Error::new(ErrorKind::InvalidArgument, why.to_string()))
}
