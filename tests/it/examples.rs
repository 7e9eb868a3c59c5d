//! The examples run, and print what their prose promises.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs an example that cargo built beside the tests and returns what it printed.
#[track_caller]
fn example(name: &str) -> String {
    let tests = std::env::current_exe().expect("this program");
    let binary: PathBuf = tests.ancestors().nth(2).expect("target/PROFILE").join("examples").join(name);
    assert!(
        binary.exists(),
        "{} is not there: `cargo test` makes it, `cargo test --test it` alone does not; run `cargo build --examples` before, \
         with the same profile",
        binary.display()
    );
    let output = Command::new(&binary).stdin(Stdio::null()).output().expect("the example starts");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The words of the line that begins with `name`.
#[track_caller]
fn line<'a>(printed: &'a str, name: &str) -> Vec<&'a str> {
    let found = printed.lines().rev().find(|line| line.trim_start().starts_with(name));
    found.unwrap_or_else(|| panic!("no line {name:?} in {printed}")).split_whitespace().collect()
}

#[test]
fn example_1_copies() {
    let printed = example("01_open_and_copy");
    assert!(printed.contains("1000000 numbers copied, all equal: true"), "{printed}");
}

#[test]
fn example_2_moves_nothing() {
    let printed = example("02_transpose_moves_nothing");
    assert!(printed.contains("its view .t(): shape [4, 3], strides [1, 4], memory [0, 1, 2, 3,"), "{printed}");
    assert!(printed.contains("same memory: true"), "{printed}");
    assert!(printed.contains("moved by a kernel: shape [4, 3], strides [3, 1], memory [0, 4, 8, 1,"), "{printed}");
}

#[test]
fn example_3_shows_the_wasted_sectors() {
    let printed = example("03_why_naive_is_slow");
    assert_eq!(line(&printed, "1 byte ")[2..], ["1", "32", "32.00x", "3.125", "%"]);
    assert_eq!(line(&printed, "4 bytes")[2..], ["4", "32", "8.00x", "12.5", "%"]);
    assert_eq!(line(&printed, "16 bytes")[2..], ["16", "32", "2.00x", "50", "%"]);
}

#[test]
fn example_4_spreads_a_column_over_the_banks() {
    let printed = example("04_tile_pad_stagger");
    // 256 * 256 / 32 reads of a column, 31 passes too many each.
    assert_eq!(line(&printed, "tiled "), ["tiled", "1.00x", "1.00x", "63488"]);
    assert_eq!(line(&printed, "padded "), ["padded", "1.00x", "1.00x", "0"]);
    assert_eq!(line(&printed, "staggered "), ["staggered", "1.00x", "1.00x", "0"]);
}

#[test]
fn example_5_tests_a_kernel_of_its_own() {
    let printed = example("05_test_your_own_ptx");
    assert!(printed.contains("places 4 bytes apart: 0 bank conflicts"), "{printed}");
    assert!(printed.contains("places 8 bytes apart: 1 bank conflict\n"), "{printed}");
    assert!(printed.contains("PTX line 22: ld.shared.f32 %f2, [%r6]\n"), "{printed}");
    // The second row of the drawing: lanes 15 to 0 in every second bank.
    assert_eq!(line(&printed, "words")[2..], ["2"; 16].into_iter().chain(["│"]).collect::<Vec<_>>(), "{printed}");
}

#[test]
#[cfg(feature = "cudarc")]
fn example_6_uses_cudarcs_memory_where_there_is_a_gpu() {
    let printed = example("06_cudarc");
    match &warpstride::device::probe()[0].info {
        Ok(_) => assert!(printed.contains("transposed on its second stream: right"), "{printed}"),
        Err(reason) => assert!(printed.contains(&format!("needs an NVIDIA GPU: {reason}")), "{printed}"),
    }
}

#[test]
fn example_7_holds_a_kernel_of_its_own_against_the_device() {
    let printed = example("07_how_far_is_your_kernel");
    let by_device = ["no GB/s without a GPU, but this: 4096 sectors of 32 bytes, and 4096 would", "% of it"];
    assert!(by_device.iter().any(|part| printed.contains(part)), "{printed}");
}

#[test]
fn example_8_copies_from_every_kind_of_memory() {
    let printed = example("08_pinned_memory");
    for kind in ["pageable", "pinned", "registered", "write-combined"] {
        assert!(line(&printed, kind).ends_with(&["right:", "true"]), "{printed}");
    }
    assert!(printed.contains("bytes in use; after the drop 0 in use"), "{printed}");
}

