//! `warpstride bench --all`: a fixed list of cases in one run.

use crate::export::{json, text};
use crate::run::Run;
use anyhow::Result;
use half::{bf16, f16};
use serde::Deserialize;
use warpstride::counters::Counters;
use warpstride::device::Backend;
use warpstride::element::DType;
use warpstride::ops::{Elementwise, Reduction};
use warpstride::roofline::measure::{Rotation, has_times};
use warpstride::roofline::model::DeviceModel;
use warpstride::roofline::record::Record;

use super::affine::Mapped;
use super::arithmetic::{self, Arithmetic, Computed, OnOperands, Operands};
use super::axis::{Along, AlongAxis};
use super::conversion::Conversion;
use super::measure::{Bench, Case};
use super::permute::Moved;
use super::shrink;
use crate::output::Output;
use crate::runs::Kept;
use crate::{args, compare as ladder, open, peaks};

/// Timed runs of a case.
const SAMPLES: usize = 20;
/// Bytes of an array of the streams where they are only counted.
const COUNTED: usize = 64 << 10;
/// Most elements of a case on the software GPU, which is soon done with them.
const SMALL: usize = 1 << 14;
/// Permutes that convert what they move: from which type to which, the axis of the result whose
/// indices have factors and offsets of their own, the shape, and the axes. Images of pixels to
/// planes and back, activations of many channels, and matrices.
type Mapping = (DType, DType, Option<usize>, &'static [usize], &'static [usize]);
const MAPPED: [Mapping; 6] = [
    (DType::F32, DType::F32, None, &[16384, 16384], &[1, 0]),
    (DType::F32, DType::F16, None, &[16384, 16384], &[1, 0]),
    (DType::U8, DType::F32, None, &[16384, 16384], &[1, 0]),
    (DType::F16, DType::F16, Some(1), &[64, 56, 56, 256], &[0, 3, 1, 2]),
    (DType::F32, DType::Bf16, Some(3), &[64, 256, 55, 55], &[0, 2, 3, 1]),
    (DType::U8, DType::F16, Some(1), &[64, 1080, 1920, 3], &[0, 3, 1, 2]),
];
/// The matrices that every kernel transposes, on a GPU and elsewhere.
const MATRICES: [&[usize]; 2] = [&[4096, 16384], &[256]];

const ARITHMETIC: [Arithmetic; 10] = [
    Arithmetic::Fill,
    Arithmetic::Elementwise(Elementwise::Mul),
    Arithmetic::Elementwise(Elementwise::Add),
    Arithmetic::Elementwise(Elementwise::Triad),
    Arithmetic::Elementwise(Elementwise::NStream),
    Arithmetic::Elementwise(Elementwise::Axpy),
    Arithmetic::Reduction(Reduction::Sum),
    Arithmetic::Dot,
    Arithmetic::Reduction(Reduction::Min),
    Arithmetic::Reduction(Reduction::Max),
];

/// What is done along an axis of a matrix.
const MATRIX: [usize; 2] = [8192, 16384];
const ALONG_AXES: [(Along, DType, usize); 9] = [
    (Along::Reduction(Reduction::Sum), DType::F32, 0),
    (Along::Reduction(Reduction::Sum), DType::F32, 1),
    (Along::Reduction(Reduction::Max), DType::F32, 0),
    (Along::Reduction(Reduction::Max), DType::F32, 1),
    (Along::Reduction(Reduction::ArgMax), DType::F32, 0),
    (Along::Reduction(Reduction::ArgMax), DType::F32, 1),
    (Along::Softmax, DType::F32, 1),
    (Along::Softmax, DType::F16, 1),
    (Along::MeanVariance, DType::F32, 1),
];

/// What is made of elements, and where rows go.
const CONVERSIONS: [Conversion; 9] = [
    Conversion::Normalize { shape: [64, 1080, 1920, 3], to: DType::F32 },
    Conversion::Normalize { shape: [64, 1080, 1920, 3], to: DType::F16 },
    Conversion::Cast { shape: [1 << 27], from: DType::U8, to: DType::F32 },
    Conversion::Cast { shape: [1 << 27], from: DType::F32, to: DType::F16 },
    Conversion::Cast { shape: [1 << 27], from: DType::F32, to: DType::U8 },
    Conversion::Cast { shape: [1 << 27], from: DType::F16, to: DType::F32 },
    Conversion::Rows { shape: [1 << 18, 1 << 10], dtype: DType::F32, is_put: false },
    Conversion::Rows { shape: [1 << 18, 1 << 10], dtype: DType::F32, is_put: true },
    Conversion::Strided { shape: [1 << 27], dtype: DType::F32, step: 2 },
];

/// A permute of `cases.json`.
#[derive(Deserialize)]
struct Listed {
    dtype: DType,
    shape: Vec<usize>,
    axes: Vec<usize>,
}

