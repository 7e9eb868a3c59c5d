//! Statements that compute: any function of the table on registers, immediates and parameters.

use warpstride::interp::coverage::Kind;

use super::catalog::{Class, bits, last_type};
use super::generate::{Generator, SCALARS, STRUCT};
use super::random::{DOUBLE, SINGLE};

/// A function of values, perhaps guarded.
pub(crate) fn compute(g: &mut Generator) {
    let (opcode, result, sources) = g.catalog.value(&mut g.random);
    let classes = classes(g, &opcode, result, sources);
    let mut operands = Vec::new();
    for (index, kind) in sources.iter().enumerate() {
        operands.push(operand(g, &opcode, *kind, classes[1 + index], index, sources.len()));
    }
    let target = g.register(classes[0]);
    let sources = operands.join(", ");
    let sources = if opcode.starts_with("mov.") && operands.len() > 1 { format!("{{{sources}}}") } else { sources };
    let guard = g.guard();
    emit!(g, "{guard}{opcode} {target}, {sources};");
    if result == Kind::F64 && !["mov", "selp", "neg", "abs", "copysign"].iter().any(|name| opcode.starts_with(name)) {
        settle(g, &target);
    }
}

/// Makes any NaN of double precision the plain one: which of its bits come from the operands is not defined.
pub(crate) fn settle(g: &mut Generator, register: &str) {
    let nan = g.fresh(Class::Pred);
    emit!(g, "setp.nan.f64 {nan}, {register}, {register}; selp.b64 {register}, 0x7ff8000000000000, {register}, {nan};");
}

/// The registers' classes, of the result first. Conversions read and write types that the table's widths do not tell, and
/// narrow ones may stand in wider registers.
fn classes(g: &mut Generator, opcode: &str, result: Kind, sources: &[Kind]) -> Vec<Class> {
    let mut classes: Vec<Class> = [result].iter().chain(sources).map(|kind| Class::of_kind(*kind)).collect();
    let types: Vec<&str> = opcode.split('.').skip(1).filter(|part| bits(part) > 0).collect();
    if let ("cvt", [.., to, from]) = (opcode.split('.').next().unwrap_or_default(), &types[..]) {
        classes = [to].into_iter().chain(sources.iter().map(|_| from)).map(|name| Class::of(name)).collect();
        for (class, name) in classes.iter_mut().zip([to, from]) {
            let integer = name.starts_with(['u', 's']);
            if integer && *class == Class::B16 && g.random.once_in(3) {
                *class = Class::B32;
            }
        }
    }
    classes
}

fn operand(g: &mut Generator, opcode: &str, kind: Kind, class: Class, index: usize, count: usize) -> String {
    let root = opcode.split('.').next().unwrap_or_default();
    // The manual restricts a field's place and length to 8 bits.
    if ["bfe", "bfi"].contains(&root) && index + 2 >= count {
        if g.random.once_in(2) {
            return g.random.below(72).to_string();
        }
        let (count, from) = (g.fresh(Class::B32), g.register(Class::B32));
        emit!(g, "and.b32 {count}, {from}, {};", if g.random.once_in(2) { 255 } else { 31 });
        return count;
    }
    // What division by zero gives is not defined.
    if false && ["div", "rem"].contains(&root) && index == 1 && !matches!(kind, Kind::F32 | Kind::F64) {
        let (divisor, from, width) = (g.fresh(class), g.register(class), 8 * class.bytes());
        emit!(g, "max.u{width} {divisor}, {from}, 1;");
        return divisor;
    }
    if root == "lop3" && index == 3 {
        return g.random.below(256).to_string();
    }
    if root == "cvt" || g.random.below(5) > 0 {
        return g.register(class);
    }
    immediate(g, opcode, kind, class)
}

/// A constant where there is one of this kind, else a register.
fn immediate(g: &mut Generator, opcode: &str, kind: Kind, class: Class) -> String {
    let named = last_type(opcode);
    let fraction = named.starts_with('f') && bits(named) as usize == 8 * class.bytes();
    match kind.to_string().as_str() {
        "f32" => format!("0f{:08X}", g.random.float(SINGLE)),
        "f64" => format!("0d{:016X}", g.random.float(DOUBLE)),
        "b32" if fraction => format!("0f{:08X}", g.random.float(SINGLE)),
        "b64" if fraction => format!("0d{:016X}", g.random.float(DOUBLE)),
        "b16" | "b32" | "b64" if !fraction => {
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
    let (guard, target) = (g.guard(), g.register(Class::B32));
    emit!(g, "{guard}mov.u32 {target}, {name};");
}

/// A parameter, or a part of the one that is a struct.
pub(crate) fn parameter(g: &mut Generator) {
    if g.random.once_in(2) {
        let number = g.random.below(SCALARS.len());
        let (name, class) = (SCALARS[number], Class::of(SCALARS[number]));
        let (guard, target) = (g.guard(), g.register(class));
        emit!(g, "{guard}ld.param.{name} {target}, [scalar{number}];");
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
    let (opcode, half, whole) =
        *g.random.pick(&[("mov.b32", Class::B16, Class::B32), ("mov.b64", Class::B32, Class::B64)]);
    let (mut parts, whole, guard) = (g.distinct(half, 2), g.register(whole), g.guard());
    let dropped = g.random.below(6);
    if dropped < 2 {
        parts[dropped] = "_".to_owned();
    }
    emit!(g, "{guard}{opcode} {{{}}}, {whole};", parts.join(", "));
}
