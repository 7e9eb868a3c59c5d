//! Gives the shared library the name of NVIDIA's, and its symbols the version of that name.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(cuda_12)");
    let is_12 = std::env::var("CARGO_PKG_NAME").is_ok_and(|name| name.ends_with("-12"));
    if is_12 {
        println!("cargo::rustc-cfg=cuda_12");
    }
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let name = if is_12 { "libcudart.so.12" } else { "libcudart.so.13" };
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{name}");
        // GNU's linker alone takes this option; LLVM's is the default of some targets.
        println!("cargo::rustc-cdylib-link-arg=-fuse-ld=bfd");
        println!("cargo::rustc-cdylib-link-arg=-Wl,--default-symver");
    }
}
