//! Files made to last for ever, or to take all memory: each is ended with one sentence, within the
//! memory given here, and within processor time that only what never ends takes.
//!
//! By default a launch may do a 128th of its usual work; `WARPSTRIDE_LONG=1` lets it do a quarter.

use std::fmt::Write;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use warpstride::interp::DEFAULT_WORK;

use super::Run;
use crate::long::{PATIENCE, is_long, short_or_long};

/// Returns the KiB of address space that a program has: 1 GB, and a quarter of that in the short
/// form, whose launches do less.
fn memory() -> u32 {
    short_or_long(250_000, 1_000_000)
}

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";
const VPRINTF: &str = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n";

/// Runs the program on a file with such text, on two threads and with no more time and memory than
/// there may be.
fn limited(text: &str, words: &[&str]) -> Run {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hostile.ptx");
    fs::write(&file, text).expect("it can be written");
    let mut command = Command::new("bash");
    command.args(["-c", "ulimit -v $1 -t $2; shift 2; exec \"$@\"", "bash"]);
    command.args([memory().to_string(), PATIENCE.as_secs().to_string(), env!("CARGO_BIN_EXE_warpstride").to_owned()]);
    let (word, options) = words.split_first().expect("a command");
    command.arg(word).arg(file).args(["--device", "soft", "--quiet"]).args(options).stdin(Stdio::null());
    // Stacks and arenas of threads are address space too.
    let output = command.envs([("RAYON_NUM_THREADS", "2"), ("MALLOC_ARENA_MAX", "2")]).output().expect("it starts");
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Run { command: format!("{command:?}"), code: output.status.code(), stdout, stderr }
}

/// Launches the kernel `k` of a text; what is wrong with it must be said in one sentence. The time
/// grows with the limit, and a quarter of the default one keeps the long form within minutes.
/// A launch whose work is not counted never ends, and is killed.
#[track_caller]
fn ended(text: &str, grid: &str, block: &str, options: &[&str]) -> String {
    let limit = (DEFAULT_WORK / short_or_long(128, 4)).to_string();
    let launch = ["run-ptx", "--entry", "k", "--grid", grid, "--block", block, "--limit", &limit];
    let run = limited(text, &[&launch, options].concat());
    assert_eq!(run.code, Some(1), "{}", &run.stderr[..run.stderr.len().min(2000)]);
    let sentence = run.stderr.lines().last().expect("a sentence").to_owned();
    assert!(sentence.starts_with("error: "), "{sentence}");
    sentence
}

fn kernel(declared: &str, body: &str) -> String {
    format!(
        "{HEAD}{declared}\n.visible .entry k(.param .u64 p) {{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; \
         .shared .align 8 .b8 sh[64];\n{body}\nret; }}"
    )
}

/// The limit includes the cost of this argument.
const ONE: &[&str] = &["--arg", "u32[64]=zeros"];
const ALL: &[&str] = &["--arg", "u32[64]=zeros", "--check", "all"];

#[test]
fn recursion_without_frames_ends_at_the_local_memory_of_a_thread() {
    let plain = ".func f() { call f; ret; }";
    let said = ended(&kernel(plain, "call f;"), "1", "64", ONE);
    assert!(said.contains("calls \"f\", 32769 calls deep") && said.contains("a recursion that never ends"), "{said}");
    let mutual = ".func g(); .func f() { call g; ret; } .func g() { call f; ret; }";
    let said = ended(&kernel(mutual, "call f;"), "4", "64", ONE);
    assert!(said.contains("calls \"f\", 32769 calls deep"), "{said}");
    let pointer = ".func f(.reg .u64 %a) { t: .callprototype _ (.reg .u64 _); call %a, (%a), t; ret; }";
    let said = ended(&kernel(pointer, "mov.u64 %rd1, f; call f, (%rd1);"), "2", "64", ONE);
    assert!(said.contains("calls \"f\""), "{said}");
    // All warps of two blocks at the bottom at a time.
    let deep = ".func f(.reg .u32 %n) { .reg .pred %q; .reg .u32 %m; setp.eq.u32 %q, %n, 0; @%q bra B;
        sub.u32 %m, %n, 1; call f, (%m); ret; B: bar.sync 0; L: bra L; ret; }";
    let said = ended(&kernel(deep, "call f, (10000);"), "2", "1024", ONE);
    assert!(said.contains("--limit"), "{said}");
}

