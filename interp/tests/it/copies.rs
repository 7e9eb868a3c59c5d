//! `cp.async` and `ldmatrix`: what they move, and when.

use warpstride_interp::counters::{GlobalCounters, SharedCounters};
use warpstride_interp::{Checks, Config, Memory, Report, Stop};

use super::{PRELUDE, launch_with, shape};

/// Returns the `words` of 4 bytes that each of 32 lanes stores to `[%out]`, and the report. `%in`
/// is a lane's 16 bytes of words 0, 1, 2 ..., `%own` its 16 bytes of `tile`, and `%r1` its number.
fn results(words: usize, body: &str) -> (Vec<u32>, Report) {
    attempt(words, body).unwrap_or_else(|stop| panic!("{stop}\n{body}"))
}

/// The same, or why it stops.
fn attempt(words: usize, body: &str) -> Result<(Vec<u32>, Report), Box<Stop>> {
    checked(Checks::NONE, words, body)
}

/// The same, with checkers.
fn checked(checks: Checks, words: usize, body: &str) -> Result<(Vec<u32>, Report), Box<Stop>> {
    let text = format!(
        "{PRELUDE}.file 1 \"k.cu\"
        .visible .entry k(.param .u64 p, .param .u64 q) {{
            .reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<20>, %own, %row; .reg .b64 %rd1, %in, %out;
            .shared .align 16 .b8 tile[1024];
            ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %in, %r1, 16, %rd1;
            ld.param.u64 %rd1, [q]; mad.wide.u32 %out, %r1, {stride}, %rd1;
            mov.u32 %own, tile; mad.lo.u32 %own, %r1, 16, %own; mov.u32 %row, %own;
            {body}
            ret;
        }}",
        stride = 4 * words
    );
    let memory = Memory::new(1 << 20);
    let from = memory.upload(&(0..128_u32).collect::<Vec<_>>()).expect("it fits");
    let to = memory.alloc(128 * words as u64).expect("it fits");
    let params: Vec<u8> = [from, to].into_iter().flat_map(u64::to_le_bytes).collect();
    let config = Config { checks, ..Config::default() };
    let report = launch_with(&config, &text, shape(1, 32), &params, &memory)?;
    Ok((memory.download(to, 32 * words).expect("it is there"), report))
}

const ALL: &str = "ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%own]; st.global.v4.u32 [%out], {%r2, %r3, %r4, %r5};";

#[test]
fn a_copy_moves_4_8_or_16_bytes() {
    for (spelling, bytes) in [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)] {
        let clear = "st.shared.v4.u32 [%own], {9, 9, 9, 9};";
        let body =
            format!("{clear} cp.async.{spelling}.shared.global [%own], [%in], {bytes}; cp.async.wait_all; {ALL}");
        let (out, report) = results(4, &body);
        let expected = (0..128).map(|word| if word % 4 < bytes / 4 { word } else { 9 });
        assert_eq!(out, expected.collect::<Vec<u32>>(), "{bytes}");
        let sectors = 16;
        // As on an H100: the copy does not count as an instruction of the loads, or as a store.
        assert_eq!(report.counters.global_load, GlobalCounters { instructions: 0, requests: 1, sectors });
        assert_eq!(report.counters.shared_store.instructions, 1);
    }
}

#[test]
fn a_copy_of_fewer_bytes_fills_up_with_zeros() {
    // Lane l reads l bytes of 16, from the words 4 * l and on.
    let body = format!(
        "min.u32 %r6, %r1, 16; cp.async.cg.shared::cta.global [%own], [%in], 16, %r6; cp.async.wait_all; {ALL}"
    );
    let bytes = (0..128_u32).flat_map(u32::to_le_bytes).enumerate();
    let kept: Vec<u8> = bytes.map(|(at, byte)| if at % 16 < at / 16 { byte } else { 0 }).collect();
    let expected: Vec<u32> = kept.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    assert_eq!(results(4, &body).0, expected);
}

#[test]
fn a_copy_of_fewer_bytes_is_one_request_for_the_bytes_that_are_read() {
    // Lanes of 16 bytes: 2 of them share a sector, and lane 0 reads nothing.
    for (bytes, sectors) in [
        ("min.u32 %r6, %r1, 16;", 16),
        ("and.b32 %r6, %r1, 1;", 16),
        ("set.eq.u32.u32 %r6, %r1, 5; and.b32 %r6, %r6, 13;", 1),
    ] {
        let (_, report) =
            results(4, &format!("{bytes} cp.async.cg.shared.global [%own], [%in], 16, %r6; cp.async.wait_all;"));
        assert_eq!(report.counters.global_load, GlobalCounters { instructions: 0, requests: 1, sectors }, "{bytes}");
    }
}

