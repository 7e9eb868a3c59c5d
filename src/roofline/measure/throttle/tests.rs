use super::*;

/// Nothing sleeps here, and no machine is so busy that the test takes a good part of this.
const ALL: Duration = Duration::from_secs(36_000);
const LOW: Clocks = Clocks { sm_mhz: 1200, sm_max_mhz: 1980, memory_mhz: 2619, slowed: false, held: false };

/// How often a measurement pauses that finds these clocks every time, and the clocks that it
/// then reports.
fn measured(gpu: &str, all: Duration, clocks: Clocks) -> (usize, Clocks) {
    let (mut back_off, mut pauses) = (BackOff::new(gpu, all), 0);
    loop {
        let mut clocks = Clocks { held: are_held(gpu), ..clocks };
        if back_off.pause(&mut clocks).is_none() {
            return (pauses, clocks);
        }
        pauses += 1;
    }
}

#[test]
fn clocks_that_are_set_low_are_waited_for_once() {
    let (pauses, clocks) = measured("set", ALL, LOW);
    assert!(pauses > 5 && clocks.held && !clocks.are_throttled(), "{pauses} {clocks:?}");
    let (pauses, clocks) = measured("set", ALL, LOW);
    assert!(pauses == 0 && clocks.held && !clocks.are_throttled(), "{pauses} {clocks:?}");
    // Heat counts at any clock.
    assert!(measured("set", ALL, Clocks { slowed: true, ..LOW }).1.are_throttled());
    assert!(measured("another", ALL, LOW).0 > 5);
}

#[test]
fn a_device_that_does_not_cool_is_waited_for_once_and_stays_throttled() {
    let hot = Clocks { slowed: true, ..LOW };
    assert!(measured("hot", ALL, hot).0 > 5);
    for clocks in [hot, LOW] {
        let (pauses, clocks) = measured("hot", ALL, clocks);
        assert!(pauses == 0 && clocks.are_throttled(), "{pauses} {clocks:?}");
    }
    // Once it is well, it is worth waiting for again.
    let high = Clocks { sm_mhz: 1980, ..LOW };
    assert_eq!(measured("hot", ALL, high), (0, high));
    assert!(measured("hot", ALL, hot).0 > 5);
}

#[test]
fn a_measurement_without_time_to_wait_says_nothing_of_the_next() {
    let (pauses, clocks) = measured("long", PAUSE / 2, LOW);
    assert!(pauses == 0 && clocks.are_throttled());
    assert!(measured("long", ALL, LOW).0 > 5);
}