/// A table for each branch or call would have 400 million targets, for which the memory has no
/// room.
#[test]
fn tables_that_many_branches_and_calls_share_are_made_once() {
    let count = 20_000;
    let mut text = format!("{HEAD}.visible .entry k() {{ .reg .b32 %r; T: .branchtargets L0");
    (1..count).for_each(|i| write!(text, ",L{i}").expect("a string"));
    text.push(';');
    (0..count).for_each(|i| write!(text, "L{i}:brx.idx %r,T;").expect("a string"));
    text.push('}');
    limited(&text, &["ptx-forms"]).ended(0, &["supports 1 of 1 kernel,"], &[]);
    let mut text = HEAD.to_owned();
    (0..count).for_each(|i| write!(text, ".func f{i}(){{ret;}}").expect("a string"));
    text += ".visible .entry k() { .reg .b64 %rd; T: .calltargets f0";
    (1..count).for_each(|i| write!(text, ",f{i}").expect("a string"));
    text.push(';');
    (0..count).for_each(|_| text += "call %rd,T;");
    text.push('}');
    limited(&text, &["ptx-forms"]).ended(0, &["supports 1 of 1 kernel,"], &[]);
}

/// All kernels at once are more than a table has room for, so a launch that lowered them would end
/// with the sentence that `ptx-forms` ends with, as the long form shows, or without memory.
#[test]
fn a_launch_lowers_its_own_kernel() {
    let count = 1000;
    let mut text = HEAD.to_owned();
    let body = "{ .reg .b32 %r<9>; add.u32 %r1, %r2, %r3; mul.lo.u32 %r4, %r1, %r2;";
    writeln!(text, ".func f0() {body} ret; }}").expect("a string");
    (1..count).for_each(|i| writeln!(text, ".func f{i}() {body} call f{}; ret; }}", i - 1).expect("a string"));
    (0..4 * count).for_each(|i| writeln!(text, ".visible .entry k{i}() {{ call f999; ret; }}").expect("a string"));
    let launch = ["run-ptx", "--entry", "k500", "--grid", "1", "--block", "32"];
    limited(&text, &launch).succeeded();
    if is_long() {
        limited(&text, &["ptx-forms"]).ended(1, &[], &["more than 1048576 instructions"]);
    }
}

#[test]
fn loops_without_end_are_ended_whatever_they_do() {
    let spin = "L: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;";
    let deep = format!(
        ".func f(.reg .u32 %n, .reg .u64 %rd1) {{ .reg .pred %q, %p1; .reg .u32 %m, %r1; setp.eq.u32 %q, %n, 0; @%q bra B;
        sub.u32 %m, %n, 1; call f, (%m, %rd1); ret; B: {spin} ret; }}"
    );
    let load = "ld.param.u64 %rd1, [p]; mov.u32 %r2, %tid.x; mad.wide.u32 %rd2, %r2, 4, %rd1;";
    let lanes = format!("{load} and.b32 %r3, %r2, 31; setp.gt.u32 %p2, %r3, 15; @%p2 bra E; call f, (5000, %rd1); E:");
    let printing = "{ .param .b64 a; .param .b64 b; .param .b32 c; mov.u64 %rd1, text; st.param.b64 [a], %rd1; \
        mov.u64 %rd1, 0; st.param.b64 [b], %rd1; call (c), vprintf, (a, b); } bra L;";
    let text = format!("{VPRINTF}.global .u8 text[9] = {{104, 111, 115, 116, 105, 108, 101, 10, 0}};");
    let barriers = "L: bar.sync 0; bra L;";
    let named = "mov.u32 %r1, %tid.x; shr.u32 %r1, %r1, 7; L: bar.sync %r1, 128; bra L;";
    let far = format!("{load} L: ld.global.u32 %r3, [%rd2+4096]; bra L;");
    let racing = format!("{load} L: st.global.u32 [%rd1], %r2; ld.global.u32 %r3, [%rd1+4]; bra L;");
    let parting = "mov.u32 %r1, %laneid; L: setp.lt.u32 %p1, %r1, 16; @%p1 bra A; bar.warp.sync -1; bra L; A: \
        bar.warp.sync -1; bra L;";
    let exact = "mov.b32 %r1, 0f3F000000; L: sin.approx.f32 %r2, %r1; ex2.approx.f32 %r3, %r1; bra L;";
    let atomic = format!("{load} L: atom.global.add.u32 %r3, [%rd1], 1; bra L;");
    let same = format!("{load} L: ld.global.u32 %r3, [%rd1]; bra L;");
    let fenced = format!("{load} L: membar.cta; ld.global.u32 %r3, [%rd1]; bra L;");
    let strong = format!("{load} L: membar.gl; st.relaxed.gpu.global.u32 [%rd1], %r2; bra L;");
    let published = format!("{load} L: st.release.gpu.global.u32 [%rd2], %r3; add.u32 %r3, %r3, 1; bra L;");
    let received = format!("{load} L: atom.acq_rel.gpu.global.add.u32 %r3, [%rd1], 1; bra L;");
    let synced = format!("{load} L: bar.sync 0; ld.global.u32 %r3, [%rd1]; bra L;");
    let names: Vec<_> = (0..32).map(|i| format!("v{i}")).collect();
    let variables: String = names.iter().map(|name| format!(".global .u32 {name};")).collect();
    let table = format!("{variables}.global .u64 t[32] = {{{}}};", names.join(","));
    let scattered = "mov.u32 %r1, %laneid; mov.u64 %rd1, t; mad.wide.u32 %rd2, %r1, 8, %rd1; ld.global.u64 %rd3, [%rd2]; \
        L: ld.global.u32 %r2, [%rd3]; bra L;";
    for (what, text, block) in [
        ("loads of one word", kernel("", &same), "1024"),
        ("loads behind fences", kernel("", &fenced), "32"),
        ("stores behind fences", kernel("", &strong), "1024"),
        ("releases", kernel("", &published), "64"),
        ("acquires and releases", kernel("", &received), "1024"),
        ("loads between barriers", kernel("", &synced), "1024"),
        ("lanes in many variables", kernel(&table, scattered), "256"),
        ("a stack and a loop", kernel(&deep, &format!("{load} call f, (8000, %rd1);")), "64"),
        ("half a warp with a stack", kernel(&deep, &lanes), "64"),
        ("printing", kernel(&text, &format!("L: {printing}")), "32"),
        ("barriers", kernel("", barriers), "1024"),
        ("barriers of some warps", kernel("", named), "1024"),
        ("nothing", kernel("", "L: bra L;"), "1024"),
        ("accesses beyond the end", kernel("", &far), "1024"),
        ("races", kernel("", &racing), "1024"),
        ("lanes that wait for each other", kernel("", parting), "64"),
        ("functions", kernel("", exact), "64"),
        ("atomics", kernel("", &atomic), "1024"),
    ] {
        for options in [ONE, ALL] {
            let said = ended(&text, "2", block, options);
            let told = said.contains("--limit") || said.contains("checkers") || said.contains("out of bounds");
            assert!(told, "{what}: {said}");
        }
    }
}

