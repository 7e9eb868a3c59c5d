//! The command line: what was typed in `args`, one file a command, what all of them print with in
//! `output`.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
