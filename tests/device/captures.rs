//! Captures of streams as graphs, over the host interface: values, memory, order and failures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use warpstride::device::Device;
use warpstride::driver::trace::{Call, Method, Trace};
use warpstride::error::Result;
use warpstride::{DeviceArray, Error, ErrorKind, Graph, Stream, ops};

use crate::backend::{Setup, cases};
use crate::failures::{every_call, refusal};
use crate::program::Program;

cases! {
    Any a_graph_runs_its_work_at_each_launch,
    Any memory_lives_as_long_as_the_graph,
    Any an_owners_capture_takes_no_temporaries,
    Any a_graph_of_many_buffers_is_launched,
    Any blocks_that_wait_for_each_other_are_captured,
    Any threads_capture_at_once,
    Any threads_launch_graphs_that_share_buffers,
    Any a_device_is_used_and_waited_for_during_a_capture,
    Any the_first_launch_of_a_kernel_may_be_captured,
    Any an_update_takes_other_buffers_or_other_work,
    Any a_failed_update_leaves_the_graph,
    Any a_failed_update_keeps_the_memory_of_both_works,
    Any what_cannot_be_captured_is_refused,
    Any an_error_or_a_panic_ends_the_capture,
    Any a_captured_stream_that_escapes_is_an_ordinary_one,
    Any graphs_and_streams_of_two_devices_do_not_mix,
    SoftwareGpu("it loses no device to a call that was made to fail") every_call_of_a_graph_may_fail,
}

/// Captures `values = 3 * values + 1`, through a buffer that only the graph keeps.
fn step(device: &Device, values: &mut DeviceArray<f32>, on: &Stream) -> Result<()> {
    let mut tripled = device.alloc_array(values.shape())?;
    let one = device.array(values.shape(), &vec![1.0_f32; values.len()])?;
    ops::scale_into(3.0, &*values, &mut tripled, on)?;
    ops::add_into(&tripled, &one, values, on)
}

fn graph_of_step(device: &Device, values: &mut DeviceArray<f32>) -> Graph {
    device.default_stream().capture(|s| step(device, values, s)).unwrap()
}

fn a_graph_runs_its_work_at_each_launch(setup: &Setup) {
    setup.for_each_device(|device| {
        let mut values = device.array(&[100], &[1.0_f32; 100]).unwrap();
        let graph = graph_of_step(&device, &mut values);
        assert_eq!(graph.nodes(), 2);
        assert_eq!(format!("{graph:?}"), "Graph { nodes: 2, allocations: 3, .. }");
        assert_eq!(values.to_vec().unwrap(), [1.0; 100], "nothing has run");
        for expected in [4.0, 13.0, 40.0] {
            graph.launch(device.default_stream()).unwrap();
            assert_eq!(values.to_vec().unwrap(), [expected; 100]);
        }
    });
}

fn memory_lives_as_long_as_the_graph(setup: &Setup) {
    setup.for_each_seed(|driver| {
        let (trace, device) = setup.traced(driver);
        let before = trace.live();
        let stream = device.stream().unwrap();
        let mut result = device.array(&[50], &[0.0_f32; 50]).unwrap();
        let graph = {
            let mut values = device.array(&[50], &[5.0_f32; 50]).unwrap();
            let graph = stream.capture(|s| {
                step(&device, &mut values, s)?;
                ops::copy_into(&values, &mut result, s)
            });
            graph.unwrap()
        };
        // Memory that the graph did not keep would be taken again here.
        let others: Vec<_> = (0..8).map(|_| device.array(&[50], &[9.0_f32; 50]).unwrap()).collect();
        graph.launch(&stream).unwrap();
        graph.launch(device.default_stream()).unwrap();
        drop(graph);
        assert_eq!(result.to_vec().unwrap(), [49.0; 50]);
        drop((result, others, stream));
        device.synchronize().unwrap();
        assert_eq!(device.take_drop_error(), None);
        let live = trace.live();
        assert!(live.graphs.is_empty() && live.execs.is_empty() && live.captures.is_empty(), "{live:?}");
        drop(device);
        assert!(before.graphs.is_empty() && trace.live().is_empty(), "{:?}", trace.live());
    });
}

