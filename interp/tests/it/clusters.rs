//! Clusters of blocks: their barrier, and the shared memory of the other blocks.

use warpstride_interp::{Checks, Config, Report, Stop};

use super::{launch_with, on_threads, run_on, shape};

/// Blocks of a grid of clusters of 4, and threads of a block.
const BLOCKS: u32 = 8;
const THREADS: u32 = 64;

/// A kernel whose blocks stand in clusters of `cluster`. `%rank` is the block's rank, `%next` that
/// of the block after it in its cluster, `%own` a thread's word of `tile`, `%there` that word of
/// the next block, and `%out` its word of the buffer.
fn kernel(cluster: u32, body: &str) -> String {
    format!(
        ".version 8.0 .target sm_90 .address_size 64
        .visible .entry k(.param .u64 p) .reqnctapercluster {cluster}, 1, 1 {{
            .reg .pred %p<4>; .reg .b32 %r<9>, %own, %there, %rank, %next, %t; .reg .b64 %rd<9>, %out;
            .shared .align 8 .b64 bar; .shared .align 16 .b8 tile[256];
            mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.u32 %r1, %cluster_nctarank;
            add.u32 %next, %rank, 1; rem.u32 %next, %next, %r1;
            mov.u32 %own, tile; mad.lo.u32 %own, %t, 4, %own; mapa.shared::cluster.u32 %there, %own, %next;
            ld.param.u64 %out, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r1, %r1, %r2, %t;
            mad.wide.u32 %out, %r1, 4, %out;
            {body}
            ret;
        }}"
    )
}

const MEET: &str = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
/// Stores the block's number times 100 and the thread's number.
const FILL: &str = "mov.u32 %r3, %ctaid.x; mad.lo.u32 %r3, %r3, 100, %t; st.shared.u32 [%own], %r3;";

fn run(config: &Config, body: &str) -> Result<(Report, Vec<u32>), Box<Stop>> {
    run_on(&kernel(4, body), shape(BLOCKS, THREADS), &[0; (BLOCKS * THREADS) as usize], config)
}

/// Runs it with all checkers, without findings.
#[track_caller]
fn clean(body: &str) -> Vec<u32> {
    let config = Config { checks: Checks::ALL, work_limit: 1 << 24, ..Config::default() };
    let (report, words) = run(&config, body).unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(report.findings, []);
    words
}

/// The value that each thread of each block computes from its block's number and its own.
fn each(value: impl Fn(u32, u32) -> u32 + Copy) -> Vec<u32> {
    (0..BLOCKS).flat_map(|block| (0..THREADS).map(move |thread| value(block, thread))).collect()
}

/// The block after this one in its cluster.
fn next(block: u32) -> u32 {
    block / 4 * 4 + (block + 1) % 4
}

/// Checks with all checkers that a finding has these words.
#[track_caller]
fn found(body: &str, words: &[&str]) {
    let config = Config { checks: Checks::ALL, work_limit: 1 << 24, ..Config::default() };
    let (report, _) = run(&config, body).unwrap_or_else(|stop| panic!("{stop}"));
    let texts: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(texts.iter().any(|text| words.iter().all(|word| text.contains(word))), "{texts:?}");
}

#[test]
fn blocks_read_the_shared_memory_of_others() {
    let loads = [
        "ld.shared::cluster.u32 %r4, [%there];",
        "cvt.u64.u32 %rd1, %there; cvta.shared::cluster.u64 %rd1, %rd1; ld.u32 %r4, [%rd1];",
        "cvt.u64.u32 %rd1, %own; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd1, %rd1, %next; ld.relaxed.cluster.u32 %r4, [%rd1];",
        "mapa.shared::cluster.u32 %r5, tile, %next; sub.u32 %r6, %own, tile; add.u32 %r5, %r5, %r6;
         ld.shared::cluster.v2.u32 {%r4, %r7}, [%r5+0];",
    ];
    for load in &loads[..3] {
        let out = clean(&format!("{FILL} {MEET} {load} st.global.u32 [%out], %r4; {MEET}"));
        assert_eq!(out, each(|block, thread| 100 * next(block) + thread), "{load}");
    }
    // A vector of two words is aligned in every second thread.
    let body = format!(
        "{FILL} {MEET} and.b32 %r5, %t, 1; setp.eq.u32 %p1, %r5, 1; @%p1 bra done; {} st.global.u32 [%out], %r7; done: {MEET}",
        loads[3]
    );
    assert_eq!(clean(&body), each(|block, thread| if thread % 2 == 0 { 100 * next(block) + thread + 1 } else { 0 }));
}

