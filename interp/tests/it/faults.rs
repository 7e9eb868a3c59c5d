//! The reasons that stop a launch, and their messages.

use warpstride_interp::ErrorKind;
use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::stop::{AccessKind, Reason, Space, Waiting};
use warpstride_interp::{Config, Memory, Module, Stop, run};

use super::{PRELUDE, launch, launch_with, run_on, shape};

/// The stop of a one-kernel module with the body `body`, whose only parameter points to 64 bytes.
fn stop_of(body: &str, shape: LaunchShape) -> Stop {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 p) {{
.reg .pred %p<4>; .reg .b16 %rs<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .shared .align 16 .b8 tile[256];
ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
{body}
}}"
    );
    *run_on(&text, shape, &[0; 16], &Config::default()).expect_err("it stops")
}

fn message(body: &str) -> String {
    stop_of(body, shape(1, 32)).to_string()
}

#[test]
fn an_access_past_the_end_names_the_thread_and_the_distance() {
    let stop = stop_of("st.u32 [%rd3+40], %r1;", LaunchShape { grid: [2, 2, 1], block: [8, 4, 1], dynamic_shared: 0 });
    assert!(stop.to_string().contains(": thread (6, 0, 0) of block (0, 0, 0) stores 4 bytes"), "{stop}");
    let stop = stop_of("st.global.u32 [%rd3+4],\n  %r1;", shape(1, 32));
    assert_eq!(
        stop.to_string(),
        "kernel \"k\" stopped at `st.global.u32 [%rd3+4], %r1` (PTX line 7): thread (15, 0, 0) of block (0, 0, 0) stores \
         4 bytes at 0x10000000040, 0 bytes past the end of an allocation of 64 bytes at 0x10000000000: out of bounds; \
         check the extents and strides that were passed"
    );
    let Reason::OutOfBounds(access) = stop.reason else { panic!("{stop}") };
    assert_eq!((access.access, access.space, access.distance()), (AccessKind::Store, Space::Global, Some(0)));
    assert_eq!(warpstride_interp::Error::from(stop).kind(), ErrorKind::KernelFault);
}

#[test]
fn an_access_that_may_not_be_is_told_with_its_place_and_the_memory_around() {
    for (body, parts) in [
        (
            "ld.b64 %rd4, [%rd1+4096];",
            &["thread (0, 0, 0) of block (0, 0, 0) loads 8 bytes at 0x10000001000, 4032 bytes past"][..],
        ),
        (
            "mov.u64 %rd4, 0; ld.global.b32 %r2, [%rd4+12];",
            &["loads 4 bytes at 0xc, 1099511627764 bytes before an allocation of 64 bytes at 0x1"],
        ),
        (
            "ld.global.v4.b32 {%r2,%r3,%r4,%r5}, [%rd1+56];",
            &["loads 16 bytes at 0x10000000038 of an allocation of 64 bytes"],
        ),
        // A shared address does not lie in global memory.
        (
            "mov.u32 %r2, tile; cvt.u64.u32 %rd4, %r2; cvta.shared.u64 %rd4, %rd4; ld.global.b32 %r3, [%rd4];",
            &["loads 4 bytes at 0x100000000, "],
        ),
        (
            "setp.eq.u32 %p1, %r1, 5; @%p1 ld.global.u64 %rd4, [%rd1+4];",
            &[
                "`@%p1 ld.global.u64 %rd4, [%rd1+4]` (PTX line 7): thread (5, 0, 0)",
                "0x10000000004 of an allocation of 64 bytes at 0x10000000000: misaligned, it must be a multiple of 8",
            ],
        ),
        (
            "mov.u32 %r2, tile; st.shared.v2.b64 [%r2+8], {%rd1, %rd1};",
            &["stores 16 bytes at 0x8 of shared memory, which has 256 bytes: misaligned"],
        ),
        (
            "mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3; ld.shared.b16 %rs1, [%r2];",
            &[
                "thread (16, 0, 0) of block (0, 0, 0) loads 2 bytes at 0x100 of shared memory",
                "shared memory, which has 256 bytes: out of bounds",
            ],
        ),
        (
            ".local .align 8 .b8 depot[24]; mov.u64 %rd4, depot; st.local.b32 [%rd4+40], %r1;",
            &["stores 4 bytes at 0x28 of local memory, which has 24 bytes"],
        ),
        (
            ".local .b8 d[4]; ld.local.u32 %r2, [d+12];",
            &["loads 4 bytes at 0xc of local memory, which has 4 bytes: out of bounds"],
        ),
        (
            "mov.u64 %rd4, p; ld.param.u32 %r2, [%rd4+8];",
            &["loads 4 bytes at 0x8 of parameter memory, which has 8 bytes"],
        ),
    ] {
        let told = message(body);
        assert!(parts.iter().all(|part| told.contains(part)), "{body}: {told}");
    }
    let text = format!("{PRELUDE}.visible .entry k() {{ .reg .b32 %r1; ld.global.u32 %r1, [16]; }}");
    let stop = launch(&text, shape(1, 1), &[], &Memory::new(1)).expect_err("it stops");
    assert!(stop.to_string().contains("loads 4 bytes at 0x10, and nothing is allocated: out of bounds"), "{stop}");
}

