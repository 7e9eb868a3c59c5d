//! Pipelines: values and order in every mode, errors and panics of every stage, no waits of the
//! driver, and memory that the ring bounds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use warpstride::driver::Driver;
use warpstride::driver::trace::Trace;
use warpstride::error::counted;
use warpstride::pipeline::{Mode, Options, Pipeline, Run, Summary, Track, Work};
use warpstride::{Device, Error, ErrorKind, Layout, Result, ops};

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::hooked::Hooked;
use crate::long::short_or_long;

cases! {
    Any every_mode_gives_every_batch_in_order,
    Any a_part_of_a_batch_is_copied_alone,
    Any several_sources_and_sinks_on_threads_of_the_program,
    Any ends_that_are_dropped_end_the_run,
    Any the_first_error_of_any_stage_is_returned,
    Any a_panic_of_any_stage_goes_on_when_all_has_landed,
    Any no_call_can_wait_between_batches,
    Any memory_is_bounded_by_the_ring,
    Any the_timeline_has_every_stage,
    Any a_timeline_has_nothing_of_a_run_that_failed,
    Any a_panic_of_the_driver_costs_no_slot,
    Any every_driver_call_fails_and_nothing_leaks,
    SoftwareGpu("its work runs as late as it may, in an order drawn from a seed") a_forgotten_wait_is_seen,
}

/// Rows and columns of a batch.
const ROWS: usize = 24;
const COLS: usize = 40;
const LEN: usize = ROWS * COLS;

fn options(mode: Mode, slots: usize) -> Options {
    Options { mode, slots, ..Options::default() }
}

fn pipeline(device: &Device, options: Options) -> Pipeline<f32, f32> {
    Pipeline::new(device, LEN, LEN, options).unwrap()
}

/// Fills a batch of `count` batches.
fn source(count: u64) -> impl FnMut(u64, &mut [f32]) -> Result<Option<usize>> {
    move |batch, elements| {
        if batch == count {
            return Ok(None);
        }
        elements.iter_mut().enumerate().for_each(|(at, element)| *element = input(batch, at));
        Ok(Some(elements.len()))
    }
}

fn input(batch: u64, at: usize) -> f32 {
    ((batch * 131 + at as u64) % 10_007) as f32
}

/// Transposes the batch and doubles it, in two steps.
fn transpose_and_double(work: &mut Work<'_, f32, f32>, between: &mut [warpstride::DeviceBuffer<f32>]) -> Result<()> {
    let stream = work.stream().clone();
    let between = &mut between[work.slot];
    work.range("transpose", |work| {
        ops::copy_into(work.input.view(&[ROWS, COLS])?.t(), between.view_mut(&[COLS, ROWS])?, &stream)
    })?;
    work.range("double", |work| ops::scale_into(2.0, between.view(&[LEN])?, work.output.view_mut(), &stream))
}

#[track_caller]
fn check(batch: u64, results: &[f32]) {
    let expected = |at: usize| 2.0 * input(batch, at % ROWS * COLS + at / ROWS);
    let wrong = (0..LEN).find(|&at| results[at] != expected(at));
    assert_eq!(wrong.map(|at| (at, results[at], expected(at))), None, "batch {batch}");
}

/// Runs batches through a pipeline, and checks them all.
fn run(device: &Device, pipeline: &mut Pipeline<f32, f32>, count: u64) -> Result<Summary> {
    let slots = pipeline.slots();
    let mut between = (0..slots).map(|_| device.alloc::<f32>(LEN)).collect::<Result<Vec<_>>>()?;
    let mut next = 0;
    pipeline.run(
        source(count),
        |work| transpose_and_double(work, &mut between),
        |batch, results| {
            assert_eq!(batch, next, "batches come in order");
            next += 1;
            check(batch, results);
            Ok(())
        },
    )
}

fn every_mode_gives_every_batch_in_order(setup: &Setup) {
    let device = setup.device();
    for mode in Mode::ALL {
        for slots in [1, 2, 5] {
            let mut pipeline = pipeline(&device, options(mode, slots));
            for count in [0, 1, 17] {
                let summary = run(&device, &mut pipeline, count).unwrap();
                assert!(summary.is_complete && summary.timeline.is_none(), "{summary:?}");
                assert_eq!(summary.batches, count, "{mode}, {slots} slots");
            }
        }
    }
    refusal(Pipeline::<f32, f32>::new(&device, 1, 1, options(Mode::Streams, 0))).of(ErrorKind::InvalidArgument);
}

