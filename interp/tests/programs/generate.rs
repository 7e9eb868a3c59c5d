//! From a seed to a program: registers, statements and what may stand where.
//!
//! Every thread has a pool of registers that hold its values. A statement reads and writes some of
//! them, and all are stored at the end, so that nothing is computed in vain. A statement takes
//! fresh registers for its own needs (addresses, counters). To add a kind of statement, write a
//! function that takes the generator and list it in [`STATEMENTS`].

use warpstride_interp::launch_shape::LaunchShape;

use super::catalog::{Catalog, Class};
use super::program::{INPUT, Node, OWN, POOL, Program, RECORD, register, registers};
use super::random::{BRAIN, DOUBLE, Format, HALF, Random, SINGLE};
use super::{atomic, control, memory, values, warp};

/// A kind of statement: how often it is drawn, and the function that writes one, or nothing where
/// it may not stand.
type Statement = (usize, fn(&mut Generator));

const STATEMENTS: &[Statement] = &[
    (60, values::compute),
    (3, values::special),
    (3, values::parameter),
    (2, values::halves),
    (2, values::carries),
    (6, memory::read_input),
    (10, memory::own),
    (3, memory::exchange),
    (2, memory::fence),
    (7, control::branch),
    (5, control::repeat),
    (3, control::jumps),
    (1, control::end),
    (8, warp::shuffle),
    (8, warp::vote),
    (5, atomic::own),
    (5, atomic::shared),
    (3, atomic::gathered),
];

/// The types of the parameters, by number.
pub(crate) const SCALARS: [&str; 14] =
    ["u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64"];
/// Bytes of the parameter that is a struct.
pub(crate) const STRUCT: usize = 32;

/// The lanes that run where the next statement stands.
#[derive(Clone, PartialEq)]
pub(crate) enum Lanes {
    /// All that there are, of whole warps.
    All,
    /// Those of the mask in this register.
    Masked(String),
    /// The lanes are not known.
    Unknown,
}

pub(crate) struct Generator<'c> {
    pub(crate) random: Random,
    pub(crate) catalog: &'c Catalog,
    pub(crate) nodes: Vec<Node>,
    pub(crate) shape: LaunchShape,
    /// Statements that may still be written.
    pub(crate) budget: usize,
    /// Conditions and loops around.
    pub(crate) depth: usize,
    pub(crate) lanes: Lanes,
    /// Every thread of the block that has not ended comes here, and together.
    pub(crate) together: bool,
    /// The labels that a thread may go to: out of the innermost loops, or to the end.
    pub(crate) ways_out: Vec<String>,
    /// True if a thread may end here.
    pub(crate) may_end: bool,
    /// Some threads may have ended; it is not known which.
    pub(crate) some_ended: bool,
    /// Some threads may have gone to the epilogue, where they wait for no barrier.
    pub(crate) some_left: bool,
    /// Cells that threads share, by number: what is done there, and where counting there wraps
    /// around.
    pub(crate) cells: Vec<(String, usize)>,
    fresh: [usize; 4],
    labels: usize,
}

/// The program of a seed.
pub(crate) fn draw(seed: u64, catalog: &Catalog) -> Program {
    let mut random = Random::new(seed);
    let shape = shape(&mut random);
    let whole = shape.block.iter().product::<u32>() % 32 == 0;
    let lanes = if whole { Lanes::All } else { Lanes::Masked("%members".to_owned()) };
    let budget = 20 + random.below(60);
    let mut generator = Generator {
        random,
        catalog,
        nodes: Vec::new(),
        shape,
        budget,
        depth: 0,
        lanes,
        together: true,
        ways_out: Vec::new(),
        may_end: true,
        some_ended: false,
        some_left: false,
        cells: Vec::new(),
        fresh: [0; 4],
        labels: 0,
    };
    while generator.budget > 0 {
        generator.statement();
    }
    generator.finish(seed)
}

/// Up to 256 threads in blocks of every sort: whole warps, parts of one, several axes.
fn shape(random: &mut Random) -> LaunchShape {
    let blocks =
        [[32, 1, 1], [32, 1, 1], [64, 1, 1], [128, 1, 1], [8, 4, 2], [16, 3, 2], [48, 1, 1], [1, 1, 1], [33, 1, 1]];
    let block = *random.pick(&blocks);
    let grid = if block[0] == 128 { [2, 1, 1] } else { *random.pick(&[[1, 1, 1], [3, 1, 1], [1, 2, 1]]) };
    LaunchShape { grid, block, dynamic_shared: 0 }
}

