//! Captures and graphs.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::thread;

use crate::api::{Context, declare, kernel, launch};
use crate::streams::{Log, entry, new_event, new_stream, note, taken};

declare! {
    fn cuCtxSetCurrent(context: u64);
    fn cuCtxSynchronize();
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize);
    fn cuMemcpyHtoD_v2(dst: u64, src: *const u8, bytes: usize);
    fn cuMemcpyDtoH_v2(dst: *mut u8, src: u64, bytes: usize);
    fn cuStreamDestroy_v2(stream: u64);
    fn cuStreamSynchronize(stream: u64);
    fn cuStreamQuery(stream: u64);
    fn cuStreamWaitEvent(stream: u64, event: u64, flags: u32);
    fn cuEventRecord(event: u64, stream: u64);
    fn cuEventQuery(event: u64);
    fn cuEventSynchronize(event: u64);
    fn cuStreamBeginCapture_v2(stream: u64, mode: u32);
    fn cuStreamBeginCaptureToGraph(
        stream: u64, graph: u64, nodes: *const u64, data: *const c_void, count: usize, mode: u32,
    );
    fn cuStreamEndCapture(stream: u64, graph: *mut u64);
    fn cuStreamIsCapturing(stream: u64, status: *mut u32);
    fn cuStreamGetCaptureInfo_v2(
        stream: u64, status: *mut u32, id: *mut u64, graph: *mut u64, nodes: *mut *const u64, count: *mut usize,
    );
    fn cuStreamUpdateCaptureDependencies(stream: u64, nodes: *const u64, count: usize, flags: u32);
    fn cuThreadExchangeStreamCaptureMode(mode: *mut u32);
}

