//! Finds the spelling of an opcode whose modifiers stand in another order than the table's.
//! NVIDIA's assembler takes any order, except that types keep theirs.

use super::isa;
use super::modifiers::is_type;

/// The spellings of instructions that become several forms of the table.
const EXPANDED: [&str; 5] = [
    "setp.{compare}{combine}{ftz}.{operand}",
    "set.{compare}{combine}{ftz}.{u16,s16,u32,s32,f16,bf16,f32}.{operand}",
    "{add,sub}.cc.{u32,s32,u64,s64}",
    "{addc,subc}{,.cc}.{u32,s32,u64,s64}",
    "{mad,madc}.{lo,hi}{,.cc}.{u32,s32,u64,s64}",
];

/// The alternatives that only these spellings have.
const SETS: [(&str, &[&str]); 2] = [
    ("combine", &["", ".and", ".or", ".xor"]),
    (
        "operand",
        &[
            "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2", "f32",
            "f64",
        ],
    ),
];

/// The most modifiers of an opcode that are put in order.
const MOST: usize = 12;

/// The table's spelling of an opcode that has the same modifiers in another order. A `mad.f32` of
/// PTX 1 gives no rounding; NVIDIA's assembler fuses it and rounds to nearest. An `ldu` is a load
/// whose address the program promises to be uniform.
pub(crate) fn ordered(opcode: &str) -> Option<String> {
    let mut parts = opcode.split('.');
    let name = parts.next().map(|name| if name == "ldu" { "ld" } else { name })?;
    let mut parts: Vec<&str> = parts.collect();
    if name == "mad" && parts.contains(&"f32") && !parts.iter().any(|part| ["rn", "rz", "rm", "rp"].contains(part)) {
        parts.insert(0, "rn");
    }
    if parts.len() > MOST {
        return None;
    }
    let all = (1 << parts.len()) - 1;
    isa::FORMS.iter().map(|form| form.spelling).chain(EXPANDED).find_map(|pattern| {
        let mut spelled = name.to_owned();
        arrange(Rest { text: pattern, then: None }, name, &parts, all, &mut spelled).then_some(spelled)
    })
}

/// The rest of a pattern: this text, then more.
#[derive(Clone, Copy)]
struct Rest<'a> {
    text: &'a str,
    then: Option<&'a Rest<'a>>,
}

/// Returns whether the pattern spells the rest of the part `current`, and then those of `parts`
/// whose bit is set in `unused`, in some order. They are appended to `spelled`.
fn arrange(pattern: Rest, current: &str, parts: &[&str], unused: u32, spelled: &mut String) -> bool {
    let Some(first) = pattern.text.chars().next() else {
        return match pattern.then {
            Some(next) => arrange(*next, current, parts, unused, spelled),
            None => current.is_empty() && unused == 0,
        };
    };
    let rest = &pattern.text[first.len_utf8()..];
    match first {
        '{' => {
            let Some((group, rest)) = rest.split_once('}') else { return false };
            let then = Rest { text: rest, then: pattern.then };
            let mut continues = |text| arrange(Rest { text, then: Some(&then) }, current, parts, unused, spelled);
            let set = SETS.iter().find(|(name, _)| *name == group).map(|(_, choices)| *choices);
            match set.or_else(|| isa::named(group)) {
                Some(choices) => choices.iter().copied().any(continues),
                None => group.split(',').any(&mut continues),
            }
        }
        '.' => {
            current.is_empty()
                && (0..parts.len()).filter(|&next| may_come(next, parts, unused)).any(|next| {
                    let length = spelled.len();
                    spelled.push('.');
                    spelled.push_str(parts[next]);
                    let then = Rest { text: rest, then: pattern.then };
                    let fits = arrange(then, parts[next], parts, unused & !(1 << next), spelled);
                    if !fits {
                        spelled.truncate(length);
                    }
                    fits
                })
        }
        _ => match current.strip_prefix(first) {
            Some(current) => arrange(Rest { text: rest, then: pattern.then }, current, parts, unused, spelled),
            None => false,
        },
    }
}

/// Returns whether a part may be the next: it is unused, and no equal part or earlier type is.
fn may_come(next: usize, parts: &[&str], unused: u32) -> bool {
    let is_unused = |part: usize| unused >> part & 1 == 1;
    let precedes =
        |part: usize| is_unused(part) && (parts[part] == parts[next] || is_type(parts[part]) && is_type(parts[next]));
    is_unused(next) && !(0..next).any(precedes)
}

#[cfg(test)]
mod tests;
