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
