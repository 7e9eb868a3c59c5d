//! `warpstride compare` on the software GPU.

use serde_json::{Value, json};
use warpstride::counters::Counters;

use super::{Folder, fixture, npy, soft};

const ALL: [&str; 7] = ["copy", "column_loop", "column_loop_graph", "naive", "tiled", "padded", "staggered"];

fn compare(line: &str) -> Value {
    soft(&format!("--json compare {line}")).succeeded().json()
}

fn row<'a>(document: &'a Value, variant: &str) -> &'a Value {
    let rows = document["cases"].as_array().expect("records");
    rows.iter().find(|row| row["variant"] == variant).unwrap_or_else(|| panic!("no {variant} in {document}"))
}

fn counters(document: &Value, variant: &str) -> Counters {
    serde_json::from_value(row(document, variant)["counters"].clone()).expect("counters")
}

/// The variants of a document, all of them verified.
#[track_caller]
fn verified(document: &Value) -> Vec<&str> {
    let rows = document["cases"].as_array().expect("records");
    for row in rows {
        assert_eq!(row["verified"], true, "{row}");
    }
    rows.iter().map(|row| row["variant"].as_str().expect("a name")).collect()
}

#[test]
fn the_document_has_every_member_that_scripts_rely_on() {
    let document = compare("--shape 64,96");
    let members = ["schema", "shape", "dtype", "counted_on"].map(|member| &document[member]);
    assert_eq!(json!(members), json!([3, [64, 96], "f32", "soft"]));
    assert!(document["ptx"].is_string() && document["device"]["name"].is_string(), "{document}");
    assert_eq!(document["device"]["kind"], "soft");
    assert_eq!(verified(&document), ALL);
    for row in document["cases"].as_array().expect("records") {
        for member in ["ms", "gbps", "fraction_of_copy", "gapless", "cold"] {
            assert_eq!(row.get(member), Some(&Value::Null), "{member} of {row}");
        }
        let global = ["instructions", "requests", "sectors"];
        let shared = ["instructions", "wavefronts", "bank_conflicts"];
        for (space, members) in
            [("global_load", global), ("global_store", global), ("shared_load", shared), ("shared_store", shared)]
        {
            for member in members {
                assert!(row["counters"][space][member].is_u64(), "{space}.{member} of {row}");
            }
        }
    }
}

/// A column of a tile without padding lies in one bank: 31 passes too many for each of its reads.
#[test]
fn tiles_move_the_fewest_sectors_and_only_the_plain_one_has_conflicts() {
    let document = compare("--shape 128,128");
    for (variant, conflicts) in [("tiled", 128 * 128 / 32 * 31), ("padded", 0), ("staggered", 0)] {
        let Counters { global_load, global_store, shared_load, ideal, .. } = counters(&document, variant);
        let sectors = [global_load.sectors, global_store.sectors];
        assert_eq!((sectors, [ideal.global_load, ideal.global_store]), ([2048; 2], [2048; 2]), "{variant}");
        assert_eq!(shared_load.bank_conflicts, conflicts, "{variant}");
    }
}

#[test]
fn every_element_type() {
    for dtype in ["u8", "i8", "u16", "i16", "f16", "bf16", "u32", "i32", "f32", "u64", "i64", "f64", "c64", "c128"] {
        let document = compare(&format!("--shape 33,65 --dtype {dtype}"));
        assert_eq!(document["dtype"], dtype);
        assert_eq!(verified(&document), ALL, "{dtype}");
    }
}

#[test]
fn shapes_at_the_edge() {
    for shape in ["0,5", "5,0", "0,0", "1,1", "1,4097", "4097,1", "4611686018427387904,0"] {
        assert_eq!(verified(&compare(&format!("--shape {shape}"))), ALL, "{shape}");
    }
}

#[test]
fn variants_are_chosen_by_name() {
    let document = compare("--shape 40,40 --variants padded,naive");
    assert_eq!(verified(&document), ["copy", "padded", "naive"]);
}

#[test]
fn a_file_in_either_order() {
    for order in ["u1-31x33.c.npy", "u1-31x33.f.npy"] {
        let path = fixture(order);
        let document = compare(path.to_str().expect("a path"));
        assert_eq!(verified(&document), ALL);
        assert_eq!((&document["dtype"], &document["shape"]), (&"u8".into(), &json!([31, 33])));
    }
}

#[test]
fn a_matrix_of_nans_is_verified_by_its_bits() {
    let folder = Folder::with_input(&npy("<f8", "(5, 7)", &[0xff; 5 * 7 * 8]));
    let path = folder.path("in.npy");
    assert_eq!(verified(&compare(path.to_str().expect("a path"))), ALL);
}

#[test]
fn the_table_speaks_of_no_speed() {
    let run = soft("--quiet compare --shape 64,64").succeeded();
    for variant in ALL {
        assert!(run.stdout.contains(variant), "{}", run.stdout);
    }
    assert!(run.stdout.contains("bank conflicts"));
    let cells = |variant: &str| {
        let row = run.stdout.lines().find(|line| line.split_whitespace().next() == Some(variant)).expect("a row");
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(run.stdout.contains("load sectors/ideal   store sectors/ideal"), "{}", run.stdout);
    assert_eq!(cells("copy")[3..5], ["1.00x", "1.00x"], "{}", run.stdout);
    assert_eq!(cells("naive")[3..5], ["1.00x", "8.00x"], "{}", run.stdout);
    assert!(run.stdout.contains("No GB/s: the software GPU"));
    assert_eq!(run.stdout.matches("GB/s").count(), 1, "{}", run.stdout);
    assert_eq!(run.stderr, "");
}

#[test]
fn times_are_predicted_where_a_model_is_named_and_labelled_as_such() {
    let document = compare("--shape 1024,1024 --model h100");
    assert_eq!(document["model"], "h100");
    for (variant, bound) in [("column_loop", "launches"), ("tiled", "shared"), ("naive", "l2")] {
        let row = row(&document, variant);
        assert_eq!((&row["ms"], &row["gbps"]), (&Value::Null, &Value::Null));
        assert_eq!(row["predicted"]["bound"], bound);
        assert!(row["predicted"]["ms"].as_f64() > Some(0.0), "{row}");
    }
    let run = soft("compare --shape 64,64 --model h100").succeeded();
    assert!(run.stdout.contains("predicted ms: by the model of h100") && run.stdout.contains("not measured"));
    assert_eq!(row(&document, "column_loop_graph")["predicted"], Value::Null, "no model knows a graph's nodes");
    assert_eq!(compare("--shape 64,64")["cases"][0]["predicted"], Value::Null);
    assert_eq!(soft("compare --model gtx1080").code, Some(2));
}

#[test]
fn counters_of_larger_matrices_of_whole_tiles_are_multiples() {
    let [small, large] = ["128,128", "256,256"].map(|shape| compare(&format!("--shape {shape}")));
    for variant in ALL {
        assert_eq!(counters(&small, variant) * 4, counters(&large, variant), "{variant}");
    }
    // The graph makes the same launches as the loop that it captures.
    assert_eq!(counters(&small, "column_loop_graph"), counters(&small, "column_loop"));
}
