//! The checkers: wrong programs with their blessed messages, and right programs without findings.
//!
//! `tests/ptx/fail` holds one small wrong program for each fault, with its findings beside it;
//! `BLESS=1` accepts new ones. `tests/ptx/pass` holds right programs. The second line of each
//! describes its launch: `zeros[N]`, `uninit[N]` and `freed[N]` are buffers of N words.

use std::path::{Path, PathBuf};
use std::{env, fs};

use warpstride_interp::check::Check;
use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::stop::Reason;
use warpstride_interp::{Checks, Config, Finding, Memory, Module, Stop, Unread, run};

use super::{PRELUDE, launch_with, run_on, shape};

/// The programs of a folder of `tests/ptx`, in order.
fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx").join(folder);
    let entries = fs::read_dir(&folder).expect("readable").map(|entry| entry.expect("readable").path());
    let mut programs: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "ptx")).collect();
    programs.sort();
    programs
}

/// `// launch: grid 4, block 64, args zeros[8] u64=0`
fn launch_line(text: &str, memory: &Memory) -> (LaunchShape, Vec<u8>) {
    let line = text.lines().find_map(|line| line.strip_prefix("// launch: ")).expect("a launch line");
    let (extents, args) = line.split_once(", args").expect("arguments");
    let (grid, block) = extents.split_once(", ").expect("grid and block");
    let number = |text: &str, what: &str| text.strip_prefix(what).expect(what).parse().expect("a number");
    let params = args.split_whitespace().flat_map(|arg| argument(arg, memory).to_le_bytes()).collect();
    (shape(number(grid, "grid "), number(block, "block ")), params)
}

fn argument(arg: &str, memory: &Memory) -> u64 {
    if let Some(value) = arg.strip_prefix("u64=") {
        return value.parse().expect("a number");
    }
    let (kind, words) = arg.trim_end_matches(']').split_once('[').expect("a buffer");
    let bytes = 4 * words.parse::<u64>().expect("a number");
    let address = memory.alloc(bytes).expect("it fits");
    match kind {
        "zeros" => memory.fill(address, 0, bytes).expect("it is there"),
        "freed" => memory.free(address).expect("it is there"),
        _ => assert_eq!(kind, "uninit"),
    }
    address
}

/// Returns the findings of a program, and the reason why it stopped, if it did.
fn check(program: &Path, checks: Checks, threads: usize) -> (Vec<Finding>, Option<Reason>) {
    let text = fs::read_to_string(program).expect("readable");
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let memory = Memory::new(1 << 20);
    let (shape, params) = launch_line(&text, &memory);
    let kernel = module.kernels().next().expect("it has a kernel");
    let config = Config { checks, threads, work_limit: 1 << 26, ..Config::default() };
    match run(kernel, &shape, &params, &memory, &config) {
        Ok(report) => (report.findings, None),
        Err(stop) => (stop.findings, Some(stop.reason)),
    }
}

