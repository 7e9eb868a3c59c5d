//! Arrays whose parts lie more than 2^31 elements apart: the ends of one buffer or, on the software
//! GPU, whose memory is small but whose allocations lie 2^40 bytes apart, two buffers.

use std::collections::BTreeSet;

use warpstride::abi::ENTRIES;
use warpstride::device::Device;
use warpstride::driver::DriverKind;
use warpstride::layout::Layout;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{Align, PermutePlan, Plan, Target, TileShape};

use crate::backend::{Setup, cases};
use crate::long::{is_long, short_or_long};
use crate::matrices::{Random, c_order as c};
use crate::naive;
use crate::permutes::{OLDEST, device, family};

cases! {
    Any kernels_of_bytes_move_them_far_apart,
    SoftwareGpu("its allocations are the ends of an array that is larger than any memory") every_wide_kernel_of_permutes_is_right,
}

/// Two parts of memory.
pub(crate) struct Far<'d> {
    device: &'d Device,
    /// They start here, the lower one first.
    parts: [u64; 2],
    /// Bytes of each.
    len: usize,
    random: Random,
    _held: Vec<DeviceBuffer<u8>>,
}

impl<'d> Far<'d> {
    pub(crate) fn new(device: &'d Device, len: usize) -> Self {
        // Boxes read the granules at the ends of a part whole, of 8 or 16 bytes, and no more.
        let room = len.next_multiple_of(16);
        let far = (1 << 31) + (1 << 20);
        let (lens, apart) =
            if device.info().kind == DriverKind::Soft { (vec![room; 2], 0) } else { (vec![far + room], far) };
        let held: Vec<_> = lens.into_iter().map(|len| device.zeros::<u8>(len).unwrap()).collect();
        device.synchronize().unwrap();
        let mut parts = [held[0].address(), held[held.len() - 1].address() + apart as u64];
        parts.sort_unstable();
        Self { device, parts, len, random: Random::new(40), _held: held }
    }

    pub(crate) fn start(&self) -> u64 {
        self.parts[0]
    }

    /// Returns a C-order array of which every half lies in a part, `leads` elements from its start.
    pub(crate) fn layout(&self, shape: &[usize], leads: [usize; 2], width: usize) -> Layout {
        let apart = (self.parts[1] - self.parts[0]) as usize / width + leads[1] - leads[0];
        let mut strides = Layout::row_major(shape).unwrap().strides().to_vec();
        strides[0] = apart as isize;
        let half: usize = shape[1..].iter().product();
        assert!(shape[0] == 2 && (leads[0].max(leads[1]) + half) * width <= self.len);
        Layout::new(shape, &strides, leads[0], leads[0] + apart + half).unwrap()
    }

    /// Writes other bytes to both parts, and returns them.
    pub(crate) fn renew(&mut self) -> [Vec<u8>; 2] {
        self.parts.map(|part| {
            let bytes = self.random.bytes(self.len);
            let stream = self.device.default_stream().handle();
            // SAFETY: a part has these bytes, and the vector is used after the wait.
            unsafe { self.device.driver().copy_h2d(part, bytes.as_ptr(), self.len, stream) }.unwrap();
            self.device.synchronize().unwrap();
            bytes
        })
    }

    pub(crate) fn read(&self) -> [Vec<u8>; 2] {
        self.parts.map(|part| {
            let mut bytes = vec![0; self.len];
            let stream = self.device.default_stream().handle();
            // SAFETY: a part has these bytes, and the vector is used after the wait.
            unsafe { self.device.driver().copy_d2h(bytes.as_mut_ptr(), part, self.len, stream) }.unwrap();
            self.device.synchronize().unwrap();
            bytes
        })
    }

    /// Copies elements that lie near each other to the parts, and others back, by every plan, and
    /// compares all bytes with the oracle each time. Returns the entries of the plans, those for
    /// the number of elements first.
    pub(crate) fn check(&mut self, near: &Layout, far: &Layout, width: usize) -> [Vec<&'static str>; 2] {
        let len = near.storage_len() * width;
        let distance = (self.parts[1] - self.parts[0]) as usize;
        let place = |offset: usize| match offset * width {
            at if at < distance => (0, at),
            at => (1, at - distance),
        };
        let (mut buffer, stream) = (self.device.zeros::<u8>(len).unwrap(), self.device.default_stream());
        let sides = [(buffer.address(), near), (self.parts[0], far)];
        [[0, 1], [1, 0]].map(|ends| {
            let [src, dst] = ends.map(|end| sides[end]);
            let plans = self.plans(src, dst, width);
            for plan in &plans {
                let (mut parts, mut bytes) = (self.renew(), self.random.bytes(len));
                buffer.upload_from(&bytes).unwrap();
                // SAFETY: the layouts reach the parts and the buffer alone, which live until the
                // stream is synchronised. Kernels read the bytes between the parts up to the end of
                // a part's last granule, which is allocated.
                unsafe { plan.launch_raw(self.device, src.0, dst.0, stream.handle()) }.unwrap();
                stream.synchronize().unwrap_or_else(|error| panic!("{plan}: {error}"));
                naive::each(near, far, |_, near, far| {
                    let (part, at) = place(far);
                    let (near, far) = (&mut bytes[near * width..][..width], &mut parts[part][at..][..width]);
                    if ends[0] == 0 { far.copy_from_slice(near) } else { near.copy_from_slice(far) }
                });
                assert!(self.read() == parts && buffer.download().unwrap() == bytes, "{plan}: {src:?} to {dst:?}");
            }
            plans.iter().map(|plan| plan.entry().unwrap()).collect()
        })
    }

