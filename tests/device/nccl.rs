//! Communicators over NVIDIA's NCCL: a process for each GPU, each of which runs the conformance
//! suite.

use std::env;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use warpstride::device::{Backend, Device};
use warpstride::distributed::{Communicator, NcclLibrary, Rendezvous};

use crate::backend::{Setup, cases};
use crate::communicators::{ByMessages, conforms};
use crate::long::short_or_long;

cases! {
    SeveralGpus processes_conform_by_nccl,
    SeveralGpus threads_conform_by_shared_memory,
}

/// The test's name in the children, which run it alone.
const NAME: &str = "processes_conform_by_nccl";

fn processes_conform_by_nccl(_: &Setup) {
    if env::var_os("WARPSTRIDE_RANK_OF_TEST").is_some() {
        rank();
        return;
    }
    let library = NcclLibrary::find().expect("NCCL, named by WARPSTRIDE_NCCL");
    println!("NCCL {} in {}", library.version(), library.path().display());
    let ranks = warpstride::distributed::Gpus::all().unwrap().len();
    let meeting = env::temp_dir().join(format!("warpstride-nccl-{}", std::process::id()));
    let start = |rank: usize| -> Child {
        let mut command = Command::new(env::current_exe().expect("this test's binary"));
        command.args([NAME, "--test-threads=1", "--nocapture"]).stdin(Stdio::null());
        command.env("WARPSTRIDE_RANK_OF_TEST", format!("{rank} {ranks} {}", meeting.display()));
        command.spawn().expect("a process")
    };
    let children: Vec<Child> = (0..ranks).map(start).collect();
    for (rank, mut child) in children.into_iter().enumerate() {
        assert!(child.wait().expect("its end").success(), "rank {rank} failed");
    }
}

fn rank() {
    let told = env::var("WARPSTRIDE_RANK_OF_TEST").expect("the parent's words");
    let words: Vec<&str> = told.splitn(3, ' ').collect();
    let (rank, ranks) = (words[0].parse().unwrap(), words[1].parse().unwrap());
    let meeting = Rendezvous::file(words[2], rank, ranks).unwrap().with_deadline(Duration::from_secs(120));
    let device = Device::open(Backend::Cuda(rank as u32)).unwrap();
    let communicator = Arc::new(Communicator::nccl(&device, meeting.meet().unwrap()).unwrap());
    for of in [Arc::new(ByMessages::over(&communicator)), communicator] {
        conforms(&of, short_or_long(20, 200)).unwrap();
    }
}

fn threads_conform_by_shared_memory(_: &Setup) {
    let ranks = Communicator::local(&crate::peers::all(false)).unwrap();
    std::thread::scope(|threads| {
        for communicator in ranks {
            threads.spawn(|| {
                for of in [ByMessages::over(&communicator), communicator] {
                    conforms(&Arc::new(of), short_or_long(20, 200)).unwrap();
                }
            });
        }
    });
}
