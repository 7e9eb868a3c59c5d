//! Launches every entry of the PTX on a few small shapes: as shipped, and as a debug build, whose
//! assertions and checked arithmetic find errors that happen to give right results.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use warpstride::abi::{Divisor, ENTRIES, EntryId, Index, Key, LINES_BLOCK, MUL, PERMUTE_LINES, SPILL_LINES, TRIAD};
use warpstride::device::Device;
use warpstride::driver::Driver;
use warpstride::driver::trace::{Call, Trace};
use warpstride::element::DType;
use warpstride::launch_shape::LaunchShape;
use warpstride::layout::Layout;
use warpstride::ops::{self, Variant};

#[cfg(feature = "half")]
use crate::affine;
use crate::backend::{Setup, cases, exact};
use crate::far::Far;
use crate::long::short_or_long;
use crate::matrices::{Random, Sample, at_every_width, c_order};
use crate::movers::{self, By};
#[cfg(feature = "distributed")]
use crate::peers;
use crate::program::{Program, assert_same};
use crate::{arithmetic, axes, binary, casts, debug_build, images, in_place, integers, naive, transposes};

cases! {
    SoftwareGpu("it has memory wherever 64-bit arithmetic reaches") every_entry_is_launched_and_right,
    Any element_wise_kernels_with_hints_do_as_those_without,
    DebugBuild every_entry_of_a_debug_build_is_right,
}

fn every_entry_is_launched_and_right(setup: &Setup) {
    launch_all(&setup.driver);
}

fn element_wise_kernels_with_hints_do_as_those_without(setup: &Setup) {
    if setup.driver.info().compute_capability >= (8, 0) {
        hinted_elementwise(&setup.driver, &mut Random::new(67));
    }
}

fn every_entry_of_a_debug_build_is_right(setup: &Setup) {
    let driver: Arc<dyn Driver> = Arc::new(debug_build::over(Arc::clone(&setup.driver)));
    launch_all(&driver);
}

fn launch_all(driver: &Arc<dyn Driver>) {
    fn run<T: Sample>(device: &Device, random: &mut Random) {
        narrow::<T>(device, random);
        wide::<T>(device);
        wide_lines(device.driver(), size_of::<T>(), random);
    }
    let trace = Arc::new(Trace::new(Arc::clone(driver)));
    let device = exact(&(Arc::clone(&trace) as Arc<dyn Driver>));
    at_every_width!(run(&device, &mut Random::new(60)));
    arithmetic::launch_all(&device, &mut Random::new(61));
    binary::launch_all(&device, &mut Random::new(69));
    hinted_elementwise(device.driver(), &mut Random::new(66));
    images::launch_all(&device, &mut Random::new(62));
    casts::launch_all(&device, &mut Random::new(63));
    axes::launch_all(&device, &mut Random::new(64));
    integers::launch_all(&device, &mut Random::new(68));
    #[cfg(feature = "distributed")]
    peers::launch_all(&device);
    #[cfg(feature = "half")]
    affine::launch_all(&device, &mut Random::new(65));
    ops::spin(&device, Duration::from_micros(1), device.default_stream()).unwrap();
    device.synchronize().unwrap();
    // The first launch of a kernel looks it up.
    let launched: BTreeSet<String> = trace
        .calls()
        .into_iter()
        .filter_map(|call| if let Call::Function { name, .. } = call { Some(name) } else { None })
        .collect();
    let forgotten: Vec<&str> =
        ENTRIES.iter().map(|entry| entry.name).filter(|&name| !launched.contains(name) && can_be(name)).collect();
    assert!(forgotten.is_empty(), "no shape in this file is planned for {forgotten:?}: add one for each");
}

/// Returns whether the features launch an entry: without `half` there are no halves, which most
/// affine maps use, and without `distributed` nothing moves pairs.
fn can_be(name: &str) -> bool {
    (cfg!(feature = "half") || !name.starts_with("affine_"))
        && (cfg!(feature = "distributed") || !name.contains("_pairs"))
}

