//! Measures operations, and compares them with the most that the device can do.
//!
//! | module | what it has |
//! |---|---|
//! | [`measure`] | device time, cold buffers, clocks |
//! | [`peak`] | the ceilings of a device, measured |
//! | [`model`] | the time that counters predict |
//! | `criterion` | device time for criterion's benches, with the feature `criterion` |
//!
//! `warpstride bench` writes what it measures as JSON, Markdown, CSV, SVG and HTML; its records and
//! their exporters are not part of this interface.

// Hidden modules are those of the command line's bench.
#[cfg(feature = "criterion")]
pub mod criterion;
pub mod measure;
pub mod model;
pub mod peak;
mod plans;
#[doc(hidden)]
pub mod record;
#[doc(hidden)]
pub mod run;
