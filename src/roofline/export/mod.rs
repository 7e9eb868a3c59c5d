//! Draws a run in one format a file: text for a terminal, JSON, Markdown, CSV, SVG charts, and an
//! HTML page.
//!
//! There is no common trait: JSON is also read, and SVG is several files.

pub mod chrome;
pub mod csv;
pub mod html;
pub mod json;
pub mod markdown;
mod pipelines;
pub mod svg;
pub mod text;

/// Stands where times would stand of a GPU.
pub const NO_TIMES: &str =
    "No GB/s: the software GPU is exact about what is moved and says nothing of the time a GPU takes.";
