//! Tests a kernel of your own: its values and its memory accesses, without a GPU.
//!
//! The software GPU is not only for the kernels of this crate. It runs any PTX, from nvcc, from
//! rustc or by hand, and counts. So a test can check your kernel's memory accesses on any machine,
//! without a GPU and without a profiler. This program is such a test.
//!
//! The kernel reverses 32 numbers through shared memory: every thread stores its own number at
//! index `tid` and loads the one at `31 - tid`. In any order, 32 neighbouring words lie in 32
//! banks, so there is no conflict. If the elements lie twice as far apart, only every second bank
//! is used, and pairs of threads wait for each other.
//!
//! A report has the totals of the launch, every instruction that accesses memory, and the worst
//! access of each one. `draw` prints an access as text, and `to_svg` makes an image of it.
//!
//! ```text
//! cargo run --example 05_test_your_own_ptx
//! ```
//!
//! `assert_access!` holds a report to expectations as text, and panics with a table of what fell
//! short. `ideal` is the least that the accesses could take.
//!
//! The command line does the same with a kernel in a file, and `warpstride check` with expectations
//! in another one (docs/testing-kernels.md):
//!
//! ```text
//! warpstride run-ptx reverse.ptx --entry reverse --grid 1 --block 32 \
//!     --arg 'f32[32]=iota' --arg u32:8 --report --draw out.svg
//! ```

use warpstride::assert_access;
use warpstride::error::{Error, Result};
use warpstride::interp::{Args, Config, Memory, Module, Report, run};
use warpstride::launch_shape::LaunchShape;

/// `data[tid] = data[31 - tid]`, with elements `stride` bytes apart in shared memory.
const PTX: &str = "
    .version 7.0
    .target sm_80
    .address_size 64
    .visible .entry reverse(.param .u64 data, .param .u32 stride) {
        .reg .b32 %r<8>;
        .reg .f32 %f<3>;
        .reg .b64 %rd<3>;
        .shared .align 4 .b8 places[256];

        ld.param.u64   %rd1, [data];
        ld.param.u32   %r1, [stride];
        mov.u32        %r2, %tid.x;
        mad.wide.u32   %rd2, %r2, 4, %rd1;
        mov.u32        %r3, places;
        mad.lo.u32     %r4, %r2, %r1, %r3;
        ld.global.f32  %f1, [%rd2];
        st.shared.f32  [%r4], %f1;
        bar.sync       0;
        sub.u32        %r5, 31, %r2;
        mad.lo.u32     %r6, %r5, %r1, %r3;
        ld.shared.f32  %f2, [%r6];
        st.global.f32  [%rd2], %f2;
        ret;
    }";

fn main() -> Result<()> {
    // The totals of the launch.
    let near = reverse(4)?;
    println!("places 4 bytes apart: {} bank conflicts", near.shared_load.bank_conflicts);
    // 32 loads of 4 bytes side by side: 4 sectors of 32 bytes, all of them used.
    assert_access!(near, "shared.bank_conflicts == 0", "load.sectors == 4", "load.sectors <= 1.0 * ideal");

    let apart = reverse(8)?;
    println!("places 8 bytes apart: {} bank conflict", apart.shared_load.bank_conflicts);
    assert_eq!(apart.shared_load.bank_conflicts, 1);

    // One instruction, found by its text.
    let load = apart.instruction("ld.shared").expect("the kernel has one");
    assert_eq!((load.executions, load.active_lanes()), (1, Some(32.0)));
    assert_eq!((load.shared.wavefronts, load.ideal_wavefronts), (2, 1));

    // Its worst access: 16 banks serve two words each, and the other banks are idle.
    let worst = load.worst_shared.as_ref().expect("it was executed");
    println!("\nPTX line {}: {}\n{}", load.line, load.instruction, worst.draw());
    Ok(())
}

/// Runs the kernel, checks its values, and returns its report.
fn reverse(stride: u32) -> Result<Report> {
    let module = Module::parse(PTX)?;
    let kernel = module.kernel("reverse").expect("it is in the text");

    // As on a GPU, buffers have addresses; here an access outside them stops the kernel.
    let memory = Memory::new(1 << 20);
    let numbers: Vec<f32> = (0..32).map(|i| i as f32).collect();
    let data = memory.upload(&numbers)?;

    // Values come in the order of the parameters. A wrong number or size of them is an error.
    let params = Args::new(kernel).value(data)?.value(stride)?.finish()?;
    let shape = LaunchShape { grid: [1, 1, 1], block: [32, 1, 1], dynamic_shared: 0 };
    let report = run(kernel, &shape, &params, &memory, &Config::default()).map_err(|stop| Error::from(*stop))?;

    let reversed: Vec<f32> = numbers.into_iter().rev().collect();
    assert_eq!(memory.download::<f32>(data, 32)?, reversed);
    Ok(report)
}
