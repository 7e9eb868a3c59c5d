//! The work of nodes.

use std::ffi::c_uint;
use std::sync::Arc;
use warpstride::error::counted;

use warpstride::driver::{Copy3d, Memory as _, Pitched, Place, StreamHandle};

use super::params::{CopyParams, FillParams, SideParams};
use super::{Graph, graphs};
use crate::arguments::{Handle, Opaque};
use crate::code::{Failure, Outcome};
use crate::launch::Launch;
use crate::memory::FIRST_OF_DEVICES;
use crate::process::{Gpu, process};
use crate::stream::{Event, Operation, host_call};

/// A function of the host.
pub(crate) type HostFunction = unsafe extern "C" fn(Opaque);

/// The kinds of nodes, as C numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    Kernel = 0,
    Copy = 1,
    Fill = 2,
    Host = 3,
    Child = 4,
    Empty = 5,
    Wait = 6,
    Record = 7,
    Alloc = 10,
    Free = 11,
    Operations = 12,
}

/// Work that is queued by each launch.
type Queue = Arc<dyn Fn(&Gpu, StreamHandle) -> warpstride::Result<()> + Send + Sync>;

/// The work of a node.
#[derive(Clone)]
pub(crate) enum Work {
    Kernel(Arc<Launch>),
    Copy(Arc<CopyWork>),
    Fill {
        params: FillParams,
        device: i32,
    },
    Host {
        function: HostFunction,
        data: Opaque,
    },
    Child(Arc<Graph>),
    Empty,
    Wait(Handle<Event>),
    Record(Handle<Event>),
    Alloc(Arc<Allocated>),
    Free(u64),
    Operations {
        device: i32,
        operations: Arc<[Operation]>,
    },
    /// Work of a captured stream that programs cannot ask for its operands.
    Recorded {
        kind: Kind,
        device: i32,
        queue: Queue,
    },
}

/// A copy of a box.
pub(crate) struct CopyWork {
    pub(super) params: CopyParams,
    device: i32,
    copy: HostCopy,
}

/// A copy whose sides are found.
#[derive(Clone, Copy)]
struct HostCopy(Copy3d);

// SAFETY: the code that queues a copy promises that memory of the host stays valid until it has
// run, on any thread.
unsafe impl Send for HostCopy {}
// SAFETY: as above.
unsafe impl Sync for HostCopy {}

/// Memory that a graph allocates: from the making of its node on, at the same address in each
/// launch.
pub(crate) struct Allocated {
    pub(super) address: u64,
    pub(super) bytes: usize,
    pub(super) device: i32,
}

impl Drop for Allocated {
    fn drop(&mut self) {
        if let Ok(gpu) = process().and_then(|process| process.gpu(self.device)) {
            // SAFETY: no node has the allocation any more, and the free waits for queued work.
            let _ = unsafe { gpu.soft.free(self.address) };
        }
    }
}

