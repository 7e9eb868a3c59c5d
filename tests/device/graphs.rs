//! Graphs: capturing, launching, updating.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use warpstride::ErrorKind;
use warpstride::driver::{Driver, GraphExecHandle, GraphHandle};

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::program::{AFFINE, Buffer, Exec, Program, Stream};

cases! {
    Any a_captured_copy_reads_its_source_at_each_launch,
    Any launches_of_one_graph_run_one_after_the_other,
    Any a_launch_runs_after_what_its_stream_waits_for,
    Any an_update_changes_later_launches,
    Any an_update_to_other_work_is_declined_and_changes_nothing,
    Any releases_and_other_streams_do_not_disturb_a_capture,
    Any an_empty_capture_is_a_graph_of_no_nodes,
    Any a_capture_ends_once_and_begins_once,
    Any a_capture_that_is_waited_for_is_broken,
    Any a_capture_that_waits_for_other_work_is_broken,
    Any an_event_of_a_capture_is_passed_at_no_time,
    SoftwareGpu("its work runs as late as it may, in an order drawn from a seed") a_forgotten_wait_for_a_graph_is_seen,
    SoftwareGpu("CUDA may take what it refuses") copies_of_ordinary_memory_and_launches_of_graphs_are_not_captured,
    SoftwareGpu("it looks at every handle that it is given") dead_graphs_are_invalid_handles,
}

/// Captures a copy of one byte of `by` in front of a log, which is shifted by one through `room`.
fn append<'p>(stream: &Stream<'p>, log: &Buffer<'_>, room: &Buffer<'_>, by: &Buffer<'_>) -> Exec<'p> {
    let bytes = log.bytes - 1;
    let graph = stream.capture(|| {
        stream.d2d((room, 0), (log, 0), bytes)?;
        stream.d2d((log, 1), (room, 0), bytes)?;
        stream.d2d((log, 0), (by, 0), 1)
    });
    let graph = graph.unwrap();
    assert_eq!(graph.nodes().unwrap(), 3);
    graph.instantiate().unwrap()
}

fn a_captured_copy_reads_its_source_at_each_launch(setup: &Setup) {
    setup.for_each_stream(|program, stream| {
        let (source, target, buffer) =
            (program.pinned(64).unwrap(), program.pinned(64).unwrap(), program.buffer(64).unwrap());
        let graph = stream.capture(|| {
            stream.h2d((&buffer, 0), (&source, 0), 64)?;
            stream.d2h((&target, 0), (&buffer, 0), 64)
        });
        let exec = graph.unwrap().instantiate().unwrap();
        for value in [1, 2] {
            source.set(&[value; 64]);
            exec.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            assert_eq!(target.get(), [value; 64]);
        }
    });
}

/// No event orders the two streams: the driver orders launches of one executable graph itself.
fn launches_of_one_graph_run_one_after_the_other(setup: &Setup) {
    setup.for_each_program(|program| {
        let streams = [(); 2].map(|()| program.stream().unwrap());
        let (log, room, counter) =
            (program.upload(&[0; 9]).unwrap(), program.buffer(8).unwrap(), program.upload(&[7]).unwrap());
        let exec = append(&streams[0], &log, &room, &counter);
        for turn in 0..6 {
            exec.launch(&streams[turn % 2]).unwrap();
        }
        streams[0].synchronize().unwrap();
        assert_eq!(program.download(&log, &streams[1]).unwrap(), [7, 7, 7, 7, 7, 7, 0, 0, 0]);
    });
}

fn a_launch_runs_after_what_its_stream_waits_for(setup: &Setup) {
    setup.for_each_program(|program| {
        let (producer, launching) = (program.stream().unwrap(), program.stream().unwrap());
        let (made, ran) = (program.event().unwrap(), program.event().unwrap());
        let (log, room, by) =
            (program.upload(&[0; 3]).unwrap(), program.buffer(2).unwrap(), program.buffer(1).unwrap());
        let exec = append(&launching, &log, &room, &by);
        for value in [1, 2] {
            producer.fill(&by, 0, value, 1).unwrap();
            producer.record(&made).unwrap();
            launching.wait(&made).unwrap();
            exec.launch(&launching).unwrap();
            launching.record(&ran).unwrap();
            producer.wait(&ran).unwrap();
        }
        assert_eq!(program.download(&log, &producer).unwrap(), [2, 1, 0]);
    });
}

