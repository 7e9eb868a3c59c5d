//! The software GPU with our own kernels, and behind the driver.

mod check;
mod counting;
mod determinism;
mod kernels;
