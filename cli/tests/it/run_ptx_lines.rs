//! The report by source line, and the source with what its lines did.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Folder, Run, command, warpstride};

/// PTX of NVRTC with lines of two files: tests/data/lines/tiles.cu.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lines").join(name)
}

const MATRIX: [&str; 6] = ["--arg", "f32[16384]=iota", "--arg", "f32[16384]=zeros", "--arg", "i32:128"];

fn words<'a>(ptx: &'a Path, entry: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let ptx = ptx.to_str().expect("a plain path");
    let launch = ["--device", "soft", "run-ptx", ptx, "--entry", entry, "--grid", "4,4", "--block", "32,8"];
    let arguments: &[&str] = if entry == "nothing" { &[] } else { &MATRIX };
    [&launch, arguments, more].concat()
}

fn launched(entry: &str, more: &[&str]) -> Run {
    warpstride(words(&data("tiles.ptx"), entry, more)).succeeded()
}

/// The cells of the first row that begins with `first`.
#[track_caller]
fn row<'r>(run: &'r Run, first: &str) -> Vec<&'r str> {
    let rows = run.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.into_iter().find(|row| row.first() == Some(&first)).unwrap_or_else(|| panic!("no {first} in {}", run.stdout))
}

/// The lines of a run, without the time of this host.
fn timeless(run: &Run) -> Vec<&str> {
    run.stdout.lines().filter(|line| !line.contains("of this host")).collect()
}

/// PTX whose source is called `name`, in a folder of its own.
fn with_source(name: &str) -> Folder {
    let text = fs::read_to_string(data("tiles.ptx")).expect("readable");
    Folder::with("moved.ptx", text.replace("\"tiles.cu\"", &format!("\"{name}\"")))
}

#[test]
fn a_line_is_one_row_with_all_its_copies_and_names_another_file() {
    let run = launched("tiled", &["--report"]);
    // Each loop is unrolled four times; 16 blocks of 8 warps.
    assert!(run.stdout.contains("Line by line, tiles.cu\n"), "{}", run.stdout);
    assert_eq!(row(&run, "17"), ["17", "512", "32.00", "-", "-", "-", "512", "1.00x", "0"]);
    let store = ["23", "1024", "32.00", "512", "2048", "1.00x", "16384", "32.00x", "15872"];
    assert_eq!(row(&run, "23"), store);
    assert_eq!(row(&run, "load.cuh:3"), ["load.cuh:3", "512", "32.00", "512", "2048", "1.00x", "-", "-", "-"]);
    assert_eq!(row(&run, "shared")[..], ["shared", "load", "512", "-", "-", "16384", "32.00x", "15872"]);
    let worst = "The worst access to shared memory\ntiles.cu:23 (PTX line ";
    let run = run.ended(0, &[worst], &[]);
    assert!(!run.stdout.contains("instruction by instruction"), "{}", run.stdout);
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 120), "{}", run.stdout);
    // To say which rows there are is to ask for them.
    assert_eq!(timeless(&run), timeless(&launched("tiled", &["--by", "line"])));
}

#[test]
fn a_line_that_loads_and_stores_shows_which_of_them_wastes() {
    let run = launched("naive", &["--report"]);
    assert!(run.stdout.contains("sectors   /ideal   loads   stores"), "{}", run.stdout);
    assert_eq!(row(&run, "8"), ["8", "256", "32.00", "256", "4608", "4.50x", "1.00x", "8.00x"]);
}

#[test]
fn instructions_are_shown_where_they_are_asked_for() {
    let run = launched("tiled", &["--by", "instruction"]);
    assert!(run.stdout.contains("Global memory, instruction by instruction"), "{}", run.stdout);
    assert!(!run.stdout.contains("Line by line"), "{}", run.stdout);
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 120), "{}", run.stdout);
    let rows = run.stdout.lines().filter(|line| line.contains("ld.global.f32") && line.contains("load.cuh:3"));
    assert_eq!(rows.filter(|line| line.contains("4.00    1.00x")).count(), 4, "{}", run.stdout);
}

#[test]
fn without_lines_the_report_is_by_instruction_and_a_sentence_says_why() {
    let text = fs::read_to_string(data("tiles.ptx")).expect("readable");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with(".loc"));
    let folder = Folder::with("plain.ptx", lines.collect::<Vec<_>>().join("\n"));
    let path = folder.path("plain.ptx");
    let why = "`tiled` has no lines of a source in this PTX; compile with -lineinfo";
    warpstride(words(&path, "tiled", &["--by", "line", "--annotate"])).ended(
        0,
        &["instruction by instruction", &format!("No source is shown: {why}")],
        &[why, "the report is by instruction"],
    );
    let document = warpstride(words(&path, "tiled", &["--report-json", "--annotate"])).succeeded().json();
    assert_eq!((&document["lines"], &document["sources"]), (&json!([]), &json!([])));
    let run = warpstride(words(&path, "tiled", &["--by", "file"]));
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{}", run.stderr);
}

