//! Permutes for users of candle, as operations that our kernels run on candle's stream.
//!
//! candle permutes by another look at the same memory, and `contiguous` moves the elements that
//! this look needs. Here both are one operation, [`permute`]. On a GPU it is our kernel, queued on
//! candle's own stream over its own memory. On a CPU it is candle's copy. Its gradient is the
//! permute by the inverse axes, so a model can train through it.
//!
//! Copy this folder's `src` into your program, or the parts that you need.

#[cfg(feature = "cuda")]
mod cuda;

use candle_core::backend::{BackendDevice, BackendStorage};
use candle_core::shape::Dim;
use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

/// Puts the axes of a tensor in this order and stores it row by row, like
/// `tensor.permute(axes)?.contiguous()?`.
///
/// # Errors
///
/// Returns an error if `axes` does not name every axis once, or if the device fails.
pub fn permute(tensor: &Tensor, axes: &[usize]) -> Result<Tensor> {
    let permute = Permute { axes: axes.to_vec() };
    // As with `contiguous`, a tensor that is contiguous already needs no move.
    let shown = tensor.permute(axes)?;
    if shown.is_contiguous() { Ok(shown) } else { tensor.apply_op1(permute) }
}

/// Exchanges two axes of a tensor and stores it row by row, like
/// `tensor.transpose(a, b)?.contiguous()?`.
///
/// # Errors
///
/// Returns an error if the tensor lacks one of the axes, or if the device fails.
pub fn transpose(tensor: &Tensor, a: impl Dim, b: impl Dim) -> Result<Tensor> {
    let a = a.to_index(tensor.shape(), "transpose")?;
    let b = b.to_index(tensor.shape(), "transpose")?;
    let mut axes: Vec<usize> = (0..tensor.rank()).collect();
    axes.swap(a, b);
    permute(tensor, &axes)
}

/// Stores a tensor row by row, however it was sliced, permuted or broadcast.
///
/// # Errors
///
/// Returns an error if the device fails.
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
