//! Streams beside the default one, which do its work for a while.

use crate::device::Device;
use crate::driver::Multiprocessors;
use crate::error::{ErrorKind, Result};
use crate::stream::{Event, Stream};

/// Streams that begin behind what is queued on another one, and that it then waits for.
#[derive(Debug)]
pub(super) struct Lanes<const N: usize> {
    streams: [Stream; N],
    ready: Event,
    joined: [Event; N],
}

impl<const N: usize> Lanes<N> {
    /// Makes a stream for each of these parts of the multiprocessors.
    pub(super) fn new(device: &Device, parts: [Multiprocessors; N]) -> Result<Self> {
        let stream = |part: Multiprocessors| {
            let part = Multiprocessors { count: part.count.max(1), ..part };
            Stream::on(device, part).or_else(|error| match error.kind() {
                // Older drivers run their work on all multiprocessors.
                ErrorKind::Unavailable => device.stream(),
                _ => Err(error),
            })
        };
        let streams = parts.into_iter().map(stream).collect::<Result<Vec<_>>>()?;
        let joined = events(device)?;
        let streams = streams.try_into().expect("a stream for each part");
        Ok(Self { streams, ready: Event::untimed(device)?, joined })
    }

    /// Returns the streams.
    pub(super) fn streams(&self) -> [&Stream; N] {
        self.streams.each_ref()
    }

    /// Makes the streams wait for what is queued on another one.
    pub(super) fn fork(&self, stream: &Stream) -> Result<()> {
        stream.record(&self.ready)?;
        self.streams.iter().try_for_each(|lane| lane.wait(&self.ready))
    }

    /// Makes a stream wait for all of these.
    pub(super) fn join(&self, stream: &Stream) -> Result<()> {
        self.streams.iter().zip(&self.joined).try_for_each(|(lane, joined)| {
            lane.record(joined)?;
            stream.wait(joined)
        })
    }

    /// Waits for all that is queued. A stream whose wait fails has stopped its work.
    pub(super) fn synchronize(&self) {
        self.streams.iter().for_each(|lane| drop(lane.synchronize()));
    }
}

/// Makes events without times.
pub(super) fn events<const N: usize>(device: &Device) -> Result<[Event; N]> {
    let made = (0..N).map(|_| Event::untimed(device)).collect::<Result<Vec<_>>>()?;
    Ok(made.try_into().expect("as many as were asked for"))
}
