//! A class: `class.toml` in a learner's folder, or in the one around it, says from which day on the
//! answers are shown.

use std::fs;
use std::path::Path;

use anyhow::Result;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::super::{input, refuse};
use super::folder::Folder;

/// The file, which a teacher writes.
const CLASS: &str = "class.toml";
/// Most bytes of it.
const MAX_BYTES: usize = 1 << 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Class {
    /// The first day, in UTC, on which a solved lesson brings its solution, and a third wrong try
    /// the right numbers.
    answers: toml::value::Datetime,
}

/// Returns the day from which on answers are shown, if it has not come.
pub(super) fn withheld(folder: &Folder) -> Result<Option<Date>> {
    let full = folder.full();
    for path in [Some(&*full), full.parent()].into_iter().flatten().map(|place| place.join(CLASS)) {
        if fs::symlink_metadata(&path).is_ok() {
            let day = day(&path)?;
            let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
            return Ok((today < day).then_some(day));
        }
    }
    Ok(None)
}

/// The day in a file of a class.
fn day(path: &Path) -> Result<Date> {
    let advice = "write one line, the first day with answers: answers = 2027-01-31";
    input::ensure_regular(path, advice)?;
    let text = input::text(path, MAX_BYTES, "the file of a class", input::SAVE_AS_TEXT)?;
    let why = match toml::from_str::<Class>(&text) {
        Ok(Class { answers }) if answers.time.is_some() => format!("{answers} has a time, and a day has none"),
        Ok(Class { answers }) => match answers.to_string().parse() {
            Ok(day) => return Ok(day),
            Err(error) => error.to_string(),
        },
        Err(error) => error.message().to_owned(),
    };
    refuse!(Io, "cannot read {} ({why}); {advice}", path.display())
}
