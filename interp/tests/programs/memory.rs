//! Statements that load and store, without races: the input is only read, every thread has memory
//! of its own in every space, and what threads hand each other they hand over between barriers.

use super::catalog::{Class, bits, last_type};
use super::generate::Generator;
use super::program::{INPUT, OWN};

/// Returns whether a load or store may be spelled so: what an assembler takes of all that the
/// table's lines spell.
pub(crate) fn is_legal(opcode: &str) -> bool {
    let parts: Vec<&str> = opcode.split('.').collect();
    let has = |names: &[&str]| parts.iter().any(|part| names.contains(part));
    let ordered = has(&["volatile", "relaxed", "acquire", "release"]);
    let caches = parts.iter().filter(|part| ["ca", "cg", "cs", "lu", "cv", "wb", "wt"].contains(part)).count();
    let evicts = parts.iter().filter(|part| part.starts_with("L1::")).count();
    let other_way = if parts[0] == "ld" { has(&["wb", "wt"]) } else { has(&["ca", "lu", "cv"]) };
    ["ld", "st"].contains(&parts[0])
        && bytes(opcode) <= 16
        // A value that is loaded as a float and stored in part is not always the bits that were
        // loaded, seen in driver 580.
        && !(parts[0] == "ld" && has(&["f32", "f64"]))
        // A kernel's parameters do not belong to a function.
        && !opcode.contains("::func")
        && caches + evicts <= 1
        && (caches == 0 || !ordered)
        && (evicts == 0 || !has(&["volatile", "local"]))
        && !(ordered && has(&["local"]))
        && !other_way
        && (!has(&["nc"]) || !ordered && !has(&["weak", "lu", "cv"]) && is_in_order(&parts))
}

/// Returns whether of a load that is not coherent the operator stands before `nc`, and the priority
/// behind it.
fn is_in_order(parts: &[&str]) -> bool {
    let (before, behind) = parts.split_at(parts.iter().position(|part| *part == "nc").unwrap_or(0));
    !behind.iter().any(|part| ["ca", "cg", "cs"].contains(part)) && !before.iter().any(|part| part.starts_with("L1::"))
}

/// Bytes that an opcode moves for a lane.
pub(crate) fn bytes(opcode: &str) -> usize {
    count(opcode) * bits(last_type(opcode)) as usize / 8
}

/// Elements that it moves.
fn count(opcode: &str) -> usize {
    opcode.split('.').find_map(|part| part.strip_prefix('v')?.parse().ok()).unwrap_or(1)
}

/// The registers that an opcode moves: as wide as its type, or wider if that is not a fraction.
pub(crate) fn data(g: &mut Generator, opcode: &str) -> String {
    let kind = last_type(opcode);
    let natural = Class::of(kind);
    let wider = Class::ALL.iter().copied().filter(|class| *class as usize >= natural as usize);
    let wider: Vec<Class> = if kind.starts_with('f') { vec![natural] } else { wider.collect() };
    let class = if g.random.once_in(3) { *g.random.pick(&wider) } else { natural };
    let registers = g.distinct(class, count(opcode));
    if registers.len() == 1 { registers[0].clone() } else { format!("{{{}}}", registers.join(", ")) }
}

/// Any element of the input, by any kind of load from global memory.
pub(crate) fn read_input(g: &mut Generator) {
    let spaces = |opcode: &str| [".shared", ".local", ".param", ".const"].iter().all(|space| !opcode.contains(space));
    let Some(opcode) = g.catalog.other(&mut g.random, "ld", |opcode| spaces(opcode) && is_legal(opcode)) else {
        return;
    };
    let (bytes, targets) = (bytes(&opcode), data(g, &opcode));
    let (address, index, from) = (g.fresh(Class::B64), g.fresh(Class::B32), g.register(Class::B32));
    emit!(g, "and.b32 {index}, {from}, {}; mad.wide.u32 {address}, {index}, {bytes}, %input;", INPUT / bytes - 1);
    if !opcode.contains(".global") {
        emit!(g, "cvta.global.u64 {address}, {address};");
    }
    let (policy, guard) = (policy(g, &opcode), g.guard());
    emit!(g, "{guard}{opcode} {targets}, [{address}]{policy};");
}

/// The cache policy behind the operands of an opcode that has one.
fn policy(g: &mut Generator, opcode: &str) -> String {
    if !opcode.contains("cache_hint") {
        return String::new();
    }
    let policy = g.fresh(Class::B64);
    let priority = *g.random.pick(&["evict_first", "evict_last"]);
    emit!(g, "createpolicy.fractional.L2::{priority}.b64 {policy}, 1.0;");
    format!(", {policy}")
}

