//! `warpstride learn`: lessons that check themselves, in a folder of the learner's.

mod attempt;
mod badge;
mod class;
mod folder;
mod lessons;
mod predictions;
mod program;
mod progress;
mod quiz;
mod results;
mod seeds;
mod watch;

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use warpstride::device::Backend;

use super::args::{self, LearnCommand};
use super::output::Output;
use super::{refuse, terminal};
use attempt::{Attempt, Source};
use folder::Folder;
use lessons::Lesson;
use progress::Progress;

pub(super) fn run(args: &args::Learn, backend: Backend, output: &Output) -> Result<()> {
    let folder = Folder::at(args.folder.as_deref());
    let alone = args.lesson.clone().map(|lesson| LearnCommand::Show { lesson: Some(lesson), answer: args.answer });
    let command = args.command.as_ref().or(alone.as_ref()).unwrap_or(&LearnCommand::List);
    let named = match command {
        LearnCommand::List => return list(&folder, output),
        LearnCommand::Next | LearnCommand::Watch => None,
        LearnCommand::Show { lesson, .. } | LearnCommand::Check { lesson, .. } | LearnCommand::Hint { lesson } => {
            lesson.as_deref()
        }
    };
    let named = named.map(|typed| found(typed, alone.is_some())).transpose()?;
    let from = Source { backend, output, withheld: class::withheld(&folder)? };
    match (&args.seed, command) {
        (Some(seed), LearnCommand::Check { .. }) => Progress::ensure_seed(&folder, seed)?,
        (Some(seed), _) => Progress::begin(&folder, seed)?,
        // In a wrong folder, the first lesson would come anew, and look like the learner's own.
        (None, LearnCommand::Next | LearnCommand::Watch) => (),
        (None, _) if named.is_none() => folder.ensure_begun()?,
        // A lesson that was solved elsewhere would fall short. A folder that was named is meant.
        (None, LearnCommand::Check { .. } | LearnCommand::Hint { .. })
            if args.folder.is_none() && !folder.is_there()? =>
        {
            folder.ensure_begun()?;
        }
        (None, _) => (),
    }
    match command {
        LearnCommand::Check { all: true, junit, .. } => return results::run(&folder, junit.as_deref(), &from),
        LearnCommand::Watch => return watch::run(&folder, &from),
        _ => (),
    }
    let progress = Progress::read(folder.progress())?;
    let lesson = match (named, progress.next()) {
        (Some(named), _) => named,
        (None, Some(lesson)) => lesson,
        (None, None) => return output.result("All lessons are solved.\n", json!({ "lesson": Value::Null })),
    };
    let lesson = &lesson.seeded(progress.seed());
    // The page says which lesson it is.
    if named.is_none() && matches!(command, LearnCommand::Check { .. } | LearnCommand::Hint { .. }) {
        output.note(format!("lesson {}, {}, is the first that is not solved", lesson.number, lesson.title()));
    }
    match *command {
        LearnCommand::Check { .. } => check(lesson, &folder, &progress, &from)?,
        LearnCommand::Hint { .. } => hint(lesson, &folder, &progress, output),
        // A page that is read begins nothing. A folder that was named is meant.
        LearnCommand::Show { answer, .. } if args.folder.is_none() && !folder.is_begun()? => {
            read(lesson, &folder, answer, output)
        }
        LearnCommand::Show { answer, .. } => show(lesson, &folder, &progress, answer, output),
        _ => show(lesson, &folder, &progress, false, output),
    }
}

/// The lesson that was typed, perhaps in place of a command.
fn found(typed: &str, may_be_command: bool) -> Result<&'static Lesson> {
    // A shell completes the name of a folder with a slash.
    let typed = typed.trim_end_matches('/');
    let lesson = lessons::find(typed);
    let may_be_command = may_be_command && !(lesson.is_ok() && lessons::begins(typed));
    let command = if may_be_command { LearnCommand::nearest(typed) } else { None };
    if let Some(command) = command {
        let typed = typed.escape_debug();
        refuse!(
            InvalidArgument,
            "learn has no command `{typed}`, and no lesson of that name; the nearest command is {command}"
        );
    }
    lesson
}

fn list(folder: &Folder, output: &Output) -> Result<()> {
    let progress = Progress::read(folder.progress())?;
    let (solved, all) = (progress.solved(), lessons::all().len());
    let are = if solved == 1 { "is" } else { "are" };
    let mut text = format!("{solved} of {all} lessons {are} solved; your folder is {}", terminal::path(&folder.full()));
    text += if folder.is_there()? { "\n\n" } else { ", which `warpstride learn next` makes\n\n" };
    let mut rows = Vec::new();
    for lesson in lessons::all() {
        let state = progress.of(lesson);
        let mark = if state.solved { "solved" } else { "" };
        let _ = writeln!(text, "{:>3}  {mark:6}  {:15}  {}", lesson.number, lesson.name, lesson.title());
        let mut row = lesson.json();
        row["solved"] = state.solved.into();
        row["hints"] = state.hints.into();
        rows.push(row);
    }
    if let Some(next) = progress.next() {
        let _ = write!(text, "\nNext: lesson {}, {}: warpstride learn next\n", next.number, next.title());
    }
    let next = progress.next().map(Lesson::json);
    output
        .result(&text, json!({ "folder": folder.to_string(), "seed": progress.seed(), "lessons": rows, "next": next }))
}

