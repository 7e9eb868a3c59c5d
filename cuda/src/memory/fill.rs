//! Fills with a value of 1, 2 or 4 bytes.

use std::sync::Arc;

use warpstride::driver::StreamHandle;
use warpstride::driver::soft::Region;
use warpstride::error::counted;

use super::side::{CHUNK, Side};
use super::table::Home;
use crate::arguments::Handle;
use crate::code::{Failure, Outcome};
use crate::export::export;
use crate::graph::{FillParams, Kind};
use crate::process::{Gpu, process};
use crate::stream::{Stream, stream};

/// A value, and the bytes of it that count.
#[derive(Clone, Copy)]
struct Pattern {
    value: u32,
    bytes: usize,
}

/// Rows to fill: the bytes of each, and from one to the next.
#[derive(Clone, Copy)]
struct Rows {
    pitch: usize,
    width: usize,
    height: usize,
}

impl Pattern {
    fn new(value: u32, bytes: usize) -> Self {
        Self { value, bytes }
    }

    /// Returns a buffer of repetitions, at most `most` bytes.
    fn repeated(self, most: usize) -> Vec<u8> {
        self.value.to_le_bytes()[..self.bytes].iter().copied().cycle().take(CHUNK.min(most)).collect()
    }
}

impl Rows {
    /// Makes the rows of `width` elements; a pitch of 0 stands for one row.
    fn new(pitch: usize, width: usize, height: usize, element: usize) -> Outcome<Self> {
        let width = width.checked_mul(element).ok_or_else(too_large)?;
        if height > 1 && pitch < width {
            return Err(Failure::value(format!(
                "the pitch is {pitch}, less than the {width} of a row",
                width = counted(width, "byte")
            )));
        }
        Ok(Self { pitch, width, height })
    }

    fn span(self) -> Option<usize> {
        self.pitch.checked_mul(self.height - 1)?.checked_add(self.width).filter(|&span| span <= 1 << 62)
    }

    fn fill(self, memory: &Side, pattern: &[u8]) -> warpstride::Result<()> {
        let is_packed = self.height == 1 || self.pitch == self.width;
        let (width, height) = if is_packed { (self.width * self.height, 1) } else { (self.width, self.height) };
        for row in 0..height {
            for start in (0..width).step_by(CHUNK) {
                memory.write(row * self.pitch + start, &pattern[..CHUNK.min(width - start)])?;
            }
        }
        Ok(())
    }
}

fn too_large() -> Failure {
    Failure::value("the rows of a fill are larger than memory")
}

/// A fill whose operands are checked. It can be queued any number of times.
#[derive(Clone)]
pub(crate) struct Planned {
    address: u64,
    side: Side,
    home: Home,
    rows: Rows,
    repeated: Arc<[u8]>,
}

impl Planned {
    /// Checks the operands of a graph's fill with an element of 1, 2 or 4 bytes; `None` stands for
    /// a fill of nothing.
    pub(crate) fn of_graph(params: &FillParams) -> Outcome<Option<Self>> {
        let &FillParams { address, pitch, value, element, width, height } = params;
        if !matches!(element, 1 | 2 | 4) {
            return Err(Failure::value(format!(
                "a fill has no elements of {element}; pass 1, 2 or 4",
                element = counted(element, "byte")
            )));
        }
        let element = element as usize;
        Self::new(address, Rows::new(pitch, width, height, element)?, Pattern::new(value, element))
    }

    fn new(address: u64, rows: Rows, pattern: Pattern) -> Outcome<Option<Self>> {
        if rows.width == 0 || rows.height == 0 {
            return Ok(None);
        }
        let process = process()?;
        let Pattern { bytes, .. } = pattern;
        if !address.is_multiple_of(bytes as u64) || (rows.height > 1 && !rows.pitch.is_multiple_of(bytes)) {
            return Err(Failure::value(format!(
                "a fill with values of {bytes} needs an address and a pitch of such a multiple, not {address:#x} and {}",
                rows.pitch,
                bytes = counted(bytes, "byte")
            )));
        }
        let span = rows.span().ok_or_else(too_large)?;
        let home = process.memory.home(process, address, span as u64)?;
        if home == Home::Pageable {
            return Err(Failure::value(format!(
                "{address:#x} is not memory of a device, so a device does not fill it"
            )));
        }
        let side = Side::new(process, home, address)?;
        Ok(Some(Self { address, side, home, rows, repeated: pattern.repeated(span).into() }))
    }

    /// The bytes that it writes.
    fn region(&self) -> Region {
        let Rows { pitch, width, height } = self.rows;
        Region { row_pitch: pitch as u64, row_count: height as u64, ..Region::row(self.address, width as u64, true) }
    }

    /// Queues the fill.
    pub(crate) fn queue(&self, gpu: &Gpu, soft: StreamHandle) -> warpstride::Result<()> {
        let Self { side, rows, repeated, .. } = self.clone();
        let uses = Some([self.region()].into());
        gpu.soft.call_host(soft, "filling memory", uses, Box::new(move || rows.fill(&side, &repeated)))
    }
}

