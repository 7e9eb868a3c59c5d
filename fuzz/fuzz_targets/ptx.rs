//! Parses, lowers and launches any text within limits, or refuses it. Nothing may panic, hang or
//! exhaust the host's memory.
//!
//! ```text
//! cargo install cargo-fuzz
//! mkdir -p fuzz/corpus/ptx && cp interp/tests/data/*.ptx src/ptx/*.ptx fuzz/corpus/ptx
//! cargo +nightly fuzz run ptx -- -max_len=16384 -timeout=10 -rss_limit_mb=2048
//! ```

#![no_main]

use libfuzzer_sys::fuzz_target;
use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::{Config, Memory, Module, run};

fuzz_target!(|text: &str| {
    let Ok(module) = Module::parse(text) else { return };
    for kernel in module.kernels().take(4) {
        let memory = Memory::new(1 << 20);
        let buffer = memory.alloc(4096).expect("it fits");
        memory.fill(buffer, 0, 4096).expect("it is there");
        // Each aligned 8 bytes of the parameters hold the buffer's address.
        let params: Vec<u8> = buffer.to_le_bytes().into_iter().cycle().take(kernel.param_bytes().min(8192)).collect();
        let shape = LaunchShape { grid: [2, 1, 2], block: [33, 2, 1], dynamic_shared: 64 };
        let limits = Config { work_limit: 200_000, ..Config::default() };
        let config = Config { threads: 1, ..limits };
        if let Err(stop) = run(kernel, &shape, &params, &memory, &config) {
            assert!(!stop.to_string().is_empty());
        }
    }
});
