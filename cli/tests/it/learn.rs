//! `learn`: a learner's folder from the first page to a solved lesson, watching, and folders made
//! to do harm.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::cuda_cpp::{compilers, environments};
use super::{Run, command};
use crate::lessons;
use crate::long::PATIENCE;

/// A folder with room for a learner's.
pub(super) struct Learner {
    pub(super) folder: TempDir,
}

impl Learner {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Makes a learner if a compiler is installed.
    pub(super) fn with_a_compiler() -> Option<Self> {
        (!compilers().is_empty()).then(Self::new)
    }

    /// The learner's folder, and what is in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("warpstride-lessons").join(name)
    }

    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).expect("writing a file");
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("readable")
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = command(words);
        command.current_dir(self.folder.path());
        // Any compiler, of those that the tests know.
        if let Some(nvrtc) = compilers().into_iter().find_map(|compiler| compiler.nvrtc) {
            command.env("WARPSTRIDE_NVRTC", nvrtc);
        }
        command
    }

    pub(super) fn run(&self, words: &[&str]) -> Run {
        Run::of(&mut self.command(words))
    }

    /// Begins the folder with a lesson.
    #[track_caller]
    pub(super) fn begin(&self, name: &str) {
        self.run(&["--quiet", "learn", "show", name, "--folder", "warpstride-lessons"]).succeeded();
    }

    fn progress(&self) -> Value {
        serde_json::from_str(&self.read("progress.json")).expect("JSON")
    }

    /// Notes lessons as solved, and no others.
    fn has_solved(&self, names: impl Iterator<Item = String>) {
        let solved: serde_json::Map<_, _> = names.map(|name| (name, json!({ "solved": true }))).collect();
        fs::create_dir_all(self.path("")).expect("a folder");
        self.write("progress.json", json!({ "schema": 2, "lessons": solved }).to_string());
    }

    /// Puts the solution of a lesson in place of the task.
    pub(super) fn solve(&self, name: &str) {
        for (file, text) in lessons::files(name) {
            if let Some(place) = lessons::place_of_solution(&file) {
                self.write(&format!("{name}/{place}"), lessons::in_its_place(&text));
            }
        }
    }
}

#[test]
fn lessons_are_listed_and_nothing_is_written() {
    let learner = Learner::new();
    let names = lessons::names();
    let run = learner.run(&["learn"]).succeeded();
    let full = learner.folder.path().canonicalize().expect("a path").join("warpstride-lessons");
    let begin = format!("0 of {} lessons are solved; your folder is {}, which", names.len(), full.display());
    assert!(run.stdout.starts_with(&begin), "{}", run.stdout);
    assert!(run.stdout.ends_with("\nNext: lesson 0, Thread, block, grid: warpstride learn next\n"), "{}", run.stdout);
    assert_eq!(run.stdout, learner.run(&["learn", "list"]).stdout);
    let document = learner.run(&["--json", "learn"]).succeeded().json();
    let listed = document["lessons"].as_array().expect("a list");
    let listed: Vec<&str> = listed.iter().map(|lesson| lesson["name"].as_str().expect("a name")).collect();
    assert_eq!(listed, names);
    assert_eq!((&document["next"]["number"], &document["lessons"][0]["solved"]), (&json!(0), &json!(false)));
    assert_eq!(fs::read_dir(learner.folder.path()).expect("readable").count(), 0, "nothing is unpacked");
}

#[test]
fn commands_at_once_lose_nothing_of_the_progress() {
    let learner = Learner::new();
    learner.begin("index");
    let hints = |name: &str| {
        let document = learner.run(&["--json", "learn"]).succeeded().json();
        let lessons = document["lessons"].as_array().expect("a list").clone();
        lessons.iter().find(|lesson| lesson["name"] == name).expect("a lesson")["hints"].as_u64().expect("a number")
    };
    // Every lesson has two hints or more.
    let names = lessons::names();
    let asked: Vec<_> = names.iter().flat_map(|name| [name; 2]).collect();
    let commands = asked.iter().map(|name| {
        let mut command = learner.command(&["--quiet", "--json", "learn", "hint", name]);
        command.stdout(Stdio::piped()).spawn().expect("it starts")
    });
    let commands: Vec<_> = commands.collect();
    let shown = commands.into_iter().map(|command| {
        let output = command.wait_with_output().expect("it ends");
        assert!(output.status.success());
        let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
        document["shown"].as_u64().expect("a number")
    });
    let mut shown: Vec<u64> = shown.collect();
    shown.sort_unstable();
    assert_eq!(shown, [vec![1; names.len()], vec![2; names.len()]].concat(), "each command shows a hint of its own");
    names.iter().for_each(|name| assert_eq!(hints(name), 2, "{name}"));
}

