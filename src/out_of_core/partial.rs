//! A result that is not complete yet: a file beside its place, with a journal.
//!
//! `OUT.npy.incomplete` has the room of the whole result from the start, and
//! `OUT.npy.incomplete.json` says how much of it is on the disk. Both outlive the program. Only a
//! complete and synchronised file gets the name `OUT.npy`.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use same_file::Handle;

use super::journal::{Identity, Journal, MOST_BYTES};
use super::storage::{failed, write_all_at};
use super::tiling::{Permute, Tiling};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::io::{Destination, DestinationKind};

/// The result and its journal.
#[derive(Debug)]
pub(super) struct Partial<'d> {
    destination: &'d Destination,
    file: File,
    places: Places,
    journal: Journal,
}

/// What a result is to be.
#[derive(Debug)]
pub(super) struct Plan<'p> {
    pub(super) identity: Identity,
    pub(super) permute: Permute,
    /// The header of the result's file.
    pub(super) header: &'p [u8],
    /// Bytes of an element.
    pub(super) width: usize,
}

impl Plan<'_> {
    /// Returns the bytes of the result's file.
    fn bytes(&self) -> u64 {
        (self.header.len() + self.permute.len() * self.width) as u64
    }
}

/// The names of the pair.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Places {
    data: PathBuf,
    journal: PathBuf,
}

impl Places {
    fn beside(destination: &Path) -> Self {
        let named = |end: &str| {
            let mut name = OsString::from(destination);
            name.push(end);
            PathBuf::from(name)
        };
        Self { data: named(".incomplete"), journal: named(".incomplete.json") }
    }
}

fn refused<T>(kind: ErrorKind, sentence: String) -> Result<T> {
    Err(Error::new(kind, sentence))
}

impl<'d> Partial<'d> {
    /// Begins a result, or goes on with one that was interrupted if `resume` is set and there is
    /// one. `choose` returns tiles for a new result, and checks those of an old one.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the destination is no file, if there is an interrupted result without
    /// `resume`, or if it is that of another run; `Io` if the system has no room, if the journal is
    /// none, or if a file cannot be read or written; else the error of `choose`.
    pub(super) fn open(
        destination: &'d Destination,
        plan: Plan<'_>,
        resume: bool,
        choose: impl FnOnce(Option<Tiling>) -> Result<Tiling>,
    ) -> Result<(Self, Tiling)> {
        if destination.kind() != DestinationKind::File {
            let sentence = format!(
                "{} is a stream, and a result that is written tile by tile needs a file; name one",
                destination.path().display()
            );
            return refused(ErrorKind::InvalidArgument, sentence);
        }
        let places = Places::beside(destination.path());
        let is_there = fs::symlink_metadata(&places.data).is_ok();
        if is_there && !resume {
            let sentence = format!(
                "{} is there from a run that was interrupted; pass `Options::resume` to go on with it, or remove it",
                places.data.display()
            );
            return refused(ErrorKind::InvalidArgument, sentence);
        }
        match if is_there { places.read_journal()? } else { None } {
            Some(journal) => Self::go_on(destination, places, journal, plan, choose),
            // A run ended before it had room.
            None => Self::begin(destination, places, plan, choose(None)?),
        }
    }

    /// Makes the pair of a result of which nothing is there.
    fn begin(destination: &'d Destination, places: Places, plan: Plan<'_>, tiling: Tiling) -> Result<(Self, Tiling)> {
        let cannot = |error: io::Error| failed("write", &places.data, "check the permissions of its folder", &error);
        // A journal without its result is from a run that was complete, and says nothing of the
        // file that comes now.
        match fs::remove_file(&places.journal) {
            Ok(()) => destination.sync_folder(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("remove", &places.journal, "remove it by hand", &error)),
        }
        let file = destination.make_beside(&places.data).map_err(cannot)?;
        lock(&file, &places.data)?;
        let bytes = plan.bytes();
        let reserved = reserve(&file, bytes).and_then(|()| write_all_at(&file, plan.header, 0));
        let reserved = reserved.map_err(|error| {
            let advice = format!("check that its disk has room for {}", counted(bytes, "byte"));
            failed("write", &places.data, &advice, &error)
        });
        let journal = Journal::new(plan.identity, tiling.extents(), tiling.len() as u64);
        let partial = Self { destination, file, places, journal };
        if let Err(error) = reserved.and_then(|()| partial.write_journal(&partial.journal)) {
            // Nothing was done that is worth keeping.
            let _ = fs::remove_file(&partial.places.data);
            return Err(error);
        }
        Ok((partial, tiling))
    }

