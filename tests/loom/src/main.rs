//! Models of what threads share without a lock, or by a lock of our own.
//!
//! The files under test are those of the crate. They import what threads meet at from
//! `crate::sync`, which here is loom's. loom runs a model in every order of its threads, with every
//! value that the memory model lets an atomic load return. It fails where a thread reads what
//! another may be writing, where all threads wait, and where a model panics or leaks.

mod caching;
mod error;
mod memory;
mod pipeline;
mod stream;
mod sync;

use std::time::Instant;

/// Its name and its body.
type Model = (&'static str, fn());

/// `models! { name, ... }` lists the models of a module.
macro_rules! models {
    ($($name:ident),* $(,)?) => {
        pub(crate) const MODELS: &[crate::Model] = &[$((concat!(module_path!(), "::", stringify!($name)), $name)),*];
    };
}
pub(crate) use models;

/// Models, with the most times that a thread is put off although it could go on. `None`: any.
const MODELS: [(&[Model], Option<usize>); 4] = [
    (caching::MODELS, None),
    (memory::shared_models::MODELS, None),
    (memory::joint_models::MODELS, Some(4)),
    (pipeline::MODELS, Some(2)),
];

/// Runs the models whose names contain the argument, or all.
fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    for (models, preemptions) in MODELS {
        for (name, model) in models.iter().filter(|(name, _)| name.contains(&filter)) {
            let mut builder = loom::model::Builder::new();
            builder.preemption_bound = preemptions;
            let started = Instant::now();
            builder.check(model);
            println!("{name} holds, {:.1} s", started.elapsed().as_secs_f64());
        }
    }
}