/// A cooperative launch, and the memory through which its blocks wait: each launch of the graph
/// fills it anew.
fn blocks_that_wait_for_each_other_are_captured(setup: &Setup) {
    let (device, n) = (setup.device(), 40_000);
    let rows = device.array(&[3, n], &vec![1.0_f32; 3 * n]).unwrap();
    let mut result = device.alloc_array::<f32>(&[3, n]).unwrap();
    let graph = device.default_stream().capture(|s| ops::softmax_into(&rows, &mut result, s)).unwrap();
    for _ in 0..3 {
        ops::fill_into(0.0, &mut result, device.default_stream()).unwrap();
        graph.launch(device.default_stream()).unwrap();
        assert!(result.to_vec().unwrap().iter().all(|value| (value * n as f32 - 1.0).abs() < 1e-5));
    }
}

/// A graph of another owner cannot keep the memory of a temporary.
fn an_owners_capture_takes_no_temporaries(setup: &Setup) {
    setup.for_seeds(4, |driver| {
        let program = Program::new(driver);
        let theirs = program.stream().unwrap();
        let device = setup.open(Arc::clone(driver)).unwrap();
        // SAFETY: the stream is destroyed last, and the arrays that its capture uses outlive the
        // graph's launches.
        let stream = unsafe { device.stream_from_raw(theirs.handle) }.unwrap();
        let array = |rows, n| {
            let mut array = device.alloc_array_on::<f32>(&[rows, n], &stream).unwrap();
            ops::fill_into(1.0, &mut array, &stream).unwrap();
            array
        };
        let (mut long, mut matrix, short) = (array(1, 40_000), array(2, 50_000), array(3, 4));
        let [mut longs, mut shorts] = [(1, 40_000), (3, 4)].map(|(rows, n)| array(rows, n));
        let [mut means, mut variances] = [(); 2].map(|()| device.alloc_array_on(&[50_000], &stream).unwrap());
        stream.synchronize().unwrap();
        let graph = theirs.capture(|| {
            for refused in [
                ops::softmax_into(&long, &mut longs, &stream),
                ops::mean_variance_into(&matrix, 0, &mut means, &mut variances, &stream),
                ops::transpose_in_place(&mut matrix, &stream).map(drop),
                device.alloc_on::<u8>(1, &stream).map(drop),
            ] {
                refusal(refused).of(ErrorKind::InvalidArgument).says("captured by its owner").says("`launch_raw`");
            }
            // The capture is as good as before.
            ops::softmax_into(&short, &mut shorts, &stream)
        });
        let (graph, exec) = graph.and_then(|graph| graph.instantiate().map(|exec| (graph, exec))).unwrap();
        assert_eq!(graph.nodes().unwrap(), 1);
        exec.launch(&theirs).unwrap();
        ops::softmax_into(&long, &mut longs, &stream).unwrap();
        ops::fill_into(2.0, &mut long, &stream).unwrap();
        assert_eq!(shorts.to_vec().unwrap(), [0.25; 12]);
        assert!(longs.to_vec().unwrap().iter().all(|value| (value * 40_000.0 - 1.0).abs() < 1e-5));
    });
}

fn a_graph_of_many_buffers_is_launched(setup: &Setup) {
    let device = setup.device();
    let mut buffers: Vec<_> = (0..300).map(|_| device.array(&[20], &[0_u16; 20]).unwrap()).collect();
    let streams = [(); 2].map(|()| device.stream().unwrap());
    let graph = streams[0].capture(|s| {
        for (value, buffer) in (0..).zip(&mut buffers) {
            ops::fill_into(value, buffer, s)?;
        }
        Ok(())
    });
    let graph = graph.unwrap();
    assert_eq!(graph.nodes(), 300);
    for stream in streams.iter().cycle().take(4) {
        graph.launch(stream).unwrap();
    }
    for (value, buffer) in (0..).zip(&buffers) {
        assert_eq!(buffer.to_vec().unwrap(), [value; 20]);
    }
}

