//! Transposes a matrix that is larger than the memory it may take.
//!
//! A matrix of 64 GiB does not fit a GPU of 80, because its transpose needs room, too. So it goes
//! through in *tiles*: a tile is copied to the GPU, transposed there, and copied back, and while
//! one goes back the next one comes. The choice of the tiles counts.
//!
//! - Some whole rows are one long run of the matrix, and thousands of short pieces of its
//!   transpose. Some whole columns are the other way round.
//! - A square is as long as it is wide, so all its runs are of one length on both sides. Disks,
//!   caches and copy engines like runs of tens of KiB, and no shape of tile has longer ones on
//!   both. A square of 1 MiB of singles has runs of 2 KiB on both sides. Four rows of that size
//!   have runs of 256 KiB on one side and of 16 bytes on the other.
//! - Files are read by several threads at once, and written by one at a time. So from file to file
//!   the runs of the result are four times as long as those of the matrix.
//!
//! The program sends one matrix through smaller and smaller budgets of device memory, from a file
//! to a file. Then it is interrupted and goes on: the result has another name until it is complete,
//! and a journal beside it says which tiles are there.
//!
//! ```text
//! cargo run --release --example 13_larger_than_the_gpu
//! ```

use std::error::Error;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use warpstride::io::{ArrayFile, Destination, npy};
use warpstride::out_of_core::{self, Options};
use warpstride::{Backend, Device};

const ROWS: usize = 1500;
const COLUMNS: usize = 1000;
const BYTES: usize = ROWS * COLUMNS * size_of::<f32>();

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::open(Backend::Auto)?;
    println!("{}", device.choice());
    let folder = tempfile::tempdir()?;
    let (input, output) = (folder.path().join("in.npy"), folder.path().join("out.npy"));
    let numbers: Vec<u8> = (0..ROWS * COLUMNS).flat_map(|number| (number as f32).to_le_bytes()).collect();
    npy::write(&mut File::create(&input)?, "<f4", &[ROWS, COLUMNS], &numbers)?;

    println!("{:<12} {:>8} {:>6}  right", "budget", "of all", "tiles");
    for budget in [2 * BYTES, BYTES / 4, BYTES / 20, BYTES / 100] {
        let options = Options { device_memory: Some(budget), ..Options::default() };
        let done = transpose(&device, &input, &output, options)?;
        println!(
            "{:<12} {:>7.0} % {:>5}  {}",
            format!("{} KiB", budget >> 10),
            100.0 * budget as f64 / BYTES as f64,
            done.tiles,
            is_right(&output)?
        );
    }
    fs::remove_file(&output)?;

    // The function that hears the progress of this run interrupts it after a third.
    let done = AtomicU64::new(0);
    let interrupt = |bytes| {
        let so_far = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        assert!(so_far < BYTES as u64 / 3, "as an interruption ends a program");
    };
    let budget = Options { device_memory: Some(BYTES / 20), ..Options::default() };
    std::panic::set_hook(Box::new(|_| ())); // it says nothing
    let options = Options { progress: Some(&interrupt), ..budget };
    let ended = catch_unwind(AssertUnwindSafe(|| transpose(&device, &input, &output, options)));
    drop(std::panic::take_hook());
    println!("\ninterrupted: {}, and out.npy is there: {}", ended.is_err(), output.exists());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder.path())? {
        names.push(entry?.file_name().into_string().unwrap_or_default());
    }
    names.sort();
    println!("instead there are {}", names[1..].join(" and "));
    let done = transpose(&device, &input, &output, Options { resume: true, ..budget })?;
    println!("resumed after {} of {} tiles; right: {}", done.resumed_tiles, done.tiles, is_right(&output)?);
    Ok(())
}

fn transpose(
    device: &Device,
    input: &Path,
    output: &Path,
    options: Options<'_>,
) -> warpstride::Result<out_of_core::Summary> {
    let (source, destination) = (npy::Reader::open(input)?, Destination::new(output)?);
    out_of_core::permute_file(device, &source, &[1, 0], &destination, options)
}

/// Returns whether a file has the transpose.
fn is_right(path: &Path) -> Result<bool, Box<dyn Error>> {
    let mut reader = npy::Reader::open(path)?;
    let mut bytes = vec![0; reader.bytes()];
    reader.read_into(&mut bytes)?;
    let number = |at: usize| (at % ROWS * COLUMNS + at / ROWS) as f32;
    let is_equal = |(at, bytes): (usize, &[u8])| bytes == number(at).to_le_bytes();
    Ok(reader.shape() == [COLUMNS, ROWS] && bytes.chunks(4).enumerate().all(is_equal))
}
