//! Fatbinaries: nvcc's containers of code for several GPUs, as PTX and as machine code.
//!
//! ```text
//!  header   magic u32, version u16, bytes of the header u16, bytes of all entries u64
//!  entry    kind u16, version u16, bytes of the header u32, bytes of the payload u64,
//!           bytes of the compressed payload u32, .. u32, version of PTX u16 u16, architecture u32,
//!           place and length of a name u32 u32, flags u64, .. u64, bytes of the text u64
//!  payload  PTX or ELF, as it is or compressed; padding
//! ```
//!
//! NVIDIA does not document the format; this is what nvcc 11 to 13 write.

use std::io::Read as _;
use warpstride::error::counted;

use warpstride::interp::MAX_TEXT_BYTES;

/// The magic number of a container.
pub(super) const MAGIC: u32 = 0xBA55_ED50;
/// The bytes of its header.
pub(super) const HEADER: usize = 16;
/// The most bytes of a container: far more than nvcc writes.
const MOST_BYTES: u64 = 1 << 31;

/// The bytes of an entry's header up to the last field that is read.
const ENTRY: usize = 64;
/// The most entries of a container that are looked at.
const MOST_ENTRIES: usize = 1 << 12;

/// The kind of an entry that is PTX; another one is ELF.
const PTX: u16 = 1;
/// The flags of compressed payloads.
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
/// The flags of PTX for one architecture alone (`compute_90a`), and for its family
/// (`compute_100f`).
const ALONE: u64 = 0x10_0000;
const FAMILY: u64 = 0x20_0000;

/// PTX in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<'b> {
    /// The architecture: `80` is `compute_80`.
    pub(super) architecture: u32,
    flags: u64,
    payload: &'b [u8],
    /// The bytes of the text before compression.
    bytes: u64,
}

