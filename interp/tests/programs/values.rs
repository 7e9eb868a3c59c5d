//! Statements that compute: any function of the table on registers, immediates and parameters.

use warpstride_interp::coverage::Kind;

use super::catalog::{Class, Function, bits, last_type};
use super::generate::{Generator, SCALARS, STRUCT};
use super::random::{DOUBLE, SINGLE};

/// A function of values, perhaps guarded.
pub(crate) fn compute(g: &mut Generator) {
    let catalog = g.catalog;
    let (opcode, function) = catalog.value(&mut g.random);
    let mut classes = classes(opcode, function);
    widen(g, opcode, &mut classes);
    let mut operands = Vec::new();
    for (index, kind) in function.sources.iter().enumerate() {
        operands.push(operand(g, opcode, *kind, classes[1 + index], index, function.sources.len()));
    }
    // NVIDIA's assembler drops the guard of `testp`, seen in 13.0 and 13.5: with one the hardware
    // is not the measure.
    let guard = if root(opcode) == "testp" { String::new() } else { g.guard() };
    let target = g.register(classes[0]);
    emit!(g, "{guard}{}", instruction(opcode, &target, &operands));
    if function.result != Kind::Pred && !["mov", "selp", "slct", "copysign"].contains(&root(opcode)) {
        settle(g, &target, result_type(opcode));
    }
}

fn instruction(opcode: &str, target: &str, operands: &[String]) -> String {
    match operands.join(", ") {
        sources if opcode.starts_with("mov.") && operands.len() > 1 => format!("{opcode} {target}, {{{sources}}};"),
        sources => format!("{opcode} {target}, {sources};"),
    }
}

/// A module that has a function in these spellings, to see whether an assembler takes them.
pub(crate) fn module(target: &str, function: &Function, spellings: &[String]) -> String {
    let mut body = String::new();
    for opcode in spellings {
        let mut names = classes(opcode, function).into_iter().map(|class| super::program::register(class, 0));
        let result = names.next().unwrap_or_default();
        let mut operands: Vec<String> = names.collect();
        if root(opcode) == "lop3" {
            operands[3] = "0".to_owned();
        }
        body += &format!("    {}\n", instruction(opcode, &result, &operands));
    }
    format!(
        "{}\n.visible .entry probe()\n{{\n    .reg .pred %p0; .reg .b16 %h0; .reg .b32 %r0; .reg .b64 %d0;\n{body}    ret;\n}}\n",
        super::generate::directives(target)
    )
}

/// The instruction's name without its modifiers.
fn root(opcode: &str) -> &str {
    opcode.split('.').next().unwrap_or_default()
}

/// The type of what an opcode computes, which of a conversion is the last but one.
fn result_type(opcode: &str) -> &str {
    let mut types = opcode.split('.').skip(1).filter(|part| bits(part) > 0);
    types.next().unwrap_or_default()
}

/// Makes any NaN the one with all bits set but the sign. The ISA leaves the bits of a NaN open,
/// and an assembler that folds a negation or a maximum into something else changes them: so it was
/// seen on an H100.
pub(crate) fn settle(g: &mut Generator, register: &str, kind: &str) {
    let infinity: u64 = match kind {
        "f16" | "f16x2" => 0x7c00,
        "bf16" | "bf16x2" => 0x7f80,
        "f32" => 0x7f80_0000,
        "f64" => 0x7ff0_0000_0000_0000,
        _ => return,
    };
    if let Some(half) = kind.strip_suffix("x2") {
        let halves = [g.fresh(Class::B16), g.fresh(Class::B16)];
        let both = halves.join(", ");
        emit!(g, "mov.b32 {{{both}}}, {register};");
        halves.iter().for_each(|register| settle(g, register, half));
        return emit!(g, "mov.b32 {register}, {{{both}}};");
    }
    let width = bits(kind);
    let (magnitude, nan) = (g.fresh(Class::of(kind)), g.fresh(Class::Pred));
    let all = u64::MAX >> (65 - width);
    emit!(g, "and.b{width} {magnitude}, {register}, {all:#x}; setp.gt.u{width} {nan}, {magnitude}, {infinity:#x};");
    emit!(g, "selp.b{width} {register}, {all:#x}, {register}, {nan};");
}

