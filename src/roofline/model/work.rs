//! The work of a launch, as the software GPU counts it.

use crate::counters::{Counters, SECTOR_BYTES};
use crate::driver::soft::Launched;
use crate::error::{Error, ErrorKind, Result};
use crate::interp::stop::AccessKind;
use crate::interp::{InstructionReport, Report};
use crate::launch_shape::{LaunchShape, WARP};

/// One update among so many requests costs little.
const MOST_UPDATES: u64 = 100;

/// The work of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Bytes that are read and written, each once, with the rest of their sectors.
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) loaded_sectors: f64,
    pub(super) stored_sectors: f64,
    pub(super) loaded_lines: f64,
    pub(super) stored_lines: f64,
    /// Passes through shared memory.
    pub(super) wavefronts: f64,
    pub(super) warp_instructions: f64,
    pub(super) thread_instructions: f64,
    /// How often warps wait for loads, summed over the warps.
    pub(super) rounds: f64,
    pub(super) blocks: u64,
    pub(super) warps_of_block: u32,
    /// Shared memory of a block.
    pub(super) shared_bytes: u64,
    /// Registers of a thread, where they are known.
    pub(super) registers: Option<u32>,
}

impl Work {
    /// Takes the work from the report of a launch of this shape, which ran with
    /// [`Config::footprint`](crate::interp::Config::footprint).
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the report has no footprint, or the launch does what no model knows:
    /// more than one of a hundred requests is an atomic, or it uses local memory.
    pub fn of(report: &Report, shape: &LaunchShape) -> Result<Self> {
        let sectors = report.touched_sectors.ok_or_else(|| {
            Error::new(ErrorKind::InvalidArgument, "the report has no footprint; set Config::footprint for the launch")
        })?;
        Self::of_part(report, shape, blocks(shape), sectors.map(|sectors| sectors * SECTOR_BYTES))
    }

    /// Takes the work of a launch of which at most `most_blocks` blocks ran, and which reads and
    /// writes these bytes in all.
    #[doc(hidden)]
    pub fn of_launched(launched: &Launched, most_blocks: u64, bytes: [u64; 2]) -> Result<Self> {
        let Launched { shape, report, .. } = launched;
        Self::of_part(report, shape, blocks(shape).min(most_blocks), bytes)
    }

    /// Takes the work from the report of `ran` of the blocks of a launch, which reads and writes
    /// these bytes in all.
    fn of_part(report: &Report, shape: &LaunchShape, ran: u64, [read, written]: [u64; 2]) -> Result<Self> {
        ensure_modelled(report)?;
        let blocks = blocks(shape);
        let all = |count: u64| count as f64 * blocks as f64 / ran.max(1) as f64;
        let [loaded_lines, stored_lines] = report.cache_lines().map(all);
        let Counters { global_load, global_store, shared_load, shared_store, .. } = report.counters;
        let threads: u32 = shape.block.iter().product();
        Ok(Self {
            read,
            written,
            loaded_sectors: all(global_load.sectors),
            stored_sectors: all(global_store.sectors),
            loaded_lines,
            stored_lines,
            wavefronts: all(shared_load.wavefronts + shared_store.wavefronts),
            warp_instructions: all(report.warp_instructions),
            thread_instructions: all(report.thread_instructions),
            rounds: all(report.rounds()),
            blocks,
            warps_of_block: threads.div_ceil(WARP),
            shared_bytes: report.shared_bytes,
            registers: None,
        })
    }

    /// Sets the registers of a thread, of which a multiprocessor has 65,536. Without them, the
    /// model takes it that they limit nothing.
    pub fn with_registers(self, registers: u32) -> Self {
        Self { registers: Some(registers), ..self }
    }

    /// The work of a launch of this many times the blocks, on the same bytes.
    #[doc(hidden)]
    pub fn times(self, times: f64) -> Self {
        Self {
            loaded_sectors: self.loaded_sectors * times,
            stored_sectors: self.stored_sectors * times,
            loaded_lines: self.loaded_lines * times,
            stored_lines: self.stored_lines * times,
            wavefronts: self.wavefronts * times,
            warp_instructions: self.warp_instructions * times,
            thread_instructions: self.thread_instructions * times,
            rounds: self.rounds * times,
            blocks: (self.blocks as f64 * times) as u64,
            ..self
        }
    }

    /// Bytes that are read and written.
    #[doc(hidden)]
    pub fn bytes(&self) -> f64 {
        self.read as f64 + self.written as f64
    }
}

fn blocks(shape: &LaunchShape) -> u64 {
    shape.grid.iter().map(|&extent| u64::from(extent)).product()
}

/// Fails where a launch does what no model knows.
fn ensure_modelled(report: &Report) -> Result<()> {
    let Counters { global_load, global_store, .. } = report.counters;
    let refuse = |what: &str, next: &str| {
        let context = format!("the model does not know {what}, so it predicts no time; {next}");
        Err(Error::new(ErrorKind::InvalidArgument, context))
    };
    let moved = global_load.requests + global_store.requests;
    let is_update = |row: &&InstructionReport| matches!(row.kind, AccessKind::Atomic | AccessKind::Reduction);
    let updates = report.instructions.iter().filter(is_update).map(|row| row.executions).sum::<u64>();
    if moved + updates == 0 {
        return refuse("launches that access no global memory", "measure it on a GPU");
    }
    if updates * MOST_UPDATES > moved {
        return refuse("how long atomics wait for each other", "measure it on a GPU with --time");
    }
    if report.has_local_memory {
        return refuse("local memory", "keep the array in registers, or measure it on a GPU");
    }
    Ok(())
}
