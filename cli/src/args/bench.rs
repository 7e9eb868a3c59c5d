//! The arguments of `bench`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Subcommand};
use serde::Serialize;
use warpstride::element::DType;
use warpstride::error::counted;

use super::Axes;
use super::values::{
    Part, Random, castable, images, mappable, number, numbers, one_of, part, random, reducible, run_name, shape, whole,
};

/// Why a `bench` without an operation is wrong usage.
pub(crate) const NO_OPERATION: &str =
    "an operation is missing; name one, which `bench --list` lists, or --list, --list-saved, --all or --tune";

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) operation: Option<Operation>,
    /// List the operations and their arguments
    #[arg(long)]
    pub(crate) list: bool,
    /// Find the best tiles and blocks for this GPU, and the weights of the estimates by which plans
    /// choose: time what the kernels allow and drawn permutes, and write the best of them into
    /// the tuning file, which every device reads when it is opened
    #[arg(long, conflicts_with_all = ["list", "all"])]
    pub(crate) tune: bool,
    /// Measure a fixed list of cases in one run: streams, permutes, every transpose kernel, axes
    /// and conversions. The software GPU counts smaller cases. `report` draws the document of the
    /// run
    #[arg(long, conflicts_with = "list")]
    pub(crate) all: bool,
    /// List the runs that --save has kept under names
    #[arg(long, conflicts_with_all = ["list", "all", "tune"])]
    pub(crate) list_saved: bool,
    /// Keep the run under a name, or in a file: a path such as ./run.json
    #[arg(long, global = true, value_name = "NAME", value_parser = run_name)]
    pub(crate) save: Option<String>,
    /// Compare the run with a kept one or a file, case by case: by times on a GPU, many permutes by
    /// their speed beside a copy, and by counters on the software GPU. Exits with status 1 if a
    /// case is slower, wrong, missing, or counts differently
    #[arg(long, global = true, value_name = "NAME", value_parser = run_name)]
    pub(crate) compare: Option<String>,
}

impl Bench {
    /// Returns an error unless the options name exactly one thing to do.
    pub(super) fn check(&self) -> Result<(), (ErrorKind, String)> {
        let Self { operation, list, tune, all, list_saved, save, compare } = self;
        let conflict = |option: &str, other: &str| {
            let conflict = format!("the argument '{option}' cannot be used with {other}; leave out one of them");
            Err((ErrorKind::ArgumentConflict, conflict))
        };
        let given = [("--list", *list), ("--tune", *tune), ("--all", *all), ("--list-saved", *list_saved)];
        let given = given.into_iter().find(|(_, given)| *given);
        let kept = if save.is_some() { Some("--save") } else { compare.as_ref().map(|_| "--compare") };
        match (operation, given, kept) {
            (Some(_), Some((option, _)), _) => conflict(option, "an operation"),
            (_, Some((option @ ("--list" | "--tune" | "--list-saved"), _)), Some(kept)) => {
                conflict(kept, &format!("'{option}'"))
            }
            (None, None, _) => Err((ErrorKind::MissingSubcommand, NO_OPERATION.into())),
            (Some(Operation::Permute(Permutes { cases: true, .. })), _, Some(kept)) => conflict(kept, "'--cases'"),
            (Some(Operation::Permute(Permutes { cases: true, measure: true, .. })), ..) => {
                conflict("--measure", "'--cases'")
            }
            (Some(operation), ..) => {
                operation.check_draw()?;
                operation.axes().map(|_| ()).map_err(|wrong| (ErrorKind::ValueValidation, wrong))
            }
            _ => Ok(()),
        }
    }
}

/// An operation as `--list` shows it.
#[derive(Serialize)]
pub(crate) struct Listed {
    pub(crate) op: String,
    pub(crate) arguments: String,
    pub(crate) about: String,
}

/// The operations in the order of [`Operation`], which is their one list: with the arguments that
/// they take beside `--samples`.
pub(crate) fn operations() -> Vec<Listed> {
    let bench = Operation::augment_subcommands(clap::Command::new("bench"));
    let listed = |command: &clap::Command| Listed {
        op: command.get_name().into(),
        arguments: arguments(command),
        about: command.get_about().map(ToString::to_string).unwrap_or_default(),
    };
    bench.get_subcommands().map(listed).collect()
}

