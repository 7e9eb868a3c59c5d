//! Every call of every GPU's driver fails in turn: there is an error or the right values, nothing
//! stays alive, and copies that are queued touch no memory that was dropped.

use std::sync::Arc;

use warpstride::alloc::DriverMemory;
use warpstride::distributed::{Distributed, Exchange, Gpus, Redistribution};
use warpstride::driver::Driver;
use warpstride::driver::soft::Soft;
use warpstride::driver::trace::{Method, Trace};
use warpstride::interp::Checks;
use warpstride::{Device, Result, ops};

use super::Reach::{All, Engines, Islands};
use super::{Reach, permuted, split};
use crate::long::short_or_long;

const SHAPE: [usize; 3] = [5, 4, 3];
const AXES: [usize; 3] = [2, 0, 1];
const GPUS: usize = 3;

/// GPUs of a host whose drivers' calls can be made to fail.
struct Traced {
    soft: Vec<Arc<Soft>>,
    traces: Vec<Arc<Trace>>,
    limited: bool,
    reach: Reach,
}

/// The order of work, whether exchanges leave multiprocessors to others, and the ways of the GPUs.
type Setting = (u64, bool, Reach);

impl Traced {
    fn new((seed, limited, reach): Setting) -> Self {
        let soft = reach.islands(GPUS, seed, Checks::ALL);
        let traced = |soft: &Arc<Soft>| Arc::new(Trace::new(Arc::clone(soft) as Arc<dyn Driver>));
        Self { traces: soft.iter().map(traced).collect(), soft, limited, reach }
    }

    /// Opens the GPUs. Memory that is dropped is given back at once, so that a use of it is a
    /// fault.
    fn open(&self) -> Result<Arc<Gpus>> {
        let open = |trace: &Arc<Trace>| {
            Device::with_allocator(Arc::clone(trace) as Arc<dyn Driver>, |driver| {
                Ok(Arc::new(DriverMemory::new(driver)))
            })
        };
        let gpus = self.reach.gpus(self.traces.iter().map(open).collect::<Result<_>>()?)?;
        Ok(Arc::new(if self.limited { gpus.limited_to(1)? } else { gpus }))
    }

    /// Runs the whole flow, and once more without failures, which must then be right.
    fn run(&self) -> Result<Vec<f32>> {
        let gpus = self.open()?;
        let outcome = flow(&gpus);
        self.traces.iter().for_each(|trace| trace.fail_nothing());
        let again = flow(&gpus).unwrap_or_else(|error| panic!("after {outcome:?}: {error}"));
        assert_eq!(again, expected(), "after {outcome:?}");
        gpus.synchronize().unwrap_or_else(|error| panic!("after {outcome:?}: {error}"));
        outcome
    }

    fn assert_clean(&self, what: &str) {
        for (soft, trace) in self.soft.iter().zip(&self.traces) {
            assert!(trace.live().is_empty(), "{what} left {:?}", trace.live());
            assert_eq!(soft.findings(), [], "{what}");
        }
    }
}

fn elements() -> Vec<f32> {
    (0..60_u8).map(f32::from).collect()
}

/// Twice each element, because work on the parts comes before the exchange.
fn expected() -> Vec<f32> {
    permuted(&elements(), &SHAPE, &AXES).into_iter().map(|element| 2.0 * element).collect()
}

/// Scatters, scales, permutes twice and gathers. A failed launch drops its arrays at once.
fn flow(gpus: &Arc<Gpus>) -> Result<Vec<f32>> {
    let (from, to) = (split(&SHAPE, "0:3"), split(&[3, 5, 4], "1:2+0+3"));
    let plain = Distributed::scatter(gpus, &from, &elements())?;
    let mut source = Distributed::alloc(gpus, &from)?;
    for rank in 0..GPUS {
        let stream = gpus.device(rank).stream()?;
        ops::scale_into(2.0, plain.part(rank), source.part_mut(rank), &stream)?;
    }
    let exchange = Exchange::in_pieces(gpus, &Redistribution::new(&from, AXES, &to, 4)?, 16)?;
    let mut result = Distributed::alloc(gpus, &to)?;
    exchange.launch(&source, &mut result)?;
    exchange.launch(&source, &mut result)?;
    drop(source);
    result.permute([0, 1, 2], &split(&[3, 5, 4], "2:2"))?.gather()
}

