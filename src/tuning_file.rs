//! The user's tuning file: what `bench --tune` found on the GPUs of this machine.
//!
//! The file has a section for each GPU. Its first lines say what was measured, and with which
//! kernels; where one of them is no longer true, the section is stale. The parser is our own, so
//! that builds without features read the file too.
//!
//! ```text
//! # Written by `warpstride bench --tune` and by measured plans.
//! [NVIDIA H200]
//! compute_capability = 9.0
//! multiprocessors = 132
//! bandwidth = 4916736000000
//! l2_bytes = 62914560
//! version = 0.2.0
//! ptx = prebuilt, ...
//! tiles_1 = 3 3
//! tiles_2 = 4 3
//! tiles_4 = 4 4
//! tiles_8 = 4 4
//! tiles_16 = 4 4
//! copy_block = 256
//! fill_block = 1024
//!
//! [NVIDIA H200, measured plans]
//! compute_capability = 9.0
//! ...
//! plan_9e3779b97f4a7c15 = boxes 2
//! ```
//!
//! A section `[NVIDIA H200, estimates]` has the weights by which plans choose, which `bench --tune`
//! fits, in lines such as `rows_4 = 1.077 3.243`. The last kind of section is what
//! [`PermutePlan::measure`] found.
//!
//! [`PermutePlan::measure`]: crate::ops::PermutePlan::measure

mod plans;
mod text;
mod weights;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, io, process};

use crate::abi::{VECTOR_TILE_THREADS, WIDTHS, ragged_tile_squares, vector_tile_squares};
use crate::driver::{DeviceInfo, DriverKind};
use crate::error::{Error, ErrorKind, Result};
use crate::launch_shape::{MAX_BLOCK_THREADS, WARP, is_block};
use crate::ptx;
use crate::sync::lock;
pub(crate) use plans::{MeasuredPlans, Plans};
use text::{MAX_BYTES, MAX_SECTIONS, Parts, Section, contents, read};
pub(crate) use weights::MOST_COSTS;
#[doc(hidden)]
pub use weights::{Estimated, TunedWeights, Weights};

/// Names the file in place of the one in the configuration folder.
const VARIABLE: &str = "WARPSTRIDE_TUNING";

/// The first line of a file that has no comment of its own.
const COMMENT: &str = "# Written by `warpstride bench --tune` and by measured plans.\n";

/// The figure of a section that need not be exact.
const BANDWIDTH: &str = "bandwidth";

/// The part by which the nominal bandwidth may differ from the one of a section: the clocks of
/// memory that drivers report for GPUs of one name differ by a few percent.
const TOLERANCE: u64 = 20;

/// The numbers that `bench --tune` finds on a GPU. All are within what the kernels take.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuned {
    across_log2: [[u8; 2]; 5],
    copy_block: u16,
    fill_block: u16,
}

impl Tuned {
    /// Takes base-2 logarithms of the micro-tiles along a row of a tile, by element width, for
    /// whole rows and ragged ones; and the threads in a block of a copy and of a fill.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the kernels do not take one of them.
    pub fn new(across_log2: [[u32; 2]; 5], copy_block: u32, fill_block: u32) -> Result<Self> {
        let refused = |sentence: String| Err(Error::argument(sentence));
        for (width, across) in WIDTHS.into_iter().zip(across_log2) {
            let most = [false, true].map(|ragged| Self::most_across(width, ragged));
            if across[0] > most[0] || across[1] > most[1] {
                return refused(format!(
                    "tiles_{width} is {} {}, and its numbers are at most {} and {}",
                    across[0], across[1], most[0], most[1]
                ));
            }
        }
        for (name, threads) in [("copy_block", copy_block), ("fill_block", fill_block)] {
            if !is_block(threads) {
                return refused(format!(
                    "{name} is {threads}, and a block has a multiple of {WARP} threads up to {MAX_BLOCK_THREADS}"
                ));
            }
        }
        // No loss: the numbers were checked.
        let across_log2 = across_log2.map(|pair| pair.map(|log2| log2 as u8));
        Ok(Self { across_log2, copy_block: copy_block as u16, fill_block: fill_block as u16 })
    }