/// The arguments of an operation, in brackets where they may be left out. Alternatives stand in
/// parentheses, and one of them is given.
fn arguments(command: &clap::Command) -> String {
    let excludes = |one, other: &clap::Arg| {
        let of = |arg| command.get_arg_conflicts_with(arg).into_iter().map(clap::Arg::get_id);
        of(one).any(|id| id == other.get_id()) || of(other).any(|id| id == one.get_id())
    };
    let all: Vec<_> = command.get_arguments().filter(|arg| arg.get_long() != Some("samples")).collect();
    let (choice, rest): (Vec<_>, Vec<_>) = all.iter().partition(|arg| all.iter().any(|other| excludes(arg, other)));
    let text = |arg: &&clap::Arg| {
        let takes = arg.get_action().takes_values();
        let value = arg.get_value_names().filter(|_| takes).unwrap_or_default().iter().map(|name| format!(" {name}"));
        let text = format!("--{}{}", arg.get_long().unwrap_or_default(), value.collect::<String>());
        let is_needed = arg.is_required_set() || choice.contains(arg) && arg.get_default_values().is_empty();
        if is_needed { text } else { format!("[{text}]") }
    };
    let joined = |args: &[&clap::Arg]| args.iter().map(text).collect::<Vec<_>>().join(" ");
    let mut alternatives: Vec<Vec<&clap::Arg>> = Vec::new();
    for &arg in &choice {
        match alternatives.iter_mut().find(|one| !one.iter().any(|other| excludes(arg, other))) {
            Some(one) => one.push(arg),
            None => alternatives.push(vec![arg]),
        }
    }
    if alternatives.is_empty() {
        return joined(&rest);
    }
    let alternatives: Vec<String> = alternatives.iter().map(|one| joined(one)).collect();
    format!("({}) {}", alternatives.join(" | "), joined(&rest)).trim_end().into()
}

/// The operations. This is their one list: `--list`, the help and the run come from it.
#[derive(Subcommand)]
pub(crate) enum Operation {
    /// Put the axes of an array in another order, into C order
    Permute(Permutes),
    /// Permute, scale, shift and convert: c = f * a + o
    Affine(Affine),
    /// Copy: c = a, the operation that others are compared with
    Copy(Elements),
    /// Copy every Kth element of an array
    StridedCopy(Strided),
    /// Fill: c = s
    Fill(Arithmetic),
    /// Scale: c = s * a
    Mul(Arithmetic),
    /// Add: c = a + b
    Add(Arithmetic),
    /// Subtract: c = a - b
    Sub(Arithmetic),
    /// Multiply: c = a * b
    Multiply(Arithmetic),
    /// Divide: c = a / b
    Div(Arithmetic),
    /// Add a row to each row of a matrix. A row has the greatest power of two that divides the
    /// elements, and 4096 at most
    #[command(name = "add_row")]
    AddRow(Arithmetic),
    /// Add a column to each column of a matrix, which is that of add_row
    #[command(name = "add_column")]
    AddColumn(Arithmetic),
    /// c = a + s * b
    Triad(Arithmetic),
    /// c += a + s * b
    Nstream(Arithmetic),
    /// c += s * a
    Axpy(Arithmetic),
    /// Sum of all elements, or along an axis; halves are summed in single precision
    Sum(Reduced),
    /// Dot product of two arrays
    Dot(Arithmetic),
    /// Least element, or least elements along an axis
    Min(Reduced),
    /// Greatest element, or greatest elements along an axis
    Max(Reduced),
    /// Index of the greatest element, or indices along an axis; the first of equals wins
    Argmax(Reduced),
    /// Softmax along the last axis
    Softmax(Rowwise),
    /// Mean and variance along the last axis
    MeanVariance(Rowwise),
    /// Normalise images of bytes, pixel by pixel, into planes
    Normalize(Images),
    /// Convert elements to another type
    Cast(Cast),
    /// Gather rows by their indices: all rows of an array in another order
    Gather(Rows),
    /// Scatter rows by their indices
    Scatter(Rows),
    /// Split an array over several GPUs in another way, with its axes in another order, beside a
    /// flat push over their links
    Redistribute(Spread),
}

