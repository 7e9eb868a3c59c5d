//! Measures the links between the GPUs of a host, and predicts times from them.

use std::sync::Arc;

use super::push::Push;
use super::pushes::{Lane, Pushes};
use super::staged::{PIECE, Staged};
use super::ways::Way;
use super::{Distributed, Exchange, Gpus, Move, Redistribution};
use crate::element::Element;
use crate::error::{Result, counted, require};
use crate::layout::Layout;
use crate::memory::DeviceBuffer;
use crate::ops::{Align, PermutePlan, Target};
use crate::roofline::measure::{self, Timing};

/// Times a flat push: kernels of each `from` store `bytes` bytes into the memory of its `to`, by
/// 16-byte stores, all at once. The bytes over the median time are the bandwidth of each direction.
/// Pairs that do not use each other's memory copy through pinned host memory.
///
/// # Errors
///
/// `InvalidArgument` if there is no such rank, or one pushes or gets twice; `Unavailable` on
/// software GPUs, which have no times; else the driver's error.
pub fn time_push(gpus: &Arc<Gpus>, pairs: &[(usize, usize)], bytes: usize, samples: usize) -> Result<Timing> {
    time_flat(gpus, pairs, bytes, samples, |from, to| if gpus.reaches(from, to) { Way::Kernel } else { Way::Host })
}

/// Times as [`time_push`] does, with copies by copy engines of the ranks that get the bytes.
///
/// # Errors
///
/// As [`time_push`].
pub fn time_copy(gpus: &Arc<Gpus>, pairs: &[(usize, usize)], bytes: usize, samples: usize) -> Result<Timing> {
    time_flat(gpus, pairs, bytes, samples, |from, to| if gpus.reaches(to, from) { Way::Engine } else { Way::Host })
}

fn time_flat(
    gpus: &Arc<Gpus>,
    pairs: &[(usize, usize)],
    bytes: usize,
    samples: usize,
    way: impl Fn(usize, usize) -> Way,
) -> Result<Timing> {
    let mut ends = [vec![false; gpus.len()], vec![false; gpus.len()]];
    for &(from, to) in pairs {
        require!(
            from.max(to) < gpus.len() && !ends[0][from] && !ends[1][to],
            InvalidArgument,
            "rank {from} cannot push to {to}: there are {}, each of which pushes once and gets once at a time",
            counted(gpus.len(), "rank")
        );
        (ends[0][from], ends[1][to]) = (true, true);
    }
    let layout = Layout::row_major(&[bytes])?;
    let lane = if gpus.is_limited() { Lane::Peers } else { Lane::Default };
    let mut of: Vec<Vec<Push>> = (0..gpus.len()).map(|_| Vec::new()).collect();
    let mut staged = vec![Vec::new(); gpus.len()];
    for &(from, to) in pairs {
        let align = Align::ALLOCATION;
        let way = way(from, to);
        if way != Way::Kernel {
            staged[from].push((way, Move { from, to, bytes: bytes as u64, src: layout, dst: layout }));
            continue;
        }
        let plan = PermutePlan::new(&layout, align, &layout, align, 1, Target::of(gpus.device(from)))?;
        of[from].push(Push::one(to, lane, plan));
    }
    let buffers = || (0..gpus.len()).map(|rank| gpus.device(rank).zeros::<u8>(bytes)).collect::<Result<Vec<_>>>();
    let (from, to) = (buffers()?, buffers()?);
    let [from, to] = [&from, &to].map(|buffers| buffers.iter().map(DeviceBuffer::memory).collect::<Vec<_>>());
    let pushes = Pushes::new(gpus, of, Staged::new(gpus, (&[0], 1), &staged, PIECE)?);
    let device = gpus.device(0);
    measure::time(device, device.default_stream(), samples, || {
        // SAFETY: each buffer has the layout's bytes, each is written by one push, and none is read
        // that is written.
        unsafe { pushes.queue([&from, &to]) }?;
        pushes.follow_all()
    })
}

