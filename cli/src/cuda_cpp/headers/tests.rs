use super::*;

#[test]
fn a_missing_header_names_its_package() {
    for (name, package, of_cuda_12) in [
        ("cuda_fp16.h", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"),
        ("cooperative_groups/reduce.h", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"),
        ("nv/target", "nvidia-cuda-cccl", "nvidia-cuda-cccl-cu12"),
        ("cub/cub.cuh", "nvidia-cuda-cccl", "nvidia-cuda-cccl-cu12"),
        ("crt/mma.h", "nvidia-cuda-crt", "nvidia-cuda-nvcc-cu12"),
        ("curand_kernel.h", "nvidia-curand", "nvidia-curand-cu12"),
    ] {
        let nvrtc = format!("k.cu(1): catastrophic error: cannot open source file \"{name}\"\n  #include");
        let clang = format!("k.cu:1:10: fatal error: '{name}' file not found");
        for (log, by_nvrtc, version, wanted) in [
            (&nvrtc, true, "13.0", format!("`pip install {package}`")),
            (&nvrtc, true, "12.9", format!("`pip install {of_cuda_12}`")),
            (&clang, false, "15.0.0", format!("`pip install nvidia-cuda-nvrtc {package}`")),
        ] {
            let advice = advice(log, by_nvrtc, version).expect("advice");
            assert!(advice.starts_with(&format!("`{name}` is ")) && advice.contains(&wanted), "{advice}");
        }
    }
}

#[test]
fn a_header_of_cub_that_refuses_nvrtc_names_those_of_blocks_and_warps() {
    let log = "cub.cuh(17): catastrophic error: #error directive: \"Including <cub/cub.cuh> is not supported when \
               compiling with NVRTC. Include the specific device header instead.\"";
    let said = advice(log, true, "13.5").expect("advice");
    assert!(said.starts_with("`cub/cub.cuh` has ") && said.contains("<cub/block/block_reduce.cuh>"), "{said}");
}

#[test]
fn a_header_for_the_host_is_left_out() {
    for name in ["iostream", "vector", "string.h", "sys/time.h"] {
        let said = advice(&format!("k.cu:1:10: fatal error: '{name}' file not found"), false, "15.0.0");
        assert!(said.is_some_and(|said| said.contains("kernels and functions for the device")), "{name}");
    }
    for log in ["k.cu:1:10: fatal error: 'mine.h' file not found", "k.cu:1:10: error: 'cuda.h' is wrong", ""] {
        assert_eq!(advice(log, false, "15.0.0"), None, "{log}");
    }
}
