//! Permutes under every checker, between bytes that belong to no array. On the source's side only
//! the elements are ever written, so initcheck reports each read beside them; on the destination's
//! side all bytes beside the elements are compared. Both storages end with the layouts, and start
//! anywhere that the elements allow. Boxes move sources without gaps alone here. The short form has
//! a third to a sixth of the random arrays of each sort.

use std::collections::BTreeMap;
use std::sync::Arc;

use warpstride::device::Device;
use warpstride::driver::soft::{Config, Soft};
use warpstride::driver::{Driver, Memory};
use warpstride::interp::{self, Checks};
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, InPlacePlan, PermutePlan, Plan, Target, TileShape};

use crate::backend::{SOFT_MEMORY_BYTES, Setup, cases, exact};
use crate::long::short_or_long;
use crate::matrices::{Random, Sample, at_every_width, c_order as c};
use crate::permutes::{by_boxes, family};
use crate::{in_place, movers, naive};

cases! {
    SoftwareGpu("it has initcheck and memcheck on every access") matrices_and_other_arrays_are_moved_without_their_neighbours,
    SoftwareGpu("it has initcheck and memcheck on every access") what_the_table_has_is_moved_without_its_neighbours,
    SoftwareGpu("it has initcheck and memcheck on every access") columns_of_tiles_beyond_the_cache_are_moved_without_their_neighbours,
    SoftwareGpu("it has initcheck and memcheck on every access") transposes_in_place_leave_their_neighbours,
    SoftwareGpu("it has racecheck on every access") a_destination_between_the_elements_of_the_source_is_not_read,
}

/// A software GPU with every checker, and the kernels that it has run.
struct Guarded {
    soft: Arc<Soft>,
    device: Device,
    random: Random,
    kernels: BTreeMap<&'static str, usize>,
}

impl Guarded {
    fn new(seed: u64) -> Self {
        let interp = interp::Config { checks: Checks::ALL, ..interp::Config::default() };
        let soft = Soft::with_config(Config { memory_bytes: SOFT_MEMORY_BYTES, interp, ..Config::default() });
        let soft = Arc::new(soft);
        let device = exact(&(Arc::clone(&soft) as Arc<dyn Driver>));
        Self { soft, device, random: Random::new(seed), kernels: BTreeMap::new() }
    }

    /// Returns the elements before a storage, which are 0 half of the time.
    fn lead(&mut self) -> usize {
        if self.random.coin() { 0 } else { self.random.below(40) }
    }

    /// Copies layouts of elements of `width` bytes, compares all of the destination's storage, and
    /// asserts that no checker finds anything.
    fn permute(&mut self, width: usize, src: &Layout, dst: &Layout) {
        let (src, dst) = (trimmed(src), trimmed(dst));
        let (src_lead, dst_lead) = (self.lead() * width, self.lead() * width);
        let elements = self.random.bytes(src.storage_len() * width);
        let before = self.random.bytes(dst_lead + dst.storage_len() * width);
        let mut expected = before.clone();
        naive::copy_bytes(&elements, &src, &mut expected[dst_lead..], &dst, width);
        let source = self.device.alloc::<u8>(src_lead + elements.len()).unwrap();
        let (from, stream) = (source.address() + src_lead as u64, self.device.default_stream());
        let written = runs(&src);
        for run in &written {
            let (at, part) = (from + (run.start * width) as u64, &elements[run.start * width..run.end * width]);
            // SAFETY: a part of the source's buffer, and the same number of bytes, both alive until
            // the stream is synchronised.
            unsafe { self.soft.copy_h2d(at, part.as_ptr(), part.len(), stream.handle()) }.unwrap();
        }
        let (src_align, dst_align) = (Align::of(from), Align::of((dst_lead + 256) as u64));
        let (target, is_large) = (Target::of(&self.device), self.random.coin());
        let plan = if is_large {
            PermutePlan::tuned(&src, src_align, &dst, dst_align, width, target, &TileShape::of(target))
        } else {
            PermutePlan::new(&src, src_align, &dst, dst_align, width, target)
        };
        let mut plans = vec![plan.unwrap()];
        if is_large {
            let large = plans[0].as_if_large().without_gaps();
            plans.extend((family(large.entry()) != family(plans[0].entry())).then_some(large));
        }
        // Boxes would read gaps.
        if is_large && written.len() == 1 {
            plans.extend(by_boxes(plans[0]).next());
        }
        for plan in plans {
            let result = self.device.upload(&before).unwrap();
            let to = result.address() + dst_lead as u64;
            let about = || format!("{plan}: {width} bytes of {src:?} from {src_lead} to {dst:?} at {dst_lead}");
            // SAFETY: both buffers hold the layouts after these elements, and live until the stream
            // is synchronised.
            unsafe { plan.launch_raw(&self.device, from, to, stream.handle()) }.unwrap();
            stream.synchronize().unwrap_or_else(|error| panic!("{}: {error}", about()));
            assert!(result.download().unwrap() == expected, "{}", about());
            self.check_findings(about);
            *self.kernels.entry(family(plan.entry())).or_default() += 1;
        }
    }

