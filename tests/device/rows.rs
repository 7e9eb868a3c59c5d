//! Copies of runs of bytes that are contiguous on both sides, whatever their starts.

use warpstride::device::Device;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target};

use crate::backend::{Setup, cases, exact};
use crate::matrices::Random;
use crate::naive;

cases! {
    Any runs_of_every_length_from_and_to_every_misalignment,
    Any runs_along_axes_of_any_stride,
    Any one_long_run_from_and_to_every_misalignment,
    Any shorter_runs_go_element_by_element,
    Any aligned_runs_need_no_shift,
    Any runs_beyond_31_bits,
}

/// Bytes of the shortest run that `rows` moves, of elements of 1, 2, 4 and 8 bytes.
const SHORTEST: [usize; 4] = [64, 528, 4096, 4096];

/// A copy on the device between buffers that end where the layouts do: on the software GPU, an
/// access outside them is a fault.
struct Case<'a> {
    device: &'a Device,
    random: Random,
}

impl Case<'_> {
    /// Copies elements of `width` bytes between storages this number of bytes after an allocation's
    /// start. Asserts the entry, and that all bytes outside of the destination's elements stay.
    fn check(&mut self, from: (usize, &Layout), to: (usize, &Layout), width: usize, entry: &str) {
        let ((src_lead, src_layout), (dst_lead, dst_layout)) = (from, to);
        let src: Vec<u8> = self.random.elements(src_lead + src_layout.storage_len() * width);
        let mut expected: Vec<u8> = self.random.elements(dst_lead + dst_layout.storage_len() * width);
        let (source, result) = (self.device.upload(&src).unwrap(), self.device.upload(&expected).unwrap());
        let (src_bytes, dst_bytes) = (naive::bytes(src_layout, width), naive::bytes(dst_layout, width));
        naive::copy(&src[src_lead..], &src_bytes, &mut expected[dst_lead..], &dst_bytes);
        let (src, dst) = (source.address() + src_lead as u64, result.address() + dst_lead as u64);
        let (src_align, dst_align, target) = (Align::of(src), Align::of(dst), Target::of(self.device));
        let plan = PermutePlan::new(src_layout, src_align, dst_layout, dst_align, width, target).unwrap();
        assert_eq!(plan.entry(), Some(entry), "{plan}: {src_layout:?} from {src_lead} to {dst_layout:?} at {dst_lead}");
        let stream = self.device.default_stream();
        // SAFETY: both buffers hold the layouts after these offsets, and live until the stream is
        // synchronised.
        unsafe { ops::copy_into_raw(self.device, src, src_layout, dst, dst_layout, width, stream.handle()) }.unwrap();
        stream.synchronize().unwrap();
        let agrees = result.download().unwrap() == expected;
        assert!(agrees, "{plan}: {src_layout:?} from {src_lead} to {dst_layout:?} at {dst_lead}, {width} bytes");
    }
}