/// Times an exchange, until all ranks have the result.
///
/// # Errors
///
/// As [`Exchange::launch`]; `Unavailable` on software GPUs, which have no times.
pub fn time_exchange<T: Element>(
    exchange: &Exchange,
    source: &Distributed<T>,
    result: &mut Distributed<T>,
    samples: usize,
) -> Result<Timing> {
    let device = source.gpus().device(0);
    measure::time(device, device.default_stream(), samples, || {
        exchange.launch(source, result)?;
        exchange.pushes().follow_all()
    })
}

/// The pairs of a ring: each rank pushes to the next one.
pub fn ring(ranks: usize) -> Vec<(usize, usize)> {
    (0..ranks).filter(|_| ranks > 1).map(|rank| (rank, (rank + 1) % ranks)).collect()
}

/// The links between the GPUs of a host: the time of a push is that of its start and of its bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Links {
    /// Milliseconds of a push of few bytes.
    pub start_ms: f64,
    /// GB/s (10^9 bytes a second) of each direction while every GPU pushes and gets.
    pub gbps: f64,
}

/// Bytes of the pushes that [`Links::measure`] times.
const SIZES: [usize; 2] = [1 << 20, 256 << 20];

impl Links {
    /// Measures flat pushes around a ring of all ranks: one of 1 MiB, and one of 256 MiB.
    ///
    /// # Errors
    ///
    /// As [`time_push`]; `InvalidArgument` for one rank, which has no link.
    pub fn measure(gpus: &Arc<Gpus>, samples: usize) -> Result<Self> {
        require!(gpus.len() > 1, InvalidArgument, "one rank has no link to measure; give two or more");
        Self::timed(|bytes| time_push(gpus, &ring(gpus.len()), bytes, samples))
    }

    /// Predicts the milliseconds of a redistribution: those of the bytes of the rank that pushes or
    /// gets most, and of the start. Each rank's copy to itself runs meanwhile.
    pub fn predict_ms(&self, plan: &Redistribution) -> f64 {
        self.push_ms(plan.busiest_bytes())
    }

    /// Predicts the milliseconds of a push of so many bytes.
    pub fn push_ms(&self, bytes: u64) -> f64 {
        self.start_ms + bytes as f64 / (self.gbps * 1e6)
    }

    /// Returns the figures of what takes such times.
    fn timed(time: impl Fn(usize) -> Result<Timing>) -> Result<Self> {
        let time = |bytes| time(bytes).map(|timing| timing.median_ms());
        let [few, many] = [time(SIZES[0])?, time(SIZES[1])?];
        let bytes_a_ms = (SIZES[1] - SIZES[0]) as f64 / (many - few).max(f64::MIN_POSITIVE);
        Ok(Self { start_ms: (few - SIZES[0] as f64 / bytes_a_ms).max(0.0), gbps: bytes_a_ms / 1e6 })
    }
}

/// The link from a rank to another one, as kernels use it and as copy engines do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairLinks {
    /// The rank that has the bytes.
    pub from: usize,
    /// The rank that gets them.
    pub to: usize,
    /// Kernels of `from` store into the memory of `to`.
    pub kernels: Links,
    /// A copy engine of `to` fetches the bytes.
    pub engine: Links,
}

impl PairLinks {
    /// Measures each pair of ranks that use each other's memory, one at a time: 1 MiB and 256 MiB.
    pub(super) fn measure_all(gpus: &Arc<Gpus>, samples: usize) -> Result<Vec<Self>> {
        let all = (0..gpus.len()).flat_map(|from| (0..gpus.len()).map(move |to| (from, to)));
        let linked = all.filter(|&(from, to)| {
            gpus.device(from) != gpus.device(to) && gpus.reaches(from, to) && gpus.reaches(to, from)
        });
        let measured = |(from, to)| {
            let kernels = Links::timed(|bytes| time_push(gpus, &[(from, to)], bytes, samples))?;
            let engine = Links::timed(|bytes| time_copy(gpus, &[(from, to)], bytes, samples))?;
            Ok(Self { from, to, kernels, engine })
        };
        linked.map(measured).collect()
    }
}
