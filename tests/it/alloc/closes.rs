//! An allocator of the program's own, which uses the device's memory when a lane closes.

use std::fmt;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use warpstride::alloc::{Allocate, Block, Caching, Figures, Lane, Request, Snapshot};
use warpstride::driver::soft::Soft;
use warpstride::driver::{Driver, StreamHandle};
use warpstride::{Device, Result, ops};

use crate::long::PATIENCE;

type Hook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

struct Closes {
    inner: Caching,
    hook: Hook,
}

impl fmt::Debug for Closes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

// SAFETY: the blocks are the inner allocator's.
unsafe impl Allocate for Closes {
    fn is_over(&self, driver: &Arc<dyn Driver>) -> bool {
        self.inner.is_over(driver)
    }

    unsafe fn open(&self, stream: StreamHandle) -> Result<Lane> {
        // SAFETY: as the caller promises, here and below.
        unsafe { self.inner.open(stream) }
    }

    unsafe fn close(&self, lane: &Lane) -> Result<()> {
        let hook = self.hook.lock().unwrap().take();
        hook.into_iter().for_each(|hook| hook());
        // SAFETY: as above.
        unsafe { self.inner.close(lane) }
    }

    unsafe fn alloc(&self, request: &Request<'_>) -> Result<Block> {
        // SAFETY: as above.
        unsafe { self.inner.alloc(request) }
    }

    unsafe fn free(&self, block: Block, lane: &Lane) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.inner.free(block, lane) }
    }

    fn trim(&self, keep: u64) -> Result<u64> {
        self.inner.trim(keep)
    }

    fn figures(&self) -> Figures {
        self.inner.figures()
    }

    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }
}

/// The last handle of a stream is the one that an array keeps as its last use, and the next use of
/// the array drops it: by an operation, and by the launch of a graph.
#[test]
fn a_lane_that_closes_may_use_the_memory_whose_use_closes_it() {
    for by_graph in [false, true] {
        let hook = Hook::default();
        let closes = |driver| Ok(Arc::new(Closes { inner: Caching::new(driver)?, hook: Arc::clone(&hook) }) as _);
        let device = Device::with_allocator(Arc::new(Soft::new()), closes).unwrap();
        let source = Arc::new(device.array(&[3], &[1, 2, 3]).unwrap());
        let mut to = device.alloc_array::<i32>(&[3]).unwrap();
        let graph = device.default_stream().capture(|stream| ops::copy_into(&*source, &mut to, stream)).unwrap();
        let former = device.stream().unwrap();
        let mut other = device.alloc_array::<i32>(&[3]).unwrap();
        ops::copy_into(&*source, &mut other, &former).unwrap();
        drop((former, other));
        let (ended, ends) = mpsc::channel();
        let (read, reads) = (Arc::clone(&source), ended.clone());
        *hook.lock().unwrap() = Some(Box::new(move || {
            assert_eq!(read.to_vec().unwrap(), [1, 2, 3]);
            reads.send(()).unwrap();
        }));
        // No scope, because it would wait for a thread that hangs.
        thread::spawn(move || {
            let stream = device.stream().unwrap();
            if by_graph {
                graph.launch(&stream).unwrap();
            } else {
                ops::copy_into(&*source, &mut to, &stream).unwrap();
            }
            stream.synchronize().unwrap();
            ended.send(()).unwrap();
        });
        (0..2).for_each(|_| ends.recv_timeout(PATIENCE).expect("no thread waits for ever"));
    }
}
