//! The plugin for pytest, with the software GPU as the tests' `libcuda.so.1`. `scripts/tools`
//! installs pytest.

use std::path::Path;
use std::process::Command;

use super::run_program::library;
use super::{Run, repository};
use crate::long::missing;

/// Runs pytest on the tests of `tests/data/pytest`; `None` where something is missing.
fn pytest(options: &[&str]) -> Option<Run> {
    let library = library()?;
    let tools = repository().join("target/tools/python");
    if !tools.join("installed").exists() {
        missing("pytest");
        return None;
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_warpstride"));
    let folders = [binary.parent().expect("its folder").to_owned(), "/usr/bin".into(), "/bin".into()];
    let path = std::env::join_paths(folders).expect("folders");
    let mut command = Command::new(tools.join("bin/python"));
    command.args(["-m", "pytest", "-p", "warpstride.pytest_plugin", "-p", "no:cacheprovider", "-rA", "--tb=short"]);
    command.args(options).arg(repository().join("cli/tests/data/pytest"));
    command.env("PYTHONPATH", repository().join("cli/python")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("PATH", path).env("WARPSTRIDE_LIBCUDA", library).env_remove("WARPSTRIDE_RUN_REPORT");
    Some(Run::of(&mut command))
}

#[test]
fn a_test_fails_with_what_is_found_in_it() {
    let Some(run) = pytest(&["--warpstride"]) else { return };
    let printed = [
        "test_kernels.py::test_held\nPASSED",
        "test_kernels.py::test_clean_after_the_race\nPASSED",
        "test_kernels.py::test_clean_after_no_wait\nFAILED",
        "store.sectors < 1.0 * ideal: found 8, wanted < 8",
        "store.sectors == ideal: no kernel missing ran",
        "racecheck/global: racecheck: kernel \"together\"",
        "memcheck/double-free: cuMemFree_v2",
        "5 failed, 3 passed",
    ];
    run.ended(1, &printed, &["ended with status 1"]);
}

#[test]
fn the_checkers_are_chosen_and_without_the_option_nothing_changes() {
    let Some(run) = pytest(&["--warpstride", "--warpstride-checks", "memcheck", "-k", "race"]) else { return };
    run.ended(0, &["2 passed"], &["0 findings in 3 launches of 2 kernels"]);
    let Some(run) = pytest(&["--collect-only"]) else { return };
    run.ended(0, &["8 tests collected"], &[]);
}
