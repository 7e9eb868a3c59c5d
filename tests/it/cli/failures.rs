//! A failure with `--json`: one document on standard output, beside the sentence on standard error.

use std::fs;

use super::{npy, warpstride};

const PTX: &str = "
    .version 7.0
    .target sm_80
    .address_size 64
    .visible .entry far(.param .u64 dst) {
        .reg .b64 %rd<2>; ld.param.u64 %rd1, [dst]; st.global.u32 [%rd1+4096], 1; ret;
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
        // Of two documents this is none.
        let document = run.json();
        let members: Vec<&String> = document.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["schema", "error"], "{line:?}");
        assert_eq!(
            (&document["schema"], &document["error"]["kind"]),
            (&1.into(), &kind.into()),
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
        &["transpose", "in.npy"],
        &["transpose", "in.npy", "out.npy", "--variant", "fastest"],
        &["permute", "in.npy", "out.npy"],
        &["permute", "in.npy", "out.npy", "--axes", "ab"],
        &["compare", "--shape", "5"],
        &["compare", "in.npy", "--shape", "2,2"],
        &["explain", "--shape", "2,2", "--axes", "0,0"],
        &["explain", "--shape", "2,2", "--axes", "abc->cba"],
        &["bench", "sort"],
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
    // --report-json is short for --json too.
    let run = warpstride(["run-ptx", "--report-json"]);
    assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(2), &"usage".into()));
}

#[test]
fn words_behind_two_dashes_ask_for_nothing() {
    let run = warpstride(["transpose", "--", "in.npy", "--json", "more"]);
    assert_eq!((run.code, &*run.stdout), (Some(2), ""));
}

#[test]
fn failures_have_the_librarys_kinds() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
    let (input, output, none, ptx, text) = (path("in.npy"), path("out.npy"), path("no"), path("k.ptx"), path("t.ptx"));
    fs::write(&input, npy("<f4", "(2, 3)", &[7; 24])).expect("writing");
    fs::write(&ptx, PTX).expect("writing");
    fs::write(&text, "this is no PTX").expect("writing");
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
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ptx = folder.path().join("k.ptx");
    fs::write(&ptx, PTX).expect("writing");
    let ptx = ptx.to_str().expect("a plain path");
    for entry in ["race", "far"] {
        let words = ["run-ptx", ptx, "--entry", entry, "--grid", "1", "--block", "32", "--arg", "f32[4]=zeros"];
        let run = warpstride([&["--json", "--device", "soft"], &words[..], &["--check", "all"]].concat());
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let document = run.json();
        let found = document["findings"].as_array().map_or(0, Vec::len);
        // A launch that stopped before anything was found has nothing but its failure to tell.
        assert_eq!(found == 0, document.get("error").is_some(), "{document}");
        assert!(entry == "far" || found > 0, "{document}");
        assert!(run.stderr.contains("error: "), "{}", run.stderr);
    }
}
