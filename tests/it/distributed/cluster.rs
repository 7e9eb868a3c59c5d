//! Plans over several hosts: their traffic against a sum over each pair of ranks, and the
//! description of a cluster.

use std::time::Instant;

use warpstride::ErrorKind;
use warpstride::distributed::cluster::{Cluster, ClusterPlan, Link, Load, Message, Port, Route, Stage};
use warpstride::distributed::{Move, Redistribution, Split};
use warpstride::layout::Layout;
use warpstride::random::SplitMix64;

use super::random_layouts::{Drawn, Random, order, shape};
use super::split;
use crate::long::{PATIENCE, short_or_long};

const LINK: Link = Link { gbps: 300.0, start_us: 5.0 };
const NETWORK: Link = Link { gbps: 25.0, start_us: 10.0 };

fn cluster(hosts: usize, gpus: usize, per: Port) -> Cluster {
    Cluster::new([hosts, gpus], LINK, NETWORK, per, 3000.0).unwrap()
}

/// A redistribution of a drawn layout among at most `ranks`.
fn drawn(ranks: usize, number: u64) -> Redistribution {
    let random = &mut Random(SplitMix64(number));
    let shape = shape(random);
    let axes = order(shape.len(), random);
    let permuted: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
    let (from, to) = (Drawn::new(&shape, ranks, random), Drawn::new(&permuted, ranks, random));
    Redistribution::new(&from.split, axes, &to.split, 1 << random.below(5)).unwrap()
}

/// The traffic of one class, summed message by message.
#[derive(Default, Clone)]
struct Summed {
    sent: Vec<u64>,
    got: Vec<u64>,
    messages: Vec<u64>,
    steps: Vec<u64>,
}

impl Summed {
    fn new(ranks: usize) -> Self {
        Self { sent: vec![0; ranks], got: vec![0; ranks], messages: vec![0; ranks], steps: vec![0; ranks] }
    }

    fn add(&mut self, from: usize, to: usize, bytes: u64, piece: u64) {
        self.sent[from] += bytes;
        self.got[to] += bytes;
        self.messages[from] += 1;
        self.steps[from] += bytes.div_ceil(piece);
    }

    #[track_caller]
    fn is(&self, load: &Load, gpus_of_port: usize, about: &str) {
        let most = |counts: &[u64]| counts.iter().copied().max().unwrap_or(0);
        let ports = |bytes: &[u64]| -> Vec<u64> { bytes.chunks(gpus_of_port).map(|port| port.iter().sum()).collect() };
        assert_eq!(load.bytes, self.sent.iter().sum::<u64>(), "{about}");
        assert_eq!([load.messages, load.steps], [most(&self.messages), most(&self.steps)], "{about}");
        let (sent, got) = (ports(&self.sent), ports(&self.got));
        assert_eq!(load.busiest_bytes, most(&sent).max(most(&got)), "{about}");
        let side = if load.busiest_sends { &sent } else { &got };
        assert_eq!(side[load.busiest_port], load.busiest_bytes, "{about}");
    }
}

/// The bytes that the memory of each GPU moves.
fn memory(of: [&Summed; 2], passes: &[u64]) -> u64 {
    let all = |rank: usize| of.iter().map(|class| class.sent[rank] + class.got[rank]).sum::<u64>() + 2 * passes[rank];
    (0..passes.len()).map(all).max().unwrap_or(0)
}

/// The offsets of the first and of the last element.
fn ends(layout: &Layout) -> [usize; 2] {
    let last: Vec<usize> = layout.shape().iter().map(|extent| extent - 1).collect();
    [layout.offset_of(&vec![0; last.len()]).unwrap(), layout.offset_of(&last).unwrap()]
}

/// The largest piece of a message over the network.
const PIECE: u64 = (512 << 20) - 128;

