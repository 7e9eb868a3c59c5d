//! Tests racecheck against an oracle: random programs of two to four threads, whose races the
//! oracle finds by checking all pairs.
//!
//! The oracle implements PTX's memory model, and the one lenience that racecheck adds to it. It
//! represents the relations of the run as edges between accesses, and computes reachability. It
//! shares nothing with racecheck, which keeps clocks and forgets what it can. Every write has its
//! own value, so no store repeats the value that is already there.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use warpstride_interp::check::{Check, Problem};
use warpstride_interp::{Checks, Config, Memory, Module, run};

use super::shape;
use crate::programs::random::Random;

/// The number of programs, and the number if `WARPSTRIDE_LONG` is set.
const PROGRAMS: u64 = 800;
const LONG: u64 = 40_000;
/// Words that threads share.
const WORDS: usize = 4;

/// A thread of the program: its block, warp and lane.
type Actor = [u32; 3];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Load,
    Store,
    Atomic,
    Reduction,
}

/// The kinds of strength of an access or a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Strength {
    volatile: bool,
    acquire: bool,
    release: bool,
    device: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Op {
    Access {
        access: Access,
        word: usize,
        strength: Option<Strength>,
    },
    Fence {
        sc: bool,
        device: bool,
    },
    /// The number of the step, which is also the barrier's number, its threads, and whether the
    /// thread waits there.
    Barrier {
        step: usize,
        number: u32,
        threads: u32,
        waits: bool,
    },
    WarpBarrier {
        step: usize,
        lanes: u32,
    },
    /// Enough looks at memory for the other warps to have their turn.
    Yield,
}

/// The operations of each thread, in order.
#[derive(Debug)]
struct Program {
    shared: bool,
    actors: Vec<(Actor, Vec<Op>)>,
}

fn draw(seed: u64) -> Program {
    let mut dice = Random::new(seed);
    let blocks = 1 + dice.below(3);
    let mut actors: Vec<Actor> = Vec::new();
    for _ in 0..2 + dice.below(3) {
        let actor = [dice.below(blocks), dice.below(2), 3 * dice.below(3)].map(|part| part as u32);
        if !actors.contains(&actor) {
            actors.push(actor);
        }
    }
    let mut actors: Vec<(Actor, Vec<Op>)> = actors.into_iter().map(|actor| (actor, Vec::new())).collect();
    let (mut number, steps) = (0, 5 + dice.below(14));
    for step in 0..steps {
        let chosen = dice.below(actors.len());
        let ([block, warp, _], of_all) = (actors[chosen].0, actors.iter().map(|(actor, _)| *actor).collect::<Vec<_>>());
        match dice.below(12) {
            0 => actors[chosen].1.push(Op::Yield),
            1 => {
                let lanes = of_all.iter().filter(|other| other[..2] == [block, warp] && !dice.once_in(5));
                let lanes = lanes.fold(0, |lanes, other| lanes | 1 << other[2]);
                let named = |other: &Actor| other[..2] == [block, warp] && lanes >> other[2] & 1 == 1;
                let members = actors.iter_mut().filter(|(other, _)| named(other));
                members.for_each(|(_, ops)| ops.push(Op::WarpBarrier { step, lanes }));
            }
            2 if number < 15 => {
                number += 1;
                let alone = dice.once_in(4);
                let others: BTreeSet<u32> =
                    of_all.iter().filter(|other| other[0] == block).map(|other| other[1]).collect();
                let arrives = others.len() > 1 && dice.once_in(2);
                let of = |other: &Actor| other[0] == block && (other[1] == warp || !alone);
                let threads = if alone { 32 } else { 32 * others.len() as u32 };
                for (other, ops) in actors.iter_mut().filter(|(other, _)| of(other)) {
                    let waits = alone || !arrives || other[1] == warp;
                    ops.push(Op::Barrier { step, number, threads, waits });
                }
            }
            3..5 => actors[chosen].1.push(Op::Fence { sc: dice.once_in(2), device: !dice.once_in(3) }),
            _ => {
                let op = access(&mut dice);
                actors[chosen].1.push(op);
            }
        }
    }
    Program { shared: blocks == 1 && dice.once_in(2), actors }
}

