//! One block at a time on one host thread: its warps, its shared memory, its barriers.
//!
//! A warp runs to its barrier or its end, or for a long turn, then the next one does: that keeps one warp's registers in the
//! cache.

use super::barrier::Wait;
use super::dispatch::Engine;
use super::grid::refusal;
use super::registers::{LANES, Registers};
use super::tally::Totals;
use super::warp::Warp;
use super::{Context, Fault, observe};
use crate::abi::LaunchShape;
use crate::interp::check::{Checker, Checks, Finding, Who};
use crate::interp::code::{Code, Inner, Preset, PresetValue};
use crate::interp::mem::Snapshot;
use crate::interp::mem::cells::Scratch;
use crate::interp::stop::{Place, Reason, Stop, Waiting};

/// What shared and local memory hold at first, so that reading before writing shows, and is alike on every run.
const POISON: u32 = 0xA5A5_A5A5;

/// Local memory as it is at first.
pub(super) fn poisoned(bytes: u64) -> Option<Scratch> {
    let mut scratch = Scratch::new(bytes)?;
    scratch.fill(POISON);
    Some(scratch)
}

/// A launch, as all of its blocks see it.
pub(super) struct Launch<'a> {
    pub(super) kernel: &'a Inner,
    pub(super) code: &'a Code,
    pub(super) shape: &'a LaunchShape,
    pub(super) params: &'a [u8],
    pub(super) global: &'a Snapshot,
    /// The addresses of the module's variables.
    pub(super) variables: &'a [u64],
    pub(super) engine: Engine,
    pub(super) limit: u64,
    pub(super) checks: Checks,
}

/// One host thread's share of a launch: everything that blocks use one after the other.
pub(super) struct Worker<'a> {
    launch: &'a Launch<'a>,
    warps: Vec<Warp>,
    params: Scratch,
    shared: Scratch,
    /// What its blocks did.
    totals: Totals,
    checker: Option<Box<Checker>>,
}

impl<'a> Worker<'a> {
    /// `None` where the host has not the memory.
    pub(super) fn new(launch: &'a Launch<'a>) -> Option<Self> {
        let code = launch.code;
        let warps = (0..launch.warps()).map(|index| {
            let local = Scratch::new(LANES as u64 * code.local_stride())?;
            let (registers, checked) = (Registers::new(code.registers)?, !launch.checks.is_empty());
            let mut warp = Warp::new(registers, local, code.local_stride(), code.sites.len(), checked);
            for preset in &code.presets {
                launch.fill(&mut warp.registers, preset, index);
            }
            Some(warp)
        });
        let shared_bytes = u64::from(code.dynamic_base()) + u64::from(launch.shape.dynamic_shared);
        let checker = match launch.checks.is_empty() {
            true => None,
            false => Some(Box::new(Checker::new(launch.checks, code, launch.warps(), shared_bytes)?)),
        };
        Some(Self {
            launch,
            warps: warps.collect::<Option<_>>()?,
            params: Scratch::holding(launch.params)?,
            shared: Scratch::new(launch.shared_bytes())?,
            totals: Totals::new(code.sites.len()),
            checker,
        })
    }

    /// What its blocks did, and what was found wrong with it.
    pub(super) fn into_totals(self) -> (Totals, Vec<Finding>) {
        let found = self.checker.map_or_else(Vec::new, |checker| checker.into_found());
        let kernel = &self.launch.kernel.name;
        (self.totals, found.into_iter().map(|found| found.told(kernel, |who| self.launch.place(who))).collect())
    }

    /// Runs the block of this number, counted with x fastest, and returns how much work it was.
    pub(super) fn run(&mut self, number: u64) -> Result<u64, Box<Stop>> {
        let block = self.launch.block(number);
        self.restart(block);
        if let Some(checker) = &mut self.checker {
            checker.begin(number);
        }
        let mut printed = Vec::new();
        let outcome = self.run_warps(number, &mut printed);
        self.totals.print(number, printed);
        let mut work = self.launch.preparation();
        for warp in &self.warps {
            work += warp.issued;
            self.totals.warp_instructions += warp.issued;
            self.totals.thread_instructions += warp.lanes_issued;
            for (tally, executed) in self.totals.tallies.iter_mut().zip(&warp.executed) {
                tally.executions += executed.times;
                tally.lanes += executed.lanes;
            }
        }
        if let Some(missed) = self.checker.as_deref().and_then(Checker::missed) {
            let context = format!("{missed}; launch a smaller one, or leave racecheck out");
            return Err(refusal(&self.launch.kernel.name, Reason::Launch(context)));
        }
        let Err((index, fault)) = outcome else { return Ok(work) };
        let Fault { lane, reason } = *fault;
        let pc = self.warps[index as usize].pc - 1;
        if self.checker.as_mut().is_some_and(|checker| checker.stuck(index, lane, pc, &reason)) {
            return Ok(work);
        }
        let place = self.launch.place(Who { block: number, thread: index * LANES as u32 + lane, pc });
        let kernel = self.launch.kernel.name.clone();
        Err(Box::new(Stop { kernel, place: Some(place), reason, findings: Vec::new(), printed: String::new() }))
    }

