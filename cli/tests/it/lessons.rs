//! The lessons: their files, the format of their pages, tasks that fail as given, and solutions
//! that pass.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("lessons")
}

/// The folders, in the order of the lessons.
pub(crate) fn names() -> Vec<String> {
    let order = fs::read_to_string(root().join("order.txt")).expect("readable");
    order.lines().map(str::to_owned).collect()
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("readable");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

pub(crate) fn text(lesson: &str, file: &str) -> String {
    let path = root().join(lesson).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names and texts of a lesson's files.
pub(crate) fn files(lesson: &str) -> Vec<(String, String)> {
    let names = entries(&root().join(lesson)).into_iter();
    names.map(|name| (name.clone(), text(lesson, &name))).collect()
}

/// The file of the learner's in whose place a file of a solution goes.
pub(crate) fn place_of_solution(file: &str) -> Option<String> {
    let rest = file.strip_prefix("solution")?;
    Some(if rest.ends_with(".toml") { format!("check{rest}") } else { format!("task{rest}") })
}

/// The text of a solution's file in the place of the learner's: a check runs the learner's kernel.
pub(crate) fn in_its_place(text: &str) -> String {
    text.replace("kernel = \"solution.cu\"", "kernel = \"task.cu\"")
}

fn has(lesson: &str, file: &str) -> bool {
    root().join(lesson).join(file).exists()
}

#[test]
fn every_lesson_has_its_files() {
    let mut listed: Vec<String> =
        names().into_iter().chain(["Cargo.toml.in", "order.txt"].map(str::to_owned)).collect();
    listed.sort();
    assert_eq!(listed, entries(&root()), "order.txt lists the folders");
    for name in &names() {
        let mut known = vec!["README.md", "hints.md", "picture.svg"];
        known.extend(if has(name, "quiz.toml") {
            &["quiz.toml", "answers.toml"][..]
        } else if has(name, "task.rs") {
            &["task.rs", "solution.rs"][..]
        } else {
            &["task.cu", "check.toml", "solution.cu"]
        });
        for file in &known {
            assert!(has(name, file), "{name} lacks {file}");
        }
        let (files, page) = (files(name), text(name, "README.md"));
        if has(name, "task.cu") {
            assert!(text(name, "task.cu").lines().count() <= 60, "{name}: task.cu has more than 60 lines");
        }
        for (file, text) in &files {
            let numbered = |stem: &str| file.starts_with(stem) && file.ends_with(".toml") && has(name, "task.cu");
            // A quiz has no task, and its picture may need a kernel.
            let shows = has(name, "quiz.toml") && page.contains(&format!("run-cu {file} "));
            let is_known =
                known.contains(&&**file) || file == "seeds.toml" || numbered("check-") || numbered("solution") || shows;
            assert!(is_known, "{name}/{file} is not a lesson's file");
            assert!(text.ends_with('\n') && !text.contains('\r') && !text.contains('\t'), "{name}/{file}");
            if let Some(place) = place_of_solution(file) {
                assert!(has(name, &place), "{name}/{file} does not solve {place}");
            }
        }
    }
}

/// The words of a page, outside of code, tables, comments and the frames of folds.
fn words(page: &str) -> usize {
    let (mut words, mut in_code, mut in_comment) = (0, false, false);
    for line in page.lines() {
        if line.starts_with("```") {
            in_code ^= true;
            continue;
        }
        in_comment |= line.starts_with("<!--");
        if !in_code && !in_comment && !line.starts_with(['|', '<']) {
            words += line.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
        }
        in_comment &= !line.contains("-->");
    }
    words
}

#[test]
fn pages_have_their_parts_in_order() {
    let parts =
        ["> **Predict first.**", "## Run", "## Change", "## What Nsight calls it", "## On an H100", "## Elsewhere"];
    for name in &names() {
        let page = text(name, "README.md");
        assert!(page.starts_with("# "), "{name}");
        let count = words(&page);
        assert!((300..=500).contains(&count), "{name} has {count} words");
        let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("## ")).collect();
        assert!(headings.iter().all(|heading| parts.contains(heading)), "{name}: {headings:?}");
        let places: Vec<Option<usize>> = parts.iter().map(|part| page.find(&format!("\n{part}"))).collect();
        let optional = |part: &str| part == "## On an H100";
        let missing: Vec<&&str> = parts
            .iter()
            .zip(&places)
            .filter(|(part, at)| at.is_none() && !optional(part))
            .map(|(part, _)| part)
            .collect();
        assert!(missing.is_empty(), "{name} lacks {missing:?}");
        let order = parts.iter().zip(&places).filter(|(part, _)| !optional(part)).map(|(_, at)| at);
        assert!(order.is_sorted(), "{name}: the parts are in another order");
        // Measured times stand before or behind the metrics.
        let [.., change, _, measured, elsewhere] = places[..] else { panic!("six parts") };
        assert!(measured.is_none() || (change..elsewhere).contains(&measured), "{name}: times of an H100");
        assert!(page.contains(&format!("warpstride learn check {name}\n")), "{name}: its command");
        // A picture is there, with the command that draws it, and its text says what it shows.
        assert_eq!(page.matches("\n<!-- picture: ").count(), 1, "{name} has one picture");
        assert_eq!(page.matches("![").count(), 1, "{name} has one picture");
        for (at, _) in page.match_indices("![") {
            let (alternative, rest) = page[at + 2..].split_once("](").expect("a picture's place");
            assert!(alternative.len() > 60, "{name}: {alternative:?} does not say all that the picture says");
            let file = rest.split(')').next().unwrap_or_default();
            assert!(has(name, file), "{name} lacks {file}");
        }
    }
}

#[test]
fn predictions_stand_above_a_fold() {
    for name in &names() {
        let page = text(name, "README.md");
        let (_, behind) = page.split_once("> **Predict first.**").expect("a prediction");
        // A page does not have the numbers for which its check asks.
        let asks = files(name).iter().any(|(_, text)| text.contains("== ?\"") || text.contains("= \"?\""));
        assert!(behind.contains("\n<details>\n") || asks, "{name} has no fold");
        let mut open = false;
        for line in page.lines() {
            let is_fence = line.starts_with("<details>") || line.starts_with("</details>");
            assert!(!is_fence || open == line.starts_with("</"), "{name}: folds stand one behind the other");
            open ^= is_fence;
        }
        assert!(!open, "{name}: a fold ends");
        let (opened, summaries) = (page.matches("<details>\n").count(), page.matches("<details>\n<summary>").count());
        assert_eq!(opened, summaries, "{name}: each fold says what it has");
    }
}

#[test]
fn every_lesson_has_three_hints() {
    for name in names() {
        let hints = text(&name, "hints.md");
        let starts: Vec<&str> = hints.lines().filter(|line| !line.starts_with("   ") && !line.is_empty()).collect();
        assert_eq!(starts.len(), 3, "{name}: {starts:?}");
        for (number, start) in (1..).zip(starts) {
            assert!(start.starts_with(&format!("{number}. ")), "{name}: {start}");
        }
    }
}

mod checks {
    use std::process::Command;

    use serde_json::Value;

    use super::*;
    use crate::cuda_cpp::{Compiler, compilers};
    use crate::long::short_or_long;

    /// Runs `check` on a folder's files through a compiler.
    fn check(folder: &Path, compiler: &Compiler) -> (Option<i32>, Value) {
        let is_check = |name: &String| name.starts_with("check") && name.ends_with(".toml");
        let files = entries(folder).into_iter().filter(is_check).map(|name| folder.join(name));
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpstride"));
        command.args(["--json", "check"]).args(files);
        match &compiler.nvrtc {
            Some(nvrtc) => command.env("WARPSTRIDE_NVRTC", nvrtc),
            // Clang is taken if there is no other NVRTC.
            None => command.env_remove("WARPSTRIDE_NVRTC").env_remove("VIRTUAL_ENV").env_remove("CONDA_PREFIX"),
        };
        let output = command.output().expect("the binary starts");
        (output.status.code(), serde_json::from_slice(&output.stdout).expect("one document"))
    }

    /// A lesson's files in a folder, with its solution in place of the task if it `is_solved`.
    fn unpacked(name: &str, is_solved: bool) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (file, text) in files(name) {
            fs::write(folder.path().join(&file), &text).expect("writing");
            if let Some(place) = place_of_solution(&file).filter(|_| is_solved) {
                // The task is written later than its solution.
                fs::write(folder.path().join(format!("solved-{place}")), in_its_place(&text)).expect("writing");
            }
        }
        for file in entries(folder.path()) {
            if let Some(place) = file.strip_prefix("solved-") {
                fs::rename(folder.path().join(&file), folder.path().join(place)).expect("renaming");
            }
        }
        folder
    }

    /// Asserts that a page has each expectation that falls short, with what was found; or that it
    /// tells of the numbers for which the checks ask.
    fn assert_is_on_page(name: &str, document: &Value) {
        let page = text(name, "README.md").split_whitespace().collect::<Vec<_>>().join(" ");
        let files = document["files"].as_array().map_or(&[][..], |files| files);
        let mut short = 0;
        for file in files {
            let Some(rows) = file["expectations"].as_array() else {
                assert!(file["error"]["message"].to_string().contains("in place of `?`"), "{name}: {file:#}");
                continue;
            };
            for row in rows.iter().filter(|row| row["held"] == false) {
                let words = |key: &str| row[key].as_str().expect("text").to_owned();
                let shown = format!("{} {}", words("expectation"), words("found"));
                assert!(page.contains(&shown), "the page of {name} lacks `{shown}`");
                short += 1;
            }
        }
        assert!(short > 0 || page.contains("`?`"), "{name}: {document:#}");
    }

    /// Returns the expectations of documents as a page shows them: the verdict, the expectation,
    /// and the value that was found.
    fn shown(documents: &[Value]) -> Vec<String> {
        let files = documents.iter().filter_map(|document| document["files"].as_array()).flatten();
        let rows = files.filter_map(|file| file["expectations"].as_array()).flatten();
        rows.map(|row| {
            let verdict = if row["held"] == true { "held" } else { "FELL SHORT" };
            let words = |key: &str| row[key].as_str().expect("text").to_owned();
            format!("{verdict} {} {} ", words("expectation"), words("found"))
        })
        .collect()
    }

    /// Asserts that the expectations that a page shows first are what the task or the solution
    /// gives. Those behind them may be of a detour.
    fn assert_shows(name: &str, documents: &[Value]) {
        let (shown, page) = (shown(documents), text(name, "README.md"));
        let verdicts = ["held ", "FELL SHORT "];
        let is_row = |line: &&str| verdicts.iter().any(|verdict| line.starts_with(verdict));
        let rows: Vec<&str> = page.lines().skip_while(|line| !is_row(line)).take_while(is_row).collect();
        let has_verdicts = verdicts.iter().any(|verdict| page.contains(verdict));
        assert!(!(has_verdicts && rows.is_empty()), "{name}: no line begins with a verdict, as `check` prints it");
        for row in &rows {
            let line = row.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(shown.iter().any(|row| line.starts_with(row)), "{name}: `{line}` is not of {shown:#?}");
        }
    }

    #[test]
    fn tasks_fail_and_solutions_pass_through_every_compiler() {
        let compilers = compilers();
        let kernels: Vec<String> = names().into_iter().filter(|name| has(name, "task.cu")).collect();
        for (number, name) in kernels.iter().enumerate() {
            let (mut counters, mut documents) = (Vec::new(), Vec::new());
            // In the short form one compiler has the task and another the solution, in turn;
            // `cuda_cpp` compares what compilers count.
            let turned = |by| compilers.iter().cycle().skip(number + by).take(short_or_long(1, compilers.len()));
            for compiler in turned(0) {
                let (code, document) = check(unpacked(name, false).path(), compiler);
                assert_eq!(code, Some(1), "{name} as given, by {compiler:?}: {document:#}");
                assert_is_on_page(name, &document);
                documents.push(document);
            }
            for compiler in turned(1) {
                let (code, document) = check(unpacked(name, true).path(), compiler);
                assert_eq!(code, Some(0), "the solution of {name}, by {compiler:?}: {document:#}");
                let files = document["files"].as_array().expect("a list").clone();
                counters.push(files.iter().map(|file| file["counters"].clone()).collect::<Vec<_>>());
                documents.push(document);
            }
            if !compilers.is_empty() {
                assert_shows(name, &documents);
            }
            assert!(counters.windows(2).all(|pair| pair[0] == pair[1]), "{name}: compilers count differently");
        }
    }
}
