//! Reads the environment variables that launchers set.

use super::Rendezvous;
use super::place::Place;
use crate::error::{Error, ErrorKind, Result, refuse};

/// The variables of a launcher.
struct Form {
    name: &'static str,
    rank: &'static str,
    ranks: &'static str,
    local_rank: &'static str,
    /// The variables that together name the job, for the token.
    job: &'static [&'static str],
}

/// In the order in which they are looked for. A batch script of Slurm may call a launcher of MPI;
/// then Slurm's variables are those of the script, so they come last.
const FORMS: [Form; 5] = [
    Form {
        name: "warpstride",
        rank: "WARPSTRIDE_RANK",
        ranks: "WARPSTRIDE_RANKS",
        local_rank: "WARPSTRIDE_LOCAL_RANK",
        job: &[],
    },
    Form {
        name: "torchrun",
        rank: "RANK",
        ranks: "WORLD_SIZE",
        local_rank: "LOCAL_RANK",
        job: &["TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"],
    },
    Form {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        ranks: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        job: &["PMIX_NAMESPACE"],
    },
    Form { name: "PMI", rank: "PMI_RANK", ranks: "PMI_SIZE", local_rank: "MPI_LOCALRANKID", job: &[] },
    Form {
        name: SLURM,
        rank: "SLURM_PROCID",
        ranks: "SLURM_NTASKS",
        local_rank: "SLURM_LOCALID",
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
    },
];

const SLURM: &str = "Slurm";
/// The first of the ports that jobs of Slurm take where no variable names one, and their number.
const SLURM_PORTS: (u16, u64) = (15_000, 10_000);

/// A variable of this process, if it is set and not empty.
pub(super) fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    Some(value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

/// Reads the variables that `look_up` finds.
pub(super) fn read(look_up: &dyn Fn(&str) -> Option<String>) -> Result<Rendezvous> {
    let Some(form) = FORMS.iter().find(|form| look_up(form.rank).is_some()) else {
        refuse!(
            Unavailable,
            "no environment variable says which rank this process is (WARPSTRIDE_RANK, RANK, OMPI_COMM_WORLD_RANK, \
             PMI_RANK, SLURM_PROCID); start it by `warpstride launch -n N`, torchrun, mpirun or srun"
        )
    };
    let needed = |name: &str| number(look_up, name)?.ok_or_else(|| missing(form, name));
    let (rank, ranks) = (needed(form.rank)?, needed(form.ranks)?);
    if rank >= ranks {
        refuse!(InvalidArgument, "{}={rank} is not a rank of {}={ranks}; ranks begin at 0", form.rank, form.ranks);
    }
    let place = if ranks == 1 { Place::Nowhere } else { place(look_up, form)? };
    let mut rendezvous = Rendezvous::new(place, rank, ranks)?;
    if let Some(local_rank) = number(look_up, form.local_rank)? {
        rendezvous.local_rank = local_rank;
    }
    let job = || form.job.iter().filter_map(|name| look_up(name)).collect::<Vec<_>>().join(".");
    rendezvous.token = look_up("WARPSTRIDE_TOKEN").unwrap_or_else(job);
    Ok(rendezvous)
}

fn place(look_up: &dyn Fn(&str) -> Option<String>, form: &Form) -> Result<Place> {
    if let Some(path) = look_up("WARPSTRIDE_FILE") {
        return Ok(Place::File(path.into()));
    }
    if let Some(address) = look_up("WARPSTRIDE_ADDRESS") {
        return Place::address(&address).map_err(|error| error.while_doing("WARPSTRIDE_ADDRESS"));
    }
    let host = match look_up("MASTER_ADDR") {
        Some(host) => host,
        None if form.name == SLURM => {
            let nodes = look_up("SLURM_NODELIST").or_else(|| look_up("SLURM_JOB_NODELIST"));
            let nodes = nodes.ok_or_else(|| missing(form, "SLURM_NODELIST"))?;
            let Some(first) = first_host(&nodes) else {
                refuse!(InvalidArgument, "SLURM_NODELIST={nodes} names no host; set MASTER_ADDR to the host of rank 0")
            };
            first
        }
        None => return Err(missing(form, "MASTER_ADDR")),
    };
    let port = match port(look_up)? {
        Some(port) => port,
        None if form.name == SLURM => {
            let job = number(look_up, "SLURM_JOB_ID")?.ok_or_else(|| missing(form, "MASTER_PORT"))? as u64;
            SLURM_PORTS.0 + (job % SLURM_PORTS.1) as u16
        }
        None => return Err(missing(form, "MASTER_PORT")),
    };
    Ok(Place::Address(host, port))
}

/// The port that rank 0 listens at. torchrun's own process may listen at `MASTER_PORT`, and says
/// so; then it is the next one.
fn port(look_up: &dyn Fn(&str) -> Option<String>) -> Result<Option<u16>> {
    let Some(text) = look_up("MASTER_PORT") else { return Ok(None) };
    let is_taken = look_up("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|value| value == "True");
    let port = text.parse::<u16>().ok().filter(|&port| port > 0);
    match port.and_then(|port| port.checked_add(is_taken.into())) {
        Some(port) => Ok(Some(port)),
        None => refuse!(InvalidArgument, "MASTER_PORT={text} is not a port; set it to a number up to 65534"),
    }
}

fn number(look_up: &dyn Fn(&str) -> Option<String>, name: &str) -> Result<Option<usize>> {
    let Some(text) = look_up(name) else { return Ok(None) };
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => refuse!(InvalidArgument, "{name}={text} is not a number; the launcher sets it to one"),
    }
}

fn missing(form: &Form, name: &str) -> Error {
    let sentence = format!("{} is set, so {} started this process, but {name} is not; set it", form.rank, form.name);
    Error::new(ErrorKind::InvalidArgument, sentence)
}

/// The first host of a list of Slurm's: `node[01-03,7],other` begins with `node01`.
fn first_host(list: &str) -> Option<String> {
    let (mut host, mut rest) = (String::new(), list.trim());
    // A name may have several brackets.
    while let Some(at) = rest.find(['[', ',']) {
        host += &rest[..at];
        if rest[at..].starts_with(',') {
            return Some(host).filter(|host| !host.is_empty());
        }
        let (numbers, after) = rest[at + 1..].split_once(']')?;
        host += numbers.split([',', '-']).next().filter(|first| !first.is_empty())?;
        rest = after;
    }
    host += rest;
    Some(host).filter(|host| !host.is_empty() && !host.contains(']'))
}

#[cfg(test)]
mod tests;
