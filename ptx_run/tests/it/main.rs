//! Tests of the library as programs use it: by its function in C.

#![cfg(target_os = "linux")]

mod api;
mod launches;
#[path = "../../../tests/long.rs"]
mod long;
mod programs;
mod refusals;
