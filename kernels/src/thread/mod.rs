//! Operations of one thread that Rust lacks: special registers, and loads and stores by address
//! space.
//!
//! This is the only file with intrinsics and inline PTX. A Rust pointer from a parameter struct
//! compiles to *generic* loads and stores, and a 16-byte struct copy to two 8-byte ones. So each
//! access here is one explicit instruction of the element's width, in the named address space.

pub mod cache;
pub mod grain;
pub mod matrix;
pub mod number;
pub mod quad;

use core::arch::asm;
use core::arch::nvptx;

macro_rules! registers {
    ($($name:ident = $intrinsic:ident, $doc:literal;)*) => {$(
        #[doc = $doc]
        #[inline(always)]
        pub fn $name() -> u32 {
            // SAFETY: reads a special register, which every thread has.
            unsafe { nvptx::$intrinsic() }
        }
    )*};
}

registers! {
    thread_x = _thread_idx_x, "`%tid.x`: this thread's column in its block.";
    thread_y = _thread_idx_y, "`%tid.y`: this thread's row in its block.";
    block_x = _block_idx_x, "`%ctaid.x`";
    block_y = _block_idx_y, "`%ctaid.y`";
    block_z = _block_idx_z, "`%ctaid.z`";
    block_width = _block_dim_x, "`%ntid.x`: threads of a block in x.";
    grid_x = _grid_dim_x, "`%nctaid.x`: blocks in x.";
    grid_y = _grid_dim_y, "`%nctaid.y`: blocks in y.";
}

/// Returns nanoseconds of the device's global timer.
#[inline(always)]
pub fn globaltimer() -> u64 {
    let now: u64;
    // SAFETY: reads a special register. Not `pure`: two reads differ.
    unsafe { asm!("mov.u64 {}, %globaltimer;", out(reg64) now, options(nomem, nostack)) };
    now
}

/// Returns the upper half of a product. LLVM would compute a 64-bit product with 64-bit
/// multiplications.
#[inline(always)]
pub fn high_product(a: u32, b: u32) -> u32 {
    let high: u32;
    // SAFETY: arithmetic.
    unsafe { asm!("mul.hi.u32 {}, {}, {};", out(reg32) high, in(reg32) a, in(reg32) b, options(pure, nomem, nostack)) };
    high
}

/// Waits for every thread of the block, and makes their shared stores visible.
///
/// # Safety
///
/// Every thread of the block calls it, outside divergent control flow: `bar.sync` is aligned.
#[inline(always)]
pub unsafe fn barrier() {
    // SAFETY: as the caller promises. The intrinsic, not `asm!`: only the intrinsic is convergent
    // to LLVM.
    unsafe { nvptx::_syncthreads() }
}

unsafe extern "C" {
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    fn shuffle_butterfly(lanes: u32, bits: u32, across: u32, clamp: u32) -> u32;
}

/// Returns the bits of the lane whose number differs from this one's in the bits `across`.
///
/// # Safety
///
/// Every lane of the warp calls it together, with the same `across`, which is below 32.
#[inline(always)]
pub unsafe fn from_across(bits: u32, across: u32) -> u32 {
    // SAFETY: as the caller promises. The intrinsic, not `asm!`: only the intrinsic is convergent
    // to LLVM.
    unsafe { shuffle_butterfly(u32::MAX, bits, across, 31) }
}

/// An address in global memory.
#[derive(Clone, Copy)]
pub struct Global(u64);

impl Global {
    /// Makes a global address from a generic one, which the host passes.
    #[inline(always)]
    pub fn new(generic: u64) -> Self {
        let global: u64;
        // SAFETY: arithmetic on an address; nothing is accessed.
        unsafe {
            asm!("cvta.to.global.u64 {}, {};", out(reg64) global, in(reg64) generic, options(pure, nomem, nostack))
        };
        Global(global)
    }

    /// Returns the address's bits.
    #[inline(always)]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns the address with these bits.
    #[inline(always)]
    pub fn of_bits(bits: u64) -> Self {
        Global(bits)
    }

    /// An address that is never accessed.
    pub const NONE: Self = Global(0);

    /// Returns whether it is lower.
    #[inline(always)]
    pub fn is_before(self, other: Self) -> bool {
        self.0 < other.0
    }

