//! The format of a check's file: a launch in the notation of `run-ptx`, and what is expected of it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Result;
use serde::de::{Deserialize, Deserializer, Error};
use toml::Spanned;
use warpstride::error::{ErrorKind, printable_line};
use warpstride::interp::{Checks, DEFAULT_WORK};
use warpstride::roofline::model::DeviceModel;

use super::super::args::{Architecture, Argument, Launched, Modelled, Set, architecture, model, three};
use super::super::cuda_cpp::NotCompiled;
use super::super::{Refusal, error_kind, input, message, refuse, require};
use super::modelled::Expect;
use super::oracle::Oracle;

/// Most bytes of a file.
const MAX_BYTES: usize = 1 << 20;
/// The most work that a file can ask for, so that a launch ends whatever a file says.
const MAX_WORK: u64 = 16 * DEFAULT_WORK;

/// A file that was read.
pub(super) struct Check {
    /// The file of the kernel.
    pub(super) kernel: PathBuf,
    /// The launch, as `run-ptx` takes it.
    pub(super) launch: Launched,
    pub(super) result: Option<Wanted>,
    pub(super) expect: Vec<Expect>,
    /// The lines of these expectations.
    pub(super) expect_lines: Vec<usize>,
    pub(super) source: Source,
    /// The places of the kernel, of its entry and of the result in the file.
    kernel_at: Range<usize>,
    entry_at: Option<Range<usize>>,
    result_at: Range<usize>,
}

/// The contents of an argument after the launch.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Its number, from 0.
    pub(super) argument: usize,
    pub(super) elements: Elements,
    /// How far a float may be off, over the wanted one or over 1, whichever is larger.
    pub(super) tolerance: Option<f64>,
}

#[derive(Debug)]
pub(super) enum Elements {
    Computed(Oracle),
    /// Those of a file, as an argument has them.
    Read(Argument),
}

/// The parser's names for the types of values, and plain words for them.
const TYPES: [(&str, &str); 6] = [
    ("expected a boolean", "expected true or false"),
    ("expected i64", "expected a whole number"),
    ("expected u32", "expected a whole number from 0 to 4294967295"),
    ("expected usize", "expected a whole number from 0"),
    ("expected path string", "expected a path as text"),
    ("expected a sequence", "expected a list"),
];

pub(super) struct Source {
    pub(super) path: PathBuf,
    text: String,
    /// The ends of its lines.
    ends: Vec<usize>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kernel: Spanned<PathBuf>,
    entry: Option<Spanned<String>>,
    #[serde(deserialize_with = "extents")]
    grid: [u32; 3],
    #[serde(deserialize_with = "extents")]
    block: [u32; 3],
    #[serde(default)]
    shared: u32,
    #[serde(default)]
    args: Vec<Spanned<String>>,
    #[serde(default)]
    set: BTreeMap<String, Spanned<String>>,
    #[serde(default, deserialize_with = "arch")]
    arch: Option<Architecture>,
    result: Option<Spanned<ResultTable>>,
    #[serde(default, deserialize_with = "parsed")]
    checks: Option<Checks>,
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u64>,
    #[serde(default)]
    contract: bool,
    #[serde(default, deserialize_with = "of_model")]
    model: Option<DeviceModel>,
    #[serde(default, deserialize_with = "registers")]
    registers: Option<u32>,
    #[serde(default)]
    expect: Vec<Spanned<String>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultTable {
    arg: usize,
    #[serde(default, deserialize_with = "parsed")]
    oracle: Option<Oracle>,
    file: Option<String>,
    #[serde(default, deserialize_with = "tolerance")]
    tolerance: Option<f64>,
}

/// A value that is made of another, which a file has: of `Vec<i64>`, for example.
fn made<'de, D: Deserializer<'de>, S: Deserialize<'de>, T, E: Display>(
    from: D,
    make: impl FnOnce(S) -> Result<T, E>,
) -> Result<T, D::Error> {
    make(S::deserialize(from)?).map_err(D::Error::custom)
}

fn extents<'de, D: Deserializer<'de>>(from: D) -> Result<[u32; 3], D::Error> {
    made(from, |given: Vec<i64>| {
        let extents = three(given.into_iter().map(|extent| extent.try_into().ok()));
        extents.ok_or_else(|| {
            format!("give one to three whole numbers from 1 to {}, such as [4] or [16, 16, 1]", u32::MAX)
        })
    })
}

