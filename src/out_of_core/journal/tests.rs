use proptest::prelude::*;

use super::super::tiling::Permute;
use super::super::{FILES, SLOTS};
use super::*;

fn stamp() -> Stamp {
    Stamp { bytes: 4128, modified: (1_790_000_000, 5), changed: (1_790_000_001, 7), inode: 12 }
}

fn journal() -> Journal {
    let identity = Identity {
        input: "/data/in \"1\".npy".into(),
        stamp: stamp(),
        descr: "<f4".into(),
        shape: vec![10, 100],
        fortran_order: false,
        axes: vec![1, 0],
    };
    let permute = Permute::new(&[10, 100], &[1, 0], false).unwrap();
    let tiling = Tiling::new(permute, 4, SLOTS, 48_000, FILES).unwrap();
    Journal { done: 3, tiles: 3, ..Journal::new(identity, 48_000, &tiling) }
}

#[test]
fn a_journal_is_read_as_it_was_written() {
    let journal = journal();
    assert_eq!(Journal::parse(&journal.bytes().unwrap()), Ok(journal.clone()));
}

#[test]
fn other_bytes_are_refused() {
    let text = String::from_utf8(journal().bytes().unwrap()).unwrap();
    let refused = |text: &str, why: &str| {
        let error = Journal::parse(text.as_bytes()).unwrap_err();
        assert!(error.contains(why), "{error}");
    };
    refused("", "EOF");
    refused("[1, 2]", "expected");
    refused(&text[..text.len() / 2], "EOF");
    refused(&text.replace("core 2", "core 1"), "format");
    refused(&text.replace("\"done\": 3", "\"done\": 4"), "4 of 3 tiles");
    refused(&text.replace("\"done\": 3", "\"done\": -1"), "invalid value");
    refused(&text.replace("\"done\"", "\"other\""), "unknown field");
    refused(&text.replace("\"done\": 3", "\"done\": 3, \"done\": 2"), "duplicate");
    refused(&format!("{text}{text}"), "trailing");
    refused(&" ".repeat(MOST_BYTES + 1), "more than");
    refused(&"[".repeat(MOST_BYTES), "expected");
}

#[test]
fn runs_are_told_apart() {
    let (one, other) = (journal(), journal());
    assert_ne!(one.mark(128), other.mark(128));
    assert_eq!(one.mark(64).len(), 64);
    assert!(one.mark(64).ends_with(&[0]), "all of the number is within the shortest header");
    assert!(is_mark(&one.mark(64)) && !is_mark(b"\x93NUMPY"));
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
    for stamp in [
        Stamp { bytes: 4129, ..stamp() },
        Stamp { modified: (1_790_000_000, 6), ..stamp() },
        Stamp { changed: (1_790_000_001, 8), ..stamp() },
        Stamp { inode: 13, ..stamp() },
    ] {
        differs(Identity { stamp, ..before.clone() }, "changed");
    }
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
        let mut bytes = journal().bytes().unwrap();
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
            prop_assert_eq!(Journal::parse(&journal.bytes().unwrap()), Ok(journal));
        }
    }
}
