//! Threads that wait without a barrier for others of their warp, of their block or of another
//! block; and their counters.

use warpstride_interp::stop::{AccessKind, Reason};
use warpstride_interp::{Checks, Config, Memory, Report, Stop};

use super::{PRELUDE, launch_with, run_on, shape};

/// Runs `body` with `[%out]` zeroed, and returns its content afterwards.
fn launch(blocks: u32, threads: u32, config: &Config, body: &str) -> Result<(Report, Vec<u32>), Box<Stop>> {
    run_on(&text(body), shape(blocks, threads), &[0; 256], config)
}

fn text(body: &str) -> String {
    format!(
        "{PRELUDE}.visible .entry k(.param .u64 p) {{
            .reg .pred %p<5>; .reg .b32 %r<20>, %t; .reg .b64 %rd<5>, %out; .shared .align 16 .b8 sh[1024];
            ld.param.u64 %out, [p]; mov.u32 %t, %tid.x;
            {body}
        }}"
    )
}

fn results(blocks: u32, threads: u32, body: &str) -> (Report, Vec<u32>) {
    launch(blocks, threads, &Config::default(), body).unwrap_or_else(|stop| panic!("{stop}\n{body}"))
}

/// A lock that every thread of every warp takes; the critical section stands after the loop that
/// waits for it.
const LOCKED: &str = "
    L: atom.acquire.gpu.global.cas.b32 %r1, [%out], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
    ld.relaxed.gpu.global.u32 %r2, [%out+4]; add.u32 %r2, %r2, 1; st.relaxed.gpu.global.u32 [%out+4], %r2;
    st.release.gpu.global.u32 [%out], 0;";

#[test]
fn every_lane_gets_a_lock_that_another_of_its_warp_holds() {
    let (_, out) = results(3, 50, LOCKED);
    assert_eq!(out[..2], [0, 150]);
}

#[test]
fn a_lock_is_taken_in_the_same_order_every_time() {
    let config = Config { threads: 1, ..Config::default() };
    let body = format!("{LOCKED} mad.wide.u32 %rd1, %t, 4, %out; st.global.u32 [%rd1+64], %r2;");
    let runs = [(); 2].map(|()| launch(1, 40, &config, &body).unwrap_or_else(|stop| panic!("{stop}")));
    assert_eq!(runs[0], runs[1]);
    let mut order = runs[0].1[16..56].to_vec();
    order.sort_unstable();
    assert_eq!(order, (1..=40).collect::<Vec<_>>());
}

#[test]
fn lanes_wait_for_one_that_waits_where_they_are_to_meet() {
    // Lane 5 leaves the loop at once, and stores after it the value that the others wait for
    // inside.
    let body = "mov.u32 %r1, 0; st.volatile.shared.u32 [sh], %r1; bar.warp.sync -1;
        L: setp.eq.u32 %p1, %t, 5; @%p1 bra S; ld.volatile.shared.u32 %r1, [sh]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;
        S: @%p1 st.volatile.shared.u32 [sh], 9; mad.wide.u32 %rd1, %t, 4, %out; st.global.u32 [%rd1], %r1;";
    let (_, out) = results(1, 32, body);
    assert_eq!(out[..32], std::array::from_fn::<u32, 32, _>(|lane| if lane == 5 { 0 } else { 9 }));
}

#[test]
fn lanes_hand_over_in_a_ring_of_nested_loops() {
    // Each lane waits for its own number, three times, on one side of a branch or the other.
    let body = "mov.u32 %r1, 0; st.volatile.shared.u32 [sh], %r1; bar.warp.sync -1; mov.u32 %r9, 0; and.b32 %r2, %t, 1;
        setp.eq.u32 %p3, %r2, 0;
        R: mad.lo.u32 %r3, %r9, 32, %t; @%p3 bra E;
        O: ld.volatile.shared.u32 %r1, [sh]; setp.ne.u32 %p1, %r1, %r3; @%p1 bra O; bra N;
        E: ld.volatile.shared.u32 %r1, [sh]; setp.ne.u32 %p1, %r1, %r3; @%p1 bra E;
        N: add.u32 %r1, %r1, 1; st.volatile.shared.u32 [sh], %r1;
        add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 3; @%p2 bra R;
        mad.wide.u32 %rd1, %t, 4, %out; st.global.u32 [%rd1], %r1;";
    let (_, out) = results(1, 32, body);
    assert_eq!(out[..32], std::array::from_fn::<u32, 32, _>(|lane| 65 + lane as u32));
}

