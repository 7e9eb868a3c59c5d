//! CUDA C++, compiled to PTX by NVIDIA's compilers of two generations, release and debug. Every
//! kernel of `tests/data/cuda/programs.cu` is checked against the same computation here.

use std::fmt::Debug;

use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::stop::Reason;
use warpstride_interp::{Args, Config, Memory, Module, Report, Stop, Value, run};

use super::shape;

/// The PTX for each compiler, oldest GPU, and kind of build.
const PROGRAMS: [(&str, &str); 4] = [
    ("12.9 sm_70", include_str!("../data/cuda/programs-12.9-sm_70.ptx")),
    ("12.9 sm_70 debug", include_str!("../data/cuda/programs-12.9-sm_70-debug.ptx")),
    ("13.5 sm_90", include_str!("../data/cuda/programs-13.5-sm_90.ptx")),
    ("13.5 sm_80 debug", include_str!("../data/cuda/programs-13.5-sm_80-debug.ptx")),
];

/// A module and the memory that its kernels run in.
struct Program {
    module: Module,
    memory: Memory,
}

impl Program {
    fn launch(&self, name: &str, shape: LaunchShape, values: &[Vec<u8>]) -> Result<Report, Box<Stop>> {
        let kernel = self.module.kernel(name).unwrap_or_else(|| panic!("{name} is missing"));
        let args = values.iter().try_fold(Args::new(kernel), |args, value| args.bytes(value));
        let params = args.and_then(Args::finish).unwrap_or_else(|error| panic!("{error}"));
        run(kernel, &shape, &params, &self.memory, &Config::default())
    }

    fn upload<T: Value>(&self, values: &[T]) -> u64 {
        self.memory.upload(values).expect("it fits")
    }

    /// Runs one block, in which each thread stores 4 bytes to the first argument.
    fn block(&self, name: &str, threads: u32, values: &[Vec<u8>]) -> Vec<i32> {
        let out = self.upload(&vec![-1_i32; threads as usize]);
        let values = [&[bytes(out)], values].concat();
        self.launch(name, shape(1, threads), &values).unwrap_or_else(|stop| panic!("{stop}"));
        self.memory.download(out, threads as usize).expect("it is there")
    }
}

fn bytes(value: impl Value) -> Vec<u8> {
    value.to_bytes().as_ref().to_vec()
}

/// Runs `check` on every build.
fn on_all(check: impl Fn(&str, &Program)) {
    for (build, text) in PROGRAMS {
        let module = Module::parse(text).unwrap_or_else(|error| panic!("{build}: {error}"));
        check(build, &Program { module, memory: Memory::new(1 << 20) });
    }
}

fn each<T>(threads: i32, value: impl FnMut(i32) -> T) -> Vec<T> {
    (0..threads).map(value).collect()
}

fn same<T: PartialEq + Debug>(got: &[T], expected: &[T], what: &str) {
    for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert_eq!(got, expected, "{what} at {index}");
    }
    assert_eq!(got.len(), expected.len(), "{what}");
}

#[test]
fn every_kernel_is_supported() {
    on_all(|build, program| {
        assert_eq!(program.module.kernels().count(), 15, "{build}");
        for kernel in program.module.kernels() {
            kernel.supported().unwrap_or_else(|error| panic!("{build}: {error}"));
        }
    });
}

