//! The GPUs of one host that ranks run on.

use std::sync::{Arc, Mutex, MutexGuard};

use super::PairLinks;

use crate::device::{Backend, Device};
use crate::driver::Multiprocessors;
#[cfg(feature = "interp")]
use crate::driver::soft::{Config, Soft};
use crate::error::{Error, ErrorKind, Result, counted, refuse, require};
use crate::stream::{Event, Stream};
use crate::sync::lock;

/// The GPUs of one host, one for each rank of a [`Split`](super::Split). They share their memory
/// where they can, so that kernels of one store into that of another. Pairs that cannot exchange
/// through pinned host memory.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::distributed::Gpus;
///
/// let gpus = Gpus::soft(4)?; // `Gpus::all()` for the GPUs of this host
/// assert_eq!((gpus.len(), gpus.device(2).info().ordinal), (4, 2));
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug)]
pub struct Gpus {
    ranks: Vec<Rank>,
    /// True at `[rank][peer]` if kernels of the rank use the memory of the peer.
    reaches: Vec<Vec<bool>>,
    /// The links that were measured.
    links: Mutex<Vec<PairLinks>>,
    /// The multiprocessors that exchanges have, if they leave others to other work.
    limit: Option<u32>,
    /// Held while work is queued, which uses the events of the ranks.
    queueing: Mutex<()>,
}

/// A rank, and what its launches need.
#[derive(Debug)]
pub(super) struct Rank {
    pub(super) device: Device,
    /// For large copies to peers.
    pub(super) peers: Beside,
    /// For a large copy to itself. It has multiprocessors of its own: a GPU begins all blocks of
    /// one launch before those of the next, so on the same ones it would come after those to peers.
    pub(super) own: Beside,
    /// Recorded on the default stream when its operands may be used.
    pub(super) ready: Event,
    /// Recorded there when its copies have run.
    pub(super) done: Event,
}

/// A stream beside the default one.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) stream: Stream,
    /// Recorded when its copies have run.
    pub(super) joined: Event,
}

/// The part of the multiprocessors that copies of ranks to themselves have. An H200 moves those at
/// the speed of the link with 24 of 132, and the link is full with 68 of them
/// (`benches/record/2026-11-28-h200/redistribute.md`).
const OWN_PART: u32 = 4;
/// Most software GPUs of a host. Each is known to all others.
#[cfg(feature = "interp")]
const MOST_SOFT: usize = 64;
/// The multiprocessors of the least part of an H100, of which the copy to itself has a multiple.
pub(super) const LEAST_PART: u32 = 8;

impl Rank {
    fn new(device: Device, multiprocessors: u32) -> Result<Self> {
        // Fewer than a part cannot be divided, and then the copies run one after another.
        let own = multiprocessors / OWN_PART / LEAST_PART * LEAST_PART;
        let beside = |first, count| {
            let stream = Stream::on(&device, Multiprocessors { first, count }).or_else(|error| match error.kind() {
                // Older drivers run the copies one after another.
                ErrorKind::Unavailable => device.stream(),
                _ => Err(error),
            });
            Ok::<_, Error>(Beside { stream: stream?, joined: Event::untimed(&device)? })
        };
        let peers = beside(own, multiprocessors - own)?;
        let own = if own == 0 { beside(0, multiprocessors)? } else { beside(0, own)? };
        Ok(Self { peers, own, ready: Event::untimed(&device)?, done: Event::untimed(&device)?, device })
    }
}

impl Gpus {
    /// Opens all NVIDIA GPUs of this host.
    ///
    /// # Errors
    ///
    /// As [`Device::open`] and [`Gpus::over`].
    pub fn all() -> Result<Self> {
        let ordinals: Vec<u32> = crate::device::probe()
            .into_iter()
            .filter_map(|found| match found.backend {
                Backend::Cuda(ordinal) => found.info.is_ok().then_some(ordinal),
                _ => None,
            })
            .collect();
        require!(
            !ordinals.is_empty(),
            Unavailable,
            "this host has no NVIDIA GPU that can be opened; `warpstride devices` says why, and `Gpus::soft` runs on software GPUs"
        );
        Self::open(&ordinals)
    }

