//! Expectations: every counter and comparison, ideals of a launch, refusals, and any text.

use std::panic::catch_unwind;

use proptest::prelude::*;
use warpstride_interp::ErrorKind;
use warpstride_interp::assert_access;
use warpstride_interp::counters::{Counters, GlobalCounters, SharedCounters};
use warpstride_interp::expect::{Expectation, MAX_EXPECTATION_BYTES, Verdict, judge};
use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::{Memory, Report};

use super::{launch, shape};

/// A report whose counters are all different.
fn numbered() -> Report {
    let global = |first| GlobalCounters { instructions: first, requests: first + 1, sectors: first + 2 };
    let shared = |first| SharedCounters { instructions: first, wavefronts: first + 1, bank_conflicts: first + 2 };
    let counters = Counters {
        global_load: global(100),
        global_store: global(200),
        global_atomic: global(300),
        global_reduction: global(400),
        shared_load: shared(500),
        shared_store: shared(600),
        shared_atomic: shared(700),
        ..Counters::default()
    };
    Report { counters, thread_instructions: 800, shared_bytes: 900, ..Report::default() }
}

/// Every counter's name, and its figure in [`numbered`].
fn counters() -> Vec<(String, u64)> {
    let global = ["instructions", "requests", "sectors"];
    let shared = ["instructions", "wavefronts", "bank_conflicts"];
    let kinds = [
        (&["load", "global_load"][..], global, [100, 101, 102]),
        (&["store", "global_store"], global, [200, 201, 202]),
        (&["global_atomic"], global, [300, 301, 302]),
        (&["global_reduction"], global, [400, 401, 402]),
        (&["shared_load"], shared, [500, 501, 502]),
        (&["shared_store"], shared, [600, 601, 602]),
        (&["shared"], shared, [1100, 1102, 1104]),
        (&["shared_atomic"], shared, [700, 701, 702]),
    ];
    let mut counters = vec![("thread_instructions".to_owned(), 800), ("shared_bytes".to_owned(), 900)];
    for (names, figures, values) in kinds {
        let of = |name: &&str| figures.map(|figure| format!("{name}.{figure}")).into_iter().zip(values);
        counters.extend(names.iter().flat_map(of));
    }
    counters
}