#[test]
fn blocks_write_to_the_shared_memory_of_others() {
    let read = "ld.shared.u32 %r4, [%own]; st.global.u32 [%out], %r4;";
    let store = format!("{} {MEET} {read}", FILL.replace("st.shared.u32 [%own]", "st.shared::cluster.u32 [%there]"));
    assert_eq!(clean(&store), each(|block, thread| 100 * (block / 4 * 4 + (block + 3) % 4) + thread));
    // All blocks of a cluster add to the words of its first one.
    let sum = format!(
        "st.shared.u32 [%own], 7; {MEET} mapa.shared::cluster.u32 %r5, %own, 0; add.u32 %r6, %rank, 1;
        red.relaxed.cluster.shared::cluster.add.u32 [%r5], %r6; atom.shared::cluster.add.u32 %r4, [%r5], %r6; {MEET} {read}"
    );
    assert_eq!(clean(&sum), each(|block, _| if block % 4 == 0 { 27 } else { 7 }));
}

#[test]
fn addresses_tell_their_block() {
    let body = "mapa.shared::cluster.u32 %r3, %own, 2; getctarank.shared::cluster.u32 %r4, %r3;
        getctarank.shared::cluster.u32 %r5, %own; mad.lo.u32 %r4, %r4, 10, %r5;
        cvt.u64.u32 %rd1, %r3; cvta.shared::cluster.u64 %rd1, %rd1; isspacep.shared::cta %p1, %rd1; selp.u32 %r5, 100, 0, %p1;
        add.u32 %r4, %r4, %r5; isspacep.shared::cluster %p1, %rd1; selp.u32 %r5, 1000, 0, %p1; add.u32 %r4, %r4, %r5;
        st.global.u32 [%out], %r4;";
    assert_eq!(clean(body), each(|block, _| 1020 + block % 4 + if block % 4 == 2 { 100 } else { 0 }));
}

#[test]
fn barriers_in_shared_memory_take_arrivals_of_other_blocks() {
    // Each block fills the tile of the next one, and then arrives there with all threads.
    let body = format!(
        "setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [bar], {THREADS}; fence.mbarrier_init.release.cluster; {MEET}
        {} mapa.shared::cluster.u32 %r5, bar, %next; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
        again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0; @!%p2 bra again;
        ld.shared.u32 %r4, [%own]; st.global.u32 [%out], %r4; {MEET}",
        FILL.replace("st.shared.u32 [%own]", "st.shared::cluster.u32 [%there]")
    );
    assert_eq!(clean(&body), each(|block, thread| 100 * (block / 4 * 4 + (block + 3) % 4) + thread));
}

#[test]
fn results_do_not_depend_on_the_number_of_host_threads() {
    let body = format!("{FILL} {MEET} ld.shared::cluster.u32 %r4, [%there]; st.global.u32 [%out], %r4; {MEET}");
    let results = on_threads(&Config::default(), |config| {
        let (report, words) = run(config, &body).unwrap_or_else(|stop| panic!("{stop}"));
        (report.counters, words)
    });
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    // Each of 2 warps of 8 blocks loads a word a lane, which is one wavefront.
    assert_eq!(results[0].0.shared_load.wavefronts, 16);
}

