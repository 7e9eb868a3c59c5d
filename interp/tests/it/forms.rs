//! Compares every arithmetic form of the instruction table with an H100: the same inputs, edges and
//! random ones, must give the same bits. `tests/data/forms-h100.txt` records the hardware's
//! results. It has a line for each form: the opcode, or the instructions that stand for it, the
//! types of its result and sources, a hash of all results, and some of the results. Approximations
//! have no hash, and are compared within a bound. `tests/data/form-edges.txt` has the edges.
//!
//! `scripts/record-forms` rewrites the record.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::LazyLock;

use warpstride_interp::coverage::{self, Operands};
use warpstride_interp::{Config, Memory, Module, run};

use super::shape;

/// The number of inputs of each form.
const INPUTS: usize = 8192;
/// Rows of inputs: no form has more sources.
const ROWS: usize = 4;

/// One line of the record.
struct Form<'r> {
    /// An opcode, or instructions with `$0` for the result and `$1` and so on for the sources.
    code: &'r str,
    /// The types of the result and of the sources.
    types: Vec<&'r str>,
    /// The hash of the results, unless they are approximations.
    hash: Option<u64>,
    /// Some of the results.
    results: Vec<u64>,
}

const RECORD: &str = include_str!("../data/forms-h100.txt");

fn record(text: &str) -> Vec<Form<'_>> {
    text.lines().filter(|line| !line.starts_with('#')).map(form).collect()
}

fn number(digits: &str) -> u64 {
    u64::from_str_radix(digits, 16).expect("a hexadecimal number")
}

fn form(line: &str) -> Form<'_> {
    let fields: Vec<&str> = line.split(" | ").collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or_default();
    Form {
        code: fields[0],
        types: field(1).split(' ').collect(),
        hash: Some(field(2)).filter(|hash| hash.len() == 16).map(number),
        results: field(3).split_whitespace().map(number).collect(),
    }
}

/// Bits of a type.
fn bits(kind: &str) -> u32 {
    match kind {
        "pred" => 1,
        "u8" | "s8" | "b8" => 8,
        "u16" | "s16" | "b16" | "f16" | "bf16" => 16,
        "u64" | "s64" | "b64" | "f64" => 64,
        _ => 32,
    }
}

/// The register that holds a value of a type.
fn register(kind: &str, index: usize) -> String {
    match bits(kind) {
        1 => format!("%p{index}"),
        16 => format!("%h{index}"),
        64 => format!("%d{index}"),
        _ => format!("%w{index}"),
    }
}

/// A kernel that applies the form to every input. A guarded one does so where a word of `guards` is
/// not zero, and the result's old value is the number of the input.
fn kernel(index: usize, form: &Form, guarded: bool) -> String {
    let mut body = String::new();
    let names: Vec<String> = form.types.iter().enumerate().map(|(place, kind)| register(kind, place)).collect();
    let narrowed = |place: usize| match (bits(form.types[place]), &names[place]) {
        (1, name) => format!("and.b64 %d{place}, %d{place}, 1; setp.ne.u64 {name}, %d{place}, 0;"),
        (16, name) => format!("cvt.u16.u64 {name}, %d{place};"),
        (64, _) => String::new(),
        (_, name) => format!("cvt.u32.u64 {name}, %d{place};"),
    };
    for (place, kind) in form.types.iter().enumerate().skip(1) {
        let row = class(kind) * ROWS + place - 1;
        writeln!(body, "ld.global.u64 %d{place}, [%rd2+{}];", row * INPUTS * 8).expect("it is a string");
        body += &narrowed(place);
    }
    let (guards, guard) = if guarded { (", .param .u64 guards", "@%p7 ") } else { ("", "") };
    if guarded {
        body += "ld.param.u64 %rd0, [guards]; mad.wide.u32 %rd0, %r1, 8, %rd0; ld.global.u64 %d0, [%rd0];
            setp.ne.u64 %p7, %d0, 0; cvt.u64.u32 %d0, %r1;";
        body += &narrowed(0);
    }
    match form.code.contains('$') {
        true => {
            body += &names
                .iter()
                .enumerate()
                .fold(form.code.to_owned(), |code, (place, name)| code.replace(&format!("${place}"), name))
        }
        false => writeln!(body, "{guard}{} {};", form.code, names.join(", ")).expect("it is a string"),
    }
    body += &match bits(form.types[0]) {
        1 => "selp.b32 %w0, 1, 0, %p0; cvt.u64.u32 %d0, %w0;".to_owned(),
        16 => "cvt.u64.u16 %d0, %h0;".to_owned(),
        64 => String::new(),
        _ => "cvt.u64.u32 %d0, %w0;".to_owned(),
    };
    format!(
        ".visible .entry form_{index}(.param .u64 cells, .param .u64 results{guards}) {{
            .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %w<8>, %r<4>; .reg .b64 %d<8>, %rd<4>;
            ld.param.u64 %rd1, [cells]; ld.param.u64 %rd3, [results];
            mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
            mad.wide.u32 %rd2, %r1, 8, %rd1; mad.wide.u32 %rd3, %r1, 8, %rd3;
            {body}
            st.global.u64 [%rd3], %d0;
        }}\n"
    )
}

