//! The operations of all ranks, as rank 0 sees them: what each rank has entered, and what each is
//! told. There are no sockets here, and no clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::frame::{Call, Failure, Message};
use super::ranks::named;

/// A rank of the job, as rank 0 knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Presence {
    Here,
    /// It has said goodbye.
    Left,
    Lost(String),
}

/// An operation that some ranks have entered.
#[derive(Debug)]
struct Entered {
    since: Instant,
    calls: Vec<Option<Call>>,
    /// The failure that ranks which come later are told, too.
    failed: Option<String>,
}

#[derive(Debug)]
pub(super) struct Calls {
    deadline: Duration,
    ranks: Vec<Presence>,
    entered: BTreeMap<u64, Entered>,
    /// Messages to ranks; those to rank 0 stay in its process.
    out: Vec<(usize, Message)>,
}

impl Calls {
    pub(super) fn new(ranks: usize, deadline: Duration) -> Self {
        Self { deadline, ranks: vec![Presence::Here; ranks], entered: BTreeMap::new(), out: Vec::new() }
    }

    /// Takes the messages that are to be sent.
    pub(super) fn take_out(&mut self) -> Vec<(usize, Message)> {
        std::mem::take(&mut self.out)
    }

    /// Returns whether some ranks wait for others.
    pub(super) fn is_awaited(&self) -> bool {
        self.entered.values().any(|entered| entered.failed.is_none())
    }

    /// A rank has entered an operation.
    pub(super) fn enter(&mut self, rank: usize, number: u64, call: Call, now: Instant) {
        if let Some(reason) = self.gone() {
            return self.fail(rank, number, Failure::Peer, format!("{} failed: {reason}", name(&call)));
        }
        let ranks = self.ranks.len();
        let new = || Entered { since: now, calls: vec![None; ranks], failed: None };
        let entered = self.entered.entry(number).or_insert_with(new);
        entered.calls[rank] = Some(call);
        let failed = entered.failed.clone();
        let is_complete = entered.calls.iter().all(Option::is_some);
        if let Some(reason) = failed {
            self.fail(rank, number, Failure::Deadline, reason);
            if is_complete {
                self.entered.remove(&number);
            }
        } else if is_complete && let Some(entered) = self.entered.remove(&number) {
            let calls: Vec<Call> = entered.calls.into_iter().flatten().collect();
            self.conclude(number, &calls);
        }
    }

    /// All ranks have entered an operation.
    fn conclude(&mut self, number: u64, calls: &[Call]) {
        let differing = |is_same: fn(&Call, &Call) -> bool| -> Vec<usize> {
            (1..calls.len()).filter(|&rank| !is_same(&calls[0], &calls[rank])).collect()
        };
        let others = differing(is_same_operation);
        let unequal = differing(|first, other| match (first, other) {
            (Call::Agree { digest: first, .. }, Call::Agree { digest: other, .. }) => first == other,
            _ => true,
        });
        let reason = match (&calls[0], others.first()) {
            (first, Some(&rank)) => Some(format!(
                "the ranks call different operations: rank 0 is in {}, rank {rank} is in {}, and {} differ from rank \
                 0; call the same operations in the same order on every rank",
                name(first),
                name(&calls[rank]),
                named(&others)
            )),
            (Call::Agree { about, .. }, None) if !unequal.is_empty() => {
                let have = if unequal.len() == 1 { "has" } else { "have" };
                Some(format!(
                    "{} {have} another {about} than rank 0; give every rank the same {about}",
                    named(&unequal)
                ))
            }
            _ => None,
        };
        for rank in 0..calls.len() {
            match (&reason, &calls[0]) {
                (Some(reason), _) => self.fail(rank, number, Failure::Peer, reason.clone()),
                (None, Call::Broadcast(payload)) => {
                    self.out.push((rank, Message::Done { number, payload: payload.clone() }));
                }
                (None, _) => self.out.push((rank, Message::Done { number, payload: Vec::new() })),
            }
        }
    }

