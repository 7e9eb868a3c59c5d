//! Times small permutes with their launch, beside an empty kernel, cuBLAS and cuTENSOR, and prints
//! a page for `benches/record`.
//!
//! A permute of at most 1 MiB takes about as long as its launch, and the state of the driver
//! decides how long that is: in one process an empty kernel took 4.1 us a launch, and later 1.05 us
//! (`benches/record/2026-11-27-h100/choices.md`). So the times of two processes say little of the
//! kernels. Here one process calls all of them, without Python, on one stream and one pair of
//! arrays, and they take turns in many rounds. Each result is compared with the host's before it is
//! timed.
//!
//! The cases are the small ones of `benches/cases-more.json`. Where the loader finds no cuBLAS or
//! cuTENSOR, `CUBLAS_LIBRARY` and `CUTENSOR_LIBRARY` name the files. Standard error has the reason
//! for each cell that is empty.

mod cublas;
mod cutensor;
mod library;
mod page;
#[path = "../support/permuted.rs"]
mod permuted;

use std::time::Instant;

use cublas::Cublas;
use cutensor::Cutensor;
use page::{Outcome, page};
use permuted::permuted;
use serde::Deserialize;
use warpstride::device::{Backend, Device};
use warpstride::driver::cuda::Cuda;
use warpstride::driver::{FunctionHandle, Modules};
use warpstride::element::{DType, Element};
use warpstride::error::Result;
use warpstride::launch_shape::LaunchShape;
use warpstride::layout::Layout;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, PermutePlan, Plan, Target};
use warpstride::stream::Stream;

/// Rounds, in each of which every contestant has a turn.
const ROUNDS: usize = 101;
/// Launches of a turn that are queued one behind the other. A GPU's queue holds more, so no launch
/// waits for room in it.
const IN_A_ROW: u32 = 200;
/// Launches of a turn that are waited for, one by one.
const ALONE: u32 = 20;
/// Turns of each contestant that are not counted.
const WARM_UPS: usize = 5;

/// The contestants, in the order of the table's columns; ours are the second and the third.
const TITLES: [&str; 5] = ["empty kernel", "kept plan", "`copy_into`", "cuBLAS geam", "cuTENSOR"];
const OURS: [usize; 2] = [1, 2];
const PEERS: [usize; 2] = [3, 4];

/// A kernel without parameters that does nothing, for any GPU that the crate supports.
const EMPTY: &str = ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry empty() { ret; }\n";

#[derive(Deserialize)]
struct Case {
    name: String,
    kind: String,
    dtype: DType,
    shape: Vec<usize>,
    axes: Vec<usize>,
}

impl Case {
    fn small() -> Vec<Self> {
        let mut all: Vec<Self> = serde_json::from_str(include_str!("../cases-more.json")).expect("cases");
        all.retain(|case| case.kind == "small");
        all
    }

    /// Returns the source with its axes in the order of the result.
    fn source(&self) -> Layout {
        permuted::source(&self.shape, &self.axes)
    }

    fn plan(&self, target: Target) -> Result<PermutePlan> {
        permuted::plan(&self.source(), self.dtype, target)
    }

    /// Returns the rows and columns, if the permute is the transpose of one matrix.
    fn matrix(&self) -> Option<[usize; 2]> {
        let (rank, at) = (self.axes.len(), *self.axes.first()?);
        let is_one = self.axes.iter().copied().eq((at..rank).chain(0..at));
        is_one.then(|| [self.shape[..at].iter().product(), self.shape[at..].iter().product()])
    }
}

/// The arrays of a case, which all contestants use.
struct Arrays<T: Element> {
    source: DeviceBuffer<T>,
    result: DeviceBuffer<T>,
}

/// Queues a case once.
type Launch<'a, T> = Box<dyn Fn(&mut Arrays<T>) -> Result<()> + 'a>;

/// The contestants on one device.
struct Contest {
    device: Device,
    /// The driver of the empty kernel, which holds the same primary context.
    driver: Cuda,
    empty: FunctionHandle,
    cublas: std::result::Result<Cublas, String>,
    cutensor: std::result::Result<Cutensor, String>,
}