    /// Opens the NVIDIA GPUs with these numbers, rank by rank. Ranks may share a GPU.
    ///
    /// # Errors
    ///
    /// As [`Device::open`] and [`Gpus::over`].
    pub fn open(ordinals: &[u32]) -> Result<Self> {
        let mut devices: Vec<Device> = Vec::with_capacity(ordinals.len());
        for &ordinal in ordinals {
            let known = devices.iter().find(|device| device.info().ordinal == ordinal).cloned();
            devices.push(known.map_or_else(|| Device::open(Backend::Cuda(ordinal)), Ok)?);
        }
        Self::over(devices)
    }

    /// Opens software GPUs of one host, 64 at most.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for more; else as [`Gpus::over`].
    #[cfg(feature = "interp")]
    pub fn soft(count: usize) -> Result<Self> {
        require!(
            count <= MOST_SOFT,
            InvalidArgument,
            "a host has at most {MOST_SOFT} software GPUs, and {count} were asked for; use fewer"
        );
        let devices = Soft::host(count, &Config::default()).into_iter();
        let devices = devices.map(|gpu| Device::with_driver(Arc::new(gpu))).collect::<Result<_>>()?;
        Self::over(devices)
    }

    /// Takes devices that are open, rank by rank. A device may have several ranks; give a clone of
    /// its handle for each. Devices that cannot use each other's memory serve, too:
    /// [`Gpus::reaches`] says which those are.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no device, they are of several kinds, or one GPU was opened
    /// twice; else the driver's error, such as that of software GPUs of two hosts.
    pub fn over(devices: Vec<Device>) -> Result<Self> {
        require!(!devices.is_empty(), InvalidArgument, "no device was given; give one for each rank");
        let reached = |device: &Device| devices.iter().map(|peer| share(peer, device)).collect();
        let reaches = devices.iter().map(reached).collect::<Result<_>>()?;
        let all = |device: Device| {
            let multiprocessors = device.info().multiprocessors;
            Rank::new(device, multiprocessors)
        };
        let ranks: Vec<Rank> = devices.into_iter().map(all).collect::<Result<_>>()?;
        check_one_host(&ranks)?;
        Ok(Self { ranks, reaches, links: Mutex::default(), limit: None, queueing: Mutex::default() })
    }

    /// Leaves all but so many multiprocessors of each GPU to other work. An exchange then runs on
    /// these alone, rounded up to what the device divides: an H100 has parts of 8.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for 0; `Unavailable` if the driver cannot divide the multiprocessors; else
    /// the driver's error.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::distributed::Gpus;
    ///
    /// let gpus = Gpus::soft(2)?.limited_to(1)?;
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn limited_to(self, multiprocessors: u32) -> Result<Self> {
        require!(multiprocessors > 0, InvalidArgument, "an exchange needs a multiprocessor at least; give 1 or more");
        for rank in &self.ranks {
            Stream::on(&rank.device, Multiprocessors { first: 0, count: multiprocessors })?;
        }
        let rounded = |device: &Device| multiprocessors.next_multiple_of(LEAST_PART).min(device.info().multiprocessors);
        let ranks = self.ranks.into_iter().map(|rank| {
            let count = rounded(&rank.device);
            Rank::new(rank.device, count)
        });
        Ok(Self { ranks: ranks.collect::<Result<_>>()?, limit: Some(multiprocessors), ..self })
    }

    /// Returns whether exchanges leave multiprocessors to other work.
    pub(super) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Returns how many multiprocessors exchanges have, if they leave others to other work.
    pub(super) fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// Returns whether kernels of a rank use the memory of another one. Where they cannot, an
    /// [`Exchange`](super::Exchange) copies through pinned host memory.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::distributed::Gpus;
    ///
    /// let gpus = Gpus::soft(2)?;
    /// assert!(gpus.reaches(0, 1) && gpus.reaches(1, 0));
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn reaches(&self, rank: usize, peer: usize) -> bool {
        self.reaches[rank][peer]
    }

    /// Measures the links between all ranks that use each other's memory, by kernels and by copy
    /// engines. Exchanges that are made afterwards choose between both by these figures.
    ///
    /// # Errors
    ///
    /// As [`time_push`](super::time_push): `Unavailable` on software GPUs, which have no times.
    pub fn measure_links(self: &Arc<Self>, samples: usize) -> Result<Vec<PairLinks>> {
        let measured = PairLinks::measure_all(self, samples)?;
        self.set_links(measured.clone())?;
        Ok(measured)
    }

