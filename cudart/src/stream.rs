//! Streams, events, host functions and captures.

use std::ffi::{c_int, c_uint};

use crate::arguments::{In, Opaque, Out};
use crate::driver::{driver, forward};
use crate::export::export;
use crate::types::{Event, Graph, Node, Stream};

driver! {
    fn cuStreamCreate(stream: Out<Stream>, flags: c_uint);
    fn cuEventCreate(event: Out<Event>, flags: c_uint);
    #[cfg(cuda_12)]
    fn cuStreamGetCaptureInfo_v2(
        stream: Stream, status: Out<c_uint>, id: Out<u64>, graph: Out<Graph>, nodes: Out<Opaque>, count: Out<usize>,
    );
}

forward! {
    /// Makes a stream, with flags.
    fn cudaStreamCreateWithFlags(stream: Out<Stream>, flags: c_uint) = cuStreamCreate;
    /// Makes a stream, with flags and a priority.
    fn cudaStreamCreateWithPriority(stream: Out<Stream>, flags: c_uint, priority: c_int) = cuStreamCreateWithPriority;
    /// Ends a stream, once its work has run.
    fn cudaStreamDestroy(stream: Stream) = cuStreamDestroy_v2;
    /// Returns the priority of a stream.
    fn cudaStreamGetPriority, per_thread cudaStreamGetPriority_ptsz (stream: Stream, priority: Out<c_int>)
        = cuStreamGetPriority;
    /// Returns the flags of a stream.
    fn cudaStreamGetFlags, per_thread cudaStreamGetFlags_ptsz (stream: Stream, flags: Out<c_uint>) = cuStreamGetFlags;
    /// Returns a number that no other stream of the process has.
    fn cudaStreamGetId, per_thread cudaStreamGetId_ptsz (stream: Stream, id: Out<u64>) = cuStreamGetId;
    /// Returns the device of a stream.
    fn cudaStreamGetDevice, per_thread cudaStreamGetDevice_ptsz (stream: Stream, device: Out<c_int>) = cuStreamGetDevice;
    /// Copies the attributes of a stream to another one.
    fn cudaStreamCopyAttributes, per_thread cudaStreamCopyAttributes_ptsz (to: Stream, from: Stream)
        = cuStreamCopyAttributes;
    /// Returns an attribute of a stream.
    fn cudaStreamGetAttribute, per_thread cudaStreamGetAttribute_ptsz (stream: Stream, attribute: c_uint, value: Opaque)
        = cuStreamGetAttribute;
    /// Sets an attribute of a stream.
    fn cudaStreamSetAttribute, per_thread cudaStreamSetAttribute_ptsz (stream: Stream, attribute: c_uint, value: Opaque)
        = cuStreamSetAttribute;
    /// Lets a stream wait for an event.
    fn cudaStreamWaitEvent, per_thread cudaStreamWaitEvent_ptsz (stream: Stream, event: Event, flags: c_uint)
        = cuStreamWaitEvent;
    /// Runs a function of the host, also after a failure.
    fn cudaStreamAddCallback, per_thread cudaStreamAddCallback_ptsz
        (stream: Stream, callback: Opaque, data: Opaque, flags: c_uint) = cuStreamAddCallback;
    /// Runs a function of the host.
    fn cudaLaunchHostFunc, per_thread cudaLaunchHostFunc_ptsz (stream: Stream, function: Opaque, data: Opaque)
        = cuLaunchHostFunc;
    /// Waits for the work of a stream.
    fn cudaStreamSynchronize, per_thread cudaStreamSynchronize_ptsz (stream: Stream) = cuStreamSynchronize;
    /// Returns whether the work of a stream has run.
    fn cudaStreamQuery, per_thread cudaStreamQuery_ptsz (stream: Stream) = cuStreamQuery;
    /// Gives managed memory to a stream.
    fn cudaStreamAttachMemAsync, per_thread cudaStreamAttachMemAsync_ptsz
        (stream: Stream, address: Opaque, bytes: usize, flags: c_uint) = cuStreamAttachMemAsync;
    /// Begins to capture the work of a stream as a graph.
    fn cudaStreamBeginCapture, per_thread cudaStreamBeginCapture_ptsz (stream: Stream, mode: c_uint)
        = cuStreamBeginCapture_v2;
    /// Begins to capture the work of a stream into a graph.
    fn cudaStreamBeginCaptureToGraph, per_thread cudaStreamBeginCaptureToGraph_ptsz
        (stream: Stream, graph: Graph, nodes: In<Node>, edges: Opaque, count: usize, mode: c_uint)
        = cuStreamBeginCaptureToGraph;
    /// Ends a capture, and returns its graph.
    fn cudaStreamEndCapture, per_thread cudaStreamEndCapture_ptsz (stream: Stream, graph: Out<Graph>)
        = cuStreamEndCapture;
    /// Returns whether a capture is under way.
    fn cudaStreamIsCapturing, per_thread cudaStreamIsCapturing_ptsz (stream: Stream, status: Out<c_uint>)
        = cuStreamIsCapturing;
    /// Exchanges the thread's mode of captures.
    fn cudaThreadExchangeStreamCaptureMode(mode: Out<c_uint>) = cuThreadExchangeStreamCaptureMode;
    /// Makes an event, with flags.
    fn cudaEventCreateWithFlags(event: Out<Event>, flags: c_uint) = cuEventCreate;
    /// Records an event in a stream.
    fn cudaEventRecord, per_thread cudaEventRecord_ptsz (event: Event, stream: Stream) = cuEventRecord;
    /// Records an event in a stream, with flags.
    fn cudaEventRecordWithFlags, per_thread cudaEventRecordWithFlags_ptsz (event: Event, stream: Stream, flags: c_uint)
        = cuEventRecordWithFlags;
    /// Returns whether the work before an event has run.
    fn cudaEventQuery(event: Event) = cuEventQuery;
    /// Waits for an event.
    fn cudaEventSynchronize(event: Event) = cuEventSynchronize;
    /// Ends an event.
    fn cudaEventDestroy(event: Event) = cuEventDestroy_v2;
}

