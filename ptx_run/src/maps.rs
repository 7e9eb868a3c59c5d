//! The ranges of memory that this process can read and write, as the system lists them.

use std::ops::Range;

use crate::failure::{Failure, code};

/// The ranges of memory that this process can read and write, in order. Neighbours are one range.
pub(crate) struct Maps(Vec<Range<u64>>);

impl Maps {
    /// Asks the system.
    pub(crate) fn now() -> Result<Self, Failure> {
        let path = "/proc/self/maps";
        let text = std::fs::read(path).map_err(|error| {
            Failure::new(
                code::UNKNOWN,
                format!("{path}, which lists the memory of the process, cannot be read: {error}"),
            )
        })?;
        Ok(Self::of(&String::from_utf8_lossy(&text)))
    }

    fn of(text: &str) -> Self {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for range in text.lines().filter_map(writable) {
            match ranges.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => ranges.push(range),
            }
        }
        Self(ranges)
    }

    /// Returns the range that has an address.
    pub(crate) fn around(&self, address: u64) -> Option<Range<u64>> {
        let next = self.0.partition_point(|range| range.start <= address);
        self.0[..next].last().filter(|range| range.contains(&address)).cloned()
    }
}

/// Returns the range of a line, if the process can read and write there.
fn writable(line: &str) -> Option<Range<u64>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    words.next().filter(|rights| rights.starts_with("rw"))?;
    Some(number(start)?..number(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_ranges_that_can_be_read_and_written() {
        let maps = Maps::of(
            "00400000-00401000 r-xp 00000000 08:01 42 /bin/program name\n\
             00401000-00403000 rw-p 00001000 08:01 42 /bin/program name\n\
             00403000-00404000 rw-p 00000000 00:00 0 \n\
             00404000-00405000 ---p 00000000 00:00 0 [heap]\n\
             7fff00000000-7fff00001000 rw-s 00000000 00:00 0 [stack]\n\
             ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n\
             not a line\n",
        );
        for (address, range) in [
            (0, None),
            (0x400fff, None),
            (0x401000, Some(0x401000..0x404000)),
            (0x403fff, Some(0x401000..0x404000)),
            (0x404000, None),
            (0x7fff00000000, Some(0x7fff00000000..0x7fff00001000)),
            (0x7fff00001000, None),
            (u64::MAX, None),
        ] {
            assert_eq!(maps.around(address), range, "{address:#x}");
        }
    }

    #[test]
    fn a_variable_of_this_process_is_found() {
        let variable = Box::new(7_u64);
        let address = (&raw const *variable).addr() as u64;
        assert!(Maps::now().ok().expect("a list").around(address).is_some());
    }
}
