//! The PTX this crate was built with: kernels for every GPU from [`TARGET`] on.
//!
//! `build.rs` supplies it, from the committed copy or from `kernels/`, and checks its entries
//! against `ENTRIES`. The entries share the header alone, which it checks too. So a device loads
//! each kernel alone at its first launch; to compile all of them would take a second. Some entries
//! are for later architectures (`Entry::capability`), and others do the same for the rest.

use std::ops::Range;

use crate::abi::{ENTRIES, EntryId};

/// The origin of the PTX: `prebuilt` or `built from source`, the compiler, the target and the
/// sources' hash.
pub const PROVENANCE: &str = env!("WARPSTRIDE_PTX_PROVENANCE");

/// The oldest architecture that it has kernels for; the driver compiles them for later ones.
pub const TARGET: &str = env!("WARPSTRIDE_PTX_TARGET");

/// The texts of all entries.
const TEXTS: &str = include_str!(concat!(env!("OUT_DIR"), "/entries.ptx"));

/// The header around its architecture, and where each of `ENTRIES` is in [`TEXTS`].
static PLACES: ([&str; 2], [Range<usize>; ENTRIES.len()]) = include!(concat!(env!("OUT_DIR"), "/places.rs"));

/// A module of one entry, for the architecture that the entry needs.
pub fn module(entry: EntryId) -> String {
    module_of([entry.place()], entry.entry().capability)
}

/// A module of all entries, for the latest architecture that one of them needs.
pub fn text() -> String {
    let latest = ENTRIES.iter().map(|entry| entry.capability).max();
    module_of(0..ENTRIES.len(), latest.unwrap_or_default())
}

fn module_of(places: impl IntoIterator<Item = usize>, (major, minor): (u32, u32)) -> String {
    let ([before, behind], texts) = &PLACES;
    let mut module = format!("{before}sm_{major}{minor}{behind}");
    for place in places {
        module += "\n";
        module += &TEXTS[texts[place].clone()];
        module += "\n";
    }
    module
}

/// Returns whether a text is what [`module`] makes of one of the entries: a kernel of this crate,
/// and so one that ends.
#[cfg(feature = "interp")]
pub(crate) fn is_own(text: &str) -> bool {
    let rest = text.split_once(".visible .entry ").map(|(_, rest)| rest);
    let name = rest.and_then(|rest| rest.split_once('(')).map(|(name, _)| name);
    let entry = EntryId::all().find(|entry| Some(entry.name()) == name);
    entry.is_some_and(|entry| module(entry) == text)
}
