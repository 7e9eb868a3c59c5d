//! Counts of what programs copy.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::table::Home;
use crate::process::process;

/// The direction of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    HostToDevice,
    DeviceToHost,
    WithinDevice,
    BetweenDevices,
    WithinHost,
}

/// The copies of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
}

/// All copies of a process so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copies {
    /// By direction, and by whether a side is pageable memory.
    pub(crate) by_kind: BTreeMap<(Way, bool), Count>,
    /// Asynchronous copies that made the host wait, since a side is pageable.
    pub(crate) hidden_waits: u64,
}

#[derive(Default)]
pub(super) struct Traffic(Mutex<Copies>);

impl Traffic {
    /// Counts a copy; `hides_wait` says that the call was asynchronous by its name only, which
    /// other memory would mend if a side is pageable.
    pub(super) fn add(&self, dst: Home, src: Home, bytes: u64, hides_wait: bool) {
        let way = match (src, dst) {
            (Home::Pageable | Home::PageLocked, Home::Pageable | Home::PageLocked) => Way::WithinHost,
            (Home::Pageable | Home::PageLocked, _) => Way::HostToDevice,
            (_, Home::Pageable | Home::PageLocked) => Way::DeviceToHost,
            (Home::Device(from, _), Home::Device(to, _)) if from != to => Way::BetweenDevices,
            _ => Way::WithinDevice,
        };
        let is_pageable = [dst, src].contains(&Home::Pageable);
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = copies.by_kind.entry((way, is_pageable)).or_default();
        count.calls += 1;
        count.bytes = count.bytes.saturating_add(bytes);
        copies.hidden_waits += u64::from(hides_wait && is_pageable);
    }
}

/// Returns the counts of all copies so far.
pub(crate) fn copies() -> Copies {
    let Ok(process) = process() else { return Copies::default() };
    process.memory.traffic.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted_by_their_way_and_their_memory() {
        let traffic = Traffic::default();
        let (here, there) = (Home::Device(0, false), Home::Device(1, true));
        traffic.add(here, Home::Pageable, 10, false);
        traffic.add(here, Home::Pageable, 5, false);
        traffic.add(Home::PageLocked, Home::Managed, 7, false);
        traffic.add(Home::Pageable, here, 1, true);
        traffic.add(there, here, u64::MAX, false);
        traffic.add(there, here, 1, false);
        traffic.add(here, Home::Managed, 2, false);
        traffic.add(Home::Pageable, Home::PageLocked, 3, true);
        traffic.add(Home::PageLocked, Home::PageLocked, 4, true);
        let copies = traffic.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let counts: Vec<_> = copies.by_kind.iter().map(|(&kind, count)| (kind, count.calls, count.bytes)).collect();
        assert_eq!(
            counts,
            [
                ((Way::HostToDevice, true), 2, 15),
                ((Way::DeviceToHost, false), 1, 7),
                ((Way::DeviceToHost, true), 1, 1),
                ((Way::WithinDevice, false), 1, 2),
                ((Way::BetweenDevices, false), 2, u64::MAX),
                ((Way::WithinHost, false), 1, 4),
                ((Way::WithinHost, true), 1, 3),
            ]
        );
        assert_eq!(copies.hidden_waits, 2);
    }
}
