//! The PTX this crate was built with: kernels for every GPU from [`TARGET`] on.
//!
//! `build.rs` supplies it, from the committed copy or from `kernels/`, and checks its entries against
//! [`ENTRIES`]. They share nothing but the header, which it checks too: so a device loads each
//! kernel alone, by its first launch, where all of them would take a second to compile.

use std::ops::Range;

use crate::abi::{ENTRIES, EntryId};

/// The text of all entries, a module in itself.
pub const TEXT: &str = include_str!(env!("WARPSTRIDE_PTX"));

/// Where it came from: `prebuilt` or `built from source`, the compiler, the target and the sources' hash.
pub const PROVENANCE: &str = env!("WARPSTRIDE_PTX_PROVENANCE");

/// The oldest architecture that it runs on; the driver compiles it for later ones.
pub const TARGET: &str = env!("WARPSTRIDE_PTX_TARGET");

/// Where the header and each of [`ENTRIES`] are in [`TEXT`].
static PLACES: (Range<usize>, [Range<usize>; ENTRIES.len()]) = include!(concat!(env!("OUT_DIR"), "/places.rs"));

/// A module of one entry: the header of [`TEXT`], and the entry's part of it.
pub fn module(entry: EntryId) -> String {
    let (header, entries) = &PLACES;
    [&TEXT[header.clone()], &TEXT[entries[entry.place()].clone()], "\n"].concat()
}
