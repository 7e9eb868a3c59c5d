//! Results that are not complete: what stays, and what goes on with it.

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use warpstride::io::{ArrayFile, Destination, npy};
use warpstride::out_of_core::{self, Options, Summary};
use warpstride::{Device, Error, ErrorKind, Result};

use super::{Files, budget, bytes, device, expected, read};

const SHAPE: [usize; 2] = [90, 70];
/// Some tiles of 400 bytes.
const MEMORY: usize = 12 * 400;
/// The pair of a run that is not complete.
const DATA: &str = "out.npy.incomplete";
const JOURNAL: &str = "out.npy.incomplete.json";

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
    assert_eq!(files.names(), [DATA, JOURNAL]);
}

fn interrupted() -> (Device, Files) {
    let (device, files) = (device(), files());
    interrupt(&files, &device);
    (device, files)
}

fn resume(files: &Files, device: &Device) -> Result<Summary> {
    files.permute(device, &[1, 0], Options { resume: true, ..budget(MEMORY) })
}

/// Transposes what is read.
fn transpose(input: &npy::Reader, output: &Path, device: &Device, is_resumed: bool) -> Result<Summary> {
    let destination = Destination::new(output).expect("a path");
    out_of_core::permute_file(device, input, &[1, 0], &destination, Options { resume: is_resumed, ..budget(MEMORY) })
}

/// The run failed with a sentence that has these parts.
#[track_caller]
fn failed(outcome: Result<Summary>, parts: &[&str]) -> Error {
    let error = outcome.expect_err(parts[0]);
    assert!(parts.iter().all(|part| error.to_string().contains(part)), "{parts:?} are not in {error}");
    error
}

/// Opens a file that is there, so that a test can change it.
fn opened(files: &Files, name: &str) -> fs::File {
    fs::OpenOptions::new().write(true).open(files.path(name)).expect("the file")
}

#[test]
fn an_interrupted_run_goes_on() {
    let (device, files) = interrupted();
    let parts = ["out.npy.incomplete is there from a run that was interrupted", "Options::resume"];
    let error = failed(files.permute(&device, &[1, 0], budget(MEMORY)), &parts);
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
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
    let (device, files) = interrupted();
    let path = files.path(DATA);
    let mut data = fs::read(&path).expect("the data");
    // The first element of the first tile, behind the room of the header.
    data[128] ^= 0xFF;
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
    // A run ended before it had made its file, or when the result had its name.
    for is_resumed in [false, true] {
        fs::remove_file(files.path("out.npy")).expect("removing it");
        interrupt(&files, &device);
        fs::remove_file(files.path(DATA)).expect("removing it");
        let options = Options { resume: is_resumed, ..budget(MEMORY) };
        assert_eq!(files.permute(&device, &[1, 0], options).expect("a result").resumed_tiles, 0);
        assert!(read(&files.path("out.npy")) == transposed());
        assert_eq!(files.names(), ["out.npy"]);
    }
}

/// Both kinds of run refuse a file beside the destination with a sentence that has `part`, and
/// leave it there.
fn refused(files: &Files, device: &Device, part: &str) {
    let before = files.names();
    for is_resumed in [false, true] {
        let options = Options { resume: is_resumed, ..budget(MEMORY) };
        failed(files.permute(device, &[1, 0], options), &[part]);
        assert_eq!(files.names(), before);
    }
}

#[test]
fn other_files_of_these_names_stay() {
    let (device, files) = (device(), files());
    let (data, journal) = (files.path(DATA), files.path(JOURNAL));
    fs::write(&data, b"some bytes").expect("room");
    refused(&files, &device, "no journal beside it");
    fs::write(&journal, b"some journal").expect("room");
    refused(&files, &device, "is not the journal of an interrupted run");
    assert_eq!(fs::read(&data).expect("the file"), b"some bytes");
    fs::remove_file(&data).expect("removing it");
    refused(&files, &device, "is not the journal of an interrupted run");
    assert_eq!(fs::read(&journal).expect("the file"), b"some journal");
    for path in [&journal, &data] {
        let _ = fs::remove_file(&journal);
        fs::create_dir(path).expect("a folder");
        refused(&files, &device, "is not a regular file");
        fs::remove_dir(path).expect("removing it");
    }
    assert!(files.names().is_empty());
}