/// The calls of each GPU in a run without failures, from those that open it to those behind the
/// second launch.
fn calls(setting: Setting) -> Vec<usize> {
    let traced = Traced::new(setting);
    let gpus = traced.open().unwrap();
    assert_eq!(flow(&gpus).unwrap(), expected());
    drop(gpus);
    traced.assert_clean("a run without failures");
    traced.traces.iter().map(|trace| trace.calls().len()).collect()
}

fn each_failure(setting: Setting, fail: impl Fn(&Trace, usize)) {
    for (gpu, calls) in calls(setting).into_iter().enumerate() {
        assert!(calls > 20, "GPU {gpu}: {calls} calls");
        // The short form has a third of the calls.
        for index in (0..calls).skip(gpu).step_by(short_or_long(3, 1)) {
            let traced = Traced::new(setting);
            fail(&traced.traces[gpu], index);
            let outcome = traced.run();
            let call = traced.traces[gpu].calls().get(index).map(ToString::to_string);
            let what = format!("failing call {index} of GPU {gpu}, {call:?}");
            match outcome {
                Ok(elements) => assert_eq!(elements, expected(), "{what}"),
                Err(error) => assert!(error.to_string().contains("injected failure"), "{what}: {error}"),
            }
            traced.assert_clean(&what);
        }
    }
}

#[test]
fn a_failed_call_leaves_an_error_or_the_right_values() {
    for setting in [
        (0, false, All),
        (2, true, All),
        (1, true, All),
        (0, false, Islands(1)),
        (1, true, Islands(2)),
        (0, true, Engines),
    ] {
        each_failure(setting, Trace::fail_nth);
    }
}

#[test]
fn a_gpu_that_is_lost_leaves_no_copy_behind() {
    for setting in [(0, true, All), (1, false, All), (1, false, Islands(1)), (0, true, Islands(2)), (0, false, Engines)]
    {
        each_failure(setting, Trace::fail_from);
    }
}

/// The copies of other ranks are queued when one of these fails, and nothing orders them before the
/// drops of the arrays but the end of the launch.
#[test]
fn the_arrays_of_a_failed_launch_may_be_dropped() {
    for method in [Method::Launch, Method::EventRecord, Method::EventWait] {
        for gpu in 0..GPUS {
            for setting in [
                (0, false, All),
                (0, true, All),
                (1, true, All),
                (2, false, All),
                (0, false, Islands(1)),
                (1, true, Islands(2)),
                (0, false, Engines),
            ] {
                let traced = Traced::new(setting);
                let gpus = traced.open().unwrap();
                let (from, to) = (split(&SHAPE, "0:3"), split(&[3, 5, 4], "0:2+0+1"));
                let source = Distributed::scatter(&gpus, &from, &elements()).unwrap();
                let mut result = Distributed::alloc(&gpus, &to).unwrap();
                let exchange = Exchange::new(&gpus, &Redistribution::new(&from, AXES, &to, 4).unwrap()).unwrap();
                exchange.launch(&source, &mut result).unwrap();
                gpus.synchronize().unwrap();
                traced.traces[gpu].fail_method(method);
                let failed = exchange.launch(&source, &mut result);
                assert!(failed.is_err(), "{} of GPU {gpu}", method.name());
                drop((source, result));
                traced.traces[gpu].fail_nothing();
                gpus.synchronize().unwrap();
                assert_eq!(flow(&gpus).unwrap(), expected(), "{} of GPU {gpu}", method.name());
                drop((exchange, gpus));
                traced.assert_clean(method.name());
            }
        }
    }
}
