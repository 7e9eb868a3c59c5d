use super::*;

fn heap(bytes: u64) -> Allocation {
    Allocation::heap(1 << 40, bytes, 0).unwrap()
}

#[test]
fn chunks_are_apart_aligned_and_unwritten() {
    let heap = heap(256);
    let [a, b] = [5, 40].map(|bytes| heap.take_chunk(bytes).unwrap());
    assert_eq!([a, b].map(|address| address % GRAIN), [0, 0]);
    for (at, bytes, held) in [(a, 5, true), (a, 6, false), (a + 4, 1, true), (b, 40, true), (b - 1, 1, false)] {
        assert_eq!(heap.offset(at, bytes).is_some(), held, "{bytes} bytes at {at:#x}");
    }
    heap.written.add(a - heap.base, 5);
    heap.store32(a - heap.base, 7);
    assert_eq!(heap.free_chunk(a), Ok(()));
    assert_eq!([heap.free_chunk(a), heap.free_chunk(b + 1)], [Err(BadFree::Again), Err(BadFree::Foreign)]);
    assert_eq!(heap.described(a), Nearest { base: a, bytes: 5, freed: true, foreign: None });
    assert_eq!(heap.described(b + 39), Nearest { base: b, bytes: 40, freed: false, foreign: None });
    assert_eq!([heap.take_chunk(0), heap.take_chunk(u64::MAX), heap.take_chunk(200)], [None; 3]);
    // 80 of 256 bytes are in use, 32 of them are free, and the end has 144.
    let [_, again] = [128, 16].map(|bytes| heap.take_chunk(bytes).unwrap());
    assert_eq!(again, a);
    assert!(!heap.written.holds(0, 256) && heap.load32(a - heap.base) == POISON);
    assert!(!heap.described(a).freed);
}

#[test]
fn what_is_freed_is_one_range_again() {
    let heap = heap(1 << 12);
    let fill = || std::iter::from_fn(|| heap.take_chunk(48)).collect::<Vec<u64>>();
    for step in [1, 2, 3] {
        let chunks = fill();
        assert_eq!(chunks.len(), (1 << 12) / 64);
        assert_eq!(heap.take_chunk(1), None);
        for first in 0..step {
            for &chunk in chunks.iter().skip(first).step_by(step) {
                heap.free_chunk(chunk).unwrap();
            }
        }
        let whole = heap.take_chunk((1 << 12) - GRAIN).unwrap();
        heap.free_chunk(whole).unwrap();
    }
}

#[test]
fn memory_that_is_too_small_for_a_chunk_stays_fresh() {
    let heap = heap(256);
    let chunk = heap.take_chunk(16).unwrap();
    heap.free_chunk(chunk).unwrap();
    assert_eq!(heap.take_chunk(1 << 20), None);
    assert_ne!(heap.take_chunk(16), Some(chunk));
    assert_eq!(heap.free_chunk(chunk), Err(BadFree::Again));
}

#[test]
fn the_limit_is_set_before_the_first_use() {
    let memory = Memory::new(1 << 20);
    assert!(memory.heap().is_err(), "the default heap is larger than this memory");
    memory.set_heap_limit(1000).unwrap();
    let base = memory.heap().unwrap();
    assert_eq!((memory.heap().unwrap(), memory.used()), (base, 1008));
    assert!(memory.set_heap_limit(2000).unwrap_err().to_string().contains("has 1008 bytes"));
    assert!(memory.free(base).is_err() && memory.read(base + 16, &mut [0]).is_err());
    memory.end_heap();
    assert_eq!(memory.used(), 0);
    for bytes in [u64::MAX, 1 << 63, (1 << 20) + 1] {
        assert_eq!(memory.set_heap_limit(bytes).unwrap_err().kind(), ErrorKind::OutOfMemory);
    }
    memory.set_heap_limit(0).unwrap();
    assert!(Memory::hollow().heap().is_err());
}
