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
