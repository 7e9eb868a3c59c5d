//! Finds the products and sums that NVIDIA's assembler makes one fused operation of.
//!
//! PTX allows it for `mul`, `add` and `sub` of floating point that name no rounding. The ISA leaves
//! the choice open, so the rules here are those that ptxas 13.5 was seen to follow for sm_90:
//!
//! - Product and sum are of one type, both with `.ftz` or both without it. The product does not
//!   saturate, and has no guard. The sum may have both.
//! - They stand in one piece of code without branches ([`runs`]).
//! - A product is fused where all of its uses are such sums. Moves and changes of sign may stand
//!   between. If it is used in another way too, no sum of it is fused.
//! - A sum of two products takes the one with fewer uses, and of equals the first ([`choose`]).
//!
//! A product stays where it is, because other sums may add it. Sums read its factors, so factors
//! that change before the sum get a copy.

use std::collections::{HashMap, HashSet};

use super::{Draft, Lowering, Result, Slot, Touched};
use crate::gpu::code::{ALWAYS, Ins, NEGATED};
use crate::gpu::isa::{self, Op, Shape};
use crate::gpu::parse::ast::Operand;
use crate::gpu::vocabulary::{File, Kind};

/// The types of which products and sums are fused.
const TYPES: [&str; 6] = ["f32", "f64", "f16", "f16x2", "bf16", "bf16x2"];

/// The type of an operation, and whether it flushes denormals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) name: &'static str,
    pub(super) flushes: bool,
}

/// The part of an instruction in a product or a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Role {
    /// A product that may be fused.
    Product(Number),
    /// A sum or a difference that may be fused.
    Sum { number: Number, subtracts: bool, saturates: bool },
    /// A move.
    Move,
    /// A change of sign.
    Negation(Number),
    /// Code that NVIDIA's assembler makes branches of, or fences that it does not fuse across.
    End,
    /// Another instruction.
    #[default]
    Other,
}

impl Role {
    /// The role of an instruction.
    pub(super) fn of(opcode: &str, operands: &[Operand]) -> Self {
        let (name, modifiers) = opcode.split_once('.').unwrap_or((opcode, ""));
        let parts: Vec<&str> = modifiers.split('.').collect();
        let has = |part: &str| parts.contains(&part);
        let number = || {
            let name = TYPES.into_iter().find(|name| parts.last() == Some(name))?;
            let is_plain = parts[..parts.len() - 1].iter().all(|part| matches!(*part, "ftz" | "sat"));
            is_plain.then_some(Number { name, flushes: has("ftz") })
        };
        let by_constant = matches!(operands.last(), Some(Operand::Integer(_)));
        match name {
            "mul" if !has("sat") => number().map_or(Self::Other, Self::Product),
            "add" | "sub" => number().map_or(Self::Other, |number| Self::Sum {
                number,
                subtracts: name == "sub",
                saturates: has("sat"),
            }),
            "mov" => Self::Move,
            // For a pair of bf16 the assembler makes a product of it.
            "neg" if !has("bf16x2") => number().map_or(Self::Other, Self::Negation),
            "div" | "rem" if has("u64") || has("s64") => Self::End,
            "div" | "rem" if (has("u32") || has("s32")) && !by_constant => Self::End,
            "div" | "rcp" | "sqrt" if ["rn", "rz", "rm", "rp"].into_iter().any(has) => Self::End,
            "rsqrt" if has("f64") => Self::End,
            "fence" if has("acq_rel") || has("sc") => Self::End,
            "membar" | "brkpt" | "pmevent" | "trap" => Self::End,
            _ => Self::Other,
        }
    }
}

/// A product in a register, perhaps with its sign changed.
#[derive(Debug, Clone, Copy)]
struct Value {
    product: usize,
    negated: bool,
    /// True if a guarded instruction may have replaced it.
    replaced: bool,
}

/// A product, and what becomes of it.
#[derive(Debug)]
pub(super) struct Product {
    pub(super) pc: usize,
    number: Number,
    pub(super) factors: [Slot; 2],
    /// How often each factor had been written before.
    versions: [u32; 2],
    /// The sums that it is an operand of.
    sums: usize,
    /// True if its rounded value is used, so that fusing would not save it.
    is_needed: bool,
}

/// An operand of a sum that is a product.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    pub(super) product: usize,
    pub(super) negated: bool,
    /// For each factor, true if it has changed since the product.
    pub(super) stale: [bool; 2],
}

/// A sum of at least a product.
#[derive(Debug)]
pub(super) struct Sum {
    pub(super) pc: usize,
    pub(super) operands: [Slot; 2],
    pub(super) sides: [Option<Side>; 2],
}

