use super::*;

#[test]
fn a_place_names_the_keys_that_lead_on() {
    assert_eq!(place(0, 9, 9, false), None);
    assert_eq!(place(0, 9, 20, true).as_deref(), Some("lines 1 to 9 of 20; more: space, Enter, Down, PgDn"));
    let both = "lines 10 to 18 of 20; more: space, Enter, Down, PgDn; back: b, Up, PgUp";
    assert_eq!(place(9, 18, 20, true).as_deref(), Some(both));
    assert_eq!(place(18, 20, 20, false).as_deref(), Some("lines 19 to 20 of 20; back: b, Up, PgUp"));
}

#[test]
fn parts_follow_each_other_and_back() {
    let mut text = Scroll::new("a");
    text.forward();
    text.back();
    assert_eq!(text.begins, [0], "there is one part");
    text.next = Some(7);
    text.forward();
    assert_eq!(text.begins, [0, 7]);
    text.back();
    assert_eq!(text.begins, [0]);
}

#[test]
fn a_part_begins_in_the_same_paragraph_of_a_terminal_of_other_columns() {
    let long = "word ".repeat(40);
    let mut text = Scroll::new(format!("{long}\n\n{long}\nlast"));
    text.resize(50);
    // 10 words a line: the second paragraph has the lines 5 to 8.
    (text.begins, text.next) = (vec![0, 5, 7], Some(9));
    text.resize(25);
    assert_eq!((&text.begins, text.next), (&vec![0, 9, 13], Some(17)));
    text.resize(50);
    assert_eq!((&text.begins, text.next), (&vec![0, 5, 7], Some(9)));
    text.resize(500);
    assert_eq!((&text.begins, text.next), (&vec![0, 2], Some(3)));
}

#[test]
fn a_long_line_takes_several_rows() {
    assert_eq!([0, 80, 81, 161].map(|columns| rows(&"x".repeat(columns), 80)), [1, 1, 2, 3]);
    assert_eq!(rows("\u{1b}[1mbold\u{1b}[0m", 4), 1);
}
