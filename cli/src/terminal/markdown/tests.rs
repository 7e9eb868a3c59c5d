use super::*;

#[test]
fn a_page_has_a_line_for_each_paragraph_with_its_looks() {
    let page = "# A *b*\n\none\n`two` [three](x)\n\n> **q** r\n>\n> s\n\n- a\n  b\n- [c](c)\n\n1. d\n2. e\n\n```sh\nrun --x\n```\n\n![a picture](p)\n";
    let expected = [
        &format!("{TITLE}A {EMPHASIS}b{END}"),
        "",
        &format!("one {CODE}two{END} three (at x)"),
        "",
        &format!("> {STRONG}q{END} r"),
        ">",
        "> s",
        "",
        "- a b",
        "- c (at c)",
        "",
        "1. d",
        "2. e",
        "",
        &format!("{WHOLE}  {PROGRAM}run --x{END}"),
        "",
        "(picture: at p)",
        "a picture",
    ];
    let text = rendered(page, &|place| format!("at {place}"));
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_table_is_drawn() {
    let text = rendered("| a | b |\n|---|--:|\n| `x_y` | **1** |\n", &str::to_owned);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!((lines[1], lines[3]), ("a     b", "x_y   1"), "{text}");
}
