//! The options of the compiler of PTX: the logs are written, and the others change nothing here.

use std::ffi::{c_char, c_uint};

use crate::arguments::{In, Opaque};
use crate::code::{Failure, Outcome};

const WALL_TIME: c_uint = 2;
const INFO_LOG: c_uint = 3;
const INFO_LOG_BYTES: c_uint = 4;
const ERROR_LOG: c_uint = 5;
const ERROR_LOG_BYTES: c_uint = 6;
/// The last option of CUDA 13.
const LAST: c_uint = 35;
/// The most options of a call.
const MOST: usize = 64;

/// The options of a call, with the caller's list of their values.
pub(crate) struct Options {
    kinds: Vec<c_uint>,
    values: Vec<Opaque>,
    /// The values as the caller reads them after a call: the bytes of a log in place of those of
    /// its buffer.
    told: Vec<Opaque>,
    list: Opaque,
}

impl Options {
    pub(crate) const NONE: Self =
        Self { kinds: Vec::new(), values: Vec::new(), told: Vec::new(), list: Opaque(std::ptr::null_mut()) };

    /// Reads the options.
    pub(crate) fn read(count: c_uint, kinds: In<c_uint>, list: Opaque) -> Outcome<Self> {
        let count = count as usize;
        if count > MOST {
            return Err(Failure::value(format!("a call has {count} options of the compiler, and there are {LAST}")));
        }
        let (kinds, values) = (kinds.list(count)?, list.operands::<Opaque>().list(count)?);
        match kinds.iter().find(|&&kind| kind > LAST) {
            Some(unknown) => Err(Failure::value(format!("{unknown} is not an option of the compiler of PTX"))),
            None => Ok(Self { kinds, told: values.clone(), values, list }),
        }
    }

    fn value(&self, kind: c_uint) -> Option<Opaque> {
        self.kinds.iter().position(|&known| known == kind).map(|number| self.values[number])
    }

    /// Writes the logs of a call that ended so, and passes its outcome on.
    pub(crate) fn told<T>(&mut self, outcome: Outcome<T>) -> Outcome<T> {
        let why = outcome.as_ref().err().map_or("", |failure| failure.why.as_str());
        self.log(INFO_LOG, INFO_LOG_BYTES, "")?;
        self.log(ERROR_LOG, ERROR_LOG_BYTES, why)?;
        self.replace(WALL_TIME, 0);
        if self.kinds.iter().any(|kind| matches!(*kind, WALL_TIME | INFO_LOG_BYTES | ERROR_LOG_BYTES)) {
            self.list.results::<Opaque>().set_all(self.told.iter().copied(), self.told.len())?;
        }
        outcome
    }

    /// Writes a log, cut to its buffer, and the bytes that it takes there.
    fn log(&mut self, buffer: c_uint, bytes: c_uint, text: &str) -> Outcome {
        let (Some(place), Some(room)) = (self.value(buffer), self.value(bytes)) else { return Ok(()) };
        let Some(most) = (room.address() as u32 as usize).checked_sub(1).filter(|_| !place.is_null()) else {
            return Ok(());
        };
        let text = &text.as_bytes()[..text.len().min(most)];
        place
            .results::<c_char>()
            .set_all(text.iter().map(|&byte| byte as c_char).chain([0]), most.saturating_add(1))?;
        self.replace(bytes, text.len());
        Ok(())
    }

    fn replace(&mut self, kind: c_uint, value: usize) {
        for (number, _) in self.kinds.iter().enumerate().filter(|(_, known)| **known == kind) {
            self.told[number] = Opaque(std::ptr::without_provenance_mut(value));
        }
    }
}