#[test]
fn clusters_may_have_three_directions() {
    // The ranks of a cluster of 2 x 2 blocks, each read from the block of that rank.
    let text = ".version 8.0 .target sm_90 .address_size 64
        .visible .entry k(.param .u64 p) .reqnctapercluster 2, 2, 1 {
        .reg .b32 %r<9>; .reg .b64 %rd<4>; .shared .b32 word;
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mad.lo.u32 %r1, %r2, 4, %r1; st.shared.u32 [word], %r1;
        barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
        mov.u32 %r3, %cluster_ctarank; xor.b32 %r3, %r3, 3; mapa.shared::cluster.u32 %r4, word, %r3;
        ld.shared::cluster.u32 %r5, [%r4]; ld.param.u64 %rd1, [p]; mad.wide.u32 %rd1, %r1, 4, %rd1; st.global.u32 [%rd1], %r5;
        barrier.cluster.arrive; barrier.cluster.wait; ret; }";
    let mut grid = shape(4, 1);
    grid.grid[1] = 4;
    let (_, words) = run_on(text, grid, &[0; 16], &Config::default()).unwrap_or_else(|stop| panic!("{stop}"));
    let across = |block: u32| ((block % 4) ^ 1) + 4 * ((block / 4) ^ 1);
    assert_eq!(words, (0..16).map(across).collect::<Vec<_>>());
}

#[test]
fn an_access_beyond_the_cluster_or_a_block_stops_the_launch() {
    for (body, words) in [
        (
            "mapa.shared::cluster.u32 %r5, %own, 4; ld.shared::cluster.u32 %r4, [%r5];",
            ["block 4", "which has 4 blocks"],
        ),
        (
            "mapa.shared::cluster.u32 %r5, %own, 4000000000; ld.shared::cluster.u32 %r4, [%r5];",
            ["block 254", "check the rank"],
        ),
        (
            "add.u32 %there, %there, 1024; st.shared::cluster.u32 [%there], 1;",
            ["stores 4 bytes", "which has 272 bytes"],
        ),
        ("ld.shared::cluster.u32 %r4, [%there+2];", ["misaligned", "multiple of 4"]),
        ("ld.shared.u32 %r4, [%there];", ["out of bounds", "which has 272 bytes"]),
    ] {
        let stop = run(&Config::default(), body).expect_err(body).to_string();
        assert!(words.iter().all(|word| stop.contains(word)), "{stop}");
        found(&format!("{body} {MEET}"), &words);
    }
}

#[test]
fn an_access_to_a_block_that_has_ended_is_found() {
    let body = format!(
        "{FILL} {MEET} setp.eq.u32 %p1, %rank, 1; @%p1 bra done; bar.sync 0;
        mapa.shared::cluster.u32 %r5, %own, 1; ld.shared::cluster.u32 %r4, [%r5]; done:"
    );
    found(&body, &["block 1 of its cluster, which has ended"]);
    assert!(run(&Config::default(), &body).is_ok(), "a GPU may end it later");
}

#[test]
fn lanes_of_a_warp_may_be_in_different_phases_of_the_barrier() {
    for body in [
        // Some lanes wait for the second phase where the others have not yet waited for the first.
        "barrier.cluster.arrive; setp.lt.u32 %p1, %t, 48; @%p1 bra first;
        again: ld.volatile.shared.u32 %r4, [tile+160]; setp.ne.u32 %p2, %r4, 40; @%p2 bra again; bra meet;
        first: barrier.cluster.wait; st.volatile.shared.u32 [%own], %t; barrier.cluster.arrive;
        meet: barrier.cluster.wait; @!%p1 barrier.cluster.arrive; @!%p1 barrier.cluster.wait; st.global.u32 [%out], 5;",
        // The barrier releases lanes while the others of their warp look for what these will store.
        "setp.lt.u32 %p1, %t, 48; setp.eq.u32 %p3, %rank, 3; @%p3 bra late; barrier.cluster.arrive; @%p1 bra first;
        again: ld.volatile.shared.u32 %r4, [tile+160]; setp.ne.u32 %p2, %r4, 40; @%p2 bra again; bra meet;
        first: barrier.cluster.wait; st.volatile.shared.u32 [%own], %t; bra done;
        late: mov.u32 %r6, 0; soon: ld.volatile.shared.u32 %r7, [tile]; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 2000;
        @%p2 bra soon; barrier.cluster.arrive;
        meet: barrier.cluster.wait; done: st.global.u32 [%out], 5;",
    ] {
        let config = Config { work_limit: 1 << 22, ..Config::default() };
        let (_, words) = run(&config, body).unwrap_or_else(|stop| panic!("{stop}"));
        assert_eq!(words, each(|_, _| 5), "{body}");
    }
}

