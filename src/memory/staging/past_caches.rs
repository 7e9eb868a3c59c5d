//! A copy within the host that leaves the caches to others.

/// Copies `bytes` bytes, past the caches where the processor can. What is written is read later, if
/// at all, and a plain store would first read each line that it overwrites.
///
/// # Safety
///
/// - `src` is valid for reads and `dst` for writes of `bytes` bytes, and they do not overlap.
/// - No other code uses the bytes of `dst`, or writes those of `src`, during the call.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn copy_past_caches(src: *const u8, dst: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    const WORD: usize = size_of::<__m128i>();
    // Such stores need aligned addresses.
    let head = dst.align_offset(WORD).min(bytes);
    let words = (bytes - head) / WORD;
    // SAFETY: the first `head` of the caller's bytes.
    unsafe { dst.copy_from_nonoverlapping(src, head) };
    let (from, to) = (src.wrapping_add(head), dst.wrapping_add(head));
    for at in 0..words {
        // SAFETY: the word lies within the caller's bytes; this load needs no alignment.
        let word = unsafe { _mm_loadu_si128(from.wrapping_add(at * WORD).cast()) };
        // SAFETY: the word lies within the caller's bytes, and `to` is aligned. The fence below
        // orders the store before what follows.
        unsafe { _mm_stream_si128(to.wrapping_add(at * WORD).cast(), word) };
    }
    let done = head + words * WORD;
    // SAFETY: the rest of the caller's bytes.
    unsafe { dst.wrapping_add(done).copy_from_nonoverlapping(src.wrapping_add(done), bytes - done) };
    // Other threads must see these stores before whatever tells them that the copy is done. SAFETY:
    // every such processor has the fence.
    unsafe { _mm_sfence() };
}

/// As above, on processors for which this crate knows no such store.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn copy_past_caches(src: *const u8, dst: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { dst.copy_from_nonoverlapping(src, bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_alignment_is_copied_and_nothing_else() {
        let source: Vec<u8> = (0..300).map(|at| (at * 7 + 1) as u8).collect();
        for (from, to) in [(0, 0), (1, 0), (0, 1), (3, 13), (15, 16), (8, 7)] {
            for bytes in (0..40).chain([63, 64, 65, 255, 256]) {
                let mut target = vec![0xEE; 300];
                // SAFETY: both vectors have these bytes, and nothing else uses them.
                unsafe { copy_past_caches(source[from..].as_ptr(), target[to..].as_mut_ptr(), bytes) };
                let mut expected = vec![0xEE; 300];
                expected[to..][..bytes].copy_from_slice(&source[from..][..bytes]);
                assert_eq!(target, expected, "{bytes} bytes from {from} to {to}");
            }
        }
    }
}
