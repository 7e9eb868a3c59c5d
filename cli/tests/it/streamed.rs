//! `transpose` and `permute` through less device memory than the array has. `tests/it/out_of_core`
//! has the values; here are the options, the documents, and programs that are ended.

use std::fs;

use serde_json::Value;

use super::{Folder, Run, command, npy, npy_with_header};

/// The words of a streamed command on the folder's files.
fn words(line: &str) -> String {
    format!("--json {line} in.npy new.npy")
}

fn run(folder: &Folder, line: &str) -> Run {
    folder.run(&words(line))
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0]).collect()
}

/// The file of a command without the options, and of the same command with them.
#[track_caller]
fn check(folder: &Folder, line: &str, memory: &str) -> Value {
    let whole = run(folder, line).succeeded().json();
    let members = ["device_memory", "tiles", "resumed_tiles"].map(|member| &whole[member]);
    assert_eq!(members, [&Value::Null; 3], "{whole}");
    let expected = fs::read(folder.path("new.npy")).expect("the result");
    fs::remove_file(folder.path("new.npy")).expect("removing it");
    let document = run(folder, &format!("{line} --device-memory {memory}")).succeeded().json();
    assert!(fs::read(folder.path("new.npy")).expect("the result") == expected, "{line:?} in {memory}");
    assert_eq!(folder.names(), ["in.npy", "new.npy", "out.npy"]);
    assert_eq!(document["device_memory"].to_string(), memory);
    assert_eq!(document["resumed_tiles"], 0);
    for member in ["shape", "dtype", "axes", "input", "output"] {
        assert_eq!(document[member], whole[member], "{member}");
    }
    document
}

#[test]
fn files_are_those_of_the_whole_array() {
    for (descr, width) in [("|b1", 1), (">i2", 2), ("<f4", 4), ("<u8", 8), ("<c16", 16)] {
        let folder = Folder::with_input(&npy(descr, "(40, 70)", &bytes(2800 * width)));
        let memory = (12 * width * 300).to_string();
        let document = check(&folder, "transpose", &memory);
        assert!(document["tiles"].as_u64() >= Some(10), "{document}");
        assert!(document["kernel"].is_string(), "{document}");
    }
    let folder = Folder::with_input(&npy("<f4", "(7, 8, 9, 5)", &bytes(7 * 8 * 9 * 5 * 4)));
    check(&folder, "permute --axes 2,0,3,1", "10000");
    check(&folder, "permute --axes abcd->dbca", "1000");
    let header = "{'descr': '<i2', 'fortran_order': True, 'shape': (20, 30, 20), }";
    let folder = Folder::with_input(&npy_with_header(header, &bytes(24_000)));
    check(&folder, "permute --axes 0,1,2", "12000");
    let folder = Folder::with_input(&npy("<f4", "(3, 0)", b""));
    assert_eq!(check(&folder, "transpose", "1000")["tiles"], 0);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let folder = Folder::with_input(&npy("<f4", "(2, 3)", &[7; 24]));
    for options in ["--device-memory 0", "--device-memory 1G", "--device-memory"] {
        assert_eq!(folder.run(&format!("transpose in.npy new.npy {options}")).code, Some(2), "{options:?}");
    }
    for options in ["--device-memory 1000", "--resume"] {
        let run = run(&folder, &format!("transpose --variant tiled {options}"));
        run.ended(2, &[], &["cannot be used with"]);
    }
    run(&folder, "transpose --device-memory 47").ended(1, &[], &["47 bytes", "at least 48"]);
    folder.is_untouched();
}

#[test]
#[cfg(unix)]
fn a_stream_takes_no_tiles() {
    let folder = Folder::with_input(&npy("<f4", "(2, 3)", &[7; 24]));
    let run = folder.run("transpose --device-memory 1000 in.npy /dev/stdout");
    assert_eq!(run.ended(1, &[], &["standard output is a stream"]).stdout, "");
}

