//! Parses PTX text into a tree. It knows only the syntax; `lower` decides what an instruction means
//! and whether it is supported.

pub(crate) mod ast;
mod declarations;
mod expression;
mod lexer;
mod module;
mod parser;

pub(crate) use declarations::Ranges;
pub(crate) use module::{is_opaque, type_bytes};
pub(crate) use parser::parse;

/// The largest size of a module's text in bytes. Compilers emit a few MiB.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

/// The most characters of an instruction that a message shows.
const SHOWN: usize = 400;

/// Shortens a text for a message: a very long one to its beginning.
pub(crate) fn beginning(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
