use super::*;
use crate::random::SplitMix64;

fn messages() -> Vec<Message> {
    vec![
        Message::hello(7, 3, u128::MAX - 5, 9, "a token"),
        Message::OtherVersion(7),
        Message::Admitted,
        Message::Refused { again: true, reason: "no room".into() },
        Message::Complete,
        Message::Enter { number: 5, call: Call::Barrier },
        Message::Enter { number: 1 << 60, call: Call::Broadcast(vec![7; MOST]) },
        Message::Enter { number: 6, call: Call::Agree { digest: u64::MAX, about: "plan".into() } },
        Message::Done { number: 8, payload: vec![1; MOST] },
        Message::Failed { number: 9, failure: Failure::Deadline, reason: "late".into() },
        Message::Failed { number: 9, failure: Failure::Peer, reason: "lost".into() },
        Message::Abort(String::new()),
        Message::Lost { rank: 4, reason: "it ended".into() },
        Message::Goodbye,
    ]
}

#[test]
fn every_message_comes_back_from_its_bytes_however_they_are_cut() {
    let stream: Vec<u8> = messages().iter().flat_map(Message::frame).collect();
    for piece in [1, 2, 3, 7, 4096, stream.len()] {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for bytes in stream.chunks(piece) {
            frames.add(bytes);
            while let Some(message) = frames.next().expect("frames") {
                found.push(message);
            }
        }
        assert_eq!(found, messages());
    }
}

#[test]
fn any_bytes_are_read_or_refused() {
    let mut random = SplitMix64(19);
    let stream: Vec<u8> = messages().iter().flat_map(Message::frame).collect();
    let mut read = 0;
    for _ in 0..20_000 {
        let length = random.below(200) as usize;
        let noise: Vec<u8> = (0..length).map(|_| random.draw() as u8).collect();
        read += check_frames(&noise);
        let at = random.below(stream.len() as u64) as usize;
        let mut damaged = stream[..200].to_vec();
        damaged[at % 200] = random.draw() as u8;
        read += check_frames(&damaged[at % 17..]);
    }
    assert!(read > 0);
}

#[test]
fn a_frame_that_is_too_long_is_refused_at_its_first_bytes() {
    let mut frames = Frames::default();
    frames.add(&[0xff, 0xff, 4]);
    assert_eq!(frames.next(), Err(Malformed));
}

#[test]
fn texts_are_cut_and_may_be_shown() {
    let long = Message::Abort("é".repeat(MOST));
    let mut frames = Frames::default();
    frames.add(&long.frame());
    frames.add(&Message::Abort("a\u{1b}[1mb".into()).frame());
    let Ok(Some(Message::Abort(text))) = frames.next() else { panic!("no text") };
    assert_eq!(text.chars().count(), MOST / 2);
    assert_eq!(frames.next(), Ok(Some(Message::Abort("a\\u{1b}[1mb".into()))));
}
