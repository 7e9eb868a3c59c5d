//! Building blocks of device programs: owners that release in order, over the raw driver.
//!
//! An owner that cannot release keeps the error for [`Program::failure`], so that a test sees
//! failures of releases too.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;

use warpstride::driver::{
    Driver, EventHandle, FunctionHandle, GraphExecHandle, GraphHandle, HostKind, ModuleHandle, Multiprocessors,
    StreamHandle,
};
use warpstride::launch_shape::LaunchShape;
use warpstride::{Error, ErrorKind, Result};

/// Computes `dst[i] = src[i] * factor + 1` for `i < n`, in simple PTX.
pub(crate) const AFFINE: &str = "
.version 7.0
.target sm_70
.address_size 64

.visible .entry affine(
    .param .u64 affine_param_0,
    .param .u64 affine_param_1,
    .param .u32 affine_param_2,
    .param .u32 affine_param_3
)
{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<8>;

    ld.param.u64 %rd1, [affine_param_0];
    ld.param.u64 %rd2, [affine_param_1];
    ld.param.u32 %r1, [affine_param_2];
    ld.param.u32 %r2, [affine_param_3];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 bra $L__BB0_2;

    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mul.wide.u32 %rd5, %r6, 4;
    add.s64 %rd6, %rd4, %rd5;
    ld.global.u32 %r7, [%rd6];
    mad.lo.s32 %r8, %r7, %r2, 1;
    add.s64 %rd7, %rd3, %rd5;
    st.global.u32 [%rd7], %r8;

$L__BB0_2:
    ret;
}
";

/// A kernel with one parameter, the address of a word that it adds 1 to.
pub(crate) const COUNT: &str = include_str!("../data/count.ptx");

/// Has variables, and a kernel that puts the bytes of its dynamic shared memory into `cells[0]`.
pub(crate) const VARIABLE: &str = "
.version 7.0
.target sm_70
.address_size 64

.visible .const .align 4 .u32 factors[4] = {1, 2, 3, 4};
.visible .global .align 4 .u32 cells[8];
.extern .shared .align 4 .b8 tile[];

.visible .entry shared()
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;

    mov.u32 %r1, %dynamic_smem_size;
    ld.const.u32 %r2, [factors+4];
    mul.lo.s32 %r3, %r1, %r2;
    mov.u64 %rd1, cells;
    st.global.u32 [%rd1], %r3;
    ret;
}
";

/// The kernel `affine`, with its module.
pub(crate) struct Affine<'p> {
    pub(crate) module: Module<'p>,
    pub(crate) function: FunctionHandle,
}

/// Returns the parameters of `affine` in the layout that its PTX declares.
pub(crate) fn affine_params(dst: &Buffer<'_>, src: &Buffer<'_>, n: u32, factor: u32) -> Vec<u8> {
    let parts = [&dst.address.to_le_bytes()[..], &src.address.to_le_bytes(), &n.to_le_bytes(), &factor.to_le_bytes()];
    parts.concat()
}

/// Returns a grid of blocks of 64 threads that covers `n`.
pub(crate) fn cover(n: u32) -> LaunchShape {
    LaunchShape { grid: [n.div_ceil(64), 1, 1], block: [64, 1, 1], dynamic_shared: 0 }
}

/// Asserts that bytes are as expected; if not, says where they first differ instead of printing
/// them all.
#[track_caller]
pub(crate) fn assert_same(found: &[u8], expected: &[u8], what: impl std::fmt::Display) {
    assert_eq!(found.len(), expected.len(), "{what}: bytes");
    if let Some(at) = found.iter().zip(expected).position(|(found, expected)| found != expected) {
        panic!("{what}: byte {at} is {}, not {}", found[at], expected[at]);
    }
}

/// A place in memory, in bytes from its start.
type At<'a, T> = (&'a T, usize);

/// A driver in use.
pub(crate) struct Program {
    pub(crate) driver: Arc<dyn Driver>,
    failure: RefCell<Option<Error>>,
}

/// Makes an owner for each kind of handle that a driver gives out: a struct of the program, the
/// handle and further fields, which calls the named method when it is dropped.
macro_rules! owners {
    ($(
        $(#[$doc:meta])* $owner:ident { $handle:ident: $type:ty $(, $field:ident: $with:ty)? } by $release:ident
    )*) => {$(
        $(#[$doc])*
        pub(crate) struct $owner<'p> {
            program: &'p Program,
            pub(crate) $handle: $type,
            $(pub(crate) $field: $with,)?
        }

        impl Drop for $owner<'_> {
            fn drop(&mut self) {
                // SAFETY: made by this driver and live until now. Nothing uses the handle from now
                // on, nor a function of the module or the host memory behind it.
                self.program.released(unsafe { self.program.driver.$release(self.$handle) });
            }
        }
    )*};
}

