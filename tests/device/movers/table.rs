//! The rows, strategy by strategy.

use warpstride::layout::Layout;

use super::By::{AsIfLarge, Large, Size};
use super::Row;
use super::draws::*;
use crate::long::{is_long, short_or_long};

#[path = "../../../cli/src/bench/drawn.rs"]
#[expect(dead_code, reason = "these tests measure nothing")]
mod drawn;

const ALL: &[usize] = &[1, 2, 4, 8, 16];
const NARROW: &[usize] = &[1, 2];
/// Elements whose micro-tiles are transposed.
const SMALLER: &[usize] = &[1, 2, 4, 8];

const ANY: &[&str] = &[];
const BY_VECTORS: &[&str] = &["packed_quads"];
const WHOLE_VECTORS: &[&str] = &["packed_quads", "vector_tile"];
const STRUCTS_BY_WORDS: &[&str] = &["deinterleave", "interleave"];
const STRUCTS_BY_QUADS: &[&str] = &["deinterleave_quads", "interleave_quads"];
const STRUCTS: &[&str] = &["deinterleave", "deinterleave_quads", "interleave", "interleave_quads"];
const TILES: &[&str] = &["vector_tile", "ragged_tile", "packed_quads"];
/// Structs are matrices of few columns.
const WHOLE_TILES: &[&str] = &["vector_tile", "deinterleave_quads", "interleave_quads", "deinterleave"];
/// Short rows may move in tiles of several axes.
const RAGGED_TILES: &[&str] =
    &["ragged_tile", "packed_quads", "deinterleave", "interleave", "deinterleave_quads", "interleave_quads"];

/// Bytes of the shortest run that `rows` moves.
const SHORTEST: usize = 32;

