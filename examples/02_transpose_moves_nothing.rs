//! # Lesson 2: the transpose that moves nothing
//!
//! Memory is one long row of elements. A matrix in it is a way of counting: element `[r, c]` lies at
//! `r * row_stride + c * column_stride`. Swap the two strides, and the same elements, where they were, are the transposed
//! matrix. That takes the same time for a matrix of any size, so we write O(1), and it needs no GPU at all.
//!
//! Then why does this crate have kernels? Because whoever reads the swapped matrix row by row now strides through memory,
//! one element here, the next a whole row further. A library that wants its rows contiguous needs the elements moved, once,
//! and that is the operation `transpose`. Lesson 3 shows what it costs to do it carelessly.
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
    let turned = matrix.t();
    print("the matrix", &matrix, &numbers);
    print("its view .t()", &turned, &numbers);
    println!("same memory: {}", matrix.storage_address() == turned.storage_address());

    let moved = ops::transpose(matrix)?;
    print("moved by a kernel", &moved.view(), &moved.to_vec()?);

    println!(
        "\nquestion: .t().t() is the matrix again. What does .reverse(0) have to do to the strides, and to what else?"
    );
    Ok(())
}

/// Shows what the view looks at, finding each element by its strides.
fn print(name: &str, view: &View<'_, i32>, storage: &[i32]) {
    let (shape, strides) = (view.shape(), view.strides());
    println!("\n{name}: shape {shape:?}, strides {strides:?}, memory {storage:?}");
    for row in 0..shape[0] {
        let offset = |col| row * strides[0] as usize + col * strides[1] as usize;
        let elements: Vec<String> = (0..shape[1]).map(|col| format!("{:3}", storage[offset(col)])).collect();
        println!("  {}", elements.join(" "));
    }
}