#[test]
fn the_next_page_comes_with_its_files() {
    let learner = Learner::new();
    let run = learner.run(&["learn", "next"]).succeeded();
    let page = &lessons::text("index", "README.md");
    assert!(run.stdout.starts_with(page.lines().next().expect("a title")), "{}", run.stdout);
    assert!(run.stdout.contains("(picture: warpstride-lessons/index/picture.svg)\n") && !run.stdout.contains("!["));
    let folded = "(The answer: warpstride learn show index --answer)\n";
    assert!(run.stdout.contains(folded) && !run.stdout.contains("256 equal") && !run.stdout.contains("<details>"));
    assert!(learner.path("index/picture.svg").exists() && !learner.read("index/README.md").contains("<!--"));
    assert!(!run.stdout.contains("<!--") && run.stdout.trim_end().ends_with("warpstride learn check index"));
    let from =
        |folder: &str| Run::of(learner.command(&["learn", "show", "2"]).current_dir(learner.path(folder))).stdout;
    let place = |folder: &str| format!("\nType the page's commands in {folder}, which holds your lessons.\n");
    assert!(run.stdout.contains(&place("warpstride-lessons")) && from("index").contains(&place("..")));
    assert!(!from("").contains("Type the page's commands"), "the commands are typed where they belong");
    assert_eq!(learner.read("index/task.cu"), lessons::text("index", "task.cu"));
    assert!(!learner.path("index/solution.cu").exists() && !learner.path("requests").exists());
    assert_eq!(learner.run(&["learn", "next"]).succeeded().stderr, "", "it was there");
    let document = learner.run(&["--json", "learn", "next"]).succeeded().json();
    assert_eq!(
        (&document["lesson"]["name"], &document["folder"]),
        (&json!("index"), &json!("warpstride-lessons/index"))
    );
}

#[test]
fn an_edited_file_stays_and_a_missing_one_comes_back() {
    let learner = Learner::new();
    learner.run(&["learn", "next"]).succeeded();
    learner.write("index/task.cu", "mine");
    learner.write("index/notes.txt", "mine too");
    fs::remove_file(learner.path("index/check.toml")).expect("removing");
    learner.run(&["learn", "next"]).ended(0, &[], &["check.toml was missing in warpstride-lessons/index"]);
    assert_eq!((&*learner.read("index/task.cu"), &*learner.read("index/notes.txt")), ("mine", "mine too"));
    assert_eq!(learner.read("index/check.toml"), lessons::text("index", "check.toml"));
}

#[test]
fn a_lesson_is_solved_by_its_solution() {
    let Some(learner) = Learner::with_a_compiler() else { return };
    learner.run(&["learn", "next"]).succeeded();
    let run = learner.run(&["--quiet", "learn", "check", "0"]);
    run.fell_short(&[
        "warpstride-lessons/index/check.toml: number, 4 x 1 x 1 blocks",
        "FELL SHORT  argument 0 is iota",
    ]);
    assert!(run.stderr.lines().last().is_some_and(|line| line.ends_with("`warpstride learn hint index` helps")));
    learner.solve("index");
    let end = "\nLesson 0 is solved. solution.cu is beside your files now.\nNext: lesson 1, A warp is one request: ";
    learner.run(&["learn", "check", "0"]).ended(0, &[end], &[]);
    assert_eq!(learner.progress()["lessons"]["index"]["solved"], json!(true));
    assert_eq!(learner.read("index/solution.cu"), lessons::text("index", "solution.cu"));
    let document = learner.run(&["--json", "learn", "check", "0"]).succeeded().json();
    assert_eq!((&document["solved"], &document["files"][0]["held"]), (&json!(true), &json!(true)));
    // In the learner's folder, and in a lesson's folder; also without the progress.
    let full = learner.path("").canonicalize().expect("a path");
    for solved in ["1 of", "0 of"] {
        for folder in ["", "index"] {
            let text = Run::of(learner.command(&["learn"]).current_dir(learner.path(folder))).stdout;
            let place = format!("your folder is {}\n", full.display());
            assert!(text.starts_with(solved) && text.contains(&place), "{text}");
        }
        let [progress, kept] = ["progress.json", "kept"].map(|name| learner.path(name));
        let renamed = fs::rename(&progress, &kept).or_else(|_| fs::rename(&kept, &progress));
        renamed.expect("renaming");
    }
    // A solved lesson stays solved.
    learner.write("index/task.cu", lessons::text("index", "task.cu"));
    learner.run(&["learn", "check", "0"]).ended(1, &[], &["lesson 0 does not pass now; it was solved before"]);
    assert_eq!(learner.progress()["lessons"]["index"]["solved"], json!(true));
}