#[test]
fn the_document_has_the_lines_beside_what_it_had() {
    let document = launched("tiled", &["--report-json"]).json();
    assert_eq!(document["instructions"].as_array().expect("an array").len(), 16);
    assert!(document.get("sources").is_none());
    assert_eq!(document["counters"]["ideal"]["global_load"], 2048);
    let lines = document["lines"].as_array().expect("an array");
    let places = lines.iter().map(|line| (line["file"].as_str(), line["line"].as_u64()));
    let places: Vec<_> = places.map(|(file, line)| (file.expect("a name"), line.expect("a line"))).collect();
    let expected = [("tiles.cu", 17), ("tiles.cu", 23), ("load.cuh", 3)];
    assert_eq!(places, expected);
    let store = &lines[1];
    assert_eq!(store["ptx_lines"], json!([128, 132, 133, 135, 136, 138, 139, 141]));
    assert_eq!((&store["executions"], &store["thread_executions"]), (&json!(1024), &json!(32768)));
    assert_eq!(store["active_lanes"], 32.0);
    assert_eq!((&store["sectors_over_ideal"], &store["wavefronts_over_ideal"]), (&json!(1.0), &json!(32.0)));
    assert_eq!(store["counters"]["global_store"], json!({ "instructions": 512, "requests": 512, "sectors": 2048 }));
    assert_eq!(store["counters"]["shared_load"]["bank_conflicts"], 15872);
    assert_eq!(lines[0]["sectors_over_ideal"], Value::Null);
    // 15872 of the launch's 16896 wavefronts.
    assert!(store["heat"].as_f64().is_some_and(|heat| (0.93..0.95).contains(&heat)), "{store}");
    // Together they are the launch's.
    for (space, figures) in document["counters"].as_object().expect("an object") {
        for (figure, launch) in figures.as_object().expect("an object") {
            let sum: u64 = lines.iter().filter_map(|line| line["counters"][space][figure].as_u64()).sum();
            assert_eq!(launch.as_u64(), Some(sum), "{space}.{figure}");
        }
    }
}

#[test]
fn the_whole_source_stands_beside_its_figures() {
    let run = launched("tiled", &["--annotate"]);
    let source = fs::read_to_string(data("tiles.cu")).expect("readable");
    let shown: Vec<&str> = run.stdout.lines().skip_while(|line| *line != "tiles.cu").skip(1).collect();
    assert!(shown[0].starts_with("heat ") && shown[0].ends_with("line  source"), "{}", run.stdout);
    let heading = shown[0].len() - "line  source".len();
    for (number, line) in (1..).zip(source.lines()) {
        let text = format!("{number:>4}  {}", line.replace('\t', "    "));
        assert_eq!(shown[number][heading..], *text.trim_end(), "{}", run.stdout);
    }
    for (line, figures) in [
        (17, "512  32.00         -              -             1.00x          0    17 "),
        (23, "########        1024  32.00       512          1.00x            32.00x      15872    23 "),
    ] {
        assert!(shown[line].trim_start().starts_with(figures), "{}", shown[line]);
    }
    // The lines of another file that have figures.
    let other: Vec<&str> = run.stdout.lines().skip_while(|line| *line != "load.cuh").skip(2).collect();
    assert!(other[0].ends_with("   3      return p[i];") && other[1].is_empty(), "{}", run.stdout);
    assert!(!run.stdout.contains("Line by line") && !run.stdout.contains("The worst access"), "{}", run.stdout);
    let naive = launched("naive", &["--annotate", "--report"]);
    assert!(naive.stdout.contains("#######   ") && naive.stdout.contains("Line by line"), "{}", naive.stdout);
    // A kernel that accesses nothing has a source too.
    let nothing = launched("nothing", &["--annotate", "--report"]);
    assert!(nothing.stdout.contains("   5  extern \"C\" __global__ void naive("), "{}", nothing.stdout);

    let document = launched("tiled", &["--annotate", "--json"]).json();
    let [tiles, load] = &document["sources"].as_array().expect("an array")[..] else { panic!("{document}") };
    assert_eq!(
        (&tiles["file"], &tiles["missing"], &load["file"]),
        (&json!("tiles.cu"), &Value::Null, &json!("load.cuh"))
    );
    assert_eq!(tiles["text"].as_array().map(Vec::len), Some(source.lines().count()));
    assert_eq!(load["text"][2], "    return p[i];");
    assert_eq!(document["lines"].as_array().map(Vec::len), Some(3));
}

