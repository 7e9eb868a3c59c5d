//! The report of single instructions: executions, active lanes, and the worst access.

use warpstride_interp::stop::AccessKind;
use warpstride_interp::{Config, Footprint, Memory, Module};

use super::{launch, launch_with, shape};

/// In each of 4 turns, a warp loads words at a distance of `stride` bytes. The stride is 4, except
/// in the third turn of two warps: 32 in warp 1 of block 2, and 128 in warp 0 of block 3.
const TURNS: &str = "
    .version 7.0 .target sm_80 .address_size 64
    .visible .entry turns(.param .u64 data) {
        .reg .pred %p, %q, %again; .reg .b32 %r<9>; .reg .f32 %f<2>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [data];
        mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shr.u32 %r3, %r1, 5; mov.u32 %r4, %ctaid.x; mov.u32 %r5, 1;
    again:
        mov.u32 %r6, 4;
        setp.eq.u32 %p, %r5, 3; setp.eq.u32 %q, %r4, 2; and.pred %p, %p, %q;
        setp.eq.u32 %q, %r3, 1; and.pred %p, %p, %q; @%p mov.u32 %r6, 32;
        setp.eq.u32 %p, %r5, 3; setp.eq.u32 %q, %r4, 3; and.pred %p, %p, %q;
        setp.eq.u32 %q, %r3, 0; and.pred %p, %p, %q; @%p mov.u32 %r6, 128;
        mad.wide.u32 %rd2, %r2, %r6, %rd1;
        ld.global.f32 %f1, [%rd2];
        add.u32 %r5, %r5, 1; setp.le.u32 %again, %r5, 4;
        @%again bra again;
        setp.lt.u32 %q, %r2, 7;
        @%q st.global.f32 [%rd1], %f1;
        setp.gt.u32 %q, %r2, 99;
        @%q st.global.f32 [%rd1+4], %f1;
        ret;
    }";

#[test]
fn the_worst_access_is_the_first_of_the_worst_for_any_number_of_threads() {
    for threads in [1, 2, 3, 8] {
        let memory = Memory::new(1 << 20);
        let data = memory.alloc(1 << 12).expect("it fits");
        let config = Config { threads, ..Config::default() };
        let report = launch_with(&config, TURNS, shape(5, 64), &data.to_le_bytes(), &memory);
        let report = report.unwrap_or_else(|stop| panic!("{stop}"));
        let [load, store, never] = &report.instructions[..] else { panic!("{:?}", report.instructions) };

        assert_eq!((load.line, load.kind, load.executions, load.thread_executions), (14, AccessKind::Load, 40, 1280));
        // 38 requests of 4 sectors, and 2 of 32.
        assert_eq!((load.global.requests, load.global.sectors, load.ideal_sectors), (40, 38 * 4 + 2 * 32, 40 * 4));
        let worst = load.worst_global.as_ref().expect("it was executed");
        assert_eq!((worst.block, worst.warp, worst.execution), ([2, 0, 0], 1, 3), "{threads} threads");
        assert_eq!(worst.addresses, std::array::from_fn(|lane| Some(data + 32 * lane as u64)));

        assert_eq!((store.executions, store.active_lanes(), store.ideal_sectors), (10, Some(7.0), 10));
        let worst = store.worst_global.as_ref().expect("it was executed");
        assert_eq!((worst.block, worst.warp, worst.execution), ([0, 0, 0], 0, 1));
        assert_eq!(worst.addresses, std::array::from_fn(|lane| (lane < 7).then_some(data)));

        assert_eq!((never.executions, never.active_lanes(), &never.worst_global), (0, None, &None));
    }
}

#[test]
fn a_footprint_holds_each_byte_once_for_loads_and_once_for_stores() {
    for threads in [1, 3, 8] {
        let memory = Memory::new(1 << 20);
        let data = memory.alloc(1 << 12).expect("it fits");
        let counted = |footprint| {
            let config = Config { threads, footprint, ..Config::default() };
            launch_with(&config, TURNS, shape(5, 64), &data.to_le_bytes(), &memory).expect("it runs")
        };
        // 32 words side by side; 28 more at multiples of 32 bytes, and 24 more at multiples of 128.
        let report = counted(true);
        assert_eq!(report.footprint, Some(Footprint { read: 4 * (32 + 28 + 24), written: 4 }));
        let without = counted(false);
        assert_eq!((without.footprint, without.counters), (None, report.counters));
    }
}

