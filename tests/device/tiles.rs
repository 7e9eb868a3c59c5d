//! The tile kernels: matrices at their edges, on every alignment, batched, folded, reversed and far
//! apart, compared with the oracle.

use warpstride::device::Device;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target, TileShape};

use crate::backend::{Setup, cases};
use crate::long::{is_long, short_or_long};
use crate::matrices::{Random, Sample, at_every_width};
use crate::permutes::{check, device, family};

cases! {
    Any tiles_end_at_every_edge,
    Any rows_start_on_every_element_of_a_quad,
    Any batches_of_several_axes,
    Any runs_of_two_axes,
    Any rows_that_end_within_a_sector_go_on_along_the_next_axis,
    Any axes_backwards_and_broadcast,
    Any parts_of_larger_arrays,
    Any long_and_narrow_matrices,
    Any large_matrices_whose_quads_are_off_sectors,
    Any tiles_beyond_31_bits,
    Any narrow_rows_and_columns_join_any_axes,
}

/// Returns the elements of 16 bytes.
const fn lanes<T>() -> usize {
    16 / size_of::<T>()
}

/// Copies by tiles, with the named kernel if it matters. Packed structs of up to 64 fields may go
/// to other kernels, unless rows lie apart. Short ragged rows may go to `packed`, elements of 16
/// bytes that do not fill tiles to `packed_quads`, and small matrices of whole vectors may be
/// stacked.
fn tiles<T: Sample>(device: &Device, src: Layout, dst: Layout, kernel: Option<&str>, random: &mut Random) {
    let entry = check::<T>(device, src, dst, random);
    let taken = family(entry);
    let expected = kernel.map_or(taken.ends_with("_tile"), |kernel| kernel == taken);
    let fields = taken.contains("interleave") && (is_packed(&src) || is_packed(&dst));
    let short = src.shape().iter().any(|extent| extent * size_of::<T>() < 128);
    let quads = taken == "packed_quads" && kernel.is_none() && size_of::<T>() == 16;
    let packed = quads || taken == "packed" && kernel != Some("vector_tile") && short;
    let stacked = taken == "stacked_tile" && kernel == Some("vector_tile");
    assert!(expected || fields || packed || stacked, "{}: {src:?} to {dst:?} took {entry:?}, not {kernel:?}", T::DTYPE);
}

/// Returns whether the innermost axis has 2 to 64 indices, and another continues it.
fn is_packed(layout: &Layout) -> bool {
    let axes = || layout.shape().iter().zip(layout.strides()).filter(|(extent, _)| **extent > 1);
    let inner = axes().find(|(_, stride)| stride.unsigned_abs() == 1).map_or(0, |(&extent, _)| extent);
    (2..=64).contains(&inner) && axes().any(|(_, stride)| stride.unsigned_abs() == inner)
}

/// Returns the kernel for rows that start alike on both sides, which depends on whether they hold
/// whole vectors.
fn by_extents<T>(extents: &[usize]) -> Option<&'static str> {
    let whole = extents.iter().all(|extent| extent % lanes::<T>() == 0);
    Some(if whole { "vector_tile" } else { "ragged_tile" })
}

/// Returns a matrix in C order whose rows are `pitch` elements apart, from element `start` on.
fn pitched(rows: usize, cols: usize, pitch: usize, start: usize) -> Layout {
    Layout::new(&[rows, cols], &[pitch as isize, 1], start, start + rows * pitch).unwrap()
}

/// Returns a matrix in C order and one in Fortran order, whose rows and columns start on vectors, a
/// vector or more apart.
fn apart<T>([rows, cols]: [usize; 2]) -> [Layout; 2] {
    let pitch = |len: usize| (len + 1).next_multiple_of(lanes::<T>()) + lanes::<T>();
    [pitched(rows, cols, pitch(cols), 0), pitched(cols, rows, pitch(rows), 0).t()]
}

/// In vectors a tile is 8 to 32 micro-tiles by 16 to 64; with ragged rows it adds 14 or 30 along a
/// column.
fn tiles_end_at_every_edge(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let lanes = lanes::<T>();
        let around = |edge: usize| [edge - lanes, edge - 1, edge, edge + 1, edge + lanes];
        let edges: Vec<usize> = [14, 16, 28, 32].into_iter().flat_map(|quads| around(quads * lanes)).collect();
        // The short form takes every third edge, so each kind of edge.
        for (at, &rows) in edges.iter().enumerate().step_by(short_or_long(3, 1)) {
            for cols in [edges[(at * 7 + 1) % edges.len()], edges[(at * 9 + 14) % edges.len()]] {
                // Smaller ones may leave most of a tile empty, and go to `elements`.
                if rows * cols >= 256 * lanes * lanes {
                    let shape = [rows, cols];
                    let (src, dst) = (Layout::row_major(&shape).unwrap(), Layout::column_major(&shape).unwrap());
                    tiles::<T>(device, src, dst, by_extents::<T>(&shape), random);
                    let [src, dst] = apart::<T>(shape);
                    tiles::<T>(device, src, dst, by_extents::<T>(&shape), random);
                }
            }
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(30)));
}