#[test]
fn example_9_reads_after_the_wait() {
    let printed = example("09_the_corrupted_read");
    assert!(printed.contains("in a scope: maximum error 0.0\n"), "{printed}");
    assert!(printed.contains("in flight: maximum error 0.0,"), "{printed}");
    let by_device = ["read too early: maximum error 8.0; after the wait 0.0", "the early read is a race on a GPU"];
    assert!(by_device.iter().any(|part| printed.contains(part)), "{printed}");
}

#[test]
fn example_10_takes_memory_again() {
    let printed = example("10_caching_allocator");
    assert!(printed.contains("3000 results: 1 address, 0 calls that can wait"), "{printed}");
    assert!(printed.contains("a list of 511 results ends:"), "{printed}");
    let (before, _) = printed.split_once(" holds 8176 KiB").expect("the results are the largest");
    assert!(before.lines().last().is_some_and(|line| line.contains("10_caching_allocator.rs:")), "{printed}");
    assert_eq!(printed.matches("all right: true").count(), 3, "{printed}");
    assert!(printed.contains("alone: the producer waits 0 times"), "{printed}");
    let (_, waits) = printed.split_once("held back: the producer waits ").expect("it says so");
    let waits = waits.split(' ').next().and_then(|waits| waits.parse().ok());
    assert!(waits.is_some_and(|waits: u32| (10..1000).contains(&waits)), "{printed}");
}

#[test]
fn example_11_launches_a_hundred_kernels_with_one_call() {
    let printed = example("11_graph");
    assert!(printed.contains("captured: 100 nodes"), "{printed}");
    assert_eq!(line(&printed, "loop"), ["loop", "1000", "0", "0"]);
    assert_eq!(line(&printed, "graph"), ["graph", "0", "10", "0"]);
    assert!(printed.contains("planes are right: true"), "{printed}");
    assert!(printed.contains("updated in place: true, and planes are right: true"), "{printed}");
}

#[test]
#[cfg(feature = "pipeline")]
fn example_12_runs_every_mode() {
    let printed = example("12_pipeline_modes");
    for mode in ["blocking", "async", "streams", "graph"] {
        let words = line(&printed, mode);
        let slots = if mode == "blocking" { "1" } else { "6" };
        assert_eq!((words[1], words.last()), (slots, Some(&"true")), "{printed}");
        assert_eq!(words[2] == "0", mode != "blocking", "{printed}");
    }
    assert!(printed.contains("the timeline has 16 spans of work"), "{printed}");
}

#[test]
#[cfg(feature = "pipeline")]
fn example_13_goes_on_after_an_interruption() {
    let printed = example("13_larger_than_the_gpu");
    assert_eq!(printed.matches("%").count(), 4, "{printed}");
    let budgets = printed.lines().filter(|line| line.contains(" KiB "));
    assert!(budgets.clone().count() == 4 && budgets.clone().all(|line| line.ends_with("true")), "{printed}");
    assert!(printed.contains("interrupted: true, and out.npy is there: false"), "{printed}");
    assert!(printed.contains("out.npy.incomplete and out.npy.incomplete.json"), "{printed}");
    let resumed = line(&printed, "resumed after");
    assert!(resumed[2] != "0" && resumed.ends_with(&["right:", "true"]), "{printed}");
}

#[test]
#[cfg(feature = "pipeline")]
fn example_14_normalises_images() {
    let printed = example("14_image_loader");
    assert!(printed.contains("10 images of 24 x 32 pixels, 0 other files"), "{printed}");
    assert!(printed.contains("3 batches, 10 images normalised"), "{printed}");
    assert!(printed.contains("those of a CPU: true"), "{printed}");
}

#[test]
#[cfg(feature = "pipeline")]
fn example_15_loads_a_file_and_saves_the_result() {
    let printed = example("15_numpy_file");
    assert!(printed.contains("[2, 3] f32 became [3, 2]: [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]"), "{printed}");
}

#[test]
#[cfg(feature = "pipeline")]
fn example_16_adds_a_row_and_subtracts_the_means() {
    let printed = example("16_numpy_arithmetic");
    assert!(printed.contains("the means of [2, 3]: [13.0, 24.0, 35.0]"), "{printed}");
    assert!(printed.contains("without them: [-2.0, -2.0, -2.0, 2.0, 2.0, 2.0]"), "{printed}");
}
