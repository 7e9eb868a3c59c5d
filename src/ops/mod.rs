//! Operations: a pure plan, then a launch.
