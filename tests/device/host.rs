//! The host interface: buffers, the order between streams, and failed calls.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use warpstride::ErrorKind;
use warpstride::device::Device;
use warpstride::driver::trace::{Method, Trace};
use warpstride::error::Result;
use warpstride::layout::Layout;
use warpstride::memory::{DeviceBuffer, Route};
use warpstride::ops::{self, Variant};
use warpstride::stream::Stream;

use crate::backend::{Setup, cases, exact};
use crate::failures::{every_call, refusal};
use crate::matrices::Random;
use crate::program::{Pinned, Program};
use crate::{naive, steady};

cases! {
    Any buffers_come_back,
    Any empty_buffers_ask_nothing_of_the_driver,
    Any lengths_are_checked,
    Any staged_copies_come_back_by_any_number_of_threads,
    Any a_staged_copy_comes_after_the_work_before_and_before_the_work_behind,
    Any readers_on_many_threads_are_ordered_before_the_writer,
    Any halves_of_one_buffer,
    Any two_devices_do_not_mix,
    Any a_buffer_of_a_stream_is_of_its_device,
    Any an_operation_allocates_for_the_line_that_calls_it,
    Any a_failed_drop_is_kept,
    Any a_dropped_stream_that_cannot_be_recorded_is_waited_for,
    Any all_streams_are_waited_for_though_one_wait_fails,
    SoftwareGpu("it counts instructions, so that a minute of them is too many") spinning_for_long_is_refused,
    SoftwareGpu("it loses no device to a call that was made to fail") every_call_may_fail,
}

fn buffers_come_back(setup: &Setup) {
    let device = setup.device();
    let elements: Vec<u64> = Random::new(1).elements(1000);
    let mut buffer = device.upload(&elements).unwrap();
    assert!(buffer.download().unwrap() == elements);
    assert_eq!(device.zeros::<u16>(77).unwrap().download().unwrap(), [0; 77]);
    assert_eq!(device.alloc::<u8>(5).unwrap().len(), 5);
    let others: Vec<u64> = Random::new(2).elements(1000);
    buffer.upload_from(&others).unwrap();
    let mut into = vec![0; 1000];
    buffer.download_into(&mut into).unwrap();
    assert_eq!(into, others);
    assert_eq!(buffer.address() % 256, 0);
}

fn empty_buffers_ask_nothing_of_the_driver(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let before = trace.calls().len();
    let mut buffer = device.upload::<f32>(&[]).unwrap();
    buffer.upload_from(&[]).unwrap();
    assert!(buffer.is_empty() && buffer.download().unwrap().is_empty());
    assert!(device.zeros::<f64>(0).unwrap().is_empty());
    assert!(ops::transpose(buffer.view(&[5, 0]).unwrap()).unwrap().is_empty());
    let mut other = device.alloc(0).unwrap();
    ops::copy_into(buffer.view(&[0]).unwrap(), other.view_mut(&[0]).unwrap(), device.default_stream()).unwrap();
    drop((buffer, other));
    assert_eq!(trace.calls()[before..], []);
}

/// The bytes of the larger ones pass through every slot of every thread several times.
fn staged_copies_come_back_by_any_number_of_threads(setup: &Setup) {
    let device = setup.device();
    for bytes in [1, 4097, 3 << 20, (9 << 20) + 5] {
        let sent: Vec<u8> = Random::new(bytes as u64).elements(bytes);
        for threads in [1, 2, 5] {
            device.set_route(Route::Staged(threads.try_into().unwrap()));
            let mut buffer = device.zeros(bytes).unwrap();
            buffer.upload_from(&sent).unwrap();
            let mut back = vec![0; bytes + 1];
            buffer.download_into(&mut back[1..]).unwrap();
            assert!(back[1..] == sent, "{bytes} bytes by {threads} threads");
        }
    }
    assert_eq!(device.take_drop_error(), None);
}

