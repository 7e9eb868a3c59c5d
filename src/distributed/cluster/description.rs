//! A cluster in figures.

use crate::distributed::Links;
use crate::error::{Result, counted, require};

/// Hosts of as many GPUs each, the links between the GPUs of a host, and a network between hosts.
/// Rank `r` is GPU `r % gpus_per_host` of host `r / gpus_per_host`.
///
/// ```
/// use warpstride::distributed::cluster::Cluster;
///
/// let cluster = Cluster::h100x8(64)?;
/// assert_eq!((cluster.ranks(), cluster.host_of(13)), (512, 1));
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cluster {
    hosts: usize,
    gpus_per_host: usize,
    link: Link,
    network: Link,
    network_per: Port,
    memory_gbps: f64,
}

/// A port of a link or of a network, which sends and gets at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// GB/s (10^9 bytes a second) of each direction.
    pub gbps: f64,
    /// Microseconds to start a message.
    pub start_us: f64,
}

/// The owner of a port of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// Each GPU has a port of its own.
    Gpu,
    /// The GPUs of a host share one port.
    Host,
}

/// The links that were measured, as a part of a description.
impl From<Links> for Link {
    fn from(Links { start_ms, gbps }: Links) -> Self {
        Self { gbps, start_us: 1e3 * start_ms }
    }
}

impl Cluster {
    /// Describes a cluster. `memory_gbps` are the GB/s that a GPU reads and writes together.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`, with the name of the figure, if there is no host or no GPU, a host has
    /// more than 1,024 GPUs, there are more than 65,536 ranks, a bandwidth is not above 0 and at
    /// most 10^6 GB/s, or a start is not 0 to 10^6 us.
    pub fn new(
        [hosts, gpus_per_host]: [usize; 2],
        link: Link,
        network: Link,
        network_per: Port,
        memory_gbps: f64,
    ) -> Result<Self> {
        for (name, count, most) in [("hosts", hosts, MOST_RANKS), ("gpus_per_host", gpus_per_host, MOST_GPUS)] {
            require!(
                (1..=most).contains(&count),
                InvalidArgument,
                "`{name}` of a cluster is {count}; give 1 to {most}"
            );
        }
        let ranks = hosts * gpus_per_host;
        require!(
            ranks <= MOST_RANKS,
            InvalidArgument,
            "`hosts` and `gpus_per_host` of a cluster make {}; give {MOST_RANKS} at most",
            counted(ranks, "rank")
        );
        for (name, gbps) in [("link.gbps", link.gbps), ("network.gbps", network.gbps), ("memory_gbps", memory_gbps)] {
            require!(
                gbps > 0.0 && gbps <= MOST,
                InvalidArgument,
                "`{name}` of a cluster is {gbps}; give GB/s above 0, at most {MOST}"
            );
        }
        for (name, start) in [("link.start_us", link.start_us), ("network.start_us", network.start_us)] {
            require!(
                (0.0..=MOST).contains(&start),
                InvalidArgument,
                "`{name}` of a cluster is {start}; give microseconds from 0 to {MOST}"
            );
        }
        Ok(Self { hosts, gpus_per_host, link, network, network_per, memory_gbps })
    }

    /// Describes hosts of eight H100 with NVLink and eight adapters of 400 Gbit/s. Measurements
    /// are the 359 GB/s of a push each way while both are busy (two H100 of one host, 2026-11-25),
    /// the start of a push (two H200, `benches/record/2026-11-28-h200/redistribute.md`) and the
    /// 3,058 GB/s of a copy within the memory (`benches/record/2026-11-24-h100/choices.md`). The
    /// network has its nominal bandwidth, and the start that NCCL's tuning assumes for a step of
    /// the simple protocol (`hwLat` in its `src/graph/tuning.cc`).
    ///
    /// # Errors
    ///
    /// As [`Cluster::new`].
    pub fn h100x8(hosts: usize) -> Result<Self> {
        let link = Link { gbps: 359.0, start_us: 18.7 };
        let network = Link { gbps: 50.0, start_us: 9.6 };
        Self::new([hosts, 8], link, network, Port::Gpu, 3058.0)
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Returns the number of GPUs of each host.
    pub fn gpus_per_host(&self) -> usize {
        self.gpus_per_host
    }

    /// Returns the number of GPUs.
    pub fn ranks(&self) -> usize {
        self.hosts * self.gpus_per_host
    }

    /// Returns the host of a rank.
    pub fn host_of(&self, rank: usize) -> usize {
        rank / self.gpus_per_host
    }

    /// Returns the port of each GPU to the other GPUs of its host.
    pub fn link(&self) -> Link {
        self.link
    }

    /// Returns a port of the network.
    pub fn network(&self) -> Link {
        self.network
    }

    /// Returns the owner of a port of the network.
    pub fn network_per(&self) -> Port {
        self.network_per
    }

    /// Returns the GB/s that a GPU reads and writes together.
    pub fn memory_gbps(&self) -> f64 {
        self.memory_gbps
    }
}

/// The most ranks, as many as a split has.
const MOST_RANKS: usize = 1 << 16;

/// The most GPUs of a host. A plan looks at each pair of them.
const MOST_GPUS: usize = 1 << 10;

/// The largest figure of a port.
const MOST: f64 = 1e6;
