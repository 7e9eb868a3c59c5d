//! Bugs of programs for several GPUs, which the software GPUs find, written with the drivers.

use std::sync::Arc;

use warpstride::driver::soft::Soft;
use warpstride::driver::{EventHandle, Memory as _, Modules as _, Peers as _, StreamHandle, Streams as _};
use warpstride::interp::Checks;
use warpstride::launch_shape::LaunchShape;
use warpstride::{ErrorKind, Result};

use super::host;

const BYTES: usize = 64;

/// A kernel with one parameter, the address of a word that it adds 1 to.
const COUNT: &str = include_str!("../../data/count.ptx");

/// A software GPU with a stream, an event and memory. The drop of the GPUs releases all of it.
struct Side {
    gpu: Arc<Soft>,
    stream: StreamHandle,
    event: EventHandle,
    memory: u64,
    kept: u64,
}

impl Side {
    fn new(gpu: Arc<Soft>) -> Self {
        let stream = gpu.stream_create().unwrap();
        let [memory, kept] = [(); 2].map(|()| gpu.alloc(BYTES as u64).unwrap());
        let side = Self { event: gpu.event_create().unwrap(), gpu, stream, memory, kept };
        side.fill(side.memory, 1).unwrap();
        side.synchronize().unwrap();
        side
    }

    fn fill(&self, dst: u64, value: u8) -> Result<()> {
        // SAFETY: the stream is live. The software GPU checks addresses, here and below.
        unsafe { self.gpu.fill(dst, value, BYTES as u64, self.stream) }
    }

    fn copy(&self, dst: u64, src: u64) -> Result<()> {
        // SAFETY: as for `fill`.
        unsafe { self.gpu.copy_d2d(dst, src, BYTES as u64, self.stream) }
    }

    /// Adds 1 to the first word at an address.
    fn count(&self, word: u64) -> Result<()> {
        let module = self.gpu.module_load(COUNT)?;
        // SAFETY: the module is live.
        let function = unsafe { self.gpu.function(module, "count") }?;
        let shape = LaunchShape { grid: [1; 3], block: [1; 3], dynamic_shared: 0 };
        // SAFETY: as for `fill`; the kernel takes one address.
        unsafe { self.gpu.launch(function, &shape, &word.to_le_bytes(), self.stream) }
    }

    /// Makes `other` wait for what is queued here now.
    fn precede(&self, other: &Self) {
        // SAFETY: all are live.
        unsafe { self.gpu.event_record(self.event, self.stream) }.unwrap();
        // SAFETY: as above.
        unsafe { other.gpu.event_wait(self.event, other.stream) }.unwrap();
    }

    fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is live.
        unsafe { self.gpu.stream_synchronize(self.stream) }
    }

    /// Returns the first byte at an address, in the order of the stream.
    fn read(&self, src: u64) -> Result<u8> {
        let mut byte = 0;
        // SAFETY: the byte outlives the wait below.
        unsafe { self.gpu.copy_d2h(&raw mut byte, src, 1, self.stream) }?;
        self.synchronize()?;
        Ok(byte)
    }
}

/// Opens two GPUs, of which the second shares its memory with the first.
fn sides(seed: u64) -> [Side; 2] {
    let gpus = host(2, seed, Checks::NONE);
    gpus[1].share_with(0).unwrap();
    let [first, second] = <[Arc<Soft>; 2]>::try_from(gpus).expect("two GPUs").map(Side::new);
    [first, second]
}

/// Runs a program with and without its wait. With it, the result is right under each of 64 seeds,
/// and without it, it is wrong or an error under some.
fn found(expected: &[u8], program: impl Fn([Side; 2], bool) -> Result<Vec<u8>>) -> u32 {
    let mut wrong = 0;
    for seed in 0..64 {
        assert_eq!(program(sides(seed), true).expect("it waits"), expected, "seed {seed}");
        wrong += u32::from(!program(sides(seed), false).is_ok_and(|result| result == expected));
    }
    assert!(wrong > 0, "no seed finds the missing wait");
    wrong
}

