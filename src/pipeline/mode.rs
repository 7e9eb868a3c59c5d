//! The ways in which a pipeline uses streams.

use crate::names::{named, written_by_name};

named! {
    /// Returns its name in lower case.
    #[doc(hidden)]
    name;

    /// How the stages of a pipeline share the device.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
    pub enum Mode {
        /// One slot, one stream, and a wait of the host behind every stage: nothing overlaps.
        Blocking = "blocking",
        /// One stream. The host runs ahead, and on the device each stage waits for the one before.
        Async = "async",
        /// A stream each for uploads, work and downloads, with events between them: all three run
        /// at once, each on another batch.
        #[default]
        Streams = "streams",
        /// As [`Mode::Streams`], and the work of each slot is captured once and launched as a
        /// graph. It is captured again where a batch has another number of elements.
        Graph = "graph",
    }
}

impl Mode {
    /// All modes, in this order.
    pub const ALL: [Self; 4] = [Self::Blocking, Self::Async, Self::Streams, Self::Graph];

    /// Returns whether the copies have streams of their own.
    pub(super) const fn has_streams(self) -> bool {
        matches!(self, Self::Streams | Self::Graph)
    }
}

written_by_name!(Mode);
