//! What is typed behind `bench`.

use std::num::NonZeroUsize;

use clap::error::ErrorKind;
use clap::{Args, Subcommand};
use warpstride::element::DType;
use warpstride::error::counted;

use super::values::{Numbers, castable, dtype, images, mappable, number, plane, run_name, shape};
use super::{Axes, Permuted};

/// What is said of a `bench` that has nothing to do.
pub(in crate::cli) const NO_OPERATION: &str =
    "an operation is missing; name one, which `bench --list` lists, or --list, --all or --tune";

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(in crate::cli) struct Bench {
    #[command(subcommand)]
    pub(in crate::cli) operation: Option<Operation>,
    /// List the operations
    #[arg(long)]
    pub(in crate::cli) list: bool,
    /// Find the best tiles of this GPU: every shape that the kernels allow is timed on a few matrices
    #[arg(long, conflicts_with_all = ["list", "all"])]
    pub(in crate::cli) tune: bool,
    /// Measure a fixed list of cases in one run, whose document `report` draws: streams, permutes, every transpose
    /// kernel, axes and conversions. The software GPU counts smaller ones
    #[arg(long, conflicts_with = "list")]
    pub(in crate::cli) all: bool,
    /// Keep the run under a name
    #[arg(long, value_name = "NAME", requires = "all", value_parser = run_name)]
    pub(in crate::cli) save: Option<String>,
    /// Compare the run with one that was kept, case by case; status 1 where one is slower, wrong or gone
    #[arg(long, value_name = "NAME", requires = "all", value_parser = run_name)]
    pub(in crate::cli) compare: Option<String>,
}

impl Bench {
    /// Whether there is one thing to do: what must not stand on one line, or is missing.
    pub(super) fn check(&self) -> Result<(), (ErrorKind, String)> {
        let Self { operation, list, tune, all, save, compare } = self;
        let Some(operation) = operation else {
            let missing = || (ErrorKind::MissingSubcommand, NO_OPERATION.into());
            return if *list || *tune || *all { Ok(()) } else { Err(missing()) };
        };
        let given = [
            ("--list", *list),
            ("--tune", *tune),
            ("--all", *all),
            ("--save", save.is_some()),
            ("--compare", compare.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
            let conflict = format!("the argument '{option}' cannot be used with an operation; leave out one of them");
            return Err((ErrorKind::ArgumentConflict, conflict));
        }
        operation.axes().map(|_| ()).map_err(|wrong| (ErrorKind::ValueValidation, wrong))
    }
}

#[derive(Subcommand)]
pub(in crate::cli) enum Operation {
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

impl Operation {
    /// The order of its axes, where it has one; fails where its values do not go together.
    pub(in crate::cli) fn axes(&self) -> Result<Vec<usize>, String> {
        match self {
            Self::Permute { permuted, .. } => permuted.axes.of(&permuted.shape).map_err(|wrong| wrong.to_string()),
            Self::Affine(affine) => affine.axes(),
            _ => Ok(Vec::new()),
        }
    }
}

/// Arrays of one axis.
#[derive(Args)]
pub(in crate::cli) struct Elements {
    /// Number of elements
    #[arg(long, value_name = "N")]
    pub(in crate::cli) elements: usize,
    /// Their type
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = dtype)]
    pub(in crate::cli) dtype: DType,
    #[command(flatten)]
    pub(in crate::cli) samples: Samples,
}

/// Arrays of one axis whose elements lie apart.
#[derive(Args)]
pub(in crate::cli) struct Strided {
    #[command(flatten)]
    pub(in crate::cli) elements: Elements,
    /// From one element to the next
    #[arg(long, value_name = "K")]
    pub(in crate::cli) step: NonZeroUsize,
}

/// Arrays of numbers that kernels compute with.
#[derive(Args)]
pub(in crate::cli) struct Arithmetic {
    /// Number of elements
    #[arg(long, value_name = "N")]
    pub(in crate::cli) elements: usize,
    /// Their type: f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = number)]
    pub(in crate::cli) dtype: DType,
    #[command(flatten)]
    pub(in crate::cli) samples: Samples,
}

