//! The English of comments, help, messages and pages as a test: each rule has a name and a cure.

use std::fs;
use std::path::{Path, PathBuf};

/// A rule of the prose: its name, the cure that a failure prints, and the index of the first word
/// that breaks it.
struct Rule {
    name: &'static str,
    cure: &'static str,
    broken_by: fn(&Piece) -> Option<usize>,
}

const RULES: [Rule; 4] = [
    Rule {
        name: "begins with a headless clause",
        cure: "begin with the subject or with a verb: `Returns …`, `The size of …`",
        broken_by: headless,
    },
    Rule { name: "is no X", cure: "write `is not a …`, `has no …` or `there is no …`", broken_by: is_no },
    Rule { name: "nobody, somebody, whoever", cure: "name the person, or write a passive sentence", broken_by: nobody },
    Rule { name: "who for a thing", cure: "write `that` or `which`, or name the person before `who`", broken_by: who },
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Lines without a gap.
    Comment,
    Literal,
    /// A paragraph of a page, or a line of a script.
    Page,
}

/// A text that stands alone.
struct Piece {
    kind: Kind,
    /// The words without code in backticks, each with its line.
    words: Vec<(usize, String)>,
}

impl Piece {
    fn new(kind: Kind) -> Self {
        Self { kind, words: Vec::new() }
    }

    fn add(&mut self, line: usize, text: &str) {
        let prose = text.split('`').enumerate().map(|(part, text)| if part % 2 == 0 { text } else { "`code`" });
        self.words.extend(prose.collect::<String>().split_whitespace().map(|word| (line, word.to_owned())));
    }

    /// The word in small letters, without the punctuation around it.
    fn word(&self, at: usize) -> String {
        let word = self.words.get(at).map_or("", |(_, word)| word);
        word.trim_matches(|c: char| !c.is_alphanumeric() && c != '`').to_lowercase()
    }

    /// The number of a word that is in `list`, after word `from`.
    fn find(&self, list: &[&str], from: usize) -> Option<usize> {
        (from..self.words.len()).find(|&at| list.contains(&self.word(at).as_str()))
    }

    /// The words from `at` to the end of its sentence.
    fn sentence(&self, at: usize) -> &[(usize, String)] {
        let ends = |(_, word): &(usize, String)| word.trim_end_matches(['"', ')']).ends_with(['.', '?', ':']);
        let length = self.words[at..].iter().position(ends).map_or(self.words.len() - at, |end| end + 1);
        &self.words[at..at + length]
    }

    /// Returns whether the sentence that word `at` is in ends in a question mark.
    fn asks(&self, at: usize) -> bool {
        self.sentence(at).last().is_some_and(|(_, word)| word.contains('?'))
    }
}

fn headless(piece: &Piece) -> Option<usize> {
    const OPENERS: [&str; 7] = ["What", "Where", "Whether", "Who", "Whose", "Which", "Of"];
    /// After the first sentence these may open one that goes on behind a comma.
    const LEADING: [&str; 2] = ["Where", "Of"];
    let opens = |at: usize, openers: &[&str]| openers.contains(&piece.words[at].1.trim_start_matches(['"', '(']));
    // A literal of a few words is a title or a piece of code.
    let least = match piece.kind {
        Kind::Comment => 2,
        Kind::Literal => 4,
        Kind::Page => return None,
    };
    if piece.words.len() >= least && opens(0, &OPENERS) && !piece.asks(0) {
        return Some(0);
    }
    (1..piece.words.len()).find(|&at| {
        let begins = piece.kind == Kind::Comment && piece.words[at - 1].1.trim_end_matches(['"', ')']).ends_with('.');
        let leads = || opens(at, &LEADING) && piece.sentence(at).iter().any(|(_, word)| word.ends_with(','));
        begins && opens(at, &OPENERS) && !piece.asks(at) && !leads()
    })
}

fn is_no(piece: &Piece) -> Option<usize> {
    /// These compare: a time is no longer than another one, and no more than another one.
    const COMPARISONS: [&str; 13] = [
        "longer", "shorter", "more", "less", "fewer", "better", "worse", "slower", "faster", "larger", "smaller",
        "wider", "later",
    ];
    (0..piece.words.len().saturating_sub(1)).find(|&at| {
        // A comma or a full stop between the words ends what `is` says.
        let is = ["is", "are", "was", "were"].contains(&piece.words[at].1.to_lowercase().as_str());
        let there = piece.word(at.wrapping_sub(1)) == "there" || piece.word(at + 1) == "there";
        let no = match piece.words[at + 1].1.trim_matches(|c: char| !c.is_alphanumeric()) {
            "none" => true,
            "no" => !COMPARISONS.contains(&piece.word(at + 2).as_str()),
            _ => false,
        };
        is && no && !there
    })
}

