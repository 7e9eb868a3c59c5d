//! The calls that [`Counted`](super::counted::Counted) counts, and those of them that can
//! synchronise.

use std::collections::BTreeMap;
use std::fmt;

use super::call::Method;
use super::methods::methods;

/// Says whether a method can synchronise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// It never waits for queued work.
    No,
    /// It waits for queued work, or CUDA lets it.
    Yes,
    /// It waits if the host's side is not page-locked, as far as this driver knows.
    Pageable,
}

macro_rules! stats {
    ($($part:ident $questions:tt {$(
        $method:ident = $name:ident: $($fn:ident)+ ($($operands:tt)*) -> $reply:ty, $waits:ident $why:literal;
    )*})*) => {
        impl Method {
            /// Returns whether the method can synchronise.
            pub(super) fn waits(self) -> Waits {
                match self {
                    $($(Self::$method => Waits::$waits,)*)*
                }
            }
        }

        /// The number of calls to the driver of a device, and the memory that it has given out.
        ///
        /// This table says which calls can synchronise, and so make the host wait for the device:
        ///
        /// | method | can synchronise | why |
        /// |---|---|---|
        $($(#[doc = concat!("| `", stringify!($name), "` | ", stats!(@ $waits), " | ", $why, " |")])*)*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct Stats {
            /// The calls of each method, without methods that were not called.
            pub calls: BTreeMap<&'static str, u64>,
            /// The number of those calls that can synchronise.
            pub can_synchronize: u64,
            /// Memory that the driver has given out.
            pub memory: MemoryStats,
        }
    };
    (@ No) => { "no" };
    (@ Yes) => { "yes" };
    (@ Pageable) => { "if the host's memory is pageable" };
}

methods!(stats);

/// Memory that a driver has given out, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MemoryStats {
    /// Device memory from `alloc`.
    pub device: Held,
    /// Device memory from `pool_alloc`. It is counted as free once its free is queued.
    pub pool: Held,
    /// Page-locked memory of the host from `alloc_host`.
    pub host: Held,
    /// Memory of the host that was registered.
    pub registered: Held,
}

/// Memory of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Held {
    /// Blocks that are held now.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Most bytes that were held at a time.
    pub peak_bytes: u64,
}

impl Stats {
    /// Returns the calls of a method, such as `stream_synchronize`.
    pub fn calls_of(&self, method: &str) -> u64 {
        self.calls.get(method).copied().unwrap_or_default()
    }

    /// Returns the calls since `before`, with the memory that is held now.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let calls = self.calls.iter().map(|(&name, &calls)| (name, calls.saturating_sub(before.calls_of(name))));
        Self {
            calls: calls.filter(|&(_, calls)| calls > 0).collect(),
            can_synchronize: self.can_synchronize.saturating_sub(before.can_synchronize),
            memory: self.memory,
        }
    }
}

/// Writes the calls, one kind a line, and the memory.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.calls.values().sum();
        writeln!(f, "calls to the driver: {total}, of which {} can synchronise", self.can_synchronize)?;
        for (name, calls) in &self.calls {
            writeln!(f, "  {name:20} {calls:>9}")?;
        }
        writeln!(f, "memory held: blocks, bytes, most bytes")?;
        let MemoryStats { device, pool, host, registered } = &self.memory;
        for (kind, held) in [("device", device), ("pool", pool), ("host", host), ("registered", registered)] {
            writeln!(f, "  {kind:20} {:>9} {:>14} {:>14}", held.blocks, held.bytes, held.peak_bytes)?;
        }
        Ok(())
    }
}
