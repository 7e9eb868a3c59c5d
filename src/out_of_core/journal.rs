//! The journal of a result that is not complete: what it is the result of, and how much of it is on
//! the disk.
//!
//! It is JSON beside the result. Tiles are written in the order of their numbers, so a number says
//! which are there. A tile that a journal counts and that was never written would be a wrong
//! element in a file that looks right. So a random number ties a journal to its file
//! ([`Journal::mark`]).

#![forbid(unsafe_code)]

use std::hash::{BuildHasher, RandomState};
use std::io;

use serde::{Deserialize, Serialize};

use super::tiling::Tiling;
use crate::io::Stamp;

/// The format that this version writes and reads.
const FORMAT: &str = "warpstride out of core 2";
/// Most bytes of a journal. A path of 4096 bytes, each escaped, and 64 axes take half of this.
pub(super) const MOST_BYTES: usize = 64 << 10;

/// The input and the options of a result. An interrupted run goes on only if all of it is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    /// The input's path; the stamp tells paths apart that are not text.
    pub(super) input: String,
    /// The input's file.
    pub(super) stamp: Stamp,
    /// The input's element type, as NumPy spells it.
    pub(super) descr: String,
    /// The input's extents.
    pub(super) shape: Vec<usize>,
    /// True if the input is in Fortran order.
    pub(super) fortran_order: bool,
    /// The input's axes in the order of the result.
    pub(super) axes: Vec<usize>,
}

/// Returns whether bytes are the [mark](Journal::mark) of a run.
pub(super) fn is_mark(bytes: &[u8]) -> bool {
    bytes.starts_with(format!("{FORMAT}\nrun ").as_bytes())
}

/// A journal as it lies on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    pub(super) format: String,
    /// A random number, in hexadecimal: the result's file has it too.
    pub(super) run: String,
    pub(super) identity: Identity,
    /// The device memory that the tiles were chosen for, in bytes.
    pub(super) device_memory: usize,
    /// Extents of a tile, as [`Tiling::extents`](super::tiling::Tiling::extents).
    pub(super) tile: Vec<usize>,
    /// The number of tiles.
    pub(super) tiles: u64,
    /// The number of tiles that are on the disk, from the first one on.
    pub(super) done: u64,
}

impl Journal {
    pub(super) fn new(identity: Identity, device_memory: usize, tiling: &Tiling) -> Self {
        // The standard library seeds each of them from the system's random numbers.
        let [one, other] = [(); 2].map(|()| RandomState::new().hash_one(device_memory));
        let run = format!("{one:016x}{other:016x}");
        let (format, tile, tiles) = (FORMAT.into(), tiling.extents().into(), tiling.len() as u64);
        Self { format, run, identity, device_memory, tile, tiles, done: 0 }
    }

    /// Returns whether these are the tiles that the journal counts.
    pub(super) fn counts(&self, tiling: &Tiling) -> bool {
        self.tile == tiling.extents() && self.tiles == tiling.len() as u64
    }

    /// Returns the bytes that the result's file has in place of its header, of `len` bytes, and
    /// behind its last element until it is complete.
    pub(super) fn mark(&self, len: usize) -> Vec<u8> {
        let mut mark = format!("{FORMAT}\nrun {}\n", self.run).into_bytes();
        mark.resize(len, 0);
        mark
    }

    /// Parses a journal.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MOST_BYTES {
            return Err(format!("it has more than {MOST_BYTES} bytes"));
        }
        let journal: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if journal.format != FORMAT {
            return Err(format!("its format is `{:.40}` and not `{FORMAT}`", journal.format.escape_debug()));
        }
        if journal.done > journal.tiles {
            return Err(format!("it has {} of {} tiles", journal.done, journal.tiles));
        }
        Ok(journal)
    }

    /// Returns the bytes that [`Journal::parse`] reads.
    ///
    /// # Errors
    ///
    /// Those of `serde_json`.
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

impl Identity {
    /// Returns what differs from the input and the options of this run, in words; `None` if nothing
    /// does.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
        for (what, before, now) in [
            ("the input", self.input.clone(), now.input.clone()),
            ("the order of axes", format!("{:?}", self.axes), format!("{:?}", now.axes)),
            ("the input's array", self.array(), now.array()),
        ] {
            if before != now {
                return Some(format!("{what} was {before} and is {now}"));
            }
        }
        (self.stamp != now.stamp).then(|| "the input was changed since".into())
    }

    fn array(&self) -> String {
        let order = if self.fortran_order { "Fortran" } else { "C" };
        format!("{:?} '{}' in {order} order", self.shape, self.descr)
    }
}

#[cfg(test)]
mod tests;