    /// Returns the base-2 logarithm of the most micro-tiles along a row of the source.
    ///
    /// A ragged tile shares two micro-tiles a column with the one above. Of eight, it writes most
    /// itself, and enough lanes read them from shared memory: with fewer lanes, an H100 would serve
    /// two steps at once, which would then share banks.
    pub fn most_across(width: usize, ragged: bool) -> u32 {
        let all = |squares: u32| (VECTOR_TILE_THREADS * squares).ilog2();
        if ragged { all(ragged_tile_squares(width as u32)) - 3 } else { all(vector_tile_squares(width as u32)) }
    }

    /// Returns base-2 logarithms of the micro-tiles along a row, as [`Tuned::new`] takes them.
    pub fn across_log2(self) -> [[u32; 2]; 5] {
        self.across_log2.map(|pair| pair.map(u32::from))
    }

    /// Returns the threads in a block of a copy.
    pub fn copy_block(self) -> u32 {
        self.copy_block.into()
    }

    /// Returns the threads in a block of a fill.
    pub fn fill_block(self) -> u32 {
        self.fill_block.into()
    }
}

/// The user's tuning file as a device found it when it was opened ([`Device::tuning_file`]).
///
/// `warpstride bench --tune` writes the file `warpstride/tuning.txt` in the user's configuration
/// folder, or the one that the environment variable `WARPSTRIDE_TUNING` names. So does
/// [`PermutePlan::measure`], for the plans that it measures. A file that cannot be read, or was
/// written by another version of this crate, changes nothing and leaves a note. So does one that
/// the variable names and that is missing.
///
/// [`PermutePlan::measure`]: crate::ops::PermutePlan::measure
/// [`Device::tuning_file`]: crate::Device::tuning_file
#[derive(Debug, Clone, Default)]
pub struct TuningFile {
    path: Option<PathBuf>,
    row: Option<Tuned>,
    weights: Option<TunedWeights>,
    plans: Plans,
    note: Option<String>,
}

