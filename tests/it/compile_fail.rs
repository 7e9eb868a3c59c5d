//! Attacks on the borrow rules that must not compile, each in a file named by it.
//!
//! The expected messages are those of one compiler. Under any other it is enough that there is a message, so that a new
//! compiler with new words turns no test red: the attacks are then compiled from a copy, whose messages trybuild may
//! overwrite. `TRYBUILD=overwrite` accepts new messages for the files themselves.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const BLESSED_WITH: &str = "rustc 1.95.";
/// Where the attacks lie, for the run under another compiler.
const ATTACKS: &str = "WARPSTRIDE_ATTACKS";

#[test]
fn attacks_do_not_compile() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/compile_fail").to_owned();
    let attacks = env::var(ATTACKS).unwrap_or_else(|_| own.clone());
    if attacks == own && env::var_os("TRYBUILD").is_none() && !compiler().starts_with(BLESSED_WITH) {
        return without_the_messages(Path::new(&own));
    }
    trybuild::TestCases::new().compile_fail(format!("{attacks}/*.rs"));
}

fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc runs, as it built this test");
    String::from_utf8_lossy(&version.stdout).into_owned()
}

/// Runs this test again, over a copy.
fn without_the_messages(own: &Path) {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir_all(&copy).expect("the target directory can be written to");
    for attack in fs::read_dir(own).expect("readable") {
        let attack = attack.expect("readable").path();
        if attack.extension().is_some_and(|extension| extension == "rs") {
            fs::copy(&attack, copy.join(attack.file_name().expect("a file"))).expect("it can be copied");
        }
    }
    let status = Command::new(env::current_exe().expect("a path"))
        .args(["--exact", "compile_fail::attacks_do_not_compile"])
        .env(ATTACKS, &copy)
        .env("TRYBUILD", "overwrite")
        .status()
        .expect("this test runs");
    assert!(status.success(), "an attack compiles; see above");
}
