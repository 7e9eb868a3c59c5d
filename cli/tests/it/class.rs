//! `learn` in a class: seeds, results of all lessons, answers after a day, and the page for
//! teachers.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use sha2::Digest;

use super::learn::Learner;
use super::{repository, schemas};
use crate::lessons;
use crate::long::{is_long, short_or_long};

/// The numbers of a text, in order.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|character: char| !character.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

/// Begins a lesson with a seed, in the learner's folder.
fn begin(learner: &Learner, lesson: &str, seed: &str) {
    learner.run(&["--quiet", "learn", "show", lesson, "--seed", seed]).succeeded();
}

#[test]
fn a_seed_draws_other_numbers_and_a_folder_keeps_it() {
    let texts = |seed: &str| {
        let learner = Learner::new();
        let changed = lessons::names().into_iter().filter(|name| {
            begin(&learner, name, seed);
            !learner.path(&format!("{name}/seeds.toml")).exists()
                && lessons::files(name).iter().any(|(file, text)| {
                    file.ends_with(".toml")
                        && learner.path(&format!("{name}/{file}")).exists()
                        && learner.read(&format!("{name}/{file}")) != *text
                })
        });
        let changed: Vec<String> = changed.collect();
        (learner.read("requests/check-2.toml") + &learner.read("views/quiz.toml"), changed)
    };
    let (ada, ben) = (texts("ada"), texts("ben"));
    assert_eq!(ada, texts("ada"));
    assert_ne!(ada.0, ben.0);
    assert!(ada.1.len() > 3, "{:?}", ada.1);
    let learner = Learner::new();
    learner.run(&["learn", "next"]).succeeded();
    let said = ["have no seed, and keep it", "leave --seed out"];
    learner.run(&["learn", "next", "--seed", "ada"]).failed(&said);
    let learner = Learner::new();
    begin(&learner, "index", "ada");
    learner.run(&["learn", "check", "--all", "--seed", "ben"]).failed(&["have the seed \"ada\""]);
    assert_eq!(learner.run(&["--json", "learn"]).succeeded().json()["seed"], json!("ada"));
    let note = "Your folder has a seed: ";
    let page = learner.run(&["learn", "show", "views"]).succeeded().stdout;
    assert_eq!(page.lines().nth(2).map(|line| line.starts_with(note)), Some(true), "{page}");
    assert!(!learner.run(&["learn", "show", "index"]).succeeded().stdout.contains(note), "it changes nothing there");
    assert_eq!(learner.read("progress.json").matches("ada").count(), 1);
}

#[test]
fn answers_to_the_quiz_of_a_seed_follow_from_its_questions() {
    for seed in 0..12 {
        let learner = Learner::new();
        begin(&learner, "views", &seed.to_string());
        let quiz = learner.read("views/quiz.toml");
        let asked: Vec<Vec<u64>> = quiz.lines().filter(|line| line.starts_with("ask")).map(numbers).collect();
        let ([rows, columns], [i, j]) = ([asked[0][0], asked[0][1]], [asked[1][1], asked[1][2]]);
        let (height, width) = (asked[2][0], asked[2][1]);
        let answers = [
            format!("[1, {columns}]"),
            (j * columns + i).to_string(),
            format!("[{}, 1, {}, 3]", 3 * height * width, 3 * width),
            ((rows - 1) * columns).to_string(),
            "no".into(),
            "[0, 1]".into(),
        ];
        let solved = answers.iter().fold(quiz, |quiz, answer| quiz.replacen("\"?\"", &format!("\"{answer}\""), 1));
        learner.write("views/quiz.toml", solved);
        learner.run(&["learn", "check", "views"]).ended(0, &["Lesson 5 is solved"], &[]);
    }
}

/// The groups of a lesson's `seeds.toml`, each with its rows. The first row is the lesson's own.
fn groups(lesson: &str) -> Vec<Vec<Vec<String>>> {
    let seeds: toml::Table = lessons::text(lesson, "seeds.toml").parse().expect("TOML");
    let list = |value: &toml::Value| value.as_array().expect("a list").clone();
    let texts = |row: &toml::Value| list(row).iter().map(|text| text.as_str().expect("text").to_owned()).collect();
    let rows = |group: &toml::Value| [vec![texts(&group["from"])], list(&group["to"]).iter().map(texts).collect()];
    list(&seeds["groups"]).iter().map(|group| rows(group).concat()).collect()
}

/// The lessons that a seed changes.
fn seeded() -> impl Iterator<Item = String> {
    lessons::names().into_iter().filter(|name| lessons::files(name).iter().any(|(file, _)| file == "seeds.toml"))
}