/// Compares a plan with sums over all moves.
#[track_caller]
fn is_summed(plan: &Redistribution, cluster: &Cluster) {
    let about = &format!("{plan} over {cluster:?}");
    let of_cluster = ClusterPlan::new(plan, cluster).unwrap();
    let gpus = cluster.gpus_per_host();
    let ranks = plan.ranks().div_ceil(gpus) * gpus;
    let moves: Vec<Move> = (0..plan.ranks()).flat_map(|rank| plan.moves_from(rank)).collect();
    let gpus_of_port = if cluster.network_per() == Port::Gpu { 1 } else { gpus };
    let direct = of_cluster.way(Route::Direct).unwrap();
    let (mut link, mut network, mut passes) = (Summed::new(ranks), Summed::new(ranks), vec![0; ranks]);
    let [mut packed, mut unpacked] = [0; 2];
    for Move { from, to, bytes, src, dst } in &moves {
        if cluster.host_of(*from) != cluster.host_of(*to) {
            network.add(*from, *to, *bytes, PIECE);
            let packs = !src.is_contiguous();
            let unpacks = !dst.is_contiguous() || !packs && !src.is_standard_layout();
            (packed, unpacked) = (packed + bytes * u64::from(packs), unpacked + bytes * u64::from(unpacks));
            passes[*from] += bytes * u64::from(packs);
            passes[*to] += bytes * u64::from(unpacks);
        } else if from == to {
            passes[*from] += bytes;
        } else {
            link.add(*from, *to, *bytes, u64::MAX);
        }
    }
    let [stage] = &*direct.stages else { panic!("{about}") };
    link.is(&stage.link, 1, about);
    network.is(&stage.network, gpus_of_port, about);
    assert_eq!([direct.packed_bytes, direct.unpacked_bytes], [packed, unpacked], "{about}");
    assert_eq!(stage.memory_bytes, memory([&link, &network], &passes), "{about}");
    assert_eq!(plan.crossing_bytes(), stage.link.bytes + stage.network.bytes, "{about}");
    messages_are(&of_cluster, Route::Direct, 0, [&link, &network]);
    by_host_is_summed(&of_cluster, &moves, about);
}

/// Compares the way by host with sums over all moves.
#[track_caller]
fn by_host_is_summed(plan: &ClusterPlan, moves: &[Move], about: &str) {
    let Some(way) = plan.way(Route::ByHost) else { return };
    let cluster = plan.cluster();
    let gpus = cluster.gpus_per_host();
    let ranks = cluster.ranks();
    let hosts = ranks / gpus;
    // The bytes from rank to local number, and from host to rank with the offsets that they have.
    let mut collected = vec![0; ranks * gpus];
    let mut sent = vec![(0_u64, usize::MAX, 0, 0_usize); hosts * ranks];
    let (mut passes, mut packed) = (vec![0; ranks], 0);
    for Move { from, to, bytes, dst, .. } in moves {
        collected[from * gpus + to % gpus] += bytes;
        let message = &mut sent[cluster.host_of(*from) * ranks + to];
        let [first, last] = ends(dst);
        *message = (message.0 + bytes, message.1.min(first), message.2.max(last), message.3 + dst.len());
        if from % gpus == to % gpus {
            passes[*from] += bytes;
            packed += bytes * u64::from(from != to);
        }
    }
    let (mut link, mut network, none) = (Summed::new(ranks), Summed::new(ranks), Summed::new(ranks));
    for (at, &bytes) in collected.iter().enumerate().filter(|&(_, &bytes)| bytes > 0) {
        let (rank, number) = (at / gpus, at % gpus);
        if rank % gpus != number {
            link.add(rank, rank / gpus * gpus + number, bytes, u64::MAX);
        }
    }
    let mut scattered = 0;
    for (at, &(bytes, first, last, elements)) in sent.iter().enumerate().filter(|(_, message)| message.0 > 0) {
        let (host, to) = (at / ranks, at % ranks);
        if cluster.host_of(to) != host {
            network.add(host * gpus + to % gpus, to, bytes, PIECE);
            scattered += bytes * u64::from(last - first + 1 != elements);
        }
    }
    let [collect, send, arrange @ ..] = &*way.stages else { panic!("{about}") };
    link.is(&collect.link, 1, about);
    none.is(&collect.network, 1, about);
    assert_eq!(collect.memory_bytes, memory([&link, &none], &passes), "{about}");
    none.is(&send.link, 1, about);
    network.is(&send.network, if cluster.network_per() == Port::Gpu { 1 } else { gpus }, about);
    assert_eq!(send.memory_bytes, memory([&none, &network], &vec![0; ranks]), "{about}");
    assert_eq!(way.packed_bytes, packed, "{about}");
    // Hosts whose parts are not a grid have all that arrives put in its place.
    assert!([scattered, send.network.bytes].contains(&way.unpacked_bytes), "{about}: {way:?}, scattered {scattered}");
    assert_eq!(arrange.len(), usize::from(way.unpacked_bytes > 0), "{about}");
    assert!(arrange.iter().all(|stage| 2 * way.unpacked_bytes >= stage.memory_bytes && stage.memory_bytes > 0));
    messages_are(plan, Route::ByHost, 0, [&link, &none]);
    messages_are(plan, Route::ByHost, 1, [&none, &network]);
}

