use super::*;

#[test]
fn hidden_characters_become_escapes() {
    let text = "a\u{1b}]0;x\u{7}\r\u{9b}\u{7f}\u{202e}\u{ffff}\tb\r\nc\u{e9}\u{200d}\u{10ffff}";
    let escaped = "a\\u{1b}]0;x\\u{7}\\r\\u{9b}\\u{7f}\\u{202e}\\u{ffff}";
    assert_eq!(printable(text), format!("{escaped}\tb\nc\u{e9}\u{200d}\u{10ffff}"));
    assert_eq!(printable_line(text), format!("{escaped}\\tb\\r\\nc\u{e9}\u{200d}\u{10ffff}"));
    assert_eq!(printable_line(&printable_line(text)), printable_line(text));
}

#[test]
fn one_thing_is_not_many() {
    let counted = |number: i64, thing| counted(number, thing).to_string();
    assert_eq!(counted(1, "byte"), "1 byte");
    assert_eq!(counted(11, "byte"), "11 bytes");
    assert_eq!(counted(-1, "byte"), "-1 bytes");
    let things = ["byte", "axis", "index", "launch", "access", "time", "box"].map(|thing| counted(2, thing));
    assert_eq!(things, ["2 bytes", "2 axes", "2 indices", "2 launches", "2 accesses", "2 times", "2 boxes"]);
    assert_eq!(counted(0, "block"), "0 blocks");
}

#[test]
fn an_error_is_one_word() {
    assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
}