/// The row of each group that a learner's files of a lesson have.
fn drawn(learner: &Learner, lesson: &str) -> Vec<usize> {
    let mut files = lessons::files(lesson);
    files.retain(|(file, _)| (file.starts_with("check") || file == "quiz.toml") && file.ends_with(".toml"));
    let own: String = files.iter().map(|(file, _)| learner.read(&format!("{lesson}/{file}"))).collect();
    let given: String = files.into_iter().map(|(_, text)| text).collect();
    let is_there = |(text, from): (&String, &String)| !given.contains(from) || own.contains(text);
    let row = |rows: &Vec<Vec<String>>| rows.iter().position(|row| row.iter().zip(&rows[0]).all(is_there));
    groups(lesson).iter().map(|rows| row(rows).expect("a row")).collect()
}

/// Solves a lesson as the rows ask that were drawn.
fn solve(learner: &Learner, lesson: &str, drawn: &[usize]) {
    let with_rows = |text: String| {
        groups(lesson).iter().zip(drawn).fold(text, |text, (rows, &row)| {
            rows[0].iter().zip(&rows[row]).fold(text, |text, (from, to)| text.replace(from, to))
        })
    };
    for (file, text) in lessons::files(lesson) {
        if let Some(place) = lessons::place_of_solution(&file) {
            learner.write(&format!("{lesson}/{place}"), with_rows(lessons::in_its_place(&text)));
        } else if file == "answers.toml" {
            let answers = with_rows(text);
            let answers = answers.lines().filter_map(|line| line.strip_prefix("right = "));
            let quiz = learner.read(&format!("{lesson}/quiz.toml"));
            let solved = answers.fold(quiz, |quiz, answer| quiz.replacen("\"?\"", answer, 1));
            learner.write(&format!("{lesson}/quiz.toml"), solved);
        }
    }
}

#[test]
fn solutions_hold_with_every_row_of_every_seed() {
    let Some(_) = Learner::with_a_compiler() else { return };
    for lesson in seeded() {
        let mut left: BTreeSet<_> = groups(&lesson)
            .iter()
            .enumerate()
            .flat_map(|(group, rows)| (0..rows.len()).map(move |row| (group, row)))
            .collect();
        for seed in (0..).map(|seed: u32| seed.to_string()).take_while(|seed| seed.len() < 4) {
            let learner = Learner::new();
            begin(&learner, &lesson, &seed);
            let rows = drawn(&learner, &lesson);
            let before = left.len();
            rows.iter().enumerate().for_each(|(group, &row)| _ = left.remove(&(group, row)));
            if left.len() < before {
                learner.run(&["--quiet", "learn", "check", &lesson]).ended(1, &[], &[]);
                solve(&learner, &lesson, &rows);
                let document = learner.run(&["--json", "learn", "check", &lesson]).ended(0, &[], &[]).json();
                let score = document["score"].as_u64();
                assert_eq!(score.is_some(), lesson == "capstone", "{document}");
                assert!(score.is_none_or(|score| (70..=90).contains(&score)), "{document}");
            }
            // The short form takes the first seed.
            if left.is_empty() || !is_long() {
                break;
            }
        }
        assert!(!is_long() || left.is_empty(), "{lesson}: no seed draws {left:?}");
    }
}

#[test]
fn the_page_for_teachers_counts_the_variants_of_each_lesson() {
    let page = fs::read_to_string(repository().join("docs/teachers.md")).expect("readable");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let wanted = seeded().map(|name| {
        let variants: usize = groups(&name).iter().map(Vec::len).product();
        format!("| `{name}` | {variants} |")
    });
    let wanted: Vec<String> = wanted.collect();
    assert_eq!(rows.len(), wanted.len(), "{rows:?}");
    assert!(rows.iter().zip(&wanted).all(|(row, wanted)| row.starts_with(wanted)), "{rows:?}, not {wanted:?}");
}

