//! Cooperative launches, whose grid meets at memory of the launch, as cooperative groups do.

use warpstride_interp::{Checks, Config, Memory};

use super::{PRELUDE, launch_with, on_threads, shape};

const BLOCKS: u32 = 12;

/// Each block adds the value of the block after it to its own, several times, and all blocks meet
/// in between. The loop is that of `this_grid().sync()` in NVIDIA's headers.
fn text() -> String {
    let meet = |name: &str| {
        format!(
            "bar.sync 0; @%p1 bra met_{name}; atom.add.release.gpu.u32 %r5, [%rd4], %r4;
            wait_{name}: ld.acquire.gpu.u32 %r6, [%rd4]; xor.b32 %r6, %r6, %r5; setp.ge.s32 %p2, %r6, 0;
            @%p2 bra wait_{name}; met_{name}: bar.sync 0;"
        )
    };
    let (read, written) = (meet("read"), meet("written"));
    format!(
        "{PRELUDE}.visible .entry k(.param .u64 p) {{
        .reg .pred %p<5>; .reg .b32 %r<14>; .reg .b64 %rd<10>;
        ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x;
        mov.u32 %r11, %envreg1; mov.u32 %r12, %envreg2; mov.b64 %rd4, {{%r12, %r11}};
        setp.ne.s64 %p3, %rd4, 0; @!%p3 bra invalid; add.s64 %rd4, %rd4, 4;
        setp.ne.u32 %p1, %r1, 0; sub.u32 %r4, 0x80000001, %r3; setp.ne.u32 %p2, %r2, 0; selp.b32 %r4, 1, %r4, %p2;
        add.u32 %r7, %r2, 1; rem.u32 %r7, %r7, %r3; mad.wide.u32 %rd2, %r2, 4, %rd1; mad.wide.u32 %rd3, %r7, 4, %rd1;
        mov.u32 %r8, 0;
        again: ld.global.u32 %r9, [%rd2]; ld.global.u32 %r10, [%rd3]; add.u32 %r9, %r9, %r10;
        {read} @%p1 bra kept; st.global.u32 [%rd2], %r9; kept: {written}
        add.u32 %r8, %r8, 1; setp.lt.u32 %p4, %r8, 3; @%p4 bra again; ret;
        invalid: mad.wide.u32 %rd2, %r2, 4, %rd1; st.global.u32 [%rd2], 77; ret; }}"
    )
}

fn results(config: &Config) -> Vec<u32> {
    let memory = Memory::new(1 << 20);
    let buffer = memory.upload(&(0..BLOCKS).collect::<Vec<u32>>()).expect("it fits");
    let used = memory.used();
    // A second launch has zeroed memory of its own.
    for _ in 0..2 {
        let report = launch_with(config, &text(), shape(BLOCKS, 64), &buffer.to_le_bytes(), &memory);
        let report = report.unwrap_or_else(|stop| panic!("{stop}"));
        assert_eq!(report.findings, []);
        assert_eq!(memory.used(), used);
    }
    memory.download(buffer, BLOCKS as usize).expect("it is there")
}

#[test]
fn a_grid_meets_at_the_memory_of_its_launch() {
    let mut expected: Vec<u32> = (0..BLOCKS).collect();
    for _ in 0..6 {
        expected = (0..expected.len()).map(|at| expected[at] + expected[(at + 1) % expected.len()]).collect();
    }
    let cooperative = Config { cooperative: true, ..Config::default() };
    for found in on_threads(&cooperative, results) {
        assert_eq!(found, expected);
    }
    assert_eq!(results(&Config { checks: Checks::ALL, ..cooperative }), expected);
}

#[test]
fn other_launches_have_no_memory_for_the_grid() {
    assert_eq!(results(&Config::default()), [77; BLOCKS as usize]);
}
