//! Communicators over NVIDIA's NCCL: a process for each GPU, each of which runs the conformance
//! suite.

use std::env;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use warpstride::ErrorKind;
use warpstride::device::{Backend, Device};
use warpstride::distributed::{Communicator, NcclLibrary, Redistribution, Rendezvous, Shard, ShardExchange, Split};

use crate::backend::{Setup, cases};
use crate::communicators::{Altered, conforms};
use crate::long::short_or_long;

cases! {
    SeveralGpus processes_conform_by_nccl,
    SeveralGpus streams_leave_a_window_after_a_failure,
    SeveralGpus threads_conform_by_shared_memory,
}

/// The variable that has a child's words: its rank, the number of ranks, and where they meet.
const WORDS: &str = "WARPSTRIDE_RANK_OF_TEST";

/// Runs `rank` in a process for each GPU. A child runs the test with this name alone.
fn in_processes(name: &str, rank: impl Fn(usize, usize, &str)) {
    if let Ok(told) = env::var(WORDS) {
        let words: Vec<&str> = told.splitn(3, ' ').collect();
        rank(words[0].parse().unwrap(), words[1].parse().unwrap(), words[2]);
        return;
    }
    let library = NcclLibrary::find().expect("NCCL, named by WARPSTRIDE_NCCL");
    println!("NCCL {} in {}", library.version(), library.path().display());
    let ranks = warpstride::distributed::Gpus::all().unwrap().len();
    let meeting = env::temp_dir().join(format!("warpstride-{name}-{}", std::process::id()));
    let start = |rank: usize| -> Child {
        let mut command = Command::new(env::current_exe().expect("this test's binary"));
        command.args([name, "--test-threads=1", "--nocapture"]).stdin(Stdio::null());
        command.env(WORDS, format!("{rank} {ranks} {}", meeting.display()));
        command.spawn().expect("a process")
    };
    let children: Vec<Child> = (0..ranks).map(start).collect();
    for (rank, mut child) in children.into_iter().enumerate() {
        assert!(child.wait().expect("its end").success(), "rank {rank} failed");
    }
}

fn meet(device: &Device, rank: usize, ranks: usize, place: &str) -> Communicator {
    let meeting = Rendezvous::file(place, rank, ranks).unwrap().with_deadline(Duration::from_secs(120));
    Communicator::nccl(device, meeting.meet().unwrap()).unwrap()
}

fn processes_conform_by_nccl(_: &Setup) {
    in_processes("processes_conform_by_nccl", |rank, ranks, place| {
        let device = Device::open(Backend::Cuda(rank as u32)).unwrap();
        let communicator = Arc::new(meet(&device, rank, ranks, place));
        for of in [Arc::new(Altered::by_messages(&communicator)), communicator] {
            conforms(&of, short_or_long(20, 200)).unwrap();
        }
    });
}

/// Rank 0 launches what no other rank does, so its streams wait for them. Its errors, and the drop
/// of its communicator, let the streams go on.
fn streams_leave_a_window_after_a_failure(_: &Setup) {
    in_processes("streams_leave_a_window_after_a_failure", |rank, ranks, place| {
        let device = Device::open(Backend::Cuda(rank as u32)).unwrap();
        for surplus in [1, 3, 5000, 0] {
            let communicator = meet(&device, rank, ranks, &format!("{place}-{surplus}"));
            let communicator = Arc::new(communicator.with_deadline(Duration::from_secs(2)));
            let rows = Split::whole(&[64, 96]).unwrap().cut(0, ranks).unwrap();
            let columns = Split::whole(&[96, 64]).unwrap().cut(0, ranks).unwrap();
            let elements: Vec<u32> = (0..64 * 96).collect();
            let source = Shard::of_whole(&communicator, &rows, &elements).unwrap();
            let mut result = Shard::alloc(&device, &columns, rank).unwrap();
            let plan = Redistribution::new(&rows, [1, 0], &columns, 4).unwrap();
            let exchange = ShardExchange::in_pieces(&communicator, &plan, 1000).unwrap();
            assert!(exchange.to_string().contains("windows"), "{exchange}");
            exchange.launch(&source, &mut result).unwrap();
            communicator.wait(device.default_stream()).unwrap();
            if surplus == 0 {
                // The communicator goes while the stream waits.
                if rank == 0 {
                    exchange.launch(&source, &mut result).unwrap();
                }
            } else if rank == 0 {
                let launched = (0..surplus).try_for_each(|_| exchange.launch(&source, &mut result));
                let error = launched.and_then(|()| communicator.wait(device.default_stream())).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Deadline | ErrorKind::Peer), "{error}");
            } else {
                // The other ranks hear of it, however often they ask.
                let error = loop {
                    if let Err(error) = communicator.wait(device.default_stream()) {
                        break error;
                    }
                };
                assert_eq!(error.kind(), ErrorKind::Peer, "{error}");
            }
            drop((exchange, communicator));
            device.synchronize().unwrap();
            assert_eq!(device.array(&[3], &[1, 2, 3]).unwrap().to_vec().unwrap(), [1, 2, 3]);
        }
    });
}

fn threads_conform_by_shared_memory(_: &Setup) {
    let ranks = Communicator::local(&crate::peers::all(false)).unwrap();
    std::thread::scope(|threads| {
        for communicator in ranks {
            threads.spawn(|| {
                for of in [Altered::by_messages(&communicator), communicator] {
                    conforms(&Arc::new(of), short_or_long(20, 200)).unwrap();
                }
            });
        }
    });
}
