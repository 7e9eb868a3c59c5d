//! Moves candle's tensors on a GPU: our kernels on cudarc's memory and stream, which candle uses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::CudaStorageSlice as Slice;
use candle_core::cuda_backend::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DeviceRepr,
};
use candle_core::{CudaStorage, Error, Layout, Result};
use warpstride::device::Device;
use warpstride::element::Element;
use warpstride::interop::cudarc::copy_into;

/// Copies the elements that `from` shows into new memory, row by row.
pub(crate) fn contiguous(storage: &CudaStorage, from: &Layout) -> Result<CudaStorage> {
    let device = storage.device().clone();
    let stream = device.cuda_stream();
    let slice = match &storage.slice {
        Slice::U8(src) => Slice::U8(moved(src, from, &stream)?),
        Slice::U32(src) => Slice::U32(moved(src, from, &stream)?),
        Slice::I16(src) => Slice::I16(moved(src, from, &stream)?),
        Slice::I32(src) => Slice::I32(moved(src, from, &stream)?),
        Slice::I64(src) => Slice::I64(moved(src, from, &stream)?),
        Slice::BF16(src) => Slice::BF16(moved(src, from, &stream)?),
        Slice::F16(src) => Slice::F16(moved(src, from, &stream)?),
        Slice::F32(src) => Slice::F32(moved(src, from, &stream)?),
        Slice::F64(src) => Slice::F64(moved(src, from, &stream)?),
        Slice::F8E4M3(src) => Slice::F8E4M3(moved_as_bytes(src, from, &stream)?),
        Slice::F8E8M0(src) => Slice::F8E8M0(moved(src, from, &stream)?),
        // Several elements share a byte.
        Slice::F6E2M3(_) | Slice::F6E3M2(_) | Slice::F4(_) => {
            let dtype = storage.dtype();
            candle_core::bail!("warpstride moves elements of whole bytes, and {dtype:?} has none; convert it first")
        }
    };
    Ok(CudaStorage { slice, device })
}

fn moved<T: Element + DeviceRepr>(src: &CudaSlice<T>, from: &Layout, stream: &Arc<CudaStream>) -> Result<CudaSlice<T>> {
    let mut dst = room(from, stream)?;
    queue(src.as_view(), from, dst.as_view_mut(), stream)?;
    Ok(dst)
}

/// Moves a type of one byte that warpstride does not know.
fn moved_as_bytes<T: DeviceRepr>(src: &CudaSlice<T>, from: &Layout, stream: &Arc<CudaStream>) -> Result<CudaSlice<T>> {
    const { assert!(size_of::<T>() == 1) };
    let mut dst = room::<T>(from, stream)?;
    let (src_len, dst_len) = (src.len(), dst.len());
    // SAFETY: every element is a byte, and the copy reads bytes.
    let bytes = unsafe { src.transmute(src_len) };
    // SAFETY: as above, and the copy writes elements of the same type.
    let to = unsafe { dst.transmute_mut(dst_len) };
    queue::<u8>(bytes.expect("the same length"), from, to.expect("the same length"), stream)?;
    Ok(dst)
}

/// Allocates memory for the elements that the layout shows.
fn room<T: DeviceRepr>(from: &Layout, stream: &Arc<CudaStream>) -> Result<CudaSlice<T>> {
    let room = match from.shape().elem_count() {
        0 => stream.null(),
        // SAFETY: the next queued copy writes every element; if it is refused, the memory is
        // dropped without a read.
        len => unsafe { stream.alloc(len) },
    };
    room.map_err(Error::wrap)
}

fn queue<T: Element>(src: CudaView<'_, T>, from: &Layout, dst: CudaViewMut<'_, T>, stream: &CudaStream) -> Result<()> {
    use warpstride::layout::Layout;

    if dst.len() == 0 {
        return Ok(());
    }
    // candle's strides count elements of slices, which have no more than `isize::MAX` bytes.
    let strides: Vec<isize> = from.stride().iter().map(|&stride| stride as isize).collect();
    let src_layout = Layout::new(from.dims(), &strides, from.start_offset(), src.len()).map_err(Error::wrap)?;
    let dst_layout = Layout::row_major(from.dims()).map_err(Error::wrap)?;
    let gpu = gpu(stream.context())?;
    copy_into(&gpu, src, &src_layout, dst, &dst_layout, stream).map_err(Error::wrap)
}

/// Opens our side of candle's GPU once, and keeps the kernels that it has loaded.
fn gpu(context: &CudaContext) -> Result<Device> {
    static OPEN: Mutex<Option<HashMap<usize, Device>>> = Mutex::new(None);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = open.get_or_insert_default();
    if let Some(gpu) = open.get(&context.ordinal()) {
        return Ok(gpu.clone());
    }
    let gpu = Device::from_cudarc(context).map_err(Error::wrap)?;
    open.insert(context.ordinal(), gpu.clone());
    Ok(gpu)
}
