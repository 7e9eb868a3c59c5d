//! Measures the copies between a host and a device.
//!
//! Each copy is verified, and timed by the host's clock, from the call until the bytes have arrived,
//! as programs see it. Copies of page-locked memory are also timed by events behind a kernel that
//! holds the stream until all is queued: nvbandwidth's way.

use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use super::{Direction, HostSide, Link, Pinning, RoundTrip, Transfer, Transfers};
use crate::device::Device;
use crate::error::{Error, Result, counted};
use crate::memory::DeviceBuffer;
use crate::ops;
use crate::roofline::measure::has_times;
use crate::roofline::record::Milliseconds;
use crate::stream::Stream;
use crate::transfer::{InFlight, Lend};

/// Timed copies of each kind, direction and size, after one that is not timed.
const SAMPLES: usize = 9;
/// The kernel holds the stream for longer than the host takes to queue a copy.
const HOLD: Duration = Duration::from_micros(300);
/// The smallest copies, and the factor from one size to the next.
const SMALLEST: usize = 64 << 10;
const FACTOR: usize = 16;
/// The frames of the first story, as frames, planes, columns and rows; and fewer for the software
/// GPU.
const FRAMES: [usize; 4] = [10, 3, 3840, 2160];
const FEW_FRAMES: [usize; 4] = [2, 3, 38, 21];

impl Transfers {
    /// Measures copies of up to `largest` bytes, at least 1. It takes three times as many bytes of
    /// host memory. On the software GPU it verifies every copy, and times none.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if host or device have too few bytes; else the driver's error.
    pub fn measure(device: &Device, largest: usize, doing: impl Fn(&str)) -> Result<Self> {
        let mut all = Self {
            link: Link::of(device),
            threads: thread::available_parallelism().map_or(1, NonZero::get),
            ..Self::default()
        };
        let mut bench = Bench::new(device, largest)?;
        for bytes in sizes(largest) {
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
        all.frames = frames(device)?;
        Ok(all)
    }
}

impl HostSide {
    /// All kinds, in the order of tables.
    const ALL: [Self; 5] =
        [Self::Pageable, Self::PageableByDriver, Self::Pinned, Self::Registered, Self::WriteCombined];
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
        let transfer = |direction, found: Found| Transfer {
            memory,
            direction,
            bytes: bytes as u64,
            verified: found.verified,
            gbps: found.ms.map(|ms| if direction == Direction::Both { 2.0 } else { 1.0 } * gbps(bytes, ms.median)),
            ms: found.ms,
            gbps_by_events: found.device_ms.map(|ms| gbps(bytes, ms)),
        };
        let (up, down) = match memory {
            HostSide::Pageable => (self.pageable_up(bytes)?, Some(self.pageable_down(bytes)?)),
            HostSide::PageableByDriver => (self.driver_up(bytes)?, Some(self.driver_down(bytes)?)),
            HostSide::Pinned => (self.pinned_up(bytes)?, Some(self.pinned_down(bytes)?)),
            HostSide::Registered => self.registered(bytes).map(|(up, down)| (up, Some(down)))?,
            HostSide::WriteCombined => (self.write_combined_up(bytes)?, None),
        };
        let mut all = vec![transfer(Direction::H2d, up)];
        all.extend(down.map(|down| transfer(Direction::D2h, down)));
        if memory == HostSide::Pinned {
            all.push(transfer(Direction::Both, self.both_ways(bytes)?));
        }
        Ok(all)
    }