/// Queues a fill. A synchronous call waits for one of page-locked or managed memory, or of memory
/// that was set to make calls wait.
fn fill(address: u64, rows: Outcome<Rows>, pattern: Pattern, on: Handle<Stream>, is_synchronous: bool) -> Outcome {
    let stream = stream(on)?;
    let Some(planned) = Planned::new(address, rows?, pattern)? else { return Ok(()) };
    let waits = is_synchronous && matches!(planned.home, Home::PageLocked | Home::Managed | Home::Device(_, true));
    stream.queue_as(Kind::Fill, move |gpu, soft| planned.queue(gpu, soft))?;
    if waits { stream.wait() } else { Ok(()) }
}

/// Makes the rows of a fill of `count` elements.
fn one_row(count: usize, element: usize) -> Outcome<Rows> {
    Rows::new(0, count, 1, element)
}

export! {
    /// Fills bytes.
    fn cuMemsetD8_v2 as cuMemsetD8, per_thread cuMemsetD8_v2_ptds (at: u64, value: u8, count: usize) {
        fill(at, one_row(count, 1), Pattern::new(value.into(), 1), Handle::NULL, true)
    }

    /// Fills values of 2 bytes.
    fn cuMemsetD16_v2 as cuMemsetD16, per_thread cuMemsetD16_v2_ptds (at: u64, value: u16, count: usize) {
        fill(at, one_row(count, 2), Pattern::new(value.into(), 2), Handle::NULL, true)
    }

    /// Fills values of 4 bytes.
    fn cuMemsetD32_v2 as cuMemsetD32, per_thread cuMemsetD32_v2_ptds (at: u64, value: u32, count: usize) {
        fill(at, one_row(count, 4), Pattern::new(value, 4), Handle::NULL, true)
    }

    /// Fills rows of bytes.
    fn cuMemsetD2D8_v2 as cuMemsetD2D8, per_thread cuMemsetD2D8_v2_ptds (
        at: u64, pitch: usize, value: u8, width: usize, height: usize,
    ) {
        fill(at, Rows::new(pitch, width, height, 1), Pattern::new(value.into(), 1), Handle::NULL, true)
    }

    /// Fills rows of values of 2 bytes.
    fn cuMemsetD2D16_v2 as cuMemsetD2D16, per_thread cuMemsetD2D16_v2_ptds (
        at: u64, pitch: usize, value: u16, width: usize, height: usize,
    ) {
        fill(at, Rows::new(pitch, width, height, 2), Pattern::new(value.into(), 2), Handle::NULL, true)
    }

    /// Fills rows of values of 4 bytes.
    fn cuMemsetD2D32_v2 as cuMemsetD2D32, per_thread cuMemsetD2D32_v2_ptds (
        at: u64, pitch: usize, value: u32, width: usize, height: usize,
    ) {
        fill(at, Rows::new(pitch, width, height, 4), Pattern::new(value, 4), Handle::NULL, true)
    }

    /// Queues a fill of bytes.
    fn cuMemsetD8Async, per_thread cuMemsetD8Async_ptsz (at: u64, value: u8, count: usize, on: Handle<Stream>) {
        fill(at, one_row(count, 1), Pattern::new(value.into(), 1), on, false)
    }

    /// Queues a fill of values of 2 bytes.
    fn cuMemsetD16Async, per_thread cuMemsetD16Async_ptsz (at: u64, value: u16, count: usize, on: Handle<Stream>) {
        fill(at, one_row(count, 2), Pattern::new(value.into(), 2), on, false)
    }

    /// Queues a fill of values of 4 bytes.
    fn cuMemsetD32Async, per_thread cuMemsetD32Async_ptsz (at: u64, value: u32, count: usize, on: Handle<Stream>) {
        fill(at, one_row(count, 4), Pattern::new(value, 4), on, false)
    }

    /// Queues a fill of rows of bytes.
    fn cuMemsetD2D8Async, per_thread cuMemsetD2D8Async_ptsz (
        at: u64, pitch: usize, value: u8, width: usize, height: usize, on: Handle<Stream>,
    ) {
        fill(at, Rows::new(pitch, width, height, 1), Pattern::new(value.into(), 1), on, false)
    }

    /// Queues a fill of rows of values of 2 bytes.
    fn cuMemsetD2D16Async, per_thread cuMemsetD2D16Async_ptsz (
        at: u64, pitch: usize, value: u16, width: usize, height: usize, on: Handle<Stream>,
    ) {
        fill(at, Rows::new(pitch, width, height, 2), Pattern::new(value.into(), 2), on, false)
    }

    /// Queues a fill of rows of values of 4 bytes.
    fn cuMemsetD2D32Async, per_thread cuMemsetD2D32Async_ptsz (
        at: u64, pitch: usize, value: u32, width: usize, height: usize, on: Handle<Stream>,
    ) {
        fill(at, Rows::new(pitch, width, height, 4), Pattern::new(value, 4), on, false)
    }
}
