//! Everything a file, a folder or a device can have wrong: one sentence, exit 1, and the old output
//! untouched.

use std::fs;

use super::{Folder, command, fixture, npy, npy_with_header, warpstride};

/// An input that must be refused with a sentence that holds `parts`.
#[track_caller]
fn refuse(input: &[u8], parts: &[&str]) {
    let folder = Folder::with_input(input);
    folder.transpose().failed(&[&["in.npy"], parts].concat());
    folder.is_untouched();
}

#[test]
fn an_empty_file() {
    refuse(b"", &["is not a .npy file", "numpy.save"]);
}

#[test]
fn a_foreign_file() {
    refuse(b"PK\x03\x04 this is a zip archive", &["is not a .npy file", "numpy.save"]);
}

#[test]
fn truncated_within_the_prelude() {
    refuse(b"\x93NUMPY\x01\x00\x10", &["truncated within its header"]);
}

#[test]
fn truncated_within_the_header() {
    let whole = npy("<f4", "(2, 2)", &[0; 16]);
    refuse(&whole[..40], &["truncated within its header"]);
}

#[test]
fn truncated_within_the_data() {
    refuse(&npy("<f4", "(2, 2)", &[0; 15]), &["truncated", "16 bytes of data", "has 15"]);
}

#[test]
fn bytes_after_the_data() {
    refuse(&npy("<f4", "(2, 2)", &[0; 17]), &["1 byte after its array"]);
}

#[test]
fn an_unknown_version() {
    refuse(b"\x93NUMPY\x09\x00\x04\x00{ }\n", &["not a .npy file of version 1.0, 2.0 or 3.0"]);
}

#[test]
fn a_header_that_is_no_dictionary() {
    refuse(&npy_with_header("(1, 2", b""), &["header that NumPy would not write"]);
    refuse(&npy_with_header("[]", b""), &["header that NumPy would not write"]);
}

#[test]
fn a_header_is_quoted_as_it_is() {
    refuse(&npy_with_header("{'descr': '<f4', 4: 'a\"b'}", b""), &["a text is missing before `4:`"]);
    refuse(&npy_with_header("{'descr': '<f4' \"b'\tc'\x07}", b""), &["is missing before `\"b'`"]);
    refuse(&npy_with_header("{'descr': '<f4', 'a\x07\"': 4}", b""), &["a key 'a\\u{7}\"'"]);
}

#[test]
fn a_header_without_a_shape() {
    refuse(&npy_with_header("{'descr': '<f4', 'fortran_order': False}", b""), &["'shape'"]);
}

#[test]
fn a_negative_extent() {
    refuse(&npy("<f4", "(-1, 2)", b""), &["negative"]);
}

#[test]
fn a_header_nested_to_keep_the_parser_busy() {
    for mark in ["[", "{", "("] {
        refuse(&npy_with_header(&mark.repeat(9_000), b""), &["header that NumPy would not write"]);
    }
    let nested = format!("{{'descr': {}", "[".repeat(9_000));
    refuse(&npy_with_header(&nested, b""), &["structured"]);
}

#[test]
fn a_header_longer_than_numpy_reads() {
    refuse(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}\n", &["4294967295 bytes"]);
}

#[test]
fn sizes_that_overflow() {
    refuse(&npy("<f8", "(4294967296, 4294967296)", b""), &["more bytes than an address can count"]);
    refuse(&npy("<f8", "(1152921504606846976, 1)", b""), &["more bytes than an address can count"]);
    refuse(&npy("<f8", "(99999999999999999999999, 1)", b""), &["header that NumPy would not write"]);
    // NumPy leaves extents of 0 out, and multiplies the others by the width.
    for shape in ["(0, 9223372036854775807)", "(2305843009213693952, 0)"] {
        refuse(&npy("<f4", shape, b""), &["more bytes than an address can count"]);
    }
    let folder = Folder::with_input(&npy("<f4", "(0, 2305843009213693951)", b""));
    folder.transpose().succeeded();
}

/// A file of `tests/data/npy/foreign` that must be refused.
#[track_caller]
fn refuse_fixture(name: &str, parts: &[&str]) {
    refuse(&fs::read(fixture("foreign").join(name)).expect("a committed file"), parts);
}

#[test]
fn object_elements() {
    refuse_fixture("object.npy", &["'|O'", "astype"]);
}

#[test]
fn structured_elements() {
    refuse_fixture("structured.npy", &["structured"]);
}

#[test]
fn elements_that_are_no_numbers() {
    refuse_fixture("text.npy", &["'<U2'", "astype"]);
}

#[test]
fn the_wrong_rank() {
    refuse_fixture("scalar.npy", &["0 axes", "reshape"]);
    refuse_fixture("vector.npy", &["1 axis and", "reshape"]);
    refuse_fixture("cube.npy", &["3 axes", "reshape"]);
}

