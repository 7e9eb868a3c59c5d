//! Links PTX texts: several texts become one, in which each name has one definition.
//!
//! A name without `.visible` belongs to its text, so it gets another name where another text has
//! it, too. Of weak definitions, one stays. Declarations stay all, because the software GPU takes a
//! definition for its declarations.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

/// A piece of a text: a word, a number, a string or a mark.
#[derive(Debug, Clone, Copy)]
struct Token<'t> {
    text: &'t str,
    start: usize,
}

/// How a name of a text relates to other texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linkage {
    /// It belongs to its text.
    Own,
    /// It is declared here and defined elsewhere.
    Extern,
    /// It is defined here for all texts.
    Visible,
    /// It is defined here for all texts, unless another one defines it.
    Weak,
}

/// A function or variable of a text.
#[derive(Debug)]
struct Item<'t> {
    linkage: Linkage,
    names: Vec<&'t str>,
    is_definition: bool,
    tokens: Range<usize>,
}

/// One text, taken apart.
#[derive(Debug, Default)]
struct Unit<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    version: &'t str,
    target: &'t str,
    items: Vec<Item<'t>>,
    /// The tokens that say what the head of the whole says.
    head: Vec<Range<usize>>,
}

/// Joins the texts.
pub(super) fn join(texts: &[String]) -> Result<String, String> {
    if let [text] = texts {
        return Ok(text.clone());
    }
    let units: Vec<Unit<'_>> = texts.iter().map(|text| Unit::of(text)).collect();
    let definitions = definitions(&units)?;
    let mut owners: HashMap<&str, HashSet<usize>> = HashMap::new();
    for (number, unit) in units.iter().enumerate() {
        for name in unit.items.iter().flat_map(|item| &item.names) {
            owners.entry(name).or_default().insert(number);
        }
    }
    let newest = units.iter().map(|unit| unit.version).max_by(|a, b| version(a).total_cmp(&version(b)));
    let target = units.iter().map(|unit| unit.target).max_by_key(|name| (architecture(name).unwrap_or(0), name.len()));
    let (newest, target) = (newest.unwrap_or_default(), target.unwrap_or_default());
    let mut joined = format!(".version {newest}\n.target {target}\n.address_size 64\n");
    for (number, unit) in units.iter().enumerate() {
        let own = unit.items.iter().filter(|item| item.linkage == Linkage::Own).flat_map(|item| &item.names);
        let renamed = own.filter(|name| owners.get(**name).is_some_and(|owners| owners.len() > 1)).copied().collect();
        let is_dropped = |item: &Item<'_>| {
            item.linkage == Linkage::Weak
                && item.names.iter().any(|name| definitions.get(name).is_some_and(|&(_, chosen)| chosen != number))
        };
        let dropped = unit.items.iter().filter(|item| is_dropped(item)).map(|item| item.tokens.clone());
        unit.write(&mut joined, number, &renamed, dropped.collect());
    }
    Ok(joined)
}

/// Returns the text that defines each name for all texts.
fn definitions<'t>(units: &[Unit<'t>]) -> Result<HashMap<&'t str, (Linkage, usize)>, String> {
    let mut chosen: HashMap<&str, (Linkage, usize)> = HashMap::new();
    for (number, unit) in units.iter().enumerate() {
        for item in unit.items.iter().filter(|item| item.is_definition) {
            if !matches!(item.linkage, Linkage::Visible | Linkage::Weak) {
                continue;
            }
            for &name in &item.names {
                match (chosen.get(name), item.linkage) {
                    (Some(&(Linkage::Visible, first)), Linkage::Visible) => {
                        return Err(format!(
                            "{name:?} is defined in input {first} and in input {number}, counted from 0; make one of them \
                             static, or leave it out"
                        ));
                    }
                    (Some(_), Linkage::Weak) => {}
                    _ => {
                        chosen.insert(name, (item.linkage, number));
                    }
                }
            }
        }
    }
    Ok(chosen)
}

fn version(text: &str) -> f64 {
    text.parse().unwrap_or(0.0)
}

/// Returns the number of `sm_90a`.
fn architecture(target: &str) -> Option<u32> {
    target.strip_prefix("sm_")?.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()
}

/// Returns the target of a text, as `sm_90a`, with its number.
pub(super) fn target(text: &str) -> Option<(&str, u32)> {
    let mut tokens = Tokens { text, at: 0 };
    tokens.find(|token| token.text == ".target")?;
    let name = tokens.next()?.text;
    Some((name, architecture(name)?))
}

