//! The user's tuning file: what `bench --tune` found on the GPUs of this machine.
//!
//! The file has a section for each GPU. Its first lines say what was measured, and with which
//! kernels; where one of them is no longer true, the section is stale. The parser is our own, so
//! that builds without features read the file too.
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

mod text;

use std::env;
use std::path::{Path, PathBuf};

use crate::abi::{VECTOR_TILE_THREADS, WIDTHS, ragged_tile_squares, vector_tile_squares};
use crate::driver::{DeviceInfo, DriverKind};
use crate::error::{Error, Result};
use crate::launch_shape::{MAX_BLOCK_THREADS, WARP, is_block};
use crate::ptx;
use text::{MAX_BYTES, MAX_SECTIONS, Parts, Section, contents, read};

/// Names the file in place of the one in the configuration folder.
const VARIABLE: &str = "WARPSTRIDE_TUNING";

/// The first line of a file that has no comment of its own.
const COMMENT: &str = "# Written by `warpstride bench --tune`.\n";

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
/// folder, or the one that the environment variable `WARPSTRIDE_TUNING` names. A file that cannot
/// be read, or was written by another version of this crate, changes nothing and leaves a note. So
/// does one that the variable names and that is missing.
///
/// [`Device::tuning_file`]: crate::Device::tuning_file
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
        let (row, note) = match Self::found(&path, info) {
            Ok(row) => (row, None),
            Err((why, advice)) => (None, Some(format!("{} is not used: {why}; {advice}", path.display()))),
        };
        Self { path: Some(path), row, note }
    }

    /// Returns the section for a device in the file at a path; or why it is not used, and what to
    /// do about it.
    fn found(path: &Path, info: &DeviceInfo) -> std::result::Result<Option<Tuned>, (String, &'static str)> {
        let (can_tune, is_named) = (info.kind == DriverKind::Cuda, Self::named().is_some());
        let elsewhere = match is_named {
            true => "name a plain file by WARPSTRIDE_TUNING, or unset it",
            false => "move it away, or name a plain file by WARPSTRIDE_TUNING",
        };
        let Some(text) = contents(path).map_err(|why| (why, elsewhere))? else {
            let advice = if can_tune { "`warpstride bench --tune` writes it" } else { elsewhere };
            return if is_named { Err(("it is not there".into(), advice)) } else { Ok(None) };
        };
        let read = read(&text).map_err(|why| (why, "move it away, or name another file by WARPSTRIDE_TUNING"))?;
        let advice = if can_tune { "`warpstride bench --tune` writes the section anew" } else { "remove the section" };
        Self::section(read, info).map_err(|why| (why, advice))
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

    /// Returns the file whose section is used.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.row.is_some())
    }

    /// Says why the file is not used, and what to do about it.
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
        Self::section(read(text)?, info)
    }

    fn section(file: Parts<'_>, info: &DeviceInfo) -> std::result::Result<Option<Tuned>, String> {
        let name = section_name(info);
        let Some(section) = file.sections.into_iter().find(|section| section.name == name) else {
            // The software GPU is not tuned.
            return if info.kind == DriverKind::Soft { Ok(None) } else { Err(format!("it has no section [{name}]")) };
        };
        let mut lines = section.lines.into_iter();
        for (key, now) in key(info) {
            let was = value(lines.next(), key)?;
            if was != now && !(key == BANDWIDTH && is_near(was, &now)) {
                let was = was.escape_debug();
                let of = if key == "version" || key == "ptx" { "program" } else { "device" };
                return Err(format!("[{name}] has {key} = {was}, and this {of} has {now}"));
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
    /// own. The rest stays as it is. Where there is no room for all sections of other GPUs, the
    /// oldest go.
    ///
    /// # Errors
    ///
    /// Why `before` is not the text of such a file.
    #[doc(hidden)]
    pub fn with_row(before: &[u8], info: &DeviceInfo, row: Tuned) -> std::result::Result<String, String> {
        let name = section_name(info);
        let mut own = format!("[{name}]\n");
        key(info).into_iter().for_each(|(key, value)| own += &format!("{key} = {value}\n"));
        for (width, [whole, ragged]) in WIDTHS.into_iter().zip(row.across_log2) {
            own += &format!("tiles_{width} = {whole} {ragged}\n");
        }
        own += &format!("copy_block = {}\nfill_block = {}\n", row.copy_block, row.fill_block);

        let Parts { comment, sections } = read(before)?;
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
mod tests {
    use std::fs;

    use super::*;
    use crate::random::SplitMix64;

    fn info() -> DeviceInfo {
        let nominal_bandwidth = Some(4_900_000_000_000);
        DeviceInfo { nominal_bandwidth, ..DeviceInfo::of_none("NVIDIA H200", DriverKind::Cuda) }
    }

    fn with_row(before: &str, info: &DeviceInfo, row: Tuned) -> String {
        TuningFile::with_row(before.as_bytes(), info, row).unwrap()
    }

    fn row() -> Tuned {
        Tuned::new([[3, 3], [4, 3], [4, 4], [4, 4], [5, 2]], 256, 512).unwrap()
    }

    #[test]
    fn a_section_is_read_as_it_was_written_and_leaves_others_alone() {
        let other = DeviceInfo { name: "NVIDIA H100 80GB HBM3".into(), ..info() };
        let first = with_row("", &other, row());
        let second = Tuned::new([[0, 0]; 5], 32, 1024).unwrap();
        let both = with_row(&first, &info(), second);
        assert_eq!(TuningFile::parse(both.as_bytes(), &other), Ok(Some(row())));
        assert_eq!(TuningFile::parse(both.as_bytes(), &info()), Ok(Some(second)));
        let again = with_row(&both, &info(), row());
        assert_eq!(TuningFile::parse(again.as_bytes(), &info()), Ok(Some(row())));
        assert_eq!(again.matches("[NVIDIA H200]").count(), 1, "{again}");
        // There is always room for one more.
        let many: String = (0..MAX_SECTIONS).map(|number| format!("[{number}]\n")).collect();
        let full = with_row(&many, &info(), row());
        assert_eq!(TuningFile::parse(full.as_bytes(), &info()), Ok(Some(row())));
        let fuller = TuningFile::parse(format!("{full}[one more]").as_bytes(), &info());
        assert_eq!(fuller, Err("it has more than 64 sections".into()));
    }

    #[test]
    fn what_is_not_a_section_of_this_gpu_stays_as_it_is() {
        let before = "# Mine.\n\n[first]\na=b\r\n# Of the second.\n[ second ]\n\n  c =  d\n# Of ours.\n[NVIDIA H200]\nx = y\n\n# Of the last.\n[last]\n# At the end.";
        let expected = before.replace("[NVIDIA H200]\nx = y\n", "") + "\n";
        let after = with_row(before, &info(), row());
        let (kept, own) = after.split_at(expected.len());
        assert_eq!(kept, expected);
        assert!(own.starts_with("[NVIDIA H200]\ncompute_capability = 9.0\n"), "{own}");
        assert_eq!(with_row(&after, &info(), row()), after);
        // A file that is not one of ours loses nothing.
        for (text, why) in [("\u{0}a", "line 1 is neither"), ("[a]\nNotes of mine\n", "line 2 is neither")] {
            let refused = TuningFile::with_row(text.as_bytes(), &info(), row()).unwrap_err();
            assert!(refused.starts_with(why), "{refused}");
        }
        assert_eq!(TuningFile::with_row(b"\xff", &info(), row()), Err("it is not UTF-8".into()));
    }

    #[test]
    fn the_oldest_sections_make_room_for_a_new_one() {
        // Lines in a shorter form than ours: in ours, the file would be too long.
        let full = format!("[{}]\n{}", "old", "a=b\n".repeat(16_000));
        let some = with_row("", &DeviceInfo { name: "other".into(), ..info() }, row());
        for before in [full.clone(), full.clone() + &"c=d\n".repeat(382), "#".repeat(MAX_BYTES)] {
            assert!(before.len() <= MAX_BYTES);
            let after = with_row(&before, &info(), row());
            assert!(after.len() <= MAX_BYTES, "{}", after.len());
            assert_eq!(TuningFile::parse(after.as_bytes(), &info()), Ok(Some(row())));
        }
        assert!(with_row(&full, &info(), row()).contains("[old]"), "there is room for both");
        let two = full + &"c=d\n".repeat(300) + some.strip_prefix(COMMENT).unwrap();
        let after = with_row(&two, &info(), row());
        assert!(!after.contains("[old]") && after.contains("[other]"), "the older one goes");
    }

    #[test]
    fn what_was_measured_on_another_gpu_or_with_other_kernels_is_stale() {
        let text = with_row("", &info(), row());
        let why = |text: &str, info: &DeviceInfo| TuningFile::parse(text.as_bytes(), info).unwrap_err();
        for (other, key) in [
            (DeviceInfo { compute_capability: (9, 1), ..info() }, "compute_capability"),
            (DeviceInfo { multiprocessors: 131, ..info() }, "multiprocessors"),
            (DeviceInfo { nominal_bandwidth: None, ..info() }, "bandwidth"),
            (DeviceInfo { l2_bytes: 1, ..info() }, "l2_bytes"),
        ] {
            assert!(why(&text, &other).starts_with(&format!("[NVIDIA H200] has {key} = ")), "{key}");
        }
        // Memory of one GPU may have a clock that differs by some percent from another's.
        for (bandwidth, is_fresh) in [(4_700, true), (5_100, true), (4_650, false), (5_200, false)] {
            let other = DeviceInfo { nominal_bandwidth: Some(bandwidth * 1_000_000_000), ..info() };
            assert_eq!(TuningFile::parse(text.as_bytes(), &other).is_ok(), is_fresh, "{bandwidth}");
        }
        let unknown = DeviceInfo { nominal_bandwidth: None, ..info() };
        let wrong = with_row("", &unknown, row()).replace("bandwidth = 0", "bandwidth = much");
        assert_eq!(why(&wrong, &unknown), "[NVIDIA H200] has bandwidth = much, and this device has 0");
        let version = text.replace(&format!("version = {}", env!("CARGO_PKG_VERSION")), "version = 0.0.1");
        assert!(why(&version, &info()).contains("[NVIDIA H200] has version = 0.0.1, and this program has"));
        let ptx = text.replace(ptx::PROVENANCE, "of another day");
        assert!(why(&ptx, &info()).contains("[NVIDIA H200] has ptx = of another day, and this"));
        let unknown = DeviceInfo { name: "another".into(), ..info() };
        assert_eq!(why(&text, &unknown), "it has no section [another]");
        let soft = DeviceInfo { kind: DriverKind::Soft, ..unknown };
        assert_eq!(TuningFile::parse(text.as_bytes(), &soft), Ok(None));
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_reason() {
        let text = with_row("", &info(), row());
        let changed = |from: &str, to: &str| {
            assert!(text.contains(from), "{from} is in {text}");
            TuningFile::parse(text.replace(from, to).as_bytes(), &info()).unwrap_err()
        };
        for (from, to, why) in [
            ("tiles_1 = 3 3", "tiles_1 = 8 3", "tiles_1 is 8 3, and its numbers are at most 7 and 4"),
            ("tiles_16 = 5 2", "tiles_16 = 5 6", "tiles_16 is 5 6, and its numbers are at most 10 and 5"),
            ("tiles_1 = 3 3", "tiles_1 = 3", "tiles_1 is `3`, not two numbers"),
            ("tiles_1 = 3 3", "tiles_1 = 3 -3", "tiles_1 has `-3`, which is not a whole number that fits"),
            (
                "tiles_1 = 3 3",
                "tiles_1 = 3 4294967296",
                "tiles_1 has `4294967296`, which is not a whole number that fits",
            ),
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
        let text = with_row(&with_row("", &other, row()), &info(), row());
        let mut random = SplitMix64(1);
        let (mut accepted, mut written) = (0, 0);
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
            // A row that is written into what can be read can be read.
            match TuningFile::with_row(&bytes, &info(), self::row()) {
                Ok(after) => {
                    assert_eq!(TuningFile::parse(after.as_bytes(), &info()), Ok(Some(self::row())), "{after}");
                    written += 1;
                }
                Err(why) => assert_eq!(read(&bytes).err(), Some(why)),
            }
        }
        assert!((100..15_000).contains(&accepted), "{accepted} of 20000 are accepted");
        assert!((accepted..20_000).contains(&written), "{written} of 20000 can be added to");
    }

    #[test]
    fn only_a_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(contents(&folder.path().join("none")), Ok(None));
        assert_eq!(contents(folder.path()), Err("it is a folder, a pipe or a device".into()));
        assert_eq!(TuningFile::before(&folder.path().join("none")), Ok(Vec::new()));
        let notes = folder.path().join("notes");
        fs::write(&notes, "[a]\nNotes of mine").unwrap();
        let refused = TuningFile::before(&notes).unwrap_err();
        assert_eq!(refused, "line 2 is neither `key = value` nor `[name]`");
        let path = folder.path().join("long");
        fs::write(&path, vec![b'#'; 2 * MAX_BYTES]).unwrap();
        let text = contents(&path).unwrap().unwrap();
        assert_eq!(text.len(), MAX_BYTES + 1);
        assert!(read(&text).is_err() && TuningFile::before(&path).is_err());
    }
}
