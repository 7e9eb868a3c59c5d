//! The arguments of `run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use warpstride::interp::Checks;
use warpstride::roofline::model::DeviceModel;

use super::values::{model, whole};

#[derive(Args)]
pub(crate) struct RunProgram {
    /// Faults that the software GPU looks for besides counting: memcheck, initcheck, racecheck,
    /// synccheck, or all
    #[arg(long = "check", value_name = "A,B")]
    pub(crate) checks: Option<Checks>,
    /// Show what each line of a kernel did to memory, too
    #[arg(long)]
    pub(crate) report: bool,
    /// The GPU that the program sees, and whose times a model predicts: h100, h200, a100, l4, t4 or
    /// rtx4090. Without it the program sees an h100
    #[arg(long, value_name = "GPU", value_parser = model)]
    pub(crate) model: Option<DeviceModel>,
    /// The number of GPUs that the program sees; 1 by default
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=64))]
    pub(crate) gpus: Option<usize>,
    /// Fuse `mul` and `add` as ptxas may, so that values can be compared with a GPU's;
    /// docs/counters.md says when they differ
    #[arg(long)]
    pub(crate) contract: bool,
    /// The work after which the software GPU stops a launch, in simple instructions of a warp, some
    /// 10 ns each; 1073741824 by default
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=u64::MAX))]
    pub(crate) limit: Option<u64>,
    /// Decides the order of work where several orders are legal; 0 by default
    #[arg(long, value_name = "SEED", value_parser = whole::<u64>(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// Write the report as a JSON document, and leave standard output to the program; `run --json
    /// OUT.json` is the same
    #[arg(long, value_name = "OUT.json")]
    pub(crate) json_file: Option<PathBuf>,
    /// Write the kernels as a report in JUnit's format, which CI systems show
    #[arg(long, value_name = "OUT.xml")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the findings as a SARIF log, which code hosts and editors show at lines of sources
    #[arg(long, value_name = "OUT.sarif")]
    pub(crate) sarif: Option<PathBuf>,
    /// Write the counters under Nsight Compute's names, as its `--csv --page details` does
    #[arg(long, value_name = "OUT.csv")]
    pub(crate) ncu_csv: Option<PathBuf>,
    /// Print the findings as annotations of GitHub's pull requests, too, on standard error
    #[arg(long)]
    pub(crate) github: bool,
    /// The program and its arguments, behind `--`
    #[arg(value_name = "COMMAND", required = true, num_args = 1.., last = true)]
    pub(crate) command: Vec<OsString>,
}

/// Returns the words of a command line with `--json-file OUT.json` for `--json OUT.json`, if the
/// command is `run`. Every command has `--json` without a value, and clap has one kind of an option
/// alone. A word before `--` that does not begin with a dash can only be the file.
pub(super) fn with_file_of_json(mut words: Vec<OsString>) -> Vec<OsString> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let Some(command) = words[..end].iter().position(|word| word == "run") else { return words };
    for at in command + 1..end {
        let has_file = words[..end].get(at + 1).is_some_and(|word| !word.to_string_lossy().starts_with('-'));
        if words[at] == "--json" && has_file {
            words[at] = "--json-file".into();
        } else if let Some(file) = words[at].to_str().and_then(|word| word.strip_prefix("--json=")) {
            words[at] = format!("--json-file={file}").into();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_a_file_only_where_a_word_can_be_one() {
        let rewritten = |line: &str| {
            let words = with_file_of_json(line.split(' ').map(OsString::from).collect());
            words.join(" ".as_ref()).into_string().expect("text")
        };
        for (line, wanted) in [
            ("run --json a.json -- x --json y", "run --json-file a.json -- x --json y"),
            ("run --json=a.json --report -- x", "run --json-file=a.json --report -- x"),
            ("run --json -- x", "run --json -- x"),
            ("run --json --check all -- x", "run --json --check all -- x"),
            ("--json run -- x", "--json run -- x"),
            ("bench --json copy", "bench --json copy"),
            ("launch -n 1 -- run --json x", "launch -n 1 -- run --json x"),
        ] {
            assert_eq!(rewritten(line), wanted);
        }
    }
}