#[test]
fn an_access_is_told_from_the_nearest_allocation_which_may_be_freed() {
    let memory = Memory::new(1 << 20);
    let [first, second] = [64, 32].map(|bytes| memory.alloc(bytes).expect("it fits"));
    memory.free(first).expect("it is live");
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 p) {{ .reg .b64 %rd1; .reg .b32 %r1;
        ld.param.u64 %rd1, [p]; ld.u32 %r1, [%rd1]; }}"
    );
    for (address, wanted) in [
        (first + 8, "loads 4 bytes at 0x10000000008, in memory that has been freed, of 64 bytes at 0x10000000000"),
        (first + 68, "at 0x10000000044, 4 bytes past the end of a freed allocation of 64 bytes at 0x10000000000"),
        (second - 4, "at 0x1fffffffffc, 4 bytes before an allocation of 32 bytes at 0x20000000000"),
    ] {
        let stop = launch(&text, shape(1, 1), &address.to_le_bytes(), &memory).expect_err("it stops");
        assert!(stop.to_string().contains(wanted), "{stop}");
    }
}

#[test]
fn divergent_barriers_deadlock() {
    let body = "setp.lt.u32 %p1, %r1, 8; @%p1 bra $low; bar.sync 0; bra $end;\n$low: bar.sync 0; $end: mov.u32 %r2, 0;";
    let stop = stop_of(body, shape(1, 32));
    assert_eq!(
        stop.to_string(),
        "kernel \"k\" stopped at `bar.sync 0` (PTX line 7): thread (8, 0, 0) of block (0, 0, 0) is at a barrier with lanes \
         0xffffff00 of its warp while lanes 0x000000ff wait at another: a deadlock; move the barrier out of the condition"
    );
    assert_eq!(stop.reason, Reason::DivergentBarrier { arrived: 0xffff_ff00, elsewhere: 0xff });
    let stop = stop_of("shr.u32 %r2, %r1, 5; bar.sync %r2;", shape(1, 96));
    assert_eq!(
        stop.to_string(),
        "kernel \"k\" stopped at `bar.sync %r2` (PTX line 7): thread (0, 0, 0) of block (0, 0, 0) waits at a barrier for \
         warps that wait at another: warp 0 at barrier 0, warp 1 at barrier 1, warp 2 at barrier 2, 3 waiting in all; let \
         every warp pass the same barriers with the same number of threads"
    );
    let waiting = |warp: u32, barrier, threads| Waiting { warp, barrier, threads };
    assert_eq!(stop.reason, Reason::Deadlock { waiting: vec![waiting(0, 0, 0), waiting(1, 1, 0), waiting(2, 2, 0)] });
    let stop = stop_of("shr.u32 %r2, %r1, 5; shl.b32 %r2, %r2, 6; bar.sync 0, %r2;", shape(1, 64));
    assert!(stop.to_string().contains("warp 0 at barrier 0, warp 1 at barrier 0 for 64 threads, 2 waiting"), "{stop}");
    assert_eq!(stop.reason, Reason::Deadlock { waiting: vec![waiting(0, 0, 0), waiting(1, 0, 64)] });
    let mixed = message("and.b32 %r2, %r1, 1; bar.sync %r2;");
    assert!(mixed.contains("waits at barrier 0 in lane 0 and 1 in lane 1 of its warp"), "{mixed}");
    assert!(message("bar.sync 16;").contains("uses barrier 16 for 0 threads; barriers are 0 to 15"));
}