fn threads_capture_at_once(setup: &Setup) {
    setup.for_each_device(|device| {
        let both = Barrier::new(2);
        let shared = device.array(&[30], &[2.0_f32; 30]).unwrap();
        let run = |factor: f32| {
            let mut result = device.alloc_array(&[30]).unwrap();
            let graph = device.default_stream().capture(|s| {
                both.wait();
                ops::scale_into(factor, &shared, &mut result, s)?;
                both.wait();
                Ok(())
            });
            graph.unwrap().launch(&device.stream().unwrap()).unwrap();
            assert_eq!(result.to_vec().unwrap(), [2.0 * factor; 30]);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| run(5.0));
            run(7.0);
        });
    });
}

/// Each launch adds 1 to one buffer and 1 to the other, whatever thread and whatever graph, and
/// whatever thread reads them in between.
fn threads_launch_graphs_that_share_buffers(setup: &Setup) {
    let device = setup.device();
    let one = device.array(&[30], &[1.0_f32; 30]).unwrap();
    let mut counts = [(); 2].map(|()| device.array(&[30], &[0.0_f32; 30]).unwrap());
    let mut capture = |order: [usize; 2]| {
        let graph = device.default_stream().capture(|s| {
            for count in order {
                let mut more = device.alloc_array(&[30])?;
                ops::add_into(&counts[count], &one, &mut more, s)?;
                ops::copy_into(&more, &mut counts[count], s)?;
            }
            Ok(())
        });
        graph.unwrap()
    };
    let graphs = [capture([0, 1]), capture([1, 0])];
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (device, graphs, counts) = (&device, &graphs, &counts);
            scope.spawn(move || {
                let stream = device.stream().unwrap();
                let mut copy = device.alloc_array(&[30]).unwrap();
                for turn in 0..10 {
                    graphs[(thread + turn) % 2].launch(&stream).unwrap();
                    ops::copy_into(&counts[turn / 2 % 2], &mut copy, &stream).unwrap();
                    if turn % 4 == thread {
                        let read = copy.to_vec().unwrap();
                        assert!(read.iter().all(|&count| count == read[0] && count > turn as f32), "{read:?}");
                    }
                }
            });
        }
    });
    for count in counts {
        assert_eq!(count.to_vec().unwrap(), [30.0; 30]);
    }
}

fn a_device_is_used_and_waited_for_during_a_capture(setup: &Setup) {
    setup.for_each_device(|device| {
        let stream = device.stream().unwrap();
        let mut values = device.array(&[10], &[1.0_f32; 10]).unwrap();
        let graph = stream.capture(|s| {
            step(&device, &mut values, s)?;
            ops::copy_into(&device.array(&[10], &[6.0_f32; 10])?, &mut values, &stream)?;
            device.synchronize()?;
            assert_eq!(values.to_vec()?, [6.0; 10]);
            drop(device.array(&[10], &[7.0_f32; 10])?);
            drop(device.stream()?);
            std::thread::scope(|scope| scope.spawn(|| device.synchronize()).join().expect("no panic"))?;
            step(&device, &mut values, s)
        });
        let graph = graph.unwrap();
        assert_eq!(graph.nodes(), 4);
        graph.launch(&stream).unwrap();
        assert_eq!(values.to_vec().unwrap(), [58.0; 10]);
        assert_eq!(device.take_drop_error(), None);
    });
}

fn the_first_launch_of_a_kernel_may_be_captured(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let mut values = device.array(&[10], &[1.0_f32; 10]).unwrap();
    let graph = graph_of_step(&device, &mut values);
    let calls = trace.calls();
    let place = |found: fn(&Call) -> bool| calls.iter().position(found).expect("it was called");
    let begun = place(|call| matches!(call, Call::CaptureBegin { .. }));
    let loaded = place(|call| matches!(call, Call::ModuleLoad { .. }));
    assert!(begun < loaded && loaded < place(|call| matches!(call, Call::CaptureEnd { .. })));
    graph.launch(device.default_stream()).unwrap();
    assert_eq!(values.to_vec().unwrap(), [4.0; 10]);
}