fn an_update_changes_later_launches(setup: &Setup) {
    setup.for_each_stream(|program, stream| {
        let (log, room) = (program.upload(&[0; 4]).unwrap(), program.buffer(3).unwrap());
        let [one, two] = [1, 2].map(|value| program.upload(&[value]).unwrap());
        let capture = |by: &Buffer<'_>| {
            let graph = stream.capture(|| {
                stream.d2d((&room, 0), (&log, 0), 3)?;
                stream.d2d((&log, 1), (&room, 0), 3)?;
                stream.d2d((&log, 0), (by, 0), 1)?;
                stream.fill(&room, 0, 0, 3)
            });
            graph.unwrap()
        };
        let exec = capture(&one).instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert!(exec.update(&capture(&two)).unwrap());
        exec.launch(&stream).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(program.download(&log, &stream).unwrap(), [2, 2, 1, 0]);
    });
}

fn an_update_to_other_work_is_declined_and_changes_nothing(setup: &Setup) {
    setup.for_each_stream(|program, stream| {
        let buffer = program.upload(&[0; 8]).unwrap();
        let exec = stream.capture(|| stream.fill(&buffer, 0, 5, 4)).unwrap().instantiate().unwrap();
        let longer = stream.capture(|| {
            stream.fill(&buffer, 0, 6, 4)?;
            stream.fill(&buffer, 4, 6, 4)
        });
        let another = stream.capture(|| stream.d2d((&buffer, 4), (&buffer, 0), 4)).unwrap();
        for graph in [longer.unwrap(), another] {
            assert!(!exec.update(&graph).unwrap());
        }
        exec.launch(&stream).unwrap();
        assert_eq!(program.download(&buffer, &stream).unwrap(), [5, 5, 5, 5, 0, 0, 0, 0]);
    });
}

fn releases_and_other_streams_do_not_disturb_a_capture(setup: &Setup) {
    setup.for_each_seed(|driver| {
        let program = Program::new(driver);
        {
            let (captured, other) = (program.stream().unwrap(), program.stream().unwrap());
            let kept = program.upload(&[1; 8]).unwrap();
            let graph = captured.capture(|| {
                captured.fill(&kept, 0, 2, 4)?;
                let (freed, freed_host) = (program.buffer(8)?, program.pinned(8)?);
                let (_module, event) = (program.module(AFFINE)?, program.event()?);
                other.fill(&freed, 0, 3, 8)?;
                other.d2h((&freed_host, 0), (&freed, 0), 8)?;
                other.record(&event)?;
                event.synchronize()?;
                assert_eq!(freed_host.get(), [3; 8]);
                captured.fill(&kept, 4, 4, 4)
            });
            let exec = graph.unwrap().instantiate().unwrap();
            assert_eq!(program.download(&kept, &other).unwrap(), [1; 8]);
            exec.launch(&other).unwrap();
            assert_eq!(program.download(&kept, &other).unwrap(), [2, 2, 2, 2, 4, 4, 4, 4]);
        }
        assert_eq!(program.failure(), None);
    });
}

fn an_empty_capture_is_a_graph_of_no_nodes(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let graph = stream.capture(|| Ok(())).unwrap();
    assert_eq!(graph.nodes().unwrap(), 0);
    graph.instantiate().unwrap().launch(&stream).unwrap();
    stream.synchronize().unwrap();
}

