//! Logs as RMM's logging adaptor writes them: CSV with the columns
//! `Thread,Time,Action,Pointer,Size,Stream`.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use csv::{ReaderBuilder, StringRecord};

use super::log::Log;
use warpstride::alloc::COLUMNS;
use warpstride::error::{Error, ErrorKind, Result, counted};

/// Most rows of a log.
const MOST_ROWS: usize = 1 << 24;
/// Most bytes of a row.
const MOST_ROW_BYTES: usize = 1 << 12;
/// Most bytes in use: more than any device has, and few enough for all sums.
const MOST_BYTES: u64 = 1 << 50;
/// Most streams.
const MOST_STREAMS: usize = 1 << 12;

impl Log {
    /// Reads a log in RMM's columns, in any order; columns beyond them are left out, and so are
    /// failed allocations and those of 0 bytes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for text that is no such log, or too long a one; the error names the row.
    /// `Io` if reading fails.
    pub(crate) fn read(text: impl Read) -> Result<Self> {
        let mut rows = ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(ShortRows::new(text));
        let columns = Columns::of(rows.headers().map_err(failed)?)?;
        let mut reader = Reader::default();
        let mut row = StringRecord::new();
        while rows.read_record(&mut row).map_err(failed)? {
            let line = row.position().map_or(0, csv::Position::line);
            reader.row(&columns, &row).map_err(|error| error.while_doing(format_args!("line {line} of the log")))?;
        }
        Ok(reader.log)
    }

    /// Writes the log in RMM's columns. It has no times and no threads, so these are 0.
    ///
    /// # Errors
    ///
    /// `Io` if writing fails.
    pub(crate) fn write(&self, mut out: impl Write) -> Result<()> {
        self.write_rows(&mut out).map_err(|error| Error::new(ErrorKind::Io, format!("writing a log: {error}")))
    }

    fn write_rows(&self, out: &mut impl Write) -> io::Result<()> {
        use super::Operation;
        writeln!(out, "{COLUMNS}")?;
        let mut sizes = vec![0; self.slots() as usize];
        for operation in self.operations() {
            let (action, slot, stream) = match *operation {
                Operation::Alloc { slot, bytes, stream } => {
                    sizes[slot as usize] = bytes;
                    ("allocate", slot, stream)
                }
                Operation::Free { slot, stream } => ("free", slot, stream),
            };
            let (pointer, bytes) = ((u64::from(slot) + 1) << 8, sizes[slot as usize]);
            writeln!(out, "0,00:00:00.000000,{action},{pointer:#x},{bytes},{stream:#x}")?;
        }
        out.flush()
    }
}

fn refused(sentence: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, sentence)
}

/// Makes an error of the library's own.
fn failed(error: csv::Error) -> Error {
    let text = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) if error.kind() != io::ErrorKind::InvalidData => {
            Error::new(ErrorKind::Io, format!("reading a log: {error}"))
        }
        csv::ErrorKind::Io(error) => refused(error.to_string()),
        _ => refused(format!("the log is not CSV: {text}")),
    }
}

/// Where the columns are.
struct Columns {
    action: usize,
    pointer: usize,
    size: usize,
    stream: usize,
}

impl Columns {
    fn of(headers: &StringRecord) -> Result<Self> {
        let find = |name: &str| {
            let place = headers.iter().position(|header| header.eq_ignore_ascii_case(name));
            place.ok_or_else(|| refused(format!("the log has no column `{name}`; its first line must be {COLUMNS}")))
        };
        Ok(Self { action: find("Action")?, pointer: find("Pointer")?, size: find("Size")?, stream: find("Stream")? })
    }
}

/// A log in the making.
#[derive(Default)]
struct Reader {
    log: Log,
    /// Slot and bytes of a live block by its pointer.
    live: HashMap<u64, (u32, u64)>,
    streams: HashMap<String, u32>,
    active: u64,
}

impl Reader {
    fn row(&mut self, columns: &Columns, row: &StringRecord) -> Result<()> {
        if self.log.operations().len() >= MOST_ROWS {
            return Err(refused(format!("a log has at most {MOST_ROWS} rows; cut it")));
        }
        let field = |at: usize| row.get(at).ok_or_else(|| refused(format!("the row has only {} fields", row.len())));
        let action = field(columns.action)?;
        if action == "allocate failure" {
            return Ok(());
        }
        let size = field(columns.size)?;
        let bytes: u64 = size.parse().map_err(|_| refused(format!("`{}` is not a number of bytes", short(size))))?;
        if bytes == 0 {
            return Ok(());
        }
        let text = field(columns.pointer)?;
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let pointer = u64::from_str_radix(digits, 16)
            .map_err(|_| refused(format!("`{}` is not a pointer in hexadecimal digits", short(text))))?;
        let stream = self.stream(field(columns.stream)?)?;
        match action {
            "allocate" => self.allocate(pointer, bytes, stream),
            "free" | "deallocate" => self.free(pointer, stream),
            _ => Err(refused(format!("`{}` is not an action; the actions are allocate and free", short(action)))),
        }
    }

    fn stream(&mut self, name: &str) -> Result<u32> {
        if let Some(&stream) = self.streams.get(name) {
            return Ok(stream);
        }
        if self.streams.len() == MOST_STREAMS {
            return Err(refused(format!("a log has at most {MOST_STREAMS} streams")));
        }
        let stream = self.streams.len() as u32;
        self.streams.insert(name.into(), stream);
        Ok(stream)
    }

    fn allocate(&mut self, pointer: u64, bytes: u64, stream: u32) -> Result<()> {
        if bytes > MOST_BYTES - self.active {
            return Err(refused(format!(
                "a block of {} and those in use are more than any device has",
                counted(bytes, "byte")
            )));
        }
        if self.live.contains_key(&pointer) {
            return Err(refused(format!("{pointer:#x} is allocated, but has not been freed since it was before")));
        }
        self.active += bytes;
        self.live.insert(pointer, (self.log.alloc(bytes, stream), bytes));
        Ok(())
    }

    fn free(&mut self, pointer: u64, stream: u32) -> Result<()> {
        let Some((slot, bytes)) = self.live.remove(&pointer) else {
            return Err(refused(format!("{pointer:#x} is freed, but is not allocated; log from the start")));
        };
        self.active -= bytes;
        self.log.free(slot, stream);
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
    /// Bytes since the last end of a line.
    bytes: usize,
}

impl<R> ShortRows<R> {
    fn new(inner: R) -> Self {
        Self { inner, bytes: 0 }
    }
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
        if self.bytes > MOST_ROW_BYTES {
            let sentence = format!("a line of the log has more than {MOST_ROW_BYTES} bytes; is it a log?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
        }
        Ok(read)
    }
}
