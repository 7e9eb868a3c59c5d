use warpstride::device::Backend;
use warpstride::interp::Module;

use super::super::super::output::Output;
use super::super::variables;
use super::*;
use crate::args::Launched;

const PTX: &str = "
    .version 7.0
    .target sm_80
    .address_size 64
    .const .align 4 .u32 more = 1;
    .visible .entry add(.param .u64 cells, .param .u64 none, .param .u32 n) {
        .reg .b32 %r<6>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [cells]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
        mad.wide.u32 %rd2, %r2, 4, %rd1;
        ld.global.u32 %r3, [%rd2]; add.s32 %r4, %r3, %r1;
        ld.const.u32 %r5, [more]; add.s32 %r4, %r4, %r5; st.global.u32 [%rd2], %r4;
        ret;
    }";

/// The driver of the software GPU stands for a GPU's: both ways must give the same bytes.
#[test]
fn through_a_driver_it_does_what_it_does_without() {
    let module = Module::parse(PTX).unwrap();
    let arguments = ["u32[40]=iota", "f32[0]=zeros", "u32:5"].map(|text| text.parse().unwrap()).into();
    // More shared memory than a GPU gives without being asked.
    let (shared, sets) = (64 << 10, vec!["more=u32:100".parse().unwrap()]);
    let args = Launched { grid: [1; 3], block: [32, 1, 1], shared, arguments, sets, ..Launched::default() };
    let variables = variables::found(&module, &args.sets, "k.ptx", &Output::new(false, true, false)).unwrap();
    let launch = Launch { dumps: vec![0, 1], variables, ..Launch::new(PTX, module.kernel("add").unwrap(), &args) };
    let device = Device::open(Backend::Soft).unwrap();
    let through = launch.on_gpu(launch.buffers().unwrap(), &device).unwrap();
    let without = launch.on_soft(launch.buffers().unwrap(), 1 << 20).unwrap();
    assert_eq!(through.dumped, without.dumped);
    let cells: Vec<u8> = (0..40).flat_map(|i: u32| (if i < 32 { i + 105 } else { i }).to_le_bytes()).collect();
    assert_eq!(through.dumped, [cells, Vec::new()]);
    assert!(through.report.is_none() && without.report.is_some_and(|report| report.thread_instructions == 10 * 32));
}
