//! Runs a block on a host thread: its warps and its barriers.
//!
//! A warp runs to its barrier, to its end, or for a long turn; then the next warp runs. That keeps
//! one warp's registers in the cache. A block waits for other blocks once each of its warps has
//! repeatedly looked at memory and seen no change. If a block looks at memory in another way, the
//! other blocks run after a long turn of it.

use self::cluster::{Cluster, Neighbours};
use super::barrier::{OF_CLUSTER, Wait};
use super::dispatch::Engine;
use super::grid::refusal;
use super::registers::Registers;
use super::tally::Totals;
use super::warp::Warp;
use super::{Context, Fault, bulk, copies, observe};
use crate::gpu::check::{Checker, Checks, Found, Who, widen};
use crate::gpu::code::{Code, Preset, PresetValue};
use crate::gpu::mem::cells::Scratch;
use crate::gpu::mem::{Allocation, POISON, Snapshot, Touched};
use crate::gpu::module::Inner;
use crate::gpu::reason::{Place, Reason, Waiting};
use crate::gpu::stop::Stop;
use crate::gpu::vocabulary::{FULL, LANES};
use crate::launch_shape::LaunchShape;

pub(super) mod cluster;

/// The work of beginning and ending a block, and that of each of its warps.
const BLOCK_WORK: u64 = 16;
const WARP_WORK: u64 = 4;
/// Bytes of shared and local memory that one unit of work clears.
const CLEARED_BYTES: u64 = 128;
/// The work of a warp's turn in addition to its instructions, and of inspecting a warp at a
/// barrier.
const TURN_WORK: u64 = 6;
/// The work after which the turn of a block that looks at memory ends, whatever it sees.
const LONG_TURN: u64 = 1 << 22;

/// Makes local memory with its initial content.
pub(super) fn poisoned(bytes: u64) -> Option<Scratch> {
    let mut scratch = Scratch::new(bytes)?;
    scratch.fill(POISON);
    Some(scratch)
}

/// A launch, in the form that all of its blocks share.
pub(super) struct Launch<'a> {
    pub(super) kernel: &'a Inner,
    pub(super) code: &'a Code,
    pub(super) shape: &'a LaunchShape,
    pub(super) params: &'a [u8],
    pub(super) global: &'a Snapshot,
    /// The heap, if the code uses it.
    pub(super) heap: Option<&'a Allocation>,
    /// The address of the memory that a cooperative launch has for its grid, or 0.
    pub(super) workspace: u64,
    /// The addresses of the module's variables.
    pub(super) variables: &'a [u64],
    pub(super) engine: Engine,
    pub(super) limit: u64,
    pub(super) checks: Checks,
    /// The bytes that it touches, if they are counted.
    pub(super) touched: Option<&'a Touched>,
}

/// The part of a launch that belongs to one host thread, whichever block it runs.
pub(super) struct Worker<'a> {
    launch: &'a Launch<'a>,
    params: Scratch,
    /// The counts of its blocks.
    totals: Totals,
    checker: Option<Box<Checker>>,
    /// Memory of ended clusters, for reuse by new ones.
    #[expect(clippy::vec_box, reason = "a cluster is large, and goes from here to the turns and back")]
    spare: Vec<Box<Cluster>>,
}

/// A block that has begun.
pub(super) struct Block {
    /// Its number, counted with x fastest.
    number: u64,
    warps: Vec<Warp>,
    printed: Vec<u8>,
    /// Its work so far.
    work: u64,
}

/// The fault of a warp, which ends its block.
type Ending = (u32, Box<Fault>);

impl<'a> Worker<'a> {
    /// Makes a worker; `None` if the host has too little memory.
    pub(super) fn new(launch: &'a Launch<'a>) -> Option<Self> {
        let checker = match launch.checks.is_empty() {
            true => None,
            false => Some(Box::new(Checker::new(launch.checks, launch.code, launch.warps(), launch.shared_bytes())?)),
        };
        let totals = Totals::new(launch.code.sites.len());
        Some(Self { launch, params: Scratch::holding(launch.params)?, totals, checker, spare: Vec::new() })
    }

    /// Returns the counts and findings of its blocks.
    pub(super) fn into_totals(self) -> Totals {
        let Self { launch, mut totals, checker, .. } = self;
        let (found, more) = checker.map_or_else(Default::default, |checker| checker.into_found());
        let told = |found: Found| found.told(&launch.kernel.name, |who| launch.place(who));
        (totals.findings, totals.more_findings) = (found.into_iter().map(told).collect(), more);
        widen(&mut totals.findings);
        totals
    }

    /// Allocates the host memory of a block.
    fn block(&self) -> Option<Block> {
        let (launch, code) = (self.launch, self.launch.code);
        let warps = (0..launch.warps()).map(|index| {
            let (registers, checked) = (Registers::new(code.registers)?, self.checker.is_some());
            let mut warp = Warp::new(registers, code.new_local()?, code.local_stride(), code.sites.len(), checked);
            for preset in &code.presets {
                launch.fill(&mut warp.registers, preset, index);
            }
            Some(warp)
        });
        Some(Block { number: 0, warps: warps.collect::<Option<_>>()?, printed: Vec::new(), work: 0 })
    }

