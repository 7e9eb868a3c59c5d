//! The journal of a result that is not complete: what it is the result of, and how much of it is on
//! the disk.
//!
//! It is JSON beside the result. Tiles are written in the order of their numbers, so a number says
//! which are there. Whoever reads a journal takes nothing in it for granted: a tile that it names
//! and that was never written would be a wrong element in a file that looks right.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// The format that this version writes and reads.
const FORMAT: &str = "warpstride out of core 1";
/// Most bytes of a journal. A path of 4096 bytes, each escaped, and 64 axes take half of this.
pub(super) const MOST_BYTES: usize = 64 << 10;

/// What a result is made of, and how. An interrupted run goes on only where all of it is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    /// The input's path.
    pub(super) input: String,
    /// Bytes of the input.
    pub(super) bytes: u64,
    /// When the input was last changed: seconds and nanoseconds since 1970.
    pub(super) modified: (u64, u32),
    /// The input's element type, as NumPy spells it.
    pub(super) descr: String,
    /// The input's extents.
    pub(super) shape: Vec<usize>,
    /// Whether the input is in Fortran order.
    pub(super) fortran_order: bool,
    /// The input's axes in the order of the result.
    pub(super) axes: Vec<usize>,
}

/// A journal as it lies on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    pub(super) format: String,
    pub(super) identity: Identity,
    /// Extents of a tile, as [`Tiling::extents`](super::tiling::Tiling::extents).
    pub(super) tile: Vec<usize>,
    /// The number of tiles.
    pub(super) tiles: u64,
    /// The number of tiles that are on the disk, from the first one on.
    pub(super) done: u64,
}

impl Journal {
    pub(super) fn new(identity: Identity, tile: &[usize], tiles: u64) -> Self {
        Self { format: FORMAT.into(), identity, tile: tile.into(), tiles, done: 0 }
    }

    /// Reads a journal.
    ///
    /// # Errors
    ///
    /// A sentence that says why this is not one.
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
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

impl Identity {
    /// Returns what differs from the input and the options of this run, in words; `None` if nothing
    /// does.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
        let differs = |what: &str, before: String, now: String| Some(format!("{what} was {before} and is {now}"));
        if self.input != now.input {
            differs("the input", self.input.clone(), now.input.clone())
        } else if self.axes != now.axes {
            differs("the order of axes", format!("{:?}", self.axes), format!("{:?}", now.axes))
        } else if (&self.descr, &self.shape, self.fortran_order) != (&now.descr, &now.shape, now.fortran_order) {
            differs("the input's array", self.array(), now.array())
        } else if (self.bytes, self.modified) != (now.bytes, now.modified) {
            Some("the input was changed since".into())
        } else {
            None
        }
    }

    fn array(&self) -> String {
        let order = if self.fortran_order { "Fortran" } else { "C" };
        format!("{:?} '{}' in {order} order", self.shape, self.descr)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn journal() -> Journal {
        let identity = Identity {
            input: "/data/in \"1\".npy".into(),
            bytes: 4128,
            modified: (1_790_000_000, 5),
            descr: "<f4".into(),
            shape: vec![10, 100],
            fortran_order: false,
            axes: vec![1, 0],
        };
        Journal { done: 3, ..Journal::new(identity, &[4, 100], 3) }
    }

    #[test]
    fn a_journal_is_read_as_it_was_written() {
        assert_eq!(Journal::parse(&journal().bytes()), Ok(journal()));
    }

    #[test]
    fn what_is_no_journal_is_refused() {
        let text = String::from_utf8(journal().bytes()).unwrap();
        let refused = |text: &str, why: &str| {
            let error = Journal::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused("", "EOF");
        refused("[1, 2]", "expected");
        refused(&text[..text.len() / 2], "EOF");
        refused(&text.replace("core 1", "core 2"), "format");
        refused(&text.replace("\"done\": 3", "\"done\": 4"), "4 of 3 tiles");
        refused(&text.replace("\"done\": 3", "\"done\": -1"), "invalid value");
        refused(&text.replace("\"done\"", "\"other\""), "unknown field");
        refused(&text.replace("\"done\": 3", "\"done\": 3, \"done\": 2"), "duplicate");
        refused(&format!("{text}{text}"), "trailing");
        refused(&" ".repeat(MOST_BYTES + 1), "more than");
        refused(&"[".repeat(MOST_BYTES), "expected");
    }

    #[test]
    fn differences_are_named() {
        let before = journal().identity;
        let differs = |now: Identity, what: &str| {
            let said = before.difference(&now).unwrap();
            assert!(said.contains(what), "{said}");
        };
        assert_eq!(before.difference(&before), None);
        differs(Identity { input: "/data/other.npy".into(), ..before.clone() }, "other.npy");
        differs(Identity { axes: vec![0, 1], ..before.clone() }, "[0, 1]");
        differs(Identity { descr: ">f4".into(), ..before.clone() }, ">f4");
        differs(Identity { fortran_order: true, ..before.clone() }, "Fortran order");
        differs(Identity { bytes: 4129, ..before.clone() }, "changed");
        differs(Identity { modified: (1_790_000_000, 6), ..before.clone() }, "changed");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Journal::parse(&bytes).is_err());
        }

        #[test]
        fn a_changed_journal_is_read_or_refused(
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..4),
        ) {
            let mut bytes = journal().bytes();
            for (at, byte, edit) in edits {
                let at = at.index(bytes.len());
                match edit {
                    0 => drop(bytes.remove(at)),
                    1 => bytes[at] = byte,
                    _ => bytes.insert(at, byte),
                }
            }
            if let Ok(journal) = Journal::parse(&bytes) {
                prop_assert!(journal.done <= journal.tiles);
                prop_assert_eq!(Journal::parse(&journal.bytes()), Ok(journal));
            }
        }
    }
}
