//! Statements of control: conditions, loops, jumps and ends, by conditions that lanes agree on or
//! not.

use super::catalog::Class;
use super::generate::{Generator, Lanes};

/// Conditions and loops within each other.
const DEPTH: usize = 3;

/// A predicate of the thread's values, or one that every thread of the block agrees on.
fn condition(g: &mut Generator, uniform: bool) -> String {
    if !uniform {
        return g.register(Class::Pred);
    }
    let (predicate, value) = (g.fresh(Class::Pred), g.fresh(Class::B32));
    let bit = g.random.below(16);
    emit!(
        g,
        "ld.param.u32 {value}, [packed+{}]; and.b32 {value}, {value}, {}; setp.ne.u32 {predicate}, {value}, 0;",
        4 * g.random.below(8),
        1_u32 << bit
    );
    predicate
}

/// Writes statements whose lanes are those that `lanes` says; the state behind is as before, but
/// for threads that have ended.
fn within(g: &mut Generator, lanes: Lanes, together: bool, write: impl FnOnce(&mut Generator)) {
    // The other known lanes would wait for a thread that ends.
    let may_end = g.may_end && (lanes == Lanes::Unknown || together);
    let outer = (g.lanes.clone(), g.together, g.may_end);
    (g.lanes, g.together, g.may_end) = (lanes, g.together && together, may_end);
    g.depth += 1;
    write(g);
    g.depth -= 1;
    (g.lanes, g.together, g.may_end) = outer;
    if g.some_ended {
        g.lanes = Lanes::Unknown;
    }
}

/// The lanes of `lanes` for which a predicate holds, in a register; or unknown, where the table has
/// no votes, and now and then, as more may be done then.
fn those_with(g: &mut Generator, predicate: &str, negated: bool) -> Lanes {
    let Some(members) = g.members() else { return Lanes::Unknown };
    if !g.catalog.has("vote.sync.ballot.b32") {
        return Lanes::Unknown;
    }
    let mask = g.fresh(Class::B32);
    let not = if negated { "!" } else { "" };
    emit!(g, "vote.sync.ballot.b32 {mask}, {not}{predicate}, {members};");
    Lanes::Masked(mask)
}

/// `if` and `else`.
pub(crate) fn branch(g: &mut Generator) {
    if g.depth >= DEPTH {
        return;
    }
    let (uniform, known) = (g.random.once_in(4), g.random.once_in(2));
    let predicate = condition(g, uniform);
    let sides = if uniform {
        [g.lanes.clone(), g.lanes.clone()]
    } else if known {
        [those_with(g, &predicate, false), those_with(g, &predicate, true)]
    } else {
        [Lanes::Unknown, Lanes::Unknown]
    };
    let [yes, no] = sides;
    let (other, end) = (g.label(), g.label());
    let not = if g.random.once_in(2) { "!" } else { "" };
    emit!(g, "@{not}{predicate} bra {other};");
    let (first, second) = if not.is_empty() { (no, yes) } else { (yes, no) };
    within(g, first, uniform, |g| g.statements(5));
    if g.random.once_in(3) {
        emit!(g, "{other}:");
        return;
    }
    let suffix = if g.random.once_in(2) { ".uni" } else { "" };
    emit!(g, "bra{suffix} {end};");
    emit!(g, "{other}:");
    within(g, second, uniform, |g| g.statements(5));
    emit!(g, "{end}:");
}

/// A loop of few rounds: as many for all threads, or for each as many as a value of it says; with
/// ways out, of which one may lead further than the other.
pub(crate) fn repeat(g: &mut Generator) {
    if g.depth >= DEPTH {
        return;
    }
    let (head, end, after) = (g.label(), g.label(), g.label());
    let (count, done) = (g.fresh(Class::B32), g.fresh(Class::Pred));
    let uniform = g.random.once_in(3);
    if uniform {
        emit!(g, "mov.u32 {count}, {};", 1 + g.random.below(3));
    } else {
        let value = g.register(Class::B32);
        emit!(g, "and.b32 {count}, {value}, 3;");
    }
    let known = g.random.once_in(2) && g.catalog.has("vote.sync.ballot.b32");
    let lanes = match (uniform, known, g.members()) {
        (true, true, _) => g.lanes.clone(),
        (false, true, Some(members)) => {
            let mask = g.fresh(Class::B32);
            emit!(g, "mov.b32 {mask}, {members};");
            Lanes::Masked(mask)
        }
        _ => Lanes::Unknown,
    };
    let ways_out = lanes == Lanes::Unknown;
    emit!(g, "{head}: setp.eq.u32 {done}, {count}, 0;");
    if let (false, Lanes::Masked(mask)) = (uniform, &lanes) {
        emit!(g, "vote.sync.ballot.b32 {mask}, !{done}, {mask};");
    }
    emit!(g, "@{done} bra {end};");
    let together = uniform && !ways_out;
    let outer = std::mem::take(&mut g.ways_out);
    if ways_out {
        g.ways_out = outer.iter().cloned().chain([end.clone(), after.clone()]).collect();
    }
    within(g, lanes, together, |g| {
        // Another round may come behind an end or a way out.
        g.may_end &= !together;
        g.statements(5);
    });
    g.ways_out = outer;
    emit!(g, "sub.u32 {count}, {count}, 1; bra {head};");
    emit!(g, "{end}:");
    if ways_out && g.random.once_in(2) {
        within(g, Lanes::Unknown, false, |g| g.statements(2));
    }
    emit!(g, "{after}:");
}

/// Blocks in a row, each perhaps with a jump to any later one: no structure but that it ends.
pub(crate) fn jumps(g: &mut Generator) {
    if g.depth >= DEPTH {
        return;
    }
    let labels: Vec<String> = (0..3 + g.random.below(4)).map(|_| g.label()).collect();
    within(g, Lanes::Unknown, false, |g| {
        for (index, label) in labels.iter().enumerate() {
            if index + 1 < labels.len() && g.random.below(4) > 0 {
                let to = index + g.random.below(labels.len() - index);
                let (predicate, not) = (g.register(Class::Pred), if g.random.once_in(2) { "!" } else { "" });
                emit!(g, "@{not}{predicate} bra {};", labels[to]);
            }
            g.statements(2);
            emit!(g, "{label}:");
        }
    });
}

/// A thread leaves a loop, ends, or goes to the end.
pub(crate) fn end(g: &mut Generator) {
    let predicate = g.register(Class::Pred);
    if !g.ways_out.is_empty() && g.random.below(4) > 0 {
        let out = g.random.pick(&g.ways_out).clone();
        return emit!(g, "@{predicate} bra {out};");
    }
    if !g.may_end {
        return;
    }
    if g.random.once_in(4) {
        g.some_left = true;
        (g.some_ended, g.lanes) = (true, Lanes::Unknown);
        return emit!(g, "@{predicate} bra $end;");
    }
    // A thread that ends stops being a member; that can be told where all members are at hand.
    match if g.depth == 0 { those_with(g, &predicate, true) } else { Lanes::Unknown } {
        Lanes::Unknown => (g.some_ended, g.lanes) = (true, Lanes::Unknown),
        known => g.lanes = known,
    }
    let opcode = *g.random.pick(&["ret", "exit"]);
    emit!(g, "@{predicate} {opcode};");
}
