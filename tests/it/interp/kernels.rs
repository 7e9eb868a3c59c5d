//! The crate's own kernels, on the interpreter alone.

use warpstride::abi::{self, ColumnParams, CopyParams, Entry, Index, LaunchShape, TransposeParams};
use warpstride::interp::{Checks, Config, Memory, Module, run};
use warpstride::ptx;

#[test]
fn every_entry_is_supported_and_takes_what_the_host_passes() {
    let module = Module::parse(ptx::TEXT).expect("it parses");
    for entry in abi::ENTRIES {
        let kernel = module.kernel(entry.name).unwrap_or_else(|| panic!("{} is missing", entry.name));
        kernel.supported().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kernel.param_bytes(), entry.param_bytes, "{}", entry.name);
    }
}

fn bytes_of(params: &TransposeParams) -> Vec<u8> {
    let TransposeParams { src, dst, rows, cols, src_row_stride, src_col_stride, dst_row_stride, dst_col_stride } =
        *params;
    let strides = [src_row_stride, src_col_stride, dst_row_stride, dst_col_stride].map(|stride| stride as u64);
    [src, dst, rows, cols].into_iter().chain(strides).flat_map(u64::to_le_bytes).collect()
}

/// Each variant of each width transposes a matrix with ragged edges, whatever the number of host threads.
#[test]
fn transposes_are_right_for_any_number_of_threads() {
    let module = Module::parse(ptx::TEXT).expect("it parses");
    let (rows, cols) = (77_usize, 45_usize);
    for (family, index) in [abi::NAIVE, abi::TILED, abi::PADDED, abi::STAGGERED]
        .into_iter()
        .flat_map(|family| [(family, Index::Narrow), (family, Index::Wide)])
    {
        for width in abi::WIDTHS {
            let name = family.entry(width, index).expect("a width").name();
            let kernel = module.kernel(name).expect("an entry");
            let data: Vec<u8> = (0..rows * cols * width).map(|i| (i * 7 + i / 251) as u8).collect();
            let mut reports = Vec::new();
            for (threads, checks) in [(1, Checks::NONE), (2, Checks::NONE), (7, Checks::NONE), (0, Checks::ALL)] {
                let memory = Memory::new(1 << 20);
                let src = memory.alloc(data.len() as u64).expect("it fits");
                let dst = memory.alloc(data.len() as u64).expect("it fits");
                memory.write(src, &data).expect("it is there");
                let params = TransposeParams {
                    src,
                    dst,
                    rows: rows as u64,
                    cols: cols as u64,
                    src_row_stride: cols as i64,
                    src_col_stride: 1,
                    dst_row_stride: rows as i64,
                    dst_col_stride: 1,
                };
                let grid = [cols.div_ceil(32) as u32, rows.div_ceil(32) as u32, 1];
                let shape = LaunchShape { grid, block: [32, abi::TILE_ROWS, 1], dynamic_shared: 0 };
                let config = Config { threads, checks, ..Config::default() };
                let report = run(kernel, &shape, &bytes_of(&params), &memory, &config);
                reports.push(report.unwrap_or_else(|stop| panic!("{stop}")));
                let mut out = vec![0; data.len()];
                memory.read(dst, &mut out).expect("it is there");
                for (r, c) in (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))) {
                    let (from, to) = ((r * cols + c) * width, (c * rows + r) * width);
                    assert_eq!(out[to..to + width], data[from..from + width], "{name} at {r}, {c}");
                }
            }
            assert!(reports.iter().all(|report| *report == reports[0]), "{name}: the report, in which is no finding");
        }
    }
}