fn told(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

#[test]
fn wrong_programs_get_their_messages() {
    let mut differing = Vec::new();
    for program in programs("fail") {
        let (findings, stopped) = check(&program, Checks::ALL, 1);
        assert_eq!(stopped, None, "{}", program.display());
        assert!(!findings.is_empty(), "{}: nothing found", program.display());
        let (blessed, told) = (program.with_extension("stderr"), told(&findings));
        if env::var_os("BLESS").is_some() {
            fs::write(&blessed, &told).expect("the file can be written");
        } else if fs::read_to_string(&blessed).ok().as_deref() != Some(&told) {
            differing.push(format!("{}:\n{told}", program.display()));
        }
    }
    assert!(differing.is_empty(), "not as blessed; BLESS=1 accepts them:\n{}", differing.join("\n"));
}

#[test]
fn only_a_harmless_guess_of_a_compare_and_swap_is_a_note() {
    for program in programs("fail") {
        let is_guess = program.ends_with("race_first_guess.ptx");
        let (findings, _) = check(&program, Checks::ALL, 1);
        assert!(findings.iter().all(|finding| finding.note == is_guess), "{}", program.display());
    }
}

#[test]
fn right_programs_are_silent() {
    for program in programs("pass") {
        let (findings, stopped) = check(&program, Checks::ALL, 1);
        assert_eq!((told(&findings).as_str(), stopped), ("", None), "{}", program.display());
    }
}

#[test]
fn findings_are_the_same_for_any_number_of_threads() {
    for program in programs("fail") {
        assert_eq!(check(&program, Checks::ALL, 1), check(&program, Checks::ALL, 0), "{}", program.display());
    }
}

/// Memcheck is always on, because a bad access would otherwise end the launch.
#[test]
fn each_checker_finds_its_own_alone() {
    for program in programs("fail") {
        let (all, _) = check(&program, Checks::ALL, 1);
        for own in Check::ALL {
            let (alone, _) = check(&program, Checks::from(own) | Check::Memcheck.into(), 1);
            let of = |findings: Vec<Finding>| findings.into_iter().filter(|finding| finding.check == own).collect();
            let (alone, of_all): (Vec<_>, Vec<_>) = (of(alone), of(all.clone()));
            assert_eq!(alone, of_all, "{}: {own}", program.display());
        }
    }
}

fn run_text(
    body: &str,
    shape: LaunchShape,
    checks: Checks,
    memory: &Memory,
    p: u64,
) -> Result<Vec<Finding>, Box<Stop>> {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 p) {{ .reg .b32 %r<8>; .reg .b64 %a<4>; .reg .pred %p<2>;
        ld.param.u64 %a1, [p]; {body} }}"
    );
    let config = Config { checks, ..Config::default() };
    launch_with(&config, &text, shape, &p.to_le_bytes(), memory).map(|report| report.findings)
}

/// As in compute-sanitizer, bytes that the host, a copy, a fill or an earlier kernel wrote are
/// initialised.
#[test]
fn initcheck_remembers_earlier_writers() {
    let initcheck = "initcheck".parse().unwrap();
    let load = |memory: &Memory, p| run_text("ld.global.u32 %r1, [%a1+8];", shape(1, 1), initcheck, memory, p).unwrap();
    let memory = Memory::new(1 << 20);
    let fresh = || memory.alloc(64).unwrap();
    let (written, filled, copied, stored, beside) = (fresh(), fresh(), fresh(), fresh(), fresh());
    memory.write(written + 8, &[1; 4]).unwrap();
    memory.fill(filled, 0, 64).unwrap();
    memory.copy(copied + 8, written + 8, 4).unwrap();
    run_text("st.global.u32 [%a1+8], 1;", shape(1, 1), initcheck, &memory, stored).unwrap();
    memory.write(beside, &[1; 11]).unwrap();
    for address in [written, filled, copied, stored] {
        assert_eq!(load(&memory, address), []);
    }
    assert_eq!(load(&memory, beside).len(), 1, "of its last byte nothing is known");
    // A launch without initcheck may have written anything.
    run_text("st.global.u32 [%a1+8], 1;", shape(1, 1), Checks::NONE, &memory, fresh()).unwrap();
    assert_eq!(load(&memory, beside), []);
    assert_eq!(load(&memory, fresh()).len(), 1, "what is allocated later is looked at again");
}

#[test]
fn bytes_that_nothing_reads_are_counted() {
    let initcheck = "initcheck".parse().unwrap();
    let memory = Memory::new(1 << 20);
    let unread = |allocations, bytes| assert_eq!(memory.unread(), Unread { allocations, bytes });
    let (given, made) = (memory.alloc(64).unwrap(), memory.alloc(64).unwrap());
    unread(0, 0);
    memory.write(given, &[1; 16]).unwrap();
    unread(1, 16);
    // Lanes load the bytes 8 to 11, one of them with an atomic, and store 128 bytes.
    let body = "atom.global.add.u32 %r1, [%a1+8], 1; ld.global.u16 %r2, [%a1+8];";
    run_text(body, shape(1, 1), initcheck, &memory, given).unwrap();
    unread(1, 12);
    let body = "mov.u32 %r1, %tid.x; mad.wide.u32 %a2, %r1, 2, %a1; st.global.u16 [%a2], %r1;";
    run_text(body, shape(1, 32), initcheck, &memory, made).unwrap();
    unread(2, 12 + 64);
    memory.read(made + 5, &mut [0; 50]).unwrap();
    unread(2, 12 + 14);
    memory.copy(made, given, 16).unwrap();
    unread(1, 14);
    memory.free(made).unwrap();
    unread(1, 14);
    // A launch without initcheck may have read anything that was there, but nothing that was freed.
    memory.write(given, &[1; 64]).unwrap();
    unread(2, 14 + 48);
    run_text("ret;", shape(1, 1), Checks::NONE, &memory, given).unwrap();
    unread(1, 14);
}

