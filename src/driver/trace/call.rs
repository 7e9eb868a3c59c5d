//! The calls that a trace records, as data.

use std::fmt;

use crate::driver::{EventHandle, FunctionHandle, GraphExecHandle, GraphHandle, HostKind, ModuleHandle, StreamHandle};
#[cfg(doc)]
use crate::driver::{Graphs, Memory, Modules, Streams};
use crate::launch_shape::LaunchShape;

macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident = $name:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty),* };)*) => {
        /// A call of a driver's method, with its operands. `Display` writes it like a call.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Call {
            $($(#[$doc])* $call { $($(#[$field_doc])* $field: $type),* },)*
        }

        /// A method of a driver that can fail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[$doc])* $call,)*
        }

        impl Call {
            /// Returns the method.
            pub fn method(&self) -> Method {
                match self {
                    $(Self::$call { .. } => Method::$call,)*
                }
            }

            /// Returns the method's name.
            pub fn name(&self) -> &'static str {
                self.method().name()
            }
        }

        impl Method {
            /// Every method that can fail.
            pub const ALL: &[Self] = &[$(Self::$call),*];

            /// Returns its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$call => $name,)*
                }
            }
        }

        impl fmt::Display for Call {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$call { $($field),* } => {
                        let mut operands = f.debug_struct($name);
                        $(operands.field(stringify!($field), $field);)*
                        operands.finish()
                    })*
                }
            }
        }
    };
}

