//! Tests of a device: every case runs on every backend, which is part of its name: `[soft]
//! copies::...`, `[cuda:0 NAME] ...`.
//!
//! A case that does not run is listed as ignored, with the reason and with what runs it.
//!
//! To add cases, write a module whose functions take a [`Setup`](backend::Setup), list them with
//! [`cases!`](backend), and add it to `main`.

mod backend;
mod debug_build;
#[path = "../hooked.rs"]
mod hooked;
#[path = "../long.rs"]
mod long;
#[cfg(all(unix, feature = "distributed", feature = "cuda"))]
#[path = "../communicators.rs"]
mod communicators;
mod naive;
mod program;

#[cfg(feature = "half")]
mod affine;
#[cfg(feature = "interp")]
mod architectures;
mod arithmetic;
mod attacks;
mod axes;
mod binary;
mod captures;
mod casts;
mod copies;
mod events;
mod every_entry;
mod failures;
mod far;
mod graphs;
#[cfg(feature = "interp")]
mod guards;
mod host;
mod images;
mod in_place;
mod integers;
#[cfg(feature = "cudarc")]
mod interop;
mod large;
mod late;
mod matrices;
mod memory;
mod modules;
mod movers;
#[cfg(all(unix, feature = "distributed", feature = "cuda"))]
mod nccl;
#[cfg(feature = "distributed")]
mod peers;
mod permutes;
#[cfg(feature = "pipeline")]
mod pipelines;
mod reductions;
mod reuse;
mod rows_shared;
#[cfg(feature = "interp")]
mod random;
mod random_layouts;
#[cfg(feature = "half")]
mod semantics;
mod staged;
mod steady;
mod streams;
mod transfers;
mod transposes;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let cases = [
        memory::cases(),
        copies::cases(),
        streams::cases(),
        steady::cases(),
        events::cases(),
        every_entry::cases(),
        modules::cases(),
        movers::cases(),
        graphs::cases(),
        captures::cases(),
        late::cases(),
        failures::cases(),
        far::cases(),
        #[cfg(feature = "cudarc")]
        interop::cases(),
        host::cases(),
        transfers::cases(),
        attacks::cases(),
        reuse::cases(),
        #[cfg(feature = "pipeline")]
        pipelines::cases(),
        arithmetic::cases(),
        binary::cases(),
        reductions::cases(),
        axes::cases(),
        rows_shared::cases(),
        integers::cases(),
        images::cases(),
        #[cfg(feature = "half")]
        affine::cases(),
        casts::cases(),
        #[cfg(feature = "half")]
        semantics::cases(),
        transposes::cases(),
        permutes::cases(),
        #[cfg(all(unix, feature = "distributed", feature = "cuda"))]
        nccl::cases(),
        #[cfg(feature = "distributed")]
        peers::cases(),
        random_layouts::cases(),
        large::cases(),
        staged::cases(),
        in_place::cases(),
        #[cfg(feature = "interp")]
        architectures::cases(),
        #[cfg(feature = "interp")]
        guards::cases(),
        #[cfg(feature = "interp")]
        random::cases(),
    ]
    .concat();
    libtest_mimic::run(&Arguments::from_args(), backend::trials(&cases)).exit_code()
}
