use super::*;

fn found(line: u32, instruction: &str) -> Found {
    Found {
        rule: "memcheck/oob".into(),
        is_note: false,
        text: "stores too far".into(),
        file: Some("/src/a b.cu".into()),
        line: Some(line),
        kernel: Some("k".into()),
        instruction: Some(instruction.into()),
    }
}

#[test]
fn a_fingerprint_stays_where_lines_move_and_differs_between_findings() {
    let prints = |found: &[Found]| {
        let log = log(found, Path::new("/src"));
        let results = log["runs"][0]["results"].as_array().expect("a list").clone();
        results.iter().map(|result| result["partialFingerprints"][FINGERPRINT].clone()).collect::<Vec<_>>()
    };
    let before = prints(&[found(3, "st"), found(3, "st"), found(9, "ld")]);
    assert_eq!(before, prints(&[found(4, "st"), found(4, "st"), found(10, "ld")]));
    assert!(before[0] != before[1] && before[1] != before[2] && before[0] != before[2], "{before:?}");
}

#[test]
fn a_file_is_a_uri() {
    let folder = Path::new("/home/me");
    assert_eq!(uri("/home/me/a b.cu", folder), "a%20b.cu");
    assert_eq!(uri("/elsewhere/k.cu", folder), "file:///elsewhere/k.cu");
    assert_eq!(uri("sub/k:1.cu", folder), "sub/k%3A1.cu");
}
