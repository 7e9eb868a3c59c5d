//! The same on the late software GPU: a block that another lane gets too early shows as wrong
//! bytes.

use super::*;
use crate::driver::soft::{Config, Soft};
use crate::driver::trace::Trace;
use crate::driver::{Memory, Streams};

struct Late {
    soft: Arc<Soft>,
    streams: [StreamHandle; LANES],
}

impl Uses for Late {
    fn write(&self, held: &Held) {
        for (at, bytes) in held.ends() {
            // SAFETY: the range lies in a live block, whose last uses the lane's stream waits for.
            unsafe { self.soft.fill(at, held.value, bytes as u64, self.streams[held.lane]) }.unwrap();
        }
    }

    fn check(&self, held: &Held) {
        let stream = self.streams[held.lane];
        let mut found = [[0; ENDS as usize]; 2];
        for (end, (at, bytes)) in found.iter_mut().zip(held.ends()) {
            // SAFETY: the range lies in a live block; the bytes live until the wait below.
            unsafe { self.soft.copy_d2h(end.as_mut_ptr(), at, bytes, stream) }.unwrap();
        }
        // SAFETY: the stream is live.
        unsafe { self.soft.stream_synchronize(stream) }.unwrap();
        let right =
            found.iter().zip(held.ends()).all(|(end, (_, bytes))| end[..bytes].iter().all(|&b| b == held.value));
        assert!(right, "a block was used by two at a time: {:?}", held.block);
    }

    fn follow(&self, lane: usize, other: usize) {
        let event = self.soft.event_create().unwrap();
        // SAFETY: the event and the stream are live.
        unsafe { self.soft.event_record(event, self.streams[other]) }.unwrap();
        // SAFETY: as above.
        unsafe { self.soft.event_wait(event, self.streams[lane]) }.unwrap();
        // SAFETY: nothing uses the event from now on.
        unsafe { self.soft.event_destroy(event) }.unwrap();
    }
}

#[test]
fn no_block_is_given_to_two_threads_while_work_is_queued() {
    for seed in 0..16 {
        let soft = Arc::new(Soft::with_config(Config { seed, memory_bytes: 64 << 20, ..Config::default() }));
        let trace = Arc::new(Trace::new(Arc::clone(&soft) as Arc<dyn Driver>));
        let caching = Caching::new(Arc::clone(&trace) as Arc<dyn Driver>).unwrap();
        let streams = [(); LANES].map(|()| soft.stream_create().unwrap());
        run(&caching, streams, &Late { soft, streams }, seed, 300);
        drop(caching);
        assert!(trace.live().is_empty(), "leaked: {:?}", trace.live());
    }
}
