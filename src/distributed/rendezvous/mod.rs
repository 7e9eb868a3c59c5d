//! How the processes of a job find each other, and the operations by which they stay together.
//!
//! Rank 0 listens. Every other rank connects to it by TCP, and says hello with its rank, the number
//! of ranks and the token of the job. When all have come, rank 0 tells them so, and the connections
//! stay open: a process that dies closes its own.
//!
//! ```text
//!  place: an address or a file --+-- admission: rank 0 --> hub: a thread, calls ---+
//!  environment: of launchers     |                           ^                     +--> inbox --> members
//!                                +-- joining: the others --> spoke: a thread ------+
//! ```

mod admission;
mod calls;
mod environment;
mod frame;
mod hub;
mod inbox;
mod joining;
mod members;
mod place;
mod ranks;
mod spoke;
mod wire;

use std::path::Path;
use std::time::Duration;

use crate::error::{Result, require};
use place::Place;

#[doc(hidden)]
pub use frame::check_frames;
pub use inbox::Lost;
pub use members::Members;

/// The deadline of a rendezvous that sets none.
const DEADLINE: Duration = Duration::from_secs(60);
/// The longest deadline. Additions to a time of the system do not overflow then.
const LONGEST_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);
/// The most bytes of a token, and of the name of what ranks agree about.
const LONGEST_NAME: usize = 256;
/// The most ranks of a job.
const MOST_RANKS: usize = 1 << 16;
/// The longest time that closing a connection takes.
const CLOSING: Duration = Duration::from_secs(1);

/// How the processes of a job find each other.
///
/// The token keeps apart jobs that meet at one place. It goes over the network as it is, so a
/// network that strangers read needs more than this.
#[derive(Debug, Clone)]
pub struct Rendezvous {
    place: Place,
    rank: usize,
    ranks: usize,
    local_rank: usize,
    token: String,
    deadline: Duration,
}

impl Rendezvous {
    /// Reads the rank, the number of ranks and the place from the variables of a launcher. The
    /// first of these whose rank is set counts:
    ///
    /// | launcher | rank, ranks, local rank | address of rank 0 | |---|---|---| | any |
    /// `WARPSTRIDE_RANK`, `WARPSTRIDE_RANKS`, `WARPSTRIDE_LOCAL_RANK` | see below | | `warpstride
    /// launch`, torchrun | `RANK`, `WORLD_SIZE`, `LOCAL_RANK` | `MASTER_ADDR`, `MASTER_PORT` | |
    /// Open MPI | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`, `OMPI_COMM_WORLD_LOCAL_RANK` |
    /// the same | | MPICH, Intel MPI | `PMI_RANK`, `PMI_SIZE`, `MPI_LOCALRANKID` | the same | |
    /// Slurm | `SLURM_PROCID`, `SLURM_NTASKS`, `SLURM_LOCALID` | the same, or the first host of
    /// `SLURM_NODELIST` and a port by `SLURM_JOB_ID` |
    ///
    /// `WARPSTRIDE_FILE` (a path) or `WARPSTRIDE_ADDRESS` (`host:port`) take the place of the
    /// address. Where torchrun's own process listens at `MASTER_PORT`, rank 0 takes the next port.
    /// Without `WARPSTRIDE_TOKEN`, the token is the name that torchrun, Open MPI or Slurm gives the
    /// job. Without a local rank, it is the rank.
    ///
    /// # Errors
    ///
    /// `Unavailable` if no rank is set; `InvalidArgument` if a variable is missing or has a wrong
    /// value, which the error names.
    pub fn from_env() -> Result<Self> {
        environment::read(&environment::variable)
    }

    /// Meets at `address`, the `host:port` of rank 0. Rank 0 listens there: at the loopback alone
    /// if the host is `localhost` or such an address, else at all addresses of its host.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `address` has another form, or `rank` is not below `ranks`.
    pub fn tcp(address: &str, rank: usize, ranks: usize) -> Result<Self> {
        Self::from_here(Place::address(address)?, rank, ranks)
    }

    /// Meets by a file that all ranks see. Rank 0 takes a free port, and writes its addresses and a
    /// random number into the file, which only the same user may read; it removes the file when all
    /// have come. A file that a former run left costs the others tries, and no more.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `rank` is not below `ranks`, or `path` names no file.
    pub fn file(path: impl AsRef<Path>, rank: usize, ranks: usize) -> Result<Self> {
        let path = path.as_ref();
        let shown = path.display();
        require!(path.file_name().is_some(), InvalidArgument, "`{shown}` names no file; name one for the rendezvous");
        Self::from_here(Place::File(path.into()), rank, ranks)
    }

    /// A rendezvous with the token of this process's environment.
    fn from_here(place: Place, rank: usize, ranks: usize) -> Result<Self> {
        Ok(Self::new(place, rank, ranks)?.with_token(&environment::variable("WARPSTRIDE_TOKEN").unwrap_or_default()))
    }

    fn new(place: Place, rank: usize, ranks: usize) -> Result<Self> {
        require!(
            rank < ranks,
            InvalidArgument,
            "rank {rank} is not one of a job of {ranks}; ranks begin at 0, and each is below their number"
        );
        require!(ranks <= MOST_RANKS, InvalidArgument, "a job has at most {MOST_RANKS} ranks, and this has {ranks}");
        Ok(Self { place, rank, ranks, local_rank: rank, token: String::new(), deadline: DEADLINE })
    }

    /// Sets the text by which the ranks of a job know each other, of at most 256 bytes. Without it,
    /// it is the variable `WARPSTRIDE_TOKEN`, or empty.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = token.into();
        self
    }

    /// Sets the time in which all ranks must have met, and in which each operation of the members
    /// must end; 60 s without it.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline.min(LONGEST_DEADLINE);
        self
    }

    /// Sets the number of this process on its host. Without it, it is the rank.
    #[must_use]
    pub fn with_local_rank(mut self, local_rank: usize) -> Self {
        self.local_rank = local_rank;
        self
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of processes.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The number of this process on its host, by which it takes its GPU.
    pub fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// The time in which all ranks must have met.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Waits until all ranks have come.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the token has more than 256 bytes, or the file has other content;
    /// `Deadline` if ranks are missing at the deadline, which rank 0 names; `Peer` if rank 0
    /// refuses this rank; `Io` if rank 0 cannot listen or write the file; `Unavailable` if the
    /// system starts no thread.
    pub fn meet(&self) -> Result<Members> {
        let length = self.token.len();
        require!(
            length <= LONGEST_NAME,
            InvalidArgument,
            "a token has at most {LONGEST_NAME} bytes, and this has {length}; take a shorter one"
        );
        Members::meet(self)
    }
}

/// The clause about a rank that has said why it cannot go on.
fn aborted(reason: &str) -> String {
    format!("it aborted ({reason})")
}
