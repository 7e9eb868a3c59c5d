//! Axes in another order, as numbers or by names.

use std::fmt;
use std::str::FromStr;

use super::MAX_RANK;
use crate::error::{Error, Result, counted};

/// How to write an order of axes, at the end of an error.
const USAGE: &str =
    "give numbers (0,3,1,2 or 0,-1,1,2), letters ('nhwc->nchw') or words ('n h w c -> n c h w'), with quotes";

/// An order of axes: axis `i` of the result is axis `order[i]` of the source.
///
/// As numbers it is an array, a vector or a slice of them. As text it is numbers, of which negative
/// ones count from the end, or names on both sides of an arrow as in einops (Rogozhnikov 2022):
/// letters, or words with spaces between them.
///
/// ```
/// use warpstride::layout::Axes;
///
/// let order = [0, 3, 1, 2];
/// for axes in [Axes::from(order), Axes::from(&order), Axes::from(vec![0, 3, 1, 2])] {
///     assert_eq!(axes.of(&[8, 64, 64, 3])?, order);
/// }
/// for text in ["0,3,1,2", "0,-1,1,2", "nhwc->nchw", "n h w c -> n c h w"] {
///     assert_eq!(text.parse::<Axes>()?.of(&[8, 64, 64, 3])?, order);
/// }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axes {
    /// The caller's own words, for errors; `None` where they are the numbers between commas.
    text: Option<String>,
    order: Order,
}

/// Returns a shape and an order of its axes that move the same elements with axes that a layout
/// can have: those of extent 1 are left out if there are more than [`MAX_RANK`].
#[doc(hidden)]
pub fn fewer_axes(shape: &[usize], order: &[usize]) -> (Vec<usize>, Vec<usize>) {
    if shape.len() <= MAX_RANK {
        return (shape.into(), order.into());
    }
    let mut places = vec![None; shape.len()];
    let mut fewer = Vec::new();
    for (place, &extent) in places.iter_mut().zip(shape).filter(|(_, extent)| **extent != 1) {
        *place = Some(fewer.len());
        fewer.push(extent);
    }
    let place = |&axis: &usize| places.get(axis).copied().unwrap_or(Some(axis));
    (fewer, order.iter().filter_map(place).collect())
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Order {
    /// Numbers that count from 0, or from the end where they are negative. Every order that fits a
    /// layout is one of these.
    Few { numbers: [i8; MAX_RANK], count: u8 },
    /// Numbers of which some are larger, or which are more. They only serve for errors.
    Many(Vec<i64>),
    /// For each axis of the result, the index of its name before the arrow; and the number of those
    /// names.
    Names { sources: Vec<usize>, rank: usize },
}

impl Order {
    /// Every call of an operation with an order makes one, so a usual one is small and needs no
    /// allocation.
    #[inline]
    fn of_numbers(all: impl ExactSizeIterator<Item = i64> + Clone) -> Self {
        let (mut numbers, count) = ([0; MAX_RANK], all.len());
        let fits = count <= MAX_RANK
            && numbers.iter_mut().zip(all.clone()).all(|(to, number)| i8::try_from(number).map(|n| *to = n).is_ok());
        if fits { Self::Few { numbers, count: count as u8 } } else { Self::of_many(all) }
    }

    #[cold]
    #[inline(never)]
    fn of_many(all: impl Iterator<Item = i64>) -> Self {
        Self::Many(all.collect())
    }

    /// Returns the numbers with commas between them; `None` of names.
    fn numbers_as_text(&self) -> Option<String> {
        let numbers: Vec<_> = match self {
            Self::Few { numbers, count } => numbers[..usize::from(*count)].iter().map(i8::to_string).collect(),
            Self::Many(numbers) => numbers.iter().map(i64::to_string).collect(),
            Self::Names { .. } => return None,
        };
        Some(numbers.join(","))
    }
}

impl Axes {
    /// The order for an array of `shape`, counted from 0.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the order does not name each axis of `shape` once.
    pub fn of(&self, shape: &[usize]) -> Result<Vec<usize>> {
        let mut order = vec![0; shape.len()];
        self.write_to(&mut order, shape)?;
        Ok(order)
    }

    /// Writes the order for an array of `shape` to a slice of its rank.
    ///
    /// # Errors
    ///
    /// As [`Axes::of`].
    pub(crate) fn write_to(&self, order: &mut [usize], shape: &[usize]) -> Result<()> {
        match &self.order {
            Order::Names { sources, rank } if *rank == shape.len() => order.copy_from_slice(sources),
            Order::Names { rank: named, .. } => return Err(self.of_another_rank(*named, shape)),
            Order::Few { numbers, count } => {
                self.count_from_0(numbers[..usize::from(*count)].iter().copied().map(i64::from), order, shape)?;
            }
            Order::Many(numbers) => self.count_from_0(numbers.iter().copied(), order, shape)?,
        }
        Ok(())
    }

    fn count_from_0(
        &self,
        numbers: impl ExactSizeIterator<Item = i64>,
        order: &mut [usize],
        shape: &[usize],
    ) -> Result<()> {
        let (rank, count) = (shape.len(), numbers.len());
        // All distinct axes fit, so no number is out of place before it is refused.
        for (place, number) in numbers.enumerate() {
            let from_end = number < 0;
            let axis = usize::try_from(number.unsigned_abs()).ok();
            let axis = axis.and_then(|axis| if from_end { rank.checked_sub(axis) } else { Some(axis) });
            match axis.filter(|&axis| axis < rank) {
                None => {
                    return Err(
                        self.refusal(shape, &format!("name axis {number}, and it has {}", counted(rank, "axis")))
                    );
                }
                Some(axis) if order[..place].contains(&axis) => {
                    return Err(self.refusal(shape, &format!("name axis {axis} twice")));
                }
                Some(axis) => order[place] = axis,
            }
        }
        let named = &order[..count];
        match (0..rank).find(|axis| !named.contains(axis)) {
            Some(axis) => Err(self.refusal(shape, &format!("leave out axis {axis}"))),
            None => Ok(()),
        }
    }

    #[cold]
    fn of_another_rank(&self, named: usize, shape: &[usize]) -> Error {
        Error::argument(format!(
            "axes {self} are {} and shape {shape:?} has {}; name each axis once",
            counted(named, "axis"),
            shape.len()
        ))
    }

    #[cold]
    fn refusal(&self, shape: &[usize], what: &str) -> Error {
        let each = match shape.len().checked_sub(1) {
            None => "leave the axes empty".into(),
            Some(last) => format!("name each from 0 to {last} once"),
        };
        Error::argument(format!("axes {self} of shape {shape:?} {what}; {each}"))
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.text, &self.order) {
            (Some(text), _) => write!(f, "`{text}`"),
            (None, order) => write!(f, "`{}`", order.numbers_as_text().unwrap_or_default()),
        }
    }
}