/// Why a part of the file is not used, and what to do about it.
type Refusal = (String, &'static str);

/// A part of the file for a device.
type Found<T> = std::result::Result<T, Refusal>;

/// The parts of a file for a device.
struct Parsed {
    row: Found<Option<Tuned>>,
    weights: Found<Option<Weights>>,
    plans: Found<Plans>,
}

impl Parsed {
    /// Makes the parts of a file that has nothing else.
    fn new(row: Found<Option<Tuned>>) -> Self {
        Self { row, weights: Ok(None), plans: Ok(Plans::new()) }
    }
}

/// The lines of a section behind those of its key.
type Lines<'a> = std::vec::IntoIter<(&'a str, &'a str)>;

impl TuningFile {
    /// Looks for the file's sections for a device.
    #[doc(hidden)]
    pub fn of(info: &DeviceInfo) -> Self {
        let Some(path) = Self::place() else { return Self::default() };
        let Parsed { row, weights, plans } = match Self::text(&path, info.kind) {
            Ok(Some(text)) => Self::found(&text, info),
            Ok(None) => Parsed::new(Ok(None)),
            Err(refusal) => Parsed::new(Err(refusal)),
        };
        let said =
            |what: &str, (why, advice): &Refusal| format!("{what}{} is not used: {why}; {advice}", path.display());
        let notes = [
            row.as_ref().err().map(|refusal| said("", refusal)),
            weights.as_ref().err().map(|refusal| said("the section of estimates in ", refusal)),
            plans.as_ref().err().map(|refusal| said("the section of measured plans in ", refusal)),
        ];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        let note = (!notes.is_empty()).then(|| notes.join(". "));
        let weights = weights.unwrap_or_default().as_ref().map(TunedWeights::of);
        Self { path: Some(path), row: row.unwrap_or_default(), weights, plans: plans.unwrap_or_default(), note }
    }

    /// Returns the text of the file at a path; `None` if none is there or needs to be.
    fn text(path: &Path, kind: DriverKind) -> Found<Option<Vec<u8>>> {
        let is_named = Self::named().is_some();
        let elsewhere = match is_named {
            true => "name a plain file by WARPSTRIDE_TUNING, or unset it",
            false => "move it away, or name a plain file by WARPSTRIDE_TUNING",
        };
        match contents(path) {
            Err(why) => Err((why, elsewhere)),
            Ok(None) if is_named => {
                let writes = "`warpstride bench --tune` writes it";
                Err(("it is not there".into(), if kind == DriverKind::Cuda { writes } else { elsewhere }))
            }
            Ok(text) => Ok(text),
        }
    }

    /// Returns what a file's text has for a device, or why each part is not used.
    fn found(text: &[u8], info: &DeviceInfo) -> Parsed {
        let file = match read(text) {
            Ok(file) => file,
            Err(why) => {
                let advice = "move it away, or name another file by WARPSTRIDE_TUNING";
                return Parsed::new(Err((why, advice)));
            }
        };
        let can_tune = info.kind == DriverKind::Cuda;
        let again = |advice: &'static str| if can_tune { advice } else { "remove the section" };
        let tuned_again = |why| (why, again("`warpstride bench --tune` writes the section anew"));
        let has = |name: String| file.section(&name).is_some();
        let row = match Self::row_of(&file, info) {
            // Plans were measured without tuning, or the section was removed.
            Err(_) if !has(section_name(info)) && (has(plans_name(info)) || has(weights_name(info))) => Ok(None),
            row => row.map_err(tuned_again),
        };
        let (weights, plans) = (Self::weights_of(&file, info), Self::plans_of(&file, info));
        let plans = plans.map_err(|why| (why, again("measure the plans again, or remove the section")));
        Parsed { row, weights: weights.map_err(tuned_again), plans }
    }

    /// Returns the path that the user's environment names.
    fn named() -> Option<PathBuf> {
        env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// Returns the path of the file, there or not; `None` if the system names no folder for it.
    #[doc(hidden)]
    pub fn place() -> Option<PathBuf> {
        let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let below_home = |folders: &str| Some(folder("HOME")?.join(folders));
        if let Some(path) = Self::named() {
            return Some(path);
        }
        let configuration = if cfg!(windows) {
            folder("APPDATA")
        } else if cfg!(target_os = "macos") {
            below_home("Library/Application Support")
        } else {
            folder("XDG_CONFIG_HOME").or_else(|| below_home(".config"))
        };
        Some(configuration?.join("warpstride").join("tuning.txt"))
    }

    /// Returns the file of which a section of `bench --tune` is used.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.row.is_some() || self.weights.is_some())
    }

    /// Says why the file is not used, and what to do about it.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns the plans that were measured on the device.
    pub(crate) fn plans(&self) -> &Plans {
        &self.plans
    }

    /// Returns what the section of tiles and blocks has.
    #[doc(hidden)]
    #[inline]
    pub fn row(&self) -> Option<Tuned> {
        self.row
    }

    /// Returns what the section of estimates has.
    #[doc(hidden)]
    #[inline]
    pub fn weights(&self) -> Option<TunedWeights> {
        self.weights
    }

    /// Returns the section for a device in a file's text; `None` if the software GPU has none.
    ///
    /// # Errors
    ///
    /// Why no section is used.
    #[doc(hidden)]
    pub fn parse(text: &[u8], info: &DeviceInfo) -> std::result::Result<Option<Tuned>, String> {
        Self::row_of(&read(text)?, info)
    }

    /// Returns the lines of a section behind its key; fails if the section is stale.
    fn current<'a>(section: &Section<'a>, info: &DeviceInfo) -> std::result::Result<Lines<'a>, String> {
        let (name, mut lines) = (section.name, section.lines.clone().into_iter());
        for (key, now) in key(info) {
            let was = value(lines.next(), key)?;
            if was != now && !(key == BANDWIDTH && is_near(was, &now)) {
                let was = was.escape_debug();
                let of = if key == "version" || key == "ptx" { "program" } else { "device" };
                return Err(format!("[{name}] has {key} = {was}, and this {of} has {now}"));
            }
        }
        Ok(lines)
    }

    fn plans_of(file: &Parts<'_>, info: &DeviceInfo) -> std::result::Result<Plans, String> {
        let section = file.section(&plans_name(info));
        section.map_or(Ok(Plans::new()), |section| plans::read(Self::current(section, info)?))
    }

    fn weights_of(file: &Parts<'_>, info: &DeviceInfo) -> std::result::Result<Option<Weights>, String> {
        let Some(section) = file.section(&weights_name(info)) else { return Ok(None) };
        let mut lines = Self::current(section, info)?;
        let weights = Weights::read(&mut lines)?;
        none_left(lines, section.name)?;
        Ok(Some(weights))
    }

    fn row_of(file: &Parts<'_>, info: &DeviceInfo) -> std::result::Result<Option<Tuned>, String> {
        let name = section_name(info);
        let Some(section) = file.section(&name) else {
            // The software GPU is not tuned.
            return if info.kind == DriverKind::Soft { Ok(None) } else { Err(format!("it has no section [{name}]")) };
        };
        let mut lines = Self::current(section, info)?;
        let mut across_log2 = [[0; 2]; 5];
        for (pair, width) in across_log2.iter_mut().zip(WIDTHS) {
            let key = format!("tiles_{width}");
            let text = value(lines.next(), &key)?;
            let (whole, ragged) =
                text.split_once(' ').ok_or_else(|| format!("{key} is `{}`, not two numbers", text.escape_debug()))?;
            *pair = [number(whole, &key)?, number(ragged, &key)?];
        }
        let [copy_block, fill_block] = ["copy_block", "fill_block"].map(|key| number(value(lines.next(), key)?, key));
        none_left(lines, &name)?;
        Tuned::new(across_log2, copy_block?, fill_block?).map(Some).map_err(|error| error.to_string())
    }

    /// Returns the number of measured plans for a device in a file's text.
    ///
    /// # Errors
    ///
    /// Why none are used.
    #[doc(hidden)]
    pub fn parse_plans(text: &[u8], info: &DeviceInfo) -> std::result::Result<usize, String> {
        Self::plans_of(&read(text)?, info).map(|plans| plans.len())
    }

    /// Returns the weights for a device in a file's text, if it has a section of them.
    ///
    /// # Errors
    ///
    /// Why none are used.
    #[doc(hidden)]
    pub fn parse_weights(text: &[u8], info: &DeviceInfo) -> std::result::Result<Option<Weights>, String> {
        Self::weights_of(&read(text)?, info)
    }

    /// Returns the text of a file after `before`, with these weights for a device in place of its
    /// own, as [`TuningFile::with_row`].
    ///
    /// # Errors
    ///
    /// Why `before` is not the text of such a file.
    #[doc(hidden)]
    pub fn with_weights(before: &[u8], info: &DeviceInfo, weights: &Weights) -> std::result::Result<String, String> {
        Self::with_section(read(before)?, info, &weights_name(info), Some(&weights.text()))
    }

    /// Returns the text of a file without the weights for a device.
    ///
    /// # Errors
    ///
    /// Why `before` is not the text of such a file.
    #[doc(hidden)]
    pub fn without_weights(before: &[u8], info: &DeviceInfo) -> std::result::Result<String, String> {
        Self::with_section(read(before)?, info, &weights_name(info), None)
    }

    /// Returns the text of a file after `before`, with this section for a device in place of its
    /// own. The rest stays as it is. Where there is no room for all sections of other GPUs, the
    /// oldest go.
    ///
    /// # Errors
    ///
    /// Why `before` is not the text of such a file.
    #[doc(hidden)]
    pub fn with_row(before: &[u8], info: &DeviceInfo, row: Tuned) -> std::result::Result<String, String> {
        let mut lines = String::new();
        for (width, [whole, ragged]) in WIDTHS.into_iter().zip(row.across_log2) {
            lines += &format!("tiles_{width} = {whole} {ragged}\n");
        }
        lines += &format!("copy_block = {}\nfill_block = {}\n", row.copy_block, row.fill_block);
        Self::with_section(read(before)?, info, &section_name(info), Some(&lines))
    }

    /// Returns the text of a file after `before` with a measured plan of a device, and the plans
    /// that it has then. Those of a section that is stale go.
    ///
    /// # Errors
    ///
    /// Why `before` is not the text of such a file, or its section not one of plans.
    fn with_plan(
        before: &[u8],
        info: &DeviceInfo,
        (number, way): (u64, String),
    ) -> std::result::Result<(String, Plans), String> {
        let file = read(before)?;
        let is_current = file.section(&plans_name(info)).is_some_and(|section| Self::current(section, info).is_ok());
        let mut plans = if is_current { Self::plans_of(&file, info)? } else { Plans::new() };
        plans::keep(&mut plans, number, way);
        let text = Self::with_section(file, info, &plans_name(info), Some(&plans::text(&plans)))?;
        Ok((text, plans))
    }

    /// Returns the path of the file for a plan that is to be kept.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the system names no folder for the file; `Io` if there is something else in
    /// its place.
    pub(crate) fn to_keep() -> Result<PathBuf> {
        let path = Self::place().ok_or_else(|| {
            let none = "the system names no folder for a user's configuration; set WARPSTRIDE_TUNING to a file";
            Error::new(ErrorKind::Unavailable, none)
        })?;
        Self::before(&path).map_err(|why| unkept(&path, &why))?;
        Ok(path)
    }

    /// Writes a measured plan of a device into the file at a path, and passes the plans that it has
    /// then to `follow`, before any other thread keeps one.
    ///
    /// # Errors
    ///
    /// `Io` if there is something else in its place, or the file cannot be written.
    pub(crate) fn keep(path: &Path, info: &DeviceInfo, plan: (u64, String), follow: impl FnOnce(Plans)) -> Result<()> {
        static KEEPING: Mutex<()> = Mutex::new(());
        let refused = |why: String| unkept(path, &why);
        let _keeping = lock(&KEEPING);
        let _locked = locked(path).map_err(|error| refused(error.to_string()))?;
        let before = contents(path).map_err(refused)?.unwrap_or_default();
        let (text, plans) = Self::with_plan(&before, info, plan).map_err(refused)?;
        replace(path, text.as_bytes()).map_err(|error| refused(error.to_string()))?;
        follow(plans);
        Ok(())
    }

    /// Returns the text of a file with a section for a device, of these lines behind its key, in
    /// place of the one of its name. Without lines that section goes.
    fn with_section(
        Parts { comment, sections }: Parts<'_>,
        info: &DeviceInfo,
        name: &str,
        lines: Option<&str>,
    ) -> std::result::Result<String, String> {
        let key = || key(info).map(|(key, value)| format!("{key} = {value}\n")).concat();
        let own = lines.map_or_else(String::new, |lines| format!("[{name}]\n{}{lines}", key()));
        // Each part may lack the end of its last line.
        let mut room = MAX_BYTES.saturating_sub(own.len());
        let has_room = |part: &str| !part.trim().is_empty() && part.len() < room;
        let mut parts = vec![if has_room(comment) { comment } else { COMMENT }];
        room = room.saturating_sub(parts[0].len() + 1);
        let others = sections.iter().filter(|section| section.name != name).count();
        let latest = sections.iter().skip(others.saturating_sub(MAX_SECTIONS - 1)).rev();
        // The comments above the section itself stay.
        let of_own = |section: &Section<'_>| (section.name == name).then_some(section.above);
        let latest = latest.map(|section| &section.text[..of_own(section).unwrap_or(section.text.len())]);
        let latest = latest.filter(|part| !part.trim().is_empty()).take_while(|part| {
            let rest = room.checked_sub(part.len() + 1);
            room = rest.unwrap_or(room);
            rest.is_some()
        });
        parts.extend(latest);
        parts[1..].reverse();
        let lines = |part: &str| if part.ends_with('\n') { part.to_owned() } else { format!("{part}\n") };
        Ok(parts.into_iter().map(lines).collect::<String>() + &own)
    }

    /// Returns the text of the file at a path for [`TuningFile::with_row`]: empty if there is none.
    ///
    /// # Errors
    ///
    /// Why there is something else.
    #[doc(hidden)]
    pub fn before(path: &Path) -> std::result::Result<Vec<u8>, String> {
        let text = contents(path)?.unwrap_or_default();
        read(&text)?;
        Ok(text)
    }
}

