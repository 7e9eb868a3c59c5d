//! `learn check` of lessons that are programs in Rust, with a cargo of the test's own and with the
//! real one.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::Run;
use super::learn::Learner;

/// A `cargo` that says that it has made the program `task`.
fn fake_cargo(learner: &Learner, task: &str) -> PathBuf {
    let folder = learner.folder.path().join("bin");
    fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("task");
    let line = json!({ "target": { "name": "task" }, "executable": program }).to_string();
    let cargo = format!("#!/bin/sh\necho \"$@\" > {}/words\ncat << 'END'\n{line}\nEND\n", folder.display());
    for (name, text) in [("cargo", cargo), ("task", format!("#!/bin/sh\n{task}\n"))] {
        crate::executable::script(&folder.join(name), &text);
    }
    folder
}

#[test]
fn programs_are_compiled_and_run() {
    let learner = Learner::new();
    learner.run(&["learn", "next"]).succeeded();
    let check = |task: &str| {
        let path = format!("{}:/usr/bin:/bin", fake_cargo(&learner, task).display());
        let mut command = learner.command(&["learn", "check", "15"]);
        Run::of(command.env("PATH", path).env("WARPSTRIDE_CRATE", "."))
    };
    let run = check("echo 300 calls; exit 1");
    assert_eq!((run.code, &*run.stdout), (Some(1), "300 calls\n"));
    assert!(run.stderr.contains("pinned/task.rs says what is left to do; `warpstride learn hint pinned` helps"));
    let words = fs::read_to_string(learner.folder.path().join("bin/words")).expect("readable");
    assert!(
        words.starts_with("build --quiet --bin task ")
            && words.contains("--config patch.crates-io.warpstride.path=\"/")
    );
    assert!(learner.read("pinned/Cargo.toml").contains("[workspace]"));
    assert!(check("kill -SEGV $$").stderr.contains("ended with signal"));
    // More than a pipe holds.
    assert!(check("head -c 3000000 /dev/zero | tr '\\0' x; exit 1").stdout.len() == 1 << 20);
    let run = check("echo solved").succeeded();
    let end = "solved\n\nLesson 15 is solved. solution.rs is beside your files now.\n";
    assert!(run.stdout.starts_with(end), "{}", run.stdout);
    let cargo = "#!/bin/sh\necho 'error: no matching package named `warpstride` found' >&2\nexit 101\n";
    crate::executable::script(&learner.folder.path().join("bin/cargo"), cargo);
    let path = format!("{}:/usr/bin:/bin", learner.folder.path().join("bin").display());
    for (path, said) in [
        (&*path, &["set WARPSTRIDE_CRATE to the clone's folder"][..]),
        ("/nowhere", &["no cargo was found", "rustup.rs"]),
    ] {
        Run::of(learner.command(&["learn", "check", "15"]).env("PATH", path)).ended(1, &[], said);
    }
}

/// A crate with the name and the features of this one, and nothing in it.
fn stub(learner: &Learner) -> PathBuf {
    let folder = learner.folder.path().join("stub");
    fs::create_dir_all(folder.join("src")).expect("a folder");
    fs::write(folder.join("src/lib.rs"), "").expect("writing");
    let manifest = "[package]\nname = \"warpstride\"\nversion = \"0.3.0\"\nedition = \"2021\"\n\n[features]\ninterp = []\n\n[workspace]\n";
    fs::write(folder.join("Cargo.toml"), manifest).expect("writing");
    folder
}

#[test]
fn each_program_is_its_own_lessons() {
    let learner = Learner::new();
    let stub = stub(&learner);
    let check = |lesson: &str, target: Option<PathBuf>| {
        let mut command = learner.command(&["learn", "check", lesson]);
        command.env("WARPSTRIDE_CRATE", &stub).env("CARGO_NET_OFFLINE", "true").env_remove("CARGO_TARGET_DIR");
        Run::of(command.envs(target.map(|target| ("CARGO_TARGET_DIR", target))))
    };
    for lesson in ["pinned", "overlap"] {
        // Earlier versions gave all lessons one manifest.
        fs::create_dir_all(learner.path(lesson)).expect("a folder");
        let old = fs::read_to_string(crate::lessons::root().join("Cargo.toml.in")).expect("readable");
        learner.write(&format!("{lesson}/Cargo.toml"), old);
        let task = format!("fn main() {{ println!(\"{lesson}\"); std::process::exit(1) }}\n");
        learner.write(&format!("{lesson}/task.rs"), task);
    }
    // Cargo takes a package for compiled whose source is older than the program.
    for lesson in ["overlap", "pinned", "overlap"] {
        let run = check(lesson, None);
        assert_eq!((run.code, run.stdout), (Some(1), format!("{lesson}\n")), "{}", run.stderr);
        assert!(learner.read(&format!("{lesson}/Cargo.toml")).contains(&format!("name = \"lesson-{lesson}\"")));
    }
    let own = learner.folder.path().join("own");
    check("pinned", Some(own.clone()));
    assert!(own.join("debug/task").exists(), "the folder that CARGO_TARGET_DIR names");
}
