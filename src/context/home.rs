//! The origin of a buffer.

use super::{Device, Stream};

/// The stream that a buffer was allocated on, and its device. It holds one handle wherever one
/// leads to both, because each counts.
#[derive(Debug)]
pub(super) enum Home {
    /// The device, for its default stream.
    Default(Device),
    /// A stream with a handle of its device.
    Stream(Stream),
    /// A stream without one, which was made for a capture that has ended.
    Captured(Device, Stream),
}

impl Home {
    /// `stream` is of the device.
    #[inline]
    pub(super) fn new(device: &Device, stream: &Stream) -> Self {
        if stream.device().is_some() {
            Self::Stream(stream.clone())
        } else if stream == device.default_stream() {
            Self::Default(device.clone())
        } else {
            Self::Captured(device.clone(), stream.clone())
        }
    }

    #[inline]
    pub(super) fn device(&self) -> &Device {
        match self {
            Self::Default(device) | Self::Captured(device, _) => device,
            Self::Stream(stream) => stream.device().expect("`new` saw it"),
        }
    }

    #[inline]
    pub(super) fn stream(&self) -> &Stream {
        match self {
            Self::Default(device) => device.default_stream(),
            Self::Stream(stream) | Self::Captured(_, stream) => stream,
        }
    }
}
