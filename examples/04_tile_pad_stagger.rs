//! # Lesson 4: tile, pad, stagger
//!
//! A transpose has to turn rows into columns somewhere. The place for it is *shared memory*, a small memory beside the
//! threads of a block: read a tile of 32 x 32 along its rows, keep it there, and write it out along its columns. Now both
//! ways to the large memory are side by side, and the sectors of lesson 3 are all used.
//!
//! Shared memory has 32 *banks*, which serve one access each at a time; neighbouring words lie in neighbouring banks. A row
//! of 32 floats uses every bank once. But a column of a tile that is 32 wide lies in one single bank, and 32 threads that
//! read it wait for each other: 31 *bank conflicts*.
//!
//! There are two ways out. *Pad*: make the rows 33 wide, so that each begins one bank further. *Stagger* (many say
//! swizzle): keep them 32 wide and put element `[r, c]` at column `c ^ r`, which shuffles every row in its own way. Both
//! spread a column over all the banks; the second wastes no memory.
//!
//! A GPU does not count by itself, so this lesson runs on the software GPU everywhere.
//!
//! ```text
//! cargo run --example 04_tile_pad_stagger
//! ```

use warpstride::device::{Backend, Device};
use warpstride::error::Result;
use warpstride::ops::{self, Variant};

const SIDE: usize = 256;

fn main() -> Result<()> {
    println!("banks of column 3 of a tile of floats, rows 0 to 11:");
    banks("tiled", |row, col| row * 32 + col);
    banks("padded", |row, col| row * 33 + col);
    banks("staggered", |row, col| row * 32 + (col ^ row));

    let device = Device::open(Backend::Soft)?;
    let source = device.upload(&vec![1.0_f32; SIDE * SIDE])?;
    println!("\ntranspose of {SIDE} x {SIDE} floats on {}", device.info().name);
    println!("{:<12}{:>22}{:>22}{:>18}", "", "sectors per load", "sectors per store", "bank conflicts");
    for variant in [Variant::Naive, Variant::Tiled, Variant::Padded, Variant::Staggered] {
        let mut result = device.alloc::<f32>(SIDE * SIDE)?;
        let before = device.counters()?.unwrap_or_default();
        ops::transpose_into(
            source.view(&[SIDE, SIDE])?,
            result.view_mut(&[SIDE, SIDE])?,
            Some(variant),
            device.default_stream(),
        )?;
        let counted = device.counters()?.unwrap_or_default() - before;
        let load = counted.global_load.sectors_per_request().unwrap_or(0.0);
        let store = counted.global_store.sectors_per_request().unwrap_or(0.0);
        println!("{:<12}{load:>22}{store:>22}{:>18}", variant.to_string(), counted.bank_conflicts());
    }

    println!("\nquestion: with elements of 8 bytes half a warp fills the banks. How many conflicts has `tiled` then?");
    Ok(())
}

/// Shows where a column of a tile lies, given the word that holds each element.
fn banks(name: &str, word: impl Fn(usize, usize) -> usize) {
    let banks: Vec<String> = (0..12).map(|row| format!("{:3}", word(row, 3) % 32)).collect();
    println!("  {name:<10}{}", banks.join(""));
}
