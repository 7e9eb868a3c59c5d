//! Text as an expectation, left to right: words, numbers and signs, without nesting.

use crate::error::{Error, Result, counted};

use super::counter::Counter;
use super::decimal::Decimal;
use super::{COMPARISONS, Comparison, Expectation, Factor, MAX_EXPECTATION_BYTES, invalid};

/// Most characters of the text that errors repeat.
const SHOWN: usize = 80;
/// The name that asks for a line of the source in place of a figure.
const WORST_LINE: &str = "worst_line";

pub(super) fn expectation(text: &str) -> Result<Expectation> {
    if text.len() > MAX_EXPECTATION_BYTES {
        return Err(invalid(format!(
            "the expectation `{}` has {}, more than the {MAX_EXPECTATION_BYTES} that one may have; split it",
            shown(text),
            counted(text.len(), "byte")
        )));
    }
    // Line breaks would break the lines of a table.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    comparison(&text).map_err(|error| error.while_doing(format_args!("the expectation `{}`", shown(&text))))
}

fn comparison(text: &str) -> Result<Expectation> {
    let mut tokens = Tokens { rest: text };
    let counter = match tokens.next()? {
        Some(Token::Word(name)) if name != "ideal" => counter(&mut tokens, name)?,
        _ => return Err(unlike("it does not begin with a counter")),
    };
    let Some(Token::Compare(comparison)) = tokens.next()? else {
        return Err(unlike("the counter is not followed by ==, !=, <, <=, > or >="));
    };
    let mut sum = vec![vec![factor(&mut tokens, counter)?]];
    while let Some(token) = tokens.next()? {
        match token {
            Token::Sign('+') => sum.push(Vec::new()),
            Token::Sign('*') => {}
            Token::Compare(_) => return Err(unlike("it has two comparisons; write two expectations")),
            _ => return Err(unlike("a + or a * is missing between two values")),
        }
        let factor = factor(&mut tokens, counter)?;
        if let Some(product) = sum.last_mut() {
            product.push(factor);
        }
    }
    Ok(Expectation { text: text.into(), counter, comparison, sum })
}

/// The counter that begins with `name`.
fn counter(tokens: &mut Tokens, name: &str) -> Result<Counter> {
    if name != WORST_LINE {
        return Counter::named(name, &shown(name));
    }
    match [tokens.next()?, tokens.next()?, tokens.next()?] {
        [Some(Token::Sign('(')), Some(Token::Word(name)), Some(Token::Sign(')'))] => {
            Counter::named(name, &shown(name))?.worst_line()
        }
        _ => Err(unlike("worst_line has no counter in parentheses, as in worst_line(store.sectors)")),
    }
}

fn factor(tokens: &mut Tokens, counter: Counter) -> Result<Factor> {
    match tokens.next()? {
        Some(Token::Number(number)) => Ok(Factor::Number(number)),
        Some(Token::Word("ideal")) if counter.has_ideal() => Ok(Factor::Ideal),
        Some(Token::Word("ideal")) => {
            Err(invalid("only sectors and wavefronts have an ideal; compare this counter with a number"))
        }
        Some(Token::Word(name)) => self::counter(tokens, name).map(Factor::Counter),
        Some(Token::Sign('?')) => Err(invalid("type your prediction, a number, in place of `?`")),
        Some(Token::Sign('(' | ')')) => Err(unlike("parentheses stand behind worst_line alone")),
        Some(_) => Err(unlike("two signs follow each other")),
        None => Err(unlike("a value is missing at its end")),
    }
}

fn unlike(what: &str) -> Error {
    invalid(format!("{what}; write a counter, a comparison and a value, such as `store.sectors <= 1.0 * ideal`"))
}

enum Token<'t> {
    Word(&'t str),
    Number(Decimal),
    Compare(Comparison),
    /// One of `+*()`, or a `?`, which stands in place of a number to predict.
    Sign(char),
}

struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    fn next(&mut self) -> Result<Option<Token<'t>>> {
        self.rest = self.rest.trim_start();
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let token = match first {
            '+' | '*' | '(' | ')' | '?' => {
                self.take(1);
                Token::Sign(first)
            }
            _ if first.is_ascii_digit() => {
                let text = self.take_while(|c| c.is_ascii_alphanumeric() || ".,_".contains(c));
                let number = Decimal::read(text).ok_or_else(|| {
                    invalid(format!(
                        "`{}` is not a number; write digits, 18 at most, with or without a point: 0, 1.25",
                        shown(text)
                    ))
                })?;
                Token::Number(number)
            }
            _ if first.is_ascii_alphabetic() => {
                Token::Word(self.take_while(|c| c.is_ascii_alphanumeric() || "._".contains(c)))
            }
            _ => {
                let signs: String = self.rest.chars().take_while(|c| "=!<>".contains(*c)).collect();
                let comparison = COMPARISONS.into_iter().find(|comparison| comparison.sign == signs);
                let Some(comparison) = comparison else {
                    let wrong = if signs.is_empty() { first.to_string() } else { signs };
                    return Err(invalid(format!(
                        "`{}` is not a sign that expectations have; use ==, !=, <, <=, >, >=, + and *",
                        shown(&wrong)
                    )));
                };
                self.take(signs.len());
                Token::Compare(comparison)
            }
        };
        Ok(Some(token))
    }

    /// The next bytes, all of them ASCII.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, of: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !of(c)).unwrap_or(self.rest.len());
        self.take(end)
    }
}

/// The beginning of a text, without characters that do something to a terminal.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
