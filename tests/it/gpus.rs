//! Plans for GPUs of every architecture, with their figures: each is within the limits of its
//! architecture, and has the thresholds that its figures give.

use std::collections::BTreeMap;

use warpstride::abi::{ENTRIES, EntryId, WIDTHS};
use warpstride::element::DType;
use warpstride::launch_shape::{LaunchShape, MAX_BLOCK_THREADS, MAX_GRID_X, MAX_GRID_YZ, MAX_SHARED_BYTES};
use warpstride::layout::Layout;
use warpstride::ops::{
    Align, Elementwise, ElementwisePlan, FillPlan, MeanVariancePlan, PermutePlan, Phase, Plan, Reduction,
    ReductionPlan, SoftmaxPlan, Target, TileShape,
};
use warpstride::ptx;

/// A GPU by its data sheet, and the shared memory of its multiprocessor in KiB. Every architecture
/// that the kernels run on has one.
struct Gpu {
    name: &'static str,
    target: Target,
    shared_kib: u32,
}

const GPUS: [Gpu; 13] = [
    gpu("T4", (7, 5), 320, 40, 4, 64),
    gpu("A100", (8, 0), 1555, 108, 40, 164),
    gpu("RTX 3090", (8, 6), 936, 82, 6, 100),
    gpu("RTX 4090", (8, 9), 1008, 128, 72, 100),
    gpu("H100", (9, 0), 3352, 132, 50, 228),
    gpu("H200", (9, 0), 4917, 132, 60, 228),
    gpu("GH200 96GB", (9, 0), 4000, 132, 60, 228),
    gpu("B200", (10, 0), 8000, 148, 126, 228),
    gpu("RTX 5090", (12, 0), 1792, 170, 96, 100),
    gpu("AGX Orin", (8, 7), 205, 16, 4, 164),
    gpu("B300", (10, 3), 8000, 148, 126, 228),
    gpu("AGX Thor", (11, 0), 273, 20, 32, 228),
    gpu("GB10", (12, 1), 273, 48, 24, 100),
];

const fn gpu(
    name: &'static str,
    compute_capability: (u32, u32),
    gigabytes: u64,
    multiprocessors: u64,
    l2_mib: u64,
    shared_kib: u32,
) -> Gpu {
    let mut target = Target::new(compute_capability);
    target.bandwidth_per_multiprocessor = gigabytes * 1_000_000_000 / multiprocessors;
    target.l2_bytes = l2_mib << 20;
    Gpu { name, target, shared_kib }
}

fn named(name: &str) -> Target {
    GPUS.iter().find(|gpu| gpu.name == name).expect("it is listed").target
}

/// Static shared memory of every entry, by its PTX.
fn static_shared() -> BTreeMap<&'static str, u32> {
    let bytes = |text: &str| {
        let declared = text.lines().filter(|line| line.contains(".shared .align") && !line.contains(".extern"));
        let size = |line: &str| line.split_once('[')?.1.split_once(']')?.0.parse::<u32>().ok();
        declared.map(|line| size(line).unwrap_or_else(|| panic!("no size: {line}"))).sum()
    };
    EntryId::all().map(|entry| (entry.name(), bytes(&ptx::module(entry)))).collect()
}

/// The limits of every launch.
struct Limits {
    fixed: BTreeMap<&'static str, u32>,
    checked: usize,
    kernels: BTreeMap<&'static str, usize>,
}

impl Limits {
    fn new() -> Self {
        let fixed = static_shared();
        assert!(fixed.values().any(|&bytes| bytes > 0), "some kernel has shared memory of its own");
        Self { fixed, checked: 0, kernels: BTreeMap::new() }
    }