/// The products and sums of a piece of code.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) products: Vec<Product>,
    pub(super) sums: Vec<Sum>,
}

/// The operands of an instruction without its modifiers.
fn operands(ins: &Ins) -> Vec<Slot> {
    let Shape::Pure { sources, .. } = isa::FORMS[ins.op as usize].shape else { return Vec::new() };
    let places = sources.iter().zip(ins.s).filter(|(kind, _)| **kind != Kind::Modifiers);
    places.map(|(kind, slot)| (kind.file(), slot)).collect()
}

/// Returns whether an instruction may lead elsewhere than to the next one.
fn branches(ins: &Ins) -> bool {
    let shape = isa::FORMS[ins.op as usize].shape;
    matches!(shape, Shape::Branch | Shape::BranchTable | Shape::Exit | Shape::Return)
}

/// Returns the pieces of code that run from their first instruction to their last: basic blocks,
/// joined where a jump is the only way from one to the next. Pcs count from `first`, and targets
/// from 0.
pub(super) fn runs(code: &[Ins], touched: &[Touched], first: usize, tables: &[Vec<u32>]) -> Vec<Vec<usize>> {
    let jump = |pc: usize| (code[pc].op == Op::Bra).then(|| code[pc].imm as usize - first);
    let mut ways = vec![0_u32; code.len() + 1];
    ways[0] = 2;
    tables.iter().flatten().for_each(|&target| ways[target as usize - first] += 2);
    for (pc, ins) in code.iter().enumerate() {
        jump(pc).into_iter().for_each(|target| ways[target] += 1);
        ways[pc + 1] += u32::from(!branches(ins) || ins.guard != ALWAYS);
    }
    let next = |pc: usize| {
        let ins = &code[pc];
        let is_end = branches(ins) || isa::FORMS[ins.op as usize].shape == Shape::Call || touched[pc].role == Role::End;
        let next = if ins.guard == ALWAYS { jump(pc) } else { None };
        next.or((!is_end).then_some(pc + 1)).filter(|&next| next < code.len() && ways[next] == 1)
    };
    let joined: HashSet<usize> = (0..code.len()).filter_map(next).collect();
    let heads = (0..code.len()).filter(|pc| !joined.contains(pc));
    heads.map(|head| std::iter::successors(Some(head), |&pc| next(pc)).collect()).collect()
}

/// Registers that some run reads before it writes them: their values may come from another run.
fn exposed(runs: &[Vec<usize>], touched: &[Touched]) -> HashSet<Slot> {
    let mut exposed = HashSet::new();
    for run in runs {
        let mut written: HashSet<Slot> = HashSet::new();
        for &pc in run {
            let Touched { reads, writes, conditional, .. } = &touched[pc];
            exposed.extend(reads.iter().filter(|slot| !written.contains(*slot)));
            written.extend(writes.iter().filter(|_| !conditional));
        }
    }
    exposed
}

/// Finds the products of the runs of a piece of code, and the sums that may be fused with them.
pub(super) fn find(code: &[Ins], touched: &[Touched], runs: &[Vec<usize>]) -> Found {
    let exposed = exposed(runs, touched);
    let mut found = Found::default();
    for run in runs {
        let mut walk = Walk { found: &mut found, values: HashMap::new(), versions: HashMap::new() };
        run.iter().for_each(|&pc| walk.step(pc, &code[pc], &touched[pc]));
        let Walk { values, .. } = walk;
        for (_, value) in values.iter().filter(|(slot, _)| exposed.contains(slot)) {
            found.products[value.product].is_needed = true;
        }
    }
    found
}

/// A walk along a run.
struct Walk<'f> {
    found: &'f mut Found,
    /// The registers that hold products.
    values: HashMap<Slot, Value>,
    /// How often registers have been written.
    versions: HashMap<Slot, u32>,
}

