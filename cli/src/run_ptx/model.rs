//! Predicts the time of a launch on a GPU, with its reasons.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use warpstride::error::counted;
use warpstride::interp::{InstructionReport, Kernel, Report};
use warpstride::launch_shape::LaunchShape;
use warpstride::roofline::model::{Bound, DeviceModel, Estimate, Resident, Work};

use super::super::{args, cuda_cpp, kernel_names, require};
use crate::run::table::Table;

/// Lines of the table of shares.
const MOST_LINES: usize = 5;

/// A prediction of a launch.
pub(crate) struct Predicted {
    pub(crate) device: DeviceModel,
    pub(crate) estimate: Estimate,
    /// Registers of a thread, and whether ptxas told them.
    registers: Option<(u32, bool)>,
    /// True if the launch accesses shared memory.
    is_shared: bool,
    /// The lines that take most of what bounds the launch, with their parts of it.
    shares: Vec<(String, f64)>,
}

impl Predicted {
    /// Predicts the time of a launch whose report has a footprint, if `args` ask for that.
    pub(crate) fn of(
        ptx: &str,
        kernel: &Kernel,
        args: &args::Launched,
        shape: &LaunchShape,
        report: &Report,
    ) -> Result<Option<Self>> {
        let Some(device) = args.modelled.model else { return Ok(None) };
        let architecture = kernel.architecture();
        require!(
            architecture <= device.architecture,
            InvalidArgument,
            "the kernel is for sm_{architecture}, and {} has sm_{}; compile it for that, or name another GPU with --model",
            device.name,
            device.architecture
        );
        let registers = args.modelled.registers.map(|registers| (registers, false));
        let told = || cuda_cpp::registers(ptx, kernel.name(), device.architecture).map(|registers| (registers, true));
        let registers = registers.or_else(told);
        let work = Work::of(report, shape)?;
        let work = match registers {
            Some((registers, _)) => work.with_registers(registers),
            None => work,
        };
        let estimate = device.estimate(&work)?;
        let shares = shares(report, estimate.prediction.bound);
        let is_shared = report.instructions.iter().any(|row| row.shared.wavefronts > 0);
        Ok(Some(Self { device, estimate, registers, is_shared, shares }))
    }