declare! {
    fn cuGraphCreate(graph: *mut u64, flags: u32);
    fn cuGraphDestroy(graph: u64);
    fn cuGraphClone(copy: *mut u64, graph: u64);
    fn cuGraphNodeFindInClone(node: *mut u64, original: u64, copy: u64);
    fn cuGraphAddKernelNode_v2(
        node: *mut u64, graph: u64, behind: *const u64, count: usize, params: *const KernelParams,
    );
    fn cuGraphKernelNodeGetParams_v2(node: u64, params: *mut KernelParams);
    fn cuGraphKernelNodeSetParams_v2(node: u64, params: *const KernelParams);
    fn cuGraphExecKernelNodeSetParams_v2(exec: u64, node: u64, params: *const KernelParams);
    fn cuGraphAddMemcpyNode(
        node: *mut u64, graph: u64, behind: *const u64, count: usize, params: *const [u64; 25], context: u64,
    );
    fn cuGraphMemcpyNodeGetParams(node: u64, params: *mut [u64; 25]);
    fn cuGraphAddMemsetNode(
        node: *mut u64, graph: u64, behind: *const u64, count: usize, params: *const Fill, context: u64,
    );
    fn cuGraphMemsetNodeSetParams(node: u64, params: *const Fill);
    fn cuGraphAddHostNode(node: *mut u64, graph: u64, behind: *const u64, count: usize, params: *const Call);
    fn cuGraphAddEmptyNode(node: *mut u64, graph: u64, behind: *const u64, count: usize);
    fn cuGraphAddChildGraphNode(node: *mut u64, graph: u64, behind: *const u64, count: usize, child: u64);
    fn cuGraphChildGraphNodeGetGraph(node: u64, graph: *mut u64);
    fn cuGraphAddEventRecordNode(node: *mut u64, graph: u64, behind: *const u64, count: usize, event: u64);
    fn cuGraphAddEventWaitNode(node: *mut u64, graph: u64, behind: *const u64, count: usize, event: u64);
    fn cuGraphAddMemAllocNode(node: *mut u64, graph: u64, behind: *const u64, count: usize, params: *mut [u64; 15]);
    fn cuGraphAddMemFreeNode(node: *mut u64, graph: u64, behind: *const u64, count: usize, address: u64);
    fn cuGraphAddNode_v2(
        node: *mut u64, graph: u64, behind: *const u64, data: *const c_void, count: usize, params: *mut [u64; 32],
    );
    fn cuGraphExecNodeSetParams(exec: u64, node: u64, params: *const [u64; 32]);
    fn cuGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize);
    fn cuGraphGetRootNodes(graph: u64, nodes: *mut u64, count: *mut usize);
    fn cuGraphGetEdges(graph: u64, from: *mut u64, to: *mut u64, count: *mut usize);
    fn cuGraphAddDependencies(graph: u64, from: *const u64, to: *const u64, count: usize);
    fn cuGraphRemoveDependencies(graph: u64, from: *const u64, to: *const u64, count: usize);
    fn cuGraphNodeGetDependencies(node: u64, nodes: *mut u64, count: *mut usize);
    fn cuGraphNodeGetDependentNodes(node: u64, nodes: *mut u64, count: *mut usize);
    fn cuGraphNodeGetType(node: u64, kind: *mut u32);
    fn cuGraphDestroyNode(node: u64);
    fn cuGraphInstantiateWithFlags(exec: *mut u64, graph: u64, flags: u64);
    fn cuGraphExecDestroy(exec: u64);
    fn cuGraphLaunch(exec: u64, stream: u64);
    fn cuGraphExecUpdate_v2(exec: u64, graph: u64, result: *mut [u64; 3]);
    fn cuGraphNodeSetEnabled(exec: u64, node: u64, is_enabled: u32);
    fn cuGraphDebugDotPrint(graph: u64, path: *const u8, flags: u32);
    fn cuUserObjectCreate(
        object: *mut u64, data: *mut c_void, destroy: Option<extern "C" fn(*mut c_void)>, count: u32, flags: u32,
    );
    fn cuUserObjectRelease(object: u64, count: u32);
    fn cuGraphRetainUserObject(graph: u64, object: u64, count: u32, flags: u32);
    fn cuGraphReleaseUserObject(graph: u64, object: u64, count: u32);
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
struct KernelParams {
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    each: *mut *mut c_void,
    extra: *mut *mut c_void,
    kernel: u64,
    context: u64,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
struct Fill {
    address: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
}

/// `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
struct Call {
    function: extern "C" fn(*mut c_void),
    data: *mut c_void,
}

const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;
const LEGACY: u64 = 1;

/// Multiplies a number in memory by 3, and adds another one.
const STEP: &str = "
    .version 7.0
    .target sm_70
    .address_size 64
    .visible .entry step(.param .u64 place, .param .u64 term)
    {
        .reg .u64 %rd<4>;
        .reg .u32 %r<4>;
        ld.param.u64 %rd1, [place];
        ld.param.u64 %rd2, [term];
        cvta.to.global.u64 %rd3, %rd1;
        cvt.u32.u64 %r1, %rd2;
        ld.global.u32 %r2, [%rd3];
        mad.lo.u32 %r3, %r2, 3, %r1;
        st.global.u32 [%rd3], %r3;
        ret;
    }\0";

fn step() -> u64 {
    kernel(STEP, "step\0")
}

fn memory(bytes: usize) -> u64 {
    let mut address = 0;
    assert_eq!(cuMemAlloc_v2(&mut address, bytes), 0);
    assert_eq!(cuMemcpyHtoD_v2(address, vec![0; bytes].as_ptr(), bytes), 0);
    address
}

fn number(address: u64) -> u32 {
    let mut bytes = [0; 4];
    assert_eq!(cuMemcpyDtoH_v2(bytes.as_mut_ptr(), address, 4), 0);
    u32::from_ne_bytes(bytes)
}

fn end(stream: u64) -> u64 {
    let mut graph = 0;
    assert_eq!(cuStreamEndCapture(stream, &mut graph), 0);
    graph
}

/// Ends a capture that fails, and returns the code.
fn end_broken(stream: u64) -> u32 {
    let mut graph = 1;
    let code = cuStreamEndCapture(stream, &mut graph);
    assert_eq!(graph, 0);
    code
}

fn instantiate(graph: u64) -> u64 {
    let mut exec = 0;
    assert_eq!(cuGraphInstantiateWithFlags(&mut exec, graph, 0), 0);
    exec
}

fn run(exec: u64, stream: u64) {
    assert_eq!((cuGraphLaunch(exec, stream), cuStreamSynchronize(stream)), (0, 0));
}

fn new_graph() -> u64 {
    let mut graph = 0;
    assert_eq!(cuGraphCreate(&mut graph, 0), 0);
    graph
}

fn host_node(graph: u64, behind: &[u64], log: &Log, value: u32) -> u64 {
    let (function, data) = entry(log, value);
    let mut node = 0;
    assert_eq!(cuGraphAddHostNode(&mut node, graph, behind.as_ptr(), behind.len(), &Call { function, data }), 0);
    node
}

fn count_of(graph: u64) -> (usize, usize) {
    let (mut nodes, mut edges) = (0, 0);
    assert_eq!(cuGraphGetNodes(graph, null_mut(), &mut nodes), 0);
    assert_eq!(cuGraphGetEdges(graph, null_mut(), null_mut(), &mut edges), 0);
    (nodes, edges)
}

#[test]
fn a_capture_forks_and_joins() {
    let _context = Context::new();
    let (log, place, function) = (Log::default(), memory(4), step());
    let (main, side) = (new_stream(0), new_stream(0));
    let (forked, joined) = (new_event(), new_event());
    assert_eq!(cuStreamBeginCapture_v2(main, GLOBAL), 0);
    assert_eq!((launch(function, 1, main, &mut [place, 1]), note(main, &log, 1)), (0, 0));
    assert_eq!((cuEventRecord(forked, main), cuStreamWaitEvent(side, forked, 0)), (0, 0));
    assert_eq!((note(side, &log, 2), note(main, &log, 3), note(side, &log, 4)), (0, 0, 0));
    let (mut status, mut id, mut graph, mut nodes, mut count) = (9, 0, 0, null(), 0);
    assert_eq!(cuStreamGetCaptureInfo_v2(side, &mut status, &mut id, &mut graph, &mut nodes, &mut count), 0);
    assert_eq!((status, count, id > 0, graph != 0, nodes.is_null()), (1, 1, true, true, false));
    assert_eq!((cuEventRecord(joined, side), cuStreamWaitEvent(main, joined, 0)), (0, 0));
    assert_eq!((launch(function, 1, main, &mut [place, 2]), note(main, &log, 5)), (0, 0));
    assert_eq!(end(main), graph);
    assert_eq!((cuStreamIsCapturing(side, &mut status), status), (0, 0));
    assert_eq!((count_of(graph), taken(&log)), ((7, 7), vec![]), "nothing has run");
    let exec = instantiate(graph);
    assert_eq!(cuGraphDestroy(graph), 0);
    for round in 0..3 {
        run(exec, main);
        let order = taken(&log);
        let at = |value| order.iter().position(|&other| other == value).unwrap();
        assert!(order.len() == 5 && at(1) == 0 && at(2) < at(4) && at(5) == 4, "{order:?}");
        assert_eq!(number(place), [5, 50, 455][round]);
    }
    // The event of a capture that has ended is passed at no time.
    assert_eq!((cuEventQuery(forked), cuEventSynchronize(forked), cuStreamWaitEvent(main, forked, 0)), (907, 907, 907));
    assert_eq!((cuEventRecord(forked, main), cuEventSynchronize(forked)), (0, 0));
    assert_eq!((cuGraphLaunch(exec, side), cuGraphLaunch(exec, main), cuGraphExecDestroy(exec)), (0, 0, 0));
    assert_eq!(cuStreamSynchronize(main), 0);
    assert_eq!(taken(&log).len(), 10, "launches of one executable graph run one after the other");
    assert_eq!(cuGraphLaunch(exec, main), 1);
}

#[test]
fn captures_refuse_what_they_cannot_record() {
    let _context = Context::new();
    let log = Log::default();
    let (main, other, free) = (new_stream(0), new_stream(0), new_stream(1));
    let event = new_event();
    let begin = |mode| assert_eq!(cuStreamBeginCapture_v2(main, mode), 0);
    assert_eq!((cuStreamBeginCapture_v2(main, 3), cuStreamBeginCapture_v2(LEGACY, 0)), (1, 900));
    assert_eq!(end_broken(main), 401, "no capture has begun");

    for refused in [cuStreamSynchronize, cuStreamQuery] {
        begin(RELAXED);
        assert_eq!((refused(main), note(main, &log, 1), end_broken(main)), (900, 901, 901));
    }
    begin(RELAXED);
    assert_eq!((cuCtxSynchronize(), end_broken(main)), (900, 901));
    begin(RELAXED);
    assert_eq!((cuStreamBeginCapture_v2(main, RELAXED), end_broken(main)), (401, 901));

    // An event from outside, and the join of two captures.
    assert_eq!(cuEventRecord(event, other), 0);
    begin(RELAXED);
    assert_eq!((cuStreamWaitEvent(main, event, 0), end_broken(main)), (905, 901));
    begin(RELAXED);
    assert_eq!((cuStreamBeginCapture_v2(other, RELAXED), cuEventRecord(event, main)), (0, 0));
    assert_eq!((cuStreamWaitEvent(other, event, 0), end_broken(main), end_broken(other)), (902, 901, 901));

    // An event of a capture that goes on, even where the mode refuses waits.
    for refused in [cuEventQuery, cuEventSynchronize] {
        begin(GLOBAL);
        assert_eq!((cuEventRecord(event, main), refused(event), end_broken(main)), (0, 907, 901));
    }

    // A stream that is not joined, or is the wrong one to end.
    begin(RELAXED);
    assert_eq!((cuEventRecord(event, main), cuStreamWaitEvent(other, event, 0), note(other, &log, 1)), (0, 0, 0));
    assert_eq!(end_broken(main), 904);
    begin(RELAXED);
    assert_eq!((cuEventRecord(event, main), cuStreamWaitEvent(other, event, 0)), (0, 0));
    assert_eq!((end_broken(other), end_broken(main)), (903, 901));

    // The legacy stream would wait for a blocking stream, and not for another one.
    begin(RELAXED);
    assert_eq!((cuStreamIsCapturing(LEGACY, &mut 0), note(main, &log, 1)), (906, 0), "a question breaks nothing");
    assert_eq!((note(LEGACY, &log, 1), end_broken(main)), (906, 901));
    assert_eq!((cuStreamBeginCapture_v2(free, RELAXED), note(LEGACY, &log, 1)), (0, 0));
    assert_eq!((cuGraphDestroy(end(free)), cuStreamSynchronize(LEGACY)), (0, 0));

    // A stream that ends takes its capture along.
    begin(RELAXED);
    assert_eq!((cuStreamDestroy_v2(main), cuMemAlloc_v2(&mut 0, 4), taken(&log)), (0, 0, vec![1]));
}

#[test]
fn modes_say_which_threads_a_capture_concerns() {
    let context = Context::new();
    let stream = new_stream(1);
    let handle = context.handle;
    let allocate = || cuMemAlloc_v2(&mut 0, 4);
    let elsewhere = |call: &(dyn Fn() -> u32 + Sync)| {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                assert_eq!(cuCtxSetCurrent(handle), 0);
                call()
            });
            thread.join().unwrap()
        })
    };
    for (mode, here, there) in [(GLOBAL, 900, 900), (THREAD_LOCAL, 900, 0), (RELAXED, 0, 0)] {
        assert_eq!(cuStreamBeginCapture_v2(stream, mode), 0);
        assert_eq!(elsewhere(&allocate), there, "mode {mode}");
        assert_eq!(allocate(), here, "mode {mode}");
        let mut graph = 0;
        assert_eq!(cuStreamEndCapture(stream, &mut graph), if here == 0 { 0 } else { 901 });
    }
    let mut mode = RELAXED;
    assert_eq!((cuThreadExchangeStreamCaptureMode(&mut mode), mode), (0, GLOBAL));
    assert_eq!((cuStreamBeginCapture_v2(stream, GLOBAL), allocate()), (0, 0));
    assert_eq!(elsewhere(&|| cuStreamEndCapture(stream, &mut 0)), 908);
    assert_eq!((cuThreadExchangeStreamCaptureMode(&mut mode), mode), (0, RELAXED));
    assert_eq!(cuGraphDestroy(end(stream)), 0);
    mode = 7;
    assert_eq!(cuThreadExchangeStreamCaptureMode(&mut mode), 1);
}

