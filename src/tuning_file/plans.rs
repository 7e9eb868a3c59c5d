//! The plans that were measured on a GPU: for each work, by a number, the way that was the fastest.

use std::sync::Mutex;

use super::Lines;
use crate::error::counted;
use crate::sync::lock;

/// Most plans of a section. The oldest go.
pub(super) const MAX_PLANS: usize = 1024;
/// Most bytes of the text that names a way.
const LONGEST: usize = 32;
/// The key of a plan's line starts so. The number of the work follows in hexadecimal digits.
const PREFIX: &str = "plan_";

/// The number of a work and the way that was the fastest, the oldest first.
pub(crate) type Plans = Vec<(u64, String)>;

/// Reads the plans of a section's lines.
pub(super) fn read(lines: Lines<'_>) -> Result<Plans, String> {
    let mut plans = Plans::new();
    for (key, way) in lines {
        let digits = key.strip_prefix(PREFIX).filter(|digits| digits.len() == 16);
        let number = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let number = number.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let number = number.ok_or_else(|| format!("`{}` does not name a plan", key.escape_debug()))?;
        let is_way = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_ ".contains(&byte);
        if way.is_empty() || way.len() > LONGEST || !way.bytes().all(is_way) {
            return Err(format!("{} has `{}`, which is not the way of a plan", key.escape_debug(), way.escape_debug()));
        }
        if plans.len() == MAX_PLANS {
            return Err(format!("it has more than {}", counted(MAX_PLANS, "plan")));
        }
        keep(&mut plans, number, way.to_owned());
    }
    Ok(plans)
}

/// Enters a plan, as the latest.
pub(super) fn keep(plans: &mut Plans, number: u64, way: String) {
    plans.retain(|&(known, _)| known != number);
    if plans.len() == MAX_PLANS {
        plans.remove(0);
    }
    plans.push((number, way));
}

/// Returns the lines of plans.
pub(super) fn text(plans: &Plans) -> String {
    plans.iter().map(|(number, way)| format!("{PREFIX}{number:016x} = {way}\n")).collect()
}

/// The plans that were measured on a GPU, as a value that can be copied and compared: the number of
/// a list that never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MeasuredPlans(usize);

/// The lists, each in the order of its numbers. A list stays until the program ends, because any
/// copy of its number may outlive the device.
static LISTS: Mutex<Vec<Plans>> = Mutex::new(Vec::new());

impl MeasuredPlans {
    /// No plans.
    pub(crate) const NONE: Self = Self(0);

    /// Returns the number of a list with these plans.
    pub(crate) fn of(mut plans: Plans) -> Self {
        if plans.is_empty() {
            return Self::NONE;
        }
        plans.sort_unstable();
        let mut lists = lock(&LISTS);
        let known = lists.iter().position(|list| *list == plans);
        Self(
            1 + known.unwrap_or_else(|| {
                lists.push(plans);
                lists.len() - 1
            }),
        )
    }

    /// Returns the way of a work, if `named` knows it.
    #[inline]
    pub(crate) fn way<W>(self, number: impl FnOnce() -> u64, named: fn(&str) -> Option<W>) -> Option<W> {
        if self == Self::NONE { None } else { self.find(number(), named) }
    }

    fn find<W>(self, number: u64, named: fn(&str) -> Option<W>) -> Option<W> {
        let lists = lock(&LISTS);
        let list = lists.get(self.0.checked_sub(1)?)?;
        let place = list.binary_search_by_key(&number, |&(number, _)| number).ok()?;
        named(&list[place].1)
    }

    /// Returns this number's value, for an atomic cell.
    pub(crate) fn number(self) -> usize {
        self.0
    }

    /// Returns the list of a number that [`MeasuredPlans::number`] gave.
    pub(crate) fn from_number(number: usize) -> Self {
        Self(number)
    }
}
