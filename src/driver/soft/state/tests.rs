use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::schedule::Next;
use super::*;

/// A copy that stayed queued after a panic would write memory that its owner took back when the
/// wait unwound.
#[test]
fn a_panic_fails_the_device_and_drops_what_is_queued() {
    let mut state = State::new(0);
    state.schedule.open(1);
    let fill = |value| Arc::new(Action::Fill { dst: 0, value, bytes: 1 });
    for value in 0..2 {
        state.push(StreamHandle(1), fill(value));
    }
    let goal = state.schedule.everything();
    let Ok(Next::Work(work)) = state.schedule.next(&goal) else { panic!("nothing is queued") };
    let run = AssertUnwindSafe(|| state.run(&work, |_| panic!("as work may")));
    catch_unwind(run).unwrap_err();
    assert_eq!(state.check().unwrap_err().kind(), ErrorKind::Driver);
    let goal = state.schedule.everything();
    assert!(matches!(state.schedule.next(&goal), Ok(Next::Reached)));
}
