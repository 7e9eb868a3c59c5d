//! The model's times against what was measured on an H100, kept in `benches/record`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use warpstride::counters::Counters;
use warpstride::roofline::model::{Bound, DeviceModel};

fn rows(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/record/2026-11-21-h100").join(file);
    let record: Value = serde_json::from_slice(&fs::read(path).expect("the record")).expect("a document");
    record["rows"].as_array().expect("rows").clone()
}

fn variant(rows: &[Value], name: &str) -> Value {
    rows.iter().find(|row| row["variant"] == name).expect("the variant").clone()
}

/// The counters at 16384 x 16384 are 16 times those at 4096 x 4096: the rows of both begin at the
/// same places of their sectors, and both are whole tiles.
#[test]
fn every_variant_is_predicted_within_a_fifth() {
    let (small, large) = (rows("compare-f32-4096.json"), rows("compare-f32-16384.json"));
    for (name, bound) in [
        ("copy", Bound::Memory),
        ("column_loop", Bound::Launches),
        ("naive", Bound::L2),
        ("tiled", Bound::Shared),
        ("padded", Bound::Memory),
        ("staggered", Bound::Memory),
    ] {
        let counters = variant(&small, name)["counters"].clone();
        let counters: Counters = serde_json::from_value(counters).expect("counters");
        for (size, rows) in [(4096_u64, &small), (16384, &large)] {
            let bytes = 4 * size * size;
            let launches = if name == "column_loop" { size } else { 1 };
            let predicted = DeviceModel::H100.predict(&(counters * (size / 4096).pow(2)), bytes, bytes, launches);
            let measured = variant(rows, name)["ms"].as_f64().expect("a time");
            let error = predicted.ms / measured - 1.0;
            println!(
                "{name} {size}: {:.4} ms predicted, {measured:.4} measured, {:+.1} %",
                predicted.ms,
                100.0 * error
            );
            assert!(error.abs() < 0.2, "{name} at {size}: {predicted:?}, measured {measured} ms");
            assert_eq!(predicted.bound, bound, "{name} at {size}");
        }
    }
}