fn a_staged_copy_comes_after_the_work_before_and_before_the_work_behind(setup: &Setup) {
    setup.for_each_device(|device| {
        device.set_route(Route::Staged(2.try_into().unwrap()));
        let streams = [(); 2].map(|()| device.stream().unwrap());
        let elements: Vec<u32> = Random::new(3).elements(3000);
        let first = device.array(&[3000], &[7_u32; 3000]).unwrap();
        let mut second = device.alloc_array::<u32>(&[3000]).unwrap();
        // The upload must not overtake the copy before it, and the copy behind must see it.
        ops::copy_into(&first, &mut second, &streams[0]).unwrap();
        let mut buffer = first.into_buffer();
        buffer.upload_from(&elements).unwrap();
        assert_eq!(second.to_vec().unwrap(), [7; 3000]);
        ops::copy_into(buffer.view(&[3000]).unwrap(), &mut second, &streams[1]).unwrap();
        let (second, mut back) = (second.into_buffer(), vec![0; 3000]);
        second.download_into(&mut back).unwrap();
        assert!(back == elements);
    });
}

fn lengths_are_checked(setup: &Setup) {
    let device = setup.device();
    let mut buffer = device.upload(&[1u32, 2, 3]).unwrap();
    refusal(buffer.upload_from(&[1])).says("1 element ").says("3");
    assert_eq!(buffer.download_into(&mut [0; 4]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(buffer.view(&[2, 2]).unwrap_err().kind(), ErrorKind::Layout);
    let matrix = device.zeros::<u8>(6).unwrap();
    let matrix = matrix.view(&[2, 3]).unwrap();
    assert!(matrix.layout().is_standard_layout() && !matrix.t().layout().is_standard_layout());
    assert_eq!(buffer.view_mut(&[2]).unwrap_err().kind(), ErrorKind::Layout);
    let longer = Layout::row_major(&[4]).unwrap();
    assert_eq!(buffer.view_with(longer).unwrap_err().kind(), ErrorKind::Layout);
    let twice = Layout::new(&[3], &[0], 0, 3).unwrap();
    assert!(buffer.view_with(twice).is_ok());
    assert_eq!(buffer.view_mut_with(twice).unwrap_err().kind(), ErrorKind::Layout);
    assert_eq!(device.alloc::<u64>(1 << 61).unwrap_err().kind(), ErrorKind::Layout);
    refusal(device.alloc::<u8>(1 << 50)).of(ErrorKind::OutOfMemory);
}

/// Each thread reads one buffer on its own stream; then yet another stream overwrites it while the
/// reads are queued.
fn readers_on_many_threads_are_ordered_before_the_writer(setup: &Setup) {
    setup.for_each_device(|device| {
        let elements: Vec<u32> = Random::new(8).elements(33 * 65);
        let zeros = device.zeros::<u32>(elements.len()).unwrap();
        let mut shared = device.upload(&elements).unwrap();
        let read = || {
            let stream = device.stream().unwrap();
            let mut copy = device.zeros::<u32>(elements.len()).unwrap();
            ops::copy_into(shared.view(&[33 * 65]).unwrap(), copy.view_mut(&[33 * 65]).unwrap(), &stream).unwrap();
            copy
        };
        let copies = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..3).map(|_| scope.spawn(read)).collect();
            readers.into_iter().map(|reader| reader.join().unwrap()).collect::<Vec<_>>()
        });
        let writer = device.stream().unwrap();
        ops::copy_into(zeros.view(&[33 * 65]).unwrap(), shared.view_mut(&[33 * 65]).unwrap(), &writer).unwrap();
        assert!(shared.download().unwrap().iter().all(|&element| element == 0));
        for copy in copies {
            assert!(copy.download().unwrap() == elements, "a reader saw the writer's zeros");
        }
    });
}