fn nobody(piece: &Piece) -> Option<usize> {
    piece.find(&["nobody", "nobody's", "somebody", "somebody's", "whoever"], 0)
}

fn who(piece: &Piece) -> Option<usize> {
    const PERSONS: &str = "anyone author authors caller callers colleague developer developers everyone learner \
        learners one owner people person programmer programmers reader readers someone those user users";
    let mut from = 0;
    while let Some(at) = piece.find(&["who", "whom"], from) {
        let before = (1..=2).map(|back| piece.word(at.wrapping_sub(back)));
        if !piece.asks(at) && !before.into_iter().any(|word| PERSONS.split(' ').any(|person| word == person)) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// The comments and strings of Rust or CUDA C++.
fn pieces_of_code(text: &str) -> Vec<Piece> {
    let mut reader = Code { text, at: 0, line: 1, pieces: Vec::new(), comment: None };
    while reader.at < text.len() {
        reader.step();
    }
    reader.pieces
}

struct Code<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    pieces: Vec<Piece>,
    /// The marker and the last line of the comment that the next line may continue, and whether it
    /// is in an example.
    comment: Option<(&'a str, usize, bool)>,
}

impl<'a> Code<'a> {
    fn step(&mut self) {
        let rest = &self.text[self.at..];
        let before = self.text[..self.at].chars().next_back();
        let in_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let hashes = rest.trim_start_matches('b').strip_prefix('r').filter(|_| !in_name).map(|rest| {
            let hashes = rest.len() - rest.trim_start_matches('#').len();
            (hashes, rest[hashes..].starts_with('"'))
        });
        if rest.starts_with("//") {
            self.comment(rest.lines().next().unwrap_or_default());
        } else if rest.starts_with("/*") {
            self.block_comment(rest);
        } else if let Some((hashes, true)) = hashes {
            let open = rest.find('"').expect("it was seen") + 1;
            let end = format!("\"{}", "#".repeat(hashes));
            let length = rest[open..].find(&end).unwrap_or(rest.len() - open);
            self.string(open, length, end.len());
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let mut escaped = false;
            let is_end = |c: char| {
                let is_end = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                is_end
            };
            let length = quoted.find(is_end).unwrap_or(quoted.len());
            self.string(1, length, 1);
        } else {
            let mut chars = rest.chars();
            let skipped = match (chars.next(), chars.next(), chars.next()) {
                (Some('\''), Some('\\'), Some(_)) => rest[3..].find('\'').map_or(1, |end| end + 4),
                (Some('\''), Some(c), Some('\'')) => c.len_utf8() + 2,
                (Some(c), ..) => c.len_utf8(),
                _ => 1,
            };
            self.skip(skipped);
        }
    }

    fn skip(&mut self, length: usize) {
        let end = (self.at + length).min(self.text.len());
        self.line += self.text[self.at..end].matches('\n').count();
        self.at = end;
    }

    fn comment(&mut self, comment: &'a str) {
        let text = comment.trim_start_matches('/').trim_start_matches('!');
        let marker = &comment[..comment.len() - text.len()];
        let start = self.text[..self.at].rfind('\n').map_or(0, |end| end + 1);
        let trails = !self.text[start..self.at].trim().is_empty();
        let goes_on = |&(before, line, _): &(&str, usize, bool)| before == marker && line + 1 == self.line && !trails;
        let went_on = self.comment.filter(goes_on);
        let in_code = went_on.is_some_and(|(_, _, in_code)| in_code);
        if went_on.is_none() {
            self.pieces.push(Piece::new(Kind::Comment));
        }
        let is_fence = text.trim_start().starts_with("```");
        if !in_code && !is_fence {
            self.pieces.last_mut().expect("one was made").add(self.line, text);
        }
        self.comment = Some((marker, self.line, in_code != is_fence));
        self.skip(comment.len());
    }

    fn block_comment(&mut self, rest: &str) {
        let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
        let mut piece = Piece::new(Kind::Comment);
        for (line, text) in (self.line..).zip(rest[..length].trim_end_matches("*/").lines()) {
            piece.add(line, text.trim_start_matches([' ', '/', '*', '!']));
        }
        self.pieces.push(piece);
        self.skip(length);
    }

    fn string(&mut self, open: usize, length: usize, close: usize) {
        let text = &self.text[self.at + open..self.at + open + length];
        let mut piece = Piece::new(Kind::Literal);
        for (line, text) in (self.line..).zip(text.split('\n')) {
            piece.add(line, &text.trim_end_matches('\\').replace("\\n", " "));
        }
        self.pieces.push(piece);
        self.skip(open + length + close);
    }
}

/// The comments of a script or of TOML, and its other lines. A docstring is a comment, and a text
/// of several lines goes with the line of code that begins it.
fn pieces_of_script(text: &str) -> Vec<Piece> {
    const DOC: &str = "\"\"\"";
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut goes_on, mut in_text) = (false, false);
    for (line, text) in (1..).zip(text.lines()) {
        if in_text || text.trim_start().starts_with(DOC) {
            if !in_text {
                pieces.push(Piece::new(Kind::Comment));
            }
            pieces.last_mut().expect("one was made").add(line, &text.replace(DOC, " "));
            in_text ^= text.matches(DOC).count() % 2 == 1;
            goes_on = false;
            continue;
        }
        let (code, comment) = match text.trim_start().strip_prefix('#') {
            Some(comment) => ("", Some(comment)),
            None => text.split_once(" # ").map_or((text, None), |(code, comment)| (code, Some(comment))),
        };
        if !code.trim().is_empty() {
            pieces.push(Piece::new(Kind::Page));
            pieces.last_mut().expect("one was made").add(line, code);
            in_text = code.matches(DOC).count() % 2 == 1;
        }
        if let Some(comment) = comment {
            if !goes_on || !code.is_empty() {
                pieces.push(Piece::new(Kind::Comment));
            }
            pieces.last_mut().expect("one was made").add(line, comment);
        }
        goes_on = comment.is_some();
    }
    pieces
}

/// The paragraphs of a page, without code.
fn pieces_of_page(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut in_code, mut goes_on) = (false, false);
    for (line, text) in (1..).zip(text.lines()) {
        let is_fence = text.trim_start().starts_with("```");
        let is_prose = !in_code && !is_fence && !text.trim().is_empty();
        if is_prose && !goes_on {
            pieces.push(Piece::new(Kind::Page));
        }
        if is_prose {
            pieces.last_mut().expect("one was made").add(line, text);
        }
        goes_on = is_prose;
        in_code ^= is_fence;
    }
    pieces
}