#[test]
fn a_missing_input() {
    let folder = Folder::with_input(b"");
    let run =
        warpstride(["transpose".as_ref(), folder.path("none.npy").as_os_str(), folder.path("out.npy").as_os_str()]);
    run.failed(&["cannot read", "none.npy", "check the path"]);
    folder.is_untouched();
}

#[test]
fn an_input_that_is_no_file() {
    let folder = Folder::with_input(b"");
    let run = warpstride(["transpose".as_ref(), folder.path("").as_os_str(), folder.path("out.npy").as_os_str()]);
    run.failed(&["cannot read", "not a regular file"]);
    let below_a_file = folder.path("in.npy").join("in.npy");
    let run = warpstride(["transpose".as_ref(), below_a_file.as_os_str(), folder.path("out.npy").as_os_str()]);
    run.failed(&["cannot read", "check the path"]);
    folder.is_untouched();
}

fn good() -> Vec<u8> {
    npy("<f4", "(2, 2)", &[7; 16])
}

#[test]
fn an_output_folder_that_is_not_there() {
    let folder = Folder::with_input(&good());
    folder.transpose_to(&folder.path("none").join("out.npy")).failed(&["cannot write", "folder exists"]);
    folder.is_untouched();
}

#[test]
fn an_output_that_is_no_file() {
    let folder = Folder::with_input(&good());
    folder.transpose_to(&folder.path("")).failed(&["cannot write", "not a file or a pipe"]);
    folder.is_untouched();
}

#[test]
fn an_output_name_that_no_file_has() {
    let folder = Folder::with_input(&good());
    // The operating system's own words, which stand behind ours, are checked by what they are not.
    for name in ["out.npy/", "new.npy/"] {
        folder.transpose_to(&folder.path(name)).failed(&["cannot write", name]);
    }
    folder.transpose_to(&folder.path(&"n".repeat(300))).failed(&["cannot write", "check the path", "os error"]);
    folder.transpose_to(&folder.path("none").join("out.npy")).failed(&["os error"]);
    folder.is_untouched();
}