/// Returns source layouts that go to C order, with the kernels that each is for; all are batches of
/// two without gaps.
fn sources<T>() -> Vec<Layout> {
    let lanes = 16 / size_of::<T>();
    let turned = |rows: usize, cols: usize| c_order(&[2, cols, rows]).permuted_axes(&[0, 2, 1]).unwrap();
    // A tile and a bit; up to 64 rows or columns may be taken for fields.
    let side = (8 * lanes).max(64);
    let mut sources = vec![
        // vector_tile, whose last tile is cut
        turned(side, side + lanes),
        turned(2 * side + lanes, side),
        // vector_tile of small matrices
        c_order(&[2, 9, 8 * lanes, 8 * lanes]).permuted_axes(&[0, 1, 3, 2]).unwrap(),
        // ragged_tile; that of elements of 2 bytes as if the array were large
        turned(193, 129),
        turned(side + 1, side + 3),
        turned(2 * side + 3, side + 1),
        // deinterleave and interleave by words, with structs that fill none, and by vectors
        turned(3, 1002),
        turned(1001, 3),
        turned(3, 1000),
        turned(3, 1008),
        turned(1000, 4),
        // rows
        c_order(&[2, 10, 99]),
        // elements
        c_order(&[2, 3, 33]).reverse(2).unwrap(),
        // elements of runs of whole accesses
        c_order(&[2, 7, 3, 3 * lanes]).permuted_axes(&[0, 2, 1, 3]).unwrap(),
        // boxes
        c_order(&[2, 5, 7, 6, 9]).permuted_axes(&[0, 4, 2, 3, 1]).unwrap(),
    ];
    if lanes == 1 {
        // Short axes for boxes; full tiles off sectors for ragged_tile, and short rows for
        // packed_quads. These kernels move large arrays, and in the short form small ones, whose
        // plans are made as if they were large.
        sources.push(c_order(&[2, 3, 4, 5, 3, 4, 5]).permuted_axes(&[0, 5, 2, 6, 3, 1, 4]).unwrap());
        sources.push(short_or_long(turned(95, 93), turned(1031, 513)));
        let short_rows = short_or_long([2, 8, 9, 20, 16], [2, 40, 41, 20, 16]);
        sources.push(c_order(&short_rows).permuted_axes(&[0, 4, 3, 2, 1]).unwrap());
    }
    sources
}

/// Launches the entries that plans choose for storages of less than 2^31 elements.
fn narrow<T: Sample>(device: &Device, random: &mut Random) {
    let width = size_of::<T>();
    let mut check = |by: By, src: Layout, dst: Layout| movers::check(device, by, [src, dst], width, random);
    for src in sources::<T>() {
        for [from, to] in [[src, c_order(src.shape())], [c_order(src.shape()), src]] {
            check(By::Large, from, to);
            check(By::AsIfLarge, from, to);
        }
    }
    // packed_quads and, for every second column, boxes
    for step in [1, 2] {
        let matrices = short_or_long(256 << 10, 4 << 20) / (33 * 31 * width) + 1;
        let columns = c_order(&[matrices, 33, 31 * step]).slice(2, .., step as isize).unwrap();
        let turned = columns.permuted_axes(&[0, 2, 1]).unwrap();
        check(By::AsIfLarge, turned, c_order(turned.shape()));
    }
    // copy, with a tail; rows, from and to addresses off vectors
    check(By::Large, c_order(&[16 * 1100 + 5]), c_order(&[16 * 1100 + 5]));
    check(By::Large, c_order(&[7, 131]).slice(1, 3..110, 1).unwrap(), c_order(&[7, 107]));
    // small_tile: large enough that vectors pay at every width
    let cols = 2048 / width;
    check(By::Large, c_order(&[512, cols]).t(), c_order(&[cols, 512]));
    for variant in Variant::ALL {
        transposes::check::<T>(device, c_order(&[37, 45]), c_order(&[45, 37]), Some(variant), random);
    }
    // swap_tiles, permute_lines and, for rows or columns longer than shared memory, spill_lines
    let long = 49_152 / size_of::<T>() + 5;
    for shape in [&[2, 37, 37][..], &[65, 65], &[2, 12, 16], &[17, 31], &[31, 17], &[2, long], &[long, 2]] {
        in_place::check::<T>(device, c_order(shape), random);
    }
}

