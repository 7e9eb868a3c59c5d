//! Allocations and frees in the order in which a program made them: from a file in the columns of
//! RMM's logging adaptor, `Thread,Time,Action,Pointer,Size,Stream`, or from a seed.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use anyhow::{Context, Result};
use csv::{ReaderBuilder, StringRecord};
use warpstride::alloc::{COLUMNS, LOST};
use warpstride::error::counted;
use warpstride::random::SplitMix64;

use crate::{refuse, require};

/// Most rows of a log.
const MOST_ROWS: usize = 1 << 24;
/// Most bytes of a row.
const MOST_ROW_BYTES: usize = 1 << 12;
/// Most bytes in use: more than any device has, and few enough for all sums.
const MOST_BYTES: u64 = 1 << 50;
/// Most streams.
const MOST_STREAMS: usize = 1 << 12;

/// An allocation of `bytes` bytes, at least 1, into an empty slot, or the free of a slot's block.
/// Slots are numbers that are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) is_free: bool,
    pub(super) slot: u32,
    pub(super) bytes: u64,
    /// The stream that the block is for, or that used it last, from 0.
    pub(super) stream: u32,
    /// The line of the log that has it, from 1; 0 in a log from a seed.
    pub(super) line: u32,
}

/// Rows that a replay leaves out for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) why: &'static str,
    pub(super) rows: u64,
    /// The line of the first of them.
    pub(super) first_line: u32,
}

const FAILED: &str = "failed allocations";
const EMPTY: &str = "blocks of 0 bytes";

/// The allocations and frees of a program, each block allocated before it is freed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) calls: Vec<Call>,
    pub(super) left_out: Vec<LeftOut>,
    /// The numbers of slots and of streams.
    pub(super) slots: u32,
    pub(super) streams: u32,
    empty: Vec<u32>,
    active: u64,
    /// The call with which the most bytes are in use for the first time, and how many those are.
    pub(super) peak: (usize, u64),
}

impl Log {
    /// Adds an allocation, and returns it for the block's free.
    fn alloc(&mut self, bytes: u64, stream: u32, line: u32) -> Call {
        let slot = self.empty.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.active += bytes;
        if self.active > self.peak.1 {
            self.peak = (self.calls.len(), self.active);
        }
        self.add(Call { is_free: false, slot, bytes, stream, line })
    }

    /// Adds the free of a block that is in use.
    fn free(&mut self, allocated: Call, stream: u32, line: u32) {
        self.empty.push(allocated.slot);
        self.active -= allocated.bytes;
        self.add(Call { is_free: true, stream, line, ..allocated });
    }

    fn leave_out(&mut self, why: &'static str, line: u32) {
        match self.left_out.iter_mut().find(|left_out| left_out.why == why) {
            Some(left_out) => left_out.rows += 1,
            None => self.left_out.push(LeftOut { why, rows: 1, first_line: line }),
        }
    }

    fn add(&mut self, call: Call) -> Call {
        self.streams = self.streams.max(call.stream + 1);
        self.calls.push(call);
        call
    }

    /// Makes a log of `calls` allocations and frees on four streams: sizes log-uniform from 512 B
    /// to 2 GiB, up to 20 GiB in use, and blocks that are freed in random order. Sizes hardly ever
    /// come back, which is hard on allocators. One block in eight is freed on another stream than
    /// it was allocated on. The same seed gives the same log, and the records name logs by seeds.
    pub(super) fn random(seed: u64, calls: usize) -> Self {
        const LEAST: f64 = 512.0;
        const MOST: f64 = (2_u64 << 30) as f64;
        const LIVE: u64 = 20 << 30;
        const STREAMS: u64 = 4;
        // The bias is below `bound / 2^64`.
        let below =
            |random: &mut SplitMix64, bound: u64| ((u128::from(random.draw()) * u128::from(bound)) >> 64) as u64;
        let (mut random, mut log, mut live) = (SplitMix64(seed), Self::default(), Vec::new());
        while log.calls.len() < calls {
            let unit = (random.draw() >> 11) as f64 / (1_u64 << 53) as f64;
            let bytes = (LEAST * (MOST / LEAST).powf(unit)) as u64;
            // Without the coin the memory would be full all the time.
            if log.active + bytes > LIVE || (!live.is_empty() && below(&mut random, 16) < 7) {
                let block: Call = live.swap_remove(below(&mut random, live.len() as u64) as usize);
                let elsewhere = below(&mut random, 8) == 0;
                log.free(block, if elsewhere { below(&mut random, STREAMS) as u32 } else { block.stream }, 0);
            } else {
                let stream = below(&mut random, STREAMS) as u32;
                live.push(log.alloc(bytes, stream, 0));
            }
        }
        log
    }

    /// Reads a log in RMM's columns, in any order; columns beyond them are left out, and so are
    /// failed allocations and blocks of 0 bytes, which [`Log::left_out`] counts. An error names the
    /// line.
    pub(super) fn read(text: impl Read) -> Result<Self> {
        let mut rows = ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(ShortRows {
            inner: text,
            line: 1,
            bytes: 0,
        });
        let headers = rows.headers().map_err(failed)?.clone();
        let column = |name: &str| -> Result<usize> {
            match headers.iter().position(|header| header.eq_ignore_ascii_case(name)) {
                Some(place) => Ok(place),
                None => refuse!(InvalidArgument, "the log has no column `{name}`; its first line must be {COLUMNS}"),
            }
        };
        let columns = [column("Action")?, column("Pointer")?, column("Size")?, column("Stream")?];
        let (mut reader, mut row) = (Reader::default(), StringRecord::new());
        while rows.read_record(&mut row).map_err(failed)? {
            let line = row.position().map_or(0, csv::Position::line);
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            reader.row(columns, &row, line).with_context(|| format!("line {line} of the log"))?;
        }
        Ok(reader.log)
    }

