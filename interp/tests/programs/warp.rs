//! Statements between the lanes of a warp, where it is known which of them are there.

use super::catalog::{Class, bits, last_type};
use super::generate::{Generator, Lanes};

impl Generator<'_> {
    /// The mask of the lanes that run here, as an operand.
    pub(crate) fn members(&self) -> Option<String> {
        match &self.lanes {
            Lanes::All => Some("0xffffffff".to_owned()),
            Lanes::Masked(mask) => Some(mask.clone()),
            Lanes::Unknown => None,
        }
    }
}

/// A lane's value goes to others.
pub(crate) fn shuffle(g: &mut Generator) {
    let Some(members) = g.members() else { return };
    let Some(opcode) = g.catalog.other(&mut g.random, "shfl.sync.", |_| true) else { return };
    let (target, value, inside) = (g.register(Class::B32), g.register(Class::B32), g.register(Class::Pred));
    let target = if g.random.once_in(2) { format!("{target}|{inside}") } else { target };
    if g.lanes != Lanes::All {
        // Only members may be read: the first of them, whatever the mode is.
        let (first, mode) = (g.fresh(Class::B32), "shfl.sync.idx.b32");
        emit!(g, "brev.b32 {first}, {members}; clz.b32 {first}, {first};");
        return emit!(g, "{mode} {target}, {value}, {first}, 31, {members};");
    }
    let by = if g.random.once_in(2) { g.register(Class::B32) } else { g.random.below(34).to_string() };
    let clamp = if opcode.contains(".up") { 0 } else { 31 };
    let segments = [0, 16, 24, 28, 30].map(|mask: usize| (mask << 8 | clamp).to_string());
    let segment = match g.random.below(4) {
        0 => g.register(Class::B32),
        1 => g.random.below(1 << 13).to_string(),
        _ => g.random.pick(&segments).clone(),
    };
    emit!(g, "{opcode} {target}, {value}, {by}, {segment}, {members};");
}

/// Lanes vote, find their like, or are summed up.
pub(crate) fn vote(g: &mut Generator) {
    let Some(members) = g.members() else { return };
    let root =
        *g.random.pick(&["vote.sync.", "vote.sync.", "match.", "match.", "redux.", "redux.", "bar.warp", "activemask"]);
    let Some(opcode) = g.catalog.other(&mut g.random, root, |_| true) else { return };
    let (target, predicate) = (g.register(Class::B32), g.register(Class::Pred));
    let not = if g.random.once_in(2) { "!" } else { "" };
    let voted = g.register(Class::Pred);
    match root {
        "vote.sync." if opcode.contains("ballot") => emit!(g, "{opcode} {target}, {not}{voted}, {members};"),
        "vote.sync." => emit!(g, "{opcode} {predicate}, {not}{voted}, {members};"),
        "match." | "redux." => {
            // Few different values, so that some match.
            let wide = bits(last_type(&opcode)) == 64;
            let class = if wide { Class::B64 } else { Class::B32 };
            let (few, value, width) = (g.fresh(class), g.register(class), 8 * class.bytes());
            let shift = if g.random.once_in(4) { 0 } else { width - 2 };
            emit!(g, "shr.u{width} {few}, {value}, {shift};");
            let both = opcode.contains(".all.") && g.random.once_in(2);
            let target = if both { format!("{target}|{predicate}") } else { target };
            emit!(g, "{opcode} {target}, {few}, {members};");
        }
        "bar.warp" => emit!(g, "{opcode} {members};"),
        _ => emit!(g, "bar.warp.sync {members}; {opcode} {target};"),
    }
}
