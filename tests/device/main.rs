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
mod naive;
mod program;

#[cfg(feature = "half")]
mod affine;
#[cfg(feature = "interp")]
mod architectures;
mod arithmetic;
mod attacks;
mod axes;
mod captures;
mod casts;
mod copies;
mod drawn;
mod events;
mod every_entry;
mod failures;
mod fields;
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
mod packed;
mod packed_quads;
mod permutes;
#[cfg(feature = "pipeline")]
mod pipelines;
mod reuse;
mod rows;
#[cfg(feature = "interp")]
mod random;
#[cfg(feature = "half")]
mod semantics;
mod small;
mod stacked;
mod staged;
mod steady;
mod streams;
mod tiles;
mod times;
mod transfers;
mod transposes;
mod wide;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let cases = [
        memory::cases(),
        copies::cases(),
        streams::cases(),
        steady::cases(),
        drawn::cases(),
        events::cases(),
        every_entry::cases(),
        modules::cases(),
        graphs::cases(),
        captures::cases(),
        late::cases(),
        failures::cases(),
        fields::cases(),
        #[cfg(feature = "cudarc")]
        interop::cases(),
        host::cases(),
        transfers::cases(),
        attacks::cases(),
        reuse::cases(),
        #[cfg(feature = "pipeline")]
        pipelines::cases(),
        arithmetic::cases(),
        axes::cases(),
        integers::cases(),
        images::cases(),
        #[cfg(feature = "half")]
        affine::cases(),
        casts::cases(),
        #[cfg(feature = "half")]
        semantics::cases(),
        transposes::cases(),
        permutes::cases(),
        packed::cases(),
        packed_quads::cases(),
        tiles::cases(),
        large::cases(),
        rows::cases(),
        small::cases(),
        stacked::cases(),
        staged::cases(),
        times::cases(),
        wide::cases(),
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
