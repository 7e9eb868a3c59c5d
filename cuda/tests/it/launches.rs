//! Launches, their faults, and occupancy.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::api::{Context, kernel, launch};
use crate::calls::{call, download, ok, upload};
use crate::child::{in_child, is_child};

pub(crate) const INVALID_VALUE: u32 = 1;
const INVALID_HANDLE: u32 = 400;
const TOO_LARGE: u32 = 720;
const NOT_SUPPORTED: u32 = 801;
pub(crate) const BAD_CLUSTER: u32 = 912;

/// Kernels that write their thread's number, that stop in several ways, and that compute.
const KERNELS: &str = ".version 7.8\n.target sm_80\n.address_size 64\n\
    .extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n\
    .global .align 1 .b8 text[2] = {120, 0};\n\
    .visible .entry number(.param .u64 out, .param .u32 add) { .reg .b32 %r<4>; .reg .b64 %rd<4>; \
    ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [add]; mov.u32 %r2, %tid.x; add.u32 %r3, %r1, %r2; \
    mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r3; ret; }\n\
    .visible .entry null() { .reg .b64 %rd<2>; mov.u64 %rd1, 0; st.global.u32 [%rd1], 1; ret; }\n\
    .visible .entry odd(.param .u64 out) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [out]; st.global.u32 [%rd1+1], 1; ret; }\n\
    .visible .entry trapped() { trap; ret; }\n\
    .visible .entry endless() { again: bra again; ret; }\n\
    .visible .entry asserted() { .reg .b64 %rd<3>; mov.u64 %rd1, text; cvta.global.u64 %rd2, %rd1; \
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %rd2; \
    st.param.b64 [b], %rd2; st.param.b32 [c], 1; st.param.b64 [d], %rd2; st.param.b64 [e], 1; \
    call __assertfail, (a, b, c, d, e); } ret; }\n\
    .extern .func (.param .b64 r) malloc (.param .b64 n);\n\
    .visible .entry allocate(.param .u64 out, .param .u64 bytes) { .reg .b64 %rd<4>; ld.param.u64 %rd1, [out]; \
    ld.param.u64 %rd2, [bytes]; { .param .b64 n; .param .b64 r; st.param.b64 [n], %rd2; call (r), malloc, (n); \
    ld.param.b64 %rd3, [r]; } st.global.u64 [%rd1], %rd3; ret; }\n\
    .visible .entry workspace(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [out]; \
    mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd2, {%r2, %r1}; st.global.u64 [%rd1], %rd2; ret; }\n\
    .visible .entry wide(.param .u64 out) { .reg .b32 %r<5>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [out]; \
    ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+32]; st.global.u32 [%rd1], %r3; ret; }\n\
    .visible .entry rest(.param .u64 out) { .reg .f32 %f<3>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [out]; \
    ld.global.v2.f32 {%f1, %f2}, [%rd1]; mul.f32 %f1, %f1, %f1; sub.f32 %f1, %f1, %f2; st.global.f32 [%rd1], %f1; ret; }\n\
    .visible .entry bounded() .maxntid 64 { ret; }\n\
    .visible .entry required() .reqntid 32, 2 { ret; }\n\
    .visible .entry shared() { .shared .align 4 .b8 tile[32768]; ret; }\0";

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    pub(crate) stream: u64,
    attributes: *const Attribute,
    count: u32,
}

/// `CUlaunchAttribute`.
#[repr(C, align(8))]
pub(crate) struct Attribute {
    id: u32,
    pad: u32,
    value: [u32; 16],
}

pub(crate) fn attribute(id: u32, first: [u32; 3]) -> Attribute {
    let mut value = [0; 16];
    value[..3].copy_from_slice(&first);
    Attribute { id, pad: 0, value }
}

pub(crate) fn config(grid: u32, attributes: &[Attribute]) -> Config {
    Config {
        grid: [grid, 1, 1],
        block: [2, 1, 1],
        dynamic_shared: 0,
        stream: 0,
        attributes: attributes.as_ptr(),
        count: attributes.len() as u32,
    }
}