#[test]
fn a_task_that_does_not_compile_or_end_is_told_so() {
    let Some(learner) = Learner::with_a_compiler() else { return };
    learner.run(&["learn", "next"]).succeeded();
    learner.write("index/task.cu", "__global__ void number(int *out, int n) { out[0] = m; }\n");
    let run = learner.run(&["learn", "check", "0"]).ended(1, &[], &["does not compile", "task.cu"]);
    assert_eq!(run.stdout, "");
    for empty in ["", "// later\n"] {
        learner.write("index/task.cu", empty);
        let said = [
            "index/task.cu has no kernel; write `__global__ void number(int *out, int n) { ... }` there",
            "`warpstride learn check index` brings the lesson's back",
        ];
        learner.run(&["learn", "check", "0"]).failed(&said);
    }
    learner.write("index/kernel.cuh", lessons::text("index", "solution.cu"));
    learner.write("index/task.cu", "#include \"kernel.cuh\"\n");
    learner.run(&["learn", "check", "0"]).succeeded();
    learner
        .write("index/task.cu", "__global__ void number(volatile int *out, int n) { while (out[0] == 0 || n) {} }\n");
    let run = learner.run(&["learn", "check", "0"]).ended(1, &[], &["look for a loop that never ends"]);
    // The lesson's check keeps its limit of work, so advice to raise it would lead nowhere.
    assert!(!(run.stdout + &run.stderr).contains("raise"));
}

#[test]
fn a_check_that_asks_less_than_the_lesson_is_refused() {
    let Some(learner) = Learner::with_a_compiler() else { return };
    learner.begin("requests");
    learner.solve("requests");
    let check = |old: &str, new: &str| {
        let (name, text) = ("requests/check.toml", learner.read("requests/check.toml"));
        assert!(text.contains(old), "{text}");
        learner.write(name, text.replace(old, new));
        let run = learner.run(&["--quiet", "learn", "check", "1"]);
        learner.write(name, text);
        run
    };
    for new in [">=", "== 0 +", "!="] {
        check("requests ==", &format!("requests {new}")).failed(&[
            "`expect` of warpstride-lessons/requests/check.toml is not what lesson 1 asks",
            "`warpstride learn check requests` brings the lesson's back",
        ]);
    }
    let said = "`thirty` in warpstride-lessons/requests/check.toml is not a number; type a number in place of";
    check(" 32", " thirty").failed(&[said]);
    check("expect = [", "expect = [\"0 == 0\", ").failed(&["`expect` of"]);
    check("checks = \"all\"", "").failed(&["`checks` of"]);
    check("grid", "limit = 7\ngrid").failed(&["`limit` of"]);
    check(" == ", "  ==").succeeded();
}

