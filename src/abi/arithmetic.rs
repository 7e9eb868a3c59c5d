//! Parameters of the kernels that compute with what they move, and of those that only show how fast memory is.

/// Threads in a block of the element-wise kernels.
pub const ELEMENTWISE_BLOCK: u32 = 1024;
/// Threads in a block of the reductions.
pub const REDUCE_BLOCK: u32 = 1024;
/// Most blocks of a reduction, and so the values that its second launch joins: 64 a multiprocessor of an H100.
pub const REDUCE_BLOCKS: u32 = 8448;
/// Quads that one thread of a reduction loads before it adds any of them, so that as many loads are in flight.
pub const REDUCE_STEPS: u32 = 2;
/// Quads that one thread of a probe moves, by the place of its entry in its family.
pub const PROBE_STEPS: [u32; 4] = [1, 2, 4, 8];

/// Where the quads of a range of elements lie: `first` elements before the first whole quad of the destination, `quads` whole
/// ones, and the rest of `len` elements behind them.
///
/// Lane `i` of the grid moves quad `i`, and the lanes below `len - quads * lanes of a quad` one of the other elements each. Where
/// the sides do not start equally far from a quad, there are no quads.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Elements.
    pub len: u64,
    /// Elements before the first quad.
    pub first: u64,
    /// Whole quads.
    pub quads: u64,
}

/// Parameters of `fill`: bytes of a pattern that repeats every 16 bytes of the address.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillParams {
    /// Device address of the first byte.
    pub dst: u64,
    /// Bytes; an element has one.
    pub span: Span,
    /// The bytes at multiples of 16 and the seven behind, as they lie in memory.
    pub low: u64,
    /// The eight bytes behind those.
    pub high: u64,
}

/// Parameters of the element-wise kernels: `dst[i] = f(dst[i], a[i], b[i], scalar)`. Each reads only what its formula names.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementwiseParams {
    /// Device address of the first element to write.
    pub dst: u64,
    /// Device address of the first of the first operand; may be `dst`.
    pub a: u64,
    /// Device address of the first of the second operand; may be `dst`.
    pub b: u64,
    /// The elements.
    pub span: Span,
    /// The bits of the scalar as a double.
    pub scalar: u64,
}

/// Parameters of the reductions over all elements: block `i` of `n` writes the value of its part of the elements to
/// `partials[i]`, in the type that the sum is computed in.
///
/// Block `i` takes the runs `i`, `i + n`, `i + 2 n` and so on, of [`REDUCE_STEPS`] times [`REDUCE_BLOCK`] quads each; the quads of
/// no whole run, and the elements of no quad, go to the threads of all blocks in turn. So a sum is the same on every run.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReduceParams {
    /// Device address of the first element of the first operand.
    pub a: u64,
    /// Device address of the first element of the second operand, where there is one.
    pub b: u64,
    /// Device address of as many values as there are blocks.
    pub partials: u64,
    /// The elements.
    pub span: Span,
}

/// Parameters of the probes, which read from `src`, or write to `dst`, or both: of quads as many as the grid has threads, times the
/// entry's [`PROBE_STEPS`].
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeParams {
    /// Device address to read, a multiple of 16.
    pub src: u64,
    /// Device address to write, a multiple of 16; of `probe_read` of one quad, which is written only where all that a thread has
    /// read, exclusive-ored, is `never`.
    pub dst: u64,
    /// A word that the data is not expected to give: so that the compiler cannot leave the loads out.
    pub never: u64,
}

const _: () = assert!(size_of::<Span>() == 24 && size_of::<FillParams>() == 48 && size_of::<ElementwiseParams>() == 56);
const _: () = assert!(size_of::<ReduceParams>() == 48 && size_of::<ProbeParams>() == 24);