    /// Returns the plans from one side to the other; the first is for the number of elements.
    fn plans(
        &self,
        (src, src_layout): (u64, &Layout),
        (dst, dst_layout): (u64, &Layout),
        width: usize,
    ) -> Vec<PermutePlan> {
        let target = Target::of(self.device);
        let [src_align, dst_align] = [src, dst].map(Align::of);
        let mut plans = vec![PermutePlan::new(src_layout, src_align, dst_layout, dst_align, width, target).unwrap()];
        let tuned = [target, OLDEST].map(|target| {
            let tiles = &TileShape::of(target);
            PermutePlan::tuned(src_layout, src_align, dst_layout, dst_align, width, target, tiles).unwrap()
        });
        let large = (!is_long()).then(|| plans[0].as_if_large());
        for plan in tuned.into_iter().chain(large).chain(plans[0].ways()) {
            if !plans.contains(&plan) {
                plans.push(plan);
            }
        }
        plans
    }
}

/// Images of bytes, which most GPUs have the memory for.
fn kernels_of_bytes_move_them_far_apart(setup: &Setup) {
    let device = device(setup);
    let mut far = Far::new(&device, 128 * 128 + 256);
    let rows = c(&[2, 33]);
    let images = c(&[2, 128, 128]).permuted_axes(&[0, 2, 1]).unwrap();
    let halves = c(&[128, 128]).t().split_axis(0, &[2, 64]).unwrap();
    let volumes = c(&[2, 31, 5, 33]).permuted_axes(&[0, 3, 2, 1]).unwrap();
    for (near, shift, entry) in [
        (c(&[2, 99]), 0, "rows_wide"),
        (images, 0, "vector_tile_b8_wide"),
        (images, 1, "ragged_tile_b8_wide"),
        (halves, 0, "vector_tile_b8_wide"),
        // Ragged tiles of bytes join the halves, and these would fill half of one.
        (halves, 5, "boxes_b8"),
        (volumes, 0, "boxes_b8"),
    ] {
        let apart = far.layout(near.shape(), [0, shift], 1);
        let entries = far.check(&near, &apart, 1);
        let are_right = entries.iter().all(|entries| entries.contains(&entry));
        assert!(are_right, "{near:?} and {apart:?} by {entries:?}, not {entry}");
    }
    let apart = far.layout(&[2, 33], [0, 0], 1);
    for (near, apart) in [(rows.reverse(0).unwrap(), apart), (rows.t(), apart.t().reverse(1).unwrap())] {
        let entries = far.check(&near, &apart, 1);
        assert!(entries.iter().all(|entries| entries[0].ends_with("_wide")), "{near:?} and {apart:?} by {entries:?}");
    }
}

/// The kernels that such matrices may take, except for the copy, which is always wide.
const FAMILIES: [&str; 8] = [
    "elements",
    "rows",
    "vector_tile",
    "ragged_tile",
    "deinterleave",
    "deinterleave_quads",
    "interleave",
    "interleave_quads",
];
/// It takes more than 16 MiB; `every_entry` launches it.
const LARGE: &str = "ragged_tile_b128_wide";

/// Copies matrices, aligned and not, forwards and backwards, to matrices and their transposes and
/// back.
fn every_wide_kernel_of_permutes_is_right(setup: &Setup) {
    let (device, mut seen) = (device(setup), BTreeSet::new());
    for width in [1, 2, 4, 8, 16] {
        // Two of these fill a quarter of a tile.
        let few_squares = 128 / width;
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
        let starts = [(0, false), (1, false), (16 / width, true), (0, true)];
        for (at, [rows, cols]) in shapes.into_iter().enumerate() {
            // The short form has every second start for each shape, and all for two shapes.
            for (lead, backwards) in starts.into_iter().skip(short_or_long(at % 2, 0)).step_by(short_or_long(2, 1)) {
                let reverse = |layout: Layout, axis| if backwards { layout.reverse(axis).unwrap() } else { layout };
                let straight = Layout::row_major(&[2, rows, cols]).unwrap();
                let turned = Layout::row_major(&[2, cols, rows]).unwrap().permuted_axes(&[0, 2, 1]).unwrap();
                for near in [straight, turned] {
                    let mut far = Far::new(&device, (lead + rows * cols + 5) * width);
                    let apart = far.layout(near.shape(), [lead; 2], width);
                    seen.extend(far.check(&reverse(near, 1), &reverse(apart, 2), width).concat());
                }
            }
        }
    }
    // Kernels that move vectors always are wide.
    let wide = |name: &&str| name.ends_with("_wide") || (name.contains("_quads_") && !name.ends_with("_hinted"));
    let known = ENTRIES.iter().map(|entry| entry.name).filter(wide);
    let mut all =
        known.filter(|name| *name != LARGE && FAMILIES.contains(&family(Some(*name)).trim_end_matches("_wide")));
    assert!(all.all(|name| seen.contains(name)), "not all of the wide entries were run: {seen:?}");
}
