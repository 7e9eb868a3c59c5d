//! Races of copies in bulk with the accesses of threads.

use super::bulk::{EXPECT, FILL, LOAD, SHOW, STORE, WAIT, all, clean, each, run};

/// Checks that a race has these words. A kernel that lacks a wait may also never end.
#[track_caller]
fn found(body: &str, words: &[&str]) {
    let findings = run(&all(), body).map_or_else(|stop| stop.findings, |(report, _)| report.findings);
    let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let is_found = |text: &String| text.contains("racecheck") && words.iter().all(|word| text.contains(word));
    assert!(texts.iter().any(is_found), "{texts:#?}\n{body}");
}

/// The words of a race with a copy that a thread has not waited for.
const EARLY: &str = "let the thread wait for the copy before, at its mbarrier or for its group";
/// The words of a race with a copy that begins too early.
const SOON: &str = "let the copy begin only behind a barrier that both threads have passed";

#[test]
fn a_missing_or_wrong_wait_for_a_load_is_found() {
    let load = "an earlier asynchronous store of 256 bytes";
    let other =
        "@%p1 mbarrier.init.shared.b64 [tile+384], 1; @%p1 mbarrier.arrive.shared.b64 _, [tile+384]; bar.sync 0;";
    let waits = "@!%p1 bra past; wait: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra wait; past:";
    for body in [
        // No thread waits.
        format!("{EXPECT} {LOAD} bar.sync 0; {SHOW}"),
        // They wait at another barrier.
        format!("{EXPECT} {LOAD} {other} {} {SHOW}", WAIT.replace("[bar]", "[tile+384]")),
        // They wait for another phase, which ended long ago.
        format!("{EXPECT} {LOAD} {} {SHOW}", WAIT.replace("[bar], 0", "[bar], 1")),
        // A thread waits for all, and does not tell the others.
        format!("{EXPECT} {LOAD} bar.sync 0; {waits} {SHOW}"),
    ] {
        found(&body, &[load, EARLY, "shared"]);
    }
    let body = format!("{EXPECT} {LOAD} {waits} bar.sync 0; {SHOW}");
    assert_eq!(clean(&body), each(|rank, t| 1000 + 64 * rank + t));
}

#[test]
fn a_load_over_words_that_others_still_read_is_found() {
    let body = format!("{FILL} ld.shared.u32 %r2, [%own]; {EXPECT} {LOAD} {WAIT} {SHOW}");
    found(&body, &["its asynchronous store of 256 bytes and an earlier load of 4 bytes", SOON]);
    let body = format!("{FILL} ld.shared.u32 %r2, [%own]; bar.sync 0; {EXPECT} {LOAD} {WAIT} {SHOW}");
    assert_eq!(clean(&body), each(|rank, t| 1000 + 64 * rank + t));
    // Two copies to one place, and a store there.
    found(&format!("{EXPECT} {LOAD} {LOAD} {WAIT}"), &["its asynchronous store", "earlier asynchronous store"]);
    found(&format!("{EXPECT} {LOAD} bar.sync 0; st.shared.u32 [%own], 1; {WAIT}"), &["its store", EARLY]);
}

#[test]
fn a_source_that_changes_under_a_copy_is_found() {
    let change = "st.shared.u32 [%own], 9;";
    let early = ["its store of 4 bytes and an earlier asynchronous load of 256 bytes", "shared"];
    found(&format!("{FILL} {STORE} bar.sync 0; {change}"), &early);
    found(&format!("{FILL} {STORE} @%p1 cp.async.bulk.wait_group.read 0; {change}"), &early);
    let body = format!("{FILL} {STORE} @%p1 cp.async.bulk.wait_group.read 0; bar.sync 0; {change}");
    assert_eq!(clean(&body), each(|_, thread| thread));
    // The source is in global memory.
    let body = format!("{EXPECT} {LOAD} bar.sync 0; st.global.u32 [%from], 3; {WAIT} {SHOW}");
    found(&body, &["its store of 4 bytes and an earlier asynchronous load of 256 bytes", "global"]);
    // The words of the source are not written yet.
    let body = format!("st.shared.u32 [%own], %t; {STORE} @%p1 cp.async.bulk.wait_group 0;");
    found(&body, &["its asynchronous load of 256 bytes and an earlier store of 4 bytes", SOON]);
}

