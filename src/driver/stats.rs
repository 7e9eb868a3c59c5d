//! What [`Counted`](super::counted::Counted) counts, and which calls can synchronise.

use std::collections::BTreeMap;
use std::fmt;

/// Whether a method can synchronise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// It never waits for queued work.
    No,
    /// It waits for queued work, or CUDA lets it.
    Yes,
    /// It waits if the host's side is not page-locked, as far as this driver knows.
    Pageable,
}

macro_rules! methods {
    ($($method:ident = $name:literal $waits:ident: $why:literal;)*) => {
        /// The methods of a driver that are counted.
        #[derive(Clone, Copy)]
        pub(super) enum Method {
            $($method,)*
        }

        /// Their names, and whether they can synchronise, in the order of [`Method`].
        pub(super) const METHODS: &[(&str, Waits)] = &[$(($name, Waits::$waits),)*];

        /// The number of calls to the driver of a device, and the memory that it has given out.
        ///
        /// This table says which calls can synchronise, and so make the host wait for the device:
        ///
        /// | method | can synchronise | why |
        /// |---|---|---|
        $(#[doc = concat!("| `", $name, "` | ", methods!(@ $waits), " | ", $why, " |")])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct Stats {
            /// The calls of each method, without methods that were not called.
            pub calls: BTreeMap<&'static str, u64>,
            /// The number of those calls that can synchronise.
            pub can_synchronize: u64,
            /// Memory that the driver has given out.
            pub memory: MemoryStats,
        }
    };
    (@ No) => { "no" };
    (@ Yes) => { "yes" };
    (@ Pageable) => { "if the host's memory is pageable" };
}

methods! {
    Memory = "memory" No: "it asks for the bytes that are free";
    ResetPersistingL2 = "reset_persisting_l2" No: "it acts on the cache at once";
    Alloc = "alloc" Yes: "CUDA's guide names allocations of device memory";
    Free = "free" Yes: "it waits for all work of the context";
    PoolAlloc = "pool_alloc" No: "it allocates in the order of a stream";
    PoolFree = "pool_free" No: "it frees in the order of a stream";
    PoolTrim = "pool_trim" Yes: "it unmaps memory";
    AllocHost = "alloc_host" Yes: "CUDA's guide names allocations of page-locked memory";
    FreeHost = "free_host" Yes: "it waits for all work of the context";
    RegisterHost = "register_host" Yes: "it maps memory of the host for the device";
    UnregisterHost = "unregister_host" Yes: "it waits for all work of the context";
    CopyH2d = "copy_h2d" Pageable: "such a copy passes through memory of the driver";
    CopyD2h = "copy_d2h" Pageable: "such a copy passes through memory of the driver";
    CopyD2d = "copy_d2d" No: "it is queued";
    Copy3d = "copy_3d" Pageable: "such a copy passes through memory of the driver";
    Fill = "fill" No: "it is queued";
    StreamCreate = "stream_create" No: "it makes a queue";
    StreamDestroy = "stream_destroy" No: "queued work still runs";
    StreamSynchronize = "stream_synchronize" Yes: "it is the wait for a stream";
    EventCreate = "event_create" No: "it makes an event";
    EventDestroy = "event_destroy" No: "waits that are queued still hold";
    EventRecord = "event_record" No: "it is queued";
    EventWait = "event_wait" No: "the stream waits, and the host does not";
    EventQuery = "event_query" No: "it answers at once";
    EventSynchronize = "event_synchronize" Yes: "it is the wait for an event";
    EventElapsedMs = "event_elapsed_ms" No: "both events have been passed";
    ModuleLoad = "module_load" Yes: "the driver compiles, and maps memory";
    ModuleUnload = "module_unload" Yes: "it waits for all work of the context";
    Function = "function" No: "it looks a name up";
    Launch = "launch" No: "it is queued";
    CaptureBegin = "capture_begin" No: "it takes effect on what is queued from then on";
    CaptureEnd = "capture_end" Yes: "what was released during the capture waits for all work then";
    GraphNodes = "graph_nodes" No: "it counts";
    GraphDestroy = "graph_destroy" No: "captured work does not run";
    GraphInstantiate = "graph_instantiate" Yes: "it may allocate memory on the device";
    GraphUpdate = "graph_update" No: "launches that are queued keep their operands";
    GraphLaunch = "graph_launch" No: "it is queued";
    GraphExecDestroy = "graph_exec_destroy" No: "launches that are queued still run";
}

/// Memory that a driver has given out, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MemoryStats {
    /// Device memory from `alloc`.
    pub device: Held,
    /// Device memory from `pool_alloc`. It is counted as free once its free is queued.
    pub pool: Held,
    /// Page-locked memory of the host from `alloc_host`.
    pub host: Held,
    /// Memory of the host that was registered.
    pub registered: Held,
}

/// Memory of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Held {
    /// Blocks that are held now.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Most bytes that were held at a time.
    pub peak_bytes: u64,
}

impl Stats {
    /// Returns the calls of a method, such as `stream_synchronize`.
    pub fn calls_of(&self, method: &str) -> u64 {
        self.calls.get(method).copied().unwrap_or_default()
    }

    /// Returns the calls since `before`, with the memory that is held now.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let calls = self.calls.iter().map(|(&name, &calls)| (name, calls.saturating_sub(before.calls_of(name))));
        Self {
            calls: calls.filter(|&(_, calls)| calls > 0).collect(),
            can_synchronize: self.can_synchronize.saturating_sub(before.can_synchronize),
            memory: self.memory,
        }
    }
}

/// Writes the calls, one kind a line, and the memory.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.calls.values().sum();
        writeln!(f, "calls to the driver: {total}, of which {} can synchronise", self.can_synchronize)?;
        for (name, calls) in &self.calls {
            writeln!(f, "  {name:20} {calls:>9}")?;
        }
        writeln!(f, "memory held: blocks, bytes, most bytes")?;
        let MemoryStats { device, pool, host, registered } = &self.memory;
        for (kind, held) in [("device", device), ("pool", pool), ("host", host), ("registered", registered)] {
            writeln!(f, "  {kind:20} {:>9} {:>14} {:>14}", held.blocks, held.bytes, held.peak_bytes)?;
        }
        Ok(())
    }
}