/// The first two words are mostly data, the others mostly flags.
fn access(dice: &mut Random) -> Op {
    let word = dice.below(WORDS);
    let weak = dice.once_in(if word < 2 { 2 } else { 8 });
    let access = match dice.below(8) {
        0..3 => Access::Load,
        3..6 => Access::Store,
        _ if weak => Access::Store,
        6 => Access::Atomic,
        _ => Access::Reduction,
    };
    let reads = matches!(access, Access::Load | Access::Atomic);
    let strength = Strength {
        volatile: matches!(access, Access::Load | Access::Store) && dice.once_in(4),
        acquire: reads && dice.once_in(2),
        release: access != Access::Load && dice.once_in(2),
        device: !dice.once_in(4),
    };
    let strength = match strength.volatile {
        true => Strength { acquire: false, release: false, device: true, ..strength },
        false => strength,
    };
    Op::Access { access, word, strength: (!weak).then_some(strength) }
}

impl Strength {
    fn text(self) -> String {
        let order = match (self.acquire, self.release) {
            _ if self.volatile => return ".volatile".to_owned(),
            (false, false) => "relaxed",
            (true, false) => "acquire",
            (false, true) => "release",
            (true, true) => "acq_rel",
        };
        format!(".{order}{}", if self.device { ".gpu" } else { ".cta" })
    }
}

impl Program {
    /// The PTX, and for each line the thread and operation that it belongs to. `traced`: the
    /// program stores the host time at which each operation was executed. Other ways to record that
    /// would be looks at memory, which change the waiting.
    fn text(&self, traced: bool) -> (String, Vec<(u32, [usize; 2])>) {
        let (space, base) = if self.shared { ("shared", "%r9") } else { ("global", "%a1") };
        let mut text = String::from(
            ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q) {\n\
             .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %a<4>; .shared .align 4 .b8 words[16]; \
             .shared .align 4 .b8 turns[256];\n\
             ld.param.u64 %a1, [p]; ld.param.u64 %a2, [q]; mov.u32 %r9, words;\n\
             mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n",
        );
        for (index, ([block, warp, lane], _)) in self.actors.iter().enumerate() {
            let thread = warp * 32 + lane;
            writeln!(
                text,
                "setp.eq.u32 %p1, %r1, {thread}; setp.eq.u32 %p2, %r2, {block}; and.pred %p1, %p1, %p2; @%p1 bra actor{index};"
            )
            .expect("it is a string");
        }
        text.push_str("ret;\n");
        let (mut lines, mut count) = (Vec::new(), 0);
        for (index, (_, ops)) in self.actors.iter().enumerate() {
            writeln!(text, "actor{index}:").expect("it is a string");
            for (place, op) in ops.iter().enumerate() {
                count += 1;
                lines.push((text.lines().count() as u32 + 1, [index, place]));
                let (op_text, is_access) = (op.text(space, base, count), matches!(op, Op::Access { .. }));
                let slot = 8 * count;
                let time = format!("mov.u64 %a3, %globaltimer; st.global.u64 [%a2+{slot}], %a3;");
                // A look at memory may let other warps run after it.
                let (before, after) = if is_access { (&*time, "") } else { ("", &*time) };
                match traced {
                    true => writeln!(text, "{before} {op_text} {after}"),
                    false => writeln!(text, "{op_text}"),
                }
                .expect("it is a string");
            }
            text.push_str("ret;\n");
        }
        text.push_str("}\n");
        (text, lines)
    }

