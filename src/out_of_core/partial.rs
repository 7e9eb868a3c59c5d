//! A result that is not complete yet: a file beside its place, with a journal.
//!
//! `OUT.npy.incomplete` has the room of the whole result from the start, and
//! `OUT.npy.incomplete.json` says how much of it is on the disk. Both outlive the program. Only a
//! complete and synchronised file gets the name `OUT.npy`.
//!
//! Programs and people may remove, copy and make files of these names at any time. So the file is
//! always a new one, which has its lock before it has its name; it has the number of its run in
//! place of its header and behind its last element until it is complete; and a run looks at a name
//! again before it renames or replaces what is there. No tile reaches that end, so a file that was
//! cut short has lost it, whatever length it was given then.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::journal::{Identity, Journal, MOST_BYTES, is_mark};
use super::storage::{Stored, failed, read_exact_at, write_all_at};
use super::tiling::Tiling;
use crate::error::{Error, ErrorKind, Result, counted, refuse, require};
use crate::io::{Destination, DestinationKind, check_is_at, is_same_file, put, replaced};

/// The result and its journal.
#[derive(Debug)]
pub(super) struct Partial<'d> {
    destination: &'d Destination,
    file: Held,
    places: Places,
    journal: Journal,
    header: Vec<u8>,
    /// Bytes of the complete file.
    bytes: u64,
}

/// A file that gives up its lock when it is dropped. To close it would not be enough: a child that
/// another thread starts has it open, too, until it runs its own program.
#[derive(Debug)]
struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::flock(&self.0, rustix::fs::FlockOperation::Unlock);
    }
}

/// The result that a run is to write.
#[derive(Debug)]
pub(super) struct Plan<'p> {
    /// The input's path.
    pub(super) input: &'p Path,
    pub(super) identity: Identity,
    /// The device memory that this run may take, in bytes.
    pub(super) device_memory: usize,
    /// The header of the result's file.
    pub(super) header: &'p [u8],
    /// Bytes of the result's file.
    pub(super) bytes: u64,
}

