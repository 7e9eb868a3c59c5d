use super::*;

#[test]
fn keys_of_several_bytes_are_one_key_each() {
    let keys = |bytes: &[u8]| {
        let mut last = Last::Whole;
        bytes.iter().filter_map(|&byte| last.takes(byte)).collect::<Vec<_>>()
    };
    assert_eq!(keys(b"\x1b[Aq\x1b[B\x1bOB"), [UP, b'q', DOWN, DOWN], "arrows");
    assert_eq!(keys(b"\x1b[5~\x1b[6~\x1b[3~"), [UP, DOWN, ESCAPE], "Page Up, Page Down and Delete");
    assert_eq!(keys(b"\x1b[1;5Ch"), *b"\x1bh", "an arrow with Ctrl");
    assert_eq!(keys(b"\x1bOqn"), *b"\x1bn", "a key of the keypad");
    assert_eq!(keys("\u{e9}q".as_bytes()), [0xc3, b'q'], "a letter of two bytes");
    assert_eq!(keys(b"\x1bq\x1b\x1b[Bh"), [b'q', DOWN, b'h'], "the key Escape itself");
}
#[test]
fn keys_before_the_work_wait_and_those_during_it_end_the_command_alone() {
    let queue = Queue::default();
    let next = || queue.within(Duration::ZERO);
    assert!(!queue.press(b'h') && !queue.press(b'n') && !queue.begin_work());
    assert!(!queue.press(b'a') && queue.press(b'q') && queue.press(END_OF_INPUT));
    queue.lock().is_busy = false;
    assert_eq!([next(), next(), next()], [Some(b'h'), Some(b'n'), None]);
    assert!(!queue.press(b'h') && !queue.press(b'q') && queue.begin_work());
    let closed = Queue::default();
    closed.close();
    assert_eq!(closed.within(Duration::MAX), Some(END_OF_INPUT));
}

#[test]
fn a_key_that_ends_the_command_is_not_lost_as_the_work_begins() {
    for _ in 0..2000 {
        let queue = Queue::default();
        let (by_key, by_work) = thread::scope(|scope| {
            let press = scope.spawn(|| queue.press(b'q'));
            let by_work = queue.begin_work();
            (press.join().expect("a key"), by_work)
        });
        assert!(by_key != by_work);
    }
}
