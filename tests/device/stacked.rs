//! Batches of small matrices, several a tile: of every size that is taken, in batches of several
//! axes, apart and backwards, compared with the oracle.

use warpstride::device::Device;
use warpstride::layout::Layout;

use crate::backend::{Setup, cases};
use crate::matrices::{Random, Sample};
use crate::permutes::{check, device, family};

cases! {
    Any matrices_of_whole_quads_fill_tiles_in_stacks,
    Any images_lie_apart_and_backwards_in_batches_of_several_axes,
    Any what_is_not_whole_quads_or_has_gaps_goes_another_way,
}

/// Calls a generic function with every width whose micro-tiles are transposed.
macro_rules! at_narrow_widths {
    ($function:ident($($argument:expr),* $(,)?)) => {
        $function::<u8>($($argument),*);
        $function::<u16>($($argument),*);
        $function::<u32>($($argument),*);
        $function::<u64>($($argument),*);
    };
}

/// Transposes each matrix of a batch from C order to C order, and returns the kernel.
fn turned<T: Sample>(device: &Device, shape: &[usize], random: &mut Random) -> &'static str {
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    axes.swap(shape.len() - 2, shape.len() - 1);
    let src = Layout::row_major(shape).unwrap().permuted_axes(&axes).unwrap();
    family(check::<T>(device, src, Layout::row_major(src.shape()).unwrap(), random))
}

/// In micro-tiles: rows and columns that fill a power of two or do not, in stacks whose last is
/// short.
fn matrices_of_whole_quads_fill_tiles_in_stacks(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let lanes = 16 / size_of::<T>();
        let mut taken = 0;
        for [rows, cols] in [
            [8, 8],
            [4, 4],
            [3, 3],
            [6, 5],
            [2, 8],
            [8, 2],
            [1, 16],
            [16, 1],
            [7, 4],
            [2, 3],
            [16, 4],
            [1, 2],
            [2, 1],
            [2, 2],
        ] {
            for images in [37, 64] {
                let kernel = turned::<T>(device, &[images, rows * lanes, cols * lanes], random);
                let bytes = rows * cols * 16 * lanes;
                let most = if size_of::<T>() < 4 { 128 } else { 1024 };
                assert!(kernel != "stacked_tile" || bytes > most, "{}: {rows} x {cols} squares by {kernel}", T::DTYPE);
                taken += usize::from(kernel == "stacked_tile");
            }
        }
        assert!(taken >= 4, "{}: stacked_tile was taken {taken} times of 28", T::DTYPE);
    }
    at_narrow_widths!(run(&device(setup), &mut Random::new(80)));
}

fn images_lie_apart_and_backwards_in_batches_of_several_axes(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let side = 8 * (16 / size_of::<T>());
        // The middle 9 and the first 3 of 3 x 12 x 4 images.
        let part = |row: isize, col: isize| {
            let image = (side * side) as isize;
            let strides = [image, 48 * image, 4 * image, row, col];
            Layout::new(&[3, 3, 9, side, side], &strides, 4 * side * side, 3 * 48 * side * side).unwrap()
        };
        let (src, apart) = (part(1, side as isize), part(side as isize, 1));
        let gapless = Layout::row_major(src.shape()).unwrap();
        for (src, dst) in [
            (src, gapless),
            (src.reverse(2).unwrap(), gapless),
            (src, gapless.reverse(1).unwrap().reverse(2).unwrap()),
            (gapless.permuted_axes(&[0, 1, 2, 4, 3]).unwrap(), apart),
            (
                Layout::new(src.shape(), &[0, 0, (side * side) as isize, 1, side as isize], 0, 9 * side * side)
                    .unwrap(),
                gapless,
            ),
        ] {
            let kernel = family(check::<T>(device, src, dst, random));
            assert_eq!(kernel, "stacked_tile", "{}: {src:?} to {dst:?}", T::DTYPE);
        }
    }
    at_narrow_widths!(run(&device(setup), &mut Random::new(81)));
}

fn what_is_not_whole_quads_or_has_gaps_goes_another_way(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let side = 8 * (16 / size_of::<T>());
        for [rows, cols] in [[side + 1, side], [side, side - 1]] {
            assert_ne!(turned::<T>(device, &[33, rows, cols], random), "stacked_tile", "{}", T::DTYPE);
        }
        let pitched = Layout::row_major(&[9, side, side + 16]).unwrap().slice(2, ..side, 1).unwrap();
        let (src, dst) = (pitched.permuted_axes(&[0, 2, 1]).unwrap(), Layout::row_major(&[9, side, side]).unwrap());
        assert_ne!(family(check::<T>(device, src, dst, random)), "stacked_tile", "{}", T::DTYPE);
        assert_ne!(family(check::<T>(device, dst, src, random)), "stacked_tile", "{}", T::DTYPE);
    }
    at_narrow_widths!(run(&device(setup), &mut Random::new(82)));
}