    /// Records the counts of a block that has ended, or that the fault of a warp has ended.
    fn end(&mut self, block: &mut Block, fault: Option<Ending>) -> Result<(), Box<Stop>> {
        self.totals.print(block.number, std::mem::take(&mut block.printed));
        for warp in &block.warps {
            self.totals.warp_instructions += warp.issued;
            self.totals.thread_instructions += warp.lanes_issued;
            for (tally, executed) in self.totals.tallies.iter_mut().zip(&warp.executed) {
                tally.executions += executed.times;
                tally.lanes += executed.lanes;
            }
        }
        if let Some(checker) = &mut self.checker {
            checker.end();
        }
        if let Some(missed) = self.checker.as_deref().and_then(Checker::missed) {
            let context = format!("{missed}; launch a smaller grid, or leave racecheck out");
            return Err(refusal(&self.launch.kernel.name, Reason::Launch(context)));
        }
        let Some((index, fault)) = fault else { return Ok(()) };
        let Fault { lane, reason } = *fault;
        let pc = block.warps[index as usize].pc - 1;
        if self.checker.as_mut().is_some_and(|checker| checker.stuck(index, lane, pc, &reason)) {
            return Ok(());
        }
        let place = self.launch.place(Who { block: block.number, thread: index * LANES as u32 + lane, pc });
        let kernel = self.launch.kernel.name.clone();
        Err(Box::new(Stop { place: Some(place), ..*refusal(&kernel, reason) }))
    }

    /// Runs the warps until the block has ended, which it returns, or waits for others. `elsewhere`
    /// is the work of the blocks that share its limit.
    fn run_warps(&mut self, block: &mut Block, neighbours: Neighbours, elsewhere: u64) -> Result<bool, Ending> {
        block.warps.iter_mut().for_each(Warp::begin_turn);
        let end = block.work.saturating_add(LONG_TURN);
        loop {
            for (index, warp) in block.warps.iter_mut().enumerate() {
                if warp.live == 0 || warp.wait.is_some() {
                    continue;
                }
                let mut cx = Context {
                    code: self.launch.code,
                    global: self.launch.global,
                    heap: self.launch.heap,
                    params: &self.params,
                    shared: &neighbours.peers[neighbours.rank].shared,
                    neighbours,
                    tallies: &mut self.totals.tallies,
                    block: block.number,
                    warp: index as u32,
                    printed: &mut block.printed,
                    checker: self.checker.as_deref_mut(),
                    touched: self.launch.touched,
                    limit: self.launch.limit,
                    left: self.launch.limit.saturating_sub(block.work.saturating_add(elsewhere)),
                };
                let before = warp.work;
                let outcome = self.launch.engine.run(&mut cx, warp);
                block.work += TURN_WORK + warp.work - before;
                if let Some(checker) = &mut self.checker {
                    block.work += checker.take_work();
                }
                outcome.map_err(|fault| (index as u32, fault))?;
            }
            if block.warps.iter().all(|warp| warp.live == 0) {
                return Ok(true);
            }
            let released = block.release(self.checker.as_deref_mut())?;
            let is_long = || block.work > end && block.warps.iter().any(|warp| warp.has_looked);
            if !released && block.waits() || is_long() {
                return Ok(false);
            }
        }
    }
}

impl Block {
    /// Returns whether every warp waits, and at least some of them for a change of memory.
    fn waits(&self) -> bool {
        self.warps.iter().all(|warp| warp.live == 0 || warp.wait.is_some() || warp.waits)
    }

    fn restart(&mut self, launch: &Launch) {
        let (code, place) = (launch.code, launch.block(self.number));
        for (index, warp) in self.warps.iter_mut().enumerate() {
            warp.restart(launch.lanes(index as u32), code.local_bytes);
            // Memory that calls of the previous block added would have to be cleared as well.
            if let Some(small) = (warp.stride > code.local_stride()).then(|| code.new_local()).flatten() {
                (warp.local, warp.stride) = (small, code.local_stride());
            }
            warp.local.fill(POISON);
            for &(file, slot) in &code.cleared {
                warp.registers.set_lanes(file, slot, FULL, |_| 0);
            }
            for preset in &code.presets {
                if let Some(value) = preset.value.in_block(place) {
                    warp.registers.set_lanes(preset.file, preset.slot, FULL, |_| value);
                }
            }
        }
    }

