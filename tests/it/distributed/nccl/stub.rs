//! Compiles the stub of NCCL.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// A form of the stub.
#[derive(Clone, Copy)]
pub(super) enum Variant {
    Whole,
    /// It does not say that it needs no GPU.
    NeedsGpu,
    /// It has no `ncclReduce`.
    LacksReduce,
}

/// Returns the file of a variant, which is compiled once.
pub(super) fn compiled(variant: Variant) -> PathBuf {
    static FILES: [OnceLock<PathBuf>; 3] = [const { OnceLock::new() }; 3];
    let (name, option) = match variant {
        Variant::Whole => ("whole", None),
        Variant::NeedsGpu => ("needs-gpu", Some("-DNEEDS_GPU")),
        Variant::LacksReduce => ("lacks-reduce", Some("-DLACKS_REDUCE")),
    };
    FILES[variant as usize].get_or_init(|| compile(name, option)).clone()
}

fn compile(name: &str, option: Option<&str>) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).expect("the folder of tests");
    let file = folder.join(format!("libnccl-stub-{name}.so"));
    // Another run of the tests may have the file open, so it is replaced as a whole.
    let draft = folder.join(format!("libnccl-stub-{name}.{}.so", std::process::id()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nccl/stub.c");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", source, "-o"]).arg(&draft).args(option);
    let status = command.status().unwrap_or_else(|error| panic!("{command:?} does not start: {error}; install gcc"));
    assert!(status.success(), "{command:?} fails with {status}");
    std::fs::rename(&draft, &file).expect("renaming the stub");
    file
}