/// Shows a lesson's page, with its answers if they are asked for, and unpacks what it is about.
fn show(lesson: &Lesson, folder: &Folder, progress: &Progress, answers: bool, output: &Output) -> Result<()> {
    let is_new = !folder.is_there()?;
    begin(lesson, folder, progress, output)?;
    if is_new {
        output.note(format!("a new folder of lessons begins in {folder}"));
    }
    let (path, number, markdown) = (folder.lesson(lesson), lesson.number, lesson.page());
    let elsewhere = folder.elsewhere().map_or(String::new(), |folder| {
        format!("Type the page's commands in {}, which holds your lessons.\n", terminal::path(folder))
    });
    let text = format!(
        "{}\n\n{elsewhere}The files of lesson {number} are in {}. Check them with: warpstride learn check {}\n",
        page(lesson, Some(&path), answers).trim_end(),
        terminal::path(&path),
        lesson.name
    );
    output.page(&text, json!({ "lesson": lesson.json(), "folder": path.display().to_string(), "page": markdown }))
}

/// Shows a lesson's page to a reader who has no folder of lessons, and makes none.
fn read(lesson: &Lesson, folder: &Folder, answers: bool, output: &Output) -> Result<()> {
    let text = format!(
        "{}\n\nNo lessons have begun in {}: warpstride learn next begins them, and warpstride learn check {} then brings the \
         files of lesson {}.\n",
        page(lesson, None, answers).trim_end(),
        terminal::path(&folder.full()),
        lesson.name,
        lesson.number
    );
    output.page(&text, json!({ "lesson": lesson.json(), "folder": Value::Null, "page": lesson.page() }))
}

/// A lesson's page for a person: as a terminal shows it, or as Markdown where no terminal does. It
/// names the lesson's files where they are in a folder.
fn page(lesson: &Lesson, folder: Option<&Path>, answers: bool) -> String {
    if terminal::page_width().is_none() {
        return lesson.shown(folder, answers);
    }
    terminal::rendered(&lesson.without_folds(answers), &|place| lessons::place(place, folder))
}

/// Markdown that leads nowhere, in the same way.
fn words(markdown: &str) -> String {
    if terminal::page_width().is_none() { markdown.to_owned() } else { terminal::rendered(markdown, &str::to_owned) }
}

/// Makes a lesson's folder, and the file that tells the learner's folder from others.
fn begin(lesson: &Lesson, folder: &Folder, progress: &Progress, output: &Output) -> Result<()> {
    folder.unpack(lesson, output)?;
    if progress.is_new() {
        Progress::change(folder.progress(), |_| ())?;
    }
    Ok(())
}

/// A lesson's check: its tables, and the sentence at its end, an error where the learner's files
/// are wrong.
struct Checked {
    text: String,
    document: Value,
    sentence: Result<String>,
}

/// Checks a lesson, and prints what came of it: `Ok(Err(_))` where the learner's files are wrong.
fn check(lesson: &Lesson, folder: &Folder, progress: &Progress, from: &Source) -> Result<Result<()>> {
    checked(lesson, folder, progress, from)?.print(from.output)
}

impl Checked {
    /// Prints all but an error.
    fn print(self, output: &Output) -> Result<Result<()>> {
        let Self { mut text, document, sentence } = self;
        if let Ok(sentence) = &sentence {
            text = format!("{text}\n{sentence}");
        }
        // If nothing ran, the error says all.
        if !text.is_empty() {
            output.result(&text, document)?;
        }
        Ok(sentence.map(|_| ()))
    }
}

/// Checks a lesson, and notes what came of it.
fn checked(lesson: &Lesson, folder: &Folder, progress: &Progress, from: &Source) -> Result<Checked> {
    let mut attempt = match Attempt::of(lesson, folder, &progress.of(lesson), from) {
        Ok(attempt) => attempt,
        Err(error) => return Ok(Checked { text: String::new(), document: Value::Null, sentence: Err(error) }),
    };
    let progress = match attempt.note(lesson, folder, from) {
        Ok(progress) => progress,
        // The findings are shown even if they cannot be noted.
        Err(error) => {
            from.output.messages(&attempt.text);
            return Err(error);
        }
    };
    let (text, document) = (attempt.text.clone(), attempt.json(lesson, &progress));
    Ok(Checked { text, document, sentence: attempt.sentence(lesson, &progress, from) })
}

fn hint(lesson: &Lesson, folder: &Folder, progress: &Progress, output: &Output) -> Result<()> {
    let (text, document) = next_hint(lesson, folder, progress, output)?;
    output.page(&text, document)
}

/// The next hint, as a text and as a document; it is noted as shown.
fn next_hint(lesson: &Lesson, folder: &Folder, progress: &Progress, output: &Output) -> Result<(String, Value)> {
    let (hints, number) = (lesson.hints(), lesson.number);
    let mut shown = progress.of(lesson).hints as usize;
    if shown < hints.len() {
        begin(lesson, folder, progress, output)?;
        Progress::change(folder.progress(), |progress| {
            // Another command may have shown one meanwhile.
            shown = progress.of(lesson).hints as usize;
            progress.of_mut(lesson).hints += u64::from(shown < hints.len());
        })?;
    }
    let differs = lesson.differs();
    let note = (!differs.is_empty()).then_some(differs);
    let Some(hint) = hints.get(shown) else {
        let all: Vec<String> = (1..).zip(&hints).map(|(at, hint)| format!("{at}. {hint}\n")).collect();
        let text = format!("Lesson {number} has no other hints than these:\n\n{}{differs}", words(&all.join("\n")));
        return Ok((text, json!({ "lesson": lesson.json(), "hints": hints, "shown": shown, "note": note })));
    };
    let text =
        format!("Hint {} of {} for lesson {number}:\n\n{}\n", shown + 1, hints.len(), words(hint).trim_end()) + differs;
    let hints = &hints[..=shown];
    Ok((text, json!({ "lesson": lesson.json(), "hints": hints, "shown": shown + 1, "note": note })))
}