#[test]
fn kernels_that_do_nothing_solve_no_bug_hunt() {
    let Some(learner) = Learner::with_a_compiler() else { return };
    begin(&learner, "bug-hunt", "ada");
    // Files with findings are named, and shown one by one.
    let run = learner.run(&["learn", "check", "bug-hunt"]).ended(1, &[], &["`warpstride check` says why"]);
    assert!(run.stdout.matches(" threads: ").count() == 6 && !run.stdout.contains("FELL SHORT"), "{}", run.stdout);
    assert!(run.stdout.ends_with("one: warpstride check warpstride-lessons/bug-hunt/check.toml\n"), "{}", run.stdout);
    // A file without findings has its table.
    let step = "blockIdx.x * 224";
    let given = learner.read("bug-hunt/task.cu");
    assert!(given.contains(step));
    learner.write("bug-hunt/task.cu", given.replace(step, "blockIdx.x * 256"));
    let run =
        learner.run(&["learn", "check", "bug-hunt"]).ended(1, &["argument 0 is"], &["`warpstride check` says why"]);
    assert!(run.stdout.matches(" threads: ").count() == 6 && !run.stdout.contains("FELL SHORT"), "{}", run.stdout);
    let solution = lessons::text("bug-hunt", "solution.cu");
    let begin = solution.find("    __shared__ int part[256];").expect("the body of steps");
    let end = begin + solution[begin..].find("}\n").expect("its end");
    let constant = format!("{}out[blockIdx.x * 256 + threadIdx.x] = 1;\n{}", &solution[..begin], &solution[end..]);
    let stored = "a[i] = fmaxf(a[i], 0);";
    for gutted in [solution.replace(stored, ""), solution.replace(stored, "a[i] = 0;"), constant] {
        assert_ne!(gutted, solution);
        learner.write("bug-hunt/task.cu", gutted);
        learner.run(&["learn", "check", "bug-hunt"]).ended(1, &["FELL SHORT"], &["is not solved"]);
    }
}

#[test]
fn few_bytes_in_flight_solve_no_lesson_about_them() {
    let Some(learner) = Learner::with_a_compiler() else { return };
    learner.begin("in-flight");
    let (task, solution) = (lessons::text("in-flight", "task.cu"), lessons::text("in-flight", "solution.cu"));
    let begin = solution.find("// Transposes").expect("the second kernel");
    let given = task.find("// Transposes").expect("the second kernel");
    let of_twice = |body: &str| {
        let head = "__global__ void twice(float *out, const float *in, int n) {\n\
                    int threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;\n\
                    #pragma unroll 1\n";
        format!("{head}{body}\n}}\n{}", &solution[begin..])
    };
    let pairs = "for (int i = thread; i < n / 2; i += threads) { float2 two = ((const float2 *)in)[i];
                 ((float2 *)out)[i] = make_float2(2 * two.x, 2 * two.y); }";
    let neighbours = "for (int i = 4 * thread; i < n; i += 4 * threads) {
                      float a = in[i], b = in[i + 1], c = in[i + 2], d = in[i + 3];
                      out[i] = 2 * a; out[i + 1] = 2 * b; out[i + 2] = 2 * c; out[i + 3] = 2 * d; }";
    let misaligned =
        "for (int i = thread; i < n / 4 - 1; i += threads) { float4 four = *(const float4 *)(in + 4 * i + 1);
                      *(float4 *)(out + 4 * i + 1) = four; }";
    let latency = "FELL SHORT  model.bound == \"memory\"";
    for (text, file, said) in [
        (of_twice(pairs), "check.toml", latency),
        (of_twice(neighbours), "check.toml", "FELL SHORT  load.sectors <= 1.0 * ideal"),
        (of_twice(misaligned), "check.toml", "misaligned, it must be a multiple of 16"),
        (format!("{}{}", &solution[..begin], &task[given..]), "check-2.toml", latency),
    ] {
        learner.write("in-flight/task.cu", text);
        // The short form leaves out the file of the kernel that stays as it is.
        let path = format!("warpstride-lessons/in-flight/{file}");
        let words = short_or_long(["check", &path, "--quiet"], ["learn", "check", "in-flight"]);
        learner.run(&words).ended(1, &[said], &[]);
    }
}

