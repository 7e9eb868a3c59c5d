//! The user's tuning file: what `bench --tune` found on the GPUs of this machine.
//!
//! The file has a section for each GPU. Its first lines say what was measured, and with which
//! kernels; where one of them is no longer true, the section is stale. No crate reads it, so that
//! every program that uses this library has it.
//!
//! ```text
//! # Written by `warpstride bench --tune`.
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
//! ```

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::abi::{VECTOR_TILE_THREADS, WIDTHS, ragged_tile_squares, vector_tile_squares};
use crate::driver::{DeviceInfo, DriverKind};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::MAX_BLOCK_THREADS;
use crate::ptx;

/// Most sections of a file, one for each GPU.
const MAX_SECTIONS: usize = 64;

/// Most bytes of a file, far more than those of so many sections.
const MAX_BYTES: usize = 64 << 10;

/// Names the file in place of the one in the configuration folder.
const VARIABLE: &str = "WARPSTRIDE_TUNING";

/// The lanes of a warp: a block is whole warps.
const WARP: u32 = 32;

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
        let refused = |sentence: String| Err(Error::new(ErrorKind::InvalidArgument, sentence));
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
            if threads == 0 || !threads.is_multiple_of(WARP) || threads > MAX_BLOCK_THREADS {
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
/// folder, or the one that the environment variable `WARPSTRIDE_TUNING` names. A file that cannot
/// be read, or was written by another version of this crate, changes nothing and leaves a note.
///
/// [`Device::tuning_file`]: super::Device::tuning_file
#[derive(Debug, Clone, Default)]
pub struct TuningFile {
    path: Option<PathBuf>,
    row: Option<Tuned>,
    note: Option<String>,
}

impl TuningFile {
    /// Looks for the file's section for a device.
    #[doc(hidden)]
    pub fn of(info: &DeviceInfo) -> Self {
        let Some(path) = Self::place() else { return Self::default() };
        let found = match contents(&path) {
            Ok(None) => Ok(None),
            Ok(Some(text)) => Self::parse(&text, info),
            Err(why) => Err(why),
        };
        let (row, note) = match found {
            Ok(row) => (row, None),
            Err(why) => {
                let advice = "`warpstride bench --tune` writes it anew";
                (None, Some(format!("{} is not used: {why}; {advice}", path.display())))
            }
        };
        Self { path: Some(path), row, note }
    }

    /// Returns the path of the file, there or not; `None` if the system names no folder for it.
    #[doc(hidden)]
    pub fn place() -> Option<PathBuf> {
        let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let below_home = |folders: &str| Some(folder("HOME")?.join(folders));
        if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            return Some(path.into());
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

    /// Returns the file whose section is used.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.row.is_some())
    }

    /// Says why the file is there and not used.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns what the section has.
    #[doc(hidden)]
    #[inline]
    pub fn row(&self) -> Option<Tuned> {
        self.row
    }

    /// Returns the section for a device in a file's text; `None` if the software GPU has none.
    ///
    /// # Errors
    ///
    /// Why no section is used.
    #[doc(hidden)]
    pub fn parse(text: &[u8], info: &DeviceInfo) -> std::result::Result<Option<Tuned>, String> {
        let name = section_name(info);
        let Some(section) = sections(text)?.into_iter().find(|section| section.name == name) else {
            // Nobody tunes it.
            return if info.kind == DriverKind::Soft { Ok(None) } else { Err(format!("it has no section [{name}]")) };
        };
        let mut lines = section.lines.into_iter();
        for (key, now) in key(info) {
            let was = value(lines.next(), key)?;
            if was != now {
                return Err(format!("the {key} of [{name}] was `{}` and is `{now}`", was.escape_debug()));
            }
        }
        let mut across_log2 = [[0; 2]; 5];
        for (pair, width) in across_log2.iter_mut().zip(WIDTHS) {
            let key = format!("tiles_{width}");
            let text = value(lines.next(), &key)?;
            let (whole, ragged) =
                text.split_once(' ').ok_or_else(|| format!("{key} is `{}`, not two numbers", text.escape_debug()))?;
            *pair = [number(whole, &key)?, number(ragged, &key)?];
        }
        let [copy_block, fill_block] = ["copy_block", "fill_block"].map(|key| number(value(lines.next(), key)?, key));
        if let Some((key, _)) = lines.next() {
            return Err(format!("`{}` is one line too many in [{name}]", key.escape_debug()));
        }
        Tuned::new(across_log2, copy_block?, fill_block?).map(Some).map_err(|error| error.to_string())
    }

    /// Returns the text of a file after `before`, with this section for a device in place of its
    /// own. The latest sections of other GPUs stay, unless the text cannot be read.
    #[doc(hidden)]
    pub fn with_row(before: &[u8], info: &DeviceInfo, row: Tuned) -> String {
        let name = section_name(info);
        let mut text = "# Written by `warpstride bench --tune`.\n".to_owned();
        let mut kept = sections(before).unwrap_or_default();
        kept.retain(|section| section.name != name);
        let too_many = (kept.len() + 1).saturating_sub(MAX_SECTIONS);
        for Section { name, lines } in kept.into_iter().skip(too_many) {
            text += &format!("[{name}]\n");
            lines.into_iter().for_each(|(key, value)| text += &format!("{key} = {value}\n"));
        }
        text += &format!("[{name}]\n");
        key(info).into_iter().for_each(|(key, value)| text += &format!("{key} = {value}\n"));
        for (width, [whole, ragged]) in WIDTHS.into_iter().zip(row.across_log2) {
            text += &format!("tiles_{width} = {whole} {ragged}\n");
        }
        text + &format!("copy_block = {}\nfill_block = {}\n", row.copy_block, row.fill_block)
    }

    /// Returns the text of the file at a path for [`TuningFile::with_row`]: empty if there is none,
    /// or none that can be read.
    #[doc(hidden)]
    pub fn before(path: &Path) -> Vec<u8> {
        contents(path).ok().flatten().unwrap_or_default()
    }
}

/// Returns a file's bytes; `None` if there is no file.
fn contents(path: &Path) -> std::result::Result<Option<Vec<u8>>, String> {
    // Before it is opened, which would wait for the writer of a pipe.
    match fs::metadata(path) {
        Ok(there) if there.is_file() => {}
        Ok(_) => return Err("it is no file".into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut text));
    read.map(|_| Some(text)).map_err(|error| error.to_string())
}

/// A section, with its lines in order.
struct Section<'a> {
    name: &'a str,
    lines: Vec<(&'a str, &'a str)>,
}

