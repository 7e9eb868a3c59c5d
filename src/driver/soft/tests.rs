use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::*;
use crate::driver::{EventHandle, Memory as _, Streams as _};
use crate::error::ErrorKind;
use crate::random::SplitMix64;

fn wait(soft: &Soft, stream: StreamHandle) -> Result<()> {
    // SAFETY: no test destroys a stream.
    unsafe { soft.stream_synchronize(stream) }
}

fn noting(log: &Arc<Mutex<Vec<u32>>>, value: u32) -> HostCall {
    let log = Arc::clone(log);
    Box::new(move || {
        lock(&log).push(value);
        Ok(())
    })
}

/// A program's function may need what another thread holds while it calls the driver.
#[test]
fn a_call_of_the_host_leaves_the_driver_to_other_threads() {
    for seed in [0, 2] {
        let soft = Soft::with_seed(seed);
        let (busy, other) = (soft.stream_create().unwrap(), soft.stream_create().unwrap());
        let log = Arc::default();
        let ((begin, begun), (go_on, told)) = (mpsc::channel(), mpsc::channel());
        let told = Mutex::new(told);
        let call = move || {
            begin.send(()).unwrap();
            lock(&told).recv().unwrap();
            Ok(())
        };
        soft.call_host(busy, "waiting for a thread", None, Box::new(call)).unwrap();
        soft.call_host(busy, "noting", None, noting(&log, 2)).unwrap();
        soft.call_host(other, "noting", None, noting(&log, 1)).unwrap();
        thread::scope(|scope| {
            let [first, second] = [0, 1].map(|_| scope.spawn(|| wait(&soft, busy)));
            begun.recv().unwrap();
            let memory = soft.alloc(16).unwrap();
            assert_eq!(soft.poll_stream(busy), Ok(false), "the call runs");
            wait(&soft, other).unwrap();
            assert_eq!(*lock(&log), [1]);
            let soft = &soft;
            let freed = scope.spawn(move || {
                // SAFETY: no work uses the memory.
                unsafe { soft.free(memory) }
            });
            thread::sleep(Duration::from_millis(10));
            assert!(!freed.is_finished(), "a free waits for all work");
            go_on.send(()).unwrap();
            for waited in [first, second, freed] {
                waited.join().unwrap().unwrap();
            }
        });
        assert_eq!((lock(&log).as_slice(), soft.poll_stream(busy)), (&[1, 2][..], Ok(true)));
    }
}

#[test]
fn a_call_that_fails_or_panics_fails_the_device_for_all_threads() {
    for panics in [false, true] {
        let soft = Soft::new();
        let stream = soft.stream_create().unwrap();
        let (begin, begun) = mpsc::channel();
        let call = move || {
            begin.send(()).unwrap();
            thread::sleep(Duration::from_millis(20));
            assert!(!panics, "as calls may");
            Err(crate::Error::argument("as calls may"))
        };
        soft.call_host(stream, "failing", None, Box::new(call)).unwrap();
        thread::scope(|scope| {
            let first = scope.spawn(|| catch_unwind(AssertUnwindSafe(|| wait(&soft, stream))));
            begun.recv().unwrap();
            assert!(wait(&soft, stream).is_err());
            assert_eq!(first.join().unwrap().is_err(), panics);
        });
        let kind = if panics { ErrorKind::Driver } else { ErrorKind::InvalidArgument };
        assert_eq!(soft.alloc(1).unwrap_err().kind(), kind);
    }
}

#[test]
fn a_condition_holds_a_stream_back_until_the_host_meets_it() {
    let soft = Soft::new();
    let (stream, log) = (soft.stream_create().unwrap(), Arc::default());
    let met = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&met);
    soft.wait_until(stream, move || seen.load(Ordering::Relaxed)).unwrap();
    soft.call_host(stream, "noting", None, noting(&log, 1)).unwrap();
    assert_eq!(soft.poll_stream(stream), Ok(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(10));
            assert!(lock(&log).is_empty());
            met.store(true, Ordering::Relaxed);
        });
        wait(&soft, stream).unwrap();
    });
    assert_eq!(*lock(&log), [1]);
}

/// A program drawn at random, and what its work comes behind by a plain transitive closure.
struct Program {
    soft: Soft,
    random: SplitMix64,
    streams: Vec<(StreamHandle, BTreeSet<usize>)>,
    events: Vec<(EventHandle, BTreeSet<usize>)>,
    host: BTreeSet<usize>,
    /// The regions of each piece of work, and the pieces that come before it.
    work: Vec<(Vec<Region>, BTreeSet<usize>)>,
}

impl Program {
    fn new(seed: u64) -> Self {
        let soft = Soft::with_config(Config { follows_order: true, seed, ..Config::default() });
        let streams = (0..3).map(|_| (soft.stream_create().unwrap(), BTreeSet::new())).collect();
        let events = (0..3).map(|_| (soft.event_create().unwrap(), BTreeSet::new())).collect();
        Self { soft, random: SplitMix64(seed), streams, events, host: BTreeSet::new(), work: Vec::new() }
    }