impl Contest {
    fn open() -> Result<Self> {
        let device = Device::open(Backend::Cuda(0))?;
        let driver = Cuda::open(0)?;
        let module = driver.module_load(EMPTY)?;
        // SAFETY: the module is live, and is never unloaded.
        let empty = unsafe { driver.function(module, "empty") }?;
        let stream = device.default_stream().handle();
        // In this order, because cuTENSOR needs a library of cuBLAS.
        let (cublas, cutensor) = (Cublas::open(stream), Cutensor::open(stream));
        Ok(Self { device, driver, empty, cublas, cutensor })
    }

    fn stream(&self) -> &Stream {
        self.device.default_stream()
    }

    /// Returns how each contestant does a case, in the order of [`TITLES`].
    fn launches<'a, T: Element>(
        &'a self,
        case: &'a Case,
        plan: &'a PermutePlan,
        arrays: &Arrays<T>,
    ) -> [Option<Launch<'a, T>>; TITLES.len()] {
        let [from, to] = [arrays.source.address(), arrays.result.address()];
        let (stream, shape) = (self.stream(), LaunchShape { grid: [1; 3], block: [32, 1, 1], dynamic_shared: 0 });
        let empty = move |_: &mut Arrays<T>| {
            // SAFETY: the kernel takes no parameter and touches no memory. The stream is of the
            // same primary context.
            unsafe { self.driver.launch(self.empty, &shape, &[], stream.handle()) }
        };
        let kept = move |_: &mut Arrays<T>| {
            // SAFETY: both buffers hold the elements of the planned layouts and live in `Arrays`,
            // and the stream is of their device.
            unsafe { plan.launch_raw(&self.device, from, to, stream.handle()) }
        };
        let result_shape = case.source().shape().to_vec();
        let copied = move |arrays: &mut Arrays<T>| {
            let source = arrays.source.view(&case.shape)?.permuted_axes(&case.axes)?;
            ops::copy_into(source, arrays.result.view_mut(&result_shape)?, stream)
        };
        let cublas = self.cublas.as_ref().map_err(String::clone);
        let cublas = cublas.and_then(|cublas| cublas.permute(case, [from, to]));
        let cutensor = self.cutensor.as_ref().map_err(String::clone);
        let cutensor = cutensor.and_then(|cutensor| cutensor.permute(case, [from, to]));
        [
            Some(Box::new(empty)),
            Some(Box::new(kept)),
            Some(Box::new(copied)),
            peer(case, PEERS[0], cublas),
            peer(case, PEERS[1], cutensor),
        ]
    }

    /// Measures a case on such elements, all of which are different or repeat with an odd period,
    /// so that a shift by a power of two shows. For peers, which multiply by 1, they are normal
    /// numbers above 0.
    fn measure<T: Element + PartialEq>(&self, case: &Case, element: fn(usize) -> T) -> Result<Outcome> {
        let elements: Vec<T> = (0..case.source().len()).map(element).collect();
        let mut arrays = Arrays { source: self.device.upload(&elements)?, result: self.device.zeros(elements.len())? };
        let plan = case.plan(Target::of(&self.device))?;
        let launches = self.launches(case, &plan, &arrays);
        let (nothing, expected) = (arrays.result.download()?, permuted(&elements, &case.source()));
        for (launch, title) in launches.iter().zip(TITLES).skip(1) {
            let Some(launch) = launch else { continue };
            arrays.result.upload_from(&nothing)?;
            self.stream().synchronize()?;
            launch(&mut arrays)?;
            self.stream().synchronize()?;
            let is_right = arrays.result.download()? == expected;
            assert!(is_right, "{}: elements of {title} are in the wrong place", case.name);
        }
        let times = self.rounds(&launches, &mut arrays)?;
        Ok(Outcome { name: case.name.clone(), kernel: plan.entry().unwrap_or("none"), times })
    }

    /// Returns the times of each contestant: in a row and alone, one of each a round.
    fn rounds<T: Element>(
        &self,
        launches: &[Option<Launch<'_, T>>; TITLES.len()],
        arrays: &mut Arrays<T>,
    ) -> Result<[[Vec<f64>; 2]; TITLES.len()]> {
        let mut times = [const { [const { Vec::new() }; 2] }; TITLES.len()];
        for round in 0..WARM_UPS + ROUNDS {
            for place in 0..TITLES.len() {
                // The first one differs from round to round, and every second round runs backwards:
                // none always follows the same one.
                let place = if round % 2 == 0 { place } else { TITLES.len() - 1 - place };
                let at = (place + round / 2) % TITLES.len();
                let Some(launch) = &launches[at] else { continue };
                let turn = self.turn(launch, arrays)?;
                if round >= WARM_UPS {
                    times[at].iter_mut().zip(turn).for_each(|(times, time)| times.push(time));
                }
            }
        }
        Ok(times)
    }

    /// Returns the microseconds from launch to launch of a row that is waited for at its end, and
    /// those of a launch that is waited for by itself.
    fn turn<T: Element>(&self, launch: &Launch<'_, T>, arrays: &mut Arrays<T>) -> Result<[f64; 2]> {
        let stream = self.stream();
        let begin = Instant::now();
        for _ in 0..IN_A_ROW {
            launch(arrays)?;
        }
        stream.synchronize()?;
        let in_a_row = begin.elapsed();
        let begin = Instant::now();
        for _ in 0..ALONE {
            launch(arrays)?;
            stream.synchronize()?;
        }
        let alone = begin.elapsed();
        Ok([in_a_row.as_secs_f64() * 1e6 / f64::from(IN_A_ROW), alone.as_secs_f64() * 1e6 / f64::from(ALONE)])
    }

    /// Describes the device, the versions and the protocol.
    fn heading(&self) -> String {
        let info = self.device.info();
        let version = |found: std::result::Result<String, &String>| found.unwrap_or_else(|_| "not found".into());
        let cublas = version(self.cublas.as_ref().map(|found| found.version.to_string()));
        let cutensor = version(self.cutensor.as_ref().map(|found| found.version.to_string()));
        format!(
            "{}, driver {}; warpstride {}; cuBLAS {cublas}; cuTENSOR {cutensor}; {}.\n\n\
             Microseconds of the host's clock, the median of {ROUNDS} rounds in one process. In each round every column \
             has its turn, in an order that changes, on the same stream and the same two arrays: {IN_A_ROW} launches one \
             behind the other and a wait, and then {ALONE} launches with a wait each. A kept plan is `PermutePlan` by \
             addresses, and `copy_into` makes the views and finds the plan each time. cuTENSOR has its plan beforehand \
             too. The last columns have the best peer's time over ours, the median of the rounds and their quartiles: \
             above 1, ours is faster. Each result was right in every element.\n",
            info.name,
            info.driver_version,
            env!("CARGO_PKG_VERSION"),
            jiff::Timestamp::now(),
        )
    }
}

