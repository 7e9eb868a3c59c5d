//! Runs as files: read, written, kept by name, and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf, is_separator};

use crate::export::{json, text};
use crate::run::Run;
use crate::run::compare::{self, Change, Verdict};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::{Map, Value, json};
use warpstride::device::Device;
use warpstride::error::counted;
use warpstride::roofline::run::Machine;

use super::output::Output;
use super::{Refusal, args, destination, failure, input, refuse, require, terminal};

/// Bytes of a run's document, far more than the some hundred thousand of `bench --all`.
const MAX_RUN_BYTES: usize = 16 << 20;

/// Reads a run.
pub(super) fn read(path: &Path) -> Result<Run> {
    let text = input::read(path, MAX_RUN_BYTES, "a run")?;
    let refused = |error: warpstride::Error| {
        Refusal::of_file(warpstride::Error::new(error.kind(), format!("{} {error}", path.display())))
    };
    Ok(json::read(&text).map_err(refused)?)
}

/// Writes a file of the cache and the folders that it lies in: whole or not at all, also where two
/// programs measure at once.
pub(super) fn cache(file: &Path, contents: &impl Serialize) -> Result<()> {
    write(file, &serde_json::to_string_pretty(contents)?)
}

fn write(file: &Path, text: &str) -> Result<()> {
    let folder = file.parent().context("the file lies in no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    destination::replace(&destination::at(file)?, |file| file.write_all(text.as_bytes()))
}

/// The folders of kept runs. A run goes into the first. Versions up to 0.3 kept theirs in the
/// second, a cache, which systems may empty.
fn folders() -> Result<Vec<PathBuf>> {
    let data = dirs::data_dir().context("the system names no folder for data, where runs are kept")?;
    Ok([data].into_iter().chain(dirs::cache_dir()).map(|folder| folder.join("warpstride")).collect())
}

/// The files that may hold the run of this name, or the one that a path names. A run is written to
/// the first.
fn files(name: &str) -> Result<Vec<PathBuf>> {
    if name.contains(is_separator) {
        return Ok(vec![name.into()]);
    }
    Ok(folders()?.iter().map(|folder| folder.join(format!("run-{name}.json"))).collect())
}

/// The run that is kept under a name.
pub(super) fn kept(name: &str) -> Result<Run> {
    match files(name)?.iter().find(|file| file.exists()) {
        Some(file) => read(file),
        None => refuse!(
            InvalidArgument,
            "no run is kept as {name}; measure one with this command and `--save {name}`, or take one of `bench \
             --list-saved`"
        ),
    }
}

/// Prints the names of the kept runs, and their files.
pub(super) fn list(output: &Output) -> Result<()> {
    let mut saved = BTreeMap::new();
    for folder in folders()? {
        let failed = || format!("cannot list the kept runs in {}: check the folder", folder.display());
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.with_context(failed)?,
        };
        for entry in entries {
            let file = entry.with_context(failed)?.path();
            let name = file.file_name().and_then(|name| name.to_str()?.strip_prefix("run-")?.strip_suffix(".json"));
            // Names that `--compare` takes.
            if let Some(name) = name.and_then(|name| args::run_name(name).ok()) {
                saved.entry(name).or_insert(file);
            }
        }
    }
    let widest = saved.keys().map(String::len).max().unwrap_or(0);
    let line = |(name, file): (&String, &PathBuf)| format!("{name:widest$}  {}\n", terminal::path(file));
    let lines: String = saved.iter().map(line).collect();
    let text = if lines.is_empty() { "No runs are kept; `bench OP --save NAME` keeps one.\n" } else { &lines };
    let json = saved.iter().map(|(name, file)| json!({ "name": name, "file": file.display().to_string() }));
    output.result(text, json!({ "saved": json.collect::<Vec<_>>() }))
}

/// How a run that was just measured is kept, and the run that it is compared with.
pub(super) struct Kept<'a> {
    save: Option<&'a str>,
    before: Option<Run>,
}

impl<'a> Kept<'a> {
    /// Reads the run that is kept under `compare`: before minutes are spent.
    pub(super) fn new(save: Option<&'a str>, compare: Option<&str>) -> Result<Self> {
        Ok(Self { save, before: compare.map(kept).transpose()? })
    }

    /// Makes sure that runs on this device can be compared with it.
    pub(super) fn check_device(&self, device: &Device) -> Result<()> {
        let now = Machine::of(device);
        self.before.as_ref().map_or(Ok(()), |before| compare::check_devices(&before.device, &now))
    }

