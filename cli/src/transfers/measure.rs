//! Measures the copies between a host and a device.
//!
//! Each copy is verified, and timed by the host's clock, from the call until the bytes have
//! arrived, as programs see it. Copies of page-locked memory are also timed by events behind a
//! kernel that holds the stream until all is queued: nvbandwidth's way.

use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use crate::nvml;
use crate::run::transfers::{Direction, HostSide, Link, Pinning, RoundTrip, Transfer, Transfers};
use warpstride::device::Device;
use warpstride::error::{Result, counted};
use warpstride::memory::{DeviceBuffer, PinnedBuffer, Route};
use warpstride::ops;
use warpstride::roofline::measure::has_times;
use warpstride::roofline::record::Milliseconds;
use warpstride::stream::Stream;
use warpstride::transfer::{InFlight, Lend};

/// Timed copies of each kind, direction and size, after one that is verified.
const SAMPLES: usize = 9;
/// The largest blocks that glibc keeps after a free: `DEFAULT_MMAP_THRESHOLD_MAX`.
const MOST_REUSED: usize = 32 << 20;
/// The kernel holds the stream for longer than the host takes to queue a copy.
const HOLD: Duration = Duration::from_micros(300);
/// The smallest copies, and the factor from one size to the next.
const SMALLEST: usize = 64 << 10;
const FACTOR: usize = 16;
/// The frames of the first story, as frames, planes, columns and rows.
const FRAMES: [usize; 4] = [10, 3, 3840, 2160];

impl Transfers {
    /// Measures copies of up to `largest` bytes, at least 1. It takes five times as many bytes of
    /// host memory, and the slots of staged copies. On the software GPU it verifies every copy, and
    /// times none.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if host or device have too few bytes; else the driver's error.
    pub(crate) fn measure(device: &Device, largest: usize, doing: impl Fn(&str)) -> Result<Self> {
        let mut all = Self {
            link: nvml::link(device).and_then(|[generation, lanes]| Link::new(generation, lanes)),
            threads: thread::available_parallelism().map_or(1, NonZero::get),
            ..Self::default()
        };
        let mut bench = Bench::new(device, largest)?;
        for bytes in sizes(largest) {
            // Page-locked memory of the size before is of no use for this one.
            device.trim_pinned(0)?;
            for memory in HostSide::ALL {
                doing(&format!("{}, {}", memory.name(), counted(bytes, "byte")));
                all.copies.extend(bench.copies(memory, bytes)?);
            }
        }
        drop(bench);
        doing("page-locking");
        all.pinning = [HostSide::Pinned, HostSide::Registered]
            .into_iter()
            .map(|memory| pinning(device, memory, largest, &all.copies))
            .collect::<Result<_>>()?;
        doing("frames");
        all.frames = frames(device, largest)?;
        Ok(all)
    }
}

/// The sizes up to the largest.
fn sizes(largest: usize) -> Vec<usize> {
    let smaller = std::iter::successors(Some(SMALLEST), |bytes| bytes.checked_mul(FACTOR));
    smaller.take_while(|&bytes| bytes < largest).chain([largest]).collect()
}

