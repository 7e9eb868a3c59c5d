//! Oracles: what a result should hold, in a few words such as `transpose:128x128`.

use std::fmt;
use std::str::FromStr;

use warpstride::error::counted;
use warpstride::layout::{Axes, MAX_RANK};

use super::arithmetic::Operation;

/// The elements that a result should have. Arguments are numbers from 0, of buffers as they are
/// before the launch; if they are left out, they are the first buffers besides the result.
#[derive(Debug, Clone)]
pub(super) struct Oracle {
    /// As it was written.
    text: String,
    pub(super) formula: Formula,
}

#[derive(Debug, Clone)]
pub(super) enum Formula {
    /// The elements of the source.
    Copy(Source),
    /// The elements of the source from the last to the first.
    Reverse(Source),
    /// An array in C order with its axes in another order.
    Permute { shape: Vec<usize>, axes: Axes, source: Source },
    /// One number, in every element.
    Fill(String),
    /// 0, 1, 2 ...
    Iota,
    /// Two buffers element by element, with the argument that is the factor where there is one.
    Elementwise(Operation, Option<usize>, [Source; 2]),
    /// The sum of all elements of the source.
    Sum(Source),
}

/// The argument that is read; `None` for the first buffer besides the result.
pub(super) type Source = Option<usize>;

const USAGE: &str = "use copy, reverse, transpose:RxC, permute:SHAPE:AXES, fill:V, iota, add:X,Y, mul:X,Y, axpy:A,X,Y or \
                     sum, with X, Y and A as numbers of arguments from 0";

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Formula {
    /// The shape of the result, where it has more axes than one.
    pub(super) fn shape(&self) -> Option<Vec<usize>> {
        let Self::Permute { shape, axes, .. } = self else { return None };
        axes.of(shape).ok().map(|axes| axes.into_iter().map(|axis| shape[axis]).collect())
    }
}

impl FromStr for Oracle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').map(str::trim).collect();
        let formula = match *parts {
            ["copy", ref source @ ..] => Formula::Copy(one(text, source)?),
            ["reverse", ref source @ ..] => Formula::Reverse(one(text, source)?),
            ["sum", ref source @ ..] => Formula::Sum(one(text, source)?),
            ["transpose", shape, ref source @ ..] => {
                let shape = extents(shape).filter(|shape| shape.len() == 2);
                let shape = shape.ok_or_else(|| format!("`{text}` has no rows and columns; write transpose:128x64"))?;
                Formula::Permute { shape, axes: Axes::from(&[1, 0]), source: one(text, source)? }
            }
            ["permute", shape, axes, ref source @ ..] => {
                let shape =
                    extents(shape).ok_or_else(|| format!("`{text}` has no shape; write permute:4x10x3:0,2,1"))?;
                if shape.len() > MAX_RANK {
                    let axes = counted(shape.len(), "axis");
                    return Err(format!("`{text}` has {axes}; use at most {MAX_RANK}"));
                }
                let axes: Axes = axes.parse().map_err(|wrong: warpstride::Error| wrong.to_string())?;
                axes.of(&shape).map_err(|wrong| wrong.to_string())?;
                Formula::Permute { shape, axes, source: one(text, source)? }
            }
            ["fill", number] => Formula::Fill(number.into()),
            ["iota"] => Formula::Iota,
            ["add"] => Formula::Elementwise(Operation::Add, None, [None; 2]),
            ["mul"] => Formula::Elementwise(Operation::Mul, None, [None; 2]),
            ["add", sources] => Formula::Elementwise(Operation::Add, None, numbers(text, sources)?.map(Some)),
            ["mul", sources] => Formula::Elementwise(Operation::Mul, None, numbers(text, sources)?.map(Some)),
            ["axpy", sources] => {
                let [factor, x, y] = numbers(text, sources)?;
                Formula::Elementwise(Operation::Axpy, Some(factor), [Some(x), Some(y)])
            }
            _ => return Err(format!("`{text}` is not an oracle; {USAGE}")),
        };
        Ok(Self { text: text.into(), formula })
    }
}

/// `4x10x3`; `None` where it is not that, or more than an address can count.
fn extents(text: &str) -> Option<Vec<usize>> {
    let extents: Vec<usize> = text.split('x').map(|extent| extent.trim().parse().ok()).collect::<Option<_>>()?;
    extents.iter().try_fold(1_usize, |elements, &extent| elements.checked_mul(extent)).map(|_| extents)
}

/// The argument at the end of an oracle, if there is one.
fn one(text: &str, rest: &[&str]) -> Result<Source, String> {
    match rest {
        [] => Ok(None),
        [number] => numbers(text, number).map(|[number]| Some(number)),
        _ => Err(format!("`{text}` has too many parts; {USAGE}")),
    }
}

fn numbers<const N: usize>(text: &str, list: &str) -> Result<[usize; N], String> {
    let numbers: Option<Vec<usize>> = list.split(',').map(|number| number.trim().parse().ok()).collect();
    let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
    numbers.ok_or_else(|| format!("`{text}` does not end with the numbers of its arguments, from 0; {USAGE}"))
}
