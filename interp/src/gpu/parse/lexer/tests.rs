use super::*;

fn kinds(text: &str) -> Vec<Kind> {
    tokens(text).into_iter().map(|token| token.kind).collect()
}

#[test]
fn numbers_in_every_notation() {
    let expected = [42, 42, 42, 42, 0, u64::MAX].map(Kind::Integer);
    assert_eq!(kinds("42 0x2A 052 0b101010 0 0xffffffffffffffff"), expected);
    assert_eq!(kinds("42U 0x2AU 052U 0U 0u"), [42, 42, 42, 0, 0].map(Kind::Unsigned));
    assert_eq!(kinds(".5 1.5e-1 1.5e+1 1."), [0.5_f64, 0.15, 15.0, 1.0].map(|value| Kind::F64(value.to_bits())));
    assert_eq!(kinds("0f3F800000 0d3FF0000000000000"), [Kind::F32(0x3f80_0000), Kind::F64(0x3ff0 << 48)]);
    assert_eq!(kinds("1.0 08 0fXY 99999999999999999999")[0], Kind::F64(0x3ff0 << 48));
    assert_eq!(kinds("1.0 08 0fXY 99999999999999999999")[1..], [Kind::Unknown; 3]);
}

#[test]
fn words_keep_their_dots_and_double_colons() {
    let text = "mad.lo.s32 %tid.x $L__BB0_2: ld.shared::cta.b32 ld.L2::128B.b32";
    let words: Vec<&str> =
        tokens(text).iter().map(|token| &text[token.span.start as usize..token.span.end as usize]).collect();
    assert_eq!(words, ["mad.lo.s32", "%tid.x", "$L__BB0_2", ":", "ld.shared::cta.b32", "ld.L2::128B.b32"]);
}

#[test]
fn a_word_that_begins_with_a_dot_ends_before_the_next() {
    let text = ".reg.v4.f32 v; @@DWARF .byte 0x11\n.shared.align 4";
    let words: Vec<&str> =
        tokens(text).iter().map(|token| &text[token.span.start as usize..token.span.end as usize]).collect();
    assert_eq!(words, [".reg", ".v4", ".f32", "v", ";", ".shared", ".align", "4"]);
}

#[test]
fn strings_have_escapes() {
    let text = r#""a\"b" "c\\" "uml\303\244ut" "back\slash" "#;
    let strings = tokens(text);
    assert!(strings.iter().all(|token| token.kind == Kind::Text), "{strings:?}");
    let meanings = strings.iter().map(|token| meaning(&text[token.span.start as usize..token.span.end as usize]));
    assert_eq!(meanings.collect::<Vec<_>>(), ["a\"b", "c\\", "uml\u{e4}ut", "back\\slash"]);
    assert_eq!(meaning(r#""\477\12\377""#), "\\477\\12\u{fffd}");
}

#[test]
fn lines_count_through_comments() {
    let lines: Vec<u32> = tokens("a // b\nc /* d\n\n*/ e \"f\" \u{e9}").iter().map(|token| token.span.line).collect();
    assert_eq!(lines, [1, 2, 4, 4, 4]);
}
