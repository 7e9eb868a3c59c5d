use serde_json::json;

use super::*;

#[test]
fn bars_are_as_wide_as_their_column() {
    let bar = |looks, part| shown(&bar(part), looks, None);
    assert_eq!(bar(Looks::Plain, 0.0), "        ");
    assert_eq!(bar(Looks::Plain, 0.001), "#       ");
    assert_eq!(bar(Looks::Plain, 0.5), "####    ");
    assert_eq!(bar(Looks::Blocks, 1.0), "████████");
    assert_eq!(bar(Looks::Colours, 0.2), "\u{1b}[33m██\u{1b}[0m      ");
    assert_eq!(bar(Looks::Colours, 0.6), "\u{1b}[31m█████\u{1b}[0m   ");
    assert_eq!(bar(Looks::Colours, 0.0), "        ");
}

#[test]
fn words_have_looks_or_marks_and_lines_are_wrapped() {
    let text = format!("{TITLE}A b{END}\n\n{STRONG}one {CODE}two{END} three{END} four\n{WHOLE}one two three");
    let plain = "# A b\n\n**one\n`two`\nthree**\nfour\none two three";
    assert_eq!(shown(&text, Looks::Plain, Some(8)), plain);
    let colours = "\u{1b}[1m\u{1b}[4mA b\u{1b}[0m\n\n\u{1b}[1mone \u{1b}[36mtwo\u{1b}[0m\u{1b}[1m three\u{1b}[0m four";
    assert!(shown(&text, Looks::Colours, None).starts_with(colours), "{}", shown(&text, Looks::Colours, None));
}

#[test]
fn a_document_stays_the_same_and_has_no_hidden_characters() {
    let document = json!({ "name": "a\u{1b}\u{9b}\u{7f}\u{202e}\"\\é" });
    let text = escaped(&format!("{document:#}"));
    assert!(!text.contains(|c| is_hidden(c) && c != '\n'), "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), document);
}