fn a_part_of_a_batch_is_copied_alone(setup: &Setup) {
    let device = setup.device();
    for mode in Mode::ALL {
        let mut pipeline = Pipeline::<u16, u16>::new(&device, 100, 60, options(mode, 3)).unwrap();
        let (mut seen, mut expected) = (Vec::new(), Vec::new());
        let summary = pipeline.run(
            |batch, elements| {
                let filled = (batch as usize * 37) % 101;
                elements[..filled].fill(batch as u16 + 1);
                Ok((batch < 20).then_some(filled))
            },
            |work| {
                let kept = work.filled.min(60);
                work.keep(kept);
                let (layout, stream) = (Layout::row_major(&[kept])?, work.stream().clone());
                ops::copy_into(work.input.view_with(layout)?, work.output.view_mut().slice(0, ..kept, 1)?, &stream)
            },
            |_, results| {
                seen.push(results.to_vec());
                Ok(())
            },
        );
        expected.extend((0..20_u16).map(|batch| vec![batch + 1; (usize::from(batch) * 37 % 101).min(60)]));
        assert_eq!((summary.unwrap().batches, seen), (20, expected), "{mode}");
    }
    let mut pipeline = pipeline(&device, options(Mode::Streams, 2));
    refusal(pipeline.run(|_, _| Ok(Some(LEN + 1)), |_| Ok(()), |_, _| Ok(()))).of(ErrorKind::InvalidArgument);
    let keeps = |work: &mut Work<'_, f32, f32>| {
        work.keep(LEN + 1);
        Ok(())
    };
    refusal(pipeline.run(source(1), keeps, |_, _| Ok(()))).of(ErrorKind::InvalidArgument).says("keep");
}

fn several_sources_and_sinks_on_threads_of_the_program(setup: &Setup) {
    let device = setup.device();
    for mode in Mode::ALL {
        let mut pipeline = pipeline(&device, options(mode, 4));
        let mut between: Vec<_> = (0..pipeline.slots()).map(|_| device.alloc::<f32>(LEN).unwrap()).collect();
        let (count, taken) = (41, AtomicUsize::new(0));
        let Run { feed, engine, drain } = pipeline.start().unwrap();
        let summary = thread::scope(|scope| {
            let (feed, drain, taken) = (&feed, &drain, &taken);
            for _ in 0..3 {
                scope.spawn(move || while feed.fill(source(count)).unwrap() {});
            }
            for _ in 0..2 {
                scope.spawn(move || {
                    let take = |batch, results: &mut [f32]| {
                        check(batch, results);
                        taken.fetch_add(1, Relaxed);
                        Ok(())
                    };
                    while drain.take(take).unwrap() {}
                });
            }
            engine.drive(|work| transpose_and_double(work, &mut between))
        });
        assert_eq!((summary.unwrap().batches, taken.into_inner()), (count, count as usize), "{mode}");
    }
}

fn ends_that_are_dropped_end_the_run(setup: &Setup) {
    let device = setup.device();
    let mut pipeline = pipeline(&device, options(Mode::Streams, 3));
    let Run { feed, engine, drain } = pipeline.start().unwrap();
    let summary = thread::scope(|scope| {
        scope.spawn(move || (0..5).for_each(|_| assert!(feed.fill(source(9)).unwrap())));
        scope.spawn(move || while drain.take(|_, _| Ok(())).unwrap() {});
        engine.drive(|_| Ok(()))
    });
    let summary = summary.unwrap();
    assert_eq!((summary.batches, summary.is_complete), (5, true), "the source ended");
    let Run { feed, engine, drain } = pipeline.start().unwrap();
    let summary = thread::scope(|scope| {
        scope.spawn(move || while feed.fill(source(u64::MAX)).unwrap() {});
        scope.spawn(move || (0..5).for_each(|_| assert!(drain.take(|_, _| Ok(())).unwrap())));
        engine.drive(|_| Ok(()))
    });
    let summary = summary.unwrap();
    assert_eq!((summary.batches, summary.is_complete), (5, false), "the sink had enough");
    let Run { feed, engine, drain } = pipeline.start().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || while feed.fill(source(u64::MAX)).unwrap() {});
        scope.spawn(move || assert!(!drain.take(|_, _| Ok(())).unwrap()));
        drop(engine);
    });
    assert_eq!(run(&device, &mut pipeline, 7).unwrap().batches, 7);
}

