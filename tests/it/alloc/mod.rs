//! Allocators.

mod conformance;
#[cfg(feature = "interp")]
mod hold_back;
#[cfg(feature = "interp")]
mod late;

use warpstride::random::SplitMix64 as Random;