impl Walk<'_> {
    fn step(&mut self, pc: usize, ins: &Ins, touched: &Touched) {
        let operands = operands(ins);
        let passed = self.passed(ins, touched, &operands);
        match (touched.role, &*operands) {
            (Role::Sum { number, .. }, &[a, b]) => self.sum(pc, number, [a, b]),
            _ if passed.is_some() => {}
            _ => touched.reads.iter().for_each(|slot| self.need(*slot)),
        }
        let product = match (touched.role, &*operands) {
            (Role::Product(number), &[a, b]) if !touched.conditional => {
                let (factors, versions) = ([a, b], [a, b].map(|slot| self.version(slot)));
                let product = Product { pc, number, factors, versions, sums: 0, is_needed: false };
                self.found.products.push(product);
                Some(Value { product: self.found.products.len() - 1, negated: false, replaced: false })
            }
            _ => passed,
        };
        for slot in &touched.writes {
            *self.versions.entry(*slot).or_default() += 1;
            if touched.conditional {
                self.values.entry(*slot).and_modify(|value| value.replaced = true);
            } else if let Some(product) = product {
                self.values.insert(*slot, product);
            } else {
                self.values.remove(slot);
            }
        }
    }

    fn version(&self, slot: Slot) -> u32 {
        self.versions.get(&slot).copied().unwrap_or(0)
    }

    fn need(&mut self, slot: Slot) {
        if let Some(value) = self.values.get(&slot) {
            self.found.products[value.product].is_needed = true;
        }
    }

    /// The product that a move or a change of sign passes on.
    fn passed(&self, ins: &Ins, touched: &Touched, operands: &[Slot]) -> Option<Value> {
        let is_move = matches!(ins.op, Op::MovB16 | Op::MovB32 | Op::MovB64);
        let [source] = operands else { return None };
        let value = *self.values.get(source).filter(|value| !value.replaced && !touched.conditional)?;
        let product = self.found.products[value.product].number;
        match touched.role {
            Role::Move if is_move => Some(value),
            Role::Negation(Number { name, flushes }) => {
                let keeps = !flushes || name == "f32" && product.flushes;
                (name == product.name && keeps).then_some(Value { negated: !value.negated, ..value })
            }
            _ => None,
        }
    }

    fn sum(&mut self, pc: usize, number: Number, operands: [Slot; 2]) {
        let values = operands.map(|slot| self.values.get(&slot).copied());
        let product = |value: Option<Value>| value.map(|value| value.product);
        let is_twice = values[0].is_some() && product(values[0]) == product(values[1]);
        let sides = values.map(|value| {
            let Value { product, negated, replaced } = value?;
            let Product { number: own, factors, versions, .. } = self.found.products[product];
            if is_twice || replaced || own != number {
                self.found.products[product].is_needed = true;
                return None;
            }
            self.found.products[product].sums += 1;
            let stale = [0, 1].map(|factor| self.version(factors[factor]) != versions[factor]);
            Some(Side { product, negated, stale })
        });
        if sides.iter().any(Option::is_some) {
            self.found.sums.push(Sum { pc, operands, sides });
        }
    }
}

/// Returns, for each sum, which of its operands is fused. Products of a single sum come first. A
/// product that a sum adds to another one is needed by itself.
pub(super) fn choose(Found { products, sums }: &mut Found) -> Vec<Option<usize>> {
    let mut chosen = vec![None; sums.len()];
    for most in [1, usize::MAX] {
        for (sum, chosen) in sums.iter().zip(&mut chosen).filter(|(_, chosen)| chosen.is_none()) {
            let uses = |side: &usize| sum.sides[*side].map_or(usize::MAX, |side| products[side.product].sums);
            let mut order = [0, 1];
            order.sort_by_key(uses);
            let may = |side: &usize| {
                sum.sides[*side].is_some_and(|side| {
                    let Product { sums, is_needed, .. } = products[side.product];
                    sums <= most && !is_needed
                })
            };
            *chosen = order.into_iter().find(may);
            if let Some(other) = chosen.and_then(|side| sum.sides[1 - side]) {
                products[other.product].is_needed = true;
            }
        }
    }
    chosen
}

/// A step to put before the instruction at a pc.
type Step = (usize, Draft);

impl Lowering<'_, '_> {
    /// Fuses products and sums of the part of the code that begins at the pc `first`, and whose
    /// tables begin at `first_table`.
    pub(super) fn contract(&mut self, first: usize, first_table: usize) -> Result<()> {
        let (code, touched) = (&self.code.instructions[first..], &self.touched[first..]);
        let runs = runs(code, touched, first, &self.code.tables[first_table..]);
        let mut found = find(code, touched, &runs);
        let chosen = choose(&mut found);
        let mut steps = Vec::new();
        let mut copies = HashMap::new();
        for (sum, side) in found.sums.iter().zip(chosen).filter_map(|(sum, side)| Some((sum, side?))) {
            let Some(Side { product, negated, stale }) = sum.sides[side] else { continue };
            let Product { pc, factors, .. } = found.products[product];
            let mut fused = factors;
            for factor in [0, 1].into_iter().filter(|factor| stale[*factor]) {
                fused[factor] = match copies.get(&(product, factor)) {
                    Some(copy) => *copy,
                    None => self.step_before(&mut steps, first + pc, None, factors[factor])?,
                };
                copies.insert((product, factor), fused[factor]);
            }
            self.fuse(&mut steps, first + sum.pc, fused, negated, (sum.operands[1 - side], side == 1))?;
        }
        steps.sort_by_key(|(pc, _)| *pc);
        self.insert(first, first_table, steps);
        Ok(())
    }

