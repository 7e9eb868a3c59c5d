//! The arguments of the command line.

mod bench;
mod learn;
mod order;
mod pipeline;
mod run_program;
mod run_ptx;
mod tips;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{Error, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use warpstride::device::Backend;
use warpstride::element::DType;
use warpstride::error::printable_line;
use warpstride::ops::Variant;
use warpstride::roofline::model::DeviceModel;

use warpstride::interp::Checks;

pub(super) use bench::{
    Affine, Arithmetic, Bench, Cast, Elements, Engine, Images, Listed, NO_OPERATION, Operation, Permutes, Reduced,
    Rows, Rowwise, Samples, Spread, Strided, operations,
};
pub(super) use learn::{Learn, LearnCommand};
pub(super) use pipeline::Pipeline;
pub(super) use run_program::RunProgram;
pub(super) use run_ptx::{Architecture, Argument, By, Dump, Fill, Set, Timed, Value, architecture, three};
use run_ptx::{dump, extents};
pub(super) use values::{Part, Random};
use values::{bytes, numbers, shape, whole};
pub(super) use values::{model, run_name};
pub(super) use warpstride::layout::Axes;

/// Transposes matrices and runs any PTX on an NVIDIA GPU, or on a software GPU where there is none.
#[derive(Parser)]
#[command(name = "warpstride", version, arg_required_else_help = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

impl Cli {
    /// Returns whether one JSON document is wanted.
    pub(super) fn json(&self) -> bool {
        if let Command::RunPtx(RunPtx { launch, .. }) | Command::RunCu(RunCu { launch, .. }) = &self.command
            && launch.report_json
        {
            return true;
        }
        self.global.json
    }

    /// Parses the command line, or explains the usage error.
    pub(super) fn typed() -> Result<Self, Error> {
        let words: Vec<OsString> = std::env::args_os().collect();
        // A refusal quotes words, so it is made of words that may be shown, unless only the others
        // are refused.
        let shown = |word: &OsString| printable_line(&word.to_string_lossy()).into();
        let words_shown = words.iter().map(shown).collect();
        Self::of(words).or_else(|refused| Self::of(words_shown).map_or_else(Err, |_| Err(refused)))
    }

    /// Parses the program's name and the words behind it.
    fn of(words: Vec<OsString>) -> Result<Self, Error> {
        let mut command = Self::command();
        command.build();
        let mut words = words.into_iter();
        let program = words.next();
        let typed: Vec<OsString> = words.collect();
        let words = run_program::with_file_of_json(order::ordered(&command, typed.clone()));
        let cli = Self::try_parse_from(program.into_iter().chain(words));
        let cli = cli.map_err(|refused| tips::with_tip(refused, &typed))?;
        match cli.check() {
            Ok(()) => Ok(cli),
            Err((kind, wrong)) => Err(Self::command().error(kind, wrong)),
        }
    }

