//! Permutes of a list, drawn or from a file, with the arrays that they read and write.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use warpstride::element::{DType, Element};
use warpstride::error::{Error, counted};
use warpstride::layout::Layout;
use warpstride::roofline::record::{Group, Record, Subject};
use warpstride::view::{View, ViewMut};

use super::{drawn, shrink};
use crate::{array_bytes, input, refuse, require};

/// Bytes of a list, far more than 1000 cases have.
const MAX_BYTES: usize = 1 << 20;
/// Cases of a list, as of drawn ones.
const MOST_CASES: usize = 1000;

/// A permute as `cases.json` and the lists of users describe it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    /// A name for readers.
    #[serde(default, rename = "name")]
    _name: Option<String>,
    /// The sort of its shape.
    #[serde(default)]
    kind: String,
    pub(super) dtype: DType,
    /// Extents of the view that is read.
    pub(super) shape: Vec<usize>,
    /// The axes of the view in the order of the result.
    pub(super) axes: Vec<usize>,
    /// Along each axis, the step from index to index of the array, as in [`drawn::Case`].
    steps: Option<Vec<isize>>,
    /// Extents of the array that the view is of, where it has more than the view.
    within: Option<Vec<usize>>,
    /// Extents of the array that the result is a part of.
    into: Option<Vec<usize>>,
    /// Elements before both arrays.
    #[serde(default)]
    start: usize,
}

impl From<drawn::Case> for Listed {
    fn from(drawn::Case { name, kind, dtype, shape, axes, steps }: drawn::Case) -> Self {
        let kind = kind.name();
        Self { _name: Some(name), kind, dtype, shape, axes, steps, within: None, into: None, start: 0 }
    }
}

/// Reads a list. No two cases are one.
pub(super) fn read(path: &Path) -> Result<Vec<Listed>> {
    let (text, file) = (input::read(path, MAX_BYTES, "a list of permutes")?, path.display());
    let listed = match serde_json::from_slice::<Vec<Listed>>(&text) {
        Ok(listed) => listed,
        Err(why) => {
            refuse!(Io, "{file} is not a list of permutes as `bench permute --random 1,20 --cases` prints it: {why}")
        }
    };
    let count = counted(listed.len(), "case");
    require!(
        (1..=MOST_CASES).contains(&listed.len()),
        InvalidArgument,
        "{file} has {count}; a list has 1 to {MOST_CASES}"
    );
    let mut names = HashSet::new();
    for (at, case) in listed.iter().enumerate() {
        let checked = Task::new(case, usize::MAX).and_then(|task| task.layouts().map(|_| task.name));
        let name = checked.with_context(|| format!("{file}, case {at}, counted from 0"))?;
        require!(!names.contains(&name), InvalidArgument, "{file} has `{name}` twice; leave one out");
        names.insert(name);
    }
    Ok(listed)
}

/// The permutes of a list. Of those that are one once none has more than `most` elements, the first
/// stands for all.
pub(crate) fn tasks(listed: &[Listed], most: usize) -> Result<Vec<Task>> {
    let mut tasks = listed.iter().map(|case| Task::new(case, most)).collect::<Result<Vec<_>>>()?;
    let mut names = HashSet::new();
    tasks.retain(|task| names.insert(task.name.clone()));
    Ok(tasks)
}

/// An array in C order behind some elements, and the view of it that a permute reads or writes.
#[derive(Debug, PartialEq)]
struct Side {
    start: usize,
    extents: Vec<usize>,
    /// Along each axis, the indices that the view is of, from 0, and its step.
    cuts: Vec<(usize, isize)>,
}

/// Cuts the view of a side out of an array that comes as one axis: of a layout, or of device
/// memory.
macro_rules! cut {
    ($side:expr, $array:expr) => {{
        let Side { start, extents, cuts } = $side;
        let whole = $array.slice(0, *start.., 1)?.split_axis(0, extents)?;
        cuts.iter().enumerate().try_fold(whole, |view, (axis, &(end, step))| view.slice(axis, ..end, step))
    }};
}

impl Side {
    /// Makes a view of these spans, each `step` apart, with `gaps` behind them.
    fn new(start: usize, cuts: Vec<(usize, isize)>, gaps: &[usize]) -> Result<Self> {
        let extents: Option<Vec<usize>> = cuts.iter().zip(gaps).map(|((end, _), gap)| end.checked_add(*gap)).collect();
        let extents = extents.context("the extents are too large for an address; use smaller ones")?;
        Ok(Self { start, extents, cuts })
    }

    /// Elements of the array and before it.
    fn len(&self) -> usize {
        self.extents.iter().fold(1, |len: usize, &extent| len.saturating_mul(extent)).saturating_add(self.start)
    }

    fn layout(&self) -> Result<Layout, Error> {
        cut!(self, Layout::row_major(&[self.len()])?)
    }
}