#[test]
fn a_capture_takes_up_other_graphs_and_dependencies() {
    let _context = Context::new();
    let (log, stream) = (Log::default(), new_stream(0));
    let graph = new_graph();
    let first = host_node(graph, &[], &log, 1);
    assert_eq!(cuStreamBeginCaptureToGraph(stream, graph, &first, null(), 1, RELAXED), 0);
    assert_eq!((note(stream, &log, 2), cuGraphDestroy(graph)), (0, 1));
    let third = host_node(graph, &[first], &log, 3);
    assert_eq!((cuStreamUpdateCaptureDependencies(stream, &third, 1, 0), note(stream, &log, 4)), (0, 0));
    assert_eq!((end(stream), count_of(graph)), (graph, (4, 4)));
    let inner = instantiate(graph);
    // A launch in a capture becomes a graph within the graph.
    assert_eq!(
        (cuStreamBeginCapture_v2(stream, RELAXED), cuGraphLaunch(inner, stream), note(stream, &log, 5)),
        (0, 0, 0)
    );
    let outer = end(stream);
    assert_eq!((count_of(outer), cuGraphExecDestroy(inner)), ((2, 1), 0));
    run(instantiate(outer), stream);
    let order = taken(&log);
    assert!(order == [1, 2, 3, 4, 5] || order == [1, 3, 2, 4, 5], "{order:?}");
}

