//! The combinations for which a family has no entry, with reasons.

use super::entries::{Family, Key, LINES, Value};

/// Combinations without an entry: all with one of these values along each of these axes.
pub(super) struct Gap {
    pub(super) values: &'static [&'static [Value]],
    pub(super) reason: &'static str,
}

impl Gap {
    fn has(&self, key: Key) -> bool {
        let is_one = |value: &Value| key.0 & value.axis == value.key.0;
        self.values.iter().all(|axis| axis.iter().any(is_one))
    }
}

impl Family {
    /// Says why the family has no entry with this key; `None` if it has one, or if the key fits no
    /// family.
    pub fn gap(self, key: Key) -> Option<&'static str> {
        LINES[self.0].gaps.iter().find(|gap| gap.has(key)).map(|gap| gap.reason)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{CAST, DType, INTERLEAVE, Index, PATCH, WIDTHS};
    use super::*;

    /// Returns all values of the axes of a family's line, by the bits of their axes.
    fn axes(family: Family) -> BTreeMap<u32, Vec<u32>> {
        let line = &LINES[family.0];
        let all: &[&[u32]] = &[
            &WIDTHS.map(|width| Key::width(width).0),
            &[Index::Narrow, Index::Wide].map(|index| Key::index(index).0),
            &[0, 1 << 31],
        ];
        let mut axes = BTreeMap::new();
        for product in line.products {
            for value in product.iter().copied().flatten() {
                axes.entry(value.axis).or_insert_with(Vec::new).push(value.key.0);
            }
        }
        for value in line.gaps.iter().flat_map(|gap| gap.values.iter().copied().flatten()) {
            // A value that no entry names is the default.
            axes.entry(value.axis).or_insert_with(|| vec![0]).push(value.key.0);
        }
        for (axis, values) in &mut axes {
            let whole = all.iter().find(|whole| whole.iter().fold(0, |bits, value| bits | value) == *axis);
            values.extend(whole.copied().unwrap_or_default());
            values.sort_unstable();
            values.dedup();
        }
        axes
    }

    #[test]
    fn every_combination_is_an_entry_or_a_gap_with_its_reason() {
        for family in Family::all() {
            let mut keys = vec![0];
            for values in axes(family).values() {
                keys = keys.iter().flat_map(|key| values.iter().map(move |value| key | value)).collect();
            }
            let mut entries = 0;
            for key in keys.iter().copied().map(Key) {
                let (entry, gap) = (family.find(key), family.gap(key));
                assert!(entry.is_some() != gap.is_some(), "{} {key:?}: {entry:?} and {gap:?}", family.stem());
                entries += usize::from(entry.is_some());
            }
            assert_eq!(entries, family.entries().len(), "{}", family.stem());
            for gap in LINES[family.0].gaps {
                assert!(
                    keys.iter().any(|&key| gap.has(Key(key))),
                    "{}: no gap is because {}",
                    family.stem(),
                    gap.reason
                );
            }
        }
    }

    #[test]
    fn a_gap_says_why() {
        assert_eq!(INTERLEAVE.gap(Key::width(4)), None);
        assert!(INTERLEAVE.gap(Key::width(16)).is_some_and(|why| why.contains("fields of 16 bytes")));
        assert!(PATCH.gap(Key::width(1).and(Key::index(Index::Wide))).is_some_and(|why| why.contains("not small")));
        assert!(CAST.gap(Key::types(DType::U8, DType::I8)).is_some_and(|why| why.contains("the same bits")));
    }
}