/// Returns the prose of a text; `None` if the file at `path` neither is nor holds prose.
fn pieces(path: &str, text: &str) -> Option<Vec<Piece>> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs" | "cu" | "h") => Some(pieces_of_code(text)),
        Some("toml" | "sh" | "py") => Some(pieces_of_script(text)),
        // Versions that were published stay as they were.
        Some("md") if path == "CHANGELOG.md" => Some(pieces_of_page(text.split("\n## [0").next().unwrap_or(text))),
        Some("md") => Some(pieces_of_page(text)),
        None if text.starts_with("#!") => Some(pieces_of_script(text)),
        _ => None,
    }
}

/// Every broken rule, with its line and the words around the one that breaks it.
fn faults(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in pieces(path, text).unwrap_or_default() {
        for rule in &RULES {
            let Some(at) = (rule.broken_by)(&piece) else { continue };
            let around = &piece.words[at.saturating_sub(3)..piece.words.len().min(at + 9)];
            let words: Vec<_> = around.iter().map(|(_, word)| word.as_str()).collect();
            found.push(format!("{path}:{}: {}: {}", piece.words[at].0, rule.name, words.join(" ")));
        }
    }
    found
}

/// A file that quotes what the rules forbid.
const SKIPPED: &str = "tests/it/prose.rs";

fn collect(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        let skipped = path == root.join(SKIPPED);
        // README has people make a Python environment, which may be here.
        let is_environment = path.join("pyvenv.cfg").exists();
        if skipped || is_environment || name == "target" || name.starts_with('.') && name != ".ci" {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            files.push(path);
        }
    }
}

