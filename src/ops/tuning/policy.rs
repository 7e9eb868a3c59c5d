//! Says where a policy comes from.

use std::fmt;

use super::measured::Measured;
use crate::ops::Target;

/// Says in a phrase where the thresholds of a target's plans come from ([`Target::policy`]).
///
/// ```
/// use warpstride::ops::Target;
///
/// let mut target = Target::new((8, 6));
/// target.l2_bytes = 6 << 20;
/// assert_eq!(target.policy().to_string(), "by a rule for compute capability 8.6 with 6.3 MB of L2 cache");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    target: Target,
    measured: Option<&'static Measured>,
}

impl Target {
    /// Says where the thresholds of plans for this target come from.
    pub fn policy(self) -> Policy {
        Policy { target: self, measured: Measured::find(self) }
    }
}

impl Policy {
    /// Returns the name in JSON: `tuned` if `bench --tune` found numbers on the GPU, `measured` if
    /// this crate has a policy that was measured on such a GPU, else `rule`.
    pub(crate) fn name(&self) -> &'static str {
        match (self.by_tuning(), self.measured) {
            (Some(_), _) => "tuned",
            (None, Some(_)) => "measured",
            (None, None) => "rule",
        }
    }

    /// Names what `bench --tune` found on the GPU.
    fn by_tuning(&self) -> Option<&'static str> {
        match (self.target.tuned, self.target.weights) {
            (Some(_), Some(_)) => Some("tiles, blocks and estimates"),
            (Some(_), None) => Some("tiles and blocks"),
            (None, Some(_)) => Some("estimates"),
            (None, None) => None,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { compute_capability: (major, minor), bandwidth_per_multiprocessor, l2_bytes, .. } = self.target;
        if let Some(tuned) = self.by_tuning() {
            write!(f, "{tuned} by bench --tune, and the rest ")?;
        }
        match self.measured {
            Some(row) => write!(f, "measured on {}", row.gpu),
            None => {
                write!(f, "by a rule for compute capability {major}.{minor}")?;
                let figures =
                    [(l2_bytes, 1e6, "MB of L2 cache"), (bandwidth_per_multiprocessor, 1e9, "GB/s a multiprocessor")];
                let mut known = figures.into_iter().filter(|&(figure, ..)| figure != 0);
                let mut before = " with ";
                known.try_for_each(|(figure, unit, name)| {
                    write!(f, "{before}{:.1} {name}", figure as f64 / unit)?;
                    before = " and ";
                    Ok(())
                })
            }
        }
    }
}