    pub(crate) fn json(&self) -> Value {
        let Estimate { prediction, between_ms, limits, resident, occupancy, in_flight, instructions_per_byte } =
            &self.estimate;
        let limits: BTreeMap<&str, f64> = limits.iter().map(|(bound, ms)| (bound.name(), *ms)).collect();
        json!({
            "device": self.device.name,
            "ms": prediction.ms,
            "bound": prediction.bound.name(),
            "between_ms": between_ms,
            "limits_ms": limits,
            "blocks_on_a_multiprocessor": resident.0,
            "occupancy": occupancy,
            "registers": self.registers.map(|(registers, _)| registers),
            "bytes_in_flight": in_flight[0],
            "bytes_in_flight_needed": in_flight[1],
            "instructions_per_byte": instructions_per_byte[0],
            "instructions_per_byte_of_a_copy": instructions_per_byte[1],
            "lines": self.shares.iter().map(|(line, share)| json!({ "line": line, "share": share })).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn text(&self) -> String {
        let Estimate { prediction, between_ms: [low, high], limits, .. } = &self.estimate;
        let (name, ms) = (self.device.name, prediction.ms);
        let between = match self.device.is_measured {
            true => "nine of ten measured launches take",
            false => "it was not measured; as a guess, launches take",
        };
        let bound = reason(&self.estimate);
        let mut text =
            format!("\nModel of {name}: {ms:.4} ms; {between} {low:.4} to {high:.4} ms.\nBound by {bound}.\n");
        let mut table = Table::new(&["limit", "ms alone"]);
        // Lines of global memory pass through the unit of shared memory, too. Without accesses to
        // shared memory, its row says something only where it decides.
        let is_said = |bound: Bound| self.is_shared || bound != Bound::Shared || bound == prediction.bound;
        for (bound, ms) in limits.iter().filter(|(bound, _)| is_said(*bound)) {
            table.add_row([bound.name().to_owned(), format!("{ms:.4}")]);
        }
        text += &format!(
            "{table}\nThe longest limit decides, others near it add a little, and a launch takes time to start and to end.\n{}",
            self.resources()
        );
        if !self.shares.is_empty() {
            let mut table = Table::new(&["line", "share"]);
            for (line, share) in &self.shares {
                table.add_row([line.clone(), format!("{:.0} %", 100.0 * share)]);
            }
            text += &format!("Lines by their share of the limit by {}\n{table}\n", prediction.bound.name());
        }
        text
    }

    /// Says what the launch holds and needs of a multiprocessor, a sentence a line.
    fn resources(&self) -> String {
        let Estimate { resident: (blocks, limit), occupancy, in_flight, instructions_per_byte, .. } = &self.estimate;
        let limit = match limit {
            Resident::Threads => "the threads limit them",
            Resident::Blocks => "the GPU allows no more",
            Resident::Registers => "the registers limit them",
            Resident::SharedMemory => "the shared memory limits them",
            Resident::Grid => "the grid has no more",
        };
        let registers = match self.registers {
            Some((registers, true)) => format!("ptxas gives a thread {registers} registers."),
            Some((registers, false)) => format!("A thread has {registers} registers."),
            None => "No ptxas tells the registers, which may limit them too; --registers does.".into(),
        };
        let [flown, needed] = in_flight.map(|bytes| bytes / 1024.0);
        let flying = match needed > 0.0 {
            true => format!(
                "in flight: {flown:.0} KiB of loads on the whole GPU on average; its memory needs {needed:.0} KiB.\n"
            ),
            false => String::new(),
        };
        let [own, most] = instructions_per_byte;
        format!(
            "occupancy: {:.0} %, {} on a multiprocessor; {limit}. {registers}\n\
             {flying}instructions: {own:.2} for each byte that is moved; at the speed of a copy there is time for {most:.1}.\n",
            100.0 * occupancy,
            counted(u64::from(*blocks), "block")
        )
    }
}

/// Says what bounds a launch.
fn reason(Estimate { prediction, in_flight: [own, needed], .. }: &Estimate) -> &'static str {
    match prediction.bound {
        Bound::Memory => "memory: the bytes that it moves",
        Bound::L2 => "L2: the sectors it loads and the lines it stores",
        Bound::Shared => "shared: passes through shared memory and lines in the L1 cache",
        Bound::Instructions => "instructions: the GPU issues no more of them",
        Bound::Latency if own < needed => "latency: too few bytes are in flight while blocks wait for memory",
        Bound::Latency => "latency: blocks take turns, and each takes long",
        Bound::Launches => "launches: the time from one launch to the next",
    }
}

/// The lines with the largest parts of what bounds a launch.
fn shares(report: &Report, bound: Bound) -> Vec<(String, f64)> {
    let mut costs: BTreeMap<String, f64> = BTreeMap::new();
    for row in &report.instructions {
        let cost = cost(row, bound);
        if cost > 0 {
            let named = row.source.clone().filter(|_| row.source_line().is_some());
            let line = named.unwrap_or_else(|| format!("PTX line {}", row.line));
            *costs.entry(kernel_names::readable(&line)).or_default() += cost as f64;
        }
    }
    let all: f64 = costs.values().sum();
    let mut shares: Vec<_> = costs.into_iter().map(|(line, cost)| (line, cost / all)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares.truncate(MOST_LINES);
    shares
}

/// The part of an instruction in what bounds a launch.
fn cost(row: &InstructionReport, bound: Bound) -> u64 {
    match bound {
        Bound::Memory => row.global.sectors,
        Bound::L2 => row.global.sectors.max(row.cache_lines),
        Bound::Shared => row.cache_lines + row.shared.wavefronts,
        // The rows are of accesses alone.
        Bound::Instructions => 0,
        Bound::Latency | Bound::Launches => row.round.map_or(0, |_| row.executions),
    }
}