#[test]
fn wrong_predictions_show_the_number_at_the_third_try() {
    let Some(learner) = Learner::with_a_compiler() else { return };
    learner.run(&["learn", "next"]).succeeded();
    let run = learner.run(&["--quiet", "learn", "check", "1"]);
    let all = "`load.requests == ?` in warpstride-lessons/requests/check.toml, `load.requests == ?` in \
               warpstride-lessons/requests/check-2.toml, `load";
    run.failed(&["type your prediction, a number, in place of each `?`: ", all]);
    let tries = [
        ('?', '6', true, "the third different wrong try"),
        ('6', '7', true, "the next wrong try"),
        ('7', '7', true, "the next wrong try"),
        ('7', '8', false, "the tables say why"),
    ];
    for (old, new, hidden, ending) in tries {
        for check in ["check", "check-2", "check-3"] {
            let name = format!("requests/{check}.toml");
            let (old, new) = (format!("requests == {old}"), format!("requests == {new}"));
            learner.write(&name, learner.read(&name).replace(&old, &new));
        }
        let run = learner.run(&["--quiet", "learn", "check", "1"]);
        run.fell_short(&[&format!("FELL SHORT  load.requests == {new}")]);
        assert_eq!(run.stdout.contains("another: a number that you did not predict"), hidden, "{}", run.stdout);
        assert_eq!(run.stdout.contains("  32  "), !hidden, "{}", run.stdout);
        assert!(run.stderr.contains(ending), "{}", run.stderr);
    }
    // `check` itself hides nothing, and the document of a first try nothing tells.
    let check = learner.path("requests/check.toml");
    let run = learner.run(&["check", check.to_str().expect("text")]);
    run.fell_short(&["  32  "]);
    fs::remove_file(learner.path("progress.json")).expect("removing");
    let document = learner.run(&["--json", "learn", "check", "1"]).json();
    // 32 is what each check finds; other numbers of a document may have these digits.
    let has_found =
        |file: &Value| file["expectations"].as_array().expect("rows").iter().any(|row| row["found"] == "32");
    assert!(!document["files"].as_array().expect("files").iter().any(has_found), "{document:#}");
    let found = &document["files"][0]["expectations"][1]["found"];
    assert_eq!(found, &json!("another"));
    // At the width of a terminal, no cell leaves its column.
    learner.write("requests/check.toml", learner.read("requests/check.toml").replace("== 8", "== 30"));
    let run = Run::of(learner.command(&["--quiet", "learn", "check", "1"]).env("COLUMNS", "80"));
    let table = "            expectation            found     wanted\n\
                 held        faults checkers found  0 faults  0 faults\n\
                 FELL SHORT  load.requests == 30    another   == 30\n\
                 another: a number that you did not predict; it is hidden until the third\n\
                 different wrong try\n";
    run.fell_short(&[table]);
    learner.solve("requests");
    let parts = ["Lesson 1 is solved. solution-2.toml, ", "\nNext: lesson 0, "];
    learner.run(&["learn", "check", "1"]).ended(0, &parts, &[]);
}

/// A library that is loaded answers to its bare name, too, which another process would not find.
#[test]
fn several_checks_of_a_process_take_one_compiler() {
    for environment in environments() {
        let learner = Learner::new();
        learner.begin("requests");
        learner.solve("requests");
        let mut command = learner.command(&["--json", "check"]);
        command.args(["check.toml", "check-2.toml", "check-3.toml"]).current_dir(learner.path("requests"));
        command.env_remove("WARPSTRIDE_NVRTC").env_remove("CONDA_PREFIX").env("VIRTUAL_ENV", &environment);
        let document = Run::of(&mut command).succeeded().json();
        for file in document["files"].as_array().expect("a list") {
            assert_eq!(file["compiler"]["name"], json!("nvrtc"));
        }
    }
}

#[test]
fn hints_come_one_by_one() {
    let learner = Learner::new();
    learner.run(&["learn", "next"]).succeeded();
    for number in 1..=3 {
        let run = learner.run(&["learn", "hint", "2"]).succeeded();
        assert!(run.stdout.starts_with(&format!("Hint {number} of 3 for lesson 2:\n\n")), "{}", run.stdout);
        assert_eq!(learner.progress()["lessons"]["sectors"]["hints"], json!(number));
    }
    let run = learner.run(&["learn", "hint", "2"]).succeeded();
    assert!(run.stdout.starts_with("Lesson 2 has no other hints than these:\n\n1. ") && run.stdout.contains("\n3. "));
    let document = learner.run(&["--json", "learn", "hint", "0"]).succeeded().json();
    assert_eq!((&document["shown"], document["hints"].as_array().map(Vec::len)), (&json!(1), Some(1)));
    let page = learner.run(&["learn", "show", "sectors"]).succeeded();
    assert_eq!(page.stdout, learner.run(&["learn", "show", "2"]).succeeded().stdout);
    assert!(page.stdout.starts_with("# Sectors\n") && learner.path("sectors/task.cu").exists());
}

