//! Drivers over another driver that state only what they add to it.

use std::fmt;
use std::ptr::NonNull;

use super::call::{Call, Method, Operand as _};
use super::methods::methods;
use super::{
    Copy3d, DeviceInfo, Driver, EventHandle, FunctionHandle, GraphExecHandle, GraphHandle, Graphs, HostKind, Memory,
    ModuleHandle, Modules, Multiprocessors, Peers, StreamHandle, Streams,
};
use crate::counters::Counters;
use crate::error::Result;
use crate::launch_shape::LaunchShape;

/// The result of a driver's method.
pub trait Reply: Sized {
    /// Makes a reply of a number: an address, a handle, or whether the number is not 0. `None` for
    /// memory of the host, of which a number makes none.
    fn of_number(number: u64) -> Option<Self>;

    /// Returns the address or the handle; 0 for another reply.
    fn number(&self) -> u64;
}

macro_rules! replies {
    ($($reply:ty = $of_number:expr, $number:expr;)*) => {$(
        impl Reply for $reply {
            fn of_number(number: u64) -> Option<Self> {
                let of_number: fn(u64) -> Option<Self> = $of_number;
                of_number(number)
            }

            fn number(&self) -> u64 {
                let number: fn(&Self) -> u64 = $number;
                number(self)
            }
        }
    )*};
}

replies! {
    () = |_| Some(()), |_| 0;
    bool = |number| Some(number != 0), |_| 0;
    usize = |number| Some(number as usize), |_| 0;
    f32 = |number| Some(number as f32), |_| 0;
    (u64, u64) = |number| Some((number, number)), |_| 0;
    u64 = Some, |address| *address;
    NonNull<u8> = |_| None, |memory| memory.addr().get() as u64;
    StreamHandle = |number| Some(Self(number)), |handle| handle.0;
    EventHandle = |number| Some(Self(number)), |handle| handle.0;
    ModuleHandle = |number| Some(Self(number)), |handle| handle.0;
    FunctionHandle = |number| Some(Self(number)), |handle| handle.0;
    GraphHandle = |number| Some(Self(number)), |handle| handle.0;
    GraphExecHandle = |number| Some(Self(number)), |handle| handle.0;
}

macro_rules! layer {
    ($($part:ident [$($question:ident: $answer:ty),*] {$(
        $method:ident = $name:ident: $($fn:ident)+ ($($operand:ident: $type:ty $(as $recorded:ty)?),*) -> $reply:ty,
            $waits:ident $why:literal;
    )*})*) => {
        /// A driver over another one, to which every method that a layer does not write itself
        /// passes its call on. Every layer is a [`Driver`].
        ///
        /// # Safety
        ///
        /// An implementation promises:
        ///
        /// - [`Layer::inner`] returns the same driver each time.
        /// - [`Layer::around`], and each method that the layer writes itself, keeps the promises of
        ///   the methods of [`Driver`] and its parts for which it stands.
        ///
        /// The other methods keep these promises, because the inner driver does: each calls the
        /// same method of it with the same operands, so the caller's promises hold there, too.
        pub unsafe trait Layer: fmt::Debug + Send + Sync {
            /// Returns the driver below.
            fn inner(&self) -> &dyn Driver;

            /// Makes a call by `make`, which calls the method of the inner driver. `call` returns
            /// its record. All methods that a layer does not write itself come through here, but
            /// for questions such as [`Driver::info`].
            fn around<R: Reply>(
                &self,
                method: Method,
                call: impl FnOnce() -> Call,
                make: impl FnOnce() -> Result<R>,
            ) -> Result<R> {
                let _ = (method, call);
                make()
            }

            $(
                $(
                    #[doc = concat!("Stands for [`", stringify!($part), "::", stringify!($question), "`].")]
                    fn $question(&self) -> $answer {
                        self.inner().$question()
                    }
                )*
                $(
                    #[doc = concat!("Stands for [`", stringify!($part), "::", stringify!($name), "`].")]
                    ///
                    /// # Safety
                    ///
                    /// As there.
                    #[allow(unused_unsafe, reason = "some methods are safe")]
                    $($fn)+ $name(&self, $($operand: $type),*) -> Result<$reply> {
                        let call = || Call::$method { $($operand: $operand.record()),* };
                        // SAFETY: the same call of the inner driver, for which the caller promises
                        // the same.
                        self.around(Method::$method, call, || unsafe { self.inner().$name($($operand),*) })
                    }
                )*
            )*
        }

        $(
            #[doc(hidden)]
            // SAFETY: the implementation of `Layer` promises it.
            unsafe impl<L: Layer> $part for L {
                $(
                    fn $question(&self) -> $answer {
                        Layer::$question(self)
                    }
                )*
                $(
                    #[allow(unused_unsafe, reason = "some methods are safe")]
                    $($fn)+ $name(&self, $($operand: $type),*) -> Result<$reply> {
                        // SAFETY: the caller promises the same.
                        unsafe { Layer::$name(self, $($operand),*) }
                    }
                )*
            }
        )*
    };
}

methods!(layer);
