//! `wmma`: products of matrices that a warp loads and stores, in every shape, layout and type,
//! beside products by rows and columns.

use std::fmt::Write;

use warpstride_interp::stop::Reason;
use warpstride_interp::{Args, Checks, Config, Memory, Module, Report, run as run_kernel};

use super::{PRELUDE, launch_with, shape};

/// Types of elements, with the shapes that they have.
struct Type {
    /// The types of both matrices and of the sum.
    of: [&'static str; 2],
    /// The types as `wmma.mma` spells them.
    spelled: &'static str,
    /// The shapes, each with the registers of both matrices.
    shapes: &'static [([usize; 3], [usize; 2])],
    /// The registers of the sum.
    sums: usize,
}

const HALVES: &[([usize; 3], [usize; 2])] = &[([16, 16, 16], [8, 8]), ([32, 8, 16], [8, 8]), ([8, 32, 16], [8, 8])];
const SHORT: &[([usize; 3], [usize; 2])] = &[([16, 16, 16], [4, 4]), ([32, 8, 16], [8, 2]), ([8, 32, 16], [2, 8])];
const BYTES: &[([usize; 3], [usize; 2])] = &[([16, 16, 16], [2, 2]), ([32, 8, 16], [4, 1]), ([8, 32, 16], [1, 4])];

const TYPES: [Type; 7] = [
    Type { of: ["f16", "f32"], spelled: "f32.f32", shapes: HALVES, sums: 8 },
    Type { of: ["f16", "f16"], spelled: "f16.f16", shapes: HALVES, sums: 4 },
    Type { of: ["bf16", "f32"], spelled: "f32.bf16.bf16.f32", shapes: SHORT, sums: 8 },
    Type { of: ["s8", "s32"], spelled: "s32.s8.s8.s32", shapes: BYTES, sums: 8 },
    Type { of: ["u8", "s32"], spelled: "s32.u8.u8.s32", shapes: BYTES, sums: 8 },
    Type { of: ["tf32", "f32"], spelled: "f32.tf32.tf32.f32", shapes: &[([16, 16, 8], [4, 4])], sums: 8 },
    Type { of: ["f64", "f64"], spelled: "f64.f64.f64.f64", shapes: &[([8, 8, 4], [1, 1])], sums: 2 },
];

/// Bytes of an element.
fn width(kind: &str) -> usize {
    match kind {
        "u8" | "s8" => 1,
        "f16" | "bf16" => 2,
        "f64" => 8,
        _ => 4,
    }
}

/// The bits of a small whole number.
fn bits(kind: &str, value: i64) -> u64 {
    let single = (value as f32).to_bits();
    match kind {
        // It has 11 bits at most, and no half is denormal.
        "f16" if value != 0 => u64::from((single >> 16 & 0x8000) | ((single >> 13 & 0x3ffff) - (112 << 10))),
        "bf16" => u64::from(single >> 16),
        "f32" | "tf32" | "f16" => u64::from(single),
        "f64" => (value as f64).to_bits(),
        _ => value as u64,
    }
}

/// A matrix in memory: its extents, whether its rows lie side by side, and the elements from one
/// row, or column, to the next.
#[derive(Clone, Copy)]
struct Place {
    extents: [usize; 2],
    by_rows: bool,
    stride: usize,
}

impl Place {
    fn new(rows: usize, columns: usize, by_rows: bool) -> Self {
        // Strides are multiples of 16 bytes.
        Self {
            extents: [rows, columns],
            by_rows,
            stride: if by_rows { columns } else { rows }.next_multiple_of(16) + 16,
        }
    }

    fn at(self, row: usize, column: usize) -> usize {
        if self.by_rows { row * self.stride + column } else { column * self.stride + row }
    }

    fn bytes(self, kind: &str) -> usize {
        self.stride * self.extents[usize::from(!self.by_rows)] * width(kind)
    }

    /// The bytes of the matrix with these values, and 0 in between.
    fn filled(self, kind: &str, value: impl Fn(usize, usize) -> i64) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes(kind)];
        for (row, column) in (0..self.extents[0]).flat_map(|row| (0..self.extents[1]).map(move |column| (row, column)))
        {
            let at = self.at(row, column) * width(kind);
            bytes[at..][..width(kind)].copy_from_slice(&bits(kind, value(row, column)).to_le_bytes()[..width(kind)]);
        }
        bytes
    }

    fn layout(self) -> &'static str {
        if self.by_rows { "row" } else { "col" }
    }
}

