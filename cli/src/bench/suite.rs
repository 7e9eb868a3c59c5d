//! `warpstride bench --all`: a fixed list of cases in one run.

use crate::export::{json, text};
use anyhow::Result;
use half::{bf16, f16};
use warpstride::counters::Counters;
use warpstride::device::Backend;
use warpstride::element::DType;
use warpstride::ops::{Binary, Elementwise, Reduction};
use warpstride::roofline::measure::{Rotation, has_times};
use warpstride::roofline::model::DeviceModel;
use warpstride::roofline::record::Record;

use super::arithmetic::{self, Arithmetic, Computed, Operands, Repeated};
use super::axis::Along;
use super::case::{Case, Op};
use super::listed::Listed;
use super::measure::Bench;
use super::{SMALL, shrink};
use crate::output::Output;
use crate::{args, compare as ladder, peaks};

/// Timed runs of a case.
const SAMPLES: usize = 20;
/// Bytes of an array of the streams where they are only counted.
const COUNTED: usize = 64 << 10;
/// The matrices that every kernel transposes, on a GPU and elsewhere.
const MATRICES: [&[usize]; 2] = [&[4096, 16384], &[256]];

pub(super) const ARITHMETIC: [Arithmetic; 15] = [
    Arithmetic::Fill,
    Arithmetic::Elementwise(Elementwise::Mul),
    Arithmetic::Binary(Binary::Add),
    Arithmetic::Binary(Binary::Sub),
    Arithmetic::Binary(Binary::Mul),
    Arithmetic::Binary(Binary::Div),
    Arithmetic::Added(Repeated::Row),
    Arithmetic::Added(Repeated::Column),
    Arithmetic::Elementwise(Elementwise::Triad),
    Arithmetic::Elementwise(Elementwise::NStream),
    Arithmetic::Elementwise(Elementwise::Axpy),
    Arithmetic::Reduction(Reduction::Sum),
    Arithmetic::Dot,
    Arithmetic::Reduction(Reduction::Min),
    Arithmetic::Reduction(Reduction::Max),
];

/// Permutes that convert what they move: images of pixels to planes and back, activations of many
/// channels, and matrices.
const MAPPED: [Case<'_>; 6] = [
    mapped(DType::F32, DType::F32, None, &[16384, 16384], &[1, 0]),
    mapped(DType::F32, DType::F16, None, &[16384, 16384], &[1, 0]),
    mapped(DType::U8, DType::F32, None, &[16384, 16384], &[1, 0]),
    mapped(DType::F16, DType::F16, Some(1), &[64, 56, 56, 256], &[0, 3, 1, 2]),
    mapped(DType::F32, DType::Bf16, Some(3), &[64, 256, 55, 55], &[0, 2, 3, 1]),
    mapped(DType::U8, DType::F16, Some(1), &[64, 1080, 1920, 3], &[0, 3, 1, 2]),
];

const fn mapped<'a>(
    from: DType,
    dtype: DType,
    channels: Option<usize>,
    shape: &'a [usize],
    axes: &'a [usize],
) -> Case<'a> {
    Case { op: Op::Affine { axes, from, channels }, dtype, shape }
}

/// The cases along an axis of a matrix, those of conversions, and those of rows and strides.
const OTHERS: [Case<'_>; 18] = [
    along(Along::Reduction(Reduction::Sum), DType::F32, 0),
    along(Along::Reduction(Reduction::Sum), DType::F32, 1),
    along(Along::Reduction(Reduction::Max), DType::F32, 0),
    along(Along::Reduction(Reduction::Max), DType::F32, 1),
    along(Along::Reduction(Reduction::ArgMax), DType::F32, 0),
    along(Along::Reduction(Reduction::ArgMax), DType::F32, 1),
    along(Along::Softmax, DType::F32, 1),
    along(Along::Softmax, DType::F16, 1),
    along(Along::MeanVariance, DType::F32, 1),
    Case { op: Op::Normalize, dtype: DType::F32, shape: &[64, 1080, 1920, 3] },
    Case { op: Op::Normalize, dtype: DType::F16, shape: &[64, 1080, 1920, 3] },
    Case { op: Op::Cast { from: DType::U8 }, dtype: DType::F32, shape: &[1 << 27] },
    Case { op: Op::Cast { from: DType::F32 }, dtype: DType::F16, shape: &[1 << 27] },
    Case { op: Op::Cast { from: DType::F32 }, dtype: DType::U8, shape: &[1 << 27] },
    Case { op: Op::Cast { from: DType::F16 }, dtype: DType::F32, shape: &[1 << 27] },
    Case { op: Op::Rows { is_put: false }, dtype: DType::F32, shape: &[1 << 18, 1 << 10] },
    Case { op: Op::Rows { is_put: true }, dtype: DType::F32, shape: &[1 << 18, 1 << 10] },
    Case { op: Op::Strided { step: 2 }, dtype: DType::F32, shape: &[1 << 27] },
];

