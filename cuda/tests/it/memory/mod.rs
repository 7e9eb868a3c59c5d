//! Allocations, copies, fills and pools.

mod allocations;
mod copies;
mod tensor;

use std::ffi::c_void;

use crate::api::declare;

declare! {
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize);
    fn cuMemAllocPitch_v2(address: *mut u64, pitch: *mut usize, width: usize, height: usize, element: u32);
    fn cuMemFree_v2(address: u64);
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut usize, address: u64);
    fn cuMemAllocHost_v2(memory: *mut *mut u8, bytes: usize);
    fn cuMemHostAlloc(memory: *mut *mut u8, bytes: usize, flags: u32);
    fn cuMemFreeHost(memory: *mut u8);
    fn cuMemHostRegister_v2(memory: *mut u8, bytes: usize, flags: u32);
    fn cuMemHostUnregister(memory: *mut u8);
    fn cuMemHostGetDevicePointer_v2(device: *mut u64, memory: *mut u8, flags: u32);
    fn cuMemHostGetFlags(flags: *mut u32, memory: *mut u8);
    fn cuMemAllocManaged(address: *mut u64, bytes: usize, flags: u32);
    fn cuMemAdvise(address: u64, bytes: usize, advice: u32, device: i32);
    fn cuMemPrefetchAsync(address: u64, bytes: usize, device: i32, stream: u64);
    fn cuMemRangeGetAttribute(data: *mut c_void, room: usize, attribute: u32, address: u64, bytes: usize);
    fn cuPointerGetAttribute(data: *mut c_void, attribute: u32, address: u64);
    fn cuPointerGetAttributes(count: u32, attributes: *const u32, data: *const *mut c_void, address: u64);
    fn cuPointerSetAttribute(value: *const c_void, attribute: u32, address: u64);
    fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: u64);
    fn cuMemFreeAsync(address: u64, stream: u64);
    fn cuDeviceGetDefaultMemPool(pool: *mut u64, device: i32);
    fn cuDeviceGetMemPool(pool: *mut u64, device: i32);
    fn cuDeviceSetMemPool(device: i32, pool: u64);
    fn cuMemPoolCreate(pool: *mut u64, properties: *const c_void);
    fn cuMemPoolDestroy(pool: u64);
    fn cuMemPoolGetAttribute(pool: u64, attribute: u32, value: *mut c_void);
    fn cuMemPoolSetAttribute(pool: u64, attribute: u32, value: *mut c_void);
    fn cuMemcpy(dst: u64, src: u64, bytes: usize);
    fn cuMemcpyAsync(dst: u64, src: u64, bytes: usize, stream: u64);
    fn cuMemcpyHtoD_v2(dst: u64, src: *const u8, bytes: usize);
    fn cuMemcpyDtoH_v2(dst: *mut u8, src: u64, bytes: usize);
    fn cuMemcpyDtoD_v2(dst: u64, src: u64, bytes: usize);
    fn cuMemcpyHtoDAsync_v2(dst: u64, src: *const u8, bytes: usize, stream: u64);
    fn cuMemcpyDtoHAsync_v2(dst: *mut u8, src: u64, bytes: usize, stream: u64);
    fn cuMemcpyDtoDAsync_v2(dst: u64, src: u64, bytes: usize, stream: u64);
    fn cuMemcpyPeer(dst: u64, of_dst: u64, src: u64, of_src: u64, bytes: usize);
    fn cuMemcpyPeerAsync(dst: u64, of_dst: u64, src: u64, of_src: u64, bytes: usize, stream: u64);
    fn cuMemcpy2D_v2(of: *const Copy2d);
    fn cuMemcpy2DAsync_v2(of: *const Copy2d, stream: u64);
    fn cuMemcpy2DUnaligned_v2(of: *const Copy2d);
    fn cuMemcpy3D_v2(of: *const Copy3d);
    fn cuMemcpy3DAsync_v2(of: *const Copy3d, stream: u64);
    fn cuMemcpyBatchAsync(
        dsts: *const u64, srcs: *const u64, sizes: *const usize, count: usize, attributes: *const [u32; 6],
        first_of: *const usize, kinds: usize, failed: *mut usize, stream: u64,
    );
    fn cuMemsetD8_v2(at: u64, value: u8, count: usize);
    fn cuMemsetD16_v2(at: u64, value: u16, count: usize);
    fn cuMemsetD32_v2(at: u64, value: u32, count: usize);
    fn cuMemsetD32Async(at: u64, value: u32, count: usize, stream: u64);
    fn cuMemsetD2D16_v2(at: u64, pitch: usize, value: u16, width: usize, height: usize);
    fn cuMemsetD2D8Async(at: u64, pitch: usize, value: u8, width: usize, height: usize, stream: u64);
    fn cuStreamCreate(stream: *mut u64, flags: u32);
    fn cuStreamSynchronize(stream: u64);
    fn cuCtxSynchronize();
    fn cuCtxCreate_v2(context: *mut u64, flags: u32, device: i32);
    fn cuCtxSetCurrent(context: u64);
}

