//! The command that counts the accesses of a small case on the software GPU.

use warpstride::roofline::record::{Group, Subject};

/// Elements that the software GPU moves within a second.
const ELEMENTS: usize = 1 << 16;

/// Returns the command for an operation of `bench`, with extents that are halved until the case is
/// small; `None` for kernels of users and for transposes, which other commands run, for arrays over
/// several GPUs, whose limit is a link, and for drawn permutes, whose views have steps and gaps
/// that no option gives.
pub(super) fn command(subject: &Subject) -> Option<String> {
    let is_given =
        !matches!(subject.group, Group::Kernel | Group::Transpose | Group::Distributed) && subject.steps.is_none();
    let dtype = subject.dtype.filter(|_| is_given)?;
    let shape = smaller(&subject.shape);
    let mut words = match &*shape {
        [elements] => format!("--elements {elements}"),
        _ => format!("--shape {}", listed(&shape)),
    };
    let option = if subject.group == Group::Permute { "axes" } else { "axis" };
    words += &subject.axes.as_ref().map_or(String::new(), |axes| format!(" --{option} {}", listed(axes)));
    words += &subject.step.map_or(String::new(), |step| format!(" --step {step}"));
    words += &match (subject.from, &*subject.op) {
        // Images are always bytes.
        (Some(from), op) if op != "normalize" => format!(" --from {from} --to {dtype}"),
        _ => format!(" --dtype {dtype}"),
    };
    words += &subject.channels.map_or(String::new(), |axis| format!(" --channels {axis}"));
    Some(format!("warpstride --device soft bench {} {words}", subject.op))
}

/// Halves the greatest extent until few elements are left.
fn smaller(shape: &[usize]) -> Vec<usize> {
    let mut shape = shape.to_vec();
    while shape.iter().fold(1_usize, |all, &extent| all.saturating_mul(extent)) > ELEMENTS {
        let Some(greatest) = shape.iter_mut().max() else { break };
        *greatest = greatest.div_ceil(2);
    }
    shape
}

fn listed(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