    fn queue(&mut self, stream: usize) {
        let number = self.work.len();
        let mut region = || {
            let [address, bytes, rows] = [12, 3, 3].map(|bound| self.random.below(bound));
            let (row_pitch, row_count, is_written) = (bytes + 1 + rows, rows + 1, self.random.below(2) == 0);
            Region { row_pitch, row_count, ..Region::row(100 + address, bytes + 1, is_written) }
        };
        let regions = vec![region(), region()];
        let what: &'static str = Box::leak(number.to_string().into());
        let (handle, before) = &mut self.streams[stream];
        self.soft.call_host(*handle, what, Some(regions.clone().into()), Box::new(|| Ok(()))).unwrap();
        before.extend(&self.host);
        self.work.push((regions, before.clone()));
        before.insert(number);
    }

    fn step(&mut self) {
        let [stream, event] = [3, 3].map(|bound| self.random.below(bound) as usize);
        match self.random.below(12) {
            0 | 1 => {
                let ((on, before), (event, known)) = (&self.streams[stream], &mut self.events[event]);
                // SAFETY: both are live.
                unsafe { self.soft.event_record(*event, *on) }.unwrap();
                *known = before | &self.host;
            }
            2 | 3 => {
                let ((on, before), (event, known)) = (&mut self.streams[stream], &self.events[event]);
                // SAFETY: both are live.
                unsafe { self.soft.event_wait(*event, *on) }.unwrap();
                before.extend(known);
            }
            4 => {
                wait(&self.soft, self.streams[stream].0).unwrap();
                self.host.extend(&self.streams[stream].1);
            }
            5 => {
                // SAFETY: the event is live.
                unsafe { self.soft.event_synchronize(self.events[event].0) }.unwrap();
                self.host.extend(&self.events[event].1);
            }
            6 => {
                // SAFETY: the event is live.
                if unsafe { self.soft.event_query(self.events[event].0) }.unwrap() {
                    self.host.extend(&self.events[event].1);
                }
            }
            7 => {
                let new = self.soft.stream_create().unwrap();
                let (old, _) = std::mem::replace(&mut self.streams[stream], (new, BTreeSet::new()));
                // SAFETY: the program does not use the stream any more.
                unsafe { self.soft.stream_destroy(old) }.unwrap();
            }
            _ => self.queue(stream),
        }
    }

    /// The pairs of work that the program does not order and that use a byte, one to write it.
    fn expected(&self) -> BTreeSet<[usize; 2]> {
        let bytes = |regions: &[Region], only_written: bool| -> BTreeSet<u64> {
            let meant = regions.iter().filter(|region| region.is_written || !only_written);
            meant.flat_map(|region| region.rows().flat_map(|row| row..row + region.row_bytes)).collect()
        };
        let clash = |[first, second]: [usize; 2]| {
            let [one, other] = [first, second].map(|number| &self.work[number].0);
            !self.work[second].1.contains(&first)
                && (!bytes(one, true).is_disjoint(&bytes(other, false))
                    || !bytes(one, false).is_disjoint(&bytes(other, true)))
        };
        let pairs = (0..self.work.len()).flat_map(|second| (0..second).map(move |first| [first, second]));
        pairs.filter(|&pair| clash(pair)).collect()
    }

    /// The pairs that the software GPU has found, once all work has run.
    fn found(&self) -> BTreeSet<[usize; 2]> {
        let memory = self.soft.alloc(1).unwrap();
        // SAFETY: no work uses the memory. A free runs all work.
        unsafe { self.soft.free(memory) }.unwrap();
        let (list, more) = self.soft.unordered();
        assert_eq!(more, 0);
        let pair = |found: &Unordered| {
            let mut pair = found.work.clone().map(|name| name.parse().unwrap());
            pair.sort_unstable();
            pair
        };
        list.iter().map(pair).collect()
    }
}

/// The clocks, the merged records and what is forgotten must not change what is found.
#[test]
fn work_without_an_order_is_found_and_no_other() {
    let mut pairs = 0;
    for seed in 0..2000 {
        let mut program = Program::new(seed);
        // Fewer findings than the list has places for.
        for _ in 0..26 {
            program.step();
        }
        let expected = program.expected();
        assert_eq!(program.found(), expected, "seed {seed}");
        pairs += expected.len();
    }
    assert!(pairs > 2000, "{pairs}");
}

/// A driver that follows the order of streams, and two streams.
fn ordered() -> (Soft, [StreamHandle; 2]) {
    let soft = Soft::with_config(Config { follows_order: true, ..Config::default() });
    let streams = [0, 1].map(|_| soft.stream_create().unwrap());
    (soft, streams)
}

