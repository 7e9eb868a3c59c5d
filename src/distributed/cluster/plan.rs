//! The plan of a redistribution over a cluster.

use std::fmt;

use super::description::{Cluster, Port};
use super::load::Load;
use super::pairs::Pairs;
use super::way::{Route, Stage, Way};
use crate::distributed::Redistribution;
use crate::error::{Result, counted, require};

/// The plan of a [`Redistribution`] over the hosts of a [`Cluster`]: the traffic and the predicted
/// time of each way, and the faster one. It counts the bytes of every rank, without a look at each
/// pair.
///
/// ```
/// use warpstride::distributed::cluster::{Cluster, ClusterPlan, Route};
/// use warpstride::distributed::{Redistribution, Split};
///
/// let rows = Split::whole(&[1 << 16, 1 << 16])?.cut(0, 4096)?;
/// let transpose = Redistribution::new(&rows, [1, 0], &rows, 4)?;
/// let plan = ClusterPlan::new(&transpose, &Cluster::h100x8(512)?)?;
/// let direct = plan.way(Route::Direct).unwrap();
/// assert_eq!((direct.network_messages(), plan.chosen().network_messages()), (4088, 511));
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ClusterPlan {
    redistribution: Redistribution,
    pub(super) cluster: Cluster,
    pub(super) pairs: Pairs,
    ways: Vec<Way>,
    chosen: usize,
}

/// A message of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The number of its stage.
    pub stage: usize,
    /// True if it takes the network, false if it takes a link within the host.
    pub is_network: bool,
    /// The rank that gets it.
    pub to: usize,
    /// Its bytes.
    pub bytes: u64,
}

impl ClusterPlan {
    /// Plans it. The ranks beyond those of the redistribution have no part.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the cluster has fewer ranks than the redistribution.
    pub fn new(redistribution: &Redistribution, cluster: &Cluster) -> Result<Self> {
        let (needed, there) = (redistribution.ranks(), cluster.ranks());
        require!(
            needed <= there,
            InvalidArgument,
            "the array is split among {}, and the cluster has {}; describe more hosts, or cut into fewer parts",
            counted(needed, "rank"),
            counted(there, "GPU")
        );
        let pairs = Pairs::new(redistribution, cluster.gpus_per_host());
        let mut ways = vec![Way::direct(&pairs, cluster)];
        if pairs.hosts() > 1 && pairs.gpus > 1 {
            ways.push(Way::by_host(&pairs, cluster));
        }
        let chosen = usize::from(ways.get(1).is_some_and(|by_host| by_host.ms < ways[0].ms));
        Ok(Self { redistribution: redistribution.clone(), cluster: *cluster, pairs, ways, chosen })
    }

    /// Returns the cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns the ways: the direct one, and the one by host where there are several hosts of
    /// several GPUs.
    pub fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// Returns the way of a route, if the plan has it.
    pub fn way(&self, route: Route) -> Option<&Way> {
        self.ways.iter().find(|way| way.route == route)
    }

    /// Returns the faster way.
    pub fn chosen(&self) -> &Way {
        &self.ways[self.chosen]
    }

    /// Returns why that way is the faster one.
    pub fn reason(&self) -> String {
        let [direct, by_host] = &*self.ways else {
            let why = if self.pairs.hosts() > 1 { "each host has one GPU" } else { "all ranks are on one host" };
            return format!("{why}, so there is nothing to collect");
        };
        let extra: f64 = by_host.stages.iter().filter(|stage| stage.network.bytes == 0).map(Stage::ms).sum();
        let (few, many) = (by_host.network_messages(), direct.network_messages());
        if self.chosen == 1 {
            return format!(
                "a rank sends {} over the network, not {many}, which saves more than the {extra:.4} ms that collecting and \
                 arranging take",
                counted(few, "message")
            );
        }
        format!(
            "collecting and arranging would take {extra:.4} ms, and {few} in place of {} over the network save no more",
            counted(many, "message")
        )
    }