/// The names of the pair.
#[derive(Debug)]
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

    /// Reads the journal, or returns `None` if the file is missing.
    fn read_journal(&self) -> Result<Option<Journal>> {
        if !is_there(&self.journal)? {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let read = |file: File| file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes);
        match open_file(OpenOptions::new().read(true), &self.journal).and_then(read) {
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

    fn without_journal(&self) -> Error {
        Error::argument(format!(
            "{} is there, and no journal beside it says what it is; move or remove it, or name another output",
            self.data.display()
        ))
    }
}

/// Returns the name of the unfinished result beside a destination, if a file has it.
pub fn unfinished(destination: &Destination) -> Option<PathBuf> {
    Some(Places::beside(destination.path()).data).filter(|path| path.is_file())
}

impl<'d> Partial<'d> {
    /// Begins a result, or goes on with one that was interrupted if `resume` is set and there is
    /// one. `choose` returns the tiles of a run that may take these bytes of device memory.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the destination is a stream, if there is an interrupted result without
    /// `resume`, if it is that of another run, or if a name of the pair is too long or another
    /// file's; `Io` if the system has no room, if the journal is corrupted, or if a file cannot be
    /// read or written; else the error of `choose`.
    pub(super) fn open(
        destination: &'d Destination,
        plan: Plan<'_>,
        resume: bool,
        choose: impl Fn(usize) -> Result<Tiling>,
    ) -> Result<(Self, Tiling)> {
        let place = destination.path().display();
        require!(
            destination.kind() == DestinationKind::File,
            InvalidArgument,
            "{place} is a stream, and a result that is written tile by tile needs a file; name one"
        );
        let places = Places::beside(destination.path());
        if let Some(input) = [&places.data, &places.journal].into_iter().find(|path| is_same_file(path, plan.input)) {
            refuse!(
                InvalidArgument,
                "{} is the input, and {place} needs its name until it is complete; name another output",
                input.display()
            );
        }
        if !is_there(&places.data)? {
            let tiling = choose(plan.device_memory)?;
            Self::begin(destination, places, plan, tiling)
        } else if resume {
            Self::go_on(destination, places, plan, choose)
        } else {
            if places.read_journal()?.is_none() {
                return Err(places.without_journal());
            }
            refuse!(
                InvalidArgument,
                "{} is there from a run that was interrupted; pass `Options::resume` to go on with it, or remove it",
                places.data.display()
            )
        }
    }

    /// Makes the pair of a result of which nothing is there.
    fn begin(destination: &'d Destination, places: Places, plan: Plan<'_>, tiling: Tiling) -> Result<(Self, Tiling)> {
        if places.read_journal()?.is_some() {
            // A journal alone is left from a run that was complete.
            let _ = fs::remove_file(&places.journal);
        }
        let bytes = plan.bytes;
        let journal = Journal::new(plan.identity, plan.device_memory, &tiling);
        let mark = journal.mark(plan.header.len());
        let file = put(&places.data, destination.is_private(), false, |file| {
            lock(file, &places.data)?;
            prepare(file, &places.data, &mark, bytes)
        })?;
        let partial = Self { destination, file: Held(file), places, journal, header: plan.header.into(), bytes };
        partial.write_journal(0).inspect_err(|_| drop(fs::remove_file(partial.path())))?;
        Ok((partial, tiling))
    }

    /// Opens the pair of an interrupted run.
    fn go_on(
        destination: &'d Destination,
        places: Places,
        plan: Plan<'_>,
        choose: impl Fn(usize) -> Result<Tiling>,
    ) -> Result<(Self, Tiling)> {
        let data = places.data.display();
        let cannot = |error: io::Error| failed("open", &places.data, "check its permissions", &error);
        let file = Held(open_file(OpenOptions::new().read(true).write(true), &places.data).map_err(cannot)?);
        lock(&file.0, &places.data)?;
        check_is_at(&file.0, &places.data)?;
        // Not before: until then, another run may have written it.
        let Some(journal) = places.read_journal()? else {
            let mut mark = vec![0; plan.header.len()];
            if read_exact_at(&file.0, &mut mark, 0).is_err() || !is_mark(&mark) {
                return Err(places.without_journal());
            }
            // A run ended before it had written its journal, and so before any tile.
            fs::remove_file(&places.data).map_err(cannot)?;
            let tiling = choose(plan.device_memory)?;
            return Self::begin(destination, places, plan, tiling);
        };
        if let Some(difference) = journal.identity.difference(&plan.identity) {
            refuse!(InvalidArgument, "{data} is the result of another run: {difference}; remove it to begin anew");
        }
        let (bytes, mark) = (plan.bytes, journal.mark(plan.header.len()));
        // A run may have ended before its file had its room on the disk, or while the whole result
        // went there.
        let [begins, ends] = [0, bytes].map(|at| has_mark(&file.0, &mark, at));
        let is_whole = ends && has_mark(&file.0, plan.header, 0);
        require!(
            is_whole || begins && (ends || journal.done == 0),
            Io,
            "{data} is not the file that its journal describes; remove it to begin anew"
        );
        let tiling = choose(journal.device_memory).ok().filter(|tiling| journal.counts(tiling));
        let Some(tiling) = tiling else { return Err(places.corrupted("its tiles are not those of this array")) };
        if is_whole || journal.done == 0 {
            prepare(&file.0, &places.data, &mark, bytes)?;
        }
        Ok((Self { destination, file, places, journal, header: plan.header.into(), bytes }, tiling))
    }

    /// Returns where the elements of the result lie.
    pub(super) fn stored(&self) -> Stored<'_> {
        Stored { file: &self.file.0, path: &self.places.data, start: self.header.len() as u64 }
    }

    /// Returns the path of the file while it is not complete.
    pub(super) fn path(&self) -> &Path {
        &self.places.data
    }

    /// Returns the number of tiles that are on the disk, from the first one on.
    pub(super) fn done(&self) -> u64 {
        self.journal.done
    }

    /// Fails if the file has lost its name or a part of it, or another one has its name.
    ///
    /// # Errors
    ///
    /// `Io`.
    fn check_is_there(&self) -> Result<()> {
        check_is_at(&self.file.0, &self.places.data)?;
        let mark = self.mark();
        self.check_whole([0, self.bytes].iter().all(|&at| has_mark(&self.file.0, &mark, at)))
    }

    /// Returns whether another run can go on with the pair.
    pub(super) fn can_go_on(&self) -> bool {
        self.check_is_there().is_ok() && self.has_journal().unwrap_or(false)
    }

    fn check_whole(&self, is_whole: bool) -> Result<()> {
        let path = self.path().display();
        require!(
            is_whole,
            Io,
            "another program has cut or overwritten {path}, which this run writes; remove it and begin anew"
        );
        Ok(())
    }

    /// Returns what the file has at both of its ends until it is complete.
    fn mark(&self) -> Vec<u8> {
        self.journal.mark(self.header.len())
    }

    /// Sees on the disk what was written until now, and enters the first `done` tiles in the
    /// journal, which were all written before the call.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn record(&self, done: u64) -> Result<()> {
        let synchronised = self.file.0.sync_data();
        synchronised.map_err(|error| failed("write", &self.places.data, "check its disk", &error))?;
        // The journal at this name may be another run's by now.
        self.check_is_there()?;
        self.write_journal(done)
    }

    /// Replaces this run's journal, and nothing else that has the name.
    fn write_journal(&self, done: u64) -> Result<()> {
        let (path, is_there) = (&self.places.journal, self.has_journal()?);
        let journal = Journal { done, ..self.journal.clone() };
        let fill = |mut file: &File| {
            let written = journal.bytes().and_then(|bytes| file.write_all(&bytes)).and_then(|()| file.sync_all());
            written.map_err(|error| failed("write", path, "check the room on its disk", &error))
        };
        put(path, false, is_there, fill).map(drop)
    }

    /// Looks for this run's journal. Fails if something else has its name.
    fn has_journal(&self) -> Result<bool> {
        match self.places.read_journal()? {
            Some(journal) if journal.run != self.journal.run => Err(replaced(&self.places.journal)),
            journal => Ok(journal.is_some()),
        }
    }

    /// Gives the complete result its header and its place.
    ///
    /// # Errors
    ///
    /// `Io`; the pair stays then.
    pub(super) fn complete(&self) -> Result<()> {
        self.check_is_there()?;
        let (file, mut has_end) = (&self.file.0, true);
        let finished = self.finish(&mut has_end).and_then(|()| self.destination.take(self.path()));
        if let Err(error) = finished {
            // Unless another run that had no lock has completed it, or a program has cut it short.
            let is_whole = if has_end { self.has_end() } else { self.has_length() };
            if is_whole && check_is_at(file, self.path()).is_ok() {
                let _ = [0, self.bytes].map(|at| write_all_at(file, &self.mark(), at));
            }
            return Err(error);
        }
        // The result is there. The next run replaces a journal that stays.
        self.remove_journal();
        Ok(())
    }

    /// Makes the file what the destination is to be, and takes the mark from its end last.
    fn finish(&self, has_end: &mut bool) -> Result<()> {
        let file = &self.file.0;
        let not_written = |error| failed("write", self.path(), "check its disk", &error);
        write_all_at(file, &self.header, 0).map_err(not_written)?;
        self.destination.settle(file)?;
        // It takes long to see a large file on its disk, and a program may have cut it meanwhile.
        self.check_whole(self.has_end())?;
        *has_end = false;
        file.set_len(self.bytes).and_then(|()| file.sync_all()).map_err(not_written)?;
        // The look comes last, because a rename takes whatever has the name.
        check_is_at(file, self.path())?;
        self.check_whole(self.has_length())
    }

    fn has_end(&self) -> bool {
        has_mark(&self.file.0, &self.mark(), self.bytes)
    }

    fn has_length(&self) -> bool {
        self.file.0.metadata().is_ok_and(|there| there.len() == self.bytes)
    }

    /// Removes the pair, which no run can complete.
    pub(super) fn discard(&self) {
        if check_is_at(&self.file.0, self.path()).is_ok() {
            let _ = fs::remove_file(self.path());
        }
        self.remove_journal();
    }

    fn remove_journal(&self) {
        if self.has_journal().unwrap_or(false) {
            let _ = fs::remove_file(&self.places.journal);
        }
    }
}

