//! Copies in bulk: `cp.async.bulk`, what they move and when.

use warpstride_interp::{Checks, Config, Report, Stop};

use super::{run_on, shape};

/// Words that each of the two blocks of a cluster gets, and threads of a block.
const WORDS: u32 = 64;

/// Runs a cluster of two blocks. `%in` and `%out` are the words of the block, `%from` and `%to`
/// those of the thread, `tile` is the block's shared memory and `%own` the thread's word of it.
/// `%p1` holds in thread 0, and `bar` expects one arrival. Returns the words behind `%out`.
pub(crate) fn run(config: &Config, body: &str) -> Result<(Report, Vec<u32>), Box<Stop>> {
    let text = format!(
        ".version 8.0 .target sm_90 .address_size 64
        .visible .entry k(.param .u64 p) .reqnctapercluster 2, 1, 1 {{
            .reg .pred %p<4>; .reg .b32 %r<9>, %own, %t, %rank, %other; .reg .b64 %rd<9>, %in, %out, %from, %to, %policy;
            .shared .align 8 .b64 bar; .shared .align 128 .b8 tile[512];
            mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; xor.b32 %other, %rank, 1;
            mov.u32 %own, tile; mad.lo.u32 %own, %t, 4, %own; setp.eq.u32 %p1, %t, 0;
            ld.param.u64 %in, [p]; mad.wide.u32 %in, %rank, 256, %in; add.u64 %out, %in, 512;
            mad.wide.u32 %from, %t, 4, %in; mad.wide.u32 %to, %t, 4, %out;
            @%p1 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;
            barrier.cluster.arrive; barrier.cluster.wait;
            {body}
            barrier.cluster.arrive; barrier.cluster.wait; ret;
        }}"
    );
    let words: Vec<u32> = (0..4 * WORDS).map(|word| if word < 2 * WORDS { 1000 + word } else { 7 }).collect();
    let (report, words) = run_on(&text, shape(2, WORDS), &words, config)?;
    Ok((report, words[2 * WORDS as usize..].to_vec()))
}

pub(crate) fn all() -> Config {
    Config { checks: Checks::ALL, work_limit: 1 << 24, ..Config::default() }
}

/// Runs it with all checkers, without findings.
#[track_caller]
pub(crate) fn clean(body: &str) -> Vec<u32> {
    let (report, words) = run(&all(), body).unwrap_or_else(|stop| panic!("{stop}\n{body}"));
    assert_eq!(report.findings, [], "{body}");
    words
}

/// The value that each thread of each block computes from its block's rank and its own number.
pub(crate) fn each(value: impl Fn(u32, u32) -> u32 + Copy) -> Vec<u32> {
    (0..2).flat_map(|rank| (0..WORDS).map(move |thread| value(rank, thread))).collect()
}

pub(crate) const EXPECT: &str = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;";
pub(crate) const LOAD: &str =
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], 256, [bar];";
pub(crate) const WAIT: &str = "wait: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra wait;";
pub(crate) const SHOW: &str = "ld.shared.u32 %r1, [%own]; st.global.u32 [%to], %r1;";
pub(crate) const FILL: &str = "st.shared.u32 [%own], %t; fence.proxy.async.shared::cta; bar.sync 0;";
pub(crate) const STORE: &str =
    "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 256; @%p1 cp.async.bulk.commit_group;";

#[test]
fn a_copy_to_shared_memory_ends_at_its_barrier() {
    let hinted = "createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;
        @%p1 cp.async.bulk.prefetch.L2.global.L2::cache_hint [%in], 256, %policy;
        @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [tile], [%in], 256, [bar], %policy;";
    let own = LOAD.replace("shared::cluster", "shared::cta");
    let halves = format!(
        "{} {}",
        LOAD.replace("256", "128"),
        LOAD.replace("256", "128").replace("[tile]", "[tile+128]").replace("[%in]", "[%in+128]")
    );
    for load in [LOAD, &own, hinted, &halves] {
        assert_eq!(clean(&format!("{EXPECT} {load} {WAIT} {SHOW}")), each(|rank, t| 1000 + 64 * rank + t), "{load}");
        assert_eq!(clean(&format!("{load} {EXPECT} {WAIT} {SHOW}")), each(|rank, t| 1000 + 64 * rank + t), "{load}");
    }
    let (report, _) = run(&Config::default(), &format!("{EXPECT} {LOAD} {WAIT} {SHOW}")).unwrap();
    assert_eq!((report.counters.global_load.requests, report.counters.shared_store.wavefronts), (0, 0));
}