/// Images that are normalised.
#[derive(Args)]
pub(in crate::cli) struct Images {
    /// Images, rows, columns and channels
    #[arg(long, value_name = "N,H,W,C", value_parser = images)]
    pub(in crate::cli) shape: [usize; 4],
    /// What planes are made of: f16, bf16 or f32
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = plane)]
    pub(in crate::cli) dtype: DType,
    #[command(flatten)]
    pub(in crate::cli) samples: Samples,
}

/// An array of numbers that becomes one, or one along an axis.
#[derive(Args)]
pub(in crate::cli) struct Reduced {
    /// Number of elements, of which all become one
    #[arg(long, value_name = "N", required_unless_present = "shape", conflicts_with = "shape")]
    pub(in crate::cli) elements: Option<usize>,
    /// Extents of the array, which lies in C order
    #[arg(long, value_name = "S", requires = "axis")]
    pub(in crate::cli) shape: Option<Numbers>,
    /// The axis along which its elements become one, counted from 0
    #[arg(long, value_name = "K", requires = "shape", conflicts_with = "elements")]
    pub(in crate::cli) axis: Option<usize>,
    /// Their type: f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = number)]
    pub(in crate::cli) dtype: DType,
    #[command(flatten)]
    pub(in crate::cli) samples: Samples,
}

/// Elements of one type that become those of another.
#[derive(Args, Clone, Copy)]
pub(in crate::cli) struct Cast {
    /// Number of elements
    #[arg(long, value_name = "N")]
    pub(in crate::cli) elements: usize,
    /// Their type: u8, i32, f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", value_parser = castable)]
    pub(in crate::cli) from: DType,
    /// What they become, of the same types
    #[arg(long, value_name = "TYPE", value_parser = castable)]
    pub(in crate::cli) to: DType,
    #[command(flatten)]
    pub(in crate::cli) samples: Samples,
}

/// Rows that are found by their indices.
#[derive(Args, Clone, Copy)]
pub(in crate::cli) struct Rows {
    /// Rows, and elements of each
    #[arg(long, value_name = "R,W", value_parser = shape)]
    pub(in crate::cli) shape: [usize; 2],
    /// Their type
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = dtype)]
    pub(in crate::cli) dtype: DType,
    #[command(flatten)]
    pub(in crate::cli) samples: Samples,
}

/// An array whose last axis has the rows.
#[derive(Args)]
pub(in crate::cli) struct Rowwise {
    /// Extents of the array, which lies in C order
    #[arg(long, value_name = "S")]
    pub(in crate::cli) shape: Numbers,
    /// The type of its elements: f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = number)]
    pub(in crate::cli) dtype: DType,
    #[command(flatten)]
    pub(in crate::cli) samples: Samples,
}

/// An array in C order, its axes in another, and the types of both sides.
#[derive(Args)]
pub(in crate::cli) struct Affine {
    /// Extents of the array, which lies in C order
    #[arg(long, value_name = "S")]
    pub(in crate::cli) shape: Numbers,
    /// Its axes in the order of the result: 0,3,1,2, 'nhwc->nchw' or 'n h w c -> n c h w'
    #[arg(long, value_name = "A", allow_hyphen_values = true)]
    pub(in crate::cli) axes: Axes,
    /// Its element type: u8, f16, bf16, f32 or f64
    #[arg(long, value_name = "TYPE", value_parser = mappable)]
    pub(in crate::cli) from: DType,
    /// That of the result: f16, bf16 or f32, or f64 of f64
    #[arg(long, value_name = "TYPE", value_parser = number)]
    pub(in crate::cli) to: DType,
    /// The axis of the result, counted from 0, whose indices have factors and offsets of their own
    #[arg(long, value_name = "AXIS")]
    pub(in crate::cli) channels: Option<usize>,
    #[command(flatten)]
    pub(in crate::cli) samples: Samples,
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
pub(in crate::cli) struct Samples {
    /// Timed runs on a GPU, whose median is reported
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(in crate::cli) samples: u16,
}
