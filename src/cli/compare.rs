//! `warpstride compare`: every transpose kernel on the same matrix, verified, timed and counted.

use anyhow::{Context, Result, ensure};
use bytemuck::Pod;
use serde_json::{Value, json};
use warpstride::counters::Counters;
use warpstride::device::{Backend, Device};
use warpstride::driver::DriverKind;
use warpstride::element::{DType, Element};
use warpstride::error::Error;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Variant};
use warpstride::roofline::measure::{self, Timing};
use warpstride::stream::Stream;

use super::npy::Source;
use super::output::{self, Output};
use super::{args, by_width, ensure_room, open, zeroed};

/// Timed runs of a kernel; their median is reported.
const SAMPLES: usize = 20;
/// The same for `column_loop`, whose one run is a launch for every column.
const SLOW_SAMPLES: usize = 3;
/// Most pairs of buffers to rotate over, for matrices so small that time means little anyway.
const MAX_PAIRS: usize = 64;
/// Most elements that the software GPU counts for a GPU, which cannot itself: about two seconds of two cores.
const MAX_COUNTED: usize = 1 << 25;
/// Rows and columns of the CPU's tiles: both sides of one stay in its L1 cache at every element width.
const CPU_TILE: usize = 32;

pub(super) fn run(args: &args::Compare, backend: Backend, output: &Output) -> Result<()> {
    let variants = if args.variants.is_empty() { Variant::ALL.to_vec() } else { args.variants.clone() };
    if let Some(path) = &args.input {
        let source = Source::open(path)?;
        source.matrix()?;
        let devices = Devices::open(backend, source.bytes, source.dtype, output)
            .with_context(|| format!("cannot compare on {}", path.display()))?;
        by_width!(source.dtype, T => compare::<T>(&devices, Matrix::read(source)?, &variants, output))
    } else {
        let bytes = bytes(args.shape, args.dtype)?;
        let devices = Devices::open(backend, bytes, args.dtype, output)?;
        by_width!(args.dtype, T => {
            compare::<T>(&devices, Matrix::random(args.shape, args.dtype, bytes)?, &variants, output)
        })
    }
}

/// The bytes of a matrix, where an address can count them.
fn bytes([rows, cols]: [usize; 2], dtype: DType) -> Result<usize> {
    let bytes = rows.checked_mul(cols).and_then(|elements| elements.checked_mul(dtype.width()));
    bytes.filter(|&bytes| bytes <= isize::MAX as usize).with_context(|| {
        format!("a matrix of {rows} x {cols} {dtype} has more bytes than an address can count; use a smaller one")
    })
}

/// Where it is done.
struct Devices {
    named: Device,
    /// Sources and destinations for timed runs to take in turn; none where time means nothing.
    pairs: usize,
    /// Whether there are so many that the L2 cache has lost each before its next turn.
    cold: bool,
    /// The software GPU, where the named device does not count and the matrix is small enough to count it there: the same
    /// launches of the same PTX count the same on both.
    counting: Option<Device>,
}

impl Devices {
    /// Opens what a matrix of `bytes` bytes needs, and makes sure that it fits.
    fn open(backend: Backend, bytes: usize, dtype: DType, output: &Output) -> Result<Self> {
        let named = open(backend, output)?;
        let timed = output::has_times(&named) && bytes > 0;
        let cold_sets = measure::cold_sets(2 * bytes as u64, named.info().l2_bytes);
        let pairs = if timed { cold_sets.min(MAX_PAIRS) } else { 0 };
        // The matrix, its transpose, and what came back from a device; on each device a source, a result and the pairs.
        let (on_host, on_device) = (3, 2);
        let own = (&named, on_device + 2 * pairs);
        ensure_room(bytes, on_host, &[own])?;
        let mut counting = None;
        if output::has_times(&named) && bytes / dtype.width() <= MAX_COUNTED {
            let opened = Device::open(Backend::Soft).map_err(anyhow::Error::from);
            match opened.and_then(|soft| ensure_room(bytes, on_host, &[own, (&soft, on_device)]).map(|()| soft)) {
                Ok(soft) => counting = Some(soft),
                Err(error) => output.note(format!("nothing is counted: {error:#}")),
            }
        }
        Ok(Self { named, pairs, cold: pairs >= cold_sets, counting })
    }
}

/// What is transposed.
struct Matrix<T> {
    rows: usize,
    cols: usize,
    dtype: DType,
    /// Whether the elements of a column, not of a row, lie beside each other.
    fortran: bool,
    elements: Vec<T>,
}

impl<T: Pod> Matrix<T> {
    /// Bytes that a copy or a transpose of it reads and writes.
    fn bytes_moved(&self) -> u64 {
        2 * size_of_val(self.elements.as_slice()) as u64
    }