#[test]
fn a_missing_wait_is_seen() {
    let (report, words) = run(&all(), &format!("{EXPECT} {LOAD} bar.sync 0; {SHOW}")).unwrap();
    assert!(report.findings.iter().any(|found| found.to_string().contains("initcheck")), "{:?}", report.findings);
    assert_ne!(words, each(|rank, t| 1000 + 64 * rank + t));
    // The source is read after the thread has overwritten it.
    let late = format!("{FILL} {STORE} st.shared.u32 [%own], 5; @%p1 cp.async.bulk.wait_group 0;");
    assert_eq!(run(&Config::default(), &late).unwrap().1, each(|_, thread| if thread < 32 { 5 } else { thread }));
    // The bytes that a thread reads early are those from before.
    let early = format!(
        "{FILL} {STORE} @%p1 cp.async.bulk.wait_group.read 0; @%p1 ld.global.u32 %r2, [%out+4];
        @%p1 cp.async.bulk.wait_group 0; @%p1 st.global.u32 [%out], %r2;"
    );
    assert_eq!(run(&Config::default(), &early).unwrap().1, each(|_, thread| if thread == 0 { 7 } else { thread }));
}

#[test]
fn bytes_that_were_never_written_stay_so() {
    let (report, _) = run(
        &all(),
        &format!(
            "{STORE} @%p1 cp.async.bulk.wait_group 0; bar.sync 0; ld.global.u32 %r1, [%to];
        ld.shared.u32 %r2, [%own]; st.global.u32 [%to], %r2;"
        ),
    )
    .unwrap();
    assert!(report.findings.iter().any(|found| found.to_string().contains("initcheck")), "{:?}", report.findings);
}

#[test]
fn a_multicast_reaches_every_block_that_it_names() {
    let body = format!(
        "{EXPECT} mov.b16 %h1, 3; setp.eq.and.u32 %p3, %rank, 0, %p1;
        @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%in], 256, [bar], %h1;
        {WAIT} {SHOW}"
    );
    let body = format!(".reg .b16 %h<3>; {body}");
    assert_eq!(clean(&body), each(|_, thread| 1000 + thread));
    let stop = run(&Config::default(), &body.replace("%h1, 3", "%h1, 6")).expect_err("it stops").to_string();
    assert!(stop.contains("block 2 of its cluster, which has 2 blocks"), "{stop}");
}

#[test]
fn blocks_send_their_shared_memory_to_others() {
    let send = "mapa.shared::cluster.u32 %r3, tile, %other; mapa.shared::cluster.u32 %r4, bar, %other;
        @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r3+256], [tile], 256, [%r4];";
    let body = format!(
        "add.u32 %t, %t, %rank; {FILL} {EXPECT} {send} {WAIT} ld.shared.u32 %r1, [%own+256]; st.global.u32 [%to], %r1;"
    );
    assert_eq!(clean(&body), each(|rank, thread| thread + 1 - rank));
    let add = send.replace("cp.async.bulk", "cp.reduce.async.bulk").replace("bytes [", "bytes.add.u32 [");
    let body = format!(
        "st.shared.u32 [%own+256], 100; {FILL} {EXPECT} barrier.cluster.arrive; barrier.cluster.wait;
        {add} {WAIT} ld.shared.u32 %r1, [%own+256]; st.global.u32 [%to], %r1;"
    );
    assert_eq!(clean(&body), each(|_, thread| thread + 100));
}

#[test]
fn a_copy_to_global_memory_ends_with_its_group_or_block() {
    for wait in [
        "@%p1 cp.async.bulk.wait_group 0;",
        "@%p1 cp.async.bulk.wait_group.read 0; bar.sync 0; st.shared.u32 [%own], 9;",
        "",
    ] {
        assert_eq!(clean(&format!("{FILL} {STORE} {wait}")), each(|_, thread| thread), "{wait}");
    }
    // The latest group need not be complete.
    let body = format!(
        "{FILL} {} {} st.shared.u32 [%own], 9; @%p1 cp.async.bulk.wait_group 0;",
        STORE.replace("256", "128"),
        STORE.replace("256", "128").replace("[tile]", "[tile+128]").replace("[%out]", "[%out+128]")
    );
    let body = body.replace(
        "st.shared.u32 [%own], 9;",
        "@%p1 cp.async.bulk.wait_group 1; bar.sync 0; st.shared.u32 [%own], 9; bar.sync 0;",
    );
    assert_eq!(run(&Config::default(), &body).unwrap().1, each(|_, thread| if thread < 32 { thread } else { 9 }));
}

