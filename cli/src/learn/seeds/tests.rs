use super::super::lessons;
use super::*;

#[test]
fn every_text_that_a_seed_changes_is_there() {
    for lesson in lessons::all().iter().filter(|lesson| lesson.has(SEEDS)) {
        let files: Vec<_> = lesson.given().chain(lesson.solution()).map(|(_, text)| text).collect();
        let Seeds { groups } = toml::from_str(&lesson.text(SEEDS)).expect("seeds");
        for Group { from, to } in groups {
            for text in &from {
                let is_there =
                    files.iter().any(|file| file.contains(text)) || lesson.text("answers.toml").contains(text);
                assert!(is_there, "{}: {text}", lesson.name);
            }
            assert!(to.iter().all(|row| row.len() == from.len()), "{}: {from:?}", lesson.name);
        }
    }
}

#[test]
fn seeds_draw_every_row_and_the_same_one_again() {
    let seeds = "[[groups]]\nfrom = ['a', 'b']\nto = [['c', 'd'], ['e', 'f']]\n";
    let of = |seed: &str| seeded("a b", seeds, "lesson", seed);
    let all: std::collections::BTreeSet<_> = (0..40).map(|seed| of(&seed.to_string())).collect();
    assert_eq!(all.into_iter().collect::<Vec<_>>(), ["a b", "c d", "e f"]);
    assert_eq!(of("ada"), of("ada"));
}
