//! Documents of earlier schemas, brought to the members of the present one.

use serde_json::{Map, Value, json};
use warpstride::element::DType;
use warpstride::roofline::record::{SCHEMA, Subject};

/// Returns the document of a run as the present schema has it. It stays incomplete where it is not
/// one; whatever reads it next says so.
pub(super) fn upgraded(mut document: Value) -> Value {
    // Until schema 3, documents of `compare` and of one operation had no `cases`.
    if document.get("cases").is_none() {
        if let Some(rows) = document.get("rows").cloned() {
            document["cases"] = rows;
        } else if document.get("op").is_some() {
            document["cases"] = Value::Array(vec![document.clone()]);
        }
    }
    if document["schema"] == 1 {
        complete(&mut document);
    }
    if document["schema"].is_u64() {
        document["schema"] = SCHEMA.into();
    }
    document
}

/// Adds what documents of schema 1 leave out.
fn complete(document: &mut Value) {
    let shared = [("dtype", document["dtype"].clone()), ("shape", document["shape"].clone())];
    if let Some(members) = document.as_object_mut() {
        insert_missing(members, [("date", "date unknown".into()), ("version", "of schema 1".into())]);
    }
    if let Some(device) = document.get_mut("device").and_then(Value::as_object_mut) {
        // The documents of `compare` and of one operation had fewer members of the device.
        insert_missing(device, ["multiprocessors", "memory_bytes", "l2_bytes"].map(|name| (name, 0.into())));
    }
    let cases = document.get_mut("cases").and_then(Value::as_array_mut);
    for case in cases.into_iter().flatten().filter_map(Value::as_object_mut) {
        insert_missing(case, shared.clone());
        flatten_times(case);
        name_operation(case);
        count_bytes(case);
        // After all else, because it is made of it.
        if let Ok(subject) = serde_json::from_value::<Subject>(Value::Object(case.clone())) {
            insert_missing(case, [("name", subject.name().into())]);
        }
    }
}

fn insert_missing<const N: usize>(members: &mut Map<String, Value>, missing: [(&str, Value); N]) {
    for (name, value) in missing {
        members.entry(name).or_insert(value);
    }
}

/// Puts the times of a case beside its other members, with quantiles as one object.
fn flatten_times(case: &mut Map<String, Value>) {
    if let Some(Value::Object(times)) = case.remove("times") {
        let of = |name: &str| times.get(name).cloned().unwrap_or_default();
        let (median, p10, p25) = (of("median_ms"), of("p10_ms"), of("p25_ms"));
        let ms = json!({ "median": median, "p10": p10, "p25": p25, "p75": of("p75_ms"), "p90": of("p90_ms") });
        case.extend(times);
        case.insert("ms".into(), ms);
    }
    if let Some(median) = case.get("ms").filter(|ms| ms.is_number()).cloned() {
        let of = |name: &str| case.get(name).cloned().unwrap_or_default();
        let ms = json!({ "median": median, "p10": of("ms_p10"), "p90": of("ms_p90") });
        case.insert("ms".into(), ms);
    }
    if let Some(ms) = case.get_mut("ms").and_then(Value::as_object_mut) {
        // The middle half of the samples lies within these, so a comparison stays careful.
        let (p10, p90) = (ms.get("p10").cloned().unwrap_or_default(), ms.get("p90").cloned().unwrap_or_default());
        insert_missing(ms, [("p25", p10), ("p75", p90)]);
    }
    let samples = case.get("samples_ms").and_then(Value::as_array).map_or(0, Vec::len);
    insert_missing(case, [("samples", samples.into())]);
}

/// Gives a case the group and the operation that it has now. The kernel of a transpose was its
/// operation, and rows of `compare` had only that.
fn name_operation(case: &mut Map<String, Value>) {
    let is_of_compare = case.get("variant").is_some_and(Value::is_string);
    if !is_of_compare && case.get("group") == Some(&"transpose".into()) {
        case.insert("variant".into(), case.get("op").cloned().unwrap_or_default());
        case.insert("op".into(), "transpose".into());
    }
    if is_of_compare {
        insert_missing(case, [("group", "transpose".into()), ("op", "transpose".into())]);
    }
    let group = if case.get("op") == Some(&"permute".into()) { "permute" } else { "stream" };
    insert_missing(case, [("group", group.into())]);
}

/// Counts the bytes that a case reads and writes, where it says only how many elements it moves.
fn count_bytes(case: &mut Map<String, Value>) {
    let number = |name: &str| case.get(name).and_then(Value::as_u64);
    let both = number("read").zip(number("written")).map(|(read, written)| read.saturating_add(written));
    let moved = || {
        let width = case.get("dtype")?.as_str()?.parse::<DType>().ok()?.width() as u64;
        let mut extents = case.get("shape")?.as_array()?.iter().map(Value::as_u64);
        extents.try_fold(2 * width, |bytes, extent| bytes.checked_mul(extent?))
    };
    if let Some(bytes) = both.or_else(|| number("bytes")).or_else(moved) {
        insert_missing(case, [("read", (bytes / 2).into()), ("written", (bytes / 2).into()), ("bytes", bytes.into())]);
    }
}