    /// Returns the bytes from the last multiple of 16.
    #[inline(always)]
    pub fn misalignment(self) -> u32 {
        self.0 as u32 & 15
    }

    /// Returns the low 32 bits.
    #[inline(always)]
    pub fn low(self) -> u32 {
        self.0 as u32
    }

    /// Returns the bytes from the last multiple of 32, where a sector starts.
    #[inline(always)]
    pub fn sector_misalignment(self) -> u32 {
        self.0 as u32 & 31
    }

    /// Returns the address `bytes` further, modulo 2^64, so a negative offset is its two's
    /// complement.
    #[inline(always)]
    pub fn offset(self, bytes: u64) -> Self {
        Global(self.0.wrapping_add(bytes))
    }
}

core::arch::global_asm!(".extern .shared .align 16 .b8 dynamic_shared[];");

/// A type that takes shared memory.
pub trait Footprint {
    /// Its bytes.
    const BYTES: u32;
}

/// An address in the block's shared memory.
#[derive(Clone, Copy)]
pub struct Shared(u32);

impl Shared {
    /// Reserves memory for one `F`, aligned to 16.
    ///
    /// The variable is local to the braces of the `asm!`, so a second inlining of this function is
    /// a second variable: a kernel calls it once and passes the address on.
    #[inline(always)]
    pub fn reserve<F: Footprint>() -> Self {
        let address: u32;
        // SAFETY: declares a variable and takes its address; nothing is accessed. Not `pure`, so
        // that LLVM keeps it one.
        unsafe {
            asm!(
                "{{ .shared .align 16 .b8 tile[{bytes}]; mov.u32 {address}, tile; }}",
                bytes = const F::BYTES,
                address = out(reg32) address,
                options(nomem, nostack),
            )
        };
        Shared(address)
    }

    /// Returns the start of the launch's dynamic shared memory.
    #[inline(always)]
    pub fn dynamic() -> Self {
        let address: u32;
        // SAFETY: takes an address; nothing is accessed.
        unsafe { asm!("mov.u32 {}, dynamic_shared;", out(reg32) address, options(pure, nomem, nostack)) };
        Shared(address)
    }

    /// Returns the address `bytes` further.
    #[inline(always)]
    pub fn offset(self, bytes: u32) -> Self {
        Shared(self.0.wrapping_add(bytes))
    }

    /// Returns the address in the low bits, and the number above them.
    #[inline(always)]
    pub fn untagged(self, bits: u32) -> (Self, u32) {
        (Shared(self.0 & ((1 << bits) - 1)), self.0 >> bits)
    }
}

/// An element in kernels: a number of bytes that one instruction loads or stores.
pub trait Word: Copy {
    /// Its width in bytes.
    const BYTES: u32;
    /// All bits clear.
    const ZERO: Self;

    /// Loads from global memory.
    ///
    /// # Safety
    ///
    /// `from` is aligned to the width, allocated, and not written meanwhile.
    unsafe fn load_global(from: Global) -> Self;

    /// Stores to global memory.
    ///
    /// # Safety
    ///
    /// `to` is aligned to the width, allocated, and not accessed by another thread meanwhile.
    unsafe fn store_global(self, to: Global);

    /// Loads from global memory with an eviction policy of the L2 cache.
    ///
    /// # Safety
    ///
    /// As [`load_global`](Word::load_global).
    unsafe fn load_global_by(policy: Policy, from: Global) -> Self;

    /// Stores to global memory with an eviction policy of the L2 cache.
    ///
    /// # Safety
    ///
    /// As [`store_global`](Word::store_global).
    unsafe fn store_global_by(self, policy: Policy, to: Global);

    /// Loads from shared memory.
    ///
    /// # Safety
    ///
    /// As [`load_global`](Word::load_global), inside the block's reserved memory.
    unsafe fn load_shared(from: Shared) -> Self;

    /// Stores to shared memory.
    ///
    /// # Safety
    ///
    /// As [`store_global`](Word::store_global), inside the block's reserved memory.
    unsafe fn store_shared(self, to: Shared);
}