fn refused<T>(result: warpstride::Result<T>) {
    let Err(error) = result else { panic!("it must not be captured") };
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

fn a_capture_ends_once_and_begins_once(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    assert!(stream.end_capture().is_err());
    assert!(!stream.is_capturing().unwrap());
    stream.begin_capture().unwrap();
    assert!(stream.is_capturing().unwrap());
    assert!(stream.begin_capture().is_err());
    assert!(stream.is_capturing().unwrap(), "a broken one, until its end");
    let _ = stream.end_capture();
    assert!(!stream.is_capturing().unwrap());
    assert!(stream.end_capture().is_err());
    usable(&program, &stream);
}

/// Asserts that a stream runs and captures work after a broken capture.
fn usable(program: &Program, stream: &Stream<'_>) {
    let buffer = program.buffer(4).unwrap();
    stream.fill(&buffer, 0, 1, 4).unwrap();
    let exec = stream.capture(|| stream.fill(&buffer, 0, 2, 2)).unwrap().instantiate().unwrap();
    assert_eq!(program.download(&buffer, stream).unwrap(), [1; 4]);
    exec.launch(stream).unwrap();
    assert_eq!(program.download(&buffer, stream).unwrap(), [2, 2, 1, 1]);
}

fn a_capture_that_is_waited_for_is_broken(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let (stream, buffer) = (program.stream().unwrap(), program.buffer(4).unwrap());
    stream.begin_capture().unwrap();
    stream.fill(&buffer, 0, 1, 4).unwrap();
    refused(stream.synchronize());
    refused(stream.fill(&buffer, 0, 1, 4));
    refused(stream.end_capture());
    usable(&program, &stream);
}

fn a_capture_that_waits_for_other_work_is_broken(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let (stream, other) = (program.stream().unwrap(), program.stream().unwrap());
    let (event, buffer) = (program.event().unwrap(), program.buffer(4).unwrap());
    other.fill(&buffer, 0, 3, 4).unwrap();
    other.record(&event).unwrap();
    stream.begin_capture().unwrap();
    refused(stream.wait(&event));
    refused(stream.end_capture());
    other.synchronize().unwrap();
    usable(&program, &stream);
}

fn an_event_of_a_capture_is_passed_at_no_time(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let waits: [fn(&crate::program::Event<'_>) -> bool; 2] =
        [|event| event.query().is_ok(), |event| event.synchronize().is_ok()];
    for wait in waits {
        let (event, buffer) = (program.event().unwrap(), program.buffer(4).unwrap());
        stream.begin_capture().unwrap();
        stream.fill(&buffer, 0, 1, 4).unwrap();
        stream.record(&event).unwrap();
        stream.wait(&event).unwrap();
        assert!(!wait(&event));
        refused(stream.end_capture());
        usable(&program, &stream);
        stream.record(&event).unwrap();
        event.synchronize().unwrap();
    }
}

/// A graph is not a barrier: work that does not wait for it runs before, after, or between its
/// nodes.
fn a_forgotten_wait_for_a_graph_is_seen(setup: &Setup) {
    let seen = Mutex::new(BTreeSet::new());
    setup.for_each_program(|program| {
        let (launching, forgetful) = (program.stream().unwrap(), program.stream().unwrap());
        let (log, room, by) =
            (program.upload(&[1, 2]).unwrap(), program.buffer(1).unwrap(), program.upload(&[3]).unwrap());
        append(&launching, &log, &room, &by).launch(&launching).unwrap();
        seen.lock().unwrap().insert(program.download(&log, &forgetful).unwrap());
    });
    let expected = [vec![1, 2], vec![1, 1], vec![3, 1]];
    assert_eq!(seen.into_inner().unwrap(), expected.into());
}

fn copies_of_ordinary_memory_and_launches_of_graphs_are_not_captured(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let (stream, buffer, ordinary) = (program.stream().unwrap(), program.buffer(4).unwrap(), [1_u8; 4]);
    let exec = stream.capture(|| stream.fill(&buffer, 0, 1, 4)).unwrap().instantiate().unwrap();
    stream.begin_capture().unwrap();
    // SAFETY: both ranges are in bounds, and the copy is refused.
    refused(unsafe { program.driver.copy_h2d(buffer.address, ordinary.as_ptr(), 4, stream.handle) });
    refused(stream.end_capture());
    stream.begin_capture().unwrap();
    refused(exec.launch(&stream));
    refused(stream.end_capture());
    usable(&program, &stream);
}

fn dead_graphs_are_invalid_handles(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let driver: &Arc<dyn Driver> = &program.driver;
    let (graph, exec) = (GraphHandle(1), GraphExecHandle(1));
    let dead_graph = stream.capture(|| Ok(())).unwrap().handle;
    let dead_exec = stream.capture(|| Ok(())).unwrap().instantiate().unwrap().handle;
    let live = stream.capture(|| Ok(())).unwrap();
    for (graph, exec) in [(graph, exec), (dead_graph, dead_exec)] {
        // SAFETY: the software GPU looks at every handle, here and below.
        refusal(unsafe { driver.graph_nodes(graph) }).of(ErrorKind::InvalidHandle);
        // SAFETY: as above.
        refusal(unsafe { driver.graph_instantiate(graph) }).of(ErrorKind::InvalidHandle);
        // SAFETY: as above.
        refusal(unsafe { driver.graph_destroy(graph) }).of(ErrorKind::InvalidHandle);
        // SAFETY: as above.
        refusal(unsafe { driver.graph_exec_destroy(exec) }).of(ErrorKind::InvalidHandle);
        // SAFETY: as above.
        refusal(unsafe { driver.graph_update(exec, live.handle) }).of(ErrorKind::InvalidHandle);
        // SAFETY: as above.
        refusal(unsafe { driver.graph_launch(exec, stream.handle) }).of(ErrorKind::InvalidHandle);
    }
}
