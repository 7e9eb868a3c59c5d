//! The software GPU runs late: a forgotten wait shows.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::backend::{Setup, cases};
use crate::program::{Program, Stream};

cases! {
    SoftwareGpu("its work runs as late as it may, in an order drawn from a seed") an_upload_reads_its_source_when_it_runs,
    SoftwareGpu("its work runs as late as it may, in an order drawn from a seed") synchronising_another_stream_is_not_enough,
    SoftwareGpu("its work runs as late as it may, in an order drawn from a seed") seeds_give_every_order_that_is_legal_and_no_other,
    SoftwareGpu("its work runs as late as it may, in an order drawn from a seed") freeing_runs_what_is_queued,
    SoftwareGpu("its work runs as late as it may, in an order drawn from a seed") polling_the_wrong_thing_does_not_help,
}

fn an_upload_reads_its_source_when_it_runs(setup: &Setup) {
    setup.for_each_stream(|program, stream| {
        let (host, buffer) = (program.pinned(64).unwrap(), program.buffer(64).unwrap());
        host.set(&[1; 64]);
        stream.h2d((&buffer, 0), (&host, 0), 64).unwrap();
        // This is the tested mistake: the source is used again before the copy has run.
        host.set(&[2; 64]);
        assert_eq!(program.download(&buffer, &stream).unwrap(), [2; 64]);
    });
}

fn synchronising_another_stream_is_not_enough(setup: &Setup) {
    let seen = Mutex::new(BTreeSet::new());
    setup.for_each_program(|program| {
        let (used, other) = (program.stream().unwrap(), program.stream().unwrap());
        let buffer = program.upload(&[9; 8]).unwrap();
        let host = program.pinned(8).unwrap();
        used.d2h((&host, 0), (&buffer, 0), 8).unwrap();
        other.synchronize().unwrap();
        seen.lock().unwrap().insert(host.get()[0]);
        used.synchronize().unwrap();
        assert_eq!(host.get(), [9; 8]);
    });
    assert!(seen.into_inner().unwrap().contains(&0), "some seed shows that it has not happened");
}

/// Two streams append to a log in three pieces each, and the log shows every interleaving of the
/// pieces.
fn seeds_give_every_order_that_is_legal_and_no_other(setup: &Setup) {
    let seen = Mutex::new(BTreeSet::new());
    setup.for_each_program(|program| {
        let (left, right, joined) = (program.stream().unwrap(), program.stream().unwrap(), program.stream().unwrap());
        let log = program.upload(&[0; 3]).unwrap();
        let buffers = [(); 2].map(|()| program.buffer(2).unwrap());
        // Shifts the log by one, through a buffer of its own, and writes `name` in front.
        let append = |stream: &Stream<'_>, name: u8, by: usize| {
            stream.d2d((&buffers[by], 0), (&log, 0), 2).unwrap();
            stream.d2d((&log, 1), (&buffers[by], 0), 2).unwrap();
            stream.fill(&log, 0, name, 1).unwrap();
        };
        append(&left, b'a', 0);
        append(&right, b'b', 1);
        for stream in [&left, &right] {
            let event = program.event().unwrap();
            stream.record(&event).unwrap();
            joined.wait(&event).unwrap();
        }
        seen.lock().unwrap().insert(program.download(&log, &joined).unwrap());
    });
    let legal = interleavings().map(appended).collect::<BTreeSet<_>>();
    assert_eq!(seen.into_inner().unwrap(), legal);
}

/// Returns the orders of three pieces of each stream: for each position, whether the second
/// stream's comes.
fn interleavings() -> impl Iterator<Item = [bool; 6]> {
    let orders = (0..1_u8 << 6).filter(|order| order.count_ones() == 3);
    orders.map(|order| std::array::from_fn(|place| order >> place & 1 == 1))
}

/// Returns the log if the pieces run in this order.
fn appended(order: [bool; 6]) -> Vec<u8> {
    let (mut log, mut buffers, mut done) = (vec![0; 3], [[0; 2]; 2], [0; 2]);
    for stream in order.map(usize::from) {
        match done[stream] {
            0 => buffers[stream].copy_from_slice(&log[..2]),
            1 => log[1..].copy_from_slice(&buffers[stream]),
            _ => log[0] = b"ab"[stream],
        }
        done[stream] += 1;
    }
    log
}

fn freeing_runs_what_is_queued(setup: &Setup) {
    setup.for_each_stream(|program, stream| {
        let buffer = program.upload(&[3; 16]).unwrap();
        let host = program.pinned(16).unwrap();
        stream.d2h((&host, 0), (&buffer, 0), 16).unwrap();
        drop(buffer);
        assert_eq!(host.get(), [3; 16], "the copy needs the memory, so it has run");
    });
}

fn polling_the_wrong_thing_does_not_help(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let (early, late) = (program.event().unwrap(), program.event().unwrap());
    let buffer = program.upload(&[3]).unwrap();
    let host = program.pinned(1).unwrap();
    stream.record(&early).unwrap();
    stream.d2h((&host, 0), (&buffer, 0), 1).unwrap();
    stream.record(&late).unwrap();
    while !early.query().unwrap() {}
    for _ in 0..100 {
        assert!(early.query().unwrap());
    }
    assert_eq!(host.get(), [0], "the copy is behind the event that was polled");
    assert!(!late.query().unwrap());
    while !late.query().unwrap() {}
    assert_eq!(host.get(), [3]);
}
