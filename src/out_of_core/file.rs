//! Runs from file to file.

#![forbid(unsafe_code)]

use std::fs;
use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use bytemuck::Pod;

use super::journal::Identity;
use super::partial::{Partial, Plan};
use super::run::Tiles;
use super::storage::{Stored, failed};
use super::tiling::{Permute, Tiling};
use super::{FILES, Options, SLOTS, Summary};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result, counted, require};
use crate::io::{ArrayFile, Destination, Stamp, changed, is_changed, npy};
use crate::sync::start_thread;

/// Bytes of the result that an interruption may cost, and time.
const RECORDED: u64 = 1 << 30;
const RECORD_EVERY: Duration = Duration::from_secs(1);

/// Writes the array of a file to a `.npy` file, in C order and with its axes in the order
/// `axes`, through a device that need not have room for the array. Returns when the result is on
/// the disk and has its name.
///
/// The result is written to a file of the destination's name with `.incomplete` behind it, which
/// has its room from the start. A journal beside it, `.incomplete.json`, says which of its tiles
/// are on the disk. If the run ends before the result is complete, both stay, and a run with
/// [`Options::resume`] and the same input and axes does the rest. Files of these names that no run
/// has left are refused and stay as they are.
///
/// # Errors
///
/// As [`permute`](super::permute) and the reads of `source`; `InvalidArgument` if the destination
/// is a stream, or there is an interrupted result and `resume` is not set, or it is that of another
/// run, or other files have the names beside the destination; `Io` if the disk has no room, if the
/// input changes meanwhile, which leaves no part of the result, if another run writes the result or
/// a program removes it, or if a journal is corrupted. The destination is then what it was.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::io::{ArrayFile, Destination, npy};
/// use warpstride::out_of_core::{self, Options};
/// use warpstride::{Backend, Device};
///
/// let folder = tempfile::tempdir()?;
/// let (input, output) = (folder.path().join("in.npy"), folder.path().join("out.npy"));
/// npy::write(&mut std::fs::File::create(&input)?, "|u1", &[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// let device = Device::open(Backend::Soft)?;
/// let options = Options { device_memory: Some(24), ..Options::default() }; // tiles of two bytes
/// let (reader, destination) = (npy::Reader::open(&input)?, Destination::new(&output)?);
/// out_of_core::permute_file(&device, &reader, &[1, 0], &destination, options)?;
/// let mut result = [0; 6];
/// npy::Reader::open(&output)?.read_into(&mut result)?;
/// assert_eq!(result, [1, 4, 2, 5, 3, 6]);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn permute_file(
    device: &Device,
    source: &dyn ArrayFile,
    axes: &[usize],
    destination: &Destination,
    options: Options<'_>,
) -> Result<Summary> {
    let run = FileToFile { device, source, axes, destination, options };
    match source.dtype().width() {
        1 => run.of::<u8>(),
        2 => run.of::<u16>(),
        4 => run.of::<u32>(),
        8 => run.of::<u64>(),
        _ => run.of::<[f64; 2]>(),
    }
}

/// A run from file to file.
struct FileToFile<'r> {
    device: &'r Device,
    source: &'r dyn ArrayFile,
    axes: &'r [usize],
    destination: &'r Destination,
    options: Options<'r>,
}