    /// Fails the operations that ranks have waited for too long.
    pub(super) fn expire(&mut self, now: Instant) {
        let deadline = self.deadline;
        let is_late =
            |entered: &Entered| entered.failed.is_none() && now.saturating_duration_since(entered.since) >= deadline;
        let late: Vec<u64> =
            self.entered.iter().filter(|(_, entered)| is_late(entered)).map(|(&number, _)| number).collect();
        for number in late {
            let Some(entered) = self.entered.get_mut(&number) else { continue };
            let (mut here, mut missing) = (Vec::new(), Vec::new());
            for (rank, call) in entered.calls.iter().enumerate() {
                if call.is_some() { here.push(rank) } else { missing.push(rank) }
            }
            let reason = format!(
                "{} failed: {} of {} did not call it within {}; check that every rank calls the same operations, or \
                 allow more time",
                entered.calls.iter().flatten().next().map_or_else(String::new, name),
                named(&missing),
                entered.calls.len(),
                seconds(deadline)
            );
            entered.failed = Some(reason.clone());
            for rank in here {
                self.fail(rank, number, Failure::Deadline, reason.clone());
            }
        }
    }

    /// A rank has closed its connection in order.
    pub(super) fn left(&mut self, rank: usize) {
        self.goes(rank, Presence::Left);
    }

    /// A rank is lost, or has said that it cannot go on.
    pub(super) fn lost(&mut self, rank: usize, reason: &str) {
        if self.ranks[rank] != Presence::Here {
            return;
        }
        for other in (0..self.ranks.len()).filter(|&other| other != rank && self.ranks[other] != Presence::Left) {
            self.out.push((other, Message::Lost { rank: rank as u32, reason: reason.into() }));
        }
        self.goes(rank, Presence::Lost(reason.into()));
    }

    fn goes(&mut self, rank: usize, presence: Presence) {
        if self.ranks[rank] != Presence::Here {
            return;
        }
        self.ranks[rank] = presence;
        let reason = self.gone().unwrap_or_default();
        for (number, entered) in std::mem::take(&mut self.entered) {
            for (waiting, call) in entered.calls.iter().enumerate().filter(|_| entered.failed.is_none()) {
                if let Some(call) = call {
                    self.fail(waiting, number, Failure::Peer, format!("{} failed: {reason}", name(call)));
                }
            }
        }
    }

    /// The clause about the ranks that take part in no operation any more.
    fn gone(&self) -> Option<String> {
        let lost = self.ranks.iter().enumerate().find_map(|(rank, presence)| match presence {
            Presence::Lost(reason) => Some(lost(rank, reason)),
            _ => None,
        });
        let left = || {
            let is_left = |&rank: &usize| self.ranks[rank] == Presence::Left;
            let left: Vec<usize> = (0..self.ranks.len()).filter(is_left).collect();
            (!left.is_empty()).then(|| left_by(&left))
        };
        lost.or_else(left)
    }

    fn fail(&mut self, rank: usize, number: u64, failure: Failure, reason: String) {
        self.out.push((rank, Message::Failed { number, failure, reason }));
    }
}

fn is_same_operation(first: &Call, other: &Call) -> bool {
    match (first, other) {
        (Call::Agree { about: first, .. }, Call::Agree { about: other, .. }) => first == other,
        _ => std::mem::discriminant(first) == std::mem::discriminant(other),
    }
}

/// The name of an operation in a sentence.
pub(super) fn name(call: &Call) -> String {
    match call {
        Call::Barrier => "a barrier".into(),
        Call::Broadcast(_) => "a broadcast".into(),
        Call::Agree { about, .. } => format!("an agreement on the {about}"),
    }
}

/// The clause about a rank that is lost.
pub(super) fn lost(rank: usize, reason: &str) -> String {
    format!("rank {rank} is lost: {reason}; look at the output of that rank, and end the others")
}

/// The clause about ranks that have left in order.
pub(super) fn left_by(ranks: &[usize]) -> String {
    let have = if ranks.len() == 1 { "has" } else { "have" };
    format!("{} {have} left the job; keep the members of every rank until the last operation", named(ranks))
}

/// A time in a sentence.
pub(super) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
