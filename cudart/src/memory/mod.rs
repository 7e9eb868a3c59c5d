//! Memory of devices and of the host, and copies between them.

mod allocate;
mod array;
mod boxes;
mod copy;
mod fill;
mod managed;
mod pointer;
mod pool;
mod symbol;

pub(crate) use boxes::{Copy3d, DriverCopy3d};
pub(crate) use symbol::bytes_of;