    /// Whether the device has the bytes that were sent.
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
        let times = host_times(self.device, || self.buffer.upload_from(&self.sent[..bytes]))?;
        Ok(Found::new(self.has_arrived(bytes)?, times))
    }

    fn pageable_down(&mut self, bytes: usize) -> Result<Found> {
        self.prepare(bytes)?;
        let times = host_times(self.device, || self.buffer.download_into(&mut self.received[..bytes]))?;
        Ok(Found::new(self.received[..bytes] == self.sent[..bytes], times))
    }

    fn driver_up(&mut self, bytes: usize) -> Result<Found> {
        let times = host_times(self.device, || {
            let (sent, buffer) = (&self.sent[..bytes], &mut self.buffer);
            self.streams[0].scope(|s| s.upload(sent, buffer.view_mut(&[bytes])?))
        })?;
        Ok(Found::new(self.has_arrived(bytes)?, times))
    }

    fn driver_down(&mut self, bytes: usize) -> Result<Found> {
        self.prepare(bytes)?;
        let times = host_times(self.device, || {
            let (received, buffer) = (&mut self.received[..bytes], &self.buffer);
            self.streams[0].scope(|s| s.download(buffer.view(&[bytes])?, received))
        })?;
        Ok(Found::new(self.received[..bytes] == self.sent[..bytes], times))
    }

    fn pinned_up(&mut self, bytes: usize) -> Result<Found> {
        let host = self.device.pinned_from(&self.sent[..bytes])?;
        let mut found =
            self.flights(host, |stream, buffer, host| Ok(stream.upload(host, buffer.view_mut(&[bytes])?)?))?.0;
        found.verified = self.has_arrived(bytes)?;
        Ok(found)
    }

    fn pinned_down(&mut self, bytes: usize) -> Result<Found> {
        self.prepare(bytes)?;
        let host = self.device.pinned_zeros::<u8>(bytes)?;
        let (mut found, host) =
            self.flights(host, |stream, buffer, host| Ok(stream.download(buffer.view(&[bytes])?, host)?))?;
        found.verified = host[..] == self.sent[..bytes];
        Ok(found)
    }

    fn write_combined_up(&mut self, bytes: usize) -> Result<Found> {
        let mut host = self.device.write_combined::<u8>(bytes)?;
        host.write(0, &self.sent[..bytes])?;
        let mut found =
            self.flights(host, |stream, buffer, host| Ok(stream.upload(host, buffer.view_mut(&[bytes])?)?))?.0;
        found.verified = self.has_arrived(bytes)?;
        Ok(found)
    }

    /// Times copies that own page-locked memory, by both clocks. The caller verifies them.
    fn flights<H: Lend>(
        &mut self,
        host: H,
        copy: impl Fn(&Stream, &mut DeviceBuffer<u8>, H) -> Result<InFlight<H>>,
    ) -> Result<(Found, H)> {
        let stream = &self.streams[0];
        let mut host = Some(host);
        let mut fly = |buffer: &mut DeviceBuffer<u8>| {
            let flight = copy(stream, buffer, host.take().expect("each flight lands before the next"))?;
            host = Some(flight.wait()?);
            Ok(())
        };
        let ms = host_times(self.device, || fly(&mut self.buffer))?;
        let mut device_ms = Vec::new();
        if has_times(self.device) {
            let (start, end) = (self.device.event()?, self.device.event()?);
            for _ in 0..SAMPLES {
                ops::spin(self.device, HOLD, stream)?;
                stream.record(&start)?;
                let flight = copy(stream, &mut self.buffer, host.take().expect("the last flight has landed"))?;
                stream.record(&end)?;
                host = Some(flight.wait()?);
                end.synchronize()?;
                device_ms.push(f64::from(end.elapsed_ms_since(&start)?));
            }
            device_ms.sort_unstable_by(f64::total_cmp);
        }
        let device_ms = device_ms.get(SAMPLES / 2).copied();
        Ok((Found { verified: false, ms, device_ms }, host.expect("the last flight has landed")))
    }

    /// Times memory that is page-locked where it lies.
    fn registered(&mut self, bytes: usize) -> Result<(Found, Found)> {
        let Self { device, streams: [stream, other], buffer, sent, received, .. } = self;
        let (up, down) = stream.scope(|s| {
            let source = &*s.register(&mut sent[..bytes])?.into_slice();
            let target = s.register(&mut received[..bytes])?.into_slice();
            let up = host_times(device, || other.scope(|inner| inner.upload(source, buffer.view_mut(&[bytes])?)))?;
            target.fill(0);
            let down =
                host_times(device, || other.scope(|inner| inner.download(buffer.view(&[bytes])?, &mut *target)))?;
            Ok::<_, Error>((up, down))
        })?;
        // The bytes came back, so they had arrived.
        let verified = received[..bytes] == sent[..bytes];
        Ok((Found::new(verified, up), Found::new(verified, down)))
    }

    /// Times copies in both directions at once, on two streams.
    fn both_ways(&mut self, bytes: usize) -> Result<Found> {
        self.prepare(bytes)?;
        let mut up = self.device.pinned_from(&self.sent[..bytes])?;
        let mut down = self.device.pinned_zeros::<u8>(bytes)?;
        let mut there = self.device.alloc::<u8>(bytes)?;
        let [one, two] = &self.streams;
        let mut hosts = Some((up, down));
        let times = host_times(self.device, || {
            let (out, back) = hosts.take().expect("both flights land before the next");
            let out = one.upload(out, there.view_mut(&[bytes])?)?;
            let back = two.download(self.buffer.view(&[bytes])?, back)?;
            hosts = Some((out.wait()?, back.wait()?));
            Ok(())
        })?;
        (up, down) = hosts.expect("both flights have landed");
        let arrived = there.download()? == up[..];
        Ok(Found::new(arrived && down[..] == self.sent[..bytes], times))
    }
}