impl Allocated {
    pub(crate) fn new(device: i32, bytes: usize) -> Outcome<Self> {
        if bytes == 0 {
            return Err(Failure::value("a graph allocates at least 1 byte"));
        }
        let address = process()?.gpu(device)?.soft.alloc(bytes as u64)?;
        Ok(Self { address, bytes, device })
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

/// Returns whether a device's own calls take these bytes; not those of the host, unless devices use
/// them, too. Refuses bytes that no memory has, and those of a device that does not share them.
fn is_of_devices(gpu: &Gpu, address: u64, bytes: u64) -> Outcome<bool> {
    let process = process()?;
    process.memory.check(process, address, bytes)?;
    let is_here = gpu.soft.memory().allocation_around(address, bytes).is_some();
    if !is_here && address >= FIRST_OF_DEVICES {
        return Err(Failure::unsupported(format!(
            "{address:#x} is memory of a device that does not share it with the node's; enable peer access first"
        )));
    }
    Ok(is_here)
}

/// The types of memory of a copy's side.
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const UNIFIED: c_uint = 4;

impl SideParams {
    /// Finds the first byte of a side, and its pitches.
    fn find(&self, gpu: &Gpu, box_of: &CopyParams) -> Outcome<Pitched> {
        let too_large =
            || Failure::value("the copy is larger than memory; pass its width, height, depth and pitches in bytes");
        let &CopyParams { width, height, depth, .. } = box_of;
        let pitch = if self.pitch == 0 { width } else { self.pitch };
        let rows = if self.height == 0 { height } else { self.height };
        if (height > 1 || depth > 1) && pitch < width {
            return Err(Failure::value(format!(
                "a pitch of {pitch} is less than the {width} of a row; pass a larger one",
                pitch = counted(pitch, "byte"),
                width = counted(width, "byte")
            )));
        }
        let slice = pitch.checked_mul(rows).ok_or_else(too_large)?;
        let offset =
            |z: usize, y: usize, x: usize| slice.checked_mul(z)?.checked_add(pitch.checked_mul(y)?)?.checked_add(x);
        let first = offset(self.z, self.y, self.x).ok_or_else(too_large)?;
        let last = offset(depth.saturating_sub(1), height.saturating_sub(1), width).ok_or_else(too_large)?;
        let base = if self.kind == HOST { self.host as u64 } else { self.device };
        let begin = base.checked_add(first as u64).ok_or_else(too_large)?;
        begin.checked_add(last as u64).ok_or_else(too_large)?;
        let is_empty = width == 0 || height == 0 || depth == 0;
        let of_devices = || if is_empty { Ok(false) } else { is_of_devices(gpu, begin, last as u64) };
        let is_device = match self.kind {
            HOST if of_devices()? && begin >= FIRST_OF_DEVICES => {
                return Err(Failure::value(format!("{begin:#x} is an address of a device; pass one of the host")));
            }
            HOST => false,
            DEVICE if !is_empty && !of_devices()? => {
                return Err(Failure::value(format!("{begin:#x} is not an address of a device; pass one")));
            }
            DEVICE => true,
            UNIFIED => of_devices()?,
            other => {
                return Err(Failure::unsupported(format!("a copy node with memory of type {other} is not supported")));
            }
        };
        let place = if is_device {
            Place::Device(begin)
        } else {
            let base = if self.kind == HOST { self.host } else { self.device as usize };
            Place::Host(std::ptr::with_exposed_provenance_mut::<u8>(base).wrapping_add(first))
        };
        Ok(Pitched { place, row_pitch: pitch, slice_pitch: slice })
    }
}

impl CopyWork {
    /// Makes the work that a copy is.
    pub(super) fn work(params: CopyParams, device: i32) -> Outcome<Work> {
        let gpu = process()?.gpu(device)?;
        let (dst, src) = (params.dst.find(gpu, &params)?, params.src.find(gpu, &params)?);
        let copy = Copy3d { dst, src, width: params.width, height: params.height, depth: params.depth };
        Ok(Work::Copy(Arc::new(Self { params, device, copy: HostCopy(copy) })))
    }

    fn queue(&self, gpu: &Gpu, soft: StreamHandle) -> warpstride::Result<()> {
        self.queue_copy(gpu, soft)?;
        let Copy3d { dst, src, width, height, depth } = self.copy.0;
        if let Ok(process) = process() {
            let bytes = [height, depth].iter().fold(width, |bytes, count| bytes.saturating_mul(*count));
            process.memory.count_copy(process, address_of(dst.place), address_of(src.place), bytes as u64);
        }
        Ok(())
    }

    fn queue_copy(&self, gpu: &Gpu, soft: StreamHandle) -> warpstride::Result<()> {
        let copy = self.copy;
        if let (Place::Host(dst), Place::Host(src)) = (copy.0.dst.place, copy.0.src.place) {
            let (dst, src) = (Opaque(dst), Opaque(src));
            let call = move || {
                copy.within_the_host(dst, src);
                Ok(())
            };
            return gpu.soft.call_host(soft, "copying within the host", Box::new(call));
        }
        // SAFETY: the software GPU checks its own addresses, and the caller promises the host's
        // memory until the copy has run.
        unsafe { gpu.soft.copy_3d(&copy.0, soft) }
    }
}

fn address_of(place: Place) -> u64 {
    match place {
        Place::Device(address) => address,
        Place::Host(memory) => memory.expose_provenance() as u64,
    }
}

impl HostCopy {
    fn within_the_host(self, dst: Opaque, src: Opaque) {
        let Self(Copy3d { dst: to, src: from, width, height, depth }) = self;
        for (z, y) in (0..depth).flat_map(|z| (0..height).map(move |y| (z, y))) {
            let to = dst.pointer().wrapping_add(z * to.slice_pitch + y * to.row_pitch);
            let from = src.pointer().wrapping_add(z * from.slice_pitch + y * from.row_pitch);
            // SAFETY: the caller promises both sides of each row until the copy has run.
            unsafe { std::ptr::copy(from.cast_const(), to, width) };
        }
    }
}

impl FillParams {
    pub(super) fn work(self, device: i32) -> Outcome<Work> {
        let Self { address, pitch, element, width, height, .. } = self;
        if !matches!(element, 1 | 2 | 4) || address % u64::from(element) != 0 {
            return Err(Failure::value(format!(
                "elements of {element} at {address:#x} are refused; pass 1, 2 or 4, aligned",
                element = counted(element, "byte")
            )));
        }
        let row = width.checked_mul(element as usize).filter(|row| height <= 1 || *row <= pitch);
        let span = row.and_then(|row| pitch.checked_mul(height.saturating_sub(1))?.checked_add(row));
        let Some(bytes) = span.filter(|&bytes| address.checked_add(bytes as u64).is_some()) else {
            return Err(Failure::value(format!(
                "{height} of {width} with a pitch of {pitch} do not fit",
                height = counted(height, "row"),
                width = counted(width, "element"),
                pitch = counted(pitch, "byte")
            )));
        };
        if width > 0 && !is_of_devices(process()?.gpu(device)?, address, bytes as u64)? {
            return Err(Failure::value(format!(
                "{address:#x} is not memory of a device, so a device does not fill it"
            )));
        }
        Ok(Work::Fill { params: self, device })
    }

    fn queue(self, gpu: &Gpu, soft: StreamHandle) -> warpstride::Result<()> {
        let (row, element) = (self.width * self.element as usize, self.element as usize);
        let bytes = self.value.to_ne_bytes();
        if self.height <= 1 && bytes[..element].iter().all(|&byte| byte == bytes[0]) {
            // SAFETY: the software GPU checks the addresses.
            return unsafe { gpu.soft.fill(self.address, bytes[0], row as u64, soft) };
        }
        let driver = Arc::clone(&gpu.soft);
        let fill = move || {
            let chunk = bytes[..element].repeat((row / element).min(CHUNK));
            for y in 0..self.height.max(1) {
                for start in (0..row).step_by(chunk.len().max(1)) {
                    let part = &chunk[..chunk.len().min(row - start)];
                    driver.memory().write(self.address + (y * self.pitch + start) as u64, part)?;
                }
            }
            Ok(())
        };
        gpu.soft.call_host(soft, "filling memory", Box::new(fill))
    }
}

/// The elements of a fill that are written at a time.
const CHUNK: usize = 4096;

impl Work {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Kernel(_) => Kind::Kernel,
            Self::Copy(_) => Kind::Copy,
            Self::Fill { .. } => Kind::Fill,
            Self::Host { .. } => Kind::Host,
            Self::Child(_) => Kind::Child,
            Self::Empty => Kind::Empty,
            Self::Wait(_) => Kind::Wait,
            Self::Record(_) => Kind::Record,
            Self::Alloc(_) => Kind::Alloc,
            Self::Free(_) => Kind::Free,
            Self::Operations { .. } => Kind::Operations,
            Self::Recorded { kind, .. } => *kind,
        }
    }