#[test]
fn checks_and_hints_begin_no_folder() {
    let learner = Learner::new();
    for command in ["check", "hint"] {
        learner
            .run(&["learn", command, "pad"])
            .failed(&["no lessons have begun in /", "`warpstride learn next` begins them"]);
        assert!(!learner.path("").exists());
    }
    let run = learner.run(&["learn", "next"]).succeeded();
    assert!(run.stderr.contains("a new folder of lessons begins in /"), "{}", run.stderr);
    let again = learner.run(&["learn", "next"]).succeeded();
    assert!(!again.stderr.contains("a new folder"), "{}", again.stderr);
}

#[test]
fn commands_without_a_number_take_the_first_lesson_that_is_not_solved() {
    let learner = Learner::new();
    learner.has_solved(lessons::names().into_iter().filter(|name| name != "views"));
    let said = "lesson 5, A transpose costs nothing, is the first that is not solved";
    let run = learner.run(&["learn", "check"]);
    assert!(run.code == Some(1) && run.stderr.contains(said) && run.stderr.contains("0 of 6"), "{}", run.stderr);
    let run = learner.run(&["learn", "hint"]).succeeded();
    assert!(run.stderr.contains(said) && run.stdout.starts_with("Hint 1 of 3 for lesson 5:"), "{}", run.stdout);
    let run = learner.run(&["learn", "show"]).succeeded();
    assert!(!run.stderr.contains(said) && run.stdout.starts_with("# A transpose costs nothing\n"), "{}", run.stdout);
    learner.has_solved(lessons::names().into_iter());
    for words in ["show", "check", "hint"] {
        assert_eq!(learner.run(&["learn", words]).succeeded().stdout, "All lessons are solved.\n");
        let document = learner.run(&["--json", "learn", words]).succeeded().json();
        assert_eq!(document.get("lesson"), Some(&Value::Null), "{document}");
    }
}

#[test]
fn commands_without_a_number_begin_nothing_in_a_wrong_folder() {
    let learner = Learner::new();
    for words in ["show", "check", "hint"] {
        let said =
            ["no lessons have begun in /", "warpstride-lessons; `warpstride learn next` begins them", "--folder"];
        learner.run(&["learn", words]).failed(&said);
        let empty = learner.folder.path().to_str().expect("text");
        learner.run(&["learn", words, "--folder", empty]).failed(&["no lessons have begun in "]);
        assert_eq!(fs::read_dir(learner.folder.path()).expect("readable").count(), 0, "nothing is unpacked");
    }
    learner.run(&["learn", "next"]).succeeded();
    fs::remove_file(learner.path("progress.json")).expect("removing");
    assert!(
        learner.run(&["learn", "show"]).succeeded().stdout.starts_with("# Thread, block, grid\n"),
        "the lessons are there"
    );
}

#[test]
fn a_quiz_tells_the_truth_at_the_third_try() {
    let learner = Learner::new();
    learner.run(&["learn", "next"]).succeeded();
    learner.run(&["learn", "check", "5"]).ended(1, &["missing  1. "], &["0 of 6 answers are right"]);
    assert_eq!(learner.progress()["lessons"]["views"]["tries"], json!(0), "nothing was wrong");
    let quiz = learner.read("views/quiz.toml");
    let check = |quiz: &str| {
        learner.write("views/quiz.toml", quiz);
        learner.run(&["learn", "check", "5"])
    };
    let first = |answer: &str| check(&quiz.replacen("\"?\"", answer, 1));
    let run = first("\"one\"");
    assert!(run.stdout.contains("unread   1. ") && !run.stderr.contains("wrong try"), "{}{}", run.stdout, run.stderr);
    assert_eq!(learner.progress()["lessons"]["views"]["tries"], json!(0), "nothing was wrong");
    for (try_number, answer) in (1..).zip(["[6, 1]", "[9, 1]", "7"]) {
        let run = first(answer);
        let said = "WRONG    1. A matrix of 4 x 6 numbers lies in C order.";
        assert!(run.stdout.contains(said) && run.stdout.contains("is not the answer to question 1. In C order "));
        assert_eq!(run.stdout.contains("The answer is [1, 6].\n"), try_number == 3, "{}", run.stdout);
    }
    // Without quotes a word is not TOML, and two numbers are not a list.
    for answer in ["Yes", "1, 6"] {
        let said = ["cannot read line 5 of ", "views/quiz.toml; type each answer between the quotes of `answer = "];
        first(answer).failed(&said);
    }
    assert!(first("\"1, 6\"").stdout.contains("right    1. "));
    let answers = ["[1, 6]", "20", "[60, 1, 15, 3]", "18", "\"no\"", "[0, 1]"];
    let solved = answers.iter().fold(quiz.clone(), |quiz, answer| quiz.replacen("\"?\"", answer, 1));
    check(&solved).ended(0, &["Lesson 5 is solved"], &[]);
    // Questions may stand in another order, and one that is gone is missed.
    let (begin, others) = solved.split_once("[[questions]]").expect("questions");
    let (question, others) = others.split_once("[[questions]]").expect("questions");
    check(&format!("{begin}[[questions]]{others}\n[[questions]]{question}")).succeeded();
    check(&solved.replacen("What are", "What could be", 1)).ended(1, &["put it back"], &[]);
    check("[[questions]]\n").failed(&["cannot read line 1 of ", "views/quiz.toml"]);
}