impl Operation {
    /// Checks the options of drawn permutes against each other. Clap would not ask for `--random`
    /// beside `--shape`, which excludes it.
    fn check_draw(&self) -> Result<(), (ErrorKind, String)> {
        let Self::Permute(Permutes { random, part, cases, .. }) = self else { return Ok(()) };
        match (random, part) {
            (Some(Random { count, .. }), Some(part)) if part.of > *count => {
                let cases = counted(*count, "case");
                let wrong = format!(
                    "{cases} cannot be cut into {} parts for --part; give as many parts as cases at most",
                    part.of
                );
                Err((ErrorKind::ValueValidation, wrong))
            }
            (None, given) if given.is_some() || *cases => {
                let option = if *cases { "--cases" } else { "--part" };
                let missing = format!("{option} is about drawn permutes; draw them by --random <SEED,N>");
                Err((ErrorKind::MissingRequiredArgument, missing))
            }
            _ => Ok(()),
        }
    }

    /// The order of its axes, where it has one; fails where its values do not go together.
    pub(crate) fn axes(&self) -> Result<Vec<usize>, String> {
        match self {
            Self::Permute(Permutes { shape: Some(shape), axes: Some(axes), .. }) => {
                axes.of(shape).map_err(|wrong| wrong.to_string())
            }
            Self::Affine(affine) => affine.axes(),
            _ => Ok(Vec::new()),
        }
    }
}

/// An array in C order and its axes in another, or many.
#[derive(Args)]
#[command(
    override_usage = "warpstride bench permute --shape <S> --axes <A> [--dtype <TYPE>]\n           [OPTIONS]\n       \
                      warpstride bench permute --random <SEED,N> [--part <I/K>] [--cases]\n           [OPTIONS]\n       \
                      warpstride bench permute --file <FILE> [OPTIONS]"
)]
#[command(after_help = "Examples:\n  \
                        warpstride bench permute --shape 64,1080,1920,3 --axes 'nhwc->nchw' --dtype u8\n  \
                        warpstride bench permute --random 1,20\n  \
                        warpstride bench permute --random 1,300 --part 2/3 --json\n  \
                        warpstride bench permute --random 1,300 --cases > cases.json\n  \
                        warpstride bench permute --file cases.json --compare before")]
pub(crate) struct Permutes {
    /// Extents of the array, which lies in C order
    #[arg(long, value_name = "S", value_parser = numbers, required_unless_present_any = ["random", "file"])]
    pub(crate) shape: Option<Box<[usize]>>,
    /// Its axes in the order of the result: 0,3,1,2, 'nhwc->nchw' or 'n h w c -> n c h w'
    #[arg(long, value_name = "A", allow_hyphen_values = true, required_unless_present_any = ["random", "file"])]
    pub(crate) axes: Option<Axes>,
    /// Its element type
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: DType,
    /// Measure N drawn permutes of 64 MiB to 1 GiB instead, each beside a copy, and score them; a
    /// seed draws the same ones everywhere. The software GPU counts others of at most 1 MiB
    #[arg(long, value_name = "SEED,N", value_parser = random, conflicts_with_all = ["shape", "axes", "dtype"])]
    pub(crate) random: Option<Random>,
    /// Measure the permutes of a JSON list instead, each beside a copy, and score them: one that
    /// --cases prints, or one of your own. The software GPU counts smaller ones
    #[arg(long, value_name = "FILE", conflicts_with_all = ["shape", "axes", "dtype", "random"])]
    pub(crate) file: Option<PathBuf>,
    /// First time the kernels that take a permute, and keep the fastest in the tuning file: all
    /// programs use it from then on
    #[arg(long)]
    pub(crate) measure: bool,
    /// Only part I of K equal parts of the drawn permutes
    #[arg(long, value_name = "I/K", value_parser = part)]
    pub(crate) part: Option<Part>,
    /// Print the drawn permutes as a JSON list and measure none, without a device
    #[arg(long, conflicts_with = "samples")]
    pub(crate) cases: bool,
    #[command(flatten)]
    pub(crate) samples: Samples,
}

