//! Memory of devices and of the host, copies and fills.
//!
//! ```text
//!  device, host, managed, pool (allocate, free) --> table <-- pointer (what an address is)
//!                                                     |
//!                      copy, boxes, batch, fill <-----+  side (the bytes behind an address)
//!
//!  tensor (maps of tensors in memory, for kernels)
//! ```

mod batch;
mod boxes;
mod copy;
mod device;
mod fill;
mod host;
mod managed;
mod pointer;
mod pool;
mod side;
mod table;
mod tensor;
mod traffic;

pub(crate) use boxes::Copy3d;
pub(crate) use copy::Planned as PlannedCopy;
pub(crate) use fill::Planned as PlannedFill;
pub(crate) use table::{Kind, Leak, Memory, end_of, leaked};
pub(crate) use traffic::{Way, copies};

use crate::code::Outcome;
use crate::process::process;

/// The bytes of the widest load of a thread.
const WIDEST: usize = 16;

/// Returns the bytes of memory behind an allocation of so many. NVIDIA's compiler loads three
/// aligned floats as four, because on a GPU no allocation ends within such a load. The checkers
/// know the end that the program asked for.
pub(crate) fn room(bytes: usize) -> Outcome<usize> {
    if process()?.is_checked { Ok(bytes) } else { Ok(bytes.checked_next_multiple_of(WIDEST).unwrap_or(bytes)) }
}
