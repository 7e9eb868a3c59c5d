//! Tiles of several axes that move by vectors: whole matrices, runs that start and end anywhere,
//! reversed and among other elements, compared with the oracle.

use warpstride::device::Device;
use warpstride::layout::Layout;

use crate::backend::{Setup, cases};
use crate::long::{is_long, short_or_long};
use crate::matrices::{Random, Sample, at_every_width};
use crate::permutes::{check, check_as_if_large, device, family};

cases! {
    Any whole_matrices_of_any_sides,
    Any structs_and_images_off_words,
    Any short_axes_in_any_order,
    Any axes_that_run_backwards,
    Any parts_of_larger_arrays_by_vectors,
    Any sources_whose_elements_lie_apart,
}

/// Returns the fewest bytes of an array. In the long form an array is as large as these kernels
/// need; in the short form the plan takes it for large.
fn fewest() -> usize {
    short_or_long(256 << 10, 4 << 20)
}

/// Copies, and returns whether `packed_quads` did it.
fn quads<T: Sample>(device: &Device, src: Layout, random: &mut Random) -> bool {
    copied::<T>(device, src, random) == "packed_quads"
}

/// Copies, and returns the kernel's family.
fn copied<T: Sample>(device: &Device, src: Layout, random: &mut Random) -> &'static str {
    let dst = Layout::row_major(src.shape()).unwrap();
    family(if is_long() { check::<T> } else { check_as_if_large::<T> }(device, src, dst, random))
}

/// Returns the number of images of `len` elements that have the bytes.
fn images<T>(len: usize) -> usize {
    fewest().div_ceil(len * size_of::<T>())
}

fn permuted(shape: &[usize], axes: &[usize]) -> Layout {
    Layout::row_major(shape).unwrap().permuted_axes(axes).unwrap()
}

fn whole_matrices_of_any_sides(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let sides = [[33, 31], [3, 5], [7, 64], [129, 17], [45, 3]];
        for [rows, cols] in sides {
            let src = permuted(&[images::<T>(rows * cols), rows, cols], &[0, 2, 1]);
            let taken = quads::<T>(device, src, random);
            // In elements of 16 bytes, sides of 64 lie in one bank.
            assert!(taken || size_of::<T>() == 16, "{}: {rows} x {cols}", T::DTYPE);
        }
        // Several axes of a matrix, of which one side has a table of rows.
        let src = permuted(&[images::<T>(3 * 5 * 7), 3, 5, 7], &[0, 3, 1, 2]);
        assert!(quads::<T>(device, src, random), "{}", T::DTYPE);
    }
    at_every_width!(run(&device(setup), &mut Random::new(80)));
}

fn structs_and_images_off_words(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let len = images::<T>(3) | 1;
        let side = images::<T>(9 * 101) | 1;
        let cases = [
            permuted(&[len, 3], &[1, 0]),
            permuted(&[3, len], &[1, 0]),
            permuted(&[3, side, 101, 3], &[0, 3, 1, 2]),
            permuted(&[2, images::<T>(2) | 1], &[1, 0]),
        ];
        for src in cases {
            let family = copied::<T>(device, src, random);
            // Structs and images of whole words move as structs, and elements of 16 bytes are
            // vectors themselves.
            let is_taken = if size_of::<T>() < 4 { family == "packed_quads" } else { family.contains("interleave") };
            assert!(is_taken || size_of::<T>() == 16, "{}: {family} {src:?}", T::DTYPE);
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(81)));
}

fn short_axes_in_any_order(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let mut taken = 0;
        let times = short_or_long(4, 16);
        for _ in 0..times {
            let mut shape: Vec<usize> = (0..6).map(|_| 3 + 2 * random.below(5)).collect();
            shape[random.below(6)] *= images::<T>(shape.iter().product());
            taken += usize::from(quads::<T>(device, permuted(&shape, &random.order(6)), random));
        }
        assert!(taken > 0 || size_of::<T>() == 16, "{}: packed_quads was not taken", T::DTYPE);
    }
    at_every_width!(run(&device(setup), &mut Random::new(82)));
}

