//! Names and texts of others that would act on a terminal, or break a file's format: every command
//! that shows one, and every format.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use roxmltree::Document;
use serde_json::Value;
use warpstride::error::is_hidden;

use super::{Folder, Run, command, npy, repository};

/// Sets a terminal's title, goes back to the line's begin, turns text around, and breaks XML, CSV
/// and Markdown.
const HOSTILE: &str = "x\u{1}\u{1b}]0;PWN\u{7}\r\u{9b}2J\u{202e}<&\"|\nerror: forged";

#[track_caller]
fn has_nothing_hidden(what: &str, text: &str) {
    let hidden = text.chars().find(|&c| is_hidden(c) && !matches!(c, '\n' | '\t'));
    assert_eq!(hidden, None, "{what}: {text:?}");
}

/// A terminal shows all of both streams, and the name begins no line.
#[track_caller]
fn both_are_harmless(run: &Run) {
    for text in [&run.stdout, &run.stderr] {
        has_nothing_hidden(&run.command, text);
        assert!(!text.contains("\nerror: forged"), "{}: {text}", run.command);
    }
}

fn elements() -> Vec<u8> {
    npy("<f4", "(2, 16)", &[0; 128])
}

/// A line of words, in which `@` is the hostile name.
fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(|word| word.replace('@', HOSTILE).into()).collect()
}

const PTX: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.file 1 \"@\"\n.visible .entry k(.param .u64 p) \
    { .reg .b32 %r<2>; .reg .b64 %rd<2>; .loc 1 1 0; ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];\
    st.global.u32 [%rd1], %r1; ret; }\n";

#[test]
fn names_of_files_and_words_reach_no_terminal_as_they_are() {
    let folder = Folder::with("in.npy", elements());
    folder.write(HOSTILE, elements());
    folder.write("k.ptx", PTX.replace('@', &HOSTILE.replace(['"', '\n'], "")));
    let launch = "run-ptx k.ptx --grid 1 --block 1 --arg";
    for line in [
        "transpose @ out.npy",
        "transpose missing@ out.npy",
        "transpose in.npy @/out.npy",
        "transpose in.npy @ --resume",
        "permute @ out.npy --axes 1,0",
        "permute @ out@ --axes 0,1",
        "permute in.npy in.npy --axes @",
        "permute in.npy out2@ --axes 1,0 --device-memory 60000",
        "explain @ --axes 1,0",
        "explain --shape 2 --from 0:2 --cluster @",
        "explain --shape 2 --from 0:2 --cluster missing@",
        "bench @",
        "@",
        "devices --@",
        "--device @ devices",
        "report @",
        "report missing@",
        "alloc replay @",
        "alloc replay missing@",
        "pipeline --input @ --frames 1",
        "pipeline --input missing@",
        "check @",
        "check @ missing@",
        "learn --folder @ next",
        "learn --folder lessons@ next",
        "learn --folder lessons@",
        "learn --folder lessons@ check index",
        "learn --folder lessons@ show @",
        "run-ptx @ --grid 1 --block 1",
        "run-cu @ --grid 1 --block 1",
        "run-cu missing@ --grid 1 --block 1",
        "ptx-forms @",
        "completions @",
        &format!("{launch} npy:@"),
        &format!("{launch} npy:@ --entry @"),
        &format!("{launch} npy:@ --report"),
        &format!("{launch} npy:@ --annotate"),
        &format!("{launch} npy:@ --by line --draw drawn@"),
        &format!("{launch} npy:missing@"),
        &format!("{launch} npy:@ --dump 0=dumped@"),
        &format!("{launch} u32[4]=@"),
        &format!("{launch} npy:@ --set @=u32:1"),
        &format!("{launch} npy:@ --check @"),
    ] {
        for more in [&["--device", "soft"][..], &["--device", "soft", "--json"]] {
            let more = if line.contains("--device @") { &more[2..] } else { more };
            let run = Run::of(command(words(line)).args(more).current_dir(folder.path("")));
            assert!(!(run.stdout.is_empty() && run.stderr.is_empty()), "{line} says nothing");
            both_are_harmless(&run);
        }
    }
    let drawing = fs::read_to_string(folder.path(&format!("drawn{HOSTILE}"))).expect("a drawing");
    Document::parse(&drawing).unwrap_or_else(|error| panic!("{error}: {drawing}"));
}

