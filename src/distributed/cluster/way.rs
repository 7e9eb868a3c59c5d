//! The two ways over a cluster, with what each costs.

use std::fmt;

use super::census::{Alike, Census};
use super::description::{Cluster, Port};
use super::load::{Load, Traffic, steps};
use super::pairs::{Pairs, extents, lengths};

/// How the bytes go between hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Each rank sends to each rank, over the link or the network that joins them.
    Direct,
    /// The ranks of a host first collect what goes to the ranks with local number `l` at their own
    /// rank `l`. That rank then sends one message to rank `l` of each other host, which puts the
    /// elements in their places. The elements of the own host arrive with the first stage.
    ByHost,
}

/// `direct` or `by host`.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Direct => "direct",
            Self::ByHost => "by host",
        })
    }
}

/// A route with its stages, which follow each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// The route.
    pub route: Route,
    /// The stages.
    pub stages: Vec<Stage>,
    /// The bytes that their ranks first copy into a message over the network. A slice that is one
    /// run of memory is sent from where it lies.
    pub packed_bytes: u64,
    /// The bytes that are copied to their places after they came over the network.
    pub unpacked_bytes: u64,
    /// The predicted milliseconds of all stages.
    pub ms: f64,
}

/// Work that the links, the network and the memory of the GPUs do at the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// Its name: `exchange`, `collect`, `send` or `arrange`.
    pub name: &'static str,
    /// The ports within hosts.
    pub link: Load,
    /// The ports between hosts.
    pub network: Load,
    /// The bytes that the memory of the busiest GPU reads and writes.
    pub memory_bytes: u64,
    /// Milliseconds of that memory.
    pub memory_ms: f64,
}

impl Stage {
    /// Returns the predicted milliseconds: those of the slowest.
    pub fn ms(&self) -> f64 {
        self.link.ms.max(self.network.ms).max(self.memory_ms)
    }

    /// Returns the slowest: `links`, `network` or `memory`.
    pub fn bound(&self) -> &'static str {
        if self.ms() == self.network.ms && self.network.bytes > 0 {
            "network"
        } else if self.ms() == self.link.ms && self.link.bytes > 0 {
            "links"
        } else {
            "memory"
        }
    }

    fn new(name: &'static str, link: &Traffic, network: &Traffic, memory: &[u64], cluster: &Cluster) -> Self {
        let memory_bytes = memory.iter().copied().max().unwrap_or(0);
        Self {
            name,
            link: link.load(cluster.link(), 1),
            network: network.load(cluster.network(), cluster.gpus_of_port()),
            memory_bytes,
            memory_ms: memory_bytes as f64 / (cluster.memory_gbps() * 1e6),
        }
    }
}

impl Cluster {
    /// Returns the number of GPUs that share a port of the network.
    pub(super) fn gpus_of_port(&self) -> usize {
        match self.network_per() {
            Port::Gpu => 1,
            Port::Host => self.gpus_per_host(),
        }
    }
}

impl Way {
    fn new(route: Route, stages: Vec<Stage>, packed_bytes: u64, unpacked_bytes: u64) -> Self {
        let ms = stages.iter().map(Stage::ms).sum();
        Self { route, stages, packed_bytes, unpacked_bytes, ms }
    }

    /// Returns the most messages that a rank sends over the network.
    pub fn network_messages(&self) -> u64 {
        self.stages.iter().map(|stage| stage.network.messages).sum()
    }

    /// Each rank sends to each rank.
    pub(super) fn direct(pairs: &Pairs, cluster: &Cluster) -> Self {
        let ranks = pairs.ranks();
        let (mut link, mut network) = (Traffic::none(ranks), Traffic::none(ranks));
        let mut memory = vec![0; ranks];
        let [mut packed_bytes, mut unpacked_bytes] = [0; 2];
        let (mut to, mut from) = (Census::new(&pairs.to, 1), Census::new(&pairs.from, 1));
        for (rank, memory) in memory.iter_mut().enumerate() {
            let (source, result) = (lengths(pairs.source(rank)), lengths(pairs.result(rank)));
            let [mut packed, mut unpacked] = [0; 2];
            to.visit(std::slice::from_ref(pairs.source(rank)), |Alike { elements, count, extents, part, .. }| {
                let bytes = pairs.bytes_of(*elements);
                network.sent[rank] += count * bytes;
                network.messages[rank] += count;
                network.steps[rank] += count * steps(bytes);
                packed += count * bytes * u64::from(pairs.passes(extents, &source, part)[0]);
            });
            from.visit(std::slice::from_ref(pairs.result(rank)), |Alike { elements, count, extents, part, .. }| {
                let bytes = count * pairs.bytes_of(*elements);
                network.got[rank] += bytes;
                unpacked += bytes * u64::from(pairs.passes(extents, part, &result)[1]);
            });
            // Those within the host are pushed over links, and nothing is packed.
            for peer in pairs.of_host(cluster.host_of(rank)) {
                let bytes = pairs.bytes(rank, peer);
                if bytes > 0 {
                    network.sent[rank] -= bytes;
                    network.messages[rank] -= 1;
                    network.steps[rank] -= steps(bytes);
                    packed -= bytes * u64::from(pairs.passes_between(rank, peer)[0]);
                    if peer == rank {
                        *memory += 2 * bytes;
                    } else {
                        link.push(rank, peer, bytes);
                    }
                }
                let bytes = pairs.bytes(peer, rank);
                if bytes > 0 {
                    network.got[rank] -= bytes;
                    unpacked -= bytes * u64::from(pairs.passes_between(peer, rank)[1]);
                }
            }
            *memory += 2 * (packed + unpacked);
            packed_bytes += packed;
            unpacked_bytes += unpacked;
        }
        add_transfers(&mut memory, &[&link, &network]);
        let stage = Stage::new("exchange", &link, &network, &memory, cluster);
        Self::new(Route::Direct, vec![stage], packed_bytes, unpacked_bytes)
    }

