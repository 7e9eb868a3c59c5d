//! Questions whose answers the machine computes: by the crate's own layouts, and by the model of an
//! H100 from counters of the software GPU.
//!
//! A `quiz.toml` has a list of questions. Each has a text `ask`, an `answer` that the learner types
//! over its `"?"`, and what the truth is computed from:
//!
//! ```toml
//! [[questions]]
//! ask = "A matrix of 4 x 6 numbers in C order is transposed as a view. What are its strides?"
//! answer = "?"
//! layout = { shape = [4, 6], views = ["t"], asks = "strides" }
//!
//! [[questions]]
//! ask = "What bounds the naive transpose of a 4096 x 4096 matrix of f32 on an H100?"
//! answer = "?"
//! model = { variant = "naive", shape = [4096, 4096], dtype = "f32", asks = "bound" }
//! ```
//!
//! A `layout` is an array of `shape` in C order, after `views`: `"t"`, `{ permute = [0, 2, 1] }`,
//! `{ slice = { axis = 0, from = 1, to = 5, step = 2 } }` (which may leave out `from`, `to` and
//! `step`), `{ reverse = 0 }` and `{ broadcast = [4, 6] }`. It asks for `strides`, `shape`,
//! `offset`, `is_standard_layout`, `is_contiguous`, `overlaps` or `{ position = [1, 2] }`, which is
//! the place of that index in the storage. A `model` is a transpose of a matrix by `variant`, or
//! `copy`. It asks for `bytes`, `ms`, `gbps`, `fraction` (of the speed of a copy) or `bound`.

use std::fmt::Write;

use anyhow::Result;
use serde::Deserialize;
use toml::{Spanned, Value};
use warpstride::counters::Counters;
use warpstride::device::{Backend, Device};
use warpstride::element::{DType, Element};
use warpstride::error::counted;
use warpstride::layout::Layout;
use warpstride::ops::{self, Plan, TransposePlan, Variant};
use warpstride::roofline::model::{Bound, DeviceModel, Prediction};

use super::super::{by_width, refuse, require};

/// Most bytes of a file.
const MAX_BYTES: usize = 1 << 16;
const MAX_QUESTIONS: usize = 32;
/// Most characters of a question or an answer.
const MAX_TEXT: usize = 1000;
const MAX_VIEWS: usize = 16;
/// Most rows, and columns, of a modelled matrix: its counters fit 64 bits by far.
const MAX_EXTENT: usize = 1 << 16;
/// Rows, and columns, of the part of a modelled matrix that the software GPU counts.
const COUNTED: usize = 512;
/// The part by which a computed number may be off.
const TOLERANCE: f64 = 0.02;
/// Fractions are of this model's copy.
const MODEL: DeviceModel = DeviceModel::H100;

/// A quiz: the lesson's own, or the learner's copy with answers.
#[derive(Debug)]
pub(super) struct Quiz {
    questions: Vec<Question>,
}

#[derive(Debug)]
pub(super) struct Question {
    ask: String,
    answer: String,
    subject: Subject,
}

/// What a learner's answer is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Right,
    /// It was not typed yet; the sentence says how to type it.
    Missing(String),
    /// It is of no form that the question takes; the sentence says which those are.
    Unread(String),
    /// The sentence says what is wrong, and does not say the truth.
    Wrong(String),
}

#[derive(Debug)]
enum Subject {
    Layout {
        /// What each view makes, with the view as it is written; the first is the array itself.
        views: Vec<(String, Layout)>,
        asks: LayoutAsks,
    },
    Model {
        kernel: Kernel,
        shape: [usize; 2],
        dtype: DType,
        asks: ModelAsks,
    },
}

#[derive(Debug, Clone, Copy)]
enum Kernel {
    Copy,
    Transpose(Variant),
}