#[test]
fn transposes_are_right() {
    fn check<T: Value + PartialEq + Debug>(build: &str, program: &Program, name: &str, of: impl Fn(usize) -> T) {
        let (rows, cols) = (37_usize, 70_usize);
        let data: Vec<T> = (0..rows * cols).map(of).collect();
        let (src, dst) = (program.upload(&data), program.upload(&data));
        let grid = [cols.div_ceil(32) as u32, rows.div_ceil(if name.ends_with("naive") { 8 } else { 32 }) as u32, 1];
        let shape = LaunchShape { grid, block: [32, 8, 1], dynamic_shared: 0 };
        let args = [bytes(src), bytes(dst), bytes(rows as i32), bytes(cols as i32)];
        program.launch(name, shape, &args).unwrap_or_else(|stop| panic!("{build}: {stop}"));
        let got = program.memory.download::<T>(dst, rows * cols).expect("it is there");
        let expected: Vec<T> = (0..rows * cols).map(|i| data[i % rows * cols + i / rows]).collect();
        same(&got, &expected, &format!("{build}: {name}"));
    }
    on_all(|build, program| {
        check(build, program, "transpose_naive", |i| i as f32);
        check(build, program, "transpose_float", |i| i as f32 * 0.5);
        check(build, program, "transpose_double", |i| i as f64 / 3.0);
    });
}

#[test]
fn blocks_reduce_and_scan_in_dynamic_shared_memory() {
    on_all(|build, program| {
        let data = each(500, |i| i * i % 101 - 50);
        let (src, sums) = (program.upload(&data), program.upload(&[0_i32; 4]));
        let shape = |dynamic_shared| LaunchShape { grid: [4, 1, 1], block: [128, 1, 1], dynamic_shared };
        let args = [bytes(src), bytes(sums), bytes(500_i32)];
        program.launch("reduce", shape(512), &args).unwrap_or_else(|stop| panic!("{build}: {stop}"));
        let expected: Vec<i32> = data.chunks(128).map(|block| block.iter().sum()).collect();
        same(&program.memory.download(sums, 4).expect("it is there"), &expected, build);

        let (src, dst) = (program.upload(&data[..384]), program.upload(&[0_i32; 384]));
        let shape = LaunchShape { grid: [3, 1, 1], ..shape(1024) };
        program.launch("scan", shape, &[bytes(src), bytes(dst)]).unwrap_or_else(|stop| panic!("{build}: {stop}"));
        let running = |block: &[i32]| (1..=block.len()).map(|end| block[..end].iter().sum()).collect::<Vec<i32>>();
        let expected: Vec<i32> = data[..384].chunks(128).flat_map(running).collect();
        same(&program.memory.download(dst, 384).expect("it is there"), &expected, build);
    });
}

#[test]
fn matrices_multiply_tile_by_tile() {
    on_all(|build, program| {
        let n = 32_usize;
        let of = |seed: usize| (0..n * n).map(|i| (i * seed % 17) as f32 - 8.0).collect::<Vec<f32>>();
        let (a, b) = (of(7), of(11));
        let (left, right, out) = (program.upload(&a), program.upload(&b), program.upload(&a));
        let shape = LaunchShape { grid: [2, 2, 1], block: [16, 16, 1], dynamic_shared: 0 };
        let args = [bytes(left), bytes(right), bytes(out), bytes(n as i32)];
        program.launch("matmul", shape, &args).unwrap_or_else(|stop| panic!("{build}: {stop}"));
        let product = |i: usize| (0..n).map(|k| a[i / n * n + k] * b[k * n + i % n]).sum();
        let expected: Vec<f32> = (0..n * n).map(product).collect();
        same(&program.memory.download(out, n * n).expect("it is there"), &expected, build);
    });
}

/// The variable in which `variables` counts its launches begins at 40.
#[test]
fn variables_of_a_module_keep_their_values_between_launches() {
    on_all(|build, program| {
        let primes = [2, 3, 5, 7, 11, 13];
        let expected = |launches: i32| {
            each(48, |i| match i {
                1 => (11 + 7) * 1000 + 1 - 7,
                2 => 200 + 5,
                3 => 40 * 100 + launches,
                _ => primes[i as usize % 6] * 10_i32.pow(i as u32 % 5) + 5,
            })
        };
        same(&program.block("variables", 48, &[]), &expected(41), build);
        same(&program.block("variables", 48, &[]), &expected(42), build);
        let (address, bytes) = program.module.variable(&program.memory, "launches").unwrap().expect("it is there");
        assert_eq!((program.memory.download::<i32>(address, 1).unwrap(), bytes), (vec![42], 4));
        // The host may write the variable; another memory has its own; after an unload it begins
        // anew.
        program.memory.write(address, &70_i32.to_le_bytes()).expect("it is there");
        assert_eq!(program.block("variables", 48, &[])[3], 40 * 100 + 71);
        let elsewhere = Program { module: program.module.clone(), memory: Memory::new(1 << 20) };
        assert_eq!(elsewhere.block("variables", 48, &[])[3], 40 * 100 + 41);
        let used = program.memory.used();
        program.module.unload(&program.memory).expect("they are there");
        assert!(program.memory.used() < used, "{build}");
        assert_eq!(program.block("variables", 48, &[])[3], 40 * 100 + 41);
    });
}