#[test]
fn the_capstone_has_a_badge_of_one_file() {
    let Some(learner) = Learner::with_a_compiler() else { return };
    learner.begin("capstone");
    let solution = lessons::text("capstone", "solution.cu");
    learner.write("capstone/task.cu", format!("# include \"other.cuh\"\n{solution}"));
    learner.run(&["learn", "check", "capstone"]).failed(&["task.cu includes another file"]);
    learner.write("capstone/task.cu", &solution);
    fs::create_dir(learner.path("capstone/badge.svg")).expect("a folder");
    // One lesson that cannot be noted keeps no others from their check.
    let document = learner.run(&["--json", "learn", "check", "--all"]).json();
    let row = document["lessons"].as_array().expect("rows").last().expect("a lesson").clone();
    assert!(row["error"]["message"].to_string().contains("badge.svg") && row["solved"] == false, "{row}");
    let listed = learner.run(&["--json", "learn"]).json();
    assert_eq!(listed["lessons"].as_array().expect("rows").last().expect("a lesson")["solved"], json!(false));
    fs::remove_dir(learner.path("capstone/badge.svg")).expect("removing");
    let says = "The score is 85 of 100, as badge.svg";
    learner.run(&["learn", "check", "capstone"]).ended(0, &["is solved", says], &[]);
    let badge: Value = serde_json::from_str(&learner.read("capstone/badge.json")).expect("JSON");
    let digest: String = sha2::Sha256::digest(&solution).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((&badge["kernel_sha256"], &badge["score"]), (&json!(digest), &json!(85)));
    assert_eq!((&badge["sectors"], &badge["speed"]), (&json!(80), &json!(90)));
    assert_eq!((&badge["seed"], &badge["lesson"]), (&Value::Null, &json!("capstone")));
    let picture = learner.read("capstone/badge.svg");
    assert!(picture.contains("85 of 100") && roxmltree::Document::parse(&picture).is_ok());
    learner.write("capstone/badge.json", "{\"score\": 99}");
    learner.run(&["learn", "check", "capstone"]).ended(0, &["keeps the better one, 99"], &[]);
    assert_eq!(learner.read("capstone/badge.json"), "{\"score\": 99}");
    let document = learner.run(&["--json", "learn", "check", "--all"]).json();
    let row = document["lessons"].as_array().expect("rows").last().expect("a lesson").clone();
    assert_eq!((&row["score"], &row["solved"]), (&json!(85), &json!(true)));
}

#[cfg(unix)]
#[test]
fn links_in_a_folder_lead_no_results_out_of_it() {
    use std::os::unix::fs::symlink;

    let Some(learner) = Learner::with_a_compiler() else { return };
    learner.begin("capstone");
    learner.write("capstone/task.cu", lessons::text("capstone", "solution.cu"));
    let precious = learner.folder.path().join("precious");
    fs::write(&precious, "mine").expect("writing");
    let harmed = |name: &str| {
        symlink(&precious, learner.path(name)).expect("a link");
        let junit = learner.path("results.xml");
        let all = learner.run(&["learn", "check", "--all", "--junit", junit.to_str().expect("text")]);
        let said = format!("{name} is a link");
        assert!(all.stdout.contains(&said) || all.stderr.contains(&said), "{}{}", all.stdout, all.stderr);
        fs::remove_file(learner.path(name)).expect("removing");
        fs::read_to_string(&precious).expect("readable") != "mine"
    };
    assert!(!["results.xml", "capstone/badge.svg", "capstone/badge.json"].into_iter().any(harmed));
    fs::rename(learner.path("progress.json"), &precious).expect("renaming");
    symlink(&precious, learner.path("progress.json")).expect("a link");
    learner.run(&["--quiet", "learn", "hint", "index"]).failed(&["progress.json is a link"]);
}

#[test]
fn a_seed_begins_a_folder_or_is_compared() {
    let learner = Learner::new();
    learner.run(&["learn", "show", "indices", "--seed", "ada"]).failed(&["there is no lesson `indices`"]);
    for words in [&["check"][..], &["check", "index"], &["check", "--all"]] {
        learner.run(&[&["learn"], words, &["--seed", "ada"]].concat()).failed(&["no lessons have begun in "]);
    }
    learner.run(&["learn", "check", "--all", "--folder", "typo"]).failed(&["no lessons have begun in "]);
    for words in [&["list"][..], &["hint"], &[]] {
        assert_eq!(learner.run(&[&["learn", "--seed", "ada"], words].concat()).code, Some(2));
    }
    assert_eq!(fs::read_dir(learner.folder.path()).expect("readable").count(), 0, "nothing begins");
    learner.run(&["learn", "next", "--seed", "ada"]).succeeded();
    let note = "Your folder has a seed: ";
    let hint = learner.run(&["--json", "learn", "hint", "views"]).succeeded().json();
    assert!(hint["note"].as_str().expect("a note").contains(note));
    assert!(learner.run(&["learn", "hint", "views"]).succeeded().stdout.contains(note));
    assert_eq!(learner.run(&["--json", "learn", "hint", "index"]).succeeded().json()["note"], Value::Null);
    let page = learner.run(&["--json", "learn", "show", "views"]).succeeded().json();
    assert!(page["page"].as_str().expect("a page").contains(note) && learner.read("views/README.md").contains(note));
}