    fn read(source: Source) -> Result<Self> {
        let [rows, cols] = source.matrix()?;
        Ok(Self { rows, cols, dtype: source.dtype, fortran: source.fortran, elements: source.read()? })
    }

    /// Bits of a fixed sequence (xorshift64*, Vigna 2016): the same matrix on every run, and no two columns alike.
    fn random([rows, cols]: [usize; 2], dtype: DType, bytes: usize) -> Result<Self> {
        let mut elements = zeroed::<T>(bytes / size_of::<T>())?;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for chunk in bytemuck::cast_slice_mut::<T, u8>(&mut elements).chunks_mut(8) {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let bits = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
            chunk.copy_from_slice(&bits[..chunk.len()]);
        }
        Ok(Self { rows, cols, dtype, fortran: false, elements })
    }

    /// The transpose in C order, by the CPU.
    fn transposed(&self) -> Result<Vec<T>> {
        let (rows, cols) = (self.rows, self.cols);
        let mut transposed = zeroed::<T>(self.elements.len())?;
        if self.fortran {
            transposed.copy_from_slice(&self.elements);
            return Ok(transposed);
        }
        if self.elements.is_empty() {
            // It may have very many empty rows.
            return Ok(transposed);
        }
        for row_tile in (0..rows).step_by(CPU_TILE) {
            for col_tile in (0..cols).step_by(CPU_TILE) {
                for col in col_tile..cols.min(col_tile + CPU_TILE) {
                    for row in row_tile..rows.min(row_tile + CPU_TILE) {
                        transposed[col * rows + row] = self.elements[row * cols + col];
                    }
                }
            }
        }
        Ok(transposed)
    }
}

/// What one row of the table runs.
#[derive(Clone, Copy)]
enum Kernel {
    /// Moves as many bytes and nothing else: what a transpose is measured against.
    Copy,
    Transpose(Variant),
}

impl Kernel {
    fn name(self) -> String {
        match self {
            Self::Copy => "copy".into(),
            Self::Transpose(variant) => variant.to_string(),
        }
    }

    fn samples(self) -> usize {
        if matches!(self, Self::Transpose(Variant::ColumnLoop)) { SLOW_SAMPLES } else { SAMPLES }
    }
}

/// One row of the table.
struct Row {
    variant: String,
    /// Of the named device.
    verified: bool,
    timing: Option<Timing>,
    counters: Option<Counters>,
}

/// A matrix on a device, with the buffers that its kernels work on.
struct Bench<'a, T: Element> {
    device: &'a Device,
    matrix: &'a Matrix<T>,
    transposed: &'a [T],
    /// Sources and destinations that timed runs take in turn.
    pairs: Vec<(DeviceBuffer<T>, DeviceBuffer<T>)>,
    /// Timed runs so far.
    turn: usize,
    source: DeviceBuffer<T>,
}

fn compare<T: Element + Pod>(
    devices: &Devices,
    matrix: Matrix<T>,
    variants: &[Variant],
    output: &Output,
) -> Result<()> {
    let progress = output.progress(variants.len() + 2);
    progress.doing("preparing");
    let transposed = matrix.transposed()?;
    let mut bench = Bench::new(&devices.named, &matrix, &transposed, devices.pairs)?;
    let mut counted = devices.counting.as_ref().and_then(|soft| {
        Bench::new(soft, &matrix, &transposed, 0)
            .inspect_err(|error| output.note(format!("nothing is counted: {error:#}")))
            .ok()
    });
    let counted_on = if counted.is_some() { devices.counting.as_ref() } else { Some(&devices.named) };
    progress.step();
    let kernels = [Kernel::Copy].into_iter().chain(variants.iter().copied().map(Kernel::Transpose));
    let mut rows = Vec::with_capacity(variants.len() + 1);
    for kernel in kernels {
        progress.doing(kernel.name());
        let mut row = bench.row(kernel)?;
        if let Some(counted) = &mut counted {
            row.counters = counted.count(kernel).unwrap_or_else(|error| {
                output.note(format!("{} is not counted: {error:#}", kernel.name()));
                None
            });
        }
        rows.push(row);
        progress.step();
    }
    drop(progress);

    // A device that does not count leaves every row without.
    let counted_on =
        counted_on.filter(|_| rows.iter().any(|row| row.counters.is_some())).map(|device| device.info().kind);
    let report = Report { device: &devices.named, matrix: &matrix, cold: devices.cold, counted_on, rows };
    output.result(&report.text(), report.json())?;
    let wrong = report.rows.iter().filter(|row| !row.verified).map(|row| row.variant.as_str()).collect::<Vec<_>>();
    ensure!(wrong.is_empty(), "{} moved elements to the wrong place; please report this as a bug", wrong.join(", "));
    Ok(())
}

