//! New memory of the host for what a copy brings.

use crate::element::Element;
use crate::error::{Result, counted, require};

/// Reserves host memory for `len` elements.
pub(super) fn room_for<T: Element>(len: usize) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    require!(
        elements.try_reserve_exact(len).is_ok(),
        OutOfMemory,
        "the host cannot allocate {} to download {} of type {}; free some memory, or copy into existing memory \
         (download_into)",
        counted(len as u128 * size_of::<T>() as u128, "byte"),
        counted(len, "element"),
        T::DTYPE
    );
    advise_huge_pages(&mut elements);
    Ok(elements)
}

/// Makes host memory of `len` elements whose bytes are 0.
#[cfg(feature = "distributed")]
pub(crate) fn zeroed<T: Element>(len: usize) -> Result<Vec<T>> {
    let mut elements: Vec<T> = room_for(len)?;
    // SAFETY: the vector has room for `len` elements.
    unsafe { elements.as_mut_ptr().write_bytes(0, len) };
    // SAFETY: all of them are written, and every pattern of bytes is an element.
    unsafe { elements.set_len(len) };
    Ok(elements)
}

/// Asks the system for huge pages behind large memory that nothing has touched yet. It provides
/// each page when the copy first writes there, and huge ones are 512 times fewer faults.
#[cfg(all(feature = "cuda", target_os = "linux"))]
fn advise_huge_pages<T>(elements: &mut Vec<T>) {
    const HUGE_PAGE: usize = 2 << 20;
    let first = elements.as_mut_ptr().cast::<u8>();
    let (start, bytes) = (first.align_offset(HUGE_PAGE), elements.capacity() * size_of::<T>());
    let whole = bytes.saturating_sub(start) / HUGE_PAGE * HUGE_PAGE;
    if whole > 0 {
        // A system without huge pages refuses, and small pages will do. SAFETY: the range lies
        // within the vector's memory, whose contents the advice leaves as they are.
        let _ = unsafe { libc::madvise(first.wrapping_add(start).cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(all(feature = "cuda", target_os = "linux")))]
fn advise_huge_pages<T>(_elements: &mut Vec<T>) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn more_than_the_host_has_is_an_error() {
        let error = room_for::<u16>(1 << 61).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert!(error.to_string().contains("4611686018427387904 bytes"), "{error}");
        assert!(error.to_string().contains("download_into"), "{error}");
    }

    #[test]
    fn memory_of_any_size_may_be_huge_pages() {
        for len in [0, 1, 1 << 20, (5 << 20) + 3] {
            let mut elements = room_for::<u16>(len).unwrap();
            elements.resize(len, 7);
            assert!(elements.iter().all(|&element| element == 7) && elements.capacity() >= len);
        }
    }
}