/// What was found out about a copy.
struct Found {
    verified: bool,
    ms: Option<Milliseconds>,
    /// Milliseconds by events, at the median.
    device_ms: Option<f64>,
}

impl Found {
    fn new(verified: bool, ms: Option<Milliseconds>) -> Self {
        Self { verified, ms, device_ms: None }
    }
}

/// Bytes that no shift by a part of a page repeats.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8).collect()
}

fn gbps(bytes: usize, ms: f64) -> f64 {
    bytes as f64 / (ms * 1e6)
}

/// Returns the times of `work` by the host's clock, after a first call that is not timed; `None` on
/// the software GPU, where it is called once.
fn host_times(device: &Device, mut work: impl FnMut() -> Result<()>) -> Result<Option<Milliseconds>> {
    work()?;
    if !has_times(device) {
        return Ok(None);
    }
    let mut ms = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let start = Instant::now();
        work()?;
        ms.push(start.elapsed().as_secs_f64() * 1e3);
    }
    ms.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| ms[(part * (SAMPLES - 1) as f64).round() as usize];
    Ok(Some(Milliseconds { median: at(0.5), p10: at(0.1), p25: at(0.25), p75: at(0.75), p90: at(0.9) }))
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

/// Measures frames to the device and back in the ways of the first story.
fn frames(device: &Device) -> Result<Vec<RoundTrip>> {
    let shape = if has_times(device) { FRAMES } else { FEW_FRAMES };
    let len: usize = shape.iter().product();
    let bytes = len * size_of::<f32>();
    let sent: Vec<f32> = (0..len).map(|at| (at % 8191) as f32).collect();
    let mut there = device.alloc::<f32>(len)?;
    let mut received = vec![0.0_f32; len];
    let stream = device.default_stream();
    let trip = |way: &str, verified, times: Option<Milliseconds>| {
        let ms = times.map(|ms| ms.median);
        let gbps = ms.map(|ms| gbps(2 * bytes, ms));
        RoundTrip { way: way.into(), frames: shape[0], bytes: bytes as u64, verified, ms, gbps }
    };

    let pageable = host_times(device, || {
        stream.scope(|s| s.upload(&sent, there.view_mut(&shape)?))?;
        stream.scope(|s| s.download(there.view(&shape)?, &mut received))
    })?;
    let mut trips = vec![trip("pageable, by the driver", received == sent, pageable)];
    received.fill(0.0);
    let staged = host_times(device, || {
        there.upload_from(&sent)?;
        there.download_into(&mut received)
    })?;
    trips.push(trip("pageable", received == sent, staged));

    let mut host = device.pinned_zeros::<f32>(len)?;
    received.fill(0.0);
    let copied = host_times(device, || {
        host.copy_from_slice(&sent);
        stream.scope(|s| s.upload(&host, there.view_mut(&shape)?))?;
        stream.scope(|s| s.download(there.view(&shape)?, &mut host))?;
        received.copy_from_slice(&host);
        Ok(())
    })?;
    trips.push(trip("pinned, filled and emptied by the host", received == sent, copied));

    host.copy_from_slice(&sent);
    let mut back = device.pinned_zeros::<f32>(len)?;
    let pinned = host_times(device, || {
        let (host, back) = (&host, &mut back);
        stream.scope(|s| {
            s.upload(host, there.view_mut(&shape)?)?;
            s.download(there.view(&shape)?, back)
        })
    })?;
    trips.push(trip("pinned, one wait", back[..] == sent[..], pinned));
    Ok(trips)
}