#[test]
fn structs_are_passed_and_returned_by_value() {
    on_all(|build, program| {
        // Two structs of 24 bytes: a, padding, b, the name, padding.
        let mut pair = [0_u8; 24];
        pair[..4].copy_from_slice(&1000_i32.to_le_bytes());
        pair[8..16].copy_from_slice(&1.25_f64.to_le_bytes());
        pair[16..21].copy_from_slice(&[1, 2, 3, 4, 5]);
        let got = program.block("structs", 70, &[pair.to_vec(), bytes(-3_i16)]);
        let expected = each(70, |i| {
            let mut name = [1, 2, 3, 4, 5];
            name[i as usize & 3] = 7;
            name[(i + 1) as usize & 3] = 7;
            1000 + i + i + 1 + 5 + name.iter().sum::<i32>() * 1000 - 3
        });
        same(&got, &expected, build);
    });
}

#[test]
fn recursion_keeps_each_activation_s_registers_and_variables() {
    fn fibonacci(n: i32) -> i32 {
        if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
    }
    fn hanoi(n: i32, [from, to, via]: [i32; 3], moves: i32) -> i32 {
        if n == 0 {
            return moves;
        }
        let moves = hanoi(n - 1, [from, via, to], moves) * 3 + from - to;
        hanoi(n - 1, [via, to, from], moves)
    }
    on_all(|build, program| {
        let expected = each(96, |i| {
            let mut sorted = each(12, |k| (k * 7 + i * 5) % 12);
            sorted.sort_unstable();
            let order: i32 = (1..).zip(&sorted).map(|(place, value)| place * value).sum();
            let moves = hanoi(i % 5, [0, 1, 2], 1);
            fibonacci(i % 11) + 100 * (1 - i % 2) + moves.wrapping_mul(1000).wrapping_add(order)
        });
        same(&program.block("recursion", 96, &[]), &expected, build);
    });
}

#[test]
fn lanes_call_different_functions_through_pointers() {
    fn apply(operation: i32, a: i32, b: i32) -> i32 {
        match operation & 3 {
            0 => a + b,
            1 => a - b,
            2 => a * b,
            _ => a.wrapping_pow(b as u32),
        }
    }
    on_all(|build, program| {
        let expected = each(64, |i| {
            let folded = [2, i % 3, 2].into_iter().fold(5, |start, value| apply(i / 2, start, value));
            let area = if i % 5 == 0 { i * i } else { 3 * i };
            apply(i, i, 3) + folded + 10000 * area
        });
        same(&program.block("pointers", 64, &[]), &expected, build);
    });
}

#[test]
fn switches_early_returns_and_barriers_in_functions_part_and_join_a_warp() {
    fn classify(n: i32) -> i32 {
        match n {
            0 => 3,
            1 => 7,
            2 => 6,
            3 => 2,
            4 => 1004,
            5 => 25,
            6 => 4,
            7 => (7 ^ 21) + 1000,
            8 => -8,
            9 => 72,
            10 => 74,
            _ => n % 3,
        }
    }
    on_all(|build, program| {
        let n = 64;
        let own = |i: i32| classify(i % 13);
        let expected = each(64, |i| {
            let mut sum = own(i) + own(i ^ 1);
            for k in (0..i % 7).filter(|&k| k != 3) {
                sum += if k & 1 == 1 { classify(k) } else { k };
                if sum > 2000 {
                    break;
                }
            }
            sum
        });
        same(&program.block("branches", 64, &[bytes(n)]), &expected, build);
    });
}