fn arch<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Architecture>, D::Error> {
    made(from, |text: String| architecture(&text).map(Some))
}

/// The GPU whose time is predicted.
fn of_model<'de, D: Deserializer<'de>>(from: D) -> Result<Option<DeviceModel>, D::Error> {
    made(from, |text: String| model(&text).map(Some))
}

/// The registers of a thread.
fn registers<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    made(from, |count: i64| {
        let registers = u32::try_from(count).ok().filter(|count| (1..=255).contains(count));
        registers.map(Some).ok_or("give a whole number from 1 to 255")
    })
}

/// The work after which a launch stops.
fn limit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    made(from, |work: i64| {
        let work = u64::try_from(work).ok().filter(|work| (1..=MAX_WORK).contains(work));
        work.map(Some).ok_or_else(|| format!("give a whole number from 1 to {MAX_WORK}"))
    })
}

fn tolerance<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    made(from, |tolerance: f64| {
        let is_one = tolerance.is_finite() && tolerance >= 0.0;
        if is_one { Ok(Some(tolerance)) } else { Err("give a number from 0, such as 1e-6") }
    })
}

/// A value that a file has as text.
fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(from: D) -> Result<Option<T>, D::Error> {
    made(from, |text: String| text.parse().map(Some))
}

impl Check {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = input::text(path, MAX_BYTES, "a check's file", input::SAVE_AS_TEXT)?;
        let ends = text.match_indices('\n').map(|(at, _)| at).collect();
        let source = Source { path: path.into(), text, ends };
        let table: Table = toml::from_str(&source.text).map_err(|error| source.refusal(error))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let (kernel_at, result_at) = (table.kernel.span(), table.result.as_ref().map_or(0..0, Spanned::span));
        let entry_at = table.entry.as_ref().map(Spanned::span);
        let result = table.result.map(Spanned::into_inner).map(|table| table.wanted(folder)).transpose();
        let result = result.map_err(|error| source.wrong_in(error, &result_at, "result"))?;
        let arguments = source.each::<Argument>("args", &table.args)?;
        let sets = table.set.into_iter().map(|(name, value)| {
            let value = source.each::<Argument>("set", &[value])?.remove(0).beside(folder);
            Ok(Set { name, value })
        });
        let sets = sets.collect::<Result<_>>()?;
        let expect = source.each("expect", &table.expect)?;
        let of_a_model = |(expected, text): (&Expect, &Spanned<String>)| {
            (matches!(expected, Expect::Modelled(_)) && table.model.is_none()).then(|| text.span())
        };
        if let Some(span) = expect.iter().zip(&table.expect).find_map(of_a_model) {
            let why = "no GPU is named whose time is predicted; add one, such as model = \"h100\"";
            return Err(source.wrong_in(anyhow::Error::msg(why), &span, "expect"));
        }
        require!(
            table.registers.is_none() || table.model.is_some(),
            InvalidArgument,
            "{} has registers and no model; add one, such as model = \"h100\"",
            path.display()
        );
        let expect_lines = table.expect.iter().map(|text| source.line(&text.span())).collect();
        require!(
            result.is_some() || table.checks.is_some() || !expect.is_empty(),
            InvalidArgument,
            "{} expects nothing; add result, checks or expect",
            path.display()
        );
        let kernel = folder.join(table.kernel.into_inner());
        let launch = Launched {
            entry: table.entry.map(Spanned::into_inner),
            grid: table.grid,
            block: table.block,
            shared: table.shared,
            arch: table.arch,
            sets,
            arguments: arguments.into_iter().map(|argument| argument.beside(folder)).collect(),
            checks: table.checks,
            limit: table.limit,
            contract: table.contract,
            modelled: Modelled { model: table.model, registers: table.registers },
            ..Launched::default()
        };
        Ok(Self { kernel, launch, result, expect, expect_lines, source, kernel_at, entry_at, result_at })
    }

    /// The files that are read for it.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        let Launched { arguments, sets, .. } = &self.launch;
        let wanted = self.result.as_ref().and_then(|wanted| match &wanted.elements {
            Elements::Read(argument) => argument.file(),
            Elements::Computed(_) => None,
        });
        let values = arguments.iter().chain(sets.iter().map(|set| &set.value));
        values.filter_map(Argument::file).chain(wanted).chain([&*self.kernel]).collect()
    }

    /// The line of the result that the file wants.
    pub(super) fn result_line(&self) -> usize {
        self.source.line(&self.result_at)
    }

    /// An error of the kernel, which has its place in the file in front.
    pub(super) fn wrong_kernel(&self, error: anyhow::Error) -> anyhow::Error {
        self.source.wrong_in(error, &self.kernel_at, "kernel")
    }

    /// An error of the choice among the kernels of a file, likewise.
    pub(super) fn wrong_entry(&self, error: anyhow::Error) -> anyhow::Error {
        match &self.entry_at {
            Some(span) => self.source.wrong_in(error, span, "entry"),
            None => self.wrong_kernel(error),
        }
    }

    /// An error of the result that the file wants, likewise.
    pub(super) fn wrong_result(&self, error: anyhow::Error) -> anyhow::Error {
        self.source.wrong_in(error, &self.result_at, "result")
    }

    /// An error of the launch, which has the file's name in front.
    pub(super) fn wrong(&self, error: anyhow::Error) -> anyhow::Error {
        self.source.wrong(error, &self.source.path.display())
    }
}