/// The registers' classes, of the result first. Conversions read and write types that the table's
/// widths do not tell.
fn classes(opcode: &str, function: &Function) -> Vec<Class> {
    match conversion(opcode) {
        Some([to, from]) => [to].into_iter().chain(function.sources.iter().map(|_| from)).map(Class::of).collect(),
        None => [function.result].iter().chain(&function.sources).map(|kind| Class::of_kind(*kind)).collect(),
    }
}

/// The types of a conversion's result and source.
fn conversion(opcode: &str) -> Option<[&str; 2]> {
    let mut types = opcode.split('.').skip(1).filter(|part| bits(part) > 0);
    let plain = root(opcode) == "cvt" && !opcode.starts_with("cvt.pack");
    if plain { Some([types.next()?, types.next()?]) } else { None }
}

/// A conversion's narrow integers may stand in wider registers, and do now and then; not beside
/// halves.
fn widen(g: &mut Generator, opcode: &str, classes: &mut [Class]) {
    if opcode.contains("f16") {
        return;
    }
    for (class, name) in classes.iter_mut().zip(conversion(opcode).into_iter().flatten()) {
        if name.starts_with(['u', 's']) && *class == Class::B16 && g.random.once_in(3) {
            *class = Class::B32;
        }
    }
}

fn operand(g: &mut Generator, opcode: &str, kind: Kind, class: Class, index: usize, count: usize) -> String {
    let root = root(opcode);
    // The manual restricts a field's place and length to 8 bits.
    if ["bfe", "bfi"].contains(&root) && index + 2 >= count {
        // Constants beyond the width mean something else to the driver's assembler (580) than
        // registers do; a field at 0 to 15 of 1 to 16 bits lies within any.
        if g.random.once_in(2) {
            return g.random.below(16).to_string();
        }
        let (count, from) = (g.fresh(Class::B32), g.register(Class::B32));
        emit!(g, "and.b32 {count}, {from}, {};", if g.random.once_in(2) { 255 } else { 31 });
        return count;
    }
    // PTX does not define the result of a division by zero.
    if ["div", "rem"].contains(&root) && index == 1 && !matches!(kind, Kind::F32 | Kind::F64) {
        let (divisor, from, width) = (g.fresh(class), g.register(class), 8 * class.bytes());
        emit!(g, "max.u{width} {divisor}, {from}, 1;");
        return divisor;
    }
    // The assembler keeps 16 bits of a constant by which 16 bits are shifted, seen in 13.5; a
    // register's it clamps.
    let shifts_half = ["shl", "shr"].contains(&root) && opcode.ends_with("16");
    if shifts_half && index == 1 && g.random.once_in(4) {
        return g.random.below(1 << 16).to_string();
    }
    if root == "lop3" && index == 3 {
        return g.random.below(256).to_string();
    }
    // The assembler has no constants of two halves, and none in video instructions.
    // A constant that `slct` looks at is taken for a float, whatever its type; seen in driver 580.
    let chooses = root == "slct" && index == 2;
    let in_registers = shifts_half || chooses || root == "cvt" || root.starts_with("vabs") || opcode.contains("x2");
    if in_registers || g.random.below(5) > 0 {
        return g.register(class);
    }
    immediate(g, opcode, kind, class)
}

