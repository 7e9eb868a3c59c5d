//! The crate's own kernels, on the interpreter alone.

use warpstride::abi::{self, Index, TransposeParams};
use warpstride::interp::{Checks, Config, Memory, Module, run};
use warpstride::launch_shape::LaunchShape;
use warpstride::ptx;

#[test]
fn every_entry_is_supported_and_takes_what_the_host_passes() {
    let module = Module::parse(&ptx::text()).expect("it parses");
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

/// Each variant of each width transposes a matrix with ragged edges, and its report is the same,
/// whatever the number of host threads, even more than there are cores.
#[test]
fn transposes_are_right_for_any_number_of_threads() {
    let module = Module::parse(&ptx::text()).expect("it parses");
    let (rows, cols) = (200_usize, 333_usize);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().expect("threads");
    for (family, index) in [abi::NAIVE, abi::TILED, abi::PADDED, abi::STAGGERED]
        .into_iter()
        .flat_map(|family| [(family, Index::Narrow), (family, Index::Wide)])
    {
        for width in abi::WIDTHS {
            let name = family.entry(width, index).expect("a width").name();
            let kernel = module.kernel(name).expect("an entry");
            let data: Vec<u8> = (0..rows * cols * width).map(|i| (i * 7 + i / 251) as u8).collect();
            let mut reports = Vec::new();
            for (threads, checks) in
                [(1, Checks::NONE), (2, Checks::NONE), (3, Checks::NONE), (8, Checks::NONE), (0, Checks::ALL)]
            {
                let memory = Memory::new(1 << 22);
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
                let report = pool.install(|| run(kernel, &shape, &bytes_of(&params), &memory, &config));
                reports.push(report.unwrap_or_else(|stop| panic!("{stop}")));
                let mut out = vec![0; data.len()];
                memory.read(dst, &mut out).expect("it is there");
                for (r, c) in (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))) {
                    let (from, to) = ((r * cols + c) * width, (c * rows + r) * width);
                    assert_eq!(out[to..to + width], data[from..from + width], "{name} at {r}, {c}");
                }
            }
            assert!(reports.iter().all(|report| *report == reports[0]), "{name}: the report, which has no finding");
        }
    }
}