const INVALID_VALUE: u32 = 1;
const OUT_OF_MEMORY: u32 = 2;
const INVALID_CONTEXT: u32 = 201;
const NOT_FOUND: u32 = 500;
const ALREADY_REGISTERED: u32 = 712;
const NOT_REGISTERED: u32 = 713;
const NOT_SUPPORTED: u32 = 801;

const OF_HOST: u32 = 1;
const OF_DEVICE: u32 = 2;
const UNIFIED: u32 = 4;
const OF_ARRAY: u32 = 3;

/// Adds 1 to an element of 4 bytes for each thread.
const ADD: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 data) {
    .reg .b64 %a, %o;
    .reg .b32 %t, %v;
    ld.param.u64 %a, [data];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %o, %t, 4;
    add.u64 %a, %a, %o;
    ld.global.u32 %v, [%a];
    add.u32 %v, %v, 1;
    st.global.u32 [%a], %v;
    ret;
}
\0";

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Side2d {
    x: usize,
    y: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Copy2d {
    src: Side2d,
    dst: Side2d,
    width: usize,
    height: usize,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Side3d {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    context: u64,
    pitch: usize,
    height: usize,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Copy3d {
    src: Side3d,
    dst: Side3d,
    width: usize,
    height: usize,
    depth: usize,
}

fn done(result: u32) {
    assert_eq!(result, 0);
}

fn device(bytes: usize) -> u64 {
    let mut address = 0;
    done(cuMemAlloc_v2(&mut address, bytes));
    address
}

fn locked(bytes: usize) -> &'static mut [u8] {
    let mut memory = std::ptr::null_mut();
    done(cuMemHostAlloc(&mut memory, bytes, 0));
    // SAFETY: the library allocated so many zero bytes, which tests free after their last use.
    unsafe { std::slice::from_raw_parts_mut(memory, bytes) }
}

/// Makes a stream that does not wait for the default one.
fn stream() -> u64 {
    let mut made = 0;
    done(cuStreamCreate(&mut made, 1));
    made
}

fn read(address: u64, bytes: usize) -> Vec<u8> {
    let mut out = vec![0xee; bytes];
    done(cuMemcpyDtoH_v2(out.as_mut_ptr(), address, bytes));
    out
}

fn numbers(count: usize) -> Vec<u8> {
    (0..count).map(|number| (number * 7 + number / 256) as u8).collect()
}

fn address(memory: &[u8]) -> u64 {
    memory.as_ptr().expose_provenance() as u64
}

fn attribute<T: Copy + Default>(number: u32, at: u64) -> Result<T, u32> {
    let mut value = T::default();
    match cuPointerGetAttribute(std::ptr::from_mut(&mut value).cast(), number, at) {
        0 => Ok(value),
        failed => Err(failed),
    }
}
