//! Evaluates constant expressions, as NVIDIA's assembler does: numbers of double precision, and
//! integers of 64 bits, signed unless a literal, a cast, `~` or `%` says otherwise.

use super::ast::Operand;
use super::lexer::Kind;
use super::parser::{MAX_DEPTH, Parser};

/// The value of an expression.
#[derive(Debug, Clone, Copy)]
enum Value {
    Signed(i64),
    Unsigned(u64),
    /// `0f3F800000`, which takes no part in expressions.
    Single(u32),
    Double(f64),
}

/// The binary operators and how tightly each binds; the longer of two that begin alike comes first.
const OPERATORS: [(&str, u8); 18] = [
    ("||", 1),
    ("&&", 2),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("==", 6),
    ("!=", 6),
    ("<<", 8),
    (">>", 8),
    ("<=", 7),
    (">=", 7),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

impl<'t> Parser<'t> {
    /// Parses a number or a constant expression; `None` if there is no such thing.
    pub(super) fn constant(&mut self) -> Option<Operand<'t>> {
        let first = self.at;
        let Some(value) = self.ternary(0) else {
            self.at = first;
            return None;
        };
        Some(match value {
            Value::Signed(value) => Operand::Integer(value as u64),
            Value::Unsigned(value) => Operand::Integer(value),
            Value::Single(bits) => Operand::F32(bits),
            Value::Double(value) => Operand::F64(value.to_bits()),
        })
    }

    /// Parses a constant expression that is an integer.
    pub(super) fn integer(&mut self) -> Option<i64> {
        self.ternary(0)?.bits().map(|bits| bits as i64)
    }

    /// Parses `+4`, `-4`, `+4*8-2`, `+1<<3` or nothing. The sign begins one expression, as NVIDIA's
    /// assembler reads it.
    pub(super) fn offset(&mut self) -> Option<i64> {
        match self.peek() {
            Some(Kind::Mark(b'+' | b'-')) => self.integer(),
            _ => Some(0),
        }
    }

    fn ternary(&mut self, depth: u32) -> Option<Value> {
        let condition = self.binary(0, depth)?;
        if !self.take_mark(b'?') {
            return Some(condition);
        }
        let yes = self.ternary(deeper(depth)?)?;
        if !self.take_mark(b':') {
            return None;
        }
        let no = self.ternary(deeper(depth)?)?;
        Some(if condition.is_true()? { yes } else { no })
    }

    /// Parses operands joined by operators that bind at least as tightly as `least`.
    fn binary(&mut self, least: u8, depth: u32) -> Option<Value> {
        let mut left = self.unary(depth)?;
        while let Some((operator, binds)) = self.operator().filter(|(_, binds)| *binds >= least) {
            self.at += operator.len();
            let right = self.binary(binds + 1, deeper(depth)?)?;
            left = apply(operator, left, right)?;
        }
        Some(left)
    }

    /// The operator that the next tokens spell, one token a character.
    fn operator(&self) -> Option<(&'static str, u8)> {
        let spelled = |(operator, _): &&(&str, u8)| {
            let tokens = self.tokens.get(self.at..self.at + operator.len()).unwrap_or_default();
            let adjacent = tokens.windows(2).all(|pair| pair[0].span.end == pair[1].span.start);
            let text = |(token, mark): (&super::lexer::Token, u8)| self.slice(token.span).as_bytes() == [mark];
            !tokens.is_empty() && adjacent && tokens.iter().zip(operator.bytes()).all(text)
        };
        OPERATORS.iter().find(spelled).copied()
    }

    fn unary(&mut self, depth: u32) -> Option<Value> {
        let kind = self.peek()?;
        let word = self.peek_word();
        self.at += 1;
        Some(match kind {
            Kind::Integer(value) => i64::try_from(value).map_or(Value::Unsigned(value), Value::Signed),
            Kind::Unsigned(value) => Value::Unsigned(value),
            Kind::F32(bits) => Value::Single(bits),
            Kind::F64(bits) => Value::Double(f64::from_bits(bits)),
            Kind::Word if word == Some("WARP_SZ") => Value::Signed(32),
            Kind::Mark(b'+') => self.unary(deeper(depth)?)?,
            Kind::Mark(b'-') => match self.unary(deeper(depth)?)? {
                Value::Signed(value) => Value::Signed(value.wrapping_neg()),
                Value::Unsigned(value) => Value::Unsigned(value.wrapping_neg()),
                Value::Single(bits) => Value::Single(bits ^ 1 << 31),
                Value::Double(value) => Value::Double(-value),
            },
            Kind::Mark(b'~') => Value::Unsigned(!self.unary(deeper(depth)?)?.bits()?),
            Kind::Mark(b'!') => Value::Signed(i64::from(!self.unary(deeper(depth)?)?.is_true()?)),
            Kind::Mark(b'(') => return self.parenthesis(deeper(depth)?),
            _ => return None,
        })
    }

    /// Parses `3 + 4)`, or the cast `.s64) 3`, after the opening parenthesis.
    fn parenthesis(&mut self, depth: u32) -> Option<Value> {
        let cast = self.peek_word().filter(|word| word.starts_with('.'));
        if cast.is_some() {
            self.at += 1;
        }
        let value = if cast.is_some() { None } else { Some(self.ternary(depth)?) };
        if !self.take_mark(b')') {
            return None;
        }
        match cast {
            None => value,
            Some(".s64") => Some(Value::Signed(self.unary(depth)?.bits()? as i64)),
            Some(".u64") => Some(Value::Unsigned(self.unary(depth)?.bits()?)),
            Some(_) => None,
        }
    }
}

