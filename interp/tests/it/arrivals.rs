//! `mbarrier`: threads arrive, and wait for each other without a barrier of the block.

use warpstride_interp::{Checks, Config, Memory, Report, Stop};

use super::{PRELUDE, launch_with, shape};

/// Runs 64 threads with a barrier `bar` that expects 64 arrivals, and 64 words of `tile`. `%r1` is
/// a thread's number, `%own` its word, and `%other` that of the thread in the other warp. Returns
/// the word that each thread leaves in `%r2`.
fn threads(body: &str) -> Result<(Vec<u32>, Report), Box<Stop>> {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 p, .param .u64 q) {{
            .reg .pred %p<3>; .reg .b32 %r<8>, %own, %other, %zero; .reg .b64 %rd<6>, %in, %out, %state;
            .shared .align 8 .b64 bar; .shared .align 4 .b8 tile[256];
            mov.u32 %r1, %tid.x; mov.u32 %zero, 0;
            ld.param.u64 %in, [p]; mad.wide.u32 %in, %r1, 4, %in; ld.param.u64 %out, [q]; mad.wide.u32 %out, %r1, 4, %out;
            mov.u32 %own, tile; mad.lo.u32 %own, %r1, 4, %own;
            xor.b32 %r2, %r1, 32; mov.u32 %other, tile; mad.lo.u32 %other, %r2, 4, %other;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 mbarrier.init.shared.b64 [bar], 64;
            bar.sync 0;
            {body}
            st.global.u32 [%out], %r2; ret;
        }}"
    );
    let memory = Memory::new(1 << 20);
    let from = memory.upload(&(100..164_u32).collect::<Vec<_>>()).unwrap();
    let to = memory.alloc(256).unwrap();
    let params: Vec<u8> = [from, to].into_iter().flat_map(u64::to_le_bytes).collect();
    let config = Config { checks: Checks::ALL, work_limit: 1 << 22, ..Config::default() };
    let report = launch_with(&config, &text, shape(1, 64), &params, &memory)?;
    Ok((memory.download(to, 64).unwrap(), report))
}

const ARRIVE: &str = "st.shared.u32 [%own], %r1; mbarrier.arrive.shared::cta.b64 %state, [bar];";
const READ: &str = "ld.shared.u32 %r2, [%other];";

fn others() -> Vec<u32> {
    (0..64).map(|thread| thread ^ 32).collect()
}

#[test]
fn threads_read_what_others_wrote_before_they_arrived() {
    let waits = [
        "again: mbarrier.test_wait.shared.b64 %p2, [bar], %state; @!%p2 bra again;",
        "again: mbarrier.try_wait.acquire.cta.shared::cta.b64 %p2, [bar], %state, 1000; @!%p2 bra again;",
        "again: mbarrier.try_wait.parity.shared.b64 %p2, [bar], %zero; @!%p2 bra again;",
    ];
    for wait in waits {
        let (out, report) = threads(&format!("{ARRIVE} {wait} {READ}")).unwrap_or_else(|stop| panic!("{stop}"));
        assert_eq!(out, others(), "{wait}");
        assert_eq!(report.findings, [], "{wait}");
        // Both warps store and load a word a lane, and an H200 counts no more.
        let [loads, stores, atomics] =
            [report.counters.shared_load, report.counters.shared_store, report.counters.shared_atomic];
        assert_eq!([loads.wavefronts, stores.wavefronts, atomics.wavefronts], [2, 2, 0], "{wait}");
    }
}

#[test]
fn a_missing_wait_is_a_race() {
    let (_, report) = threads(&format!("{ARRIVE} {READ}")).unwrap();
    assert!(report.findings.iter().any(|finding| finding.to_string().contains("race")), "{:?}", report.findings);
}

#[test]
fn a_barrier_has_phase_after_phase() {
    let phase = |parity: u32| {
        format!(
            "{ARRIVE} w{parity}: mbarrier.try_wait.parity.shared.b64 %p2, [bar], {parity}; @!%p2 bra w{parity};
            ld.shared.u32 %r3, [%other]; mbarrier.arrive.shared.b64 %state, [bar];
            v{parity}: mbarrier.test_wait.shared.b64 %p2, [bar], %state; @!%p2 bra v{parity};"
        )
    };
    let body = format!(
        "{} add.u32 %r1, %r1, 7; {} mov.u32 %r2, %r3;",
        phase(0),
        phase(0).replace("w0", "w1").replace("v0", "v1")
    );
    let (out, report) = threads(&body).unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(out, others().into_iter().map(|thread| thread + 7).collect::<Vec<_>>());
    assert_eq!(report.findings, []);
}

#[test]
fn a_phase_waits_for_bytes_that_were_announced() {
    // Thread 0 announces 8 bytes, and the last thread has them arrive.
    let body = "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 8;
        mbarrier.arrive.shared.b64 %state, [bar]; bar.sync 0;
        mbarrier.test_wait.shared.b64 %p2, [bar], %state; selp.b32 %r2, 1, 0, %p2; bar.sync 0;
        setp.eq.u32 %p1, %r1, 63; @%p1 mbarrier.complete_tx.shared.b64 [bar], 8; bar.sync 0;
        mbarrier.test_wait.shared.b64 %p2, [bar], %state; @%p2 add.u32 %r2, %r2, 2;";
    assert_eq!(threads(body).unwrap_or_else(|stop| panic!("{stop}")).0, [2; 64]);
}

#[test]
fn copies_arrive_when_they_have_written() {
    let body = format!(
        "cp.async.ca.shared.global [%own], [%in], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
        again: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra again; {READ}"
    );
    let (out, report) = threads(&body).unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(out, others().into_iter().map(|thread| thread + 100).collect::<Vec<_>>());
    assert_eq!(report.findings, []);
}

#[test]
fn states_tell_the_arrivals_that_were_pending() {
    let body =
        "mbarrier.arrive.noComplete.release.cta.shared.b64 %state, [bar], 1; mbarrier.pending_count.b64 %r2, %state;";
    let (mut pending, _) = threads(body).unwrap();
    pending.sort_unstable();
    assert_eq!(pending, (1..=64).collect::<Vec<u32>>());
}

#[test]
fn a_thread_that_waits_for_an_arrival_that_never_comes_is_stopped() {
    let body = "again: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra again;";
    let stop = threads(body).expect_err("it stops").to_string();
    assert!(stop.contains("stopped"), "{stop}");
}
