//! A failure with `--json`: one document on standard output, beside the sentence on standard error.

use std::process::Stdio;

use super::{Folder, command, npy, warpstride};

const PTX: &str = "
    .version 7.0
    .target sm_80
    .address_size 64
    .visible .entry far(.param .u64 dst) {
        .reg .b64 %rd<2>; ld.param.u64 %rd1, [dst]; st.global.u32 [%rd1+4096], 1; ret;
    }
    .visible .entry both(.param .u64 dst) {
        .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [dst]; mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1;
        st.global.u32 [%rd1+4096], 1; ret;
    }
    .visible .entry race(.param .u64 dst) {
        .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [dst]; mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1; ret;
    }";

/// Runs a line with `--json` at every place, and wants one document of this kind each time.
#[track_caller]
fn fails(words: &[&str], code: i32, kind: &str) {
    for place in 0..=words.len() {
        // Not between an option and its value.
        let before = place.checked_sub(1).map(|before| words[before]);
        if before.is_some_and(|word| word.starts_with("--") && !matches!(word, "--list" | "--quiet")) {
            continue;
        }
        let line = [&words[..place], &["--json"], &words[place..]].concat();
        let run = warpstride(&line);
        assert_eq!(run.code, Some(code), "{line:?}: {}", run.stderr);
        // It is one document, not two.
        let document = run.json();
        let members: Vec<&String> = document.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["schema", "error"], "{line:?}");
        assert_eq!(
            (&document["schema"], &document["error"]["kind"]),
            (&3.into(), &kind.into()),
            "{line:?}: {document}"
        );
        let message = document["error"]["message"].as_str().expect("a message");
        assert!(!message.is_empty() && !message.contains('\n') && !message.starts_with("error"), "{message:?}");
        if code == 1 {
            assert!(run.stderr.ends_with(&format!("error: {message}\n")), "{message:?} is not in {:?}", run.stderr);
        } else {
            assert!(run.stderr.contains("--help") || run.stderr.contains("Usage"), "{}", run.stderr);
        }
    }
}

#[test]
fn wrong_usage_is_a_document_of_its_own_kind() {
    for words in [
        &["transmogrify"][..],
        &[],
        &["bench"],
        &["permute", "in.npy", "out.npy"],
        &["permute", "in.npy", "out.npy", "--axes", "ab"],
        &["compare", "--shape", "5"],
        &["explain", "--shape", "2,2", "--axes", "0,0"],
        &["bench", "--list", "copy", "--elements", "4"],
        &["bench", "copy", "--elements", "many"],
        &["report"],
        &["peaks", "high"],
        &["--device", "vulkan", "devices"],
        &["run-ptx", "k.ptx", "--grid", "0", "--block", "1"],
        &["ptx-forms", "a", "b"],
        &["completions"],
        &["man", "3"],
    ] {
        fails(words, 2, "usage");
    }
    // --report-json is short for --json too, and an option with a value that it does not take asks
    // for JSON too.
    for words in [["run-ptx", "--report-json"], ["--json=true", "devices"], ["bench", "--json=1"]] {
        let run = warpstride(words);
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(2), &"usage".into()), "{words:?}");
    }
}

#[test]
fn words_behind_two_dashes_ask_for_nothing() {
    let run = warpstride(["transpose", "--", "in.npy", "--json", "more"]);
    assert_eq!((run.code, &*run.stdout), (Some(2), ""));
}

#[test]
fn failures_have_the_librarys_kinds() {
    let folder = Folder::with("k.ptx", PTX);
    let path = |name: &str| folder.text(name);
    let (input, output, none, ptx, text) = (path("in.npy"), path("out.npy"), path("no"), path("k.ptx"), path("t.ptx"));
    folder.write("in.npy", npy("<f4", "(2, 3)", &[7; 24]));
    folder.write("t.ptx", "this is not PTX");
    let soft = ["--device", "soft"];
    for (kind, words) in [
        ("io", &["transpose", &*none, &output][..]),
        ("io", &["transpose", &text, &output]),
        ("io", &["permute", &input, &path("no/out.npy"), "--axes", "1,0"]),
        ("io", &["compare", &none]),
        ("io", &["report", &none]),
        ("io", &["report", &text]),
        ("io", &["ptx-forms", &none]),
        ("invalid_argument", &["permute", &input, &output, "--axes", "0,0"]),
        ("invalid_argument", &["permute", &input, &input, "--axes", "1,0"]),
        ("invalid_argument", &["bench", "max", "--shape", "2,3", "--axis", "2"]),
        ("invalid_argument", &["run-ptx", &ptx, "--grid", "1", "--block", "1"]),
        ("invalid_argument", &["run-ptx", &ptx, "--entry", "far", "--grid", "1", "--block", "1"]),
        ("layout", &["bench", "copy", "--elements", "9000000000000000000"]),
        ("layout", &["explain", "--shape", "4294967296,4294967296", "--axes", "1,0"]),
        ("out_of_memory", &["bench", "copy", "--elements", "1000000000000000"]),
        ("unavailable", &["peaks"]),
        ("unavailable", &["bench", "--tune"]),
        ("unavailable", &["devices", "--device", "cuda:99"]),
        ("unsupported_ptx", &["run-ptx", &text, "--entry", "k", "--grid", "1", "--block", "1"]),
        ("kernel_fault", &["run-ptx", &ptx, "--entry", "far", "--grid", "1", "--block", "1", "--arg", "f32[4]=zeros"]),
    ] {
        let words = if words.contains(&"--device") { words.to_vec() } else { [words, &soft].concat() };
        fails(&words, 1, kind);
    }
}

