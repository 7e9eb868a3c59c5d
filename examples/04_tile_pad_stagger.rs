//! Counts bank conflicts, and removes them with padding and with staggering.
//!
//! A transpose has to exchange rows and columns somewhere. *Shared memory*, a small memory beside
//! the threads of a block, is the place. The kernel reads a tile of 32 x 32 along its rows, keeps
//! it there, and writes it out along its columns. Now both sides of the large memory are accessed
//! side by side, and every sector is fully used.
//!
//! Shared memory has 32 *banks*, and each serves one access at a time. Neighbouring words lie in
//! neighbouring banks. A row of 32 floats uses every bank once. A column of a tile that is 32 wide
//! lies in one bank, and 32 threads that read it wait for each other: 31 *bank conflicts*.
//!
//! There are two ways out. *Padding* makes the rows 33 wide, so that each row starts one bank
//! further. *Staggering* (often called swizzling) keeps them 32 wide and puts element `[r, c]` at
//! column `c ^ r`, which shuffles each row in its own way. Both spread a column over all banks.
//! Staggering wastes no memory.
//!
//! A GPU does not count by itself, so this program always runs on the software GPU.
//!
//! ```text
//! cargo run --example 04_tile_pad_stagger
//! ```

use warpstride::counters::over_ideal;
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
    println!("{:<12}{:>22}{:>22}{:>18}", "", "loaded sectors/ideal", "stored sectors/ideal", "bank conflicts");
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
        let load = over_ideal(counted.global_load.sectors, counted.ideal.global_load).unwrap_or(0.0);
        let store = over_ideal(counted.global_store.sectors, counted.ideal.global_store).unwrap_or(0.0);
        let [load, store] = [load, store].map(|ratio| format!("{ratio:.2}x"));
        println!("{:<12}{load:>22}{store:>22}{:>18}", variant.to_string(), counted.bank_conflicts());
    }
    Ok(())
}

/// Prints the banks of a column of a tile; `word` gives the word that holds an element.
fn banks(name: &str, word: impl Fn(usize, usize) -> usize) {
    let banks: Vec<String> = (0..12).map(|row| format!("{:3}", word(row, 3) % 32)).collect();
    println!("  {name:<10}{}", banks.join(""));
}
