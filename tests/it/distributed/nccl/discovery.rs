//! The search for NCCL's library.

use std::fs;

use super::alone;
use super::stub::{Variant, compiled};

const VARIABLE: &str = "WARPSTRIDE_NCCL";

/// Returns whether the system's loader finds a library of NCCL, which then comes before the folders
/// of tests.
fn the_loader_finds_one() -> bool {
    let found = alone("find", &[]);
    let is_there = found.kind == "ok";
    if is_there {
        eprintln!("the system has NCCL, so its folders are not searched: {}", found.words);
    }
    is_there
}

#[test]
fn the_variable_names_the_file() {
    let found = compiled(Variant::Whole);
    alone("find", &[(VARIABLE, found.clone())]).is("ok", &["2.28.9", found.to_str().unwrap()]);
    alone("find", &[(VARIABLE, "/nowhere/libnccl.so.2".into())])
        .is("Unavailable", &["WARPSTRIDE_NCCL names /nowhere/libnccl.so.2", "No such file"]);
    alone("find", &[(VARIABLE, compiled(Variant::LacksReduce))])
        .is("DriverTooOld", &["lacks ncclReduce", "install NCCL 2.18 or newer"]);
    for (number, version) in [("21700", "is NCCL 2.17.0"), ("2708", "is NCCL 2.7.8")] {
        let variables = [(VARIABLE, found.clone()), ("WARPSTRIDE_STUB_VERSION", number.into())];
        alone("find", &variables).is("DriverTooOld", &[version, "install 2.18 or newer"]);
    }
    let fails = [(VARIABLE, found), ("WARPSTRIDE_STUB_FAIL", "1".into())];
    alone("find", &fails).is("Unavailable", &["does not tell its version"]);
}

#[test]
fn the_folders_of_python_and_of_nccl_are_searched() {
    if the_loader_finds_one() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let put = |at: &str| {
        let file = folder.path().join(at);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::copy(compiled(Variant::Whole), &file).unwrap();
        file
    };
    let python = put("env/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2");
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let found = alone("find", &[(variable, folder.path().join("env"))]);
        found.is("ok", &[python.to_str().unwrap()]);
    }
    let home = put("home/lib/libnccl.so");
    let both = [("NCCL_HOME", folder.path().join("home")), ("VIRTUAL_ENV", folder.path().join("env"))];
    alone("find", &both).is("ok", &[home.to_str().unwrap()]);
}

#[test]
fn an_error_lists_what_was_tried() {
    if the_loader_finds_one() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("lib/libnccl.so.2");
    fs::create_dir_all(broken.parent().unwrap()).unwrap();
    fs::write(&broken, "no library").unwrap();
    let home = ("NCCL_HOME", folder.path().to_owned());
    let missing = alone("find", std::slice::from_ref(&home));
    let names = ["NCCL was not found", "libnccl.so.2 nor libnccl.so nor", "pip install nvidia-nccl", VARIABLE];
    missing.is("Unavailable", &names);
    missing.is("Unavailable", &[&format!("{} (", broken.display()), "lib/libnccl.so;"]);
    // A variable that is empty is not set.
    alone("find", &[home, (VARIABLE, "".into())]).is("Unavailable", &names);
}
