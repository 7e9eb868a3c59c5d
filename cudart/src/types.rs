//! Structures of `driver_types.h` that are passed by value or in parts, and what handles name.

use crate::arguments::{Handle, Opaque};

/// Numbers in three dimensions, as of a grid of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Dim3 {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

/// The bytes or elements of a box in three dimensions.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Extent {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// A place within a box.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Pos {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
}

/// Memory of rows: the bytes from row to row, the bytes of a row, and the rows of a slice.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct PitchedPtr {
    pub(crate) pointer: Opaque,
    pub(crate) pitch: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// A place of memory: a device or the host.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Location {
    pub(crate) kind: u32,
    pub(crate) id: i32,
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident $object:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) type $name = Handle<$object>;
        pub(crate) enum $object {}
    )*};
}

handles! {
    /// A stream of the driver.
    Stream StreamObject;
    /// An event of the driver.
    Event EventObject;
    /// A graph of the driver.
    Graph GraphObject;
    /// A node of a graph.
    Node NodeObject;
    /// A graph that can be launched.
    Exec ExecObject;
    /// A pool of memory.
    Pool PoolObject;
    /// A library of the driver.
    Library LibraryObject;
    /// A kernel of a library.
    Kernel KernelObject;
    /// A function: a kernel in a context.
    Function FunctionObject;
    /// A context of the driver.
    Context ContextObject;
    /// An object of a program that graphs retain.
    UserObject UserObjectObject;
}