    fn restart(&mut self, block: [u32; 3]) {
        let code = self.launch.code;
        self.shared.fill(POISON);
        for (index, warp) in self.warps.iter_mut().enumerate() {
            warp.restart(self.launch.lanes(index as u32), code.local_bytes);
            warp.local.fill(POISON);
            for &(file, slot) in &code.cleared {
                warp.registers.clear(file, slot);
            }
            for preset in &code.presets {
                if let PresetValue::Ctaid(axis) = preset.value {
                    let value = u64::from(block[usize::from(axis)]);
                    warp.registers.set_lanes(preset.file, preset.slot, |_| value);
                }
            }
        }
    }

    fn run_warps(&mut self, block: u64, printed: &mut Vec<u8>) -> Result<(), (u32, Box<Fault>)> {
        loop {
            for (index, warp) in self.warps.iter_mut().enumerate() {
                if warp.live == 0 || warp.wait.is_some() {
                    continue;
                }
                let mut cx = Context {
                    code: self.launch.code,
                    global: self.launch.global,
                    params: &self.params,
                    shared: &self.shared,
                    tallies: &mut self.totals.tallies,
                    block,
                    warp: index as u32,
                    printed,
                    checker: self.checker.as_deref_mut(),
                    limit: self.launch.limit,
                };
                self.launch.engine.run(&mut cx, warp).map_err(|fault| (index as u32, fault))?;
            }
            if self.warps.iter().all(|warp| warp.live == 0) {
                return Ok(());
            }
            self.release()?;
        }
    }

    /// Lets go on whoever waits at a barrier that all have reached. Warps that have ended are not waited for.
    fn release(&mut self) -> Result<(), (u32, Box<Fault>)> {
        let complete = |wait: &Wait| {
            let arrived = |warp: &Warp| match warp.arrived[wait.barrier as usize] {
                0 => false,
                lanes => warp.live & !lanes == 0,
            };
            let there = |warp: &&Warp| warp.wait == Some(*wait) || arrived(warp);
            match wait.threads {
                0 => self.warps.iter().filter(|warp| warp.live != 0).all(|warp| there(&warp)),
                threads => self.warps.iter().filter(there).count() >= threads as usize / LANES,
            }
        };
        if let Some(wait) = self.warps.iter().filter_map(|warp| warp.wait).find(complete) {
            if let Some(checker) = &mut self.checker {
                for (warp, index) in self.warps.iter_mut().zip(0..) {
                    observe::warp_barriers(checker, index, warp);
                }
                let (passed, ended) = passing(&self.warps, wait);
                checker.barrier(wait.barrier, &passed, &ended);
            }
            let waiting = self.warps.iter().filter(|warp| warp.wait == Some(wait));
            let result = wait.vote.result(waiting.map(|warp| (warp.live, warp.votes)));
            for warp in &mut self.warps {
                warp.arrived[wait.barrier as usize] = 0;
                if warp.wait == Some(wait) {
                    warp.release(result);
                }
            }
            return Ok(());
        }
        if self.warps.iter().any(|warp| warp.live != 0 && warp.wait.is_none()) {
            // Its turn is over; it goes on.
            return Ok(());
        }
        let waiting = self.warps.iter().enumerate();
        let waiting = waiting.filter_map(|(index, warp)| {
            let Wait { barrier, threads, .. } = warp.wait?;
            Some(Waiting { warp: index as u32, barrier, threads })
        });
        let waiting: Vec<Waiting> = waiting.collect();
        let first = waiting.first().map_or(0, |waiting| waiting.warp);
        let lane = self.warps[first as usize].live.trailing_zeros();
        Err((first, Fault::new(lane, Reason::Deadlock { waiting })))
    }
}

