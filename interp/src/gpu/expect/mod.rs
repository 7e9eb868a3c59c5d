//! Expectations of the memory accesses of a launch: comparisons of its counters, as text.
//!
//! [`assert_access!`](crate::assert_access) holds a report to them in a test, and `warpstride
//! check` in a shell. Both show one table, [`Verdicts`].
//!
//! ```
//! use warpstride_interp::{Args, Config, Memory, Module, run};
//! use warpstride_interp::launch_shape::LaunchShape;
//!
//! let text = "
//!     .version 7.0
//!     .target sm_80
//!     .address_size 64
//!     .visible .entry index(.param .u64 out) {
//!         .reg .b32 %r<2>;
//!         .reg .b64 %rd<3>;
//!         ld.param.u64 %rd1, [out];
//!         mov.u32 %r1, %tid.x;
//!         mad.wide.u32 %rd2, %r1, 4, %rd1;
//!         st.global.u32 [%rd2], %r1;
//!         ret;
//!     }";
//! let module = Module::parse(text)?;
//! let kernel = module.kernel("index").expect("it is there");
//! let memory = Memory::new(1 << 20);
//! let params = Args::new(kernel).value(memory.upload(&[0_u32; 64])?)?.finish()?;
//! let shape = LaunchShape { grid: [1, 1, 1], block: [64, 1, 1], dynamic_shared: 0 };
//! let report = run(kernel, &shape, &params, &memory, &Config::default()).map_err(|stop| *stop)?;
//! warpstride_interp::assert_access!(report, "store.sectors <= ideal", "load.requests == 0");
//! # Ok::<(), warpstride_interp::Error>(())
//! ```
//!
//! # The grammar
//!
//! ```text
//! expectation = counter comparison sum        store.sectors <= 1.0 * ideal
//! counter     = name | worst_line ( name )    load.requests, worst_line(store.sectors)
//! comparison  = == | != | < | <= | > | >=
//! sum         = product { + product }         2 * ideal + 16
//! product     = factor { * factor }
//! factor      = number | ideal | counter      0, 1.25, ideal, load.requests
//! ```
//!
//! A `?` in place of a number stands for a prediction that is not typed yet: an expectation with it
//! is refused in a sentence that asks for the number.
//!
//! A number has digits, and may have a point: 18 digits at most. The comparison is exact, also for
//! fractions: 115 is not greater than `1.15 * 100`.
//!
//! `ideal` is what the accesses of the counter on the left would take if the bytes of their lanes
//! lay side by side, or what they took if that is less: the sum of
//! [`ideal_sectors`] for `sectors`, and of [`ideal_wavefronts`] for `wavefronts`. The other
//! counters have none. The loads of a loop that replaces an atomic add their wavefronts without the
//! bank conflicts to the ideal of `shared_load`.
//!
//! | counters | of |
//! |---|---|
//! | `global_load.*`, `shared_store.*` and so on | a kind of access: a member of [`Counters`] |
//! | `load.*`, `store.*` | `global_load` and `global_store` |
//! | `shared.*` | `shared_load` and `shared_store` together |
//! | `thread_instructions` | all instructions, counted once for every active lane |
//! | `shared_bytes` | the shared memory of a block, static and dynamic |
//! | `worst_line(C)` | the line of the source that wastes most by the counter C |
//!
//! In global memory `*` is `instructions`, `requests` or `sectors`, and in shared memory
//! `instructions`, `wavefronts` or `bank_conflicts`: see [`crate::counters`].
//!
//! `worst_line(store.sectors)` is the number of the line that [`Report::lines`] shows with the most
//! sectors beyond their ideal: of equal ones the first, and 0 where no line has any. It takes
//! `sectors`, `wavefronts` and `bank_conflicts` of any accesses.
//!
//! [`Counters`]: crate::counters::Counters
//! [`ideal_sectors`]: crate::counters::InstructionCounters::ideal_sectors
//! [`ideal_wavefronts`]: crate::counters::InstructionCounters::ideal_wavefronts

mod counter;
mod decimal;
mod parse;
mod table;

use std::fmt;
use std::str::FromStr;

use super::invalid;
use super::report::Report;
use crate::error::{Error, Result};
use counter::Counter;
use decimal::Decimal;

pub use table::{Verdict, Verdicts};

/// The most bytes of an expectation.
pub const MAX_EXPECTATION_BYTES: usize = 1000;

/// A comparison of a counter with a formula. Its text form is in the [grammar](self).
///
/// ```
/// use warpstride_interp::expect::Expectation;
///
/// let expectation: Expectation = "shared.bank_conflicts == 0".parse()?;
/// assert_eq!(expectation.to_string(), "shared.bank_conflicts == 0");
/// let error = "shared.conflicts == 0".parse::<Expectation>().unwrap_err();
/// assert!(error.to_string().contains("use instructions, wavefronts or bank_conflicts"));
/// # Ok::<(), warpstride_interp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// As it was written, with single spaces.
    text: String,
    counter: Counter,
    comparison: Comparison,
    /// The sum on the right: products of factors.
    sum: Vec<Vec<Factor>>,
}