fn halves_of_one_buffer(setup: &Setup) {
    let device = setup.device();
    let elements: Vec<u32> = Random::new(9).elements(20 * 40);
    let mut buffer = device.upload(&elements).unwrap();
    let whole = buffer.view_mut(&[20, 40]).unwrap();
    // The halves' ranges of memory overlap; their elements do not.
    let (left, right) = whole.split_at(1, 20).unwrap();
    ops::transpose_into(left.view(), right, None, device.default_stream()).unwrap();
    let (from, to) = Layout::row_major(&[20, 40]).unwrap().split_at(1, 20).unwrap();
    let mut expected = elements.clone();
    naive::transpose(&elements, &from, &mut expected, &to);
    assert!(buffer.download().unwrap() == expected);
}

fn two_devices_do_not_mix(setup: &Setup) {
    let (one, other) = (setup.device(), setup.device());
    let source = one.upload(&[1u32, 2]).unwrap();
    let mut result = other.upload(&[0u32; 2]).unwrap();
    let mut here = one.upload(&[0u32; 2]).unwrap();
    let event = other.event().unwrap();
    for refused in [
        ops::copy_into(source.view(&[2]).unwrap(), result.view_mut(&[2]).unwrap(), one.default_stream()),
        ops::copy_into(source.view(&[2]).unwrap(), here.view_mut(&[2]).unwrap(), other.default_stream()),
        one.default_stream().wait(&event),
        one.default_stream().record(&event),
        one.alloc_on::<u8>(1, other.default_stream()).map(drop),
    ] {
        refusal(refused).of(ErrorKind::InvalidArgument).says("different devices");
    }
}

/// Each stream has a handle of the device for its buffers, and all handles are one device.
fn a_buffer_of_a_stream_is_of_its_device(setup: &Setup) {
    let device = setup.device();
    let stream = device.stream().unwrap();
    let source = device.array(&[2, 3], &[1_u32, 2, 3, 4, 5, 6]).unwrap();
    let mut result = device.alloc_array_on(&[3, 2], &stream).unwrap();
    assert_eq!((result.device(), device.alloc_on::<u8>(3, &stream).unwrap().device()), (&device, &device));
    ops::transpose_into(&source, &mut result, None, &stream).unwrap();
    // A buffer keeps its device open, and a stream keeps it for its buffers.
    drop((device, source));
    let again = result.device().alloc_on::<u32>(1, &stream).unwrap();
    assert_eq!(again.device(), result.device());
    drop(stream);
    assert_eq!(result.to_vec().unwrap(), [1, 4, 2, 5, 3, 6]);
}

/// An error for want of memory names lines of the program, not of this crate.
fn an_operation_allocates_for_the_line_that_calls_it(setup: &Setup) {
    let device = setup.device();
    let operand = device.array(&[2], &[1_u32, 2]).unwrap();
    let mut kept: Vec<Box<dyn Any>> = vec![Box::new(device.zeros::<u8>(300).unwrap()), Box::new(operand)];
    steady::operations(&device, |_, work| kept.push(work().unwrap()));
    let blocks = device.allocator().snapshot().segments.into_iter().flat_map(|segment| segment.blocks);
    let sites: Vec<String> = blocks.filter_map(|block| block.site).collect();
    // Two results of `mean_variance`; the operands of operations are gone.
    assert_eq!(sites.len(), kept.len() + 1, "{sites:?}");
    assert!(sites.iter().all(|site| Path::new(site).starts_with("tests/device")), "{sites:?}");
}

fn a_failed_drop_is_kept(setup: &Setup) {
    let trace = Arc::new(Trace::new(Arc::clone(&setup.driver)));
    // A cache frees nothing at a drop.
    let device = exact(&(trace.clone() as Arc<dyn warpstride::driver::Driver>));
    let buffer = device.upload(&[1u8; 100]).unwrap();
    trace.fail_method(Method::Free);
    drop(buffer);
    drop(device.upload(&[1u8; 50]).unwrap());
    trace.fail_nothing();
    let error = device.take_drop_error().unwrap();
    assert!(error.to_string().contains("freeing the buffer of 100 bytes"), "{error}");
    assert_eq!(device.take_drop_error(), None);
}

