//! The kernels with 64-bit arithmetic, for every width. The software GPU's allocations lie 2^40
//! bytes apart, so that two small ones are the ends of an array that is larger than any memory.

use std::collections::BTreeSet;

use warpstride::abi::ENTRIES;
use warpstride::device::Device;
use warpstride::layout::Layout;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target};

use crate::backend::{Setup, cases};
use crate::long::short_or_long;
use crate::matrices::{Random, Sample, at_every_width};
use crate::permutes::{device, family};

cases! {
    SoftwareGpu("its allocations are the ends of an array that is larger than any memory") every_wide_kernel_of_permutes_is_right,
}

/// The kernels that such matrices may take, except for the copy, which is always wide.
const FAMILIES: [&str; 9] = [
    "elements",
    "rows",
    "vector_tile",
    "ragged_tile",
    "stacked_tile",
    "deinterleave",
    "deinterleave_quads",
    "interleave",
    "interleave_quads",
];
/// It takes more than 16 MiB; `every_entry` launches it.
const LARGE: &str = "ragged_tile_b128_wide";

fn every_wide_kernel_of_permutes_is_right(setup: &Setup) {
    let (mut random, mut seen) = (Random::new(40), BTreeSet::new());
    at_every_width!(run(&device(setup), &mut random, &mut seen));
    // Kernels that move vectors always are wide.
    let wide = |name: &&str| name.ends_with("_wide") || (name.contains("_quads_") && !name.ends_with("_hinted"));
    let known = ENTRIES.iter().map(|entry| entry.name).filter(wide);
    let mut all =
        known.filter(|name| *name != LARGE && FAMILIES.contains(&family(Some(*name)).trim_end_matches("_wide")));
    assert!(all.all(|name| seen.contains(name)), "not all of the wide entries were run: {seen:?}");
}

/// Copies matrices at the ends of the array, aligned and not, forwards and backwards, to matrices
/// and their transposes and back.
fn run<T: Sample>(device: &Device, random: &mut Random, seen: &mut BTreeSet<&'static str>) {
    // Two of these fill a quarter of a tile.
    let few_squares = 128 / size_of::<T>();
    let shapes = [
        [few_squares, few_squares],
        [128, 128],
        [130, 96],
        [131, 77],
        [3, 1000],
        [1000, 3],
        [1001, 3],
        [3, 1002],
        [1008, 3],
        [3, 1008],
        [40, 40],
        [4, 4],
        [1, 500],
        [17, 300],
        [300, 33],
    ];
    let starts = [(0, false), (1, false), (16 / size_of::<T>(), true), (0, true)];
    for (at, [rows, cols]) in shapes.into_iter().enumerate() {
        // The short form has every second start for each shape, and all for two shapes.
        for (lead, backwards) in starts.into_iter().skip(short_or_long(at % 2, 0)).step_by(short_or_long(2, 1)) {
            let reverse = |layout: Layout, axis| if backwards { layout.reverse(axis).unwrap() } else { layout };
            let straight = Layout::row_major(&[2, rows, cols]).unwrap();
            let turned = Layout::row_major(&[2, cols, rows]).unwrap().permuted_axes(&[0, 2, 1]).unwrap();
            for near in [straight, turned] {
                let images = [(); 2].map(|()| random.elements::<T>(lead + rows * cols + 5));
                let ends = images.each_ref().map(|image| device.upload(image).unwrap());
                let apart = (ends[1].address() - ends[0].address()) as usize / size_of::<T>();
                let strides = [apart as isize, cols as isize, 1];
                let far = Layout::new(&[2, rows, cols], &strides, lead, apart + images[1].len()).unwrap();
                let work = Work { device, ends, far: reverse(far, 2), near: reverse(near, 1), apart };
                seen.insert(work.gather(images.clone(), random));
                seen.insert(work.scatter(images, random));
            }
        }
    }
}

/// Two images: at the two ends of an array, and side by side.
struct Work<'a, T: Sample> {
    device: &'a Device,
    ends: [DeviceBuffer<T>; 2],
    far: Layout,
    near: Layout,
    /// Elements from one end to the other.
    apart: usize,
}

impl<T: Sample> Work<'_, T> {
    /// Copies from the ends and returns the kernel.
    fn gather(&self, images: [Vec<T>; 2], random: &mut Random) -> &'static str {
        let mut expected = random.elements::<T>(self.near.storage_len());
        let result = self.device.upload(&expected).unwrap();
        let entry = self.copy(self.ends[0].address(), &self.far, result.address(), &self.near);
        self.each(|(end, from), to| expected[to] = images[end][from]);
        assert!(result.download().unwrap() == expected, "{entry}: {:?} to {:?}", self.far, self.near);
        entry
    }

    /// Copies to the ends and checks that the bytes around the images stay.
    fn scatter(&self, mut images: [Vec<T>; 2], random: &mut Random) -> &'static str {
        let elements = random.elements::<T>(self.near.storage_len());
        let source = self.device.upload(&elements).unwrap();
        let entry = self.copy(source.address(), &self.near, self.ends[0].address(), &self.far);
        self.each(|(end, to), from| images[end][to] = elements[from]);
        let results = self.ends.each_ref().map(|end| end.download().unwrap());
        assert!(results == images, "{entry}: {:?} to {:?}", self.near, self.far);
        entry
    }

    fn copy(&self, src: u64, src_layout: &Layout, dst: u64, dst_layout: &Layout) -> &'static str {
        let (width, stream) = (size_of::<T>(), self.device.default_stream());
        // SAFETY: the images live until the stream is synchronised, and the layouts reach only
        // them.
        unsafe { ops::copy_into_raw(self.device, src, src_layout, dst, dst_layout, width, stream.handle()) }.unwrap();
        stream.synchronize().unwrap();
        let (src_align, dst_align) = (Align::of(src), Align::of(dst));
        let target = Target::of(self.device);
        PermutePlan::new(src_layout, src_align, dst_layout, dst_align, width, target).unwrap().entry().unwrap()
    }

    /// Visits every element: its end and its index there, and its index side by side.
    fn each(&self, mut element: impl FnMut((usize, usize), usize)) {
        let &[_, rows, cols] = self.far.shape() else { unreachable!("three axes") };
        for index in 0..2 * rows * cols {
            let index = [index / cols / rows, index / cols % rows, index % cols];
            let far = self.far.offset_of(&index).unwrap();
            let end = if far < self.apart { (0, far) } else { (1, far - self.apart) };
            element(end, self.near.offset_of(&index).unwrap());
        }
    }
}