    /// The operations in the order of their execution.
    fn trace(&self) -> Vec<[usize; 2]> {
        let (text, lines) = self.text(true);
        let memory = Memory::new(1 << 20);
        let [p, q] = [memory.upload(&[0_u32; WORDS]).unwrap(), memory.upload(&vec![0_u64; lines.len() + 1]).unwrap()];
        self.launch(&text, &memory, [p, q], Checks::NONE);
        let times = memory.download::<u64>(q + 8, lines.len()).unwrap();
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by_key(|op| times[*op]);
        order.into_iter().map(|op| lines[op].1).collect()
    }

    fn launch(&self, text: &str, memory: &Memory, params: [u64; 2], checks: Checks) -> warpstride_interp::Report {
        let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let params: Vec<u8> = params.into_iter().flat_map(u64::to_le_bytes).collect();
        let config = Config { checks, threads: 1, ..Config::default() };
        run(module.kernel("k").expect("it is there"), &shape(3, 64), &params, memory, &config)
            .unwrap_or_else(|stop| panic!("{stop}\n{text}"))
    }

    /// The pairs of operations that racecheck reports as races, the later one first, with the word.
    fn found(&self) -> BTreeSet<(usize, [[usize; 2]; 2])> {
        let (text, lines) = self.text(false);
        let memory = Memory::new(1 << 20);
        let [p, q] = [(); 2].map(|()| memory.upload(&[0_u32; WORDS]).unwrap());
        let report = self.launch(&text, &memory, [p, q], Checks::from(Check::Racecheck));
        let of = |line: u32| lines.iter().find(|(other, _)| *other == line).expect("it is an operation's").1;
        let finding = |finding: &warpstride_interp::Finding| {
            let Problem::Race { address, earlier_place, .. } = &finding.problem else { panic!("{finding}") };
            let word = (address - if self.shared { 0 } else { p }) / 4;
            (word as usize, [of(finding.place.line), of(earlier_place.line)])
        };
        report.findings.iter().map(finding).collect()
    }
}

impl Op {
    fn text(&self, space: &str, base: &str, value: usize) -> String {
        let strong = |strength: &Option<Strength>| strength.map_or(String::new(), Strength::text);
        match self {
            Op::Access { access, word, strength } => {
                let (at, strong) = (format!("[{base}+{}]", 4 * word), strong(strength));
                match access {
                    Access::Load => format!("ld{strong}.{space}.u32 %r4, {at};"),
                    Access::Store => format!("st{strong}.{space}.u32 {at}, {};", value << 20),
                    Access::Atomic => format!("atom{strong}.{space}.add.u32 %r4, {at}, {value};"),
                    Access::Reduction => format!("red{strong}.{space}.add.u32 {at}, {value};"),
                }
            }
            Op::Fence { sc, device } => {
                format!("fence{}{};", if *sc { ".sc" } else { ".acq_rel" }, if *device { ".gpu" } else { ".cta" })
            }
            Op::Barrier { number, threads, waits: true, .. } => format!("barrier.sync {number}, {threads};"),
            Op::Barrier { number, threads, .. } => format!("barrier.arrive {number}, {threads};"),
            Op::WarpBarrier { lanes, .. } => format!("bar.warp.sync {lanes};"),
            // It changes its own word before and after, so that nothing between two of these counts
            // as a wait, traced or not.
            Op::Yield => format!(
                "{{ .reg .pred %q; .reg .b32 %i, %j, %k; mov.u32 %k, turns; mad.lo.u32 %k, %r1, 4, %k; \
                 atom.shared.add.u32 %j, [%k], 1; mov.u32 %i, 0; y{value}: nanosleep.u32 1; add.u32 %i, %i, 1; \
                 setp.lt.u32 %q, %i, 256; @%q bra y{value}; atom.shared.add.u32 %j, [%k], 1; }}"
            ),
        }
    }
}

/// Reachability among four nodes of each operation.
struct Oracle<'a> {
    program: &'a Program,
    /// The operations in the order of the run.
    trace: Vec<[usize; 2]>,
    reach: Vec<Vec<bool>>,
    /// For each strong read, the strong writes that it has observed, also through updates.
    observed: Vec<Vec<bool>>,
}