/// Returns the sides of a copy of 32 bytes to the host, in the order of `CUDA_MEMCPY3D`.
fn download(place: u64, result: &mut [u8; 32]) -> [u64; 25] {
    let mut sides = [0; 25];
    (sides[4], sides[6], sides[9]) = (2, place, 32);
    (sides[15], sides[16], sides[20]) = (1, result.as_mut_ptr().addr() as u64, 32);
    (sides[22], sides[23], sides[24]) = (32, 1, 1);
    sides
}

#[test]
fn kernels_copies_and_fills_are_nodes() {
    let _context = Context::new();
    let (place, stream, function, graph) = (memory(64), new_stream(0), step(), new_graph());
    let mut operands = [place, 7_u64];
    let mut each = operands.each_mut().map(|operand| std::ptr::from_mut(operand).cast::<c_void>());
    let params = |each: &mut [*mut c_void; 2]| {
        let (grid, block, each) = ([1, 1, 1], [1, 1, 1], each.as_mut_ptr());
        KernelParams { function, grid, block, shared: 0, each, extra: null_mut(), kernel: 0, context: 0 }
    };
    let (mut fill, mut add, mut copy) = (0, 0, 0);
    // Two rows of three elements, whose bytes differ.
    let pattern = Fill { address: place, pitch: 16, value: 0x0102, element: 2, width: 3, height: 2 };
    assert_eq!(cuGraphAddMemsetNode(&mut fill, graph, null(), 0, &pattern, 0), 0);
    assert_eq!(cuGraphAddKernelNode_v2(&mut add, graph, &fill, 1, &params(&mut each)), 0);
    let mut result = [0_u8; 32];
    let sides = download(place, &mut result);
    assert_eq!(cuGraphAddMemcpyNode(&mut copy, graph, &add, 1, &sides, 0), 0);
    let mut read = [0; 25];
    assert_eq!((cuGraphMemcpyNodeGetParams(copy, &mut read), read), (0, sides));
    // The node has copied the operands.
    let mut operands = [place, 1000_u64];
    let mut each = operands.each_mut().map(|operand| std::ptr::from_mut(operand).cast::<c_void>());
    let mut found = params(&mut each);
    assert_eq!(cuGraphKernelNodeGetParams_v2(add, &mut found), 0);
    // SAFETY: the library returns a list of the addresses of two numbers.
    let addresses = unsafe { found.each.cast::<[*const u64; 2]>().read() };
    // SAFETY: as above.
    let second = unsafe { addresses[1].read() };
    assert_eq!((found.function, found.block, second), (function, [1, 1, 1], 7));
    let exec = instantiate(graph);
    run(exec, stream);
    let first = 0x0102_0102_u32.wrapping_mul(3) + 7;
    let of = |first: u32| {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&first.to_ne_bytes());
        for at in [4, 16, 18, 20] {
            bytes[at..][..2].copy_from_slice(&0x0102_u16.to_ne_bytes());
        }
        bytes
    };
    assert_eq!(result, of(first));
    // Single nodes change in the executable graph, and are switched off.
    assert_eq!(
        (cuGraphExecKernelNodeSetParams_v2(exec, add, &params(&mut each)), cuGraphNodeSetEnabled(exec, fill, 0)),
        (0, 0)
    );
    run(exec, stream);
    assert_eq!(result, of(first.wrapping_mul(3) + 1000));
    assert_eq!(cuGraphKernelNodeSetParams_v2(add, &params(&mut each)), 0);
    assert_eq!(cuGraphMemsetNodeSetParams(fill, &Fill { value: 5, element: 1, width: 4, height: 1, ..pattern }), 0);
    run(instantiate(graph), stream);
    assert_eq!(number(place), 0x0505_0505_u32.wrapping_mul(3) + 1000);
}