/// A way between GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Engine {
    Local,
    Nccl,
}

/// An array over several GPUs.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        warpstride bench redistribute --shape 32768,32768 --axes 1,0 --from 0:2 --to 0:2\n  \
                        warpstride bench redistribute --shape 4096,64,512 --from 0:8 --to 1:8 --dtype f16\n  \
                        warpstride --device soft bench redistribute --gpus 4 --shape 64,48 --from 0:2,1:2 --to 1:4\n  \
                        warpstride launch -n 2 -- warpstride bench redistribute --engine nccl --shape 8192,8192 --axes 1,0 --from 0:2 --to 0:2")]
pub(crate) struct Spread {
    /// Number of GPUs; the default is the number of parts. `--device soft` makes software GPUs
    #[arg(long, value_name = "N")]
    pub(crate) gpus: Option<usize>,
    /// The way between the GPUs: one process whose kernels store into all of them, or a process for
    /// each GPU (`warpstride launch`), which meet by NVIDIA's NCCL; kernels store into GPUs of the
    /// same host, and NCCL carries messages to others
    #[arg(long, value_enum, default_value = "local")]
    pub(crate) engine: Engine,
    /// Extents of the array
    #[arg(long, value_name = "S", value_parser = numbers)]
    pub(crate) shape: Box<[usize]>,
    /// Cuts of the array: axis:parts, or axis:extent+extent, several by comma. An array that is not
    /// cut is whole on the first GPU
    #[arg(long, value_name = "CUTS", default_value = "")]
    pub(crate) from: String,
    /// Cuts of the result, whose axes are counted in its own order
    #[arg(long, value_name = "CUTS", default_value = "")]
    pub(crate) to: String,
    /// The array's axes in the order of the result; the same order by default
    #[arg(long, value_name = "A", allow_hyphen_values = true)]
    pub(crate) axes: Option<Axes>,
    /// Its element type
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: DType,
    #[command(flatten)]
    pub(crate) samples: Samples,
}

/// Arrays of one axis.
#[derive(Args)]
pub(crate) struct Elements {
    /// Number of elements
    #[arg(long, value_name = "N", value_parser = whole::<usize>(0..=u64::MAX))]
    pub(crate) elements: usize,
    /// Element type
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: DType,
    #[command(flatten)]
    pub(crate) samples: Samples,
}

/// Arrays of one axis whose elements lie apart.
#[derive(Args)]
pub(crate) struct Strided {
    #[command(flatten)]
    pub(crate) elements: Elements,
    /// Elements from one copied element to the next
    #[arg(long, value_name = "K", value_parser = whole::<NonZeroUsize>(1..=u64::MAX))]
    pub(crate) step: NonZeroUsize,
}

/// Arrays of numbers that kernels compute with.
#[derive(Args)]
pub(crate) struct Arithmetic {
    /// Number of elements
    #[arg(long, value_name = "N", value_parser = whole::<usize>(0..=u64::MAX))]
    pub(crate) elements: usize,
    /// Element type: f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = number)]
    pub(crate) dtype: DType,
    #[command(flatten)]
    pub(crate) samples: Samples,
}

/// Images that are normalised.
#[derive(Args)]
pub(crate) struct Images {
    /// Images, rows, columns and channels
    #[arg(long, value_name = "N,H,W,C", value_parser = images)]
    pub(crate) shape: [usize; 4],
    /// Element type of the planes: f16, bf16 or f32
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    #[arg(value_parser = |text: &str| one_of(text, "images become planes of", &[DType::F16, DType::Bf16, DType::F32]))]
    pub(crate) dtype: DType,
    #[command(flatten)]
    pub(crate) samples: Samples,
}

