//! The plan of a redistribution over GPUs, and its prediction over several hosts.

use anyhow::Result;
use serde_json::{Value, json};
use warpstride::distributed::Redistribution;
use warpstride::distributed::cluster::{Cluster, ClusterPlan, Link, Load, Order, Port, Stage, Way};

use super::super::output::Output;
use super::super::{args, gpus};
use super::cluster;

/// Ranks whose order of peers is printed.
const RANKS: usize = 4;
/// Peers of each that are printed.
const PEERS: usize = 16;

pub(super) fn run(args: &args::Explain, output: &Output) -> Result<()> {
    let cut = |cuts: &Option<String>| cuts.clone().unwrap_or_default();
    let (from, to) = (cut(&args.from), cut(&args.to));
    let plan = gpus::plan(&args.shape, args.axes.as_ref(), [&from, &to], args.dtype)?;
    let mut document = json!({
        "op": "redistribute",
        "dtype": args.dtype.name(),
        "shape": &*args.shape,
        "axes": plan.axes(),
        "from": from,
        "to": to,
        "ranks": plan.ranks(),
        "crossing_bytes": plan.crossing_bytes(),
        "busiest_bytes": plan.busiest_bytes(),
    });
    let Some(name) = &args.cluster else {
        document["orders"] = orders(plan.ranks(), |rank| peers(&plan, rank));
        return output.result(&format!("{plan}\n"), document);
    };
    let cluster = cluster::named(name)?;
    let plan = ClusterPlan::new(&plan, &cluster)?;
    let chosen = plan.chosen().route;
    let [planned, by_number] = [Order::Planned, Order::ByNumber].map(|order| plan.simulate_ms(chosen, order).ok());
    let of_rank = |rank: usize| -> Vec<(usize, u64)> {
        plan.messages_from(chosen, rank).iter().map(|message| (message.to, message.bytes)).collect()
    };
    let ranks = document["ranks"].as_u64().map_or(0, |ranks| ranks as usize);
    let mut text = format!("{plan}\n");
    if let (Some(planned), Some(by_number)) = (planned, by_number) {
        text += &format!("simulated {planned:.4} ms; {by_number:.4} ms if all ranks began with rank 0\n");
    }
    for rank in 0..ranks.min(RANKS) {
        text += &order(rank, &of_rank(rank));
    }
    document["cluster"] = described(&cluster);
    document["ways"] = plan.ways().iter().map(way).collect();
    document["chosen"] = json!(chosen.to_string());
    document["reason"] = json!(plan.reason());
    document["predicted_ms"] = json!(plan.chosen().ms);
    document["simulated_ms"] = json!(planned);
    document["simulated_by_number_ms"] = json!(by_number);
    document["orders"] = orders(ranks, of_rank);
    output.result(&text, document)
}

/// The ranks that a rank sends to, with the bytes, in the order of the plan for one host.
fn peers(plan: &Redistribution, rank: usize) -> Vec<(usize, u64)> {
    plan.moves_from(rank).iter().map(|part| (part.to, part.bytes)).collect()
}

/// The line of a rank with the first ranks that it sends to.
fn order(rank: usize, peers: &[(usize, u64)]) -> String {
    let told: Vec<String> = peers.iter().take(PEERS).map(|(to, bytes)| format!("{bytes} to {to}")).collect();
    let more = if peers.len() > PEERS { format!(", and {} more", peers.len() - PEERS) } else { String::new() };
    let told = if told.is_empty() { "nothing".to_owned() } else { told.join(", ") };
    format!("  rank {rank}: {told}{more}\n")
}

/// The orders of the first ranks, with all of their peers.
fn orders(ranks: usize, of_rank: impl Fn(usize) -> Vec<(usize, u64)>) -> Value {
    let peer = |(to, bytes)| json!({ "to": to, "bytes": bytes });
    let order = |rank| json!({ "rank": rank, "peers": of_rank(rank).into_iter().map(peer).collect::<Vec<_>>() });
    (0..ranks.min(RANKS)).map(order).collect()
}

fn described(cluster: &Cluster) -> Value {
    let link = |Link { gbps, start_us }: Link| json!({ "gbps": gbps, "start_us": start_us });
    let mut network = link(cluster.network());
    network["per"] = json!(if cluster.network_per() == Port::Gpu { "gpu" } else { "host" });
    json!({
        "hosts": cluster.hosts(),
        "gpus_per_host": cluster.gpus_per_host(),
        "memory_gbps": cluster.memory_gbps(),
        "link": link(cluster.link()),
        "network": network,
    })
}

fn way(way: &Way) -> Value {
    json!({
        "route": way.route.to_string(),
        "predicted_ms": way.ms,
        "packed_bytes": way.packed_bytes,
        "unpacked_bytes": way.unpacked_bytes,
        "stages": way.stages.iter().map(stage).collect::<Vec<_>>(),
    })
}

fn stage(stage: &Stage) -> Value {
    json!({
        "name": stage.name,
        "predicted_ms": stage.ms(),
        "bound": stage.bound(),
        "links": load(&stage.link),
        "network": load(&stage.network),
        "memory": { "busiest_bytes": stage.memory_bytes, "ms": stage.memory_ms },
    })
}

fn load(load: &Load) -> Value {
    json!({
        "bytes": load.bytes,
        "busiest_port": load.busiest_port,
        "busiest_sends": load.busiest_sends,
        "busiest_bytes": load.busiest_bytes,
        "messages": load.messages,
        "steps": load.steps,
        "ms": load.ms,
    })
}
