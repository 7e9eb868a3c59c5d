//! Tests of the library as a program uses it: by its functions in C, and by programs of nvcc.

#![cfg(target_os = "linux")]

mod hostile;
#[path = "../../../tests/hostile/mod.rs"]
mod hostile_calls;
#[path = "../../../tests/long.rs"]
mod long;
mod names;
mod program;
mod untyped;