    /// Returns the device that the work needs; `None` if each one will do.
    pub(super) fn device(&self) -> Option<i32> {
        match self {
            Self::Kernel(launch) => Some(launch.function.device),
            Self::Copy(copy) => Some(copy.device),
            Self::Fill { device, .. } | Self::Operations { device, .. } | Self::Recorded { device, .. } => {
                Some(*device)
            }
            Self::Record(event) => process().ok()?.events.find(*event).map(|event| event.device),
            Self::Host { .. } | Self::Child(_) | Self::Empty | Self::Wait(_) | Self::Alloc(_) | Self::Free(_) => None,
        }
    }

    /// Queues the work on a software stream of its device. A graph within the graph is not queued
    /// here.
    pub(crate) fn queue(&self, gpu: &Gpu, soft: StreamHandle) -> Outcome {
        match self {
            Self::Kernel(launch) => launch.queue(gpu, soft)?,
            Self::Copy(copy) => copy.queue(gpu, soft)?,
            Self::Fill { params, .. } => params.queue(gpu, soft)?,
            &Self::Host { function, data } => host_call(gpu, soft, function, data)?,
            Self::Wait(event) => process()?.events.get(*event)?.wait_on(gpu, soft)?,
            Self::Record(event) => process()?.events.get(*event)?.record_on(gpu, soft)?,
            Self::Operations { operations, .. } => Operation::queue_all(operations, gpu, soft)?,
            Self::Recorded { queue, .. } => queue(gpu, soft)?,
            Self::Child(_) | Self::Empty | Self::Alloc(_) | Self::Free(_) => {}
        }
        Ok(())
    }

    /// Makes the work that embeds a copy of a graph.
    pub(super) fn child(of: &Graph) -> Outcome<Self> {
        graphs()?;
        Ok(Self::Child(of.copy(true, 1)?))
    }
}