/// Compares the messages of each rank with what was summed.
#[track_caller]
fn messages_are(plan: &ClusterPlan, route: Route, stage: usize, [link, network]: [&Summed; 2]) {
    let ranks = link.sent.len();
    let (mut by_link, mut by_network) = (Summed::new(ranks), Summed::new(ranks));
    for rank in 0..ranks {
        for Message { is_network, to, bytes, .. } in
            plan.messages_from(route, rank).into_iter().filter(|message| message.stage == stage)
        {
            if is_network { by_network.add(rank, to, bytes, PIECE) } else { by_link.add(rank, to, bytes, u64::MAX) }
        }
    }
    for (found, summed) in [(by_link, link), (by_network, network)] {
        assert_eq!(
            [found.sent, found.got, found.messages, found.steps],
            [summed.sent.clone(), summed.got.clone(), summed.messages.clone(), summed.steps.clone(),]
        );
    }
}

#[test]
fn the_traffic_of_drawn_layouts_is_that_of_their_moves() {
    for number in 0..short_or_long(600, 20_000) {
        let random = &mut Random(SplitMix64(number ^ 0xC1));
        let gpus = 1 + random.below(9);
        let plan = drawn(1 + random.below(40), number);
        let per = if random.below(2) == 0 { Port::Gpu } else { Port::Host };
        is_summed(&plan, &cluster(plan.ranks().div_ceil(gpus), gpus, per));
    }
}

#[test]
fn the_traffic_of_large_and_odd_layouts_is_that_of_their_moves() {
    let large = [1 << 17, 1 << 17];
    for (shape, axes, from, to, width) in [
        (&large[..], &[1, 0][..], "0:6", "0:8", 16),
        (&large, &[1, 0], "0:4,1:3", "1:2,0:5", 8),
        (&large, &[0, 1], "0:16", "1:16", 2),
        (&large, &[0, 1], "1:12", "0:3,1:4", 4),
        (&large, &[0, 1], "", "0:9", 4),
        (&[7, 100, 3, 5], &[2, 0, 3, 1], "1:10+0+50+40,0:3", "3:9,1:2", 1),
        (&[64, 16, 128], &[1, 0, 2], "0:16", "0:16", 2),
        (&[64, 16, 128], &[0, 1, 2], "0:16", "1:16", 2),
        (&[0, 4], &[1, 0], "0:4", "0:4", 4),
    ] {
        let permuted: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
        let plan = Redistribution::new(&split(shape, from), axes.to_vec(), &split(&permuted, to), width).unwrap();
        for gpus in [1, 2, 3, 4, 8] {
            is_summed(&plan, &cluster(plan.ranks().div_ceil(gpus), gpus, Port::Gpu));
        }
    }
}