/// The node of what an operation receives.
const IN: usize = 0;
/// The node of what it publishes: its thread's earlier accesses, and what that thread has received.
const OUT: usize = 1;
/// The node of its effect on memory.
const DEED: usize = 2;
/// The node of everything after it.
const AFTER: usize = 3;

impl<'a> Oracle<'a> {
    fn new(program: &'a Program) -> Self {
        let trace = program.trace();
        let count = trace.len();
        let mut oracle = Self {
            program,
            trace,
            reach: vec![vec![false; 4 * count]; 4 * count],
            observed: vec![vec![false; count]; count],
        };
        oracle.observe();
        oracle.link();
        for via in 0..4 * count {
            for from in 0..4 * count {
                if oracle.reach[from][via] {
                    (0..4 * count).for_each(|to| oracle.reach[from][to] |= oracle.reach[via][to]);
                }
            }
        }
        oracle
    }

    fn op(&self, index: usize) -> &Op {
        let [actor, place] = self.trace[index];
        &self.program.actors[actor].1[place]
    }

    fn same_thread(&self, a: usize, b: usize) -> bool {
        self.trace[a][0] == self.trace[b][0]
    }

    fn before_in_thread(&self, a: usize, b: usize) -> bool {
        self.same_thread(a, b) && self.trace[a][1] < self.trace[b][1]
    }

    /// Returns whether two operations are strong, with scopes that contain each other's threads.
    fn morally_strong(&self, a: usize, b: usize) -> bool {
        let [one, other] = [a, b].map(|index| self.program.actors[self.trace[index][0]].0[0]);
        let scope = |index: usize| match self.op(index) {
            Op::Access { strength, .. } => strength.map(|strength| strength.device),
            Op::Fence { device, .. } => Some(*device),
            _ => None,
        };
        let has = |index| scope(index).is_some_and(|device| device || one == other);
        has(a) && has(b)
    }

    fn observe(&mut self) {
        for read in 0..self.trace.len() {
            let &Op::Access { access, word, .. } = self.op(read) else { continue };
            if access == Access::Store {
                continue;
            }
            let wrote = |index: &usize| matches!(self.op(*index), Op::Access { access, word: of, .. } if *access != Access::Load && *of == word);
            let Some(write) = (0..read).rev().find(wrote).filter(|write| self.morally_strong(*write, read)) else {
                continue;
            };
            self.observed[write][read] = true;
            if matches!(self.op(write), Op::Access { access: Access::Atomic | Access::Reduction, .. }) {
                (0..write).for_each(|earlier| self.observed[earlier][read] |= self.observed[earlier][write]);
            }
        }
    }

    /// The first operations of the release patterns that end in this write.
    fn releases(&self, write: usize) -> Vec<usize> {
        let &Op::Access { word, strength: Some(strength), .. } = self.op(write) else { return Vec::new() };
        let begins = |index: &usize| match self.op(*index) {
            _ if *index == write => strength.release,
            _ if !self.before_in_thread(*index, write) => false,
            Op::Fence { .. } => true,
            Op::Access { word: of, strength: Some(strength), .. } => *of == word && strength.release,
            _ => false,
        };
        (0..=write).filter(begins).collect()
    }

    /// The last operations of the acquire patterns that begin with this read.
    fn acquires(&self, read: usize) -> Vec<usize> {
        let &Op::Access { access, word, strength: Some(strength) } = self.op(read) else { return Vec::new() };
        let ends = |index: &usize| match self.op(*index) {
            _ if access == Access::Reduction => false,
            _ if *index == read => strength.acquire,
            _ if !self.before_in_thread(read, *index) => false,
            Op::Fence { .. } => true,
            Op::Access { word: of, strength: Some(strength), .. } => *of == word && strength.acquire,
            _ => false,
        };
        (read..self.trace.len()).filter(ends).collect()
    }