/// Returns whether a regular file has this name.
///
/// # Errors
///
/// `InvalidArgument` if something else has it, or no file can have it; `Io` if the system does not
/// say.
fn is_there(path: &Path) -> Result<bool> {
    let shown = path.display();
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_file() => Ok(true),
        Ok(_) => {
            refuse!(InvalidArgument, "{shown} is there and is not a regular file; move it, or name another output")
        }
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(false),
            io::ErrorKind::InvalidFilename => {
                refuse!(InvalidArgument, "{shown} has a longer name than its disk allows; name a shorter output")
            }
            _ => Err(failed("look at", path, "check the permissions of its folder", &error)),
        },
    }
}

/// Opens what was a regular file just before. A link that has taken its place is not followed, and
/// a pipe is not waited for.
fn open_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;

        use rustix::fs::OFlags;

        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Keeps other runs from the file while it is [`Held`], on Linux and where its file system
/// can. Without a lock two runs can go on with one file. Both write the same bytes to the same
/// places and enter only tiles that they have written, so the result is right; one of the runs
/// fails.
fn lock(file: &File, path: &Path) -> Result<()> {
    #[cfg(target_os = "linux")]
    if let Err(rustix::io::Errno::WOULDBLOCK) =
        rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
    {
        refuse!(Io, "another run writes {}; wait for it, or name another output", path.display());
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, path);
    Ok(())
}

/// Gives a file its mark at the start and behind the `bytes` of the result, and room on its disk
/// where the system can reserve it.
fn prepare(file: &File, path: &Path, mark: &[u8], bytes: u64) -> Result<()> {
    let all = bytes + mark.len() as u64;
    let prepared =
        allocate(file, all).and_then(|()| [0, bytes].iter().try_for_each(|&at| write_all_at(file, mark, at)));
    prepared.map_err(|error| {
        let advice = format!("check that its disk has room for {}", counted(all, "byte"));
        failed("write", path, &advice, &error)
    })
}

/// Returns whether a file has a mark at a position.
fn has_mark(file: &File, mark: &[u8], at: u64) -> bool {
    let mut there = vec![0; mark.len()];
    read_exact_at(file, &mut there, at).is_ok() && there == mark
}

#[cfg(target_os = "linux")]
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;

    loop {
        match fallocate(file, FallocateFlags::empty(), 0, bytes) {
            // Not every file system has it.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The copy is what a child has of the file until it runs its own program.
    #[test]
    fn a_file_that_is_dropped_is_free_though_a_child_has_it() {
        let named = tempfile::NamedTempFile::new().expect("a file");
        let held = Held(named.reopen().expect("it opens"));
        lock(&held.0, named.path()).expect("it is free");
        let of_child = held.0.try_clone().expect("a copy");
        let other = named.reopen().expect("it opens");
        lock(&other, named.path()).expect_err("it is held");
        drop(held);
        lock(&other, named.path()).expect("it is free");
        drop(of_child);
    }
}