fn launch_shape(function: u64, grid: [u32; 3], block: [u32; 3], dynamic: u32) -> u32 {
    let none = null::<c_void>();
    call!(cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], dynamic, 0_u64, none, none))
}

#[test]
fn impossible_launches_are_refused() {
    let _context = Context::new();
    let (bounded, required, shared) =
        (kernel(KERNELS, "bounded\0"), kernel(KERNELS, "required\0"), kernel(KERNELS, "shared\0"));
    let one = [1; 3];
    for (function, grid, block, dynamic, expected) in [
        (bounded, one, [64, 1, 1], 0, 0),
        (bounded, one, [65, 1, 1], 0, INVALID_VALUE),
        (bounded, [0, 1, 1], one, 0, INVALID_VALUE),
        (bounded, [1, 65_536, 1], one, 0, INVALID_VALUE),
        (bounded, [u32::MAX; 3], one, 0, INVALID_VALUE),
        (bounded, one, [1, 1, 65], 0, INVALID_VALUE),
        (bounded, one, [u32::MAX; 3], 0, INVALID_VALUE),
        (required, one, [32, 2, 1], 0, 0),
        (required, one, [64, 1, 1], 0, INVALID_VALUE),
        (shared, one, one, 16 << 10, 0),
        (shared, one, one, 17 << 10, INVALID_VALUE),
        (shared, one, one, u32::MAX, INVALID_VALUE),
        (0, one, one, 0, INVALID_HANDLE),
        (1, one, one, 0, INVALID_HANDLE),
        (u64::MAX, one, one, 0, INVALID_HANDLE),
    ] {
        assert_eq!(launch_shape(function, grid, block, dynamic), expected, "{grid:?} {block:?} {dynamic}");
    }
    ok!(cuFuncSetAttribute(shared, 8, 64 << 10));
    assert_eq!(launch_shape(shared, one, one, 64 << 10), 0);
    ok!(cuCtxSynchronize());
}

#[test]
fn parameters_come_as_a_list_or_as_a_buffer() {
    let _context = Context::new();
    let number = kernel(KERNELS, "number\0");
    let out = upload(&[0; 2]);
    assert_eq!(launch(number, 2, 0, &mut [out, 40]), 0);
    assert_eq!(download(out, 2), [40, 41]);
    assert_eq!(launch_shape(number, [1; 3], [2, 1, 1], 0), INVALID_VALUE);
    // A structure in C is longer than its last parameter.
    let mut buffer = [out, 7];
    for (bytes, expected) in
        [(12_usize, 0), (16, 0), (11, INVALID_VALUE), (17, INVALID_VALUE), (usize::MAX, INVALID_VALUE)]
    {
        buffer[1] += 1;
        let bytes = &raw const bytes;
        let extra: [*const c_void; 5] = [
            std::ptr::without_provenance(1),
            buffer.as_ptr().cast(),
            std::ptr::without_provenance(2),
            bytes.cast(),
            null(),
        ];
        let (one, zero) = (1_u32, 0_u32);
        let none = null_mut::<c_void>();
        let code = call!(cuLaunchKernel(number, one, one, one, 2_u32, one, one, zero, 0_u64, none, extra.as_ptr()));
        assert_eq!(code, expected);
        if code == 0 {
            assert_eq!(download(out, 2), [buffer[1] as i32, buffer[1] as i32 + 1]);
        }
    }
}