/// A device with a buffer, and ordinary memory with bytes to send and to receive.
struct Bench<'d> {
    device: &'d Device,
    streams: [Stream; 2],
    buffer: DeviceBuffer<u8>,
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl<'d> Bench<'d> {
    fn new(device: &'d Device, largest: usize) -> Result<Self> {
        let streams = [device.stream()?, device.stream()?];
        Ok(Self { device, streams, buffer: device.alloc(largest)?, sent: pattern(largest), received: vec![0; largest] })
    }

    /// Measures the copies of one kind and size.
    fn copies(&mut self, memory: HostSide, bytes: usize) -> Result<Vec<Transfer>> {
        self.buffer = self.device.alloc(bytes)?;
        // Every kind of memory sets its route, and the last one sets `Auto`.
        self.device.set_route(if memory == HostSide::PageableByDriver { Route::Driver } else { Route::Auto });
        let found = match memory {
            HostSide::Pageable | HostSide::PageableByDriver => {
                vec![(Direction::H2d, self.pageable_up(bytes)?), (Direction::D2h, self.pageable_down(bytes)?)]
            }
            HostSide::FreshPageable => vec![(Direction::D2h, self.fresh_down(bytes)?)],
            HostSide::Pinned => {
                let host = self.device.pinned_from(&self.sent[..bytes])?;
                let (up, down) = (self.locked_up(host, bytes)?, self.pinned_down(bytes)?);
                vec![(Direction::H2d, up), (Direction::D2h, down), (Direction::Both, self.both_ways(bytes)?)]
            }
            HostSide::Registered => {
                let (up, down) = self.registered(bytes)?;
                vec![(Direction::H2d, up), (Direction::D2h, down)]
            }
            HostSide::WriteCombined => {
                let mut host = self.device.write_combined::<u8>(bytes)?;
                host.write(0, &self.sent[..bytes])?;
                vec![(Direction::H2d, self.locked_up(host, bytes)?)]
            }
        };
        let transfer = |(direction, Found { verified, ms, device_ms })| {
            let directions = if direction == Direction::Both { 2.0 } else { 1.0 };
            let gbps_by_events = device_ms.map(|ms| gbps(bytes, ms));
            let gbps = ms.map(|ms| directions * gbps(bytes, ms.median));
            Transfer { memory, direction, bytes: bytes as u64, verified, ms, gbps, gbps_by_events }
        };
        Ok(found.into_iter().map(transfer).collect())
    }

    /// Overwrites the device's buffer, so that only an upload brings the bytes to send there.
    fn clear(&mut self, bytes: usize) -> Result<()> {
        ops::fill_into(0_u8, self.buffer.view_mut(&[bytes])?, self.device.default_stream())
    }

    /// Returns whether the device has the bytes that were sent.
    fn has_arrived(&mut self, bytes: usize) -> Result<bool> {
        let received = &mut self.received[..bytes];
        self.buffer.download_into(received)?;
        Ok(received == &self.sent[..bytes])
    }

    /// Fills the device's buffer with the bytes to send, and what receives them with others.
    fn prepare(&mut self, bytes: usize) -> Result<()> {
        self.buffer.upload_from(&self.sent[..bytes])?;
        self.received[..bytes].fill(0);
        Ok(())
    }

    fn pageable_up(&mut self, bytes: usize) -> Result<Found> {
        self.clear(bytes)?;
        self.buffer.upload_from(&self.sent[..bytes])?;
        let verified = self.has_arrived(bytes)?;
        Found::timed(self.device, verified, || self.buffer.upload_from(&self.sent[..bytes]))
    }

    fn pageable_down(&mut self, bytes: usize) -> Result<Found> {
        self.prepare(bytes)?;
        self.buffer.download_into(&mut self.received[..bytes])?;
        let verified = self.received[..bytes] == self.sent[..bytes];
        Found::timed(self.device, verified, || self.buffer.download_into(&mut self.received[..bytes]))
    }

    /// The system maps each page of the new memory at its first use, within the copy. Small vectors
    /// live until the last copy, because an allocator gives their used memory out again.
    fn fresh_down(&mut self, bytes: usize) -> Result<Found> {
        self.prepare(bytes)?;
        let first = self.buffer.download()?;
        let verified = first == self.sent[..bytes];
        let is_small = bytes <= MOST_REUSED;
        let mut small: Vec<Vec<u8>> = Some(first).filter(|_| is_small).into_iter().collect();
        Found::timed(self.device, verified, || {
            let fresh = self.buffer.download()?;
            if !is_small {
                return Ok(Some(fresh));
            }
            small.push(fresh);
            Ok(None)
        })
    }

    /// Times uploads of page-locked memory that has the bytes to send.
    fn locked_up<H: Lend<Element = u8>>(&mut self, host: H, bytes: usize) -> Result<Found> {
        self.clear(bytes)?;
        let host = self.streams[0].upload(host, self.buffer.view_mut(&[bytes])?)?.wait()?;
        let verified = self.has_arrived(bytes)?;
        self.flights(host, verified, |stream, buffer, host| Ok(stream.upload(host, buffer.view_mut(&[bytes])?)?))
    }

    fn pinned_down(&mut self, bytes: usize) -> Result<Found> {
        self.prepare(bytes)?;
        let host = self.device.pinned_zeros::<u8>(bytes)?;
        let host = self.streams[0].download(self.buffer.view(&[bytes])?, host)?.wait()?;
        let verified = host[..] == self.sent[..bytes];
        self.flights(host, verified, |stream, buffer, host| Ok(stream.download(buffer.view(&[bytes])?, host)?))
    }

    /// Times copies that own page-locked memory, by both clocks.
    fn flights<H: Lend>(
        &mut self,
        host: H,
        verified: bool,
        copy: impl Fn(&Stream, &mut DeviceBuffer<u8>, H) -> Result<InFlight<H>>,
    ) -> Result<Found> {
        let stream = &self.streams[0];
        let mut host = Some(host);
        let start_flight = |buffer: &mut DeviceBuffer<u8>, host: &mut Option<H>| {
            copy(stream, buffer, host.take().expect("each flight lands before the next"))
        };
        let found = Found::timed(self.device, verified, || {
            host = Some(start_flight(&mut self.buffer, &mut host)?.wait()?);
            Ok(())
        })?;
        if found.ms.is_none() {
            return Ok(found);
        }
        let mut device_ms = Vec::new();
        let (start, end) = (self.device.event()?, self.device.event()?);
        for _ in 0..SAMPLES {
            ops::spin(self.device, HOLD, stream)?;
            stream.record(&start)?;
            let flight = start_flight(&mut self.buffer, &mut host)?;
            stream.record(&end)?;
            host = Some(flight.wait()?);
            end.synchronize()?;
            device_ms.push(f64::from(end.elapsed_ms_since(&start)?));
        }
        device_ms.sort_unstable_by(f64::total_cmp);
        Ok(Found { device_ms: Some(device_ms[SAMPLES / 2]), ..found })
    }

    /// Times memory that is page-locked where it lies.
    fn registered(&mut self, bytes: usize) -> Result<(Found, Found)> {
        self.clear(bytes)?;
        let Self { device, streams: [stream, other], buffer, sent, received, .. } = self;
        stream.scope(|s| {
            let source = &*s.register(&mut sent[..bytes])?.into_slice();
            let target = s.register(&mut received[..bytes])?.into_slice();
            other.scope(|inner| inner.upload(source, buffer.view_mut(&[bytes])?))?;
            target.fill(0);
            other.scope(|inner| inner.download(buffer.view(&[bytes])?, &mut *target))?;
            // The bytes came back, so they had arrived.
            let verified = target == source;
            let up = || other.scope(|inner| inner.upload(source, buffer.view_mut(&[bytes])?));
            let up = Found::timed(device, verified, up)?;
            let down = || other.scope(|inner| inner.download(buffer.view(&[bytes])?, &mut *target));
            Ok((up, Found::timed(device, verified, down)?))
        })
    }

    /// Times copies in both directions at once, on two streams.
    fn both_ways(&mut self, bytes: usize) -> Result<Found> {
        self.prepare(bytes)?;
        let hosts = (self.device.pinned_from(&self.sent[..bytes])?, self.device.pinned_zeros::<u8>(bytes)?);
        let mut there = self.device.zeros::<u8>(bytes)?;
        let [one, two] = &self.streams;
        let mut hosts = Some(hosts);
        let fly = |there: &mut DeviceBuffer<u8>, hosts: &mut Option<_>| {
            let (out, back) = hosts.take().expect("both flights land before the next");
            let out = one.upload(out, there.view_mut(&[bytes])?)?;
            let back = two.download(self.buffer.view(&[bytes])?, back)?;
            *hosts = Some((out.wait()?, back.wait()?));
            Ok(())
        };
        fly(&mut there, &mut hosts)?;
        let arrived = there.download()? == self.sent[..bytes];
        let verified = arrived && hosts.as_ref().is_some_and(|(_, back)| back[..] == self.sent[..bytes]);
        Found::timed(self.device, verified, || fly(&mut there, &mut hosts))
    }
}

