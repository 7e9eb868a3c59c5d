//! Launches a kernel on the software GPU where there is neither a system nor a second thread.
//! `run.mjs` compares the results.

use warpstride_interp::error::Result;
use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::{Args, Config, Memory, Module, run};

const SQUARES: &str = "
    .version 7.0
    .target sm_80
    .address_size 64
    .visible .entry squares(.param .u64 out, .param .u32 n) {
        .reg .pred %p<2>;
        .reg .b32 %r<6>;
        .reg .b64 %rd<6>;
        ld.param.u64 %rd1, [out];
        ld.param.u32 %r1, [n];
        mov.u32 %r2, %ctaid.x;
        mov.u32 %r3, %tid.x;
        mad.lo.s32 %r4, %r2, 64, %r3;
        setp.ge.u32 %p1, %r4, %r1;
        @%p1 bra DONE;
        mov.u64 %rd4, %globaltimer;
        mul.wide.u32 %rd2, %r4, 8;
        add.s64 %rd3, %rd1, %rd2;
        mul.wide.u32 %rd5, %r4, %r4;
        st.global.u64 [%rd3], %rd5;
    DONE:
        ret;
    }";

/// The sum of the squares of the numbers below `n`, each of which a thread computed; and the
/// sectors that were written.
fn squares(n: u32) -> Result<(u64, u64)> {
    let module = Module::parse(SQUARES)?;
    let kernel = module.kernel("squares").expect("it is in the text");
    let memory = Memory::new(1 << 30);
    // The first takes what 32 bits could address.
    memory.upload(&[0_u8; 4096])?;
    let out = memory.upload(&vec![0_u64; n as usize])?;
    let params = Args::new(kernel).value(out)?.value(n)?.finish()?;
    let shape = LaunchShape { grid: [n.div_ceil(64), 1, 1], block: [64, 1, 1], dynamic_shared: 0 };
    let report = run(kernel, &shape, &params, &memory, &Config::default()).map_err(|stop| *stop)?;
    Ok((memory.download::<u64>(out, n as usize)?.iter().sum(), report.global_store.sectors))
}

/// The sum of the squares of the numbers below `n`, or the greatest number where something failed.
#[unsafe(no_mangle)]
pub extern "C" fn sum_of_squares(n: u32) -> u64 {
    squares(n).map_or(u64::MAX, |(sum, _)| sum)
}

/// The sectors that storing them took, or the greatest number where something failed.
#[unsafe(no_mangle)]
pub extern "C" fn sectors(n: u32) -> u64 {
    squares(n).map_or(u64::MAX, |(_, sectors)| sectors)
}