#[cfg(not(cuda_12))]
forward! {
    /// Returns the milliseconds between two events.
    fn cudaEventElapsedTime(milliseconds: Out<f32>, start: Event, end: Event) = cuEventElapsedTime;
    /// Returns what a stream captures.
    fn cudaStreamGetCaptureInfo, per_thread cudaStreamGetCaptureInfo_ptsz (
        stream: Stream, status: Out<c_uint>, id: Out<u64>, graph: Out<Graph>, nodes: Out<Opaque>, edges: Out<Opaque>,
        count: Out<usize>,
    ) = cuStreamGetCaptureInfo_v3;
    /// Sets the nodes after which the next captured work comes.
    fn cudaStreamUpdateCaptureDependencies, per_thread cudaStreamUpdateCaptureDependencies_ptsz
        (stream: Stream, nodes: In<Node>, edges: Opaque, count: usize, flags: c_uint)
        = cuStreamUpdateCaptureDependencies_v2;
}

#[cfg(cuda_12)]
forward! {
    /// Returns the milliseconds between two events.
    fn cudaEventElapsedTime as cudaEventElapsedTime_v2(milliseconds: Out<f32>, start: Event, end: Event)
        = cuEventElapsedTime;
    /// Returns what a stream captures.
    fn cudaStreamGetCaptureInfo_v2, per_thread cudaStreamGetCaptureInfo_v2_ptsz (
        stream: Stream, status: Out<c_uint>, id: Out<u64>, graph: Out<Graph>, nodes: Out<Opaque>, count: Out<usize>,
    ) = cuStreamGetCaptureInfo_v2;
    /// Returns what a stream captures, with the data of edges.
    fn cudaStreamGetCaptureInfo_v3, per_thread cudaStreamGetCaptureInfo_v3_ptsz (
        stream: Stream, status: Out<c_uint>, id: Out<u64>, graph: Out<Graph>, nodes: Out<Opaque>, edges: Out<Opaque>,
        count: Out<usize>,
    ) = cuStreamGetCaptureInfo_v3;
    /// Sets the nodes after which the next captured work comes.
    fn cudaStreamUpdateCaptureDependencies, per_thread cudaStreamUpdateCaptureDependencies_ptsz
        (stream: Stream, nodes: In<Node>, count: usize, flags: c_uint) = cuStreamUpdateCaptureDependencies;
    /// Sets these nodes, with the data of edges.
    fn cudaStreamUpdateCaptureDependencies_v2, per_thread cudaStreamUpdateCaptureDependencies_v2_ptsz
        (stream: Stream, nodes: In<Node>, edges: Opaque, count: usize, flags: c_uint)
        = cuStreamUpdateCaptureDependencies_v2;
}

export! {
    /// Makes a stream.
    fn cudaStreamCreate(stream: Out<Stream>) {
        crate::context::ready()?;
        cuStreamCreate(stream, 0)
    }

    /// Makes an event.
    fn cudaEventCreate(event: Out<Event>) {
        crate::context::ready()?;
        cuEventCreate(event, 0)
    }
}

#[cfg(not(cuda_12))]
export! {
    /// Runs a function of the host; the software GPU and the driver wait for it in one way.
    fn cudaLaunchHostFunc_v2, per_thread cudaLaunchHostFunc_v2_ptsz (
        stream: Stream, function: Opaque, data: Opaque, mode: c_uint,
    ) {
        driver! { fn cuLaunchHostFunc(stream: Stream, function: Opaque, data: Opaque); }
        crate::context::ready()?;
        if mode > 1 {
            return Err(crate::code::Failure::value(format!("{mode} is not a way to wait for a host function")));
        }
        cuLaunchHostFunc(stream, function, data)
    }
}

#[cfg(cuda_12)]
export! {
    /// Returns whether a stream captures, and the number of the capture.
    fn cudaStreamGetCaptureInfo, per_thread cudaStreamGetCaptureInfo_ptsz (
        stream: Stream, status: Out<c_uint>, id: Out<u64>,
    ) {
        crate::context::ready()?;
        cuStreamGetCaptureInfo_v2(stream, status, id, Out::NULL, Out::NULL, Out::NULL)
    }
}
