//! Lists of ranks in sentences.

/// The most ranks and ranges of ranks that a sentence names.
const MOST: usize = 16;

/// Names ranks, which are in ascending order: `rank 2`, `ranks 2, 3 and 5`, `ranks 1 to 63`.
pub(super) fn named(ranks: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let mut items = Vec::new();
    for (first, last) in runs {
        match last - first {
            0 => items.push((1, first.to_string())),
            1 => items.extend([(1, first.to_string()), (1, last.to_string())]),
            more => items.push((more + 1, format!("{first} to {last}"))),
        }
    }
    let left: usize = items.iter().skip(MOST).map(|(count, _)| count).sum();
    items.truncate(MOST);
    let mut names: Vec<String> = items.into_iter().map(|(_, name)| name).collect();
    if left > 0 {
        names.push(format!("{left} more"));
    }
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    match names.split_last() {
        Some((last, [])) => format!("{word} {last}"),
        Some((last, names)) => format!("{word} {} and {last}", names.join(", ")),
        None => "no rank".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn ranks_are_named_as_a_person_would() {
        let cases: [(&[usize], &str); 5] = [
            (&[2], "rank 2"),
            (&[2, 5], "ranks 2 and 5"),
            (&[2, 3], "ranks 2 and 3"),
            (&[1, 2, 3, 7], "ranks 1 to 3 and 7"),
            (&[0, 2, 4, 5], "ranks 0, 2, 4 and 5"),
        ];
        for (ranks, sentence) in cases {
            assert_eq!(named(ranks), sentence);
        }
        let odd: Vec<_> = (0..20).map(|rank| 2 * rank).collect();
        assert!(named(&odd).ends_with(", 30 and 4 more"), "{}", named(&odd));
    }
}