/// The findings about a copy.
struct Found {
    verified: bool,
    ms: Option<Milliseconds>,
    /// Milliseconds by events, at the median.
    device_ms: Option<f64>,
}

impl Found {
    /// Times a copy by the host's clock alone. There are no times on the software GPU, and where
    /// the copy is wrong.
    fn timed<R>(device: &Device, verified: bool, mut work: impl FnMut() -> Result<R>) -> Result<Self> {
        let mut found = Self { verified, ms: None, device_ms: None };
        if !verified || !has_times(device) {
            return Ok(found);
        }
        let mut ms = Vec::with_capacity(SAMPLES);
        for _ in 0..SAMPLES {
            let start = Instant::now();
            let done = work()?;
            ms.push(start.elapsed().as_secs_f64() * 1e3);
            drop(done);
        }
        ms.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| ms[(part * (SAMPLES - 1) as f64).round() as usize];
        found.ms = Some(Milliseconds { median: at(0.5), p10: at(0.1), p25: at(0.25), p75: at(0.75), p90: at(0.9) });
        Ok(found)
    }
}

/// Bytes that no shift by a part of a page repeats. The first one is not 0, as cleared memory is.
fn pattern(bytes: usize) -> Vec<u8> {
    (1..=bytes as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8).collect()
}

fn gbps(bytes: usize, ms: f64) -> f64 {
    bytes as f64 / (ms * 1e6)
}