fn an_update_takes_other_buffers_or_other_work(setup: &Setup) {
    setup.for_each_device(|device| {
        let streams = [(); 2].map(|()| device.stream().unwrap());
        let mut a = device.array(&[10], &[1.0_f32; 10]).unwrap();
        let mut b = device.array(&[10], &[2.0_f32; 10]).unwrap();
        let mut graph = graph_of_step(&device, &mut a);
        graph.launch(&streams[0]).unwrap();
        assert!(graph.update(|s| step(&device, &mut b, s)).unwrap(), "in place");
        graph.launch(&streams[1]).unwrap();
        let longer = graph.update(|s| {
            step(&device, &mut a, s)?;
            ops::copy_into(&a, &mut b, s)
        });
        assert_eq!((longer.unwrap(), graph.nodes()), (false, 3));
        assert_eq!((a.to_vec().unwrap(), b.to_vec().unwrap()), (vec![4.0; 10], vec![7.0; 10]));
        graph.launch(&streams[0]).unwrap();
        assert_eq!((a.to_vec().unwrap(), b.to_vec().unwrap()), (vec![13.0; 10], vec![13.0; 10]));
    });
}

fn a_failed_update_leaves_the_graph(setup: &Setup) {
    let device = setup.device();
    let mut values = device.array(&[10], &[1.0_f32; 10]).unwrap();
    let mut graph = graph_of_step(&device, &mut values);
    refusal(graph.update(|s| step(&device, &mut values, s).and_then(|()| s.synchronize())))
        .of(ErrorKind::InvalidArgument);
    graph.launch(device.default_stream()).unwrap();
    assert_eq!(values.to_vec().unwrap(), [4.0; 10]);
}

/// The driver may have replaced some operands before it failed.
fn a_failed_update_keeps_the_memory_of_both_works(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let mut values = device.array(&[10], &[1.0_f32; 10]).unwrap();
    let mut graph = graph_of_step(&device, &mut values);
    assert_eq!(format!("{graph:?}"), "Graph { nodes: 2, allocations: 3, .. }");
    // The first fails in the place of the graph, and the second where it is made anew.
    for (method, kept) in [(Method::GraphUpdate, 5), (Method::GraphInstantiate, 6)] {
        trace.fail_method(method);
        let failed = graph.update(|s| match method {
            Method::GraphUpdate => step(&device, &mut values, s),
            _ => ops::fill_into(5.0, &mut device.alloc_array(&[10])?, s),
        });
        trace.fail_nothing();
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Driver);
        assert_eq!(format!("{graph:?}"), format!("Graph {{ nodes: 2, allocations: {kept}, .. }}"));
    }
    graph.launch(device.default_stream()).unwrap();
    assert_eq!(values.to_vec().unwrap(), [4.0; 10]);
    assert!(graph.update(|s| step(&device, &mut values, s)).unwrap(), "in place");
    assert_eq!(format!("{graph:?}"), "Graph { nodes: 2, allocations: 3, .. }");
}

fn what_cannot_be_captured_is_refused(setup: &Setup) {
    let device = setup.device();
    let event = device.event().unwrap();
    let mut values = device.array(&[10], &[1.0_f32; 10]).unwrap();
    let inner = graph_of_step(&device, &mut values);
    let graph = device.default_stream().capture(|s| {
        for (refused, what) in [
            (s.synchronize(), "a wait for a stream cannot be captured"),
            (s.wait(&event), "a wait for an event cannot be captured"),
            (s.record(&event), "the record of an event cannot be captured"),
            (inner.launch(s), "the launch of a graph cannot be captured"),
            (s.upload(vec![2.0; 10], &mut values).map(drop).map_err(Error::from), "a copy from the host cannot"),
            (s.download(&values, vec![2.0; 10]).map(drop).map_err(Error::from), "a copy to the host cannot"),
            (s.scope(|_| panic!("it must not run")), "a scope of copies cannot"),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().starts_with(what), "{error}");
        }
        // The capture is as good as before. Its memory is not the captured stream's.
        let mut on_it = device.alloc_array_on(&[10], s)?;
        ops::fill_into(5.0, &mut on_it, s)?;
        ops::copy_into(&on_it, &mut values, s)
    });
    graph.unwrap().launch(device.default_stream()).unwrap();
    assert_eq!(values.to_vec().unwrap(), [5.0; 10]);
}

