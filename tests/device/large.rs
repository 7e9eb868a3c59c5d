//! Moves more elements than 32 bits count, on a GPU: a formula on the host makes and checks them.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use warpstride::layout::Layout;
use warpstride::ops;

use crate::backend::{Setup, cases};
use crate::matrices::Sample;
use crate::permutes::device;

cases! {
    LargeGpu five_billion_bytes_transposed,
    LargeGpu five_billion_bytes_of_three_axes,
    LargeGpu five_billion_bytes_from_the_fourth_on,
    LargeGpu floats_backwards,
    LargeGpu words_of_three_planes_interleaved,
    LargeGpu words_broadcast,
}

/// Each takes up to 18 GB of the device and of the host.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Returns an element of a source: Knuth's multiplicative hash of its number.
fn element<T: Sample>(number: usize) -> T {
    T::sample((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Copies a view of this layout into C order; element `at` of the result must be element `from(at)`
/// of the storage.
fn moves<T: Sample>(setup: &Setup, src: Layout, from: impl Fn(usize) -> usize + Sync) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let device = device(setup);
    let elements: Vec<T> = (0..src.storage_len()).into_par_iter().map(element).collect();
    let source = device.upload(&elements).unwrap();
    drop(elements);
    let result = ops::contiguous(source.view_with(src).unwrap()).unwrap().to_vec().unwrap();
    assert_eq!(result.len(), src.len());
    let wrong = (0..result.len()).into_par_iter().find_any(|&at| result[at] != element(from(at)));
    assert_eq!(wrong, None, "an element of {src:?} in C order");
}

fn five_billion_bytes_transposed(setup: &Setup) {
    let (rows, cols) = (50_000, 100_000);
    moves::<u8>(setup, Layout::row_major(&[rows, cols]).unwrap().t(), |at| at % rows * cols + at / rows);
}

fn five_billion_bytes_of_three_axes(setup: &Setup) {
    let shape @ [_, b, c] = [1_000, 2_501, 2_000];
    let src = Layout::row_major(&shape).unwrap().permuted_axes(&[2, 0, 1]).unwrap();
    moves::<u8>(setup, src, |at| at % (1_000 * b) * c + at / (1_000 * b));
    let src = Layout::row_major(&shape).unwrap().permuted_axes(&[0, 2, 1]).unwrap();
    moves::<u8>(setup, src, |at| at / (b * c) * (b * c) + at % b * c + at / b % c);
}

fn five_billion_bytes_from_the_fourth_on(setup: &Setup) {
    let src = Layout::row_major(&[5_000_000_000]).unwrap().slice(0, 3.., 1).unwrap();
    moves::<u8>(setup, src, |at| at + 3);
}

fn floats_backwards(setup: &Setup) {
    let len = (1 << 31) + 12_345;
    moves::<f32>(setup, Layout::row_major(&[len]).unwrap().reverse(0).unwrap(), |at| len - 1 - at);
}

fn words_of_three_planes_interleaved(setup: &Setup) {
    let plane = (1 << 31) / 3 + 4_321;
    moves::<u32>(setup, Layout::row_major(&[3, plane]).unwrap().t(), |at| at % 3 * plane + at / 3);
    moves::<u32>(setup, Layout::row_major(&[plane, 3]).unwrap().t(), |at| at % plane * 3 + at / plane);
}

fn words_broadcast(setup: &Setup) {
    let (rows, cols) = (32_769, 65_537);
    let row = Layout::row_major(&[1, cols]).unwrap().broadcast(&[rows, cols]).unwrap();
    moves::<u32>(setup, row, |at| at % cols);
    moves::<u32>(setup, Layout::row_major(&[rows, 1]).unwrap().broadcast(&[rows, cols]).unwrap(), |at| at / cols);
}
