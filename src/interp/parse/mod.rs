//! PTX text to a tree. Knows the syntax only: what an instruction means, and whether we have it, is `lower`'s business.

pub(crate) mod ast;
mod declarations;
mod lexer;
mod parser;

pub(crate) use declarations::Ranges;
pub(crate) use parser::parse;