#[test]
fn printed_text_comes_in_block_order() {
    on_all(|build, program| {
        let report = program.launch("prints", shape(3, 40), &[bytes(0_u64), bytes(100_i32)]);
        let printed = report.unwrap_or_else(|stop| panic!("{build}: {stop}")).printed;
        let scientific = |value: f64| {
            let text = format!("{value:.1e}");
            let (digits, power) = text.split_once('e').expect("an exponent");
            format!("{digits}e+{power:0>2}")
        };
        let line = |i: i32| {
            let (block, quarter, large) = (i / 40, f64::from(i) / 4.0, scientific(f64::from(i) * 1e10));
            format!("print: thread {i:2} of block {block}, {quarter:.3}|{large}|{}%\n", -i)
        };
        let mut lines: Vec<String> = each(100, line);
        // The second call of the first warp.
        lines.insert(32, "plain\n".to_owned());
        let printed: Vec<&str> = printed.split_inclusive('\n').collect();
        same(&printed, &lines.iter().map(String::as_str).collect::<Vec<_>>(), build);
    });
}

#[test]
fn a_failed_assertion_stops_the_launch_with_its_text() {
    on_all(|build, program| {
        let out = program.upload(&[0_i32; 64]);
        let launch = |most: i32| program.launch("asserts", shape(1, 64), &[bytes(out), bytes(most)]);
        launch(64).unwrap_or_else(|stop| panic!("{build}: {stop}"));
        let stop = launch(40).expect_err("it fails");
        let Reason::Assertion { message, file, function, .. } = &stop.reason else { panic!("{build}: {stop}") };
        assert!(message.contains("threadIdx.x < most") && file.ends_with("programs.cu"), "{build}: {stop}");
        assert!(function.contains("asserts"), "{build}: {stop}");
        assert_eq!(stop.place.as_ref().expect("a place").thread, [40, 0, 0]);
        assert!(stop.to_string().contains("failed the assertion `"), "{build}: {stop}");
    });
}

#[test]
fn narrow_and_wide_types_keep_their_widths() {
    on_all(|build, program| {
        let data: Vec<u8> = (0..300).map(|i| (i * 37 % 256) as u8).collect();
        let (src, out) = (program.upload(&data), program.upload(&[0_i64; 32]));
        let args = [bytes(src), bytes(out), bytes(300_i32)];
        program.launch("widths", shape(1, 32), &args).unwrap_or_else(|stop| panic!("{build}: {stop}"));
        let expected = each(32, |i| {
            let own = (i as usize..300).step_by(32).map(|k| data[k]);
            let sum = own.clone().fold(0_i64, |sum, byte| sum * 31 - i64::from(byte));
            let last = own.fold(0_u16, |last, byte| last << 3 ^ u16::from(byte));
            sum / 7 - sum % 5 + i64::from(last)
        });
        same(&program.memory.download(out, 32).expect("it is there"), &expected, build);

        let (values, ints) = (each(128, |i| i as f32), each(64, |i| i));
        let (src, dst, pairs) = (program.upload(&values), program.upload(&values), program.upload(&ints));
        let args = [bytes(src), bytes(dst), bytes(pairs)];
        program.launch("vectors", shape(1, 32), &args).unwrap_or_else(|stop| panic!("{build}: {stop}"));
        let expected: Vec<f32> =
            values.chunks(4).flat_map(|four| [four[3], four[2], four[1] + 1.0, four[0] * 2.0]).collect();
        same(&program.memory.download(dst, 128).expect("it is there"), &expected, build);
        same(&program.memory.download(pairs, 64).expect("it is there"), &each(64, |i| i ^ 1), build);
    });
}