/// Launches the entries that plans choose for storages of more than 2^31 elements, but moves few.
fn wide<T: Sample>(device: &Device) {
    let width = size_of::<T>();
    // One of the two images of each source.
    let room = sources::<T>().iter().map(Layout::len).max().unwrap() / 2;
    let mut far = Far::new(device, room * width);
    for near in sources::<T>() {
        far.check(&near, &far.layout(near.shape(), [0, 0], width), width);
    }
    let stream = device.default_stream().handle();
    let (src, dst) = (far.layout(&[2, 33], [0, 0], width), c_order(&[33, 2]));
    let rows = far.renew().map(|part| part[..33 * width].to_vec()).concat();
    let mut expected = vec![0; rows.len()];
    naive::copy_bytes(&rows, &c_order(&[2, 33]).t(), &mut expected, &dst, width);
    for variant in Variant::ALL {
        let result = device.zeros::<u8>(rows.len()).unwrap();
        // SAFETY: both parts and the result live until the download.
        unsafe { ops::transpose_raw(device, far.start(), &src, result.address(), &dst, width, Some(variant), stream) }
            .unwrap();
        assert!(result.download().unwrap() == expected, "{variant} of {}", T::DTYPE);
    }
    let (square, apart) = (c_order(&[37, 37]), far.layout(&[2, 37, 37], [0, 0], width));
    let mut expected = far.renew();
    for part in &mut expected {
        let before = part.clone();
        naive::copy_bytes(&before, &square, part, &square.t(), width);
    }
    // SAFETY: both parts live until they are read, and square matrices need no scratch.
    unsafe { ops::transpose_in_place_raw(device, far.start(), &apart, width, 0, stream) }.unwrap();
    device.synchronize().unwrap();
    assert!(far.read() == expected, "{} in place", T::DTYPE);
}

/// Launches the wide entries for rows and columns: plans choose them from 2^31 contiguous elements
/// on, which are too many here.
fn wide_lines(driver: &Arc<dyn Driver>, width: usize, random: &mut Random) {
    const ROWS: usize = 12;
    const COLS: usize = 16;
    const SECTION: usize = 4;
    const FACTOR: usize = 5;
    const MATRIX: usize = ROWS * COLS;
    let program = Program::new(driver);
    let before: Vec<u8> = random.elements(2 * MATRIX * width);
    for (columns, scatter) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut expected = vec![0; before.len()];
        for (row, col) in (0..ROWS).flat_map(|row| (0..COLS).map(move |col| (row, col))) {
            let turned = (row * FACTOR + col / SECTION) % ROWS;
            let partner = if columns { turned * COLS + col } else { row * COLS + (turned + col * ROWS) % COLS };
            let (from, to) = if scatter { (row * COLS + col, partner) } else { (partner, row * COLS + col) };
            for first in [0, MATRIX] {
                expected[(first + to) * width..][..width].copy_from_slice(&before[(first + from) * width..][..width]);
            }
        }
        // Panels of which the last is shorter.
        let [height, across] = if columns { [ROWS, 5] } else { [5, COLS] };
        let panels = if columns { COLS.div_ceil(across) } else { ROWS.div_ceil(height) };
        for family in [PERMUTE_LINES, SPILL_LINES] {
            let entry = family.entry(width, Index::Wide).unwrap();
            let (matrix, scratch) =
                (program.upload(&before).unwrap(), program.buffer(2 * panels * height * across * width).unwrap());
            let by = |value: usize| Divisor::wide(value as u64);
            let words = |[first, end]: [usize; 2], back: u64| -> Vec<u8> {
                let divisor = |of: Divisor| [of.value, of.multiplier, of.shift];
                [
                    &[matrix.address, scratch.address][..],
                    &divisor(by(ROWS)),
                    &divisor(by(COLS)),
                    &[u64::from(columns), u64::from(scatter), height as u64],
                    &divisor(by(across)),
                    &divisor(by(panels)),
                    &[first, end, FACTOR].map(|value| value as u64),
                    &divisor(by(ROWS)),
                    &divisor(by(SECTION)),
                    &[back],
                ]
                .concat()
                .into_iter()
                .flat_map(u64::to_le_bytes)
                .collect()
            };
            let spills = Some(entry) == SPILL_LINES.entry(width, Index::Wide);
            // The second launch begins within the first matrix.
            for part in [[0, 2], [2, 2 * panels]] {
                let blocks = (part[1] - part[0]) as u32;
                let (grid, launches) = if spills {
                    ([(height * across).div_ceil(LINES_BLOCK as usize) as u32, blocks, 1], 2)
                } else {
                    ([blocks, 1, 1], 1)
                };
                launch(&program, entry, (grid, LINES_BLOCK), (0..launches).map(|back| words(part, back)));
            }
            let stream = program.stream().unwrap();
            let found = program.download(&matrix, &stream).unwrap();
            assert_same(&found, &expected, format!("{entry}, columns {columns}, scatter {scatter}"));
        }
    }
}