    /// Releases the warps at a barrier that all have reached, and returns whether there was one.
    /// Warps that have ended do not count.
    fn release(&mut self, checker: Option<&mut Checker>) -> Result<bool, Ending> {
        let complete = |wait: &Wait| {
            if wait.barrier == OF_CLUSTER {
                return false;
            }
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
        // If there are many different waits, it inspects each of them, and all warps for each.
        self.work += TURN_WORK * self.warps.len() as u64;
        if let Some(wait) = self.warps.iter().filter_map(|warp| warp.wait).find(complete) {
            if let Some(checker) = checker {
                for (warp, index) in self.warps.iter_mut().zip(0..) {
                    observe::warp_barriers(checker, index, warp);
                }
                let (passed, ended) = passing(&self.warps, wait);
                if let Some(order) = checker.order() {
                    order.barrier(wait.barrier, &passed, &ended);
                }
                self.work += (self.warps.len() * self.warps.len()) as u64 / TURN_WORK;
            }
            let waiting = self.warps.iter().filter(|warp| warp.wait == Some(wait));
            let result = wait.vote.result(waiting.map(|warp| (warp.live, warp.votes)));
            for warp in &mut self.warps {
                warp.arrived[wait.barrier as usize] = 0;
                if warp.wait == Some(wait) {
                    warp.release(result);
                }
            }
            return Ok(true);
        }
        let may_go_on = |warp: &Warp| warp.live != 0 && warp.wait.is_none_or(|wait| wait.barrier == OF_CLUSTER);
        if self.warps.iter().any(may_go_on) {
            // Its turn is over, and it continues later.
            return Ok(false);
        }
        Err(self.deadlock())
    }

    /// The fault of warps that wait for ever.
    fn deadlock(&self) -> Ending {
        let waiting = self.warps.iter().enumerate();
        let waiting = waiting.filter_map(|(index, warp)| {
            let Wait { barrier, threads, .. } = warp.wait?;
            Some(Waiting { warp: index as u32, barrier, threads })
        });
        let waiting: Vec<Waiting> = waiting.collect();
        let first = waiting.first().map_or(0, |waiting| waiting.warp);
        let lane = self.warps[first as usize].live.trailing_zeros();
        (first, Fault::new(lane, Reason::Deadlock { waiting }))
    }
}

/// The warps that a complete barrier releases, and the ended warps if the barrier waits for all.
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

    /// The most bytes that a [`Block`] takes on the host, without small items.
    pub(super) fn block_bytes(&self) -> u64 {
        let calls = LANES as u64 * (self.code.most_local() - self.code.local_stride());
        u64::from(self.warps()) * (self.code.warp_bytes() + calls + copies::most_bytes(self.code))
    }

    /// The same for a cluster, including its shared memory and the state that checkers keep.
    pub(super) fn cluster_bytes(&self) -> u64 {
        let checked = Checker::of_block_bytes(self.checks, self.warps(), self.shared_bytes());
        let bulk = if self.code.bulks.is_empty() { 0 } else { bulk::MOST_BYTES as u64 };
        bulk + self.code.cluster_blocks() * (self.block_bytes() + self.shared_bytes() + checked)
    }

    pub(super) fn shared_bytes(&self) -> u64 {
        u64::from(self.code.dynamic_base()) + u64::from(self.shape.dynamic_shared)
    }

    /// The work of a block before its first instruction.
    pub(super) fn preparation(&self) -> u64 {
        let (code, warps) = (self.code, u64::from(self.warps()));
        let registers = code.cleared.len() + code.presets.iter().filter(|preset| preset.varies()).count();
        let warp = WARP_WORK + registers as u64 + code.sites.len() as u64 / 4;
        let memory = self.shared_bytes() + warps * LANES as u64 * code.local_stride();
        BLOCK_WORK + warps * warp + memory / CLEARED_BYTES
    }

    /// The number of warps of a block.
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
                PresetValue::Nclusterid(axis, extent) => {
                    u64::from(self.shape.grid[usize::from(axis)] / u32::from(extent))
                }
                PresetValue::Workspace { high } => {
                    if high {
                        self.workspace >> 32
                    } else {
                        self.workspace & u64::from(u32::MAX)
                    }
                }
                PresetValue::Lane => u64::from(lane),
                PresetValue::Warp => u64::from(warp),
                PresetValue::Warps => u64::from(self.warps()),
                PresetValue::LaneMask { below, equal, above } => {
                    let (own, under) = (1_u32 << lane, (1_u32 << lane) - 1);
                    let pick = |chosen: bool, mask: u32| if chosen { mask } else { 0 };
                    u64::from(pick(below, under) | pick(equal, own) | pick(above, !(own | under)))
                }
                // `Block::restart` fills it.
                PresetValue::Ctaid(_)
                | PresetValue::Clusterid(..)
                | PresetValue::ClusterCtaid(..)
                | PresetValue::ClusterCtarank(_) => 0,
            }
        };
        if preset.value.is_by_lane() {
            registers.set_lanes(preset.file, preset.slot, FULL, |lane| value(lane as u32));
        } else {
            let value = value(0);
            registers.set_lanes(preset.file, preset.slot, FULL, |_| value);
        }
    }

    /// The place of a thread, with names.
    fn place(&self, who: Who) -> Place {
        let origin = &self.code.origins[who.pc as usize];
        let listing = &self.kernel.source.listing;
        Place {
            line: origin.span.line,
            instruction: listing.line(origin.span),
            source: origin.source.and_then(|source| listing.source(source)),
            block: self.block(who.block),
            thread: self.thread(who.thread / LANES as u32, who.thread % LANES as u32),
        }
    }
}
