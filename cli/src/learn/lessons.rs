//! The lessons, which lie in `lessons/` and are a part of the program.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::super::{refuse, terminal};
use super::seeds::{self, SEEDS};

/// A lesson. The files of its folder are texts.
#[derive(Debug, Clone)]
pub(super) struct Lesson {
    /// Its place among the lessons, from 0.
    pub(super) number: usize,
    /// The folder's name, such as `sectors`.
    pub(super) name: &'static str,
    /// The name that draws its numbers and shapes; `None` for those of the book.
    pub(super) seed: Option<String>,
    /// The files by their names, in order.
    files: &'static [(&'static str, &'static str)],
}

/// All lessons in the order of `lessons/order.txt`; `build/lessons.rs` lists their files.
static LESSONS: &[Lesson] = include!(concat!(env!("OUT_DIR"), "/lessons.rs"));

/// The file of a lesson's questions.
pub(super) const QUIZ: &str = "quiz.toml";

/// The file of the answers to them, which a learner does not get.
pub(super) const ANSWERS: &str = "answers.toml";

/// The file of the hints, which come one by one.
pub(super) const HINTS: &str = "hints.md";

/// The manifest of a lesson that is a program. One text serves all of them, with a name in it that
/// [`Lesson::text`] makes the lesson's own: cargo takes packages of one name for the same.
const MANIFEST: &str = "Cargo.toml";

/// The file of a lesson's page.
const PAGE: &str = "README.md";

/// The sentence that says which numbers count, where the text beside it has those without a seed.
const DIFFERS: &str =
    "\nYour folder has a seed: where this text and your files have different numbers, the files count.\n";

/// The beginning of a part that a reader unfolds: an answer stands behind the predictions.
const FOLD: &str = "<details>\n<summary>";

/// The beginning of the predictions.
const QUESTION: &str = "> **Predict first.**";

pub(super) fn all() -> &'static [Lesson] {
    LESSONS
}

/// Returns the lesson of a number, of a name or a title, of the beginning of one, or of a part
/// inside one where none begins so.
pub(super) fn find(typed: &str) -> Result<&'static Lesson> {
    if let Some(lesson) = named(typed) {
        return Ok(lesson);
    }
    match *with_part(typed) {
        [] => {}
        [lesson] => return Ok(lesson),
        ref several => {
            let names: Vec<&str> = several.iter().map(|lesson| lesson.name).collect();
            let typed = typed.escape_debug();
            refuse!(InvalidArgument, "several lessons fit `{typed}`; type one of their names: {}", names.join(", "))
        }
    }
    let nearest = nearest(typed).map_or(String::new(), |name| format!("; the nearest name is {name}"));
    refuse!(
        InvalidArgument,
        "there is no lesson `{}`{nearest}; `warpstride learn list` shows the number and the name of each",
        typed.escape_debug()
    )
}

/// Returns whether a text is a lesson's number, or begins a name or a title.
pub(super) fn begins(typed: &str) -> bool {
    let begun = typed.trim().to_lowercase();
    let has = |name: &str| name.to_lowercase().starts_with(&begun);
    named(typed).is_some() || all().iter().any(|lesson| has(lesson.name) || has(lesson.title()))
}

/// The lesson of a number, a name or a title.
fn named(typed: &str) -> Option<&'static Lesson> {
    let is_it = |lesson: &&Lesson| {
        let names = [lesson.name, lesson.title()];
        names.iter().any(|name| name.eq_ignore_ascii_case(typed)) || typed.parse() == Ok(lesson.number)
    };
    all().iter().find(is_it)
}

