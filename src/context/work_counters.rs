//! Counters in device memory, by which the blocks of a launch share out its work.
//!
//! A launch finds its counter at 0 and leaves it at 0. Launches of one stream run one after the
//! other and share a counter; launches that may overlap must not. So a counter belongs to one
//! stream, until the work of that stream has run.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::driver::{Counted, Driver, Layer, StreamHandle};
use crate::error::Result;
use crate::sync::lock;

/// Bytes from one counter to the next, so that no two streams write one line of the L2 cache.
const APART: u64 = 128;

/// Bytes of a page of counters.
const PAGE: u64 = 256 * APART;

/// The counters of a device. Their memory lives as long as the device, and the counts of the
/// driver leave it out.
pub(super) struct WorkCounters {
    driver: Arc<Counted>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pages: Vec<u64>,
    /// The part of the last page that no stream has had.
    unused: Range<u64>,
    /// Counters that are 0, and that no queued work uses.
    free: Vec<u64>,
}

impl WorkCounters {
    pub(super) fn new(driver: Arc<Counted>) -> Self {
        Self { driver, state: Mutex::default() }
    }

    fn driver(&self) -> &dyn Driver {
        Layer::inner(self.driver.as_ref())
    }

    /// Returns the address of a counter that is 0 for work queued on `stream` from now on. This
    /// waits for nothing: a counter that no stream has had is filled in the order of the stream.
    ///
    /// # Safety
    ///
    /// - `stream` is live, and not being captured.
    pub(super) unsafe fn take(&self, stream: StreamHandle) -> Result<u64> {
        let counter = {
            let mut state = lock(&self.state);
            if let Some(counter) = state.free.pop() {
                return Ok(counter);
            }
            if state.unused.is_empty() {
                let page = self.driver().alloc(PAGE)?;
                state.pages.push(page);
                state.unused = page..page + PAGE;
            }
            let counter = state.unused.start;
            state.unused.start += APART;
            counter
        };
        // A counter whose fill is refused goes to no stream. SAFETY: it lies within a page, which
        // lives as long as `self`; the caller promises a live stream.
        unsafe { self.driver().fill(counter, 0, size_of::<u32>() as u64, stream) }?;
        Ok(counter)
    }

    /// Takes a counter back, all of whose work has run.
    pub(super) fn give(&self, counter: u64) {
        lock(&self.state).free.push(counter);
    }
}

impl Drop for WorkCounters {
    fn drop(&mut self) {
        for page in std::mem::take(&mut lock(&self.state).pages) {
            // A drop returns no error. SAFETY: `alloc` returned the address, and no stream is left
            // that could queue work on it.
            let _ = unsafe { self.driver().free(page) };
        }
    }
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::context::{Device, Stream};
    use crate::driver::soft::Soft;
    use crate::driver::trace::{Call, Method, Trace};

    fn device() -> (Arc<Trace>, Device) {
        let trace = Arc::new(Trace::new(Arc::new(Soft::new())));
        let device = Device::with_driver(Arc::clone(&trace) as Arc<dyn Driver>).unwrap();
        (trace, device)
    }

    /// Returns the word at a counter, in the order of the stream.
    fn word(stream: &Stream, counter: u64) -> u32 {
        let mut word = [0xff; 4];
        // SAFETY: the counter has four bytes, and the wait ends the copy.
        unsafe { stream.context().driver().copy_d2h(word.as_mut_ptr(), counter, 4, stream.handle()) }.unwrap();
        stream.synchronize().unwrap();
        u32::from_le_bytes(word)
    }

    #[test]
    fn thousands_of_streams_have_counters_of_their_own_that_are_0() {
        let (trace, device) = device();
        let before = device.stats().memory;
        let mut streams: Vec<_> = (0..2000).map(|_| device.stream().unwrap()).collect();
        streams.push(device.default_stream().clone());
        let counters: BTreeSet<_> = streams.iter().map(Stream::work_counter).collect();
        assert_eq!(counters.len(), streams.len());
        let mut neighbours = counters.iter().zip(counters.iter().skip(1));
        assert!(neighbours.all(|(one, next)| next - one >= APART) && !counters.contains(&0));
        let calls = trace.calls().len();
        assert!(streams.iter().all(|stream| counters.contains(&stream.work_counter())));
        assert_eq!(trace.calls().len(), calls, "a stream that has a counter calls nothing");
        assert!(streams.iter().step_by(100).all(|stream| word(stream, stream.work_counter()) == 0));
        assert_eq!(device.stats().memory.device, before.device, "no page is a caller's allocation");
        drop(streams);
        drop(device);
        assert!(trace.live().is_empty(), "{:?}", trace.live());
    }

    #[test]
    fn a_counter_goes_on_once_the_work_of_its_stream_has_run() {
        let (trace, device) = device();
        let first = device.stream().unwrap();
        let counter = first.work_counter();
        let bytes = device.alloc_on::<u8>(100, &first).unwrap();
        for _ in 0..100 {
            // SAFETY: the buffer has the bytes, and lives until the device is synchronised.
            unsafe { device.driver().fill(bytes.address(), 1, 100, first.handle()) }.unwrap();
        }
        drop(first);
        let second = device.stream().unwrap();
        assert_ne!(second.work_counter(), counter, "work of the dropped stream is queued");
        // The buffer keeps a handle of its stream.
        drop(bytes);
        let third = device.stream().unwrap();
        assert_ne!(third.work_counter(), counter, "work of the dropped stream is still queued");
        device.synchronize().unwrap();
        let fills = || trace.calls().iter().filter(|call| matches!(call, Call::Fill { bytes: 4, .. })).count();
        let before = fills();
        let fourth = device.stream().unwrap();
        assert_eq!((fourth.work_counter(), fills()), (counter, before));
    }

    #[test]
    fn captures_and_streams_of_others_have_none() {
        let (_, device) = device();
        let mut kept = None;
        let graph = device.default_stream().capture(|stream| {
            kept = Some(stream.clone());
            assert_eq!(stream.work_counter(), 0);
            Ok(())
        });
        graph.unwrap();
        assert_eq!(kept.unwrap().work_counter(), 0, "after the capture too");
        let own = device.stream().unwrap();
        // SAFETY: the stream outlives its second handle.
        let foreign = unsafe { device.stream_from_raw(own.handle()) }.unwrap();
        assert!(foreign.work_counter() == 0 && own.work_counter() != 0);
    }

    #[test]
    fn a_stream_that_gets_no_memory_does_without() {
        for method in [Method::Alloc, Method::Fill] {
            let (trace, device) = device();
            let streams = [(); 2].map(|()| device.stream().unwrap());
            trace.fail_method(method);
            assert_eq!(streams[0].work_counter(), 0);
            trace.fail_nothing();
            assert_eq!(streams[0].work_counter(), 0, "it asks once");
            assert_eq!(word(&streams[1], streams[1].work_counter()), 0);
        }
    }
}
