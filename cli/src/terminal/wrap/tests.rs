use super::*;

#[track_caller]
fn is_wrapped(line: &str, width: usize, expected: &[&str]) {
    assert_eq!(wrapped(line, Some(width)).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn lines_are_wrapped_below_their_text() {
    is_wrapped("one two three", 13, &["one two three"]);
    is_wrapped("one two three", 12, &["one two", "three"]);
    is_wrapped("  one two three", 9, &["  one two", "  three"]);
    is_wrapped("> one two", 6, &["> one", "> two"]);
    is_wrapped("- one two", 6, &["- one", "  two"]);
    is_wrapped("10. one two", 9, &["10. one", "    two"]);
    is_wrapped("- [x] --one-two", 10, &["- [x]", "  --one-two"]);
    is_wrapped("a  what a is, and more", 16, &["a  what a is,", "   and more"]);
    is_wrapped("\u{1b}[1mone\u{1b}[0m two", 7, &["\u{1b}[1mone\u{1b}[0m two"]);
    is_wrapped("全角 全角", 8, &["全角", "全角"]);
    is_wrapped("a\tb\t\tc", 25, &["a       b               c"]);
    is_wrapped("全角\tone two", 14, &["全角    one", "two"]);
}

#[test]
fn a_path_stays_whole() {
    is_wrapped("a name  a-very-long-word-x", 24, &["a name", "    a-very-long-word-x"]);
    is_wrapped("see /a/very/long-path now", 10, &["see", "/a/very/long-path", "now"]);
    assert_eq!(wrapped("one two three", None), "one two three");
}
