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

/// The packages of PyPI that have headers of CUDA, by the beginning of a header's name. The first
/// that fits counts.
const PACKAGES: [(&str, &str); 12] = [
    ("crt/", "nvidia-cuda-crt"),
    ("cub/", "nvidia-cuda-cccl"),
    ("cuda/", "nvidia-cuda-cccl"),
    ("nv/", "nvidia-cuda-cccl"),
    ("thrust/", "nvidia-cuda-cccl"),
    ("curand", "nvidia-curand"),
    ("cooperative_groups", "nvidia-cuda-runtime"),
    ("cu", "nvidia-cuda-runtime"),
    ("device_", "nvidia-cuda-runtime"),
    ("math_constants.h", "nvidia-cuda-runtime"),
    ("mma.h", "nvidia-cuda-runtime"),
    ("vector_", "nvidia-cuda-runtime"),
];

/// Headers of C and of systems, which have no use in kernels. Those of C++ have no ending.
const OF_THE_HOST: [&str; 14] = [
    "ctype.h",
    "errno.h",
    "inttypes.h",
    "memory.h",
    "omp.h",
    "pthread.h",
    "signal.h",
    "stdarg.h",
    "stdbool.h",
    "stddef.h",
    "string.h",
    "time.h",
    "unistd.h",
    "windows.h",
];

/// A sentence on the header that a compiler's messages miss or refuse: the package that has it, the
/// headers to take in its place, or the reason why a kernel file does without it. `None` for a
/// header of the user's, and where none is missing.
pub(super) fn advice(log: &str, by_nvrtc: bool, version: &str) -> Option<String> {
    if let Some(name) = for_the_host(log) {
        return Some(format!(
            "`{name}` has functions for the host, which NVRTC does not compile: include the headers of what the kernel \
             calls, such as <cub/block/block_reduce.cuh> or <cub/warp/warp_scan.cuh>, and leave <cub/device/...> and \
             <thrust/...> out"
        ));
    }
    let name = missing(log)?;
    if name.starts_with("sys/") || OF_THE_HOST.contains(&name) || !name.contains(['.', '/']) {
        return Some(format!(
            "a kernel file holds kernels and functions for the device: leave `{name}`, main and other code for the host \
             out, and let --grid, --block and --arg launch the kernel"
        ));
    }
    let (_, package) = PACKAGES.iter().find(|(begin, _)| name.starts_with(begin))?;
    let package = match version.split_once('.') {
        Some(("11", _)) if by_nvrtc => format!("{}-cu11", of_cuda_12(package)),
        Some(("12", _)) if by_nvrtc => format!("{}-cu12", of_cuda_12(package)),
        _ => (*package).to_owned(),
    };
    let install = if by_nvrtc { package.clone() } else { format!("nvidia-cuda-nvrtc {package}") };
    let other = if by_nvrtc { "" } else { ", and compile with NVRTC, which takes NVIDIA's headers" };
    Some(format!("`{name}` is a header of NVIDIA's package {package}: `pip install {install}`{other}"))
}

/// The package of CUDA 12 and 11 with the same headers.
fn of_cuda_12(package: &str) -> &str {
    if package == "nvidia-cuda-crt" { "nvidia-cuda-nvcc" } else { package }
}

/// The header of CUB that refuses NVRTC.
fn for_the_host(log: &str) -> Option<&str> {
    let (_, rest) = log.split_once("\"Including <")?;
    rest.split_once("> is not supported when compiling with NVRTC").map(|(name, _)| name)
}

/// The header that NVRTC or clang does not find.
fn missing(log: &str) -> Option<&str> {
    log.lines().find_map(|line| {
        let by_nvrtc = line.split_once("cannot open source file \"").and_then(|(_, rest)| rest.split_once('"'));
        let by_clang = || line.split_once("fatal error: '")?.1.split_once("' file not found");
        by_nvrtc.or_else(by_clang).map(|(name, _)| name)
    })
}

#[cfg(test)]
mod tests;