#[test]
fn a_loop_without_end_meets_the_limit() {
    let text = format!("{PRELUDE}.visible .entry k() {{\n$top: bra.uni $top; }}");
    let config = Config { work_limit: 1000, ..Config::default() };
    let stop = launch_with(&config, &text, shape(5, 64), &[], &Memory::new(1)).expect_err("it stops");
    assert_eq!(
        stop.to_string(),
        "kernel \"k\" stopped at `bra.uni $top` (PTX line 5): thread (0, 0, 0) of block (0, 0, 0) was running when its \
         block had done 1000 units of work; look for a loop that never ends, or raise `Config::work_limit`"
    );
}

#[test]
fn a_trap_names_the_line_of_the_source() {
    let text = format!(
        "{PRELUDE}.file 1 \"src/op/copy.rs\"\n.visible .entry k() {{ .reg .pred %p; .reg .b32 %r;
        .loc 1 33 9
        mov.u32 %r, %ctaid.x; setp.eq.u32 %p, %r, 2;
        .loc 1 44 5, function_name $L__info_string0, inlined_at 1 40 3
        @%p trap; exit;
        }}"
    );
    let stop = launch(&text, shape(4, 32), &[], &Memory::new(1)).expect_err("it stops");
    let wanted = "`@%p trap` (PTX line 9, src/op/copy.rs:44): thread (0, 0, 0) of block (2, 0, 0) executed a trap";
    assert!(stop.to_string().contains(wanted), "{stop}");
}

#[test]
fn the_stop_is_that_of_the_lowest_block_for_any_number_of_threads() {
    // Each block prints its number first.
    let text = format!(
        "{PRELUDE}.extern .func (.param .b32 r) vprintf (.param .b64 format, .param .b64 values);
        .global .align 1 .b8 text[4] = {{37, 117, 32}};
        .visible .entry k() {{ .reg .pred %p, %first; .reg .b32 %r<4>; .reg .b64 %rd<3>; .local .align 8 .b8 values[8];
        mov.u32 %r1, %ctaid.x; mov.u32 %r3, %tid.x; setp.ne.u32 %first, %r3, 0; @%first bra past;
        st.local.u32 [values], %r1; mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1;
        mov.u64 %rd2, values; cvta.local.u64 %rd2, %rd2;
        {{ .param .b64 a; .param .b64 b; .param .b32 c;
        st.param.b64 [a], %rd1; st.param.b64 [b], %rd2;
        call.uni (c), vprintf, (a, b); ld.param.b32 %r2, [c]; }}
        past: setp.ge.u32 %p, %r1, 37; @%p trap; }}"
    );
    let stop = |threads| {
        let config = Config { threads, ..Config::default() };
        *launch_with(&config, &text, shape(500, 32), &[], &Memory::new(1 << 10)).expect_err("it stops")
    };
    let stops = [1, 2, 3, 8, 0].map(stop);
    let place = stops[0].place.as_ref().unwrap_or_else(|| panic!("{}", stops[0]));
    assert_eq!(place.block, [37, 0, 0]);
    assert_eq!(stops[0].printed, (0..=37).map(|block| format!("{block} ")).collect::<String>());
    assert!(stops.iter().all(|stop| *stop == stops[0]));
}

#[test]
fn impossible_launches_are_refused() {
    let text = format!(
        "{PRELUDE}.visible .entry k(.param .u64 p, .param .u8 q) {{ .shared .align 4 .b8 s[40000]; .reg .b32 %r;
        mov.u32 %r, s; }}"
    );
    let module = Module::parse(&text).expect("it parses");
    let kernel = module.kernel("k").expect("a kernel");
    for (grid, block, dynamic_shared, params, why) in [
        ([0, 1, 1], [32, 1, 1], 0, 9, "a grid of [0, 1, 1] blocks"),
        ([1, 65_536, 1], [32, 1, 1], 0, 9, "y and z 1 to 65535"),
        ([1, 1, 1], [33, 32, 1], 0, 9, "a block of [33, 32, 1] threads; there may be 1 to 1024"),
        ([1, 1, 1], [u32::MAX; 3], 0, 9, "a block of"),
        ([1, 1, 1], [1, 1, 0], 0, 9, "a block of [1, 1, 0] threads"),
        ([1, 1, 1], [1, 1, 65], 0, 9, "a block of [1, 1, 65] threads; z may be 1 to 64"),
        ([1, 1, 1], [32, 1, 1], 0, 16, "16 bytes of parameters were given, but it takes 9"),
        (
            [1, 1, 1],
            [32, 1, 1],
            200_000,
            9,
            "needs 240000 bytes of shared memory, 200000 of them dynamic; there are 166912 on sm_80",
        ),
    ] {
        let shape = LaunchShape { grid, block, dynamic_shared };
        let stop = run(kernel, &shape, &vec![0; params], &Memory::new(1), &Config::default()).expect_err("refused");
        let message = stop.to_string();
        assert!(message.starts_with("kernel \"k\" cannot be launched: ") && message.contains(why), "{message}");
        let kind = warpstride_interp::Error::from((*stop).clone()).kind();
        assert_eq!((stop.place, kind), (None, ErrorKind::InvalidArgument), "{message}");
    }
    run(kernel, &shape(1, 1024), &[0; 9], &Memory::new(1), &Config::default()).expect("the rest is possible");
}