#[test]
fn a_program_may_prepare_a_launch_before_it() {
    let _context = Context::new();
    let (number, out, stream) = (kernel(KERNELS, "number\0"), upload(&[0; 4]), 0_u64);
    assert_eq!(call!(cuLaunch(number)), INVALID_VALUE, "no block, no parameters");
    ok!(cuFuncSetBlockShape(number, 2, 1, 1));
    assert_eq!(call!(cuLaunch(number)), INVALID_VALUE, "no parameters");
    let place = &raw const out;
    ok!(cuParamSetv(number, 0, place, 8_u32));
    ok!(cuParamSeti(number, 8, 40_u32));
    ok!(cuFuncSetSharedSize(number, 16_u32));
    for (bytes, expected) in [(11_u32, INVALID_VALUE), (17, INVALID_VALUE), (12, 0), (16, 0)] {
        assert_eq!(call!(cuParamSetSize(number, bytes)), expected);
    }
    ok!(cuLaunch(number));
    assert_eq!(download(out, 4), [40, 41, 0, 0]);
    ok!(cuFuncSetBlockShape(number, 3, 1, 1));
    ok!(cuParamSetf(number, 8, 1.0_f32));
    ok!(cuLaunchGridAsync(number, 2, 2, stream));
    ok!(cuLaunchGrid(number, 1, 1));
    let one = 1.0_f32.to_bits() as i32;
    assert_eq!(download(out, 4), [one, one + 1, one + 2, 0]);

    let refused = [
        call!(cuFuncSetBlockShape(number, 0, 1, 1)),
        call!(cuFuncSetBlockShape(number, 1, 1, -1)),
        call!(cuLaunchGrid(number, 0, 1)),
        call!(cuParamSeti(number, -1, 0_u32)),
        call!(cuParamSeti(number, 13, 0_u32)),
        call!(cuParamSetv(number, 0, place, u32::MAX)),
        call!(cuParamSetv(number, 0, null::<u64>(), 8_u32)),
    ];
    assert_eq!(refused, [INVALID_VALUE; 7]);
    assert_eq!(call!(cuLaunch(0_u64)), INVALID_HANDLE);
    ok!(cuFuncSetSharedSize(number, u32::MAX));
    assert_eq!(call!(cuLaunch(number)), INVALID_VALUE);
}

#[test]
fn attributes_of_launches_hold_or_are_refused() {
    let _context = Context::new();
    let number = kernel(KERNELS, "number\0");
    let (out, add) = (upload(&[0; 2]), 3_u32);
    let params = [(&raw const out).cast::<c_void>(), (&raw const add).cast()];
    let mut event = 0_u64;
    ok!(cuEventCreate(&raw mut event, 2_u32));
    let completes = attribute(12, [event as u32, (event >> 32) as u32, 0]);
    for (grid, attribute, expected) in [
        (1, attribute(0, [0; 3]), 0),
        (1, attribute(2, [1, 0, 0]), 0),
        (100_000, attribute(2, [1, 0, 0]), TOO_LARGE),
        (2, attribute(4, [1; 3]), 0),
        (2, attribute(4, [2, 1, 1]), 0),
        (3, attribute(4, [2, 1, 1]), BAD_CLUSTER),
        (3, attribute(4, [0, 1, 1]), BAD_CLUSTER),
        (1, attribute(6, [1, 0, 0]), 0),
        (1, completes, 0),
        (1, attribute(12, [1, 0, 0]), INVALID_HANDLE),
        (1, attribute(99, [0; 3]), NOT_SUPPORTED),
    ] {
        let (id, attributes) = (attribute.id, [attribute]);
        let config = config(grid, &attributes);
        let config = &raw const config;
        let code = call!(cuLaunchKernelEx(config, number, params.as_ptr(), null_mut::<c_void>()));
        assert_eq!(code, expected, "attribute {id}, grid {grid}");
    }
    ok!(cuEventSynchronize(event));
    assert_eq!(download(out, 2), [3, 4]);
    let none = null::<Config>();
    assert_eq!(call!(cuLaunchKernelEx(none, number, params.as_ptr(), null_mut::<c_void>())), INVALID_VALUE);
}

