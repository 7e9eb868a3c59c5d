//! Wrong usage, help, and what goes to which stream.

use std::process::Stdio;

use super::{command, warpstride};

/// Wrong usage: exit 2, an explanation on standard error that holds `part`, nothing on standard
/// output.
#[track_caller]
fn misused(line: &str, part: &str) {
    let run = warpstride(line.split(' ')).ended(2, &[], &[part]);
    assert_eq!(run.stdout, "", "{line:?}");
}

#[test]
fn wrong_usage_is_exit_2() {
    assert_eq!(warpstride([""; 0]).ended(2, &[], &["Usage"]).stdout, "");
    misused("transmogrify", "transmogrify");
    misused("transpose in.npy", "OUT.npy");
    misused("transpose in.npy out.npy --variant fastest", "staggered");
    misused("compare --shape 5", "rows and columns");
    misused("compare --shape 5,-1", "rows and columns");
    misused("compare --shape 5,5,5", "rows and columns");
    misused("compare --dtype f128", "c128");
    misused("compare --variants naive,quick", "staggered");
    misused("compare in.npy --shape 2,2", "cannot be used with");
    misused("compare in.npy --dtype u8", "cannot be used with");
    misused("bench", "permute");
    misused("bench sort", "sort");
    misused("bench add --elements 9 --dtype i32", "f16, bf16, f32, f64");
    misused("bench --tune --list", "cannot be used with");
    misused("bench permute --shape 2,2 --axes 1,0 --dtype u9", "c128");
    misused("bench permute --shape 2,2 --axes 1,-1 --dtype u8", "axis 1 twice");
    misused("bench permute --shape 2,2 --axes 1,0 --dtype u8 --samples 0", "samples");
    for command in ["bench permute", "explain"] {
        for (axes, said) in [
            ("0", "leave out axis 1"),
            ("0,0", "name axis 0 twice"),
            ("0,2", "name axis 2, and it has 2 axes"),
            ("0,1,2", "name axis 2, and it has 2 axes"),
            ("", "leave out axis 0"),
        ] {
            let line = format!("{command} --shape 3,4 --dtype u8 --axes {axes}");
            misused(&line, &format!("axes `{axes}` of shape [3, 4] {said}"));
        }
    }
    misused("explain --shape 2,x --axes 1,0 --dtype u8", "x");
    misused("explain --shape 99999999999999999999 --axes 0", "is not a whole number from 0 to 1844674");
    let affine = "bench affine --shape 2,3 --axes 1,0 --from f32 --to f32 --channels 2";
    misused(affine, "the result has no axis 2 for --channels; it has 2 axes");
    misused("bench --all --save a*b", "each a letter, a digit");
    misused("explain --axes 1,0 --dtype u8", "--shape");
    for number in ["1e6", "NaN", "-1", "99999999999999999999"] {
        let line = format!("bench copy --elements={number}");
        misused(&line, "give a whole number from 0 to 18446744073709551615, in digits alone");
    }
    misused("bench copy --elements 4 --samples 10001", "give a whole number from 1 to 10000, in digits alone");
    misused("bench strided-copy --elements 4 --step 0", "give a whole number from 1 to ");
    misused("--device vulkan devices", "vulkan");
    misused("--device cuda:x devices", "cuda:x");
}

#[test]
fn help_is_no_error() {
    let commands = ["devices", "transpose", "compare", "explain", "bench", "run-ptx"];
    warpstride(["--help"]).ended(0, &commands, &[]);
    // The program has another name than its package.
    let version = concat!("warpstride ", env!("CARGO_PKG_VERSION"));
    assert_eq!(warpstride(["--version"]).succeeded().stdout.trim_end(), version);
    warpstride(["man"]).ended(0, &[version], &[]);
    // The options of every command come last.
    let help = warpstride(["compare", "--help"]).succeeded().stdout;
    let (own, of_all) = help.split_once("\nOptions of every command:\n").expect("a group of their own");
    for option in ["--device <DEVICE>", "--json", "--quiet", "--stats"] {
        assert!(of_all.contains(option) && !own.contains(option), "{option}: {help}");
    }
    assert!(own.contains("--variants <A,B>") && !of_all.contains("--variants"), "{help}");
}

#[test]
fn devices_are_listed_with_the_kernels_origin() {
    warpstride(["devices"]).ended(0, &["soft", "soft chooses its kernels by thresholds: ", "PTX"], &[]);
    let document = warpstride(["devices", "--json"]).succeeded().json();
    assert_eq!(document["schema"], 3);
    assert!(document["ptx"].as_str().is_some_and(|origin| !origin.is_empty()));
    let soft = document["devices"].as_array().and_then(|all| all.iter().find(|device| device["kind"] == "soft"));
    assert!(soft.is_some_and(|soft| soft["memory_bytes"].as_u64() > Some(0)), "{document}");
}

#[test]
fn the_device_that_is_named_is_listed_alone() {
    let document = warpstride(["devices", "--json", "--device", "soft"]).succeeded().json();
    let listed = document["devices"].as_array().expect("a list");
    assert_eq!((listed.len(), &listed[0]["kind"]), (1, &"soft".into()));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = command(["devices"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_word_behind_a_value_gets_a_tip() {
    for (words, tip) in [
        ("run-cu k.cu --grid 3 2 --block 32", "write --grid 3,2"),
        ("run-cu k.cu --grid 3 --block 8 4", "write --block 8,4"),
        (
            "run-cu --grid 3 --block 8 k.cu --arg f32:1 i32:2",
            "repeat the option for each argument: --arg f32:1 --arg i32:2",
        ),
    ] {
        let run = warpstride(words.split(' '));
        assert!(run.code == Some(2) && run.stderr.contains(tip), "{words}: {}", run.stderr);
    }
}