/// The parts of a host lie next to each other in the result, so its message is in place on arrival.
#[test]
fn a_message_that_is_one_run_of_the_result_is_not_arranged() {
    let plan = |to: &str| {
        let plan = Redistribution::new(&split(&[64, 64], "0:16"), [0, 1], &split(&[64, 64], to), 4).unwrap();
        ClusterPlan::new(&plan, &cluster(4, 4, Port::Gpu)).unwrap()
    };
    let columns = plan("1:16");
    let [direct, by_host] = columns.ways() else { panic!("two ways") };
    assert_eq!((direct.packed_bytes, direct.unpacked_bytes), (64 * 48 * 4, 0));
    assert_eq!((by_host.unpacked_bytes, by_host.stages.len()), (0, 2));
    let [direct, by_host] = columns_of_a_transpose();
    assert_eq!((direct, by_host), (64 * 48 * 4, 64 * 48 * 4));
}

/// The unpacked bytes of both ways of a transpose.
fn columns_of_a_transpose() -> [u64; 2] {
    let rows = split(&[64, 64], "0:16");
    let plan = Redistribution::new(&rows, [1, 0], &rows, 4).unwrap();
    let plan = ClusterPlan::new(&plan, &cluster(4, 4, Port::Gpu)).unwrap();
    [&plan.ways()[0], &plan.ways()[1]].map(|way| way.unpacked_bytes)
}

#[test]
fn ranks_begin_with_peers_of_their_own() {
    let rows = split(&[64, 64], "0:16");
    let plan = Redistribution::new(&rows, [1, 0], &rows, 4).unwrap();
    let plan = ClusterPlan::new(&plan, &cluster(4, 4, Port::Gpu)).unwrap();
    for route in [Route::Direct, Route::ByHost] {
        let of_ranks: Vec<Vec<Message>> = (0..16).map(|rank| plan.messages_from(route, rank)).collect();
        for at in 0..of_ranks[0].len() {
            let mut to: Vec<usize> = of_ranks.iter().map(|messages| messages[at].to).collect();
            to.sort_unstable();
            assert_eq!(to, (0..16).collect::<Vec<_>>(), "{route}, message {at}");
        }
    }
    let to: Vec<usize> = plan.messages_from(Route::Direct, 6).iter().map(|message| message.to).collect();
    assert_eq!(to, [7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1]);
    assert_eq!(plan.messages_from(Route::Direct, 16), []);
}

/// A look at each pair of ranks of the last plan takes minutes, and a box for each pair an hour.
#[test]
fn many_ranks_are_planned_without_a_look_at_each_pair() {
    let begun = Instant::now();
    for (ranks, gpus) in [(4096, 8), (4096, 1), (65_536, 8)] {
        let rows = split(&[1 << 18, 1 << 18], &format!("0:{ranks}"));
        let plan = Redistribution::new(&rows, [1, 0], &rows, 4).unwrap();
        let plan = ClusterPlan::new(&plan, &cluster(ranks / gpus, gpus, Port::Gpu)).unwrap();
        let stage = &plan.way(Route::Direct).unwrap().stages[0];
        let (ranks, gpus) = (ranks as u64, gpus as u64);
        let [within, between] = [gpus - 1, ranks - gpus].map(|peers| peers * ((1 << 38) / ranks));
        assert_eq!([stage.link.bytes, stage.network.bytes], [within, between]);
        assert_eq!([stage.link.messages, stage.network.messages], [gpus - 1, ranks - gpus]);
        if gpus > 1 {
            assert_eq!(plan.way(Route::ByHost).unwrap().stages[1].network.messages, ranks / gpus - 1);
        }
    }
    println!("planned in {:.2} s", begun.elapsed().as_secs_f64());
    assert!(begun.elapsed() < PATIENCE);
}