impl Generator<'_> {
    /// Writes a statement.
    pub(crate) fn statement(&mut self) {
        self.budget = self.budget.saturating_sub(1);
        let mut draw = self.random.below(STATEMENTS.iter().map(|(weight, _)| weight).sum());
        let chosen = STATEMENTS.iter().find(|(weight, _)| match draw.checked_sub(*weight) {
            Some(rest) => {
                draw = rest;
                false
            }
            None => true,
        });
        if let Some((_, write)) = chosen {
            self.unit(write);
        }
    }

    /// Writes up to `most` statements, as long as there may be more.
    pub(crate) fn statements(&mut self, most: usize) {
        for _ in 0..self.random.below(most + 1) {
            if self.budget > 0 {
                self.statement();
            }
        }
    }

    /// Makes one unit of the statements that `write` writes.
    pub(crate) fn unit(&mut self, write: impl FnOnce(&mut Self)) {
        let outer = std::mem::take(&mut self.nodes);
        write(self);
        let inner = std::mem::replace(&mut self.nodes, outer);
        if !inner.is_empty() {
            self.nodes.push(Node::Unit(inner));
        }
    }

    pub(crate) fn line(&mut self, line: impl Into<String>) {
        self.nodes.push(Node::Line(line.into()));
    }

    /// A register that nothing else uses.
    pub(crate) fn fresh(&mut self, class: Class) -> String {
        let number = &mut self.fresh[class as usize];
        *number += 1;
        format!("%t{}{}", ["p", "h", "r", "d"][class as usize], *number - 1)
    }

    pub(crate) fn label(&mut self) -> String {
        self.labels += 1;
        format!("$L{}", self.labels)
    }

    /// A register that holds a value.
    pub(crate) fn register(&mut self, class: Class) -> String {
        register(class, self.random.below(POOL[class as usize]))
    }

    /// So many different registers.
    pub(crate) fn distinct(&mut self, class: Class, count: usize) -> Vec<String> {
        let first = self.random.below(POOL[class as usize]);
        (0..count).map(|index| register(class, (first + index) % POOL[class as usize])).collect()
    }

    /// A guard, now and then, with the space behind it.
    pub(crate) fn guard(&mut self) -> String {
        if !self.random.once_in(8) {
            return String::new();
        }
        let not = if self.random.once_in(2) { "!" } else { "" };
        format!("@{not}{} ", self.register(Class::Pred))
    }

    /// Threads of a block.
    pub(crate) fn block_threads(&self) -> u32 {
        self.shape.block.iter().product()
    }

    fn finish(mut self, seed: u64) -> Program {
        let (mut input, mut scalars) = (Vec::new(), Vec::new());
        while input.len() < INPUT {
            input.extend(edge_bytes(&mut self.random));
        }
        for name in SCALARS {
            let bytes = super::catalog::bits(name) as usize / 8;
            scalars.resize(scalars.len().next_multiple_of(bytes), 0);
            scalars.extend(&edge_bytes(&mut self.random)[..bytes]);
        }
        scalars.resize(scalars.len().next_multiple_of(16), 0);
        (0..STRUCT / 8).for_each(|_| scalars.extend(edge_bytes(&mut self.random)));
        let (head, prologue) = (self.head(), self.prologue());
        let epilogue = epilogue();
        Program { seed, head, prologue, body: self.nodes, epilogue, shape: self.shape, input, scalars }
    }

    fn head(&self) -> String {
        let scalars: Vec<String> =
            SCALARS.iter().enumerate().map(|(number, name)| format!(".param .{name} scalar{number}")).collect();
        format!(
            "{}\n.visible .entry random(\n    .param .u64 output, .param .u64 input,\n    {},\n    .param .align 16 .b8 \
             packed[{STRUCT}]\n)\n{{\n",
            directives(&self.catalog.target),
            scalars.join(", ")
        )
    }

    /// Declarations; the thread's number and the place of its memory; its first values.
    fn prologue(&mut self) -> String {
        let (block, threads) = (self.block_threads(), self.shape.block.iter().chain(&self.shape.grid).product::<u32>());
        let (records, own) = (threads as usize * RECORD, threads as usize * OWN);
        let mut lines: Vec<String> = Class::ALL
            .iter()
            .map(|class| {
                let (kind, letter) =
                    (["pred", "b16", "b32", "b64"][*class as usize], ["p", "h", "r", "d"][*class as usize]);
                let (pool, fresh) = (POOL[*class as usize], self.fresh[*class as usize].max(1));
                format!(".reg .{kind} %{letter}<{pool}>, %t{letter}<{fresh}>;")
            })
            .collect();
        lines.push(
            ".reg .b32 %thread, %index, %members, %word, %tile, %swap; .reg .pred %last; .reg .b16 %bits, %bit;".into(),
        );
        lines.push(".reg .b64 %input, %record, %own, %cells, %depot;".into());
        lines.push(format!(".shared .align 16 .b8 tile[{}], swap[{}];", block as usize * OWN, block * 16));
        lines.push(format!(".local .align 16 .b8 depot[{OWN}];"));
        // Row by row: x runs fastest.
        for (into, steps) in [
            ("%thread", ["%tid.z", "%ntid.y", "%tid.y", "%ntid.x", "%tid.x"]),
            ("%index", ["%ctaid.z", "%nctaid.y", "%ctaid.y", "%nctaid.x", "%ctaid.x"]),
        ] {
            lines.push(format!("mov.u32 {into}, {};", steps[0]));
            for step in steps[1..].chunks(2) {
                lines.push(format!("mov.u32 %word, {}; mul.lo.u32 {into}, {into}, %word;", step[0]));
                lines.push(format!("mov.u32 %word, {}; add.u32 {into}, {into}, %word;", step[1]));
            }
        }
        lines.push(format!("mad.lo.u32 %index, %index, {block}, %thread;"));
        // The lanes of the block's last warp, and all of the others.
        lines.push(format!("setp.ge.u32 %last, %thread, {}; mov.u32 %members, -1;", block / 32 * 32));
        lines.push(format!("@%last mov.u32 %members, {:#x};", u32::MAX >> ((32 - block % 32) % 32)));
        lines.push("ld.param.u64 %record, [output]; ld.param.u64 %input, [input];".into());
        lines.push("cvta.to.global.u64 %record, %record; cvta.to.global.u64 %input, %input;".into());
        lines.push(format!("mad.wide.u32 %own, %index, {OWN}, %record; add.s64 %own, %own, {records};"));
        lines.push(format!(
            "add.s64 %cells, %record, {}; mad.wide.u32 %record, %index, {RECORD}, %record;",
            records + own
        ));
        lines.push(format!("mov.u32 %tile, tile; mad.lo.u32 %tile, %thread, {OWN}, %tile;"));
        lines.push("mov.u32 %swap, swap; mad.lo.u32 %swap, %thread, 16, %swap; mov.u64 %depot, depot;".into());
        for class in [Class::B64, Class::B32, Class::B16] {
            (0..POOL[class as usize]).for_each(|number| lines.push(self.first_value(class, number)));
        }
        for number in 0..POOL[0] {
            lines.push(format!("and.b32 %word, %r{number}, {}; setp.ne.u32 %p{number}, %word, 0;", 1 << number));
        }
        for at in (0..OWN).step_by(8) {
            let value = register(Class::B64, at / 8 % POOL[3]);
            lines.push(format!("st.shared.b64 [%tile+{at}], {value}; st.local.b64 [%depot+{at}], {value};"));
        }
        lines.push("st.shared.v2.b64 [%swap], {%d0, %d1}; bar.sync 0;".into());
        lines.iter().fold(String::new(), |text, line| text + "    " + line + "\n")
    }

    /// Reads a register's first value, another in every thread.
    fn first_value(&mut self, class: Class, number: usize) -> String {
        let (step, start) = (2 * self.random.below(64) + 1, self.random.below(512));
        let name = register(class, number);
        format!(
            "mad.lo.u32 %word, %index, {step}, {start}; and.b32 %word, %word, {}; mad.wide.u32 %td0, %word, 8, %input; \
             ld.global.b{} {name}, [%td0];",
            INPUT / 8 - 1,
            8 * class.bytes(),
        )
    }
}

