//! `warpstride transpose` against files that NumPy wrote (`scripts/numpy-oracle --fixtures`).

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use super::{Folder, Run, command, fixture, npy};

/// The names of the committed cases.
fn cases() -> BTreeSet<String> {
    let entries = fs::read_dir(fixture("")).expect("tests/data/npy");
    let names = entries.filter_map(|entry| entry.expect("an entry").file_name().into_string().ok());
    names.filter_map(|name| name.strip_suffix(".t.npy").map(str::to_owned)).collect()
}

/// Transposes one committed case and holds the file against NumPy's.
#[track_caller]
fn agrees_with_numpy(case: &str, order: char, options: &str) {
    let read = |name: String| fs::read(fixture(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let folder = Folder::with_input(&read(format!("{case}.{order}.npy")));
    folder.run(&format!("transpose in.npy out.npy{options}")).succeeded();
    assert_eq!(
        fs::read(folder.path("out.npy")).expect("the output"),
        read(format!("{case}.t.npy")),
        "{case}, order {order}"
    );
    assert_eq!(folder.names(), ["in.npy", "out.npy"]);
}

#[test]
fn every_element_type_and_both_orders() {
    let cases = cases();
    assert_eq!(cases.len(), 22, "{cases:?}");
    for case in cases {
        agrees_with_numpy(&case, 'c', "");
        agrees_with_numpy(&case, 'f', "");
    }
}

#[test]
fn every_variant() {
    for variant in ["column_loop", "naive", "tiled", "padded", "staggered", "swizzled"] {
        for case in ["u1-31x33", "c16"] {
            for order in ['c', 'f'] {
                agrees_with_numpy(case, order, &format!(" --variant {variant}"));
            }
        }
    }
}

#[test]
fn json_names_what_was_done() {
    let folder = Folder::with_input(&npy("<f4", "(2, 3)", &[7; 24]));
    let document = folder.run("transpose in.npy out.npy --json").succeeded().json();
    // No variant was asked for.
    let members = ["schema", "dtype", "shape", "variant"].map(|member| &document[member]);
    assert_eq!(json!(members), json!([3, "f32", [2, 3], null]));
    assert_eq!(document["device"]["kind"], "soft");
    assert!(document["kernel"].as_str().is_some_and(|kernel| kernel.contains("_b32")), "what ran: {document}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_path_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::with_input(&npy("<f4", "(2, 3)", &[7; 24]));
    let output = folder.path("").join(std::ffi::OsStr::from_bytes(b"bad\xff.npy"));
    let run = Run::of(command(folder.words(&output)).arg("--json")).succeeded();
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
    let run = Run::of(command("--quiet transpose in.npy out.npy".split(' ')).current_dir(folder.path(""))).succeeded();
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
}
