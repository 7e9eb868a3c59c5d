//! Lanes that meet before the place where all of their ways meet, because the first path in program
//! order runs first.

use std::fmt::Write;

use proptest::prelude::*;
use warpstride_interp::{Config, Report};

use super::{PRELUDE, run_on, shape};

/// Runs a body for 32 lanes, with the lane's number in `%r1`, its value in `%x`, and three bits of
/// the number as predicates.
fn report(body: &str) -> (Report, Vec<u32>) {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 p) {{
            .reg .pred %one, %two, %four; .reg .b32 %r<3>, %x; .reg .b64 %rd1, %out;
            ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %out, %r1, 4, %rd1; mov.u32 %x, 0;
            and.b32 %r2, %r1, 1; setp.ne.u32 %one, %r2, 0; and.b32 %r2, %r1, 2; setp.ne.u32 %two, %r2, 0;
            and.b32 %r2, %r1, 4; setp.ne.u32 %four, %r2, 0;
            {body}
        }}"
    );
    run_on(&text, shape(1, 32), &[9; 32], &Config::default()).unwrap_or_else(|stop| panic!("{stop}\n{text}"))
}

/// The number of times that the warp stores.
fn stores(body: &str) -> u64 {
    report(body).0.global_store.instructions
}

#[test]
fn a_body_behind_two_conditions_runs_once() {
    // if (one || two) { store }
    assert_eq!(stores("@%one bra X; @!%two bra M; X: st.global.u32 [%out], 5; M: ret;"), 1);
    // if (!(one && two)) { store } else { store }
    let body = "@!%one bra Y; @!%two bra Y; st.global.u32 [%out], 4; bra M; Y: st.global.u32 [%out], 5; M: ret;";
    assert_eq!(stores(body), 2);
    // Three conditions, the second of them nested: if (one || (two && four)) { store }
    assert_eq!(stores("@%one bra X; @!%two bra M; @!%four bra M; X: st.global.u32 [%out], 5; M: ret;"), 1);
    let out = report("@%one bra X; @!%two bra M; @!%four bra M; X: st.global.u32 [%out], 5; M: ret;").1;
    let wanted: Vec<u32> = (0..32).map(|lane| if lane & 1 == 1 || lane & 6 == 6 { 5 } else { 9 }).collect();
    assert_eq!(out, wanted);
}

#[test]
fn lanes_that_jump_over_waiting_ones_wait_for_them() {
    // Lanes with the first bit wait at A, the others come past it to B, where all meet for a store.
    let body = "@%one bra A; @%two bra B; bra B; A: add.u32 %x, %x, 1; @%four bra E;
        B: st.global.u32 [%out], %x; E: ret;";
    let (report, out) = report(body);
    assert_eq!(report.global_store.instructions, 1);
    let wanted: Vec<u32> = (0..32).map(|lane| if lane & 1 == 0 { 0 } else { [1, 9][lane >> 2 & 1] }).collect();
    assert_eq!(out, wanted);
}

#[test]
fn lanes_that_leave_a_loop_by_two_ways_meet_behind_it() {
    // Lanes leave by two exits, at different times, to code that all but a few pass: it runs once.
    let body = "L: add.u32 %x, %x, 1; and.b32 %r2, %r1, 7; setp.eq.u32 %one, %r2, %x; @%one bra X;
        setp.lt.u32 %two, %x, 6; @%two bra L; @%four bra E; X: st.global.u32 [%out], %x; E: ret;";
    assert_eq!(stores(body), 1);
}

#[test]
fn the_place_where_all_meet_may_stand_before_the_paths_to_it() {
    let body = "bra S; M: st.global.u32 [%out], %x; ret; S: @%one bra A; @%two bra B; add.u32 %x, %x, 1; bra M;
        A: add.u32 %x, %x, 2; bra M; B: add.u32 %x, %x, 4; @%four bra A; bra M;";
    let (report, out) = report(body);
    assert_eq!(report.global_store.instructions, 1);
    let wanted = |lane: u32| match (lane & 1, lane & 2, lane & 4) {
        (1, ..) => 2,
        (_, 0, _) => 1,
        (.., four) => 4 + four / 2,
    };
    assert_eq!(out, (0..32).map(wanted).collect::<Vec<_>>());
}

/// A block of a random program: `x = 5 * x + step`, and then one of two blocks by a bit of `x`.
type Block = (u16, u32, (usize, usize));

/// The steps after which a thread leaves the program, wherever it is.
const STEPS: u32 = 40;

fn program(blocks: &[Block]) -> String {
    let mut body = String::new();
    for (number, (step, bit, (yes, no))) in blocks.iter().enumerate() {
        let (yes, no) = (yes % (blocks.len() + 1), no % (blocks.len() + 1));
        let _ = write!(
            body,
            "B{number}: mad.lo.u32 %x, %x, 5, {step}; sub.u32 %n, %n, 1; setp.eq.u32 %p, %n, 0; @%p bra B{end};
            bfe.u32 %t, %x, {bit}, 1; setp.ne.u32 %p, %t, 0; @%p bra B{yes};\n",
            end = blocks.len()
        );
        if no != number + 1 {
            let _ = writeln!(body, "bra B{no};");
        }
    }
    format!(
        "{PRELUDE}.visible .entry k(.param .u64 cells) {{
            .reg .pred %p; .reg .b32 %x, %t, %n, %r1; .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [cells]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
            ld.global.u32 %x, [%rd2]; mov.u32 %n, {STEPS};
            {body}
            B{}: st.global.u32 [%rd2], %x;
        }}",
        blocks.len()
    )
}

/// One thread's result.
fn alone(blocks: &[Block], mut x: u32) -> u32 {
    let mut at = 0;
    for _ in 0..STEPS {
        let Some((step, bit, (yes, no))) = blocks.get(at) else { break };
        x = x.wrapping_mul(5).wrapping_add(u32::from(*step));
        at = if x >> bit & 1 == 1 { *yes } else { *no } % (blocks.len() + 1);
    }
    x
}

proptest! {
    #[test]
    fn threads_in_any_graph_end_as_if_each_ran_alone_and_meet_at_the_end(
        blocks in prop::collection::vec((any::<u16>(), 0..32_u32, (0..99_usize, 0..99_usize)), 1..12),
        input in prop::collection::vec(any::<u32>(), 1..100),
    ) {
        let text = program(&blocks);
        let ran = run_on(&text, shape(1, input.len() as u32), &input, &Config::default());
        let (report, got) = ran.unwrap_or_else(|stop| panic!("{stop}\n{text}"));
        prop_assert_eq!(got, input.iter().map(|x| alone(&blocks, *x)).collect::<Vec<_>>(), "{}", text);
        prop_assert_eq!(report.global_store.instructions, input.len().div_ceil(32) as u64, "{}", text);
    }
}