    #[track_caller]
    fn check(&mut self, gpu: &Gpu, plan: &(impl Plan + ?Sized), what: &str) {
        let (Some(name), Some(shape)) = (plan.entry(), plan.shape()) else { return };
        let LaunchShape { grid: [x, y, z], block, dynamic_shared } = shape;
        let case = format!("{what} on {}: {name}, {shape}, {dynamic_shared} bytes", gpu.name);
        let threads: u32 = block.iter().product();
        assert!((1..=MAX_BLOCK_THREADS).contains(&threads), "{case}");
        let most = [MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ];
        assert!([x, y, z].into_iter().zip(most).all(|(extent, most)| (1..=most).contains(&extent)), "{case}");
        let shared = self.fixed[name] + dynamic_shared;
        // Each block reserves 1 KiB more, from 8.0 on.
        let reserved = if gpu.target.compute_capability < (8, 0) { 0 } else { 1 << 10 };
        // Boxes ask for more than a kernel gets unasked.
        let most = if name.starts_with("boxes") { 64 << 10 } else { MAX_SHARED_BYTES };
        assert!(shared <= most && shared + reserved <= gpu.shared_kib << 10, "{case}");
        let capability = ENTRIES.iter().find(|entry| entry.name == name).expect("an entry").capability;
        assert!(capability <= gpu.target.compute_capability, "{case} needs {capability:?}");
        if gpu.target.compute_capability < (8, 0) {
            assert!(!name.ends_with("_hinted"), "{case}");
        }
        self.checked += 1;
        *self.kernels.entry(name).or_default() += 1;
    }
}

#[test]
fn permutes_are_within_the_limits_of_every_architecture() {
    // From a few elements to gigabytes, whole vectors and ragged, channels and batches.
    const SHAPES: [&[usize]; 18] = [
        &[5, 3],
        &[64, 48],
        &[1000, 1000],
        &[1 << 22, 3],
        &[4096, 4099],
        &[1 << 15, 1 << 15],
        &[7, 9, 11],
        &[64, 64, 64],
        &[3, 2160, 3840],
        &[1 << 18, 33, 34],
        &[64, 1080, 1920, 3],
        &[16, 3, 224, 224],
        &[128, 12, 512, 64],
        &[8, 6, 7, 5, 9],
        &[4, 8, 256, 16, 64],
        &[12; 6],
        &[2; 6],
        &[1 << 20, 2, 3, 2, 3, 2],
    ];
    let mut limits = Limits::new();
    for (shape, gpu) in SHAPES.iter().flat_map(|shape| GPUS.iter().map(move |gpu| (*shape, gpu))) {
        let rank = shape.len();
        for turn in 0..2 * rank {
            let mut axes: Vec<usize> = (0..rank).collect();
            axes.rotate_left(turn % rank);
            if turn >= rank {
                axes.swap(0, rank - 1);
            }
            let src = Layout::row_major(shape).unwrap().permuted_axes(&axes).unwrap();
            let dst = Layout::row_major(src.shape()).unwrap();
            for (width, align) in WIDTHS.into_iter().flat_map(|width| [256, width as u64].map(|align| (width, align))) {
                let align = Align::of(align);
                let what = format!("{shape:?} {axes:?} of {width} bytes");
                let plan = PermutePlan::new(&src, align, &dst, align, width, gpu.target).unwrap();
                limits.check(gpu, &plan, &what);
                let tiles = TileShape::of(gpu.target);
                let large = PermutePlan::tuned(&src, align, &dst, align, width, gpu.target, &tiles).unwrap();
                limits.check(gpu, &large, &what);
            }
        }
    }
    assert!(limits.checked > 10_000 && limits.kernels.len() > 40, "{} of {:?}", limits.checked, limits.kernels);
}

