//! Products and sums that are fused, beside what NVIDIA's assembler makes of them: the cases of
//! `interp/tests/data/contraction.txt`.

use std::path::{Path, PathBuf};
use std::process::Command;

use warpstride_interp::{Config, Memory, Module, Report, run as run_kernel};

use super::long::missing;
use super::{run_on, shape};

/// A thread has so many words of its own: six inputs, three numbers that the outputs are at first,
/// and the outputs, 8 bytes each.
const WORDS: usize = 32;
/// The first word of the outputs, and the one behind them.
const OUTPUTS: std::ops::Range<usize> = 18..24;
const THREADS: usize = 256;

/// A case of the table in one of its types.
struct Case {
    name: String,
    kind: &'static str,
    /// PTX in which the assembler chooses.
    plain: String,
    /// The same PTX with its choices spelled out.
    spelled: String,
    /// The operations of the machine code, if this is the first type.
    operations: Option<&'static str>,
}

fn cases() -> Vec<Case> {
    let table = include_str!("../data/contraction.txt").split("\n\n").skip(1);
    let of = |text: &'static str| {
        let [name, kinds, plain, spelled, operations] = text.trim().lines().collect::<Vec<_>>()[..] else {
            panic!("not five lines: {text}");
        };
        let case = move |(number, kind): (usize, &'static str)| Case {
            name: format!("{name}, {kind}"),
            kind,
            plain: kernel(plain, kind),
            spelled: kernel(spelled, kind),
            operations: (number == 0).then_some(operations),
        };
        kinds.split(' ').enumerate().map(case)
    };
    table.flat_map(of).collect()
}

/// The kernel around the PTX of a case.
fn kernel(body: &str, kind: &str) -> String {
    let bits = match kind {
        "f32" => "f32",
        "f64" => "f64",
        "f16" | "bf16" => "b16",
        _ => "b32",
    };
    let body = body.replace("mov.T", &format!("mov.{bits}")).replace(".T", &format!(".{kind}"));
    let each = |names: &str, from: usize, of: &dyn Fn(char, usize) -> String| -> String {
        names.chars().enumerate().map(|(number, name)| of(name, 8 * (from + number))).collect()
    };
    let load = |name: char, at: usize| format!("ld.global.{bits} {name}, [%at+{at}]; ");
    let store = |name: char, at: usize| format!("st.global.{bits} [%at+{at}], {name}; ");
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data) {{
        .reg .b64 %at; .reg .b32 %odd, i, n; .reg .pred o, u; .reg .{bits} a, b, c, d, e, f, p, q, r, t, x, y, z, g, h;
        ld.param.u64 %at, [data]; mov.u32 i, %tid.x; mad.wide.u32 %at, i, {}, %at;
        and.b32 %odd, i, 1; setp.ne.u32 o, %odd, 0; add.u32 i, i, 1; ld.global.u32 n, [%at];
        and.b32 n, n, 7; {}{}
        {body}
        {} ret; }}",
        4 * WORDS,
        each("abcdef", 0, &load),
        each("xyz", 6, &load),
        each("xyz", 9, &store),
    )
}

/// Numbers of a type around 1 of either sign, with bits all over their fractions. Those of some
/// threads are denormal.
fn inputs(kind: &str) -> Vec<u32> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state >> 32
    };
    let mut words = vec![0; THREADS * WORDS];
    for (number, pair) in words.chunks_exact_mut(2).enumerate() {
        let is_small = number / (WORDS / 2) % 8 == 7;
        let mut number = |bits: u32, fraction: u32, one: u64| {
            let (sign, near) = (random() & 1, one + random() % 3 - 1);
            let digits = (random() << 32 | random()) & ((1 << fraction) - 1);
            sign << (bits - 1) | (if is_small { 0 } else { near }) << fraction | digits
        };
        let value = match kind {
            "f32" => number(32, 23, 127),
            "f64" => number(64, 52, 1023),
            "f16" | "f16x2" => number(16, 10, 15) | number(16, 10, 15) << 16,
            _ => number(16, 7, 127) | number(16, 7, 127) << 16,
        };
        (pair[0], pair[1]) = (value as u32, (value >> 32) as u32);
    }
    words
}

