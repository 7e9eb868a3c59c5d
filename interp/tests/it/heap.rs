//! Memory that kernels allocate with `malloc` and free.

use warpstride_interp::stop::Reason;
use warpstride_interp::{Checks, Config, Memory, Report, Stop};

use super::{PRELUDE, launch_with, on_threads, shape};

/// A kernel with the functions of the runtime, whose parameter is a buffer: `%rd1` is its address,
/// `%rd2` that of the thread's 8 bytes in it, and `%r1` the thread's number in the grid. `MALLOC d,
/// bytes;` and `FREE a;` stand for calls.
fn text(body: &str) -> String {
    let call = |line: &str| match line.trim().split_once(' ') {
        Some(("MALLOC", operands)) => {
            let (result, bytes) = operands.split_once(", ").expect("two operands");
            format!(
                "{{ .param .b64 b; .param .b64 r; st.param.b64 [b], {bytes}; call.uni (r), malloc, (b); \
                 ld.param.b64 {result}, [r]; }}"
            )
        }
        Some(("FREE", address)) => {
            format!("{{ .param .b64 a; st.param.b64 [a], {address}; call.uni free, (a); }}")
        }
        _ => format!("{line};"),
    };
    let body: String = body.split(';').filter(|line| !line.trim().is_empty()).map(call).collect();
    format!(
        "{PRELUDE}.extern .func (.param .b64 func_retval0) malloc (.param .b64 malloc_param_0);
        .extern .func free (.param .b64 free_param_0);
        .visible .entry k(.param .u64 p) {{
        .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<12>;
        mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r1, %tid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
        ld.param.u64 %rd1, [p]; mad.wide.u32 %rd2, %r1, 8, %rd1;
        {body} }}"
    )
}

/// Runs such a kernel on a buffer that begins with zeros, and returns its words afterwards.
fn run_in(
    memory: &Memory,
    body: &str,
    (blocks, threads): (u32, u32),
    config: &Config,
) -> Result<(Report, Vec<u64>), Box<Stop>> {
    let count = (blocks * threads) as usize;
    let buffer = memory.upload(&vec![0_u64; count]).expect("it fits");
    let report = launch_with(config, &text(body), shape(blocks, threads), &buffer.to_le_bytes(), memory)?;
    Ok((report, memory.download(buffer, count).expect("it is there")))
}

fn all_checks() -> Config {
    Config { checks: Checks::ALL, ..Config::default() }
}

fn stop(body: &str) -> Stop {
    *run_in(&Memory::new(64 << 20), body, (1, 32), &Config::default()).expect_err("it stops")
}

/// The findings of a kernel of one thread under all checkers.
fn findings(body: &str) -> Vec<String> {
    let (report, _) =
        run_in(&Memory::new(64 << 20), body, (1, 1), &all_checks()).unwrap_or_else(|stop| panic!("{stop}"));
    report.findings.iter().map(ToString::to_string).collect()
}

/// Each thread fills a list of its own, and sums it up in reverse.
const LISTS: &str = "mov.u64 %rd3, 0; mov.u32 %r4, 0;
    mov.u64 %rd8, 16;
    again: add.u32 %r4, %r4, 0; MALLOC %rd4, %rd8; st.u64 [%rd4], %rd3; add.u32 %r5, %r1, %r4; cvt.u64.u32 %rd5, %r5; st.u64 [%rd4+8], %rd5;
    mov.u64 %rd3, %rd4; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 5; @%p1 bra again; mov.u64 %rd6, 0;
    next: ld.u64 %rd5, [%rd3+8]; add.u64 %rd6, %rd6, %rd5; ld.u64 %rd4, [%rd3];
    FREE %rd3; mov.u64 %rd3, %rd4; setp.ne.u64 %p1, %rd3, 0; @%p1 bra next; st.global.u64 [%rd2], %rd6";

#[test]
fn threads_have_lists_of_their_own() {
    let expected: Vec<u64> = (0..4096).map(|thread| 5 * thread + 10).collect();
    for result in on_threads(&Config::default(), |config| {
        let memory = Memory::new(64 << 20);
        // A second launch uses what the first one freed.
        memory.set_heap_limit(700 << 10).expect("it has no heap yet");
        let mut found = Vec::new();
        for _ in 0..3 {
            found = run_in(&memory, LISTS, (32, 128), config).unwrap_or_else(|stop| panic!("{stop}")).1;
        }
        found
    }) {
        assert_eq!(result, expected);
    }
}

