//! The copies of the process, and at its end the memory that it has not freed or never read.

use std::cmp::Reverse;

use serde_json::{Value, json};
use warpstride::interp::Unread;

use crate::memory::{Kind, Leak, Way, copies, leaked};
use crate::process::process;

/// The most allocations that are listed; the others are only counted.
const MOST_LISTED: usize = 100;

/// Returns what a document says of memory. A process that goes on may still free its memory, so
/// that is not a leak yet, and it may still read it. Only initcheck follows what kernels read.
pub(super) fn json(has_ended: bool, follows_reads: bool) -> Value {
    let copies = copies();
    let transfers = copies.by_kind.iter().map(|(&(way, is_pageable), count)| {
        json!({ "way": way_name(way), "pageable": is_pageable, "calls": count.calls, "bytes": count.bytes })
    });
    json!({
        "transfers": transfers.collect::<Vec<_>>(),
        "hidden_waits": copies.hidden_waits,
        "leaks": has_ended.then(|| leaks_json(leaked())),
        "unread": (has_ended && follows_reads).then(unread_json),
    })
}

/// The memory of all devices that was written and never read.
fn unread_json() -> Value {
    let gpus = process().map_or(&[][..], |process| &process.gpus);
    let Unread { allocations, bytes } =
        gpus.iter().fold(Unread::default(), |sum, gpu| sum + gpu.soft.memory().unread());
    json!({ "allocations": allocations, "bytes": bytes })
}

fn leaks_json(mut leaks: Vec<Leak>) -> Value {
    leaks.sort_by_key(|leak| (Reverse(leak.bytes), leak.address));
    let bytes = leaks.iter().fold(0_u64, |sum, leak| sum.saturating_add(leak.bytes));
    let listed = leaks.iter().take(MOST_LISTED).map(|leak| {
        json!({ "kind": kind_name(leak.kind), "address": leak.address, "bytes": leak.bytes, "device": leak.device })
    });
    json!({ "count": leaks.len(), "bytes": bytes, "largest": listed.collect::<Vec<_>>() })
}

fn way_name(way: Way) -> &'static str {
    match way {
        Way::HostToDevice => "host_to_device",
        Way::DeviceToHost => "device_to_host",
        Way::WithinDevice => "within_device",
        Way::BetweenDevices => "between_devices",
        Way::WithinHost => "within_host",
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Device => "device",
        Kind::Pool => "pool",
        Kind::PageLocked => "page_locked",
        Kind::Registered => "registered",
        Kind::Managed => "managed",
    }
}