calls! {
    /// [`Memory::memory`].
    Memory = "memory" {};
    /// [`Memory::reset_persisting_l2`].
    ResetPersistingL2 = "reset_persisting_l2" {};
    /// [`Memory::alloc`].
    Alloc = "alloc" {
        /// Requested bytes.
        bytes: u64
    };
    /// [`Memory::free`].
    Free = "free" {
        /// The allocation.
        address: Address
    };
    /// [`Memory::pool_alloc`].
    PoolAlloc = "pool_alloc" {
        /// Requested bytes.
        bytes: u64,
        /// The stream.
        stream: StreamHandle
    };
    /// [`Memory::pool_free`].
    PoolFree = "pool_free" {
        /// The allocation.
        address: Address,
        /// The stream.
        stream: StreamHandle
    };
    /// [`Memory::pool_trim`].
    PoolTrim = "pool_trim" {
        /// Bytes that the pool keeps.
        keep: u64
    };
    /// [`Memory::alloc_host`].
    AllocHost = "alloc_host" {
        /// Requested bytes.
        bytes: usize,
        /// The kind of memory.
        kind: HostKind
    };
    /// [`Memory::free_host`].
    FreeHost = "free_host" {
        /// The allocation.
        memory: Address
    };
    /// [`Memory::register_host`].
    RegisterHost = "register_host" {
        /// Host address.
        memory: Address,
        /// Bytes.
        bytes: usize
    };
    /// [`Memory::unregister_host`].
    UnregisterHost = "unregister_host" {
        /// Host address.
        memory: Address
    };
    /// [`Memory::copy_h2d`].
    CopyH2d = "copy_h2d" {
        /// Device address.
        dst: Address,
        /// Host address.
        src: Address,
        /// Bytes.
        bytes: usize,
        /// The stream.
        stream: StreamHandle
    };
    /// [`Memory::copy_d2h`].
    CopyD2h = "copy_d2h" {
        /// Host address.
        dst: Address,
        /// Device address.
        src: Address,
        /// Bytes.
        bytes: usize,
        /// The stream.
        stream: StreamHandle
    };
    /// [`Memory::copy_d2d`].
    CopyD2d = "copy_d2d" {
        /// Device address.
        dst: Address,
        /// Device address.
        src: Address,
        /// Bytes.
        bytes: u64,
        /// The stream.
        stream: StreamHandle
    };
    /// [`Memory::copy_3d`].
    Copy3d = "copy_3d" {
        /// Device or host address.
        dst: Address,
        /// Device or host address.
        src: Address,
        /// Bytes of a row, rows of a slice, and slices.
        extents: [usize; 3],
        /// The stream.
        stream: StreamHandle
    };
    /// [`Memory::fill`].
    Fill = "fill" {
        /// Device address.
        dst: Address,
        /// The new value of every byte.
        value: u8,
        /// Bytes.
        bytes: u64,
        /// The stream.
        stream: StreamHandle
    };
    /// [`Streams::stream_create`].
    StreamCreate = "stream_create" {};
    /// [`Streams::stream_destroy`].
    StreamDestroy = "stream_destroy" {
        /// The stream.
        stream: StreamHandle
    };
    /// [`Streams::stream_synchronize`].
    StreamSynchronize = "stream_synchronize" {
        /// The stream.
        stream: StreamHandle
    };
    /// [`Streams::event_create`].
    EventCreate = "event_create" {};
    /// [`Streams::event_destroy`].
    EventDestroy = "event_destroy" {
        /// The event.
        event: EventHandle
    };
    /// [`Streams::event_record`].
    EventRecord = "event_record" {
        /// The event.
        event: EventHandle,
        /// The stream.
        stream: StreamHandle
    };
    /// [`Streams::event_wait`].
    EventWait = "event_wait" {
        /// The awaited event.
        event: EventHandle,
        /// The waiting stream.
        stream: StreamHandle
    };
    /// [`Streams::event_query`].
    EventQuery = "event_query" {
        /// The event.
        event: EventHandle
    };
    /// [`Streams::event_synchronize`].
    EventSynchronize = "event_synchronize" {
        /// The event.
        event: EventHandle
    };
    /// [`Streams::event_elapsed_ms`].
    EventElapsedMs = "event_elapsed_ms" {
        /// The first event.
        start: EventHandle,
        /// The second event.
        end: EventHandle
    };
    /// [`Modules::module_load`].
    ModuleLoad = "module_load" {
        /// Bytes of PTX.
        bytes: usize
    };
    /// [`Modules::module_unload`].
    ModuleUnload = "module_unload" {
        /// The module.
        module: ModuleHandle
    };
    /// [`Modules::function`].
    Function = "function" {
        /// The module.
        module: ModuleHandle,
        /// The entry.
        name: String
    };
    /// [`Modules::launch`].
    Launch = "launch" {
        /// The kernel.
        function: FunctionHandle,
        /// Its grid and blocks.
        shape: LaunchShape,
        /// Bytes of parameters.
        params: usize,
        /// The stream.
        stream: StreamHandle
    };
    /// [`Graphs::capture_begin`].
    CaptureBegin = "capture_begin" {
        /// The stream.
        stream: StreamHandle
    };
    /// [`Graphs::capture_end`].
    CaptureEnd = "capture_end" {
        /// The stream.
        stream: StreamHandle
    };
    /// [`Graphs::graph_nodes`].
    GraphNodes = "graph_nodes" {
        /// The graph.
        graph: GraphHandle
    };
    /// [`Graphs::graph_destroy`].
    GraphDestroy = "graph_destroy" {
        /// The graph.
        graph: GraphHandle
    };
    /// [`Graphs::graph_instantiate`].
    GraphInstantiate = "graph_instantiate" {
        /// The graph.
        graph: GraphHandle
    };
    /// [`Graphs::graph_update`].
    GraphUpdate = "graph_update" {
        /// The executable graph.
        exec: GraphExecHandle,
        /// The graph with the new operands.
        graph: GraphHandle
    };
    /// [`Graphs::graph_launch`].
    GraphLaunch = "graph_launch" {
        /// The executable graph.
        exec: GraphExecHandle,
        /// The stream.
        stream: StreamHandle
    };
    /// [`Graphs::graph_exec_destroy`].
    GraphExecDestroy = "graph_exec_destroy" {
        /// The executable graph.
        exec: GraphExecHandle
    };
}

/// An address of device or host memory, shown in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
