//! What was typed.

use std::num::NonZeroUsize;
use std::ops::Deref;
use std::path::PathBuf;
use std::str::FromStr;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use warpstride::device::Backend;
use warpstride::element::DType;
use warpstride::ops::Variant;
use warpstride::roofline::model::DeviceModel;

#[cfg(feature = "interp")]
use warpstride::interp::Checks;

#[cfg(feature = "interp")]
use super::argument::{Argument, Dump, extents};

/// Transposes matrices and runs any PTX on an NVIDIA GPU, or on a software GPU where there is none.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

impl Cli {
    /// Whether one JSON document is wanted.
    pub(super) fn json(&self) -> bool {
        #[cfg(feature = "interp")]
        if let Command::RunPtx(RunPtx { report_json: true, .. }) = self.command {
            return true;
        }
        self.global.json
    }

    /// What was typed; ends the program with status 2 where it is no usage.
    pub(super) fn typed() -> Self {
        let cli = Self::parse();
        if let Err(wrong) = cli.check() {
            Self::command().error(ErrorKind::ValueValidation, wrong).exit();
        }
        cli
    }

    /// Whether values go together that are on one line.
    fn check(&self) -> Result<(), String> {
        match &self.command {
            Command::Explain(permuted)
            | Command::Bench(Bench { operation: Some(Operation::Permute { permuted, .. }), .. }) => permuted.check(),
            Command::Bench(Bench { operation: Some(Operation::Affine(affine)), .. }) => affine.check(),
            _ => Ok(()),
        }
    }
}

/// What every command takes.
#[derive(Args)]
pub(super) struct Global {
    /// Where to run: `auto` (a GPU if there is one), `cuda`, `cuda:N` or `soft`
    #[arg(long, global = true, value_name = "DEVICE", default_value = "auto")]
    pub(super) device: Backend,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print results and errors only, no notes and no progress
    #[arg(long, global = true)]
    pub(super) quiet: bool,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// List the devices, or the one that --device names, and why others are not there
    Devices,
    /// Transpose a matrix from one .npy file into another
    Transpose(Transpose),
    /// Put the axes of an array in another order, from one .npy file into another
    Permute(Permute),
    /// Run every transpose kernel on the same matrix, verify it, and show what it does to memory
    Compare(Compare),
    /// Print how a permute would be done, and why
    Explain(Permuted),
    /// Verify an operation on random bits, and on a GPU measure it
    Bench(Bench),
    /// Show a run of `bench --all`: tables, charts, a page, or how it differs from another
    Report(Report),
    /// Measure what the memory of this GPU can do at most: nominal, and the best of simple kernels
    Peaks,
    /// Run a kernel of a PTX file, and show what it does to memory
    ///
    /// On a GPU nothing keeps a kernel within its buffers: run only PTX that you trust. The software GPU stops it there.
    #[cfg(feature = "interp")]
    RunPtx(RunPtx),
    /// List the PTX that the software GPU has, as Markdown, or what of it a file uses and what it lacks
    #[cfg(feature = "interp")]
    PtxForms(PtxForms),
}

#[derive(Args)]
pub(super) struct Transpose {
    /// The matrix: 2-D, C or Fortran order
    #[arg(value_name = "IN.npy")]
    pub(super) input: PathBuf,
    /// Where its transpose goes, in C order; replaced only when everything has worked
    #[arg(value_name = "OUT.npy")]
    pub(super) output: PathBuf,
    /// The kernel, instead of the fastest for the matrix: column_loop, naive, tiled, padded or staggered
    #[arg(long, value_name = "NAME")]
    pub(super) variant: Option<Variant>,
}

#[derive(Args)]
pub(super) struct Permute {
    /// The array: any number of axes, C or Fortran order
    #[arg(value_name = "IN.npy")]
    pub(super) input: PathBuf,
    /// Where the result goes, in C order; replaced only when everything has worked
    #[arg(value_name = "OUT.npy")]
    pub(super) output: PathBuf,
    /// The axes of the input in the order that they have in the result, counted from 0
    #[arg(long, value_name = "A,B")]
    pub(super) axes: Numbers,
}