impl<'a, T: Element + Pod> Bench<'a, T> {
    fn new(device: &'a Device, matrix: &'a Matrix<T>, transposed: &'a [T], pairs: usize) -> Result<Self> {
        let source = device.upload(&matrix.elements)?;
        let pairs = (0..pairs)
            .map(|_| Ok((device.upload(&matrix.elements)?, device.alloc::<T>(matrix.elements.len())?)))
            .collect::<Result<_>>()?;
        Ok(Self { device, matrix, transposed, pairs, turn: 0, source })
    }

    /// Verifies `kernel`, and where it is right measures it.
    fn row(&mut self, kernel: Kernel) -> Result<Row> {
        let (verified, counters) = self.run(kernel)?;
        let timing = if verified && !self.pairs.is_empty() { Some(self.time(kernel)?) } else { None };
        Ok(Row { variant: kernel.name(), verified, timing, counters })
    }

    /// What `kernel` counts, where its result is right.
    fn count(&self, kernel: Kernel) -> Result<Option<Counters>> {
        let (right, counters) = self.run(kernel)?;
        ensure!(right, "{} moved elements to the wrong place; please report this as a bug", self.device.info().name);
        Ok(counters)
    }

    /// Whether the result of `kernel` is right, and what it counted.
    fn run(&self, kernel: Kernel) -> Result<(bool, Option<Counters>)> {
        let expected = match kernel {
            Kernel::Copy => self.matrix.elements.as_slice(),
            Kernel::Transpose(_) => self.transposed,
        };
        // Wrong in every bit, so that whatever the kernel leaves out is seen.
        let mut elements = zeroed::<T>(expected.len())?;
        let (bytes, right) =
            (bytemuck::cast_slice_mut::<T, u8>(&mut elements), bytemuck::cast_slice::<T, u8>(expected));
        bytes.iter_mut().zip(right).for_each(|(byte, right)| *byte = !right);
        let mut result = self.device.upload(&elements)?;
        let stream = self.device.default_stream();
        let before = self.device.counters()?;
        launch(kernel, self.matrix, &self.source, &mut result, stream)?;
        let counters = self.device.counters()?.zip(before).map(|(after, before)| after - before);
        result.download_into(&mut elements)?;
        // As bytes: a NaN equals itself here.
        Ok((bytemuck::cast_slice::<T, u8>(&elements) == right, counters))
    }

    fn time(&mut self, kernel: Kernel) -> Result<Timing> {
        let (matrix, pairs, stream) = (self.matrix, &mut self.pairs, self.device.default_stream());
        let turn = &mut self.turn;
        let timing = measure::time(self.device, stream, kernel.samples(), || {
            // On from run to run and kernel to kernel, warm-ups included: what was used last is still in the cache.
            let pair = *turn % pairs.len();
            *turn += 1;
            let (source, result) = &mut pairs[pair];
            launch(kernel, matrix, source, result, stream)
        })?;
        Ok(timing)
    }
}

fn launch<T: Element>(
    kernel: Kernel,
    matrix: &Matrix<T>,
    source: &DeviceBuffer<T>,
    result: &mut DeviceBuffer<T>,
    stream: &Stream,
) -> Result<(), Error> {
    let (rows, cols) = (matrix.rows, matrix.cols);
    match kernel {
        Kernel::Copy => ops::copy_into(source.view(&[rows * cols])?, result.view_mut(&[rows * cols])?, stream),
        Kernel::Transpose(variant) => {
            let view = if matrix.fortran { source.view(&[cols, rows])?.t() } else { source.view(&[rows, cols])? };
            ops::transpose_into(view, result.view_mut(&[cols, rows])?, Some(variant), stream)
        }
    }
}

/// What was found, to print.
struct Report<'a, T> {
    device: &'a Device,
    matrix: &'a Matrix<T>,
    /// Whether timed runs met a cold cache.
    cold: bool,
    counted_on: Option<DriverKind>,
    rows: Vec<Row>,
}