#[test]
fn copies_and_fills_of_bad_operands_are_refused() {
    let _context = Context::new();
    let (place, graph) = (memory(64), new_graph());
    let (mut fill, mut add, mut copy) = (0, 0, 0);
    let pattern = Fill { address: place, pitch: 16, value: 0x0102, element: 2, width: 3, height: 2 };
    let mut result = [0_u8; 32];
    let mut sides = download(place, &mut result);
    for bad in [
        Fill { element: 3, ..pattern },
        Fill { pitch: 1, ..pattern },
        Fill { address: place + 1, ..pattern },
        Fill { width: usize::MAX, ..pattern },
    ] {
        assert_eq!(cuGraphAddMemsetNode(&mut fill, graph, null(), 0, &bad, 0), 1);
    }
    let beyond = Fill { pitch: 1, element: 1, width: 1, height: 1 << 40, ..pattern };
    assert_eq!(cuGraphAddMemsetNode(&mut fill, graph, null(), 0, &beyond, 0), 1);
    // No memory is there, or memory of the other kind.
    for (kind, address) in [(4, (1 << 60) - 64), (1, place), (2, result.as_ptr().addr() as u64), (4, 0)] {
        let mut bad = sides;
        (bad[4], bad[5], bad[6]) = (kind, address, address);
        assert_eq!(cuGraphAddMemcpyNode(&mut copy, graph, null(), 0, &bad, 0), 1, "{kind} {address:#x}");
    }
    sides[22] = u64::MAX;
    assert_eq!(cuGraphAddMemcpyNode(&mut copy, graph, null(), 0, &sides, 0), 1);
    assert_eq!(cuGraphAddKernelNode_v2(&mut add, graph, null(), 0, null()), 1);
}

