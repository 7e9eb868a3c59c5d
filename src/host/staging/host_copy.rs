//! Copies within the host, some lines at a time, through the caches or past them.

/// How a copy stores its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stores {
    /// Past the caches where the processor can: what is written is read later, if at all, and a
    /// plain store would first read each line that it overwrites.
    PastCaches,
    /// Through the caches.
    ThroughCaches,
}

/// Copies `bytes` bytes. On x86-64 the copy fetches ahead, across the ends of pages.
///
/// # Safety
///
/// - `src` is valid for reads and `dst` for writes of `bytes` bytes, and they do not overlap.
/// - No other code uses the bytes of `dst`, or writes those of `src`, during the call.
pub(super) unsafe fn copy(stores: Stores, src: *const u8, dst: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promises.
    unsafe {
        x86::copy(stores, src, dst, bytes);
    }
    // This crate knows no such loads and stores of other processors.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = stores;
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promises.
    unsafe {
        dst.copy_from_nonoverlapping(src, bytes);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::is_x86_feature_detected;

    use super::Stores;

    /// Bytes of a line of the host's caches.
    const HOST_LINE: usize = 64;

    /// Bytes that are loaded before the first of them is stored, so that the loads wait together.
    const BLOCK: usize = 4 * HOST_LINE;

    /// Bytes between what is copied and what is fetched into all caches meanwhile. The processor by
    /// itself fetches no further than to the end of a page. On an H100's host (4 threads, 256 MiB)
    /// uploads took 28.5 GB/s so, 26.0 without the fetch, and 15.1 with one that passes the outer
    /// caches (`NTA`); downloads took 43.8, 39.9 and 34.3
    /// (benches/record/2026-11-23-h100/transfers.md).
    const AHEAD: usize = 2048;

    /// Copies by the widest words that the processor has. Those of AVX-512 need Rust 1.89.
    ///
    /// # Safety
    ///
    /// - As [`super::copy`].
    pub(super) unsafe fn copy(stores: Stores, src: *const u8, dst: *mut u8, bytes: usize) {
        let blocks = match (stores, is_x86_feature_detected!("avx")) {
            (Stores::PastCaches, true) => past_by_avx,
            (Stores::PastCaches, false) => past_by_sse2,
            (Stores::ThroughCaches, true) => through_by_avx,
            (Stores::ThroughCaches, false) => through_by_sse2,
        };
        // SAFETY: the caller's promises. All such processors have the words of SSE2.
        unsafe { copy_by(blocks, src, dst, bytes) }
    }

    /// A copy of whole blocks, by their number, to an address at the start of a line.
    pub(super) type CopyBlocks = unsafe fn(*const u8, *mut u8, usize);

    /// Copies whole blocks by `copy_blocks`, and the bytes before and behind them by plain stores.
    ///
    /// # Safety
    ///
    /// - As [`super::copy`], and as `copy_blocks`.
    pub(super) unsafe fn copy_by(copy_blocks: CopyBlocks, src: *const u8, dst: *mut u8, bytes: usize) {
        let head = dst.align_offset(HOST_LINE).min(bytes);
        let blocks = (bytes - head) / BLOCK;
        let done = head + blocks * BLOCK;
        // SAFETY: the first `head` of the caller's bytes.
        unsafe { dst.copy_from_nonoverlapping(src, head) };
        // SAFETY: the caller's bytes up to `done`. With at least one block, `head` led to a line.
        unsafe { copy_blocks(src.wrapping_add(head), dst.wrapping_add(head), blocks) };
        // SAFETY: the rest of the caller's bytes.
        unsafe { dst.wrapping_add(done).copy_from_nonoverlapping(src.wrapping_add(done), bytes - done) };
        // Other threads must see these stores before whatever tells them that the copy is done.
        // SAFETY: every such processor has the fence.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }

    /// Defines a [`CopyBlocks`] by words of one width.
    macro_rules! copy_blocks {
        ($name:ident: $feature:literal, $word:ident, $zero:ident, $load:ident, $store:ident) => {
            /// Copies `blocks` blocks.
            ///
            /// # Safety
            ///
            /// - As [`super::copy`] for the bytes of the blocks.
            /// - `dst` is at the start of a line.
            /// - The processor has the words.
            /// - The caller orders the stores by a fence.
            #[target_feature(enable = $feature)]
            #[allow(unused_unsafe, reason = "only older versions of Rust call the fetch unsafe")]
            pub(super) unsafe fn $name(src: *const u8, dst: *mut u8, blocks: usize) {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch, $load, $store, $word, $zero};

                for block in 0..blocks {
                    let (from, to) = (src.wrapping_add(block * BLOCK), dst.wrapping_add(block * BLOCK));
                    for line in 0..BLOCK / HOST_LINE {
                        // SAFETY: this fetch has no effect on addresses without memory.
                        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD + line * HOST_LINE).cast()) };
                    }
                    let mut words = [$zero(); BLOCK / size_of::<$word>()];
                    for (at, word) in words.iter_mut().enumerate() {
                        // SAFETY: the caller promises the block; this load needs no alignment.
                        *word = unsafe { $load(from.cast::<$word>().wrapping_add(at)) };
                    }
                    for (at, &word) in words.iter().enumerate() {
                        // SAFETY: the caller promises the block, whose words are aligned.
                        unsafe { $store(to.cast::<$word>().wrapping_add(at), word) };
                    }
                }
            }
        };
    }

    copy_blocks!(past_by_sse2: "sse2", __m128i, _mm_setzero_si128, _mm_loadu_si128, _mm_stream_si128);
    copy_blocks!(past_by_avx: "avx", __m256i, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_stream_si256);
    copy_blocks!(through_by_sse2: "sse2", __m128i, _mm_setzero_si128, _mm_loadu_si128, _mm_store_si128);
    copy_blocks!(through_by_avx: "avx", __m256i, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_store_si256);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries a copy on sizes and addresses that are not multiples of a line.
    fn check(copy: impl Fn(*const u8, *mut u8, usize)) {
        const SIZE: usize = 3000;
        let source: Vec<u8> = (0..SIZE).map(|at| (at * 7 + at / 251 + 1) as u8).collect();
        for (from, to) in [(0, 0), (1, 0), (0, 1), (3, 13), (15, 16), (8, 7), (64, 63)] {
            for bytes in (0..40).chain([63, 64, 65, 255, 256, 257, 319, 320, 321, 1023, 1024, 2901]) {
                let mut target = vec![0xEE; SIZE];
                copy(source[from..].as_ptr(), target[to..].as_mut_ptr(), bytes);
                let mut expected = vec![0xEE; SIZE];
                expected[to..][..bytes].copy_from_slice(&source[from..][..bytes]);
                assert!(target == expected, "{bytes} bytes from {from} to {to}");
            }
        }
    }

    #[test]
    fn every_length_and_alignment_is_copied_and_nothing_else() {
        for stores in [Stores::PastCaches, Stores::ThroughCaches] {
            // SAFETY: `check` gives vectors with these bytes, which nothing else uses.
            check(|src, dst, bytes| unsafe { copy(stores, src, dst, bytes) });
        }
    }

    /// The copy above takes the widest words of the processor.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn narrow_words_copy_the_same() {
        for blocks in [x86::past_by_sse2 as x86::CopyBlocks, x86::through_by_sse2] {
            // SAFETY: as above; every such processor has the words.
            check(|src, dst, bytes| unsafe { x86::copy_by(blocks, src, dst, bytes) });
        }
    }
}