/// A permute that is measured.
#[derive(Debug, PartialEq)]
pub(crate) struct Task {
    /// The name of its record; no other case of a list has it.
    pub(crate) name: String,
    /// The sort of its shape.
    pub(super) kind: String,
    pub(super) subject: Subject,
    axes: Vec<usize>,
    from: Side,
    into: Side,
}

impl Task {
    /// Checks a case. An array of more than `most` elements is halved along its longest axis until
    /// it has fewer; what lies between its elements stays.
    fn new(listed: &Listed, most: usize) -> Result<Self> {
        let Listed { kind, dtype, shape, axes, steps, within, into, start, .. } = listed;
        let rank = shape.len();
        require!(!shape.contains(&0), InvalidArgument, "the shape {shape:?} has no elements; give extents from 1");
        let order = Layout::row_major(shape)?.permuted_axes(axes)?;
        let steps_of = steps.clone().unwrap_or_else(|| vec![1; rank]);
        require!(
            steps_of.len() == rank && !steps_of.contains(&0),
            InvalidArgument,
            "the steps {steps_of:?} are not those of {}; give a step other than 0 for each",
            counted(rank, "axis")
        );
        let spans = |shape: &[usize]| -> Result<Vec<(usize, isize)>> {
            let span = |(&extent, &step): (&usize, &isize)| Some((extent.checked_mul(step.unsigned_abs())?, step));
            let spans = shape.iter().zip(&steps_of).map(span).collect::<Option<_>>();
            spans.context("the elements lie too far apart for an address; use smaller steps")
        };
        let needed: Vec<usize> = spans(shape)?.into_iter().map(|(span, _)| span).collect();
        let (before, behind) = (gaps(within.as_deref(), &needed)?, gaps(into.as_deref(), order.shape())?);
        let mut shape = shape.clone();
        shrink(&mut shape, most);
        let from = Side::new(*start, spans(&shape)?, &before)?;
        let results: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
        let into = Side::new(*start, results.iter().map(|&extent| (extent, 1)).collect(), &behind)?;
        for side in [&from, &into] {
            array_bytes(&[side.len()], *dtype)?;
        }
        let bytes = array_bytes(&shape, *dtype)? as u64;
        let subject = Subject::new(Group::Permute, "permute", *dtype, &shape, [bytes; 2]);
        let subject = Subject { axes: Some(axes.clone()), steps: steps.clone(), ..subject };
        let name = subject.name() + &around(*start, [&from, &into], [&before, &behind]);
        Ok(Self { name, kind: kind.clone(), subject, axes: axes.clone(), from, into })
    }

    /// Makes the permute that was measured, if a record tells all of it.
    pub(crate) fn of_record(record: &Record) -> Option<Self> {
        let Subject { op, dtype, shape, axes, steps, .. } = &record.subject;
        let listed = Listed {
            _name: None,
            kind: String::new(),
            dtype: (*dtype).filter(|_| op == "permute")?,
            shape: shape.clone(),
            axes: axes.clone()?,
            steps: steps.clone(),
            within: None,
            into: None,
            start: 0,
        };
        Self::new(&listed, usize::MAX).ok().filter(|task| task.name == record.name)
    }

    /// The type of the elements.
    pub(crate) fn dtype(&self) -> DType {
        self.subject.dtype.unwrap_or(DType::U8)
    }

    /// Elements of the arrays that the views are of: the source's, and the result's.
    pub(crate) fn storage_lens(&self) -> [usize; 2] {
        [&self.from, &self.into].map(Side::len)
    }

    /// The layouts of both views, with the axes of the result.
    pub(crate) fn layouts(&self) -> Result<[Layout; 2]> {
        Ok([self.from.layout()?.permuted_axes(&self.axes)?, self.into.layout()?])
    }

    /// The view that is read, of an array that comes as one axis.
    pub(crate) fn source<'a, T: Element>(&self, array: View<'a, T>) -> Result<View<'a, T>, Error> {
        cut!(&self.from, array)?.permuted_axes(&self.axes)
    }

    /// The view that is written, of an array that comes as one axis.
    pub(crate) fn result<'a, T: Element>(&self, array: ViewMut<'a, T>) -> Result<ViewMut<'a, T>, Error> {
        cut!(&self.into, array)
    }
}

/// The indices of an array beyond those that a view needs, along each axis.
fn gaps(extents: Option<&[usize]>, needed: &[usize]) -> Result<Vec<usize>> {
    let extents = extents.unwrap_or(needed);
    let gaps: Option<Vec<usize>> = extents.iter().zip(needed).map(|(have, need)| have.checked_sub(*need)).collect();
    match gaps.filter(|_| extents.len() == needed.len()) {
        Some(gaps) => Ok(gaps),
        None => refuse!(
            InvalidArgument,
            "an array of extents {extents:?} does not hold a view of {needed:?}; give an extent for each axis, as long at least"
        ),
    }
}

