//! Times the work that several ranks do together.

use super::{Combine, Communicator};
use crate::error::Result;
use crate::roofline::measure::Timing;

/// The runs before those that are timed: the first ones of NCCL make its connections.
const WARM_UPS: usize = 5;

/// Times work that all ranks of a communicator queue on their default streams, until the slowest
/// one has done it. Each rank calls it with the same number of samples, and gets the same times.
///
/// A reduction before each sample lets all ranks begin at once. The time includes that in which the
/// host queues the work, as far as the device waits for it.
///
/// # Errors
///
/// As the work and [`Communicator::wait`].
pub fn time_together(
    communicator: &Communicator,
    samples: usize,
    mut work: impl FnMut() -> Result<()>,
) -> Result<Timing> {
    let device = communicator.device();
    let stream = device.default_stream();
    let (start, end) = (device.event()?, device.event()?);
    let token = device.zeros::<u32>(1)?;
    let mut tokens = device.alloc_array::<u32>(&[1])?;
    let mut times = Vec::with_capacity(samples.max(1));
    for sample in 0..WARM_UPS + samples.max(1) {
        communicator.all_reduce(token.view(&[1])?, &mut tokens, Combine::Max, stream)?;
        stream.record(&start)?;
        work()?;
        stream.record(&end)?;
        communicator.wait(stream)?;
        if sample >= WARM_UPS {
            times.push(f64::from(end.elapsed_ms_since(&start)?));
        }
    }
    let mine = device.array(&[times.len()], &times)?;
    let mut slowest = device.alloc_array(&[times.len()])?;
    communicator.all_reduce(&mine, &mut slowest, Combine::Max, stream)?;
    communicator.wait(stream)?;
    Ok(Timing::of_samples(slowest.to_vec()?))
}
