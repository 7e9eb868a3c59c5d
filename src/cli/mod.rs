//! The command line's one entry, and what its commands share.

mod args;
#[cfg(feature = "interp")]
mod argument;
mod bench;
mod compare;
mod devices;
mod explain;
mod input;
mod npy;
mod output;
mod peaks;
mod permute;
#[cfg(feature = "interp")]
mod ptx_file;
#[cfg(feature = "interp")]
mod ptx_forms;
mod reference;
mod report;
mod room;
#[cfg(feature = "interp")]
mod run_ptx;
mod runs;
mod target;
mod transpose;
mod trial;
mod tune;
mod turns;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, ensure};
use bytemuck::Pod;
use warpstride::device::{Backend, Device};
use warpstride::driver::DriverKind;
use warpstride::element::DType;
use warpstride::layout::Layout;

use args::{Cli, Command};
use output::Output;

/// Evaluates `$body` with `$type` as wide as the element type: who only moves elements needs to know no more of them.
macro_rules! by_width {
    ($dtype:expr, $type:ident => $body:expr) => {
        match $dtype.width() {
            1 => by_width!(@ u8, $type, $body),
            2 => by_width!(@ u16, $type, $body),
            4 => by_width!(@ u32, $type, $body),
            8 => by_width!(@ u64, $type, $body),
            _ => by_width!(@ [f64; 2], $type, $body),
        }
    };
    (@ $wide:ty, $type:ident, $body:expr) => {{
        type $type = $wide;
        $body
    }};
}
use by_width;

/// Runs the command that was typed: 0 done, 1 failed, and 2, from clap, for wrong usage.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::typed();
    let output = Output::new(cli.json(), cli.global.quiet);
    match run(&cli, &output) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has read enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // A driver's own account may take several lines.
            let _ = writeln!(io::stderr(), "error: {}", format!("{error:#}").replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli, output: &Output) -> Result<()> {
    let backend = cli.global.device;
    match &cli.command {
        Command::Devices => devices::run(backend, output),
        Command::Transpose(args) => transpose::run(args, backend, output),
        Command::Permute(args) => permute::run(args, backend, output),
        Command::Compare(args) => compare::run(args, backend, output),
        Command::Explain(args) => explain::run(args, backend, output),
        Command::Bench(args) => bench::run(args, backend, output),
        Command::Report(args) => report::run(args, output),
        Command::Peaks => peaks::run(backend, output),
        #[cfg(feature = "interp")]
        Command::RunPtx(args) => run_ptx::run(args, backend, output),
        #[cfg(feature = "interp")]
        Command::PtxForms(args) => ptx_forms::run(args, output),
    }
}

/// Opens the device and says what `auto` took.
fn open(backend: Backend, output: &Output) -> Result<Device> {
    if backend != Backend::Auto {
        return Device::open(backend).with_context(|| format!("cannot open {backend}"));
    }
    let device = Device::open(backend)?;
    output.note(device.choice());
    Ok(device)
}

/// Fails with a sentence where there is no room for so many copies of `bytes` bytes on the host, and for so many
/// more on each device. The software GPU's memory is the host's.
fn ensure_room(bytes: usize, on_host: usize, on_devices: &[(&Device, usize)]) -> Result<()> {
    let copies = |count: usize| bytes as u128 * count as u128;
    let mut host = copies(on_host);
    for &(device, count) in on_devices {
        let info = device.info();
        ensure!(
            copies(count) <= u128::from(info.memory_bytes),
            "this takes {} MB of memory on {}, which has {} MB; use smaller arrays",
            copies(count).div_ceil(1_000_000),
            info.name,
            info.memory_bytes / 1_000_000
        );
        if info.kind == DriverKind::Soft {
            host += copies(count);
        }
    }
    room::ensure_room(host)
}

/// The bytes of an array, where there is such a layout and an address can count them.
fn array_bytes(shape: &[usize], dtype: DType) -> Result<usize> {
    // However long the axes are, where one of them is empty.
    let extents = if shape.contains(&0) { &[0] } else { shape };
    let bytes = extents.iter().try_fold(dtype.width(), |bytes, &extent| bytes.checked_mul(extent));
    let bytes = bytes.filter(|&bytes| bytes <= isize::MAX as usize).with_context(|| {
        format!("an array of {shape:?} {dtype} has more bytes than an address can count; use a smaller one")
    })?;
    // Then its partial products are numbers too, also where it is empty.
    Layout::row_major(shape)?;
    Ok(bytes)
}

/// An array of `shape` in C order with its axes in the order `axes`, and what that is in C order.
fn permuted_layouts(shape: &[usize], axes: &[usize]) -> Result<[Layout; 2]> {
    let source = Layout::row_major(shape)?.permuted_axes(axes)?;
    Ok([source, Layout::row_major(source.shape())?])
}

/// `len` zero elements, or a sentence where the host has no memory for them.
fn zeroed<T: Pod>(len: usize) -> Result<Vec<T>> {
    bytemuck::try_zeroed_vec(len).map_err(|()| {
        let megabytes = len.saturating_mul(size_of::<T>()) / 1_000_000;
        anyhow!("the host has no {megabytes} MB of memory for this; use smaller arrays")
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