#[test]
fn a_grid_of_empty_blocks_is_refused_or_ended() {
    for grid in ["2147483647", "50000000", "2147483647,65535,65535"] {
        let said = ended(&kernel("", ""), grid, "1", ONE);
        assert!(said.contains("units of work") && said.contains("--limit"), "{said}");
    }
    // One block is slow, and many are not.
    let slow = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra E; L: bra L; E:";
    let blocks = short_or_long("100000", "500000");
    assert!(ended(&kernel("", slow), blocks, "1", ONE).contains("block (0, 0, 0)"));
}

#[test]
fn of_many_findings_the_first_are_told_and_the_others_counted() {
    let count = if is_long() { 1500 } else { 300 };
    let mut body = "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 bra B;".to_owned();
    (0..count).for_each(|_| body += "st.global.u32 [%rd1], %r1; bar.warp.sync -1;");
    body += "bra E; B:";
    (0..count).for_each(|_| body += "ld.global.u32 %r2, [%rd1+4];");
    body += "E:";
    let checked = |more: &str| {
        let line = format!("run-ptx --entry k --grid 1 --block 64 --check all --arg u32[64]=uninit{more}");
        limited(&kernel("", &body), &line.split(' ').collect::<Vec<_>>())
    };
    let run = checked(" --json");
    let document: Value = serde_json::from_str(&run.stdout).expect("one document");
    assert_eq!(document["findings"].as_array().expect("a list").len(), 100);
    let total = document["findings_total"].as_u64().expect("a number");
    assert!(total > 100, "{total}");
    assert!(run.stderr.contains(&format!("the checkers have found {total} faults")), "{}", run.stderr);
    let text = checked("");
    assert!(
        text.stdout.ends_with(&format!("and {} more\n", total - 100)),
        "{}",
        &text.stdout[text.stdout.len() - 300..]
    );
}

#[test]
fn variables_are_refused_before_any_takes_memory() {
    let mut declared = String::new();
    (0..100).for_each(|i| write!(declared, ".global .align 8 .b8 v{i}[400000000];").expect("a string"));
    let said = ended(&kernel(&declared, "L: bra L;"), "1", "32", ONE);
    assert!(said.contains("of 40000000000 bytes and"), "{said}");
    // Memory that is declared and not touched takes nothing.
    let declared = format!(".global .align 8 .b8 v[{}];", short_or_long(100_000_000, 400_000_000));
    let said = ended(&kernel(&declared, "L: bra L;"), "1", "32", ONE);
    assert!(said.contains("--limit"), "{said}");
}
