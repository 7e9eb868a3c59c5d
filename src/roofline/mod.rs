//! Measures operations, and holds them against the most that the device can do.
//!
//! | file | what it has |
//! |---|---|
//! | [`measure`] | device time, cold buffers, clocks |
//! | [`peak`], [`model`] | the ceilings of a device: measured, and computed from counters |
//! | [`record`], [`run`] | one measurement, and those that were made together |
//! | [`compare`] | two runs, case by case |
//! | [`table`], `export` | records as tables, and runs as text, JSON, Markdown, CSV, SVG and HTML |

pub mod compare;
#[cfg(feature = "export")]
pub mod export;
pub mod measure;
pub mod model;
pub mod peak;
pub mod record;
pub mod run;
pub mod table;
