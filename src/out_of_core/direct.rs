//! Tiles of page-locked arrays, which the copy engines read and write where they lie.
//!
//! Each slot has a stream, on which a tile is copied to the device, permuted and copied back. The
//! streams share the engines of both directions, so while one tile comes another goes. Nothing but
//! the end of the slot's former tile holds the host up.

#![forbid(unsafe_code)]

use super::SLOTS;
use super::run::Tiles;
use super::tiling::{Tile, Tiling};
use crate::device::Device;
use crate::element::Element;
use crate::error::Result;
use crate::layout::Layout;
use crate::memory::DeviceBuffer;
use crate::ops;
use crate::stream::{Event, Stream};
use crate::transfer::{HostSlice, HostSliceMut, Scope};

/// A scope of copies, whatever its own lifetime, for host memory of lifetime `'h`.
trait Copies<'h, T: Element> {
    fn run(&self, slot: &mut Slot<T>, tile: &Tile<'_>, from: HostSlice<'h, T>, to: HostSliceMut<'h, T>) -> Result<()>;
}

impl<'scope, 'h: 'scope, T: Element> Copies<'h, T> for &'scope Scope<'scope, 'h> {
    fn run(&self, slot: &mut Slot<T>, tile: &Tile<'_>, from: HostSlice<'h, T>, to: HostSliceMut<'h, T>) -> Result<()> {
        let Slot { input, output, landed } = slot;
        self.upload(from, input.view_mut_with(tile.stored()?)?)?;
        ops::copy_into(input.view_with(tile.input()?)?, output.view_mut_with(tile.output()?)?, self.stream())?;
        self.download(output.view_with(tile.output()?)?, to)?;
        self.stream().record(landed)
    }
}

/// The device's side of a tile on its way.
struct Slot<T> {
    input: DeviceBuffer<T>,
    output: DeviceBuffer<T>,
    /// Passed when the slot's last tile is in the destination.
    landed: Event,
}

impl<T: Element> Slot<T> {
    fn new(device: &Device, len: usize, stream: &Stream) -> Result<Self> {
        let buffer = || device.alloc_on(len, stream);
        Ok(Self { input: buffer()?, output: buffer()?, landed: device.event()? })
    }
}

impl Tiles<'_> {
    /// Runs all tiles by copies from and to the arrays themselves, which are page-locked.
    pub(super) fn direct<T: Element>(&self, source: &[T], destination: &mut [T]) -> Result<()> {
        let Self { device, tiling, options, .. } = *self;
        let count = tiling.len();
        let streams = (0..SLOTS.min(count)).map(|_| device.stream()).collect::<Result<Vec<_>>>()?;
        let slot = |stream| Slot::new(device, tiling.largest(), stream);
        let mut slots = streams.iter().map(slot).collect::<Result<Vec<_>>>()?;
        let mut parts = Parts::new(tiling, destination)?;
        let tell = |number: usize| options.tell((tiling.tile(number).len() * size_of::<T>()) as u64);
        in_scopes(&streams, &[], &mut |scopes| {
            for (number, to) in parts.by_ref().enumerate() {
                let at = number % scopes.len();
                if number >= scopes.len() {
                    slots[at].landed.synchronize()?;
                    tell(number - scopes.len());
                }
                let tile = tiling.tile(number);
                let from = HostSlice::with_layout(source, tile.in_source()?)?;
                scopes[at].run(&mut slots[at], &tile, from, to?)?;
            }
            Ok(())
        })?;
        (count - streams.len()..count).for_each(tell);
        Ok(())
    }
}

/// A scope of each stream.
type Scopes<'s, 'h, T> = [&'s dyn Copies<'h, T>];

/// Calls `work` within a scope of each stream, besides the scopes that there are.
fn in_scopes<'h, T: Element>(
    streams: &[Stream],
    scopes: &Scopes<'_, 'h, T>,
    work: &mut dyn FnMut(&Scopes<'_, 'h, T>) -> Result<()>,
) -> Result<()> {
    let Some((first, others)) = streams.split_first() else { return work(scopes) };
    first.scope(|scope| {
        let mut scopes = scopes.to_vec();
        scopes.push(&scope);
        in_scopes(others, &scopes, work)
    })
}

/// Cuts a destination into its tiles, in the order of their numbers.
struct Parts<'h, T> {
    /// Extents of a tile, in the order of the result.
    tile: Vec<usize>,
    /// The parts that are not cut yet, the next part last, with the axis along which to cut it.
    rest: Vec<(HostSliceMut<'h, T>, usize)>,
}

impl<'h, T: Element> Parts<'h, T> {
    fn new(tiling: &Tiling, destination: &'h mut [T]) -> Result<Self> {
        let [shape, tile] = tiling.in_result();
        let whole = HostSliceMut::with_layout(destination, Layout::row_major(&shape)?)?;
        let rest = if tiling.len() == 0 { Vec::new() } else { vec![(whole, 0)] };
        Ok(Self { tile, rest })
    }

    fn cut(&mut self) -> Result<Option<HostSliceMut<'h, T>>> {
        while let Some((part, axis)) = self.rest.pop() {
            let Some(&extent) = self.tile.get(axis) else { return Ok(Some(part)) };
            let (first, behind) = part.split_at(axis, extent)?;
            self.rest.extend(behind.map(|behind| (behind, axis)));
            self.rest.push((first, axis + 1));
        }
        Ok(None)
    }
}

impl<'h, T: Element> Iterator for Parts<'h, T> {
    type Item = Result<HostSliceMut<'h, T>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.cut().transpose()
    }
}