#[test]
fn checkers_find_nothing_in_memory_that_others_used_before() {
    let memory = Memory::new(64 << 20);
    // A block's lists fit, and those of two blocks do not.
    memory.set_heap_limit(5 * 32 * 40).expect("it has no heap yet");
    let (report, _) = run_in(&memory, LISTS, (6, 32), &all_checks()).unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(report.findings, []);
}

#[test]
fn memory_lives_from_one_launch_to_the_next() {
    let memory = Memory::new(64 << 20);
    let buffer = memory.upload(&[0_u64; 32]).expect("it fits");
    let run = |body: &str| {
        let config = all_checks();
        let report = launch_with(&config, &text(body), shape(1, 32), &buffer.to_le_bytes(), &memory);
        assert_eq!(report.unwrap_or_else(|stop| panic!("{stop}")).findings, []);
    };
    run("mov.u64 %rd3, 24; MALLOC %rd4, %rd3; st.global.u64 [%rd2], %rd4; st.global.u32 [%rd4+20], %r1");
    run("ld.global.u64 %rd4, [%rd2]; ld.global.u32 %r4, [%rd4+20]; cvt.u64.u32 %rd5, %r4; st.global.u64 [%rd2], %rd5;
        FREE %rd4");
    assert_eq!(memory.download::<u64>(buffer, 32).expect("it is there"), (0..32).collect::<Vec<u64>>());
}

#[test]
fn chunks_are_aligned_and_a_full_heap_gives_null() {
    let memory = Memory::new(64 << 20);
    memory.set_heap_limit(1 << 16).expect("it has no heap yet");
    let body = "mov.u64 %rd3, 3000; MALLOC %rd4, %rd3; st.global.u64 [%rd2], %rd4";
    let (_, mut chunks) = run_in(&memory, body, (1, 32), &Config::default()).unwrap_or_else(|stop| panic!("{stop}"));
    assert!(chunks.iter().all(|address| address % 16 == 0));
    chunks.sort_unstable();
    chunks.retain(|&address| address != 0);
    assert_eq!(chunks.len(), (1 << 16) / 3024);
    assert!(chunks.windows(2).all(|pair| pair[1] - pair[0] >= 3000));
    // A kernel may free null.
    run_in(&memory, "mov.u64 %rd3, 0; FREE %rd3", (1, 32), &Config::default()).unwrap_or_else(|stop| panic!("{stop}"));
}

#[test]
fn wrong_uses_stop_the_launch() {
    let of = |rest: &str| stop(&format!("mov.u64 %rd3, 20; MALLOC %rd4, %rd3; {rest}"));
    let freed = of("FREE %rd4; ld.u32 %r4, [%rd4+4]");
    assert!(freed.to_string().contains("in memory that has been freed, of 20 bytes at"), "{freed}");
    let beyond = of("st.global.u32 [%rd4+20], %r1");
    assert!(beyond.to_string().contains("0 bytes past the end of an allocation of 20 bytes"), "{beyond}");
    let atomic = of("FREE %rd4; atom.global.add.u32 %r4, [%rd4], 1");
    assert!(matches!(atomic.reason, Reason::OutOfBounds(_)), "{atomic}");
    let twice = of("FREE %rd4; FREE %rd4");
    assert!(twice.to_string().contains("which has been freed before; free it once"), "{twice}");
    for rest in ["FREE %rd2", "add.u64 %rd4, %rd4, 16; FREE %rd4"] {
        let foreign = of(rest);
        assert!(foreign.to_string().contains("which `malloc` did not return in a kernel"), "{foreign}");
    }
}

#[test]
fn checkers_report_wrong_uses_and_go_on() {
    let found = findings(
        "mov.u64 %rd3, 20; MALLOC %rd4, %rd3; ld.u32 %r4, [%rd4+8]; FREE %rd4; st.u32 [%rd4], %r1; FREE %rd4;
        st.global.u32 [%rd2], %r4",
    );
    let wanted = [
        "not all of which have been written",
        "in memory that has been freed, of 20 bytes",
        "which has been freed before",
    ];
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.contains(wanted), "{found}");
    }
}

#[test]
fn a_heap_needs_room() {
    let stop = run_in(&Memory::new(1 << 20), LISTS, (1, 1), &Config::default()).expect_err("it has no room");
    assert!(stop.to_string().contains("cannot allocate 8388608 bytes"), "{stop}");
}