/// Runs a kernel, and returns what each thread stored.
fn run(text: &str, kind: &str, contract: bool) -> (Report, Vec<u32>) {
    let config = Config { contract, ..Config::default() };
    let (report, words) = run_on(text, shape(1, THREADS as u32), &inputs(kind), &config).expect(text);
    let outputs = words.chunks_exact(WORDS).flat_map(|words| words[OUTPUTS].to_vec()).collect();
    (report, outputs)
}

#[test]
fn products_and_sums_are_fused_where_the_assembler_does_it() {
    for Case { name, kind, plain, spelled, .. } in cases() {
        let [(_, wanted), (_, same)] = [false, true].map(|contract| run(&spelled, kind, contract));
        let (_, got) = run(&plain, kind, true);
        assert_eq!(got, wanted, "{name}\n{plain}\n{spelled}");
        assert_eq!(same, wanted, "{name}: the choices are not spelled out\n{spelled}");
        let (_, separate) = run(&plain, kind, false);
        let count = |text: &str| text.matches("fma.").count();
        assert_eq!(separate != wanted, count(&spelled) > count(&plain), "{name}: inputs that tell nothing");
    }
}

#[test]
fn counters_stay_the_same() {
    for Case { name, kind, plain, .. } in cases() {
        let [separate, fused] = [false, true].map(|contract| run(&plain, kind, contract).0);
        assert_eq!(fused.counters, separate.counters, "{name}");
        assert_eq!(
            (fused.warp_instructions, fused.thread_instructions),
            (separate.warp_instructions, separate.thread_instructions),
            "{name}"
        );
    }
}

/// Kernels of other tests, on parameters of zeros: most stop, and at the same place.
#[test]
fn launches_end_in_the_same_way() {
    for text in [
        include_str!("../data/patterns.ptx"),
        include_str!("../data/dialect.ptx"),
        include_str!("../data/hopper.ptx"),
        include_str!("../data/wmma.ptx"),
    ] {
        let module = Module::parse(text).expect("it is PTX");
        for kernel in module.kernels() {
            let [separate, fused] = [false, true].map(|contract| {
                let config = Config { contract, work_limit: 100_000, threads: 1, ..Config::default() };
                let (params, memory) = (vec![0; kernel.param_bytes()], Memory::new(1 << 20));
                let ended = run_kernel(kernel, &shape(1, 32), &params, &memory, &config);
                ended.map(|report| report.counters).map_err(|stop| stop.to_string())
            });
            assert_eq!(fused, separate, "{}", kernel.name());
        }
    }
}

#[test]
fn the_table_has_an_operation_of_the_machine_code_for_each_spelled_one() {
    let count = |text: &str, names: &[&str]| names.iter().map(|name| text.matches(name).count()).sum::<usize>();
    let cases = cases();
    // A division is many operations of the machine code.
    let plain =
        |case: &&Case| matches!(case.kind, "f32" | "f64") && count(&case.spelled, &["div.", "sqrt.", "rem."]) == 0;
    for Case { name, spelled, operations, .. } in cases.iter().filter(plain) {
        let Some(operations) = operations else { continue };
        for (machine, names) in [("FMA", &["fma."][..]), ("MUL", &["mul."])] {
            assert_eq!(count(operations, &[machine]), count(spelled, names), "{name}: {operations}\n{spelled}");
        }
    }
}

/// Returns the assembler of CUDA 13, which `scripts/tools` installs.
fn ptxas() -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/python/lib");
    let versions = std::fs::read_dir(tools).ok()?.flatten();
    let mut found = versions.map(|version| version.path().join("site-packages/nvidia/cu13/bin/ptxas"));
    found.find(|ptxas| ptxas.exists())
}

#[test]
fn the_assembler_makes_the_same_machine_code_of_what_is_spelled_out() {
    let Some(ptxas) = ptxas() else {
        missing("ptxas");
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let assembled = |text: &str| {
        let [source, code] = ["contract.ptx", "contract.cubin"].map(|name| folder.join(name));
        std::fs::write(&source, text).expect("it is written");
        let told = Command::new(&ptxas).arg("-arch=sm_90").arg(&source).arg("-o").arg(&code).output().expect("ptxas");
        assert!(told.status.success(), "{}\n{text}", String::from_utf8_lossy(&told.stderr));
        std::fs::read(code).expect("it is there")
    };
    for Case { name, plain, spelled, .. } in cases() {
        assert!(assembled(&plain) == assembled(&spelled), "{name}\n{plain}\n{spelled}");
    }
}
