//! The PTX this crate was built with.