/// Lines that a program prints, as they come.
fn lines(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let stream = BufReader::new(stream.expect("a pipe"));
    thread::spawn(move || stream.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}

#[track_caller]
fn until(lines: &Receiver<String>, part: &str) {
    loop {
        let line = lines.recv_timeout(PATIENCE);
        if line.unwrap_or_else(|error| panic!("no line with {part:?}: {error}")).contains(part) {
            return;
        }
    }
}

#[cfg(unix)]
#[test]
fn watching_checks_at_each_change_and_ends_by_a_signal() {
    let Some(learner) = Learner::with_a_compiler() else { return };
    let mut command = learner.command(&["--quiet", "learn", "watch"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (printed, said) = (lines(child.stdout.take()), lines(child.stderr.take()));
    until(&printed, "Lesson 0, ");
    until(&printed, "expectations fell short");
    learner.write("index/task.cu", lessons::text("index", "task.cu") + "// once more\n");
    until(&printed, "expectations fell short");
    learner.solve("index");
    until(&printed, "Lesson 0 is solved");
    until(&printed, "Lesson 1, ");
    // The lesson's files come before its first check, which says this.
    until(&said, "type your prediction");
    // Not by Ctrl-C's signal, which the tests may have been started to ignore.
    super::send("TERM", &child);
    let status = child.wait().expect("its end");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
    let mut names: Vec<_> =
        fs::read_dir(learner.path("")).expect("readable").map(|e| e.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["index", "progress.json", "requests"], "nothing half-written is left");
}

#[test]
fn watching_ends_when_all_is_solved() {
    let learner = Learner::new();
    learner.has_solved(lessons::names().into_iter());
    assert_eq!(learner.run(&["learn", "watch"]).succeeded().stdout, "All lessons are solved.\n");
    assert_eq!(learner.run(&["learn", "next"]).succeeded().stdout, "All lessons are solved.\n");
    assert_eq!(learner.run(&["--json", "learn", "watch"]).code, Some(2));
}

#[test]
fn a_broken_progress_is_named_and_kept() {
    let learner = Learner::new();
    learner.run(&["learn", "next"]).succeeded();
    for (text, why) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("[]", "expected an object with a schema and lessons"),
        ("{\"schema\": 2}", "missing field"),
        ("{\"schema\": 1, \"lessons\": {\"00-index\": {}}}", "schema 1, and this version reads 2"),
        ("{\"schema\": 2, \"lessons\": {\"index\": {\"solved\": 1}}}", "expected a boolean"),
        ("{\"schema\": 2, \"lessons\": {\"index\": {\"tries\": -1}}}", "expected u64"),
        ("{\"schema\": 2, \"lessons\": {}, \"more\": 0}", "unknown field"),
    ] {
        learner.write("progress.json", text);
        for words in
            [&["learn"][..], &["learn", "next"], &["learn", "check", "5"], &["learn", "hint", "0"], &["learn", "watch"]]
        {
            learner.run(words).failed(&["progress.json is not the progress of lessons", why, "move it away"]);
        }
        assert_eq!(learner.read("progress.json"), text);
    }
    learner.write("progress.json", vec![b' '; (1 << 20) + 1]);
    learner.run(&["learn"]).failed(&["progress.json", "more than 1 MiB"]);
    // Lessons of another version, and counts that cannot grow.
    let most = json!({ "schema": 2, "lessons": { "later": { "solved": true }, "views": { "tries": u64::MAX } } });
    learner.write("progress.json", most.to_string());
    learner.run(&["learn", "hint", "0"]).succeeded();
    assert_eq!(learner.progress()["lessons"]["later"]["solved"], json!(true));
    let quiz = lessons::text("views", "quiz.toml").replacen("\"?\"", "[9, 9]", 1);
    learner.run(&["learn", "hint", "5"]).succeeded();
    learner.write("views/quiz.toml", quiz);
    assert_eq!(learner.run(&["learn", "check", "5"]).code, Some(1));
    assert_eq!(learner.progress()["lessons"]["views"]["tries"], json!(u64::MAX));
}

#[test]
fn a_folder_that_is_none_is_a_sentence() {
    let learner = Learner::new();
    let file = learner.folder.path().join("file");
    fs::write(&file, "mine").expect("writing");
    let named = file.to_str().expect("text");
    for words in [&["learn"][..], &["learn", "next"], &["learn", "check", "0"], &["learn", "hint", "0"]] {
        learner.run(&[words, &["--folder", named]].concat()).failed(&["is not a folder", "--folder"]);
    }
    assert_eq!(fs::read(&file).expect("readable"), b"mine");
    learner.run(&["learn", "next"]).succeeded();
    fs::remove_dir_all(learner.path("index")).expect("removing");
    learner.write("index", "mine");
    learner.run(&["learn", "check", "0"]).failed(&["index is not a folder"]);
    fs::remove_file(learner.path("index")).expect("removing");
    // Folders in place of files.
    learner.run(&["learn", "next"]).succeeded();
    for (name, number) in [("index/check.toml", "0"), ("views/quiz.toml", "5")] {
        learner.run(&["learn", "hint", number]).succeeded();
        fs::remove_file(learner.path(name)).expect("removing");
        fs::create_dir(learner.path(name)).expect("a folder");
        learner.run(&["learn", "check", number]).failed(&[name, "not a regular file"]);
        // A file that is larger than any check.
        fs::remove_dir(learner.path(name)).expect("removing");
        fs::File::create(learner.path(name)).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
        learner.run(&["learn", "check", number]).failed(&[name, "more than 1 MiB"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_and_links_harm_nothing() {
    use std::os::unix::fs::symlink;

    let pipe = |path: &Path| {
        fs::remove_file(path).expect("removing");
        assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
    };
    let learner = Learner::new();
    learner.run(&["learn", "next"]).succeeded();
    learner.run(&["learn", "hint", "5"]).succeeded();
    for (name, number) in [("index/check.toml", "0"), ("views/quiz.toml", "5"), ("progress.json", "0")] {
        pipe(&learner.path(name));
        learner.run(&["learn", "check", number]).failed(&[name, "not a regular file"]);
    }
    let elsewhere = learner.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    fs::remove_file(learner.path("progress.json")).expect("removing");
    // A lesson's folder that leads out of the learner's.
    symlink(&elsewhere, learner.path("sectors")).expect("a link");
    learner.run(&["learn", "check", "2"]).failed(&["sectors is a link"]);
    assert_eq!(fs::read_dir(&elsewhere).expect("readable").count(), 0);
    // Links that lead nowhere, and in a circle.
    fs::remove_file(learner.path("index/check.toml")).expect("removing");
    symlink(elsewhere.join("none"), learner.path("index/check.toml")).expect("a link");
    learner.run(&["learn", "check", "0"]).failed(&["check.toml", "check the path"]);
    assert_eq!(fs::read_dir(&elsewhere).expect("readable").count(), 0);
    symlink("progress.json", learner.path("progress.json")).expect("a link");
    learner.run(&["learn"]).failed(&["progress.json"]);
    // The folder cannot be written.
    learner.run(&["learn", "next", "--folder", "/proc/lessons"]).failed(&["cannot make the folder /proc/lessons"]);
    // The learner's folder itself may be a link.
    let link = learner.folder.path().join("link");
    symlink(&elsewhere, &link).expect("a link");
    learner.run(&["learn", "next", "--folder", link.to_str().expect("text")]).succeeded();
    assert!(elsewhere.join("index/task.cu").exists() && elsewhere.join("progress.json").exists());
}