/// A stage of the program.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Source,
    Work,
    Sink,
}

const STAGES: [Stage; 3] = [Stage::Source, Stage::Work, Stage::Sink];

/// Runs a pipeline with a stage that calls `fail` for batch `at`.
fn run_failing(
    pipeline: &mut Pipeline<f32, f32>,
    stage: Stage,
    at: u64,
    fail: impl Fn() -> Result<()> + Sync,
) -> Result<Summary> {
    let fails = |now: Stage, batch| if now == stage && batch == at { fail() } else { Ok(()) };
    let mut fill = source(u64::MAX);
    let mut calls = 0;
    pipeline.run(
        |batch, elements| fails(Stage::Source, batch).and_then(|()| fill(batch, elements)),
        |work| {
            calls += 1;
            // In mode `Graph` there is one call for each slot.
            fails(Stage::Work, calls - 1)?;
            let stream = work.stream().clone();
            ops::copy_into(work.input.view(&[LEN])?, work.output.view_mut(), &stream)
        },
        |batch, _| fails(Stage::Sink, batch),
    )
}

fn the_first_error_of_any_stage_is_returned(setup: &Setup) {
    let device = setup.device();
    for mode in Mode::ALL {
        let mut pipeline = pipeline(&device, options(mode, 3));
        for stage in STAGES {
            let at = if mode == Mode::Graph && stage == Stage::Work { 2 } else { 6 };
            let text = format!("a failure of {stage:?}");
            let fail = || Err(Error::new(ErrorKind::Io, text.clone()));
            let at = if mode == Mode::Blocking && stage == Stage::Work { 0 } else { at };
            let error = run_failing(&mut pipeline, stage, at, fail).unwrap_err();
            assert!(error.kind() == ErrorKind::Io && error.to_string().contains(&text), "{mode}: {error}");
            // No slot is lost.
            let summary = run(&device, &mut pipeline, 10).unwrap();
            assert_eq!(summary.batches, 10, "{mode}, after a failure of {stage:?}");
        }
    }
    assert_eq!(device.take_drop_error(), None);
}

fn a_panic_of_any_stage_goes_on_when_all_has_landed(setup: &Setup) {
    let device = setup.device();
    for mode in Mode::ALL {
        let mut pipeline = pipeline(&device, options(mode, 3));
        for stage in STAGES {
            let at = if mode == Mode::Graph { 1 } else { 4 };
            let at = if mode == Mode::Blocking { 0 } else { at };
            let panics = || -> Result<()> { std::panic::resume_unwind(Box::new("a panic of a stage")) };
            let outcome = catch_unwind(AssertUnwindSafe(|| run_failing(&mut pipeline, stage, at, panics)));
            let payload = outcome.expect_err("the panic goes on");
            assert_eq!(payload.downcast_ref(), Some(&"a panic of a stage"), "{mode}, {stage:?}");
            assert_eq!(run(&device, &mut pipeline, 10).unwrap().batches, 10, "{mode}, after a panic of {stage:?}");
        }
    }
    assert_eq!(device.take_drop_error(), None);
}

/// Runs batches that do next to nothing, and returns what `figure` says after some, and at the end.
fn figures<T: Send>(device: &Device, mode: Mode, count: u64, figure: impl Fn(&Device) -> T + Sync) -> [T; 2] {
    const WARM: u64 = 20;
    let mut pipeline = Pipeline::<u8, u8>::new(device, 64, 64, options(mode, 4)).unwrap();
    let (mut warm, mut last) = (None, None);
    let summary = pipeline.run(
        |batch, elements| Ok((batch < count).then_some(elements.len())),
        |work| {
            let stream = work.stream().clone();
            ops::copy_into(work.input.view(&[64])?, work.output.view_mut(), &stream)
        },
        |batch, _| {
            if batch == WARM {
                warm = Some(figure(device));
            } else if batch == count - 1 {
                last = Some(figure(device));
            }
            Ok(())
        },
    );
    assert_eq!(summary.unwrap().batches, count);
    [warm, last].map(|figure| figure.expect("the sink saw both batches"))
}