#[test]
fn copies_add_to_what_is_there() {
    // For each type: the elements of a word in shared memory, and the word that is there.
    let f16 = |value: f32| half(value);
    for (kind, bits, before, after) in [
        ("u32", 5, 7, 12),
        ("s32", u32::MAX, 7, 6),
        ("f32", 1.5_f32.to_bits(), 2.25_f32.to_bits(), 3.75_f32.to_bits()),
        ("f32", 5, 0x8000_0007, 0x8000_0002),
        ("noftz.f16", f16(1.5) * 0x1_0001, f16(2.0) * 0x1_0001, f16(3.5) * 0x1_0001),
        ("noftz.bf16", 0x3fc0_3fc0, 0x4000_4000, 0x4060_4060),
    ] {
        let add = STORE
            .replace("cp.async.bulk.global", "cp.reduce.async.bulk.global")
            .replace("bulk_group", &format!("bulk_group.add.{kind}"));
        let body =
            format!("st.global.u32 [%to], {before}; mov.u32 %t, {bits}; {FILL} {add} @%p1 cp.async.bulk.wait_group 0;");
        assert_eq!(clean(&body), each(|_, _| after), "{kind}");
    }
    let add = STORE
        .replace("cp.async.bulk.global", "cp.reduce.async.bulk.global")
        .replace("bulk_group", "bulk_group.add.u64");
    let body = format!("st.global.u32 [%to], 4294967295; {FILL} {add} @%p1 cp.async.bulk.wait_group 0;");
    let model = |thread: u32| {
        let sum = (u64::from(thread / 2 * 2) | u64::from(thread / 2 * 2 + 1) << 32).wrapping_add(u64::MAX);
        if thread.is_multiple_of(2) { sum as u32 } else { (sum >> 32) as u32 }
    };
    assert_eq!(clean(&body), each(|_, thread| model(thread)));
}

/// For each reduction, the elements of a word in shared memory, the word that is there, and what it
/// becomes.
#[test]
fn copies_change_what_is_there() {
    let minus = |value: u32| value.wrapping_neg();
    let halves = |low: f32, high: f32| half(low) | half(high) << 16;
    let wide = ["min.s64", "max.u64", "or.b64", "min.f16", "max.bf16"];
    for (kind, bits, before, after) in [
        ("min.u32", 5, minus(1), 5),
        ("max.u32", 5, minus(1), minus(1)),
        ("min.s32", 5, minus(1), minus(1)),
        ("max.s32", 5, minus(1), 5),
        ("inc.u32", 5, 4, 5),
        ("inc.u32", 5, 5, 0),
        ("inc.u32", 5, 9, 0),
        ("dec.u32", 5, 4, 3),
        ("dec.u32", 5, 0, 5),
        ("dec.u32", 5, 6, 5),
        ("and.b32", 12, 10, 8),
        ("or.b32", 12, 10, 14),
        ("xor.b32", 12, 10, 6),
        ("min.s64", 7, minus(1), minus(1)),
        ("max.u64", 7, 9, 9),
        ("or.b64", 12, 10, 14),
        ("min.f16", halves(1.5, 4.0), halves(2.0, 3.5), halves(1.5, 3.5)),
        ("min.f16", 0x7e00_7e00, halves(2.0, 3.5), halves(2.0, 3.5)),
        ("max.bf16", 0x3fc0_4040, 0x4000_4000, 0x4000_4040),
    ] {
        let change = STORE
            .replace("cp.async.bulk.global", "cp.reduce.async.bulk.global")
            .replace("bulk_group", &format!("bulk_group.{kind}"));
        let body = format!(
            "st.global.u32 [%to], {before}; mov.u32 %t, {bits}; {FILL} {change} @%p1 cp.async.bulk.wait_group 0;"
        );
        assert_eq!(clean(&body), each(|_, _| after), "{kind}");
        if wide.contains(&kind) {
            continue;
        }
        let body = format!(
            "mov.u32 %t, {bits}; st.shared.u32 [%own+256], {before}; {FILL} {EXPECT} barrier.cluster.arrive; barrier.cluster.wait;
            mapa.shared::cluster.u32 %r3, tile, %other; mapa.shared::cluster.u32 %r4, bar, %other;
            @%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{kind} [%r3+256], [tile], 256, [%r4];
            {WAIT} ld.shared.u32 %r1, [%own+256]; st.global.u32 [%to], %r1;"
        );
        assert_eq!(clean(&body), each(|_, _| after), "{kind}");
    }
    let sum = STORE
        .replace("cp.async.bulk.global", "cp.reduce.async.bulk.global")
        .replace("bulk_group", "bulk_group.add.f64");
    // 2.0 and 2.0, whose low words are 0.
    let word = "and.b32 %t, %t, 1; mul.lo.u32 %t, %t, 1073741824;";
    let body = format!("{word} st.global.u32 [%to], %t; {FILL} {sum} @%p1 cp.async.bulk.wait_group 0;");
    assert_eq!(clean(&body), each(|_, t| if t % 2 == 0 { 0 } else { 4.0_f64.to_bits().wrapping_shr(32) as u32 }));
}

