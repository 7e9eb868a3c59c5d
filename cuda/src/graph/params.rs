//! The operands of nodes as C passes them.

use std::ffi::{c_int, c_uint};

use super::Graph;
use crate::arguments::{Handle, In, Opaque};
use crate::code::{Failure, Outcome};
use crate::context::Context;
use crate::launch::{Launch, Manner, parameters};
use crate::memory::Copy3d;
use crate::module::Function;
use crate::stream::{Event, OperationParams};

/// `CUDA_KERNEL_NODE_PARAMS_v1`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct KernelParams {
    pub(super) function: Handle<Function>,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) dynamic_shared: c_uint,
    pub(super) each: Opaque,
    pub(super) extra: Opaque,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2` and `_v3`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct KernelParams2 {
    pub(super) first: KernelParams,
    pub(super) kernel: Handle<Function>,
    pub(super) context: Handle<Context>,
}

/// `CUDA_MEMCPY_NODE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CopyNodeParams {
    pub(super) flags: c_int,
    pub(super) reserved: c_int,
    pub(super) context: Handle<Context>,
    pub(super) copy: Copy3d,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct FillParams {
    pub(crate) address: u64,
    pub(crate) pitch: usize,
    pub(crate) value: c_uint,
    pub(crate) element: c_uint,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// `CUDA_MEMSET_NODE_PARAMS_v2`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct FillNodeParams {
    pub(super) fill: FillParams,
    pub(super) context: Handle<Context>,
}

/// `CUDA_HOST_NODE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct HostParams {
    pub(super) function: Option<super::HostFunction>,
    pub(super) data: Opaque,
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct AllocParams {
    pub(super) kind: c_uint,
    pub(super) handles: c_uint,
    pub(super) place: c_uint,
    pub(super) device: c_int,
    pub(super) _security: usize,
    pub(super) most: usize,
    pub(super) usage: u64,
    pub(super) _reserved: [u64; 6],
    pub(super) access: Opaque,
    pub(super) accesses: usize,
    pub(super) bytes: usize,
    pub(super) address: u64,
}

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct OperationsParams {
    pub(super) context: Handle<Context>,
    pub(super) count: c_uint,
    pub(super) list: In<OperationParams>,
    pub(super) flags: c_uint,
}

/// The operands of a node of any kind, behind its kind.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union AnyParams {
    pub(super) kernel: KernelParams2,
    pub(super) copy: CopyNodeParams,
    pub(super) fill: FillNodeParams,
    pub(super) host: HostParams,
    pub(super) child: Handle<Graph>,
    pub(super) event: Handle<Event>,
    pub(super) alloc: AllocParams,
    pub(super) free: u64,
    pub(super) operations: OperationsParams,
    pub(super) words: [u64; 29],
}

const _: () = assert!(size_of::<AnyParams>() == 232 && size_of::<Copy3d>() == 200);
const _: () = assert!(size_of::<AllocParams>() == 120 && size_of::<KernelParams2>() == 72);

/// The front of `CUgraphNodeParams`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct NodeParams {
    pub(super) kind: c_uint,
    pub(super) reserved: [c_int; 3],
    pub(super) any: AnyParams,
}

impl KernelParams2 {
    pub(super) fn of(first: KernelParams) -> Self {
        Self { first, kernel: Handle::NULL, context: Handle::NULL }
    }

    /// Makes the launch that they describe, whose blocks run in this manner.
    pub(super) fn work(self, Manner { is_cooperative, cluster }: Manner) -> Outcome<super::Work> {
        let KernelParams { function, grid, block, dynamic_shared, each, extra } = self.first;
        let handle = if function.is_null() { self.kernel } else { function };
        let function = crate::module::function(handle).map_err(super::as_value)?;
        if !each.is_null() && !extra.is_null() {
            return Err(Failure::value(
                "a kernel node has parameters either one by one or in a buffer; pass one of them",
            ));
        }
        if grid.contains(&0) || block.contains(&0) {
            return Err(Failure::value(format!(
                "a grid of {grid:?} blocks of {block:?} threads is empty; pass positive numbers"
            )));
        }
        let params = parameters(&function, each.operands(), extra.operands())?;
        let shape = warpstride::interp::launch_shape::LaunchShape { grid, block, dynamic_shared };
        let manner = Manner::of(&function, &shape, cluster, is_cooperative)?;
        Ok(Launch::work(handle, function, shape, params, manner))
    }
}