fn unkept(path: &Path, why: &str) -> Error {
    let path = path.display();
    let advice = "make room for it, or name another file by WARPSTRIDE_TUNING";
    Error::new(ErrorKind::Io, format!("cannot keep a measured plan in {path}: {why}; {advice}"))
}

/// Returns a path with more text at its end.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// Makes the folder of a file, and locks the file against other programs that keep plans in it
/// until the lock is dropped, where the system has such locks.
fn locked(path: &Path) -> io::Result<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), fs::create_dir_all)?;
    let file = File::options().create(true).append(true).open(beside(path, ".lock"))?;
    match file.lock() {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
        _ => Ok(file),
    }
}

/// Writes a file, whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Links stay.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let new = beside(&path, &format!(".{}", process::id()));
    let written = fs::write(&new, bytes).and_then(|()| fs::rename(&new, &path));
    written.inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Returns the value of the next line, which has this key.
fn value<'a>(line: Option<(&'a str, &'a str)>, key: &str) -> std::result::Result<&'a str, String> {
    line.filter(|(found, _)| *found == key).map(|(_, value)| value).ok_or_else(|| format!("it lacks the line of {key}"))
}

fn number(text: &str, key: &str) -> std::result::Result<u32, String> {
    // Digits only: the standard library would read a sign too.
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| format!("{key} has `{}`, which is not a whole number that fits", text.escape_debug()))
}