/// The pieces of a text, without comments.
struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            let rest = &rest[blank..];
            let comment = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                let first = rest.chars().next()?;
                let bytes = match first {
                    '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
                    _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                    _ => first.len_utf8(),
                };
                let token = Token { text: &rest[..bytes], start: self.at };
                self.at += bytes;
                return Some(token);
            };
            self.at += comment;
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.')
}

impl<'t> Unit<'t> {
    fn of(text: &'t str) -> Self {
        let mut unit = Self { text, tokens: Tokens { text, at: 0 }.collect(), ..Self::default() };
        let mut at = 0;
        while at < unit.tokens.len() {
            at = unit.top_level(at).max(at + 1);
        }
        unit
    }

    fn word(&self, at: usize) -> &'t str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    /// Takes what begins at a token, and returns the token after it.
    fn top_level(&mut self, at: usize) -> usize {
        match self.word(at) {
            ".version" => self.version = self.word(at + 1),
            ".target" => {
                self.target = self.word(at + 1);
                let mut end = at + 2;
                while self.word(end) == "," {
                    end += 2;
                }
                self.head.push(at..end);
                return end;
            }
            ".address_size" => {}
            ".file" => return at + 3,
            ".section" => return self.after_block(at),
            word if word.starts_with('.') => return self.item(at),
            _ => return at + 1,
        }
        self.head.push(at..at + 2);
        at + 2
    }

    /// Returns the token after the next block of braces.
    fn after_block(&self, at: usize) -> usize {
        let mut depth = 0_usize;
        for end in at..self.tokens.len() {
            match self.word(end) {
                "{" => depth += 1,
                "}" if depth <= 1 => return end + 1,
                "}" => depth -= 1,
                _ => {}
            }
        }
        self.tokens.len()
    }

    /// Takes a function or variables, up to the semicolon or the end of the body.
    fn item(&mut self, at: usize) -> usize {
        let mut linkage = Linkage::Own;
        let mut kind = at;
        loop {
            linkage = match self.word(kind) {
                ".visible" => Linkage::Visible,
                ".extern" => Linkage::Extern,
                ".weak" | ".common" => Linkage::Weak,
                _ => break,
            };
            kind += 1;
        }
        let is_function = matches!(self.word(kind), ".func" | ".entry");
        if self.word(kind) == ".entry" && linkage == Linkage::Own {
            linkage = Linkage::Visible;
        }
        let (mut end, mut has_body) = (kind, false);
        while end < self.tokens.len() && self.word(end) != ";" {
            if self.word(end) != "{" {
                end += 1;
                continue;
            }
            end = self.after_block(end);
            if is_function {
                has_body = true;
                break;
            }
        }
        let end = if has_body { end } else { (end + 1).min(self.tokens.len()) };
        let names = match is_function {
            true => self.function_name(kind + 1).into_iter().collect(),
            false if matches!(self.word(kind), ".global" | ".const" | ".shared") => self.variable_names(kind + 1, end),
            false => Vec::new(),
        };
        let is_definition = if is_function { has_body } else { linkage != Linkage::Extern };
        self.items.push(Item { linkage, names, is_definition, tokens: at..end });
        end
    }

    /// Returns the name of a function, before which attributes and results may stand.
    fn function_name(&self, mut at: usize) -> Option<&'t str> {
        let mut depth = 0_usize;
        while at < self.tokens.len() {
            match self.word(at) {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                "{" | ";" => return None,
                word if depth == 0 && !word.starts_with('.') => return Some(word),
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Returns the names of variables: the words before an extent, an initial value or the end.
    fn variable_names(&self, at: usize, end: usize) -> Vec<&'t str> {
        let (mut names, mut depth, mut is_declared) = (Vec::new(), 0_usize, false);
        for token in at..end {
            match self.word(token) {
                "(" | "{" | "[" => depth += 1,
                ")" | "}" | "]" => depth = depth.saturating_sub(1),
                "," if depth == 0 => is_declared = false,
                word if depth == 0
                    && !is_declared
                    && word.starts_with(|c: char| c == '_' || c == '$' || c == '%' || c.is_ascii_alphabetic()) =>
                {
                    names.push(word);
                    is_declared = true;
                }
                _ => {}
            }
        }
        names
    }

    /// Writes the text without its head and what is dropped, with new names and numbers of files.
    fn write(&self, out: &mut String, number: usize, renamed: &HashSet<&str>, mut dropped: Vec<Range<usize>>) {
        dropped.extend(self.head.iter().cloned());
        dropped.sort_by_key(|range| range.start);
        let mut dropped = dropped.into_iter().peekable();
        let (mut written, mut at) = (0, 0);
        while let Some(token) = self.tokens.get(at) {
            out.push_str(&self.text[written..token.start]);
            written = token.start;
            if let Some(range) = dropped.next_if(|range| range.start <= at) {
                at = range.end.max(at + 1);
                written = self.tokens.get(at).map_or(self.text.len(), |next| next.start);
                continue;
            }
            let before = at.checked_sub(1).map_or("", |before| self.word(before));
            let file =
                matches!(before, ".file" | ".loc" | "inlined_at").then(|| token.text.parse::<u64>().ok()).flatten();
            match file {
                Some(file) => _ = write!(out, "{}", file.saturating_add(FILES * number as u64)),
                None if renamed.contains(token.text) => _ = write!(out, "{}__{number}", token.text),
                None => out.push_str(token.text),
            }
            written += token.text.len();
            at += 1;
        }
        out.push_str(&self.text[written..]);
        out.push('\n');
    }
}

/// The numbers of files that each text has for itself.
const FILES: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use warpstride::interp::Module;

    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    fn joined(texts: &[&str]) -> Result<Module, String> {
        let texts: Vec<String> = texts.iter().map(|text| format!("{HEAD}{text}")).collect();
        let text = join(&texts)?;
        Module::parse(&text).map_err(|error| format!("{error} in {text}"))
    }