/// Queues a call of the host that writes the byte at an address.
fn write_byte(soft: &Soft, stream: StreamHandle, address: u64, call: impl Fn() -> Result<()> + Send + Sync + 'static) {
    soft.call_host(stream, "writing", Some([Region::row(address, 1, true)].into()), Box::new(call)).unwrap();
}

#[test]
fn a_function_of_the_host_tells_other_threads_before_it_returns() {
    let (soft, [first, second]) = ordered();
    let ((begin, begun), (go_on, told)) = (mpsc::channel(), mpsc::channel());
    let told = Mutex::new(told);
    let tell = move || {
        begin.send(()).unwrap();
        lock(&told).recv().unwrap();
        Ok(())
    };
    write_byte(&soft, first, 1, || Ok(()));
    soft.call_host(first, "telling", None, Box::new(tell)).unwrap();
    thread::scope(|scope| {
        let waited = scope.spawn(|| wait(&soft, first));
        begun.recv().unwrap();
        write_byte(&soft, second, 1, || Ok(()));
        go_on.send(()).unwrap();
        waited.join().unwrap().unwrap();
    });
    wait(&soft, second).unwrap();
    assert_eq!(soft.unordered().0, []);
}

#[test]
fn work_that_comes_while_the_host_waits_is_apart_from_what_it_waits_for() {
    let (soft, [first, second]) = ordered();
    let ((begin, begun), (go_on, told)) = (mpsc::channel(), mpsc::channel());
    let told = Mutex::new(told);
    write_byte(&soft, first, 1, move || {
        begin.send(()).unwrap();
        lock(&told).recv().unwrap();
        Ok(())
    });
    thread::scope(|scope| {
        let waited = scope.spawn(|| wait(&soft, first));
        begun.recv().unwrap();
        write_byte(&soft, first, 2, || Ok(()));
        go_on.send(()).unwrap();
        waited.join().unwrap().unwrap();
    });
    write_byte(&soft, second, 1, || Ok(()));
    for stream in [first, second] {
        wait(&soft, stream).unwrap();
    }
    assert_eq!(soft.unordered().0, []);
}

#[test]
fn memory_goes_back_to_the_pool_behind_its_last_use() {
    for is_ordered in [false, true] {
        let (soft, [first, second]) = ordered();
        let event = soft.event_create().unwrap();
        // SAFETY: the stream is live.
        let memory = unsafe { soft.pool_alloc(16, first) }.unwrap();
        write_byte(&soft, second, memory, || Ok(()));
        if is_ordered {
            // SAFETY: the event and the stream are live.
            unsafe { soft.event_record(event, second) }.unwrap();
            // SAFETY: as above.
            unsafe { soft.event_wait(event, first) }.unwrap();
        } else {
            assert_eq!(soft.poll_stream(second), Ok(false));
        }
        // SAFETY: no work uses the memory later, unless the test is about that.
        unsafe { soft.pool_free(memory, first) }.unwrap();
        wait(&soft, first).unwrap();
        let found = soft.unordered().0;
        assert_eq!(found.len(), usize::from(!is_ordered), "{found:?}");
    }
}

#[test]
fn a_condition_hides_only_what_came_before_it() {
    let (soft, [first, second]) = ordered();
    let third = soft.stream_create().unwrap();
    write_byte(&soft, first, 1, || Ok(()));
    wait(&soft, first).unwrap();
    soft.wait_until(third, || true).unwrap();
    wait(&soft, third).unwrap();
    write_byte(&soft, second, 1, || Ok(()));
    assert_eq!((wait(&soft, second), soft.unordered().0.len()), (Ok(()), 0));
    for stream in [first, second] {
        write_byte(&soft, stream, 1, || Ok(()));
    }
    for stream in [first, second] {
        wait(&soft, stream).unwrap();
    }
    assert_eq!(soft.unordered().0.len(), 1);
}

#[test]
fn regions_meet_where_they_share_a_byte() {
    let mut random = SplitMix64(1);
    for _ in 0..20_000 {
        let [own, its] = [0, 1].map(|_| {
            let [address, bytes, gap, rows, space, slices] = [40, 3, 3, 4, 5, 3].map(|bound| random.below(bound));
            let (row_pitch, row_count) = (bytes + 1 + gap, rows + 1);
            let (slice_pitch, slice_count) = (row_pitch * row_count + space, slices + 1);
            let row = Region::row(address, bytes + 1, true);
            Region { row_pitch, row_count, slice_pitch, slice_count, ..row }
        });
        let bytes =
            |region: &Region| -> BTreeSet<u64> { region.rows().flat_map(|row| row..row + region.row_bytes).collect() };
        let (both, own_bytes) = (own.meets(&its), bytes(&own));
        let shared: BTreeSet<u64> = own_bytes.intersection(&bytes(&its)).copied().collect();
        assert_eq!(both.is_some(), !shared.is_empty(), "{own:?} {its:?}");
        assert!(both.is_none_or(|byte| shared.contains(&byte)), "{own:?} {its:?} {both:?}");
    }
}
