//! Tests that need no device: one binary, one module a subject.

#[cfg(feature = "interp")]
mod affine;
mod alloc;
mod architecture;
mod build_script;
mod cases;
mod changes;
#[cfg(all(feature = "interp", feature = "distributed"))]
#[path = "../communicators.rs"]
mod communicators;
mod compile_fail;
#[cfg(feature = "interp")]
mod counters;
#[cfg(all(feature = "interp", feature = "distributed"))]
mod distributed;
#[cfg(feature = "interp")]
mod examples;
#[cfg(unix)]
mod executable;
#[cfg(feature = "interp")]
mod explain;
mod figures;
mod gpus;
#[cfg(feature = "interp")]
#[path = "../hooked.rs"]
mod hooked;
#[cfg(feature = "interp")]
#[path = "../../benches/idle/mod.rs"]
#[expect(dead_code, reason = "no test of this binary counts calls")]
mod idle;
mod in_place;
#[cfg(feature = "interp")]
mod kept_plans;
mod layout;
#[path = "../long.rs"]
mod long;
#[cfg(all(feature = "interp", feature = "pipeline"))]
mod out_of_core;
#[cfg(feature = "interp")]
mod parked;
mod plan;
mod plan_of_tiles;
mod prose;
mod ptx;
#[cfg(feature = "interp")]
mod recorded_plans;
mod scripts;
mod semantics;
#[cfg(feature = "interp")]
mod software_gpu;
