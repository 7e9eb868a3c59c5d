//! A program: its text, what it is launched with, and what its results mean.

use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::{Checks, Config, Finding, Memory, Module, run};

use super::catalog::Class;

/// Registers of each class that hold a thread's values.
pub(crate) const POOL: [usize; 4] = [4, 5, 8, 6];
/// Bytes of a thread's registers in the output: 64-bit ones first, predicates last, as the bits of
/// one number.
pub(crate) const RECORD: usize = 96;
/// Bytes that a thread has for itself in each memory.
pub(crate) const OWN: usize = 64;
/// Bytes of the cells that threads share.
pub(crate) const CELLS: usize = 512;
/// Bytes of the input.
pub(crate) const INPUT: usize = 4096;

/// A piece of a body.
#[derive(Clone)]
pub(crate) enum Node {
    /// Instructions, labels and declarations as they are.
    Line(String),
    /// Statements that make sense only together, and can be left out together.
    Unit(Vec<Node>),
}

#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    /// Up to the opening brace.
    pub(crate) head: String,
    /// Declarations and what fills the registers.
    pub(crate) prologue: String,
    pub(crate) body: Vec<Node>,
    /// The instructions that store the registers.
    pub(crate) epilogue: String,
    pub(crate) shape: LaunchShape,
    pub(crate) input: Vec<u8>,
    /// The parameters behind the two addresses.
    pub(crate) scalars: Vec<u8>,
}

impl Program {
    /// The PTX: one entry, `random`.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}{}", self.head, self.prologue);
        write(&self.body, &mut text);
        text + &self.epilogue
    }

    /// Threads of a launch.
    pub(crate) fn threads(&self) -> usize {
        let LaunchShape { grid, block, .. } = self.shape;
        grid.iter().chain(&block).map(|extent| *extent as usize).product()
    }

    /// Bytes of the output: every thread's registers and memory, and the shared cells; zero before
    /// the launch.
    pub(crate) fn output_bytes(&self) -> usize {
        self.threads() * (RECORD + OWN) + CELLS
    }

    /// The parameters of a launch.
    pub(crate) fn params(&self, output: u64, input: u64) -> Vec<u8> {
        [&output.to_le_bytes()[..], &input.to_le_bytes(), &self.scalars].concat()
    }

    /// Returns the output of the software GPU, without a driver between; or the reason why it
    /// stopped.
    pub(crate) fn interpret(&self) -> Result<Vec<u8>, String> {
        self.checked(Checks::NONE).map(|(output, _)| output)
    }

    /// The same, and what the checkers find.
    pub(crate) fn checked(&self, checks: Checks) -> Result<(Vec<u8>, Vec<Finding>), String> {
        let module = Module::parse(&self.text()).map_err(|error| error.to_string())?;
        let kernel = module.kernel("random").ok_or("it has no kernel")?;
        let memory = Memory::new(1 << 24);
        let bytes = self.output_bytes();
        let output = memory.upload(&vec![0_u8; bytes]).map_err(|error| error.to_string())?;
        let input = memory.upload(&self.input).map_err(|error| error.to_string())?;
        // Programs run side by side, so each takes one thread.
        let config = Config { threads: 1, checks, ..Config::default() };
        let params = self.params(output, input);
        let report = run(kernel, &self.shape, &params, &memory, &config).map_err(|stop| stop.to_string())?;
        let output = memory.download(output, bytes).map_err(|error| error.to_string())?;
        Ok((output, report.findings))
    }

    /// Describes the first difference between two outputs, in the program's terms.
    pub(crate) fn difference(&self, found: &[u8], expected: &[u8]) -> Option<String> {
        let at = found.iter().zip(expected).position(|(found, expected)| found != expected)?;
        let (place, begin, bytes) = self.place(at);
        let value = |output: &[u8]| {
            output[begin..begin + bytes].iter().rev().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
        };
        Some(format!("{place} is {}, not {}", value(found), value(expected)))
    }

    /// Returns the owner of the byte at an offset, and where that begins and how long it is.
    fn place(&self, at: usize) -> (String, usize, usize) {
        let threads = self.threads();
        let block: usize = self.shape.block.iter().map(|extent| *extent as usize).product();
        let name = |thread: usize| {
            format!("block {} thread {} (lane {})", thread / block, thread % block, thread % block % 32)
        };
        if at >= threads * (RECORD + OWN) {
            let cell = (at - threads * (RECORD + OWN)) / 8;
            return (format!("shared cell {cell}"), threads * (RECORD + OWN) + cell * 8, 8);
        }
        if at >= threads * RECORD {
            let own = at - threads * RECORD;
            return (format!("{}: byte {} of its memory", name(own / OWN), own % OWN), at, 1);
        }
        let (thread, within) = (at / RECORD, at % RECORD);
        for (register, offset, bytes) in registers() {
            if (offset..offset + bytes).contains(&within) {
                return (format!("{}: {register}", name(thread)), thread * RECORD + offset, bytes);
            }
        }
        (format!("{}: byte {within} of its record", name(thread)), at, 1)
    }

    /// The program without the units that hold an instruction which begins so.
    pub(crate) fn without(mut self, instruction: &str) -> Program {
        prune(&mut self.body, instruction);
        self
    }

    /// The smallest program that still `fails`, found by leaving out one unit after the other.
    pub(crate) fn reduced(mut self, fails: impl Fn(&Program) -> bool) -> Program {
        let mut unit = 0;
        loop {
            let mut smaller = self.clone();
            if !remove(&mut smaller.body, &mut unit.clone()) {
                return self;
            }
            if fails(&smaller) {
                self = smaller;
            } else {
                unit += 1;
            }
        }
    }
}

/// The registers of a record: name, offset, bytes.
pub(crate) fn registers() -> Vec<(String, usize, usize)> {
    let mut registers = Vec::new();
    let mut offset = 0;
    for class in [Class::B64, Class::B32, Class::B16] {
        for number in 0..POOL[class as usize] {
            registers.push((register(class, number), offset, class.bytes()));
            offset += class.bytes();
        }
    }
    registers.push(("predicates".to_owned(), offset, 2));
    registers
}

/// The name of a register that holds a thread's values.
pub(crate) fn register(class: Class, number: usize) -> String {
    format!("%{}{number}", ["p", "h", "r", "d"][class as usize])
}

fn write(nodes: &[Node], text: &mut String) {
    for node in nodes {
        match node {
            Node::Line(line) => *text += &format!("    {line}\n"),
            Node::Unit(inner) => write(inner, text),
        }
    }
}

/// Removes the innermost units that hold a line with an instruction.
fn prune(nodes: &mut Vec<Node>, instruction: &str) {
    let holds =
        |node: &Node| matches!(node, Node::Line(line) if line.split_whitespace().any(|word| word == instruction));
    nodes.retain_mut(|node| match node {
        Node::Line(_) => true,
        Node::Unit(inner) => {
            prune(inner, instruction);
            !inner.iter().any(holds)
        }
    });
}

/// Removes the unit of that number, counted from the outside; whether there was one.
fn remove(nodes: &mut Vec<Node>, unit: &mut usize) -> bool {
    for index in 0..nodes.len() {
        let Node::Unit(inner) = &mut nodes[index] else { continue };
        if *unit == 0 {
            nodes.remove(index);
            return true;
        }
        *unit -= 1;
        if remove(inner, unit) {
            return true;
        }
    }
    false
}