fn rows_start_on_every_element_of_a_quad(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let lanes = lanes::<T>();
        let (rows, cols) = if lanes == 16 { (128, 64) } else { (16 * lanes, 16 * lanes) };
        // The short form starts the source's rows on every third element.
        for from in (0..lanes).step_by(short_or_long(3, 1)) {
            for to in 0..lanes {
                // Rows that all start alike, or each at another element of a vector.
                let odd = (from + to) % 2;
                let whole = from + to == 0 || lanes == 1;
                let src = pitched(rows, cols - odd, cols + odd, from);
                let dst = pitched(cols - odd, rows, rows + 3 * odd, to).t();
                tiles::<T>(device, src, dst, Some(if whole { "vector_tile" } else { "ragged_tile" }), random);
            }
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(31)));
}

fn batches_of_several_axes(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        for (rows, cols) in [(128, 64), (67, 129)] {
            // Axes: batch, row, batch, column, in turn.
            let source = Layout::row_major(&[2, rows, 3, cols]).unwrap();
            for axes in [[3, 2, 0, 1], [0, 3, 2, 1], [2, 3, 0, 1], [2, 0, 3, 1]] {
                let src = source.permuted_axes(&axes).unwrap();
                let dst = Layout::row_major(src.shape()).unwrap();
                tiles::<T>(device, src, dst, by_extents::<T>(&[rows, cols]), random);
            }
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(32)));
}

/// Axes shorter than a run of memory, as in tensors of many axes, are folded in pairs, and longer
/// ones may be.
fn runs_of_two_axes(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        for shape in [[16, 6, 2, 3, 8, 16], [16, 9, 3, 2, 8, 12], [16, 14, 1, 2, 13, 8], [16, 5, 3, 2, 17, 6]] {
            let src = Layout::row_major(&shape).unwrap().permuted_axes(&[5, 4, 3, 2, 1, 0]).unwrap();
            let dst = Layout::row_major(src.shape()).unwrap();
            let runs = |inner: usize, outer: usize| {
                if inner * size_of::<T>() < 256 { vec![inner * outer] } else { vec![inner, inner * outer] }
            };
            let all = shape.iter().product::<usize>();
            let (align, target) = (Align::ALLOCATION, Target::of(device));
            let shapes = &TileShape::of(target);
            let plan = PermutePlan::tuned(&src, align, &dst, align, size_of::<T>(), target, shapes).unwrap();
            let is_folded = runs(shape[0], shape[1]).into_iter().any(|rows| {
                let of = |cols| format!("{} of {rows} x {cols} elements", all / (rows * cols));
                runs(shape[5], shape[4]).into_iter().any(|cols| plan.to_string().contains(&of(cols)))
            });
            // Ragged tiles of narrow elements join more axes.
            let is_joined = size_of::<T>() < 4 && family(plan.entry()) == "ragged_tile";
            assert!(is_folded || is_joined || family(plan.entry()) == "packed", "{plan}");
            tiles::<T>(device, src, dst, None, random);
            tiles::<T>(device, src.reverse(0).unwrap().reverse(4).unwrap(), dst, None, random);
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(33)));
}

/// Elements of 4 bytes and more: no sector is written in two parts.
fn rows_that_end_within_a_sector_go_on_along_the_next_axis(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        // The short form has a shorter axis in the last.
        for [rows, outer, batch, cols] in [[33, 5, 3, 133], [61, 7, 2, 67], [37, short_or_long(11, 41), 1, 300]] {
            let src = Layout::row_major(&[rows, outer, batch, cols]).unwrap().permuted_axes(&[3, 2, 1, 0]).unwrap();
            let dst = Layout::row_major(src.shape()).unwrap();
            let (align, target) = (Align::ALLOCATION, Target::of(device));
            let shapes = &TileShape::of(target);
            let plan = PermutePlan::tuned(&src, align, &dst, align, size_of::<T>(), target, shapes).unwrap();
            // Columns of whole vectors may be folded too.
            let folded = [(batch, cols), (1, batch * cols)]
                .map(|(images, cols)| format!("{images} of {} x {cols} elements", rows * outer));
            let is_folded = folded.iter().any(|folded| plan.to_string().contains(folded));
            let is_packed = ["packed", "packed_quads"].contains(&family(plan.entry()));
            assert!(is_folded || is_packed, "{plan}, not {folded:?}");
            tiles::<T>(device, src, dst, None, random);
            tiles::<T>(device, src.reverse(3).unwrap(), dst, None, random);
            tiles::<T>(device, src.reverse(2).unwrap().reverse(0).unwrap(), dst, None, random);
            // Gaps after the rows of the source, which may not be read.
            let wide = Layout::row_major(&[rows, outer, batch, cols + 3]).unwrap().slice(3, 1..cols + 1, 1).unwrap();
            tiles::<T>(device, wide.permuted_axes(&[3, 2, 1, 0]).unwrap(), dst, None, random);
        }
    }
    let (device, mut random) = (device(setup), Random::new(39));
    run::<u32>(&device, &mut random);
    run::<u64>(&device, &mut random);
    run::<[f64; 2]>(&device, &mut random);
}