fn list(name: &str, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|number| format!("%{name}{number}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// Multiplies matrices of a type and shape in these layouts, and compares the sum.
fn check(of: &Type, (extents, registers): ([usize; 3], [usize; 2]), by_rows: [bool; 4], space: &str) -> Report {
    let [m, n, k] = extents;
    let [from, to] = of.of;
    let places = [
        Place::new(m, k, by_rows[0]),
        Place::new(k, n, by_rows[1]),
        Place::new(m, n, by_rows[2]),
        Place::new(m, n, by_rows[3]),
    ];
    let a = |row: usize, column: usize| ((3 * row + 5 * column) % 7) as i64;
    let b = |row: usize, column: usize| ((2 * row + column) % 5) as i64 - if from == "u8" { 0 } else { 2 };
    let c = |row: usize, column: usize| (row + 2 * column) as i64 - 20;
    let sum = |row: usize, column: usize| c(row, column) + (0..k).map(|at| a(row, at) * b(at, column)).sum::<i64>();
    let memory = Memory::new(1 << 20);
    let buffers = [
        memory.upload(&places[0].filled(from, a)),
        memory.upload(&places[1].filled(from, b)),
        memory.upload(&places[2].filled(to, c)),
        memory.upload(&vec![0_u8; places[3].bytes(to)]),
    ]
    .map(|buffer| buffer.expect("it fits"));
    let name = format!("m{m}n{n}k{k}");
    let (kind, moved) = if from == "f64" { ("f64", ".f64") } else { ("b32", ".b32") };
    let mut body = String::new();
    let counts = [registers[0], registers[1], of.sums, of.sums];
    for (number, matrix) in ["a", "b", "c"].into_iter().enumerate() {
        let (place, kind) = (places[number], if matrix == "c" { to } else { from });
        let (registers, layout, stride) = (list(matrix, counts[number]), place.layout(), place.stride);
        writeln!(
            body,
            "mov.u32 %stride, {stride}; wmma.load.{matrix}.sync.aligned.{layout}.{name}{space}.{kind} {registers}, \
             [%p{number}], %stride;"
        )
        .expect("it is a string");
    }
    // The sum takes the registers of the addend, as compilers have it.
    let [of_a, of_b, of_c] =
        [("a", counts[0]), ("b", counts[1]), ("c", of.sums)].map(|(name, count)| list(name, count));
    let [first, second, last] = [0, 1, 3].map(|number| places[number].layout());
    let (spelled, stride) = (of.spelled, places[3].stride);
    writeln!(
        body,
        "wmma.mma.sync.aligned.{first}.{second}.{name}.{spelled} {of_c}, {of_a}, {of_b}, {of_c};
        wmma.store.d.sync.aligned.{last}.{name}{space}.{to} [%p3], {of_c}, {stride};"
    )
    .expect("it is a string");
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{
        .reg {moved} %a<8>, %b<8>, %c<8>; .reg .b32 %stride; .reg .b64 %p<4>;
        ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u64 %p2, [c]; ld.param.u64 %p3, [d];
        {body} ret; }}"
    );
    let params: Vec<u8> = buffers.into_iter().flat_map(u64::to_le_bytes).collect();
    let config = Config { checks: Checks::ALL, ..Config::default() };
    let report = launch_with(&config, &text, shape(1, 32), &params, &memory).unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(report.findings, [], "{text}");
    let found = memory.download::<u8>(buffers[3], places[3].bytes(to)).expect("it is there");
    assert!(found == places[3].filled(to, sum), "{name}{space}.{kind} {spelled} {by_rows:?}\n{text}");
    report
}

#[test]
fn products_of_every_type_shape_and_layout_are_right() {
    for of in &TYPES {
        for &shape in of.shapes {
            for layouts in 0..16 {
                let by_rows = std::array::from_fn(|matrix| layouts >> matrix & 1 == 0);
                for space in [".global", ""] {
                    check(of, shape, by_rows, space);
                }
            }
        }
    }
}

#[test]
fn tiles_are_counted_as_accesses_of_a_word_or_two() {
    let count = |number: usize, by_rows: [bool; 4]| {
        let report = check(&TYPES[number], TYPES[number].shapes[0], by_rows, ".global");
        [report.global_load.requests, report.global_store.requests]
    };
    // Four words of each matrix of halves, and two pairs of words for each half of a sum.
    assert_eq!(count(0, [true; 4]), [4 + 4 + 4, 4]);
    assert_eq!(count(0, [false, false, true, true]), [4 + 4 + 4, 4]);
    assert_eq!(count(0, [true, true, false, false]), [4 + 4 + 8, 8]);
    assert_eq!(count(1, [true, true, true, false]), [4 + 4 + 4, 4]);
    // Columns of bytes are loaded byte by byte.
    assert_eq!(count(3, [true, false, true, true]), [2 + 2 + 4, 4]);
    assert_eq!(count(3, [false, true, true, true]), [8 + 8 + 4, 4]);
}