#[test]
fn colours_are_for_those_who_want_them() {
    let ptx = data("tiles.ptx");
    let shown = |variables: &[(&str, &str)]| {
        let mut run = command(words(&ptx, "tiled", &["--annotate"]));
        run.envs(variables.iter().copied());
        String::from_utf8(run.output().expect("it starts").stdout).expect("text")
    };
    let (plain, coloured) = (shown(&[]), shown(&[("CLICOLOR_FORCE", "1")]));
    assert!(plain.contains("\n########  ") && !plain.contains('\u{1b}'), "{plain}");
    assert!(coloured.contains("\u{1b}[31m████████\u{1b}[0m  ") && !coloured.contains("########"), "{coloured}");
    let plain_again = shown(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]);
    assert!(plain_again.contains("\n########  ") && !plain_again.contains('\u{1b}'), "{plain_again}");
}

#[test]
fn a_source_that_is_missing_is_told_of_and_fails_nothing() {
    let folder = with_source("/elsewhere/tiles.cu");
    let ptx = folder.path("moved.ptx");
    let annotated = |ptx: &Path| warpstride(words(ptx, "tiled", &["--annotate"])).succeeded();
    let why = "No source is shown: /elsewhere/tiles.cu is not there; put it beside the PTX";
    let run = annotated(&ptx).ended(0, &[why, "No source is shown: load.cuh is not there"], &[]);
    assert!(row(&run, "########").contains(&"23"), "{}", run.stdout);
    let document = warpstride(words(&ptx, "tiled", &["--annotate", "--json"])).succeeded().json();
    assert_eq!(document["sources"][0]["text"], Value::Null);
    assert!(document["sources"][0]["missing"].as_str().is_some_and(|why| why.contains("is not there")), "{document}");
    // Beside the PTX it is found, and its tabs and what a terminal would obey are harmless.
    folder.write("tiles.cu", b"\tint x; // \x1b[2J caf\xe9 \xe2\x80\xaet\r\n");
    let run = annotated(&ptx);
    let shown = "   1      int x; // \\u{1b}[2J caf\u{fffd} \\u{202e}t\n";
    assert!(run.stdout.contains(shown) && !run.stdout.contains('\u{1b}'), "{}", run.stdout);
    assert!(run.stdout.contains("Lines lie behind the end of this file"), "{}", run.stdout);
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_ptx_names_is_not_read_unless_it_is_a_source() {
    for (name, why) in [
        ("/dev/zero", "/dev/zero is not named as a source"),
        ("/dev/stdin", "/dev/stdin is not named as a source"),
        ("pipe.cu", "pipe.cu is not a regular file"),
        ("folder.cu", "folder.cu is not a regular file"),
        ("../..", "../.. is not named as a source"),
        ("/proc/self/environ", "/proc/self/environ is not named as a source"),
        ("huge.cu", "huge.cu has more than 1 MiB"),
        ("lines.cu", "lines.cu has more than 65536 lines"),
        ("binary.cu", "binary.cu is not text"),
        ("empty.cu", "empty.cu is empty"),
        ("link.cu", "link.cu is not a regular file"),
        ("id_rsa", "id_rsa is not named as a source"),
        (".env", ".env is not named as a source"),
        ("binary.cu/k.cu", "binary.cu/k.cu is not there"),
        ("\u{1b}[2J.cu", "\\u{1b}[2J.cu is not there"),
    ] {
        let folder = with_source(name);
        let path = |name: &str| folder.path(name);
        fs::File::create(path("huge.cu")).and_then(|file| file.set_len(5 << 30)).expect("a sparse file");
        folder.write("lines.cu", "\n".repeat(1 << 17));
        folder.write("binary.cu", b"\x7fELF\0\0");
        for name in ["empty.cu", "id_rsa", ".env"] {
            folder.write(name, "");
        }
        std::os::unix::fs::symlink("/dev/zero", path("link.cu")).expect("a link");
        fs::create_dir(path("folder.cu")).expect("a folder");
        let made = std::process::Command::new("mkfifo").arg(path("pipe.cu")).status();
        assert!(made.expect("mkfifo starts").success());
        let run = warpstride(words(&path("moved.ptx"), "tiled", &["--annotate", "--report"])).succeeded();
        assert!(run.stdout.contains(&format!("No source is shown: {why}")), "{name}: {}", run.stdout);
        assert!(run.stdout.contains("15872") && !run.stdout.contains('\u{1b}'), "{name}: {}", run.stdout);
    }
}

#[test]
fn drawings_have_the_line_as_their_title() {
    let folder = Folder::with("out.svg", "");
    launched("tiled", &["--draw", &folder.text("out.svg")]);
    let titles = folder.titles();
    assert_eq!(titles.len(), 16, "{titles:?}");
    assert!(titles[0].starts_with("load.cuh:3 (PTX line ") && titles[0].contains("): ld.global.f32 "), "{titles:?}");
    assert!(titles[15].starts_with("tiles.cu:23 (PTX line ") && titles[15].contains("): st.global.f32 "), "{titles:?}");
}
