//! The headers that compilers find in place of those that they lack.

/// The place of clang's header in the folder of headers.
pub(super) const SHIM: &str = "warpstride_shim.h";

/// Headers that programs include out of habit. A compiler of kernels has the parts that kernels
/// need, or `standard.h` has.
const STANDING_IN: [&str; 19] = [
    "assert.h",
    "cassert",
    "cfloat",
    "climits",
    "cmath",
    "cstddef",
    "cstdint",
    "cstdio",
    "cstdlib",
    "cuda.h",
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "device_launch_parameters.h",
    "float.h",
    "limits.h",
    "math.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
];

/// The name and the text of each header for NVRTC.
pub(super) fn for_nvrtc() -> impl Iterator<Item = (&'static str, &'static str)> {
    STANDING_IN.into_iter().map(|name| (name, include_str!("standard.h")))
}

/// The same for clang, which also lacks what NVRTC has itself.
pub(super) fn for_clang() -> impl Iterator<Item = (&'static str, &'static str)> {
    for_nvrtc().chain([(SHIM, include_str!("shim.h"))])
}