/// A load or store of the thread's own memory, in any space, at an offset that is known or not.
pub(crate) fn own(g: &mut Generator) {
    let space = *g.random.pick(&["global", "shared", "local"]);
    let generic = g.random.once_in(3);
    let root = *g.random.pick(&["ld", "st"]);
    let named =
        |opcode: &str| ["global", "shared", "local", "param", "const"].iter().find(|s| opcode.contains(**s)).copied();
    let wanted = if generic { None } else { Some(space) };
    let fits = |opcode: &str| named(opcode) == wanted && is_legal(opcode) && !opcode.contains(".nc");
    let Some(opcode) = g.catalog.other(&mut g.random, root, fits) else { return };
    let address = own_address(g, space, generic, bytes(&opcode));
    let (data, policy, guard) = (data(g, &opcode), policy(g, &opcode), g.guard());
    match root {
        "ld" => emit!(g, "{guard}{opcode} {data}, {address}{policy};"),
        _ => emit!(g, "{guard}{opcode} {address}, {data}{policy};"),
    }
}

/// An aligned place in the thread's own memory, in brackets.
pub(crate) fn own_address(g: &mut Generator, space: &str, generic: bool, bytes: usize) -> String {
    let constant = g.random.below(OWN / bytes) * bytes;
    if g.random.once_in(3) && !generic {
        return match space {
            "global" => format!("[%own+{constant}]"),
            "shared" => format!("[%tile+{constant}]"),
            _ => format!("[depot+{constant}]"),
        };
    }
    let (offset, from, address) = (g.fresh(Class::B32), g.register(Class::B32), g.fresh(Class::B64));
    emit!(g, "and.b32 {offset}, {from}, {}; cvt.u64.u32 {address}, {offset};", OWN - bytes);
    let base = match space {
        "global" => "%own".to_owned(),
        "local" => "%depot".to_owned(),
        _ => {
            let base = g.fresh(Class::B64);
            emit!(g, "cvt.u64.u32 {base}, %tile;");
            base
        }
    };
    emit!(g, "add.s64 {address}, {address}, {base};");
    if generic {
        emit!(g, "cvta.{space}.u64 {address}, {address};");
    }
    format!("[{address}]")
}

/// Every thread stores to shared memory and loads what another one stored.
pub(crate) fn exchange(g: &mut Generator) {
    if !g.together || g.some_left {
        return;
    }
    let is_shared = |opcode: &str| opcode.contains(".shared") && is_legal(opcode);
    let Some(store) = g.catalog.other(&mut g.random, "st", is_shared) else { return };
    let Some(load) = g.catalog.other(&mut g.random, "ld", is_shared) else { return };
    let threads = g.block_threads();
    let (stored, loaded) = (data(g, &store), data(g, &load));
    let (other, address) = (g.fresh(Class::B32), g.fresh(Class::B32));
    emit!(g, "{store} [%swap], {stored}; {}", barrier(g));
    match g.random.below(3) {
        0 => emit!(g, "sub.u32 {other}, {}, %thread;", threads - 1),
        1 => {
            let shift = g.random.below(threads as usize);
            emit!(g, "add.u32 {other}, %thread, {shift}; rem.u32 {other}, {other}, {threads};");
        }
        _ => {
            let any = g.register(Class::B32);
            emit!(g, "rem.u32 {other}, {any}, {threads};");
        }
    }
    emit!(g, "mov.u32 {address}, swap; mad.lo.u32 {address}, {other}, 16, {address};");
    emit!(g, "{load} {loaded}, [{address}]; {}", barrier(g));
}

/// A barrier of the whole block.
pub(crate) fn barrier(g: &mut Generator) -> String {
    let barriers = ["bar.sync 0;", "barrier.sync.aligned 1;", "barrier.sync 2;", "bar.cta.sync 3;"];
    (*g.random.pick(&barriers)).to_owned()
}

/// A fence, which changes nothing for one thread alone.
pub(crate) fn fence(g: &mut Generator) {
    let root = *g.random.pick(&["membar", "fence"]);
    let Some(opcode) = g.catalog.other(&mut g.random, root, |opcode| !opcode.contains("proxy")) else { return };
    let guard = g.guard();
    emit!(g, "{guard}{opcode};");
}