/// Returns the name of a device's section: its own, on one line.
fn section_name(info: &DeviceInfo) -> String {
    info.name.replace(char::is_control, " ").trim().to_owned()
}

/// Returns the name of a device's section of measured plans.
fn plans_name(info: &DeviceInfo) -> String {
    section_name(info) + ", measured plans"
}

/// Returns the name of a device's section of weights.
fn weights_name(info: &DeviceInfo) -> String {
    section_name(info) + ", estimates"
}

/// Fails if a section has more lines.
fn none_left(mut lines: Lines<'_>, name: &str) -> std::result::Result<(), String> {
    let too_many = |(key, _): (&str, _)| format!("`{}` is one line too many in [{name}]", key.escape_debug());
    lines.next().map_or(Ok(()), |line| Err(too_many(line)))
}

/// Returns whether one of two bandwidths is about the other.
fn is_near(was: &str, now: &str) -> bool {
    let (Ok(was), Ok(now)) = (was.parse::<u64>(), now.parse::<u64>()) else { return false };
    was.abs_diff(now) <= now / TOLERANCE
}

/// Returns what a section was measured on and with: another value makes it stale.
fn key(info: &DeviceInfo) -> [(&'static str, String); 6] {
    let (major, minor) = info.compute_capability;
    [
        ("compute_capability", format!("{major}.{minor}")),
        ("multiprocessors", info.multiprocessors.to_string()),
        (BANDWIDTH, info.nominal_bandwidth.unwrap_or(0).to_string()),
        ("l2_bytes", info.l2_bytes.to_string()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("ptx", ptx::PROVENANCE.to_owned()),
    ]
}

#[cfg(test)]
mod tests;