    /// Transposes a matrix or a batch in place, with written bytes between the elements.
    fn transpose<T: Sample>(&mut self, layout: &Layout) {
        let layout = trimmed(layout);
        let (lead, scratch_lead, width) = (self.lead(), self.lead(), size_of::<T>());
        let plan = InPlacePlan::new(&layout, width).unwrap();
        let before: Vec<T> = self.random.elements(lead + layout.storage_len());
        let square = layout.shape()[layout.rank() - 2] == layout.shape()[layout.rank() - 1];
        let mut turned = layout.shape().to_vec();
        turned.swap(layout.rank() - 2, layout.rank() - 1);
        let result = if square { layout } else { Layout::row_major(&turned).unwrap() };
        let expected = [&before[..lead], &in_place::expected(&before[lead..], &layout, &result)].concat();
        let buffer = self.device.upload(&before).unwrap();
        let scratch = self.device.alloc::<u8>(scratch_lead * width + plan.scratch_bytes()).unwrap();
        let (matrix, room) =
            (buffer.address() + (lead * width) as u64, scratch.address() + (scratch_lead * width) as u64);
        let about = || format!("{plan}: {} of {layout:?} from {lead}", T::DTYPE);
        let stream = self.device.default_stream();
        // SAFETY: both buffers have the length that the plan needs, and live until the stream is
        // synchronised.
        unsafe { ops::transpose_in_place_raw(&self.device, matrix, &layout, width, room, stream.handle()) }.unwrap();
        stream.synchronize().unwrap_or_else(|error| panic!("{}: {error}", about()));
        assert!(buffer.download().unwrap() == expected, "{}", about());
        self.check_findings(about);
        for entry in plan.entries() {
            *self.kernels.entry(family(Some(entry))).or_default() += 1;
        }
    }

    fn check_findings(&self, about: impl Fn() -> String) {
        if let Some(finding) = self.soft.findings().first() {
            panic!("{}: {finding}", about());
        }
    }

    fn assert_took(&self, kernels: &[&str]) {
        for kernel in kernels {
            assert!(self.kernels.contains_key(kernel), "{kernel} was never taken: {:?}", self.kernels);
        }
    }
}

/// Returns the layout in a storage that ends with its last element.
fn trimmed(layout: &Layout) -> Layout {
    let range = layout.storage_range();
    Layout::new(layout.shape(), layout.strides(), layout.offset() - range.start, range.len()).unwrap()
}

/// Returns the ranges of the storage that hold elements.
fn runs(layout: &Layout) -> Vec<std::ops::Range<usize>> {
    let mut is_reached = vec![false; layout.storage_len()];
    // Its elements are only marked, so it may overlap itself.
    naive::copy(&vec![true; layout.storage_len()], layout, &mut is_reached, layout);
    let mut start = 0;
    let parts = is_reached.chunk_by(|one, next| one == next).map(|part| {
        start += part.len();
        (part[0], start - part.len()..start)
    });
    parts.filter_map(|(reached, run)| reached.then_some(run)).collect()
}

/// Copies one part of an array to another that lies between its elements. The odd columns let the
/// last granules of the source's rows hold elements of the destination. Boxes would read these
/// while others write them, which racecheck finds.
fn a_destination_between_the_elements_of_the_source_is_not_read(_: &Setup) {
    let Guarded { soft, device, .. } = Guarded::new(72);
    let (align, target, width) = (Align::ALLOCATION, Target::of(&device), size_of::<u16>());
    // Every second column, and the first columns of the rows of several matrices.
    for (shape, mid, step) in [(&[97, 3 * 97][..], 2 * 97, 2), (&[63, 5, 126], 63, 1)] {
        let (whole, last) = (c(shape), shape.len() - 1);
        let axes: Vec<usize> = (0..=last).rev().collect();
        let (columns, dst) = whole.split_at(last, mid).unwrap();
        let src = columns.slice(last, .., step).unwrap().permuted_axes(&axes).unwrap();
        let numbers: Vec<u16> = (0..whole.len()).map(|number| number as u16).collect();
        let mut expected = numbers.clone();
        naive::copy(&numbers, &src, &mut expected, &dst);
        let boxes: Vec<_> = by_boxes(PermutePlan::new(&src, align, &dst, align, width, target).unwrap()).collect();
        assert!(!boxes.is_empty());
        for plan in boxes {
            let mut array = device.upload(&numbers).unwrap();
            let (from, to) = array.view_mut_with(whole).unwrap().split_at(last, mid).unwrap();
            let from = from.view().slice(last, .., step).unwrap().permuted_axes(&axes).unwrap();
            plan.launch(from, to, device.default_stream()).unwrap();
            assert!(array.download().unwrap() == expected, "{plan}");
            assert!(soft.findings().is_empty(), "{plan}: {:?}", soft.findings());
        }
    }
}

