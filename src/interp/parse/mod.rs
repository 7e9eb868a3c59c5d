//! PTX text to a tree. Knows the syntax only: what an instruction means, and whether we have it, is `lower`'s business.

pub(crate) mod ast;
mod declarations;
mod lexer;
mod module;
mod parser;

pub(crate) use declarations::Ranges;
pub(crate) use parser::parse;

/// Most bytes of a module's text: compilers emit a few MiB.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

/// Characters of an instruction that a message shows at most.
const SHOWN: usize = 400;

/// A text as a message shows it: of a very long one the beginning.
pub(crate) fn beginning(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