#[derive(Args)]
pub(super) struct Compare {
    /// The matrix, instead of random bits
    #[arg(value_name = "IN.npy", conflicts_with_all = ["shape", "dtype"])]
    pub(super) input: Option<PathBuf>,
    /// Rows and columns of random bits
    #[arg(long, value_name = "R,C", default_value = "1024,1024", value_parser = shape)]
    pub(super) shape: [usize; 2],
    /// Their element type
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = dtype)]
    pub(super) dtype: DType,
    /// The kernels to run, instead of all: column_loop, naive, tiled, padded, staggered
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(super) variants: Vec<Variant>,
    /// Predict times from the counters, by the model of a device: h100
    #[arg(long, value_name = "DEVICE", value_parser = model)]
    pub(super) model: Option<DeviceModel>,
}

#[derive(Args)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Bench {
    #[command(subcommand)]
    pub(super) operation: Option<Operation>,
    /// List the operations
    #[arg(long, required_unless_present_any = ["tune", "all"])]
    pub(super) list: bool,
    /// Find the best tiles of this GPU: every shape that the kernels allow is timed on a few matrices
    #[arg(long, conflicts_with_all = ["list", "all"])]
    pub(super) tune: bool,
    /// Measure a fixed list of cases in one run, whose document `report` draws: streams, permutes, every transpose
    /// kernel, axes and conversions. The software GPU counts smaller ones
    #[arg(long, conflicts_with = "list")]
    pub(super) all: bool,
    /// Keep the run under a name
    #[arg(long, value_name = "NAME", requires = "all", value_parser = run_name)]
    pub(super) save: Option<String>,
    /// Compare the run with one that was kept, case by case; status 1 where one is slower, wrong or gone
    #[arg(long, value_name = "NAME", requires = "all", value_parser = run_name)]
    pub(super) compare: Option<String>,
}

#[derive(Args)]
pub(super) struct Report {
    /// The document of `warpstride --json bench --all`
    #[arg(value_name = "RUN.json")]
    pub(super) run: PathBuf,
    /// Write a page with everything, which needs no other file and no network
    #[arg(long, value_name = "OUT.html")]
    pub(super) html: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "OUT.md")]
    pub(super) markdown: Option<PathBuf>,
    /// Write the cases as comma-separated values
    #[arg(long, value_name = "OUT.csv")]
    pub(super) csv: Option<PathBuf>,
    /// Write each chart into a folder, which is made where it is not there
    #[arg(long, value_name = "FOLDER")]
    pub(super) svg: Option<PathBuf>,
    /// Compare the run with an earlier one, case by case; status 1 where one is slower, wrong or gone
    #[arg(long, value_name = "BEFORE.json")]
    pub(super) compare: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(super) enum Operation {
    /// An array of any rank with its axes in another order, into C order
    Permute {
        #[command(flatten)]
        permuted: Permuted,
        #[command(flatten)]
        samples: Samples,
    },
    /// An array of any rank with its axes in another order, scaled, shifted and of another type, into C order
    Affine(Affine),
    /// A copy: the yardstick of all that move bytes
    Copy(Elements),
    /// Elements that lie some steps apart, side by side
    StridedCopy(Strided),
    /// Every element set to a value
    Fill(Arithmetic),
    /// An array scaled
    Mul(Arithmetic),
    /// The sum of two arrays
    Add(Arithmetic),
    /// An array and a scaled one
    Triad(Arithmetic),
    /// What is there, an array and a scaled one
    Nstream(Arithmetic),
    /// What is there and a scaled array
    Axpy(Arithmetic),
    /// The sum of all elements, or sums along an axis
    Sum(Reduced),
    /// The sum of the products of two arrays
    Dot(Arithmetic),
    /// The least element, or those along an axis
    Min(Reduced),
    /// The greatest element, or those along an axis
    Max(Reduced),
    /// Where the greatest element lies, or those along an axis
    Argmax(Reduced),
    /// Rows of positive numbers whose sum is 1
    Softmax(Rowwise),
    /// Mean and variance of rows
    MeanVariance(Rowwise),
    /// Images of bytes, pixel by pixel, to normalised planes
    Normalize(Images),
    /// Elements to another type
    Cast(Cast),
    /// Rows taken by their indices: all rows of an array in another order
    Gather(Rows),
    /// Rows put by their indices
    Scatter(Rows),
}

