//! Exact decimal numbers: a bound of `1.15 * 100` is 115, which no float makes it.

use std::cmp::Ordering;
use std::fmt;

/// The most digits of a number in the text.
const MAX_DIGITS: usize = 18;

/// `digits / 10^places`; the last digit is not 0 where there are places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u128,
    places: u32,
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Self {
        Self { digits: value.into(), places: 0 }
    }
}

impl Decimal {
    /// Reads `12` or `1.25`; `None` where that is not a number or has too many digits.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_whole = !text.contains('.');
        if !is_number(whole) || !(is_whole || is_number(fraction)) || whole.len() + fraction.len() > MAX_DIGITS {
            return None;
        }
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Some(Self::shortest(digits, fraction.len() as u32))
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        Some(Self::shortest(self.digits.checked_mul(other.digits)?, self.places.checked_add(other.places)?))
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let [left, right] = Self::aligned(self, other)?;
        Some(Self::shortest(left.checked_add(right)?, self.places.max(other.places)))
    }

    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        Self::aligned(self, other).map(|[left, right]| left.cmp(&right))
    }

    fn shortest(mut digits: u128, mut places: u32) -> Self {
        if digits == 0 {
            places = 0;
        }
        while places > 0 && digits.is_multiple_of(10) {
            (digits, places) = (digits / 10, places - 1);
        }
        Self { digits, places }
    }

    /// The digits of both at the same number of places.
    fn aligned(left: Self, right: Self) -> Option<[u128; 2]> {
        let places = left.places.max(right.places);
        let at = |number: Self| number.digits.checked_mul(10_u128.checked_pow(places - number.places)?);
        Some([at(left)?, at(right)?])
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.places as usize;
        let digits = format!("{:0width$}", self.digits, width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        if places == 0 { f.write_str(whole) } else { write!(f, "{whole}.{fraction}") }
    }
}
