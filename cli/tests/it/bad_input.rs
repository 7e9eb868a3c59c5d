//! Everything a file, a folder or a device can have wrong: one sentence, exit 1, and the old output
//! untouched.

use std::fs;

use super::{Folder, Run, command, fixture, npy, npy_with_header, soft, warpstride};

/// Each input comes with parts of the sentence that refuses it. The library's own tests hold the
/// other faults of a header.
#[test]
fn an_input_that_is_no_matrix_is_refused_with_what_is_wrong() {
    let (zeros, square) = (|count| vec![0; count], "(2, 2)");
    let header = |dictionary: &str| npy_with_header(dictionary, b"");
    let foreign = |name: &str| fs::read(fixture("foreign").join(name)).expect("a committed file");
    let foreign_header = "header that NumPy would not write";
    let too_many = "more bytes than an address can count";
    let names = "{'descr': [('данные', '<f8')], 'fortran_order': False, 'shape': (2,), }";
    let length = u32::try_from(names.len()).expect("short").to_le_bytes();
    let structured_in_russian = [b"\x93NUMPY\x03\x00".as_slice(), &length, names.as_bytes(), &[0; 16]].concat();
    let inputs: [(Vec<u8>, &[&str]); 28] = [
        (Vec::new(), &["is not a .npy file", "numpy.save"]),
        (b"PK\x03\x04 this is a zip archive".into(), &["is not a .npy file", "numpy.save"]),
        (b"\x93NUMPY\x01\x00\x10".into(), &["truncated within its header"]),
        (npy("<f4", square, &zeros(16))[..40].into(), &["truncated within its header"]),
        (npy("<f4", square, &zeros(15)), &["truncated", "16 bytes of data", "has 15"]),
        (b"\x93NUMPY\x09\x00\x04\x00{ }\n".into(), &["not a .npy file of version 1.0, 2.0 or 3.0"]),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}\n".into(), &["4294967295 bytes"]),
        (header("[]"), &[foreign_header]),
        // A header is quoted as it is.
        (header("{'descr': '<f4', 4: 'a\"b'}"), &["a text is missing before `4:`"]),
        (header("{'descr': '<f4' \"b'\tc'\x07}"), &["is missing before `\"b'`"]),
        (header("{'descr': '<f4', 'a\x07\"': 4}"), &["a key 'a\\u{7}\"'"]),
        // These are nested, which keeps the parser busy.
        (header(&"[".repeat(9_000)), &[foreign_header]),
        (header(&"{".repeat(9_000)), &[foreign_header]),
        (header(&"(".repeat(9_000)), &[foreign_header]),
        (header(&format!("{{'descr': {}", "[".repeat(9_000))), &["structured"]),
        (npy("<f8", "(4294967296, 4294967296)", b""), &[too_many]),
        (npy("<f8", "(1152921504606846976, 1)", b""), &[too_many]),
        (npy("<f8", "(99999999999999999999999, 1)", b""), &[foreign_header]),
        // NumPy leaves extents of 0 out, and multiplies the others by the width.
        (npy("<f4", "(0, 9223372036854775807)", b""), &[too_many]),
        (npy("<f4", "(2305843009213693952, 0)", b""), &[too_many]),
        (foreign("object.npy"), &["'|O'", "astype"]),
        (foreign("structured.npy"), &["structured"]),
        (structured_in_russian, &["holds structured elements", "save its fields one by one"]),
        (npy("V3", square, &zeros(12)), &["'V3'", "a.view('u1')"]),
        (foreign("text.npy"), &["'<U2'", "a.view('u1')"]),
        (foreign("scalar.npy"), &["0 axes", "reshape"]),
        (foreign("vector.npy"), &["1 axis and", "reshape"]),
        (foreign("cube.npy"), &["3 axes", "reshape"]),
    ];
    for (input, parts) in inputs {
        // It is shown if the input is not refused.
        eprintln!("this input must be refused: {parts:?}");
        let folder = Folder::with_input(&input);
        folder.transpose().failed(&[&["in.npy"], parts].concat());
        folder.is_untouched();
    }
    Folder::with_input(&npy("<f4", "(0, 2305843009213693951)", b"")).transpose().succeeded();
}

#[test]
fn an_input_that_is_no_file() {
    let folder = Folder::with_input(b"");
    folder.run("transpose none.npy out.npy").failed(&["cannot read", "none.npy", "check the path"]);
    folder.run("transpose . out.npy").failed(&["cannot read", "not a regular file"]);
    folder.run("transpose in.npy/in.npy out.npy").failed(&["cannot read", "check the path"]);
    folder.is_untouched();
}

