//! A run for its readers: a sentence before the figures, and the build and the device behind them.

use super::Run;
use warpstride::roofline::record::Group;

/// The heading of [`foot`].
pub(crate) const FOOT: &str = "Build and device";

/// A case's ceiling, which stands before the figures.
const CEILING: &str = "A case's ceiling is the fastest speed that a plain read, write or copy kernel reached on this GPU with the same mix \
                       of reads and writes.";

/// Says in two sentences what the cases are, unless all are kernels of users, and what a ceiling
/// is, if they have any.
pub(crate) fn lead(run: &Run) -> Option<String> {
    let ceiling = run.cases.iter().any(|case| case.fraction_of_ceiling.is_some()).then_some(CEILING);
    let said: Vec<&str> = cases(run).into_iter().chain(ceiling).collect();
    (!said.is_empty()).then(|| said.join(" "))
}

fn cases(run: &Run) -> Option<&'static str> {
    run.cases.iter().any(|case| case.subject.group != Group::Kernel).then(|| {
        if run.has_times() {
            "warpstride times kernels that copy, transpose and convert arrays. Each timing is a case."
        } else {
            "warpstride counts the accesses of kernels that copy, transpose and convert arrays. Each count is a case."
        }
    })
}

/// The build and the device, each with its label.
pub(crate) fn foot(run: &Run) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(ptx) = &run.ptx {
        lines.push(("kernels", kernels(ptx, &run.device.kind)));
    }
    if let Some(policy) = &run.policy {
        lines.push(("choice of kernels", format!("by thresholds, {policy}")));
    }
    if let Some(clocks) = run.clocks {
        let throttled = if clocks.are_throttled() { ", throttled" } else { "" };
        lines.push((
            "clocks at the end",
            format!(
                "multiprocessors {} of {} MHz, memory {} MHz{throttled}",
                clocks.sm_mhz, clocks.sm_max_mhz, clocks.memory_mhz
            ),
        ));
    }
    lines
}

/// The source of the kernels. A target, such as `sm_75`, is the least of their PTX, which a driver
/// compiles for its GPU.
fn kernels(ptx: &str, kind: &str) -> String {
    let part = |part: &str| match part.strip_prefix("sm_").filter(|_| kind == "cuda") {
        Some(target) => format!("PTX for compute_{target}, which the driver compiled for this GPU"),
        None => part.into(),
    };
    ptx.split(", ").map(part).collect::<Vec<_>>().join(", ")
}