    /// Leaves only the case `name` to compare with: the run may be of other cases too.
    pub(super) fn narrow_to(&mut self, name: &str) -> Result<()> {
        let Some(before) = &mut self.before else { return Ok(()) };
        before.records.cases.retain(|case| case.name == name);
        require!(
            !before.cases.is_empty(),
            InvalidArgument,
            "the kept run has no case `{name}` to compare with; save one with --save, or name another run"
        );
        Ok(())
    }

    /// Makes sure that it has these cases and no others: before minutes are spent on those of
    /// another list.
    pub(super) fn ensure_same_cases<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<()> {
        let Some(before) = &self.before else { return Ok(()) };
        let now: BTreeSet<&str> = names.collect();
        let before: BTreeSet<&str> = before.cases.iter().map(|case| &*case.name).collect();
        let said = |some: &BTreeSet<&str>, others: &BTreeSet<&str>, how: &str| {
            let mut missing = some.difference(others);
            let first = missing.next()?;
            Some(format!("{how} {} (`{first}` first)", counted(missing.count() + 1, "case")))
        };
        let said = [said(&now, &before, "lacks"), said(&before, &now, "has beside them")];
        let said: Vec<String> = said.into_iter().flatten().collect();
        require!(
            said.is_empty(),
            InvalidArgument,
            "the kept run is of another list: it {}; compare with a run of the same list, or keep one with --save",
            said.join(" and ")
        );
        Ok(())
    }

    /// Keeps a run if it is right, since nothing is compared with a wrong one, and prints it: also
    /// where it could not be kept. Fails where a result is wrong, and where a case is worse than
    /// before.
    pub(super) fn finish(
        &self,
        run: &Run,
        mut shown: String,
        mut document: Map<String, Value>,
        output: &Output,
    ) -> Result<()> {
        let wrong = run.wrong();
        let saved = match self.save.filter(|_| wrong.is_empty()) {
            // In place of the run that was kept under it before.
            Some(name) => files(name).and_then(|files| {
                let file = &files[0];
                write(file, &json::lines(run)?)?;
                output.note(format!("kept as {name}: {}", file.display()));
                Ok(())
            }),
            None => Ok(()),
        };
        let changes = self.before.as_ref().map(|before| compare::changes(before, run)).transpose()?;
        if let Some(changes) = &changes {
            shown += &text::changes(changes);
            document.insert("changes".into(), json!(changes));
        }
        if let Err(error) = &saved {
            document.insert("error".into(), failure(error));
        }
        output.result(&shown, document.into())?;
        ensure!(wrong.is_empty(), "{} gave wrong elements; please report this as a bug", wrong.join(", "));
        saved?;
        ensure_none_worse(changes.as_deref().unwrap_or(&[]))
    }
}

/// Fails where a case is worse than it was, or where nothing could be compared.
pub(super) fn ensure_none_worse(changes: &[Change]) -> Result<()> {
    let worse = [
        (Verdict::Slower, "are slower than they were"),
        (Verdict::Different, "have other counters than they had"),
        (Verdict::Wrong, "gave wrong elements"),
        (Verdict::Gone, "are no longer there"),
    ];
    let of = |verdict| changes.iter().filter(move |change| change.verdict == verdict);
    let said: Vec<String> = worse
        .into_iter()
        .filter(|&(verdict, _)| of(verdict).next().is_some())
        .map(|(verdict, how)| {
            // A case by its name, with the counters that differ.
            let difference =
                |change: &Change| change.difference.as_ref().map_or(String::new(), |by| format!(" ({by})"));
            let names: Vec<String> = of(verdict).map(|change| change.name.clone() + &difference(change)).collect();
            format!("{} of {} {how}: {}", names.len(), counted(changes.len(), "case"), names.join(", "))
        })
        .collect();
    ensure!(said.is_empty(), "{}", said.join("; "));
    ensure!(
        changes.is_empty() || of(Verdict::Undecided).count() < changes.len(),
        "none of {} could be compared; measure both runs on a GPU that is not throttled",
        counted(changes.len(), "case")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use warpstride::device::Backend;
    use warpstride::element::DType;
    use warpstride::roofline::record::{Group, Record, Subject};

    use super::*;

    #[test]
    fn a_wrong_run_is_not_kept() {
        let device = Device::open(Backend::Soft).expect("the software GPU is always there");
        let output = Output::new(false, true, false);
        let subject = Subject::new(Group::Stream, "copy", DType::F32, &[64], [256; 2]);
        let run = Run::new(&device, String::new(), None, vec![Record::new(subject, None, false)]);
        let name = format!("wrong-{}", std::process::id());
        let kept_as = Kept { save: Some(&name), before: None };
        let error = kept_as.finish(&run, String::new(), Map::new(), &output).unwrap_err();
        assert!(error.to_string().contains("copy f32 64 gave wrong elements"), "{error}");
        assert!(kept(&name).is_err(), "{name} is kept");
    }
}