/// Arrays of one axis.
#[derive(Args)]
pub(super) struct Elements {
    /// Number of elements
    #[arg(long, value_name = "N")]
    pub(super) elements: usize,
    /// Their type
    #[arg(long, value_name = "TYPE", value_parser = dtype)]
    pub(super) dtype: DType,
    #[command(flatten)]
    pub(super) samples: Samples,
}

/// Arrays of one axis whose elements lie apart.
#[derive(Args)]
pub(super) struct Strided {
    #[command(flatten)]
    pub(super) elements: Elements,
    /// From one element to the next
    #[arg(long, value_name = "K")]
    pub(super) step: NonZeroUsize,
}

/// Arrays of numbers that kernels compute with.
#[derive(Args)]
pub(super) struct Arithmetic {
    /// Number of elements
    #[arg(long, value_name = "N")]
    pub(super) elements: usize,
    /// Their type: f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", value_parser = number)]
    pub(super) dtype: DType,
    #[command(flatten)]
    pub(super) samples: Samples,
}

/// Images that are normalised.
#[derive(Args)]
pub(super) struct Images {
    /// Images, rows, columns and channels
    #[arg(long, value_name = "N,H,W,C", value_parser = images)]
    pub(super) shape: [usize; 4],
    /// What planes are made of: f16, bf16 or f32
    #[arg(long, value_name = "TYPE", value_parser = plane)]
    pub(super) dtype: DType,
    #[command(flatten)]
    pub(super) samples: Samples,
}

/// An array of numbers that becomes one, or one along an axis.
#[derive(Args)]
pub(super) struct Reduced {
    /// Number of elements, of which all become one
    #[arg(long, value_name = "N", required_unless_present = "shape", conflicts_with = "shape")]
    pub(super) elements: Option<usize>,
    /// Extents of the array, which lies in C order
    #[arg(long, value_name = "S", requires = "axis")]
    pub(super) shape: Option<Numbers>,
    /// The axis along which its elements become one, counted from 0
    #[arg(long, value_name = "K", requires = "shape", conflicts_with = "elements")]
    pub(super) axis: Option<usize>,
    /// Their type: f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", value_parser = number)]
    pub(super) dtype: DType,
    #[command(flatten)]
    pub(super) samples: Samples,
}

/// Elements of one type that become those of another.
#[derive(Args, Clone, Copy)]
pub(super) struct Cast {
    /// Number of elements
    #[arg(long, value_name = "N")]
    pub(super) elements: usize,
    /// Their type: u8, i32, f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", value_parser = castable)]
    pub(super) from: DType,
    /// What they become, of the same types
    #[arg(long, value_name = "TYPE", value_parser = castable)]
    pub(super) to: DType,
    #[command(flatten)]
    pub(super) samples: Samples,
}

/// Rows that are found by their indices.
#[derive(Args, Clone, Copy)]
pub(super) struct Rows {
    /// Rows, and elements of each
    #[arg(long, value_name = "R,W", value_parser = shape)]
    pub(super) shape: [usize; 2],
    /// Their type
    #[arg(long, value_name = "TYPE", value_parser = dtype)]
    pub(super) dtype: DType,
    #[command(flatten)]
    pub(super) samples: Samples,
}

/// An array whose last axis has the rows.
#[derive(Args)]
pub(super) struct Rowwise {
    /// Extents of the array, which lies in C order
    #[arg(long, value_name = "S")]
    pub(super) shape: Numbers,
    /// The type of its elements: f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", value_parser = number)]
    pub(super) dtype: DType,
    #[command(flatten)]
    pub(super) samples: Samples,
}

