//! The state spaces of the software GPU.

mod allocation;
pub(crate) mod cells;
mod global;
mod heap;
#[allow(unsafe_code)]
mod host;
mod nearest;
pub(crate) mod space;
mod touched;
mod unread;
pub(crate) mod marked;

pub(crate) use allocation::{Allocation, POISON};
pub use global::Memory;
pub(crate) use global::Snapshot;
pub(crate) use heap::BadFree;
pub use nearest::Nearest;
pub use touched::Touched;
pub(crate) use touched::Ways;
pub use unread::Unread;

/// A list of `count` items; `None` if the host has too little memory.
pub(crate) fn filled<T>(count: usize, item: impl FnMut() -> T) -> Option<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).ok()?;
    list.resize_with(count, item);
    Some(list)
}
