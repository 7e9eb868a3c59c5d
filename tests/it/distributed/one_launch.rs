//! Small exchanges launch once a rank for all copies to peers that are alike.

use std::sync::Arc;

use warpstride::Device;
use warpstride::distributed::{Distributed, Exchange, Gpus, Redistribution, Split};
use warpstride::driver::trace::{Call, Trace};
use warpstride::element::Element;
use warpstride::interp::Checks;
use warpstride::random::SplitMix64;

use super::{gpus, host, permuted, split};

/// GPUs, each with a trace of its calls.
fn traced(count: usize, seed: u64) -> (Arc<Gpus>, Vec<Arc<Trace>>) {
    let traces: Vec<_> = host(count, seed, Checks::ALL).into_iter().map(|soft| Arc::new(Trace::new(soft))).collect();
    let devices = traces.iter().map(|trace| Device::with_driver(Arc::clone(trace) as _).unwrap()).collect();
    (Arc::new(Gpus::over(devices).unwrap()), traces)
}

/// Exchanges drawn elements, compares all of them, and returns the text of the exchange.
fn exchange<T: Element + PartialEq>(
    gpus: &Arc<Gpus>,
    [from, to]: [&Split; 2],
    axes: &[usize],
    of: impl Fn(u64) -> T,
) -> String {
    let count: usize = from.shape().iter().product();
    let elements: Vec<T> = (0..count as u64).map(|place| of(SplitMix64::at(7, place))).collect();
    let plan = Redistribution::new(from, axes.to_vec(), to, size_of::<T>()).unwrap();
    let exchange = Exchange::new(gpus, &plan).unwrap();
    let source = Distributed::scatter(gpus, from, &elements).unwrap();
    let mut result = Distributed::alloc(gpus, to).unwrap();
    exchange.launch(&source, &mut result).unwrap();
    let text = exchange.to_string();
    assert!(result.gather().unwrap() == permuted(&elements, from.shape(), axes), "{} bytes: {text}", size_of::<T>());
    text
}

/// Exchanges elements of a width in bytes.
fn exchange_bytes(gpus: &Arc<Gpus>, splits: [&Split; 2], axes: &[usize], width: usize) -> String {
    match width {
        1 => exchange(gpus, splits, axes, |bits| bits as u8),
        2 => exchange(gpus, splits, axes, |bits| bits as u16),
        4 => exchange(gpus, splits, axes, |bits| bits as u32),
        8 => exchange(gpus, splits, axes, |bits| bits),
        _ => exchange(gpus, splits, axes, |bits| [bits as u32 as f64, (bits >> 32) as f64]),
    }
}

/// The lines of an exchange that say what rank 0 launches.
fn of_rank_0(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("rank 0 to ")).collect()
}

#[test]
fn an_even_exchange_launches_once_for_all_peers() {
    for count in 2..=8 {
        let (gpus, traces) = traced(count, count as u64);
        let rows = split(&[3 * count, 5 * count], &format!("0:{count}"));
        let columns = split(&[5 * count, 3 * count], &format!("0:{count}"));
        let text = exchange_bytes(&gpus, [&rows, &columns], &[1, 0], 4);
        for (rank, trace) in traces.iter().enumerate() {
            let launches = trace.calls().iter().filter(|call| matches!(call, Call::Launch { .. })).count();
            // The other one is the copy of the rank to itself.
            assert_eq!(launches, 2, "rank {rank} of {count}: {text}");
        }
    }
}

#[test]
fn an_exchange_says_what_it_launches_and_which_peer_is_first() {
    let gpus = gpus(4, 0, false);
    let (rows, columns) = (split(&[8, 8], "0:4"), split(&[8, 8], "0:4"));
    let text = exchange_bytes(&gpus, [&rows, &columns], &[1, 0], 4);
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("rank ")).collect();
    assert_eq!(lines.len(), 8, "{text}");
    for (rank, to) in ["1, 2 and 3", "2, 3 and 0", "3, 0 and 1", "0, 1 and 2"].into_iter().enumerate() {
        let [peers, own] = lines[2 * rank..2 * rank + 2] else { panic!("{text}") };
        assert!(peers.starts_with(&format!("rank {rank} to {to}: patch_pairs_b32: 3 pairs, ")), "{peers}");
        assert!(own.starts_with(&format!("rank {rank} to {rank}: patch_b32")), "{own}");
    }
}

/// A launch has room for 8 copies.
#[test]
fn more_copies_than_a_launch_has_room_for_are_several_launches() {
    let gpus = gpus(10, 0, false);
    let (rows, columns) = (split(&[20, 30], "0:10"), split(&[30, 20], "0:10"));
    let text = exchange_bytes(&gpus, [&rows, &columns], &[1, 0], 2);
    let [five, four, _] = of_rank_0(&text)[..] else { panic!("{text}") };
    assert!(five.starts_with("rank 0 to 1, 2, 3, 4 and 5: patch_pairs_b16: 5 pairs, "), "{five}");
    assert!(four.starts_with("rank 0 to 6, 7, 8 and 9: patch_pairs_b16: 4 pairs, "), "{four}");
}

