//! Any layout to any layout, element by element.

use crate::abi::{Axis, MAX_AXES, params};

/// Threads in a block of `elements`.
pub const ELEMENTS_BLOCK: u32 = 256;
/// Elements that one thread of `elements` moves, by their width in bytes: more loads in flight for
/// narrow ones. Whole 16-byte accesses are enough with one a thread, as in `copy`: an H100 moves
/// them faster than four.
pub const fn elements_per_thread(width: u32) -> u32 {
    if width == 16 { 1 } else { 4 }
}

params! {
    /// Parameters of `elements`, which moves every element of one layout to its index in another.
    ///
    /// The digits of `i` in the mixed radix of the extents, `axes[0]` the least, are the indices of
    /// element `i`. Block `b` (x first, then y) moves [`elements_per_thread`] runs of
    /// [`ELEMENTS_BLOCK`] elements, one of each per lane. No two elements share an address in the
    /// destination.
    pub struct ElementsParams {
        /// Device address of the source's element 0.
        pub src: u64,
        /// Device address of the destination's element 0.
        pub dst: u64,
        /// Elements to move: the product of the extents.
        pub len: u64,
        /// Axes in use, from the first.
        pub rank: u64,
        /// The axes, innermost first.
        pub axes: [Axis; MAX_AXES],
    }
}
