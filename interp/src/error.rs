//! Errors as data: a kind to match on, and a sentence for the reader.

use std::fmt;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, for code that handles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument that no launch could accept: a length, a name, an expectation.
    InvalidArgument,
    /// Memory is used up.
    OutOfMemory,
    /// PTX that does not parse, or an instruction that the software GPU does not support.
    UnsupportedPtx,
    /// A kernel stopped: an access out of bounds or misaligned, or a limit reached.
    KernelFault,
}

/// An error: its [`ErrorKind`] and one sentence that names the operands and what to do next.
///
/// ```
/// use warpstride_interp::{ErrorKind, Module};
///
/// let error = Module::parse(".entry k() {").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::UnsupportedPtx);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    // Boxed so that `Result<(), Error>` stays two words on the launch path.
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    context: String,
}

impl Error {
    /// An error of `kind`; `context` names the operands and what to do next.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Self { inner: Box::new(Inner { kind, context: context.into() }) }
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Puts `what`, the action that failed, in front of the error's sentence.
    #[must_use]
    pub fn while_doing(mut self, what: impl fmt::Display) -> Self {
        self.inner.context = format!("{what}: {}", self.inner.context);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.context)
    }
}

impl std::error::Error for Error {}

/// A number of things, for a sentence: `1 byte`, `2 bytes`, `3 axes`. It is formatted on display.
#[doc(hidden)]
pub fn counted<'t>(number: impl fmt::Display + 't, thing: &'t str) -> impl fmt::Display + 't {
    Counted { number, thing }
}

struct Counted<'t, N> {
    number: N,
    thing: &'t str,
}

impl<N: fmt::Display> fmt::Display for Counted<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, thing) = (self.number.to_string(), self.thing);
        f.write_str(&number)?;
        match (thing.strip_suffix("is"), thing.strip_suffix("ex")) {
            _ if number == "1" => write!(f, " {thing}"),
            (Some(stem), _) => write!(f, " {stem}es"),
            (_, Some(stem)) => write!(f, " {stem}ices"),
            _ if thing.ends_with(['s', 'x']) || thing.ends_with("ch") => write!(f, " {thing}es"),
            _ => write!(f, " {thing}s"),
        }
    }
}

/// Returns whether a character acts on a terminal in place of being seen: control characters, marks
/// that turn text around or hide in it, and those that XML does not take.
#[doc(hidden)]
pub fn is_hidden(c: char) -> bool {
    let marks = matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    marks || c.is_control() || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}')
}

/// Makes text of others safe to show: hidden characters become escapes such as `\u{1b}`. Line ends
/// and tabs stay.
#[doc(hidden)]
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            // A line end of Windows.
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' | '\t' => shown.push(c),
            _ => push_printable(&mut shown, c),
        }
    }
    shown
}

/// Does so for what stays on its line, such as a name: a line end becomes an escape, too.
#[doc(hidden)]
pub fn printable_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push_printable(&mut shown, c));
    shown
}

fn push_printable(shown: &mut String, c: char) {
    if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
}

#[cfg(test)]
mod tests;