/// An array of numbers that is reduced to one number, or along an axis.
#[derive(Args)]
pub(crate) struct Reduced {
    /// Number of elements, which are reduced to one
    #[arg(long, value_name = "N", required_unless_present = "shape", conflicts_with = "shape")]
    #[arg(value_parser = whole::<usize>(0..=u64::MAX))]
    pub(crate) elements: Option<usize>,
    /// Extents of the array, which is in C order
    #[arg(long, value_name = "S", value_parser = numbers, requires = "axis")]
    pub(crate) shape: Option<Box<[usize]>>,
    /// The axis to reduce, counted from 0
    #[arg(long, value_name = "K", requires = "shape", conflicts_with = "elements")]
    #[arg(value_parser = whole::<usize>(0..=u64::MAX))]
    pub(crate) axis: Option<usize>,
    /// Element type, which is not complex
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = reducible)]
    pub(crate) dtype: DType,
    #[command(flatten)]
    pub(crate) samples: Samples,
}

/// Elements that are converted.
#[derive(Args, Clone, Copy)]
pub(crate) struct Cast {
    /// Number of elements
    #[arg(long, value_name = "N", value_parser = whole::<usize>(0..=u64::MAX))]
    pub(crate) elements: usize,
    /// Type of the elements before: u8, i32, f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", value_parser = castable)]
    pub(crate) from: DType,
    /// Type of the elements after, one of the same types
    #[arg(long, value_name = "TYPE", value_parser = castable)]
    pub(crate) to: DType,
    #[command(flatten)]
    pub(crate) samples: Samples,
}

/// Rows that are gathered or scattered.
#[derive(Args, Clone, Copy)]
pub(crate) struct Rows {
    /// Number of rows, and of elements in each
    #[arg(long, value_name = "R,W", value_parser = shape)]
    pub(crate) shape: [usize; 2],
    /// Element type
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: DType,
    #[command(flatten)]
    pub(crate) samples: Samples,
}

/// An array whose rows lie along the last axis.
#[derive(Args)]
pub(crate) struct Rowwise {
    /// Extents of the array, which is in C order
    #[arg(long, value_name = "S", value_parser = numbers)]
    pub(crate) shape: Box<[usize]>,
    /// Element type: f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = number)]
    pub(crate) dtype: DType,
    #[command(flatten)]
    pub(crate) samples: Samples,
}

/// An array in C order, its axes in another, and the types of both sides.
#[derive(Args)]
#[command(override_usage = "warpstride bench affine --shape <S> --axes <A> --from <TYPE> --to <TYPE>\n           \
                            [--channels <AXIS>] [OPTIONS]")]
pub(crate) struct Affine {
    /// Extents of the array, which is in C order
    #[arg(long, value_name = "S", value_parser = numbers)]
    pub(crate) shape: Box<[usize]>,
    /// Its axes in the order of the result: 0,3,1,2, 'nhwc->nchw' or 'n h w c -> n c h w'
    #[arg(long, value_name = "A", allow_hyphen_values = true)]
    pub(crate) axes: Axes,
    /// Element type of the array: u8, f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", value_parser = mappable)]
    pub(crate) from: DType,
    /// Element type of the result: f16, bf16 or f32; f64 for an array of f64
    #[arg(long, value_name = "TYPE", value_parser = number)]
    pub(crate) to: DType,
    /// The axis of the result, counted from 0, whose indices have factors and offsets of their own
    #[arg(long, value_name = "AXIS", value_parser = whole::<usize>(0..=u64::MAX))]
    pub(crate) channels: Option<usize>,
    #[command(flatten)]
    pub(crate) samples: Samples,
}

impl Affine {
    /// The order of its axes; fails where its values do not go together.
    fn axes(&self) -> Result<Vec<usize>, String> {
        let Self { from, to, channels, .. } = *self;
        let axes = self.axes.of(&self.shape).map_err(|wrong| wrong.to_string())?;
        if (from == DType::F64) != (to == DType::F64) {
            return Err(format!(
                "elements of {from} are not mapped to {to}; doubles become doubles, and nothing else does"
            ));
        }
        match channels.filter(|&axis| axis >= axes.len()) {
            Some(axis) => Err(format!(
                "the result has no axis {axis} for --channels; it has {}, counted from 0",
                counted(axes.len(), "axis")
            )),
            None => Ok(axes),
        }
    }
}

#[derive(Args, Clone, Copy)]
pub(crate) struct Samples {
    /// Timed runs on a GPU, whose median is reported
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<u16>(1..=10_000))]
    pub(crate) samples: u16,
}