    fn link(&mut self) {
        let count = self.trace.len();
        let mut edges = Vec::new();
        for index in 0..count {
            let node = |part| 4 * index + part;
            edges.extend([(node(DEED), node(AFTER)), (node(IN), node(AFTER))]);
            if !matches!(self.op(index), Op::Barrier { .. } | Op::WarpBarrier { .. }) {
                edges.push((node(IN), node(OUT)));
            }
            if let Some(next) = (index + 1..count).find(|next| self.before_in_thread(index, *next)) {
                edges.extend([(node(AFTER), 4 * next + OUT), (node(AFTER), 4 * next + DEED)]);
                edges.push((node(AFTER), 4 * next + AFTER));
            }
            for other in (0..count).filter(|other| *other != index) {
                let meet = match (self.op(index), self.op(other)) {
                    (Op::Barrier { step, .. }, Op::Barrier { step: of, waits, .. }) => step == of && *waits,
                    (Op::WarpBarrier { step, .. }, Op::WarpBarrier { step: of, .. }) => step == of,
                    _ => false,
                };
                if meet {
                    edges.push((node(OUT), 4 * other + IN));
                }
                if self.observed[index][other] {
                    let pairs = self
                        .releases(index)
                        .into_iter()
                        .flat_map(|x| self.acquires(other).into_iter().map(move |y| (x, y)));
                    let pairs = pairs.filter(|&(x, y)| !self.same_thread(x, y) && self.morally_strong(x, y));
                    edges.extend(pairs.map(|(x, y)| (4 * x + OUT, 4 * y + IN)));
                }
            }
        }
        edges.into_iter().for_each(|(from, to)| self.reach[from][to] = true);
    }

    fn is_before(&self, a: usize, b: usize) -> bool {
        let reaches = |a: usize, b: usize| self.reach[4 * a + DEED][4 * b + DEED];
        let seen = |z: usize| self.observed[a][z] && reaches(z, b);
        reaches(a, b) || (0..self.trace.len()).any(seen)
    }

    /// The pairs of operations that race, the later one first, with the word.
    fn races(&self) -> BTreeSet<(usize, [[usize; 2]; 2])> {
        let mut races = BTreeSet::new();
        for later in 0..self.trace.len() {
            for earlier in (0..later).filter(|earlier| !self.same_thread(*earlier, later)) {
                let (&Op::Access { access: a, word, .. }, &Op::Access { access: b, word: of, .. }) =
                    (self.op(earlier), self.op(later))
                else {
                    continue;
                };
                let conflict = word == of && (a != Access::Load || b != Access::Load);
                if conflict && !self.morally_strong(earlier, later) && !self.is_before(earlier, later) {
                    races.insert((word, [self.trace[later], self.trace[earlier]]));
                }
            }
        }
        races
    }
}

/// For each word, every reported race is real, and if there are races, at least one is reported.
#[test]
fn racecheck_finds_the_races_that_the_memory_model_has() {
    let count = if crate::long::is_long() { LONG } else { PROGRAMS };
    let (next, racing) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Relaxed)).filter(|seed| *seed < count) {
            racing.fetch_add(u64::from(agree(seed)), Relaxed);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    let racing = racing.into_inner();
    assert!((count / 5..count * 19 / 20).contains(&racing), "{racing} of {count} race: too few or too many to tell");
}

/// Checks that racecheck and the oracle agree on a program; returns whether it has a race.
fn agree(seed: u64) -> bool {
    let program = draw(seed);
    let (found, races) = (program.found(), Oracle::new(&program).races());
    let text = || program.text(false).0;
    let wrong: Vec<_> = found.difference(&races).collect();
    assert!(wrong.is_empty(), "seed {seed}: {wrong:?} are in order\n{:?}\n{}", program.actors, text());
    let words = |pairs: &BTreeSet<(usize, _)>| pairs.iter().map(|(word, _)| *word).collect::<BTreeSet<usize>>();
    assert_eq!(words(&found), words(&races), "seed {seed}: {races:?}\n{:?}\n{}", program.actors, text());
    !races.is_empty()
}
