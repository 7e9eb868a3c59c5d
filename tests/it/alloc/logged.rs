//! `Logged`: its writer is code of the program, and may use the device whose calls it logs.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use warpstride::Device;
use warpstride::alloc::{Allocate, Caching, HoldBack, Logged, Request};
use warpstride::driver::soft::Soft;
use warpstride::driver::{Driver, StreamHandle};

use crate::long::PATIENCE;

#[derive(Clone, Default)]
struct Uses {
    device: Arc<Mutex<Option<Device>>>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Uses {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let device = self.device.lock().unwrap().clone();
        if let Some(device) = device {
            assert_eq!(device.array(&[3], &[1, 2, 3]).unwrap().to_vec().unwrap(), [1, 2, 3]);
        }
        self.written.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines of a program on three threads, over a stack with a log whose writer uses the device.
fn lines_of(stack: impl FnOnce(Arc<dyn Driver>, Box<dyn Write + Send>) -> Arc<dyn Allocate>) -> String {
    let (uses, soft) = (Uses::default(), Arc::new(Soft::new()) as Arc<dyn Driver>);
    let out = Box::new(uses.clone());
    let device = Device::with_allocator(soft, |driver| Ok(stack(driver, out))).unwrap();
    *uses.device.lock().unwrap() = Some(device.clone());
    let (ended, ends) = mpsc::channel();
    // No scope, because it would wait for a thread that hangs.
    for _ in 0..3 {
        let (device, ended) = (device.clone(), ended.clone());
        thread::spawn(move || {
            let stream = device.stream().unwrap();
            for len in 1..20 {
                drop(device.alloc_on::<u8>(1000 * len, &stream).unwrap());
            }
            ended.send(()).unwrap();
        });
    }
    (0..3).for_each(|_| ends.recv_timeout(PATIENCE).expect("no thread waits for ever"));
    *uses.device.lock().unwrap() = None;
    drop(device);
    String::from_utf8(uses.written.lock().unwrap().clone()).unwrap()
}

#[test]
fn a_writer_that_uses_its_device_ends_and_logs_the_programs_calls() {
    let over = |driver| Caching::new(driver).unwrap();
    let all = [
        lines_of(|driver, out| Arc::new(Logged::new(over(driver), out))),
        lines_of(|driver, out| Arc::new(Logged::new(HoldBack::new(over(Arc::clone(&driver)), driver, 1 << 14), out))),
        lines_of(|driver, out| Arc::new(HoldBack::new(Logged::new(over(Arc::clone(&driver)), out), driver, 1 << 14))),
    ];
    for lines in all {
        for action in ["allocate", "free"] {
            let found = lines.lines().filter(|line| line.contains(action)).count();
            assert_eq!(found, 3 * 19, "{action} in {lines}");
        }
    }
}

/// A writer that waits in its first write of a row until the test lets it go on.
struct Slow {
    begun: mpsc::Sender<()>,
    goes_on: mpsc::Receiver<()>,
    has_waited: bool,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The heading has no address.
        if !bytes.contains(&b'x') || self.has_waited {
            self.written.lock().unwrap().extend(bytes);
            return Ok(bytes.len());
        }
        self.has_waited = true;
        self.begun.send(()).unwrap();
        self.goes_on.recv_timeout(PATIENCE).expect("the other thread goes on");
        self.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Allocates and frees on a stream of a simulation, which has none.
fn allocate_and_free(allocator: &dyn Allocate, stream: u64, pairs: u64) {
    // SAFETY: a simulation has no streams.
    let lane = unsafe { allocator.open(StreamHandle(stream)) }.unwrap();
    for _ in 0..pairs {
        // SAFETY: the lane is open.
        let block = unsafe { allocator.alloc(&Request::new(512, &lane)) }.unwrap();
        // SAFETY: it was just given out, and nothing uses it.
        unsafe { allocator.free(block, &lane) }.unwrap();
    }
    // SAFETY: all blocks are freed.
    unsafe { allocator.close(&lane) }.unwrap();
}

#[test]
fn lines_that_a_slow_writer_loses_are_counted_and_the_rest_is_written_by_the_drop() {
    const PAIRS: u64 = 40_000;
    let ((begun, begins), (go_on, goes_on)) = (mpsc::channel(), mpsc::channel());
    let written = Arc::new(Mutex::new(Vec::new()));
    let slow = Slow { begun, goes_on, has_waited: false, written: Arc::clone(&written) };
    let logged = Logged::new(Caching::simulated(1 << 30), Box::new(slow));
    thread::scope(|scope| {
        let writes = scope.spawn(|| allocate_and_free(&logged, 1, 1));
        begins.recv_timeout(PATIENCE).expect("the first line is written");
        allocate_and_free(&logged, 2, PAIRS);
        go_on.send(()).unwrap();
        writes.join().unwrap();
    });
    drop(logged);
    let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let lost: Vec<u64> = rows.iter().filter(|row| row[2] == "lost").map(|row| row[4].parse().unwrap()).collect();
    assert_eq!(lost.len(), 1, "one row stands for all that were lost");
    assert_eq!(lost[0] + (rows.len() as u64 - 1), 2 * PAIRS + 2);
    assert!(lost[0] > PAIRS && text.len() < 2 << 20, "{} lost, {} bytes", lost[0], text.len());
}