pub(super) static ROWS: &[Row] = &[
    Row("few_elements_and_none", Large, ALL, ANY, 0, |d| {
        for shape in [&[][..], &[0], &[1], &[1, 1, 1], &[3, 0, 5], &[1, 7], &[2, 1, 3], &[1025], &[1023, 1], &[3, 5, 7]]
        {
            let columns = Layout::column_major(shape).unwrap();
            [c(shape), backwards(c(shape), usize::MAX), columns].into_iter().for_each(|src| d.copy(src, c(shape)));
        }
    }),
    Row("sixteen_axes_of_two_in_any_order", Large, ALL, ANY, 0, |d| {
        let [src, dst] = [(); 2].map(|()| permuted(&[2; 16], &d.random.order(16)));
        d.copy(src, dst);
    }),
    Row("drawn_permutes_of_every_kind", Large, ALL, ANY, 0, |d| {
        // The short form has an eighth on the software GPU.
        let (count, most) = if d.is_soft { (short_or_long(270, 2_160), 1 << 15) } else { (270, 1 << 20) };
        let mut cases = drawn::cases(2026, count, drawn::Sizes { least: most >> 4, most });
        cases.retain(|case| case.dtype.width() == d.width);
        cases.iter().for_each(|case| d.from(case.source().unwrap()));
    }),
    Row("copies_in_every_order_of_axes", Large, ALL, &["copy"], 100, |d| {
        let layout = permuted(&[3, 4, 5], &[2, 0, 1]).reverse(1).unwrap();
        d.copy(layout, layout);
    }),
    Row("bytes_from_and_to_addresses_of_any_alignment", Size, &[1], ANY, 0, |d| {
        for starts in [[0, 0], [1, 0], [0, 1], [1, 1], [2, 6], [4, 8], [4, 12], [8, 0], [8, 24], [16, 48], [3, 16]] {
            for len in [0, 1, 2, 15, 16, 17, 31, 33, 480, 1023, 16 * 1024 - 1, 16 * 1024 + 1, 16 * 1024 + 17] {
                d.at(c(&[len]), c(&[len]), starts);
            }
            d.at(part(c(&[10, 64]), [0..10, 0..48]), c(&[10, 48]), starts);
            d.at(c(&[48, 10]).t(), c(&[10, 48]), starts);
        }
    }),
    // Pitches are odd, so that the rows of one copy start at several offsets in a vector.
    Row("runs_of_every_length_from_and_to_every_misalignment", Size, &[1], &["rows"], 100, |d| {
        for run in (64..=600).filter(|run| [0, 1, 2, 8, 14, 15].contains(&(run % 16)) || *run < 100) {
            let starts = [(); 2].map(|()| d.random.below(16));
            d.at(pitched(5, run, run + 3, 0), pitched(5, run, run + 1, 0), starts);
        }
        for starts in (0..256).map(|both| [both / 16, both % 16]) {
            let rows = pitched(3, 64 + d.random.below(80), 177, 0);
            d.at(rows, rows, starts);
        }
    }),
    Row("runs_along_axes_of_any_stride", Size, SMALLER, &["rows"], 100, |d| {
        // Odd, so that no two elements are one wider one.
        let run = (SHORTEST / d.width + 3) | 1;
        let padded = part(c(&[4, 3, 5, run + 1]), [0..4, 0..3, 0..5, 0..run]);
        let repeated = part(c(&[4, 1, 5, run + 1]), [0..4, 0..1, 0..5, 1..run + 1]);
        let repeated = repeated.broadcast(padded.shape()).unwrap();
        for start in [0, d.width, 16 + 3 * d.width] {
            for src in [padded, permuted(&[5, 4, 3, run], &[1, 2, 0, 3]), backwards(padded, 0b101), repeated] {
                for dst in [c(padded.shape()), padded, backwards(padded, 0b10)] {
                    d.at(src, dst, [start, 3 * d.width]);
                }
            }
        }
    }),
    // The run is so long that its vectors are numbered from a line of the cache, and that it takes
    // several blocks.
    Row("one_long_run_from_and_to_every_misalignment", Size, SMALLER, &["rows"], 100, |d| {
        if d.width > 1 {
            [0, d.width].into_iter().for_each(|to| d.at(c(&[5001]), c(&[5001]), [d.width, to]));
            return;
        }
        for (run, to) in
            product([32_usize, 33, 47, 63, 64, 65, 4095, 4096, 4097, 50_001], [0, 1, 5, 15, 16, 17, 64, 100, 127])
        {
            for from in [0, 1, 4, 15, 24] {
                let is_aligned = from % 16 == 0 && to % 16 == 0;
                d.kernels = if is_aligned { &["copy"] } else { &["rows"] };
                d.at(c(&[run]), c(&[run]), [from, to]);
            }
        }
    }),
    Row("short_runs_and_aligned_ones_need_no_shift", Size, &[1, 16], &["patch"], 100, |d| match d.width {
        1 => {
            for run in 1..SHORTEST {
                d.at(pitched(3, run, run + 2, 0), pitched(3, run, run + 4, 0), [1, 2]);
                d.at(c(&[run]), c(&[run]), [3, 1]);
            }
            d.at(pitched(3, 256, 272, 0), pitched(3, 256, 288, 0), [16, 32]);
        }
        _ => d.at(pitched(3, 16, 17, 0), c(&[3, 16]), [0, 16]),
    }),
    // A patch is 8 columns by 32 rows, or narrower and longer, or shorter and wider.
    Row("patches_end_at_every_edge", Size, ALL, &["patch"], 100, |d| {
        for (rows, cols) in product([2, 3, 4, 5, 8, 31, 32, 33, 65, 257], [2, 3, 5, 7, 8, 9, 17, 33, 63]) {
            d.copy(pitched(rows, cols, cols + 1, 0), c(&[cols, rows]).t());
        }
    }),
    Row("patches_of_up_to_four_axes_in_any_order", Size, ALL, &["patch"], 100, |d| {
        for shape in [&[7, 9][..], &[5, 3, 7], &[9, 4, 33], &[2, 5, 3, 7], &[3, 17, 2, 5], &[11, 2, 3, 13]] {
            for _ in 0..6 {
                let src = permuted(shape, &d.random.order(shape.len()));
                // A destination with gaps, so that no order of the axes is a copy.
                let whole = c(&src.shape().iter().map(|extent| 2 * extent).collect::<Vec<_>>());
                d.copy(src, (0..shape.len()).fold(whole, |dst, axis| dst.slice(axis, .., 2).unwrap()));
            }
        }
    }),
    Row("patches_of_reversed_stepped_and_broadcast_axes", Size, ALL, &["patch"], 100, |d| {
        let src = c(&[6, 40, 10]).reverse(2).unwrap().slice(1, .., -3).unwrap();
        d.from(src.t());
        d.copy(src, c(&[10, 14, 6]).t().reverse(0).unwrap());
        d.from(Layout::new(&[300], &[3], 1, 900).unwrap());
        d.from(Layout::new(&[20, 30], &[0, 2], 0, 60).unwrap());
    }),
    // Tiles of 32 x 4 micro-tiles of whole vectors, and of 32 x 32 elements.
    Row("small_tiles_end_at_every_edge", Size, ALL, &["small_tile"], 100, |d| {
        // The fewest elements that exceed patches and, if narrow, are worth micro-tiles.
        let (lanes, least) = (d.lanes, if d.width < 4 { 1 << 20 } else { 1 << 18 } / 16);
        for cols in [31, 32, 33, 65].map(|quads: usize| quads * lanes) {
            let first = least / (cols / lanes) / lanes + 1;
            // The short form has rows that fill their last tile, and rows that end within it.
            let full = first.next_multiple_of(4);
            for quads in short_or_long(vec![full, full + 2], (first..first + 5).collect()) {
                let rows = quads * lanes;
                d.matrix([rows, cols], [0, 0, 0]);
                d.matrix([rows, cols], [lanes, 2 * lanes, lanes]);
            }
        }
    }),
    Row("small_matrices_start_anywhere_and_may_run_backwards", Size, ALL, &["staggered"], 100, |d| {
        let sides = [[[1024, 1024], [2048, 640]], [[1024, 512], [520, 1048]], [[512, 256], [300, 388]]];
        let wider = [[[256, 256], [202, 286]], [[128, 256], [150, 171]]];
        let whole: &[&str] = if d.width == 16 { &["small_tile"] } else { d.kernels };
        for sides in [&sides[..], &wider].concat()[d.width.ilog2() as usize] {
            d.kernels = &["small_tile"];
            d.matrix(sides, [0, 0, 0]);
            d.kernels = whole;
            d.matrix(sides, [1, 1, 1]);
        }
        // The short form has one that is nearly square and one that is narrow.
        let sides = [[257, 256], [33, 2049], [289, 255], [2049, 32], [300, 310]];
        for (sides, [from, to]) in product(&sides[..short_or_long(2, 5)], [[0, 1], [1, 0], [3, 2]]) {
            d.kernels = whole;
            let (src, dst) = matrix(*sides, [from, to, 1]);
            [src, src.reverse(0).unwrap()].into_iter().for_each(|src| d.copy(src, dst));
            // Backwards along the contiguous axis there are no vectors.
            d.kernels = &["staggered"];
            d.copy(src.reverse(1).unwrap(), dst);
        }
    }),
    Row("whole_matrices_of_any_sides", AsIfLarge, ALL, BY_VECTORS, 100, |d| {
        // Several axes of a matrix, of which one side has a table of rows.
        d.from(permuted(&[d.images(3 * 5 * 7), 3, 5, 7], &[0, 3, 1, 2]));
        // In elements of 16 bytes, sides of 64 lie in one bank.
        for [rows, cols] in [[33, 31], [3, 5], [7, 64], [129, 17], [45, 3]] {
            // Rows of 17 elements of 8 bytes are structs.
            d.kernels = if d.width == 16 || (d.width, cols) == (8, 17) { ANY } else { BY_VECTORS };
            d.from(turned(&[d.images(rows * cols), rows, cols]));
        }
    }),
    Row("structs_and_images_off_words", AsIfLarge, ALL, STRUCTS, 100, |d| {
        // Structs and images of whole words move as structs, and elements of 16 bytes are vectors
        // themselves.
        d.kernels = [BY_VECTORS, BY_VECTORS, STRUCTS, STRUCTS, WHOLE_VECTORS][d.width.ilog2() as usize];
        let (len, side) = (d.images(3) | 1, d.images(9 * 101) | 1);
        d.from(c(&[len, 3]).t());
        d.from(c(&[3, len]).t());
        d.from(permuted(&[3, side, 101, 3], &[0, 3, 1, 2]));
        d.from(c(&[2, d.images(2) | 1]).t());
    }),
    Row("short_axes_in_any_order_by_vectors", AsIfLarge, ALL, BY_VECTORS, 1, |d| {
        for _ in 0..short_or_long(4, 16) {
            let mut shape: Vec<usize> = (0..6).map(|_| 3 + 2 * d.random.below(5)).collect();
            shape[d.random.below(6)] *= d.images(shape.iter().product());
            let order = d.random.order(6);
            d.from(permuted(&shape, &order));
        }
    }),
    Row("axes_backwards_by_vectors", AsIfLarge, ALL, BY_VECTORS, 1, |d| {
        for axis in 0..3 {
            d.from(turned(&[d.images(35 * 33), 35, 33]).reverse(axis).unwrap());
            d.from(c(&[67, d.images(67 * 71), 71]).t().reverse(axis).unwrap());
        }
        // Any axes at once, in parts and whole, in runs of several axes and in the batch.
        for _ in 0..short_or_long(4, 16) {
            let mut shape: Vec<usize> = (0..3 + d.random.below(3)).map(|_| 3 + d.random.below(14)).collect();
            let rank = shape.len();
            shape[d.random.below(rank)] *= d.images(shape.iter().product());
            let (order, axes) = (d.random.order(rank), d.random.below(1 << rank));
            d.from(backwards(permuted(&shape, &order), axes));
        }
    }),
    // The elements between are not written. Boxes alone read them.
    Row("parts_of_larger_arrays_by_vectors", AsIfLarge, ALL, BY_VECTORS, 100, |d| {
        let transposed = |layout: Layout| layout.permuted_axes(&[0, 2, 1]).unwrap();
        for [rows, cols] in [[33, 31], [5, 1031], [17, 1031]] {
            // Rows of 31 elements are too short but for whole vectors, rows of 8 bytes are structs
            // on words, and tiles of most widths hold short parts of 17 rows.
            let is_by_vectors = d.width != 8 && (d.width == 16 || rows == 5);
            d.kernels = match (d.width, rows) {
                _ if is_by_vectors => BY_VECTORS,
                (8, 17) => STRUCTS,
                _ => ANY,
            };
            let images = d.images(rows * cols);
            let larger = c(&[images, rows + 2, cols + 6]);
            d.from(transposed(part(larger, [0..images, 1..rows + 1, 3..cols + 3])));
        }
        let images = d.images(33 * 31);
        let src = transposed(part(c(&[images, 35, 37]), [0..images, 1..34, 3..34]));
        d.kernels = ANY;
        d.copy(src, part(c(&[images, 33, 37]), [0..images, 1..32, 1..34]));
    }),
    // Boxes take elements that share sectors. Those with sectors of their own may go by `elements`.
    Row("sources_whose_elements_lie_apart", AsIfLarge, ALL, &["boxes"], 100, |d| {
        for (step, [rows, cols]) in [(2, [33, 31]), (3, [64, 64]), (7, [7, 257]), (2, [3, 5]), (4, [40, 3])] {
            // Batches, and one long matrix whose columns lie apart.
            let batch = d.images(rows * cols);
            let axes = &[[0, 2, 1], [2, 1, 0], [0, 1, 2], [1, 0, 2], [2, 0, 1]][..short_or_long(2, 5)];
            for (shape, axes) in product([[batch, rows, cols * step], [1, batch * rows, cols * step]], axes) {
                let src = c(&shape).slice(2, step / 2..shape[2], step as isize).unwrap().permuted_axes(axes).unwrap();
                let is_by_boxes = axes[2] != 2 && step * d.width < 32;
                d.kernels = if is_by_boxes { &["boxes"] } else { &["boxes", "elements"] };
                let reversed = [0, 0, 0, 1, 2, 4][d.random.below(6)];
                d.from(backwards(src, reversed));
            }
        }
    }),
    Row("structs_of_any_few_fields_and_back", Large, SMALLER, STRUCTS, 100, |d| {
        // The short form has 9 of up to 63: primes, powers of two, and others.
        let few = [2, 3, 4, 7, 12, 16, 17, 33, 64];
        for fields in (2..=64_usize).filter(|fields| is_long() || few.contains(fields)) {
            for (len, multiple) in product([1_usize, 31, 1000, 4097, 4100], [4, 16]) {
                // With 16 fields and the like, lanes would share banks.
                let in_quads = multiple % d.lanes == 0 && !fields.is_multiple_of(16);
                d.kernels = match len {
                    4097 if in_quads => STRUCTS_BY_QUADS,
                    4097 => STRUCTS_BY_WORDS,
                    // Tiles move whole squares.
                    4100 if !(fields | len).is_multiple_of(d.lanes) => STRUCTS,
                    _ => ANY,
                };
                let planes = part(c(&[fields, len.next_multiple_of(multiple)]), [0..fields, 0..len]);
                d.structs(c(&[len, fields]), planes.t());
            }
        }
    }),
    Row("batches_of_images_and_planes_apart_or_backwards", Large, SMALLER, STRUCTS, 100, |d| {
        for (fields, (double, structs, lead)) in
            product([3, 5, 7, 9], [(1, 1500, 4_usize), (1, 1520, 16), (2, 1520, 16)])
        {
            let fields: usize = double * fields;
            let in_quads = (lead | (structs * fields)).is_multiple_of(d.lanes);
            d.kernels = if in_quads { STRUCTS_BY_QUADS } else { STRUCTS_BY_WORDS };
            // Tiles move fields of whole vectors.
            if !fields.is_multiple_of(d.lanes) {
                let packed = c(&[3, 4, structs, fields]).slice(0, .., -2).unwrap();
                let planes = c(&[2, fields, 4, structs + lead]).slice(3, lead.., 1).unwrap().reverse(1).unwrap();
                d.structs(packed, planes.permuted_axes(&[0, 2, 3, 1]).unwrap());
            }
        }
    }),
    // Rows and columns that fill a power of two or do not.
    Row("batches_of_small_matrices_of_whole_quads", Large, SMALLER, TILES, 100, |d| {
        let lanes = d.lanes;
        for (rows, cols) in product([1, 3, 6, 8], [1, 2, 5, 8]) {
            let images = match (rows * cols, d.width) {
                (1, 1) => &[512][..],
                (1, _) => &[],
                _ => &[37, 64],
            };
            images.iter().for_each(|&images| d.from(turned(&[images, rows * lanes, cols * lanes])));
        }
    }),
    Row("images_apart_and_backwards_in_batches_of_several_axes", Large, SMALLER, TILES, 100, |d| {
        let side = 8 * d.lanes;
        let image = (side * side) as isize;
        let lay = |[a, b, c]: [isize; 3], row: usize, col: usize, from: usize, len: usize| {
            let strides = [a * image, b * image, c * image, row as isize, col as isize];
            Layout::new(&[3, 3, 9, side, side], &strides, from * side * side, len * side * side).unwrap()
        };
        // The middle 9 and the first 3 of 3 x 12 x 4 images.
        let (src, gapless) = (lay([1, 48, 4], 1, side, 4, 144), c(&[3, 3, 9, side, side]));
        d.from(src);
        d.from(src.reverse(2).unwrap());
        d.copy(src, backwards(gapless, 0b110));
        d.copy(gapless.permuted_axes(&[0, 1, 2, 4, 3]).unwrap(), lay([1, 48, 4], side, 1, 4, 144));
        d.from(lay([0, 0, 1], 1, side, 0, 9));
    }),
    Row("images_of_no_whole_quads_or_with_gaps", Large, SMALLER, ANY, 0, |d| {
        let side = 8 * d.lanes;
        d.from(turned(&[33, side + 1, side]));
        d.from(turned(&[33, side, side - 1]));
        let gaps = part(c(&[9, side, side + 16]), [0..9, 0..side, 0..side]).permuted_axes(&[0, 2, 1]).unwrap();
        d.both(gaps, c(&[9, side, side]));
    }),
    // Small arrays of elements of 16 bytes have whole vectors.
    Row("axes_end_within_a_tile", Large, SMALLER, &["packed_quads"], 33, |d| {
        let shapes = [[7, 13, 9, 11], [33, 6, 5, 17], [5, 31, 3, 29], [65, 3, 2, 67], [3, 67, 71, 3], [2, 90, 5, 63]];
        for (shape, axes) in product(shapes, [[3, 2, 1, 0], [3, 1, 0, 2], [2, 0, 3, 1]]) {
            d.from(permuted(&shape, &axes));
        }
    }),
    Row("one_axis_ends_the_runs_of_both_sides", Large, ALL, &["packed_quads"], 100, |d| {
        // Wide elements of small matrices move one by one, or as the fields of structs.
        d.kernels = if d.width > 2 { &["elements", "deinterleave", "packed_quads", "vector_tile"] } else { d.kernels };
        let shapes = [[700, 3, 7], [301, 9, 5], [50, 31, 33], [21, 63, 17], [130, 19, 23], [2048, 8, 8]];
        shapes.iter().for_each(|shape| d.from(turned(shape)));
    }),
    Row("structs_of_bytes_whose_lanes_gather_across_runs", Large, &[1, 2], &["packed_quads"], 50, |d| {
        let shapes = [[2, 3001, 8], [4, 20_011, 8], [3, 1501, 6], [9, 333, 4]];
        for axes in [[0, 2, 1], [2, 0, 1]] {
            for shape in shapes {
                let src = permuted(&shape, &axes);
                let dst = c(src.shape());
                (0..8).for_each(|reversed| d.copy(backwards(src, reversed), dst));
            }
        }
    }),
    Row("many_short_axes_in_any_order", Large, ALL, &["packed_quads"], 50, |d| {
        for _ in 0..24 {
            let shape: Vec<usize> = (0..6).map(|_| 2 + d.random.below(6)).collect();
            let order = d.random.order(6);
            d.from(permuted(&shape, &order));
        }
    }),
    Row("few_columns_and_small_matrices_of_arrays_as_if_large", AsIfLarge, &[1], &["boxes"], 100, |d| {
        for len in 3..=13 {
            d.from(if len % 2 == 0 { turned(&[100 * len, 24, 24]) } else { turned(&[1, 16, 4096 * len]) });
        }
    }),
    Row("short_axes_backwards_and_broadcast", Large, ALL, &["packed_quads"], 25, |d| {
        d.kernels = if d.width == 16 { &["vector_tile"] } else { d.kernels };
        for axes in [[3, 2, 1, 0], [2, 3, 0, 1], [0, 3, 2, 1]] {
            let src = permuted(&[9, 5, 7, 13], &axes);
            let dst = c(src.shape());
            for reversed in 0..16 {
                d.copy(backwards(src, reversed), dst);
                d.copy(src, backwards(dst, reversed));
            }
            d.from(c(&[9, 1, 7, 13]).broadcast(&[9, 5, 7, 13]).unwrap().permuted_axes(&axes).unwrap());
        }
    }),
    Row("short_axes_of_parts_of_larger_arrays", Large, ALL, &["packed_quads"], 33, |d| {
        for axes in [[3, 2, 1, 0], [3, 0, 2, 1], [2, 1, 3, 0], [0, 2, 3, 1]] {
            let src = part(c(&[11, 10, 9, 14]), [1..10, 2..9, 0..9, 1..12]).permuted_axes(&axes).unwrap();
            d.both(src, c(src.shape()));
            d.from(permuted(&[9, 7, 9, 11], &axes));
        }
    }),
    Row("short_axes_of_narrow_elements_from_and_to_every_misalignment", Large, NARROW, &["packed_quads"], 66, |d| {
        let shapes = [[12, 15, 33, 1], [12, 16, 32, 1], [6, 8, 9, 12], [5, 7, 9, 11]];
        for (shape, axes) in product(shapes, [[0, 2, 1, 3], [3, 2, 1, 0], [3, 1, 2, 0]]) {
            let src = permuted(&shape, &axes);
            for starts in [[0, 0], [1, 0], [0, 1], [2, 3], [3, 2]] {
                d.at(src, c(src.shape()), starts.map(|start| start * d.width));
            }
        }
    }),
    Row("random_axes_of_any_extents_from_and_to_anywhere", Large, ALL, &["packed_quads"], 25, |d| {
        d.kernels = if d.width > 4 { &["packed_quads", "ragged_tile", "vector_tile"] } else { d.kernels };
        // The short form has three of eight on the software GPU.
        let (layouts, most) = if d.is_soft { (short_or_long(30, 80), 6_000) } else { (400, 200_000) };
        for _ in 0..layouts {
            let [src, dst] = random_axes(most, &mut d.random);
            let starts = [0; 2].map(|_| if d.random.coin() { 0 } else { d.random.below(16) * d.width });
            d.at(src, dst, starts);
        }
    }),
    // In vectors a tile is 8 to 32 micro-tiles by 16 to 64; with ragged rows it adds 14 or 30 along
    // a column.
    Row("tiles_end_at_every_edge", Large, ALL, TILES, 100, |d| {
        let lanes = d.lanes;
        let around = |edge: usize| [edge - lanes, edge - 1, edge, edge + 1, edge + lanes];
        let edges: Vec<usize> = [14, 16, 28, 32].into_iter().flat_map(|quads| around(quads * lanes)).collect();
        // The short form takes every third edge, so each kind of edge.
        for (at, &rows) in edges.iter().enumerate().step_by(short_or_long(3, 1)) {
            for cols in [edges[(at * 7 + 1) % edges.len()], edges[(at * 9 + 14) % edges.len()]] {
                // Smaller ones may leave most of a tile empty, and go to `elements`.
                if rows * cols >= 256 * lanes * lanes {
                    tile(d, [rows, cols], [0, 0, 0]);
                    // Rows and columns start on vectors, a vector or more apart.
                    let pitch = |len: usize| (len + 1).next_multiple_of(lanes) + lanes;
                    d.copy(pitched(rows, cols, pitch(cols), 0), pitched(cols, rows, pitch(rows), 0).t());
                }
            }
        }
    }),
    Row("rows_start_on_every_element_of_a_quad", Large, ALL, TILES, 100, |d| {
        let lanes = d.lanes;
        let (rows, cols) = if lanes == 16 { (128, 64) } else { (16 * lanes, 16 * lanes) };
        // The short form starts the source's rows on every third element.
        for (from, to) in product((0..lanes).step_by(short_or_long(3, 1)), 0..lanes) {
            // Rows that all start alike, or each at another element of a vector.
            let odd = (from + to) % 2;
            d.kernels = if from + to == 0 || lanes == 1 { WHOLE_TILES } else { RAGGED_TILES };
            d.copy(pitched(rows, cols - odd, cols + odd, from), pitched(cols - odd, rows, rows + 3 * odd, to).t());
        }
        if lanes == 1 {
            return;
        }
        for quads in [[16, 16], [32, 32], [17, 33], [40, 24], [2, 700], [700, 2], [3, 300], [300, 3], [4, 128]] {
            for [from, to, gap] in [[0; 3], [1, 0, 0], [0, 1, 0], [1, 1, 2], [0, 3, 1], [lanes, 5, lanes + 1]] {
                tile(d, quads.map(|quads| quads * lanes - 1), [from, to, gap]);
            }
        }
    }),
    Row("long_and_narrow_matrices", Large, ALL, TILES, 100, |d| {
        let lanes = d.lanes;
        // The short form has a quarter of the length.
        let lengths = short_or_long([1024, 1027], [4096, 4099]);
        for (short, long) in product([lanes.max(2), 2 * lanes, lanes + 1, 3 * lanes + 2], lengths) {
            // One vector a row is worth a tile only if it is whole.
            if short > lanes || long % lanes == 0 {
                for sides in [[short, long], [long, short]] {
                    tile(d, sides, [0, 0, 0]);
                    tile(d, sides, [0, 0, lanes]);
                }
            }
        }
        for quads in [[2, 300], [300, 2], [4, 128], [128, 4], [9, 64], [64, 7], [32, 32], [17, 33], [40, 24]] {
            tile(d, quads.map(|quads| quads * lanes), [0, 0, 0]);
            tile(d, quads.map(|quads| quads * lanes), [lanes, 2 * lanes, lanes]);
        }
    }),
    Row("tiles_in_batches_of_several_axes", Large, ALL, TILES, 100, |d| {
        // Axes: batch, row, batch, column, in turn.
        let axes = [[3, 2, 0, 1], [0, 3, 2, 1], [2, 3, 0, 1], [2, 0, 3, 1]];
        for ((rows, cols), axes) in product([(128, 64), (67, 129)], axes) {
            d.kernels = whole_or_ragged(d.lanes, &[rows, cols]);
            d.from(permuted(&[2, rows, 3, cols], &axes));
        }
    }),
    // Axes shorter than a run of memory, as in tensors of many axes, are folded in pairs.
    Row("tiles_of_runs_of_two_axes", Large, ALL, TILES, 100, |d| {
        for shape in [[16, 6, 2, 3, 8, 16], [16, 9, 3, 2, 8, 12], [16, 14, 1, 2, 13, 8], [16, 5, 3, 2, 17, 6]] {
            d.from(c(&shape).t());
            d.from(backwards(c(&shape).t(), 0b1_0001));
        }
    }),
    Row("rows_that_end_within_a_sector_go_on_along_the_next_axis", Large, &[4, 8, 16], TILES, 100, |d| {
        // The short form has a shorter axis in the last.
        for shape in [[33, 5, 3, 133], [61, 7, 2, 67], [37, short_or_long(11, 41), 1, 300]] {
            [0, 0b1000, 0b101].into_iter().for_each(|axes| d.from(backwards(c(&shape).t(), axes)));
            // Gaps after the rows of the source, which may not be read.
            let [rows, outer, batch, cols] = shape;
            d.from(c(&[rows, outer, batch, cols + 3]).slice(3, 1..cols + 1, 1).unwrap().t());
        }
    }),
    Row("tiles_backwards_and_broadcast", Large, ALL, TILES, 100, |d| {
        for (rows, cols) in [(128, 96), (97, 125)] {
            let (src, dst) = (c(&[2, rows, cols]), turned(&[2, cols, rows]));
            d.kernels = whole_or_ragged(d.lanes, &[rows, cols]);
            // The short form has half of the combinations for each matrix, and all for the two.
            for reversed in (short_or_long(rows % 2, 0)..8).step_by(short_or_long(2, 1)) {
                d.copy(backwards(src, reversed), dst);
                d.copy(src, backwards(dst, reversed));
                let repeated = c(&[1, rows, cols]).broadcast(src.shape()).unwrap();
                d.copy(backwards(repeated, reversed), dst);
            }
        }
    }),
    Row("tiles_of_parts_of_larger_arrays", Large, ALL, TILES, 100, |d| {
        let (lanes, rows, cols) = (d.lanes, 128, 64);
        for (before, after) in [(0, lanes), (lanes, 0), (1, 0), (3, lanes), (0, 5), (lanes + 1, 2 * lanes + 1)] {
            // Every second row of the destination, and a window of its columns.
            let dst = c(&[2 * (cols + before + after), rows + before + after]);
            let dst = dst.slice(0, 2 * before..2 * (before + cols), 2).unwrap();
            let dst = dst.slice(1, before..before + rows, 1).unwrap().t();
            // Packed structs of 64 fields.
            d.kernels = &["vector_tile", "ragged_tile", "deinterleave"];
            d.copy(c(&[rows, cols]), dst);
            d.kernels = TILES;
            let src = c(&[rows + before + after, cols + before + after]);
            d.copy(part(src, [before..before + rows, before..before + cols]), dst);
        }
    }),
    // If the result is larger than 16 MiB, two tiles' parts of one sector may not meet in the L2
    // cache. The short form has these alone.
    Row("large_matrices_whose_quads_are_off_sectors", Large, &[4, 16], TILES, 100, |d| {
        let on = if d.width == 4 { [2056, 2052] } else { [1088, 1025] };
        let off = if d.width == 4 { [2060, 2052] } else { [1031, 1025] };
        for ([rows, cols], kernel) in
            [(off, &["ragged_tile"]), (on, &["vector_tile"])].into_iter().take(short_or_long(1, 2))
        {
            d.kernels = kernel;
            d.copy(c(&[rows, cols]), c(&[cols, rows]).t());
            d.copy(pitched(rows, cols, cols + d.lanes, 0), c(&[cols, rows]).t());
        }
    }),
    // Rows and columns are runs of several axes, forwards and backwards, whole and as parts of
    // larger arrays, whose other elements are not read, which the checkers would find.
    Row("narrow_rows_and_columns_join_any_axes", Large, NARROW, &["ragged_tile"], 13, |d| {
        // The short form has a tenth.
        for _ in 0..short_or_long(40, 400) {
            let rank = 3 + d.random.below(3);
            let mut shape: Vec<usize> = (0..rank).map(|_| 2 + d.random.below(6)).collect();
            // Rows and columns of one long axis, and of several short ones.
            shape[rank - 1] += 30 + d.random.below(90);
            shape[d.random.below(rank - 1)] += 30 + d.random.below(90);
            let larger: Vec<usize> = shape.iter().map(|extent| extent + d.random.below(2)).collect();
            let larger = if d.random.below(3) == 0 { larger } else { shape.clone() };
            let cut = |layout: Layout, axis: usize| layout.slice(axis, larger[axis] - shape[axis].., 1).unwrap();
            let src = (0..rank).fold(c(&larger), cut);
            let (axes, order) = (d.random.below(1 << rank) & d.random.below(1 << rank), d.random.order(rank));
            d.from(backwards(src, axes).permuted_axes(&order).unwrap());
        }
    }),
];

/// A matrix for tiles: of rows and columns that start on vectors and hold whole ones, or not.
fn tile(d: &mut Draw, sides: [usize; 2], starts: [usize; 3]) {
    d.kernels = whole_or_ragged(d.lanes, &[&sides[..], &starts].concat());
    d.matrix(sides, starts);
}

fn whole_or_ragged(lanes: usize, extents: &[usize]) -> &'static [&'static str] {
    if extents.iter().all(|extent| extent % lanes == 0) { WHOLE_TILES } else { RAGGED_TILES }
}