/// The lessons whose name or title begins with a text, or else those that have it inside. Capitals
/// do not matter.
fn with_part(typed: &str) -> Vec<&'static Lesson> {
    let typed = typed.trim().to_lowercase();
    // All names have this part.
    if typed.is_empty() {
        return Vec::new();
    }
    let having = |has: fn(&str, &str) -> bool| {
        let names = |lesson: &Lesson| [lesson.name.to_owned(), lesson.title().to_lowercase()];
        all().iter().filter(|lesson| names(lesson).iter().any(|name| has(name, &typed))).collect::<Vec<_>>()
    };
    let begun = having(|name, typed| name.starts_with(typed));
    if begun.is_empty() { having(|name, typed| name.contains(typed)) } else { begun }
}

/// The name of the lesson to which a typed one is most like, if a few letters make it that name.
fn nearest(typed: &str) -> Option<&'static str> {
    // A longer word is not a slip of a name.
    if typed.chars().count() > 32 {
        return None;
    }
    let typed = typed.to_ascii_lowercase();
    let letters = |lesson: &&Lesson| strsim::levenshtein(&typed, lesson.name);
    all().iter().min_by_key(letters).filter(|lesson| letters(lesson) <= 2).map(|lesson| lesson.name)
}

impl Lesson {
    pub(super) fn has(&self, name: &str) -> bool {
        self.files.iter().any(|(file, _)| *file == name)
    }

    /// The lesson with the numbers and shapes of a seed.
    pub(super) fn seeded(&self, seed: Option<&str>) -> Self {
        Self { seed: seed.map(str::to_owned), ..self.clone() }
    }

