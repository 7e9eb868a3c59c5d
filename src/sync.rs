//! What threads meet at, in the code that is checked in every order of its threads.
//!
//! That code imports from here, and `tests/loom` compiles the same files with loom's types in this
//! place. Everything else imports from the standard library.

pub(crate) use std::cell::UnsafeCell;
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;