#[test]
fn answers_wait_for_their_day() {
    let Some(learner) = Learner::with_a_compiler() else { return };
    learner.begin("views");
    let quiz = learner.read("views/quiz.toml");
    // Around the learner's folder, and in it.
    let [around, within] = ["../class.toml", "class.toml"];
    for (place, day, told) in
        [(around, "2999-01-31", false), (within, "2999-01-31", false), (within, "2026-01-31", true)]
    {
        learner.write(place, format!("answers = {day}\n"));
        for answer in ["[6, 1]", "[9, 1]", "7", "8"] {
            learner.write("views/quiz.toml", quiz.replacen("\"?\"", &format!("\"{answer}\""), 1));
            let run = learner.run(&["learn", "check", "views"]);
            assert!(told || !(run.stdout.contains("The answer is") || run.stderr.contains("shows what is right")));
        }
        let run = learner.run(&["learn", "check", "views"]);
        assert_eq!(run.stdout.contains("The answer is"), told, "{place} {day}: {}", run.stdout);
        learner.run(&["--quiet", "learn", "show", "index"]).succeeded();
        learner.solve("index");
        let run = learner.run(&["learn", "check", "index"]).succeeded();
        assert_eq!(run.stdout.contains("A check from 2999-01-31 on brings the solution."), !told, "{}", run.stdout);
        assert_eq!(learner.path("index/solution.cu").exists(), told);
    }
    for (wrong, why) in [
        ("", "missing field `answers`"),
        ("answers = 7", "invalid type: integer"),
        ("answers = 2027-02-31", "between 01 and 28"),
        ("answers = 2027-01-31\nmore = 1", "unknown field `more`"),
        ("answers = 2027-01-31T08:00:00Z", "has a time"),
        ("answers = 08:00:00", "has a time"),
    ] {
        learner.write(within, wrong);
        learner.run(&["learn", "check", "index"]).failed(&["class.toml", why, "answers = 2027-01-31"]);
        learner.run(&["learn", "list"]).succeeded();
    }
}

#[test]
fn all_lessons_are_checked_at_once() {
    let learner = Learner::new();
    begin(&learner, "views", "ada");
    let run = learner.run(&["learn", "check", "--all", "--junit", "results.xml"]);
    let all = lessons::names().len();
    run.ended(1, &["  5  open       views", "not begun  index"], &[&format!("0 of {all} lessons are solved in ")]);
    let results = learner.folder.path().join("results.xml");
    let text = fs::read_to_string(&results).expect("readable");
    schemas::followed_by([results]);
    let document = roxmltree::Document::parse(&text).expect("XML");
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    assert_eq!(cases.clone().count(), all);
    for case in cases {
        let kind = case.first_element_child().expect("a verdict").tag_name().name().to_owned();
        assert_eq!(kind, if case.attribute("name") == Some("views") { "failure" } else { "skipped" });
    }
    let document = learner.run(&["--json", "learn", "check", "--all"]).json();
    assert_eq!((&document["seed"], &document["solved"]), (&json!("ada"), &json!(0)));
    for words in [&["--all", "views"][..], &["--junit", "x"], &["views", "--junit", "x"]] {
        assert_eq!(learner.run(&[&["learn", "check"], words].concat()).code, Some(2));
    }
}

#[cfg(unix)]
#[test]
fn the_commands_of_the_page_for_teachers_run() {
    let page = fs::read_to_string(repository().join("docs/teachers.md")).expect("readable");
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    // Watching ends when a person ends it.
    let script: String = blocks
        .flat_map(str::lines)
        .filter(|line| !line.contains("learn watch"))
        .map(|line| format!("{line}\n"))
        .collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_warpstride")).parent().expect("a folder");
    // A folder with another name than that of its seed is refused, and the loop goes on.
    let mut other = Command::new(env!("CARGO_BIN_EXE_warpstride"));
    other.args(["--quiet", "learn", "next", "--folder", "class/aaron", "--seed", "ada"]).current_dir(&folder);
    assert!(other.output().expect("it starts").status.success());
    fs::create_dir(folder.path().join("results")).expect("a folder");
    fs::write(folder.path().join("results/aaron.xml"), "old").expect("writing");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(&folder).env("PATH", format!("{}:/usr/bin:/bin", program.display()));
    let output = command.output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("aaron has no results\n"), "{said}");
    assert!(said.contains("have the seed \"ada\"") && !said.contains("ada has no results"), "{said}");
    let read = |name: &str| fs::read_to_string(folder.path().join("results").join(name)).expect("readable");
    let results: Value = serde_json::from_str(&read("ada.json")).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!((&results["seed"], &results["lessons"][0]["begun"]), (&json!("ada"), &json!(true)));
    assert!(read("ada.xml").contains("<testcase name=\"index\""), "{}", read("ada.xml"));
}
