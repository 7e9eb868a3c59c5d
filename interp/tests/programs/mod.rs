//! Random programs: PTX drawn from a seed and the instruction table, with inputs and a launch's
//! shape, whose results are defined bit for bit. A GPU and the software GPU must agree on them.
//!
//! Two test binaries share this folder, and neither uses all of it.

#![allow(dead_code)]

/// Writes a line, after its arguments, which may need the generator too.
macro_rules! emit {
    ($generator:ident, $($argument:tt)*) => {{
        let line = format!($($argument)*);
        $generator.line(line);
    }};
}

mod atomic;
mod catalog;
mod control;
mod generate;
mod memory;
mod program;
pub(crate) mod random;
pub(crate) mod record;
mod values;
mod warp;

pub(crate) use catalog::Catalog;
pub(crate) use generate::draw;
pub(crate) use program::Program;