#[test]
fn a_copy_of_fewer_bytes_is_aligned_to_its_size_and_reads_no_further() {
    let copy = |offset: u32, bytes: u32| {
        attempt(1, &format!("mov.u32 %r6, {bytes}; cp.async.cg.shared.global [%own], [%in+{offset}], 16, %r6;"))
    };
    for bytes in [1, 4, 13] {
        let stop = copy(4, bytes).expect_err("it stops").to_string();
        assert!(stop.contains("16 bytes") && stop.contains("misaligned"), "{stop}");
    }
    let stop = copy(16, 5).expect_err("it stops").to_string();
    assert!(stop.contains("5 bytes") && stop.contains("thread (31, 0, 0)"), "{stop}");
    assert!(copy(4, 0).is_ok(), "there is no source");
}

#[test]
fn checkers_find_the_bytes_that_a_copy_reads() {
    // Each lane stores the last word of its 16 bytes; its neighbour reads 12 or 13 of them.
    let body = |bytes: u32| {
        format!(
            "st.global.u32 [%in+12], %r1; xor.b32 %r2, %r1, 1; mad.lo.s32 %r2, %r1, -1, %r2;
            mul.wide.s32 %rd1, %r2, 16; add.s64 %in, %in, %rd1; mov.u32 %r6, {bytes};
            cp.async.cg.shared.global [%own], [%in], 16, %r6; cp.async.wait_all;"
        )
    };
    let findings = |bytes| checked(Checks::ALL, 1, &body(bytes)).unwrap_or_else(|stop| panic!("{stop}")).1.findings;
    assert_eq!(findings(12), []);
    let races = findings(13);
    assert!(races.len() == 1 && races[0].times == 32, "{races:?}");
}

#[test]
fn an_instruction_of_several_steps_counts_once() {
    let counted = |body: &str| {
        let report = results(1, body).1;
        (report.warp_instructions, report.thread_instructions)
    };
    let (warps, threads) = counted("");
    for body in [
        "cp.async.ca.shared.global [%own], [%in], 4;",
        "cp.async.ca.shared.global [%own], [%in], 4, %p1;",
        "@%p1 cp.async.ca.shared.global [%own], [%in], 4, %p1;",
        "setp.eq.and.u32 %p1|%p2, %r1, 3, %p2;",
        "@%p1 setp.eq.and.u32 %p1, %r1, 3, !%p2;",
        "addc.u32 %r2, %r1, %r1;",
        "cp.async.wait_all;",
    ] {
        assert_eq!(counted(body), (warps + 1, threads + 32), "{body}");
    }
}

#[test]
fn lanes_that_ignore_their_source_may_have_any() {
    // The even lanes have no address to read from.
    let body = "and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 0; selp.b64 %in, 0, %in, %p1;
        cp.async.ca.shared.global.L2::128B [%own], [%in], 4, %p1; cp.async.commit_group; cp.async.wait_group 0;
        ld.shared.u32 %r2, [%own]; st.global.u32 [%out], %r2;";
    let (out, report) = results(1, body);
    assert_eq!(out, (0..32).map(|lane| if lane % 2 == 0 { 0 } else { 4 * lane }).collect::<Vec<u32>>());
    assert_eq!(report.counters.global_load.sectors, 16);
}

#[test]
fn copies_that_no_lane_waits_for_are_limited_and_do_not_write() {
    let copies = |count: usize| "cp.async.ca.shared.global [%own], [%in], 4;".repeat(count);
    let unread = format!("{} ld.shared.u32 %r2, [%own];", copies(128));
    let findings = checked(Checks::ALL, 1, &unread).unwrap_or_else(|stop| panic!("{stop}")).1.findings;
    assert!(findings.len() == 1 && findings[0].times == 32, "{findings:?}");
    let stop = attempt(1, &copies(129)).expect_err("it stops").to_string();
    assert!(stop.contains("128 copies") && stop.contains("wait for earlier ones"), "{stop}");
    let waits = format!("{} cp.async.wait_all; {}", copies(128), copies(128));
    assert!(attempt(1, &waits).is_ok());
}

