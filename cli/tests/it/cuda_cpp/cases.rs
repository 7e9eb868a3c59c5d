//! The kernels of `tests/data/cuda_cpp`: arguments, and what they must give.

use warpstride::random::SplitMix64;

pub(super) struct Case {
    pub(super) file: &'static str,
    pub(super) entry: &'static str,
    pub(super) grid: &'static str,
    pub(super) block: &'static str,
    /// Dynamic shared memory.
    pub(super) shared: Option<&'static str>,
    /// The arguments of its launch, in a line.
    pub(super) args: &'static str,
    /// The argument that holds the result.
    pub(super) result: usize,
    pub(super) expected: fn() -> Expected,
    /// Why clang's code accesses memory otherwise than NVRTC's, where some version does.
    pub(super) other_accesses_by_clang: Option<&'static str>,
    /// True if the source includes headers that come with CUDA alone.
    pub(super) needs_cuda_headers: bool,
}

pub(super) enum Expected {
    Bytes(Vec<u8>),
    /// Elements of `f32`, and how far each may be off, relative to its value.
    Near(Vec<f64>, f64),
}

const fn case(
    file: &'static str,
    entry: &'static str,
    [grid, block]: [&'static str; 2],
    args: &'static str,
    expected: fn() -> Expected,
) -> Case {
    Case {
        file,
        entry,
        grid,
        block,
        shared: None,
        args,
        result: 0,
        expected,
        other_accesses_by_clang: None,
        needs_cuda_headers: false,
    }
}

/// Elements 0 to `n` by a rule, as bytes.
fn each<const N: usize>(n: usize, rule: impl Fn(usize) -> [u8; N]) -> Expected {
    Expected::Bytes((0..n).flat_map(rule).collect())
}

fn floats(n: usize, rule: impl Fn(usize) -> f32) -> Expected {
    each(n, |i| rule(i).to_le_bytes())
}

fn integers(n: usize, rule: impl Fn(usize) -> i32) -> Expected {
    each(n, |i| rule(i).to_le_bytes())
}

/// The elements that `f32[..]=random:SEED` has.
fn random_f32(seed: u64, i: usize) -> f32 {
    (SplitMix64::at(seed, i as u64) >> 40) as f32 / (1 << 24) as f32
}

fn random_f64(seed: u64, i: usize) -> f64 {
    (SplitMix64::at(seed, i as u64) >> 11) as f64 / (1_u64 << 53) as f64
}

/// The bits of random integers; narrower ones are the lowest of them.
fn random(seed: u64, i: usize) -> u64 {
    SplitMix64::at(seed, i as u64)
}

const TRANSPOSE: [&str; 2] = ["2,2", "32,8"];
const OF_64: &str = "f32[4096]=zeros f32[4096]=iota i32:64";

fn transposed() -> Expected {
    floats(4096, |i| (i % 64 * 64 + i / 64) as f32)
}

const MATRICES: &str = "f32[2304]=zeros f32[2304]=random:1 f32[2304]=random:2 i32:48";

/// Sums in the kernels' order, each product added without a rounding between.
fn product() -> Expected {
    let sum = |i: usize| {
        (0..48).fold(0.0, |sum, k| random_f32(1, i / 48 * 48 + k).mul_add(random_f32(2, k * 48 + i % 48), sum))
    };
    floats(2304, sum)
}

fn histogram() -> Expected {
    let mut bins = [0_u32; 64];
    (0..4096).for_each(|i| bins[(random(7, i) as u8 % 64) as usize] += 1);
    each(64, |bin| bins[bin].to_le_bytes())
}

pub(super) const CASES: &[Case] = &[
    case("vector_add.cu", "vector_add", ["4", "256"], "f32[1000]=zeros f32[1000]=iota f32[1000]=iota i32:1000", || {
        floats(1000, |i| 2.0 * i as f32)
    }),
    Case {
        result: 3,
        ..case("vector_add.cu", "saxpy", ["2", "128"], "i32:1000 f32:2 f32[1000]=iota f32[1000]=iota", || {
            floats(1000, |i| 3.0 * i as f32)
        })
    },
    case("transpose.cu", "naive", TRANSPOSE, OF_64, transposed),
    case("transpose.cu", "tiled", TRANSPOSE, OF_64, transposed),
    case("transpose.cu", "padded", TRANSPOSE, OF_64, transposed),
    case("transpose.cu", "staggered", TRANSPOSE, OF_64, transposed),
    case("wide.cu", "copy_float4", ["2", "256"], "f32[1028]=zeros f32[1028]=iota i32:257", || {
        floats(1028, |i| i as f32)
    }),
    case("wide.cu", "masses", ["2", "256"], "f32[300]=zeros f32[1200]=iota i32:300", || {
        floats(300, |i| (4 * i + 3) as f32)
    }),
    case("wide.cu", "swap_pairs", ["1", "256"], "f64[400]=iota i32:200", || {
        each(400, |i| ((i ^ 1) as f64).to_le_bytes())
    }),
    Case {
        other_accesses_by_clang: Some("it loads the three members that are used, and NVRTC all four at once"),
        ..case("wide.cu", "brightness", ["2", "128"], "u32[256]=zeros u8[1024]=iota i32:256", || {
            each(256, |i| (0..3).map(|part| (4 * i as u32 + part) % 256).sum::<u32>().to_le_bytes())
        })
    },
    Case {
        shared: Some("1024"),
        ..case("reduce.cu", "by_shared_memory", ["4", "256"], "f32[4]=zeros f32[1000]=iota i32:1000", || {
            floats(4, |block| (256 * block..1000.min(256 * (block + 1))).sum::<usize>() as f32)
        })
    },
    case("reduce.cu", "by_shuffles", ["4", "256"], "i32[1]=zeros i32[1000]=iota i32:1000", || integers(1, |_| 499_500)),
    case("reduce.cu", "largest", ["4", "256"], "i32[1]=zeros u32[1]=zeros i32[1000]=random:3 i32:1000", || {
        integers(1, |_| (0..1000).map(|i| random(3, i) as i32).max().unwrap_or_default())
    }),
    case("histogram.cu", "by_global_atomics", ["16", "256"], "u32[64]=zeros u8[4096]=random:7 i32:4096", histogram),
    case("histogram.cu", "by_shared_atomics", ["4", "256"], "u32[64]=zeros u8[4096]=random:7 i32:4096", histogram),
    case("stencil.cu", "line", ["8", "128"], "i32[1000]=zeros i32[1000]=iota i32:1000", || {
        integers(1000, |i| (i.saturating_sub(3)..1000.min(i + 4)).sum::<usize>() as i32)
    }),
    Case {
        other_accesses_by_clang: Some("it joins the stores of the two branches into one"),
        ..case("stencil.cu", "heat", ["2,4", "32,8"], "f32[1200]=zeros f32[1200]=random:5 i32:40 i32:30", || {
            let at = |i| random_f32(5, i);
            let inner = |i: usize| (1..39).contains(&(i % 40)) && (1..29).contains(&(i / 40));
            floats(
                1200,
                |i| {
                    if inner(i) { 0.25 * ((at(i - 1) + at(i + 1)) + (at(i - 40) + at(i + 40))) } else { at(i) }
                },
            )
        })
    },
    case("stencil.cu", "blur", ["4", "256"], "f32[1000]=zeros f32[1000]=random:6 i32:1000", || {
        let weights = [0.0625_f32, 0.25, 0.375, 0.25, 0.0625];
        let near = |i: usize, k: usize| random_f32(6, (i + k).saturating_sub(2).min(999));
        floats(1000, |i| weights.iter().enumerate().fold(0.0, |sum, (k, weight)| weight.mul_add(near(i, k), sum)))
    }),
    case("softmax.cu", "softmax", ["4", "128"], "f32[1200]=zeros f32[1200]=random:2 i32:300", || {
        let e = |i: usize| f64::from(random_f32(2, i)).exp();
        let row = |i: usize| (i / 300 * 300..(i / 300 + 1) * 300).map(e).sum::<f64>();
        Expected::Near((0..1200).map(|i| e(i) / row(i)).collect(), 1e-6)
    }),
    case("softmax.cu", "lengths", ["2", "256"], "f32[300]=zeros f32[900]=random:3 i32:300", || {
        let [x, y, z] = [0, 1, 2].map(|part| move |i: usize| random_f32(3, 3 * i + part));
        floats(300, |i| x(i).mul_add(x(i), y(i).mul_add(y(i), z(i) * z(i))).sqrt())
    }),
    case("scan.cu", "hillis_steele", ["4", "256"], "i32[1024]=zeros i32[1024]=random:4", || {
        integers(1024, |i| (i / 256 * 256..=i).fold(0, |sum, k| i32::wrapping_add(sum, random(4, k) as i32)))
    }),
    case("scan.cu", "warps", ["1", "256"], "i64[256]=zeros i32[256]=iota", || {
        each(256, |i| ((i / 32 * 32..=i).sum::<usize>() as i64).to_le_bytes())
    }),
    case("scan.cu", "butterfly", ["1", "256"], "f32[256]=zeros f32[256]=iota", || {
        floats(256, |i| (i / 32 * 32..i / 32 * 32 + 32).sum::<usize>() as f32)
    }),
    case("matmul.cu", "naive", ["3,3", "16,16"], MATRICES, product),
    case("matmul.cu", "tiled", ["3,3", "16,16"], MATRICES, product),
    case("numbers.cu", "daxpy", ["4", "256"], "f64[1000]=random:1 f64[1000]=random:2 f64:1.5 i32:1000", || {
        each(1000, |i| 1.5_f64.mul_add(random_f64(2, i), random_f64(1, i) / 3.0).to_le_bytes())
    }),
    case("numbers.cu", "strided", ["2", "128"], "u64[250]=zeros u64[1000]=random:4 i64:1000 i64:4", || {
        let hashed = |x: u64| x.wrapping_mul(2_654_435_761).wrapping_add(x >> 3);
        each(250, |i| hashed(random(4, 4 * i)).to_le_bytes())
    }),
    case("numbers.cu", "narrow", ["2", "256"], "i16[500]=zeros i8[500]=random:1 u16[500]=random:2 i32:500", || {
        let value = |i| i32::from(random(1, i) as i8) * 3 - i32::from(random(2, i) as u16) / 7;
        each(500, |i| (value(i) as i16).to_le_bytes())
    }),
    case("numbers.cu", "bits", ["2", "256"], "u32[500]=zeros u32[500]=random:5 i32:500", || {
        let first = |x: u32| if x == 0 { 0 } else { x.trailing_zeros() + 1 };
        let mixed = |x: u32| {
            let parts = [x.count_ones(), x.leading_zeros() << 8, first(x) << 16, x.reverse_bits() & 0xff00_0000];
            parts.into_iter().fold(0, u32::wrapping_add)
        };
        each(500, |i| mixed(random(5, i) as u32).to_le_bytes())
    }),
    case("numbers.cu", "rounded", ["2", "256"], "i32[500]=zeros f32[500]=random:6 i32:500", || {
        let mixed = |x: f32| x as i32 + x.floor() as i32 * 3 + x.ceil() as i32 * 5 + x.round_ties_even() as i32 * 7;
        integers(500, |i| mixed(random_f32(6, i).mul_add(1000.0, -500.0)))
    }),
    case("control.cu", "collatz", ["2", "256"], "i32[500]=zeros i32[500]=iota i32:500", || {
        let next = |&x: &u32| (x != 1).then_some(if x % 2 == 0 { x / 2 } else { 3 * x + 1 });
        integers(500, |i| std::iter::successors(Some(i as u32 + 1), next).count() as i32 - 1)
    }),
    case("control.cu", "mandelbrot", ["2,4", "32,8"], "i32[1920]=zeros i32:60 i32:32", || {
        integers(1920, |i| mandelbrot(i as i32 % 60, i as i32 / 60))
    }),
    case("control.cu", "choose", ["2", "256"], "i32[500]=zeros i32[500]=iota i32:500", || {
        integers(500, |i| {
            let value = i as i32;
            match value % 8 {
                0 => value + 17,
                1 => value * 3,
                2 => value - 5,
                3 => value ^ 0x55,
                4 => value << 2,
                5 => 0,
                6 => 2 * value,
                _ => 0,
            }
        })
    }),
    case(
        "control.cu",
        "quotients",
        ["2", "256"],
        "i32[1000]=zeros i32[500]=random:1 i32[500]=random:2 i32:500",
        || {
            let [a, b] = [1, 2].map(|seed| move |i| random(seed, i) as i32);
            let pair = |i| (a(i), b(i).wrapping_add(1));
            integers(1000, |i| match (i % 2, pair(i / 2)) {
                (0, (a, b)) => a.wrapping_div(b),
                (_, (a, b)) => a.wrapping_rem(b),
            })
        },
    ),
    case("names.cu", "math::scale<float>", ["1", "128"], "f32[100]=iota f32:3 i32:100", || {
        floats(100, |i| 3.0 * i as f32)
    }),
    case("names.cu", "scale<long long>", ["1", "128"], "i64[100]=iota i64:-3 i32:100", || {
        each(100, |i| (-3 * i as i64).to_le_bytes())
    }),
    case("names.cu", "shift", ["1", "128"], "f32[100]=iota f32:-0.5 i32:100", || floats(100, |i| i as f32 - 0.5)),
    case("indirect.cu", "gather", ["2", "256"], "f32[500]=zeros f32[1024]=iota i32[500]=random:1 i32:500", || {
        floats(500, |i| (random(1, i) & 1023) as f32)
    }),
    // Row i begins at element i, so that each has one.
    case(
        "indirect.cu",
        "compressed_rows",
        ["1", "128"],
        "f32[100]=zeros i32[101]=iota i32[100]=iota f32[100]=random:2 i32:100",
        || floats(100, |i| random_f32(2, i)),
    ),
    case(
        "indirect.cu",
        "lower_bound",
        ["2", "256"],
        "i32[300]=zeros i32[200]=iota i32:200 i32[300]=iota i32:300",
        || integers(300, |i| i.min(200) as i32),
    ),
    case("indirect.cu", "generators", ["1", "128"], "u64[100]=random:3 i32:5 i32:100", || {
        let step = |mut x: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^ x << 17
        };
        each(100, |i| (0..5).fold(random(3, i).wrapping_add(1), |x, _| step(x)).to_le_bytes())
    }),
    Case {
        shared: Some("1024"),
        ..case("sort.cu", "bitonic", ["1", "256"], "i32[256]=random:4", || {
            let mut values: Vec<i32> = (0..256).map(|i| random(4, i) as i32).collect();
            values.sort_unstable();
            integers(256, |i| values[i])
        })
    },
    case("sort.cu", "insertion", ["1", "128"], "i32[800]=random:5 i32:100", || {
        let mut values: Vec<i32> = (0..800).map(|i| random(5, i) as i32).collect();
        values.chunks_mut(8).for_each(<[i32]>::sort_unstable);
        integers(800, |i| values[i])
    }),
    case("together.cu", "last_block", ["4", "256"], "i32[1]=zeros i32[4]=zeros i32[1000]=iota i32:1000", || {
        integers(1, |_| 499_500)
    }),
    case("together.cu", "least", ["4", "256"], "u64[1]=random:9 u32[1000]=random:6 i32:1000", || {
        let packed = |i: usize| (random(6, i) & 0xffff_ffff) << 32 | i as u64;
        each(1, |_| (0..1000).map(packed).fold(random(9, 0), u64::min).to_le_bytes())
    }),
    case("together.cu", "until_all", ["2", "128"], "i32[250]=zeros i32[250]=random:7 i32:250", || {
        let steps = |i| (random(7, i) as i32 & 255).div_euclid(7) + i32::from((random(7, i) as i32 & 255) % 7 > 0);
        integers(250, |i| (i / 32 * 32..250.min(i / 32 * 32 + 32)).map(steps).max().unwrap_or_default())
    }),
    Case {
        other_accesses_by_clang: Some("it stores if the value that an exchange replaces is unused"),
        ..case("together.cu", "locked", ["32", "32"], "i32[8]=zeros i32[8]=zeros", || {
            integers(8, |cell| (cell..32).step_by(8).sum::<usize>() as i32)
        })
    },
    case("pixels.cu", "grey", ["2", "128"], "u8[200]=zeros u8[600]=random:1 i32:200", || {
        let part = |i| u32::from(random(1, i) as u8);
        each(200, |i| [((77 * part(3 * i) + 150 * part(3 * i + 1) + 29 * part(3 * i + 2)) >> 8) as u8])
    }),
    case("pixels.cu", "life", ["2,4", "32,8"], "u8[1200]=zeros u8[1200]=random:2 i32:40 i32:30", || {
        let alive = |x: usize, y: usize| random(2, y % 30 * 40 + x % 40) & 1;
        let around =
            |x: usize, y: usize| (0..9).filter(|k| *k != 4).map(|k| alive(x + 39 + k % 3, y + 29 + k / 3)).sum::<u64>();
        each(1200, |i| {
            let (x, y) = (i % 40, i / 40);
            [u8::from(around(x, y) == 3 || alive(x, y) == 1 && around(x, y) == 2)]
        })
    }),
    case("pixels.cu", "squares", ["1", "128"], "f32[200]=random:3 i32:100", || {
        floats(200, |i| {
            let [re, im] = [0, 1].map(|part| random_f32(3, i / 2 * 2 + part));
            if i % 2 == 0 { re.mul_add(re, -(im * im)) } else { re.mul_add(im, im * re) }
        })
    }),
    case(
        "pixels.cu",
        "affine",
        ["1", "128"],
        "f32[300]=random:4 f32:2 f32:3 f32:4 f32:0.5 f32:0.25 f32:0.125 i32:100",
        || floats(300, |i| random_f32(4, i).mul_add([2.0, 3.0, 4.0][i % 3], [0.5, 0.25, 0.125][i % 3])),
    ),
    Case {
        needs_cuda_headers: true,
        ..case("half.cu", "halves", ["1", "256"], "f16[200]=zeros f16[200]=iota f16[200]=iota i32:200", || {
            each(200, |i| half::f16::from_f32(3.0 * i as f32).to_le_bytes())
        })
    },
];

fn mandelbrot(x: i32, y: i32) -> i32 {
    let (cx, cy) = (x * 3 * 4096 / 60 - 2 * 4096, y * 2 * 4096 / 32 - 4096);
    let (mut zx, mut zy) = (0, 0);
    for count in 0..50 {
        let (xx, yy) = ((zx * zx) >> 12, (zy * zy) >> 12);
        if xx + yy > 4 * 4096 {
            return count;
        }
        zy = ((2 * zx * zy) >> 12) + cy;
        zx = xx - yy + cx;
    }
    50
}
