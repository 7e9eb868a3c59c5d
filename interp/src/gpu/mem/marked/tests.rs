use super::*;

#[test]
fn bytes_are_told_apart() {
    let mut written = Marked::none(300);
    assert!(!written.holds(0, 1) && written.holds(0, 0));
    written.add(60, 70);
    for (offset, bytes, held) in [(60, 70, true), (59, 2, false), (129, 1, true), (129, 2, false), (64, 64, true)] {
        assert_eq!(written.holds(offset, bytes), held, "{bytes} bytes at {offset}");
    }
    written.remove(61, 67);
    for (offset, bytes, held) in [(60, 1, true), (61, 1, false), (127, 1, false), (128, 2, true)] {
        assert_eq!(written.holds(offset, bytes), held, "{bytes} bytes at {offset}");
    }
    let read = Marked::none(300);
    assert_eq!((written.without(&read), read.without(&written)), (3, 0));
    read.add(128, 172);
    assert_eq!((written.without(&read), read.without(&written)), (1, 170));
    written.add(0, 300);
    assert!(written.holds(0, 300) && written.is_all());
    assert_eq!((written.without(&read), read.without(&written)), (128, 0));
    assert_eq!(written.without(&Marked::none(300)), 300);
    written.clear();
    assert!(!written.holds(60, 1) && !written.is_all());
}