/// A constant where there is one of this kind, else a register.
fn immediate(g: &mut Generator, opcode: &str, kind: Kind, class: Class) -> String {
    let fraction =
        opcode.split('.').skip(1).any(|part| part.starts_with(['f', 'b']) && part.contains('f') && bits(part) > 0);
    let named = last_type(opcode);
    match (kind.to_string().as_str(), named) {
        ("f32", _) | ("b32", "f32") if root(opcode) != "slct" => format!("0f{:08X}", g.random.float(SINGLE)),
        ("f64", _) | ("b64", "f64") if root(opcode) != "slct" => format!("0d{:016X}", g.random.float(DOUBLE)),
        ("b16" | "b32" | "b64", _) if !fraction => {
            let value = g.random.integer(8 * class.bytes() as u32);
            if g.random.once_in(2) { format!("{value:#x}") } else { value.to_string() }
        }
        _ => g.register(class),
    }
}

/// A special register that every run agrees on.
pub(crate) fn special(g: &mut Generator) {
    let names = ["%tid", "%ntid", "%ctaid", "%nctaid"];
    let masks = ["%laneid", "%lanemask_lt", "%lanemask_le", "%lanemask_eq", "%lanemask_ge", "%lanemask_gt", "WARP_SZ"];
    let name = match g.random.below(2) {
        0 => format!("{}.{}", g.random.pick(&names), g.random.pick(&["x", "y", "z"])),
        _ => (*g.random.pick(&masks)).to_owned(),
    };
    // Without a guard: the assembler (13.0 and 13.5) moves a guarded one behind what changes its
    // predicate.
    let target = g.register(Class::B32);
    emit!(g, "mov.u32 {target}, {name};");
}

/// A parameter, or a part of the one that is a struct.
pub(crate) fn parameter(g: &mut Generator) {
    if g.random.once_in(2) {
        let number = g.random.below(SCALARS.len());
        let (name, class) = (SCALARS[number], Class::of(SCALARS[number]));
        let (guard, target, kind) = (g.guard(), g.register(class), name.replace('f', "b"));
        emit!(g, "{guard}ld.param.{kind} {target}, [scalar{number}];");
        return;
    }
    let Some(opcode) = g.catalog.other(&mut g.random, "ld.param", super::memory::is_legal) else { return };
    let (bytes, targets) = (super::memory::bytes(&opcode), super::memory::data(g, &opcode));
    let offset = g.random.below(STRUCT / bytes) * bytes;
    let guard = g.guard();
    emit!(g, "{guard}{opcode} {targets}, [packed+{offset}];");
}

/// A register taken apart.
pub(crate) fn halves(g: &mut Generator) {
    let several = [("mov.b32", Class::B16, Class::B32, 2), ("mov.b64", Class::B32, Class::B64, 2)];
    let (opcode, part, whole, count) = *g.random.pick(&several);
    let quarters = g.catalog.has_pattern("quarter of mov.b64") && g.random.once_in(3);
    let (opcode, part, whole, count) =
        if quarters { ("mov.b64", Class::B16, Class::B64, 4) } else { (opcode, part, whole, count) };
    let (mut parts, whole, guard) = (g.distinct(part, count), g.register(whole), g.guard());
    let dropped = g.random.below(6);
    if dropped < count {
        parts[dropped] = "_".to_owned();
    }
    emit!(g, "{guard}{opcode} {{{}}}, {whole};", parts.join(", "));
}

/// A sum or difference in several registers, by way of the carry.
pub(crate) fn carries(g: &mut Generator) {
    if !g.catalog.has_pattern("carry of addc 32") {
        return;
    }
    let (class, kind) =
        *g.random.pick(&[(Class::B32, "u32"), (Class::B32, "s32"), (Class::B64, "u64"), (Class::B64, "s64")]);
    let root = *g.random.pick(&["add", "sub"]);
    let targets = g.distinct(class, 3);
    for (index, target) in targets.iter().enumerate() {
        let (a, b) = (g.register(class), g.register(class));
        let opcode = [format!("{root}.cc.{kind}"), format!("{root}c.cc.{kind}"), format!("{root}c.{kind}")];
        emit!(g, "{} {target}, {a}, {b};", opcode[index]);
    }
}