#[test]
fn the_barrier_of_a_cluster_takes_turns() {
    for (body, words) in [
        ("barrier.cluster.wait;", "where it has not arrived"),
        ("barrier.cluster.arrive; barrier.cluster.arrive;", "arrives again"),
        (
            "setp.gt.u32 %p1, %t, 31; setp.eq.and.u32 %p1, %rank, 2, %p1; @%p1 bar.sync 1, 64; barrier.cluster.arrive; barrier.cluster.wait;",
            "at the barrier of its cluster",
        ),
    ] {
        let stop = run(&Config { work_limit: 1 << 24, ..Config::default() }, body).expect_err(body).to_string();
        assert!(stop.contains(words), "{stop}");
        found(body, &[words]);
    }
    // A block that has ended is not waited for.
    let body = format!("setp.eq.u32 %p1, %rank, 2; @%p1 bra done; {MEET} done: st.global.u32 [%out], 1;");
    assert_eq!(clean(&body), each(|_, _| 1));
}

#[test]
fn a_missing_barrier_of_the_cluster_is_found() {
    let read = "ld.shared::cluster.u32 %r4, [%there]; st.global.u32 [%out], %r4;";
    let advice = "put `barrier.cluster.arrive` and `barrier.cluster.wait` between them";
    found(&format!("{FILL} {read} {MEET}"), &["race", "shared", advice]);
    // An arrival that publishes nothing orders nothing.
    let relaxed = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;";
    found(&format!("{FILL} {relaxed} {read} {MEET}"), &["race", "shared"]);
    let narrow = "mapa.shared::cluster.u32 %r5, %own, 0; red.relaxed.cta.shared::cluster.add.u32 [%r5], 1;";
    found(&format!("st.shared.u32 [%own], 7; {MEET} {narrow} {MEET}"), &["race", "needs .cluster scope"]);
    let body = format!("{MEET} {read} {MEET}");
    found(&body, &["not all of which have been written", "shared"]);
}

#[test]
fn a_cluster_orders_global_memory() {
    let body = format!(
        "{FILL} st.global.u32 [%out], %r3; {MEET} ld.param.u64 %rd1, [p]; mov.u32 %r5, %ctaid.x; sub.u32 %r5, %r5, %rank;
        add.u32 %r5, %r5, %next; mov.u32 %r6, %ntid.x; mad.lo.u32 %r5, %r5, %r6, %t; mad.wide.u32 %rd1, %r5, 4, %rd1;
        ld.global.u32 %r4, [%rd1]; {MEET} st.global.u32 [%out], %r4;"
    );
    assert_eq!(clean(&body), each(|block, thread| 100 * next(block) + thread));
}

#[test]
fn a_kernel_without_clusters_is_a_cluster_of_one() {
    let text = kernel(1, "st.shared.u32 [%own], %t; barrier.cluster.arrive; barrier.cluster.wait; ld.shared::cluster.u32 %r4, [%there]; st.global.u32 [%out], %r4;")
        .replace(".reqnctapercluster 1, 1, 1", "");
    let config = Config { checks: Checks::ALL, ..Config::default() };
    let (report, words) = run_on(&text, shape(2, 32), &[9; 64], &config).unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!((words, report.findings.len()), ((0..64).map(|word| word % 32).collect(), 0));
}

#[test]
fn a_stop_names_the_block_of_the_cluster() {
    let memory = warpstride_interp::Memory::new(1 << 20);
    let buffer = memory.alloc(2048).unwrap();
    let text = kernel(4, &format!("{MEET} setp.eq.u32 %p1, %rank, 3; @%p1 trap;"));
    let stop = launch_with(&Config::default(), &text, shape(BLOCKS, THREADS), &buffer.to_le_bytes(), &memory);
    let stop = stop.expect_err("it traps");
    assert_eq!(stop.place.as_ref().map(|place| place.block), Some([3, 0, 0]), "{stop}");
}