/// Even lanes access one allocation, and odd lanes another one.
#[test]
fn a_footprint_spans_allocations_and_atomics_count_on_both_sides() {
    let text = "
        .version 7.0 .target sm_80 .address_size 64
        .const .align 4 .u32 constant = 7;
        .visible .entry k(.param .u64 even, .param .u64 odd) {
            .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .f32 %f<5>;
            ld.param.u64 %rd1, [even]; ld.param.u64 %rd2, [odd];
            mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p, %r2, 1;
            selp.b64 %rd1, %rd2, %rd1, %p; mad.wide.u32 %rd3, %r1, 16, %rd1;
            ld.const.u32 %r4, [constant];
            ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd3];
            atom.global.add.u32 %r3, [%rd1], 1;
            @%p red.global.add.u32 [%rd1+1024], 1;
            @!%p st.global.u8 [%rd1+3], %r1;
            ret;
        }";
    let memory = Memory::new(1 << 20);
    let [even, odd] = [memory.alloc(2048).expect("it fits"), memory.alloc(2048).expect("it fits")];
    let params = [even.to_le_bytes(), odd.to_le_bytes()].concat();
    let config = Config { footprint: true, ..Config::default() };
    let report = launch_with(&config, text, shape(2, 32), &params, &memory).expect("it runs");
    // 512 bytes of vectors, which hold the first word of the even ones; the other words are the
    // atomic's in the odd ones, and the reduction's.
    assert_eq!(report.footprint, Some(Footprint { read: 512 + 4 + 4, written: 4 + 4 + 4 }));
}

#[test]
fn a_kernels_own_file_is_that_of_its_first_line() {
    let text = "
        .version 7.0 .target sm_80 .address_size 64
        .visible .entry outer() { { .loc 2 9 1 ret; } }
        .visible .entry plain() { ret; }
        .visible .entry unknown() { .loc 7 1 1 ret; }
        .file 1 \"first.cuh\" .file 2 \"k.cu\"";
    let module = Module::parse(text).expect("it parses");
    let file = |name| module.kernel(name).expect("it is there").source_file();
    assert_eq!((file("outer"), file("plain"), file("unknown")), (Some("k.cu"), None, None));
}

/// Lanes below 8 have an address in local memory, those below 16 one in shared memory, and the
/// others one in global memory.
#[test]
fn an_address_of_no_space_counts_once_and_in_each_space_that_it_leads_to() {
    let text = "
        .version 7.0 .target sm_80 .address_size 64
        .file 3 \"lib/mix.cu\"
        .visible .entry mix(.param .u64 data) {
            .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<6>; .shared .align 4 .b8 tile[64]; .local .align 4 .b8 own[4];
            .loc 3 70 1
            ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x;
            mov.u64 %rd2, tile; cvta.shared.u64 %rd3, %rd2; mov.u64 %rd4, own; cvta.local.u64 %rd5, %rd4;
            setp.lt.u32 %p, %r1, 16; @%p mov.u64 %rd1, %rd3; setp.lt.u32 %p, %r1, 8; @%p mov.u64 %rd1, %rd5;
            .loc 3 71 1
            st.u32 [%rd1], %r1;
            st.local.u32 [own], %r1;
            ret; }";
    let memory = Memory::new(1 << 20);
    let data = memory.alloc(4).expect("it fits");
    let report = launch(text, shape(1, 32), &data.to_le_bytes(), &memory).unwrap_or_else(|stop| panic!("{stop}"));
    let store = report.instruction("st.u32").expect("it is in the text");
    assert_eq!((store.executions, store.active_lanes()), (1, Some(32.0)));
    assert_eq!((store.global.requests, store.global.sectors, store.ideal_sectors), (1, 1, 1));
    assert_eq!((store.shared.instructions, store.shared.wavefronts, store.ideal_wavefronts), (1, 1, 1));
    assert_eq!(store.source.as_deref(), Some("lib/mix.cu:71"));
    let active = |access: &Option<warpstride_interp::WarpAccess>| {
        let addresses = access.as_ref().expect("it was done").addresses;
        addresses.map(|address| address.is_some())
    };
    assert_eq!(active(&store.worst_global), std::array::from_fn(|lane| lane >= 16));
    assert_eq!(active(&store.worst_shared), std::array::from_fn(|lane| (8..16).contains(&lane)));

    let local = report.instruction("st.local").expect("it is in the text");
    assert_eq!((local.executions, local.thread_executions, local.global.requests), (1, 32, 0));
    assert!(local.worst_global.is_none() && local.worst_shared.is_none());
}