#[track_caller]
fn verdict(report: &Report, text: &str) -> Verdict {
    let mut verdicts = judge(report, &[text]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((verdicts.rows.len(), verdicts.all_held()), (1, verdicts.rows[0].held));
    verdicts.rows.remove(0)
}

#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let error = text.parse::<Expectation>().expect_err("it is not an expectation");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let said = error.to_string();
    assert!(said.len() < 600 && !said.chars().any(char::is_control), "{said:?}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
}

#[test]
fn every_counter_has_its_name() {
    let report = numbered();
    for (name, figure) in counters() {
        assert!(verdict(&report, &format!("{name} == {figure}")).held, "{name}");
        assert!(!verdict(&report, &format!("{name} != {figure}")).held, "{name}");
        assert_eq!(verdict(&report, &format!("{name} >= 0")).found, figure.to_string());
        assert!(verdict(&report, &format!("thread_instructions >= {name} * 0 + 800")).held, "{name} on the right");
    }
}

#[test]
fn every_comparison_holds_where_it_should() {
    let report = numbered();
    for (sign, less, equal, greater) in [
        ("==", false, true, false),
        ("!=", true, false, true),
        ("<", true, false, false),
        ("<=", true, true, false),
        (">", false, false, true),
        (">=", false, true, true),
    ] {
        for (number, held) in [(103, less), (102, equal), (101, greater)] {
            let verdict = verdict(&report, &format!("load.sectors {sign} {number}"));
            assert_eq!((verdict.held, verdict.wanted), (held, format!("{sign} {number}")));
        }
    }
}

#[test]
fn the_right_side_is_computed_exactly() {
    let report = numbered();
    for (sum, wanted) in [
        ("1.15 * 100", "115"),
        ("0.1 + 0.2", "0.3"),
        ("2 * load.sectors + 3 * 4 * 0.5 + 1", "211"),
        ("2*3+4*5", "26"),
        ("0.125 * store.requests", "25.125"),
        ("999999999999999999 * 999999999999999999", "999999999999999998000000000000000001"),
    ] {
        let verdict = verdict(&report, &format!(" load.sectors \n <={sum}\t"));
        assert_eq!((&*verdict.wanted, verdict.of_ideal), (&*format!("<= {wanted}"), None), "{sum}");
        assert_eq!(verdict.expectation, format!("load.sectors <={sum}"));
    }
    let large = ["999999999999999999"; 3].join(" * ");
    let error = judge(&report, &[format!("load.sectors < {large}")]).expect_err("it has 54 digits");
    assert!(error.to_string().contains("more digits than can be computed exactly"), "{error}");
}

/// Loads every second word of `data`, turns words round in shared memory at a distance of two, and
/// stores 7 of them; adds into shared memory by a loop, and into global memory.
const BODY: &str = "
    .version 7.0 .target sm_80 .address_size 64
    .visible .entry k(.param .u64 data) {
        .reg .pred %p; .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %rd<4>;
        .shared .align 4 .b8 tile[512];
        ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 8, %rd1;
        mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 8, %r2;
        ld.global.f32 %f1, [%rd2];
        st.shared.f32 [%r3], %f1;
        ld.shared.f32 %f2, [%r3];
        atom.shared.add.f32 %f3, [%r2+256], %f2;
        setp.lt.u32 %p, %r1, 7; mad.wide.u32 %rd3, %r1, 4, %rd1;
        @%p st.global.f32 [%rd3], %f2;
        red.global.add.f32 [%rd1], %f3;
        ret;
    }";

fn counted() -> Report {
    let memory = Memory::new(1 << 20);
    let data = memory.upload(&[1.0_f32; 64]).expect("it fits");
    launch(BODY, shape(1, 32), &data.to_le_bytes(), &memory).unwrap_or_else(|stop| panic!("{stop}"))
}

#[test]
fn ideals_are_those_of_the_instructions() {
    let report = counted();
    let found = |text: &str| verdict(&report, text);
    let load = found("load.sectors <= 1.0 * ideal");
    assert_eq!((&*load.found, &*load.wanted, load.of_ideal, load.held), ("8", "<= 4", Some(2.0), false));
    assert!(found("load.sectors == 2 * ideal").held);
    assert!(found("store.sectors == ideal").held);
    assert_eq!(found("store.requests == 1").of_ideal, None);
    // 32 lanes at one word: each counts.
    assert_eq!(found("global_reduction.sectors <= ideal + 0").found, "32");
    // Two words in every second bank.
    let store = found("shared_store.wavefronts <= ideal");
    assert_eq!((&*store.found, &*store.wanted, store.held), ("2", "<= 1", false));
    // The load itself, and the 32 loads of the loop, which one lane at a time leaves.
    let SharedCounters { wavefronts, bank_conflicts, .. } =
        report.instruction("atom.shared").expect("it is there").loop_loads;
    assert!(wavefronts > 0, "the atomic is a loop");
    let load = found("shared_load.wavefronts <= ideal");
    assert_eq!(load.wanted, format!("<= {}", 1 + wavefronts - bank_conflicts));
    let both = found("shared.wavefronts <= ideal");
    assert_eq!(both.wanted, format!("<= {}", 2 + wavefronts - bank_conflicts));
    assert_eq!(
        found("shared.bank_conflicts < 100").found,
        (report.shared_load + report.shared_store).bank_conflicts.to_string()
    );
}

/// A warp that stores at a stride of two on line 3 and at a stride of eight on lines 5 and 9, loads
/// well on line 4, and stores with four bank conflicts on line 7.
const LINES: &str = "
    .version 7.0 .target sm_80 .address_size 64
    .file 1 \"k.cu\"
    .visible .entry k(.param .u64 data) {
        .reg .b32 %r<9>; .reg .b64 %rd<9>;
        .shared .align 4 .b8 tile[1000];
        ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x;
        mad.wide.u32 %rd2, %r1, 4, %rd1; mad.wide.u32 %rd3, %r1, 8, %rd1; mad.wide.u32 %rd4, %r1, 32, %rd1;
        mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 16, %r2;
        .loc 1 3 1
        st.global.u32 [%rd3], %r1;
        .loc 1 4 1
        ld.global.u32 %r4, [%rd2];
        .loc 1 5 1
        st.global.u32 [%rd4], %r4;
        .loc 1 9 1
        st.global.u32 [%rd4], %r4;
        .loc 1 7 1
        st.shared.u32 [%r3], %r4;
        ret;
    }";

#[test]
fn the_worst_line_wastes_most() {
    let memory = Memory::new(1 << 20);
    let data = memory.upload(&[1_u32; 256]).expect("it fits");
    let dynamic = LaunchShape { grid: [1, 1, 1], block: [32, 1, 1], dynamic_shared: 24 };
    let report = launch(LINES, dynamic, &data.to_le_bytes(), &memory).unwrap_or_else(|stop| panic!("{stop}"));
    for (text, line) in [
        ("worst_line(store.sectors)", 5),
        ("worst_line ( global_store.sectors )", 5),
        ("worst_line(load.sectors)", 0),
        ("worst_line(shared.wavefronts)", 7),
        ("worst_line(shared_store.bank_conflicts)", 7),
        ("worst_line(shared_load.bank_conflicts)", 0),
        ("worst_line(global_atomic.sectors)", 0),
    ] {
        let verdict = verdict(&report, &format!("{text} == {line}"));
        assert!(verdict.held && verdict.found == line.to_string() && verdict.of_ideal.is_none(), "{verdict:?}");
    }
    assert!(verdict(&report, "store.sectors >= worst_line(store.sectors)").held, "on the right");
    assert!(verdict(&report, "shared_bytes == 1024").held, "1000 static ones and 24 dynamic ones");
    let error = judge(&counted(), &["worst_line(load.sectors) == 0"]).expect_err("its PTX has no lines");
    assert!(error.to_string().contains("-lineinfo"), "{error}");
    assert!(verdict(&Report::default(), "worst_line(load.sectors) == 0").held, "no instruction, and no line");
}

/// The sums over the instructions are the launch's, so an ideal stands beside the right figure.
#[test]
fn counters_are_sums_over_the_instructions() {
    let report = counted();
    let sectors: u64 = report.instructions.iter().map(|instruction| instruction.global.sectors).sum();
    let totals = [report.global_load, report.global_store, report.global_atomic, report.global_reduction];
    assert_eq!(sectors, totals.map(|total| total.sectors).iter().sum::<u64>());
}

#[test]
fn a_table_has_what_was_expected_and_found() {
    let report = counted();
    let texts = ["load.sectors <= 1.0 * ideal", "shared_store.instructions == 1"];
    let verdicts = judge(&report, &texts).expect("they are expectations");
    assert!(!verdicts.all_held());
    let expected = "            expectation                     found  wanted  of ideal
FELL SHORT  load.sectors <= 1.0 * ideal     8      <= 4    2.00x
held        shared_store.instructions == 1  1      == 1    -
";
    assert_eq!(verdicts.to_string(), expected);
    let verdicts = judge(&report, &texts[1..]).expect("it is one");
    assert_eq!(verdicts.to_string().lines().next(), Some("      expectation                     found  wanted"));
}

#[test]
fn the_macro_panics_with_the_table() {
    let report = counted();
    let of_user = String::from("load.requests == 1");
    assert_access!(report, "store.sectors <= 1.0 * ideal", of_user);
    assert_access!(&report, "thread_instructions > 0",);
    let panics = |test: fn(&Report)| {
        let report = counted();
        let panic = catch_unwind(move || test(&report)).expect_err("it panics");
        *panic.downcast::<String>().expect("a text")
    };
    let said = panics(|report| assert_access!(report, "load.sectors <= 1.0 * ideal", "store.sectors == ideal"));
    let table = judge(&report, &["load.sectors <= 1.0 * ideal", "store.sectors == ideal"]).expect("expectations");
    assert_eq!(said, format!("the memory accesses fell short of an expectation\n{table}"));
    let said = panics(|report| assert_access!(report, "load.sectors"));
    assert!(said.contains("the expectation `load.sectors`"), "{said}");
}

#[test]
fn what_is_not_an_expectation_is_refused() {
    refused("", &["does not begin with a counter", "store.sectors <= 1.0 * ideal"]);
    refused("512 >= load.requests", &["does not begin with a counter"]);
    refused("ideal == load.sectors", &["does not begin with a counter"]);
    refused("load.sectors", &["is not followed by =="]);
    refused("load.sectors 4", &["is not followed by =="]);
    refused("load.sectors = 4", &["`=` is not a sign"]);
    refused("load.sectors === 4", &["`===` is not a sign"]);
    refused("load.sectors ≤ 4", &["`≤` is not a sign"]);
    refused("load.sectors <= ", &["a value is missing at its end"]);
    refused("load.sectors <= 4 *", &["a value is missing at its end"]);
    refused("load.sectors <= * 4", &["two signs follow each other"]);
    refused("load.sectors <= 4 ideal", &["a + or a * is missing"]);
    refused("load.sectors <= 4 <= 5", &["two comparisons"]);
    refused("load.sectors <= (4)", &["parentheses stand behind worst_line alone"]);
    refused("worst_line == 4", &["worst_line has no counter in parentheses"]);
    refused("worst_line(store.sectors == 4", &["worst_line has no counter in parentheses"]);
    refused("worst_line(4) == 4", &["worst_line has no counter in parentheses"]);
    refused("worst_line(ideal) == 4", &["`ideal` is not a counter"]);
    refused("worst_line(store.requests) == 4", &["sectors, wavefronts or bank conflicts"]);
    refused("worst_line(shared_bytes) == 4", &["sectors, wavefronts or bank conflicts"]);
    refused("worst_line(store.sectors) <= ideal", &["only sectors and wavefronts have an ideal"]);
    refused("load.sectors <= 4 - 2", &["`-` is not a sign"]);
    refused("load.sectors <= 1e3", &["`1e3` is not a number"]);
    refused("load.sectors <= 1234567890123456789", &["is not a number", "18 at most"]);
    refused("loads.sectors <= 4", &["`loads.sectors` is not a counter", "use load, store, shared, global_load"]);
    refused("load <= 4", &["`load` is not a counter", "instructions, requests or sectors"]);
    refused("load.bank_conflicts == 0", &["instructions, requests or sectors"]);
    refused("shared.sectors == 0", &["instructions, wavefronts or bank_conflicts"]);
    refused("load.sectors.ideal == 0", &["`load.sectors.ideal` is not a counter"]);
    refused("load.requests <= ideal", &["only sectors and wavefronts have an ideal"]);
    refused("shared.bank_conflicts <= ideal", &["only sectors and wavefronts have an ideal"]);
    refused("load.sectors <= \u{1b}[31m4", &["\\u{1b}"]);
    refused(&"x".repeat(MAX_EXPECTATION_BYTES + 1), &["1001 bytes", "more than the 1000"]);
    refused(&"x".repeat(MAX_EXPECTATION_BYTES), &["is not a counter"]);
    refused(&format!("load.sectors <= {}", "9".repeat(900)), &["is not a number"]);
    // A prediction is asked for where a number may stand.
    refused("load.requests == ?", &["the expectation `load.requests == ?`", "type your prediction, a number"]);
    refused("worst_line(store.sectors) == ?", &["type your prediction"]);
    refused("load.requests == 2 * ? + 1", &["type your prediction"]);
    // It may stand in no other place.
    refused("? == load.requests", &["does not begin with a counter"]);
    refused("load.requests ? 4", &["is not followed by =="]);
    refused("load.requests == 4 ?", &["a + or a * is missing"]);
}

/// Pieces of expectations.
const WORDS: &str = "load.sectors shared.wavefronts thread_instructions shared_bytes worst_line ( ) ? ideal 1 0.5 1.25
    999999999999999999 + * == != < <= > >= . é";

proptest! {
    #[test]
    fn no_text_breaks_the_parser(
        text in "\\PC{0,60}",
        words in prop::collection::vec(prop::sample::select(WORDS.split_whitespace().collect::<Vec<_>>()), 0..12),
    ) {
        for text in [text, words.join(" "), format!("load.sectors <= {}", words.join(" ")), words.concat()] {
            if let Ok(expectation) = text.parse::<Expectation>() {
                prop_assert_eq!(expectation.to_string().parse::<Expectation>(), Ok(expectation));
                let _ = judge(&numbered(), &[text]);
            }
        }
    }
}
