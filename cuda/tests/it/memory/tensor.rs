//! Tensor maps, from the functions that make them to the kernels that use them.

use std::ffi::c_void;

use super::*;
use crate::api::{Context, kernel};

declare! {
    fn cuTensorMapEncodeTiled(
        map: *mut c_void, element: u32, rank: u32, address: u64, extents: *const u64, strides: *const u64,
        boxes: *const u32, steps: *const u32, interleave: i32, swizzle: i32, promotion: i32, fill: i32,
    );
    fn cuTensorMapReplaceAddress(map: *mut c_void, address: u64);
    fn cuLaunchKernel(
        function: u64, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: u64,
        params: *mut *mut c_void, extra: *mut *mut c_void,
    );
}

#[repr(align(64))]
struct Map([u8; 128]);

/// `CU_TENSOR_MAP_DATA_TYPE_FLOAT32`, and results.
const F32: u32 = 7;
const INVALID_VALUE: u32 = 1;
const NOT_SUPPORTED: u32 = 801;

/// A map of 8 x 16 words at `address`, whose box has 2 x 4 words.
fn encode(map: &mut Map, address: u64, modes: [i32; 4], steps: [u32; 2]) -> u32 {
    let [interleave, swizzle, promotion, fill] = modes;
    let (extents, strides, boxes) = ([16_u64, 8], [64_u64], [4_u32, 2]);
    let place = map.0.as_mut_ptr().cast();
    let (extents, strides) = (extents.as_ptr(), strides.as_ptr());
    cuTensorMapEncodeTiled(
        place,
        F32,
        2,
        address,
        extents,
        strides,
        boxes.as_ptr(),
        steps.as_ptr(),
        interleave,
        swizzle,
        promotion,
        fill,
    )
}

const PTX: &str = ".version 8.0 .target sm_90 .address_size 64
    .visible .entry k(.param .align 64 .b8 m[128], .param .u64 q) {
        .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %rd<4>;
        .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
        mov.b64 %rd1, m; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [q];
        mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 32;
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1, {4, 7}], [bar];
        wait: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra wait;
        mov.u32 %r1, 0;
        show: ld.shared.u32 %r2, [%r1]; st.global.u32 [%rd2], %r2; add.u64 %rd2, %rd2, 4;
        add.u32 %r1, %r1, 4; setp.lt.u32 %p1, %r1, 32; @%p1 bra show;
        ret;
    }\0";

#[test]
fn a_kernel_copies_a_box_of_the_tensor_that_a_map_describes() {
    let _context = Context::new();
    let (mut from, mut other, mut to) = (0, 0, 0);
    for place in [&mut from, &mut other, &mut to] {
        assert_eq!(cuMemAlloc_v2(place, 512), 0);
    }
    for (address, first) in [(from, 1000_u32), (other, 2000)] {
        let words: Vec<u32> = (first..first + 128).collect();
        assert_eq!(cuMemcpyHtoD_v2(address, words.as_ptr().cast(), 512), 0);
    }
    let mut map = Map([0; 128]);
    assert_eq!(encode(&mut map, from, [0; 4], [1, 1]), 0);
    let function = kernel(PTX, "k\0");
    for (first, address) in [(1000, from), (2000, other)] {
        assert_eq!(cuTensorMapReplaceAddress(map.0.as_mut_ptr().cast(), address), 0);
        let mut params = [std::ptr::from_mut(&mut map).cast::<c_void>(), std::ptr::from_mut(&mut to).cast()];
        assert_eq!(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, params.as_mut_ptr(), std::ptr::null_mut()), 0);
        let mut words = [0_u32; 8];
        assert_eq!(cuMemcpyDtoH_v2(words.as_mut_ptr().cast(), to, 32), 0);
        // Row 7 from column 4 on, and a row outside of the tensor.
        let row = first + 7 * 16 + 4;
        assert_eq!(words, [row, row + 1, row + 2, row + 3, 0, 0, 0, 0]);
    }
    for address in [from, other, to] {
        assert_eq!(cuMemFree_v2(address), 0);
    }
}

#[test]
fn maps_that_a_gpu_refuses_are_refused() {
    let _context = Context::new();
    let mut map = Map([0; 128]);
    for (address, modes, steps, result) in [
        (64, [0, 0, 0, 0], [1, 1], 0),
        (64, [0, 3, 2, 1], [1, 8], 0),
        (8, [0, 0, 0, 0], [1, 1], INVALID_VALUE),
        (64, [0, 0, 0, 0], [1, 9], INVALID_VALUE),
        (64, [0, 0, 4, 0], [1, 1], INVALID_VALUE),
        (64, [0, 99, 0, 0], [1, 1], INVALID_VALUE),
        (64, [0, -1, 0, 0], [1, 1], INVALID_VALUE),
        (64, [0, 4, 0, 0], [1, 1], NOT_SUPPORTED),
        (64, [1, 0, 0, 0], [1, 1], NOT_SUPPORTED),
    ] {
        assert_eq!(encode(&mut map, address, modes, steps), result, "{address} {modes:?} {steps:?}");
    }
    let place = map.0.as_mut_ptr();
    let null = std::ptr::null();
    let encoded =
        |rank| cuTensorMapEncodeTiled(place.cast(), F32, rank, 64, null, null, null.cast(), null.cast(), 0, 0, 0, 0);
    assert_eq!([encoded(0), encoded(2), encoded(6)], [INVALID_VALUE; 3]);
    assert_eq!(cuTensorMapReplaceAddress(place.wrapping_add(8).cast(), 64), INVALID_VALUE);
    map.0[0] = 0;
    assert_eq!(cuTensorMapReplaceAddress(map.0.as_mut_ptr().cast(), 64), INVALID_VALUE);
}
