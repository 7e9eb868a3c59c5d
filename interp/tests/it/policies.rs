//! Accesses that name an eviction policy of the L2 cache.

use warpstride_interp::ErrorKind;
use warpstride_interp::Memory;
use warpstride_interp::counters::Counters;

use super::{launch, refusal, shape};

/// Threads of the launch; each has 16 bytes in the source and 16 in the destination.
const THREADS: u32 = 64;

fn program(body: &str) -> String {
    format!(
        ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data) {{
        .reg .b32 %r<9>; .reg .f32 %f<2>; .reg .b64 %rd<9>, %first, %last;
        ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 16, %rd1; mov.f32 %f1, 0f3F000000;
        createpolicy.fractional.L2::evict_first.b64 %first, 1.0;
        createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %last, %f1;
        {body}\nret; }}"
    )
}

/// The memory after the source, and the counters.
fn run(body: &str) -> (Vec<u8>, Counters) {
    let bytes = 16 * THREADS as usize;
    let memory = Memory::new(1 << 14);
    let source: Vec<u8> = (0..2 * bytes).map(|byte| if byte < bytes { byte as u8 } else { 0 }).collect();
    let data = memory.upload(&source).expect("it fits");
    let report = launch(&program(body), shape(1, THREADS), &data.to_le_bytes(), &memory);
    let counters = report.unwrap_or_else(|stop| panic!("{body}: {stop}")).counters;
    (memory.download::<u8>(data + bytes as u64, bytes).expect("it is there"), counters)
}

#[test]
fn a_policy_changes_neither_values_nor_counts() {
    let plain =
        run("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1]; st.global.v4.b32 [%rd1+1024], {%r1, %r2, %r3, %r4};");
    assert!(plain.0.iter().enumerate().all(|(byte, value)| *value == byte as u8), "{plain:?}");
    for (load, store) in
        [("", ""), (".nc.L1::no_allocate", ".L1::evict_first"), (".L1::evict_last", ".L1::no_allocate")]
    {
        for ahead in ["", ".L2::128B"] {
            let hinted = run(&format!(
                "ld.global{load}.L2::cache_hint{ahead}.v4.b32 {{%r1, %r2, %r3, %r4}}, [%rd1], %last;
                st.global{store}.L2::cache_hint.v4.b32 [%rd1+1024], {{%r1, %r2, %r3, %r4}}, %first;"
            ));
            assert_eq!(hinted, plain, "{load}, {store}, {ahead}");
        }
    }
}

/// NVIDIA's assembler accepts none of these.
#[test]
fn a_policy_stands_where_a_hint_says_so_and_has_64_bits() {
    for body in [
        "ld.global.b32 %r1, [%rd1], %last;",
        "ld.global.L2::cache_hint.b32 %r1, [%rd1];",
        "ld.global.L2::cache_hint.b32 %r1, [%rd1], %r2;",
        "st.global.b32 [%rd1], %r1, %first;",
        "st.global.L2::cache_hint.b32 [%rd1], %r1;",
        "createpolicy.fractional.L2::evict_first.b64 %r1, 1.0;",
    ] {
        let error = refusal(&program(body));
        assert_eq!(error.kind(), ErrorKind::UnsupportedPtx, "{error}");
    }
}