    /// Returns the messages of a rank, those of each class in the order in which it sends them.
    /// Among the hosts and local numbers that get something from it, it begins as far from the
    /// first as it is itself among all of them. Where everyone sends to everyone it so begins with
    /// the next rank of its host, and with the rank of its own local number of the next host, and
    /// no two ranks send to one at the same time.
    pub fn messages_from(&self, route: Route, rank: usize) -> Vec<Message> {
        let (gpus, hosts) = (self.pairs.gpus, self.pairs.hosts());
        let (host, number) = (rank / gpus, rank % gpus);
        if host >= hosts {
            return Vec::new();
        }
        let pairs = &self.pairs;
        let own: Vec<usize> = pairs.of_host(host).collect();
        let by_link = |&to: &usize| match route {
            Route::Direct => pairs.bytes(rank, to),
            Route::ByHost => (0..hosts).map(|host| pairs.bytes(rank, host * gpus + to % gpus)).sum(),
        };
        let (stage, between): (usize, &dyn Fn(usize) -> u64) = match route {
            Route::Direct => (0, &|to| pairs.bytes(rank, to)),
            Route::ByHost => (1, &|to| pairs.bytes_of_host(host, to)),
        };
        // The ranks of each host that get something over the network.
        let getters = |other: usize| -> Vec<usize> {
            let numbered = |to: &usize| route == Route::Direct || to % gpus == number;
            pairs.of_host(other).filter(numbered).filter(|&to| between(to) > 0).collect()
        };
        let all: Vec<Vec<usize>> = (0..hosts).map(getters).filter(|getters| !getters.is_empty()).collect();
        let links =
            rotated(own.iter().map(|to| (*to, by_link(to))).filter(|&(_, bytes)| bytes > 0).collect(), number, gpus);
        let link = links.into_iter().map(|(to, bytes)| Message { stage: 0, is_network: false, to, bytes });
        let network = rotated(all, host, hosts).into_iter().flat_map(|getters| rotated(getters, number, gpus));
        let network = network.filter(|to| !own.contains(to));
        let network = network.map(|to| Message { stage, is_network: true, to, bytes: between(to) });
        link.filter(|message| message.to != rank).chain(network).collect()
    }
}

/// Lets a list begin where number `at` of `of` stands in it.
fn rotated<T>(mut list: Vec<T>, at: usize, of: usize) -> Vec<T> {
    let first = at * list.len() / of;
    list.rotate_left(first);
    list
}

/// The redistribution, each way with its stages, and which is the faster one.
impl fmt::Display for ClusterPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = &self.redistribution;
        write!(f, "{} to {}, axes {:?}, ", plan.source(), plan.result(), plan.axes())?;
        let (hosts, gpus) = (self.cluster.hosts(), self.cluster.gpus_per_host());
        writeln!(
            f,
            "elements of {}, over {} of {}",
            counted(plan.width(), "byte"),
            counted(hosts, "host"),
            counted(gpus, "GPU")
        )?;
        for way in &self.ways {
            writeln!(
                f,
                "{}: predicted {:.4} ms; {} packed, {} unpacked",
                way.route,
                way.ms,
                counted(way.packed_bytes, "byte"),
                way.unpacked_bytes
            )?;
            for stage in &way.stages {
                writeln!(f, "  {}: {:.4} ms, bound by the {}", stage.name, stage.ms(), stage.bound())?;
                write_load(f, "links", "GPU", &stage.link)?;
                let owner = if self.cluster.network_per() == Port::Gpu { "GPU" } else { "host" };
                write_load(f, "network", owner, &stage.network)?;
                writeln!(
                    f,
                    "    memory: at most {} of one GPU, {:.4} ms",
                    counted(stage.memory_bytes, "byte"),
                    stage.memory_ms
                )?;
            }
        }
        write!(f, "{} is chosen: {}", self.chosen().route, self.reason())
    }
}

/// Writes the line of a class that has messages.
fn write_load(f: &mut fmt::Formatter<'_>, class: &str, owner: &str, load: &Load) -> fmt::Result {
    let Load { bytes, busiest_port, busiest_sends, busiest_bytes, messages, steps, ms } = load;
    if *bytes == 0 {
        return Ok(());
    }
    let (bytes, messages) = (counted(*bytes, "byte"), counted(*messages, "message"));
    let sends = if *busiest_sends { "sends" } else { "gets" };
    write!(f, "    {class}: {bytes}, of which {owner} {busiest_port} {sends} {busiest_bytes}; ")?;
    writeln!(f, "a rank sends at most {messages} in {}, {ms:.4} ms", counted(*steps, "step"))
}