/// Measures what it costs to page-lock `bytes` bytes, and after how many copies that pays.
fn pinning(device: &Device, memory: HostSide, bytes: usize, copies: &[Transfer]) -> Result<Pinning> {
    let ms = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
    let (lock_ms, release_ms) = if memory == HostSide::Pinned {
        device.trim_pinned(0)?;
        let start = Instant::now();
        let host = device.pinned::<u8>(bytes)?;
        let locked = ms(start);
        drop(host);
        let start = Instant::now();
        device.trim_pinned(0)?;
        (locked, ms(start))
    } else {
        let mut host = vec![1_u8; bytes];
        let start = Instant::now();
        let locked = device.default_stream().scope(|s| s.register(&mut host).map(|_| Instant::now()))?;
        ((locked - start).as_secs_f64() * 1e3, ms(locked))
    };
    let median = |of: HostSide| {
        let mut rows = copies.iter().filter(|copy| copy.memory == of && copy.direction == Direction::H2d);
        rows.find(|copy| copy.bytes == bytes as u64)?.ms.map(|ms| ms.median)
    };
    let won = median(HostSide::Pageable).zip(median(memory)).map(|(ordinary, locked)| ordinary - locked);
    let break_even = won.filter(|&won| won > 0.0).map(|won| ((lock_ms + release_ms) / won).ceil() as u64);
    let timed = |ms: f64| has_times(device).then_some(ms);
    Ok(Pinning { memory, bytes: bytes as u64, ms: timed(lock_ms), release_ms: timed(release_ms), break_even })
}

/// The shape of frames in at most `largest` bytes: all of the story's, or fewer, or small ones.
fn shape_of_frames(largest: usize) -> [usize; 4] {
    let [most, planes, mut columns, mut rows] = FRAMES;
    let bytes = |columns, rows| planes * columns * rows * size_of::<f32>();
    while bytes(columns, rows) > largest && columns > 1 {
        (columns, rows) = (columns / 2, (rows / 2).max(1));
    }
    [(largest / bytes(columns, rows)).clamp(1, most), planes, columns, rows]
}

/// Measures frames to the device and back in the ways of the first story. Each batch goes to other
/// memory of the host than it came from, so a batch that did not come back shows.
fn frames(device: &Device, largest: usize) -> Result<Vec<RoundTrip>> {
    let shape = shape_of_frames(largest);
    let len: usize = shape.iter().product();
    let sent: Vec<f32> = (0..len).map(|at| (at % 8191 + 1) as f32).collect();
    let mut there = device.alloc::<f32>(len)?;
    let mut received = vec![0.0_f32; len];
    let mut host = device.pinned_zeros::<f32>(len)?;
    let mut back = device.pinned_zeros::<f32>(len)?;
    let stream = device.default_stream();

    let mut trips = Vec::new();
    for (way, name) in WAYS {
        ops::fill_into(0.0_f32, there.view_mut(&shape)?, stream)?;
        received.fill(0.0);
        back.fill(0.0);
        host.copy_from_slice(&sent);
        // Every way sets its route, and the last one sets `Auto`.
        device.set_route(if way == Way::Driver { Route::Driver } else { Route::Auto });
        let mut travel = |received: &mut Vec<f32>, back: &mut PinnedBuffer<f32>| match way {
            Way::Driver | Way::Pageable => {
                there.upload_from(&sent)?;
                there.download_into(received)
            }
            Way::Copied => {
                host.copy_from_slice(&sent);
                stream.scope(|s| s.upload(&host, there.view_mut(&shape)?))?;
                stream.scope(|s| s.download(there.view(&shape)?, &mut *back))?;
                received.copy_from_slice(back);
                Ok(())
            }
            Way::Pinned => stream.scope(|s| {
                s.upload(&host, there.view_mut(&shape)?)?;
                s.download(there.view(&shape)?, &mut *back)
            }),
        };
        travel(&mut received, &mut back)?;
        let verified = if way == Way::Pinned { back[..] == sent[..] } else { received == sent };
        let ms = Found::timed(device, verified, || travel(&mut received, &mut back))?.ms.map(|ms| ms.median);
        let bytes = len * size_of::<f32>();
        let gbps = ms.map(|ms| gbps(2 * bytes, ms));
        trips.push(RoundTrip { way: name.into(), frames: shape[0], bytes: bytes as u64, verified, ms, gbps });
    }
    Ok(trips)
}

/// A way of the frames.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Driver,
    Pageable,
    Copied,
    Pinned,
}

/// The ways with their names in tables.
const WAYS: [(Way, &str); 4] = [
    (Way::Driver, "pageable, by the driver"),
    (Way::Pageable, "pageable"),
    (Way::Copied, "pinned, filled and emptied by the host"),
    (Way::Pinned, "pinned, one wait"),
];

#[cfg(test)]
mod tests;