fn an_error_or_a_panic_ends_the_capture(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let mut values = device.array(&[10], &[1.0_f32; 10]).unwrap();
    let ours = || Error::new(ErrorKind::Io, "of the closure");
    let failed = device.default_stream().capture(|s| step(&device, &mut values, s).and(Err(ours())));
    assert_eq!(failed.unwrap_err(), ours());
    let panics = AssertUnwindSafe(|| {
        device.default_stream().capture(|s| {
            step(&device, &mut values, s)?;
            panic!("of the closure")
        })
    });
    let panic = catch_unwind(panics).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"of the closure"));
    let live = trace.live();
    assert!(live.captures.is_empty() && live.graphs.is_empty() && live.execs.is_empty(), "{live:?}");
    device.synchronize().unwrap();
    assert_eq!((device.take_drop_error(), values.to_vec().unwrap()), (None, vec![1.0; 10]));
    graph_of_step(&device, &mut values).launch(device.default_stream()).unwrap();
    assert_eq!(values.to_vec().unwrap(), [4.0; 10]);
}

fn a_captured_stream_that_escapes_is_an_ordinary_one(setup: &Setup) {
    setup.for_each_device(|device| {
        let mut values = device.array(&[10], &[1.0_f32; 10]).unwrap();
        let mut escaped = None;
        let graph = device.default_stream().capture(|s| {
            escaped = Some(s.clone());
            step(&device, &mut values, s)
        });
        let (graph, escaped) = (graph.unwrap(), escaped.unwrap());
        graph.launch(&escaped).unwrap();
        let event = device.event().unwrap();
        escaped.record(&event).unwrap();
        device.synchronize().unwrap();
        assert!(event.query().unwrap(), "the device waits for it");
        step(&device, &mut values, &escaped).unwrap();
        escaped.synchronize().unwrap();
        assert_eq!(values.to_vec().unwrap(), [13.0; 10]);
    });
}

fn graphs_and_streams_of_two_devices_do_not_mix(setup: &Setup) {
    let (one, other) = (setup.device(), setup.device());
    let graph = one.default_stream().capture(|s| ops::spin(&one, Duration::from_nanos(1), s)).unwrap();
    refusal(graph.launch(other.default_stream())).says("different devices");
    // The graph keeps the kernel that it launches.
    let stream = one.default_stream().clone();
    drop(one);
    graph.launch(&stream).unwrap();
    stream.synchronize().unwrap();
}

/// Captures, launches on two streams, and updates in both ways.
fn everything(setup: &Setup, driver: Arc<Trace>) -> Result<()> {
    let device = setup.open(driver)?;
    let mut values = device.array(&[10], &[1.0_f32; 10])?;
    let mut other = device.array(&[10], &[1.0_f32; 10])?;
    let stream = device.stream()?;
    let mut graph = stream.capture(|s| step(&device, &mut values, s))?;
    graph.launch(&stream)?;
    graph.launch(device.default_stream())?;
    graph.update(|s| step(&device, &mut other, s))?;
    graph.launch(&stream)?;
    graph.update(|s| ops::copy_into(&other, &mut values, s))?;
    assert_eq!((values.to_vec()?, other.to_vec()?), (vec![13.0; 10], vec![4.0; 10]));
    graph.launch(&stream)?;
    assert_eq!(values.to_vec()?, [4.0; 10]);
    drop((values, other, stream, graph));
    device.take_drop_error().map_or(Ok(()), Err)
}

fn every_call_of_a_graph_may_fail(setup: &Setup) {
    every_call(setup, everything);
}