fn no_call_can_wait_between_batches(setup: &Setup) {
    let device = setup.device();
    for mode in Mode::ALL {
        let [warm, last] = figures(&device, mode, 120, |device| device.stats());
        let calls = last.since(&warm);
        if mode == Mode::Blocking {
            // Three for each of the 99 batches, but for those about the two that look.
            assert!((290..=300).contains(&calls.can_synchronize), "{calls}");
        } else {
            assert_eq!(calls.can_synchronize, 0, "{mode}: {calls}");
        }
    }
}

fn memory_is_bounded_by_the_ring(setup: &Setup) {
    let device = setup.device();
    for mode in Mode::ALL {
        // The long form has many batches in one mode.
        let count = if mode == Mode::Streams { short_or_long(400, 100_000) } else { 400 };
        let [warm, last] = figures(&device, mode, count, |device| {
            let memory = device.stats().memory;
            (device.pinned_memory(), memory.device, memory.host, memory.pool.peak_bytes)
        });
        assert_eq!(warm, last, "{mode}");
    }
}

fn the_timeline_has_every_stage(setup: &Setup) {
    let device = setup.device();
    for mode in Mode::ALL {
        let mut pipeline = pipeline(&device, Options { timeline: 4, source: "made", ..options(mode, 3) });
        let timeline = run(&device, &mut pipeline, 30).unwrap().timeline.unwrap();
        for batch in 26..30 {
            let names: Vec<_> =
                timeline.spans.iter().filter(|span| span.batch == batch).map(|span| (span.track, span.name)).collect();
            let work: &[&str] = if mode == Mode::Graph { &["work"] } else { &["transpose", "double"] };
            for (track, expected) in [
                (Track::Source, &["made"][..]),
                (Track::Upload, &["cpu_to_gpu"]),
                (Track::Work, work),
                (Track::Download, &["gpu_to_cpu"]),
                (Track::Sink, &["sink"]),
            ] {
                let found: Vec<_> = names.iter().filter(|(on, _)| *on == track).map(|(_, name)| *name).collect();
                assert_eq!(found, expected, "{mode}, batch {batch}");
            }
        }
        assert!(timeline.spans.iter().all(|span| span.batch >= 26 && span.end_us >= span.start_us), "{timeline:?}");
        assert!(timeline.spans.is_sorted_by_key(|span| span.start_us), "{timeline:?}");
        for track in Track::ALL {
            assert!((0.0..=1.0).contains(&timeline.busy(track)), "{track:?} of {mode}");
        }
        assert!((0.0..=1.0).contains(&timeline.idle()) && timeline.overlap() <= 1.0 - timeline.idle() + 1e-9);
    }
}

fn a_timeline_has_nothing_of_a_run_that_failed(setup: &Setup) {
    let trace = Arc::new(Trace::new(Arc::clone(&setup.driver)));
    let device = setup.open(Arc::clone(&trace) as Arc<dyn Driver>).unwrap();
    let all = Options { timeline: usize::MAX, ..options(Mode::Streams, 3) };
    let mut pipeline = pipeline(&device, all);
    run(&device, &mut pipeline, 6).unwrap();
    for ahead in [40, 60, 80] {
        trace.fail_nth(trace.calls().len() + ahead);
        let failed = run(&device, &mut pipeline, 8);
        trace.fail_nothing();
        assert!(failed.is_err(), "call {ahead} of the run failed");
        let timeline = run(&device, &mut pipeline, 4).unwrap().timeline.unwrap();
        // Two of the host, two copies and two ranges.
        assert_eq!(timeline.spans.len(), 4 * 6, "{timeline:?}");
        assert!(timeline.spans.iter().all(|span| span.start_us >= 0.0), "{timeline:?}");
    }
}

fn a_panic_of_the_driver_costs_no_slot(setup: &Setup) {
    let left = Arc::new(AtomicUsize::new(usize::MAX));
    let counted = Arc::clone(&left);
    let loses = move |_| {
        if counted.fetch_sub(1, Relaxed) == 0 {
            std::panic::resume_unwind(Box::new("a panic of the driver"));
        }
        false
    };
    let hooked = Hooked { loses: Box::new(loses), ..Hooked::new(Arc::clone(&setup.driver)) };
    let device = Device::with_driver(Arc::new(hooked)).unwrap();
    for mode in Mode::ALL {
        let mut pipeline = pipeline(&device, options(mode, 2));
        // Copies to the device and back take turns.
        for copies in [0, 1, 4, 5] {
            left.store(copies, Relaxed);
            let outcome = catch_unwind(AssertUnwindSafe(|| run(&device, &mut pipeline, 6)));
            let payload = outcome.expect_err("the panic goes on");
            assert_eq!(payload.downcast_ref(), Some(&"a panic of the driver"), "{mode}, copy {copies}");
            left.store(usize::MAX, Relaxed);
            assert_eq!(run(&device, &mut pipeline, 6).unwrap().batches, 6, "{mode}, after copy {copies}");
        }
    }
}