#[test]
fn findings_are_the_document_of_their_run() {
    let folder = Folder::with("k.ptx", PTX);
    let ptx = &*folder.text("k.ptx");
    for (entry, checks, has_stopped) in [("race", "all", false), ("far", "all", false), ("both", "racecheck", true)] {
        let words = ["run-ptx", ptx, "--entry", entry, "--grid", "1", "--block", "32", "--arg", "f32[4]=zeros"];
        let run = warpstride([&["--json", "--device", "soft"], &words[..], &["--check", checks]].concat());
        let run = run.ended(1, &[], &["error: "]);
        let document = run.json();
        let found = document["findings"].as_array().map_or(0, Vec::len);
        assert!(found > 0, "{document}");
        // A launch that has stopped has a failure to tell beside what it found.
        assert_eq!(document.get("error").is_some(), has_stopped, "{document}");
        if has_stopped {
            assert_eq!(document["error"]["kind"], "kernel_fault");
            let message = document["error"]["message"].as_str().expect("a message");
            assert!(run.stderr.ends_with(&format!("error: {message}\n")), "{message:?} is not in {:?}", run.stderr);
        }
    }
}

#[test]
fn a_bench_without_an_operation_is_told_so() {
    for words in [["--json", "bench"], ["bench", "--json"]] {
        let message = warpstride(words).json()["error"]["message"].to_string();
        assert!(message.contains("an operation is missing"), "{message}");
    }
}

#[test]
fn the_librarys_words_are_those_of_the_command_line_and_names_stay() {
    let name = "`Backend::Soft` and `Config::work_limit`";
    let folder = Folder::with("other", "");
    warpstride(["compare", &folder.text(name)]).failed(&["cannot read", name]);
    // It is read, and then refused in a sentence of the command line.
    folder.write(name, "no array");
    warpstride(["compare", &folder.text(name)]).failed(&["is not a .npy file", name]);
    for words in [&["devices"][..], &["devices", "--json"], &["compare", "--shape", "4,4"]] {
        let run = warpstride(words);
        assert!(!(run.stdout + &run.stderr).contains("Backend::"), "{words:?}");
    }
}

#[test]
#[cfg(unix)]
fn a_reader_that_leaves_changes_no_status() {
    let folder = Folder::with("k.ptx", PTX);
    let ptx = &*folder.text("k.ptx");
    for (entry, options, code) in [
        ("race", &["--check", "all"][..], 1),
        ("both", &["--check", "racecheck"], 1),
        ("far", &[], 1),
        ("race", &[], 0),
    ] {
        for json in [&[][..], &["--json"]] {
            let words = ["--device", "soft", "run-ptx", ptx, "--entry", entry, "--grid", "1", "--block", "64"];
            let words = [&words[..], &["--arg", "f32[4]=zeros"], options, json].concat();
            let mut child = command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
            drop(child.stdout.take());
            let ended = child.wait_with_output().expect("its end");
            let said = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(code), "{words:?}: {said}");
            assert_eq!(said.contains("error: "), code == 1, "{words:?}: {said}");
        }
    }
}

/// A stack of more bytes than can be addressed stands for a system that starts no more threads.
#[cfg(target_os = "linux")]
#[test]
fn a_run_for_which_no_thread_starts_ends_with_a_document() {
    let folder = Folder::with("in.npy", npy("<u4", "(600, 700)", &vec![7; 4 * 600 * 700]));
    for line in [
        "transpose in.npy out.npy",
        "transpose in.npy out.npy --device-memory 400000",
        "pipeline --frames 64 --shape 3,32,32 --batch 8 --mode streams",
        "bench permute --shape 64,64,3 --axes 2,0,1",
        "alloc bench",
        "compare --shape 64,64",
    ] {
        let words = ["--device", "soft", "--json"].into_iter().chain(line.split(' '));
        let run = super::Run::of(
            command(words).current_dir(folder.path("")).env("RUST_MIN_STACK", (1_u64 << 50).to_string()),
        );
        assert_eq!(run.code, Some(1), "{line}: {}", run.stderr);
        assert!(!run.stderr.contains("panicked"), "{line}: {}", run.stderr);
        assert!(run.json()["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{line}");
        assert_eq!(folder.names(), ["in.npy"], "{line}");
    }
}
