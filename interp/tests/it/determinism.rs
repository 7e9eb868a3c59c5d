//! Race-free programs give the same results, counters and reports on every run, for any number of
//! host threads, even more than there are cores.

use warpstride_interp::{Config, Memory};

use super::{launch_with, on_threads, shape};

/// Covers divergence, barriers, shared memory read across warps, a loop of another length in every
/// block, and early exits.
#[test]
fn blocks_of_unequal_length_are_the_same_for_any_number_of_threads() {
    let text = "
        .version 7.0 .target sm_80 .address_size 64
        .visible .entry k(.param .u64 out, .param .u64 in) {
            .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .shared .align 4 .b8 tile[512];
            ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];
            mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r11, tile;
            mad.lo.u32 %r3, %r2, 128, %r1; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd2, %rd3; add.s64 %rd5, %rd1, %rd3;
            ld.global.u32 %r4, [%rd4];
            shl.b32 %r5, %r1, 2; add.u32 %r5, %r5, %r11; st.shared.u32 [%r5], %r4; bar.sync 0;
            mul.lo.u32 %r6, %r1, 37; and.b32 %r6, %r6, 127; shl.b32 %r6, %r6, 2; add.u32 %r6, %r6, %r11;
            ld.shared.u32 %r7, [%r6];
            mul.lo.u32 %r8, %r2, 7919; and.b32 %r8, %r8, 127; add.u32 %r8, %r8, %r1;
        $top: mad.lo.u32 %r7, %r7, 1664525, 1013904223; sub.u32 %r8, %r8, 1;
            setp.gt.s32 %p1, %r8, 0; @%p1 bra $top;
            and.b32 %r9, %r7, 3; setp.eq.u32 %p2, %r9, 0; @%p2 bra $end;
            st.global.u32 [%rd5], %r7;
        $end: ret;
        }";
    let bytes = 301 * 512;
    let data: Vec<u8> = (0..bytes).map(|i| (i * 7 + i / 251) as u8).collect();
    // Everything that a launch leaves behind: its report as text, and memory.
    let outcomes = on_threads(&Config::default(), |config| {
        let memory = Memory::new(1 << 24);
        let buffers = [(); 2].map(|()| memory.upload(&data).expect("it fits"));
        let params = buffers.map(u64::to_le_bytes).concat();
        let report = launch_with(config, text, shape(301, 128), &params, &memory);
        let report = report.unwrap_or_else(|stop| panic!("{stop}"));
        (format!("{report:?}"), buffers.map(|buffer| memory.download::<u8>(buffer, bytes).expect("it is there")))
    });
    assert!(outcomes[0].1[0] != data, "it stores");
    for (other, threads) in outcomes.iter().zip([1, 2, 3, 8]).skip(1) {
        assert!(*other == outcomes[0], "on {threads} threads: {} {}", other.0, outcomes[0].0);
    }
}