/// Runs a kernel with this body, a buffer of 1024 bytes and shared memory of as many.
fn run(body: &str, config: &Config) -> Result<Vec<u32>, Box<warpstride_interp::Stop>> {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 p) {{
        .reg .pred %q; .reg .b32 %a<8>, %r<4>; .reg .b64 %p<4>; .shared .align 16 .b8 tile[1024];
        ld.param.u64 %p0, [p]; mov.u32 %r0, %tid.x; mov.u32 %r1, tile; {body} ret; }}"
    );
    super::run_on(&text, shape(1, 32), &[0; 256], config).map(|(_, words)| words)
}

#[test]
fn fragments_go_through_shared_memory_without_a_stride() {
    let sum = list("a", 8);
    let body = format!(
        "mad.lo.u32 %r2, %r0, 4, %r1; mov.u32 %r3, 7; st.shared.u32 [%r2], %r0; st.shared.u32 [%r2+128], %r3;
        st.shared.u32 [%r2+256], %r0; st.shared.u32 [%r2+384], %r3; st.shared.u32 [%r2+512], %r0;
        st.shared.u32 [%r2+640], %r3; st.shared.u32 [%r2+768], %r0; st.shared.u32 [%r2+896], %r3; bar.sync 0;
        wmma.load.c.sync.aligned.row.m32n8k16.shared.s32 {sum}, [%r1];
        wmma.store.d.sync.aligned.row.m32n8k16.global.s32 [%p0], {sum};"
    );
    let words = run(&body, &Config::default()).unwrap_or_else(|stop| panic!("{stop}"));
    let expected: Vec<u32> = (0..256).map(|word| if word / 32 % 2 == 0 { word % 32 } else { 7 }).collect();
    assert_eq!(words, expected);
}

#[test]
fn a_register_may_stand_for_several_of_a_stored_matrix() {
    let words = run(
        "mov.b32 %a0, 0x3c003c00; wmma.store.d.sync.aligned.col.m16n16k16.global.f16 [%p0], {%a0, %a0, %a0, %a0}, 16;",
        &Config::default(),
    );
    assert_eq!(words.unwrap_or_else(|stop| panic!("{stop}"))[..128], [0x3c00_3c00; 128]);
}

#[test]
fn wrong_fragments_are_refused_or_stop() {
    let load = |registers: usize, rest: &str| {
        let list = list("a", registers);
        let load = format!("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {list}, {rest}");
        *run(&load, &Config::default()).expect_err(&load)
    };
    assert!(load(4, "[%p0], 16;").to_string().contains("operands"));
    assert!(load(8, "[%p0], 16, 4;").to_string().contains("operands"));
    let beyond = load(8, "[%p0], 100;");
    assert!(matches!(beyond.reason, Reason::OutOfBounds(_)), "{beyond}");
    let odd = load(8, "[%p0+2], 16;");
    assert!(matches!(odd.reason, Reason::Misaligned(_)), "{odd}");
}

#[test]
fn a_product_needs_no_access_to_memory() {
    let (sum, half) = (list("a", 4), list("a", 2));
    let body = format!("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {sum}, {sum}, {half}, {sum};");
    let text = format!("{PRELUDE}.visible .entry k() {{ .reg .b32 %a<8>; {body} ret; }}");
    launch_with(&Config::default(), &text, shape(1, 32), &[], &Memory::new(1)).unwrap_or_else(|stop| panic!("{stop}"));
}

/// Loads of shared memory have fewer instructions on the GPU, which counts `ldmatrix` apart.
#[test]
fn tiles_have_the_requests_sectors_and_wavefronts_of_an_h200() {
    let module = Module::parse(include_str!("../data/wmma.ptx")).unwrap();
    let mut compared = 0;
    for line in include_str!("../data/wmma-h200.txt").lines().filter(|line| !line.starts_with('#')) {
        let (name, counts) = line.split_once(' ').expect("a name");
        let wanted: Vec<u64> = counts.split(' ').map(|count| count.parse().expect("a number")).collect();
        let (kernel, memory) = (module.kernel(name).unwrap(), Memory::new(1 << 20));
        let buffers = [(); 3].map(|()| memory.upload(&vec![0_u8; 1 << 16]).unwrap());
        let params =
            buffers.into_iter().fold(Args::new(kernel), |args, address| args.value(address).unwrap()).finish().unwrap();
        let report = run_kernel(kernel, &shape(1, 32), &params, &memory, &Config::default())
            .unwrap_or_else(|stop| panic!("{stop}"));
        let of = report.counters;
        let [load, store] = [of.global_load, of.global_store].map(|of| [of.requests, of.sectors]);
        let shared = [of.shared_store.instructions, of.shared_load.wavefronts, of.shared_store.wavefronts];
        assert_eq!([&load[..], &store, &shared].concat(), wanted, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 20);
}