fn with_device(setup: &Setup, seed: u64, run: impl FnOnce(&mut Case<'_>)) {
    let device = exact(&setup.driver);
    run(&mut Case { device: &device, random: Random::new(seed) });
}

/// Returns rows of `run` elements, `pitch` elements apart; the storage ends with the last row.
fn pitched(rows: usize, run: usize, pitch: usize) -> Layout {
    Layout::new(&[rows, run], &[pitch as isize, 1], 0, (rows - 1) * pitch + run).unwrap()
}

/// Pitches are odd, so that the rows of one copy start at several offsets in a vector.
fn runs_of_every_length_from_and_to_every_misalignment(setup: &Setup) {
    with_device(setup, 30, |case| {
        for run in (64..=600).filter(|run| [0, 1, 2, 8, 14, 15].contains(&(run % 16)) || *run < 100) {
            let (from, to) = (case.random.below(16), case.random.below(16));
            case.check((from, &pitched(5, run, run + 3)), (to, &pitched(5, run, run + 1)), 1, "rows");
        }
        for from in 0..16 {
            for to in 0..16 {
                let run = 64 + case.random.below(80);
                case.check((from, &pitched(3, run, 177)), (to, &pitched(3, run, 177)), 1, "rows");
            }
        }
    });
}

fn runs_along_axes_of_any_stride(setup: &Setup) {
    with_device(setup, 31, |case| {
        for width in [1usize, 2, 4, 8] {
            // Odd, so that no two elements are one wider one.
            let (run, pad) = (SHORTEST[width.ilog2() as usize] / width + 3, 1);
            for lead in [0, width, 16 + 3 * width] {
                let whole = Layout::row_major(&[4, 3, 5, run + pad]).unwrap();
                let padded = whole.slice(3, ..run, 1).unwrap();
                let dense = Layout::row_major(&[4, 3, 5, run]).unwrap();
                let turned = Layout::row_major(&[5, 4, 3, run]).unwrap().permuted_axes(&[1, 2, 0, 3]).unwrap();
                let backwards = padded.reverse(0).unwrap().reverse(2).unwrap();
                let narrow = Layout::row_major(&[4, 1, 5, run + pad]).unwrap().slice(3, pad.., 1).unwrap();
                let repeated = narrow.broadcast(&[4, 3, 5, run]).unwrap();
                for src in [padded, turned, backwards, repeated] {
                    for dst in [dense, padded, padded.reverse(1).unwrap()] {
                        case.check((lead, &src), (3 * width, &dst), width, "rows");
                    }
                }
            }
        }
    });
}

/// The run is so long that its vectors are numbered from a line of the cache, and that it takes
/// several blocks.
fn one_long_run_from_and_to_every_misalignment(setup: &Setup) {
    with_device(setup, 32, |case| {
        for run in [64, 65, 4095, 4096, 4097, 50_001] {
            let layout = Layout::row_major(&[run]).unwrap();
            for to in [0, 1, 5, 15, 16, 17, 64, 100, 127] {
                for from in [0, 1, 4, 15, 24] {
                    let aligned = from % 16 == 0 && to % 16 == 0;
                    // The widest elements that both sides and the run consist of.
                    let width_log2 = (from | to | run).trailing_zeros().min(3);
                    if aligned || run >= SHORTEST[width_log2 as usize] {
                        case.check((from, &layout), (to, &layout), 1, if aligned { "copy_b128" } else { "rows" });
                    }
                }
            }
        }
        for width in [2, 4, 8] {
            let layout = Layout::row_major(&[5001]).unwrap();
            case.check((width, &layout), (0, &layout), width, "rows");
            case.check((width, &layout), (width, &layout), width, "rows");
        }
    });
}

fn shorter_runs_go_element_by_element(setup: &Setup) {
    with_device(setup, 33, |case| {
        for run in 1..SHORTEST[0] {
            case.check((1, &pitched(3, run, run + 2)), (2, &pitched(3, run, run + 4)), 1, "patch_b8");
            case.check((3, &pitched(1, run, run)), (1, &pitched(1, run, run)), 1, "patch_b8");
        }
    });
}

fn aligned_runs_need_no_shift(setup: &Setup) {
    with_device(setup, 34, |case| {
        case.check((16, &pitched(3, 256, 272)), (32, &pitched(3, 256, 288)), 1, "patch_b128");
        case.check((0, &pitched(3, 16, 17)), (16, &pitched(3, 16, 16)), 16, "patch_b128");
    });
}

/// Rows that lie more than 2^31 bytes apart: the ends of one buffer or, on the software GPU, whose
/// memory is small but whose allocations lie far apart, two buffers.
fn runs_beyond_31_bits(setup: &Setup) {
    const RUN: usize = 99;
    let device = exact(&setup.driver);
    let elements: Vec<u8> = Random::new(35).elements(2 * RUN);
    let lens = if setup.is_soft() { vec![RUN, RUN] } else { vec![(1 << 31) + 5 + RUN] };
    let held: Vec<_> = lens.into_iter().map(|len| device.alloc::<u8>(len).unwrap()).collect();
    let (least, greatest) = held.iter().fold((u64::MAX, 0), |(least, greatest), buffer| {
        (least.min(buffer.address()), greatest.max(buffer.address() + (buffer.len() - RUN) as u64))
    });
    let distance = (greatest - least) as usize;
    let far = Layout::new(&[2, RUN], &[distance as isize, 1], 0, distance + RUN).unwrap();
    let near = Layout::row_major(&[2, RUN]).unwrap();
    let (source, result) = (device.upload(&elements).unwrap(), device.alloc::<u8>(2 * RUN).unwrap());
    let handle = device.default_stream().handle();
    let plan = PermutePlan::new(&far, Align::of(least), &near, Align::ALLOCATION, 1, Target::of(&device)).unwrap();
    assert_eq!(plan.entry(), Some("rows_wide"), "{plan}: the rows lie only {distance} bytes apart");
    // SAFETY: both rows and the source are live until the download below.
    unsafe { ops::copy_into_raw(&device, source.address(), &near, least, &far, 1, handle) }.unwrap();
    // SAFETY: as above.
    unsafe { ops::copy_into_raw(&device, least, &far, result.address(), &near, 1, handle) }.unwrap();
    device.synchronize().unwrap();
    assert_eq!(result.download().unwrap(), elements, "{plan}");
}