#[test]
fn cooperative_launches_have_memory_for_the_grid() {
    let _context = Context::new();
    let workspace = kernel(KERNELS, "workspace\0");
    let mut out = upload(&[7; 2]);
    assert_eq!(launch(workspace, 1, 0, &mut [out]), 0);
    assert_eq!(download(out, 2), [0; 2]);
    let params = [(&raw mut out).cast::<c_void>()];
    let stream = 0_u64;
    ok!(cuLaunchCooperativeKernel(
        workspace,
        4_u32,
        1_u32,
        1_u32,
        32_u32,
        1_u32,
        1_u32,
        0_u32,
        stream,
        params.as_ptr()
    ));
    assert_ne!(download(out, 2), [0; 2]);
}

#[test]
fn the_heap_of_kernels_has_the_size_that_was_set_before() {
    if !is_child() {
        in_child("launches::the_heap_of_kernels_has_the_size_that_was_set_before", &[]);
        return;
    }
    const HEAP: u32 = 2;
    let allocates = |bytes: u64| {
        let (allocate, out) = (kernel(KERNELS, "allocate\0"), upload(&[0; 2]));
        assert_eq!(launch(allocate, 1, 0, &mut [out, bytes]), 0);
        download(out, 2) != [0; 2]
    };
    for _ in 0..2 {
        // The heap ends with the last context, and the next one has the default size.
        let _context = Context::new();
        let mut bytes = 0_usize;
        ok!(cuCtxGetLimit(&raw mut bytes, HEAP));
        assert_eq!(bytes, 8 << 20);
        assert!(!allocates(8 << 20) && allocates(8_000_000));
        assert_eq!(call!(cuCtxSetLimit(HEAP, 16_usize << 20)), INVALID_VALUE);
    }
    let _context = Context::new();
    ok!(cuCtxSetLimit(HEAP, 16_usize << 20));
    assert!(allocates(8 << 20) && !allocates(8 << 20));
}

#[test]
fn products_and_sums_are_fused_if_the_variable_asks_for_it() {
    const CONTRACT: &str = "WARPSTRIDE_RUN_CONTRACT";
    if !is_child() {
        for asked in ["", "1"] {
            in_child("launches::products_and_sums_are_fused_if_the_variable_asks_for_it", &[(CONTRACT, asked)]);
        }
        return;
    }
    let _context = Context::new();
    // The square of 1 + 2^-12, less its rounded value.
    let numbers = [1.0 + 1.0 / 4096.0, 1.0 + 1.0 / 2048.0_f32].map(|number| number.to_bits() as i32);
    let place = upload(&numbers);
    assert_eq!(launch(kernel(KERNELS, "rest\0"), 1, 0, &mut [place]), 0);
    ok!(cuCtxSynchronize());
    let is_fused = std::env::var(CONTRACT).is_ok_and(|asked| asked == "1");
    let rest = if is_fused { (1.0 / 16_777_216.0_f32).to_bits() } else { 0 };
    assert_eq!(download(place, 1), [rest as i32]);
}

/// NVIDIA's compiler loads three floats at the end of an allocation as four.
#[test]
fn a_wide_load_may_begin_where_an_allocation_ends_within_it_unless_checkers_run() {
    const CHECKS: &str = "WARPSTRIDE_RUN_CHECKS";
    if !is_child() {
        for checks in ["", "initcheck"] {
            in_child(
                "launches::a_wide_load_may_begin_where_an_allocation_ends_within_it_unless_checkers_run",
                &[(CHECKS, checks)],
            );
        }
        return;
    }
    let _context = Context::new();
    let wide = kernel(KERNELS, "wide\0");
    let device = upload(&[7; 11]);
    let (mut managed, mut host, mut pooled, stream) = (0_u64, 0_u64, 0_u64, 0_u64);
    ok!(cuMemAllocManaged(&raw mut managed, 44_usize, 1));
    ok!(cuMemAllocHost_v2(&raw mut host, 44_usize));
    ok!(cuMemAllocAsync(&raw mut pooled, 44_usize, stream));
    let expected = if std::env::var(CHECKS).is_ok_and(|checks| checks == "initcheck") { 700 } else { 0 };
    for place in [device, managed, host, pooled] {
        assert_eq!(launch(wide, 1, 0, &mut [place]), expected.min(u32::from(place != device) * 700));
        assert_eq!(call!(cuCtxSynchronize()), expected);
    }
}