    /// Returns the allocations of the largest blocks that are in use before a call, in a log with
    /// lines.
    pub(super) fn holders(&self, call: &Call) -> Vec<Call> {
        const MOST: usize = 5;
        let mut live = vec![None; self.slots as usize];
        for before in self.calls.iter().take_while(|before| before.line < call.line) {
            live[before.slot as usize] = Some(*before).filter(|before| !before.is_free);
        }
        let mut holders: Vec<Call> = live.into_iter().flatten().collect();
        holders.sort_by_key(|holder| (std::cmp::Reverse(holder.bytes), holder.line));
        holders.truncate(MOST);
        holders
    }

    /// Writes the log in RMM's columns. It has no times and no threads, so these are 0.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{COLUMNS}")?;
        for &Call { is_free, slot, bytes, stream, .. } in &self.calls {
            let (action, pointer) = (if is_free { "free" } else { "allocate" }, (u64::from(slot) + 1) << 8);
            writeln!(out, "0,00:00:00.000000,{action},{pointer:#x},{bytes},{stream:#x}")?;
        }
        Ok(())
    }
}

/// Says what is wrong with the text, or that reading it failed.
fn failed(error: csv::Error) -> anyhow::Error {
    let refused = |sentence| crate::Refusal { kind: warpstride::ErrorKind::InvalidArgument, sentence }.into();
    let text = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::InvalidData => refused(error.to_string()),
        csv::ErrorKind::Io(error) => anyhow::Error::new(error).context("reading a log"),
        _ => refused(format!("the log is not CSV: {text}")),
    }
}

/// A log in the making.
#[derive(Default)]
struct Reader {
    log: Log,
    /// The allocation of each block in use, by its pointer.
    live: HashMap<u64, Call>,
    streams: HashMap<String, u32>,
}

impl Reader {
    fn row(&mut self, [action, pointer, size, stream]: [usize; 4], row: &StringRecord, line: u32) -> Result<()> {
        require!(self.log.calls.len() < MOST_ROWS, InvalidArgument, "a log has at most {MOST_ROWS} rows; cut it");
        let field = |at: usize| -> Result<&str> {
            match row.get(at) {
                Some(text) => Ok(text),
                None => refuse!(InvalidArgument, "the row has only {} fields", row.len()),
            }
        };
        let is_free = match field(action)? {
            "allocate" => false,
            "free" | "deallocate" => true,
            "allocate failure" => {
                self.log.leave_out(FAILED, line);
                return Ok(());
            }
            LOST => refuse!(
                InvalidArgument,
                "rows are missing here ({}): the program's writer was slower than its calls; log with a faster one",
                short(field(size)?)
            ),
            other => {
                refuse!(InvalidArgument, "`{}` is not an action; the actions are allocate and free", short(other))
            }
        };
        let text = field(size)?;
        let Ok(bytes) = text.parse::<u64>() else {
            refuse!(InvalidArgument, "`{}` is not a number of bytes", short(text))
        };
        if bytes == 0 {
            self.log.leave_out(EMPTY, line);
            return Ok(());
        }
        let text = field(pointer)?;
        let Ok(pointer) = u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16) else {
            refuse!(InvalidArgument, "`{}` is not a pointer in hexadecimal digits", short(text))
        };
        let (name, count) = (field(stream)?, self.streams.len());
        let stream = self.streams.get(name).copied().unwrap_or(count as u32);
        require!((stream as usize) < MOST_STREAMS, InvalidArgument, "a log has at most {MOST_STREAMS} streams");
        if stream as usize == count {
            self.streams.insert(name.into(), stream);
        }
        if !is_free {
            return self.allocate(pointer, bytes, stream, line);
        }
        let Some(block) = self.live.remove(&pointer) else {
            refuse!(InvalidArgument, "{pointer:#x} is freed, but is not allocated; log from the start")
        };
        self.log.free(block, stream, line);
        Ok(())
    }

    fn allocate(&mut self, pointer: u64, bytes: u64, stream: u32, line: u32) -> Result<()> {
        require!(
            bytes <= MOST_BYTES - self.log.active,
            InvalidArgument,
            "a block of {} and those in use are more than any device has",
            counted(bytes, "byte")
        );
        require!(
            !self.live.contains_key(&pointer),
            InvalidArgument,
            "{pointer:#x} is allocated, but has not been freed since it was before"
        );
        self.live.insert(pointer, self.log.alloc(bytes, stream, line));
        Ok(())
    }
}

/// The start of a text, for an error.
fn short(text: &str) -> String {
    text.chars().take(40).filter(|c| !c.is_control()).collect()
}

/// Reads text whose rows are short, so that a row fits in memory whatever the file is.
struct ShortRows<R> {
    inner: R,
    /// The line that is read, from 1.
    line: u64,
    /// Bytes since the last end of a line.
    bytes: usize,
}

impl<R: Read> Read for ShortRows<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A shorter piece than a row may have, so that the rest of this one is the whole count.
        let room = buffer.len().min(MOST_ROW_BYTES);
        let read = self.inner.read(&mut buffer[..room])?;
        self.bytes = match buffer[..read].iter().rposition(|&byte| byte == b'\n') {
            Some(end) => read - end - 1,
            None => self.bytes + read,
        };
        self.line += buffer[..read].iter().filter(|&&byte| byte == b'\n').count() as u64;
        if self.bytes > MOST_ROW_BYTES {
            let sentence = format!("line {} of the log has more than {MOST_ROW_BYTES} bytes; is it a log?", self.line);
            return Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
        }
        Ok(read)
    }
}
