//! A driver's methods and the calls of them, as data.

use std::fmt;
use std::ptr::NonNull;

use super::methods::methods;
use super::{
    Copy3d, EventHandle, FunctionHandle, GraphExecHandle, GraphHandle, HostKind, ModuleHandle, Multiprocessors, Place,
    StreamHandle,
};
#[cfg(doc)]
use super::{Graphs, Memory, Modules, Peers, Streams};
use crate::launch_shape::LaunchShape;

/// The type that a record holds for an operand.
macro_rules! recorded {
    ($type:ty) => {
        $type
    };
    ($type:ty as $recorded:ty) => {
        $recorded
    };
}

macro_rules! calls {
    ($($part:ident $questions:tt {$(
        $method:ident = $name:ident: $($fn:ident)+ ($($operand:ident: $type:ty $(as $recorded:ty)?),*) -> $reply:ty,
            $waits:ident $why:literal;
    )*})*) => {
        /// A call of a driver's method, with its operands. `Display` writes it like a call.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Call {$($(
            #[doc = concat!("[`", stringify!($part), "::", stringify!($name), "`].")]
            $method {$(
                /// The operand of this name; for text and parameters of a kernel, their bytes.
                $operand: recorded!($type $(as $recorded)?)
            ),*},
        )*)*}

        /// A method of a driver that can fail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Method {$($(
            #[doc = concat!("[`", stringify!($part), "::", stringify!($name), "`].")]
            $method,
        )*)*}

        impl Call {
            /// Returns the method.
            pub fn method(&self) -> Method {
                match self {
                    $($(Self::$method { .. } => Method::$method,)*)*
                }
            }

            /// Returns the method's name.
            pub fn name(&self) -> &'static str {
                self.method().name()
            }
        }

        impl Method {
            /// Every method that can fail.
            pub const ALL: &[Self] = &[$($(Self::$method,)*)*];

            /// Returns its name.
            pub fn name(self) -> &'static str {
                match self {
                    $($(Self::$method => stringify!($name),)*)*
                }
            }
        }

        impl fmt::Display for Call {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {$($(
                    Self::$method { $($operand),* } => {
                        let mut operands = f.debug_struct(stringify!($name));
                        $(operands.field(stringify!($operand), $operand);)*
                        operands.finish()
                    }
                )*)*}
            }
        }
    };
}

methods!(calls);

/// An address of device or host memory, shown in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A copied box of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedBox {
    /// Device or host address.
    pub dst: Address,
    /// Device or host address.
    pub src: Address,
    /// Bytes of a row, rows of a slice, and slices.
    pub extents: [usize; 3],
}

/// An operand, and what a record holds for it.
pub(super) trait Operand<R> {
    /// Returns what a record holds.
    fn record(self) -> R;
}

impl<T> Operand<T> for T {
    fn record(self) -> T {
        self
    }
}

macro_rules! operands {
    ($($type:ty as $recorded:ty = $record:expr;)*) => {$(
        impl Operand<$recorded> for $type {
            fn record(self) -> $recorded {
                let record: fn($type) -> $recorded = $record;
                record(self)
            }
        }
    )*};
}

operands! {
    u64 as Address = Address;
    *const u8 as Address = |memory| Address(memory.addr() as u64);
    *mut u8 as Address = |memory| Address(memory.addr() as u64);
    NonNull<u8> as Address = |memory| Address(memory.addr().get() as u64);
    Place as Address = |place| match place {
        Place::Device(address) => Address(address),
        Place::Host(memory) => memory.record(),
    };
    &Copy3d as CopiedBox = |copy| CopiedBox {
        dst: copy.dst.place.record(),
        src: copy.src.place.record(),
        extents: [copy.width, copy.height, copy.depth],
    };
    &str as usize = str::len;
    &str as String = str::to_owned;
    &[u8] as usize = <[u8]>::len;
    &LaunchShape as LaunchShape = |shape| *shape;
}
