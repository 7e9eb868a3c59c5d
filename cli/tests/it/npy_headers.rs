//! The headers that other writers make, and what is written back. `scripts/numpy-oracle` holds many
//! more against NumPy.

use std::fs;

use super::{Folder, fixture, npy, npy_with_header};

#[track_caller]
fn transposes_to(input: &[u8], descr: &str, data: &[u8]) {
    let folder = Folder::with_input(input);
    folder.transpose().succeeded();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (3, 2), }}");
    assert_eq!(folder.written(), (header, data.to_vec()));
}

fn floats(places: [u8; 6]) -> Vec<u8> {
    places.iter().flat_map(|&place| [0, 0, place, 64]).collect()
}

const MOVED: [u8; 6] = [0, 3, 1, 4, 2, 5];

#[test]
fn truth_values_are_moved_and_stay_truth_values() {
    transposes_to(&npy("|b1", "(2, 3)", &[1, 0, 0, 1, 1, 0]), "|b1", &[1, 1, 0, 1, 0, 0]);
    let folder = Folder::with_input(&fs::read(fixture("b1.c.npy")).expect("a committed file"));
    let document = folder.run("permute --axes ab->ba in.npy out.npy --json").succeeded().json();
    assert_eq!(document["dtype"], "bool");
    assert!(folder.written().0.contains("'descr': '|b1'"));
}

#[test]
fn python_2_and_native_orders_are_read() {
    let data = floats([0, 1, 2, 3, 4, 5]);
    let python_2 = "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }";
    transposes_to(&npy_with_header(python_2, &data), "<f4", &floats(MOVED));
    transposes_to(&npy("=f4", "(2, 3)", &data), "<f4", &floats(MOVED));
    transposes_to(&npy(">f4", "(2, 3)", &data), ">f4", &floats(MOVED));
}

#[test]
fn versions_are_those_that_numpy_has() {
    let data = floats([0, 1, 2, 3, 4, 5]);
    let first = npy("<f4", "(2, 3)", &data);
    let header = &first[10..first.len() - data.len()];
    let of = |version: [u8; 2]| {
        let length = u32::try_from(header.len()).expect("short").to_le_bytes();
        [b"\x93NUMPY".as_slice(), &version, &length, header, &data].concat()
    };
    transposes_to(&of([2, 0]), "<f4", &floats(MOVED));
    transposes_to(&of([3, 0]), "<f4", &floats(MOVED));
    for version in [[0, 0], [1, 1], [2, 1], [3, 7], [4, 0]] {
        let folder = Folder::with_input(&of(version));
        folder.transpose().failed(&["in.npy", "version 1.0, 2.0 or 3.0"]);
        folder.is_untouched();
    }
}

#[test]
fn types_are_those_that_numpy_takes() {
    let data = floats([0, 1, 2, 3, 4, 5]);
    for descr in ["f", "<f", "float32", "single", "f04"] {
        transposes_to(&npy(descr, "(2, 3)", &data), "<f4", &floats(MOVED));
    }
    transposes_to(&npy("?", "(2, 3)", &[1, 0, 0, 1, 1, 0]), "|b1", &[1, 1, 0, 1, 0, 0]);
    transposes_to(&npy("V1", "(2, 3)", &[0, 1, 2, 3, 4, 5]), "|V1", &MOVED);
}

#[test]
fn bytes_without_a_type_are_moved() {
    let elements = |places: [u8; 6]| places.iter().flat_map(|&place| [place, 64]).collect::<Vec<_>>();
    let folder = Folder::with_input(&npy("<V2", "(2, 3)", &elements([0, 1, 2, 3, 4, 5])));
    for memory in ["", " --device-memory 1000"] {
        let document = folder.run(&format!("--json transpose in.npy out.npy{memory}")).succeeded().json();
        assert_eq!(document["dtype"], "void16", "{document}");
        let header = "{'descr': '<V2', 'fortran_order': False, 'shape': (3, 2), }";
        assert_eq!(folder.written(), (header.into(), elements(MOVED)));
    }
}

#[test]
fn bytes_after_an_array_are_left_out_with_a_note() {
    let first = npy("|u1", "(2, 3)", &[0, 1, 2, 3, 4, 5]);
    let folder = Folder::with_input(&[&*first, &*first].concat());
    let said = format!("in.npy has {} bytes after its first array", first.len());
    folder.transpose().ended(0, &[], &[&said]);
    assert_eq!(folder.written().1, MOVED);
}

#[test]
fn axes_of_one_index_are_moved_beyond_sixteen() {
    let folder = Folder::with_input(&npy("|u1", &format!("({}2, 3)", "1, ".repeat(15)), &[0, 1, 2, 3, 4, 5]));
    let order: Vec<String> = (0..17).rev().map(|axis: u32| axis.to_string()).collect();
    for memory in ["", " --device-memory 1000"] {
        folder.run(&format!("permute --axes {} in.npy out.npy{memory}", order.join(","))).succeeded();
        let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2{}), }}", ", 1".repeat(15));
        assert_eq!(folder.written(), (header, MOVED.to_vec()));
    }
    let folder = Folder::with_input(&npy("|u1", &format!("({}3)", "2, ".repeat(16)), &[0; 3 << 16]));
    folder.run(&format!("permute --axes {} in.npy out.npy", order.join(","))).failed(&[
        "in.npy",
        "17 axes",
        "at most 16",
    ]);
    folder.is_untouched();
}
