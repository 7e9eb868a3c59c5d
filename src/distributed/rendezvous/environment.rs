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
mod tests {
    use super::*;

    /// Reads variables as `NAME=value` words.
    fn of(words: &str) -> Result<Rendezvous> {
        let pairs: Vec<_> = words.split_whitespace().filter_map(|word| word.split_once('=')).collect();
        let look_up = |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned());
        read(&look_up)
    }

    #[test]
    fn every_launcher_is_understood() {
        let slurm = "SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1 SLURM_JOB_ID=20007 SLURM_STEP_ID=0";
        let cases = [
            ("WARPSTRIDE_RANK=2 WARPSTRIDE_RANKS=4 WARPSTRIDE_ADDRESS=a:7 RANK=0", (2, 4, 2), "at a:7", ""),
            (
                "WARPSTRIDE_RANK=2 WARPSTRIDE_RANKS=4 WARPSTRIDE_LOCAL_RANK=0 WARPSTRIDE_FILE=f",
                (2, 4, 0),
                "by the file f",
                "",
            ),
            ("WARPSTRIDE_RANK=0 WARPSTRIDE_RANKS=1", (0, 1, 0), "nowhere", ""),
            ("RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=h MASTER_PORT=29500", (1, 2, 1), "at h:29500", ""),
            (
                "RANK=9 WORLD_SIZE=16 LOCAL_RANK=1 MASTER_ADDR=h MASTER_PORT=29500 TORCHELASTIC_RUN_ID=x \
                 TORCHELASTIC_RESTART_COUNT=2 TORCHELASTIC_USE_AGENT_STORE=True SLURM_PROCID=0",
                (9, 16, 1),
                "at h:29501",
                "x.2",
            ),
            (&format!("{slurm} SLURM_NODELIST=gpu[03-04]"), (5, 8, 1), "at gpu03:15007", "20007.0"),
            (&format!("{slurm} MASTER_ADDR=h MASTER_PORT=1 WARPSTRIDE_TOKEN=t"), (5, 8, 1), "at h:1", "t"),
            (
                &format!(
                    "{slurm} OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 \
                 MASTER_ADDR=h MASTER_PORT=1"
                ),
                (3, 4, 0),
                "at h:1",
                "",
            ),
            ("PMI_RANK=3 PMI_SIZE=4 MPI_LOCALRANKID=2 MASTER_ADDR=::1 MASTER_PORT=1", (3, 4, 2), "at [::1]:1", ""),
        ];
        for (words, ranks, place, token) in cases {
            let read = of(words).unwrap_or_else(|error| panic!("{words}: {error}"));
            assert_eq!((read.rank, read.ranks, read.local_rank), ranks, "{words}");
            assert_eq!((&*read.place.named(), &*read.token), (place, token), "{words}");
        }
    }

    #[test]
    fn an_error_names_the_variable_and_its_value() {
        let cases = [
            ("", "WARPSTRIDE_RANK, RANK"),
            ("RANK=1", "WORLD_SIZE is not"),
            ("RANK=x WORLD_SIZE=2", "RANK=x"),
            ("RANK=1 WORLD_SIZE=-2", "WORLD_SIZE=-2"),
            ("RANK=2 WORLD_SIZE=2", "RANK=2 is not a rank of WORLD_SIZE=2"),
            ("RANK=0 WORLD_SIZE=2 MASTER_PORT=1", "MASTER_ADDR is not"),
            ("RANK=0 WORLD_SIZE=2 MASTER_ADDR=h", "MASTER_PORT is not"),
            ("RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=0", "MASTER_PORT=0"),
            ("RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1 LOCAL_RANK=y", "LOCAL_RANK=y"),
            ("WARPSTRIDE_RANK=0 WARPSTRIDE_RANKS=2 WARPSTRIDE_ADDRESS=h", "WARPSTRIDE_ADDRESS: `h`"),
            ("SLURM_PROCID=0 SLURM_NTASKS=2", "SLURM_NODELIST is not"),
            ("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_NODELIST=a[", "SLURM_NODELIST=a["),
            ("SLURM_PROCID=0 SLURM_NTASKS=99999999 MASTER_ADDR=h MASTER_PORT=1", "99999999"),
        ];
        for (words, part) in cases {
            let sentence = of(words).expect_err(words).to_string();
            assert!(sentence.contains(part), "{words}: {sentence}");
        }
    }

    #[test]
    fn the_first_host_of_slurms_list_is_found() {
        let cases = [
            ("node7", Some("node7")),
            ("node7,node8", Some("node7")),
            ("node[01-03,7]", Some("node01")),
            ("node[7,01-03],other", Some("node7")),
            ("rack[1-2]node[05-06].site", Some("rack1node05.site")),
            ("", None),
            (",a", None),
            ("a[", None),
            ("a[]", None),
            ("a]", None),
        ];
        for (list, first) in cases {
            assert_eq!(first_host(list).as_deref(), first, "{list}");
        }
    }
}