macro_rules! word {
    ($name:ident: $bits:literal, $suffix:literal, $operand:literal, $class:ident, $repr:ty: $($part:ident)+) => {
        #[doc = concat!("An element of ", $bits, " bits.")]
        #[derive(Clone, Copy)]
        pub struct $name { $($part: $repr),+ }

        impl $name {
            /// Makes the element with these bits; a store drops those beyond its width.
            #[inline(always)]
            pub const fn new($($part: $repr),+) -> Self {
                $name { $($part),+ }
            }

            $(
                /// Returns these bits of the element.
                #[inline(always)]
                pub const fn $part(self) -> $repr {
                    self.$part
                }
            )+
        }

        impl Word for $name {
            const BYTES: u32 = $bits / 8;
            const ZERO: Self = $name { $($part: 0),+ };

            #[inline(always)]
            unsafe fn load_global(from: Global) -> Self {
                $(let $part: $repr;)+
                // SAFETY: as the caller promises.
                unsafe {
                    asm!(concat!("ld.global.", $suffix, " ", $operand, ", [{at}];"),
                        $($part = out($class) $part,)+ at = in(reg64) from.0, options(readonly, nostack))
                };
                $name { $($part),+ }
            }

            #[inline(always)]
            unsafe fn store_global(self, to: Global) {
                let $name { $($part),+ } = self;
                // SAFETY: as the caller promises.
                unsafe {
                    asm!(concat!("st.global.", $suffix, " [{at}], ", $operand, ";"),
                        $($part = in($class) $part,)+ at = in(reg64) to.0, options(nostack))
                };
            }

            #[inline(always)]
            unsafe fn load_global_by(policy: Policy, from: Global) -> Self {
                $(let $part: $repr;)+
                // SAFETY: as the caller promises.
                unsafe {
                    asm!(concat!("ld.global.L2::cache_hint.", $suffix, " ", $operand, ", [{at}], {policy};"),
                        $($part = out($class) $part,)+ at = in(reg64) from.0, policy = in(reg64) policy.0,
                        options(readonly, nostack))
                };
                $name { $($part),+ }
            }

            #[inline(always)]
            unsafe fn store_global_by(self, policy: Policy, to: Global) {
                let $name { $($part),+ } = self;
                // SAFETY: as the caller promises.
                unsafe {
                    asm!(concat!("st.global.L2::cache_hint.", $suffix, " [{at}], ", $operand, ", {policy};"),
                        $($part = in($class) $part,)+ at = in(reg64) to.0, policy = in(reg64) policy.0, options(nostack))
                };
            }

            #[inline(always)]
            unsafe fn load_shared(from: Shared) -> Self {
                $(let $part: $repr;)+
                // SAFETY: as the caller promises.
                unsafe {
                    asm!(concat!("ld.shared.", $suffix, " ", $operand, ", [{at}];"),
                        $($part = out($class) $part,)+ at = in(reg32) from.0, options(readonly, nostack))
                };
                $name { $($part),+ }
            }

            #[inline(always)]
            unsafe fn store_shared(self, to: Shared) {
                let $name { $($part),+ } = self;
                // SAFETY: as the caller promises.
                unsafe {
                    asm!(concat!("st.shared.", $suffix, " [{at}], ", $operand, ";"),
                        $($part = in($class) $part,)+ at = in(reg32) to.0, options(nostack))
                };
            }
        }
    };
}

// Narrow elements are in 32-bit registers, as in the hardware: in 16 bits, LLVM packs several into
// one and unpacks them again.
word! { B8: 8, "b8", "{low}", reg32, u32: low }
word! { B16: 16, "b16", "{low}", reg32, u32: low }
word! { B32: 32, "b32", "{low}", reg32, u32: low }
word! { B64: 64, "b64", "{low}", reg64, u64: low }
word! { B32x2: 64, "v2.b32", "{{{low}, {high}}}", reg32, u32: low high }
word! { B128: 128, "v2.b64", "{{{low}, {high}}}", reg64, u64: low high }

/// A vector: sixteen bytes as four registers, each with its own elements. See
/// [`crate::thread::quad`].
pub type Quad = [u32; 4];

macro_rules! load_quad {
    ($name:ident $space:literal $address:ident $class:ident $doc:literal) => {
        #[doc = $doc]
        ///
        /// # Safety
        ///
        /// As [`Word::load_global`], for an element of 16 bytes.
        #[inline(always)]
        pub unsafe fn $name(from: $address) -> Quad {
            let (a, b, c, d): (u32, u32, u32, u32);
            // SAFETY: as the caller promises.
            unsafe {
                asm!(concat!("ld.", $space, ".v4.b32 {{{a}, {b}, {c}, {d}}}, [{at}];"), a = out(reg32) a, b = out(reg32) b,
                    c = out(reg32) c, d = out(reg32) d, at = in($class) from.0, options(readonly, nostack))
            };
            [a, b, c, d]
        }
    };
}