/// Reads a little-endian number; `None` beyond the end.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(N)?)?;
    Some(field.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// Returns the bytes of a whole container by its header.
pub(super) fn container_bytes(header: &[u8]) -> Result<usize, String> {
    let fields = (number::<4>(header, 0), number::<2>(header, 6), number::<8>(header, 8));
    let (Some(magic), Some(own), Some(entries)) = fields else {
        return Err("a fatbinary ends within its header; pass it whole".into());
    };
    if magic != u64::from(MAGIC) {
        return Err(format!("the data of a fatbinary begin with {magic:#x} and not with {MAGIC:#x}"));
    }
    let whole = own.checked_add(entries).filter(|&bytes| own >= HEADER as u64 && bytes <= MOST_BYTES);
    let whole = whole.and_then(|bytes| usize::try_from(bytes).ok());
    whole.ok_or_else(|| {
        format!(
            "a fatbinary cannot have a header of {own} and {entries} of entries",
            own = counted(own, "byte"),
            entries = counted(entries, "byte")
        )
    })
}

/// Returns the PTX of a container, in its order.
pub(super) fn entries(container: &[u8]) -> Result<Vec<Entry<'_>>, String> {
    let whole = container_bytes(container)?;
    let container = container.get(..whole).ok_or("a fatbinary is shorter than its header says; pass it whole")?;
    let mut at = number::<2>(container, 6).unwrap_or(0) as usize;
    let mut found = Vec::new();
    for _ in 0..MOST_ENTRIES {
        let rest = container.get(at..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        let (kind, entry, next) = entry(rest).ok_or_else(|| {
            format!("the entry at byte {at} of a fatbinary reaches beyond its end; compile the program anew")
        })?;
        if kind == PTX {
            found.push(entry);
        }
        at += next;
    }
    Ok(found)
}

/// Reads the entry at the beginning: its kind, itself, and the bytes that it takes.
fn entry(rest: &[u8]) -> Option<(u16, Entry<'_>, usize)> {
    let own = usize::try_from(number::<4>(rest, 4)?).ok().filter(|&own| own >= ENTRY)?;
    let padded = usize::try_from(number::<8>(rest, 8)?).ok()?;
    let next = own.checked_add(padded)?;
    let payload = rest.get(own..next)?;
    let flags = number::<8>(rest, 40)?;
    let is_compressed = flags & (LZ4 | ZSTD) != 0;
    let used = if is_compressed { usize::try_from(number::<4>(rest, 16)?).ok()? } else { padded };
    let payload = payload.get(..used)?;
    let entry = Entry { architecture: number::<4>(rest, 28)? as u32, flags, payload, bytes: number::<8>(rest, 56)? };
    Some((number::<2>(rest, 0)? as u16, entry, next))
}

impl Entry<'_> {
    /// Returns whether a GPU of an architecture runs it.
    pub(super) fn runs_on(&self, gpu: u32) -> bool {
        match self.flags & (ALONE | FAMILY) {
            0 => self.architecture <= gpu,
            FAMILY => self.architecture <= gpu && self.architecture / 10 == gpu / 10,
            _ => self.architecture == gpu,
        }
    }

    /// Returns the PTX as text.
    pub(super) fn text(&self) -> Result<String, String> {
        let compressed = self.flags & (LZ4 | ZSTD) != 0;
        let bytes = if compressed { self.bytes } else { self.payload.len() as u64 };
        let Some(bytes) = usize::try_from(bytes).ok().filter(|&bytes| bytes <= MAX_TEXT_BYTES) else {
            return Err(format!(
                "a fatbinary has {bytes} of PTX, and the limit is {MAX_TEXT_BYTES}",
                bytes = counted(bytes, "byte")
            ));
        };
        let mut text = match self.flags & (LZ4 | ZSTD) {
            0 => self.payload.to_vec(),
            LZ4 => lz4_flex::block::decompress(self.payload, bytes).map_err(|error| self.damaged(&error))?,
            ZSTD => self.zstd(bytes)?,
            both => return Err(format!("a fatbinary has PTX with the flags {both:#x} of two compressions")),
        };
        // Padding follows what is not compressed, and a NUL may end it.
        if let Some(end) = text.iter().position(|&byte| byte == 0) {
            text.truncate(end);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn zstd(&self, bytes: usize) -> Result<Vec<u8>, String> {
        let decoder = ruzstd::decoding::StreamingDecoder::new(self.payload).map_err(|error| self.damaged(&error))?;
        let mut text = Vec::new();
        decoder.take(bytes as u64).read_to_end(&mut text).map_err(|error| self.damaged(&error))?;
        Ok(text)
    }

    fn damaged(&self, error: &dyn std::fmt::Display) -> String {
        let architecture = self.architecture;
        format!("the compressed PTX for compute_{architecture} of a fatbinary is damaged ({error}); compile it anew")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small fatbinaries of nvcc 13.5: without compression, by LZ4 (`--compress-mode=speed`), by
    /// zstd, of several architectures, and of machine code alone.
    const REAL: [&[u8]; 5] = [
        include_bytes!("../../tests/data/plain.fatbin"),
        include_bytes!("../../tests/data/lz4.fatbin"),
        include_bytes!("../../tests/data/zstd.fatbin"),
        include_bytes!("../../tests/data/several.fatbin"),
        include_bytes!("../../tests/data/machine_code.fatbin"),
    ];

    fn texts(container: &[u8]) -> Result<Vec<(u32, String)>, String> {
        let found = entries(container)?;
        found.iter().map(|entry| Ok((entry.architecture, entry.text()?))).collect()
    }

    #[test]
    fn every_compression_gives_the_same_text() {
        let [plain, lz4, zstd] = [0, 1, 2].map(|number| texts(REAL[number]).unwrap());
        assert!(plain[0].0 == 80 && plain[0].1.contains(".entry"), "{plain:?}");
        assert_eq!(plain[0].1.trim(), lz4[0].1.trim());
        assert_eq!(plain, zstd);
        let several: Vec<u32> = texts(REAL[3]).unwrap().iter().map(|(architecture, _)| *architecture).collect();
        assert_eq!(several, [75, 80, 120]);
        assert_eq!(entries(REAL[4]), Ok(Vec::new()));
    }

    #[test]
    fn damaged_containers_are_refused_and_nothing_panics() {
        for real in REAL {
            for end in 0..real.len() {
                assert!(texts(&real[..end]).is_err());
            }
            for at in 0..real.len() {
                for change in [0x01, 0x80, 0xFF] {
                    let mut damaged = real.to_vec();
                    damaged[at] ^= change;
                    for (_, text) in texts(&damaged).unwrap_or_default() {
                        assert!(text.len() <= MAX_TEXT_BYTES);
                    }
                }
            }
        }
    }

    #[test]
    fn absurd_sizes_are_refused() {
        for at in [4, 6, 8, 12, 15, 20, 24, 28, 31, 32, 72, 78] {
            let mut damaged = REAL[2].to_vec();
            damaged[at..at + 2].fill(0xFF);
            drop(texts(&damaged));
        }
    }
}
