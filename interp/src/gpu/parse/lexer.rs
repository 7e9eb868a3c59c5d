//! Turns text into tokens. It never fails: text that is not a PTX token becomes `Unknown`, and the
//! parser refuses it where it matters.

use super::ast::Span;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// A name, an opcode with its dots, or a directive with its leading dot.
    Word,
    /// `42`, `0x2A`, `052`, `0b101010`.
    Integer(u64),
    /// The same with `U`.
    Unsigned(u64),
    /// `0f` and 8 hexadecimal digits.
    F32(u32),
    /// `0d` and 16 hexadecimal digits, or a decimal fraction.
    F64(u64),
    /// A string, quotes included.
    Text,
    /// One character of punctuation.
    Mark(u8),
    /// Anything else.
    Unknown,
}

/// A token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// Splits `text`, whose length fits 32 bits, into tokens.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, line: 1 };
    let mut tokens = Vec::with_capacity(text.len() / 4);
    while let Some(token) = lexer.next() {
        tokens.push(token);
    }
    tokens
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    line: u32,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<Token> {
        self.skip_blanks();
        let (start, line) = (self.at, self.line);
        let first = self.peek(0)?;
        let kind = match first {
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) => self.number(),
            b'"' => self.string(),
            _ if begins_word(first) => self.word(),
            _ if first.is_ascii_punctuation() => {
                self.at += 1;
                Kind::Mark(first)
            }
            _ => {
                // Skips a whole character, so that spans stay on character boundaries.
                self.at += self.text[start..].chars().next().map_or(1, char::len_utf8);
                Kind::Unknown
            }
        };
        Some(Token { kind, span: Span { start: start as u32, end: self.at as u32, line } })
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn take_while(&mut self, accept: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&accept) {
            self.at += 1;
        }
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek(0) {
            match (byte, self.peek(1)) {
                (b'\n', _) => {
                    self.line += 1;
                    self.at += 1;
                }
                (b' ' | b'\t' | b'\r', _) => self.at += 1,
                (b'/', Some(b'/')) => self.take_while(|byte| byte != b'\n'),
                // PTX 1 keeps its debug sections in such lines.
                (b'@', _) if self.text[self.at..].starts_with("@@DWARF") => self.take_while(|byte| byte != b'\n'),
                (b'/', Some(b'*')) => self.skip_comment(),
                _ => break,
            }
        }
    }

    fn skip_comment(&mut self) {
        let rest = &self.text[self.at..];
        let len = rest[2..].find("*/").map_or(rest.len(), |end| end + 4);
        self.line += rest.as_bytes()[..len].iter().filter(|&&byte| byte == b'\n').count() as u32;
        self.at += len;
    }

    /// Digits, letters and dots; a decimal fraction may have an exponent with a sign.
    fn number(&mut self) -> Kind {
        let start = self.at;
        let in_number = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_';
        self.take_while(in_number);
        let text = &self.text[start..self.at];
        let exponent = text.contains('.') && text.ends_with(['e', 'E']);
        if exponent && matches!((self.peek(0), self.peek(1)), (Some(b'+' | b'-'), Some(b'0'..=b'9'))) {
            self.at += 1;
            self.take_while(in_number);
        }
        number(&self.text[start..self.at])
    }

    /// A name or an opcode with its dots. A directive, a type or a modifier that begins with a dot
    /// ends before the next one: `.reg.b32` is two words.
    fn word(&mut self) -> Kind {
        let dotted = self.peek(0) != Some(b'.');
        self.at += 1;
        loop {
            self.take_while(|byte| begins_word(byte) && (dotted || byte != b'.') || byte.is_ascii_digit());
            // `shared::cta` and `L2::128B` are one word; a label's single colon is not part of it.
            let joined = self.peek(0) == Some(b':') && self.peek(1) == Some(b':');
            if !(joined && self.peek(2).is_some_and(|byte| begins_word(byte) || byte.is_ascii_digit())) {
                return Kind::Word;
            }
            self.at += 2;
        }
    }

    fn string(&mut self) -> Kind {
        self.at += 1;
        loop {
            self.take_while(|byte| !matches!(byte, b'"' | b'\n' | b'\\'));
            match (self.peek(0), self.peek(1)) {
                (Some(b'\\'), Some(b'"' | b'\\')) => self.at += 2,
                (Some(b'\\'), _) => self.at += 1,
                _ => break,
            }
        }
        if self.peek(0) != Some(b'"') {
            return Kind::Unknown;
        }
        self.at += 1;
        Kind::Text
    }
}

/// The meaning of a string, quotes included. Compilers write a backslash before a quote or another
/// one, and bytes beyond ASCII as three octal digits.
pub(super) fn meaning(text: &str) -> String {
    let mut rest = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    loop {
        let octal = |digits: &[u8]| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok();
        let (byte, taken) = match *rest {
            [] => return String::from_utf8_lossy(&bytes).into_owned(),
            [b'\\', byte @ (b'"' | b'\\'), ..] => (byte, 2),
            [b'\\', b'0'..=b'3', b'0'..=b'7', b'0'..=b'7', ..] => (octal(&rest[1..4]).unwrap_or_default(), 4),
            [byte, ..] => (byte, 1),
        };
        bytes.push(byte);
        rest = &rest[taken..];
    }
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

fn number(text: &str) -> Kind {
    let integer = |digits: &str, radix| {
        let (digits, kind): (_, fn(u64) -> Kind) = match digits.strip_suffix(['U', 'u']) {
            Some(digits) => (digits, Kind::Unsigned),
            None => (digits, Kind::Integer),
        };
        u64::from_str_radix(digits, radix).map_or(Kind::Unknown, kind)
    };
    let (head, tail) = text.split_at(text.len().min(2));
    match head {
        "0f" | "0F" if tail.len() == 8 => u32::from_str_radix(tail, 16).map_or(Kind::Unknown, Kind::F32),
        "0d" | "0D" if tail.len() == 16 => u64::from_str_radix(tail, 16).map_or(Kind::Unknown, Kind::F64),
        "0x" | "0X" => integer(tail, 16),
        "0b" | "0B" => integer(tail, 2),
        _ if text.contains('.') => text.parse::<f64>().map_or(Kind::Unknown, |value| Kind::F64(value.to_bits())),
        _ => {
            let octal = text.len() > 1 && text.starts_with('0') && text != "0U";
            integer(text, if octal { 8 } else { 10 })
        }
    }
}

#[cfg(test)]
mod tests;
