//! Reports in the formats of other tools against the schemas of these formats: SARIF 2.1.0, and the
//! JUnit of Jenkins. `scripts/tools` installs the packages that read schemas.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::{Run, repository};
use crate::long::missing;

/// Runs the script that compares files with their schemas; `None` where its packages are missing.
fn compare(files: &[PathBuf]) -> Option<Run> {
    let tools = repository().join("target/tools/python");
    if !tools.join("installed").exists() {
        missing("jsonschema and xmlschema");
        return None;
    }
    let script = repository().join("cli/tests/data/schemas/check.py");
    Some(Run::of(Command::new(tools.join("bin/python")).arg(script).args(files)))
}

/// Makes sure that reports follow their schemas.
#[track_caller]
pub(crate) fn followed_by(files: impl IntoIterator<Item = PathBuf>) {
    if let Some(run) = compare(&files.into_iter().collect::<Vec<_>>()) {
        run.succeeded();
    }
}

#[test]
fn reports_that_break_a_schema_are_recognised() {
    let folder = TempDir::new().expect("a temporary folder");
    let tool = r#"{"driver": {"name": "n"}}"#;
    for (name, text, fault) in [
        (
            "level.sarif",
            format!(r#"{{"version": "2.1.0", "runs": [{{"tool": {tool}, "results": [{{"level": 1}}]}}]}}"#),
            "$.runs[0]",
        ),
        ("attribute.xml", r#"<testsuites><testsuite name="s"><testcase/></testsuite></testsuites>"#.into(), "'name'"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("writable");
        if let Some(run) = compare(&[path]) {
            run.ended(1, &[], &[name, fault]);
        }
    }
}
