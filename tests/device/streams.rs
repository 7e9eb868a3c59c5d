//! Order on one stream and between streams.

use std::sync::Arc;

use warpstride::device::Device;
use warpstride::driver::StreamHandle;
use warpstride::roofline::measure;
use warpstride::{ErrorKind, ops};

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::program::Program;

cases! {
    Any a_diamond_of_streams_comes_together,
    Any work_of_a_destroyed_stream_still_runs,
    Any many_threads_may_call,
    Any a_stream_of_another_owner_is_used_and_not_destroyed,
    SoftwareGpu("it looks at every handle that it is given") dead_and_foreign_streams_are_invalid_handles,
}

/// Operations, buffers and measurements take a stream that another owner made and destroys.
fn a_stream_of_another_owner_is_used_and_not_destroyed(setup: &Setup) {
    let driver = &setup.driver;
    let raw = driver.stream_create().unwrap();
    let device = Device::with_driver(Arc::clone(driver)).unwrap();
    for _ in 0..2 {
        // SAFETY: the stream is of this driver, and is destroyed below, after its buffers.
        let stream = unsafe { device.stream_from_raw(raw) }.unwrap();
        assert_eq!(stream.handle(), raw);
        let source = device.upload(&[7_u8; 100]).unwrap();
        let mut middle = device.zeros::<u8>(100).unwrap();
        ops::copy_into(source.view(&[100]).unwrap(), middle.view_mut(&[100]).unwrap(), &stream).unwrap();
        let mut result = device.zeros::<u8>(100).unwrap();
        let mut launches = 0;
        let us = measure::launch_us(&stream, || {
            launches += 1;
            ops::copy_into(middle.view(&[100])?, result.view_mut(&[100])?, &stream)
        });
        // 200 launches, nine times, after three to warm up.
        assert!(us.unwrap() > 0.0 && launches == 1803, "{launches} launches");
        assert_eq!(result.download().unwrap(), [7; 100]);
    }
    device.synchronize().unwrap();
    drop(device);
    // SAFETY: the stream is live, since it was not destroyed, and nothing uses it.
    unsafe { driver.stream_synchronize(raw) }.unwrap();
    // SAFETY: as above.
    unsafe { driver.stream_destroy(raw) }.unwrap();
}

fn a_diamond_of_streams_comes_together(setup: &Setup) {
    setup.for_each_program(|program| {
        let [top, left, right, bottom] = [(); 4].map(|()| program.stream().unwrap());
        let [start, left_done, right_done] = [(); 3].map(|()| program.event().unwrap());
        let buffer = program.buffer(3000).unwrap();
        top.fill(&buffer, 0, 9, 3000).unwrap();
        top.record(&start).unwrap();
        for (stream, done, at) in [(&left, &left_done, 0), (&right, &right_done, 1000)] {
            stream.wait(&start).unwrap();
            stream.fill(&buffer, at, 1 + (at / 1000) as u8, 1000).unwrap();
            stream.record(done).unwrap();
        }
        bottom.wait(&left_done).unwrap();
        bottom.wait(&right_done).unwrap();
        let expected = [[1; 1000], [2; 1000], [9; 1000]].concat();
        assert_eq!(program.download(&buffer, &bottom).unwrap(), expected);
    });
}

fn work_of_a_destroyed_stream_still_runs(setup: &Setup) {
    setup.for_each_program(|program| {
        let (stream, event) = (program.stream().unwrap(), program.event().unwrap());
        let buffer = program.buffer(1 << 20).unwrap();
        stream.fill(&buffer, 0, 5, 1 << 20).unwrap();
        stream.record(&event).unwrap();
        drop(stream);
        event.synchronize().unwrap();
        let other = program.stream().unwrap();
        assert!(program.download(&buffer, &other).unwrap().iter().all(|&byte| byte == 5));
    });
}

fn many_threads_may_call(setup: &Setup) {
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            scope.spawn(move || {
                let program = Program::new(&setup.driver);
                let stream = program.stream().unwrap();
                for round in 0..20_u8 {
                    let bytes = vec![thread * 20 + round; 999];
                    let buffer = program.upload(&bytes).unwrap();
                    assert_eq!(program.download(&buffer, &stream).unwrap(), bytes);
                }
            });
        }
    });
}

fn dead_and_foreign_streams_are_invalid_handles(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let dead = program.stream().unwrap().handle;
    setup.for_each_seed(|other| {
        let other = Program::new(other);
        let foreign = other.stream().unwrap();
        for handle in [dead, foreign.handle, StreamHandle(0), StreamHandle(u64::MAX)] {
            // SAFETY: the software GPU looks before it uses a handle.
            refusal(unsafe { setup.driver.stream_synchronize(handle) }).of(ErrorKind::InvalidHandle);
            // SAFETY: as above.
            refusal(unsafe { setup.driver.stream_destroy(handle) }).of(ErrorKind::InvalidHandle);
        }
    });
}
