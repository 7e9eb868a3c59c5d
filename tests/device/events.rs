//! Events: passing, polling, waiting, timing.

use warpstride::ErrorKind;
use warpstride::driver::EventHandle;
use warpstride::roofline::measure;

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::program::Program;

cases! {
    Any an_event_never_recorded_holds_nothing_back,
    Any polling_comes_to_an_end,
    Any time_needs_two_recorded_events,
    Any time_runs_forward,
    Any a_wait_outlives_its_event,
    Any a_wait_holds_a_record_that_was_there,
    SoftwareGpu("it has no times") the_software_gpu_has_no_times,
    SoftwareGpu("its events pass when something waits for them") an_event_that_is_not_passed_has_no_time,
    SoftwareGpu("it looks at every handle that it is given") dead_events_are_invalid_handles,
}

fn an_event_never_recorded_holds_nothing_back(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let (stream, event) = (program.stream().unwrap(), program.event().unwrap());
    assert!(event.query().unwrap());
    event.synchronize().unwrap();
    stream.wait(&event).unwrap();
    stream.synchronize().unwrap();
}

fn polling_comes_to_an_end(setup: &Setup) {
    setup.for_each_program(|program| {
        let (first, second) = (program.stream().unwrap(), program.stream().unwrap());
        let (handed, done) = (program.event().unwrap(), program.event().unwrap());
        let buffer = program.buffer(1000).unwrap();
        let host = program.pinned(1000).unwrap();
        first.fill(&buffer, 0, 6, 1000).unwrap();
        first.record(&handed).unwrap();
        second.wait(&handed).unwrap();
        second.d2h((&host, 0), (&buffer, 0), 1000).unwrap();
        second.record(&done).unwrap();
        while !done.query().unwrap() {
            std::thread::yield_now();
        }
        assert_eq!(host.get(), [6; 1000]);
    });
}

fn time_needs_two_recorded_events(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let (recorded, never) = (program.event().unwrap(), program.event().unwrap());
    stream.record(&recorded).unwrap();
    stream.synchronize().unwrap();
    for (start, end) in [(&recorded, &never), (&never, &recorded)] {
        refusal(start.ms_until(end)).of(ErrorKind::InvalidArgument).says("never recorded");
    }
}

fn time_runs_forward(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let (start, end) = (program.event().unwrap(), program.event().unwrap());
    let buffer = program.buffer(1 << 20).unwrap();
    stream.record(&start).unwrap();
    stream.fill(&buffer, 0, 1, 1 << 20).unwrap();
    stream.record(&end).unwrap();
    stream.synchronize().unwrap();
    let (forward, backward) = (start.ms_until(&end).unwrap(), end.ms_until(&start).unwrap());
    assert!(forward > 0.0 && forward < 10_000.0, "{forward} ms to fill a mebibyte");
    assert_eq!(start.ms_until(&start).unwrap(), 0.0);
    assert_eq!(backward, -forward);
}

fn a_wait_outlives_its_event(setup: &Setup) {
    setup.for_each_program(|program| {
        let (producer, consumer) = (program.stream().unwrap(), program.stream().unwrap());
        let (from, to) = (program.buffer(1 << 20).unwrap(), program.buffer(1 << 20).unwrap());
        let event = program.event().unwrap();
        producer.fill(&from, 0, 8, 1 << 20).unwrap();
        producer.record(&event).unwrap();
        consumer.wait(&event).unwrap();
        drop(event);
        consumer.d2d((&to, 0), (&from, 0), 1 << 20).unwrap();
        assert!(program.download(&to, &consumer).unwrap().iter().all(|&byte| byte == 8));
    });
}

/// Recording again moves the event, but not the waits that exist: the consumer sees at least the
/// first value.
fn a_wait_holds_a_record_that_was_there(setup: &Setup) {
    setup.for_each_program(|program| {
        let (producer, consumer) = (program.stream().unwrap(), program.stream().unwrap());
        let (from, to) = (program.buffer(100).unwrap(), program.buffer(100).unwrap());
        let event = program.event().unwrap();
        producer.fill(&from, 0, 1, 100).unwrap();
        producer.record(&event).unwrap();
        consumer.wait(&event).unwrap();
        producer.wait(&event).unwrap();
        producer.record(&event).unwrap();
        consumer.d2d((&to, 0), (&from, 0), 100).unwrap();
        assert_eq!(program.download(&to, &consumer).unwrap(), [1; 100]);
        producer.synchronize().unwrap();
        assert!(event.query().unwrap());
    });
}

fn the_software_gpu_has_no_times(setup: &Setup) {
    let device = setup.device();
    let timed = measure::time(&device, device.default_stream(), 3, || panic!("nothing is launched for it"));
    refusal(timed).of(ErrorKind::Unavailable);
}

fn an_event_that_is_not_passed_has_no_time(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let (start, end) = (program.event().unwrap(), program.event().unwrap());
    stream.record(&start).unwrap();
    stream.record(&end).unwrap();
    start.synchronize().unwrap();
    refusal(start.ms_until(&end)).of(ErrorKind::InvalidArgument).says("not passed yet");
}

fn dead_events_are_invalid_handles(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let dead = program.event().unwrap().handle;
    for handle in [dead, EventHandle(0), EventHandle(u64::MAX)] {
        // SAFETY: the software GPU looks before it uses a handle.
        refusal(unsafe { setup.driver.event_query(handle) }).of(ErrorKind::InvalidHandle);
        // SAFETY: as above.
        refusal(unsafe { setup.driver.event_destroy(handle) }).of(ErrorKind::InvalidHandle);
    }
}
