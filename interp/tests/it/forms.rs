//! Compares every arithmetic form of the instruction table with an H100: the same inputs, edges and
//! random ones, must give the same bits. `tests/data/forms-h100.txt` records the hardware's
//! results. It has a line for each form: the opcode, or the instructions that stand for it, the
//! types of its result and sources, a hash of all results, and some of the results. Approximations
//! have no hash, and are compared within a bound.
//!
//! `scripts/record-forms` rewrites the file.

use std::fmt::Write;

use warpstride_interp::{Args, Config, Memory, Module, run};

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

fn record(text: &str) -> Vec<Form<'_>> {
    text.lines().filter(|line| !line.starts_with('#')).map(form).collect()
}

fn form(line: &str) -> Form<'_> {
    let fields: Vec<&str> = line.split(" | ").collect();
    let number = |digits| u64::from_str_radix(digits, 16).expect("a hexadecimal number");
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

/// A kernel that applies the form to every input.
fn kernel(index: usize, form: &Form) -> String {
    let mut body = String::new();
    let names: Vec<String> = form.types.iter().enumerate().map(|(place, kind)| register(kind, place)).collect();
    for (place, kind) in form.types.iter().enumerate().skip(1) {
        let name = &names[place];
        let row = class(kind) * ROWS + place - 1;
        writeln!(body, "ld.global.u64 %d{place}, [%rd2+{}];", row * INPUTS * 8).expect("it is a string");
        let convert = match bits(kind) {
            1 => format!("and.b64 %d{place}, %d{place}, 1; setp.ne.u64 {name}, %d{place}, 0;"),
            16 => format!("cvt.u16.u64 {name}, %d{place};"),
            64 => String::new(),
            _ => format!("cvt.u32.u64 {name}, %d{place};"),
        };
        body += &convert;
    }
    match form.code.contains('$') {
        true => {
            body += &names
                .iter()
                .enumerate()
                .fold(form.code.to_owned(), |code, (place, name)| code.replace(&format!("${place}"), name))
        }
        false => writeln!(body, "{} {};", form.code, names.join(", ")).expect("it is a string"),
    }
    body += &match bits(form.types[0]) {
        1 => "selp.b32 %w0, 1, 0, %p0; cvt.u64.u32 %d0, %w0;".to_owned(),
        16 => "cvt.u64.u16 %d0, %h0;".to_owned(),
        64 => String::new(),
        _ => "cvt.u64.u32 %d0, %w0;".to_owned(),
    };
    format!(
        ".visible .entry form_{index}(.param .u64 cells, .param .u64 results) {{
            .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %w<8>, %r<4>; .reg .b64 %d<8>, %rd<4>;
            ld.param.u64 %rd1, [cells]; ld.param.u64 %rd3, [results];
            mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
            mad.wide.u32 %rd2, %r1, 8, %rd1; mad.wide.u32 %rd3, %r1, 8, %rd3;
            {body}
            st.global.u64 [%rd3], %d0;
        }}\n"
    )
}

fn module(forms: &[Form]) -> String {
    let kernels: String = forms.iter().enumerate().map(|(index, form)| kernel(index, form)).collect();
    format!(".version 8.4\n.target sm_90\n.address_size 64\n{kernels}")
}

