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
