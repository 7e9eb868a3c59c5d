//! Tests of the library as a program uses it: by its functions in C.

mod api;
mod child;
mod device;
mod names;
