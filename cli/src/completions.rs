//! `warpstride completions SHELL`.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

use super::args::Cli;
use super::output::Output;

pub(super) fn run(shell: Shell, output: &Output) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "warpstride", &mut script);
    let script = String::from_utf8_lossy(&script);
    output.file(&script, json!({ "shell": shell.to_string(), "script": script }))
}