/// An array in C order, and its axes in another.
#[derive(Args)]
pub(super) struct Permuted {
    /// Extents of the array, which lies in C order
    #[arg(long, value_name = "S")]
    pub(super) shape: Numbers,
    /// Its axes, counted from 0, in the order of the result
    #[arg(long, value_name = "A")]
    pub(super) axes: Numbers,
    /// Its element type
    #[arg(long, value_name = "TYPE", value_parser = dtype)]
    pub(super) dtype: DType,
}

impl Permuted {
    fn check(&self) -> Result<(), String> {
        check_axes(&self.shape, &self.axes)
    }
}

/// An array in C order, its axes in another, and the types of both sides.
#[derive(Args)]
pub(super) struct Affine {
    /// Extents of the array, which lies in C order
    #[arg(long, value_name = "S")]
    pub(super) shape: Numbers,
    /// Its axes, counted from 0, in the order of the result
    #[arg(long, value_name = "A")]
    pub(super) axes: Numbers,
    /// Its element type: u8, f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", value_parser = mappable)]
    pub(super) from: DType,
    /// That of the result: f16, bf16 or f32, or f64 of f64
    #[arg(long, value_name = "TYPE", value_parser = number)]
    pub(super) to: DType,
    /// The axis of the result, counted from 0, whose indices have factors and offsets of their own
    #[arg(long, value_name = "AXIS")]
    pub(super) channels: Option<usize>,
    #[command(flatten)]
    pub(super) samples: Samples,
}

impl Affine {
    fn check(&self) -> Result<(), String> {
        let Self { from, to, channels, .. } = *self;
        check_axes(&self.shape, &self.axes)?;
        if (from == DType::F64) != (to == DType::F64) {
            return Err(format!(
                "elements of {from} are not mapped to {to}; doubles become doubles, and nothing else does"
            ));
        }
        match channels.filter(|&axis| axis >= self.axes.len()) {
            Some(axis) => Err(format!("there is no axis {axis} for the channels; the result has {}", self.axes.len())),
            None => Ok(()),
        }
    }
}

/// Whether each axis of a shape is named once.
fn check_axes(shape: &[usize], axes: &[usize]) -> Result<(), String> {
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    if sorted.iter().copied().eq(0..shape.len()) {
        return Ok(());
    }
    Err(format!(
        "axes {axes:?} are no permutation of those of shape {shape:?}; name each from 0 to {} once",
        shape.len().saturating_sub(1)
    ))
}

#[derive(Args, Clone, Copy)]
pub(super) struct Samples {
    /// Timed runs on a GPU, whose median is reported
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(super) samples: u16,
}

#[cfg(feature = "interp")]
#[derive(Args)]
pub(super) struct RunPtx {
    /// The PTX
    #[arg(value_name = "FILE.ptx")]
    pub(super) file: PathBuf,
    /// The kernel
    #[arg(long, value_name = "NAME")]
    pub(super) entry: String,
    /// Blocks in x, y and z; what is left out is 1
    #[arg(long, value_name = "X,Y,Z", value_parser = extents)]
    pub(super) grid: [u32; 3],
    /// Threads of a block in x, y and z; what is left out is 1
    #[arg(long, value_name = "X,Y,Z", value_parser = extents)]
    pub(super) block: [u32; 3],
    /// Dynamic shared memory of a block
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(super) shared: u32,
    /// The kernel's arguments in order, one --arg each: a number (i32:7, f32:1.5), a buffer (f32[1024]=zeros, =iota,
    /// =random:SEED or =uninit) or the elements of a file (npy:FILE); a struct is passed member by member
    #[arg(long = "arg", value_name = "A")]
    pub(super) arguments: Vec<Argument>,
    /// What the software GPU looks for besides counting: memcheck, initcheck, racecheck, synccheck, or all; a launch in
    /// which it finds something ends with status 1
    #[arg(long = "check", value_name = "A,B")]
    pub(super) checks: Option<Checks>,
    /// The work after which the software GPU stops the launch, in simple instructions of a warp, some 10 ns each; 1073741824
    /// where it is left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,
    /// Write the buffer of argument I, counted from 0, to a file after the launch; may be given several times
    #[arg(long = "dump", value_name = "I=OUT.npy")]
    pub(super) dumps: Vec<Dump>,
    /// Show what each instruction that accesses memory did, and draw the worst accesses; with --json, put all of it into the
    /// document. The software GPU counts: --device soft
    #[arg(long)]
    pub(super) report: bool,
    /// Short for --report --json
    #[arg(long)]
    pub(super) report_json: bool,
    /// Draw the worst access of each instruction into an image; on the software GPU, as --report
    #[arg(long, value_name = "FILE.svg")]
    pub(super) draw: Option<PathBuf>,
}

