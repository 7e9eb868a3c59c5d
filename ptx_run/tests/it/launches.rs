//! Launches that succeed.

use std::ffi::c_void;

use crate::api::{address, kernel, launch, store_7};

/// Pages of the process's own, between pages that nothing can access.
pub(crate) struct Pages {
    first: *mut c_void,
    bytes: usize,
}

impl Pages {
    const PAGE: usize = 4096;

    /// Maps them near an address, or anywhere for 0.
    pub(crate) fn new(near: usize, pages: usize) -> Self {
        let bytes = (pages + 2) * Self::PAGE;
        let place = std::ptr::without_provenance_mut(near);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping is at no address that something else has.
        let first = unsafe { libc::mmap(place, bytes, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(first, libc::MAP_FAILED);
        let within = first.wrapping_byte_add(Self::PAGE);
        // SAFETY: the pages are ours.
        let changed = unsafe { libc::mprotect(within, pages * Self::PAGE, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(changed, 0);
        Self { first, bytes }
    }

    pub(crate) fn begin(&self) -> u64 {
        (self.first.expose_provenance() + Self::PAGE) as u64
    }

    pub(crate) fn end(&self) -> u64 {
        (self.first.addr() + self.bytes - Self::PAGE) as u64
    }

    fn word(&self) -> u32 {
        // SAFETY: the page can be read, and no launch runs.
        unsafe { self.first.wrapping_byte_add(Self::PAGE).cast::<u32>().read() }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the pages are ours, and nothing uses them from now on.
        unsafe { libc::munmap(self.first, self.bytes) };
    }
}

#[test]
fn a_kernel_uses_the_programs_memory_at_its_own_addresses() {
    let saxpy = kernel(
        ".param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n",
        "ld.param.u64 %d1, [x];\nld.param.u64 %d2, [y];\nld.param.f32 %f1, [a];\nld.param.u32 %r1, [n];
         mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\nmad.lo.u32 %r5, %r2, %r3, %r4;
         setp.ge.u32 %p1, %r5, %r1;\n@%p1 ret;\nmul.wide.u32 %d3, %r5, 4;
         add.u64 %d1, %d1, %d3;\nadd.u64 %d2, %d2, %d3;
         ld.global.f32 %f2, [%d1];\nld.global.f32 %f3, [%d2];\nfma.rn.f32 %f3, %f1, %f2, %f3;\nst.global.f32 [%d2], %f3;",
    )
    .replace(".reg .b16", ".reg .pred %p<2>;\n.reg .b16");
    let mut x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut y = vec![1.0_f32; 1000];
    // The high bytes of a narrow parameter are nothing to it.
    let a = u64::from(2.0_f32.to_bits()) | 0xdead << 32;
    for _ in 0..2 {
        assert_eq!(launch(&saxpy, &[address(&mut x), address(&mut y), a, 999], 128, 8, 0), 0);
    }
    assert!((0..999).all(|i| y[i] == 1.0 + 4.0 * i as f32) && y[999] == 1.0);
}

#[test]
fn numbers_of_each_width_arrive() {
    let copy = kernel(
        ".param .u64 out, .param .u64 wide, .param .u32 word, .param .u16 half, .param .u8 byte",
        "ld.param.u64 %d1, [out];\nld.param.u64 %d2, [wide];\nld.param.u32 %r1, [word];\nld.param.u16 %h1, [half];
         ld.param.u8 %h2, [byte];\nst.global.u64 [%d1], %d2;\nst.global.u32 [%d1+8], %r1;\nst.global.u16 [%d1+12], %h1;
         st.global.u8 [%d1+14], %h2;",
    );
    let mut out = [0_u64; 2];
    assert_eq!(launch(&copy, &[address(&mut out), u64::MAX - 1, 0x1_0000_0002, 0x1_0003, 0x104], 1, 1, 0), 0);
    assert_eq!(out, [u64::MAX - 1, 0x0004_0003_0000_0002]);
}

#[test]
fn a_block_has_the_dynamic_shared_memory_that_was_asked_for() {
    let reverse = kernel(
        ".param .u64 out",
        "ld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, shared_words;\nshl.b32 %r3, %r1, 2;
         add.u32 %r4, %r2, %r3;\nst.shared.u32 [%r4], %r1;\nbar.sync 0;\nsub.u32 %r5, 252, %r3;\nadd.u32 %r5, %r2, %r5;
         ld.shared.u32 %r6, [%r5];\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d1, %d1, %d2;\nst.global.u32 [%d1], %r6;",
    )
    .replace(".visible", ".extern .shared .align 4 .b8 shared_words[];\n.visible");
    let mut out = [0_u32; 64];
    assert_eq!(launch(&reverse, &[address(&mut out)], 64, 1, 256), 0);
    assert!(out.iter().rev().eq(&Vec::from_iter(0..64)), "{out:?}");
    assert_eq!(launch(&reverse, &[address(&mut out)], 64, 1, 252), 700);
}

#[test]
fn variables_begin_afresh_with_each_call() {
    let count = kernel(
        ".param .u64 out",
        "ld.param.u64 %d1, [out];\nmov.u64 %d2, counter;\natom.global.add.u32 %r1, [%d2], 1;\nst.global.u32 [%d1], %r1;",
    )
    .replace(".visible", ".global .u32 counter = 5;\n.visible");
    for _ in 0..2 {
        let mut out = [0_u32];
        assert_eq!(launch(&count, &[address(&mut out)], 1, 1, 0), 0);
        assert_eq!(out, [5]);
    }
}

/// tinygrad's mock of NVIDIA's driver maps its buffers there.
#[test]
fn memory_at_a_low_address_is_used_there() {
    for near in [0x10_0000_0000, 0x40_0000] {
        let pages = Pages::new(near, 1);
        assert_eq!(launch(&store_7(), &[pages.begin()], 1, 1, 0), 0);
        assert_eq!(pages.word(), 7);
    }
}

#[test]
fn threads_launch_at_a_time_on_the_same_memory() {
    let add = kernel(
        ".param .u64 sums, .param .u64 out",
        "ld.param.u64 %d1, [sums];\nred.global.add.u32 [%d1], 1;\nmov.u64 %d2, 3;\nred.global.add.u64 [%d1+8], %d2;
         ld.param.u64 %d3, [out];\nmov.u32 %r1, %ctaid.x;\nmul.wide.u32 %d4, %r1, 4;\nadd.u64 %d3, %d3, %d4;
         red.global.add.u32 [%d3], 1;",
    );
    let mut sums = [0_u64; 2];
    let place = address(&mut sums);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            // Each thread has texts of its own, too.
            let add = format!("{add}// {thread}\n");
            scope.spawn(move || {
                let mut out = vec![0_u32; 16];
                for _ in 0..20 {
                    assert_eq!(launch(&add, &[place, address(&mut out)], 64, 16, 0), 0);
                }
                assert_eq!(out, vec![20 * 64; 16]);
            });
        }
    });
    assert_eq!(sums, [8 * 20 * 16 * 64, 3 * 8 * 20 * 16 * 64]);
}