fn axes_backwards_and_broadcast(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        for (rows, cols) in [(128, 96), (97, 125)] {
            let shape = [2, rows, cols];
            // The short form has half of the combinations for each matrix, and all for the two.
            for reversed in (short_or_long(rows % 2, 0)..8).step_by(short_or_long(2, 1)) {
                let src = Layout::row_major(&shape).unwrap();
                let dst = Layout::row_major(&[2, cols, rows]).unwrap().permuted_axes(&[0, 2, 1]).unwrap();
                let backwards = |layout: Layout| {
                    (0..3)
                        .filter(|axis| reversed >> axis & 1 != 0)
                        .fold(layout, |layout, axis| layout.reverse(axis).unwrap())
                };
                // Backwards in the source, in the destination, and along all axes of the
                // destination.
                tiles::<T>(device, backwards(src), dst, None, random);
                tiles::<T>(device, src, backwards(dst), None, random);
                let repeated = Layout::row_major(&[1, rows, cols]).unwrap().broadcast(&shape).unwrap();
                tiles::<T>(device, backwards(repeated), dst, by_extents::<T>(&shape[1..]), random);
            }
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(34)));
}

/// Bytes between the elements of the destination must stay: `check` compares all of its storage.
fn parts_of_larger_arrays(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let lanes = lanes::<T>();
        let (rows, cols) = (128, 64);
        for (before, after) in [(0, lanes), (lanes, 0), (1, 0), (3, lanes), (0, 5), (lanes + 1, 2 * lanes + 1)] {
            let whole = [2 * (cols + before + after), rows + before + after];
            // Every second row of the destination, and a window of its columns.
            let dst = Layout::row_major(&whole).unwrap().slice(0, 2 * before..2 * (before + cols), 2).unwrap();
            let dst = dst.slice(1, before..before + rows, 1).unwrap().t();
            tiles::<T>(device, Layout::row_major(&[rows, cols]).unwrap(), dst, None, random);
            let src = Layout::row_major(&[rows + before + after, cols + before + after]).unwrap();
            let src = src.slice(0, before..before + rows, 1).unwrap().slice(1, before..before + cols, 1).unwrap();
            tiles::<T>(device, src, dst, None, random);
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(35)));
}

fn long_and_narrow_matrices(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        let lanes = lanes::<T>();
        for short in [lanes.max(2), 2 * lanes, lanes + 1, 3 * lanes + 2] {
            // The short form has a quarter of the length.
            for long in short_or_long([1024, 1027], [4096, 4099]) {
                for shape in [[short, long], [long, short]] {
                    let (src, dst) = (Layout::row_major(&shape).unwrap(), Layout::column_major(&shape).unwrap());
                    let kernel = by_extents::<T>(&shape);
                    // One vector a row is worth a tile only if it is whole.
                    if short > lanes || kernel == Some("vector_tile") {
                        tiles::<T>(device, src, dst, kernel, random);
                        let [src, dst] = apart::<T>(shape);
                        tiles::<T>(device, src, dst, kernel, random);
                    }
                }
            }
        }
    }
    at_every_width!(run(&device(setup), &mut Random::new(36)));
}

/// If the result is larger than 16 MiB, two tiles' parts of one sector may not meet in the L2
/// cache.
fn large_matrices_whose_quads_are_off_sectors(setup: &Setup) {
    fn run<T: Sample>(device: &Device, [rows, cols]: [usize; 2], kernel: &str, launches: bool, random: &mut Random) {
        let (src, dst) = (Layout::row_major(&[rows, cols]).unwrap(), Layout::column_major(&[rows, cols]).unwrap());
        // The same rows with gaps between them.
        let wide = Layout::row_major(&[rows, cols + lanes::<T>()]).unwrap().slice(1, ..cols, 1).unwrap();
        for src in [src, wide] {
            if launches {
                tiles::<T>(device, src, dst, Some(kernel), random);
            } else {
                let align = Align::ALLOCATION;
                let plan = PermutePlan::new(&src, align, &dst, align, size_of::<T>(), Target::of(device)).unwrap();
                assert_eq!(family(plan.entry()), kernel, "{plan}");
            }
        }
    }
    let (device, mut random) = (device(setup), Random::new(38));
    run::<[f64; 2]>(&device, [1031, 1025], "ragged_tile", true, &mut random);
    run::<u32>(&device, [2056, 2052], "vector_tile", true, &mut random);
    // The short form plans the other kernel of each width, and does not launch it.
    run::<[f64; 2]>(&device, [1088, 1025], "vector_tile", is_long(), &mut random);
    run::<u32>(&device, [2060, 2052], "ragged_tile", is_long(), &mut random);
}