/// A comparison: its sign, and whether it holds for a number that is less, equal, or greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Comparison {
    sign: &'static str,
    holds: [bool; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Factor {
    Number(Decimal),
    Ideal,
    Counter(Counter),
}

const COMPARISONS: [Comparison; 6] = [
    Comparison { sign: "==", holds: [false, true, false] },
    Comparison { sign: "!=", holds: [true, false, true] },
    Comparison { sign: "<", holds: [true, false, false] },
    Comparison { sign: "<=", holds: [true, true, false] },
    Comparison { sign: ">", holds: [false, false, true] },
    Comparison { sign: ">=", holds: [false, true, true] },
];

impl FromStr for Expectation {
    type Err = Error;

    /// # Errors
    ///
    /// `InvalidArgument` with the reason if the text is not in the [grammar](self), or has more
    /// than [`MAX_EXPECTATION_BYTES`].
    fn from_str(text: &str) -> Result<Self> {
        parse::expectation(text)
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expectation {
    fn judge(&self, report: &Report) -> Result<Verdict> {
        let (found, ideal) = (self.counter.value(report)?, self.counter.ideal(report));
        let wanted = self.wanted(report, ideal)?;
        let wanted = wanted.and_then(|wanted| Some((wanted, Decimal::from(found).compare(wanted)?)));
        let Some((wanted, order)) = wanted else {
            return Err(invalid(format!(
                "the right side of `{self}` has more digits than can be computed exactly; use smaller or shorter numbers"
            )));
        };
        Ok(Verdict {
            expectation: self.text.clone(),
            found: found.to_string(),
            wanted: format!("{} {wanted}", self.comparison.sign),
            of_ideal: ideal.filter(|&ideal| ideal > 0).map(|ideal| found as f64 / ideal as f64),
            held: self.comparison.holds[(order as i8 + 1) as usize],
        })
    }

    /// The value of the right side; `None` where it has too many digits.
    fn wanted(&self, report: &Report, ideal: Option<u64>) -> Result<Option<Decimal>> {
        let value = |factor: &Factor| {
            Ok(match *factor {
                Factor::Number(number) => number,
                // The parser refuses `ideal` where the counter has none.
                Factor::Ideal => ideal.unwrap_or_default().into(),
                Factor::Counter(counter) => counter.value(report)?.into(),
            })
        };
        let values = |factors: &Vec<Factor>| factors.iter().map(value).collect::<Result<Vec<_>>>();
        let products = self.sum.iter().map(values).collect::<Result<Vec<_>>>()?;
        let product = |factors: Vec<Decimal>| factors.into_iter().try_fold(Decimal::from(1), Decimal::times);
        Ok(products.into_iter().try_fold(Decimal::from(0), |sum, factors| sum.plus(product(factors)?)))
    }
}

impl Verdicts {
    /// Holds a report to expectations.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the right side of one has more digits than can be computed exactly, or
    /// if one asks for the worst line of PTX that has no lines of its source.
    pub fn of(report: &Report, expectations: &[Expectation]) -> Result<Self> {
        let rows = expectations.iter().map(|expectation| expectation.judge(report)).collect::<Result<_>>()?;
        Ok(Self { rows })
    }
}

/// Holds a report to expectations in their text form. [`assert_access!`](crate::assert_access)
/// panics where one of them does not hold.
///
/// # Errors
///
/// `InvalidArgument` if a text is not in the [grammar](self), and for the reasons of
/// [`Verdicts::of`].
pub fn judge<S: AsRef<str>>(report: &Report, expectations: &[S]) -> Result<Verdicts> {
    let parsed: Vec<Expectation> = expectations.iter().map(|text| text.as_ref().parse()).collect::<Result<_>>()?;
    Verdicts::of(report, &parsed)
}

/// Panics with a table unless the report of a launch on the software GPU holds every expectation.
///
/// The first operand is an [`interp::Report`](crate::gpu::Report), or a reference to one. The
/// others are texts in the grammar of [`interp::expect`](crate::gpu::expect), which has an
/// example. The table names each expectation, the figure found and the one wanted.
///
/// # Panics
///
/// If an expectation does not hold, or is not in the grammar.
#[macro_export]
macro_rules! assert_access {
    ($report:expr, $($expectation:expr),+ $(,)?) => {
        match $crate::expect::judge(&$report, &[$(::core::convert::AsRef::<str>::as_ref(&$expectation)),+]) {
            ::core::result::Result::Ok(verdicts) if verdicts.all_held() => {}
            ::core::result::Result::Ok(verdicts) => {
                ::core::panic!("the memory accesses fell short of an expectation\n{verdicts}")
            }
            ::core::result::Result::Err(error) => ::core::panic!("{error}"),
        }
    };
}