#[test]
#[cfg(unix)]
fn links_and_pipes_of_these_names_stay() {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    let (device, files) = (device(), files());
    fs::write(files.path("precious"), b"precious").expect("room");
    for name in [DATA, JOURNAL] {
        for target in ["precious", "nothing"] {
            symlink(files.path(target), files.path(name)).expect("a link");
            refused(&files, &device, "is not a regular file");
            fs::remove_file(files.path(name)).expect("removing it");
        }
        assert!(Command::new("mkfifo").arg(files.path(name)).status().expect("mkfifo").success());
        refused(&files, &device, "is not a regular file");
        fs::remove_file(files.path(name)).expect("removing it");
    }
    fs::hard_link(files.path("precious"), files.path(DATA)).expect("a link");
    refused(&files, &device, "no journal beside it");
    // A journal does not make it ours.
    let other = self::files();
    interrupt(&other, &device);
    fs::copy(other.path(JOURNAL), files.path(JOURNAL)).expect("a copy");
    resume(&files, &device).expect_err("another file");
    assert_eq!(fs::read(files.path("precious")).expect("the file"), b"precious");
}

#[test]
fn the_input_is_none_of_the_pair() {
    let (device, files) = (device(), files());
    for name in [DATA, JOURNAL] {
        fs::copy(files.path("in.npy"), files.path(name)).expect("a copy");
        for is_resumed in [false, true] {
            let input = npy::Reader::open(files.path(name)).expect("an array");
            let outcome = transpose(&input, &files.path("out.npy"), &device, is_resumed);
            failed(outcome, &["is the input", "name another output"]);
            assert!(read(&files.path(name)) == read(&files.path("in.npy")));
        }
        fs::remove_file(files.path(name)).expect("removing it");
    }
}

#[test]
fn a_name_that_would_be_too_long_is_refused() {
    let (device, files) = (device(), files());
    let input = npy::Reader::open(files.path("in.npy")).expect("an array");
    let outcome = transpose(&input, &files.path(&"x".repeat(250)), &device, false);
    failed(outcome, &["name a shorter output"]);
    assert!(files.names().is_empty());
}

/// Runs, and calls `change` once when some tiles are done. Returns the error.
fn changed_once(files: &Files, change: impl Fn() + Sync) -> String {
    let told = AtomicU64::new(0);
    let progress = |bytes: u64| {
        let before = told.fetch_add(bytes, Ordering::Relaxed);
        if before < 5_000 && before + bytes >= 5_000 {
            change();
        }
    };
    let options = Options { progress: Some(&progress), ..budget(MEMORY) };
    let error = files.permute(&device(), &[1, 0], options).expect_err("a change of the pair").to_string();
    assert!(!files.path("out.npy").exists(), "{error}");
    error
}

#[test]
fn a_run_whose_file_was_removed_completes_no_other_one() {
    let (device, files) = (device(), files());
    let error = changed_once(&files, || {
        for name in files.names() {
            fs::remove_file(files.path(&name)).expect("removing it");
        }
        // Another run leaves a part of the same result.
        interrupt(&files, &self::device());
    });
    assert!(error.contains("has removed, replaced or renamed") && !error.contains("resume"), "{error}");
    assert_eq!(files.names(), [DATA, JOURNAL]);
    // With the journal that is its own.
    let done = resume(&files, &device).expect("the rest");
    assert!((1..done.tiles).contains(&done.resumed_tiles), "{done:?}");
    assert!(read(&files.path("out.npy")) == transposed());
}

#[test]
fn a_file_that_is_cut_short_is_no_result() {
    // To the length of the file, or to that of the result.
    for (len, then) in [(0, None), (1000, None), (4 * 90 * 70, None), (1000, Some(0)), (1000, Some(128)), (0, Some(0))]
    {
        let files = files();
        let error = changed_once(&files, || {
            let data = opened(&files, DATA);
            let before = data.metadata().expect("its length").len();
            data.set_len(len).expect("a shorter file");
            then.map_or(Ok(()), |less| data.set_len(before - less)).expect("a longer file");
        });
        assert!(error.contains("has cut") && !error.contains("resume"), "{error}");
        // The journal may count no tile yet, and then all of them are done again.
        match resume(&files, &device()) {
            Ok(done) => assert!(done.resumed_tiles == 0 && read(&files.path("out.npy")) == transposed(), "{done:?}"),
            Err(error) => assert!(error.to_string().contains("to begin anew"), "{error}"),
        }
    }
}