#[test]
fn events_memory_and_values_are_nodes() {
    let _context = Context::new();
    let (log, stream, other, event) = (Log::default(), new_stream(1), new_stream(1), new_event());
    let graph = new_graph();
    let first = host_node(graph, &[], &log, 1);
    let (mut record, mut alloc, mut free, mut value, mut empty, mut wait) = (0, 0, 0, 0, 0, 0);
    assert_eq!(cuGraphAddEventRecordNode(&mut record, graph, &first, 1, event), 0);
    let mut params = [0_u64; 15];
    (params[0], params[1], params[13]) = (1, 1, 64);
    assert_eq!(cuGraphAddMemAllocNode(&mut alloc, graph, null(), 0, &mut params), 0);
    let address = params[14];
    // A list of one operation: write 9 with 32 bits.
    let operations = [2, address, 9, 0, 0, 0_u64];
    let mut any = [0_u64; 32];
    (any[0], any[3], any[4]) = (12, 1, operations.as_ptr().addr() as u64);
    assert_eq!(cuGraphAddNode_v2(&mut value, graph, &alloc, null(), 1, &mut any), 0);
    assert_eq!(cuGraphAddEmptyNode(&mut empty, graph, [record, value].as_ptr(), 2), 0);
    let exec = instantiate(graph);
    assert_eq!((cuGraphLaunch(exec, stream), cuStreamWaitEvent(other, event, 0), note(other, &log, 2)), (0, 0, 0));
    assert_eq!((cuStreamSynchronize(other), taken(&log)), (0, vec![1, 2]));
    assert_eq!((cuStreamSynchronize(stream), number(address)), (0, 9));
    let waits = new_graph();
    assert_eq!(cuGraphAddEventWaitNode(&mut wait, waits, null(), 0, event), 0);
    host_node(waits, &[wait], &log, 4);
    assert_eq!((note(other, &log, 3), cuEventRecord(event, other)), (0, 0));
    run(instantiate(waits), stream);
    assert_eq!(taken(&log), [3, 4]);
    assert_eq!(cuGraphAddMemFreeNode(&mut free, graph, &empty, 1, address), 0);
    assert_eq!((cuGraphDestroyNode(free), cuGraphDestroy(graph), cuGraphExecDestroy(exec)), (801, 0, 0));
    any[0] = 13;
    assert_eq!(cuGraphAddNode_v2(&mut value, waits, null(), null(), 0, &mut any), 801, "a conditional node");
}

