//! The shape of a launch, and what CUDA allows of every shape.

use std::fmt;

/// Shape of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Blocks in x, y, z; each at least 1.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z; each at least 1.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
}

impl fmt::Display for LaunchShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([gx, gy, gz], [bx, by, bz]) = (self.grid, self.block);
        write!(f, "grid {gx} x {gy} x {gz} of blocks {bx} x {by} x {bz}")
    }
}

// Hidden: `DeviceInfo` has the limits of each device.
/// Largest grid extent in x that CUDA allows.
#[doc(hidden)]
pub const MAX_GRID_X: u32 = i32::MAX as u32;
/// Largest grid extent in y and z that CUDA allows.
#[doc(hidden)]
pub const MAX_GRID_YZ: u32 = 65_535;
/// Most threads that CUDA allows in a block.
#[doc(hidden)]
pub const MAX_BLOCK_THREADS: u32 = 1024;
/// Threads of a warp.
#[doc(hidden)]
pub const WARP: u32 = 32;
/// Most bytes of shared memory of a block, static and dynamic together, that a kernel gets without
/// asking for more.
#[doc(hidden)]
pub const MAX_SHARED_BYTES: u32 = 48 << 10;

/// Returns the most bytes of shared memory of a block, static and dynamic together, that a kernel
/// gets on a GPU of this architecture once its program has asked for more than
/// [`MAX_SHARED_BYTES`]. An architecture is a number as in `sm_80`.
#[doc(hidden)]
pub const fn shared_limit(architecture: u32) -> u32 {
    let kib = match architecture {
        0..70 => 48,
        70..75 => 96,
        75..80 => 64,
        80 | 87 | 88 => 163,
        81..90 | 120..130 => 99,
        _ => 227,
    };
    kib << 10
}

/// Returns whether kernels that go by the threads of a block take this number: whole warps, up to
/// the most of a block.
#[doc(hidden)]
pub const fn is_block(threads: u32) -> bool {
    threads > 0 && threads.is_multiple_of(WARP) && threads <= MAX_BLOCK_THREADS
}
