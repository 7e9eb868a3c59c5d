//! The attributes of devices: those of the GPU that is modelled, without what the software GPU does
//! not do.

use std::ffi::{c_int, c_uint};

use warpstride::interp::launch_shape::shared_limit;

use crate::device::identity::{Board, DOMAIN, bus};
use crate::process::Gpu;

/// Registers of a multiprocessor, which one block may take: the same since Kepler.
const REGISTERS: c_int = 65_536;

/// Returns an attribute of a device by its number in `CUdevice_attribute`; `None` if CUDA 13.0 has
/// no such attribute.
pub(crate) fn attribute(gpu: &Gpu, number: c_uint) -> Option<c_int> {
    if !(1..=147).contains(&number) {
        return None;
    }
    let found = of_blocks(number).or_else(|| of_model(gpu, number)).or_else(|| of_software(number));
    // An attribute that no function above has is of something that the software GPU does not do,
    // such as textures, IPC, virtual memory management and tensor maps: it cannot, or has a size of
    // 0.
    Some(found.unwrap_or(0))
}

/// The limits of blocks and grids, which all GPUs share.
fn of_blocks(number: c_uint) -> Option<c_int> {
    Some(match number {
        // Threads of a block, and along its axes.
        1..=3 => 1024,
        4 => 64,
        // Blocks of a grid along its axes.
        5 => c_int::MAX,
        6 | 7 => 65_535,
        // Shared memory of a block that asks for no more, constant memory, and threads of a warp.
        8 => 48 << 10,
        9 => 64 << 10,
        10 => 32,
        // Pitch of a copy.
        11 => c_int::MAX,
        // Registers of a block and of a multiprocessor.
        12 | 82 => REGISTERS,
        // Alignment of textures, and of the pitch of those over memory: programs align buffers by
        // them.
        14 => 512,
        51 => 32,
        _ => return None,
    })
}

/// Returns an attribute of the modelled GPU.
fn of_model(gpu: &Gpu, number: c_uint) -> Option<c_int> {
    let model = &gpu.model;
    let board = Board::of(model);
    let known = match number {
        // The clock in kHz.
        13 => (model.sm_ghz * 1e6).round() as u32,
        16 => model.multiprocessors,
        // The number of the PCI bus, and its domain.
        33 => bus(gpu),
        50 => DOMAIN,
        // The memory's clock in kHz, and the width of its bus in bits.
        36 => board.memory_khz,
        37 => board.bus_bits,
        38 => model.l2_mib << 20,
        // Threads of a multiprocessor.
        39 => 32 * model.warps,
        75 => model.architecture / 10,
        76 => model.architecture % 10,
        // Shared memory of a multiprocessor.
        81 => model.shared_bytes,
        // Arithmetic with f32 over that with f64.
        87 => board.double_ratio,
        // Shared memory of a block that asks for more.
        97 => shared_limit(model.architecture),
        106 => model.blocks,
        // Shared memory that the system takes of each block.
        111 if model.architecture >= 80 => 1024,
        _ => return None,
    };
    c_int::try_from(known).ok()
}

/// Returns an attribute that says what the software GPU does.
fn of_software(number: c_uint) -> Option<c_int> {
    /// The attributes that are true.
    const DOES: [c_uint; 16] = [
        15,  // copies during kernels
        19,  // maps host memory
        31,  // concurrent kernels
        41,  // one address space with the host
        78,  // priorities of streams
        79,  // L1 cache of global memory
        80,  // L1 cache of local memory
        83,  // managed memory
        89,  // managed memory while kernels run
        90,  // preemption
        91,  // the host's pointers to registered memory
        95,  // cooperative launches
        99,  // registration of host memory
        115, // pools of memory
        122, // waits for and writes of 64-bit words in streams
        123, // waits for words without some bits
    ];
    Some(match number {
        _ if DOES.contains(&number) => 1,
        // Copies at the same time.
        40 => 3,
        // Domains of memory ordering.
        126 => 1,
        // The NUMA nodes of the memory, and of the host next to the device: neither has one.
        131 | 134 => -1,
        _ => return None,
    })
}
