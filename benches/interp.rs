//! Measures the software GPU, in thread instructions a second: on one host thread, and on all.
//!
//! An instruction of a warp counts once for each active lane. There are many similar blocks, so all
//! host threads have work.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use warpstride::abi::{self, Family, Index};
use warpstride::interp::{Args, Checks, Config, Kernel, Memory, Module, run};
use warpstride::launch_shape::LaunchShape;
use warpstride::ptx;

/// 13 operations of the kinds that kernels have; the loop around them takes 3.
const ARITHMETIC: &str = "
    add.s32 %r2, %r1, %r4; xor.b32 %r3, %r2, %r1; shl.b32 %r4, %r3, 3; mad.lo.s32 %r5, %r4, %r2, %r3;
    fma.rn.f32 %f1, %f1, %f2, %f3; mul.f32 %f2, %f2, 0f3F7FFFFF; add.f32 %f3, %f3, %f1; and.b32 %r6, %r5, 255;
    mul.wide.u32 %rd4, %r6, 4; add.s64 %rd5, %rd4, %rd3; setp.lt.s32 %p2, %r5, %r3; selp.b32 %r1, %r5, %r2, %p2;
    shr.u32 %r4, %r4, 1;";

/// Half of the lanes take one side, half the other, and each lane leaves the inner loop after its
/// own number of rounds.
const DIVERGENT: &str = "
    and.b32 %r2, %r7, 1; setp.eq.u32 %p2, %r2, 0; @%p2 bra $even;
    add.s32 %r1, %r1, 3; xor.b32 %r3, %r1, %r7; bra $both;
$even: mul.lo.s32 %r1, %r1, 5; shr.u32 %r3, %r1, 2;
$both: and.b32 %r4, %r7, 7;
$round: add.s32 %r1, %r1, %r3; sub.u32 %r4, %r4, 1; setp.gt.s32 %p2, %r4, 0; @%p2 bra $round;";

/// Each lane reads an address of its own, anywhere in 4 MiB.
const GATHER: &str = "
    mad.lo.u32 %r1, %r1, 1664525, 1013904223; shr.u32 %r2, %r1, 12; mul.wide.u32 %rd4, %r2, 4; add.s64 %rd5, %rd1, %rd4;
    ld.global.u32 %r3, [%rd5]; add.u32 %r1, %r1, %r3;";

/// The lanes access one of 8 columns of a 32 x 32 tile; the words of a column lie in one bank.
const CONFLICT: &str = "
    and.b32 %r2, %r1, 7; shl.b32 %r2, %r2, 2; shl.b32 %r3, %r7, 7; and.b32 %r3, %r3, 3968; add.u32 %r2, %r2, %r3;
    st.shared.u32 [%r2], %r1; ld.shared.u32 %r4, [%r2]; add.u32 %r1, %r1, %r4;";

/// Returns a kernel that runs `body` `rounds` times.
fn loop_of(body: &str) -> String {
    format!(
        ".version 7.0
        .target sm_80
        .address_size 64
        .visible .entry k(.param .u64 cells, .param .u32 rounds) {{
            .reg .pred %p<3>; .reg .b32 %r<10>; .reg .f32 %f<4>; .reg .b64 %rd<7>; .shared .align 4 .b8 tile[4096];
            ld.param.u64 %rd1, [cells]; ld.param.u32 %r8, [rounds];
            mov.u32 %r7, %tid.x; mov.u32 %r1, %r7; mul.wide.u32 %rd2, %r7, 4; add.s64 %rd3, %rd1, %rd2;
            mov.u32 %r4, 1; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F800000; mov.f32 %f3, 0f00000000;
            mov.u32 %r9, 0;
        $top: {body}
            add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, %r8; @%p1 bra $top;
            st.global.u32 [%rd3], %r1;
        }}"
    )
}

/// A launch that can be repeated.
struct Case {
    kernel: Kernel,
    shape: LaunchShape,
    params: Vec<u8>,
    memory: Memory,
}

impl Case {
    fn of_loop(body: &str, rounds: u32) -> Self {
        let module = Module::parse(&loop_of(body)).expect("it parses");
        let kernel = module.kernel("k").expect("it is there").clone();
        let memory = Memory::new(1 << 30);
        let cells = memory.upload(&vec![7_u32; 1 << 20]).expect("it fits");
        let args = Args::new(&kernel).value(cells).and_then(|args| args.value(rounds));
        let params = args.and_then(Args::finish).expect("they are the kernel's");
        let shape = LaunchShape { grid: [64, 1, 1], block: [256, 1, 1], dynamic_shared: 0 };
        Self { kernel, shape, params, memory }
    }

    /// Makes a launch of one of this crate's transposes, of a square matrix of `f32`.
    fn of_transpose(family: Family, extent: u32) -> Self {
        let entry = family.entry(4, Index::Narrow).expect("there is one");
        let module = Module::parse(&ptx::module(entry)).expect("it parses");
        let kernel = module.kernel(entry.name()).expect("it is there").clone();
        let memory = Memory::new(1 << 30);
        let cells: Vec<f32> = (0..extent * extent).map(|i| i as f32).collect();
        let [src, dst] = [(); 2].map(|()| memory.upload(&cells).expect("it fits"));
        let extent_wide = u64::from(extent);
        let values = [src, dst, extent_wide, extent_wide, extent_wide, 1, extent_wide, 1];
        let args = values.into_iter().try_fold(Args::new(&kernel), Args::value);
        let params = args.and_then(Args::finish).expect("they are the kernel's");
        let tiles = extent.div_ceil(abi::TILE);
        let shape = LaunchShape { grid: [tiles, tiles, 1], block: [32, abi::TILE_ROWS, 1], dynamic_shared: 0 };
        Self { kernel, shape, params, memory }
    }

    /// Runs the launch, and returns the number of instructions that its threads executed.
    fn run(&self, config: &Config) -> u64 {
        let report = run(&self.kernel, &self.shape, &self.params, &self.memory, config);
        report.unwrap_or_else(|stop| panic!("{stop}")).thread_instructions
    }
}

fn measure(c: &mut Criterion, name: &str, case: &Case) {
    let mut group = c.benchmark_group(name);
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    let one = Config { threads: 1, ..Config::default() };
    let checked = Config { checks: Checks::ALL, ..one.clone() };
    // Checked launches use one host thread.
    for (config, label) in [(one, "one thread"), (Config::default(), "all threads"), (checked, "all checkers")] {
        group.throughput(Throughput::Elements(case.run(&config)));
        group.bench_function(label, |bencher| bencher.iter(|| black_box(case.run(&config))));
    }
    group.finish();
}

fn loops(c: &mut Criterion) {
    for (name, body, rounds) in [
        ("arithmetic", ARITHMETIC, 500),
        ("divergent", DIVERGENT, 100),
        ("gather", GATHER, 200),
        ("conflict", CONFLICT, 200),
    ] {
        measure(c, name, &Case::of_loop(body, rounds));
    }
}

fn transposes(c: &mut Criterion) {
    for (name, family) in [("naive", abi::NAIVE), ("tiled", abi::TILED), ("padded", abi::PADDED)] {
        measure(c, &format!("{name} f32 1024"), &Case::of_transpose(family, 1024));
    }
    measure(c, "padded f32 4096", &Case::of_transpose(abi::PADDED, 4096));
}

criterion_group!(interp, loops, transposes);
criterion_main!(interp);