fn matrices_and_other_arrays_are_moved_without_their_neighbours(_: &Setup) {
    let mut guarded = Guarded::new(70);
    for width in [1, 2, 4, 8, 16].repeat(short_or_long(40, 120)) {
        let random = &mut guarded.random;
        let shape = if random.below(3) > 0 { random.matrices(1 << 13) } else { random.shape(1 << 11) };
        let (src, dst) = (random.readable_array(&shape), random.array(&shape));
        if !src.is_empty() {
            guarded.permute(width, &src, &dst);
        }
    }
    guarded.assert_took(&["copy", "elements", "vector_tile", "ragged_tile", "rows", "packed_quads", "patch"]);
}

/// Small pairs of every row: parts of larger arrays, matrices, structs and planes, and others.
fn what_the_table_has_is_moved_without_its_neighbours(_: &Setup) {
    let mut guarded = Guarded::new(73);
    for (width, src, dst) in movers::samples(short_or_long(3, 10), 1 << 17) {
        guarded.permute(width, &src, &dst);
    }
    // Structs, planes and matrices, of which some start on vectors on both sides.
    for width in [1, 2, 4, 8].repeat(16) {
        let matrices = c(&[9, 128 / width, 128 / width]).permuted_axes(&[0, 2, 1]).unwrap();
        for src in [c(&[3, 1008]).t(), c(&[1008, 3]).t(), matrices] {
            guarded.permute(width, &src, &c(src.shape()));
        }
    }
    let structs = ["deinterleave", "interleave", "deinterleave_quads", "interleave_quads"];
    guarded.assert_took(&structs);
    guarded.assert_took(&["packed_quads", "boxes", "elements", "ragged_tile", "vector_tile"]);
}

/// Columns of ragged tiles that are numbered along the rows.
fn columns_of_tiles_beyond_the_cache_are_moved_without_their_neighbours(_: &Setup) {
    let mut guarded = Guarded::new(74);
    // The short form has one matrix a type, and the types of fewest elements.
    let matrices = [(4, 16_601, 127), (8, 16_401, 95), (1, 33_001, 255)];
    for (width, rows, cols) in matrices.into_iter().take(short_or_long(2, 3)) {
        let src = Layout::row_major(&[short_or_long(1, 2), rows, cols]).unwrap().permuted_axes(&[0, 2, 1]).unwrap();
        let dst = Layout::row_major(src.shape()).unwrap();
        let align = Align::of(width as u64);
        let plan = PermutePlan::new(&src, align, &dst, align, width, Target::of(&guarded.device)).unwrap();
        assert!(plan.to_string().contains("along the rows"), "{plan}");
        guarded.permute(width, &src, &dst);
    }
    assert_eq!(guarded.kernels["ragged_tile"], short_or_long(2, 3));
}

fn transposes_in_place_leave_their_neighbours(_: &Setup) {
    fn run<T: Sample>(guarded: &mut Guarded, backwards: bool) {
        let random = &mut guarded.random;
        let [batch, n, rows, cols] = [4, 130, 100, 100].map(|end| 1 + random.below(end));
        let square = Layout::row_major(&[batch, n, n + 3]).unwrap().slice(2, ..n, 1).unwrap();
        guarded.transpose::<T>(&if backwards { square.reverse(1).unwrap() } else { square });
        guarded.transpose::<T>(&Layout::row_major(&[batch, rows, cols]).unwrap());
    }
    let mut guarded = Guarded::new(72);
    for backwards in [false, true].repeat(short_or_long(2, 6)) {
        at_every_width!(run(&mut guarded, backwards));
    }
    guarded.transpose::<[f64; 2]>(&Layout::row_major(&[4, 3074]).unwrap());
    guarded.transpose::<[f64; 2]>(&Layout::row_major(&[3, 3074, 2]).unwrap());
    guarded.transpose::<u64>(&Layout::row_major(&[2, 7000, 3]).unwrap());
    guarded.assert_took(&["swap_tiles", "permute_lines", "spill_lines"]);
}