/// Returns the beginning of a module.
pub(crate) fn directives(target: &str) -> String {
    format!(".version 8.3\n.target {target}\n.address_size 64\n")
}

/// Stores the registers.
fn epilogue() -> String {
    let mut text = String::from("$end:\n    mov.u16 %bits, 0;\n");
    for number in 0..POOL[0] {
        text += &format!("    selp.b16 %bit, {}, 0, %p{number}; or.b16 %bits, %bits, %bit;\n", 1 << number);
    }
    for (name, offset, bytes) in registers() {
        let name = if name == "predicates" { "%bits".to_owned() } else { name };
        text += &format!("    st.global.b{} [%record+{offset}], {name};\n", 8 * bytes);
    }
    text + "    ret;\n}\n"
}

/// Eight bytes: values of one format or integers of one width, of those that arithmetic goes wrong
/// on.
fn edge_bytes(random: &mut Random) -> [u8; 8] {
    let several = |random: &mut Random, bits: u32, value: &dyn Fn(&mut Random) -> u64| {
        (0..64 / bits).fold(0, |whole, at| whole | value(random) << (at * bits)).to_le_bytes()
    };
    let format = |random: &mut Random, bits: u32, format: Format| several(random, bits, &|random| random.float(format));
    match random.below(8) {
        0 => format(random, 64, DOUBLE),
        1..=2 => format(random, 32, SINGLE),
        3 => format(random, 16, HALF),
        4 => format(random, 16, BRAIN),
        5 => several(random, 64, &|random| random.integer(64)),
        6 => several(random, 32, &|random| random.integer(32)),
        _ => several(random, 16, &|random| random.integer(16)),
    }
}