macro_rules! store_quad {
    ($name:ident $space:literal $address:ident $class:ident $doc:literal) => {
        #[doc = $doc]
        ///
        /// # Safety
        ///
        /// As [`Word::store_global`], for an element of 16 bytes.
        #[inline(always)]
        pub unsafe fn $name(to: $address, [a, b, c, d]: Quad) {
            // SAFETY: as the caller promises.
            unsafe {
                asm!(concat!("st.", $space, ".v4.b32 [{at}], {{{a}, {b}, {c}, {d}}};"), a = in(reg32) a, b = in(reg32) b,
                    c = in(reg32) c, d = in(reg32) d, at = in($class) to.0, options(nostack))
            };
        }
    };
}

load_quad! { load_quad "global" Global reg64 "Loads 16 bytes." }
load_quad! { load_quad_once "global.cs" Global reg64 "Loads 16 bytes, cached to be evicted first: for data that is accessed once." }
load_quad! { load_quad_of_line "global.L2::128B" Global reg64
"Loads 16 bytes and has the L2 cache fetch their whole line of 128: for runs that end within a line, of which another thread \
needs the rest." }
load_quad! { load_shared_quad "shared" Shared reg32 "Loads 16 bytes." }
store_quad! { store_quad "global" Global reg64 "Stores 16 bytes." }
store_quad! { store_quad_once "global.cs" Global reg64 "Stores 16 bytes, cached to be evicted first." }
store_quad! { store_shared_quad "shared" Shared reg32 "Stores 16 bytes." }

/// Adds to a number in global memory. Threads that read the sum by [`load_acquire`] see what this
/// thread wrote before.
///
/// # Safety
///
/// The address is allocated and aligned, and other threads only add there and read meanwhile.
#[inline(always)]
pub unsafe fn add_release(to: Global, value: u64) {
    // SAFETY: as the caller promises.
    unsafe {
        asm!("red.release.gpu.global.add.u64 [{at}], {value};", at = in(reg64) to.0, value = in(reg64) value,
            options(nostack))
    };
}

/// Loads a number to which other threads add by [`add_release`].
///
/// # Safety
///
/// As for [`add_release`].
#[inline(always)]
pub unsafe fn load_acquire(from: Global) -> u64 {
    let value: u64;
    // SAFETY: as the caller promises.
    unsafe {
        asm!("ld.acquire.gpu.global.u64 {value}, [{at}];", value = out(reg64) value, at = in(reg64) from.0,
            options(nostack))
    };
    value
}

/// Returns a vector of which the compiler knows nothing, so that it computes anew what it might
/// keep.
#[inline(always)]
pub fn unknown([mut a, mut b, mut c, mut d]: Quad) -> Quad {
    // SAFETY: the assembly has no instruction.
    unsafe {
        asm!("// {a} {b} {c} {d}", a = inout(reg32) a, b = inout(reg32) b, c = inout(reg32) c, d = inout(reg32) d,
            options(nomem, nostack))
    };
    [a, b, c, d]
}

/// Has the L2 cache fetch the line of an address.
///
/// # Safety
///
/// The address is allocated.
#[inline(always)]
pub unsafe fn prefetch(from: Global) {
    // SAFETY: as the caller promises.
    unsafe { asm!("prefetch.global.L2 [{at}];", at = in(reg64) from.0, options(nostack)) };
}

/// Adds to a number in shared memory, and returns the number that was there.
///
/// # Safety
///
/// The address is inside the block's memory and aligned, and other threads only add there
/// meanwhile.
#[inline(always)]
pub unsafe fn add_shared(to: Shared, value: u32) -> u32 {
    let before: u32;
    // SAFETY: as the caller promises.
    unsafe {
        asm!("atom.shared.add.u32 {before}, [{at}], {value};", before = out(reg32) before, at = in(reg32) to.0,
            value = in(reg32) value, options(nostack))
    };
    before
}