fn deeper(depth: u32) -> Option<u32> {
    (depth < MAX_DEPTH).then_some(depth + 1)
}

impl Value {
    /// The bits of an integer.
    fn bits(self) -> Option<u64> {
        match self {
            Self::Signed(value) => Some(value as u64),
            Self::Unsigned(value) => Some(value),
            Self::Single(_) | Self::Double(_) => None,
        }
    }

    fn is_true(self) -> Option<bool> {
        self.bits().map(|bits| bits != 0)
    }
}

fn apply(operator: &str, left: Value, right: Value) -> Option<Value> {
    let truth = |holds: bool| Some(Value::Signed(i64::from(holds)));
    match (operator, left, right) {
        ("&&", ..) => truth(left.is_true()? && right.is_true()?),
        ("||", ..) => truth(left.is_true()? || right.is_true()?),
        ("<<", ..) | (">>", ..) => shift(operator, left, right.bits()? as u32),
        ("%", ..) => left.bits()?.checked_rem(right.bits()?).map(Value::Unsigned),
        (_, Value::Double(a), Value::Double(b)) => match operator {
            "+" => Some(Value::Double(a + b)),
            "-" => Some(Value::Double(a - b)),
            "*" => Some(Value::Double(a * b)),
            "/" => Some(Value::Double(a / b)),
            _ => truth(compare(operator, &a, &b)?),
        },
        (_, Value::Signed(a), Value::Signed(b)) => match operator {
            "/" => a.checked_div(b).map(Value::Signed),
            _ => match compare(operator, &a, &b) {
                Some(holds) => truth(holds),
                None => modular(operator, a as u64, b as u64).map(|bits| Value::Signed(bits as i64)),
            },
        },
        _ => {
            let (a, b) = (left.bits()?, right.bits()?);
            match operator {
                "/" => a.checked_div(b).map(Value::Unsigned),
                _ => match compare(operator, &a, &b) {
                    Some(holds) => truth(holds),
                    None => modular(operator, a, b).map(Value::Unsigned),
                },
            }
        }
    }
}

/// Shifts by a count modulo 64, as NVIDIA's assembler does.
fn shift(operator: &str, left: Value, by: u32) -> Option<Value> {
    Some(match (operator, left) {
        ("<<", Value::Signed(value)) => Value::Signed(value.wrapping_shl(by)),
        ("<<", Value::Unsigned(value)) => Value::Unsigned(value.wrapping_shl(by)),
        (_, Value::Signed(value)) => Value::Signed(value.wrapping_shr(by)),
        (_, Value::Unsigned(value)) => Value::Unsigned(value.wrapping_shr(by)),
        _ => return None,
    })
}

/// The truth of a comparison; `None` for other operators.
fn compare<T: PartialOrd>(operator: &str, a: &T, b: &T) -> Option<bool> {
    Some(match operator {
        "==" => a == b,
        "!=" => a != b,
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        ">=" => a >= b,
        _ => return None,
    })
}

/// The operators whose bits depend on no sign.
fn modular(operator: &str, a: u64, b: u64) -> Option<u64> {
    Some(match operator {
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "&" => a & b,
        "|" => a | b,
        "^" => a ^ b,
        _ => return None,
    })
}