impl FileToFile<'_> {
    /// Moves elements as wide as `T`.
    fn of<T: Element + Pod>(&self) -> Result<Summary> {
        let Self { device, source, axes, destination, options } = *self;
        let permute = Permute::new(source.shape(), axes, source.is_fortran())?;
        let shape: Vec<usize> = axes.iter().map(|&axis| source.shape()[axis]).collect();
        let header = npy::header_bytes(source.descr(), &shape);
        let device_memory = options.budget(device)?;
        let plan = Plan {
            input: source.path(),
            identity: self.identity()?,
            device_memory,
            header: &header,
            bytes: (header.len() + source.bytes()) as u64,
        };
        let (partial, tiling) = Partial::open(destination, plan, options.resume, |device_memory| {
            Tiling::new(permute.clone(), size_of::<T>(), SLOTS, device_memory, FILES)
        })?;
        let tiling = fitting::<T>(tiling, device_memory)?;
        let first = partial.done();
        let tiles = Tiles { device, tiling: &tiling, first, options };
        options.tell((0..first as usize).map(|number| (tiling.tile(number).len() * size_of::<T>()) as u64).sum());
        let goes_on = |error: Error| {
            if !partial.can_go_on() {
                return error;
            }
            let kept = partial.path().display();
            let context = format!("{error}; {kept} has what was done, and `Options::resume` goes on with it");
            Error::new(error.kind(), context)
        };
        let outcome = self.run::<T>(&tiles, &partial);
        // A mixture is not the beginning of a result. A change also explains why a read fails.
        if is_changed(source).map_err(goes_on)? {
            partial.discard();
            return Err(changed(source));
        }
        outcome.map_err(goes_on)?;
        partial.complete().map_err(goes_on)?;
        tiles.summary::<T>(device_memory)
    }

    /// Runs the tiles that are not there, while another thread sees them on the disk.
    fn run<T: Element + Pod>(&self, tiles: &Tiles<'_>, partial: &Partial<'_>) -> Result<()> {
        let (file, start) = self.source.data();
        let source = Stored { file, path: self.source.path(), start };
        let mut target = partial.stored();
        let (sender, written) = mpsc::channel();
        thread::scope(|threads| {
            let recorder = start_thread(threads, "journal", move || recorded(partial, &written))?;
            let outcome = tiles.staged::<T>(&source, &mut target, |done, bytes| {
                self.options.tell(bytes);
                // The recorder ends before the run only by a failure, whose error goes first.
                let ended = "the journal cannot be written; check the room on its disk";
                sender.send((done, bytes)).map_err(|_| Error::new(ErrorKind::Io, ended))
            });
            drop(sender);
            recorder.join().unwrap_or_else(|payload| resume_unwind(payload)).and(outcome)
        })
    }

    /// Returns what says whether the input and the options are those of another run.
    fn identity(&self) -> Result<Identity> {
        let source = self.source;
        let input =
            fs::canonicalize(source.path()).map_err(|error| failed("read", source.path(), "check the path", &error))?;
        Ok(Identity {
            input: input.to_string_lossy().into(),
            stamp: Stamp::of(source.opened()),
            descr: source.descr().into(),
            shape: source.shape().into(),
            fortran_order: source.is_fortran(),
            axes: self.axes.into(),
        })
    }
}

/// Checks that the tiles of an interrupted run fit a budget.
fn fitting<T>(tiling: Tiling, budget: usize) -> Result<Tiling> {
    let needed = tiling.largest().saturating_mul(2 * SLOTS * size_of::<T>());
    require!(
        needed <= budget,
        InvalidArgument,
        "the interrupted run took {} of device memory, and this one may take {budget}; give it {needed} as \
         `Options::device_memory`",
        counted(needed, "byte")
    );
    Ok(tiling)
}

/// Enters tiles in the journal from time to time, and at the end all that are written.
fn recorded(partial: &Partial<'_>, written: &Receiver<(u64, u64)>) -> Result<()> {
    let (mut last, mut done, mut bytes) = (Instant::now(), partial.done(), 0);
    let mut entered = done;
    loop {
        let is_over = match written.recv_timeout(RECORD_EVERY) {
            Ok((tiles, more)) => {
                (done, bytes) = (tiles, bytes + more);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if done > entered && (is_over || bytes >= RECORDED || last.elapsed() >= RECORD_EVERY) {
            partial.record(done)?;
            (last, entered, bytes) = (Instant::now(), done, 0);
        }
        if is_over {
            return Ok(());
        }
    }
}