#[test]
fn a_description_is_checked_figure_by_figure() {
    let good = ([2, 8], LINK, NETWORK, 3000.0);
    let refused = |([hosts, gpus], link, network, memory): ([usize; 2], Link, Link, f64), says: &str| {
        let error = Cluster::new([hosts, gpus], link, network, Port::Gpu, memory).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(says), "{says:?} is not in {error}");
    };
    for (counts, says) in [
        ([0, 8], "`hosts` of a cluster is 0; give 1 to 65536"),
        ([usize::MAX, 8], "`hosts` of a cluster is 18446744073709551615"),
        ([2, 0], "`gpus_per_host` of a cluster is 0; give 1 to 1024"),
        ([1, 1025], "`gpus_per_host` of a cluster is 1025"),
        ([65_536, 8], "make 524288 ranks; give 65536 at most"),
    ] {
        refused((counts, good.1, good.2, good.3), says);
    }
    for bad in [f64::NAN, 0.0, -0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, 1e7, f64::MAX] {
        refused((good.0, Link { gbps: bad, ..LINK }, good.2, good.3), "`link.gbps` of a cluster is");
        refused((good.0, good.1, Link { gbps: bad, ..NETWORK }, good.3), "`network.gbps` of a cluster is");
        refused((good.0, good.1, good.2, bad), "`memory_gbps` of a cluster is");
        if bad != 0.0 {
            refused((good.0, Link { start_us: bad, ..LINK }, good.2, good.3), "`link.start_us` of a cluster is");
            refused((good.0, good.1, Link { start_us: bad, ..NETWORK }, good.3), "`network.start_us` of a cluster is");
        }
    }
    // A figure that is allowed gives a time, however odd it is.
    let plan = drawn(30, 5);
    for gbps in [f64::MIN_POSITIVE, 1e-9, 1e6] {
        let odd = Link { gbps, start_us: 1e6 };
        let plan = ClusterPlan::new(&plan, &Cluster::new([8, 8], odd, odd, Port::Host, gbps).unwrap()).unwrap();
        assert!(plan.ways().iter().all(|way| way.ms >= 0.0 && way.stages.iter().all(|stage| !stage.ms().is_nan())));
    }
}

#[test]
fn a_cluster_with_too_few_ranks_is_refused() {
    let rows = Split::whole(&[64]).unwrap().cut(0, 17).unwrap();
    let plan = Redistribution::new(&rows, [0], &rows, 4).unwrap();
    let error = ClusterPlan::new(&plan, &cluster(2, 8, Port::Gpu)).unwrap_err();
    assert!(error.to_string().contains("split among 17 ranks, and the cluster has 16 GPUs"), "{error}");
    assert_eq!(Cluster::h100x8(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_plan_says_what_it_chose_and_why() {
    let rows = split(&[1 << 15, 1 << 15], "0:16");
    let plan = Redistribution::new(&rows, [1, 0], &rows, 4).unwrap();
    let text = |cluster: &Cluster| ClusterPlan::new(&plan, cluster).unwrap().to_string();
    let several = text(&Cluster::h100x8(2).unwrap());
    for part in [
        "elements of 4 bytes, over 2 hosts of 8 GPUs",
        "exchange: 2.7612 ms, bound by the network",
        "network: 2147483648 bytes, of which GPU 0 sends 134217728; a rank sends at most 8 messages in 8 steps",
        "direct is chosen: collecting and arranging would take",
    ] {
        assert!(several.contains(part), "{part:?} is not in\n{several}");
    }
    let one = text(&cluster(1, 16, Port::Gpu));
    assert!(one.ends_with("all ranks are on one host, so there is nothing to collect"), "{one}");
    let single = text(&cluster(16, 1, Port::Gpu));
    assert!(single.ends_with("each host has one GPU, so there is nothing to collect"), "{single}");
    let rows = split(&[4096, 4096], "0:512");
    let plan = Redistribution::new(&rows, [1, 0], &rows, 4).unwrap();
    let many = ClusterPlan::new(&plan, &Cluster::h100x8(64).unwrap()).unwrap();
    assert_eq!(many.chosen().route, Route::ByHost);
    assert!(many.reason().contains("sends 63 messages over the network, not 504"), "{}", many.reason());
    assert!(many.chosen().stages.iter().map(Stage::ms).sum::<f64>() < many.ways()[0].ms);
}
