//! Numbers in the documentation that the code knows: each page says what the code has.

use std::fs;
use std::path::Path;

use warpstride::roofline::model::DeviceModel;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Makes sure that a page has a phrase with a number in place of `#`, however its lines break.
#[track_caller]
fn says(page: &str, phrase: &str, number: impl ToString) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let phrase = phrase.replace('#', &number.to_string());
    assert!(words(&read(page)).contains(&phrase), "{page} does not say {phrase:?}");
}

/// Returns the value of a constant in a source: a number, or a shift of one.
#[track_caller]
fn constant(source: &str, name: &str) -> f64 {
    let text = read(source);
    let value = text.split(&format!("const {name}: ")).nth(1).and_then(|rest| rest.split([';', '{']).next());
    let value = value.and_then(|rest| rest.split_once(" = ")).unwrap_or_else(|| panic!("{source} has no {name}")).1;
    let number = |text: &str| text.trim().replace('_', "").parse::<f64>();
    let parsed = match value.split_once("<<") {
        Some((value, by)) => number(value).and_then(|value| Ok(value * number(by)?.exp2())),
        None => number(value),
    };
    parsed.unwrap_or_else(|error| panic!("{name} of {source}, {value:?}: {error}"))
}

/// Writes a whole number with a comma before each three digits.
fn with_commas(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

const MIB: f64 = 1_048_576.0;
const COMMANDS: &str = "docs/command-line.md";

#[test]
fn pages_have_the_constants_of_the_code() {
    for (page, phrase, source, name, unit) in [
        (COMMANDS, "prints `{\"schema\": #, \"error\"", "src/roofline/record.rs", "SCHEMA", 1.0),
        (
            COMMANDS,
            "the program takes a part of what is free, and # GiB at most",
            "src/out_of_core/mod.rs",
            "ENOUGH",
            1024.0 * MIB,
        ),
        (COMMANDS, "one of more than # pixels a side", "src/pipeline/frames/images.rs", "MAX_SIDE", 1.0),
        (COMMANDS, "pixels a side or # GiB, ends", "src/pipeline/frames/images.rs", "MAX_BYTES", 1024.0 * MIB),
        (COMMANDS, "regular files of at most # MiB and", "cli/src/run_ptx/source.rs", "MAX_BYTES", MIB),
        (COMMANDS, "MiB and # lines", "cli/src/run_ptx/source.rs", "MAX_LINES", 1.0),
        (COMMANDS, "prints the first # findings", "interp/src/gpu/check/mod.rs", "MAX_FINDINGS", 1.0),
        (COMMANDS, "medians differ by more than # %", "cli/src/run/compare.rs", "THRESHOLD", 0.01),
        (COMMANDS, "# launches (`--samples N`)", "cli/src/run_ptx/time.rs", "SAMPLES", 1.0),
        (COMMANDS, "each of the driver from # `uncached_pairs`", "cli/src/alloc/bench.rs", "PAIRS_UNCACHED", 1.0),
        (COMMANDS, "each figure is from # pairs", "cli/src/alloc/bench.rs", "PAIRS_SOFT", 1.0),
        (
            "CONTRIBUTING.md",
            "The GPU also runs # random PTX programs",
            "interp/tests/programs/record.rs",
            "PROGRAMS",
            1.0,
        ),
        ("docs/counters.md", "*sectors* of # bytes", "interp/src/counters.rs", "SECTOR_BYTES", 1.0),
    ] {
        says(page, phrase, with_commas(constant(source, name) / unit));
    }
}

#[test]
fn pages_have_limits_and_speeds_as_they_are_typed() {
    let work = constant("interp/src/gpu/config.rs", "DEFAULT_WORK");
    let most = 16.0 * work;
    says("docs/testing-kernels.md", "as `run-ptx --limit`; # at most", format!("{work} by default, and {most}"));
    let clang = constant("cli/src/cuda_cpp/clang.rs", "OLDEST");
    for page in ["README.md", "docs/getting-ptx.md"] {
        says(page, "clang # or later", clang);
    }
    says("book/src/introduction.md", "Clang # or later", clang);
    let model = DeviceModel::H100;
    let (memory, page) = (model.memory, "docs/model.md");
    says(page, "bytes / # where they are copied", memory.copy);
    says(page, "/ # where they are only read", memory.read);
    says(page, "/ # where they are only written", memory.write);
    says(page, "32 x sectors / #, or", model.l2_gbps);
    says(page, "or stored lines / #,", model.stored_lines);
    says(page, "passes through shared memory) / (#)", format!("{} x {}", model.multiprocessors, model.sm_ghz));
    says(page, "and # us to start", model.ramp_us);
    says(page, "| # for each, where there are several |", 1000.0 * model.launch_us);
    let constants = "src/roofline/model/estimate.rs";
    says(page, "| # x bytes /", constant(constants, "MEMORY"));
    says(page, "| # x instructions / (4 x", constant(constants, "SLOTS"));
    says(page, "rounds x #", constant(constants, "LATENCY_NS"));
    says(page, "(# x warps", constant(constants, "WARP_CLOCKS"));
    says(page, "+ # x lines and passes)", constant(constants, "PASS_CLOCKS"));
}

#[test]
fn pages_have_the_versions_of_the_packages() {
    let (version, rust) = (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_RUST_VERSION"));
    let series = version.rsplit_once('.').expect("three numbers").0;
    says("README.md", "warpstride = \"#\"", series);
    says("README.md", "pip install warpstride-#-py3", version);
    says("interp/README.md", "warpstride-interp = \"#\"", series);
    says("README.md", "stable Rust # or newer", rust);
    says("CONTRIBUTING.md", "stable Rust # or newer", rust);
}

#[test]
fn pages_count_examples_and_lessons() {
    let names = ["twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"];
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).expect("examples");
    let programs = entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some())).count();
    says("README.md", "[`examples/`](examples): # programs", names[programs - 12]);
    // README says of which lessons that they are programs in Rust.
    let order = read("cli/lessons/order.txt");
    let is_program =
        |lesson: &&str| Path::new(env!("CARGO_MANIFEST_DIR")).join("cli/lessons").join(lesson).join("task.rs").exists();
    let of_rust: Vec<usize> =
        order.lines().enumerate().filter(|(_, lesson)| is_program(lesson)).map(|(number, _)| number).collect();
    let (first, last) = (of_rust[0], of_rust[of_rust.len() - 1]);
    assert_eq!(of_rust, (first..=last).collect::<Vec<_>>(), "lessons in Rust stand together");
    for page in ["README.md", "docs/command-line.md", "docs/teachers.md"] {
        says(page, "Lessons # in Rust", format!("{first} to {last} are programs"));
    }
}