/// Edges of integers and of shift amounts.
const INTEGERS: &[u64] = &[
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    15,
    16,
    24,
    30,
    31,
    32,
    33,
    47,
    48,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    0x7fff,
    0x8000,
    0xffff,
    0x7f_ffff,
    0x80_0000,
    0xff_ffff,
    0x100_0001,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fffe,
    0xffff_ffff,
    0x1_0000_0000,
    0x1_0000_0001,
    0x1234_5678_9abc_def0,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    !0,
    !1,
    !30,
    !31,
    !32,
    0x7fff_8000_8000_7fff,
    0xff80_7f81_8001_fe7f,
    0x20_0000_0000_0001,
    0x3f_ffff_ffff_fffe,
    0x100_0003,
    0x3201,
];
/// Zeros, denormals, neighbours of powers of two, halves between integers, ends of integer types,
/// ties between numbers of narrower formats, a product that rounds up out of the denormals,
/// infinities, and NaNs: quiet, signalling and signed.
const SINGLES: &[u64] = &[
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x7f_ffff,
    0x80_0000,
    0x8080_0000,
    0x80_0001,
    0x3f80_0000,
    0xbf80_0000,
    0x3f7f_ffff,
    0x3f80_0001,
    0x4000_0000,
    0xc000_0000,
    0x3f00_0000,
    0xbf00_0000,
    0x3fc0_0000,
    0x4020_0000,
    0xc020_0000,
    0x3eff_ffff,
    0x4b00_0000,
    0x4b80_0000,
    0x4aff_ffff,
    0x437f_8000,
    0x42ff_0000,
    0xc300_8000,
    0x477f_ff80,
    0x46ff_ff00,
    0x477f_e000,
    0x477f_efff,
    0x477f_f000,
    0x4eff_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0x4f7f_ffff,
    0x4f80_0000,
    0x5eff_ffff,
    0x5f00_0000,
    0xdf00_0000,
    0x5f80_0000,
    0x3300_0000,
    0x3300_0001,
    0x3380_0000,
    0x387f_e000,
    0x3880_0000,
    0x3f80_1000,
    0x3f80_8000,
    0x3f80_3000,
    0x3f81_8000,
    0x1fff_ffff,
    0x2000_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc0_0000,
    0x7fc1_2345,
    0x7f80_0001,
    0xffa5_4321,
    0x7fff_ffff,
    0x4049_0fdb,
    0xc2c8_0000,
    0x7e80_0000,
    0x42b0_c0a5,
    0x7f00_0000,
    0x40,
    0x40_0000,
    0xff_ffff,
    0x100_0000,
    0x100_0001,
    0x3eff_fffe,
    0x7e80_0001,
];
/// The same in double precision, with the ends of single precision.
const DOUBLES: &[u64] = &[
    0,
    1 << 63,
    1,
    0x8000_0000_0000_0001,
    0xf_ffff_ffff_ffff,
    0x10_0000_0000_0000,
    0x8010_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0001,
    0x4000_0000_0000_0000,
    0x3fe0_0000_0000_0000,
    0xbfe0_0000_0000_0000,
    0x3ff8_0000_0000_0000,
    0x4004_0000_0000_0000,
    0xc004_0000_0000_0000,
    0x3fdf_ffff_ffff_ffff,
    0x4330_0000_0000_0000,
    0x4340_0000_0000_0000,
    0x432f_ffff_ffff_ffff,
    0x406f_f000_0000_0000,
    0x405f_e000_0000_0000,
    0xc060_1000_0000_0000,
    0x40ef_fff0_0000_0000,
    0x40df_ffe0_0000_0000,
    0x41df_ffff_ffc0_0000,
    0x41df_ffff_ffe0_0000,
    0x41e0_0000_0000_0000,
    0xc1e0_0000_0000_0000,
    0xc1e0_0000_0010_0000,
    0x41ef_ffff_ffe0_0000,
    0x41ef_ffff_fff0_0000,
    0x41f0_0000_0000_0000,
    0x43df_ffff_ffff_ffff,
    0x43e0_0000_0000_0000,
    0xc3e0_0000_0000_0000,
    0x43f0_0000_0000_0000,
    0x47ef_ffff_e000_0000,
    0x47ef_ffff_efff_ffff,
    0x47ef_ffff_f000_0000,
    0x47f0_0000_0000_0000,
    0x36a0_0000_0000_0000,
    0x3690_0000_0000_0000,
    0x3690_0000_0000_0001,
    0x380f_ffff_e000_0000,
    0x3810_0000_0000_0000,
    0x380f_ffff_f000_0000,
    0x3ff0_0000_1000_0000,
    0x3ff0_0000_3000_0000,
    0x3ff0_0200_0000_0000,
    0x3ff0_1000_0000_0000,
    0x40ef_fdff_ffff_ffff,
    0x40ef_fe00_0000_0000,
    0x3e60_0000_0000_0000,
    0x3e60_0000_0000_0001,
    0x1fff_ffff_ffff_ffff,
    0x2000_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0xffef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0xfff8_0000_0000_0000,
    0x7ff8_0000_1234_5678,
    0x7ff0_0000_0000_0001,
    0xfff4_3210_0000_0001,
    0x7fff_ffff_ffff_ffff,
    0xfff8_0000_0000_0123,
    0x7ff4_0000_0000_0000,
];
/// The same in half precision.
const F16S: &[u64] = &[
    0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x8400, 0x401, 0x3c00, 0xbc00, 0x3bff, 0x3c01, 0x4000, 0xc000, 0x3800, 0xb800,
    0x3e00, 0x4100, 0xc100, 0x37ff, 0x6400, 0x6800, 0x63ff, 0x5bf8, 0x57f0, 0xd808, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
    0x7e00, 0xfe00, 0x7e12, 0x7c01, 0xfd43, 0x7fff, 0x1fff, 0x2000, 0x4248, 0x200, 0x77ff, 0x7800,
];
/// The same for bf16, the upper half of single precision.
const BF16S: &[u64] = &[
    0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x8080, 0x81, 0x3f80, 0xbf80, 0x3f7f, 0x3f81, 0x4000, 0xc000, 0x3f00, 0xbf00,
    0x3fc0, 0x4020, 0xc020, 0x3eff, 0x4300, 0x4380, 0x42ff, 0x437f, 0x4f00, 0x5f00, 0xdf00, 0x5f80, 0x7f7f, 0xff7f,
    0x7f80, 0xff80, 0x7fc0, 0xffc0, 0x7fc5, 0x7f81, 0xffa1, 0x7fff, 0x1fff, 0x2000, 0x4049, 0x40, 0x477f, 0x4780,
];

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
    let pick = |edges: &[u64], random: u64| match (row, index / edges.len()) {
        (0, place) if place < edges.len() => Some(edges[index % edges.len()]),
        (1, place) if place < edges.len() => Some(edges[place]),
        _ => Some(edges[(random >> 8) as usize % edges.len()]).filter(|_| random >> 40 & 3 != 0),
    };
    let of = |edges: &[u64], width, digits| pick(edges, random).unwrap_or_else(|| near_one(random, width, digits));
    let upper = mix(random);
    let halves = |edges: &[u64], digits| {
        let high = match upper >> 40 & 3 {
            0 => near_one(upper, 16, digits),
            _ => edges[(upper >> 8) as usize % edges.len()],
        };
        of(edges, 16, digits) | high << 16
    };
    match class {
        1 => of(SINGLES, 32, 23),
        2 => of(DOUBLES, 64, 52),
        3 => halves(F16S, 10),
        4 => halves(BF16S, 7),
        _ => pick(INTEGERS, random).unwrap_or_else(|| upper >> (random >> 8 & 63)),
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
    std::fs::write(directory.join("forms.ptx"), module(&record(&list))).expect("it can be written");
    std::fs::write(directory.join("cells.bin"), bytes).expect("it can be written");
}

/// The software GPU's results for each form.
fn results(forms: &[Form]) -> Vec<Vec<u64>> {
    let module = Module::parse(&module(forms)).expect("it parses");
    let memory = Memory::new(1 << 24);
    let cells = memory.upload(&cells()).expect("it fits");
    let results = memory.upload(&[0_u64; INPUTS]).expect("it fits");
    let launch = |(index, form): (usize, &Form)| {
        let kernel = module.kernel(&format!("form_{index}")).expect("it is there");
        let params = Args::new(kernel).value(cells).and_then(|args| args.value(results)).and_then(Args::finish);
        let stop =
            run(kernel, &shape(INPUTS as u32 / 32, 32), &params.expect("two addresses"), &memory, &Config::default());
        stop.unwrap_or_else(|stop| panic!("{}: {stop}", form.code));
        memory.download::<u64>(results, INPUTS).expect("it is there")
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
    let forms = record(include_str!("../data/forms-h100.txt"));
    assert!(forms.len() > 1900, "only {} forms", forms.len());
    let cells = cells();
    for (form, results) in forms.iter().zip(results(&forms)) {
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