owners! {
    /// Device memory.
    Buffer { address: u64, bytes: usize } by free
    /// Page-locked host memory. It is accessed through raw pointers only, because the device shares
    /// it.
    Pinned { memory: NonNull<u8>, bytes: usize } by free_host
    /// Host memory that is registered, with its owner, which keeps it in place. It is accessed
    /// through raw pointers only, as [`Pinned`].
    Registered { memory: NonNull<u8>, _owner: Vec<u8> } by unregister_host
    /// A stream.
    Stream { handle: StreamHandle } by stream_destroy
    /// An event.
    Event { handle: EventHandle } by event_destroy
    /// A module.
    Module { handle: ModuleHandle } by module_unload
    /// Captured work.
    Graph { handle: GraphHandle } by graph_destroy
    /// An executable graph.
    Exec { handle: GraphExecHandle } by graph_exec_destroy
}

/// Device memory of the driver's pool, allocated and freed in the order of a stream.
pub(crate) struct Pooled<'p> {
    stream: &'p Stream<'p>,
    pub(crate) address: u64,
}

impl Program {
    pub(crate) fn new(driver: &Arc<dyn Driver>) -> Self {
        Self { driver: Arc::clone(driver), failure: RefCell::new(None) }
    }

    /// Returns the first failure of a release.
    pub(crate) fn failure(self) -> Option<Error> {
        self.failure.into_inner()
    }

    fn released(&self, result: Result<()>) {
        if let Err(error) = result {
            self.failure.borrow_mut().get_or_insert(error);
        }
    }

    pub(crate) fn buffer(&self, bytes: usize) -> Result<Buffer<'_>> {
        Ok(Buffer { program: self, address: self.driver.alloc(bytes as u64)?, bytes })
    }

    pub(crate) fn pinned(&self, bytes: usize) -> Result<Pinned<'_>> {
        Ok(Pinned { program: self, memory: self.driver.alloc_host(bytes, HostKind::Cached)?, bytes })
    }

    /// Returns zeroed memory that is registered.
    pub(crate) fn registered(&self, bytes: usize) -> Result<Registered<'_>> {
        let mut owner = vec![0; bytes];
        let memory = NonNull::new(owner.as_mut_ptr()).expect("a vector has an address");
        // SAFETY: the vector has these bytes, and outlives the registration.
        unsafe { self.driver.register_host(memory, bytes) }?;
        Ok(Registered { program: self, memory, _owner: owner })
    }

    pub(crate) fn stream(&self) -> Result<Stream<'_>> {
        Ok(Stream { program: self, handle: self.driver.stream_create()? })
    }

    /// Makes a stream on a part of the multiprocessors; `None` where the driver has no such parts.
    pub(crate) fn stream_on(&self, of: Multiprocessors) -> Result<Option<Stream<'_>>> {
        match self.driver.stream_create_on(of) {
            Err(error) if error.kind() == ErrorKind::Unavailable => Ok(None),
            made => Ok(Some(Stream { program: self, handle: made? })),
        }
    }

    pub(crate) fn event(&self) -> Result<Event<'_>> {
        Ok(Event { program: self, handle: self.driver.event_create()? })
    }

    pub(crate) fn untimed_event(&self) -> Result<Event<'_>> {
        Ok(Event { program: self, handle: self.driver.event_create_untimed()? })
    }

    pub(crate) fn module(&self, ptx: &str) -> Result<Module<'_>> {
        Ok(Module { program: self, handle: self.driver.module_load(ptx)? })
    }

    /// Loads `affine`.
    pub(crate) fn affine(&self) -> Result<Affine<'_>> {
        let module = self.module(AFFINE)?;
        Ok(Affine { function: module.function("affine")?, module })
    }

    /// Returns a buffer that holds `bytes`.
    pub(crate) fn upload(&self, bytes: &[u8]) -> Result<Buffer<'_>> {
        let (stream, host, buffer) = (self.stream()?, self.pinned(bytes.len())?, self.buffer(bytes.len())?);
        host.set(bytes);
        stream.h2d((&buffer, 0), (&host, 0), bytes.len())?;
        stream.synchronize()?;
        Ok(buffer)
    }

    /// Returns the contents of `buffer` once `stream` has done its work.
    pub(crate) fn download(&self, buffer: &Buffer<'_>, stream: &Stream<'_>) -> Result<Vec<u8>> {
        let host = self.pinned(buffer.bytes)?;
        stream.d2h((&host, 0), (buffer, 0), buffer.bytes)?;
        stream.synchronize()?;
        Ok(host.get())
    }
}