    /// The text of a file, as it is in the lesson's folder; empty where there is no such file.
    fn own(&self, name: &str) -> &'static str {
        self.files.iter().find(|(file, _)| *file == name).map_or("", |(_, text)| text)
    }

    /// The same with what the seed changes, checks and quizzes, and with the lesson's name in its
    /// manifest.
    pub(super) fn text(&self, name: &str) -> Cow<'static, str> {
        match &self.seed {
            _ if name == MANIFEST => {
                self.own(name).replace("name = \"lesson\"", &format!("name = \"lesson-{}\"", self.name)).into()
            }
            Some(seed) if self.has(SEEDS) && name.ends_with(".toml") => {
                seeds::seeded(self.own(name), self.own(SEEDS), self.name, seed).into()
            }
            _ => self.own(name).into(),
        }
    }

    /// The files that a learner begins with; the page is without its comments.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, Cow<'static, str>)> {
        let kept = [HINTS, ANSWERS, SEEDS];
        let given = self.files.iter().filter(move |(name, _)| !is_solution(name) && !kept.contains(name));
        given.map(|&(name, _)| (name, if name == PAGE { self.page().into() } else { self.text(name) }))
    }

    /// Returns whether a file is the manifest as earlier versions gave it, without the lesson's
    /// name.
    pub(super) fn is_old_manifest(&self, path: &Path) -> bool {
        let is_file = || fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
        path.ends_with(MANIFEST) && is_file() && fs::read(path).is_ok_and(|text| text == self.own(MANIFEST).as_bytes())
    }

    /// The files of a solution.
    pub(super) fn solution(&self) -> impl Iterator<Item = (&'static str, Cow<'static, str>)> {
        self.files.iter().filter(|(name, _)| is_solution(name)).map(|&(name, _)| (name, self.text(name)))
    }

    /// The names of the files of `warpstride check`, in the order in which they run.
    pub(super) fn checks(&self) -> impl Iterator<Item = &'static str> {
        let is_check = |name: &&str| name.starts_with("check") && name.ends_with(".toml");
        let mut names: Vec<&str> = self.files.iter().map(|(name, _)| *name).filter(is_check).collect();
        // `check.toml` comes first, and `check-10.toml` behind `check-9.toml`.
        names.sort_by_key(|name| (name.len(), *name));
        names.into_iter()
    }

    /// The title of the page.
    pub(super) fn title(&self) -> &'static str {
        self.own(PAGE).lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// The sentence for pages and hints whose numbers a seed does not change; empty without such.
    pub(super) fn differs(&self) -> &'static str {
        if self.seed.is_some() && self.has(SEEDS) { DIFFERS } else { "" }
    }

    /// The page without its comments.
    pub(super) fn page(&self) -> String {
        let (mut page, mut rest) = (String::new(), self.own(PAGE));
        while let Some((before, comment)) = rest.split_once("<!--") {
            page += before;
            let after = comment.split_once("-->").map_or("", |(_, after)| after);
            // A line of its own goes as a whole.
            rest = if page.ends_with('\n') { after.trim_start_matches('\n') } else { after };
        }
        page += rest;
        // Below the title, where a reader sees it before the numbers.
        let title = page.find('\n').map_or(page.len(), |end| end + 1);
        page.insert_str(title, self.differs());
        page
    }

    /// The page for a terminal, where nothing unfolds: with its answers, below the question once
    /// more where that stands far above, or with a line for each fold.
    pub(super) fn without_folds(&self, answers: bool) -> String {
        let (mut shown, page) = (String::new(), self.page());
        let mut rest = &*page;
        while let Some((before, fold)) = rest.split_once(FOLD) {
            let (summary, folded) = fold.split_once("</summary>").unwrap_or((fold, ""));
            let (answer, behind) = folded.split_once("</details>").unwrap_or((folded, ""));
            shown += before;
            shown += &if answers {
                let question = question(before).map_or(String::new(), |question| format!("{question}\n\n"));
                format!("{question}{summary}:\n\n{}", answer.trim())
            } else {
                format!("({summary}: warpstride learn show {} --answer)", self.name)
            };
            rest = behind;
        }
        shown + rest
    }

    /// The same without a terminal: a picture is the path of its file in the lesson's folder, if
    /// there is one, and what the picture shows.
    pub(super) fn shown(&self, folder: Option<&Path>, answers: bool) -> String {
        let (mut shown, page) = (String::new(), self.without_folds(answers));
        let mut rest = &*page;
        while let Some((before, picture)) = rest.split_once("![") {
            let Some((text, (file, behind))) =
                picture.split_once("](").and_then(|(text, behind)| Some((text, behind.split_once(')')?)))
            else {
                break;
            };
            let place = folder.map_or(String::new(), |folder| format!(": {}", terminal::path(&folder.join(file))));
            shown += &format!("{before}(picture{place})\n{text}");
            rest = behind;
        }
        shown + rest
    }

    /// The hints in order, without their numbers.
    pub(super) fn hints(&self) -> Vec<String> {
        let mut hints: Vec<String> = Vec::new();
        for line in self.own(HINTS).lines() {
            if let Some(hint) = line.strip_prefix(&format!("{}. ", hints.len() + 1)) {
                hints.push(format!("{hint}\n"));
            } else if let Some(hint) = hints.last_mut() {
                // Lines of a hint stand below its first word.
                *hint += line.strip_prefix("   ").unwrap_or(line);
                hint.push('\n');
            }
        }
        hints.into_iter().map(|hint| hint.trim_end().to_owned()).collect()
    }

    /// As documents have it.
    pub(super) fn json(&self) -> Value {
        json!({ "number": self.number, "name": self.name, "title": self.title() })
    }
}

/// The predictions for which a text asks, unless it ends with them.
fn question(text: &str) -> Option<&str> {
    let (question, behind) = text[text.find(QUESTION)?..].split_once("\n\n")?;
    (!behind.trim().is_empty()).then_some(question)
}

/// Says where a link or a picture of a page leads; the lesson's own files are in `folder`. Without
/// one, links to them lead nowhere.
pub(super) fn place(link: &str, folder: Option<&Path>) -> String {
    if let Some(lesson) = link.strip_prefix("../").and_then(|path| path.strip_suffix(&format!("/{PAGE}"))) {
        return format!("warpstride learn show {lesson}");
    }
    if link.contains("://") {
        return link.to_owned();
    }
    folder.map_or(String::new(), |folder| terminal::path(&folder.join(link)))
}

fn is_solution(name: &str) -> bool {
    name.starts_with("solution")
}
