//! # For users of candle: permutes as operations of candle's, moved by us on its stream
//!
//! candle permutes by another look at the same memory, and `contiguous` moves what that look needs. Here both are one
//! operation, [`permute`]: on a GPU it is our kernel, queued on candle's own stream over its own memory, and on a CPU it is
//! candle's copy. It has a gradient, the permute by the inverse axes, so that a model can train through it.
//!
//! Copy this folder's `src` into your program, or what you need of it.

#[cfg(feature = "cuda")]
mod cuda;

use candle_core::backend::{BackendDevice, BackendStorage};
use candle_core::shape::Dim;
use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

/// The tensor with its axes in this order, in memory row by row: `tensor.permute(axes)?.contiguous()?`.
///
/// # Errors
///
/// Where `axes` does not name every axis once, and what the device fails with.
pub fn permute(tensor: &Tensor, axes: &[usize]) -> Result<Tensor> {
    let permute = Permute { axes: axes.to_vec() };
    // What candle can show as it is needs no move, as with `contiguous`.
    let shown = tensor.permute(axes)?;
    if shown.is_contiguous() { Ok(shown) } else { tensor.apply_op1(permute) }
}

/// The tensor with two axes exchanged, in memory row by row: `tensor.transpose(a, b)?.contiguous()?`.
///
/// # Errors
///
/// Where the tensor lacks one of the axes, and what the device fails with.
pub fn transpose(tensor: &Tensor, a: impl Dim, b: impl Dim) -> Result<Tensor> {
    let a = a.to_index(tensor.shape(), "transpose")?;
    let b = b.to_index(tensor.shape(), "transpose")?;
    let mut axes: Vec<usize> = (0..tensor.rank()).collect();
    axes.swap(a, b);
    permute(tensor, &axes)
}

/// The tensor in memory row by row, however it was sliced, permuted or broadcast.
///
/// # Errors
///
/// What the device fails with.
pub fn contiguous(tensor: &Tensor) -> Result<Tensor> {
    permute(tensor, &(0..tensor.rank()).collect::<Vec<_>>())
}

/// Moves a tensor's elements so that its axes lie in another order.
struct Permute {
    axes: Vec<usize>,
}

impl CustomOp1 for Permute {
    fn name(&self) -> &'static str {
        "warpstride-permute"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let from = layout.permute(&self.axes)?;
        let mut moved = storage.device().zeros_impl(from.shape(), storage.dtype())?;
        storage.copy_strided_src(&mut moved, 0, &from)?;
        Ok((moved, from.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let from = layout.permute(&self.axes)?;
        Ok((cuda::contiguous(storage, &from)?, from.shape().clone()))
    }

    fn bwd(&self, _arg: &Tensor, _res: &Tensor, grad_res: &Tensor) -> Result<Option<Tensor>> {
        let mut inverse = vec![0; self.axes.len()];
        for (to, &from) in self.axes.iter().enumerate() {
            inverse[from] = to;
        }
        permute(grad_res, &inverse).map(Some)
    }
}