#[test]
fn lanes_that_exchange_values_need_not_wait_for_one_that_waits_for_them() {
    let body = "mov.u32 %r1, 0; st.volatile.shared.u32 [sh], %r1; bar.warp.sync -1; mad.wide.u32 %rd1, %t, 4, %out;
        setp.eq.u32 %p1, %t, 31; @%p1 bra W; setp.lt.u32 %p2, %t, 16; @%p2 bra A;
        shfl.sync.bfly.b32 %r2, %t, 16, 31, 0x7fffffff; bra B;
        A: shfl.sync.bfly.b32 %r2, %t, 16, 31, 0x7fffffff;
        B: st.volatile.shared.u32 [sh], 7; st.global.u32 [%rd1], %r2; bra E;
        W: ld.volatile.shared.u32 %r3, [sh]; setp.eq.u32 %p3, %r3, 0; @%p3 bra W; st.global.u32 [%rd1], %r3;
        E: ret;";
    let (_, out) = results(1, 32, body);
    let wanted = |lane: usize| if lane == 15 { 0 } else { lane as u32 ^ 16 };
    assert_eq!(out[..31], std::array::from_fn::<u32, 31, _>(wanted));
    assert_eq!(out[31], 7);
}

#[test]
fn a_loop_that_does_not_wait_keeps_its_lanes_together() {
    // Lane n runs the loop 40 n times, and counts each time; all meet after the loop.
    let body = "mul.lo.u32 %r2, %t, 40; mov.u32 %r1, 0;
        L: setp.ge.u32 %p1, %r1, %r2; @%p1 bra E; red.global.add.u32 [%out+4], 1; add.u32 %r1, %r1, 1; bra L;
        E: mad.wide.u32 %rd1, %t, 4, %out; st.global.u32 [%rd1+64], %r1;";
    let (report, out) = results(1, 32, body);
    assert_eq!((out[1], report.global_store.instructions), (40 * 31 * 32 / 2, 1));
}

/// Runs on one host thread, on several, and under the checkers.
fn everywhere(blocks: u32, threads: u32, body: &str, expected: &[u32]) {
    for (host, checks) in [(1, Checks::NONE), (0, Checks::NONE), (0, Checks::ALL)] {
        let config = Config { threads: host, checks, ..Config::default() };
        let (report, out) = launch(blocks, threads, &config, body).unwrap_or_else(|stop| panic!("{stop}\n{body}"));
        assert_eq!(out[..expected.len()], *expected, "{host} {checks:?}");
        assert_eq!(report.findings, [], "{host}");
    }
}

#[test]
fn a_block_waits_for_one_behind_it() {
    let body = |last: u32| {
        format!(
            "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra W;
            L: ld.acquire.gpu.global.u32 %r2, [%out]; setp.eq.u32 %p2, %r2, 0; @%p2 bra L;
            ld.global.u32 %r3, [%out+8]; st.global.u32 [%out+4], %r3; exit;
            W: setp.ne.u32 %p1, %r1, {last}; @%p1 exit; setp.ne.u32 %p1, %t, 0; @%p1 exit;
            st.global.u32 [%out+8], 7; st.release.gpu.global.u32 [%out], 1;"
        )
    };
    everywhere(2, 1, &body(1), &[1, 7, 7]);
    everywhere(6000, 1, &body(5999), &[1, 7, 7]);
}

/// They meet three times; one thread of each block takes part.
#[test]
fn all_blocks_of_a_grid_meet() {
    let body = "mov.u32 %r1, %nctaid.x; mov.u32 %r8, 0; mov.u32 %r9, 0; setp.ne.u32 %p1, %t, 0;
        L: bar.sync 0; @%p1 bra N; add.u32 %r9, %r9, %r1; red.release.gpu.global.add.u32 [%out], 1;
        W: ld.acquire.gpu.global.u32 %r2, [%out]; setp.lt.u32 %p2, %r2, %r9; @%p2 bra W;
        N: bar.sync 0; add.u32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, 3; @%p3 bra L;";
    everywhere(50, 70, body, &[150]);
}

#[test]
fn blocks_that_wait_in_vain_stop_at_the_first() {
    let body = "L: ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;";
    for (threads, checks) in [(1, Checks::NONE), (0, Checks::NONE), (0, Checks::ALL)] {
        let config = Config { threads, checks, work_limit: 10_000_000, ..Config::default() };
        let stop = launch(100, 32, &config, body).expect_err("there is no end");
        let place = stop.place.expect("a place");
        assert_eq!((&stop.reason, place.block), (&Reason::WorkLimit(10_000_000), [0; 3]), "{threads} {checks:?}");
    }
}