fn module(forms: &[Form], guarded: bool) -> String {
    let kernels: String = forms.iter().enumerate().map(|(index, form)| kernel(index, form, guarded)).collect();
    format!(".version 8.4\n.target sm_90\n.address_size 64\n{kernels}")
}

/// Edges of every class of types.
static EDGES: LazyLock<Vec<Vec<u64>>> = LazyLock::new(|| {
    let lines = include_str!("../data/form-edges.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(' ').map(number).collect()).collect()
});

fn mix(value: u64) -> u64 {
    let value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// A number near 1, or close in magnitude: any significand, or one with few digits, which makes
/// ties.
fn near_one(random: u64, width: u32, digits: u32) -> u64 {
    let bias = (1 << (width - digits - 2)) - 1;
    let exponent = bias - 12 + (random >> 8) % 25;
    let significand = mix(random) & ((1 << digits) - 1);
    let few = if random >> 20 & 1 == 1 { significand >> (digits / 2) << (digits / 2) } else { significand };
    (random & 1) << (width - 1) | exponent << digits | few
}

/// The input of a type in a row: first every edge of the first row with every edge of the second,
/// then random combinations, in which three of four are edges.
fn cell(class: usize, row: usize, index: usize) -> u64 {
    let random = mix((class * ROWS * INPUTS + row * INPUTS + index) as u64 + 1);
    let edges = &EDGES[class];
    let edge = |random: u64| edges[(random >> 8) as usize % edges.len()];
    let picked = match (row, index / edges.len()) {
        (0, place) if place < edges.len() => Some(edges[index % edges.len()]),
        (1, place) if place < edges.len() => Some(edges[place]),
        _ => Some(edge(random)).filter(|_| random >> 40 & 3 != 0),
    };
    let number = |width, digits| picked.unwrap_or_else(|| near_one(random, width, digits));
    let upper = mix(random);
    let halves = |digits| {
        let high = if upper >> 40 & 3 == 0 { near_one(upper, 16, digits) } else { edge(upper) };
        number(16, digits) | high << 16
    };
    match class {
        1 => number(32, 23),
        2 => number(64, 52),
        3 => halves(10),
        4 => halves(7),
        _ => picked.unwrap_or_else(|| upper >> (random >> 8 & 63)),
    }
}

/// The class of inputs for a type.
fn class(kind: &str) -> usize {
    match kind {
        "f32" => 1,
        "f64" => 2,
        "f16" | "f16x2" => 3,
        "bf16" | "bf16x2" => 4,
        _ => 0,
    }
}

const CLASSES: usize = 5;

/// The inputs of every class, row by row.
fn cells() -> Vec<u64> {
    let rows = (0..CLASSES).flat_map(|class| (0..ROWS).map(move |row| (class, row)));
    rows.flat_map(|(class, row)| (0..INPUTS).map(move |index| cell(class, row, index))).collect()
}

#[test]
#[ignore = "writes what scripts/record-forms runs on a GPU"]
fn write_the_module_and_its_inputs() {
    let directory = std::path::PathBuf::from(std::env::var_os("FORMS").expect("FORMS is a directory"));
    let list = std::fs::read_to_string(directory.join("forms.txt")).expect("a list of forms");
    let bytes: Vec<u8> = cells().into_iter().flat_map(u64::to_le_bytes).collect();
    std::fs::write(directory.join("forms.ptx"), module(&record(&list), false)).expect("it can be written");
    std::fs::write(directory.join("cells.bin"), bytes).expect("it can be written");
}

/// The software GPU's results for each form, of the first inputs.
fn results(forms: &[Form], count: usize, guards: Option<&[u64]>) -> Vec<Vec<u64>> {
    let module = Module::parse(&module(forms, guards.is_some())).expect("it parses");
    let memory = Memory::new(1 << 24);
    let results = memory.upload(&vec![0_u64; count]).expect("it fits");
    let mut params = vec![memory.upload(&cells()).expect("it fits"), results];
    params.extend(guards.map(|guards| memory.upload(guards).expect("it fits")));
    let params: Vec<u8> = params.into_iter().flat_map(u64::to_le_bytes).collect();
    let launch = |(index, form): (usize, &Form)| {
        let kernel = module.kernel(&format!("form_{index}")).expect("it is there");
        run(kernel, &shape(count as u32 / 32, 32), &params, &memory, &Config::default())
            .unwrap_or_else(|stop| panic!("{}: {stop}", form.code));
        memory.download::<u64>(results, count).expect("it is there")
    };
    forms.iter().enumerate().map(launch).collect()
}

/// A hash of the results and their positions.
fn hash(results: &[u64]) -> u64 {
    let terms = results.iter().enumerate().map(|(index, result)| mix(result ^ mix(index as u64)));
    terms.fold(0, u64::wrapping_add)
}

/// The inputs whose results the record contains. For approximations there are more, because only
/// they are compared.
fn recorded(form: &Form) -> impl Iterator<Item = usize> {
    let step = if form.hash.is_some() { 1021 } else { 61 };
    (0..form.results.len()).map(move |sample| sample * step)
}

/// The largest distance of an approximation from the hardware's result, as measured: in units of
/// the last place, or else absolute.
fn bound(opcode: &str) -> (u64, f64) {
    match opcode.split('.').next() {
        Some("tanh") if opcode.ends_with(".f32") => (128, 0.0),
        Some("lg2") => (4, 2_f64.powi(-22)),
        Some("sin" | "cos") => (4, 2_f64.powi(-21)),
        // The lower half of a double-precision result is undefined.
        _ if opcode.ends_with(".f64") => (2 << 32, 0.0),
        _ => (2, 0.0),
    }
}

/// The value of a number of a type, and its position in the order of all such numbers.
fn place(kind: &str, bits: u64) -> (f64, i64) {
    let (width, value) = match kind {
        "f64" => (64, f64::from_bits(bits)),
        "f32" => (32, f64::from(f32::from_bits(bits as u32))),
        // For halves, only the order is used.
        _ => (16, 0.0),
    };
    let magnitude = (bits & ((1 << (width - 1)) - 1)) as i64;
    (value, if bits >> (width - 1) & 1 == 1 { -magnitude } else { magnitude })
}

fn is_near(form: &Form, ours: u64, theirs: u64) -> bool {
    let kind = form.types[0];
    if let Some(half) = kind.strip_suffix("x2") {
        let half = Form { code: form.code, types: vec![half], hash: None, results: Vec::new() };
        return [0, 16].iter().all(|shift| is_near(&half, ours >> shift & 0xffff, theirs >> shift & 0xffff));
    }
    let (units, whole) = bound(form.code);
    let ((ours, at), (theirs, other)) = (place(kind, ours), place(kind, theirs));
    at.abs_diff(other) <= units || (ours - theirs).abs() <= whole
}

#[test]
fn every_form_gives_what_an_h100_gives() {
    let forms = record(RECORD);
    assert!(forms.len() > 1900, "only {} forms", forms.len());
    let cells = cells();
    for (form, results) in forms.iter().zip(results(&forms, INPUTS, None)) {
        for (&theirs, index) in form.results.iter().zip(recorded(form)) {
            let ours = results[index];
            let same = if form.hash.is_some() { ours == theirs } else { is_near(form, ours, theirs) };
            let source = |(row, kind): (usize, &&str)| cells[(class(kind) * ROWS + row) * INPUTS + index];
            let sources: Vec<u64> = form.types[1..].iter().enumerate().map(source).collect();
            assert!(same, "{} of {sources:x?} gives {ours:#x}, on an H100 {theirs:#x}", form.code);
        }
        let same = form.hash.is_none_or(|wanted| wanted == hash(&results));
        assert!(same, "{}: one of {INPUTS} results is not an H100's", form.code);
    }
}

/// A form that is one instruction computes where its guard holds what it computes without one: in a
/// warp whose lanes are all off, in one whose lanes are all on, and in warps of any lanes.
#[test]
fn lanes_whose_guard_is_off_keep_their_old_values() {
    let mut forms = record(RECORD);
    forms.retain(|form| !form.code.contains('$'));
    assert!(forms.len() > 1700, "only {} forms", forms.len());
    let guard = |input: u64| match input / 32 {
        0 => 0,
        1 => 1,
        _ => mix(input) & 1,
    };
    let guards: Vec<u64> = (0..1024).map(guard).collect();
    let (plain, guarded) = (results(&forms, 1024, None), results(&forms, 1024, Some(&guards)));
    for (form, (plain, guarded)) in forms.iter().zip(plain.iter().zip(&guarded)) {
        for (input, guard) in guards.iter().enumerate() {
            let old = if form.types[0] == "pred" { input & 1 } else { input };
            let wanted = if *guard == 1 { plain[input] } else { old as u64 };
            assert_eq!(guarded[input], wanted, "{} of input {input}", form.code);
        }
    }
}

/// Forms that depend on the kind of their operands or on windows, which `text.rs` and `clusters.rs`
/// test, and opaque forms, which `policies.rs` and `arrivals.rs` test.
const ELSEWHERE: &[&str] =
    &["mov.b32", "mov.b64", "cvta", "isspacep", "mapa", "createpolicy", "mbarrier.pending_count"];

#[test]
fn every_form_that_is_a_function_is_recorded() {
    let recorded: HashSet<&str> = RECORD.lines().filter_map(|line| line.split(' ').next()).collect();
    let functions = coverage::forms().filter(|form| matches!(form.operands(), Operands::Values { .. }));
    // A name with a space is a step of an instruction.
    let named = functions.filter(|form| !form.pattern().contains(' '));
    let named: Vec<_> = named.filter(|form| !ELSEWHERE.iter().any(|start| form.pattern().starts_with(start))).collect();
    assert!(named.len() > 400, "only {} lines of the table", named.len());
    for form in named {
        let found = (0..form.spellings()).any(|number| recorded.contains(&*form.spelling(number)));
        assert!(found, "{} is not recorded", form.pattern());
    }
}