#[test]
fn a_line_with_a_copy_ran_once() {
    let body = ".loc 1 7 1; cp.async.ca.shared.global [%own], [%in], 4; cp.async.wait_all; .loc 1 8 1;";
    let (_, report) = results(1, body);
    let line = report.lines().into_iter().find(|line| line.line == 7).expect("it is there");
    assert_eq!((line.executions, line.thread_executions), (1, 32));
    assert_eq!((line.counters.global_load.requests, line.counters.shared_store.wavefronts), (1, 0));
}

#[test]
fn a_copy_writes_where_its_group_is_waited_for() {
    let body = "st.shared.v2.u32 [%own], {7, 7};
        cp.async.ca.shared.global [%own], [%in], 4; cp.async.commit_group;
        cp.async.ca.shared.global [%own+4], [%in+4], 4; cp.async.commit_group;
        ld.shared.v2.u32 {%r2, %r3}, [%own];
        cp.async.wait_group 1;
        ld.shared.v2.u32 {%r4, %r5}, [%own];
        cp.async.wait_group 0;
        ld.shared.v2.u32 {%r6, %r7}, [%own];
        st.global.v2.u32 [%out], {%r2, %r3}; st.global.v2.u32 [%out+8], {%r4, %r5}; st.global.v2.u32 [%out+16], {%r6, %r7};";
    let expected = (0..32).flat_map(|lane| [7, 7, 4 * lane, 7, 4 * lane, 4 * lane + 1]).collect::<Vec<u32>>();
    assert_eq!(results(6, body).0, expected);
}

#[test]
fn lanes_have_groups_of_their_own() {
    // Lanes 16 and up commit a second, empty group, so that they wait for the first one.
    let body = "st.shared.u32 [%own], 7;
        cp.async.ca.shared.global [%own], [%in], 4; cp.async.commit_group;
        setp.ge.u32 %p1, %r1, 16;
        @%p1 cp.async.commit_group;
        cp.async.wait_group 1;
        ld.shared.u32 %r2, [%own]; st.global.u32 [%out], %r2;";
    assert_eq!(results(1, body).0, (0..32).map(|lane| if lane < 16 { 7 } else { 4 * lane }).collect::<Vec<u32>>());
}

/// The tile holds 16-bit elements 0, 1, 2 ..., in rows of 8.
const TILE: &str = "mad.lo.u32 %r2, %r1, 0x80008, 0x10000; add.u32 %r3, %r2, 0x20002; add.u32 %r4, %r3, 0x20002;
    add.u32 %r5, %r4, 0x20002; st.shared.v4.u32 [%own], {%r2, %r3, %r4, %r5}; bar.warp.sync -1;";

#[test]
fn a_lane_gets_two_elements_of_each_matrix() {
    let pair = |low: u32, high: u32| low | high << 16;
    let rows = |matrix: u32, lane: u32| pair(64 * matrix + 2 * lane, 64 * matrix + 2 * lane + 1);
    let columns = |matrix: u32, lane: u32| {
        let first = 64 * matrix + 16 * (lane % 4) + lane / 4;
        pair(first, first + 8)
    };
    for (count, registers) in [(1, "%r6"), (2, "%r6, %r7"), (4, "%r6, %r7, %r8, %r9")] {
        for (trans, element) in [("", &rows as &dyn Fn(u32, u32) -> u32), (".trans", &columns)] {
            let stores: String = (0..count).map(|m| format!("st.global.u32 [%out+{}], %r{};", 4 * m, 6 + m)).collect();
            let opcode = format!("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16");
            let (out, report) = results(count as usize, &format!("{TILE} {opcode} {{{registers}}}, [%row]; {stores}"));
            let expected = (0..32).flat_map(|lane| (0..count).map(move |matrix| (matrix, lane)));
            assert_eq!(out, expected.map(|(matrix, lane)| element(matrix, lane)).collect::<Vec<u32>>(), "{opcode}");
            let wavefronts = u64::from(count);
            let expected = SharedCounters { instructions: 0, wavefronts, bank_conflicts: 0 };
            assert_eq!(report.counters.shared_load, expected, "{opcode}");
        }
    }
}