/// The truth, or an answer of its kind.
#[derive(Debug, Clone, PartialEq)]
enum Truth {
    List(Vec<i64>),
    Whole(u64),
    Yes(bool),
    /// A number of a unit, which may be off a little.
    About(f64, &'static str),
    Fraction(f64),
    Bound(Bound),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    questions: Vec<Spanned<QuestionTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuestionTable {
    ask: String,
    /// Text, or the number, list or truth value that a learner types without quotes.
    answer: Value,
    layout: Option<LayoutTable>,
    model: Option<ModelTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayoutTable {
    shape: Vec<usize>,
    #[serde(default)]
    views: Vec<ViewTable>,
    asks: LayoutAsks,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ViewTable {
    T,
    Permute(Vec<usize>),
    Slice(SliceTable),
    Reverse(usize),
    Broadcast(Vec<usize>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SliceTable {
    axis: usize,
    from: Option<usize>,
    to: Option<usize>,
    step: Option<isize>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LayoutAsks {
    Strides,
    Shape,
    Offset,
    IsStandardLayout,
    IsContiguous,
    Overlaps,
    Position(Vec<usize>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelTable {
    variant: String,
    shape: [usize; 2],
    dtype: String,
    asks: ModelAsks,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ModelAsks {
    Bytes,
    Ms,
    Gbps,
    Fraction,
    Bound,
}

impl Quiz {
    /// Reads a quiz. An error names the line, not the file.
    pub(super) fn parse(text: &str) -> Result<Self> {
        require!(
            text.len() <= MAX_BYTES,
            InvalidArgument,
            "a quiz has at most {MAX_BYTES} bytes, and this has {}",
            text.len()
        );
        let line = |at: usize| 1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        let table: Table = match toml::from_str(text) {
            Ok(table) => table,
            Err(error) => {
                let place = error.span().map_or(String::new(), |span| place(text, line(span.start)));
                refuse!(InvalidArgument, "{place}{}", plain(error.message()))
            }
        };
        let count = table.questions.len();
        require!(
            (1..=MAX_QUESTIONS).contains(&count),
            InvalidArgument,
            "a quiz has 1 to {MAX_QUESTIONS} questions, and this has {count}"
        );
        let question = |table: Spanned<QuestionTable>| {
            let at = line(table.span().start);
            table.into_inner().question().map_err(|error| error.context(format!("the question of line {at}")))
        };
        Ok(Self { questions: table.questions.into_iter().map(question).collect::<Result<_>>()? })
    }

    pub(super) fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Returns the answer to a question of the lesson's own quiz, where this is the learner's copy;
    /// `None` where the learner took the question out, or put it in other words.
    pub(super) fn answer_to(&self, question: &Question) -> Option<&str> {
        self.questions.iter().find(|own| own.ask == question.ask).map(|own| own.answer.as_str())
    }
}

impl QuestionTable {
    fn question(self) -> Result<Question> {
        let answer = match self.answer {
            Value::String(text) => text,
            // As JSON, which numbers, lists and truth values have in common with TOML.
            other => serde_json::json!(other).to_string(),
        };
        for (key, text) in [("ask", &self.ask), ("answer", &answer)] {
            let length = text.chars().count();
            require!(length <= MAX_TEXT, InvalidArgument, "`{key}` has {length} characters; use at most {MAX_TEXT}");
        }
        let subject = match (self.layout, self.model) {
            (Some(layout), None) => layout.subject()?,
            (None, Some(model)) => model.subject()?,
            _ => refuse!(InvalidArgument, "give either `layout` or `model`"),
        };
        Ok(Question { ask: self.ask, answer, subject })
    }
}

impl LayoutTable {
    fn subject(self) -> Result<Subject> {
        let count = self.views.len();
        require!(count <= MAX_VIEWS, InvalidArgument, "`views` has {count}; use at most {MAX_VIEWS}");
        let mut layout = Layout::row_major(&self.shape)?;
        let mut views = vec![(format!("shape {:?} in C order", self.shape), layout)];
        for view in &self.views {
            layout = view.of(layout)?;
            views.push((view.written(), layout));
        }
        if let LayoutAsks::Position(index) = &self.asks {
            let shape = layout.shape();
            require!(layout.offset_of(index).is_some(), InvalidArgument, "index {index:?} is not in shape {shape:?}");
        }
        Ok(Subject::Layout { views, asks: self.asks })
    }
}

impl ViewTable {
    fn of(&self, layout: Layout) -> Result<Layout> {
        Ok(match self {
            Self::T => layout.t(),
            Self::Permute(axes) => layout.permuted_axes(axes)?,
            Self::Reverse(axis) => layout.reverse(*axis)?,
            Self::Broadcast(shape) => layout.broadcast(shape)?,
            &Self::Slice(SliceTable { axis, from, to, step }) => {
                // An axis that does not exist is the layout's to refuse.
                let extent = layout.shape().get(axis).copied().unwrap_or_default();
                layout.slice(axis, from.unwrap_or(0)..to.unwrap_or(extent), step.unwrap_or(1))?
            }
        })
    }

    /// The call that makes this view, as a program has it.
    fn written(&self) -> String {
        match self {
            Self::T => "t()".into(),
            Self::Permute(axes) => format!("permuted_axes({axes:?})"),
            Self::Reverse(axis) => format!("reverse({axis})"),
            Self::Broadcast(shape) => format!("broadcast({shape:?})"),
            Self::Slice(SliceTable { axis, from, to, step }) => {
                let [from, to] = [from, to].map(|end| end.map_or(String::new(), |end| end.to_string()));
                format!("slice({axis}, {from}..{to}, {})", step.unwrap_or(1))
            }
        }
    }
}

impl ModelTable {
    fn subject(self) -> Result<Subject> {
        let kernel = if self.variant == "copy" { Kernel::Copy } else { Kernel::Transpose(self.variant.parse()?) };
        let is_counted = |extent: &usize| match *extent {
            1..=COUNTED => true,
            extent => extent <= MAX_EXTENT && extent.is_multiple_of(COUNTED) && extent > 0,
        };
        require!(
            self.shape.iter().all(is_counted),
            InvalidArgument,
            "shape {:?}: give extents from 1 to {COUNTED}, or multiples of {COUNTED} up to {MAX_EXTENT}",
            self.shape
        );
        Ok(Subject::Model { kernel, shape: self.shape, dtype: self.dtype.parse()?, asks: self.asks })
    }
}

impl Question {
    pub(super) fn ask(&self) -> &str {
        &self.ask
    }

    /// Returns the right answer as a person would type it.
    pub(super) fn truth(&self) -> Result<String> {
        Ok(self.computed()?.written())
    }

    /// Returns why that is the right answer, in a sentence or several.
    pub(super) fn reason(&self) -> Result<String> {
        match &self.subject {
            Subject::Layout { views, asks } => Ok(reason_of_layout(views, asks)),
            Subject::Model { kernel, shape, dtype, .. } => {
                let (counters, prediction) = predict(*kernel, *shape, *dtype)?;
                Ok(reason_of_model(&counters, bytes(*shape, *dtype), prediction))
            }
        }
    }

    /// Compares an answer with the truth.
    pub(super) fn verdict(&self, answer: &str) -> Result<Verdict> {
        let truth = self.computed()?;
        let answer = answer.trim();
        if answer.is_empty() || answer == "?" {
            return Ok(Verdict::Missing(format!("there is no answer yet; type {} in place of the `?`", truth.form())));
        }
        Ok(match truth.read(answer) {
            Ok(given) => truth.verdict(&given),
            Err(sentence) => Verdict::Unread(sentence),
        })
    }

    fn computed(&self) -> Result<Truth> {
        match &self.subject {
            // The array itself is always there.
            Subject::Layout { views, asks } => Ok(asks.of(&views[views.len() - 1].1)),
            Subject::Model { shape, dtype, asks: ModelAsks::Bytes, .. } => Ok(Truth::Whole(2 * bytes(*shape, *dtype))),
            Subject::Model { kernel, shape, dtype, asks } => {
                let (_, prediction) = predict(*kernel, *shape, *dtype)?;
                Ok(asks.of(prediction, 2 * bytes(*shape, *dtype)))
            }
        }
    }
}

impl LayoutAsks {
    fn of(&self, layout: &Layout) -> Truth {
        match self {
            Self::Strides => Truth::List(layout.strides().iter().map(|&stride| stride as i64).collect()),
            Self::Shape => Truth::List(layout.shape().iter().map(|&extent| extent as i64).collect()),
            Self::Offset => Truth::Whole(layout.offset() as u64),
            Self::IsStandardLayout => Truth::Yes(layout.is_standard_layout()),
            Self::IsContiguous => Truth::Yes(layout.is_contiguous()),
            Self::Overlaps => Truth::Yes(layout.overlaps_itself()),
            // The index was looked up when the quiz was read.
            Self::Position(index) => Truth::Whole(layout.offset_of(index).unwrap_or_default() as u64),
        }
    }
}

impl ModelAsks {
    fn of(self, prediction: Prediction, bytes: u64) -> Truth {
        let gbps = bytes as f64 / prediction.ms / 1e6;
        match self {
            Self::Bytes => Truth::Whole(bytes),
            Self::Ms => Truth::About(prediction.ms, "ms"),
            Self::Gbps => Truth::About(gbps, "GB/s"),
            Self::Fraction => Truth::Fraction(gbps / MODEL.memory.copy),
            Self::Bound => Truth::Bound(prediction.bound),
        }
    }
}

impl Truth {
    fn written(&self) -> String {
        match self {
            Self::List(numbers) => format!("{numbers:?}"),
            Self::Whole(number) => number.to_string(),
            Self::Yes(yes) => if *yes { "yes" } else { "no" }.into(),
            // Four digits that count, of hours as of nanoseconds.
            Self::About(number, unit) => {
                let decimals = (3.0 - number.abs().log10().floor()).clamp(0.0, 9.0) as usize;
                format!("{number:.decimals$} {unit}")
            }
            Self::Fraction(fraction) => format!("{fraction:.2}"),
            Self::Bound(bound) => bound.name().into(),
        }
    }

    /// How to type an answer of this kind.
    fn form(&self) -> String {
        match self {
            Self::List(_) => "a list of whole numbers, such as [3, -1],".into(),
            Self::Whole(_) => "a whole number".into(),
            Self::Yes(_) => "yes or no".into(),
            Self::About(_, unit) => format!("a number of {unit}"),
            Self::Fraction(_) => "a fraction, such as 0.5 or 50 %,".into(),
            Self::Bound(_) => format!("one of {}", BOUNDS.map(Bound::name).join(", ")),
        }
    }

    /// Reads an answer of this kind, or says what it is not.
    fn read(&self, answer: &str) -> Result<Self, String> {
        let read = match self {
            Self::List(_) => {
                let bare = answer.trim_matches(['[', ']', '(', ')']);
                let words = bare.split([',', ' ']).filter(|word| !word.is_empty());
                words.map(|word| word.parse().ok()).collect::<Option<_>>().map(Self::List)
            }
            Self::Whole(_) => answer.replace(['_', ','], "").parse().ok().map(Self::Whole),
            Self::Yes(_) => match answer.to_lowercase().as_str() {
                "yes" | "y" | "true" => Some(Self::Yes(true)),
                "no" | "n" | "false" => Some(Self::Yes(false)),
                _ => None,
            },
            Self::About(_, unit) => number(answer.strip_suffix(unit).unwrap_or(answer)).map(|n| Self::About(n, unit)),
            Self::Fraction(_) => match answer.strip_suffix('%') {
                Some(percent) => number(percent).map(|percent| percent / 100.0),
                None => number(answer),
            }
            .filter(|fraction| (0.0..=1.0).contains(fraction))
            .map(Self::Fraction),
            Self::Bound(_) => {
                BOUNDS.into_iter().find(|bound| bound.name().eq_ignore_ascii_case(answer)).map(Self::Bound)
            }
        };
        read.ok_or_else(|| {
            format!("`{}` cannot be read; type {} instead", plain(answer), self.form().trim_end_matches(','))
        })
    }

    /// Compares an answer of the same kind with this.
    fn verdict(&self, given: &Self) -> Verdict {
        let size = |is_more| if is_more { "large" } else { "small" };
        let off_by = |truth: f64, given: f64| {
            let is_off = (given - truth).abs() > TOLERANCE * truth.abs();
            is_off.then(|| format!("too {}, by more than {:.0} %", size(given > truth), 100.0 * TOLERANCE))
        };
        let sentence = match (self, given) {
            (Self::List(truth), Self::List(given)) if truth.len() != given.len() => {
                let compared = if truth.len() < given.len() { "fewer axes" } else { "more axes" };
                Some(format!("the view has {compared} than {given:?} has numbers; give one number for each axis"))
            }
            (Self::List(truth), Self::List(given)) => {
                let wrong = truth.iter().zip(given).position(|(truth, given)| truth != given);
                wrong.map(|axis| format!("in {given:?}, the number of axis {axis} is wrong (axes count from 0)"))
            }
            (Self::Whole(truth), Self::Whole(given)) => {
                (truth != given).then(|| format!("{given} is too {}", size(given > truth)))
            }
            (Self::About(truth, unit), Self::About(given, _)) => {
                off_by(*truth, *given).map(|off| format!("{given} {unit} is {off}"))
            }
            (Self::Fraction(truth), Self::Fraction(given)) => {
                off_by(*truth, *given).map(|off| format!("{given} is {off} of the right fraction"))
            }
            (Self::Bound(truth), Self::Bound(given)) => {
                (truth != given).then(|| format!("{} is not it: something else takes longer", given.name()))
            }
            _ => (self != given).then(|| format!("{} is wrong", given.written())),
        };
        sentence.map_or(Verdict::Right, Verdict::Wrong)
    }
}

const BOUNDS: [Bound; 4] = [Bound::Memory, Bound::L2, Bound::Shared, Bound::Launches];

fn number(text: &str) -> Option<f64> {
    text.trim().replace('_', "").parse().ok().filter(|number: &f64| number.is_finite())
}

/// Text of a file, without characters that do something to a terminal.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect()
}

/// The line of an error, with the question that it is in, and how to type its answer where that is
/// the line's.
fn place(text: &str, line: usize) -> String {
    let lines = || text.lines().take(line).map(str::trim);
    let place = match lines().filter(|line| *line == "[[questions]]").count() {
        0 => format!("line {line}: "),
        number => format!("question {number}, line {line}: "),
    };
    let is_answer = lines().last().is_some_and(|line| line.starts_with("answer"));
    if is_answer { place + "type the answer between the quotes of `answer = \"?\"`; " } else { place }
}

/// The bytes of a matrix.
fn bytes([rows, cols]: [usize; 2], dtype: DType) -> u64 {
    (rows * cols * dtype.width()) as u64
}

/// Predicts the time of a kernel on the modelled device, by its counters.
///
/// The software GPU counts a part of a large matrix. The kernels cut a matrix into tiles that
/// divide the part, and each tile counts the same, so the whole counts the same for each element.
fn predict(kernel: Kernel, shape: [usize; 2], dtype: DType) -> Result<(Counters, Prediction)> {
    let part = shape.map(|extent| extent.min(COUNTED));
    let times = (shape[0] / part[0] * (shape[1] / part[1])) as u64;
    let counters = scaled(by_width!(dtype, T => count::<T>(kernel, part))?, times);
    let launches = match kernel {
        Kernel::Copy => 1,
        Kernel::Transpose(variant) => {
            let [source, result] = [shape, [shape[1], shape[0]]].map(|shape| Layout::row_major(&shape));
            TransposePlan::new(&source?, &result?, dtype.width(), variant)?.launches()
        }
    };
    let bytes = bytes(shape, dtype);
    Ok((counters, MODEL.predict(&counters, bytes, bytes, launches)))
}

/// Counts one run of a kernel on the software GPU.
fn count<T: Element>(kernel: Kernel, [rows, cols]: [usize; 2]) -> Result<Counters> {
    let device = Device::open(Backend::Soft)?;
    let stream = device.default_stream();
    let source = device.alloc_array::<T>(&[rows, cols])?;
    match kernel {
        Kernel::Copy => ops::copy_into(&source, &mut device.alloc_array(&[rows, cols])?, stream)?,
        Kernel::Transpose(variant) => {
            ops::transpose_into(&source, &mut device.alloc_array(&[cols, rows])?, Some(variant), stream)?;
        }
    }
    // The software GPU always counts.
    Ok(device.counters()?.unwrap_or_default())
}

/// Multiplies the counters that the model reads.
fn scaled(mut counters: Counters, times: u64) -> Counters {
    for counted in [&mut counters.global_load, &mut counters.global_store] {
        counted.requests *= times;
        counted.sectors *= times;
    }
    for counted in [&mut counters.shared_load, &mut counters.shared_store] {
        counted.wavefronts *= times;
    }
    counters
}

fn reason_of_layout(views: &[(String, Layout)], asks: &LayoutAsks) -> String {
    let rule = match asks {
        LayoutAsks::Strides => "A stride is the number of elements from one index of an axis to the next.",
        LayoutAsks::Shape => "The shape has the number of indices of each axis.",
        LayoutAsks::Offset => "The offset is the place of index 0 of all axes in the storage.",
        LayoutAsks::IsStandardLayout => "In C order each stride is the product of the extents to its right.",
        LayoutAsks::IsContiguous => "Elements are contiguous where they fill a range of the storage, in any order.",
        LayoutAsks::Overlaps => "A view overlaps itself where two indices have one place.",
        LayoutAsks::Position(_) => "A place is the offset, plus each index times its stride.",
    };
    let mut text = rule.to_owned();
    for (view, layout) in views {
        let (shape, strides, offset) = (layout.shape(), layout.strides(), layout.offset());
        // Writing to a string does not fail.
        let _ = write!(text, "\n{view}: shape {shape:?}, strides {strides:?}, offset {offset}");
    }
    text
}

fn reason_of_model(counters: &Counters, bytes: u64, prediction: Prediction) -> String {
    let Counters { global_load, global_store, shared_load, shared_store, .. } = counters;
    format!(
        "The kernel reads {moved} and writes {moved}. It loads {} in {}, stores {} in {}, and makes {} through shared \
         memory. The model of {} makes {:.4} ms of that, and {} takes longest.",
        counted(global_load.sectors, "sector"),
        counted(global_load.requests, "request"),
        counted(global_store.sectors, "sector"),
        counted(global_store.requests, "request"),
        counted(shared_load.wavefronts + shared_store.wavefronts, "pass"),
        MODEL.name,
        prediction.ms,
        prediction.bound.name(),
        moved = counted(bytes, "byte"),
    )
}

#[cfg(test)]
mod tests;