/// Queues a copy of four sevens to page-locked memory on `stream`. Freeing the buffer would run it,
/// so the result includes the buffer.
fn queue_sevens<'p>(program: &'p Program, device: &Device, stream: &Stream) -> (Pinned<'p>, DeviceBuffer<u8>) {
    let buffer = device.upload(&[7_u8; 4]).unwrap();
    let host = program.pinned(4).unwrap();
    // SAFETY: both have 4 bytes, and callers wait before they drop or look at either.
    unsafe { device.driver().copy_d2h(host.memory.as_ptr(), buffer.address(), 4, stream.handle()) }.unwrap();
    (host, buffer)
}

fn a_dropped_stream_that_cannot_be_recorded_is_waited_for(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let program = Program::new(&setup.driver);
    let stream = device.stream().unwrap();
    let (host, _buffer) = queue_sevens(&program, &device, &stream);
    trace.fail_method(Method::EventRecord);
    drop(stream);
    trace.fail_nothing();
    device.synchronize().unwrap();
    assert_eq!(host.get(), [7; 4]);
    assert!(device.take_drop_error().unwrap().to_string().contains("event_record"));
}

fn all_streams_are_waited_for_though_one_wait_fails(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let program = Program::new(&setup.driver);
    let streams = [(); 2].map(|()| device.stream().unwrap());
    let queued = [0, 1].map(|i| queue_sevens(&program, &device, &streams[i]));
    trace.fail_method(Method::StreamSynchronize);
    refusal(device.synchronize()).says("injected");
    assert_eq!(queued.map(|(host, _)| host.get()), [[7; 4], [7; 4]]);
}

fn spinning_for_long_is_refused(setup: &Setup) {
    let device = setup.device();
    refusal(ops::spin(&device, Duration::from_secs(60), device.default_stream()))
        .of(ErrorKind::InvalidArgument)
        .says("60s");
    ops::spin(&device, Duration::from_millis(1), device.default_stream()).unwrap();
    device.synchronize().unwrap();
}

/// Uses everything: a transpose over two streams, with an event between them, and back.
fn everything(setup: &Setup, driver: Arc<Trace>) -> Result<()> {
    let device = setup.open(driver)?;
    let elements: Vec<u32> = (0..48).collect();
    let mut source = device.zeros::<u32>(48)?;
    source.upload_from(&elements)?;
    let mut result = device.zeros::<u32>(48)?;
    let stream = device.stream()?;
    let event = device.event()?;
    ops::transpose_into(source.view(&[6, 8])?, result.view_mut(&[8, 6])?, Some(Variant::Padded), &stream)?;
    stream.record(&event)?;
    device.default_stream().wait(&event)?;
    event.query()?;
    let mut back = ops::transpose(result.view(&[8, 6])?)?;
    let (mut copied, mut columns) = (device.alloc::<u32>(48)?, device.alloc::<u32>(48)?);
    back.reshape(&[48])?;
    ops::copy_into(&back, copied.view_mut(&[48])?, &stream)?;
    let by_columns = Some(Variant::ColumnLoop);
    ops::transpose_into(copied.view(&[6, 8])?, columns.view_mut(&[8, 6])?, by_columns, &stream)?;
    drop(stream);
    let again = device.stream()?;
    event.synchronize()?;
    again.synchronize()?;
    device.counters()?;
    assert_eq!(copied.download()?, elements);
    assert_eq!(columns.download()?, result.download()?);
    drop((source, result, back, copied, columns, event, again));
    device.take_drop_error().map_or(Ok(()), Err)
}

fn every_call_may_fail(setup: &Setup) {
    every_call(setup, everything);
}
