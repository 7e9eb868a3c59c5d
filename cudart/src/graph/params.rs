//! The operands of nodes, for the runtime and for the driver.

use std::ffi::{c_int, c_uint};

use crate::arguments::Opaque;
use crate::code::Outcome;
use crate::context;
use crate::memory::{Copy3d, DriverCopy3d};
use crate::registry::{function, host_of};
use crate::types::{Context, Dim3, Function, Kernel};

/// A kernel of a node, as the runtime has it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct KernelParams {
    host: Opaque,
    grid: Dim3,
    block: Dim3,
    shared: c_uint,
    arguments: Opaque,
    extra: Opaque,
}

/// A kernel of a node, as the driver has it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct DriverKernelParams {
    function: Function,
    grid: Dim3,
    block: Dim3,
    shared: c_uint,
    arguments: Opaque,
    extra: Opaque,
    kernel: Kernel,
    context: Context,
}

/// A copy of a node, as the runtime has it.
#[derive(Clone, Copy)]
#[repr(C)]
struct CopyParams {
    flags: c_int,
    reserved: c_int,
    context: Context,
    copy: Copy3d,
}

/// A copy of a node, as the driver has it.
#[derive(Clone, Copy)]
#[repr(C)]
struct DriverCopyParams {
    flags: c_int,
    reserved: c_int,
    context: Context,
    copy: DriverCopy3d,
}

/// The head of the operands of any node.
#[derive(Clone, Copy)]
#[repr(C)]
struct Head {
    kind: c_uint,
    reserved: [c_uint; 3],
}

/// The bytes of the operands of any node, and those before its own.
const BYTES: usize = 256;
const HEAD: usize = size_of::<Head>();
/// The kinds of nodes whose operands differ between the runtime and the driver.
const KERNEL: c_uint = 0;
const COPY: c_uint = 1;

/// The operands of any node, for the driver: the caller's own, or a translation.
pub(super) enum NodeParams {
    Own(Opaque),
    Translated(Box<[u64; BYTES / 8]>),
}

impl KernelParams {
    /// Returns the kernel for the driver.
    pub(super) fn for_driver(self) -> Outcome<DriverKernelParams> {
        let Self { host, grid, block, shared, arguments, extra } = self;
        let (function, context) = (function(host)?, context::current_or_primary()?);
        Ok(DriverKernelParams { function, grid, block, shared, arguments, extra, kernel: Kernel::NULL, context })
    }
}

impl DriverKernelParams {
    /// No kernel, as a place for the driver's result.
    pub(super) fn none() -> Self {
        let (grid, none) = (Dim3 { x: 0, y: 0, z: 0 }, Opaque::at(0));
        let (function, kernel, context) = (Function::NULL, Kernel::NULL, Context::NULL);
        Self { function, grid, block: grid, shared: 0, arguments: none, extra: none, kernel, context }
    }

    /// Returns the kernel for the runtime.
    pub(super) fn for_runtime(self) -> KernelParams {
        let Self { function, grid, block, shared, arguments, extra, kernel, .. } = self;
        KernelParams { host: host_of(function, kernel), grid, block, shared, arguments, extra }
    }
}

impl NodeParams {
    /// Translates the operands of a node that the caller passes.
    pub(super) fn of(caller: Opaque) -> Outcome<Self> {
        let kind = caller.operands::<Head>().get()?.kind;
        let own = Opaque::at(caller.address().wrapping_add(HEAD as u64));
        let mut words = Box::new([0; BYTES / 8]);
        // The places are aligned for no type, so they are written as bytes.
        let place = Opaque(words.as_mut_ptr().cast::<u8>().wrapping_add(HEAD));
        match kind {
            KERNEL => {
                let params = own.operands::<KernelParams>().get()?.for_driver()?;
                place.results().set(params)?;
            }
            COPY => {
                let CopyParams { flags, reserved, context, copy } = own.operands().get()?;
                let context = if context.is_null() { context::current_or_primary()? } else { context };
                place.results().set(DriverCopyParams { flags, reserved, context, copy: copy.for_driver()? })?;
            }
            _ => return Ok(Self::Own(caller)),
        }
        words[0] = u64::from(kind);
        Ok(Self::Translated(words))
    }

    /// Returns the place of the operands, for a call of the driver.
    pub(super) fn place(&mut self) -> Opaque {
        match self {
            Self::Own(caller) => *caller,
            Self::Translated(words) => Opaque(words.as_mut_ptr().cast()),
        }
    }
}
