//! The PTX this crate was built with: kernels for every GPU from [`TARGET`] on.
//!
//! `build.rs` supplies it, from the committed copy or from `kernels/`, and checks its entries against
//! [`ENTRIES`]. They share nothing but the header, which it checks too: so a device loads each
//! kernel alone, by its first launch, where all of them would take a second to compile. Some are for
//! later architectures ([`Entry::capability`](crate::abi::Entry::capability)), and have others that do the same for the rest.

use std::ops::Range;

use crate::abi::{ENTRIES, EntryId};

/// The text of all entries, a module in itself: for the latest architecture that one of them needs.
pub const TEXT: &str = include_str!(env!("WARPSTRIDE_PTX"));

/// Where it came from: `prebuilt` or `built from source`, the compiler, the target and the sources' hash.
pub const PROVENANCE: &str = env!("WARPSTRIDE_PTX_PROVENANCE");

/// The oldest architecture that it has kernels for; the driver compiles them for later ones.
pub const TARGET: &str = env!("WARPSTRIDE_PTX_TARGET");

/// Where the header, around its architecture, and each of [`ENTRIES`] are in [`TEXT`].
static PLACES: ([Range<usize>; 2], [Range<usize>; ENTRIES.len()]) = include!(concat!(env!("OUT_DIR"), "/places.rs"));

/// A module of one entry: the header of [`TEXT`] for the architecture that the entry needs, and the entry's part of it.
pub fn module(entry: EntryId) -> String {
    module_at(entry.place())
}

fn module_at(place: usize) -> String {
    let ([before, behind], entries) = &PLACES;
    let (major, minor) = ENTRIES[place].capability;
    let body = &TEXT[entries[place].clone()];
    format!("{}sm_{major}{minor}{}{body}\n", &TEXT[before.clone()], &TEXT[behind.clone()])
}

/// Whether a text is what [`module`] makes of one of the entries: a kernel of this crate, and so one that ends.
#[cfg(feature = "interp")]
pub(crate) fn is_own(text: &str) -> bool {
    let rest = text.split_once(".visible .entry ").map(|(_, rest)| rest);
    let name = rest.and_then(|rest| rest.split_once('(')).map(|(name, _)| name);
    let place = name.and_then(|name| ENTRIES.iter().position(|entry| entry.name == name));
    place.is_some_and(|place| module_at(place) == text)
}
