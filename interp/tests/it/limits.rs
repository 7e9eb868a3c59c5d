//! Absurd demands: they are refused with a sentence, or stopped at a limit, and in the same way for
//! any number of host threads.

use warpstride_interp::check::Check;
use warpstride_interp::launch_shape::{LaunchShape, MAX_GRID_X, MAX_GRID_YZ};
use warpstride_interp::stop::Reason;
use warpstride_interp::{Config, MAX_TEXT_BYTES, Memory, Module};

use super::{launch, launch_with, on_threads, shape};
use crate::long::is_long;

fn module(body: &str) -> String {
    format!(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{ {body} }}")
}

/// The reason why the only kernel cannot run, or why the text does not parse.
fn refusal(text: &str) -> String {
    match Module::parse(text) {
        Ok(_) => super::refusal(text).to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_grid_without_end_is_refused_before_it_begins() {
    let grid = [MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ];
    let absurd = LaunchShape { grid, block: [1, 1, 1], dynamic_shared: 0 };
    let stop = launch(&module("ret;"), absurd, &[], &Memory::new(1)).expect_err("it would take ages");
    let message = stop.to_string();
    assert!(message.contains("cannot be launched: a grid of [2147483647, 65535, 65535] blocks"), "{message}");
    assert!(
        message.contains("the limit is 1073741824: launch a smaller one, or raise `Config::work_limit`"),
        "{message}"
    );
}

#[test]
fn a_launch_stops_after_the_same_block_for_any_number_of_threads() {
    // Each block runs the loop as often as its number says.
    let text = module(
        ".reg .pred %p; .reg .b32 %r<3>; mov.u32 %r1, %ctaid.x; mov.u32 %r2, 0;
        $top: add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, %r1; @%p bra $top;",
    );
    let stopped = |config: &Config, text: &str| {
        on_threads(config, |config| {
            launch_with(config, text, shape(1000, 32), &[], &Memory::new(1)).expect_err("it is too much")
        })
    };
    let config = Config { work_limit: 100_000, ..Config::default() };
    let stops = stopped(&config, &text);
    let Reason::LaunchLimit { limit: 100_000, block: [last, 0, 0] } = stops[0].reason else { panic!("{}", stops[0]) };
    // Block n takes 2 + 3 n + 1 instructions, and about thirty units to begin and end: the sum over
    // n exceeds the limit at about n = 245.
    assert!((230..260).contains(&last), "{last}");
    assert_eq!(
        stops[0].to_string(),
        format!(
            "kernel \"k\" was stopped: its blocks up to ({last}, 0, 0) took more than 100000 units of work; launch a smaller \
             grid, or raise `Config::work_limit`"
        )
    );
    assert!(stops.iter().all(|stop| *stop == stops[0]));
    // A fault before that block is reported; one after it is not.
    for (at, faults) in [(last - 1, true), (last, true), (last + 1, false)] {
        let text = text.replace("$top:", &format!("setp.eq.u32 %p, %r1, {at}; @%p trap; $top:"));
        // The two additional instructions of each block are work too.
        let config = Config { work_limit: 100_000 + 2 * u64::from(last), ..config.clone() };
        let stops = stopped(&config, &text);
        assert_eq!(stops[0].reason == Reason::Trap, faults, "{at}: {}", stops[0]);
        assert!(stops.iter().all(|stop| *stop == stops[0]), "{at}");
    }
}

#[test]
fn what_no_memory_holds_is_refused() {
    for (body, said) in [
        (".shared .b8 s[18446744073709551615];", "larger than any memory"),
        (".shared .b8 s[4294967296][4294967296];", "larger than any memory"),
        (".shared .b8 s[1099511627775]; .shared .b8 t[1099511627775];", "static shared memory"),
        (".local .b8 s[1099511627775];", "local memory"),
        (".shared .align 3 .b8 s[4];", "an alignment of 3"),
        (".shared .align 9223372036854775808 .b8 s[4];", "an alignment of"),
        (".shared .align 1048576 .b8 s[4]; .shared .align 1048576 .b8 t[4];", "static shared memory"),
        (".reg .b32 %r<4294967295>, %r7;", "declared twice"),
    ] {
        let message = refusal(&module(body));
        assert!(message.contains(said), "{body}: {message}");
    }
    let params = ".entry k(.param .b8 p[1099511627775], .param .b8 q[1099511627775]) { ret; }";
    assert!(refusal(params).contains("more than 32764 bytes"), "{}", refusal(params));
    let many = ".reg .b32 %r<99999999>;".to_owned() + &repeated(40_000, |i| format!("mov.u32 %r{i}, 1;"));
    assert!(refusal(&module(&many)).contains("more than 32768 registers"));
    let long = ".reg .b32 r;".to_owned() + &"mov.u32 r, 1;".repeat(140_000);
    assert!(refusal(&module(&long)).contains("more than 131072 instructions"));
    let deep = format!("{}{}", "{".repeat(100_000), "}".repeat(100_000));
    assert!(refusal(&module(&deep)).contains("nested more than 64 deep"));
    let wide = refusal(&module(&format!(".reg .b32 r; mov.b64 {{r{}}}, r;", ", r".repeat(1 << 20))));
    assert!(wide.len() < 1000 && wide.contains("r, r..."), "a message shows the beginning: {} bytes", wide.len());
    let blank = " ".repeat(MAX_TEXT_BYTES + 1);
    assert!(refusal(&blank).contains("the module has 16777217 bytes; at most 16 MiB"));
}

fn repeated(count: usize, statement: impl Fn(usize) -> String) -> String {
    (0..count).map(statement).collect()
}

/// Work that grew with the square of their number would take 5 * 10^9 steps for each body.
#[test]
fn a_hundred_thousand_declarations_are_parsed_and_lowered() {
    let count = 100_000;
    let bodies = [
        repeated(count, |i| format!(".reg .b32 a{i};")),
        repeated(count, |i| format!(".reg .b32 a{i}_<4>;")),
        format!(".reg .b32 b{};", repeated(count, |i| format!(", a{i}_<4>, c{i}"))),
        repeated(count, |i| format!(".local .b8 v{i}[1];")),
        repeated(count, |i| format!("L{i}: bra L{};", (i * 7919) % count)),
        format!(".reg .pred p; {}", repeated(count, |i| format!("L{i}: @p bra L{};", (i * 7919) % count))),
        repeated(count, |i| format!("{{ .reg .b32 r; L{i}: }}")),
    ];
    // The short form leaves out ranges in declarations of their own, which the third body has, and
    // conditional branches, which `live` has.
    let in_short_form = |&(number, _): &(usize, _)| ![1, 5].contains(&number);
    for (_, body) in bodies.into_iter().enumerate().filter(|body| is_long() || in_short_form(body)) {
        let module = Module::parse(&module(&body)).unwrap_or_else(|error| panic!("{error}"));
        module.kernel("k").expect("it is there").supported().unwrap_or_else(|error| panic!("{error}"));
    }
    // Many registers live in many blocks, and many branches to places that nothing else reaches.
    let live = repeated(count, |i| format!("L{i}: add.u32 q, q, %r{}; @p bra L{};", i / 5, (i * 7919) % count));
    let tangled = repeated(count, |i| format!("@p bra C0; bra C{}; C{i}: bra C{};", count - 1, (i + 1).min(count - 1)));
    for body in [live, tangled] {
        let text = module(&format!(".reg .pred p; .reg .b32 q, %r<{count}>; {body}"));
        assert!(refusal(&text).contains("instructions"));
    }
}

/// Each word at which a thread releases keeps that thread's knowledge.
#[test]
fn racecheck_says_where_more_is_published_than_it_follows() {
    let text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {
        .reg .b32 %r<4>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
        mad.lo.u32 %r3, %r1, 1024, %r2; mad.wide.u32 %rd2, %r3, 4, %rd1; st.release.gpu.global.u32 [%rd2], 1; }";
    let config = Config { checks: Check::Racecheck.into(), ..Config::default() };
    let memory = Memory::new(4 << 20);
    let place = memory.alloc(4 * 1024 * 513).expect("it fits");
    let launched = |blocks| launch_with(&config, text, shape(blocks, 1024), &place.to_le_bytes(), &memory);
    // The long form has the largest grid that is followed, too.
    if is_long() {
        assert_eq!(launched(512).map(|report| report.findings), Ok(Vec::new()));
    }
    let stop = launched(513).expect_err("it is too much").to_string();
    assert!(stop.contains("it publishes at more places than the 524,288 that racecheck follows"), "{stop}");
    assert!(stop.contains("launch a smaller grid, or leave racecheck out"), "{stop}");
}
