//! `--axes`: the axes of an array in another order, as numbers or by names.

use std::fmt;
use std::str::FromStr;

use warpstride::error::counted;

/// How to write them, at the end of an error.
const USAGE: &str =
    "give numbers (0,3,1,2 or 0,-1,1,2), letters ('nhwc->nchw') or words ('n h w c -> n c h w'), with quotes";

/// An order of axes before the array is known.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Axes {
    /// As it was typed.
    text: String,
    order: Order,
}

#[derive(Debug, Clone)]
enum Order {
    /// Counted from 0, or from the end by negative numbers.
    Numbers(Vec<i64>),
    /// For each axis of the result its place among the names before the arrow, which are so many.
    Names { places: Vec<usize>, rank: usize },
}

impl Axes {
    /// The axes of an array of `shape` in the order of the result.
    pub(in crate::cli) fn of(&self, shape: &[usize]) -> Result<Vec<usize>, String> {
        let rank = shape.len();
        match &self.order {
            Order::Names { places, rank: named } if *named == rank => Ok(places.clone()),
            Order::Names { rank: named, .. } => Err(format!(
                "axes {self} are {} and shape {shape:?} has {rank}; name each axis once",
                counted(named, "axis")
            )),
            Order::Numbers(numbers) => self.places(numbers, shape),
        }
    }

    fn places(&self, numbers: &[i64], shape: &[usize]) -> Result<Vec<usize>, String> {
        let rank = shape.len();
        let wrong = |what: String| {
            let last = rank.saturating_sub(1);
            let each =
                if rank == 0 { "leave the axes empty".into() } else { format!("name each from 0 to {last} once") };
            Err(format!("axes {self} of shape {shape:?} {what}; {each}"))
        };
        let mut places: Vec<usize> = Vec::with_capacity(numbers.len());
        for &number in numbers {
            let from_end = number < 0;
            let place = usize::try_from(number.unsigned_abs()).ok();
            let place = place.and_then(|place| if from_end { rank.checked_sub(place) } else { Some(place) });
            match place.filter(|&place| place < rank) {
                None => return wrong(format!("name axis {number}, and it has {}", counted(rank, "axis"))),
                Some(place) if places.contains(&place) => return wrong(format!("name axis {place} twice")),
                Some(place) => places.push(place),
            }
        }
        match (0..rank).find(|axis| !places.contains(axis)) {
            Some(axis) => wrong(format!("leave out axis {axis}")),
            None => Ok(places),
        }
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.text)
    }
}

impl FromStr for Axes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let order = match text.split_once("->") {
            Some((before, after)) => named(before.trim(), after.trim())?,
            None if text.trim().is_empty() => Order::Numbers(Vec::new()),
            None => Order::Numbers(text.split(',').map(number).collect::<Result<_, _>>()?),
        };
        Ok(Self { text: text.trim().into(), order })
    }
}

fn number(text: &str) -> Result<i64, String> {
    let text = text.trim();
    // No sign but the one that counts from the end, and no axis that has two spellings.
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && text != "-0";
    text.parse().ok().filter(|_| plain).ok_or_else(|| format!("`{text}` is not the number of an axis; {USAGE}"))
}

/// The order that names on both sides of an arrow stand for: words where spaces part them, else letters.
fn named(before: &str, after: &str) -> Result<Order, String> {
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
    let place = |name| before.iter().position(|other| other == name);
    let places = after.iter().map(|name| {
        let unknown =
            || format!("axis `{name}` stands behind the arrow and not before it; name each axis once on each side");
        place(name).ok_or_else(unknown)
    });
    Ok(Order::Names { places: places.collect::<Result<_, _>>()?, rank: before.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, shape: &[usize]) -> Result<Vec<usize>, String> {
        text.parse::<Axes>()?.of(shape)
    }

    #[test]
    fn numbers_letters_and_words_are_one_order() {
        let shape = [2, 3, 4, 5];
        for text in [
            "0,2,3,1",
            "0, 2, 3, 1",
            "-4,2,-1,-3",
            "nchw->nhwc",
            " nchw -> nhwc ",
            "n c h w -> n h w c",
            "batch  channel row_1 col->batch row_1 col channel",
            "0123->0231",
        ] {
            assert_eq!(of(text, &shape), Ok(vec![0, 2, 3, 1]), "{text}");
        }
        assert_eq!(of("", &[]), Ok(vec![]));
        assert_eq!(of("->", &[]), Ok(vec![]));
        assert_eq!(of("-1", &[7]), Ok(vec![0]));
        assert_eq!(of("Nn->nN", &[7, 8]), Ok(vec![1, 0]), "case counts");
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, said) in [
            ("0,0", "`0,0` of shape [3, 4] name axis 0 twice; name each from 0 to 1 once"),
            ("1,-1", "`1,-1` of shape [3, 4] name axis 1 twice"),
            ("0", "`0` of shape [3, 4] leave out axis 1"),
            ("", "`` of shape [3, 4] leave out axis 0"),
            ("0,2", "`0,2` of shape [3, 4] name axis 2, and it has 2 axes"),
            ("0,-3", "`0,-3` of shape [3, 4] name axis -3"),
            ("abc->cba", "`abc->cba` are 3 axes and shape [3, 4] has 2"),
            ("aa->aa", "axis `a` stands twice"),
            ("ab->ba a", "`ab` stands before"),
            ("ab->b", "axis `a` stands before the arrow and not behind it"),
            ("ab->abc", "axis `c` stands behind the arrow and not before it"),
            ("a b -> b c", "axis `a` stands before the arrow"),
            ("a,b->b,a", "`,` is not the name of an axis"),
            ("a b -> (b a)", "`(b` is not the name"),
            ("ab->ba->ab", "`-` is not the name"),
            ("ab", "`ab` is not the number of an axis"),
            ("0 1", "`0 1` is not the number of an axis"),
            ("0,,1", "`` is not the number"),
            ("+1,0", "`+1` is not the number"),
            ("-0,1", "`-0` is not the number"),
            ("0,99999999999999999999", "is not the number"),
            ("0,-9223372036854775808", "name axis -9223372036854775808"),
        ] {
            let error = of(text, &[3, 4]).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
