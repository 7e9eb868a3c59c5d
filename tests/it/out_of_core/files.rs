//! Results that are not complete: what stays, and what goes on with it.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use warpstride::out_of_core::{Options, Summary};
use warpstride::{Device, ErrorKind, Result};

use super::{Files, budget, bytes, device, expected, read};

const SHAPE: [usize; 2] = [90, 70];
/// Some tiles of 400 bytes.
const MEMORY: usize = 12 * 400;

fn files() -> Files {
    Files::new("<f4", &SHAPE, &bytes(4 * 90 * 70))
}

/// The result of a transpose.
fn transposed() -> (Vec<usize>, Vec<u8>) {
    let data = bytes(4 * 90 * 70);
    let elements: Vec<&[u8]> = data.chunks(4).collect();
    (vec![70, 90], expected(&elements, &SHAPE, &[1, 0], false).concat())
}

/// Runs until some tiles are written, and is interrupted by a panic.
fn interrupt(files: &Files, device: &Device) {
    let told = AtomicU64::new(0);
    let progress = |bytes| {
        if told.fetch_add(bytes, Ordering::Relaxed) > 5_000 {
            panic!("as an interruption does");
        }
    };
    let options = Options { progress: Some(&progress), ..budget(MEMORY) };
    catch_unwind(AssertUnwindSafe(|| files.permute(device, &[1, 0], options))).expect_err("the panic");
    assert_eq!(files.names(), ["out.npy.incomplete", "out.npy.incomplete.json"]);
}

fn resume(files: &Files, device: &Device) -> Result<Summary> {
    files.permute(device, &[1, 0], Options { resume: true, ..budget(MEMORY) })
}

#[test]
fn an_interrupted_run_goes_on() {
    let (device, files) = (device(), files());
    interrupt(&files, &device);
    let error = files.permute(&device, &[1, 0], budget(MEMORY)).expect_err("a result is there");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("out.npy.incomplete is there from a run that was interrupted"), "{error}");
    assert!(error.to_string().contains("Options::resume"), "{error}");
    let told = AtomicU64::new(0);
    let progress = |bytes| {
        told.fetch_add(bytes, Ordering::Relaxed);
    };
    let options = Options { resume: true, progress: Some(&progress), ..budget(MEMORY) };
    let done = files.permute(&device, &[1, 0], options).expect("the rest");
    assert!((1..done.tiles).contains(&done.resumed_tiles), "{done:?}");
    assert_eq!(told.into_inner(), 4 * 90 * 70, "with what was there");
    assert!(read(&files.path("out.npy")) == transposed());
    assert_eq!(files.names(), ["out.npy"]);
}

#[test]
fn tiles_that_are_there_are_not_done_again() {
    let (device, files) = (device(), files());
    interrupt(&files, &device);
    let path = files.path("out.npy.incomplete");
    let mut data = fs::read(&path).expect("the data");
    let first = data.len() - 4 * 90 * 70;
    // The first element of the first tile.
    data[first] ^= 0xFF;
    fs::write(&path, &data).expect("room");
    resume(&files, &device).expect("the rest");
    let (_, mut result) = read(&files.path("out.npy"));
    result[0] ^= 0xFF;
    assert!(result == transposed().1);
}

#[test]
fn resume_begins_where_nothing_is() {
    let (device, files) = (device(), files());
    assert_eq!(resume(&files, &device).expect("a result").resumed_tiles, 0);
    assert!(read(&files.path("out.npy")) == transposed());
    // A run ended before it had a journal.
    fs::write(files.path("out.npy.incomplete"), b"some bytes").expect("room");
    assert!(files.permute(&device, &[1, 0], budget(MEMORY)).is_err());
    assert_eq!(resume(&files, &device).expect("a result").resumed_tiles, 0);
    assert!(read(&files.path("out.npy")) == transposed());
    // A run ended when the result had its name.
    fs::write(files.path("out.npy.incomplete.json"), b"a journal").expect("room");
    files.permute(&device, &[1, 0], budget(MEMORY)).expect("a result");
    assert_eq!(files.names(), ["out.npy"]);
}

