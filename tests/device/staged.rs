//! `cp.async` and `ldmatrix`, which compilers use to stage tiles in shared memory. Their kernels
//! are not ours: see tests/data/front_ends.

use std::fmt::Write;

use crate::backend::{Setup, cases};
use crate::program::{Program, assert_same};
use warpstride::launch_shape::LaunchShape;

cases! {
    Any copies_and_matrices_give_what_the_isa_says,
}

/// Words that a lane stores, in the order of the kernel.
const WORDS: usize = 4 + 4 + 4 + 1 + 2 * (1 + 2 + 4);

/// Each lane copies its 16 bytes of the input with `.cg`, with a size in bytes of its
/// number, and with an ignored source in the even lanes; then it loads matrices.
fn kernel() -> String {
    let mut body = String::new();
    let all = "ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%own];";
    let mut store = |before: &str, registers: &[u32], at: usize| {
        writeln!(body, "{before}").expect("it is a string");
        for (word, register) in registers.iter().enumerate() {
            writeln!(body, "st.global.u32 [%out+{}], %r{register};", 4 * (at + word)).expect("it is a string");
        }
    };
    let [clear, wait] = ["st.shared.v4.u32 [%own], {9, 9, 9, 9};", "cp.async.commit_group; cp.async.wait_group 0;"];
    let four = [2, 3, 4, 5];
    store(&format!("cp.async.cg.shared.global [%own], [%in], 16; {wait} {all}"), &four, 0);
    store(
        &format!("min.u32 %r6, %r1, 16; cp.async.ca.shared.global [%own], [%in], 16, %r6; cp.async.wait_all; {all}"),
        &four,
        4,
    );
    store(
        &format!(
            "{clear} and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 0;
             cp.async.ca.shared.global [%own], [%in], 8, %p1; {wait} {all}"
        ),
        &four,
        8,
    );
    store(&format!("{clear} @%p1 cp.async.ca.shared.global [%own], [%in], 4; {wait} {all}"), &[2], 12);
    let tile = "mad.lo.u32 %r2, %r1, 0x80008, 0x10000; add.u32 %r3, %r2, 0x20002; add.u32 %r4, %r3, 0x20002;
        add.u32 %r5, %r4, 0x20002; bar.sync 0; st.shared.v4.u32 [%own], {%r2, %r3, %r4, %r5}; bar.sync 0;";
    store(tile, &[], 0);
    let mut at = 13;
    for trans in ["", ".trans"] {
        for (count, registers) in [(1, "%r6"), (2, "%r6, %r7"), (4, "%r6, %r7, %r8, %r9")] {
            let load = format!("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [%own];");
            let loaded: Vec<u32> = (6..6 + count).collect();
            store(&load, &loaded, at);
            at += loaded.len();
        }
    }
    assert_eq!(at, WORDS);
    format!(
        ".version 7.8\n.target sm_80\n.address_size 64
        .visible .entry staged(.param .u64 p, .param .u64 q) {{
            .reg .pred %p<3>; .reg .b32 %r<12>, %own; .reg .b64 %rd<3>, %in, %out;
            .shared .align 16 .b8 tile[512];
            ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %in, %r1, 16, %rd1;
            ld.param.u64 %rd2, [q]; mad.wide.u32 %out, %r1, {}, %rd2;
            mov.u32 %own, tile; mad.lo.u32 %own, %r1, 16, %own;
            {body}
            ret;
        }}",
        4 * WORDS
    )
}

/// The words that a lane should store.
fn expected(lane: u32) -> Vec<u32> {
    let own = |word: u32| 4 * lane + word;
    let part = |word: u32| {
        let kept = lane.saturating_sub(4 * word).min(4);
        own(word) & ((1_u64 << (8 * kept)) - 1) as u32
    };
    let is_even = lane.is_multiple_of(2);
    let ignored = |word: u32| {
        if word > 1 {
            9
        } else if is_even {
            0
        } else {
            own(word)
        }
    };
    let mut words: Vec<u32> = (0..4).map(own).chain((0..4).map(part)).chain((0..4).map(ignored)).collect();
    words.push(if is_even { own(0) } else { 9 });
    let rows = |matrix: u32| (64 * matrix + 2 * lane, 64 * matrix + 2 * lane + 1);
    let columns = |matrix: u32| {
        let first = 64 * matrix + 16 * (lane % 4) + lane / 4;
        (first, first + 8)
    };
    for count in [1, 2, 4] {
        words.extend((0..count).map(rows).map(|(low, high)| low | high << 16));
    }
    for count in [1, 2, 4] {
        words.extend((0..count).map(columns).map(|(low, high)| low | high << 16));
    }
    words
}

fn copies_and_matrices_give_what_the_isa_says(setup: &Setup) {
    // Both came with Ampere, `ldmatrix` a generation before.
    if setup.driver.info().compute_capability < (8, 0) {
        return;
    }
    let program = Program::new(&setup.driver);
    let module = program.module(&kernel()).unwrap();
    let function = module.function("staged").unwrap();
    let stream = program.stream().unwrap();
    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let source = program.upload(&bytes(&(0..128).collect::<Vec<_>>())).unwrap();
    let target = program.upload(&vec![0; 4 * 32 * WORDS]).unwrap();
    let params = [source.address.to_le_bytes(), target.address.to_le_bytes()].concat();
    let shape = LaunchShape { grid: [1, 1, 1], block: [32, 1, 1], dynamic_shared: 0 };
    // SAFETY: each of the 32 lanes reads 16 bytes of `source` and writes its own part of `target`.
    unsafe { stream.launch(function, &shape, &params) }.unwrap();
    let wanted: Vec<u32> = (0..32).flat_map(expected).collect();
    assert_same(&program.download(&target, &stream).unwrap(), &bytes(&wanted), "staged");
}