impl FromStr for Axes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let order = match text.split_once("->") {
            Some((before, after)) => named(before.trim(), after.trim()),
            None if text.trim().is_empty() => Ok(Order::of_numbers([].into_iter())),
            None => {
                let numbers = text.split(',').map(number).collect::<std::result::Result<Vec<_>, _>>();
                numbers.map(|numbers| Order::of_numbers(numbers.into_iter()))
            }
        };
        let (text, order) = (text.trim(), order.map_err(Error::argument)?);
        let is_plain = order.numbers_as_text().is_some_and(|numbers| numbers == text);
        Ok(Self { text: (!is_plain).then(|| text.into()), order })
    }
}

impl TryFrom<&str> for Axes {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        text.parse()
    }
}

impl From<&[usize]> for Axes {
    #[inline]
    fn from(order: &[usize]) -> Self {
        // No array has an axis beyond `i64::MAX`, so that this number is refused as it should be.
        let numbers = order.iter().map(|&axis| i64::try_from(axis).unwrap_or(i64::MAX));
        Self { text: None, order: Order::of_numbers(numbers) }
    }
}

impl<const N: usize> From<&[usize; N]> for Axes {
    #[inline]
    fn from(order: &[usize; N]) -> Self {
        Self::from(&order[..])
    }
}

impl<const N: usize> From<[usize; N]> for Axes {
    #[inline]
    fn from(order: [usize; N]) -> Self {
        Self::from(&order[..])
    }
}

impl From<&Vec<usize>> for Axes {
    #[inline]
    fn from(order: &Vec<usize>) -> Self {
        Self::from(&order[..])
    }
}

impl From<Vec<usize>> for Axes {
    #[inline]
    fn from(order: Vec<usize>) -> Self {
        Self::from(&order[..])
    }
}

fn number(text: &str) -> std::result::Result<i64, String> {
    let text = text.trim();
    // No sign but the one that counts from the end, and no axis that has two spellings.
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && text != "-0";
    text.parse().ok().filter(|_| plain).ok_or_else(|| format!("`{text}` is not the number of an axis; {USAGE}"))
}

/// Reads names on both sides of an arrow: words where spaces part them, else letters.
fn named(before: &str, after: &str) -> std::result::Result<Order, String> {
    let by_words = [before, after].iter().any(|side| side.contains(char::is_whitespace));
    let names = |side: &str| -> Vec<String> {
        if by_words {
            side.split_whitespace().map(Into::into).collect()
        } else {
            side.chars().map(Into::into).collect()
        }
    };
    let (before, after) = (names(before), names(after));
    for side in [&before, &after] {
        for (place, name) in side.iter().enumerate() {
            if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                return Err(format!("`{name}` is not the name of an axis; {USAGE}"));
            }
            if side[..place].contains(name) {
                return Err(format!(
                    "axis `{name}` stands twice on one side of the arrow; name each axis once on each side"
                ));
            }
        }
    }
    if let Some(left_out) = before.iter().find(|name| !after.contains(name)) {
        return Err(format!(
            "axis `{left_out}` stands before the arrow and not behind it; name each axis once on each side"
        ));
    }
    let source = |name| before.iter().position(|other| other == name);
    let sources = after.iter().map(|name| {
        let unknown =
            || format!("axis `{name}` stands behind the arrow and not before it; name each axis once on each side");
        source(name).ok_or_else(unknown)
    });
    Ok(Order::Names { sources: sources.collect::<Result<_, _>>()?, rank: before.len() })
}

#[cfg(test)]
mod tests;