/// Adds 1 to a counter in global memory, which follows on `last` with 0, and returns its value
/// before.
///
/// # Safety
///
/// The address is allocated and aligned, and other threads only count there meanwhile.
#[inline(always)]
pub unsafe fn count_up(at: Global, last: u32) -> u32 {
    let before: u32;
    // SAFETY: as the caller promises.
    unsafe {
        asm!("atom.global.inc.u32 {before}, [{at}], {last};", before = out(reg32) before, at = in(reg64) at.0,
            last = in(reg32) last, options(nostack))
    };
    before
}

/// Copies `BYTES` bytes, 8 or 16, to shared memory without waiting for them, with an eviction
/// policy of the L2 cache: `sm_80` and later.
///
/// # Safety
///
/// As [`Word::load_global`] and [`Word::store_shared`]; the copy is done after
/// [`wait_for_copies`].
#[inline(always)]
pub unsafe fn copy_async_by<const BYTES: u32>(policy: Policy, to: Shared, from: Global) {
    // SAFETY: as the caller promises.
    unsafe {
        if BYTES == 16 {
            asm!("cp.async.cg.shared.global.L2::cache_hint [{to}], [{from}], 16, {policy};", to = in(reg32) to.0,
                from = in(reg64) from.0, policy = in(reg64) policy.0, options(nostack));
        } else {
            asm!("cp.async.ca.shared.global.L2::cache_hint [{to}], [{from}], 8, {policy};", to = in(reg32) to.0,
                from = in(reg64) from.0, policy = in(reg64) policy.0, options(nostack));
        }
    }
}

/// Waits for this thread's copies to shared memory.
#[inline(always)]
pub fn wait_for_copies() {
    // SAFETY: waits only.
    unsafe { asm!("cp.async.wait_all;", options(nostack)) }
}

/// An eviction policy of the L2 cache, for accesses that name it: `sm_80` and later.
#[derive(Clone, Copy)]
pub struct Policy(u64);

macro_rules! policy {
    ($name:ident $doc:literal) => {
        #[doc = $doc]
        #[inline(always)]
        pub fn $name() -> Self {
            let policy: u64;
            // SAFETY: makes a value; nothing is accessed.
            unsafe {
                asm!(concat!("createpolicy.fractional.L2::", stringify!($name), ".b64 {}, 1.0;"), out(reg64) policy,
                    options(pure, nomem, nostack))
            };
            Policy(policy)
        }
    };
}

impl Policy {
    policy! { evict_first "Its lines are evicted first." }
    policy! { evict_last "Its lines are evicted last." }
}

macro_rules! load_quad_by {
    ($name:ident $hint:literal $doc:literal) => {
        #[doc = $doc]
        ///
        /// # Safety
        ///
        /// As [`Word::load_global`], for an element of 16 bytes.
        #[inline(always)]
        pub unsafe fn $name(policy: Policy, from: Global) -> Quad {
            let (a, b, c, d): (u32, u32, u32, u32);
            // SAFETY: as the caller promises.
            unsafe {
                asm!(concat!("ld.global.", $hint, ".v4.b32 {{{a}, {b}, {c}, {d}}}, [{at}], {policy};"), a = out(reg32) a,
                    b = out(reg32) b, c = out(reg32) c, d = out(reg32) d, at = in(reg64) from.0, policy = in(reg64) policy.0,
                    options(readonly, nostack))
            };
            [a, b, c, d]
        }
    };
}

load_quad_by! { load_quad_by "L2::cache_hint" "Loads 16 bytes with an eviction policy of the L2 cache." }
load_quad_by! { load_quad_of_line_by "L2::cache_hint.L2::128B" "As [`load_quad_of_line`], with an eviction policy." }

/// Stores 16 bytes with an eviction policy of the L2 cache.
///
/// # Safety
///
/// As [`Word::store_global`], for an element of 16 bytes.
#[inline(always)]
pub unsafe fn store_quad_by(policy: Policy, to: Global, [a, b, c, d]: Quad) {
    // SAFETY: as the caller promises.
    unsafe {
        asm!("st.global.L2::cache_hint.v4.b32 [{at}], {{{a}, {b}, {c}, {d}}}, {policy};", a = in(reg32) a, b = in(reg32) b,
            c = in(reg32) c, d = in(reg32) d, at = in(reg64) to.0, policy = in(reg64) policy.0, options(nostack))
    };
}
