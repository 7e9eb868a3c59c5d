//! Tests in processes of their own, whose variables and first calls are theirs.

use std::process::Command;

/// Set in a process that runs one test.
const CHILD: &str = "WARPSTRIDE_TEST_CHILD";

/// Returns whether this process runs one test for another one.
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs a test again in a process with these variables, and returns what it printed. The test calls
/// this unless [`is_child`].
pub(crate) fn in_child(test: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let child = command.args(["--exact", test, "--nocapture"]).env(CHILD, "1").envs(variables.iter().copied());
    let child = child.output().expect("a process");
    let told = [child.stdout, child.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    // A filter that matches no test succeeds with zero tests.
    assert!(child.status.success() && told.contains("1 passed"), "{variables:?} ({}):\n{told}", child.status);
    told
}