/// The part of a name that says what lies around the views.
fn around(start: usize, sides: [&Side; 2], gaps: [&[usize]; 2]) -> String {
    let mut text = String::new();
    for ((word, side), gaps) in ["within", "into"].into_iter().zip(sides).zip(gaps) {
        if gaps.iter().any(|&gap| gap > 0) {
            let extents: Vec<String> = side.extents.iter().map(ToString::to_string).collect();
            text += &format!(" {word} {}", extents.join("x"));
        }
    }
    if start > 0 { text + &format!(" behind {start}") } else { text }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use warpstride::device::{Backend, Device};
    use warpstride::ops::{Align, PermutePlan, Plan, Target};
    use warpstride::random::SplitMix64;

    use super::super::drawn::{Sizes, cases};
    use super::*;

    const MOST_BYTES: usize = 1 << 30;

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    fn names(listed: &[Listed]) -> Vec<String> {
        tasks(listed, usize::MAX).expect("cases").into_iter().map(|task| task.name).collect()
    }

    #[test]
    fn the_guard_has_600_permutes_that_are_planned_and_those_of_the_other_lists() {
        let guard = read(&repository().join("benches/guard/cases.json")).expect("a list");
        let device = Device::open(Backend::Soft).expect("the software GPU is always there");
        let (align, target) = (Align::ALLOCATION, Target::of(&device));
        for task in tasks(&guard, usize::MAX).expect("cases") {
            let width = task.dtype().width();
            assert!(task.storage_lens().into_iter().all(|len| (len - 64) * width <= MOST_BYTES), "{}", task.name);
            let [source, result] = task.layouts().expect("layouts");
            let plan = PermutePlan::new(&source, align, &result, align, width, target).expect("a plan");
            assert!(plan.explain().verdicts.iter().any(|verdict| verdict.takes), "{}", task.name);
        }
        let guard = names(&guard);
        assert_eq!(guard.len(), 600);
        for (file, at) in [("cli/src/bench/cases.json", 0), ("benches/cases-more.json", 15)] {
            let names = names(&read(&repository().join(file)).expect("a list"));
            assert_eq!(guard[at..at + names.len()], names, "{file}: run benches/guard/list.py");
        }
        let drawn: Vec<Listed> = cases(31_415_927, 300, Sizes::TIMED).into_iter().map(Into::into).collect();
        assert_eq!(guard[90..390], names(&drawn));
    }

    #[test]
    fn a_view_lies_in_its_array_and_keeps_its_gaps_where_it_is_cut() {
        let text = r#"{"dtype": "u8", "shape": [2, 40], "axes": [1, 0], "steps": [-2, 1], "within": [5, 48], "into": [40, 3],
                       "start": 7}"#;
        let listed: Listed = serde_json::from_str(text).expect("a case");
        let whole = Task::new(&listed, usize::MAX).expect("a case");
        assert_eq!(whole.name, "permute u8 2x40 by 1,0 steps -2,1 within 5x48 into 40x3 behind 7");
        let [source, result] = whole.layouts().expect("layouts");
        assert_eq!(whole.storage_lens(), [7 + 5 * 48, 7 + 40 * 3]);
        // The last of the four rows that the steps span.
        assert_eq!((source.shape(), source.strides(), source.offset()), (&[40, 2][..], &[1, -96][..], 7 + 3 * 48));
        assert_eq!((result.shape(), result.strides(), result.offset()), (&[40, 2][..], &[3, 1][..], 7));
        let cut = Task::new(&listed, 40).expect("a case");
        assert_eq!(cut.name, "permute u8 2x20 by 1,0 steps -2,1 within 5x28 into 20x3 behind 7");
    }

    #[test]
    fn no_list_of_any_numbers_panics() {
        let mut random = SplitMix64(36);
        let (mut good, count) = (0, 20_000);
        for _ in 0..count {
            let mut number = |most: u64| match random.below(60) {
                0 => i64::MIN.saturating_add_unsigned(random.below(3)),
                1 => i64::MAX.saturating_sub_unsigned(random.below(3)),
                2 => random.draw() as i64 >> random.below(64),
                _ => random.below(most) as i64,
            };
            let shape = [(); 3].map(|()| number(9).unsigned_abs());
            let steps = [(); 3].map(|()| number(4).saturating_sub(1));
            let extents = [(); 2].map(|_| [(); 3].map(|()| number(40).unsigned_abs()));
            let [within, into] = extents;
            let axes = if number(9) > 0 { [2, 0, 1] } else { [0, 0, 1] };
            let case = serde_json::json!({
                "dtype": "c128", "shape": shape, "axes": axes, "steps": steps, "within": within, "into": into,
                "start": number(3).unsigned_abs(),
            });
            let listed: Listed = serde_json::from_value(case).expect("numbers");
            for most in [usize::MAX, 16] {
                good += usize::from(Task::new(&listed, most).and_then(|task| task.layouts()).is_ok());
            }
        }
        assert!((100..2 * count).contains(&good), "{good} of {count} lists are right");
    }
}
