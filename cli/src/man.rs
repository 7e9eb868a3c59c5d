//! `warpstride man`: one page, with a section for each command.

use std::io::{self, Write};

use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use serde_json::json;

use super::args::Cli;
use super::output::Output;

pub(super) fn run(output: &Output) -> Result<()> {
    let page = page(Cli::command())?;
    output.file(&page, json!({ "page": page }))
}

fn page(command: Command) -> io::Result<String> {
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    sections("warpstride", &command, &mut page)?;
    man.render_version_section(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// A section for each command below `command`, and for those below them.
fn sections(path: &str, command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let path = format!("{path} {}", command.get_name());
        let named = command.clone().bin_name(&path).display_name(&path).disable_help_subcommand(true);
        let (man, mut section) = (Man::new(named), Vec::new());
        man.render_synopsis_section(&mut section)?;
        man.render_description_section(&mut section)?;
        if command.get_arguments().any(|argument| !argument.is_hide_set()) {
            man.render_options_section(&mut section)?;
        }
        writeln!(page, ".SH {}", path.to_uppercase().replace('-', "\\-"))?;
        // A section of a command's own page becomes a part of this section.
        page.extend_from_slice(String::from_utf8_lossy(&section).replace(".SH ", ".SS ").as_bytes());
        sections(&path, command, page)?;
    }
    Ok(())
}
