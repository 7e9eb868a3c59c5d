//! Statements that change memory atomically: a thread's own, where the old value is known, or cells
//! that threads share, by operations that give the same in any order and whose old values are not
//! kept.

use super::catalog::{Class, bits, last_type};
use super::generate::Generator;
use super::memory::{barrier, own_address};
use super::program::CELLS;

/// Operations on integers that may be done in any order.
const UNORDERED: [&str; 8] = ["add", "min", "max", "and", "or", "xor", "inc", "dec"];
/// Bytes of the cells of one operation.
const CELL: usize = 32;

/// Returns the operation of an opcode: `add`.
fn operation(opcode: &str) -> &str {
    let known = |part: &&str| UNORDERED.contains(part) || ["exch", "cas"].contains(part);
    opcode.split('.').find(known).unwrap_or_default()
}

/// Returns whether an atomic may be spelled so: every modifier once, and of a reduction no order
/// that only a load has.
fn is_legal(opcode: &str) -> bool {
    let once = |names: &[&str]| opcode.split('.').filter(|part| names.contains(part)).count() <= 1;
    let orders = ["relaxed", "acquire", "release", "acq_rel"];
    let acquires = ["acquire", "acq_rel"].iter().any(|order| opcode.split('.').any(|part| part == *order));
    once(&orders)
        && once(&["cta", "cluster", "gpu", "sys"])
        && once(&["global", "shared", "shared::cta"])
        && !(opcode.starts_with("red.") && acquires)
        && !operation(opcode).is_empty()
        && !opcode.contains(".v2")
        && !opcode.contains(".v4")
}

fn is_unordered(opcode: &str) -> bool {
    // Sums of floats depend on their order.
    UNORDERED.contains(&operation(opcode)) && !last_type(opcode).contains('f')
}

/// The state space that an opcode names.
fn space(opcode: &str) -> Option<&'static str> {
    ["global", "shared"].into_iter().find(|space| opcode.contains(&format!(".{space}")))
}

/// The operands behind the address.
fn operands(g: &mut Generator, opcode: &str) -> String {
    let class = Class::of(last_type(opcode));
    let count = if operation(opcode) == "cas" { 2 } else { 1 };
    let operands: Vec<String> = (0..count).map(|_| g.register(class)).collect();
    operands.join(", ")
}

/// On the thread's own memory.
pub(crate) fn own(g: &mut Generator) {
    let root = *g.random.pick(&["atom.", "atom.", "red."]);
    let Some(opcode) = g.catalog.other(&mut g.random, root, is_legal) else { return };
    let kind = last_type(&opcode);
    let space = space(&opcode);
    let place = space.unwrap_or(if g.random.once_in(2) { "global" } else { "shared" });
    let bytes = bits(kind) as usize / 8;
    let address = own_address(g, place, space.is_none(), bytes);
    let (target, operands, guard) = (g.register(Class::of(kind)), operands(g, &opcode), g.guard());
    // A sum of fractions may be no number, of which memory would keep the bits.
    let fraction = kind.starts_with(['f']) || kind.starts_with("bf");
    match root {
        _ if fraction => {}
        "red." => emit!(g, "{guard}{opcode} {address}, {operands};"),
        _ => emit!(g, "{guard}{opcode} {target}, {address}, {operands};"),
    }
}

/// On cells that all threads share.
pub(crate) fn shared(g: &mut Generator) {
    let global = |opcode: &str| is_legal(opcode) && is_unordered(opcode) && !opcode.contains(".shared");
    let root = *g.random.pick(&["atom.", "red."]);
    let Some(opcode) = g.catalog.other(&mut g.random, root, global) else { return };
    let kind = last_type(&opcode).to_owned();
    let what = format!("{} {kind}", operation(&opcode));
    // Wrapping around is the same in any order where all wrap at the same value.
    let wraps = ["inc", "dec"].contains(&operation(&opcode));
    let number = match g.cells.iter().position(|(other, _)| *other == what) {
        Some(number) => number,
        None if (g.cells.len() + 1) * CELL > CELLS => return,
        None => {
            let bound = g.random.below(40);
            g.cells.push((what, bound));
            g.cells.len() - 1
        }
    };
    let operand = if wraps { g.cells[number].1.to_string() } else { g.register(Class::of(&kind)) };
    let (cell, from, address) = (g.fresh(Class::B32), g.register(Class::B32), g.fresh(Class::B64));
    emit!(g, "and.b32 {cell}, {from}, 3; mad.wide.u32 {address}, {cell}, 8, %cells;");
    if !opcode.contains(".global") {
        emit!(g, "cvta.global.u64 {address}, {address};");
    }
    let guard = g.guard();
    let place = format!("[{address}+{}]", number * CELL);
    if root == "red." {
        return emit!(g, "{guard}{opcode} {place}, {operand};");
    }
    let unused = g.fresh(Class::of(&kind));
    emit!(g, "{guard}{opcode} {unused}, {place}, {operand};");
}

/// On the first cells of the block's shared memory, which all read afterwards.
pub(crate) fn gathered(g: &mut Generator) {
    if !g.together || g.some_left {
        return;
    }
    let near = |opcode: &str| is_legal(opcode) && is_unordered(opcode) && opcode.contains(".shared");
    let Some(opcode) = g.catalog.other(&mut g.random, "atom.", near) else { return };
    let kind = last_type(&opcode).to_owned();
    let (class, width) = (Class::of(&kind), bits(&kind));
    let (value, result, bound) = (g.register(class), g.register(class), g.random.below(40));
    let operand = if ["inc", "dec"].contains(&operation(&opcode)) { bound.to_string() } else { g.register(class) };
    let (cell, from, address, unused) =
        (g.fresh(Class::B32), g.register(Class::B32), g.fresh(Class::B32), g.fresh(class));
    let cells = 4.min(g.block_threads());
    emit!(g, "st.shared.b{width} [%swap], {value}; {}", barrier(g));
    emit!(g, "rem.u32 {cell}, {from}, {cells}; mov.u32 {address}, swap; mad.lo.u32 {address}, {cell}, 16, {address};");
    emit!(g, "{opcode} {unused}, [{address}], {operand}; {}", barrier(g));
    emit!(g, "ld.shared.b{width} {result}, [{address}]; {}", barrier(g));
}