impl Pinned<'_> {
    /// Writes `bytes` at its start.
    pub(crate) fn set(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.bytes);
        // SAFETY: the memory has this number of bytes. Cases that write under a queued copy do so
        // on purpose, on the software GPU, where no work runs meanwhile.
        unsafe { self.memory.as_ptr().copy_from(bytes.as_ptr(), bytes.len()) };
    }

    /// Returns a copy of all bytes.
    pub(crate) fn get(&self) -> Vec<u8> {
        // SAFETY: the memory was zeroed when it was made, so it is initialised; no work writes it
        // during this borrow: on a GPU cases wait first, and on the software GPU no work runs
        // meanwhile.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.bytes) }.to_vec()
    }
}

impl<'p> Stream<'p> {
    pub(crate) fn pooled(&self, bytes: usize) -> Result<Pooled<'_>> {
        // SAFETY: the stream is live while its owner is.
        Ok(Pooled { stream: self, address: unsafe { self.driver().pool_alloc(bytes as u64, self.handle) }? })
    }

    fn driver(&self) -> &'p dyn Driver {
        &*self.program.driver
    }

    /// Captures what `work` queues on this stream. The capture ends even if `work` fails.
    pub(crate) fn capture(&self, work: impl FnOnce() -> Result<()>) -> Result<Graph<'p>> {
        self.begin_capture()?;
        let worked = work();
        let graph = self.end_capture();
        worked.and(graph)
    }

    pub(crate) fn begin_capture(&self) -> Result<()> {
        // SAFETY: the stream is live while its owner is, and cases wait for its copies before.
        unsafe { self.driver().capture_begin(self.handle) }
    }

    pub(crate) fn end_capture(&self) -> Result<Graph<'p>> {
        // SAFETY: the stream is live while its owner is.
        let handle = unsafe { self.driver().capture_end(self.handle) }?;
        Ok(Graph { program: self.program, handle })
    }

    pub(crate) fn is_capturing(&self) -> Result<bool> {
        // SAFETY: the stream is live while its owner is.
        unsafe { self.driver().is_capturing(self.handle) }
    }

    pub(crate) fn h2d(&self, (dst, at): At<'_, Buffer<'_>>, (src, of): At<'_, Pinned<'_>>, bytes: usize) -> Result<()> {
        assert!(at + bytes <= dst.bytes && of + bytes <= src.bytes);
        let from = src.memory.as_ptr().cast_const().wrapping_add(of);
        // SAFETY: both ranges are in bounds; the memory's drop lets queued work run first.
        unsafe { self.driver().copy_h2d(dst.address + at as u64, from, bytes, self.handle) }
    }

    pub(crate) fn d2h(&self, (dst, at): At<'_, Pinned<'_>>, (src, of): At<'_, Buffer<'_>>, bytes: usize) -> Result<()> {
        assert!(at + bytes <= dst.bytes && of + bytes <= src.bytes);
        let to = dst.memory.as_ptr().wrapping_add(at);
        // SAFETY: as for `h2d`.
        unsafe { self.driver().copy_d2h(to, src.address + of as u64, bytes, self.handle) }
    }

    pub(crate) fn d2d(&self, (dst, at): At<'_, Buffer<'_>>, (src, of): At<'_, Buffer<'_>>, bytes: usize) -> Result<()> {
        assert!(at + bytes <= dst.bytes && of + bytes <= src.bytes);
        let (dst, src) = (dst.address + at as u64, src.address + of as u64);
        // SAFETY: both ranges are in bounds, and cases copy between different buffers.
        unsafe { self.driver().copy_d2d(dst, src, bytes as u64, self.handle) }
    }

    pub(crate) fn fill(&self, dst: &Buffer<'_>, at: usize, value: u8, bytes: usize) -> Result<()> {
        assert!(at + bytes <= dst.bytes);
        // SAFETY: the range is in bounds.
        unsafe { self.driver().fill(dst.address + at as u64, value, bytes as u64, self.handle) }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is live while its owner is.
        unsafe { self.driver().stream_synchronize(self.handle) }
    }

    pub(crate) fn record(&self, event: &Event<'_>) -> Result<()> {
        // SAFETY: both are live while their owners are.
        unsafe { self.driver().event_record(event.handle, self.handle) }
    }

    pub(crate) fn wait(&self, event: &Event<'_>) -> Result<()> {
        // SAFETY: both are live while their owners are.
        unsafe { self.driver().event_wait(event.handle, self.handle) }
    }

    /// Launches `affine` on the first `n` values of two buffers, which may be one.
    pub(crate) fn affine(&self, affine: &Affine<'_>, [dst, src]: [&Buffer<'_>; 2], n: u32, factor: u32) -> Result<()> {
        assert!(4 * n as usize <= dst.bytes.min(src.bytes));
        // SAFETY: both ranges are in bounds, and each thread reads and writes its own value.
        unsafe { self.launch(affine.function, &cover(n), &affine_params(dst, src, n, factor)) }
    }

    /// Launches a kernel.
    ///
    /// # Safety
    ///
    /// As [`Driver::launch`], but for the stream.
    pub(crate) unsafe fn launch(&self, function: FunctionHandle, shape: &LaunchShape, params: &[u8]) -> Result<()> {
        // SAFETY: the caller's promises; the stream is live while its owner is.
        unsafe { self.driver().launch(function, shape, params, self.handle) }
    }

    /// Launches a kernel of one parameter, whose blocks all run at the same time.
    ///
    /// # Safety
    ///
    /// As [`Driver::launch_cooperative`], but for the stream.
    pub(crate) unsafe fn launch_cooperative(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
    ) -> Result<()> {
        // SAFETY: the caller's promises; the stream is live while its owner is.
        unsafe { self.driver().launch_cooperative(function, shape, params, self.handle) }
    }
}

