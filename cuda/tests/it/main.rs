//! Tests of the library as a program uses it: by its functions in C.

#![cfg(target_os = "linux")]

mod api;
mod calls;
mod child;
mod clusters;
mod device;
mod graphs;
mod hostile;
#[path = "../../../tests/hostile/mod.rs"]
mod hostile_calls;
mod launches;
#[path = "../../../tests/long.rs"]
mod long;
mod memory;
mod modules;
mod names;
mod streams;
