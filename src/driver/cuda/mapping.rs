//! Anonymous memory in huge pages, whose pages several threads touch.

use std::num::NonZero;
use std::ptr::NonNull;
use std::sync::Mutex;

use memmap2::{Advice, MmapMut};

use crate::driver::PAGE;
use crate::sync::lock;

/// The alignment at which the system can give huge pages, where it has any.
const HUGE_PAGE: usize = 2 << 20;

/// Bytes that are worth a thread: the system takes longer to fill them than to start it.
const BYTES_A_THREAD: usize = 4 << 20;

/// Zeroed memory of this process with every page there. A mapping of a huge page or more begins at
/// one.
pub(super) struct Mapping {
    map: MmapMut,
    start: usize,
    bytes: usize,
}

impl Mapping {
    /// Maps and touches `bytes` bytes; `None` if the system has too few.
    pub(super) fn new(bytes: usize) -> Option<Self> {
        let huge = bytes / HUGE_PAGE * HUGE_PAGE;
        let spare = if huge > 0 { HUGE_PAGE } else { 0 };
        let mut map = MmapMut::map_anon(bytes.checked_add(spare)?).ok()?;
        let start = if huge > 0 { map.as_ptr().align_offset(HUGE_PAGE) } else { 0 };
        // A system without huge pages refuses, and small pages will do. The end that fills no huge
        // page takes small ones.
        let _ = map.advise_range(Advice::HugePage, start, huge);
        touch(map.get_mut(start..start.checked_add(bytes)?)?);
        Some(Self { map, start, bytes })
    }

    pub(super) fn memory(&mut self) -> NonNull<u8> {
        NonNull::from(&mut self.map[self.start..]).cast()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Writes to each page, so that the system provides them all: on several threads, because it fills
/// each page with zeros first.
fn touch(memory: &mut [u8]) {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let helpers = cores.min(memory.len() / BYTES_A_THREAD).saturating_sub(1);
    let shares = Mutex::new(memory.chunks_mut(BYTES_A_THREAD));
    let touch_shares = || {
        let next = || lock(&shares).next();
        std::iter::from_fn(next).for_each(touch_pages);
    };
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            // Without a helper the others do its share.
            let _ = std::thread::Builder::new().spawn_scoped(scope, touch_shares);
        }
        touch_shares();
    });
}

fn touch_pages(memory: &mut [u8]) {
    for page in memory.chunks_mut(PAGE) {
        page[0] = std::hint::black_box(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_has_its_bytes_and_they_are_zero() {
        for bytes in [1, PAGE + 1, 2 * BYTES_A_THREAD + 5] {
            let mut mapping = Mapping::new(bytes).unwrap();
            assert_eq!(mapping.bytes(), bytes);
            let alignment = if bytes < HUGE_PAGE { PAGE } else { HUGE_PAGE };
            assert_eq!(mapping.memory().addr().get() % alignment, 0);
            assert!(mapping.map[mapping.start..][..bytes].iter().all(|&byte| byte == 0));
        }
        assert!(Mapping::new(usize::MAX).is_none());
        assert!(Mapping::new(1 << 60).is_none());
    }
}