const fn along(along: Along, dtype: DType, axis: usize) -> Case<'static> {
    Case { op: Op::Along(along, axis), dtype, shape: &[8192, 16384] }
}

pub(super) fn run(args: &args::Bench, backend: Backend, output: &Output) -> Result<()> {
    // Measured in this run: kept ceilings may come from another day.
    let bench = Bench::open(args, None, SAMPLES, peaks::measured, (backend, output))?;
    let mut suite = Suite { bench, cases: Vec::new() };
    suite.all()?;
    let Suite { bench, cases } = suite;
    let run = bench.run(cases);
    bench.kept.finish(&run, text::run(&run), json::document(&run)?, output)
}

/// The cases in the making.
struct Suite<'a> {
    bench: Bench<'a>,
    cases: Vec<Record>,
}

impl Suite<'_> {
    fn all(&mut self) -> Result<()> {
        self.streams::<f32>(DType::F32)?;
        self.streams::<f64>(DType::F64)?;
        self.streams::<f16>(DType::F16)?;
        self.streams::<bf16>(DType::Bf16)?;
        let listed: Vec<Listed> = serde_json::from_str(include_str!("cases.json"))?;
        for Listed { dtype, shape, axes, .. } in listed {
            self.measured(Case { op: Op::Permute(&axes), dtype, shape: &shape })?;
        }
        MAPPED.into_iter().try_for_each(|case| self.measured(case))?;
        self.transposes()?;
        OTHERS.into_iter().try_for_each(|case| self.measured(case))
    }

    /// Measures a case, which is small where the device is the software GPU: two permutes that
    /// differ in size alone may then be one, and it is measured once.
    fn measured(&mut self, case: Case<'_>) -> Result<()> {
        let mut shape = case.shape.to_vec();
        if !has_times(&self.bench.device) {
            shrink(&mut shape, SMALL);
        }
        let case = Case { shape: &shape, ..case };
        let name = case.subject()?.name();
        if self.cases.iter().any(|case| case.name == name) { Ok(()) } else { self.add(case) }
    }

    fn add(&mut self, case: Case<'_>) -> Result<()> {
        let record = self.bench.record(case.subject()?, || case.prepare(&self.bench.device))?;
        self.cases.push(record);
        Ok(())
    }

    fn streams<T: Computed>(&mut self, dtype: DType) -> Result<()> {
        // As those that the ceilings were measured with.
        let bytes = self.bench.peaks().map_or(COUNTED, |peaks| peaks.bytes as usize);
        let shape = [bytes / size_of::<T>()];
        self.add(Case { op: Op::Copy, dtype, shape: &shape })?;
        // For all of them, those that touch one array alone too.
        let rotation = Rotation::new(&self.bench.device, &[bytes]);
        arithmetic::ensure_operands(&rotation, bytes)?;
        let mut operands = Operands::<T>::new(rotation, shape[0])?;
        for arithmetic in ARITHMETIC {
            let subject = Case { op: Op::Arithmetic(arithmetic), dtype, shape: &shape }.subject()?;
            self.cases.push(self.bench.record(subject, || arithmetic::planned(&mut operands, arithmetic))?);
        }
        Ok(())
    }

    /// Runs every kernel on square matrices. A matrix too large to be counted has the counters of a
    /// smaller one, multiplied: the rows of both begin at the same places of their sectors, and
    /// both are whole tiles, so the launches differ in length alone.
    fn transposes(&mut self) -> Result<()> {
        let model = DeviceModel::of(&self.bench.device.info().name);
        let mut counted: Option<(usize, Vec<Option<Counters>>)> = None;
        let [timed, counted_sizes] = MATRICES;
        for &size in if has_times(&self.bench.device) { timed } else { counted_sizes } {
            let mut rows = ladder::of_squares(&self.bench.device, size, self.bench.peaks(), self.bench.output)?;
            let own: Vec<_> = rows.iter().map(|row| row.record.counters).collect();
            match &counted {
                Some((smaller, all)) if own.iter().all(Option::is_none) => {
                    let times = (size / smaller).pow(2) as u64;
                    for (row, counters) in rows.iter_mut().zip(all) {
                        row.record.counters = counters.map(|counters| counters * times);
                        row.record.counted_shape = Some(vec![*smaller; 2]);
                    }
                }
                _ => counted = Some((size, own)),
            }
            self.cases.extend(rows.into_iter().map(|row| row.predicted(model)));
        }
        Ok(())
    }
}
