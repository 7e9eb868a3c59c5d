//! Re-exports the crate, with another software GPU. That one writes the calls of the first device
//! of a program into the file that `WARPSTRIDE_CALLS` names, one a line, when the program ends.

pub use recorded::*;

/// The crate's drivers, with another software GPU.
pub mod driver {
    pub use recorded::driver::*;

    /// The software GPU, and a record of its calls.
    pub mod soft {
        use std::cell::OnceCell;
        use std::fmt::Write;
        use std::sync::Arc;
        use std::{env, fs};

        pub use recorded::driver::soft::Config;
        use recorded::driver::trace::Trace;

        /// Opens software GPUs as the crate's type of this name does.
        pub struct Soft;

        impl Soft {
            pub fn with_seed(seed: u64) -> Trace {
                Self::with_config(Config { seed, ..Config::default() })
            }

            pub fn with_config(config: Config) -> Trace {
                let calls = Arc::new(Trace::new(Arc::new(recorded::driver::soft::Soft::with_config(config))));
                FIRST.with(|first| {
                    // Checks open one device after the other; the first one's calls are enough.
                    let _ = first.set(Record(calls.clone()));
                });
                Trace::new(calls)
            }
        }

        thread_local! {
            /// Dropped when the program ends, behind the device's last call.
            static FIRST: OnceCell<Record> = const { OnceCell::new() };
        }

        struct Record(Arc<Trace>);

        impl Drop for Record {
            fn drop(&mut self) {
                let mut lines = String::new();
                for call in self.0.calls() {
                    writeln!(lines, "{call}").expect("a string grows");
                }
                let file = env::var_os("WARPSTRIDE_CALLS").expect("WARPSTRIDE_CALLS names a file");
                fs::write(file, lines).expect("the file can be written");
            }
        }
    }
}