#[test]
fn another_file_of_the_name_is_neither_replaced_nor_lost() {
    let folder = Folder::with_input(&npy("<f4", "(2, 3)", &[7; 24]));
    fs::write(folder.path("new.npy.incomplete"), b"some bytes").expect("room");
    let why = "new.npy.incomplete is there, and no journal beside it";
    let [refused, resumed] = ["--device-memory 1000", "--resume"]
        .map(|option| run(&folder, &format!("transpose {option}")).ended(1, &[], &[why]));
    assert_eq!(refused.stderr, resumed.stderr);
    assert_eq!(fs::read(folder.path("new.npy.incomplete")).expect("it"), b"some bytes");
    // An array that goes through as a whole has no need of the name.
    run(&folder, "transpose").ended(0, &[], &["new.npy.incomplete stays"]);
    assert_eq!(fs::read(folder.path("new.npy.incomplete")).expect("it"), b"some bytes");
}

#[test]
#[cfg(unix)]
fn a_disk_without_room_is_an_error_before_any_work() {
    let folder = Folder::with_input(&npy("<f4", "(1000, 10)", &[7; 40_000]));
    // Some KiB, which the journal has room in.
    let script = "ulimit -f 4 && exec \"$0\" --device soft transpose in.npy new.npy --device-memory 100000";
    folder.shell(script).ended(1, &[], &["cannot write", "has room for 40256 bytes"]);
    folder.is_untouched();
}

/// A program enters its tiles in the journal once a second, so a faster machine needs a larger
/// array.
#[test]
#[cfg(unix)]
fn a_program_that_is_killed_leaves_what_a_later_one_goes_on_with() {
    let rows = [1024, 2048, 4096, 8192, 16_384];
    assert!(rows.into_iter().any(is_killed_and_gone_on_with), "no array takes long enough: {rows:?} rows");
}

/// Returns `false` if the program ended before it was killed.
#[cfg(unix)]
fn is_killed_and_gone_on_with(rows: usize) -> bool {
    use std::os::unix::process::ExitStatusExt;

    use super::send;
    use crate::long::wait_until;

    let folder = Folder::with_input(&npy("<f4", &format!("({rows}, 1536)"), &bytes(rows * 1536 * 4)));
    // Many small tiles, which take long.
    let line = "transpose --device-memory 12000";
    let resumed = format!("{line} --resume");
    run(&folder, "transpose").succeeded();
    let expected = fs::read(folder.path("new.npy")).expect("the result");
    fs::remove_file(folder.path("new.npy")).expect("removing it");
    for (signal, number) in [("KILL", 9), ("TERM", 15)] {
        let mut resumed = command(format!("--device soft {}", words(&resumed)).split(' '));
        let mut child = resumed.current_dir(folder.path("")).spawn().expect("a child");
        let journal = folder.path("new.npy.incomplete.json");
        // As soon as something is on the disk that is worth a journal.
        let before = fs::read(&journal).ok();
        let is_later = |text: &Vec<u8>| Some(text) != before.as_ref() && !text.ends_with(b"\"done\": 0\n}\n");
        let mut has_ended = || child.try_wait().expect("its state").is_some();
        wait_until("the journal grows", || has_ended() || fs::read(&journal).is_ok_and(|text| is_later(&text)));
        if has_ended() {
            assert!(child.wait().expect("its end").success(), "it failed before {signal}");
            assert!(fs::read(folder.path("new.npy")).expect("the result") == expected, "before {signal}");
            return false;
        }
        // It must not come to its end before the signal.
        send("STOP", &child);
        if folder.path("new.npy").exists() {
            child.kill().expect("it can be killed");
            child.wait().expect("its end");
            assert!(fs::read(folder.path("new.npy")).expect("the result") == expected, "before {signal}");
            return false;
        }
        run(&folder, line).ended(1, &[], &["pass `--resume`", "remove it"]);
        send(signal, &child);
        send("CONT", &child);
        assert_eq!(child.wait().expect("its end").signal(), Some(number));
        // KILL may leave the next journal.
        let names = folder.names().into_iter().filter(|name| !name.starts_with(".warpstride-"));
        assert!(names.eq(["in.npy", "new.npy.incomplete", "new.npy.incomplete.json", "out.npy"]), "{signal}");
    }
    let document = run(&folder, &resumed).succeeded().json();
    assert!(document["resumed_tiles"].as_u64() > Some(0), "{document}");
    assert!(fs::read(folder.path("new.npy")).expect("the result") == expected);
    assert!(!folder.path("new.npy.incomplete").exists() && !folder.path("new.npy.incomplete.json").exists());
    true
}
