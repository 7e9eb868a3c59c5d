//! The user's tuning file: what it changes, and what becomes of a wrong one.

use std::fs;
use std::path::Path;

use serde_json::Value;
use warpstride::device::{Estimated, Tuned, TuningFile, Weights};
use warpstride::driver::Driver;
use warpstride::driver::soft::Soft;
use warpstride::ops::Target;

use super::{Run, command};

/// Explains a copy with such a file; its JSON, and its notes.
fn explained(file: &Path) -> (Value, String) {
    let explain = ["--device", "soft", "--json", "explain", "--shape", "1024,1024", "--axes", "0,1"];
    let run = Run::of(command(explain).env("WARPSTRIDE_TUNING", file)).succeeded();
    (run.json(), run.stderr)
}

fn own() -> String {
    let row = Tuned::new([[3, 3], [4, 3], [4, 4], [4, 4], [4, 4]], 96, 512).unwrap();
    TuningFile::with_row(b"", Soft::new().info(), row).unwrap()
}

#[test]
fn a_file_changes_plans_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuning.txt");
    let (document, notes) = explained(&file);
    assert_eq!((&document["block"][0], &document["policy"]["from"]), (&1024.into(), &"measured".into()));
    assert_eq!(document["policy"]["text"], "measured on an NVIDIA H100");
    let missing = "tuning.txt is not used: it is not there; name a plain file by WARPSTRIDE_TUNING, or unset it";
    assert!(notes.contains(missing), "{notes}");

    fs::write(&file, own()).unwrap();
    let (document, notes) = explained(&file);
    assert_eq!((&document["block"][0], &document["policy"]["from"]), (&96.into(), &"tuned".into()));
    assert_eq!(document["policy"]["file"], file.to_str().unwrap());
    assert_eq!(notes, "");

    // A run says with which numbers it was measured.
    let run = |line: &str| Run::of(command(line.split(' ')).env("WARPSTRIDE_TUNING", &file));
    let bench = "--device soft bench permute --shape 64,64 --axes 0,1";
    let document = run(&format!("--json {bench}")).succeeded().json();
    assert_eq!((&document["policy"]["from"], &document["policy"]["file"]), (&"tuned".into(), &file.to_str().into()));
    let policy = "tiles and blocks by bench --tune, and the rest measured on an NVIDIA H100, from ";
    run(bench).ended(0, &[&format!("\nplans choose kernels by thresholds: {policy}")], &[]);
    run("--device soft devices").ended(
        0,
        &[&format!("soft chooses its kernels by thresholds: {policy}{}\n", file.display())],
        &[],
    );
}

#[test]
fn weights_of_estimates_choose_other_kernels_and_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuning.txt");
    let explain = ["--device", "soft", "--json", "explain", "--shape", "8192,8192", "--axes", "1,0"];
    let explained = || Run::of(command(explain).env("WARPSTRIDE_TUNING", &file)).succeeded().json();
    let strategy = |document: &Value| document["strategies"][0]["name"].clone();
    fs::write(&file, own()).unwrap();
    assert_eq!(strategy(&explained()), "tile");

    let mut weights = Weights::of(Target::new((9, 0)));
    weights.of_kernel_mut(Estimated::WholeTiles, 2)[0] = 9.0;
    let text = TuningFile::with_weights(own().as_bytes(), Soft::new().info(), &weights).unwrap();
    fs::write(&file, &text).unwrap();
    let document = explained();
    assert_eq!(strategy(&document), "boxes");
    let policy = "tiles, blocks and estimates by bench --tune, and the rest measured on an NVIDIA H100";
    assert_eq!(document["policy"]["text"], policy);

    // Each section is used without the other.
    fs::write(&file, TuningFile::with_weights(b"", Soft::new().info(), &weights).unwrap()).unwrap();
    let document = explained();
    assert_eq!(strategy(&document), "boxes");
    assert_eq!(document["policy"]["text"], "estimates by bench --tune, and the rest measured on an NVIDIA H100");
    assert_eq!((&document["policy"]["from"], &document["policy"]["file"]), (&"tuned".into(), &file.to_str().into()));
    fs::write(&file, text.replace("whole_tiles_4 = 9", "whole_tiles_4 = -9")).unwrap();
    let document = explained();
    assert_eq!(strategy(&document), "tile");
    let note = document["policy"]["note"].as_str().unwrap();
    assert!(note.starts_with("the section of estimates in ") && note.ends_with("; remove the section"), "{note}");
    assert!(document["policy"]["text"].as_str().unwrap().starts_with("tiles and blocks by bench --tune, and"));
}

#[test]
fn the_software_gpu_measures_no_plan() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuning.txt");
    for permutes in ["--shape 64,64 --axes 1,0", "--random 1,2"] {
        let line = format!("--device soft bench permute {permutes} --measure");
        let run = Run::of(command(line.split(' ')).env("WARPSTRIDE_TUNING", &file));
        run.ended(1, &[], &["software GPU"]);
        assert!(!file.exists());
    }
}

#[test]
fn a_file_in_the_configuration_folder_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let explain = ["--device", "soft", "--json", "explain", "--shape", "64,64", "--axes", "0,1"];
    let mut command = command(explain);
    command.env_remove("WARPSTRIDE_TUNING");
    let below = if cfg!(target_os = "macos") { "Library/Application Support" } else { "." };
    for name in ["XDG_CONFIG_HOME", "APPDATA", "HOME"] {
        command.env(name, folder.path());
    }
    // A file that is not named may be missing.
    assert_eq!(Run::of(&mut command).succeeded().stderr, "");
    let file = folder.path().join(below).join("warpstride");
    fs::create_dir_all(&file).unwrap();
    fs::write(file.join("tuning.txt"), own()).unwrap();
    assert_eq!(Run::of(&mut command).json()["block"][0], 96);
}

#[test]
fn a_wrong_file_changes_nothing_and_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuning.txt");
    let version = format!("version = {}", env!("CARGO_PKG_VERSION"));
    let (section, text) = ("; remove the section", "; move it away, or name another file by WARPSTRIDE_TUNING");
    for (text, why, advice) in [
        (
            own().replace(&version, "version = 0.0.1"),
            "[software GPU] has version = 0.0.1, and this program has",
            section,
        ),
        (own().replace("= 96", "= 4096"), "copy_block is 4096", section),
        ("{ \"json\": 1 }".into(), "line 1 is neither", text),
        ("#".repeat(5 << 20), "it has more than 4194304 bytes", text),
    ] {
        fs::write(&file, text).unwrap();
        let (document, notes) = explained(&file);
        assert_eq!((&document["block"][0], &document["policy"]["from"]), (&1024.into(), &"measured".into()));
        assert!(notes.contains(why) && notes.contains("tuning.txt is not used") && notes.contains(advice), "{notes}");
        assert!(document["policy"]["note"].as_str().is_some_and(|note| note.contains(why)), "{document}");
    }
    // A folder, and a pipe without a writer, which must not be waited for.
    let (_, notes) = explained(folder.path());
    let why = "it is a folder, a pipe or a device; name a plain file by WARPSTRIDE_TUNING, or unset it";
    assert!(notes.contains(why), "{notes}");
    #[cfg(unix)]
    {
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert!(explained(&pipe).1.contains(why));
    }
}