pub(super) fn run(args: &args::Bench, backend: Backend, output: &Output) -> Result<()> {
    let kept = Kept::new(args.save.as_deref(), args.compare.as_deref())?;
    let device = open(backend, output)?;
    kept.check_device(&device)?;
    let timed = has_times(&device);
    let date = jiff::Timestamp::now().to_string();
    // Measured in this run: kept ceilings may come from another day.
    let ceilings = if timed { Some(peaks::measured(&device, output)?) } else { None };
    let ceilings = ceilings.map(|kept| (kept.peaks, kept.date));
    let bench = Bench::new(&device, SAMPLES, ceilings.as_ref().map(|(peaks, _)| peaks), output);
    let mut suite = Suite { bench, timed, cases: Vec::new() };
    suite.all()?;
    let cases = suite.cases;
    let run = Run::new(&device, date, ceilings, cases);
    kept.finish(&run, text::run(&run), json::document(&run)?, output)
}

/// The cases in the making.
struct Suite<'a> {
    bench: Bench<'a>,
    timed: bool,
    cases: Vec<Record>,
}

impl Suite<'_> {
    fn all(&mut self) -> Result<()> {
        self.streams::<f32>(DType::F32)?;
        self.streams::<f64>(DType::F64)?;
        self.streams::<f16>(DType::F16)?;
        self.streams::<bf16>(DType::Bf16)?;
        let listed: Vec<Listed> = serde_json::from_str(include_str!("cases.json"))?;
        for Listed { dtype, mut shape, axes } in listed {
            self.fit(&mut shape);
            let permute = Moved { op: "permute", dtype, shape: &shape, axes: Some(&axes) };
            // Two that differ in size alone may be one by now.
            let name = permute.subject()?.name();
            if !self.cases.iter().any(|case| case.name == name) {
                self.measured(&permute)?;
            }
        }
        for (from, to, channels, shape, axes) in MAPPED {
            let mut shape = shape.to_vec();
            self.fit(&mut shape);
            self.measured(&Mapped { from, to, shape: &shape, axes, channels })?;
        }
        self.transposes()?;
        for (along, dtype, axis) in ALONG_AXES {
            let mut shape = MATRIX;
            self.fit(&mut shape);
            self.measured(&AlongAxis { along, shape: &shape, axis, dtype })?;
        }
        for mut conversion in CONVERSIONS {
            self.fit(conversion.shape_mut());
            self.measured(&conversion)?;
        }
        Ok(())
    }

    /// Makes the shape small where the device is the software GPU.
    fn fit(&self, shape: &mut [usize]) {
        if !self.timed {
            shrink(shape, SMALL);
        }
    }

    /// Which of two values suits the device.
    fn of<T>(&self, [gpu, software]: [T; 2]) -> T {
        if self.timed { gpu } else { software }
    }

    fn streams<T: Computed>(&mut self, dtype: DType) -> Result<()> {
        // As those that the ceilings were measured with.
        let bytes = self.bench.peaks.map_or(COUNTED, |peaks| peaks.bytes as usize);
        let shape = [bytes / size_of::<T>()];
        self.measured(&Moved { op: "copy", dtype, shape: &shape, axes: None })?;
        // For all of them, those that touch one array alone too.
        let rotation = Rotation::new(self.bench.device, &[bytes]);
        arithmetic::ensure_operands(&rotation, bytes)?;
        let mut operands = Operands::<T>::new(rotation, shape[0])?;
        for arithmetic in ARITHMETIC {
            let subject = arithmetic.subject(&shape, dtype, bytes as u64);
            let record = self.bench.record_of(subject, || Ok(Box::new(OnOperands::new(&mut operands, arithmetic)?)))?;
            self.cases.push(record);
        }
        Ok(())
    }

    fn measured(&mut self, case: &dyn Case) -> Result<()> {
        self.cases.push(self.bench.record(case)?);
        Ok(())
    }

    /// Every kernel on square matrices. Of one too large to be counted, the counters are those of a
    /// smaller one, multiplied: the rows of both begin at the same places of their sectors, and
    /// both are whole tiles, so the launches differ in length alone.
    fn transposes(&mut self) -> Result<()> {
        let model = DeviceModel::of(&self.bench.device.info().name);
        let mut counted: Option<(usize, Vec<Option<Counters>>)> = None;
        for &size in self.of(MATRICES) {
            let rows = ladder::of_squares(self.bench.device, size, self.bench.output)?;
            let scaled = counted.as_ref().filter(|_| rows.iter().all(|row| row.counters().is_none()));
            let scaled = scaled.map(|(smaller, all)| {
                let times = (size / smaller).pow(2) as u64;
                let counters = all.iter().map(|counters| counters.map(|counters| counters * times)).collect::<Vec<_>>();
                (*smaller, counters)
            });
            let own = rows.iter().map(|row| row.counters()).collect();
            let copy = rows.first().and_then(|copy| copy.gbps((size * size * size_of::<f32>()) as u64));
            for (at, mut row) in rows.into_iter().enumerate() {
                if let Some((_, counters)) = &scaled {
                    row.set_counters(counters[at]);
                }
                let counted_shape = scaled.as_ref().map(|(smaller, _)| vec![*smaller; 2]);
                self.cases
                    .push(Record { counted_shape, ..row.record([size; 2], DType::F32, copy, self.bench.peaks, model) });
            }
            if scaled.is_none() {
                counted = Some((size, own));
            }
        }
        Ok(())
    }
}
