//! Finds accesses of two streams without an order between them.
//!
//! The bytes of each piece of work are kept until it comes before all work that is queued, and the
//! host knows that it has run, so that later work comes behind it as well. Each piece is compared
//! with those that do not come before it.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::clocks::{Clocks, Piece};
use super::region::Region;
use crate::interp::Touched;
use crate::sync::lock;

/// The most pieces of work whose bytes are kept; the oldest are forgotten.
const MOST_RECORDS: usize = 1024;
/// The most bytes of the host that the kept ones of launches take, about.
const MOST_HOST_BYTES: u64 = 512 << 20;
/// The most regions of one record.
const MOST_REGIONS: usize = 256;
/// The most findings that are told apart; others are only counted.
const MOST_FINDINGS: usize = 100;

/// Two pieces of work that use the same bytes, at least one of them to write, without an order
/// between them.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unordered {
    /// The work that ran first, and the other.
    pub work: [String; 2],
    /// The streams of both, as the program knows them.
    pub streams: [String; 2],
    /// True for the work that writes.
    pub writes: [bool; 2],
    /// The first byte of both.
    pub address: u64,
    /// The number of times that it was found.
    pub times: u64,
}

impl fmt::Display for Unordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work: [first, second], streams: [on, other], address, .. } = self;
        let [does, also] = self.writes.map(|writes| if writes { "writes" } else { "reads" });
        write!(
            f,
            "{first} on {on} {does} the byte at {address:#x}, and {second} on {other} {also} it, without an order \
             between the two; make one stream wait for an event of the other, or wait on the host in between"
        )
    }
}

/// The bytes of a piece of work.
#[derive(Debug, Clone, Default)]
pub(super) struct Bytes {
    pub(super) touched: Option<Arc<Touched>>,
    pub(super) regions: Vec<Region>,
}

/// Pieces of one stream that come before the same work.
#[derive(Debug)]
struct Record {
    last: Piece,
    parts: Vec<Part>,
    /// The bytes of the host that those of launches take, at most.
    host_bytes: u64,
}

/// The bytes of work of one name.
#[derive(Debug)]
struct Part {
    work: String,
    bytes: Bytes,
}

/// The work whose bytes are kept, and the findings.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) clocks: Clocks,
    records: VecDeque<Record>,
    found: Arc<Mutex<Found>>,
}

/// Findings, and the number of those that are not listed.
#[derive(Debug, Default, Clone)]
pub(super) struct Found {
    pub(super) list: Vec<Unordered>,
    pub(super) more: u64,
}

impl Found {
    /// Adds a finding to the same one, or to the list.
    fn add(&mut self, new: Unordered) {
        let is_same = |known: &&mut Unordered| known.work == new.work && known.streams == new.streams;
        if let Some(known) = self.list.iter_mut().find(is_same) {
            known.times += 1;
        } else if self.list.len() < MOST_FINDINGS {
            self.list.push(new);
        } else {
            self.more += 1;
        }
    }
}

impl Bytes {
    fn is_empty(&self) -> bool {
        self.touched.is_none() && self.regions.is_empty()
    }

    /// Returns a byte that both use, at least one of them to write.
    fn clash(&self, other: &Self) -> Option<u64> {
        let both = self.touched.as_ref().zip(other.touched.as_ref()).and_then(|(own, its)| own.clash(its));
        both.or_else(|| self.regions_clash(other))
            .or_else(|| other.touched_clash(&self.regions))
            .or_else(|| self.touched_clash(&other.regions))
    }

    fn regions_clash(&self, other: &Self) -> Option<u64> {
        let pairs = self.regions.iter().flat_map(|own| other.regions.iter().map(move |its| (own, its)));
        pairs.filter(|(own, its)| own.is_written || its.is_written).find_map(|(own, its)| own.meets(its))
    }

    fn touched_clash(&self, regions: &[Region]) -> Option<u64> {
        let touched = self.touched.as_ref()?;
        regions.iter().find_map(|region| {
            region.rows().find_map(|row| touched.first_in(row, region.row_bytes, !region.is_written))
        })
    }

    /// Returns whether the work writes a byte that it uses.
    fn writes(&self, address: u64) -> bool {
        let byte = Region::row(address, 1, true);
        self.touched.as_ref().is_some_and(|touched| touched.first_in(address, 1, true).is_some())
            || self.regions.iter().any(|region| region.is_written && region.meets(&byte).is_some())
    }

    /// Adds the bytes of work of the same name; false if there is no room.
    fn absorb(&mut self, other: &Self) -> bool {
        let fits = match (&self.touched, &other.touched) {
            (Some(own), Some(its)) => own.absorb(its),
            (None, None) => true,
            _ => false,
        };
        let new = other.regions.iter().filter(|region| !self.regions.contains(region)).copied().collect::<Vec<_>>();
        let has_room = self.regions.len() + new.len() <= MOST_REGIONS;
        if fits && has_room {
            self.regions.extend(new);
        }
        fits && has_room
    }
}

impl Order {
    /// Makes an order without work, with a place for its findings.
    pub(super) fn new(found: Arc<Mutex<Found>>) -> Self {
        Self { found, ..Self::default() }
    }

    /// Notes that work has run, and adds what has no order with it to the findings.
    pub(super) fn ran(&mut self, piece: &Piece, work: &str, bytes: Bytes) {
        let clocks = &self.clocks;
        self.records.retain(|record| !clocks.is_over(&record.last));
        if bytes.is_empty() {
            return;
        }
        for record in self.records.iter().filter(|record| !piece.is_behind(&record.last)) {
            for part in &record.parts {
                if let Some(address) = part.bytes.clash(&bytes) {
                    lock(&self.found).add(Unordered {
                        work: [part.work.clone(), work.to_owned()],
                        streams: [record.last.stream, piece.stream].map(|stream| clocks.name(stream)),
                        writes: [part.bytes.writes(address), bytes.writes(address)],
                        address,
                        times: 1,
                    });
                }
            }
        }
        self.keep(piece, work, bytes);
    }

    fn keep(&mut self, piece: &Piece, work: &str, bytes: Bytes) {
        let is_same = |record: &&mut Record| record.last.stream == piece.stream && record.last.marks == piece.marks;
        let host_bytes = bytes.touched.as_ref().map_or(0, |touched| touched.host_bytes());
        let part = Part { work: work.to_owned(), bytes };
        if let Some(record) = self.records.iter_mut().rev().find(is_same)
            && record.parts.len() < MOST_REGIONS
        {
            record.last = piece.clone();
            record.host_bytes += host_bytes;
            let same = record.parts.iter_mut().filter(|known| known.work == part.work);
            let is_absorbed = same.last().is_some_and(|known| known.bytes.absorb(&part.bytes));
            if !is_absorbed {
                record.parts.push(part);
            }
            return;
        }
        let mut sum = host_bytes + self.records.iter().map(|record| record.host_bytes).sum::<u64>();
        while self.records.len() == MOST_RECORDS || sum > MOST_HOST_BYTES {
            let Some(oldest) = self.records.pop_front() else { break };
            sum -= oldest.host_bytes;
        }
        self.records.push_back(Record { last: piece.clone(), parts: vec![part], host_bytes });
    }

    /// Forgets the bytes of memory that is freed: other memory may come to the same place.
    pub(super) fn forget(&mut self, address: u64, bytes: u64) {
        for part in self.records.iter_mut().flat_map(|record| &mut record.parts) {
            if let Some(touched) = &part.bytes.touched {
                touched.forget(address);
            }
            let freed = Region::row(address, bytes, true);
            part.bytes.regions.retain(|region| region.meets(&freed).is_none());
        }
    }
}