#[test]
fn what_was_found_before_a_stop_is_not_lost() {
    let memory = Memory::new(1 << 20);
    let p = memory.alloc(64).unwrap();
    let body = "ld.global.u32 %r1, [%a1]; ld.global.u32 %r1, [%a1+64]; trap;";
    let stop = run_text(body, shape(1, 1), Checks::ALL, &memory, p).unwrap_err();
    assert_eq!(stop.reason, Reason::Trap);
    let checks: Vec<_> = stop.findings.iter().map(|finding| finding.check.name()).collect();
    assert_eq!(checks, ["initcheck", "memcheck"]);
    let initcheck = "initcheck".parse().unwrap();
    let stop = run_text(body, shape(1, 1), initcheck, &memory, p).unwrap_err();
    assert!(matches!(stop.reason, Reason::OutOfBounds(_)) && stop.findings.len() == 1, "without memcheck it stops");
}

#[test]
fn a_kernel_that_passes_values_and_touches_no_memory_can_be_checked() {
    let text = format!(
        "{PRELUDE}.func f(.param .b32 x) {{ .reg .b32 %r; ld.param.u32 %r, [x]; ret; }}
        .visible .entry k() {{ {{ .param .b32 a; st.param.b32 [a], 1; call f, (a); }} }}"
    );
    let config = Config { checks: Checks::ALL, ..Config::default() };
    let report = launch_with(&config, &text, shape(1, 32), &[], &Memory::new(0)).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn a_refused_access_leaves_the_others_alone_and_reads_as_zero() {
    let memory = Memory::new(1 << 20);
    let p = memory.upload(&[7_u32; 16]).unwrap();
    let body = "mov.u32 %r1, %tid.x; mad.wide.u32 %a2, %r1, 4, %a1; ld.global.u32 %r2, [%a2+32]; add.u32 %r2, %r2, 1;
        setp.lt.u32 %p1, %r1, 16; @%p1 st.global.u32 [%a2], %r2;";
    let findings = run_text(body, shape(1, 32), "memcheck".parse().unwrap(), &memory, p).unwrap();
    assert_eq!((findings.len(), findings[0].times), (1, 24));
    assert_eq!(findings[0].place.thread, [8, 0, 0]);
    assert_eq!(memory.download::<u32>(p, 16).unwrap(), [[8; 8], [1; 8]].concat());
}

#[test]
fn a_finding_names_the_line_it_was_compiled_from() {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 p) {{ .reg .b32 %r<2>; .reg .b64 %a<2>;
        ld.param.u64 %a1, [p]; mov.u32 %r1, %ctaid.x;
        .loc 1 44 0
        st.global.u32 [%a1], %r1; }}
        .file 1 \"src/sum.cu\""
    );
    let config = Config { checks: Checks::ALL, ..Config::default() };
    let (report, _) = run_on(&text, shape(3, 1), &[0], &config).unwrap();
    let [finding] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
    assert_eq!(finding.place.source.as_deref(), Some("src/sum.cu:44"));
    assert_eq!((finding.place.block, finding.times), ([1, 0, 0], 2));
    assert_eq!(finding.to_string().matches("src/sum.cu:44").count(), 2, "{finding}");
    // Compilers give line 0 to instructions that no line asked for.
    let (report, _) = run_on(&text.replace(".loc 1 44 0", ".loc 1 0 0"), shape(3, 1), &[0], &config).unwrap();
    let [finding] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
    assert_eq!(finding.place.source.as_deref(), Some("src/sum.cu"));
    assert_eq!(finding.to_string().matches("src/sum.cu (PTX line ").count(), 2, "{finding}");
}