/// The warps that a complete barrier lets go on, and those that have ended where all are waited for.
fn passing(warps: &[Warp], wait: Wait) -> (Vec<u32>, Vec<u32>) {
    let of = |holds: &dyn Fn(&Warp) -> bool| {
        let warps = warps.iter().zip(0..);
        warps.filter(|(warp, _)| holds(warp)).map(|(_, index)| index).collect()
    };
    (of(&|warp| warp.wait == Some(wait)), of(&|warp| warp.live == 0 && wait.threads == 0))
}

impl Launch<'_> {
    fn threads(&self) -> u32 {
        self.shape.block.iter().product()
    }

    /// Bytes that a [`Worker`] takes on the host, but for little things.
    pub(super) fn worker_bytes(&self) -> u64 {
        u64::from(self.warps()) * self.code.warp_bytes()
    }

    fn shared_bytes(&self) -> u64 {
        u64::from(self.code.dynamic_base()) + u64::from(self.shape.dynamic_shared)
    }

    /// The work that a block is before it begins: one for each KiB of its registers and memory.
    pub(super) fn preparation(&self) -> u64 {
        (self.worker_bytes() + self.shared_bytes()) >> 10
    }

    /// The warps of a block.
    pub(super) fn warps(&self) -> u32 {
        self.threads().div_ceil(LANES as u32)
    }

    /// The lanes of a warp that are threads of the block.
    fn lanes(&self, warp: u32) -> u32 {
        let threads = self.threads() - warp * LANES as u32;
        if threads >= LANES as u32 { u32::MAX } else { (1 << threads) - 1 }
    }

    pub(super) fn block(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.shape.grid.map(u64::from);
        [number % x, number / x % y, number / x / y].map(|index| index as u32)
    }

    fn thread(&self, warp: u32, lane: u32) -> [u32; 3] {
        let thread = warp * LANES as u32 + lane;
        let [x, y, _] = self.shape.block;
        [thread % x, thread / x % y, thread / x / y]
    }

    /// Fills a register whose value is the same for every block.
    fn fill(&self, registers: &mut Registers, preset: &Preset, warp: u32) {
        let value = |lane: u32| -> u64 {
            match preset.value {
                PresetValue::Bits(bits) => bits,
                PresetValue::Param { offset, bytes, signed } => {
                    let mut value = [0; 8];
                    let offset = offset as usize;
                    let bytes = usize::from(bytes);
                    value[..bytes].copy_from_slice(&self.params[offset..offset + bytes]);
                    let unused = 64 - 8 * bytes as u32;
                    let value = u64::from_le_bytes(value);
                    if signed { ((value << unused) as i64 >> unused) as u64 } else { value }
                }
                PresetValue::Variable { index, offset } => self.variables[index as usize].wrapping_add_signed(offset),
                PresetValue::DynamicShared => u64::from(self.code.dynamic_base()),
                PresetValue::SharedBytes { fixed } => {
                    let fixed = if fixed { u64::from(self.code.dynamic_base()) } else { 0 };
                    fixed + u64::from(self.shape.dynamic_shared)
                }
                PresetValue::Tid(axis) => u64::from(self.thread(warp, lane)[usize::from(axis)]),
                PresetValue::Ntid(axis) => u64::from(self.shape.block[usize::from(axis)]),
                PresetValue::Nctaid(axis) => u64::from(self.shape.grid[usize::from(axis)]),
                PresetValue::Lane => u64::from(lane),
                PresetValue::Warp => u64::from(warp),
                PresetValue::Warps => u64::from(self.warps()),
                PresetValue::LaneMask { below, equal, above } => {
                    let (own, under) = (1_u32 << lane, (1_u32 << lane) - 1);
                    let pick = |chosen: bool, mask: u32| if chosen { mask } else { 0 };
                    u64::from(pick(below, under) | pick(equal, own) | pick(above, !(own | under)))
                }
                // By `Worker::restart`.
                PresetValue::Ctaid(_) => 0,
            }
        };
        registers.set_lanes(preset.file, preset.slot, |lane| value(lane as u32));
    }

    /// Where a thread was, in words.
    fn place(&self, who: Who) -> Place {
        let origin = &self.code.origins[who.pc as usize];
        let listing = &self.kernel.listing;
        Place {
            line: origin.span.line,
            instruction: listing.line(origin.span),
            source: origin.source.and_then(|source| listing.source(source)),
            block: self.block(who.block),
            thread: self.thread(who.thread / LANES as u32, who.thread % LANES as u32),
        }
    }
}