    /// Collects within the hosts, sends between them, and arranges what arrived.
    pub(super) fn by_host(pairs: &Pairs, cluster: &Cluster) -> Self {
        let nothing = Traffic::none(pairs.ranks());
        let (collect, packed_bytes) = Self::collect(pairs, cluster);
        let sent = sent_by_hosts(pairs);
        let mut memory = vec![0; pairs.ranks()];
        add_transfers(&mut memory, &[&sent]);
        let send = Stage::new("send", &nothing, &sent, &memory, cluster);
        let mut stages = vec![collect, send];
        let arranged = arranged(pairs, &sent.got);
        let unpacked_bytes = arranged.iter().sum();
        if unpacked_bytes > 0 {
            let memory: Vec<u64> = arranged.iter().map(|bytes| 2 * bytes).collect();
            stages.push(Stage::new("arrange", &nothing, &nothing, &memory, cluster));
        }
        Self::new(Route::ByHost, stages, packed_bytes, unpacked_bytes)
    }

    /// The first stage, and the bytes that ranks copy into messages of their own.
    fn collect(pairs: &Pairs, cluster: &Cluster) -> (Stage, u64) {
        let (ranks, gpus) = (pairs.ranks(), pairs.gpus);
        let (mut link, mut memory, mut packed) = (Traffic::none(ranks), vec![0; ranks], 0);
        let mut census = Census::new(&pairs.to, gpus);
        let mut by_number = vec![0; gpus];
        for (rank, memory) in memory.iter_mut().enumerate() {
            by_number.fill(0);
            census.visit(std::slice::from_ref(pairs.source(rank)), |Alike { elements, count, residue, .. }| {
                by_number[*residue] += count * pairs.bytes_of(*elements);
            });
            let first = pairs.of_host(cluster.host_of(rank)).start;
            for (number, &bytes) in by_number.iter().enumerate().filter(|&(_, &bytes)| bytes > 0) {
                if first + number == rank {
                    *memory += 2 * bytes;
                    packed += bytes - pairs.bytes(rank, rank);
                } else {
                    link.push(rank, first + number, bytes);
                }
            }
        }
        add_transfers(&mut memory, &[&link]);
        (Stage::new("collect", &link, &Traffic::none(ranks), &memory, cluster), packed)
    }
}

/// The messages between hosts, of the ranks that collected them.
fn sent_by_hosts(pairs: &Pairs) -> Traffic {
    let mut sent = Traffic::none(pairs.ranks());
    let mut census = Census::new(&pairs.to, pairs.gpus);
    for host in 0..pairs.hosts() {
        let first = pairs.of_host(host).start;
        census.visit(pairs.of_host_boxes(host), |Alike { elements, count, residue, .. }| {
            let (rank, bytes) = (first + residue, pairs.bytes_of(*elements));
            sent.sent[rank] += count * bytes;
            sent.messages[rank] += count;
            sent.steps[rank] += count * steps(bytes);
        });
        for rank in pairs.of_host(host) {
            let within = pairs.bytes_of_host(host, rank);
            if within > 0 {
                sent.sent[rank] -= within;
                sent.messages[rank] -= 1;
                sent.steps[rank] -= steps(within);
            }
            let all: u64 = pairs.result(rank).iter().map(|range| range.len() as u64).product();
            sent.got[rank] = pairs.bytes_of(all) - within;
        }
    }
    sent
}

/// The bytes that each rank copies to their places after they arrived.
fn arranged(pairs: &Pairs, got: &[u64]) -> Vec<u64> {
    let Some(hosts) = &pairs.from_hosts else { return got.to_vec() };
    let mut census = Census::new(hosts, 1);
    let of_rank = |rank: usize| {
        let (region, result) = (pairs.result(rank), lengths(pairs.result(rank)));
        let mut bytes = 0;
        census.visit(std::slice::from_ref(region), |Alike { elements, count, extents, .. }| {
            bytes += count * pairs.bytes_of(*elements) * u64::from(pairs.is_arranged(extents, &result));
        });
        let host = rank / pairs.gpus;
        let own = pairs.of_host_boxes(host).first().map(|own| extents(own, region));
        let is_arranged = own.is_some_and(|extents| pairs.is_arranged(&extents, &result));
        bytes - u64::from(is_arranged) * pairs.bytes_of_host(host, rank)
    };
    (0..pairs.ranks()).map(of_rank).collect()
}

/// Adds the bytes that leave and reach the memory of each GPU.
fn add_transfers(memory: &mut [u64], traffic: &[&Traffic]) {
    for traffic in traffic {
        for (memory, (sent, got)) in memory.iter_mut().zip(traffic.sent.iter().zip(&traffic.got)) {
            *memory += sent + got;
        }
    }
}
