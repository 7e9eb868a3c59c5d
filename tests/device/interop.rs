//! Memory of cudarc, on its streams.

use std::mem::forget;
use std::sync::Arc;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DeviceRepr};
#[cfg(feature = "interp")]
use warpstride::device::Backend;
use warpstride::device::Device;
use warpstride::interop::cudarc::{copy_into, stream, transpose_into};
use warpstride::layout::Layout;
use warpstride::roofline::measure;
use warpstride::{ErrorKind, ops};

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::matrices::{Random, Sample, at_every_width};
use crate::naive;

cases! {
    NvidiaGpu any_layout_of_cudarcs_slices,
    NvidiaGpu cudarc_waits_for_us_and_we_for_cudarc,
    NvidiaGpu what_is_not_of_the_streams_context_is_refused,
    NvidiaGpu what_does_not_lie_in_its_slice_is_refused,
    NvidiaGpu cudarcs_work_is_timed_on_its_stream,
    NvidiaGpu cudarcs_capture_refuses_work_of_ours,
}

/// Opens a context of cudarc and a device on the setup's GPU.
fn open() -> (Arc<CudaContext>, Device) {
    let context = CudaContext::new(0).unwrap();
    let device = Device::from_cudarc(&context).unwrap();
    (context, device)
}

/// Layouts of any rank, in the middle of larger slices, whose other elements must stay.
fn any_layout_of_cudarcs_slices(_setup: &Setup) {
    fn run<T: Sample + DeviceRepr>(context: &Arc<CudaContext>, device: &Device, random: &mut Random) {
        let shape = random.shape(1 << 16);
        let (src_layout, dst_layout) = (random.readable_array(&shape), random.array(&shape));
        let (before, after) = (random.below(5), 1 + random.below(5));
        let src: Vec<T> = random.elements(before + src_layout.storage_len() + after);
        let mut expected: Vec<T> = random.elements(before + dst_layout.storage_len() + after);
        let stream = context.new_stream().unwrap();
        let source = stream.clone_htod(&src).unwrap();
        let mut result = stream.clone_htod(&expected).unwrap();
        naive::copy(&src[before..], &src_layout, &mut expected[before..], &dst_layout);
        copy_into(device, source.slice(before..), &src_layout, result.slice_mut(before..), &dst_layout, &stream)
            .unwrap();
        let agrees = stream.clone_dtoh(&result).unwrap() == expected;
        assert!(agrees, "{}: {src_layout:?} to {dst_layout:?}, {before} elements behind the start", T::DTYPE);
    }
    let (context, device) = open();
    let mut random = Random::new(1);
    for _ in 0..200 {
        at_every_width!(run(&context, &device, &mut random));
    }
}

/// Uploads on one stream, transposes and transposes back on others, and drops each slice right
/// after it is read.
fn cudarc_waits_for_us_and_we_for_cudarc(_setup: &Setup) {
    let (context, device) = open();
    let shape @ [rows, cols] = [1031, 517];
    let streams = [(); 4].map(|()| context.new_stream().unwrap());
    for round in 0..64 {
        let elements: Vec<u32> = Random::new(round).elements(rows * cols);
        let mut matrix = streams[0].clone_htod(&elements).unwrap();
        for stream in &streams[1..] {
            let mut transposed = streams[0].alloc_zeros::<u32>(rows * cols).unwrap();
            transpose_into(&device, matrix.as_view(), shape, transposed.as_view_mut(), stream).unwrap();
            let mut back = streams[0].alloc_zeros::<u32>(rows * cols).unwrap();
            transpose_into(&device, transposed.as_view(), [cols, rows], back.as_view_mut(), &streams[0]).unwrap();
            matrix = back;
        }
        assert!(streams[1].clone_dtoh(&matrix).unwrap() == elements, "round {round}");
    }
}

fn cudarcs_work_is_timed_on_its_stream(_setup: &Setup) {
    let (context, device) = open();
    for theirs in [context.new_stream().unwrap(), context.default_stream()] {
        let source = theirs.clone_htod(&[7_u8; 1000]).unwrap();
        let mut result = theirs.alloc_zeros::<u8>(1000).unwrap();
        let ours = stream(&device, &theirs).unwrap();
        let mut queued = 0;
        let timing = measure::time(&device, &ours, 20, || {
            queued += 1;
            Ok(theirs.memcpy_dtod(&source, &mut result)?)
        })
        .unwrap();
        assert_eq!(timing.samples_ms().len(), 20);
        assert!(queued >= 24 && timing.median_ms() > 0.0);
        // The stream stays cudarc's.
        drop(ours);
        assert_eq!(theirs.clone_dtoh(&result).unwrap(), [7; 1000]);
    }
    #[cfg(feature = "interp")]
    {
        refusal(stream(&Device::open(Backend::Soft).unwrap(), &context.default_stream()))
            .says("open it by Device::from_cudarc");
    }
}