#[test]
fn a_block_that_counts_while_it_waits_makes_room_too() {
    let body = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra S;
        L: atom.global.add.u32 %r3, [%out+4], 1; ld.acquire.gpu.global.u32 %r2, [%out]; setp.eq.u32 %p2, %r2, 0;
        @%p2 bra L; st.global.u32 [%out+4], 5; exit;
        S: st.release.gpu.global.u32 [%out], 1;";
    everywhere(2, 1, body, &[1, 5]);
}

/// A block after one that waits may do as much work as a launch, but all such blocks together no
/// more.
#[test]
fn what_ends_behind_a_block_that_waits_counts() {
    let body = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra C;
        W: ld.acquire.gpu.global.u32 %r3, [%out]; setp.eq.u32 %p2, %r3, 0; @%p2 bra W;
        C: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 200000; @%p3 bra C; red.global.add.u32 [%out+4], 1;";
    let memory = Memory::new(1 << 20);
    let out = memory.upload(&[0_u32; 2]).expect("it fits");
    let config = Config { threads: 1, work_limit: 4_000_000, ..Config::default() };
    let stop = launch_with(&config, &text(body), shape(1000, 1), &out.to_le_bytes(), &memory);
    let stop = stop.expect_err("block 0 waits for ever");
    assert_eq!((&stop.reason, stop.place.expect("a place").block), (&Reason::WorkLimit(4_000_000), [0; 3]));
    let ended = memory.download::<u32>(out, 2).expect("it is there")[1];
    assert!((4..9).contains(&ended), "{ended} blocks of 600,000 units");
}

/// Block 3 waits for a block that never begins.
const IN_VAIN: &str = "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 5; @%p1 bra F; setp.ne.u32 %p1, %r1, 3; @%p1 exit;
    L: ld.acquire.gpu.global.u32 %r2, [%out+8]; setp.eq.u32 %p2, %r2, 0; @%p2 bra L; exit;
    F: st.global.u32 [0], 1;";

/// A waiting block does not excuse skipping the blocks before a fault, or running the blocks after
/// it.
#[test]
fn a_fault_behind_a_block_that_waits_is_told_when_that_has_ended() {
    let body = "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 5; @%p1 bra F; setp.ne.u32 %p1, %r1, 0; @%p1 bra C;
        L: ld.acquire.gpu.global.u32 %r2, [%out]; setp.lt.u32 %p2, %r2, 4; @%p2 bra L; st.global.u32 [%out+4], 1; exit;
        F: st.global.u32 [%out+8], 7; st.global.u32 [0], 1;
        C: red.release.gpu.global.add.u32 [%out], 1;";
    for (threads, body) in [(1, body), (0, body), (1, IN_VAIN), (0, IN_VAIN)] {
        let memory = Memory::new(1 << 20);
        let out = memory.upload(&[0_u32; 256]).expect("it fits");
        let config = Config { threads, work_limit: 50_000_000, ..Config::default() };
        let stop = launch_with(&config, &text(body), shape(1000, 1), &out.to_le_bytes(), &memory);
        let stop = stop.expect_err("block 5 stores at 0");
        assert_eq!(stop.place.expect("a place").block, [5, 0, 0]);
        let out: Vec<u32> = memory.download(out, 3).expect("it is there");
        assert!(out[1..] == [1, 7] || body == IN_VAIN, "block 0 has ended, and block 5's first store stays: {out:?}");
        assert!(out[0] < 900, "{} blocks ran behind it", out[0]);
    }
}

#[test]
fn lanes_that_never_come_to_an_exchange_are_a_deadlock() {
    let body = "setp.lt.u32 %p1, %t, 16; @%p1 bra A; shfl.sync.idx.b32 %r1, %t, 0, 31, -1; bra E;
        A: vote.sync.ballot.b32 %r1, %p1, -1; E: ret;";
    let stop = launch(1, 32, &Config::default(), body).expect_err("each half waits for the other");
    assert_eq!(stop.reason, Reason::DivergentBarrier { arrived: 0xffff_0000, elsewhere: 0xffff });
}

