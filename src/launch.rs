//! The one door from typed arguments to raw parameters.