impl Event<'_> {
    pub(crate) fn query(&self) -> Result<bool> {
        // SAFETY: the event is live while its owner is.
        unsafe { self.program.driver.event_query(self.handle) }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        // SAFETY: the event is live while its owner is.
        unsafe { self.program.driver.event_synchronize(self.handle) }
    }

    pub(crate) fn ms_until(&self, end: &Self) -> Result<f32> {
        // SAFETY: both are live while their owners are.
        unsafe { self.program.driver.event_elapsed_ms(self.handle, end.handle) }
    }
}

impl<'p> Graph<'p> {
    pub(crate) fn nodes(&self) -> Result<usize> {
        // SAFETY: the graph is live while its owner is, which is of this thread.
        unsafe { self.program.driver.graph_nodes(self.handle) }
    }

    pub(crate) fn instantiate(&self) -> Result<Exec<'p>> {
        // SAFETY: as for `nodes`.
        let handle = unsafe { self.program.driver.graph_instantiate(self.handle) }?;
        Ok(Exec { program: self.program, handle })
    }
}

impl Exec<'_> {
    /// Launches it. Cases keep the buffers and modules of its work, and order its launches with
    /// other work, unless they show what comes of it on the software GPU.
    pub(crate) fn launch(&self, stream: &Stream<'_>) -> Result<()> {
        // SAFETY: both are live while their owners are, which are of this thread.
        unsafe { self.program.driver.graph_launch(self.handle, stream.handle) }
    }

    pub(crate) fn update(&self, graph: &Graph<'_>) -> Result<bool> {
        // SAFETY: both are live while their owners are, which are of this thread.
        unsafe { self.program.driver.graph_update(self.handle, graph.handle) }
    }
}

impl Module<'_> {
    pub(crate) fn function(&self, name: &str) -> Result<FunctionHandle> {
        // SAFETY: the module is live while its owner is.
        unsafe { self.program.driver.function(self.handle, name) }
    }

    pub(crate) fn variable(&self, name: &str) -> Result<(u64, u64)> {
        // SAFETY: as above.
        unsafe { self.program.driver.variable(self.handle, name) }
    }

    /// Allows dynamic shared memory for a function of this module.
    pub(crate) fn allow_dynamic_shared(&self, function: FunctionHandle, bytes: u32) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.program.driver.allow_dynamic_shared(function, bytes) }
    }
}

impl Drop for Pooled<'_> {
    fn drop(&mut self) {
        let Stream { program, handle } = *self.stream;
        // SAFETY: made by this driver on this live stream, where all its uses are queued.
        program.released(unsafe { program.driver.pool_free(self.address, handle) });
    }
}
