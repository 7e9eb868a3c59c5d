//! Memory that the host and the devices share, and advice about it, which changes nothing here.

use std::ffi::{c_int, c_uint};
use warpstride::error::counted;

use super::room;
use super::table::{Allocation, Kind};
use crate::arguments::{Handle, In, Opaque, Out};
use crate::code::{Failure, Outcome};
use crate::context::current;
use crate::export::export;
use crate::process::process;
use crate::stream::{Stream, stream};

/// The flags of an allocation: for any stream, or for the host at first.
const ATTACH_GLOBAL: c_uint = 1;
const ATTACH_HOST: c_uint = 2;
/// The flag of an attachment to one stream.
const ATTACH_SINGLE: c_uint = 4;
/// The number of the host among devices.
const HOST: c_int = -1;
/// The number that names neither the host nor a device.
const NEITHER: c_int = -2;

/// The advice of a program about memory, for questions about that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Advice {
    is_read_mostly: bool,
    preferred: c_int,
    accessed_by: c_int,
    prefetched_to: c_int,
}

impl Default for Advice {
    fn default() -> Self {
        Self { is_read_mostly: false, preferred: NEITHER, accessed_by: NEITHER, prefetched_to: NEITHER }
    }
}

/// A place of memory as CUDA names it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Location {
    pub(super) kind: c_uint,
    pub(super) id: c_int,
}

impl Location {
    const DEVICE: c_uint = 1;
    const HOST: c_uint = 2;
    const HOST_NUMA: c_uint = 3;
    const HOST_NUMA_CURRENT: c_uint = 4;

    /// Returns the number of the device or the host, which must exist.
    pub(super) fn number(self) -> Outcome<c_int> {
        match self.kind {
            Self::DEVICE => process()?.gpu(self.id).map(|_| self.id),
            Self::HOST | Self::HOST_NUMA | Self::HOST_NUMA_CURRENT => Ok(HOST),
            kind => Err(Failure::value(format!("{kind} is not a kind of place of memory"))),
        }
    }

    /// Returns the number of the device; the host is refused.
    pub(super) fn device(self) -> Outcome<c_int> {
        let number = self.number()?;
        if number == HOST { Err(Failure::value("the place is the host; name a device")) } else { Ok(number) }
    }
}

/// Returns the number of a device, or of the host, which must exist.
fn numbered(device: c_int) -> Outcome<c_int> {
    if device == HOST { Ok(HOST) } else { process()?.gpu(device).map(|_| device) }
}

/// Calls `change` with the advice of the managed memory that has these bytes.
fn advised<T>(address: u64, bytes: usize, change: impl FnOnce(&mut Advice) -> Outcome<T>) -> Outcome<T> {
    let mut table = process()?.memory.lock();
    let base = table.around(address).map_or(0, |(base, _)| base);
    let fits = |found: &&mut Allocation| {
        found.kind == Kind::Managed && bytes > 0 && bytes as u64 <= found.bytes - (address - base)
    };
    let found = table.around_mut(address).filter(fits).ok_or_else(|| {
        Failure::value(format!(
            "the {bytes} at {address:#x} are not all in memory of cuMemAllocManaged",
            bytes = counted(bytes, "byte")
        ))
    })?;
    change(&mut found.advice)
}

fn advise(address: u64, bytes: usize, advice: c_uint, place: impl FnOnce() -> Outcome<c_int>) -> Outcome {
    advised(address, bytes, |known| {
        match advice {
            1 | 2 => known.is_read_mostly = advice == 1,
            3 => known.preferred = place()?,
            4 => known.preferred = NEITHER,
            5 => known.accessed_by = place()?,
            6 => known.accessed_by = NEITHER,
            _ => return Err(Failure::value(format!("{advice} is not an advice about memory"))),
        }
        Ok(())
    })
}

fn prefetch(address: u64, bytes: usize, place: c_int, on: Handle<Stream>) -> Outcome {
    stream(on)?;
    advised(address, bytes, |known| {
        known.prefetched_to = place;
        Ok(())
    })
}