#[test]
fn bytes_in_global_memory_are_there_after_the_wait_for_their_group() {
    let read = "ld.global.u32 %r2, [%to]; st.shared.u32 [%own+256], %r2;";
    let early = ["its load of 4 bytes and an earlier asynchronous store of 256 bytes", "global"];
    found(&format!("{FILL} {STORE} @%p1 cp.async.bulk.wait_group.read 0; bar.sync 0; {read}"), &early);
    found(&format!("{FILL} {STORE} @%p1 cp.async.bulk.wait_group 0; {read}"), &early);
    clean(&format!("{FILL} {STORE} @%p1 cp.async.bulk.wait_group 0; bar.sync 0; {read}"));
    let add = STORE
        .replace("cp.async.bulk.global", "cp.reduce.async.bulk.global")
        .replace("bulk_group", "bulk_group.add.u32");
    found(&format!("{FILL} {add} bar.sync 0; {read}"), &early);
    // Reductions of several threads may coincide.
    let all = add.replace("@%p1 ", "");
    clean(&format!("{FILL} {all} cp.async.bulk.wait_group 0; bar.sync 0; {read}"));
}

#[test]
fn a_missing_wait_for_registers_is_found() {
    let send = "mapa.shared::cluster.u32 %r3, %own, %other; mapa.shared::cluster.u32 %r4, bar, %other;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %t, [%r4];";
    found(
        &format!("{EXPECT} {send} barrier.cluster.arrive; barrier.cluster.wait; {SHOW}"),
        &["its load of 4 bytes and an earlier asynchronous store of 4 bytes", EARLY],
    );
}

/// A producer fills two stages by turns for both blocks of the cluster, and their threads tell it
/// when they have read a stage.
#[test]
fn a_pipeline_of_stages_has_no_race_and_needs_each_of_its_barriers() {
    let body = "
        .reg .b16 %h<2>; mov.b16 %h1, 3;
        @%p1 mbarrier.init.shared.b64 [tile+256], 1; @%p1 mbarrier.init.shared.b64 [tile+264], 1;
        @%p1 mbarrier.init.shared.b64 [tile+272], 128; @%p1 mbarrier.init.shared.b64 [tile+280], 128;
        fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;
        mov.u32 %r1, 0; mov.u32 %r8, 0;
        round: and.b32 %r2, %r1, 1; shr.u32 %r3, %r1, 1; and.b32 %r3, %r3, 1; xor.b32 %r4, %r3, 1;
        mov.u32 %r5, tile; mad.lo.u32 %r6, %r2, 8, %r5; mad.lo.u32 %r5, %r2, 128, %r5;
        @!%p1 bra consume;
        mbarrier.arrive.expect_tx.shared.b64 _, [%r6+256], 128;
        setp.eq.u32 %p3, %rank, 0; @!%p3 bra consume;
        empty: mbarrier.try_wait.parity.shared.b64 %p2, [%r6+272], %r4; @!%p2 bra empty;
        mul.wide.u32 %rd1, %r1, 32; add.u64 %rd1, %rd1, %in; add.u32 %r7, %r6, 256;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%rd1], 128, [%r7], %h1;
        consume: mbarrier.try_wait.parity.shared.b64 %p2, [%r6+256], %r3; @!%p2 bra consume;
        and.b32 %r7, %t, 31; mad.lo.u32 %r5, %r7, 4, %r5; ld.shared.u32 %r7, [%r5]; add.u32 %r8, %r8, %r7;
        mapa.shared::cluster.u32 %r6, %r6, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6+272];
        add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 8; @%p3 bra round; st.global.u32 [%to], %r8;";
    let sum = |t: u32| (0..8).map(|round| 1000 + 8 * round + t % 32).sum();
    assert_eq!(clean(body), each(|_, t| sum(t)));
    // The producer waits for the block's own threads alone.
    let missing = body.replace("[tile+272], 128", "[tile+272], 64").replace("[tile+280], 128", "[tile+280], 64");
    found(&missing.replace("mapa.shared::cluster.u32 %r6, %r6, 0;", ""), &["asynchronous store"]);
    found(&body.replace("@!%p2 bra consume;\n", "\n"), &["asynchronous store of 128 bytes", EARLY]);
}
