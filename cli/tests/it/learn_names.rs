//! `learn`: how lessons are named, the answers of their pages, and a check file without a `?`.

use std::fs;

use serde_json::json;

use super::Run;
use super::learn::Learner;

#[test]
fn a_lesson_is_found_by_a_part_of_its_name_or_title() {
    let learner = Learner::new();
    for none in ["99", "02-sectors", " ", "sectors of"] {
        learner.run(&["learn", "hint", none]).failed(&[&format!("there is no lesson `{none}`;"), "learn list"]);
    }
    for (part, title) in [
        ("sector", "Sectors"),
        ("SEC", "Sectors"),
        ("capston", "Capstone"),
        ("in flight", "Bytes in flight"),
        ("sectors/", "Sectors"),
        ("banks", "Banks"),
    ] {
        let run = learner.run(&["learn", "show", part]).succeeded();
        assert!(run.stdout.starts_with(&format!("# {title}\n")), "{}", run.stdout);
    }
    learner
        .run(&["learn", "show", "wi"])
        .failed(&["several lessons fit `wi`; type one of their names: wide, wide-banks"]);
    for (typed, name) in [("strydes", "strides"), ("kapstone", "capstone"), ("Sektors", "sectors")] {
        learner.run(&["learn", "show", typed]).failed(&[&format!("`{typed}`; the nearest name is {name};")]);
    }
    for title in ["Sectors", "how far is it?", "BYTES in flight"] {
        learner.run(&["learn", "show", title]).succeeded();
    }
}

#[test]
fn a_lesson_without_a_command_is_shown() {
    let learner = Learner::new();
    let page = learner.run(&["learn", "Pad"]).succeeded().stdout;
    assert!(page.starts_with("# Pad\n") && page == learner.run(&["learn", "show", "pad"]).succeeded().stdout);
    assert!(
        page.ends_with("begins them, and warpstride learn check pad then brings the files of lesson 9.\n"),
        "{page}"
    );
    assert_eq!(fs::read_dir(learner.folder.path()).expect("readable").count(), 0, "a page that is read begins nothing");
    let document = learner.run(&["--json", "learn", "9"]).succeeded().json();
    assert_eq!(document["lesson"]["name"], json!("pad"));
    let answer = learner.run(&["learn", "pad", "--answer"]).succeeded().stdout;
    assert!(answer != page && answer == learner.run(&["learn", "show", "pad", "--answer"]).succeeded().stdout);
    learner.run(&["learn", "--answer"]).ended(2, &[], &["learn show --answer"]);
    learner.run(&["learn", "watch", "--lesson", "9"]).ended(2, &[], &["learn check LESSON checks another"]);
    learner.run(&["learn", "chek"]).failed(&["learn has no command `chek`", "the nearest command is check"]);
    learner.run(&["learn", "Sektors"]).failed(&["there is no lesson `Sektors`; the nearest name is sectors;"]);
    learner.run(&["learn", "Pad", "check"]).ended(2, &[], &["learn check Pad"]);
    learner.run(&["learn", "next"]).succeeded();
    learner.run(&["learn", "check", "Pad"]).ended(1, &[], &["lesson 9 is not solved"]);
}

#[test]
fn a_page_is_shown_with_its_answers() {
    let learner = Learner::new();
    let page = learner.run(&["learn", "show", "sectors", "--answer"]).succeeded().stdout;
    assert!(page.contains("The answer:\n\nAs given, the values are right"), "{page}");
    let question = "> **Predict first.** How many sectors does the first warp's load touch";
    let (_, above) = page.split_once("learn check sectors").expect("the commands stand above the answer");
    let (above, _) = above.split_once("The answer:").expect("an answer");
    assert!(page.matches(question).count() == 2 && above.contains(question), "the question comes once more: {page}");
    assert!(!page.contains("<details>") && !page.contains("--answer)"), "{page}");
    let page = learner.run(&["learn", "show", "sectors"]).succeeded().stdout;
    assert!(
        page.contains("\n(The answer: warpstride learn show sectors --answer)\n")
            && !page.contains("As given, the values")
    );
}

#[test]
fn a_check_file_without_predictions_is_not_to_be_changed() {
    let learner = Learner::new();
    learner.begin("index");
    learner.write("index/check.toml", learner.read("index/check.toml") + "limit = 7\n");
    learner
        .run(&["learn", "check", "index"])
        .failed(&["this file is not to be changed in this lesson; change task.cu"]);
}

/// The files of a lesson are in a folder of lessons alone.
#[test]
fn a_page_without_a_folder_names_no_file_of_the_lesson() {
    let learner = Learner::new();
    let said = "No lessons have begun in ";
    let page = |columns: Option<&str>| {
        let mut command = learner.command(&["learn", "show", "index"]);
        columns.map(|columns| command.env("COLUMNS", columns));
        Run::of(&mut command).succeeded().stdout
    };
    for text in [page(None), page(Some("100"))] {
        assert!(text.contains("(picture)\n") && !text.contains("picture.svg"), "{text}");
        // The sentence has several lines in a terminal.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(said) && text.contains("learn next begins them"), "{text}");
    }
    // A folder may be there, and have no lessons.
    fs::create_dir(learner.folder.path().join("warpstride-lessons")).expect("a folder");
    assert!(page(None).contains(said));
    learner.begin("index");
    assert!(page(None).contains("(picture: warpstride-lessons/index/picture.svg)\n"));
}
