//! A driver that runs a debug build of the crate's kernels, which `scripts/debug-kernels` makes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ptr::NonNull;
use std::sync::Arc;

use warpstride::Result;
use warpstride::abi::ENTRIES;
use warpstride::counters::Counters;
use warpstride::driver::{
    Copy3d, DeviceInfo, Driver, EventHandle, FunctionHandle, GraphExecHandle, GraphHandle, Graphs, HostKind, Memory,
    ModuleHandle, Modules, StreamHandle, Streams,
};
use warpstride::launch_shape::LaunchShape;

/// Returns the path of the debug build's PTX, if there is one.
pub(crate) fn path() -> Option<OsString> {
    std::env::var_os("WARPSTRIDE_DEBUG_KERNELS")
}

/// Wraps another driver. A module of one of the crate's entries becomes that entry of the debug
/// build.
#[derive(Debug)]
pub(crate) struct DebugBuild {
    inner: Arc<dyn Driver>,
    text: String,
}

impl DebugBuild {
    pub(crate) fn new(inner: Arc<dyn Driver>) -> Self {
        let path = path().expect("the case is run where it names the PTX");
        Self { inner, text: std::fs::read_to_string(path).expect("the PTX is there") }
    }
}

/// A function that the core library needs for texts of panics.
const MEMCMP: &str = "
.func (.param .b32 func_retval0) memcmp(.param .b64 one, .param .b64 other, .param .b64 bytes)
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<5>;
    ld.param.b64 %rd1, [one];
    ld.param.b64 %rd2, [other];
    ld.param.b64 %rd3, [bytes];
    mov.b32 %r3, 0;
next:
    setp.eq.b64 %p1, %rd3, 0;
    @%p1 bra done;
    ld.b8 %r1, [%rd1];
    ld.b8 %r2, [%rd2];
    sub.s32 %r3, %r1, %r2;
    setp.ne.b32 %p2, %r3, 0;
    @%p2 bra done;
    add.s64 %rd1, %rd1, 1;
    add.s64 %rd2, %rd2, 1;
    add.s64 %rd3, %rd3, -1;
    bra next;
done:
    st.param.b32 [func_retval0], %r3;
    ret;
}
";

/// Returns `name` of a debug build and the functions that it reaches. Most of the rest is the whole
/// core library, which exceeds the software GPU's limits.
fn module(text: &str, name: &str) -> String {
    // File names and debug sections follow the code and are not needed here.
    let (code, rest) = text.split_once("\n\t.file").expect("a debug build names its files");
    let files = rest.split("\n\t.section").next().unwrap_or_default();
    let starts: Vec<usize> = [".visible", ".func", ".extern", ".global"]
        .iter()
        .flat_map(|directive| code.match_indices(directive).map(|(at, _)| at))
        .filter(|&at| code[..at].ends_with('\n'))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .chain([code.len()])
        .collect();
    let items: Vec<&str> = starts.windows(2).map(|ends| &code[ends[0]..ends[1]]).collect();
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, item) in items.iter().enumerate() {
        // The word that is not a directive, a number or a function's result.
        let own = words(item)
            .find(|word| !word.starts_with(|c: char| c == '.' || c.is_ascii_digit()) && *word != "func_retval0");
        by_name.entry(own.expect("an item has a name")).or_default().push(number);
    }
    let mut open: Vec<usize> = by_name.get(name).expect("the debug build has the entry").clone();
    let mut reached = BTreeSet::new();
    while let Some(number) = open.pop() {
        if reached.insert(number) {
            open.extend(words(items[number]).filter_map(|word| by_name.get(word)).flatten());
        }
    }
    let defined =
        |item| if words(item).any(|word| word == ".extern") && item.contains(" memcmp") { MEMCMP } else { item };
    let reached: String = reached.into_iter().map(|number| defined(items[number])).collect();
    [&code[..starts[0]], &reached, "\n\t.file", files, "\n"].concat()
}

/// Returns its words without comments: a comment after each function announces the next.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let words = code.flat_map(|code| code.split(|c: char| !(c.is_ascii_alphanumeric() || "_$.%".contains(c))));
    words.filter(|word| !word.is_empty())
}

macro_rules! forward {
    ($(fn $safe:ident($($operand:ident: $type:ty),*) -> $result:ty;)* ---
     $(unsafe fn $name:ident($($given:ident: $of:ty),*) -> $gives:ty;)*) => {
        $(fn $safe(&self, $($operand: $type),*) -> $result {
            self.inner.$safe($($operand),*)
        })*
        $(unsafe fn $name(&self, $($given: $of),*) -> $gives {
            // SAFETY: the caller's promises are the inner driver's.
            unsafe { self.inner.$name($($given),*) }
        })*
    };
}