    /// Checks the values of the command against each other.
    fn check(&self) -> Result<(), (ErrorKind, String)> {
        match &self.command {
            Command::Explain(explain) => explain.check(),
            Command::Bench(bench) => bench.check(),
            Command::Pipeline(pipeline) => pipeline.check(),
            Command::Learn(learn) => learn.check(self.json()),
            _ => Ok(()),
        }
    }
}

/// Returns whether the words of a command line ask for JSON, even if they are a usage error.
pub(super) fn ask_for_json(words: impl Iterator<Item = OsString>) -> bool {
    // Neither option takes a value, so `--json=x` is a usage error; it still asks for JSON.
    let option = |word: &OsString| word.to_string_lossy().split('=').next().map(ToOwned::to_owned);
    run_program::with_file_of_json(words.collect())
        .into_iter()
        .take_while(|word| word != "--")
        .any(|word| matches!(option(&word).as_deref(), Some("--json" | "--report-json")))
}

/// The heading of their group in the help.
const OF_ALL: &str = "Options of every command";

/// The options that every command takes.
#[derive(Args)]
pub(super) struct Global {
    /// The device to run on: `auto` (a GPU if there is one), `cuda`, `cuda:N` or `soft`
    #[arg(long, global = true, help_heading = OF_ALL, value_name = "DEVICE", default_value = "auto")]
    pub(super) device: Backend,
    /// Print one JSON document instead of text
    #[arg(long, global = true, help_heading = OF_ALL)]
    pub(super) json: bool,
    /// Print results and errors only, no notes and no progress
    #[arg(long, global = true, help_heading = OF_ALL)]
    pub(super) quiet: bool,
    /// Print the calls to each device's driver by kind, those that can make the host wait, and the
    /// memory: after the command on standard error, with --json in the document
    #[arg(long, global = true, help_heading = OF_ALL)]
    pub(super) stats: bool,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// List the devices, or the one that --device names, and why others are not there
    Devices,
    /// Transpose a matrix from one .npy file into another
    Transpose(Transpose),
    /// Put the axes of an array in another order, from one .npy file into another
    Permute(Permute),
    /// Run every transpose kernel on the same matrix, verify it, and show its memory accesses
    Compare(Compare),
    /// Predict the times of a run that a GPU measured, and show how far off the model is
    Model(Model),
    /// Print how a permute, or a redistribution over GPUs and hosts, would be done, and why
    Explain(Explain),
    /// Verify an operation on random numbers, and measure it on a GPU
    Bench(Bench),
    /// Show a run of `bench` or `compare`: tables, charts, a page, or its differences from another
    /// run
    Report(Report),
    /// Measure the ceilings of this GPU's memory: nominal, and the best of simple kernels
    Peaks,
    /// Measure the allocator of buffers, or run a program's allocations again
    #[command(subcommand)]
    Alloc(Alloc),
    /// Measure copies between host and device: ordinary, pinned, registered and write-combined
    /// memory, in both directions, what page-locking costs, and frames there and back
    Transfers(Transfers),
    /// Send frames through the device and back: blocking, on one stream, on several, and as graphs,
    /// beside the slower of link and compute
    Pipeline(Pipeline),
    /// Run a kernel of a PTX file, and show what it does to memory
    ///
    /// On a GPU nothing keeps a kernel within its buffers: run only PTX that you trust. The
    /// software GPU stops it there.
    RunPtx(RunPtx),
    /// Compile CUDA C++, run a kernel of it, and show what it does to memory
    ///
    /// NVRTC (`pip install nvidia-cuda-nvrtc`) or clang 14 or later compiles it. On a GPU nothing
    /// keeps a kernel within its buffers: run only kernels that you trust. The software GPU stops
    /// them there.
    RunCu(RunCu),
    /// Check a kernel's values and memory accesses on the software GPU, as files say; for tests
    /// without a GPU
    Check(Check),
    /// Run a CUDA program on the software GPU, and show what its kernels did
    ///
    /// The program loads the software GPU as its `libcuda.so.1`, and so do the programs that it
    /// starts. Its output stays as it is; the report goes to standard error. The exit status is the
    /// program's, or 86 if the program succeeds and there are findings. Linux only.
    Run(RunProgram),
    /// Learn how GPUs move memory, by lessons that check themselves
    ///
    /// The lessons are in the program, and their files go into a folder of yours. An edited file is
    /// never overwritten, and a missing one is put back.
    Learn(Learn),
    /// Start N processes of a program on this host, as the ranks of a job
    ///
    /// Each has RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
    /// WARPSTRIDE_TOKEN, and nothing to read. The standard output of rank 0 stays as it is; all
    /// other lines go to standard error behind `[rank N]`. If a rank fails, the others have 5 s to
    /// end, and 5 s more after SIGTERM; the exit status is that of the first that failed.
    Launch(Launch),
    /// List the PTX that the software GPU has, as Markdown, or the forms that a file uses and those
    /// that are missing
    PtxForms(PtxForms),
    /// Print a shell completion script
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Args)]
pub(super) struct Transpose {
    /// The matrix: 2-D, C or Fortran order
    #[arg(value_name = "IN.npy")]
    pub(super) input: PathBuf,
    /// The file for the transpose, in C order; replaced only when everything has worked
    #[arg(value_name = "OUT.npy")]
    pub(super) output: PathBuf,
    /// The kernel, instead of the fastest for the matrix: column_loop, naive, tiled, padded or
    /// staggered
    #[arg(long, value_name = "NAME", conflicts_with_all = ["device_memory", "resume", "gpus"])]
    pub(super) variant: Option<Variant>,
    #[command(flatten)]
    pub(super) streamed: Streamed,
}

