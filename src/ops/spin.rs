//! Keeps a stream busy, so that measured work queues behind it.

use std::time::Duration;

use crate::abi::{Key, SPIN, SpinParams};
use crate::device::Device;
use crate::driver::DriverKind;
use crate::error::{Error, Result};
use crate::launch_shape::LaunchShape;
use crate::stream::Stream;

/// The longest time that the software GPU spins. It counts instructions, and stops a kernel that
/// seems never to end.
const LONGEST_ON_SOFT: Duration = Duration::from_secs(1);

/// Keeps a stream busy for a time, so that work that is queued meanwhile starts without gaps: at
/// most about 584 years on a GPU, and one second on the software GPU.
///
/// # Errors
///
/// `InvalidArgument` if the stream is of another device, or the time exceeds one second on the
/// software GPU; else the driver's error.
pub fn spin(device: &Device, time: Duration, stream: &Stream) -> Result<()> {
    device.context().check_same(stream.context(), "the device and the stream")?;
    if device.info().kind == DriverKind::Soft && time > LONGEST_ON_SOFT {
        return Err(Error::argument(format!(
            "the software GPU spins for at most {LONGEST_ON_SOFT:?}, and {time:?} were asked for; ask for less"
        )));
    }
    let params = SpinParams { nanoseconds: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) };
    let shape = LaunchShape { grid: [1; 3], block: [1; 3], dynamic_shared: 0 };
    // SAFETY: `spin` takes these parameters and touches no memory; the stream is live and of this
    // device.
    unsafe { device.launch(SPIN.get(Key::ONLY), &shape, &params, stream.handle()) }
}
