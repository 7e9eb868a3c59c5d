//! The figures of README and of the page of the records: those of the newest record, which is one
//! of this version.

use std::process::Command;

use super::{long, repository};

#[test]
fn pages_have_the_figures_of_the_record() {
    let script = repository().join("scripts/readme-figures");
    let Ok(checked) = Command::new("python3").arg(script).arg("--check").output() else {
        return long::missing("Python 3");
    };
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
