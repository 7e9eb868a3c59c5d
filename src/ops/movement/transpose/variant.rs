//! The transpose kernels by name.

use std::str::FromStr;

use crate::error::Error;
use crate::names::{named, written_by_name};

named! {
    /// Returns the name on the command line and in reports.
    #[doc(hidden)]
    name;

    /// A way to transpose, from the worst to the best.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    pub enum Variant {
        /// One launch per column, each a strided copy: a transpose as a loop over copies.
        ColumnLoop = "column_loop",
        /// One element per thread and step, read along rows and written along columns.
        Naive = "naive",
        /// Through a tile in shared memory: both sides move along rows, but the tile's columns
        /// share banks.
        Tiled = "tiled",
        /// `Tiled` with each row of the tile padded by a bank, so that columns do not conflict.
        Padded = "padded",
        /// `Tiled` with the column exclusive-ored by the row: no conflicts and no padding. Others
        /// call this swizzled.
        Staggered = "staggered",
    }
}

impl Variant {
    /// Every variant, the worst first.
    #[doc(hidden)]
    pub const ALL: [Self; 5] = [Self::ColumnLoop, Self::Naive, Self::Tiled, Self::Padded, Self::Staggered];
}

written_by_name!(Variant);

impl FromStr for Variant {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "swizzled" {
            return Ok(Self::Staggered);
        }
        Self::ALL.into_iter().find(|variant| variant.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            Error::argument(format!("`{text}` does not name a transpose kernel; give one of {known}"))
        })
    }
}