#[test]
fn copies_of_different_shapes_are_launched_apart() {
    let gpus = gpus(4, 0, false);
    let (rows, columns) = (split(&[8, 10], "0:4"), split(&[10, 8], "0:3+3+2+2"));
    let text = exchange_bytes(&gpus, [&rows, &columns], &[1, 0], 8);
    let lines = of_rank_0(&text);
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("rank 0 to 1: patch_b64"), "{text}");
    assert!(lines[1].starts_with("rank 0 to 2 and 3: patch_pairs_b64: 2 pairs, "), "{text}");
}

#[test]
fn exchanges_with_few_multiprocessors_have_a_launch_for_each_copy() {
    let gpus = gpus(4, 0, true);
    let (rows, columns) = (split(&[8, 8], "0:4"), split(&[8, 8], "0:4"));
    let text = exchange_bytes(&gpus, [&rows, &columns], &[1, 0], 4);
    assert!(!text.contains("pairs") && of_rank_0(&text).len() == 4, "{text}");
}

/// Splits of odd extents, whose parts begin between vectors, with and without room behind the rows.
#[test]
fn small_exchanges_are_right_at_every_width_for_1_to_9_gpus() {
    let mut in_pairs = 0;
    for count in 1..=9 {
        let gpus = gpus(count, count as u64, false);
        let shapes: [(Vec<usize>, &[usize]); 5] = [
            (vec![3 * count, 5 * count], &[1, 0]),
            (vec![16 * count, 16 * count], &[1, 0]),
            (vec![2 * count + 1, 3 * count - 1], &[1, 0]),
            (vec![count, 3, 2 * count + 1], &[2, 0, 1]),
            (vec![5, 3 * count, 2, count], &[3, 2, 1, 0]),
        ];
        for (shape, axes) in &shapes {
            let permuted: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
            let cut = |shape: &[usize], axis: usize| split(shape, &format!("{axis}:{count}"));
            let padded = |split: Split| {
                let largest: Vec<usize> = split.shape().iter().map(|&extent| extent + 1).collect();
                split.padded(&largest).unwrap()
            };
            for width in [1, 2, 4, 8, 16] {
                let last = shape.len() - 1;
                for [from, to] in [
                    [cut(shape, 0), cut(&permuted, 0)],
                    [padded(cut(shape, last)), cut(&permuted, 0)],
                    [Split::whole(shape).unwrap(), padded(cut(&permuted, last))],
                ] {
                    in_pairs += usize::from(exchange_bytes(&gpus, [&from, &to], axes, width).contains("_pairs"));
                }
                let same: Vec<usize> = (0..shape.len()).collect();
                let text = exchange_bytes(&gpus, [&cut(shape, 0), &cut(shape, last)], &same, width);
                in_pairs += usize::from(text.contains("_pairs"));
            }
        }
    }
    assert!(in_pairs > 500, "only {in_pairs} exchanges have several copies a launch");
}

/// Every kernel for several pairs, at every width, with vectors and between them.
#[test]
fn every_kernel_of_pairs_is_right_at_every_width() {
    let gpus = gpus(3, 0, false);
    let whole = |shape: &[usize]| Split::whole(shape).unwrap();
    for (width, bits) in [(1_usize, 8), (2, 16), (4, 32), (8, 64), (16, 128)] {
        // More than `patch` takes of one pair: 65,536 elements and 256 KiB.
        let side = if width <= 4 { 257 } else { 183 };
        let found = |kernel: String, shape: &[usize], to: &Split, axes: &[usize]| {
            let text = exchange_bytes(&gpus, [&whole(shape), to], axes, width);
            assert!(text.contains(&format!("rank 0 to 1 and 2: {kernel}: 2 pairs, ")), "{kernel}: {text}");
        };
        // All rows of elements of 16 bytes are whole vectors.
        if width < 16 {
            found(format!("staggered_pairs_b{bits}"), &[side, 3 * side], &split(&[3 * side, side], "0:3"), &[1, 0]);
        }
        // From 1 MiB on at every width.
        let lanes = 16 / width;
        let columns = (1 << 20) / width / (32 * lanes);
        let turned = split(&[3 * columns, 32 * lanes], "0:3");
        found(format!("small_tile_pairs_b{bits}"), &[32 * lanes, 3 * columns], &turned, &[1, 0]);
        found(format!("elements_pairs_b{bits}"), &[side, 3 * side], &split(&[side, 3 * side], "1:3"), &[0, 1]);
        found("copy_pairs".to_owned(), &[3 * 16, 5 * 16], &split(&[3 * 16, 5 * 16], "0:3"), &[0, 1]);
        found(format!("patch_pairs_b{bits}"), &[31, 3 * 33], &split(&[3 * 33, 31], "0:3"), &[1, 0]);
    }
}
