//! `warpstride permute`: any rank, either order, and what it refuses. `scripts/numpy-oracle` holds
//! its files against NumPy's.

use serde_json::json;

use super::{Folder, Run, npy, npy_with_header};

fn permute(folder: &Folder, axes: &str) -> Run {
    folder.run(&format!("permute in.npy out.npy --json --axes {axes}"))
}

/// The bytes behind the header of the output, whose shape must be this.
#[track_caller]
fn data(folder: &Folder, shape: &str) -> Vec<u8> {
    let (header, elements) = folder.written();
    assert!(header.contains(&format!("'fortran_order': False, 'shape': {shape}, ")), "{header}");
    elements
}

/// Elements 0, 1, 2 ... of `width` bytes each, at these places.
fn elements(width: u8, places: impl IntoIterator<Item = u8>) -> Vec<u8> {
    places.into_iter().flat_map(|place| (0..width).map(move |byte| place * 16 + byte)).collect()
}

#[test]
fn axes_go_where_they_are_told_at_every_width() {
    for (descr, width) in [("|u1", 1), ("<f2", 2), (">i4", 4), ("<f8", 8), ("<c16", 16)] {
        let folder = Folder::with_input(&npy(descr, "(2, 1, 3)", &elements(width, 0..6)));
        permute(&folder, "2,0,1").succeeded();
        assert_eq!(data(&folder, "(3, 2, 1)"), elements(width, [0, 3, 1, 4, 2, 5]), "{descr}");
    }
}

#[test]
fn fortran_order_is_read_as_what_it_is() {
    let header = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 2), }";
    let folder = Folder::with_input(&npy_with_header(header, &elements(2, 0..12)));
    permute(&folder, "0,1,2").succeeded();
    assert_eq!(data(&folder, "(2, 3, 2)"), elements(2, [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11]));
    // Its axes reversed are C order already.
    permute(&folder, "2,1,0").succeeded();
    assert_eq!(data(&folder, "(2, 3, 2)"), elements(2, 0..12));
}

#[test]
fn one_axis_and_none_and_no_elements() {
    let folder = Folder::with_input(&npy("<f4", "()", &elements(4, 0..1)));
    permute(&folder, "").succeeded();
    assert_eq!(data(&folder, "()"), elements(4, 0..1));
    let folder = Folder::with_input(&npy("<f4", "(3,)", &elements(4, 0..3)));
    permute(&folder, "0").succeeded();
    assert_eq!(data(&folder, "(3,)"), elements(4, 0..3));
    let folder = Folder::with_input(&npy("<f4", "(3, 0, 5)", b""));
    let run = permute(&folder, "1,2,0").succeeded();
    assert!(run.json()["kernel"].is_null(), "nothing ran: {}", run.stdout);
    assert_eq!(data(&folder, "(0, 5, 3)"), b"");
}

#[test]
fn json_names_what_was_done() {
    let folder = Folder::with_input(&npy("<f4", "(2, 3, 4)", &[7; 96]));
    let document = permute(&folder, "1,0,2").succeeded().json();
    let members = ["schema", "dtype", "shape", "axes"].map(|member| &document[member]);
    assert_eq!(json!(members), json!([3, "f32", [2, 3, 4], [1, 0, 2]]));
    assert_eq!(document["device"]["kind"], "soft");
    assert!(document["kernel"].as_str().is_some_and(|kernel| kernel.contains("_b")), "what ran: {document}");
}

#[test]
fn axes_that_are_no_permutation_are_refused() {
    let folder = Folder::with_input(&npy("<f4", "(2, 3, 4)", &[7; 96]));
    for axes in ["0,0,1", "0,1", "0,1,2,3", "0,1,3", "0", ""] {
        let named = format!("axes `{axes}` of shape [2, 3, 4]");
        let run = permute(&folder, axes).ended(1, &[], &["cannot permute", "in.npy", &named, "from 0 to 2 once"]);
        assert_eq!(run.json()["error"]["kind"], "invalid_argument", "{axes:?}");
        folder.is_untouched();
    }
    for axes in ["x", "0,,1", "ab->aa"] {
        assert_eq!(permute(&folder, axes).code, Some(2), "{axes:?}");
        folder.is_untouched();
    }
}