    /// A register that receives a value before the instruction at a pc: a copy, or by the opcode of
    /// a change of sign the negative.
    fn step_before(&mut self, steps: &mut Vec<Step>, pc: usize, negate: Option<&str>, from: Slot) -> Result<Slot> {
        let to = self.names.allocate(from.0)?;
        let (op, sources) = match negate {
            Some(opcode) => self.pure_step(opcode, &[from])?,
            None => (if from.0 == File::B64 { Op::MovB64 } else { Op::MovB32 }, vec![from]),
        };
        steps.push((pc, Draft::step(op, to, &sources)));
        Ok(to)
    }

    /// The operation of an opcode, and its sources with the modifiers that it takes.
    fn pure_step(&mut self, opcode: &str, operands: &[Slot]) -> Result<(Op, Vec<Slot>)> {
        let form = isa::forms(opcode).find_map(|form| match form.shape {
            Shape::Pure { sources, .. } => Some((form.op, sources)),
            _ => None,
        });
        let (op, kinds) = form.ok_or_else(|| format!("the software GPU has no {opcode}"))?;
        let mut sources = Vec::new();
        if kinds.first() == Some(&Kind::Modifiers) {
            sources.push(self.modifiers(opcode)?);
        }
        sources.extend(operands);
        Ok((op, sources))
    }

    /// Makes a fused operation of the sum at a pc: of two factors, perhaps of their negative
    /// product, and of the other operand, which may be the first one.
    fn fuse(
        &mut self,
        steps: &mut Vec<Step>,
        pc: usize,
        [mut factor, other]: [Slot; 2],
        negated: bool,
        (mut addend, is_first): (Slot, bool),
    ) -> Result<()> {
        let Role::Sum { number: Number { name, flushes }, subtracts, saturates } = self.touched[pc].role else {
            return Ok(());
        };
        let negate = format!("neg.{name}");
        if negated != (subtracts && is_first) {
            factor = self.step_before(steps, pc, Some(&negate), factor)?;
        }
        if subtracts && !is_first {
            addend = self.step_before(steps, pc, Some(&negate), addend)?;
        }
        let (flush, clamp) = (if flushes { ".ftz" } else { "" }, if saturates { ".sat" } else { "" });
        let (op, sources) = self.pure_step(&format!("fma.rn{flush}{clamp}.{name}"), &[factor, other, addend])?;
        let ins = &mut self.code.instructions[pc];
        let guard = (File::Pred, ins.guard & !NEGATED);
        (ins.op, ins.work) = (op, isa::FORMS[op as usize].work(ins.access));
        ins.s.iter_mut().zip(&sources).for_each(|(place, source)| *place = source.1);
        self.touched[pc].reads = sources.into_iter().chain([guard]).collect();
        Ok(())
    }

    /// Puts steps, in the order of their pcs, into the part of the code that begins at `first`.
    fn insert(&mut self, first: usize, first_table: usize, steps: Vec<Step>) {
        if steps.is_empty() {
            return;
        }
        let pcs: Vec<usize> = steps.iter().map(|(pc, _)| *pc).collect();
        // The new pcs of an instruction, and of the first step before it.
        let moved = |pc: usize| pc + pcs.partition_point(|&before| before <= pc);
        let target = |pc: usize| pc + pcs.partition_point(|&before| before < pc);
        for ins in self.code.instructions[first..].iter_mut().filter(|ins| ins.op == Op::Bra) {
            ins.imm = target(ins.imm as usize) as i32;
        }
        self.code.tables[first_table..].iter_mut().flatten().for_each(|to| *to = target(*to as usize) as u32);
        for site in self.code.sites.iter_mut().filter(|site| site.pc as usize >= first) {
            site.pc = moved(site.pc as usize) as u32;
        }
        let code = self.code.instructions.split_off(first);
        let (touched, origins) = (self.touched.split_off(first), self.code.origins.split_off(first));
        let (mut steps, source) = (steps.into_iter().peekable(), self.source);
        for (pc, ((mut ins, touched), origin)) in (first..).zip(code.into_iter().zip(touched).zip(origins)) {
            while let Some((_, draft)) = steps.next_if(|(before, _)| *before == pc) {
                let begins = std::mem::take(&mut ins.first);
                self.source = origin.source;
                self.emit(draft, ins.guard, origin.span);
                self.code.instructions.last_mut().into_iter().for_each(|step| {
                    (step.first, step.site) = (begins, ins.site);
                });
            }
            self.code.instructions.push(ins);
            self.touched.push(touched);
            self.code.origins.push(origin);
        }
        self.source = source;
    }
}
