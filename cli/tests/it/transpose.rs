//! `warpstride transpose` against files that NumPy wrote (`scripts/numpy-oracle --fixtures`).

use std::collections::BTreeSet;
use std::fs;

use super::{Folder, fixture, npy, warpstride};

/// The names of the committed cases.
fn cases() -> BTreeSet<String> {
    let entries = fs::read_dir(fixture("")).expect("tests/data/npy");
    let names = entries.filter_map(|entry| entry.expect("an entry").file_name().into_string().ok());
    names.filter_map(|name| name.strip_suffix(".t.npy").map(str::to_owned)).collect()
}

/// Transposes one committed case and holds the file against NumPy's.
#[track_caller]
fn agrees_with_numpy(case: &str, order: char, options: &[&str]) {
    let read = |name: String| fs::read(fixture(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let folder = Folder::with_input(&read(format!("{case}.{order}.npy")));
    let (input, output) = (folder.path("in.npy"), folder.path("out.npy"));
    let mut args = vec!["--device".as_ref(), "soft".as_ref(), "transpose".as_ref(), input.as_os_str()];
    args.push(output.as_os_str());
    args.extend(options.iter().map(|option| option.as_ref() as &std::ffi::OsStr));
    warpstride(args).succeeded();
    assert_eq!(fs::read(output).expect("the output"), read(format!("{case}.t.npy")), "{case}, order {order}");
    assert_eq!(folder.names(), ["in.npy", "out.npy"]);
}

#[test]
fn every_element_type_and_both_orders() {
    let cases = cases();
    assert_eq!(cases.len(), 22, "{cases:?}");
    for case in cases {
        agrees_with_numpy(&case, 'c', &[]);
        agrees_with_numpy(&case, 'f', &[]);
    }
}

#[test]
fn every_variant() {
    for variant in ["column_loop", "naive", "tiled", "padded", "staggered", "swizzled"] {
        for case in ["u1-31x33", "c16"] {
            agrees_with_numpy(case, 'c', &["--variant", variant]);
            agrees_with_numpy(case, 'f', &["--variant", variant]);
        }
    }
}

#[test]
fn json_names_what_was_done() {
    let folder = Folder::with_input(&npy("<f4", "(2, 3)", &[7; 24]));
    let (input, output) = (folder.path("in.npy"), folder.path("out.npy"));
    let args = ["--json".as_ref(), "--device".as_ref(), "soft".as_ref(), "transpose".as_ref()];
    let run = warpstride(args.into_iter().chain([input.as_os_str(), output.as_os_str()])).succeeded();
    let document = run.json();
    assert_eq!(document["schema"], 3);
    assert_eq!(document["device"]["kind"], "soft");
    assert_eq!(document["dtype"], "f32");
    assert_eq!(document["shape"], serde_json::json!([2, 3]));
    assert!(document["variant"].is_null(), "none was asked for");
    assert!(document["kernel"].as_str().is_some_and(|kernel| kernel.contains("_b32")), "what ran: {document}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_path_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::with_input(&npy("<f4", "(2, 3)", &[7; 24]));
    let output = folder.path("").join(std::ffi::OsStr::from_bytes(b"bad\xff.npy"));
    let args = ["--json".as_ref(), "--device".as_ref(), "soft".as_ref(), "transpose".as_ref()];
    let run = warpstride(args.into_iter().chain([folder.path("in.npy").as_os_str(), output.as_os_str()])).succeeded();
    assert!(run.json()["output"].as_str().is_some_and(|path| path.ends_with("bad\u{fffd}.npy")), "{}", run.stdout);
}

#[test]
fn no_elements_in_very_many_rows() {
    for shape in ["(1152921504606846976, 0)", "(0, 1152921504606846976)"] {
        let folder = Folder::with_input(&npy("<f4", shape, b""));
        folder.transpose().succeeded();
    }
}

#[test]
fn quiet_says_nothing() {
    let folder = Folder::with_input(&npy("<f4", "(2, 3)", &[7; 24]));
    let (input, output) = (folder.path("in.npy"), folder.path("out.npy"));
    let args = ["--quiet".as_ref(), "transpose".as_ref(), input.as_os_str(), output.as_os_str()];
    let run = warpstride(args).succeeded();
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
}

#[test]
#[cfg(unix)]
fn a_new_output_has_the_permissions_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with_input(&npy("<f4", "(2, 3)", &[7; 24]));
    let mode = |name: &str| fs::metadata(folder.path(name)).expect("a file").permissions().mode();
    folder.transpose_to(&folder.path("new.npy")).succeeded();
    assert_eq!(mode("new.npy"), mode("in.npy"));

    fs::set_permissions(folder.path("out.npy"), fs::Permissions::from_mode(0o640)).expect("setting permissions");
    folder.transpose().succeeded();
    assert_eq!(mode("out.npy") & 0o777, 0o640);
}

#[test]
#[cfg(unix)]
fn an_output_through_a_link_replaces_what_it_points_to() {
    let folder = Folder::with_input(&npy("<f4", "(2, 3)", &[7; 24]));
    std::os::unix::fs::symlink(folder.path("out.npy"), folder.path("link.npy")).expect("a link");
    folder.transpose_to(&folder.path("link.npy")).succeeded();
    assert!(fs::symlink_metadata(folder.path("link.npy")).expect("the link").is_symlink());
    assert!(fs::read(folder.path("out.npy")).expect("the output").starts_with(b"\x93NUMPY"));
}