/// The families that ADR 9 counts: those of its table.
const PERMUTES: [&str; 14] = [
    "copy_b128",
    "rows",
    "patch",
    "small_tile",
    "staggered",
    "packed_quads",
    "deinterleave",
    "interleave",
    "deinterleave_quads",
    "interleave_quads",
    "boxes",
    "vector_tile",
    "ragged_tile",
    "elements",
];

/// Returns the bytes of the embedded PTX of the files whose names `takes` takes, and the number of
/// its entries.
fn kernels(takes: impl Fn(&str) -> bool) -> (u64, usize) {
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ptx")).expect("the PTX");
    let paths =
        files.map(|file| file.expect("readable").path()).filter(|path| path.extension().is_some_and(|of| of == "ptx"));
    let of_names = paths.filter(|path| takes(&path.file_stem().expect("a name").to_string_lossy()));
    of_names.fold((0, 0), |(bytes, entries), path| {
        let text = fs::read_to_string(path).expect("readable");
        (bytes + text.len() as u64, entries + text.matches(".entry ").count())
    })
}

#[test]
fn pages_count_the_kernels_and_their_bytes() {
    let (bytes, entries) = kernels(|_| true);
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let added = format!("{:.2} MB ({} bytes)", megabytes(bytes), with_commas(bytes as f64));
    says("README.md", "the embedded PTX adds # to a binary", added);
    let (_, casts) = kernels(|name| name == "cast");
    says("docs/adr/0010-ceilings-and-arithmetic.md", "its own cast kernel: # entries of the module", casts);
    let (of_permutes, permutes) = kernels(|name| PERMUTES.contains(&name));
    says("docs/adr/0009-permutes.md", "make # entries and", format!("{permutes} of {entries}"));
    says(
        "docs/adr/0009-permutes.md",
        "entries and # of PTX",
        format!("{:.1} of {:.1} MB", megabytes(of_permutes), megabytes(bytes)),
    );
}
