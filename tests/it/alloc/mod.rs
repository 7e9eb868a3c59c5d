//! Allocators.

#[cfg(feature = "interp")]
mod closes;
mod conformance;
#[cfg(feature = "interp")]
mod hold_back;
#[cfg(feature = "interp")]
mod late;
#[cfg(feature = "interp")]
mod logged;

use warpstride::random::SplitMix64 as Random;