/// Returns how a peer does a case, or says why it does not.
fn peer<'a, T: Element>(
    case: &Case,
    which: usize,
    call: std::result::Result<impl Fn() + 'a, String>,
) -> Option<Launch<'a, T>> {
    match call {
        Ok(call) => Some(Box::new(move |_| {
            call();
            Ok(())
        })),
        Err(reason) => {
            eprintln!("{}: {} is left out: {reason}", case.name, TITLES[which]);
            None
        }
    }
}

fn run(contest: &Contest) -> Result<String> {
    let mut outcomes = Vec::new();
    for case in Case::small() {
        outcomes.push(match case.dtype.width() {
            1 => contest.measure(&case, |at| (at % 251) as u8),
            // Halves between the subnormal numbers and infinity.
            2 => contest.measure(&case, |at| (0x400 + at % 29_989) as u16),
            4 => contest.measure(&case, |at| (at + 1) as f32),
            8 => contest.measure(&case, |at| (at + 1) as f64),
            _ => contest.measure(&case, |at| [(at + 1) as f64, 1.0]),
        }?);
    }
    Ok(page(&contest.heading(), &outcomes))
}

fn main() {
    match Contest::open() {
        Ok(contest) => print!("{}", run(&contest).expect("the GPU does it")),
        Err(reason) => println!("without a GPU there is nothing to measure: {reason}"),
    }
}