#[test]
fn the_architecture_limits_shared_memory() {
    let memory = Memory::new(1);
    for (architecture, kib) in [
        (10, 48),
        (61, 48),
        (70, 96),
        (72, 96),
        (75, 64),
        (80, 163),
        (86, 99),
        (87, 163),
        (89, 99),
        (90, 227),
        (103, 227),
        (120, 99),
    ] {
        let text = format!(
            ".version 7.0 .target sm_{architecture} .extern .shared .b8 d[]; .entry k() {{ .reg .b32 %r;
            mov.u32 %r, d; }}"
        );
        let module = Module::parse(&text).expect("it parses");
        let kernel = module.kernel("k").expect("a kernel");
        let with = |dynamic_shared| LaunchShape { grid: [1; 3], block: [1; 3], dynamic_shared };
        let runs = |kernel, bytes| run(kernel, &with(bytes), &[], &memory, &Config::default()).is_ok();
        let most = kib << 10;
        assert_eq!((kernel.shared_limit(), runs(kernel, most), runs(kernel, most + 1)), (most, true, false));
        assert!(runs(&kernel.on_architecture(90), 227 << 10), "sm_{architecture} on sm_90");
        assert_eq!([48 << 10, 50_000].map(|bytes| kernel.shared_to_allow(&with(bytes))), [None, Some(50_000)]);
    }
}

#[test]
fn bounds_of_threads_and_of_static_shared_memory_are_kept() {
    for (bounds_and_body, threads, refused) in [
        (".maxntid 16, 2 .minnctapersm 1 {", 33, Some("a block of 33 threads; it was compiled for at most 32")),
        (".maxntid 16, 2, 1 {", 32, None),
        (".reqntid 16 {", 15, Some("a block of [15, 1, 1] threads; it requires [16, 1, 1]")),
        (".reqntid 16, 1 {", 16, None),
        ("{ .shared .b8 s[49153];", 1, Some("49153 bytes of static shared memory; there may be 49152")),
        ("{ .shared .b8 s[49152];", 1, None),
    ] {
        let text = format!("{PRELUDE}.visible .entry k() {bounds_and_body} ret; }}");
        let stop = launch(&text, shape(1, threads), &[], &Memory::new(1)).err().map(|stop| stop.to_string());
        let is_right = stop.as_ref().map_or(refused.is_none(), |stop| refused.is_some_and(|part| stop.contains(part)));
        assert!(is_right, "{bounds_and_body}: {stop:?}");
    }
}

#[test]
fn what_is_not_supported_says_so_at_launch() {
    let text = format!(
        "{PRELUDE}.visible .entry good() {{ ret; }}
        .visible .entry bad() {{ .reg .b32 %r<2>;
        @!%p tanh.approx.f32
             %r1, %r0; }}"
    );
    let module = Module::parse(&text).expect("only one kernel is spoilt");
    module.kernel("good").expect("it is there").supported().expect("it is fine");
    let bad = module.kernel("bad").expect("it is there");
    let error = bad.supported().expect_err("it is not");
    assert_eq!(error.kind(), ErrorKind::UnsupportedPtx);
    let stop = run(bad, &shape(1, 1), &[], &Memory::new(1), &Config::default()).expect_err("refused");
    assert_eq!((stop.to_string(), warpstride_interp::Error::from(*stop)), (error.to_string(), error));
}