fn good() -> Vec<u8> {
    npy("<f4", "(2, 2)", &[7; 16])
}

#[test]
fn an_output_name_that_no_file_has() {
    let folder = Folder::with_input(&good());
    folder.transpose_to(&folder.path("none").join("out.npy")).failed(&["cannot write", "folder exists", "os error"]);
    // The operating system's own words, which stand behind ours, are checked by what they are not.
    for name in ["out.npy/", "new.npy/"] {
        folder.transpose_to(&folder.path(name)).failed(&["cannot write", name]);
    }
    folder.transpose_to(&folder.path(&"n".repeat(300))).failed(&["cannot write", "check the path", "os error"]);
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
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device");
    let mut transpose = command("--device soft --quiet --json transpose in.npy out.npy".split(' '));
    let said = Run::of(transpose.current_dir(folder.path("")).stdout(full())).stderr;
    assert!(said.contains("out.npy was written: cannot write the result to standard output"), "{said}");
    assert!(fs::read(folder.path("out.npy")).expect("the output").starts_with(b"\x93NUMPY"));
    let run = Run::of(command(["devices"]).stdout(full()));
    run.ended(1, &[], &["error: cannot write the result to standard output"]).failed(&[]);
}

#[test]
#[cfg(unix)]
fn a_file_over_the_limit_of_the_shell() {
    let folder = Folder::with_input(&npy("<f4", "(1000, 10)", &[7; 40_000]));
    let script = "ulimit -f 1 && exec \"$0\" --device soft transpose in.npy out.npy";
    folder.shell(script).ended(1, &[], &["cannot write", "check the room"]);
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
    let mut transpose = command("--device soft transpose --variant column_loop in.npy out.npy".split(' '));
    let mut child = transpose.current_dir(folder.path("")).spawn().expect("a child");
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
    // The signal ended it; a shell calls that 143.
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
    folder.is_untouched();
    #[cfg(unix)]
    {
        fs::hard_link(folder.path("in.npy"), folder.path("hard.npy")).expect("a hard link");
        std::os::unix::fs::symlink(folder.path("in.npy"), folder.path("soft.npy")).expect("a link");
        folder.transpose_to(&folder.path("hard.npy")).failed(&["the same file"]);
        folder.transpose_to(&folder.path("soft.npy")).failed(&["the same file"]);
        assert_eq!(folder.names(), ["hard.npy", "in.npy", "out.npy", "soft.npy"]);
    }
    assert_eq!(fs::read(folder.path("in.npy")).expect("the input"), good());
}

#[test]
fn a_device_that_is_not_there() {
    let folder = Folder::with_input(&good());
    for line in ["transpose in.npy out.npy", "compare", "devices"] {
        let mut command = command(line.split(' '));
        Run::of(command.args(["--device", "cuda:99"]).current_dir(folder.path(""))).failed(&["cannot open cuda:99"]);
    }
    folder.is_untouched();
}

#[test]
fn a_matrix_that_no_memory_holds() {
    soft("compare --shape 4294967296,4294967296").failed(&["more bytes than an address can count"]);
    soft("compare --dtype u8 --shape 2147483647,2147483647").failed(&["memory", "smaller"]);
    // Each copy would fit, and Linux would promise them all. All of them are more than twice what
    // is free now, should other programs end meanwhile.
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib =
        meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.strip_suffix("kB")?.trim().parse().ok());
    if let Some(kib) = kib {
        let kib: u64 = kib;
        let rows = kib / 4 * 3;
        let folder = Folder::with_input(b"");
        soft(&format!("compare --dtype u8 --shape {rows},1024")).failed(&["memory", "MB", "smaller"]);
        let header = npy("|u1", &format!("({rows}, 1024)"), b"");
        let file = fs::File::create(folder.path("in.npy")).expect("a file");
        std::io::Write::write_all(&mut &file, &header).expect("writing");
        // A sparse file.
        file.set_len(header.len() as u64 + rows * 1024).expect("its length");
        // Without a variant it would be streamed.
        let run = folder.run("transpose --variant tiled in.npy out.npy");
        run.failed(&["cannot transpose", "in.npy", "memory", "MB", "smaller"]);
        folder.is_untouched();
    }
}

#[test]
fn compare_checks_its_file_as_transpose_does() {
    let folder = Folder::with_input(&npy("<f4", "(2, 2)", &[0; 15]));
    folder.run("compare in.npy").failed(&["truncated"]);
    warpstride(["compare".as_ref(), fixture("foreign/cube.npy").as_os_str()]).failed(&["3 axes"]);
}