#[test]
fn the_form_of_a_graph_can_be_asked_and_changed() {
    let _context = Context::new();
    let (log, graph) = (Log::default(), new_graph());
    let a = host_node(graph, &[], &log, 1);
    let b = host_node(graph, &[a], &log, 2);
    let c = host_node(graph, &[a], &log, 3);
    let list = |call: fn(u64, *mut u64, *mut usize) -> u32, of: u64| {
        let (mut nodes, mut count) = ([7; 4], 4);
        assert_eq!(call(of, nodes.as_mut_ptr(), &mut count), 0);
        nodes[..count].to_vec()
    };
    assert_eq!((list(cuGraphGetNodes, graph), list(cuGraphGetRootNodes, graph)), (vec![a, b, c], vec![a]));
    assert_eq!((list(cuGraphNodeGetDependencies, b), list(cuGraphNodeGetDependentNodes, a)), (vec![a], vec![b, c]));
    assert_eq!((cuGraphAddDependencies(graph, &c, &b, 1), list(cuGraphNodeGetDependencies, b)), (0, vec![a, c]));
    for (from, to) in [(c, b), (b, a), (a, a), (a, 5)] {
        assert_eq!(cuGraphAddDependencies(graph, &from, &to, 1), 1, "{from:#x} {to:#x}");
    }
    run(instantiate(graph), 1);
    assert_eq!(taken(&log), [1, 3, 2]);
    // To free at a launch, an unknown flag, the first with a launch by the device, and that alone.
    assert_eq!([1, 16, 5, 4].map(|flags| cuGraphInstantiateWithFlags(&mut 0, graph, flags)), [0, 1, 1, 801]);
    assert_eq!((cuGraphRemoveDependencies(graph, &a, &b, 1), cuGraphRemoveDependencies(graph, &a, &b, 1)), (0, 1));
    let (mut copy, mut found, mut kind, mut child) = (0, 0, 9, 0);
    assert_eq!((cuGraphClone(&mut copy, graph), cuGraphNodeFindInClone(&mut found, b, copy)), (0, 0));
    assert_eq!((cuGraphNodeGetType(found, &mut kind), kind, cuGraphDestroyNode(c)), (0, 3, 0));
    assert_eq!((count_of(graph), count_of(copy)), ((2, 0), (3, 2)));
    assert_eq!(cuGraphAddDependencies(graph, &a, &b, 1), 0);
    let mut node = 0;
    assert_eq!(cuGraphAddChildGraphNode(&mut node, graph, &b, 1, copy), 0);
    assert_eq!(
        (cuGraphChildGraphNodeGetGraph(node, &mut child), cuGraphDestroy(child), cuGraphDestroy(copy)),
        (0, 1, 0)
    );
    run(instantiate(graph), 1);
    assert_eq!(taken(&log), [1, 2, 1, 3, 2]);
    let path = std::env::temp_dir().join(format!("warpstride-{}.dot", std::process::id()));
    let text = format!("{}\0", path.display());
    assert_eq!(cuGraphDebugDotPrint(graph, text.as_ptr(), 0), 0);
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("digraph"));
    std::fs::remove_file(&path).unwrap();
    assert_eq!((cuGraphDestroy(graph), cuGraphDestroy(graph), cuGraphNodeGetType(a, &mut kind)), (0, 1, 1));
}

