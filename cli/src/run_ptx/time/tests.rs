use std::path::Path;

use clap::Parser;
use warpstride::interp::Module;

use super::*;
use crate::args::{Cli, Command};
use crate::message;

const PTX: &str = "
    .version 7.0 .target sm_80 .address_size 64
    .visible .entry fill(.param .u64 cells) {
        .reg .b32 %r; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [cells]; mov.u32 %r, %tid.x; mad.wide.u32 %rd2, %r, 4, %rd1; st.global.u32 [%rd2], %r;
    }
    .visible .entry endless(.param .u64 cells) { again: bra again; }";

/// Returns the report that is counted for a GPU, of a block of 32 threads.
fn counted(entry: &str, argument: &str) -> Result<Report, String> {
    let launch = "--grid 1 --block 32 --time --limit 1000 --arg";
    let words = ["warpstride", "run-ptx", "k.ptx"].into_iter().chain(launch.split(' ')).chain([argument]);
    let Command::RunPtx(args) = Cli::try_parse_from(words).unwrap().command else { panic!("another command") };
    let (module, args) = (Module::parse(PTX).unwrap(), args.launch);
    let kernel = module.kernel(entry).unwrap();
    let program = Program { file: Path::new("k.ptx"), ptx: PTX.into(), compiler: None };
    let launch = Launch { footprint: true, ..Launch::new(PTX, kernel, &args) };
    let time = Time::asked(&program, &args, kernel).unwrap().expect("a time is asked for");
    time.counted(&launch).map_err(|error| message(&error))
}

#[test]
fn bytes_are_counted_or_asked_for() {
    let footprint = counted("fill", "u32[32]=uninit").unwrap().footprint;
    assert_eq!(footprint, Some(Footprint { read: 0, written: 128 }));
    let error = counted("endless", "u32[32]=uninit").unwrap_err();
    assert!(
        error.starts_with("the software GPU cannot count the bytes that `endless` touches; pass them with --bytes: "),
        "{error}"
    );
    assert!(error.contains("`--limit`"), "{error}");
    // A fault there is a fault on a GPU.
    let error = counted("fill", "u32[31]=uninit").unwrap_err();
    assert!(error.contains("0 bytes past the end") && !error.contains("--bytes"), "{error}");
}
