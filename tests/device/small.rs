//! The kernels for small arrays: at the edges of their patches and tiles, and from any layout that
//! they take.

use warpstride::device::Device;
use warpstride::layout::Layout;

use crate::backend::{Setup, cases};
use crate::long::short_or_long;
use crate::matrices::{Random, Sample, at_every_width};
use crate::permutes::{check_small, device, family};

cases! {
    Any patches_end_at_every_edge,
    Any patches_of_up_to_four_axes_in_any_order,
    Any patches_of_reversed_stepped_and_broadcast_axes,
    Any small_tiles_end_at_every_edge,
    Any small_matrices_start_anywhere_and_may_run_backwards,
}

/// Copies by both kinds of kernel; `kernel` is the one for small arrays.
fn small<T: Sample>(device: &Device, src: Layout, dst: Layout, kernel: &str, random: &mut Random) {
    let [_, entry] = check_small::<T>(device, src, dst, random);
    assert_eq!(family(entry), kernel, "{}: {src:?} to {dst:?}", T::DTYPE);
}

/// Returns a matrix in C order whose rows are `pitch` elements apart, from element `start` on.
fn pitched(rows: usize, cols: usize, pitch: usize, start: usize) -> Layout {
    Layout::new(&[rows, cols], &[pitch as isize, 1], start, start + rows * pitch).unwrap()
}

/// A patch is 8 columns by 32 rows, or narrower and longer, or shorter and wider.
fn patches_end_at_every_edge(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        for rows in [2, 3, 4, 5, 8, 31, 32, 33, 65, 257] {
            for cols in [2, 3, 5, 7, 8, 9, 17, 33, 63] {
                let (src, dst) = (pitched(rows, cols, cols + 1, 0), pitched(cols, rows, rows, 0).t());
                small::<T>(device, src, dst, "patch", random);
            }
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(60)));
}

fn patches_of_up_to_four_axes_in_any_order(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        for shape in [&[7, 9][..], &[5, 3, 7], &[9, 4, 33], &[2, 5, 3, 7], &[3, 17, 2, 5], &[11, 2, 3, 13]] {
            for _ in 0..6 {
                let source = Layout::row_major(shape).unwrap();
                let src = source.permuted_axes(&random.order(shape.len())).unwrap();
                // A destination with gaps, so that no order of the axes is a copy.
                let gaps: Vec<usize> = src.shape().iter().map(|extent| 2 * extent).collect();
                let whole = Layout::row_major(&gaps).unwrap();
                let dst = (0..gaps.len()).fold(whole, |dst, axis| dst.slice(axis, .., 2).unwrap());
                small::<T>(device, src, dst, "patch", random);
            }
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(61)));
}

fn patches_of_reversed_stepped_and_broadcast_axes(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let source = Layout::row_major(&[6, 40, 10]).unwrap();
        let src = source.reverse(2).unwrap().slice(1, .., -3).unwrap();
        let result = Layout::row_major(&[10, 14, 6]).unwrap();
        small::<T>(device, src.permuted_axes(&[2, 1, 0]).unwrap(), result, "patch", random);
        small::<T>(device, src, result.permuted_axes(&[2, 1, 0]).unwrap().reverse(0).unwrap(), "patch", random);
        let line = Layout::new(&[300], &[3], 1, 900).unwrap();
        small::<T>(device, line, Layout::row_major(&[300]).unwrap(), "patch", random);
        let broadcast = Layout::new(&[20, 30], &[0, 2], 0, 60).unwrap();
        small::<T>(device, broadcast, Layout::row_major(&[20, 30]).unwrap(), "patch", random);
    }
    at_every_width!(run(&device(setup), &mut Random::new(62)));
}

/// Tiles of 32 x 4 micro-tiles of whole vectors, and of 32 x 32 elements.
fn small_tiles_end_at_every_edge(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let lanes = 16 / size_of::<T>();
        // The fewest elements that exceed patches and, if narrow, are worth micro-tiles.
        let least = if size_of::<T>() < 4 { 1 << 20 } else { 1 << 18 } / 16;
        for cols in [31, 32, 33, 65].map(|quads: usize| quads * lanes) {
            let first = least / (cols / lanes) / lanes + 1;
            // The short form has rows that fill their last tile, and rows that end within it.
            let full = first.next_multiple_of(4);
            for quads in short_or_long(vec![full, full + 2], (first..first + 5).collect()) {
                let rows = quads * lanes;
                small::<T>(
                    device,
                    pitched(rows, cols, cols, 0),
                    pitched(cols, rows, rows, 0).t(),
                    "small_tile",
                    random,
                );
                let (src, dst) =
                    (pitched(rows, cols, cols + lanes, lanes), pitched(cols, rows, rows + lanes, 2 * lanes));
                small::<T>(device, src, dst.t(), "small_tile", random);
            }
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(63)));
}

fn small_matrices_start_anywhere_and_may_run_backwards(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let kernel = |whole: bool| if whole || size_of::<T>() == 16 { "small_tile" } else { "staggered" };
        let sides = [(257, 256), (33, 2049), (289, 255), (2049, 32), (300, 310)];
        // The short form has one that is nearly square and one that is narrow.
        for (rows, cols) in sides.into_iter().take(short_or_long(2, 5)) {
            for (from, to) in [(0, 1), (1, 0), (3, 2)] {
                let (src, dst) = (pitched(rows, cols, cols + 1, from), pitched(cols, rows, rows + 1, to).t());
                small::<T>(device, src, dst, kernel(false), random);
                small::<T>(device, src.reverse(0).unwrap(), dst, kernel(false), random);
                // Backwards along the contiguous axis there are no vectors.
                small::<T>(device, src.reverse(1).unwrap(), dst, "staggered", random);
            }
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(64)));
}