// SAFETY: all parts belong to the inner driver.
unsafe impl Driver for DebugBuild {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    forward! {
        fn counters() -> Option<Counters>;
        ---
    }
}

// SAFETY: all calls are the inner driver's.
unsafe impl Memory for DebugBuild {
    forward! {
        fn memory() -> Result<(u64, u64)>;
        fn reset_persisting_l2() -> Result<()>;
        fn alloc(bytes: u64) -> Result<u64>;
        fn has_pool() -> bool;
        fn pool_trim(keep: u64) -> Result<()>;
        fn alloc_host(bytes: usize, kind: HostKind) -> Result<NonNull<u8>>;
        ---
        unsafe fn free(address: u64) -> Result<()>;
        unsafe fn pool_alloc(bytes: u64, stream: StreamHandle) -> Result<u64>;
        unsafe fn pool_free(address: u64, stream: StreamHandle) -> Result<()>;
        unsafe fn free_host(memory: NonNull<u8>) -> Result<()>;
        unsafe fn register_host(memory: NonNull<u8>, bytes: usize) -> Result<()>;
        unsafe fn unregister_host(memory: NonNull<u8>) -> Result<()>;
        unsafe fn copy_h2d(dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()>;
        unsafe fn copy_d2h(dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()>;
        unsafe fn copy_d2d(dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()>;
        unsafe fn copy_3d(copy: &Copy3d, stream: StreamHandle) -> Result<()>;
        unsafe fn fill(dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()>;
    }
}

// SAFETY: all calls are the inner driver's.
unsafe impl Streams for DebugBuild {
    forward! {
        fn stream_create() -> Result<StreamHandle>;
        fn event_create() -> Result<EventHandle>;
        ---
        unsafe fn stream_destroy(stream: StreamHandle) -> Result<()>;
        unsafe fn stream_synchronize(stream: StreamHandle) -> Result<()>;
        unsafe fn event_destroy(event: EventHandle) -> Result<()>;
        unsafe fn event_record(event: EventHandle, stream: StreamHandle) -> Result<()>;
        unsafe fn event_wait(event: EventHandle, stream: StreamHandle) -> Result<()>;
        unsafe fn event_query(event: EventHandle) -> Result<bool>;
        unsafe fn event_synchronize(event: EventHandle) -> Result<()>;
        unsafe fn event_elapsed_ms(start: EventHandle, end: EventHandle) -> Result<f32>;
    }
}

// SAFETY: all calls are the inner driver's; only the text of a module may differ.
unsafe impl Modules for DebugBuild {
    fn module_load(&self, ptx: &str) -> Result<ModuleHandle> {
        let is_of = |name: &str| ptx.contains(&format!(".visible .entry {name}("));
        match ENTRIES.iter().find(|entry| is_of(entry.name)) {
            Some(entry) => self.inner.module_load(&module(&self.text, entry.name)),
            None => self.inner.module_load(ptx),
        }
    }

    forward! {
        ---
        unsafe fn module_unload(module: ModuleHandle) -> Result<()>;
        unsafe fn function(module: ModuleHandle, name: &str) -> Result<FunctionHandle>;
        unsafe fn launch(function: FunctionHandle, shape: &LaunchShape, params: &[u8], stream: StreamHandle) -> Result<()>;
    }
}

// SAFETY: all calls are the inner driver's.
unsafe impl Graphs for DebugBuild {
    forward! {
        ---
        unsafe fn capture_begin(stream: StreamHandle) -> Result<()>;
        unsafe fn capture_end(stream: StreamHandle) -> Result<GraphHandle>;
        unsafe fn graph_nodes(graph: GraphHandle) -> Result<usize>;
        unsafe fn graph_destroy(graph: GraphHandle) -> Result<()>;
        unsafe fn graph_instantiate(graph: GraphHandle) -> Result<GraphExecHandle>;
        unsafe fn graph_update(exec: GraphExecHandle, graph: GraphHandle) -> Result<bool>;
        unsafe fn graph_launch(exec: GraphExecHandle, stream: StreamHandle) -> Result<()>;
        unsafe fn graph_exec_destroy(exec: GraphExecHandle) -> Result<()>;
    }
}
