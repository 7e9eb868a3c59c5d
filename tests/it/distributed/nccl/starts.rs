//! Jobs start, run every operation and end.

use super::stub::{self, Variant};
use super::{AMPLE, Job, Meeting, alone};

#[test]
fn processes_run_every_operation() {
    for ranks in [1, 2, 3, 5] {
        for meeting in [Meeting::File, Meeting::Tcp] {
            let job = Job::new(ranks, &meeting);
            job.run("series", AMPLE, |_| Vec::new()).iter().for_each(|outcome| outcome.is("ok", &[]));
            // The stub's file and that of the rendezvous are gone.
            assert_eq!(std::fs::read_dir(job.folder.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn versions_that_differ_are_refused() {
    let version = |rank| if rank == 1 { vec![("WARPSTRIDE_STUB_VERSION", "21800")] } else { Vec::new() };
    for outcome in Job::new(3, &Meeting::File).run("series", AMPLE, version) {
        outcome.is("Peer", &["rank 1 has another version of NCCL than rank 0"]);
    }
}

#[test]
fn software_gpus_are_refused_by_a_library_that_needs_gpus() {
    let library = stub::compiled(Variant::NeedsGpu);
    let library = library.to_str().expect("a path");
    let job = Job::new(1, &Meeting::File);
    job.run("series", AMPLE, |_| vec![("WARPSTRIDE_NCCL", library)])[0]
        .is("Unavailable", &["NCCL runs on NVIDIA GPUs", "Communicator::local"]);
    // The other ranks know why.
    let outcomes = Job::new(2, &Meeting::File)
        .run("series", AMPLE, |rank| if rank == 1 { vec![("WARPSTRIDE_NCCL", library)] } else { Vec::new() });
    outcomes[1].is("Unavailable", &["NCCL runs on NVIDIA GPUs"]);
    outcomes[0].is("Peer", &["rank 1", "NCCL runs on NVIDIA GPUs"]);
}

#[test]
fn ranks_with_other_plans_are_refused() {
    for outcome in Job::new(2, &Meeting::File).run("plans_by_rank", AMPLE, |_| Vec::new()) {
        outcome.is("Peer", &["rank 1 has another redistribution than rank 0"]);
    }
}

#[test]
fn a_task_without_ranks_needs_no_job() {
    alone("find", &[("WARPSTRIDE_NCCL", stub::compiled(Variant::Whole))]).is("ok", &["2.28.9 "]);
}