#[test]
fn an_update_takes_over_operands_and_refuses_another_form() {
    let _context = Context::new();
    let (log, stream) = (Log::default(), new_stream(0));
    let make = |values: &[u32], is_chain: bool| {
        let graph = new_graph();
        let mut last = None;
        for &value in values {
            let behind: &[u64] = last.as_ref().filter(|_| is_chain).map_or(&[], std::slice::from_ref);
            last = Some(host_node(graph, behind, &log, value));
        }
        graph
    };
    let exec = instantiate(make(&[1, 2], true));
    let mut result = [0; 3];
    // Half of the first number is padding.
    assert_eq!((cuGraphExecUpdate_v2(exec, make(&[3, 4], true), &mut result), result[0] as u32), (0, 0));
    assert_eq!(result[1..], [0, 0]);
    run(exec, stream);
    assert_eq!(taken(&log), [3, 4]);
    for other in [make(&[5], true), make(&[5, 6], false), make(&[5, 6, 7], true)] {
        assert_eq!((cuGraphExecUpdate_v2(exec, other, &mut result), result[0] as u32), (910, 2));
    }
    let other = new_graph();
    let (mut first, mut second) = (0, 0);
    assert_eq!(
        (cuGraphAddEmptyNode(&mut first, other, null(), 0), cuGraphAddEmptyNode(&mut second, other, &first, 1)),
        (0, 0)
    );
    assert_eq!((cuGraphExecUpdate_v2(exec, other, &mut result), result[0] as u32, result[1]), (910, 3, first));
    run(exec, stream);
    assert_eq!(taken(&log), [3, 4], "a refused update changes nothing");
    assert_eq!(cuGraphExecNodeSetParams(exec, first, &[0; 32]), 1, "a node of another graph");
}

extern "C" fn count_up(data: *mut c_void) {
    // SAFETY: the test passes a number that outlives the object.
    unsafe { *data.cast::<u32>() += 1 };
}

#[test]
fn objects_of_the_program_live_as_long_as_their_graphs() {
    let _context = Context::new();
    let (graph, mut copy, mut ended, mut object) = (new_graph(), 0, 0_u32, 0);
    let place = &raw mut ended;
    let seen = || {
        // SAFETY: the number lives until the end of the test.
        unsafe { place.read_volatile() }
    };
    assert_eq!(cuUserObjectCreate(&mut object, place.cast(), Some(count_up), 3, 1), 0);
    assert_eq!((cuGraphRetainUserObject(graph, object, 2, 1), cuGraphRetainUserObject(graph, object, 2, 1)), (0, 1));
    assert_eq!((cuUserObjectRelease(object, 2), cuUserObjectRelease(object, 1)), (1, 0));
    assert_eq!((cuGraphReleaseUserObject(graph, object, 1), cuGraphClone(&mut copy, graph)), (0, 0));
    let exec = instantiate(copy);
    assert_eq!((cuGraphDestroy(graph), cuGraphDestroy(copy), seen()), (0, 0, 0));
    assert_eq!((cuGraphExecDestroy(exec), seen(), cuUserObjectRelease(object, 1)), (0, 1, 1));
    assert_eq!(cuUserObjectCreate(&mut object, place.cast(), Some(count_up), 1, 0), 1);
    assert_eq!(cuUserObjectCreate(&mut object, place.cast(), None, 1, 1), 1);
}

#[test]
fn graphs_are_nested_to_a_limit() {
    let _context = Context::new();
    let (outer, mut innermost) = (new_graph(), new_graph());
    let (single, mut node, mut levels) = (innermost, 0, 0);
    innermost = outer;
    while cuGraphAddChildGraphNode(&mut node, innermost, null(), 0, single) == 0 {
        assert_eq!(cuGraphChildGraphNodeGetGraph(node, &mut innermost), 0);
        levels += 1;
        assert!(levels < 1000, "no limit");
    }
    // A graph of as many levels does not fit either within one that is within another.
    let mut within = 0;
    assert_eq!((levels, cuGraphAddChildGraphNode(&mut within, single, null(), 0, outer)), (64, 1));
    run(instantiate(outer), new_stream(0));
    assert_eq!((cuGraphDestroy(outer), cuGraphDestroy(single)), (0, 0));
}