#[test]
#[cfg(unix)]
fn a_journal_follows_no_link_and_replaces_no_file_of_others() {
    for is_link in [true, false] {
        let files = files();
        let (journal, precious) = (files.path(JOURNAL), files.path("precious"));
        fs::write(&precious, b"precious").expect("room");
        let error = changed_once(&files, || {
            fs::remove_file(&journal).expect("the journal");
            if is_link {
                std::os::unix::fs::symlink(&precious, &journal).expect("a link");
            } else {
                fs::hard_link(&precious, &journal).expect("a link");
            }
        });
        assert!(error.contains("out.npy.incomplete.json is "), "{error}");
        assert!(!error.contains("goes on with it"), "{error}");
        assert_eq!(fs::symlink_metadata(&journal).expect("it stays").is_symlink(), is_link);
        assert_eq!(fs::read(&precious).expect("the file"), b"precious");
        assert_eq!(fs::read(&journal).expect("the file"), b"precious");
    }
}

#[test]
fn a_run_that_ended_before_it_had_a_journal_begins_anew() {
    let (device, files) = interrupted();
    fs::remove_file(files.path(JOURNAL)).expect("the journal");
    failed(files.permute(&device, &[1, 0], budget(MEMORY)), &["no journal beside it"]);
    assert_eq!(resume(&files, &device).expect("a result").resumed_tiles, 0);
    assert!(read(&files.path("out.npy")) == transposed());
    assert_eq!(files.names(), ["out.npy"]);
}

#[test]
fn a_run_that_ended_before_it_had_room_goes_on() {
    let (device, files) = interrupted();
    let journal = files.path(JOURNAL);
    let text = fs::read_to_string(&journal).expect("the journal");
    let (before, _) = text.split_once("\"done\"").expect("a number");
    fs::write(&journal, format!("{before}\"done\": 0\n}}\n")).expect("room");
    opened(&files, DATA).set_len(128).expect("a shorter file");
    assert_eq!(resume(&files, &device).expect("a result").resumed_tiles, 0);
    assert!(read(&files.path("out.npy")) == transposed());
}

#[test]
fn a_run_that_ended_while_its_result_went_to_the_disk_goes_on() {
    for is_cut in [false, true] {
        let (device, files) = interrupted();
        // A result gets its header before all of it is on the disk, and loses its end mark after.
        let (shape, elements) = transposed();
        let mut whole = Vec::new();
        npy::write(&mut whole, "<f4", &shape, &elements).expect("room");
        let mut data = opened(&files, DATA);
        data.write_all(&whole[..whole.len() - elements.len()]).expect("room");
        if is_cut {
            data.set_len(whole.len() as u64).expect("a shorter file");
            failed(resume(&files, &device), &["not the file that its journal describes"]);
        } else {
            assert!(resume(&files, &device).expect("the rest").resumed_tiles > 0);
            assert!(read(&files.path("out.npy")) == (shape, elements));
            assert_eq!(files.names(), ["out.npy"]);
        }
    }
}

#[test]
fn a_journal_is_of_one_file() {
    let (device, files) = interrupted();
    // Until it is complete, nothing takes it for an array.
    let error = npy::Reader::open(files.path(DATA)).expect_err("a part").to_string();
    assert!(error.contains("is not a .npy file"), "{error}");
    let journal = fs::read(files.path(JOURNAL)).expect("the journal");
    for name in files.names() {
        fs::remove_file(files.path(&name)).expect("removing it");
    }
    interrupt(&files, &device);
    fs::write(files.path(JOURNAL), journal).expect("room");
    failed(resume(&files, &device), &["not the file that its journal describes"]);
}

#[test]
fn another_run_does_not_go_on() {
    let (device, files) = interrupted();
    let refused = |outcome: Result<Summary>, parts: &[&str]| {
        failed(outcome, parts);
        assert_eq!(files.names(), [DATA, JOURNAL]);
    };
    let options = Options { resume: true, ..budget(MEMORY) };
    refused(files.permute(&device, &[0, 1], options), &["the order of axes was [1, 0] and is [0, 1]", "remove it"]);
    refused(files.permute(&device, &[1, 0], Options { resume: true, ..budget(1000) }), &["took 4", "may take 1000"]);
    opened(&files, "in.npy").set_modified(SystemTime::now() + Duration::from_secs(9)).expect("another time");
    refused(resume(&files, &device), &["the input was changed since"]);
}