#[test]
fn another_run_does_not_go_on() {
    let (device, files) = (device(), files());
    interrupt(&files, &device);
    let refused = |outcome: Result<Summary>, parts: &[&str]| {
        let error = outcome.expect_err("another run").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert_eq!(files.names(), ["out.npy.incomplete", "out.npy.incomplete.json"]);
    };
    let options = Options { resume: true, ..budget(MEMORY) };
    refused(files.permute(&device, &[0, 1], options), &["the order of axes was [1, 0] and is [0, 1]", "remove it"]);
    refused(files.permute(&device, &[1, 0], Options { resume: true, ..budget(1000) }), &["took 4", "may take 1000"]);
    let input = fs::OpenOptions::new().write(true).open(files.path("in.npy")).expect("the input");
    let before = input.metadata().and_then(|metadata| metadata.modified()).expect("its time");
    input.set_modified(before + Duration::from_secs(1)).expect("another time");
    refused(resume(&files, &device), &["the input was changed since"]);
    input.set_modified(before).expect("its time");
    resume(&files, &device).expect("the rest");
    assert!(read(&files.path("out.npy")) == transposed());
}

#[test]
fn a_pair_that_does_not_match_is_refused() {
    let (device, files) = (device(), files());
    interrupt(&files, &device);
    let (data, journal) = (files.path("out.npy.incomplete"), files.path("out.npy.incomplete.json"));
    let good = fs::read_to_string(&journal).expect("the journal");
    let refused = |text: &str, part: &str| {
        fs::write(&journal, text).expect("room");
        let error = resume(&files, &device).expect_err(part);
        assert!(error.to_string().contains(part) && error.kind() == ErrorKind::Io, "{error}");
    };
    refused("", "is not the journal of an interrupted run");
    refused(&good[..good.len() / 2], "to begin anew");
    let tiles = good.split_once("\"tiles\": ").and_then(|(_, rest)| rest.split_once(',')).expect("tiles").0;
    refused(&good.replace(&format!("\"tiles\": {tiles}"), "\"tiles\": 1000000"), "its tiles are not those");
    fs::write(&journal, &good).expect("room");
    let bytes = fs::read(&data).expect("the data");
    fs::write(&data, &bytes[1..]).expect("room");
    let error = resume(&files, &device).expect_err("a shorter file");
    assert!(error.to_string().contains("not the file that its journal describes"), "{error}");
}

/// Calls `change` on the input's file when some tiles are done.
fn changed(files: &Files, device: &Device, change: impl Fn(&fs::File) + Sync) -> String {
    let input = fs::OpenOptions::new().write(true).open(files.path("in.npy")).expect("the input");
    let progress = |_| change(&input);
    let options = Options { progress: Some(&progress), ..budget(MEMORY) };
    let error = files.permute(device, &[1, 0], options).expect_err("a changed input").to_string();
    assert_eq!(files.names(), ["out.npy.incomplete", "out.npy.incomplete.json"]);
    error
}

#[test]
fn an_input_that_changes_is_an_error() {
    let device = device();
    let error = changed(&files(), &device, |input| input.set_len(1000).expect("a shorter file"));
    assert!(error.contains("in.npy: it has become shorter"), "{error}");
    let later = SystemTime::now() + Duration::from_secs(9);
    let error = changed(&files(), &device, |input| input.set_modified(later).expect("a time"));
    assert!(error.contains("in.npy was changed while it was read"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn two_runs_do_not_write_one_result() {
    let (device, files) = (device(), files());
    let error = std::sync::Mutex::new(None);
    let progress = |_| {
        error.lock().expect("a lock").get_or_insert_with(|| resume(&files, &self::device()).expect_err("locked"));
    };
    files.permute(&device, &[1, 0], Options { progress: Some(&progress), ..budget(MEMORY) }).expect("a result");
    let error = error.into_inner().expect("a lock").expect("an error").to_string();
    assert!(error.contains("another run writes") && error.contains("out.npy.incomplete"), "{error}");
    assert!(read(&files.path("out.npy")) == transposed());
}

#[test]
#[cfg(unix)]
fn the_result_is_private_as_the_one_before() {
    use std::os::unix::fs::PermissionsExt;

    let (device, files) = (device(), files());
    fs::write(files.path("out.npy"), b"old").expect("room");
    fs::set_permissions(files.path("out.npy"), fs::Permissions::from_mode(0o640)).expect("a mode");
    let mode = |name: &str| fs::metadata(files.path(name)).expect("a file").permissions().mode() & 0o7777;
    let seen = AtomicU64::new(0);
    let progress = |_| seen.store(mode("out.npy.incomplete").into(), Ordering::Relaxed);
    files.permute(&device, &[1, 0], Options { progress: Some(&progress), ..budget(MEMORY) }).expect("a result");
    assert_eq!((seen.into_inner(), mode("out.npy")), (0o600, 0o640));
}