impl ResultTable {
    fn wanted(self, folder: &Path) -> Result<Wanted> {
        let elements = match (self.oracle, self.file) {
            (Some(oracle), None) => Elements::Computed(oracle),
            (None, Some(file)) => {
                let file = format!("npy:{file}").parse::<Argument>().map_err(anyhow::Error::msg)?;
                Elements::Read(file.beside(folder))
            }
            _ => refuse!(InvalidArgument, "give either an oracle or a file"),
        };
        Ok(Wanted { argument: self.arg, elements, tolerance: self.tolerance })
    }
}

impl Source {
    /// Returns the parser's refusal, with the line and the key if it knows them.
    fn refusal(&self, mut error: toml::de::Error) -> Refusal {
        // Without the text, the keys follow the message.
        error.set_input(None);
        let shown = error.to_string();
        let key = shown.strip_prefix(error.message()).map_or("", str::trim);
        let key = key.strip_prefix("in ").map_or(String::new(), |key| format!(", {key}"));
        let line = error.span().map_or(String::new(), |span| format!(" line {}", self.line(&span)));
        let words = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        let words = TYPES.iter().fold(words, |words, (type_name, plain)| words.replace(type_name, plain));
        self.refusal_of(ErrorKind::InvalidArgument, &format!("{}{line}{key}", self.path.display()), &words)
    }

    /// The values of a list of texts.
    fn each<T: FromStr<Err: Display>>(&self, key: &str, list: &[Spanned<String>]) -> Result<Vec<T>> {
        let value = |text: &Spanned<String>| {
            let value = text.get_ref().parse();
            value.map_err(|error: T::Err| self.wrong_in(anyhow::Error::msg(error.to_string()), &text.span(), key))
        };
        list.iter().map(value).collect()
    }

    fn wrong_in(&self, error: anyhow::Error, span: &Range<usize>, key: &str) -> anyhow::Error {
        let place = format!("{} line {}, `{key}`", self.path.display(), self.line(span));
        self.wrong(error, &place)
    }

    /// An error in the words of a file, in which options are keys.
    fn wrong(&self, error: anyhow::Error, place: &dyn Display) -> anyhow::Error {
        if let Some(of_compiler) = error.downcast_ref::<NotCompiled>() {
            return of_compiler.at(place).into();
        }
        let words = message(&error).replace("--arg ", "argument ").replace("--entry", "`entry`");
        let words = words.replace("--set ", "`set` ");
        let words = words.replace("`--limit`", "`limit`");
        self.refusal_of(error_kind(&error).unwrap_or(ErrorKind::InvalidArgument), place, &words).into()
    }

    fn refusal_of(&self, kind: ErrorKind, place: &dyn Display, words: &str) -> Refusal {
        Refusal { kind, sentence: printable_line(&format!("{place}: {words}")) }
    }

    /// The line of a place, from 1.
    fn line(&self, span: &Range<usize>) -> usize {
        1 + self.ends.partition_point(|&end| end < span.start)
    }
}
