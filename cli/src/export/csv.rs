//! The records of a run as comma-separated values: numbers as they are, and nothing where there is
//! none.

use crate::run::Run;
use crate::run::columns::{self, Value};
use warpstride::error::{Error, ErrorKind, Result, printable_line};

/// A heading, and a row for each record.
///
/// # Errors
///
/// `Io` where the table cannot be made.
pub(crate) fn csv(run: &Run) -> Result<Vec<u8>> {
    let failed =
        |error: &dyn std::fmt::Display| Error::new(ErrorKind::Io, format!("the table cannot be made: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns::of_csv().map(|(heading, _)| heading)).map_err(|error| failed(&error))?;
    for record in &run.cases {
        let fields = columns::of_csv().map(|(_, value)| value(record).map_or(String::new(), field));
        writer.write_record(fields).map_err(|error| failed(&error))?;
    }
    writer.into_inner().map_err(|error| failed(&error))
}

/// Returns a value as a field: on its line, and not a formula to a spreadsheet.
fn field(value: Value) -> String {
    let is_text = matches!(value, Value::Words(_));
    let field = printable_line(&value.whole());
    if is_text && field.starts_with(['=', '+', '-', '@']) { format!("'{field}") } else { field }
}