#[test]
fn prose_is_plain_english() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(root, root, &mut files);
    files.sort();
    assert!(files.len() > 500, "only {} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let path = file.strip_prefix(root).expect("it was found there").to_string_lossy().into_owned();
        if let Ok(text) = fs::read_to_string(&file) {
            found.extend(faults(&path, &text));
        }
    }
    let cures: Vec<_> = RULES.iter().map(|rule| format!("{}: {}", rule.name, rule.cure)).collect();
    assert!(found.is_empty(), "{}\n{} faults; the cures:\n{}", found.join("\n"), found.len(), cures.join("\n"));
}

/// The names of the rules that a text breaks.
fn broken(path: &str, text: &str) -> Vec<String> {
    faults(path, text).iter().map(|fault| fault.split(": ").nth(1).expect("a rule").to_owned()).collect()
}

#[test]
fn every_rule_sees_its_fault_and_no_other() {
    let cases: [(&str, &[&str], &[&str]); 4] = [
        (
            RULES[0].name,
            &[
                "/// What it does when asked.",
                "// Whether it is so.",
                "f(); // Of these two.",
                "\"Where to run it\"",
                "/// Runs it. Whether it ends.",
                "// It runs (at times). Where it runs.",
                "/* Which it is. */",
                "/*\n * It is so. What\n * it does is seen.\n */",
            ],
            &[
                "/// Returns what it does.",
                "// It runs. Where it does, it ends.",
                "// It runs. Of two, the first.",
                "// It runs. What else?",
                "/* It does. */ let what = \"/* What it is, and */\";",
                "// Whether it is so?",
                "let what = 1;",
                "f(\"What\");",
                "// Whatever it is.",
            ],
        ),
        (
            RULES[1].name,
            &["// It is no\n// number.", "\"`{x}` is no \\\n number\"", "// They are none.", "r#\"was no \"file\"#"],
            &["// There is no number.", "// It is no longer than two.", "// Yes, it is. No other is.", "f(is, no);"],
        ),
        (
            RULES[2].name,
            &["//! Nobody knows.", "/// For somebody's sake.", "b\"whoever it is\""],
            &["/// Everybody knows.", "// `nobody` is a user.", "/// ```\n/// nobody();\n/// ```", "'\"'; nobody();"],
        ),
        (
            RULES[3].name,
            &["// A thread who waits.", "// It says whom it waits for."],
            &["// A user who waits.", "// Anyone, who waits.", "// Who waits for whom?", "let who = '\\'';"],
        ),
    ];
    for (rule, bad, good) in cases {
        for text in bad {
            assert_eq!(broken("a.rs", text), [rule], "{text}");
        }
        for text in good {
            assert_eq!(broken("a.rs", text), [""; 0], "{text}");
        }
    }
}

#[test]
fn prose_is_found_in_scripts_and_pages() {
    let fault = "a/b.py:2: begins with a headless clause: What it is here.";
    assert_eq!(faults("a/b.py", "x is None\ny = 2  # What\n# it is here.\n"), [fault]);
    assert_eq!(broken("a.py", "def f():\n    \"\"\"Whether it is so.\"\"\"\n"), [RULES[0].name]);
    let docstring = "def f():\n    \"\"\"Returns it.\n\n    Whether it is so.\n    \"\"\"\n    return 'What it is'\n";
    assert_eq!(faults("a.py", docstring), ["a.py:4: begins with a headless clause: Returns it. Whether it is so."]);
    let text =
        "x = f\"\"\"\n# What it is here.\n\"\"\"\ny = 'What it is'\ndef f():\n    \"\"\"Whether it is so.\"\"\"\n";
    assert_eq!(faults("a.py", text), ["a.py:6: begins with a headless clause: Whether it is so."]);
    assert_eq!(broken("b.toml", "# What it is here.\n"), [RULES[0].name]);
    assert_eq!(broken("a/b.sh", "echo \"$x is no file\"\n"), [RULES[1].name]);
    assert_eq!(broken("scripts/b", "#!/bin/sh\n# It is so, and\n# nobody knows.\n"), [RULES[2].name]);
    assert_eq!(broken("b", "# What it is here.\n"), [""; 0], "a file of another kind");
    let page = "# What it is\n\nWhat it is, it\nis none.\n\n```sh\nnobody\n```\n";
    let fault = "b.md:4: is no X: it is, it is none.";
    assert_eq!(faults("b.md", page), [fault]);
    let changes = "## [Unreleased]\n\nNobody knows.\n\n## [0.1.0]\n\nNobody knew.\n";
    assert_eq!(broken("CHANGELOG.md", changes), [RULES[2].name]);
}