impl<T: Pod> Report<'_, T> {
    fn gbps(&self, row: &Row) -> Option<f64> {
        row.timing.as_ref().map(|timing| timing.gbps(self.matrix.bytes_moved()))
    }

    fn fraction_of_copy(&self, row: &Row) -> Option<f64> {
        let copy = self.rows.first().and_then(|copy| self.gbps(copy))?;
        self.gbps(row).map(|gbps| gbps / copy)
    }

    fn text(&self) -> String {
        let times = output::has_times(self.device);
        let mut header = vec!["variant", "verified"];
        if times {
            header.extend(["ms", "GB/s", "of copy"]);
        }
        header.extend(["load sectors/request", "store sectors/request", "bank conflicts"]);
        let mut table = output::table(&header);
        for row in &self.rows {
            let mut cells = vec![row.variant.clone(), if row.verified { "yes" } else { "NO" }.into()];
            if times {
                cells.push(number(row.timing.as_ref().map(|timing| timing.median_ms()), 4, ""));
                cells.push(number(self.gbps(row), 1, ""));
                cells.push(number(self.fraction_of_copy(row).map(|fraction| 100.0 * fraction), 1, " %"));
            }
            let counters = row.counters.as_ref();
            cells.push(number(counters.and_then(|counters| counters.global_load.sectors_per_request()), 2, ""));
            cells.push(number(counters.and_then(|counters| counters.global_store.sectors_per_request()), 2, ""));
            cells.push(counters.map_or("-".into(), |counters| counters.bank_conflicts().to_string()));
            table.add_row(cells);
        }
        let Matrix { rows, cols, dtype, .. } = self.matrix;
        let name = &self.device.info().name;
        format!("{rows} x {cols} {dtype} on {name}\n{table}\n{}\n", if times { self.timed() } else { COUNTED.into() })
    }

    /// Under a GPU's table.
    fn timed(&self) -> String {
        let gapped = self.rows.iter().filter(|row| row.timing.as_ref().is_some_and(|timing| !timing.gapless()));
        let gapped = gapped.map(|row| row.variant.as_str()).collect::<Vec<_>>();
        timed_footer(self.cold, &gapped, self.counted_on)
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "variant": row.variant,
                "verified": row.verified,
                "ms": row.timing.as_ref().map(|timing| timing.median_ms()),
                "ms_p10": row.timing.as_ref().map(|timing| timing.quantile_ms(0.1)),
                "ms_p90": row.timing.as_ref().map(|timing| timing.quantile_ms(0.9)),
                "gbps": self.gbps(row),
                "fraction_of_copy": self.fraction_of_copy(row),
                "gapless": row.timing.as_ref().map(Timing::gapless),
                "cold": row.timing.as_ref().map(|_| self.cold),
                "counters": row.counters,
            })
        });
        json!({
            "device": output::info_json(self.device.info()),
            "shape": [self.matrix.rows, self.matrix.cols],
            "dtype": self.matrix.dtype.name(),
            "counted_on": self.counted_on,
            "rows": rows.collect::<Vec<_>>(),
        })
    }
}

/// What the columns of a GPU's table mean, by what happened: whether the cache was cold, which kernels could not be queued
/// before they ran, and who counted.
fn timed_footer(cold: bool, gapped: &[&str], counted_on: Option<DriverKind>) -> String {
    let cache = if cold { "each with a cold L2 cache" } else { "the matrix so small that L2 may still hold it" };
    let mut text = format!("ms: median of {SAMPLES} runs (column_loop: {SLOW_SAMPLES}), {cache}.");
    if !gapped.is_empty() {
        text += &format!(" Gaps between launches included: {}.", gapped.join(", "));
    }
    text += "\nGB/s: 10^9 bytes read and written a second, as the matrix has them; of copy: against the copy kernel.\n";
    text += match counted_on {
        Some(DriverKind::Soft) => "Sectors and bank conflicts: the software GPU's, for the same launches.",
        Some(_) => "Sectors and bank conflicts: the device's own.",
        None => "Sectors and bank conflicts: not counted; the software GPU does it for up to 2^25 elements.",
    };
    text
}

/// Under the software GPU's table.
const COUNTED: &str = "\
verified: every element against a transpose by the CPU. sectors/request: 32-byte sectors that one load or store of a
warp touches; what the width needs is best. bank conflicts: passes through shared memory beyond what the width needs.
No GB/s: the software GPU is exact about what is moved and says nothing of the time a GPU takes.";

fn number(value: Option<f64>, digits: usize, unit: &str) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_footer_claims_what_happened() {
        let all = timed_footer(true, &[], Some(DriverKind::Soft));
        assert!(all.contains("each with a cold L2") && all.contains("the software GPU's, for the same"), "{all}");
        assert!(!all.contains("Gaps"), "{all}");
        let less = timed_footer(false, &["column_loop", "naive"], None);
        assert!(!less.contains("cold") && less.contains("may still hold it"), "{less}");
        assert!(less.contains("Gaps between launches included: column_loop, naive."), "{less}");
        assert!(less.contains("not counted"), "{less}");
    }
}