/// Launches element-wise entries with hints to the L2 cache, which plans choose for more elements
/// than are quick here. Their results must equal those without hints, which `arithmetic` compares
/// with the host.
fn hinted_elementwise(driver: &Arc<dyn Driver>, random: &mut Random) {
    // Vectors between the elements before the first and the element after the last.
    const QUADS: usize = 70;
    let program = Program::new(driver);
    let numbers = [DType::F16, DType::Bf16, DType::F32, DType::F64];
    for (family, number) in [MUL, TRIAD].iter().flat_map(|family| numbers.map(|number| (family, number))) {
        let (plain, width) = (family.get(Key::dtype(number)), number.width());
        let lanes = 16 / width;
        let len = lanes - 1 + QUADS * lanes + 1;
        let [a, b, old] = [(); 3].map(|()| random.elements::<u8>((len + 1) * width));
        let results = [plain, plain.hinted((9, 0))].map(|entry| {
            let [a, b, dst] = [&a, &b, &old].map(|bytes| program.upload(bytes).unwrap());
            let [to, first, second] = [&dst, &a, &b].map(|buffer| buffer.address + width as u64);
            let words = [to, first, second, len as u64, (lanes - 1) as u64, QUADS as u64, 0.75_f64.to_bits()];
            let params = words.into_iter().flat_map(u64::to_le_bytes).collect();
            launch(&program, entry, ([1, 1, 1], 128), [params].into_iter());
            program.download(&dst, &program.stream().unwrap()).unwrap()
        });
        assert!(plain != plain.hinted((9, 0)), "{plain} has no twin with hints");
        assert!(results[0] != old, "{plain} did nothing");
        assert_same(&results[1], &results[0], format!("{plain} with hints"));
    }
}

/// Launches of one shape with these parameters, one after the other.
fn launch(program: &Program, entry: EntryId, (grid, block): ([u32; 3], u32), params: impl Iterator<Item = Vec<u8>>) {
    let module = program.module(&warpstride::ptx::module(entry)).unwrap();
    let (function, stream) = (module.function(entry.name()).unwrap(), program.stream().unwrap());
    let shape = LaunchShape { grid, block: [block, 1, 1], dynamic_shared: 0 };
    for params in params {
        // SAFETY: the entry takes these parameters, whose buffers the caller holds until after the
        // wait.
        unsafe { stream.launch(function, &shape, &params) }.unwrap();
    }
    stream.synchronize().unwrap();
}