/// Runs some batches over a trace.
fn traced(setup: &Setup, mode: Mode, arrange: impl Fn(&Trace)) -> (Result<Summary>, Arc<Trace>) {
    let trace = Arc::new(Trace::new(Arc::clone(&setup.driver)));
    let outcome = (|| {
        let device = setup.open(Arc::clone(&trace) as Arc<dyn Driver>)?;
        arrange(&trace);
        let mut pipeline = Pipeline::new(&device, LEN, LEN, Options { timeline: 2, ..options(mode, 2) })?;
        let ran = run(&device, &mut pipeline, 5);
        drop(pipeline);
        // A drop that fails is told by the device.
        ran.and_then(|summary| device.take_drop_error().map_or(Ok(summary), Err))
    })();
    (outcome, trace)
}

fn every_driver_call_fails_and_nothing_leaks(setup: &Setup) {
    let mut faults = 0;
    for mode in Mode::ALL {
        let (summary, trace) = traced(setup, mode, |_| ());
        assert_eq!(summary.unwrap().batches, 5, "{mode}");
        for index in (0..trace.calls().len()).step_by(short_or_long(5, 1)) {
            let (outcome, trace) = traced(setup, mode, |trace| trace.fail_nth(index));
            assert!(trace.live().is_empty(), "{mode}, call {index}: {:?}", trace.live());
            match outcome {
                Err(error) => assert!(error.to_string().contains("injected"), "{mode}, call {index}: {error}"),
                // The number of questions varies, and the call may never have come; the drops of a
                // device cannot report it.
                Ok(summary) => assert_eq!(summary.batches, 5, "{mode}, call {index}"),
            }
            faults += 1;
        }
        // A lost device keeps what it cannot free.
        let lost = traced(setup, mode, |trace| trace.fail_from(60)).0.unwrap_err();
        assert!(lost.to_string().contains("injected"), "{mode}: {lost}");
    }
    assert!(faults >= short_or_long(40, 200), "{}", counted(faults, "fault"));
}

/// A run in which the stream waits that `forgets` says are left out, as a value: right or not.
fn is_right(driver: &Arc<dyn Driver>, forgets: impl Fn(usize) -> bool + Send + Sync + 'static) -> bool {
    let waits = AtomicUsize::new(0);
    let forgets_wait = Box::new(move || forgets(waits.fetch_add(1, Relaxed)));
    let hooked = Hooked { forgets_wait, ..Hooked::new(Arc::clone(driver)) };
    let device = Device::with_driver(Arc::new(hooked)).unwrap();
    let mut pipeline = pipeline(&device, options(Mode::Streams, 2));
    let mut right = true;
    pipeline
        .run(
            source(6),
            |work| {
                let stream = work.stream().clone();
                ops::scale_into(2.0, work.input.view(&[LEN])?, work.output.view_mut(), &stream)
            },
            |batch, results| {
                right &= (0..LEN).all(|at| results[at] == 2.0 * input(batch, at));
                Ok(())
            },
        )
        .unwrap();
    right
}

fn a_forgotten_wait_is_seen(setup: &Setup) {
    setup.for_each_seed(|driver| assert!(is_right(driver, |_| false), "no wait is forgotten"));
    // The first batch: the upload waits for the zeros of the new input, the work for the upload and
    // for the zeros of its output, the download for the work. The third wait is for what the upload
    // has waited for.
    for forgotten in [0, 1, 3] {
        let seen = AtomicUsize::new(0);
        setup.for_each_seed(|driver| {
            if !is_right(driver, move |wait| wait == forgotten) {
                seen.fetch_add(1, Relaxed);
            }
        });
        assert!(seen.into_inner() > 0, "a run without wait {forgotten} is right under all seeds");
    }
}
