use clap::Parser;

use super::*;
use crate::args::{Cli, Command};

#[test]
fn what_a_gpu_does_not_count_is_not_asked_of_one() {
    let soft = Device::open(Backend::Soft).unwrap().info().clone();
    let gpu = DeviceInfo { kind: DriverKind::Cuda, name: "NVIDIA H100".into(), ..soft.clone() };
    let asked = |options: &[&str], device: &DeviceInfo| {
        let words = ["warpstride", "run-ptx", "k.ptx", "--entry", "k", "--grid", "1", "--block", "1"];
        let cli = Cli::try_parse_from(words.iter().chain(options)).unwrap();
        let Command::RunPtx(args) = cli.command else { panic!("another command") };
        ensure_soft_options(&args.launch, device).map_err(|error| error.to_string())
    };
    for options in [&["--report"][..], &["--report-json"], &["--by", "line"], &["--annotate"], &["--draw", "k.svg"]] {
        let refused = asked(options, &gpu).unwrap_err();
        assert!(refused.starts_with(options[0]) && refused.ends_with("NVIDIA H100; add --device soft"), "{refused}");
        assert_eq!(asked(options, &soft), Ok(()));
    }
    assert!(asked(&["--contract"], &gpu).unwrap_err().starts_with("--contract is for the software GPU"));
    assert_eq!(asked(&["--contract"], &soft), Ok(()));
    assert_eq!(asked(&["--json"], &gpu), Ok(()));
}