#[test]
fn matrices_are_stored_as_they_are_loaded() {
    for (count, registers) in [(1, "%r6"), (2, "%r6, %r7"), (4, "%r6, %r7, %r8, %r9")] {
        for trans in ["", ".trans"] {
            let opcode = |name: &str| format!("{name}.sync.aligned.m8n8.x{count}{trans}.shared.b16");
            let (load, store) = (opcode("ldmatrix"), opcode("stmatrix"));
            // Loads the tile, sets all of it to 7, and stores the matrices where they were.
            let body = format!(
                "{TILE} {load} {{{registers}}}, [%row]; bar.warp.sync -1; st.shared.v4.u32 [%own], {{7, 7, 7, 7}};
                bar.warp.sync -1; {store} [%row], {{{registers}}}; bar.warp.sync -1; {ALL}"
            );
            let (out, report) = results(4, &body);
            let kept = 32 * count;
            let expected = (0..128).map(|word| if word < kept { (2 * word) | ((2 * word + 1) << 16) } else { 7 });
            assert_eq!(out, expected.collect::<Vec<u32>>(), "{store}");
            // The three stores by vectors have 4 wavefronts each.
            assert_eq!(report.counters.shared_store.wavefronts, 8 + u64::from(count), "{store}");
        }
    }
}

#[test]
fn a_matrix_in_registers_is_transposed() {
    let body = "shl.b32 %r2, %r1, 1; mad.lo.u32 %r3, %r1, 0x20000, 0x10000; or.b32 %r2, %r2, %r3;
        movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r2; st.global.u32 [%out], %r4;";
    let element = |row: u32, column: u32| 8 * row + column;
    let expected = (0..32).map(|lane| element(2 * (lane % 4), lane / 4) | element(2 * (lane % 4) + 1, lane / 4) << 16);
    assert_eq!(results(1, body).0, expected.collect::<Vec<u32>>());
}

#[test]
fn a_matrix_is_not_stored_beyond_the_end_of_shared_memory() {
    let body = "add.u32 %row, %row, 1008; mov.u32 %r6, 1; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%row], {%r6};";
    let stop = attempt(1, body).expect_err("it stops").to_string();
    assert!(stop.contains("shared memory") && stop.contains("stmatrix"), "{stop}");
}

#[test]
fn rows_of_a_matrix_conflict_where_they_share_banks() {
    // Eight rows that lie 128 bytes apart.
    let body = "mov.u32 %row, tile; and.b32 %r10, %r1, 7; mad.lo.u32 %row, %r10, 128, %row;
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%row]; st.global.u32 [%out], %r6;";
    let (_, report) = results(1, body);
    assert_eq!(report.counters.shared_load, SharedCounters { instructions: 0, wavefronts: 8, bank_conflicts: 7 });
}

#[test]
fn a_matrix_without_some_lanes_is_found_and_has_zeros_for_their_rows() {
    let part = |condition: &str| {
        let body = format!(
            "{TILE} mov.u32 %r6, 7; setp.{condition} %p1, %r1, 8;
            @%p1 ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{%r6, %r7}}, [%row]; st.global.v2.u32 [%out], {{%r6, %r7}};"
        );
        checked(Checks::ALL, 2, &body).unwrap_or_else(|stop| panic!("{stop}"))
    };
    let (out, report) = part("ge.u32");
    assert!(
        out[16..].iter().step_by(2).all(|&first| first == 0) && out[..16].iter().step_by(2).all(|&first| first == 7)
    );
    assert!(report.findings.iter().any(|finding| finding.to_string().contains("move it out of the condition")));
    let (out, _) = part("lt.u32");
    assert!(out[1..16].iter().step_by(2).all(|&second| second == 0), "{out:?}");
    // Row 3 lies beyond the tile.
    let body = format!(
        "{TILE} setp.eq.u32 %p1, %r1, 3; @%p1 add.u32 %row, %row, 4096;
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r6}}, [%row]; st.global.u32 [%out], %r6;"
    );
    let (out, _) = checked(Checks::ALL, 1, &body).unwrap_or_else(|stop| panic!("{stop}"));
    // Each word of rows 2, 3 and 4 holds two elements that follow each other.
    let row = |first: u32| [0, 1, 2, 3].map(|word| first + 0x2_0002 * word);
    assert_eq!(out[8..20], [row(0x11_0010), [0; 4], row(0x21_0020)].concat());
}

#[test]
fn copies_and_rows_are_held_to_bounds_and_alignment() {
    let row = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%row+8];";
    let stop = attempt(1, row).expect_err("it stops").to_string();
    assert!(stop.contains("misaligned") || stop.contains("multiple of 16"), "{stop}");
    for (place, part) in [("[%own+1024], [%in]", "shared"), ("[%own], [%in+4096]", "global")] {
        let body = format!("cp.async.ca.shared.global {place}, 4; cp.async.wait_all;");
        let stop = attempt(1, &body).expect_err("it stops").to_string();
        assert!(stop.contains("cp.async") && stop.contains(part), "{stop}");
    }
}
