//! Transposes a matrix without moving it, and then with a kernel that moves it.
//!
//! Memory is one long row of elements. A matrix in it is a way of counting: element `[r, c]` lies
//! at `r * row_stride + c * column_stride`. Swap the two strides, and the same elements in the same
//! places form the transposed matrix. That takes the same time for a matrix of any size, which is
//! called O(1), and it needs no GPU.
//!
//! Then why does this crate have kernels? A reader that goes through the swapped matrix row by row
//! now strides through memory: one element here, the next a whole row further. A library that needs
//! contiguous rows needs the elements moved once, and the operation `transpose` moves them.
//! `03_why_naive_is_slow` shows what a careless kernel costs.
//!
//! ```text
//! cargo run --example 02_transpose_moves_nothing
//! ```

use warpstride::device::{Backend, Device};
use warpstride::error::Result;
use warpstride::ops;
use warpstride::view::View;

fn main() -> Result<()> {
    let device = Device::open(Backend::Auto)?;
    let (rows, cols) = (3, 4);
    let numbers: Vec<i32> = (0..rows * cols).map(|i| i as i32).collect();
    let buffer = device.upload(&numbers)?;

    let matrix = buffer.view(&[rows, cols])?;
    let transposed = matrix.t();
    print("the matrix", &matrix, &numbers);
    print("its view .t()", &transposed, &numbers);
    println!("same memory: {}", matrix.storage_address() == transposed.storage_address());

    let moved = ops::transpose(matrix)?;
    print("moved by a kernel", &moved.view(), &moved.to_vec()?);
    Ok(())
}

/// Prints the elements of the view, and finds each one by the strides.
fn print(name: &str, view: &View<'_, i32>, storage: &[i32]) {
    let (shape, strides) = (view.shape(), view.strides());
    println!("\n{name}: shape {shape:?}, strides {strides:?}, memory {storage:?}");
    for row in 0..shape[0] {
        let offset = |col| row * strides[0] as usize + col * strides[1] as usize;
        let elements: Vec<String> = (0..shape[1]).map(|col| format!("{:3}", storage[offset(col)])).collect();
        println!("  {}", elements.join(" "));
    }
}