/// Reads every section of a text.
fn sections(text: &[u8]) -> std::result::Result<Vec<Section<'_>>, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it has more than {}", counted(MAX_BYTES, "byte")));
    }
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8")?;
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).map(|(number, line)| (number, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            if sections.iter().any(|section| section.name == name) {
                return Err(format!("line {number} begins a second section [{}]", name.escape_debug()));
            }
            if sections.len() == MAX_SECTIONS {
                return Err(format!("it has more than {}", counted(MAX_SECTIONS, "section")));
            }
            sections.push(Section { name, lines: Vec::new() });
            continue;
        }
        let (Some((key, value)), Some(section)) = (line.split_once('='), sections.last_mut()) else {
            return Err(format!("line {number} is neither `key = value` nor `[name]`"));
        };
        section.lines.push((key.trim(), value.trim()));
    }
    Ok(sections)
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
        .ok_or_else(|| format!("{key} has `{}`, which is no number", text.escape_debug()))
}

/// Returns the name of a device's section: its own, on one line.
fn section_name(info: &DeviceInfo) -> String {
    info.name.replace(char::is_control, " ").trim().to_owned()
}

/// Returns what a section was measured on and with: another value makes it stale.
fn key(info: &DeviceInfo) -> [(&'static str, String); 6] {
    let (major, minor) = info.compute_capability;
    [
        ("compute_capability", format!("{major}.{minor}")),
        ("multiprocessors", info.multiprocessors.to_string()),
        ("bandwidth", info.nominal_bandwidth.unwrap_or(0).to_string()),
        ("l2_bytes", info.l2_bytes.to_string()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("ptx", ptx::PROVENANCE.to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn info() -> DeviceInfo {
        DeviceInfo {
            name: "NVIDIA H200".into(),
            kind: DriverKind::Cuda,
            ordinal: 0,
            compute_capability: (9, 0),
            driver_version: "13.0".into(),
            multiprocessors: 132,
            memory_bytes: 141 << 30,
            l2_bytes: 60 << 20,
            nominal_bandwidth: Some(4_900_000_000_000),
            max_block_threads: MAX_BLOCK_THREADS,
            max_grid: [1; 3],
            shared_bytes_per_block: 48 << 10,
            pci_bus_id: None,
        }
    }

    fn row() -> Tuned {
        Tuned::new([[3, 3], [4, 3], [4, 4], [4, 4], [5, 2]], 256, 512).unwrap()
    }

    #[test]
    fn a_section_is_read_as_it_was_written_and_leaves_others_alone() {
        let other = DeviceInfo { name: "NVIDIA H100 80GB HBM3".into(), ..info() };
        let first = TuningFile::with_row(b"", &other, row());
        let second = Tuned::new([[0, 0]; 5], 32, 1024).unwrap();
        let both = TuningFile::with_row(first.as_bytes(), &info(), second);
        assert_eq!(TuningFile::parse(both.as_bytes(), &other), Ok(Some(row())));
        assert_eq!(TuningFile::parse(both.as_bytes(), &info()), Ok(Some(second)));
        let again = TuningFile::with_row(both.as_bytes(), &info(), row());
        assert_eq!(TuningFile::parse(again.as_bytes(), &info()), Ok(Some(row())));
        assert_eq!(again.matches("[NVIDIA H200]").count(), 1, "{again}");
        // There is always room for one more.
        let many: String = (0..MAX_SECTIONS).map(|number| format!("[{number}]\n")).collect();
        let full = TuningFile::with_row(many.as_bytes(), &info(), row());
        assert_eq!(TuningFile::parse(full.as_bytes(), &info()), Ok(Some(row())));
        let fuller = TuningFile::parse(format!("{full}[one more]").as_bytes(), &info());
        assert_eq!(fuller, Err("it has more than 64 sections".into()));
        // What cannot be read is replaced.
        assert_eq!(TuningFile::with_row(b"\xff", &other, row()), first);
    }

    #[test]
    fn what_was_measured_on_another_gpu_or_with_other_kernels_is_stale() {
        let text = TuningFile::with_row(b"", &info(), row());
        let why = |text: &str, info: &DeviceInfo| TuningFile::parse(text.as_bytes(), info).unwrap_err();
        for (other, key) in [
            (DeviceInfo { compute_capability: (9, 1), ..info() }, "compute_capability"),
            (DeviceInfo { multiprocessors: 131, ..info() }, "multiprocessors"),
            (DeviceInfo { nominal_bandwidth: None, ..info() }, "bandwidth"),
            (DeviceInfo { l2_bytes: 1, ..info() }, "l2_bytes"),
        ] {
            assert!(why(&text, &other).starts_with(&format!("the {key} of [NVIDIA H200] was ")), "{key}");
        }
        let version = text.replace(&format!("version = {}", env!("CARGO_PKG_VERSION")), "version = 0.0.1");
        assert!(why(&version, &info()).contains("version of [NVIDIA H200] was `0.0.1` and is"));
        let ptx = text.replace(ptx::PROVENANCE, "of another day");
        assert!(why(&ptx, &info()).contains("ptx of [NVIDIA H200] was `of another day` and is"));
        let unknown = DeviceInfo { name: "another".into(), ..info() };
        assert_eq!(why(&text, &unknown), "it has no section [another]");
        let soft = DeviceInfo { kind: DriverKind::Soft, ..unknown };
        assert_eq!(TuningFile::parse(text.as_bytes(), &soft), Ok(None));
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_reason() {
        let text = TuningFile::with_row(b"", &info(), row());
        let changed = |from: &str, to: &str| {
            assert!(text.contains(from), "{from} is in {text}");
            TuningFile::parse(text.replace(from, to).as_bytes(), &info()).unwrap_err()
        };
        for (from, to, why) in [
            ("tiles_1 = 3 3", "tiles_1 = 8 3", "tiles_1 is 8 3, and its numbers are at most 7 and 4"),
            ("tiles_16 = 5 2", "tiles_16 = 5 6", "tiles_16 is 5 6, and its numbers are at most 10 and 5"),
            ("tiles_1 = 3 3", "tiles_1 = 3", "tiles_1 is `3`, not two numbers"),
            ("tiles_1 = 3 3", "tiles_1 = 3 -3", "tiles_1 has `-3`, which is no number"),
            ("tiles_1 = 3 3", "tiles_1 = 3 4294967296", "tiles_1 has `4294967296`, which is no number"),
            ("tiles_1 = 3 3\n", "", "it lacks the line of tiles_1"),
            ("copy_block = 256", "copy_block = 0", "copy_block is 0, and a block has"),
            ("copy_block = 256", "copy_block = 100", "copy_block is 100, and a block has"),
            ("fill_block = 512", "fill_block = 2048", "fill_block is 2048, and a block has"),
            ("fill_block = 512", "fill_block = 512\nfill_block = 512", "`fill_block` is one line too many"),
            ("[NVIDIA H200]", "NVIDIA H200", "line 2 is neither"),
            ("[NVIDIA H200]", "[NVIDIA H200]\n[NVIDIA H200]", "line 3 begins a second section"),
        ] {
            let found = changed(from, to);
            assert!(found.contains(why), "{to:?}: {found}");
        }
        assert_eq!(TuningFile::parse(b"\xff", &info()), Err("it is not UTF-8".into()));
        let long = vec![b'#'; MAX_BYTES + 1];
        assert_eq!(TuningFile::parse(&long, &info()), Err("it has more than 65536 bytes".into()));
    }

    /// `fuzz/` continues from here.
    #[test]
    fn a_mutated_file_is_read_within_limits_or_refused() {
        let other = DeviceInfo { name: "another".into(), ..info() };
        let text = TuningFile::with_row(TuningFile::with_row(b"", &other, row()).as_bytes(), &info(), row());
        let mut random = SplitMix64(1);
        let mut accepted = 0;
        for _ in 0..20_000 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..=random.below(3) {
                let place = random.below(bytes.len() as u64) as usize;
                match random.below(4) {
                    0 => bytes[place] = random.draw() as u8,
                    1 => bytes[place] = b"0123456789 =[]#\n-"[random.below(17) as usize],
                    2 => drop(bytes.drain(place..bytes.len().min(place + random.below(40) as usize))),
                    _ => bytes.truncate(place.max(1)),
                }
                bytes.push(b'\n');
            }
            if let Ok(Some(row)) = TuningFile::parse(&bytes, &info()) {
                assert_eq!(Tuned::new(row.across_log2(), row.copy_block(), row.fill_block()), Ok(row));
                accepted += 1;
            }
            // A row that is written in its place can be read.
            let after = TuningFile::with_row(&bytes, &info(), self::row());
            assert_eq!(TuningFile::parse(after.as_bytes(), &info()), Ok(Some(self::row())), "{after}");
        }
        assert!((100..15_000).contains(&accepted), "{accepted} of 20000 are accepted");
    }

    #[test]
    fn only_a_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(contents(&folder.path().join("none")), Ok(None));
        assert_eq!(contents(folder.path()), Err("it is no file".into()));
        let path = folder.path().join("long");
        fs::write(&path, vec![b'#'; 2 * MAX_BYTES]).unwrap();
        let read = contents(&path).unwrap().unwrap();
        assert_eq!(read.len(), MAX_BYTES + 1);
        assert!(sections(&read).is_err());
    }
}