    /// Has exchanges that are made from now on go by these figures of the links, such as those of
    /// an earlier measurement.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use std::sync::Arc;
    ///
    /// use warpstride::distributed::{Exchange, Gpus, Links, PairLinks, Redistribution, Split};
    ///
    /// let gpus = Arc::new(Gpus::soft(2)?);
    /// let slow = Links { start_ms: 0.005, gbps: 2.0 };
    /// let fast = Links { start_ms: 0.010, gbps: 25.0 };
    /// gpus.set_links(vec![PairLinks { from: 0, to: 1, kernels: slow, engine: fast }])?;
    /// let (whole, rows) = (Split::whole(&[512, 512])?, Split::whole(&[512, 512])?.cut(0, 2)?);
    /// let exchange = Exchange::new(&gpus, &Redistribution::new(&whole, [1, 0], &rows, 4)?)?;
    /// assert_eq!(exchange.by_engines(), [(0, 1)]);
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a rank is not there.
    pub fn set_links(&self, links: Vec<PairLinks>) -> Result<()> {
        for PairLinks { from, to, .. } in &links {
            require!(
                *from.max(to) < self.len(),
                InvalidArgument,
                "a link from rank {from} to {to} was given, and there {} {}; give links of ranks that are there",
                if self.len() == 1 { "is" } else { "are" },
                counted(self.len(), "rank")
            );
        }
        *lock(&self.links) = links;
        Ok(())
    }

    /// Returns the figures of the link from a rank to another one, if it was measured.
    pub(super) fn links(&self, from: usize, to: usize) -> Option<PairLinks> {
        lock(&self.links).iter().find(|link| (link.from, link.to) == (from, to)).copied()
    }

    /// Checks that all ranks use each other's memory, which `what` needs.
    pub(super) fn check_all_reach(&self, what: &str) -> Result<()> {
        for (rank, reached) in self.reaches.iter().enumerate() {
            if let Some(peer) = reached.iter().position(|reaches| !reaches) {
                refuse!(
                    Unavailable,
                    "{what} need GPUs that use each other's memory, and rank {rank} does not use that of rank {peer}; use an \
                     Exchange, which copies through the host"
                );
            }
        }
        Ok(())
    }

    /// Returns the number of ranks.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Returns whether there is no rank, which is never so.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Returns the device of a rank.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn device(&self, rank: usize) -> &Device {
        &self.ranks[rank].device
    }

    /// Waits for all work of all ranks.
    ///
    /// # Errors
    ///
    /// The first error of the work.
    pub fn synchronize(&self) -> Result<()> {
        self.ranks.iter().map(|rank| rank.device.synchronize()).fold(Ok(()), Result::and)
    }

    /// Returns the ranks, for one caller at a time.
    pub(super) fn lock(&self) -> (MutexGuard<'_, ()>, &[Rank]) {
        (lock(&self.queueing), &self.ranks)
    }

    /// Checks that there is a device for each of `ranks` ranks.
    pub(super) fn check_ranks(&self, ranks: usize) -> Result<()> {
        require!(
            ranks <= self.len(),
            InvalidArgument,
            "the array is split among {}, and there {} only {}; split it into fewer parts",
            counted(ranks, "rank"),
            if self.len() == 1 { "is" } else { "are" },
            counted(self.len(), "GPU")
        );
        Ok(())
    }
}

/// Lets `peer` use the memory of a device; false if it has no way to.
fn share(device: &Device, peer: &Device) -> Result<bool> {
    if device == peer {
        return Ok(true);
    }
    let (ours, theirs) = (device.info(), peer.info());
    require!(
        ours.kind == theirs.kind && ours.ordinal != theirs.ordinal,
        InvalidArgument,
        "{} and {} cannot share memory: they are of two kinds, of two hosts, or one GPU that was opened twice; open GPUs of \
         one kind, each once, and clone the handle for further ranks",
        ours.name,
        theirs.name
    );
    match device.driver().share_with(theirs.ordinal) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Unavailable => Ok(false),
        Err(error) => Err(error.while_doing(format_args!("sharing the memory of {} {}", ours.name, ours.ordinal))),
    }
}

/// Checks that streams of each device can wait for events of the others. Software GPUs of two hosts
/// have numbers in common, so sharing by number does not show that they are apart.
fn check_one_host(ranks: &[Rank]) -> Result<()> {
    for rank in ranks {
        for peer in ranks {
            // The event was never recorded, so this delays nothing.
            let waited = rank.device.default_stream().wait_across(&peer.ready);
            let two_hosts = "the GPUs are of two hosts; open software GPUs together by Soft::host";
            waited.map_err(|error| error.while_doing(two_hosts))?;
        }
    }
    Ok(())
}
