use super::*;

#[test]
fn headers_are_found_where_pip_puts_them() {
    let packages = tempfile::tempdir().expect("a folder");
    let nvidia = packages.path().join("nvidia");
    let folders = |library: &str, version: &str| {
        let folders = include_folders(&nvidia.join(library), version);
        let own = folders.iter().filter_map(|folder| Some(folder.strip_prefix(&nvidia).ok()?.display().to_string()));
        own.collect::<Vec<_>>()
    };
    assert!(folders("cu13/lib/libnvrtc.so.13", "13.5").is_empty());
    for folder in ["cu13/include/cccl/cub", "cuda_runtime/include", "cuda_cccl/include", "cuda_nvrtc/include"] {
        fs::create_dir_all(nvidia.join(folder)).expect("a folder");
    }
    assert_eq!(folders("cu13/lib/libnvrtc.so.13", "13.5"), ["cu13/include", "cu13/include/cccl"]);
    let of_cuda_12 = ["cuda_nvrtc/include", "cuda_runtime/include", "cuda_cccl/include"];
    assert_eq!(folders("cuda_nvrtc/lib/libnvrtc.so.12", "12.9"), of_cuda_12);
}