/// Writes an attribute of a range, in as many numbers as the caller has room for.
fn attribute(data: Opaque, room: usize, attribute: c_uint, address: u64, bytes: usize) -> Outcome {
    let known = advised(address, bytes, |known| Ok(*known))?;
    let kind = |place| match place {
        NEITHER => 0,
        HOST => Location::HOST as c_int,
        _ => Location::DEVICE as c_int,
    };
    let value = match attribute {
        1 => c_int::from(known.is_read_mostly),
        2 => known.preferred,
        3 => known.accessed_by,
        4 => known.prefetched_to,
        5 => kind(known.preferred),
        6 => known.preferred,
        7 => kind(known.prefetched_to),
        8 => known.prefetched_to,
        _ => return Err(Failure::value(format!("{attribute} is not an attribute of a range"))),
    };
    let places = room / size_of::<c_int>();
    if room == 0 || !room.is_multiple_of(size_of::<c_int>()) || (attribute != 3 && places != 1) {
        return Err(Failure::value(format!(
            "an attribute of a range does not have {room}",
            room = counted(room, "byte")
        )));
    }
    data.results::<c_int>().set_all([value].into_iter().chain(std::iter::repeat(NEITHER)), places)
}

export! {
    /// Allocates memory that the host and the devices share.
    fn cuMemAllocManaged(address: Out<u64>, bytes: usize, flags: c_uint) {
        address.check()?;
        if !matches!(flags, ATTACH_GLOBAL | ATTACH_HOST) {
            return Err(Failure::value(format!("{flags:#x} is not a way to attach managed memory; pass 1 or 2")));
        }
        let (process, context) = (process()?, current()?);
        let memory = Opaque(context.gpu()?.soft.alloc_shared(room(bytes)?)?.as_ptr());
        let made = Allocation::new(Kind::Managed, bytes as u64, &context, flags);
        process.memory.lock().add(memory.address(), made);
        address.set(memory.address())
    }

    /// Checks an attachment of managed memory to a stream, which changes nothing here.
    fn cuStreamAttachMemAsync, per_thread cuStreamAttachMemAsync_ptsz (
        on: Handle<Stream>, address: u64, bytes: usize, flags: c_uint,
    ) {
        stream(on)?;
        if !matches!(flags, ATTACH_GLOBAL | ATTACH_HOST | ATTACH_SINGLE) {
            return Err(Failure::value(format!("{flags:#x} is not a way to attach managed memory; pass 1, 2 or 4")));
        }
        advised(address, bytes.max(1), |_| Ok(()))
    }

    /// Takes an advice about managed memory.
    fn cuMemAdvise(address: u64, bytes: usize, advice: c_uint, device: c_int) {
        advise(address, bytes, advice, || numbered(device))
    }

    /// Takes an advice about managed memory.
    fn cuMemAdvise_v2(address: u64, bytes: usize, advice: c_uint, place: Location) {
        advise(address, bytes, advice, || place.number())
    }

    /// Takes the wish to have managed memory at a device, where it is anyway.
    fn cuMemPrefetchAsync, per_thread cuMemPrefetchAsync_ptsz (
        address: u64, bytes: usize, device: c_int, on: Handle<Stream>,
    ) {
        prefetch(address, bytes, numbered(device)?, on)
    }

    /// Takes the wish to have managed memory at a place.
    fn cuMemPrefetchAsync_v2, per_thread cuMemPrefetchAsync_v2_ptsz (
        address: u64, bytes: usize, place: Location, flags: c_uint, on: Handle<Stream>,
    ) {
        if flags != 0 {
            return Err(Failure::value("the flags of a prefetch must be 0"));
        }
        prefetch(address, bytes, place.number()?, on)
    }

    /// Returns what was advised about managed memory.
    fn cuMemRangeGetAttribute(data: Opaque, room: usize, number: c_uint, address: u64, bytes: usize) {
        attribute(data, room, number, address, bytes)
    }

    /// Returns several things that were advised about managed memory.
    fn cuMemRangeGetAttributes(
        data: In<Opaque>, rooms: In<usize>, numbers: In<c_uint>, count: usize, address: u64, bytes: usize,
    ) {
        let (data, rooms, numbers) = (data.list(count)?, rooms.list(count)?, numbers.list(count)?);
        if count == 0 {
            return Err(Failure::value("the list of attributes is empty"));
        }
        let all = data.into_iter().zip(rooms).zip(numbers);
        all.into_iter().try_for_each(|((data, room), number)| attribute(data, room, number, address, bytes))
    }
}
