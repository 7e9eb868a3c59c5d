//! Drives tiles through the slots of a pipeline.

#![forbid(unsafe_code)]

use std::panic::resume_unwind;
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::storage::{Source, Target};
use super::tiling::Tiling;
use super::{Options, SLOTS, Summary};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::ops::{self, Align, PermutePlan, Plan};
use crate::pipeline::{self, Pipeline, Work};
use crate::sync::start_thread;

/// The tiles of a run, from the first one that is not done.
#[derive(Clone, Copy)]
pub(super) struct Tiles<'r> {
    pub(super) device: &'r Device,
    pub(super) tiling: &'r Tiling,
    pub(super) first: u64,
    pub(super) options: Options<'r>,
}

impl Tiles<'_> {
    /// Returns the number of a batch's tile; `None` behind the last one.
    pub(super) fn number(&self, batch: u64) -> Option<usize> {
        let number = usize::try_from(self.first + batch).ok()?;
        (number < self.tiling.len()).then_some(number)
    }

    /// Runs all tiles through page-locked slots. `landed` gets the number of tiles from the array's
    /// first one that are written by then, and the bytes of the last one.
    pub(super) fn staged<T: Element>(
        &self,
        source: &impl Source<T>,
        target: &mut impl Target<T>,
        mut landed: impl FnMut(u64, u64) -> Result<()> + Send,
    ) -> Result<()> {
        let Some(_) = self.number(0) else { return Ok(()) };
        let [reading, writing] = ["read", "write"].map(|name| pool(name, self.options.threads()));
        let (reading, writing) = (reading?, writing?);
        let (tiling, first) = (self.tiling, self.first);
        let tile = |batch: u64| tiling.tile((first + batch) as usize);
        let options = pipeline::Options { slots: SLOTS, ..pipeline::Options::default() };
        let mut pipeline = Pipeline::<T, T>::new(self.device, tiling.largest(), tiling.largest(), options)?;
        pipeline.run(
            |batch, slot| {
                let Some(number) = self.number(batch) else { return Ok(None) };
                let tile = tiling.tile(number);
                reading.install(|| source.read(&tile.source(), &mut slot[..tile.len()]))?;
                Ok(Some(tile.len()))
            },
            |work: &mut Work<'_, T, T>| {
                let tile = tile(work.batch);
                let stream = work.stream().clone();
                let input = work.input.view_with(tile.input()?)?;
                let output = work.output.view_mut().slice(0, ..tile.len(), 1)?;
                ops::copy_into(input, output.split_axis(0, input.shape())?, &stream)?;
                work.keep(tile.len());
                Ok(())
            },
            |batch, slot| {
                let tile = tile(batch);
                writing.install(|| target.write(&tile.result(), &slot[..tile.len()]))?;
                landed(first + batch + 1, (tile.len() * size_of::<T>()) as u64)
            },
        )?;
        Ok(())
    }

    /// Reads all tiles to slots and writes all from others, at once and without the device.
    pub(super) fn on_host<T: Element>(&self, source: &impl Source<T>, target: &mut impl Target<T>) -> Result<()> {
        let Self { device, tiling, options, .. } = *self;
        let slots = || (0..SLOTS).map(|_| device.pinned_zeros::<T>(tiling.largest())).collect::<Result<Vec<_>>>();
        let (mut inputs, outputs) = (slots()?, slots()?);
        let (reading, writing) = (pool("read", options.threads())?, pool("write", options.threads())?);
        thread::scope(|threads| {
            let read = start_thread(threads, "read", move || {
                (0..tiling.len()).try_for_each(|number| {
                    let (tile, slot) = (tiling.tile(number), &mut inputs[number % SLOTS]);
                    reading.install(|| source.read(&tile.source(), &mut slot[..tile.len()]))
                })
            })?;
            let written = (0..tiling.len()).try_for_each(|number| {
                let (tile, slot) = (tiling.tile(number), &outputs[number % SLOTS]);
                writing.install(|| target.write(&tile.result(), &slot[..tile.len()]))
            });
            read.join().unwrap_or_else(|payload| resume_unwind(payload)).and(written)
        })
    }

    /// Returns what a run of elements `T` has done once it is complete.
    pub(super) fn summary<T: Element>(&self, device_memory: usize) -> Result<Summary> {
        let kernel = match self.tiling.len() {
            0 => None,
            _ => {
                let (tile, align, target) = (self.tiling.tile(0), Align::ALLOCATION, ops::Target::of(self.device));
                PermutePlan::new(&tile.input()?, align, &tile.output()?, align, size_of::<T>(), target)?.entry()
            }
        };
        Ok(Summary { device_memory, tiles: self.tiling.len() as u64, resumed_tiles: self.first, kernel })
    }
}

/// Makes a pool of threads, so that reads and writes never wait for each other's threads.
fn pool(name: &'static str, threads: usize) -> Result<ThreadPool> {
    let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(move |at| format!("{name} {at}"));
    builder.build().map_err(|error| {
        let context = format!(
            "the system does not start {}: {error}; end other programs, or take fewer",
            counted(threads, "thread")
        );
        Error::new(ErrorKind::OutOfMemory, context)
    })
}
