//! Options stand anywhere, and what may be left out.

use serde_json::{Value, json};

use super::{Folder, npy, soft, warpstride};
use crate::long::short_or_long;

/// A kernel that does nothing, and a file of it.
pub(super) const NOTHING: &str = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";

fn folder() -> Folder {
    let folder = Folder::with("in.npy", npy("<f4", "(2, 3)", &[7; 24]));
    folder.write("k.ptx", NOTHING);
    folder
}

/// Every command, as words and options that stay together, and how it ends on the software GPU.
fn commands(folder: &Folder) -> Vec<(Vec<Vec<String>>, i32)> {
    let (input, output, ptx) = (folder.text("in.npy"), folder.text("out.npy"), folder.text("k.ptx"));
    let run = format!("{}/tests/data/no-run.json", env!("CARGO_MANIFEST_DIR"));
    let lines = [
        ("devices".to_owned(), 0),
        (format!("transpose|{input}|{output}|--variant naive"), 0),
        (format!("permute|{input}|{output}|--axes ab->ba"), 0),
        ("compare|--shape 4,4|--variants naive".to_owned(), 0),
        ("explain|--shape 2,3|--axes 1,0".to_owned(), 0),
        ("bench|--list".to_owned(), 0),
        ("bench|permute|--shape 2,3|--axes -1,0|--samples 3".to_owned(), 0),
        ("bench|sum|--elements 9".to_owned(), 0),
        (format!("report|{run}"), 1),
        ("peaks".to_owned(), 1),
        ("transfers|--bytes 1000".to_owned(), 0),
        (format!("run-ptx|{ptx}|--grid 1|--block 32"), 0),
        // A compiler may be installed or not.
        ("run-cu|/nowhere/k.cu|--compiler clang|--grid 1|--block 32".to_owned(), 1),
        (format!("ptx-forms|{ptx}"), 0),
        ("completions|bash".to_owned(), 0),
        ("man".to_owned(), 0),
    ];
    let units = |line: &str| line.split('|').map(|unit| unit.split(' ').map(Into::into).collect()).collect();
    lines.into_iter().map(|(line, code)| (units(&line), code)).collect()
}

#[test]
fn every_option_stands_before_within_and_behind_every_command() {
    let folder = folder();
    for (number, (units, code)) in commands(&folder).into_iter().enumerate() {
        for place in 0..=units.len() {
            let options = [
                (None, &["--device", "soft"][..]),
                (None, &["--device=soft"]),
                (Some("--device=soft"), &["--json"]),
                (Some("--device=soft"), &["--quiet"]),
                (Some("--device=soft"), &["--stats"]),
            ];
            // The short form has every second option, and the next place has the others.
            let skipped = short_or_long((number + place) % 2, 0);
            for (first, option) in options.into_iter().skip(skipped).step_by(short_or_long(2, 1)) {
                let mut words: Vec<&str> = first.into_iter().collect();
                words.extend(units[..place].iter().flatten().map(String::as_str));
                words.extend(option);
                words.extend(units[place..].iter().flatten().map(String::as_str));
                let run = warpstride(&words);
                assert_eq!(run.code, Some(code), "{words:?}: {}", run.stderr);
                if option[0] == "--json" {
                    assert_eq!(run.json()["schema"], 3, "{words:?}");
                    assert_eq!(run.json().get("error").is_some(), code != 0, "{words:?}");
                }
            }
        }
    }
}

#[test]
fn stats_count_the_calls_to_the_driver() {
    let folder = folder();
    let counted = ["software GPU: calls to the driver: ", "of which ", "can synchronise", "  launch "];
    let held = ["  stream_synchronize ", "memory held", "  device "];
    let run = folder.run("--stats transpose in.npy out.npy").ended(0, &[], &[&counted[..], &held].concat());
    assert!(run.stderr.contains("\nsoftware GPU"), "{}", run.stderr);
    let run = folder.run("--json --stats transpose in.npy out.npy").succeeded();
    assert!(!run.stderr.contains("calls to the driver"), "{}", run.stderr);
    let stats = &run.json()["stats"];
    assert_eq!(stats[0]["device"], "software GPU");
    assert_eq!(stats[0]["calls"]["launch"], 1);
    assert!(stats[0]["can_synchronize"].as_u64() > Some(0), "{stats}");
    assert!(stats[0]["memory"]["pool"]["peak_bytes"].as_u64() >= Some(48), "{stats}");
    // Also where there is no device, and where the command fails.
    assert_eq!(warpstride(["--stats", "--json", "bench", "--list"]).succeeded().json()["stats"], json!([]));
    let failed = warpstride(["--stats", "--json", "--device", "soft", "peaks"]).json();
    assert!(failed["error"].is_object() && failed["stats"].is_array(), "{failed}");
}

