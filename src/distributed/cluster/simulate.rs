//! A simulation of the messages of a plan, event by event.
//!
//! A rank sends the messages of a class one after another. A message takes its starts and then
//! flows at a rate that its two ports give it. The rates are max-min fair: all grow alike until a
//! port is full, whose messages then keep theirs, and the others go on (D. Bertsekas and R.
//! Gallager, *Data Networks*, section 6.5.2; SimGrid simulates networks so).

use super::description::Link;
use super::load::steps;
use super::plan::{ClusterPlan, Message};
use super::way::{Route, Stage};
use crate::error::{Result, require};

/// The order in which the ranks send their messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// That of [`ClusterPlan::messages_from`].
    Planned,
    /// Each rank begins with the rank after it, wherever that is.
    AfterOwn,
    /// All ranks begin with rank 0.
    ByNumber,
}

/// The ranks of a simulation at most.
const MOST_RANKS: usize = 256;

/// Microseconds within which events are one.
const AT_ONCE: f64 = 1e-6;

impl ClusterPlan {
    /// Simulates a way of the plan, and returns its milliseconds. Each stage begins when the one
    /// before it has ended everywhere, and takes as long as its links, its network or the predicted
    /// time of the memory.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the plan has no such way or more than 256 ranks.
    pub fn simulate_ms(&self, route: Route, order: Order) -> Result<f64> {
        let ranks = self.pairs.ranks();
        require!(
            ranks <= MOST_RANKS,
            InvalidArgument,
            "a simulation takes {MOST_RANKS} ranks at most, and this plan has {ranks}; take its predicted time"
        );
        let way = self.way(route);
        require!(way.is_some(), InvalidArgument, "the plan has no way {route}: {}", self.reason());
        let sent: Vec<Vec<Message>> = (0..ranks).map(|rank| self.ordered(route, order, rank)).collect();
        let of_class = |stage: usize, is_network: bool| -> Vec<Vec<Message>> {
            let within = |message: &&Message| (message.stage, message.is_network) == (stage, is_network);
            sent.iter().map(|messages| messages.iter().filter(within).copied().collect()).collect()
        };
        let stage_ms = |(number, stage): (usize, &Stage)| {
            let link = simulated_us(&of_class(number, false), self.cluster.link(), 1);
            let network = simulated_us(&of_class(number, true), self.cluster.network(), self.cluster.gpus_of_port());
            (link.max(network) / 1e3).max(stage.memory_ms)
        };
        Ok(way.into_iter().flat_map(|way| way.stages.iter().enumerate()).map(stage_ms).sum())
    }

    fn ordered(&self, route: Route, order: Order, rank: usize) -> Vec<Message> {
        let (ranks, mut messages) = (self.pairs.ranks(), self.messages_from(route, rank));
        match order {
            Order::Planned => {}
            Order::AfterOwn => messages.sort_by_key(|message| (message.to + ranks - rank - 1) % ranks),
            Order::ByNumber => messages.sort_by_key(|message| message.to),
        }
        messages
    }
}

/// A rank that sends.
struct Sender<'a> {
    rank: usize,
    messages: &'a [Message],
    /// Microseconds until its message flows.
    starts: f64,
    /// The bytes of its message that are still to flow.
    left: f64,
    /// Bytes a microsecond.
    rate: f64,
}

impl Sender<'_> {
    /// Begins its next message.
    fn begin(&mut self, link: Link) {
        if let Some(message) = self.messages.first() {
            let steps = if message.is_network { steps(message.bytes) } else { 1 };
            self.starts = steps as f64 * link.start_us;
            self.left = message.bytes as f64;
        }
    }

    fn flows(&self) -> bool {
        self.starts <= AT_ONCE
    }

    /// Returns the microseconds until its next event.
    fn until(&self) -> f64 {
        if self.flows() { self.left / self.rate } else { self.starts }
    }
}

/// Returns the microseconds until all messages have arrived.
fn simulated_us(messages: &[Vec<Message>], link: Link, gpus_of_port: usize) -> f64 {
    let sender = |(rank, messages)| Sender { rank, messages, starts: 0.0, left: 0.0, rate: 0.0 };
    let mut senders: Vec<Sender<'_>> = messages.iter().map(Vec::as_slice).enumerate().map(sender).collect();
    let mut shares = Shares::new(messages.len().div_ceil(gpus_of_port), gpus_of_port);
    senders.iter_mut().for_each(|sender| sender.begin(link));
    let mut now = 0.0;
    loop {
        senders.retain(|sender| !sender.messages.is_empty());
        if senders.is_empty() {
            return now;
        }
        shares.give(&mut senders, link.gbps * 1e3);
        let step = senders.iter().map(Sender::until).fold(f64::INFINITY, f64::min);
        now += step;
        for sender in &mut senders {
            if !sender.flows() {
                sender.starts -= step;
                continue;
            }
            sender.left -= step * sender.rate;
            if sender.left <= AT_ONCE * sender.rate {
                sender.messages = &sender.messages[1..];
                sender.begin(link);
            }
        }
    }
}

/// The ports, those that send before those that get.
struct Shares {
    gpus_of_port: usize,
    ports: usize,
    /// The bandwidth of each port that is not given away, as a part of the whole.
    left: Vec<f64>,
    /// The messages of each port that have no rate yet.
    waiting: Vec<usize>,
}

impl Shares {
    fn new(ports: usize, gpus_of_port: usize) -> Self {
        Self { gpus_of_port, ports, left: vec![0.0; 2 * ports], waiting: vec![0; 2 * ports] }
    }

    fn ports_of(&self, sender: &Sender<'_>) -> [usize; 2] {
        [sender.rank / self.gpus_of_port, self.ports + sender.messages[0].to / self.gpus_of_port]
    }

    /// Gives each message that flows its max-min fair rate of ports with this bandwidth.
    fn give(&mut self, senders: &mut [Sender<'_>], bandwidth: f64) {
        let mut flowing: Vec<(&mut Sender<'_>, [usize; 2])> = Vec::with_capacity(senders.len());
        self.left.fill(1.0);
        self.waiting.fill(0);
        for sender in senders.iter_mut().filter(|sender| sender.flows()) {
            let ports = self.ports_of(sender);
            ports.iter().for_each(|&port| self.waiting[port] += 1);
            flowing.push((sender, ports));
        }
        while !flowing.is_empty() {
            let share = |port: usize| self.left[port] / self.waiting[port] as f64;
            let least = (0..self.left.len()).filter(|&port| self.waiting[port] > 0).map(share).fold(1.0, f64::min);
            let full: Vec<bool> = (0..self.left.len()).map(|port| share(port) <= least * (1.0 + 1e-9)).collect();
            flowing.retain_mut(|(sender, ports)| {
                let is_full = ports.iter().any(|&port| full[port]);
                if is_full {
                    sender.rate = least * bandwidth;
                    for &port in &*ports {
                        self.left[port] -= least;
                        self.waiting[port] -= 1;
                    }
                }
                !is_full
            });
        }
    }
}
