//! Barriers that only some of a warp's lanes reach at first, and warps that wait for each other
//! without a barrier.

use warpstride_interp::Config;

use super::{PRELUDE, run_on, shape};

/// The values that 32 lanes store to `[%out]`, 4 bytes each. `%low` holds in lanes 0 to 7; `[%own]`
/// is a lane's word of `tile`.
fn results(body: &str) -> Vec<u32> {
    results_of(32, body).1
}

/// The number of warp instructions, and the same values, for any number of threads.
fn results_of(threads: u32, body: &str) -> (u64, Vec<u32>) {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 p) {{
            .reg .pred %low, %p<3>; .reg .b32 %r<9>, %own; .reg .b64 %rd1, %out; .shared .align 16 .b8 tile[256];
            ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %out, %r1, 4, %rd1; mov.u32 %r2, 0;
            mov.u32 %own, tile; mad.lo.u32 %own, %r1, 4, %own; setp.lt.u32 %low, %r1, 8;
            {body}
        }}"
    );
    let ran = run_on(&text, shape(1, threads), &vec![0; threads as usize], &Config::default());
    let (report, out) = ran.unwrap_or_else(|stop| panic!("{stop}\n{text}"));
    (report.warp_instructions, out)
}

/// `low` in lanes 0 to 7, `high` in the others.
fn halves(low: u32, high: u32) -> Vec<u32> {
    (0..32).map(|lane| if lane < 8 { low } else { high }).collect()
}

const SHARE: &str = "st.shared.u32 [%own], %r1; bar.sync 0; ld.shared.u32 %r2, [tile+40]; st.global.u32 [%out], %r2;";

#[test]
fn lanes_that_go_to_their_end_do_not_hold_up_a_barrier() {
    for body in [
        format!("@%low bra A; {SHARE} bra.uni E; A: st.global.u32 [%out], 77; E: ret;"),
        format!("@%low bra E; {SHARE} ret; E: st.global.u32 [%out], 77; ret;"),
        format!("@!%low bra M; st.global.u32 [%out], 77; ret; M: {SHARE} ret;"),
    ] {
        assert_eq!(results(&body), halves(77, 10), "{body}");
    }
}

#[test]
fn a_chain_of_jumps_to_the_end_is_an_end() {
    // Lanes that leave by it do not hold up the place where the inner branch's lanes meet: one
    // store by the others.
    let body = "st.global.u32 [%out], 3; @%low bra L1; st.global.u32 [%out], 10; bra E; L1: bra L2; L2: bra E; E: ret;";
    let (instructions, out) = results_of(32, body);
    assert_eq!((instructions, out), (7 + 4, halves(3, 10)));
    // A chain that leads into itself does not reach the end.
    let body = "setp.eq.u32 %p1, %r1, 99; @%p1 bra L1; st.global.u32 [%out], 4; ret; L1: bra L2; L2: bra L1;";
    assert_eq!(results(body), [4; 32]);
}

#[test]
fn a_barrier_on_both_sides_is_one_where_it_need_not_be_aligned() {
    let body = "@%low bra A; st.shared.u32 [%own], %r1; barrier.sync 0; bra E;
        A: barrier.sync 0; ld.shared.u32 %r2, [tile+40];
        E: add.u32 %r2, %r2, 1; st.global.u32 [%out], %r2; ret;";
    let (instructions, out) = results_of(32, body);
    assert_eq!(out, halves(11, 1));
    // After it the lanes meet again: 7 before, 4 and 2 apart, 3 together.
    assert_eq!(instructions, 7 + 1 + 3 + 2 + 3);
}

#[test]
fn lanes_parked_in_nested_ifs_meet_where_they_were_to() {
    // Lanes 0-3, 4-7 and 8-31 reach the barrier by three paths, and meet at I and at E.
    let body = "setp.lt.u32 %p1, %r1, 4; @!%low bra H; @%p1 bra L; barrier.sync 1; add.u32 %r2, %r2, 1; bra.uni I;
        L: barrier.sync 1; add.u32 %r2, %r2, 2; I: add.u32 %r2, %r2, 10; bra.uni E;
        H: barrier.sync 1; add.u32 %r2, %r2, 5;
        E: add.u32 %r2, %r2, 100; st.global.u32 [%out], %r2; ret;";
    let (instructions, out) = results_of(32, body);
    let wanted: Vec<u32> = (0..32).map(|lane| [112, 111, 105, 105][(lane as usize / 4).min(2)]).collect();
    assert_eq!(out, wanted);
    assert_eq!(instructions, 7 + 2 + 1 + (1 + 2) + (1 + 1) + 2 + (1 + 1) + 3);
}

#[test]
fn a_barrier_in_a_loop_that_lanes_leave_one_by_one() {
    // Lane n runs the loop n + 1 times, with a barrier each time; every lane of the other warp runs
    // it 32 times.
    let body = "mov.u32 %r3, %r1; setp.ge.u32 %p2, %r1, 32; @%p2 mov.u32 %r3, 31;
        L: add.u32 %r2, %r2, 1; barrier.sync 0; setp.gt.u32 %p1, %r2, %r3; @!%p1 bra L;
        st.global.u32 [%out], %r2; ret;";
    let (_, out) = results_of(64, body);
    assert_eq!(out, (0..64).map(|lane: u32| lane.min(31) + 1).collect::<Vec<_>>());
}

#[test]
fn a_warp_barrier_waits_for_the_lanes_that_it_names() {
    // The others read what lanes 0 to 7 store on their side, before the second warp barrier.
    let body = "st.shared.u32 [%own], 99; bar.warp.sync -1; @%low bra A;
        bar.warp.sync -1; ld.volatile.shared.u32 %r2, [tile]; st.global.u32 [%out], %r2; bra E;
        A: add.u32 %r3, %r1, 5; st.volatile.shared.u32 [%own], %r3; st.global.u32 [%out], 1; bar.warp.sync -1;
        E: ret;";
    assert_eq!(results(body), halves(1, 5));
    // Lanes that the mask does not name are not waited for.
    let body = "st.shared.u32 [%own], 99; @%low bra A;
        bar.warp.sync 0xffffff00; ld.volatile.shared.u32 %r2, [tile]; st.global.u32 [%out], %r2; bra E;
        A: st.volatile.shared.u32 [%own], 5; st.global.u32 [%out], 1; E: ret;";
    assert_eq!(results(body), halves(1, 99));
}

#[test]
fn a_warp_that_waits_for_a_store_lets_the_other_run() {
    let body = "setp.eq.u32 %p1, %r1, 0; @%p1 st.volatile.shared.u32 [tile], 0; bar.sync 0;
        setp.ge.u32 %p1, %r1, 32; @%p1 bra W;
        L: ld.volatile.shared.u32 %r3, [tile]; setp.ne.u32 %p2, %r3, 1; @%p2 bra L; bra E;
        W: st.volatile.shared.u32 [tile], 1; E: st.global.u32 [%out], 5; ret;";
    assert_eq!(results_of(64, body).1, [5; 64]);
}