/// Options behind the name of a command or of an operation may stand before it, in the same order.
#[test]
fn options_of_one_command_stand_before_its_name() {
    for (line, names) in [
        ("explain|--shape 2,3|--axes 1,0", 1),
        ("compare|--shape 4,4|--variants naive", 1),
        ("bench|--list", 1),
        ("bench|permute|--shape 2,3|--axes -1,0|--samples 3", 2),
        ("bench|sum|--elements 9|--dtype=f64", 2),
    ] {
        let units: Vec<Vec<&str>> = line.split('|').map(|unit| unit.split(' ').collect()).collect();
        let (names, options) = units.split_at(names);
        let document = |words: &[&str]| {
            let mut document = warpstride([&["--device", "soft", "--json"], words].concat()).succeeded().json();
            // Another one in every run.
            document.as_object_mut().expect("an object").remove("date");
            document
        };
        let expected = document(&units.concat());
        for before in 0..names.len() {
            for moved in 1..=options.len() {
                let (early, late) = options.split_at(moved);
                let words = [&names[..before], early, &names[before..], late].concat().concat();
                assert_eq!(document(&words), expected, "{words:?}");
            }
        }
    }
}

#[test]
fn an_option_for_all_operations_stands_beside_none() {
    for line in ["--list", "--all", "--tune", "--all --save x"] {
        let run = warpstride(format!("bench {line} copy --elements 4").split(' '));
        run.ended(2, &[], &["cannot be used with an operation"]);
    }
}

#[test]
fn what_has_an_element_type_is_f32_where_none_is_given() {
    for line in [
        "explain --shape 2,3 --axes 1,0",
        "compare --shape 4,4 --variants naive",
        "bench permute --shape 2,3 --axes 1,0",
        "bench copy --elements 9",
        "bench strided-copy --elements 9 --step 2",
        "bench triad --elements 9",
        "bench max --shape 2,3 --axis 0",
        "bench softmax --shape 2,3",
        "bench normalize --shape 1,2,3,3",
        "bench gather --shape 2,3",
    ] {
        let document = soft(&format!("--json {line}")).succeeded().json();
        assert_eq!(document["dtype"], "f32", "{line}");
    }
}

#[test]
fn axes_are_numbers_letters_or_words() {
    let folder = Folder::with("in.npy", npy("|u1", "(2, 3, 4, 5)", &[1; 120]));
    let (input, output) = (&*folder.text("in.npy"), &*folder.text("out.npy"));
    for axes in ["0,2,3,1", "-4,-2,-1,-3", "nchw->nhwc", "n c h w -> n h w c", "batch of_ row col->batch row col of_"] {
        for words in [
            &["permute", input, output][..],
            &["explain", "--shape", "2,3,4,5"],
            &["bench", "permute", "--shape", "2,3,4,5"],
            &["bench", "affine", "--shape", "2,3,4,5", "--from", "u8", "--to", "f32"],
        ] {
            let words = [&["--device", "soft", "--json"], words, &["--axes", axes]].concat();
            assert_eq!(warpstride(&words).succeeded().json()["axes"], json!([0, 2, 3, 1]), "{words:?}");
        }
    }
}

#[test]
fn a_note_on_the_choice_is_short_and_advises_nothing_that_was_done() {
    for line in ["explain --shape 2,3 --axes 1,0", "compare --shape 4,4"] {
        let run = warpstride(line.split(' ')).succeeded();
        let note = run.stderr.trim_end();
        assert!(note.len() < 80 && note.lines().count() == 1 && note.contains(": "), "{note:?}");
        assert!(!note.contains("--device"), "{note:?}");
    }
    assert_eq!(warpstride(["--quiet", "explain", "--shape", "2,3", "--axes", "1,0"]).succeeded().stderr, "");
}

#[test]
fn shells_complete_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = warpstride(["completions", shell]).succeeded().stdout;
        for word in ["permute", "run-ptx", "softmax", "axes", "device"] {
            assert!(script.contains(word), "{word:?} is not in that of {shell}");
        }
    }
    assert_eq!(warpstride(["completions", "tcsh"]).code, Some(2));
}

#[test]
#[cfg(unix)]
fn bash_takes_its_completions() {
    let script = warpstride(["completions", "bash"]).succeeded().stdout;
    let asked = "\nCOMP_WORDS=(warpstride expl); COMP_CWORD=1; _warpstride warpstride expl warpstride; echo \"${COMPREPLY[@]}\"";
    // The gate is written in bash, so it is there.
    // The script is longer than an argument may be.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("completions.bash");
    std::fs::write(&file, script + asked).unwrap();
    let shell = super::Run::of(std::process::Command::new("bash").arg(file));
    assert_eq!(shell.stdout.trim(), "explain", "{}", shell.stderr);
}

#[test]
fn the_manual_has_every_command() {
    let page = warpstride(["man"]).succeeded().stdout;
    assert!(page.contains(".TH warpstride"), "{page}");
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    for command in ["DEVICES", "TRANSPOSE", "PERMUTE", "BENCH PERMUTE", "BENCH MEAN\\-VARIANCE", "RUN\\-PTX", "MAN"] {
        assert!(sections.iter().any(|section| section.ends_with(command)), "{command} is not in {sections:?}");
    }
    // Everything that --help says of an option is there.
    for option in ["\\-\\-device", "\\-\\-json", "\\-\\-axes", "\\-\\-check", "\\-\\-samples"] {
        assert!(page.contains(option), "{option}");
    }
    let Value::String(same) = &warpstride(["--json", "man"]).succeeded().json()["page"] else { panic!("no page") };
    assert_eq!(*same, page);
}