/// Panics, checked arithmetic and every value in memory: what a debug build adds. `scripts/debug-kernels` makes one.
#[test]
#[ignore = "needs a debug build of the kernels; run scripts/debug-kernels"]
fn a_debug_build_of_every_kernel_is_right() {
    let path = std::env::var_os("WARPSTRIDE_DEBUG_KERNELS").expect("WARPSTRIDE_DEBUG_KERNELS names the PTX");
    let text = std::fs::read_to_string(&path).expect("the PTX is there");
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    for entry in abi::ENTRIES {
        let kernel = module.kernel(entry.name).unwrap_or_else(|| panic!("{} is missing", entry.name));
        let (size, params, shape, expected, memory) = small_launch(entry);
        let dst = memory.alloc(size).expect("it fits");
        memory.fill(dst, 0, size).expect("it is there");
        let report = run(kernel, &shape, &params(dst), &memory, &Config::default());
        report.unwrap_or_else(|stop| panic!("{stop}"));
        let mut out = vec![0; size as usize];
        memory.read(dst, &mut out).expect("it is there");
        assert!(out == expected, "{}: it wrote something else", entry.name);
    }
}

/// A launch of few elements: bytes of the destination, the parameters that it makes, the shape, and what is written.
#[allow(clippy::type_complexity)]
fn small_launch(entry: &Entry) -> (u64, Box<dyn Fn(u64) -> Vec<u8>>, LaunchShape, Vec<u8>, Memory) {
    let memory = Memory::new(1 << 20);
    let of = |family: abi::Family| {
        let both = [Index::Narrow, Index::Wide].into_iter();
        let all = both.flat_map(move |index| abi::WIDTHS.map(|width| (width, family.entry(width, index))));
        all.into_iter().find(|(_, found)| found.is_some_and(|found| found.entry() == entry)).map(|(width, _)| width)
    };
    let shape = |grid, block| LaunchShape { grid, block, dynamic_shared: 0 };
    let fresh = |bytes: usize| -> (Vec<u8>, u64) {
        let data: Vec<u8> = (0..bytes).map(|i| (i * 7 + i / 251) as u8).collect();
        let address = memory.upload(&data).expect("it fits");
        (data, address)
    };
    let words = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    if entry.name == "spin" {
        let params = move |_| words(&[1000]);
        return (1, Box::new(params), shape([1, 1, 1], [1, 1, 1]), vec![0], memory);
    }
    if of(abi::COPY).is_some() {
        let (data, src) = fresh(16 * 1100 + 5);
        let params = move |dst| {
            let CopyParams { src, dst, bytes } = CopyParams { src, dst, bytes: 16 * 1100 + 5 };
            words(&[src, dst, bytes])
        };
        return (data.len() as u64, Box::new(params), shape([18, 1, 1], [abi::COPY_BLOCK, 1, 1]), data, memory);
    }
    if let Some(width) = of(abi::COLUMN_LOOP) {
        let (len, step) = (300, 3);
        let (data, src) = fresh(len * step * width);
        let params = move |dst| {
            let params = ColumnParams { src, dst, len: len as u64, src_stride: step as i64, dst_stride: 1 };
            words(&[params.src, params.dst, params.len, params.src_stride as u64, params.dst_stride as u64])
        };
        let column = data.chunks(width).step_by(step).flatten().copied().collect();
        return ((len * width) as u64, Box::new(params), shape([2, 1, 1], [abi::COLUMN_BLOCK, 1, 1]), column, memory);
    }
    let families = [abi::NAIVE, abi::TILED, abi::PADDED, abi::STAGGERED];
    let width = families.into_iter().find_map(of).unwrap_or_else(|| panic!("{} is of no known family", entry.name));
    let (rows, cols) = (37, 45);
    let (data, src) = fresh(rows * cols * width);
    let params = move |dst| {
        bytes_of(&TransposeParams {
            src,
            dst,
            rows: rows as u64,
            cols: cols as u64,
            src_row_stride: cols as i64,
            src_col_stride: 1,
            dst_row_stride: rows as i64,
            dst_col_stride: 1,
        })
    };
    let element = |i: usize| i % rows * cols + i / rows;
    let turned = (0..rows * cols).flat_map(|i| data[element(i) * width..][..width].to_vec()).collect();
    (data.len() as u64, Box::new(params), shape([2, 2, 1], [32, abi::TILE_ROWS, 1]), turned, memory)
}
