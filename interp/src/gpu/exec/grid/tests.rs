use super::*;
use crate::gpu::{Checks, Module};

/// Integers, floats, partial warps and shared memory: the parts that the two copies of the
/// table compile differently.
const TEXT: &str = "
    .version 7.0
    .target sm_80
    .address_size 64
    .visible .entry k(.param .u64 cells) {
        .reg .pred %p; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<3>; .shared .align 4 .b8 tile[1024];
        ld.param.u64 %rd1, [cells]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
        ld.global.f32 %f1, [%rd2]; cvt.rn.f32.u32 %f2, %r1; fma.rn.f32 %f3, %f1, %f2, 0f3DCCCCCD;
        setp.gt.f32 %p, %f3, 0f40000000; @%p div.rn.f32 %f3, %f1, %f3;
        mul.lo.u32 %r2, %r1, 256; and.b32 %r2, %r2, 1020; mov.u32 %r3, tile; add.u32 %r2, %r2, %r3;
        @!%p st.shared.f32 [%r2], %f3; bar.sync 0; @!%p ld.shared.f32 %f3, [%r2];
        st.global.f32 [%rd2], %f3;
    }";

/// The number of host threads that would work on 1000 blocks of 1024 threads with this body, if
/// `threads` are requested.
fn workers_of(body: &str, threads: usize) -> u64 {
    let module =
        Module::parse(&format!(".version 7.0 .target sm_80 .address_size 64 .entry k() {{ {body} }}")).unwrap();
    let kernel = module.kernel("k").unwrap();
    let memory = Memory::new(1);
    let launch = Launch {
        kernel: &kernel.inner,
        code: kernel.inner.code().as_ref().unwrap(),
        shape: &LaunchShape { grid: [1000, 1, 1], block: [1024, 1, 1], dynamic_shared: 0 },
        params: &[],
        global: &memory.snapshot(),
        heap: None,
        workspace: 0,
        variables: &[],
        engine: Engine::BASELINE,
        limit: 100,
        checks: Checks::NONE,
        touched: None,
    };
    workers(1000, threads, BLOCKS_BYTES / launch.cluster_bytes())
}

#[test]
fn workers_are_as_many_as_there_are_threads_and_fit() {
    let there_are = host_threads() as u64;
    assert_eq!(workers_of("", 0), there_are);
    assert_eq!(workers_of("", 1_000_000), there_are);
    assert_eq!(workers_of("", 1), 1);
    let large = ".local .b8 depot[131072]; .reg .b64 %r; mov.u64 %r, depot;";
    assert_eq!(workers_of(large, 0), there_are.min(5), "128 MiB and a little each");
}

#[test]
fn every_processor_gets_the_same_results_and_counters() {
    let module = Module::parse(TEXT).unwrap();
    let kernel = module.kernel("k").unwrap();
    let results = [Engine::BASELINE, Engine::detect()].map(|engine| {
        let memory = Memory::new(1 << 20);
        let address = memory.alloc(800).unwrap();
        let cells: Vec<u8> = (0..200).flat_map(|i| (i as f32 / 37.0).to_le_bytes()).collect();
        memory.write(address, &cells).unwrap();
        let shape = LaunchShape { grid: [1, 1, 1], block: [200, 1, 1], dynamic_shared: 0 };
        let params = address.to_le_bytes();
        let report = run(engine, kernel, &shape, &params, &memory, &Config::default()).unwrap();
        let mut out = vec![0; 800];
        memory.read(address, &mut out).unwrap();
        (report, out)
    });
    assert_eq!(results[0], results[1]);
    assert!(results[0].0.shared_store.bank_conflicts > 0);
}