/// The bits of a half that is a multiple of 0.5 from 1 to 4.
fn half(value: f32) -> u32 {
    let bits = value.to_bits();
    (bits >> 13 & 0x3ff) | ((bits >> 23) - 112) << 10
}

#[test]
fn a_copy_that_is_not_possible_stops_the_launch() {
    for (body, words) in [
        (LOAD.replace("256", "24"), ["copies 24 bytes", "must be a multiple of 16"]),
        (LOAD.replace("[tile]", "[tile+8]"), ["its destination at", "must be a multiple of 16"]),
        (LOAD.replace("[%in]", "[%in+4]"), ["its source at", "must be a multiple of 16"]),
        (LOAD.replace("[bar]", "[bar+4]"), ["its barrier at", "must be a multiple of 8"]),
        (LOAD.replace("256", "640"), ["stores 640 bytes", "shared memory"]),
        (LOAD.replace("[%in]", "[%in+1008]"), ["loads 256 bytes", "out of bounds"]),
        (STORE.replace("[%out]", "[%out-1024]"), ["stores 256 bytes", "before an allocation"]),
        (STORE.replace("256", "4294967280"), ["4294967280 bytes", "out of bounds"]),
    ] {
        let stop = run(&Config::default(), &body).expect_err(&body).to_string();
        assert!(words.iter().all(|word| stop.contains(word)), "{stop}");
        let (report, _) = run(&all(), &body).unwrap_or_else(|stop| panic!("{stop}"));
        let texts: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| words.iter().all(|word| text.contains(word))), "{texts:?}");
    }
}

/// Each thread stores to the other block, whose threads wait for all bytes.
#[test]
fn registers_arrive_in_another_block_with_their_bytes() {
    let places = "mapa.shared::cluster.u32 %r3, tile, %other; mapa.shared::cluster.u32 %r4, bar, %other;";
    let weak = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes";
    let expect = |bytes: u32| EXPECT.replace("256", &bytes.to_string());
    let own = "mad.lo.u32 %r3, %t, 4, %r3; mul.lo.u32 %r5, %t, 3; add.u32 %r5, %r5, %rank;";
    let body = format!("{places} {own} {EXPECT} {}.u32 [%r3], %r5, [%r4]; {WAIT} {SHOW}", weak.replace(".weak", ""));
    assert_eq!(clean(&body), each(|rank, t| 3 * t + 1 - rank));
    // Every fourth thread stores four words, or two of 8 bytes.
    let four = format!("{weak}.v4.b32 [%r3], {{%r5, %t, %r5, 7}}, [%r4];");
    let two = format!(
        ".reg .b64 %q<3>; mov.b64 %q1, {{%r5, %t}}; mov.b64 %q2, {{%r5, 7}}; {weak}.v2.b64 [%r3], {{%q1, %q2}}, [%r4];"
    );
    let model = |rank: u32, t: u32| {
        let first = t / 4 * 4;
        [3 * first + 1 - rank, first, 3 * first + 1 - rank, 7][t as usize % 4]
    };
    for store in [four, two] {
        let body = format!(
            "{places} {own} {EXPECT} and.b32 %r6, %t, 3; setp.ne.u32 %p3, %r6, 0; @%p3 bra past; {store} past: {WAIT} {SHOW}"
        );
        assert_eq!(clean(&body), each(model), "{store}");
    }
    let red = |kind: &str| {
        format!(
            "st.shared.u32 [%own], 100; {} barrier.cluster.arrive; barrier.cluster.wait; {places}
            red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{kind} [%r3], %t, [%r4]; {WAIT} {SHOW}",
            expect(256)
        )
    };
    assert_eq!(clean(&red("add.u32"))[..2], [100 + 63 * 32, 100]);
    assert_eq!(clean(&red("min.s32"))[..2], [0, 100]);
    assert_eq!(clean(&red("or.b32"))[..2], [127, 100]);
    assert_eq!(clean(&red("inc.u32"))[..2], [63, 100]);
    let stop = |body: &str| run(&Config::default(), body).expect_err(body).to_string();
    let bad = format!("{places} {weak}.v2.u32 [%r3+4], {{%t, %t}}, [%r4];");
    assert!(stop(&bad).contains("its destination at"), "{}", stop(&bad));
    let far = format!("{places} {weak}.u32 [%r3+65536], %t, [%r4];");
    assert!(stop(&far).contains("stores 4 bytes"), "{}", stop(&far));
}