#[test]
fn a_store_to_a_peer_that_is_not_ready() {
    found(&[1, 2], |[first, second], waits| {
        second.copy(second.kept, second.memory)?;
        if waits {
            second.precede(&first);
        }
        first.fill(second.memory, 2)?;
        first.precede(&second);
        Ok(vec![second.read(second.kept)?, second.read(second.memory)?])
    });
}

#[test]
fn a_result_that_is_read_before_the_push_has_run() {
    let wrong = found(&[2], |[first, second], waits| {
        first.fill(second.memory, 2)?;
        if waits {
            first.precede(&second);
        }
        Ok(vec![second.read(second.memory)?])
    });
    assert!(wrong >= 32, "{wrong} seeds: the strictly late ones never run the push");
}

#[test]
fn memory_that_is_freed_while_a_peer_still_stores() {
    let wrong = found(&[2], |[first, second], waits| {
        first.fill(second.memory, 2)?;
        first.copy(first.memory, second.memory)?;
        if waits {
            first.precede(&second);
        }
        // SAFETY: not without the wait, and the software GPU checks addresses.
        unsafe { second.gpu.free(second.memory) }?;
        Ok(vec![first.read(first.memory)?])
    });
    assert!(wrong >= 32, "{wrong} seeds: the strictly late ones never run the push");
}

#[test]
fn stores_to_memory_that_is_not_shared() {
    type Store = fn(&Side, u64) -> Result<()>;
    let stores: [(&str, Store); 3] = [
        ("fill", |side, dst| side.fill(dst, 2)),
        ("copy", |side, dst| side.copy(dst, side.memory)),
        ("count", |side, dst| side.count(dst)),
    ];
    for seed in 0..8 {
        for (what, store) in stores {
            // The first GPU does not share its memory with the second.
            let [first, second] = sides(seed);
            store(&second, first.memory).unwrap();
            let error = second.synchronize().unwrap_err();
            assert!(error.to_string().contains("of GPU 0, which does not share it"), "{what}: {error}");
            assert_eq!(first.synchronize().unwrap_err().kind(), error.kind(), "all GPUs of the host have failed");
            let [first, second] = sides(seed);
            store(&first, second.memory).unwrap();
            first.synchronize().unwrap();
        }
    }
}

#[test]
fn a_gpu_is_refused_what_belongs_to_another() {
    let [first, second] = sides(0);
    let gpu = &first.gpu;
    let refused = [
        // SAFETY: the stream is of another GPU, which is refused, here and below.
        unsafe { gpu.stream_synchronize(second.stream) },
        // SAFETY: as above.
        unsafe { gpu.fill(first.memory, 1, 1, second.stream) },
        // SAFETY: as above, for the event.
        unsafe { gpu.event_record(second.event, first.stream) },
        // SAFETY: as above, for the memory.
        unsafe { gpu.free(second.memory) },
        // SAFETY: as above.
        unsafe { gpu.stream_destroy(second.stream) },
        // SAFETY: as above.
        unsafe { gpu.event_destroy(second.event) },
    ];
    for error in refused.map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::InvalidHandle, "{error}");
    }
    second.fill(second.memory, 9).unwrap();
    second.precede(&first);
    assert_eq!(second.read(second.memory).unwrap(), 9);
}

#[test]
fn memory_is_shared_with_the_gpus_of_the_host() {
    let gpus = host(2, 0, Checks::NONE);
    assert_eq!([0, 1, 2].map(|peer| gpus[0].can_share_with(peer)), [Ok(true), Ok(true), Ok(false)]);
    let error = gpus[1].share_with(2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("software GPU 1 cannot share its memory with number 2: its host has 2 GPUs"));
    gpus[0].share_with(0).unwrap();
    gpus[0].share_with(1).unwrap();
    gpus[0].share_with(1).unwrap();
}