#[test]
#[cfg(unix)]
fn an_output_that_is_a_link_to_nowhere() {
    let folder = Folder::with_input(&good());
    let [dangling, looping] = ["dangling.npy", "looping.npy"].map(|name| folder.path(name));
    std::os::unix::fs::symlink(folder.path("none.npy"), &dangling).expect("a link");
    std::os::unix::fs::symlink(&looping, &looping).expect("a link");
    for link in [dangling, looping] {
        folder.transpose_to(&link).failed(&["cannot write", "leads nowhere"]);
        assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    }
    assert_eq!(fs::read(folder.path("out.npy")).expect("the old output"), super::OLD);
    assert_eq!(folder.names(), ["dangling.npy", "in.npy", "looping.npy", "out.npy"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_standard_output_that_is_full() {
    let folder = Folder::with_input(&good());
    let (input, output) = (folder.path("in.npy"), folder.path("out.npy"));
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device");
    let args = ["--device", "soft", "--quiet", "--json", "transpose"].map(std::ffi::OsStr::new);
    let run = command(args.into_iter().chain([input.as_os_str(), output.as_os_str()])).stdout(full()).output();
    let said = String::from_utf8(run.expect("it starts").stderr).expect("text");
    assert!(said.contains("out.npy was written: cannot write the result to standard output"), "{said}");
    assert!(fs::read(output).expect("the output").starts_with(b"\x93NUMPY"));
    let run = command(["devices"]).stdout(full()).output().expect("it starts");
    assert_eq!(run.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&run.stderr).starts_with("error: cannot write the result to standard output"));
}

#[test]
#[cfg(unix)]
fn a_file_over_the_limit_of_the_shell() {
    let folder = Folder::with_input(&npy("<f4", "(1000, 10)", &[7; 40_000]));
    let script = "ulimit -f 1 && exec \"$0\" --device soft transpose in.npy out.npy";
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", script, env!("CARGO_BIN_EXE_warpstride")]).current_dir(folder.path(""));
    let run = shell.output().expect("a shell");
    let said = String::from_utf8(run.stderr).expect("text");
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write") && said.contains("check the room"), "{said}");
    folder.is_untouched();
}

#[test]
#[cfg(unix)]
fn an_interrupt_leaves_nothing_behind() {
    use std::os::unix::process::ExitStatusExt;

    use super::send;
    use crate::long::wait_until;

    // The work takes some seconds, and the signal comes into it.
    let folder = Folder::with_input(&npy("|u1", "(8192, 8192)", &vec![7; 1 << 26]));
    let (input, output) = (folder.path("in.npy"), folder.path("out.npy"));
    let args = ["--device", "soft", "transpose", "--variant", "column_loop"].map(std::ffi::OsStr::new);
    let mut child = command(args.into_iter().chain([input.as_os_str(), output.as_os_str()])).spawn().expect("a child");
    // The thread that takes signals is there before the work begins.
    let tasks = format!("/proc/{}/task", child.id());
    let is_watching = || {
        let tasks = fs::read_dir(&tasks).into_iter().flatten().flatten();
        tasks.map(|task| task.path().join("comm")).any(|name| fs::read(name).is_ok_and(|name| name == b"signals\n"))
    };
    if cfg!(target_os = "linux") {
        wait_until("it takes signals", || {
            assert!(child.try_wait().expect("a child").is_none(), "the work ended before the signal");
            is_watching()
        });
    } else {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    send("TERM", &child);
    // Of the signal, which a shell calls 143.
    assert_eq!(child.wait().expect("its end").signal(), Some(15));
    folder.is_untouched();
}

#[test]
fn a_read_only_output() {
    let folder = Folder::with_input(&good());
    let mut permissions = fs::metadata(folder.path("out.npy")).expect("the old output").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(folder.path("out.npy"), permissions).expect("setting permissions");
    folder.transpose().failed(&["cannot write", "read-only"]);
    folder.is_untouched();
}

#[test]
fn an_output_that_is_the_input() {
    let folder = Folder::with_input(&good());
    folder.transpose_to(&folder.path("in.npy")).failed(&["the same file", "another output"]);
    folder.transpose_to(&folder.path(".").join("in.npy")).failed(&["the same file"]);
    assert_eq!(fs::read(folder.path("in.npy")).expect("the input"), good());
    folder.is_untouched();
}

#[test]
#[cfg(unix)]
fn an_output_that_is_the_input_by_another_name() {
    let folder = Folder::with_input(&good());
    fs::remove_file(folder.path("out.npy")).expect("removing");
    fs::hard_link(folder.path("in.npy"), folder.path("hard.npy")).expect("a hard link");
    std::os::unix::fs::symlink(folder.path("in.npy"), folder.path("soft.npy")).expect("a link");
    folder.transpose_to(&folder.path("hard.npy")).failed(&["the same file"]);
    folder.transpose_to(&folder.path("soft.npy")).failed(&["the same file"]);
    assert_eq!(fs::read(folder.path("in.npy")).expect("the input"), good());
    assert_eq!(folder.names(), ["hard.npy", "in.npy", "soft.npy"]);
}

#[test]
fn a_device_that_is_not_there() {
    let folder = Folder::with_input(&good());
    let (input, output) = (folder.path("in.npy"), folder.path("out.npy"));
    let args = ["--device".as_ref(), "cuda:99".as_ref(), "transpose".as_ref(), input.as_os_str(), output.as_os_str()];
    warpstride(args).failed(&["cuda:99"]);
    folder.is_untouched();
    warpstride(["--device", "cuda:99", "compare"]).failed(&["cuda:99"]);
}

#[test]
fn a_matrix_that_no_memory_holds() {
    let shape = "4294967296,4294967296";
    warpstride(["--device", "soft", "compare", "--shape", shape]).failed(&["more bytes than an address can count"]);
    let shape = "2147483647,2147483647";
    warpstride(["--device", "soft", "compare", "--dtype", "u8", "--shape", shape]).failed(&["memory", "smaller"]);
    // Each copy would fit, and Linux would promise them all. All of them are more than twice what
    // is free now, should other programs end meanwhile.
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib =
        meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.strip_suffix("kB")?.trim().parse().ok());
    if let Some(kib) = kib {
        let kib: u64 = kib;
        let rows = kib / 4 * 3;
        let shape = format!("{rows},1024");
        let folder = Folder::with_input(b"");
        warpstride(["--device", "soft", "compare", "--dtype", "u8", "--shape", &shape])
            .failed(&["memory", "MB", "smaller"]);
        let header = npy("|u1", &format!("({rows}, 1024)"), b"");
        let file = fs::File::create(folder.path("in.npy")).expect("a file");
        std::io::Write::write_all(&mut &file, &header).expect("writing");
        // A sparse file.
        file.set_len(header.len() as u64 + rows * 1024).expect("its length");
        // Without a variant it would be streamed.
        let (input, output) = (folder.path("in.npy"), folder.path("out.npy"));
        let words = ["--device", "soft", "transpose", "--variant", "tiled"].map(std::ffi::OsStr::new);
        warpstride(words.into_iter().chain([input.as_os_str(), output.as_os_str()])).failed(&[
            "cannot transpose",
            "in.npy",
            "memory",
            "MB",
            "smaller",
        ]);
        folder.is_untouched();
    }
}

#[test]
fn compare_checks_its_file_as_transpose_does() {
    let folder = Folder::with_input(&npy("<f4", "(2, 2)", &[0; 15]));
    warpstride(["compare".as_ref(), folder.path("in.npy").as_os_str()]).failed(&["truncated"]);
    warpstride(["compare".as_ref(), fixture("foreign/cube.npy").as_os_str()]).failed(&["3 axes"]);
}
