//! Counts the sectors that the naive transpose wastes, for each width of element.
//!
//! In the naive kernel each thread moves one element: it reads `[r, c]` and writes `[c, r]`. The 32
//! threads of a warp read 32 neighbours of a row, which lie side by side. They write 32 elements
//! that lie a whole row apart.
//!
//! Memory moves in *sectors* of 32 bytes. Side by side, 32 floats fill 4 sectors. A row apart, each
//! float has a sector of its own: the warp touches 32 sectors, and uses 4 bytes of each. Seven
//! eighths of the memory's work are wasted, and more for narrower elements. The kernel's arithmetic
//! costs nothing beside that. Eight times the *ideal*, the fewest sectors that hold the bytes asked
//! for, is the figure to remember: wider loads touch more sectors, and waste none.
//!
//! A GPU does not count by itself, so this program always runs on the software GPU. It counts by
//! the rules of NVIDIA's Nsight Compute, which shows the same figures for the same launch on a GPU.
//!
//! ```text
//! cargo run --example 03_why_naive_is_slow
//! ```

use warpstride::counters::{GlobalCounters, over_ideal};
use warpstride::device::{Backend, Device};
use warpstride::element::Element;
use warpstride::error::Result;
use warpstride::ops::{self, Variant};

const SIDE: usize = 256;

fn main() -> Result<()> {
    let device = Device::open(Backend::Soft)?;
    println!("naive transpose of {SIDE} x {SIDE} on {}", device.info().name);
    println!(
        "{:<12}{:>18}{:>20}{:>15}{:>22}",
        "element", "sectors per load", "sectors per store", "over ideal", "of a sector is used"
    );
    naive::<u8>(&device)?;
    naive::<u16>(&device)?;
    naive::<f32>(&device)?;
    naive::<f64>(&device)?;
    naive::<[f64; 2]>(&device)?;
    Ok(())
}

fn naive<T: Element>(device: &Device) -> Result<()> {
    let source = device.zeros::<T>(SIDE * SIDE)?;
    let mut result = device.alloc::<T>(SIDE * SIDE)?;
    let before = device.counters()?.unwrap_or_default();
    ops::transpose_into(
        source.view(&[SIDE, SIDE])?,
        result.view_mut(&[SIDE, SIDE])?,
        Some(Variant::Naive),
        device.default_stream(),
    )?;
    let counted = device.counters()?.unwrap_or_default() - before;

    let per_request = |counters: GlobalCounters| counters.sectors_per_request().unwrap_or(0.0);
    let (load, store) = (per_request(counted.global_load), per_request(counted.global_store));
    let over_ideal = over_ideal(counted.global_store.sectors, counted.ideal.global_store).unwrap_or(0.0);
    let useful = 100.0 * (SIDE * SIDE * size_of::<T>()) as f64 / (counted.global_store.sectors * 32) as f64;
    let width = if size_of::<T>() == 1 { "1 byte".into() } else { format!("{} bytes", size_of::<T>()) };
    println!("{width:<12}{load:>18}{store:>20}{:>15}{:>22}", format!("{over_ideal:.2}x"), format!("{useful} %"));
    Ok(())
}