/// Changes the input, but not its time.
#[cfg(unix)]
fn change_unseen(input: &fs::File) {
    use std::os::unix::fs::FileExt;

    // Longer than the steps of a file system's clock.
    std::thread::sleep(Duration::from_millis(30));
    let before = input.metadata().and_then(|metadata| metadata.modified()).expect("its time");
    input.write_all_at(&[77; 4], 4 * 90 * 70).expect("room");
    input.set_modified(before).expect("its time");
}

#[test]
#[cfg(unix)]
fn an_input_that_has_its_old_time_again_is_another_one() {
    let (device, files) = interrupted();
    change_unseen(&opened(&files, "in.npy"));
    failed(resume(&files, &device), &["the input was changed since"]);
    let error = changed(&self::files(), &device, change_unseen);
    assert!(error.contains("in.npy was changed while it was read"), "{error}");
}

#[test]
fn an_input_that_changes_behind_its_header_is_an_error() {
    let (device, files) = (device(), files());
    let input = npy::Reader::open(files.path("in.npy")).expect("an array");
    opened(&files, "in.npy").set_modified(SystemTime::now() + Duration::from_secs(9)).expect("another time");
    let outcome = transpose(&input, &files.path("out.npy"), &device, false);
    failed(outcome, &["in.npy was changed while it was read"]);
    assert!(files.names().is_empty());
    // A program that reads it as a whole gets the same error.
    let mut input = npy::Reader::open(files.path("in.npy")).expect("an array");
    opened(&files, "in.npy").set_modified(SystemTime::now()).expect("another time");
    let error = input.read_into(&mut [0; 4]).expect_err("a mixture").to_string();
    assert!(error.contains("in.npy was changed while it was read"), "{error}");
}

#[test]
fn a_pair_that_does_not_match_is_refused() {
    let (device, files) = interrupted();
    let (data, journal) = (files.path(DATA), files.path(JOURNAL));
    let good = fs::read_to_string(&journal).expect("the journal");
    let refused = |text: &str, part: &str| {
        fs::write(&journal, text).expect("room");
        assert_eq!(failed(resume(&files, &device), &[part]).kind(), ErrorKind::Io);
    };
    refused("", "is not the journal of an interrupted run");
    refused(&good[..good.len() / 2], "to begin anew");
    let tiles = good.split_once("\"tiles\": ").and_then(|(_, rest)| rest.split_once(',')).expect("tiles").0;
    let other_tiles = "its tiles are not those";
    refused(&good.replace(&format!("\"tiles\": {tiles}"), "\"tiles\": 1000000"), other_tiles);
    // Tiles that this array has, and that no run takes in this memory.
    let elements = journal_with(&good, |journal| {
        (journal["tile"], journal["tiles"], journal["done"]) = ([1, 1].into(), (90 * 70).into(), (90 * 70).into());
    });
    refused(&elements, other_tiles);
    refused(&journal_with(&good, |journal| journal["device_memory"] = (MEMORY / 2).into()), other_tiles);
    refused(&journal_with(&good, |journal| journal["device_memory"] = 0.into()), other_tiles);
    fs::write(&journal, &good).expect("room");
    let bytes = fs::read(&data).expect("the data");
    fs::write(&data, &bytes[1..]).expect("room");
    failed(resume(&files, &device), &["not the file that its journal describes"]);
}

/// Changes the members of a journal.
fn journal_with(text: &str, change: impl FnOnce(&mut serde_json::Value)) -> String {
    let mut journal = serde_json::from_str(text).expect("a journal");
    change(&mut journal);
    journal.to_string()
}

/// Calls `change` on the input's file when some tiles are done.
fn changed(files: &Files, device: &Device, change: impl Fn(&fs::File) + Sync) -> String {
    let input = opened(files, "in.npy");
    let progress = |_| change(&input);
    let options = Options { progress: Some(&progress), ..budget(MEMORY) };
    let error = files.permute(device, &[1, 0], options).expect_err("a changed input").to_string();
    assert!(files.names().is_empty(), "a part of a mixture stays");
    error
}

#[test]
fn an_input_that_changes_is_an_error() {
    let device = device();
    let error = changed(&files(), &device, |input| input.set_len(1000).expect("a shorter file"));
    assert!(error.contains("in.npy was changed while it was read"), "{error}");
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
    assert!(error.contains("another run writes") && error.contains(DATA), "{error}");
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
    let progress = |_| seen.store(mode(DATA).into(), Ordering::Relaxed);
    files.permute(&device, &[1, 0], Options { progress: Some(&progress), ..budget(MEMORY) }).expect("a result");
    assert_eq!((seen.into_inner(), mode("out.npy")), (0o600, 0o640));
}