fn axes_that_run_backwards(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let mut taken = 0;
        for axis in 0..3 {
            let src = Layout::row_major(&[images::<T>(35 * 33), 35, 33]).unwrap().reverse(axis).unwrap();
            taken += usize::from(quads::<T>(device, src.permuted_axes(&[0, 2, 1]).unwrap(), random));
            let src = Layout::row_major(&[67, images::<T>(67 * 71), 71]).unwrap().reverse(axis).unwrap();
            taken += usize::from(quads::<T>(device, src.permuted_axes(&[2, 1, 0]).unwrap(), random));
        }
        // Any axes at once, in parts and whole, in runs of several axes and in the batch.
        let times = short_or_long(4, 16);
        for _ in 0..times {
            let mut shape: Vec<usize> = (0..3 + random.below(3)).map(|_| 3 + random.below(14)).collect();
            let rank = shape.len();
            shape[random.below(rank)] *= images::<T>(shape.iter().product());
            let mut src = permuted(&shape, &random.order(rank));
            for axis in 0..rank {
                src = if random.below(2) == 0 { src.reverse(axis).unwrap() } else { src };
            }
            taken += usize::from(quads::<T>(device, src, random));
        }
        assert!(taken > 0, "{}: packed_quads was not taken", T::DTYPE);
    }
    at_every_width!(run(&device(setup), &mut Random::new(83)));
}

/// The elements between are neither read, which the checkers would find, nor written.
fn parts_of_larger_arrays_by_vectors(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let sides = [[33, 31], [5, 1031], [17, 1031]];
        // The short form has the shortest rows and the tallest.
        for [rows, cols] in sides.into_iter().step_by(short_or_long(2, 1)) {
            let larger = Layout::row_major(&[images::<T>(rows * cols), rows + 2, cols + 6]).unwrap();
            let src = larger.slice(1, 1..rows + 1, 1).unwrap().slice(2, 3..cols + 3, 1).unwrap();
            let src = src.permuted_axes(&[0, 2, 1]).unwrap();
            let taken = quads::<T>(device, src, random);
            // Rows of 31 elements are too short, wider elements of 5 rows are structs on words, and
            // tiles of most widths hold short parts of 17 rows.
            let long = match size_of::<T>() {
                1 | 2 => 5,
                8 => 17,
                _ => 0,
            };
            assert!(taken || rows != long, "{}: {src:?}", T::DTYPE);
        }
        let images = images::<T>(33 * 31);
        let larger = Layout::row_major(&[images, 35, 37]).unwrap();
        let src = larger.slice(1, 1..34, 1).unwrap().slice(2, 3..34, 1).unwrap().permuted_axes(&[0, 2, 1]).unwrap();
        let dst = Layout::row_major(&[images, 33, 37]).unwrap().slice(1, 1..32, 1).unwrap();
        let dst = dst.slice(2, 1..34, 1).unwrap();
        check::<T>(device, src, dst, random);
    }
    at_every_width!(run(&device(setup), &mut Random::new(84)));
}

/// The elements between are not read, and elements with sectors of their own go by `elements`.
fn sources_whose_elements_lie_apart(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let width = size_of::<T>();
        let most = short_or_long(2, 5);
        for (step, [rows, cols]) in [(2, [33, 31]), (3, [64, 64]), (7, [7, 257]), (2, [3, 5]), (4, [40, 3])] {
            // Batches, and one long matrix whose columns lie apart.
            let batch = images::<T>(rows * cols);
            for shape in [[batch, rows, cols * step], [1, batch * rows, cols * step]] {
                let src = Layout::row_major(&shape).unwrap().slice(2, step / 2..shape[2], step as isize).unwrap();
                for axes in &[[0, 2, 1], [2, 1, 0], [0, 1, 2], [1, 0, 2], [2, 0, 1]][..most] {
                    let src = src.permuted_axes(axes).unwrap();
                    let src = if random.below(3) == 0 { src.reverse(random.below(3)).unwrap() } else { src };
                    let taken = copied::<T>(device, src, random) == "packed_stepped";
                    assert!(taken || axes[2] == 2 || step * width > 31, "{}: {src:?}", T::DTYPE);
                }
            }
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(85)));
}