#[test]
fn arithmetic_is_within_the_limits_of_every_architecture() {
    let mut limits = Limits::new();
    let (start, types) = (Phase::ALIGNED, [DType::F16, DType::F32, DType::F64]);
    for (gpu, dtype) in GPUS.iter().flat_map(|gpu| types.map(|dtype| (gpu, dtype))) {
        let target = gpu.target;
        for len in [1, 100, 1 << 16, (1 << 28) + 3, 1 << 40] {
            let what = format!("{len} {dtype}");
            limits.check(gpu, &FillPlan::new(dtype, len, start, target).unwrap(), &what);
            for operation in Elementwise::ALL {
                let plan = ElementwisePlan::new(operation, dtype, len, [start; 2], start, target).unwrap();
                limits.check(gpu, &plan, &what);
            }
        }
        for [rows, n] in [[1, 1], [3, 1000], [1 << 20, 64], [16, 1 << 26]] {
            let what = format!("{rows} x {n} {dtype}");
            limits.check(gpu, &SoftmaxPlan::new(dtype, [rows, n], [start; 2], target).unwrap(), &what);
            limits.check(gpu, &MeanVariancePlan::new(dtype, [rows, n], start, target).unwrap(), &what);
            for axis in [None, Some(0), Some(1)] {
                let shape = [rows as usize, n as usize];
                let plan = ReductionPlan::new(Reduction::Sum, dtype, &shape, axis, start, target).unwrap();
                limits.check(gpu, &plan, &what);
                // Results are the same on every GPU: all join the same elements in the same order.
                let common = ReductionPlan::new(Reduction::Sum, dtype, &shape, axis, start, named("H100")).unwrap();
                assert_eq!(plan, common, "{what} along {axis:?} on {}", gpu.name);
            }
        }
    }
    assert!(limits.checked > 500 && limits.kernels.len() > 20, "{} of {:?}", limits.checked, limits.kernels);
}

#[test]
fn gpus_that_were_measured_are_known_by_their_figures() {
    let policy = |name: &str| named(name).policy();
    assert_eq!(policy("H100").to_string(), "measured on an NVIDIA H100");
    assert_eq!(policy("H200").to_string(), "measured on an NVIDIA H200");
    assert_eq!(
        policy("GH200 96GB").to_string(),
        "by a rule for compute capability 9.0 with 62.9 MB of L2 cache and 30.3 GB/s a multiprocessor"
    );
    for gpu in GPUS.iter().filter(|gpu| gpu.target.compute_capability != (9, 0)) {
        assert!(gpu.target.policy().to_string().starts_with("by a rule"), "{}", gpu.name);
    }
    // Without figures a target has the policy that it had before there were figures.
    assert_eq!(Target::new((9, 0)).policy().to_string(), "measured on an NVIDIA H100");
    assert_eq!(Target::new((12, 0)).policy().to_string(), "by a rule for compute capability 12.0");
}

#[test]
fn thresholds_go_with_the_figures_of_a_gpu() {
    let copy = |name: &str, bytes: usize| {
        let (layout, align) = (Layout::row_major(&[bytes]).unwrap(), Align::ALLOCATION);
        let plan = PermutePlan::new(&layout, align, &layout, align, 1, named(name)).unwrap();
        (plan.entry().unwrap(), plan.shape().unwrap().block[0])
    };
    // Hints from 16 of 25 parts of the L2 cache on, and never before 8.0.
    for (name, l2_mib) in [("A100", 40), ("RTX 3090", 6), ("RTX 4090", 72), ("H100", 50), ("H200", 60), ("B200", 126)] {
        let bytes = (l2_mib << 20) * 16 / 25;
        assert_eq!([copy(name, bytes).0, copy(name, bytes + 16).0], ["copy_b128", "copy_b128_hinted"], "{name}");
    }
    assert_eq!(copy("T4", 1 << 33).0, "copy_b128");
    let blocks = GPUS.map(|gpu| copy(gpu.name, 1 << 30).1);
    assert_eq!(blocks, [512, 1024, 512, 512, 1024, 256, 256, 256, 512, 512, 256, 512, 512]);
    // Structs of a large array: blocks take more shared memory than they use, so that a
    // multiprocessor has the best number of them.
    let structs = |name: &str| {
        let (src, dst) = (Layout::row_major(&[1 << 26, 3]).unwrap().t(), Layout::row_major(&[3, 1 << 26]).unwrap());
        let plan = PermutePlan::new(&src, Align::ALLOCATION, &dst, Align::ALLOCATION, 4, named(name)).unwrap();
        assert_eq!(plan.entry(), Some("deinterleave_quads_b32_hinted"));
        let gpu = GPUS.iter().find(|gpu| gpu.name == name).unwrap();
        (gpu.shared_kib << 10) / (plan.shape().unwrap().dynamic_shared + (1 << 10))
    };
    assert_eq!(["A100", "RTX 3090", "H100", "H200", "B200", "RTX 5090"].map(structs), [8, 5, 11, 16, 23, 5]);
}