/// Two images, and two halves of one image's rows, more than 2^31 elements apart, as in
/// `permutes::offsets_beyond_31_bits`.
fn tiles_beyond_31_bits(setup: &Setup) {
    const SIDE: usize = 128;
    const IMAGE: usize = SIDE * SIDE;
    /// Memory for an image with another alignment.
    const ROOM: usize = IMAGE + 256;
    let device = device(setup);
    let lens = if setup.is_soft() { vec![ROOM; 2] } else { vec![(1 << 31) + (1 << 20) + ROOM] };
    let held: Vec<_> = lens.into_iter().map(|len| device.alloc::<u8>(len).unwrap()).collect();
    let (least, greatest) = held.iter().fold((u64::MAX, 0), |(least, greatest), buffer| {
        (least.min(buffer.address()), greatest.max(buffer.address() + (buffer.len() - ROOM) as u64))
    });
    let elements: Vec<u8> = Random::new(37).elements(2 * IMAGE);
    let (source, handle) = (device.upload(&elements).unwrap(), device.default_stream().handle());
    let images = Layout::row_major(&[2, SIDE, SIDE]).unwrap().permuted_axes(&[0, 2, 1]).unwrap();
    let halves = Layout::row_major(&[SIDE, SIDE]).unwrap().t().split_axis(0, &[2, SIDE / 2]).unwrap();
    for (near, shift, kernel) in [
        (images, 0, "stacked_tile"),
        (images, 1, "ragged_tile"),
        (halves, 0, "vector_tile"),
        // Ragged tiles of bytes join the halves, and these would fill half of one.
        (halves, 5, "packed"),
    ] {
        let apart = (greatest - least) as usize + shift;
        let far = Layout::new(near.shape(), &[apart as isize, SIDE as isize, 1], 0, apart + IMAGE).unwrap();
        for (src, dst) in [(&far, &near), (&near, &far)] {
            let plan = PermutePlan::new(src, Align::of(least), dst, Align::of(least), 1, Target::of(&device)).unwrap();
            assert_eq!(plan.entry(), Some(format!("{kernel}_b8_wide").as_str()), "{plan}, {apart} apart");
        }
        let result = device.zeros::<u8>(near.storage_len()).unwrap();
        // SAFETY: all of it is live until the download below.
        unsafe { ops::copy_into_raw(&device, source.address(), &near, least, &far, 1, handle) }.unwrap();
        // SAFETY: as above.
        unsafe { ops::copy_into_raw(&device, least, &far, result.address(), &near, 1, handle) }.unwrap();
        device.synchronize().unwrap();
        assert!(result.download().unwrap() == elements[..near.storage_len()], "{near:?}, {apart} apart");
    }
}

/// Rows and columns are runs of several axes, forwards, backwards and broadcast, whole and as parts
/// of larger arrays, whose other elements are not read, which the checkers would find.
fn narrow_rows_and_columns_join_any_axes(setup: &Setup) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        // The short form has a tenth.
        let (mut joined, times) = (0, short_or_long(40, 400));
        for _ in 0..times {
            let rank = 3 + random.below(3);
            let mut shape: Vec<usize> = (0..rank).map(|_| 2 + random.below(6)).collect();
            // Rows and columns of one long axis, and of several short ones.
            shape[rank - 1] += 30 + random.below(90);
            shape[random.below(rank - 1)] += 30 + random.below(90);
            let larger: Vec<usize> = shape.iter().map(|extent| extent + random.below(2)).collect();
            let larger = if random.below(3) == 0 { larger } else { shape.clone() };
            let mut src = Layout::row_major(&larger).unwrap();
            for (axis, &extent) in shape.iter().enumerate() {
                let from = larger[axis] - extent;
                src = src.slice(axis, from..larger[axis], 1).unwrap();
                src = if random.below(3) == 0 { src.reverse(axis).unwrap() } else { src };
            }
            let src = src.permuted_axes(&random.order(rank)).unwrap();
            let dst = Layout::row_major(src.shape()).unwrap();
            joined += usize::from(family(check::<T>(device, src, dst, random)) == "ragged_tile");
        }
        assert!(joined * 8 > times, "{}: {joined} of {times} arrays went by ragged tiles", T::DTYPE);
    }
    let (device, random) = (device(setup), &mut Random::new(91));
    run::<u8>(&device, random);
    run::<u16>(&device, random);
}