/// How an array goes through a device that has no room for it, or through several.
#[derive(Args)]
pub(super) struct Streamed {
    /// Stream the array through at most this much device memory, which takes as much host memory;
    /// an array that does not fit the device or the host is streamed without it, too
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(super) device_memory: Option<usize>,
    /// Stream the array, and go on with the result of an interrupted run, OUT.npy.incomplete, if
    /// there is one
    #[arg(long)]
    pub(super) resume: bool,
    /// Spread the array over N GPUs, which exchange their parts over their links; with `--device
    /// soft`, over N software GPUs
    #[arg(long, value_name = "N", conflicts_with_all = ["device_memory", "resume"])]
    pub(super) gpus: Option<usize>,
}

#[derive(Args)]
pub(super) struct Permute {
    /// The array: any number of axes, C or Fortran order
    #[arg(value_name = "IN.npy")]
    pub(super) input: PathBuf,
    /// The file for the result, in C order; replaced only when everything has worked
    #[arg(value_name = "OUT.npy")]
    pub(super) output: PathBuf,
    /// The axes of the input in the order of the result: 0,3,1,2, 'nhwc->nchw' or 'n h w c -> n c h
    /// w'
    #[arg(long, value_name = "A", allow_hyphen_values = true)]
    pub(super) axes: Axes,
    #[command(flatten)]
    pub(super) streamed: Streamed,
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
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(super) dtype: DType,
    /// The kernels to run, instead of all: column_loop (and its graph), naive, tiled, padded,
    /// staggered
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(super) variants: Vec<Variant>,
    /// Predict times from what the software GPU counts, by the model of a GPU: h100, h200, a100,
    /// l4, t4 or rtx4090
    #[arg(long, value_name = "DEVICE", value_parser = model)]
    pub(super) model: Option<DeviceModel>,
}

#[derive(Args)]
pub(super) struct Model {
    /// The document of `warpstride --json bench` or `compare`, or a run that was saved
    #[arg(value_name = "RUN.json")]
    pub(super) run: PathBuf,
    /// The model, instead of that of the GPU of the run: h100, h200, a100, l4, t4 or rtx4090
    #[arg(long, value_name = "GPU", value_parser = model)]
    pub(super) model: Option<DeviceModel>,
}

#[derive(Subcommand)]
pub(super) enum Alloc {
    /// Measure an allocation and a free of a buffer, beside the driver's own, on one thread and on
    /// eight
    Bench,
    /// Run the allocations of a log again, on a GPU or without one, and show the memory they take
    Replay(AllocReplay),
}