/// A graph of cudarc keeps no memory of ours.
fn cudarcs_capture_refuses_work_of_ours(_setup: &Setup) {
    let (context, device) = open();
    let theirs = context.new_stream().unwrap();
    let ours = stream(&device, &theirs).unwrap();
    let array = device.array(&[3], &[1.0_f32, 2.0, 3.0]).unwrap();
    let mut result = device.array(&[3], &[0.0_f32; 3]).unwrap();
    let fill = device.default_stream().capture(|s| ops::fill_into(7.0, &mut result, s)).unwrap();
    theirs.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    for refused in [ops::scale_into(2.0, &array, &mut result, &ours), fill.launch(&ours)] {
        refusal(refused).of(ErrorKind::InvalidArgument).says("is captured by its owner").says("`Stream::capture`");
    }
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let captured = theirs.end_capture(flags).unwrap();
    ops::scale_into(2.0, &array, &mut result, &ours).unwrap();
    assert!(captured.is_none_or(|graph| graph.launch().is_ok()));
    assert_eq!(theirs.synchronize(), Ok(()));
    assert_eq!(result.to_vec().unwrap(), [2.0, 4.0, 6.0]);
}

fn what_is_not_of_the_streams_context_is_refused(_setup: &Setup) {
    let (context, device) = open();
    let stream = context.new_stream().unwrap();
    let source = stream.clone_htod(&[1_u8; 6]).unwrap();
    let mut result = stream.alloc_zeros::<u8>(6).unwrap();
    let again = CudaContext::new(0).unwrap();
    let stranger = again.new_stream().unwrap();
    let other = stranger.clone_htod(&[1_u8; 6]).unwrap();
    let mut refused = |device: &Device, source: &CudaSlice<u8>, stream: &CudaStream, expected: &str| {
        refusal(transpose_into(device, source.as_view(), [2, 3], result.as_view_mut(), stream))
            .of(ErrorKind::InvalidArgument)
            .says(expected);
    };
    refused(&device, &other, &stream, "the source and the stream are of two CudaContexts");
    refused(&device, &source, &stranger, "the source and the stream are of two CudaContexts");
    refused(&device, &other, &stranger, "the destination and the stream are of two CudaContexts");
    #[cfg(feature = "interp")]
    refused(&Device::open(Backend::Soft).unwrap(), &source, &stream, "open it by Device::from_cudarc");
    // SAFETY: a live context of this device; it is never dropped, and so never destroyed twice.
    let not_primary = unsafe { CudaContext::from_raw_context(0, context.cu_device(), context.cu_ctx()) }.unwrap();
    let error = Device::from_cudarc(&not_primary).unwrap_err();
    forget(not_primary);
    assert!(error.to_string().contains("is not its primary context"), "{error}");
}

fn what_does_not_lie_in_its_slice_is_refused(_setup: &Setup) {
    let (context, device) = open();
    let stream = context.default_stream();
    let source = stream.clone_htod(&[1_u8, 2, 3, 4, 5, 6]).unwrap();
    let mut result = stream.alloc_zeros::<u8>(6).unwrap();
    let (small, large) = (Layout::row_major(&[2, 3]).unwrap(), Layout::new(&[2, 3], &[3, 1], 1, 7).unwrap());
    for (from, to) in [(&small, &large), (&large, &small)] {
        refusal(copy_into(&device, source.as_view(), from, result.as_view_mut(), to, &stream))
            .says("is of a storage of 7 elements and its slice has 6");
    }
    refusal(transpose_into(&device, source.slice(1..), [2, 3], result.as_view_mut(), &stream))
        .says("the source of 5 elements cannot be seen as shape [2, 3]");
    refusal(transpose_into(&device, source.as_view(), [2, 3], result.slice_mut(..5), &stream))
        .says("the destination of 5 elements");
    assert_eq!(stream.clone_dtoh(&result).unwrap(), [0; 6], "refused, and yet written");
}