    #[test]
    fn a_declaration_finds_its_definition_in_either_order() {
        let uses = ".extern .func (.param .b32 r) one ();\n.extern .global .align 4 .b32 seven;\n.visible .entry k() { \
                    .reg .b32 %r<2>; call (%r1), one, (); st.global.u32 [seven], %r1; ret; }";
        let has = ".visible .func (.param .b32 r) one () { .reg .b32 %r<2>; mov.u32 %r1, 1; st.param.b32 [r], %r1; ret; }\n\
                   .visible .global .align 4 .b32 seven = 7;";
        for texts in [[uses, has], [has, uses]] {
            let module = joined(&texts).unwrap();
            module.kernel("k").unwrap().supported().unwrap();
        }
    }

    #[test]
    fn own_names_that_clash_are_kept_apart() {
        let text = |kernel: &str, value: u32| {
            format!(
                "// .global x\n.global .align 1 .b8 $str[2] = {{{value}, 0}};\n.func helper() {{ ret; }}\n.file 1 \"{kernel}.cu\"\n\
                 .visible .entry {kernel}() {{ .reg .b64 %rd<2>; .loc 1 2 3\n call helper; mov.u64 %rd1, $str; ret; }}"
            )
        };
        let (first, second) = (text("a", 1), text("b", 2));
        let module = joined(&[&first, &second]).unwrap();
        assert_eq!(module.variables().collect::<Vec<_>>(), ["$str__0", "$str__1"]);
        for (kernel, file) in [("a", "a.cu"), ("b", "b.cu")] {
            let kernel = module.kernel(kernel).unwrap();
            kernel.supported().unwrap();
            assert_eq!(kernel.source_file(), Some(file));
        }
    }

    #[test]
    fn one_weak_definition_stays_and_two_visible_ones_are_refused() {
        let weak = ".weak .func f() { ret; }";
        let visible = ".visible .func f() { ret; }";
        for texts in [[weak, weak], [weak, visible], [visible, weak]] {
            joined(&texts).unwrap();
        }
        let refused = joined(&[visible, visible]).unwrap_err();
        assert!(refused.contains("\"f\"") && refused.contains("input 1"), "{refused}");
    }

    #[test]
    fn the_target_of_a_text_is_found_behind_comments() {
        assert_eq!(target("// .target sm_10\n.version 8.0\n.target sm_90a, debug\n"), Some(("sm_90a", 90)));
        assert_eq!(target(".version 8.0"), None);
    }

    #[test]
    fn any_text_is_taken_apart() {
        const PIECES: [&str; 24] = [
            "", "\"", "/*", "*/", "//", ".func", ".entry", "(", ")", "{", "}", ";", ",", "[", "]", ".global", ".b8",
            "x", "=", ".file", ".target", "é\u{1f}", ".weak", "\n",
        ];
        let mut state = 1_u32;
        for _ in 0..2000 {
            let mut piece = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                PIECES[(state >> 16) as usize % PIECES.len()]
            };
            let texts: Vec<String> = (0..2).map(|_| (0..20).map(|_| piece()).collect::<Vec<_>>().join(" ")).collect();
            drop(join(&texts));
        }
    }
}
