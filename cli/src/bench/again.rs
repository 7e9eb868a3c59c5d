//! Launches of measured cases again, on a device that counts only.

use std::sync::Arc;

use anyhow::Result;
use warpstride::counters::Counters;
use warpstride::device::Device;
use warpstride::driver::soft::Soft;
use warpstride::error::Error;
use warpstride::ops::{Align, PermutePlan, Reduction, SECTOR, Target};
use warpstride::roofline::model::Work;
use warpstride::roofline::record::{Drawn, Group, Record, Subject};

use super::axis::Along;
use super::case::{Case, Op};
use super::listed::Task;
use super::measure::count;
use super::suite::ARITHMETIC;

/// Most blocks of a launch that run.
const BLOCKS: u64 = 128;
/// Most bytes of an array that is made on the host, enough for the kernels of arrays that the L2
/// cache does not hold. A launch for more has as many times the blocks, or blocks that run as many
/// times as long.
const MOST_BYTES: usize = 128 << 20;

/// Counts the launches of a measured case, or tells why no model knows them. `None` if the record
/// does not tell the case, or its kernel was another one.
pub(crate) fn work(record: &Record) -> Result<Option<Result<Vec<Work>, Error>>> {
    let soft = Arc::new(Soft::counting(BLOCKS));
    let device = Device::with_driver(soft.clone())?;
    let (launches, part) = if let Some(task) = Task::of_record(record) {
        let ([from, to], width) = (task.layouts()?, task.dtype().width());
        let (align, target) = (Align::ALLOCATION, Target::of(&device));
        (PermutePlan::new(&from, align, &to, align, width, target)?.counted(BLOCKS)?, 1.0)
    } else {
        let Some(part) = operated(record, &device, &soft)? else { return Ok(None) };
        (soft.take_launches(), part)
    };
    let written = record.subject.written;
    if launches.first().map(|launch| &launch.kernel) != record.kernel.as_ref() {
        return Ok(None);
    }
    let read = match &record.drawn {
        Some(Drawn { touched, .. }) => touched.saturating_sub(written),
        None => with_gaps(&record.subject),
    };
    // Later launches collect what the blocks of the first leave.
    let works = launches.iter().enumerate().map(|(at, launch)| {
        let Counters { global_load, global_store, .. } = launch.report.counters;
        let own = [global_load, global_store].map(|counted| counted.sectors * SECTOR as u64);
        let bytes = if at == 0 { [read, written] } else { own };
        Work::of_launched(launch, BLOCKS, bytes).map(|work| work.times(1.0 / part))
    });
    Ok(Some(works.collect()))
}

/// The bytes that are read, with those between elements that lie apart in one sector.
fn with_gaps(subject: &Subject) -> u64 {
    let most = subject.dtype.map_or(1, |dtype| SECTOR / dtype.width()).max(1);
    subject.read.saturating_mul(subject.step.map_or(1, |step| step.min(most)) as u64)
}

/// Runs another operation on a part of its elements, and returns the part; `None` if the record
/// does not tell the operation, or it needs values that this device does not keep.
fn operated(record: &Record, device: &Device, soft: &Soft) -> Result<Option<f64>> {
    let Some((op, dtype)) = op(record).zip(record.subject.dtype) else { return Ok(None) };
    let whole = Case { op, dtype, shape: &record.subject.shape };
    if whole.subject()?.name() != record.name {
        return Ok(None);
    }
    let reduced = if let Op::Along(_, axis) = op { axis } else { usize::MAX };
    let mut shape = record.subject.shape.clone();
    let axis = usize::from(reduced == 0 && shape.len() > 1);
    while shape.iter().product::<usize>() * dtype.width() > MOST_BYTES && shape[axis] > 1 {
        shape[axis] = shape[axis].div_ceil(2);
    }
    let mut work = Case { shape: &shape, ..whole }.prepare(device)?;
    // The work that prepares its arrays is not part of it.
    device.default_stream().synchronize()?;
    soft.take_launches();
    if count(&mut *work).is_err() {
        return Ok(None);
    }
    let elements = |shape: &[usize]| shape.iter().product::<usize>() as f64;
    Ok(Some(elements(&shape) / elements(&record.subject.shape)))
}

/// The operation of a record.
fn op(record: &Record) -> Option<Op<'_>> {
    const ALONG: [Along; 6] = [
        Along::Reduction(Reduction::Sum),
        Along::Reduction(Reduction::Min),
        Along::Reduction(Reduction::Max),
        Along::Reduction(Reduction::ArgMax),
        Along::Softmax,
        Along::MeanVariance,
    ];
    let subject = &record.subject;
    let (name, axes) = (&*subject.op, subject.axes.as_deref());
    match subject.group {
        Group::Stream if name == "copy" => Some(Op::Copy),
        Group::Stream => ARITHMETIC.into_iter().find(|of| of.name() == name).map(Op::Arithmetic),
        Group::Permute => Some(Op::Affine { axes: axes?, from: subject.from?, channels: subject.channels }),
        Group::Axis => {
            let along = ALONG.into_iter().find(|along| along.name() == name)?;
            let axis = axes.and_then(|axes| axes.first().copied());
            Some(Op::Along(along, axis.unwrap_or(subject.shape.len().saturating_sub(1))))
        }
        _ => match name {
            "normalize" => Some(Op::Normalize),
            "cast" => Some(Op::Cast { from: subject.from? }),
            "gather" | "scatter" => Some(Op::Rows { is_put: name == "scatter" }),
            "strided-copy" => Some(Op::Strided { step: subject.step? }),
            _ => None,
        },
    }
}
