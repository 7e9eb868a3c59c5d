//! Draws a run in one format a file: text for a terminal, JSON, Markdown, CSV, SVG charts, and an
//! HTML page.
//!
//! There is no common trait: JSON is also read, and SVG is several files.

pub(crate) mod chrome;
pub(crate) mod csv;
mod fit;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod markdown;
mod older;
mod pipelines;
mod plain;
mod roofline;
pub(crate) mod svg;
pub(crate) mod text;

pub(crate) use plain::plain;

/// Shown instead of times.
pub(crate) const NO_TIMES: &str = "No GB/s: the software GPU counts traffic exactly but does not model time.";