#[test]
fn atomics_are_counted_apart_from_loads_and_stores() {
    let body = "mad.wide.u32 %rd1, %t, 4, %out; mov.u32 %r9, sh; mad.lo.u32 %r9, %t, 4, %r9;
        atom.global.add.u32 %r1, [%out], 1; st.global.u32 [%rd1+64], %r1;
        atom.global.max.u32 %r2, [%rd1], %t; red.global.add.f32 [%rd1+64], 0f3F800000; atom.global.exch.b32 _, [%rd1], 5;
        atom.add.u32 %r3, [%rd1], 1;
        atom.shared.add.u32 %r4, [sh], %t; atom.shared.add.u32 %r5, [sh], 1; atom.shared.cas.b32 %r6, [%r9], 0, 1;
        atom.shared.add.f32 %r7, [%r9], 0f3F800000;";
    let (report, _) = results(1, 32, body);
    let global = |counters: warpstride_interp::counters::GlobalCounters| {
        [counters.instructions, counters.requests, counters.sectors]
    };
    // All lanes at one address count its sector 32 times; a row of words counts 4. Exchanges, and
    // atomics at generic addresses, stay atomics.
    assert_eq!(global(report.global_atomic), [3, 3, 32 + 4 + 4]);
    assert_eq!(global(report.global_reduction), [2, 2, 4 + 4]);
    assert_eq!(global(report.global_store), [1, 1, 4]);
    assert_eq!(global(report.global_load), [0; 3]);
    // One address; a count by one; two passes of a comparison; one turn of a loop, which loads.
    let shared =
        [report.shared_atomic.instructions, report.shared_atomic.wavefronts, report.shared_atomic.bank_conflicts];
    assert_eq!(shared, [4, 32 + 1 + 2 + 2, 31]);
    assert_eq!([report.shared_load.instructions, report.shared_load.wavefronts], [1, 1]);
    assert_eq!(report.instruction("max.u32").map(|found| found.kind), Some(AccessKind::Reduction));
}

#[test]
fn an_atomic_out_of_bounds_says_what_it_does() {
    let stop =
        launch(1, 32, &Config::default(), "atom.global.add.u32 %r1, [%out+1024], 1;").expect_err("it is outside");
    assert!(stop.to_string().contains("updates 4 bytes at 0x10000000400, 0 bytes past the end"), "{stop}");
    let stop = launch(1, 32, &Config::default(), "red.shared.add.u32 [sh+2], 1;").expect_err("it is misaligned");
    assert!(stop.to_string().contains("updates 4 bytes at 0x2 of shared memory"), "{stop}");
}

#[test]
fn a_barrier_that_some_only_arrive_at_waits_for_the_count() {
    // Two warps produce, one consumes; a fourth takes no part.
    let body = "shr.u32 %r1, %t, 5; setp.eq.u32 %p1, %r1, 3; @%p1 exit; setp.eq.u32 %p2, %r1, 0; @%p2 bra C;
        mov.u32 %r2, sh; mad.lo.u32 %r2, %t, 4, %r2; st.shared.u32 [%r2], %t; barrier.cta.arrive 3, 96; exit;
        C: barrier.cta.sync 3, 96; mov.u32 %r2, sh; mad.lo.u32 %r2, %t, 4, %r2; ld.shared.u32 %r3, [%r2+128];
        ld.shared.u32 %r4, [%r2+256]; add.u32 %r3, %r3, %r4; mad.wide.u32 %rd1, %t, 4, %out; st.global.u32 [%rd1], %r3;";
    let (_, out) = results(1, 128, body);
    assert_eq!(out[..32], std::array::from_fn::<u32, 32, _>(|lane| 32 + 64 + 2 * lane as u32));
}

#[test]
fn a_reduction_at_a_barrier_takes_lanes_wherever_they_are() {
    let body = "setp.lt.u32 %p1, %t, 8; setp.ne.u32 %p2, %t, 40; mad.wide.u32 %rd1, %t, 8, %out; @%p1 bra A;
        barrier.red.popc.u32 %r1, 0, %p2; barrier.red.and.pred %p3, 0, !%p1; bra E;
        A: barrier.red.popc.u32 %r1, 0, %p1; barrier.red.and.pred %p3, 0, %p2; add.u32 %r1, %r1, 100;
        E: selp.u32 %r2, 1, 0, %p3; st.global.v2.u32 [%rd1], {%r1, %r2};";
    let (_, out) = results(1, 64, body);
    assert!(
        out[..128].chunks(2).enumerate().all(|(thread, got)| got == [if thread < 8 { 163 } else { 63 }, 1]),
        "{out:?}"
    );
}