#[cfg(feature = "interp")]
#[derive(Args)]
pub(super) struct PtxForms {
    /// PTX whose kernels are looked through, instead of listing everything
    #[arg(value_name = "FILE.ptx")]
    pub(super) file: Option<PathBuf>,
}

/// Whole numbers and commas; of no axes, nothing.
#[derive(Debug, Clone)]
pub(super) struct Numbers(Vec<usize>);

impl Deref for Numbers {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self(Vec::new()));
        }
        let number = |text: &str| {
            text.trim().parse().map_err(|_| format!("`{}` is no whole number; give them as 4,10,3", text.trim()))
        };
        text.split(',').map(number).collect::<Result<_, _>>().map(Self)
    }
}

fn shape(text: &str) -> Result<[usize; 2], String> {
    match text.parse::<Numbers>().as_deref() {
        Ok(&[rows, cols]) => Ok([rows, cols]),
        _ => Err("give rows and columns as two whole numbers, such as 1024,768".into()),
    }
}

/// A name that a file can have anywhere.
fn run_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !text.is_empty() && text.len() <= 100 && text.chars().all(plain) {
        return Ok(text.into());
    }
    Err("a run's name is of letters, digits, `-`, `_` and `.`, at most 100 of them".into())
}

fn model(text: &str) -> Result<DeviceModel, String> {
    DeviceModel::ALL.into_iter().find(|model| model.name == text).ok_or_else(|| {
        let names = DeviceModel::ALL.map(|model| model.name).join(", ");
        format!("there are models of {names}")
    })
}

fn images(text: &str) -> Result<[usize; 4], String> {
    match text.parse::<Numbers>().as_deref() {
        Ok(&[n, h, w, c]) => Ok([n, h, w, c]),
        _ => Err("give images, rows, columns and channels as four whole numbers, such as 64,1080,1920,3".into()),
    }
}

/// A type that kernels compute with.
fn number(text: &str) -> Result<DType, String> {
    one_of(text, "arithmetic is on", &[DType::F16, DType::Bf16, DType::F32, DType::F64])
}

/// A type that images become.
fn plane(text: &str) -> Result<DType, String> {
    one_of(text, "images become planes of", &[DType::F16, DType::Bf16, DType::F32])
}

/// A type that permutes scale and convert.
fn mappable(text: &str) -> Result<DType, String> {
    one_of(text, "affine maps read", &[DType::U8, DType::F16, DType::Bf16, DType::F32, DType::F64])
}

/// A type that casts are timed with.
fn castable(text: &str) -> Result<DType, String> {
    let types = [DType::U8, DType::I32, DType::F16, DType::Bf16, DType::F32, DType::F64];
    one_of(text, "casts are timed from and to", &types)
}

fn one_of(text: &str, what: &str, types: &[DType]) -> Result<DType, String> {
    let names = || types.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
    types.iter().copied().find(|dtype| dtype.name() == text).ok_or_else(|| format!("{what} {}", names()))
}

fn dtype(text: &str) -> Result<DType, String> {
    DType::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or_else(|| {
        let names = DType::ALL.map(DType::name).join(", ");
        format!("the element types are {names}")
    })
}
