//! `Logged`: its writer is code of the program, and may use the device whose calls it logs.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use warpstride::Device;
use warpstride::alloc::{Allocate, Caching, HoldBack, Logged};
use warpstride::driver::Driver;
use warpstride::driver::soft::Soft;

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
