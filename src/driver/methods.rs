//! The one list of a driver's methods. Layers, recorded calls and the table of [`Stats`] are made
//! of it.
//!
//! [`Stats`]: super::Stats

/// Gives the list to another macro. A part of the driver has in brackets the questions that only
/// ask for a fact, and are neither counted nor recorded. Each of its other methods has a line:
///
/// ```text
/// Free = free: unsafe fn(address: u64 as Address) -> (), Yes "it waits for all work of the context";
/// ```
///
/// - `Free` names the method in `call::Method`, and its recorded call in `call::Call`.
/// - A record holds an operand as the method has it, or as the type behind `as`.
/// - `()` is the reply, without the `Result` that holds it.
/// - `Yes` says that the call can synchronise (`stats::Waits`), and the text says why.
macro_rules! methods {
    ($use:ident) => {
        $use! {
            Driver [info: &DeviceInfo, has_checkers: bool, counters: Option<Counters>] {}

            Memory [has_pool: bool] {
                Memory = memory: fn() -> (u64, u64), No "it asks for the bytes that are free";
                ResetPersistingL2 = reset_persisting_l2: fn() -> (), No "it acts on the cache at once";
                Alloc = alloc: fn(bytes: u64) -> u64, Yes "CUDA's guide names allocations of device memory";
                Free = free: unsafe fn(address: u64 as Address) -> (), Yes "it waits for all work of the context";
                PoolAlloc = pool_alloc: unsafe fn(bytes: u64, stream: StreamHandle) -> u64,
                    No "it allocates in the order of a stream";
                PoolFree = pool_free: unsafe fn(address: u64 as Address, stream: StreamHandle) -> (),
                    No "it frees in the order of a stream";
                PoolTrim = pool_trim: fn(keep: u64) -> (), Yes "it unmaps memory";
                AllocHost = alloc_host: fn(bytes: usize, kind: HostKind) -> NonNull<u8>,
                    Yes "CUDA's guide names allocations of page-locked memory";
                FreeHost = free_host: unsafe fn(memory: NonNull<u8> as Address) -> (),
                    Yes "it waits for all work of the context";
                RegisterHost = register_host: unsafe fn(memory: NonNull<u8> as Address, bytes: usize) -> (),
                    Yes "it maps memory of the host for the device";
                UnregisterHost = unregister_host: unsafe fn(memory: NonNull<u8> as Address) -> (),
                    Yes "it waits for all work of the context";
                CopyH2d = copy_h2d: unsafe fn(
                    dst: u64 as Address, src: *const u8 as Address, bytes: usize, stream: StreamHandle
                ) -> (), Pageable "such a copy passes through memory of the driver";
                CopyD2h = copy_d2h: unsafe fn(
                    dst: *mut u8 as Address, src: u64 as Address, bytes: usize, stream: StreamHandle
                ) -> (), Pageable "such a copy passes through memory of the driver";
                CopyD2d = copy_d2d: unsafe fn(
                    dst: u64 as Address, src: u64 as Address, bytes: u64, stream: StreamHandle
                ) -> (), No "it is queued";
                Copy3d = copy_3d: unsafe fn(copy: &Copy3d as CopiedBox, stream: StreamHandle) -> (),
                    Pageable "such a copy passes through memory of the driver";
                Fill = fill: unsafe fn(dst: u64 as Address, value: u8, bytes: u64, stream: StreamHandle) -> (),
                    No "it is queued";
            }

            Streams [] {
                StreamCreate = stream_create: fn() -> StreamHandle, No "it makes a queue";
                StreamCreateOn = stream_create_on: fn(of: Multiprocessors) -> StreamHandle,
                    Yes "the first one on a part makes a context for it";
                StreamDestroy = stream_destroy: unsafe fn(stream: StreamHandle) -> (), No "queued work still runs";
                StreamSynchronize = stream_synchronize: unsafe fn(stream: StreamHandle) -> (),
                    Yes "it is the wait for a stream";
                EventCreate = event_create: fn() -> EventHandle, No "it makes an event";
                EventCreateUntimed = event_create_untimed: fn() -> EventHandle, No "it makes an event";
                EventDestroy = event_destroy: unsafe fn(event: EventHandle) -> (),
                    No "waits that are queued still hold";
                EventRecord = event_record: unsafe fn(event: EventHandle, stream: StreamHandle) -> (),
                    No "it is queued";
                EventWait = event_wait: unsafe fn(event: EventHandle, stream: StreamHandle) -> (),
                    No "the stream waits, and the host does not";
                EventQuery = event_query: unsafe fn(event: EventHandle) -> bool, No "it answers at once";
                EventSynchronize = event_synchronize: unsafe fn(event: EventHandle) -> (),
                    Yes "it is the wait for an event";
                EventElapsedMs = event_elapsed_ms: unsafe fn(start: EventHandle, end: EventHandle) -> f32,
                    No "both events have been passed";
            }

            Modules [] {
                ModuleLoad = module_load: fn(ptx: &str as usize) -> ModuleHandle,
                    Yes "the driver compiles, and maps memory";
                ModuleUnload = module_unload: unsafe fn(module: ModuleHandle) -> (),
                    Yes "it waits for all work of the context";
                Function = function: unsafe fn(module: ModuleHandle, name: &str as String) -> FunctionHandle,
                    No "it looks a name up";
                Variable = variable: unsafe fn(module: ModuleHandle, name: &str as String) -> (u64, u64),
                    No "it looks a name up";
                AllowDynamicShared = allow_dynamic_shared: unsafe fn(function: FunctionHandle, bytes: u32) -> (),
                    No "it sets an attribute";
                Launch = launch: unsafe fn(
                    function: FunctionHandle, shape: &LaunchShape as LaunchShape, params: &[u8] as usize,
                    stream: StreamHandle
                ) -> (), No "it is queued";
                LaunchCooperative = launch_cooperative: unsafe fn(
                    function: FunctionHandle, shape: &LaunchShape as LaunchShape, params: &[u8] as usize,
                    stream: StreamHandle
                ) -> (), No "it is queued";
            }

            Graphs [] {
                CaptureBegin = capture_begin: unsafe fn(stream: StreamHandle) -> (),
                    No "it takes effect on what is queued from then on";
                CaptureEnd = capture_end: unsafe fn(stream: StreamHandle) -> GraphHandle,
                    Yes "what was released during the capture waits for all work then";
                IsCapturing = is_capturing: unsafe fn(stream: StreamHandle) -> bool, No "it answers at once";
                GraphNodes = graph_nodes: unsafe fn(graph: GraphHandle) -> usize, No "it counts";
                GraphDestroy = graph_destroy: unsafe fn(graph: GraphHandle) -> (), No "captured work does not run";
                GraphInstantiate = graph_instantiate: unsafe fn(graph: GraphHandle) -> GraphExecHandle,
                    Yes "it may allocate memory on the device";
                GraphUpdate = graph_update: unsafe fn(exec: GraphExecHandle, graph: GraphHandle) -> bool,
                    No "launches that are queued keep their operands";
                GraphLaunch = graph_launch: unsafe fn(exec: GraphExecHandle, stream: StreamHandle) -> (),
                    No "it is queued";
                GraphExecDestroy = graph_exec_destroy: unsafe fn(exec: GraphExecHandle) -> (),
                    No "launches that are queued still run";
            }

            Peers [] {
                CanShareWith = can_share_with: fn(peer: u32) -> bool, No "it asks for a fact";
                ShareWith = share_with: fn(peer: u32) -> (), Yes "it maps memory for another device";
            }
        }
    };
}

pub(super) use methods;