    /// Opens the pair of an interrupted run.
    fn go_on(
        destination: &'d Destination,
        places: Places,
        journal: Journal,
        plan: Plan<'_>,
        choose: impl FnOnce(Option<Tiling>) -> Result<Tiling>,
    ) -> Result<(Self, Tiling)> {
        let data = places.data.display();
        if let Some(difference) = journal.identity.difference(&plan.identity) {
            let sentence = format!("{data} is the result of another run: {difference}; remove it to begin anew");
            return refused(ErrorKind::InvalidArgument, sentence);
        }
        let bytes = plan.bytes();
        let tiling = Tiling::of(plan.permute, &journal.tile).filter(|tiling| tiling.len() as u64 == journal.tiles);
        let Some(tiling) = tiling else { return Err(places.corrupted("its tiles are not those of this array")) };
        let tiling = choose(Some(tiling))?;
        let cannot = |error: io::Error| failed("open", &places.data, "check its permissions", &error);
        let file = OpenOptions::new().read(true).write(true).open(&places.data).map_err(cannot)?;
        lock(&file, &places.data)?;
        let mut header = vec![0; plan.header.len()];
        let is_ours = file.metadata().map_err(cannot)?.len() == bytes
            && (&file).read_exact(&mut header).is_ok()
            && header == plan.header;
        if !is_ours {
            let sentence = format!("{data} is not the file that its journal describes; remove it to begin anew");
            return refused(ErrorKind::Io, sentence);
        }
        Ok((Self { destination, file, places, journal }, tiling))
    }

    /// Returns the result's file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the path of the file while it is not complete.
    pub(super) fn path(&self) -> &Path {
        &self.places.data
    }

    /// Returns the number of tiles that are on the disk, from the first one on.
    pub(super) fn done(&self) -> u64 {
        self.journal.done
    }

    /// Sees on the disk what was written until now, and enters the first `done` tiles in the
    /// journal, which were all written before the call.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn record(&self, done: u64) -> Result<()> {
        let synchronised = self.file.sync_data();
        synchronised.map_err(|error| failed("write", &self.places.data, "check its disk", &error))?;
        self.write_journal(&Journal { done, ..self.journal.clone() })
    }

    /// Gives the complete result its place.
    ///
    /// # Errors
    ///
    /// `Io`; the pair stays then.
    pub(super) fn complete(self) -> Result<()> {
        self.destination.take(&self.file, &self.places.data)?;
        // The result is there. A journal that stays is removed by the next run.
        let _ = fs::remove_file(&self.places.journal);
        Ok(())
    }

    fn write_journal(&self, journal: &Journal) -> Result<()> {
        Destination::new(&self.places.journal)?.replace(|file| file.write_all(&journal.bytes()))
    }
}

impl Places {
    /// Reads the journal; `None` if there is none.
    fn read_journal(&self) -> Result<Option<Journal>> {
        let mut bytes = Vec::new();
        let read = |file: File| file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes);
        match File::open(&self.journal).and_then(read) {
            Ok(_) => Journal::parse(&bytes).map(Some).map_err(|why| self.corrupted(&why)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", &self.journal, "check its permissions", &error)),
        }
    }

    fn corrupted(&self, why: &str) -> Error {
        let sentence = format!(
            "{} is not the journal of an interrupted run: {why}; remove it and {} to begin anew",
            self.journal.display(),
            self.data.display()
        );
        Error::new(ErrorKind::Io, sentence)
    }
}

/// Keeps other runs from the file until it is closed, where the system can.
fn lock(file: &File, path: &Path) -> Result<()> {
    #[cfg(target_os = "linux")]
    if let Err(rustix::io::Errno::WOULDBLOCK) =
        rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
    {
        let sentence = format!("another run writes {}; wait for it, or name another output", path.display());
        return refused(ErrorKind::Io, sentence);
    }
    // Another run may have given the file its place in between.
    let is_there = file.try_clone().and_then(Handle::from_file).and_then(|own| Ok(own == Handle::from_path(path)?));
    match is_there {
        Ok(true) => Ok(()),
        _ => refused(ErrorKind::Io, format!("another run has just moved {}; try again", path.display())),
    }
}

/// Empties a file, and gives it a length and room on its disk where the system can reserve it.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(0)?;
    #[cfg(target_os = "linux")]
    loop {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;

        match fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            // Not every file system has it.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
            Err(error) => return Err(error.into()),
        }
    }
    file.set_len(bytes)
}