#[derive(Args)]
pub(super) struct AllocReplay {
    /// The log, with the columns Thread,Time,Action,Pointer,Size,Stream, as RMM writes them
    #[arg(value_name = "LOG.csv", required_unless_present = "seed")]
    pub(super) log: Option<PathBuf>,
    /// Make a log instead, which is the same for the same seed: a million allocations and frees of
    /// 512 B to 2 GiB on four streams, up to 20 GiB in use
    #[arg(long, value_name = "SEED", conflicts_with = "log", value_parser = whole::<u64>(0..=u64::MAX))]
    pub(super) seed: Option<u64>,
    /// Draw the bytes in use and the bytes reserved over the log
    #[arg(long, value_name = "OUT.svg")]
    pub(super) svg: Option<PathBuf>,
    /// Write the log that was run, for other allocators
    #[arg(long, value_name = "OUT.csv")]
    pub(super) write: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct Transfers {
    /// Bytes of the largest copies; 1073741824 on a GPU, and 1048576 on the software GPU
    #[arg(long, value_name = "N", value_parser = bytes)]
    pub(super) bytes: Option<usize>,
}

#[derive(Args)]
pub(super) struct Report {
    /// The document of `warpstride --json bench`, `compare`, `transfers` or `pipeline`
    #[arg(value_name = "RUN.json")]
    pub(super) run: PathBuf,
    /// Write a page with everything, which needs no other file and no network. With --compare it
    /// begins with what changed
    #[arg(long, value_name = "OUT.html")]
    pub(super) html: Option<PathBuf>,
    /// Write the slowest cases, their reasons and the tables as Markdown
    #[arg(long, value_name = "OUT.md")]
    pub(super) markdown: Option<PathBuf>,
    /// Write the cases as comma-separated values
    #[arg(long, value_name = "OUT.csv")]
    pub(super) csv: Option<PathBuf>,
    /// Write each chart into a folder, which is made if it is missing
    #[arg(long, value_name = "FOLDER")]
    pub(super) svg: Option<PathBuf>,
    /// Compare the run with an earlier one, case by case: by times on a GPU, by counters on the
    /// software GPU. Exits with status 1 if a case is slower, wrong, missing, or counts differently
    #[arg(long, value_name = "BEFORE.json")]
    pub(super) compare: Option<PathBuf>,
}

/// An array in C order and its axes in another, on one device or spread over several.
#[derive(Args)]
pub(super) struct Explain {
    /// Extents of the array, which lies in C order
    #[arg(long, value_name = "S", value_parser = numbers)]
    pub(super) shape: Box<[usize]>,
    /// Its axes in the order of the result: 0,3,1,2, 'nhwc->nchw' or 'n h w c -> n c h w'; with
    /// --from or --to the same order by default
    #[arg(long, value_name = "A", allow_hyphen_values = true, required_unless_present_any = ["from", "to"])]
    pub(super) axes: Option<Axes>,
    /// Its element type
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(super) dtype: DType,
    /// Cuts of an array over several GPUs: axis:parts, or axis:extent+extent, several by comma
    #[arg(long, value_name = "CUTS")]
    pub(super) from: Option<String>,
    /// Cuts of the result, whose axes are counted in its own order
    #[arg(long, value_name = "CUTS")]
    pub(super) to: Option<String>,
    /// Predict the traffic and the time over several hosts, as a file describes them, or over hosts
    /// of eight H100: h100x8:HOSTS
    #[arg(long, value_name = "FILE.toml")]
    pub(super) cluster: Option<OsString>,
}

impl Explain {
    /// Returns whether the array is spread over GPUs.
    pub(super) fn is_spread(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    fn check(&self) -> Result<(), (ErrorKind, String)> {
        if self.cluster.is_some() && !self.is_spread() {
            let missing = "--cluster is about an array that is spread over GPUs; spread it by --from or --to";
            return Err((ErrorKind::MissingRequiredArgument, missing.to_owned()));
        }
        let order = self.axes.as_ref().map(|axes| axes.of(&self.shape)).transpose();
        order.map(|_| ()).map_err(|wrong| (ErrorKind::ValueValidation, wrong.to_string()))
    }
}

#[derive(Args)]
pub(super) struct Launch {
    /// The number of processes
    #[arg(short = 'n', long, value_name = "N", value_parser = whole::<usize>(1..=4096))]
    pub(super) ranks: usize,
    /// The program and its arguments; options behind its name are the program's
    #[arg(value_name = "COMMAND", required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) command: Vec<OsString>,
}

#[derive(Args)]
pub(super) struct Check {
    /// The kernels to run and the results expected of them; paths in it are relative to it
    #[arg(value_name = "FILE.toml", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Print what falls short as annotations of GitHub's pull requests, too, on standard error
    #[arg(long)]
    pub(super) github: bool,
    /// Write the expectations as a report in JUnit's format, which CI systems show
    #[arg(long, value_name = "OUT.xml")]
    pub(super) junit: Option<PathBuf>,
    /// Write what falls short as a SARIF log, which code hosts and editors show at lines of sources
    #[arg(long, value_name = "OUT.sarif")]
    pub(super) sarif: Option<PathBuf>,
    /// Write the counters under Nsight Compute's names, as its `--csv --page details` does
    #[arg(long, value_name = "OUT.csv")]
    pub(super) ncu_csv: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct RunPtx {
    /// The PTX
    #[arg(value_name = "FILE.ptx")]
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) launch: Launched,
}

#[derive(Args)]
pub(super) struct RunCu {
    /// The CUDA C++
    #[arg(value_name = "FILE.cu")]
    pub(super) file: PathBuf,
    /// The compiler, instead of the first that is found: NVRTC by WARPSTRIDE_NVRTC, by the system's
    /// loader and in Python's packages, then clang 14 or later
    #[arg(long, value_name = "NAME")]
    pub(super) compiler: Option<Compiler>,
    #[command(flatten)]
    pub(super) launch: Launched,
}

/// A compiler of CUDA C++.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Compiler {
    /// NVIDIA's, as a library
    Nvrtc,
    /// LLVM's, as a program
    Clang,
}

/// A launch of a user's kernel, and what is wanted of it.
#[derive(Args, Default)]
pub(super) struct Launched {
    /// The kernel, by its name in PTX or in C++ (`transpose`, `ns::transpose<float>`); may be left
    /// out where the file has one
    #[arg(long, value_name = "NAME")]
    pub(super) entry: Option<String>,
    /// Blocks in x, y and z; 1 for those left out
    #[arg(long, value_name = "X,Y,Z", value_parser = extents)]
    pub(super) grid: [u32; 3],
    /// Threads of a block in x, y and z; 1 for those left out
    #[arg(long, value_name = "X,Y,Z", value_parser = extents)]
    pub(super) block: [u32; 3],
    /// Dynamic shared memory of a block: with the kernel's own, 48 KiB, or up to the limit of the
    /// architecture, which a program on a GPU has to ask for
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = whole::<u32>(0..=u32::MAX.into()))]
    pub(super) shared: u32,
    /// The architecture, such as sm_90, that run-cu compiles for and whose limits the software GPU
    /// has; that of the PTX where it is left out, which run-cu compiles for sm_80
    #[arg(long, value_name = "SM", value_parser = architecture)]
    pub(super) arch: Option<Architecture>,
    /// The kernel's arguments in order, one --arg each: a number (i32:7, f32:1.5), a buffer
    /// (f32[1024]=zeros, =iota, =1.5, =random:SEED or =uninit) or the elements of a file
    /// (npy:FILE); a struct is passed member by member
    #[arg(long = "arg", value_name = "A")]
    pub(super) arguments: Vec<Argument>,
    /// Fill a `__constant__` or `__device__` variable before the launch with a value as of --arg,
    /// such as scale=f32:2 or factors=f32[16]=iota; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(super) sets: Vec<Set>,
    /// Faults that the software GPU looks for besides counting: memcheck, initcheck, racecheck,
    /// synccheck, or all; a launch in which it finds something ends with status 1
    #[arg(long = "check", value_name = "A,B")]
    pub(super) checks: Option<Checks>,
    /// The work after which the software GPU stops the launch, in simple instructions of a warp,
    /// some 10 ns each; 1073741824 by default
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=u64::MAX))]
    pub(super) limit: Option<u64>,
    /// Fuse `mul` and `add` as ptxas may, so that values can be compared with a GPU's;
    /// docs/counters.md says when they differ
    #[arg(long)]
    pub(super) contract: bool,
    /// Write the buffer of argument I, counted from 0, to a file after the launch; may be given
    /// several times
    #[arg(long = "dump", value_name = "I=OUT.npy", value_parser = dump)]
    pub(super) dumps: Vec<Dump>,
    /// Show what each instruction that accesses memory did, and draw the worst accesses; with
    /// --json, put all of it into the document. The software GPU counts: --device soft
    #[arg(long)]
    pub(super) report: bool,
    /// Short for --report --json
    #[arg(long)]
    pub(super) report_json: bool,
    /// Add the names that Nsight Compute has for the report's columns; asks for the report
    #[arg(long)]
    pub(super) nsight: bool,
    /// The meaning of a row of the report: a line of the source, the default where the PTX has
    /// lines (nvcc -lineinfo), or an instruction; asks for the report
    #[arg(long, value_name = "WHAT")]
    pub(super) by: Option<By>,
    /// Print the source with what each of its lines did to memory; with --json, put it into the
    /// document. On the software GPU, as --report
    #[arg(long)]
    pub(super) annotate: bool,
    /// Draw the worst access of each instruction into an image; on the software GPU, as --report
    #[arg(long, value_name = "FILE.svg")]
    pub(super) draw: Option<PathBuf>,
    #[command(flatten)]
    pub(super) modelled: Modelled,
    #[command(flatten)]
    pub(super) timed: Timed,
}

/// The prediction of a launch.
#[derive(Args, Default)]
pub(super) struct Modelled {
    /// Predict the time on a GPU from what the software GPU counts, with what bounds it: h100,
    /// h200, a100, l4, t4 or rtx4090. `warpstride model RUN.json` holds it to a GPU's run
    #[arg(long, value_name = "GPU", value_parser = model)]
    pub(super) model: Option<DeviceModel>,
    /// Registers of a thread for the model, instead of those that ptxas gives where it is installed
    #[arg(long, value_name = "N", requires = "model", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(super) registers: Option<u32>,
}

#[derive(Args)]
pub(super) struct PtxForms {
    /// PTX whose kernels are looked through, instead of listing everything
    #[arg(value_name = "FILE.ptx")]
    pub(super) file: Option<PathBuf>,
}
