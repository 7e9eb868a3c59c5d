//! A run as a JSON document, and back.

use serde_json::{Map, Value};

use crate::run::Run;
use warpstride::error::{Error, ErrorKind, Result};
use warpstride::roofline::record::SCHEMA;

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("this run has no JSON: {error}"))
}

/// The document of a run: its members, and its records as `cases`.
///
/// # Errors
///
/// `InvalidArgument` where a number of the run is not finite.
pub(crate) fn document(run: &Run) -> Result<Map<String, Value>> {
    match serde_json::to_value(run).map_err(failed)? {
        Value::Object(document) => Ok(document),
        other => Err(failed(format_args!("{other} is not an object"))),
    }
}

/// The document of a run of one operation: the members of its record stand beside those of the run.
/// [`read`] takes it too.
///
/// # Errors
///
/// As [`document`].
pub(crate) fn document_of_one(run: &Run) -> Result<Map<String, Value>> {
    let mut document = document(run)?;
    if let Some(Value::Array(cases)) = document.remove("cases") {
        document.extend(
            cases
                .into_iter()
                .filter_map(|case| if let Value::Object(case) = case { Some(case) } else { None })
                .flatten(),
        );
    }
    Ok(document)
}

/// Reads a run from a document of this crate's command line: of `bench --all`, of a single
/// operation, or of `compare`.
///
/// # Errors
///
/// `Io` where the text is not such a document, or has another schema.
pub(crate) fn read(text: &[u8]) -> Result<Run> {
    let refused = |why: String| Error::new(ErrorKind::Io, why);
    let is_none = |why: serde_json::Error| refused(format!("does not hold a run of `warpstride --json bench`: {why}"));
    let mut document: Value = serde_json::from_slice(text).map_err(is_none)?;
    if let Some(schema) = document.get("schema").and_then(Value::as_u64).filter(|&schema| schema != u64::from(SCHEMA)) {
        return Err(refused(format!("has schema {schema}, and this version reads {SCHEMA}; measure it anew")));
    }
    let is_one = document.get("op").is_some() && document.get("cases").or(document.get("rows")).is_none();
    if is_one {
        let record = document.clone();
        document["cases"] = Value::Array(vec![record]);
    }
    serde_json::from_value(document).map_err(is_none)
}