/// Launches a kernel that stops, in a process of its own, and checks that each later call returns
/// the code of its fault.
fn check_fault(test: &str, name: &str, expected: u32) {
    if !is_child() {
        in_child(&format!("launches::{test}"), &[]);
        return;
    }
    let _context = Context::new();
    let (mut out, kernel) = (upload(&[0; 2]), kernel(KERNELS, name));
    assert_eq!(launch(kernel, 1, 0, &mut [out]), 0);
    assert_eq!(call!(cuCtxSynchronize()), expected);
    assert_eq!(call!(cuCtxSynchronize()), expected);
    assert_eq!(call!(cuMemAlloc_v2(&raw mut out, 4_usize)), expected);
    assert_eq!(launch(kernel, 1, 0, &mut [out]), expected);
}

#[test]
fn an_address_out_of_bounds_fails_the_gpu() {
    check_fault("an_address_out_of_bounds_fails_the_gpu", "null\0", 700);
}

#[test]
fn a_misaligned_address_fails_the_gpu() {
    check_fault("a_misaligned_address_fails_the_gpu", "odd\0", 716);
}

#[test]
fn a_trap_fails_the_gpu() {
    check_fault("a_trap_fails_the_gpu", "trapped\0", 715);
}

#[test]
fn an_endless_loop_fails_the_gpu() {
    check_fault("an_endless_loop_fails_the_gpu", "endless\0", 702);
}

#[test]
fn an_assertion_fails_the_gpu() {
    check_fault("an_assertion_fails_the_gpu", "asserted\0", 710);
}

extern "C" fn sixteen_bytes_a_thread(threads: i32) -> usize {
    16 * threads as usize
}

/// The model is an H100: 132 multiprocessors of 64 warps, 32 blocks and 228 KiB of shared memory.
#[test]
fn occupancy_follows_the_model() {
    let _context = Context::new();
    let (number, shared, bounded) =
        (kernel(KERNELS, "number\0"), kernel(KERNELS, "shared\0"), kernel(KERNELS, "bounded\0"));
    for (function, block, dynamic, expected) in [
        (number, 1024, 0, 2),
        (number, 256, 0, 8),
        (number, 33, 0, 32),
        (number, 32, 16 << 10, 13),
        (number, 1025, 0, 0),
        (shared, 32, 0, 6),
        (shared, 32, 300 << 10, 0),
        (bounded, 65, 0, 0),
    ] {
        let mut blocks = -1_i32;
        ok!(cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, function, block, dynamic as usize));
        assert_eq!(blocks, expected, "{block} threads, {dynamic} bytes");
    }
    let (mut grid, mut block) = (0_i32, 0_i32);
    let sixteen: extern "C" fn(i32) -> usize = sixteen_bytes_a_thread;
    ok!(cuOccupancyMaxPotentialBlockSize(&raw mut grid, &raw mut block, number, sixteen, 0_usize, 0));
    assert_eq!((grid, block), (264, 1024));
    let mut bytes = 0_usize;
    ok!(cuOccupancyAvailableDynamicSMemPerBlock(&raw mut bytes, number, 2, 1024));
    assert_eq!(bytes, 113 << 10);
    assert_eq!(call!(cuOccupancyAvailableDynamicSMemPerBlock(&raw mut bytes, number, 3, 1024)), INVALID_VALUE);
    let clusters = [attribute(4, [2, 1, 1])];
    let config = config(2, &clusters);
    let (mut active, mut largest, config) = (0_i32, 0_i32, &raw const config);
    ok!(cuOccupancyMaxActiveClusters(&raw mut active, number, config));
    ok!(cuOccupancyMaxPotentialClusterSize(&raw mut largest, number, config));
    assert_eq!((active, largest), (132 * 32 / 2, 8));
    let mut blocks = 0_i32;
    let refused = call!(cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, number, 0, 0_usize));
    assert_eq!(refused, INVALID_VALUE);
}