#[test]
fn texts_in_files_reach_no_terminal_as_they_are() {
    let quoted = Value::from(HOSTILE).to_string();
    let folder = Folder::with("descr.npy", npy(&HOSTILE.replace(['"', '\n'], ""), "(2,)", &[0; 8]));
    folder.write("key.npy", super::npy_with_header(&format!("{{'{HOSTILE}': 1}}"), &[]));
    folder.write("log.csv", format!("Thread,Time,Action,Pointer,Size,Stream\n0,0,{HOSTILE},0x1,4,0\n"));
    folder.write("k.ptx", format!("{}.{HOSTILE}", PTX.replace("\"@\"", "\"a.cu\"")));
    folder.write("c.toml", format!("kernel = {quoted}\nentry = {quoted}\ngrid = [1]\nblock = [1]\n"));
    folder.write("d.toml", format!("{quoted} = 1\n{HOSTILE}"));
    folder.write("tuning", format!("[{HOSTILE}]\nversion: {HOSTILE}\n"));
    folder.write("k.cu", format!("{HOSTILE}\n"));
    for line in [
        "transpose descr.npy out.npy",
        "transpose key.npy out.npy",
        "alloc replay log.csv",
        "run-ptx k.ptx --grid 1 --block 1",
        "ptx-forms k.ptx",
        "check c.toml",
        "check d.toml c.toml",
        "run-cu k.cu --grid 1 --block 1",
        "devices",
    ] {
        for more in [&["--device", "soft"][..], &["--device", "soft", "--json"]] {
            let mut command = command(line.split(' ').chain(more.iter().copied()));
            both_are_harmless(&Run::of(command.env("WARPSTRIDE_TUNING", "tuning").current_dir(folder.path(""))));
        }
    }
}

#[test]
fn texts_in_a_run_break_no_format() {
    // With times, so that there are charts.
    let record = fs::read(repository().join("benches/record/2026-11-25-h100/all.json")).expect("a record");
    let mut run: Value = serde_json::from_slice(&record).expect("a document");
    run["cases"].as_array_mut().expect("cases").truncate(1);
    for member in ["name", "date", "version", "kernel", "ptx"] {
        run[member] = HOSTILE.into();
    }
    for case in run["cases"].as_array_mut().expect("cases") {
        case["name"] = HOSTILE.into();
        case["kernel"] = format!("={HOSTILE}").into();
    }
    run["device"]["name"] = HOSTILE.into();
    let folder = Folder::with("run.json", run.to_string());
    folder.run("report run.json").succeeded();
    for line in ["report run.json", "report run.json --json", "report run.json --compare run.json"] {
        both_are_harmless(&folder.run(line));
    }
    folder.run("report run.json --html page.html --markdown page.md --csv page.csv --svg charts").succeeded();
    let read = |path: &Path| fs::read_to_string(path).expect("a file of the report");
    for name in ["page.html", "page.md", "page.csv"] {
        has_nothing_hidden(name, &read(&folder.path(name)));
    }
    let page = read(&folder.path("page.html"));
    // The charts are XML; the page around them is HTML.
    let drawn = page.split("<svg").skip(1).map(|svg| format!("<svg{}</svg>", svg.split("</svg>").next().unwrap_or("")));
    let charts =
        fs::read_dir(folder.path("charts")).expect("charts").map(|chart| read(&chart.expect("a chart").path()));
    let images: Vec<String> = drawn.chain(charts).collect();
    assert!(images.len() > 1 && !page.contains("PWN\u{7}") && page.contains("\\u{1b}]0;PWN"), "{page}");
    for svg in images {
        has_nothing_hidden("a chart", &svg);
        Document::parse(&svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    }
    assert!(read(&folder.path("page.csv")).contains("\"'=x"), "no spreadsheet takes a name for a formula");
    let table = read(&folder.path("page.md"));
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let rows: Vec<usize> = table.lines().filter(|line| line.starts_with('|')).map(cells).collect();
    assert!(rows.len() > 2 && rows.iter().all(|&count| count == rows[0]), "{table}");
}

/// Text passes the place that makes it harmless.
#[test]
fn one_file_writes_to_the_terminal() {
    let writes = ["io::stdout()", "io::stderr()", "println!", "print!(", "write_standard_output("];
    // NVRTC's own process writes to this program's files.
    let own = ["terminal/mod.rs", "cuda_cpp/child.rs"];
    let mut folders = vec![repository().join("cli/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if !own.iter().any(|own| path.ends_with(own)) {
                let text = fs::read_to_string(&path).expect("a source");
                let found = writes.iter().find(|write| text.contains(**write));
                assert_eq!(found, None, "{} writes past terminal/mod.rs", path.display());
            }
        }
    }
}