#[test]
fn a_copy_of_no_bytes_has_no_source() {
    let none = LOAD.replace("256", "0").replace("[%in]", "[%rd1]");
    let body = format!("mov.u64 %rd1, 0; {none} {EXPECT} {LOAD} {WAIT} {SHOW}");
    assert_eq!(clean(&body), each(|rank, t| 1000 + 64 * rank + t));
}

#[test]
fn a_copy_to_a_block_that_has_ended_is_found() {
    let body = "setp.eq.u32 %p2, %rank, 0; @%p2 ret; st.shared.u32 [%own], %t; bar.sync 0;
        mapa.shared::cluster.u32 %r3, tile, %other; mapa.shared::cluster.u32 %r4, bar, %other;
        @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r3], [tile], 256, [%r4];";
    let (report, _) = run(&all(), body).unwrap();
    let texts: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(texts.iter().any(|text| text.contains("block 0 of its cluster, which has ended")), "{texts:?}");
    assert!(run(&Config::default(), body).is_ok(), "a GPU may end it later");
}

/// The work of a copy depends little on the number of those under way, and is within the limit.
#[test]
fn many_copies_take_as_long_each_as_few() {
    let begin = "setp.eq.u32 %p2, %rank, 0; and.pred %p1, %p1, %p2; mov.u32 %r5, 0; @!%p1 bra done; more:";
    let repeat = "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 100000; @%p3 bra more; done:";
    let load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], 16, [bar];";
    let config = Config { work_limit: 1 << 26, ..Config::default() };
    let started = std::time::Instant::now();
    run(&config, &format!("{begin} {load} {repeat}")).unwrap_or_else(|stop| panic!("{stop}"));
    assert!(started.elapsed().as_secs() < 4, "{:?}", started.elapsed());
    // Each wait inspects the copies under way, and that is work.
    let store = "cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 16; cp.async.bulk.commit_group;";
    let body = format!("{begin} {store} cp.async.bulk.wait_group.read 0; {repeat}");
    let stop = run(&Config { work_limit: 1 << 22, ..config }, &body).expect_err("it is too much").to_string();
    assert!(stop.contains("4194304 units of work"), "{stop}");
}

#[test]
fn a_cluster_has_as_many_copies_as_it_likes() {
    let body = format!(
        "@%p1 mbarrier.expect_tx.shared.b64 [bar], 79744; {EXPECT} mov.u32 %r5, 0;
        more: @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], 16, [bar];
        add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 5000; @%p3 bra more;
        {} {WAIT} {SHOW}",
        LOAD.replace("[tile]", "[tile+256]").replace("256, [bar]", "0, [bar]")
    );
    let words = run(&Config::default(), &body).unwrap_or_else(|stop| panic!("{stop}")).1;
    assert_eq!((words[..4].to_vec(), words[64..68].to_vec()), ((1000..1004).collect(), (1064..1068).collect()));
}
