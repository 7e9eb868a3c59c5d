//! Chooses the device to open, and lists those that exist.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

#[cfg(feature = "cuda")]
use crate::driver::cuda;
#[cfg(feature = "interp")]
use crate::driver::soft;
use crate::driver::{DeviceInfo, Driver};
use crate::error::{Error, Result};

/// The device to open. As text: `auto`, `cuda` (the first GPU), `cuda:1`, `soft`.
///
/// ```
/// use warpstride::Backend;
///
/// assert_eq!("cuda:1".parse(), Ok(Backend::Cuda(1)));
/// assert_eq!(Backend::Soft.to_string(), "soft");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// The first NVIDIA GPU that works, else the software GPU.
    /// [`Device::choice`](super::Device::choice) says which and why.
    #[default]
    Auto,
    /// The NVIDIA GPU with this number, from 0.
    Cuda(u32),
    /// The software GPU.
    Soft,
}

impl FromStr for Backend {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // Digits only: the standard library would read a sign too.
        let digits = |number: &&str| number.bytes().all(|byte| byte.is_ascii_digit());
        let ordinal = text.strip_prefix("cuda:").filter(digits).and_then(|number| number.parse().ok());
        match (text, ordinal) {
            ("auto", _) => Ok(Self::Auto),
            ("cuda", _) => Ok(Self::Cuda(0)),
            ("soft", _) => Ok(Self::Soft),
            (_, Some(ordinal)) => Ok(Self::Cuda(ordinal)),
            _ => Err(Error::argument(format!(
                "`{text}` does not name a device; use auto, cuda, cuda:N with N from 0, or soft"
            ))),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            Self::Soft => f.write_str("soft"),
        }
    }
}

/// Returns a warning for the software GPU if its crate is not optimised, as in the dev build of a
/// program.
pub(super) fn slow(opt_level: &str) -> &'static str {
    match opt_level {
        "0" => {
            "; warpstride-interp is not optimised in this build, which makes it many times slower: put `opt-level = 3` under \
             [profile.dev.package.warpstride-interp] in your Cargo.toml"
        }
        _ => "",
    }
}

/// A device that can be opened, or the reason why it cannot.
#[derive(Debug, Clone)]
pub struct Availability {
    /// The argument of [`Device::open`](super::Device::open).
    pub backend: Backend,
    /// The device's properties, or the reason why it cannot be opened: no driver library, a driver
    /// too old, no device.
    pub info: Result<DeviceInfo>,
}

/// Lists every device that can be opened. Without an NVIDIA GPU one entry says why, and another is
/// the software GPU.
///
/// ```
/// for found in warpstride::device::probe() {
///     match found.info {
///         Ok(info) => println!("{}: {}", found.backend, info.name),
///         Err(reason) => println!("{}: {reason}", found.backend),
///     }
/// }
/// ```
pub fn probe() -> Vec<Availability> {
    let mut found = match cuda_count() {
        Ok(count) => {
            let one = |ordinal| Availability { backend: Backend::Cuda(ordinal), info: describe_cuda(ordinal) };
            (0..count).map(one).collect()
        }
        Err(reason) => vec![Availability { backend: Backend::Cuda(0), info: Err(reason) }],
    };
    found.push(Availability { backend: Backend::Soft, info: open_soft().map(|driver| driver.info().clone()) });
    found
}

/// Returns whether kernels of a GPU can use the memory of another GPU of the host, over NVLink or
/// PCIe. A device reaches itself, and the software GPU reaches nothing else.
///
/// # Errors
///
/// The error of the driver, such as that of a number that no GPU has.
pub fn can_reach(device: Backend, peer: Backend) -> Result<bool> {
    match (device, peer) {
        #[cfg(feature = "cuda")]
        (Backend::Cuda(ordinal), Backend::Cuda(peer)) => cuda::can_reach(ordinal, peer),
        _ => Ok(device == peer),
    }
}

#[cfg(feature = "cuda")]
fn cuda_count() -> Result<u32> {
    cuda::count()
}

#[cfg(feature = "cuda")]
fn describe_cuda(ordinal: u32) -> Result<DeviceInfo> {
    cuda::describe(ordinal)
}

#[cfg(feature = "cuda")]
pub(super) fn open_cuda(ordinal: u32) -> Result<Arc<dyn Driver>> {
    Ok(Arc::new(cuda::Cuda::open(ordinal)?))
}

#[cfg(not(feature = "cuda"))]
fn cuda_count() -> Result<u32> {
    Err(without("NVIDIA GPUs", "cuda"))
}

#[cfg(not(feature = "cuda"))]
fn describe_cuda(_ordinal: u32) -> Result<DeviceInfo> {
    Err(without("NVIDIA GPUs", "cuda"))
}

#[cfg(not(feature = "cuda"))]
pub(super) fn open_cuda(_ordinal: u32) -> Result<Arc<dyn Driver>> {
    Err(without("NVIDIA GPUs", "cuda"))
}

#[cfg(feature = "interp")]
pub(super) fn open_soft() -> Result<Arc<dyn Driver>> {
    Ok(Arc::new(soft::Soft::new()))
}

#[cfg(not(feature = "interp"))]
pub(super) fn open_soft() -> Result<Arc<dyn Driver>> {
    Err(without("the software GPU", "interp"))
}

#[cfg(not(all(feature = "cuda", feature = "interp")))]
fn without(what: &str, feature: &str) -> Error {
    Error::advised(
        crate::error::ErrorKind::Unavailable,
        format!("warpstride was built without {what}"),
        format!("build it with the feature `{feature}`"),
    )
}

#[cfg(test)]
mod tests;
