//! The arguments of `pipeline`.

use std::path::PathBuf;

use super::values::{extents, one_of, whole};
use crate::pipeline;
use clap::Args;
use clap::error::ErrorKind;
use warpstride::element::DType;
use warpstride::pipeline::Mode;

/// Steps of the model of an intensity of 10.
const STEPS: u32 = 40;

#[derive(Args)]
pub(crate) struct Pipeline {
    /// The number of random frames; 8192 on a GPU, and 100 on the software GPU
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=1 << 40))]
    pub(crate) frames: Option<u64>,
    /// A folder of images instead: .png, .jpg, .jpeg, and .npy of u8 elements with shape H,W,3 or
    /// N,H,W,3
    #[arg(long, value_name = "DIR", conflicts_with_all = ["frames", "shape", "dtype"])]
    pub(crate) input: Option<PathBuf>,
    /// The file for the results, f32 elements with shape N,C,H,W; replaced only when everything has
    /// worked. It takes one batch size and one mode
    #[arg(long, value_name = "OUT.npy", conflicts_with = "reuse")]
    pub(crate) output: Option<PathBuf>,
    /// Frames of a batch; several sizes are a sweep. 1,8,64 on a GPU and 1,8,32 on the software
    /// GPU; with --output the last of these
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = whole::<usize>(1..=1 << 24))]
    pub(crate) batch: Vec<usize>,
    /// How batches share the device: blocking, async, streams, graph, or all, which is a sweep; all
    /// by default, with --output streams
    #[arg(long, value_name = "MODE", value_parser = modes)]
    pub(crate) mode: Option<Box<[Mode]>>,
    /// Floating-point operations of the model for each byte that it reads or writes; 10 by default,
    /// and with --input or --output 0, which means without a model
    #[arg(long, value_name = "F", value_parser = steps)]
    intensity: Option<u32>,
    /// Write the stages of the last run's last batches, for Perfetto or chrome://tracing
    #[arg(long, value_name = "OUT.json")]
    pub(crate) trace: Option<PathBuf>,
    /// Channels, height and width of random frames; 3,224,224 on a GPU, and 3,32,32 on the software
    /// GPU
    #[arg(long, value_name = "C,H,W", value_parser = shape)]
    pub(crate) shape: Option<[usize; 3]>,
    /// Element type of random frames: u8, which lie as images do, or f32, which are planes already
    #[arg(long, value_name = "TYPE", default_value = "u8")]
    #[arg(value_parser = |text: &str| one_of(text, "frames are of", &[DType::U8, DType::F32]))]
    pub(crate) dtype: DType,
    /// Resize images to this height and width; else all have the size of the first
    #[arg(long, value_name = "H,W", requires = "input", value_parser = super::shape)]
    pub(crate) size: Option<[usize; 2]>,
    /// Batches that are on their way at most
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = whole::<usize>(1..=256))]
    pub(crate) slots: usize,
    /// Send the frames that verify a case again and again, so that the host makes no others: for
    /// measuring the link
    #[arg(long)]
    pub(crate) reuse: bool,
}

impl Pipeline {
    /// Returns the steps of the model. Files get images that are normalised alone, unless a model
    /// is asked for.
    pub(crate) fn steps(&self) -> u32 {
        let default = if self.input.is_some() || self.output.is_some() { 0 } else { STEPS };
        self.intensity.unwrap_or(default)
    }

    /// Checks the options against each other.
    pub(super) fn check(&self) -> Result<(), (ErrorKind, String)> {
        let is_sweep = self.batch.len() > 1 || self.mode.as_ref().is_some_and(|modes| modes.len() > 1);
        if self.output.is_some() && is_sweep {
            let sentence = "--output takes the results of one run; give one batch size and one mode with it";
            return Err((ErrorKind::ArgumentConflict, sentence.into()));
        }
        Ok(())
    }
}

/// One mode or several, each once.
fn modes(text: &str) -> Result<Box<[Mode]>, String> {
    if text == "all" {
        return Ok(Mode::ALL.into());
    }
    let mode = |name: &str| {
        let found = Mode::ALL.into_iter().find(|mode| mode.name() == name);
        found.ok_or_else(|| format!("the modes are {}, and all", Mode::ALL.map(Mode::name).join(", ")))
    };
    let given = text.split(',').map(mode).collect::<Result<Vec<_>, _>>()?;
    Ok(Mode::ALL.into_iter().filter(|mode| given.contains(mode)).collect())
}

/// The steps of a model of an intensity.
fn steps(text: &str) -> Result<u32, String> {
    let steps = text.parse().ok().and_then(pipeline::steps);
    steps.ok_or_else(|| format!("give a number of operations a byte from 0 to {}, such as 10", u32::MAX / 4))
}

fn shape(text: &str) -> Result<[usize; 3], String> {
    let sentence = "give channels, height and width as three whole numbers from 1, such as 3,224,224";
    let shape = extents(text, sentence)?;
    if shape.contains(&0) { Err(sentence.into()) } else { Ok(shape) }
}
