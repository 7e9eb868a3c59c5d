//! The tasks of the processes that tests start.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use warpstride::distributed::{Combine, Communicator, NcclLibrary, Redistribution, Rendezvous, Shard, ShardExchange};
use warpstride::driver::soft::Soft;
use warpstride::driver::{Driver, EventHandle, Layer};
use warpstride::interp::Checks;
use warpstride::{Device, Error, Result};

use super::super::{devices, host, split};
use super::{AMPLE, MARK, TASK};
use crate::long::PATIENCE;

/// Does the task of a child, and says how it ended. Without the variable [`TASK`] it does nothing:
/// it is a test only so that this binary can start itself again.
#[test]
fn child() {
    let Ok(task) = std::env::var(TASK) else { return };
    thread::spawn(|| {
        thread::sleep(PATIENCE);
        eprintln!("a child does not end");
        std::process::abort();
    });
    let mut begin = Instant::now();
    let outcome = match &*task {
        "find" => NcclLibrary::find().map(|library| format!("{} {}", library.version(), library.path().display())),
        _ => Task::parse(&task).run(&mut begin),
    };
    let seconds = begin.elapsed().as_secs_f64();
    match outcome {
        Ok(words) => say(&format!("ok {seconds} {words}")),
        Err(error) => say(&format!("{:?} {seconds} {error}", error.kind())),
    }
}

fn say(words: &str) {
    println!("{MARK}{words}");
}

/// `<name> <rank> <ranks> <deadline in ms> <place>`.
struct Task {
    name: String,
    rank: usize,
    ranks: usize,
    deadline: Duration,
    place: String,
}

impl Task {
    fn parse(task: &str) -> Self {
        let words: Vec<&str> = task.splitn(5, ' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        Self {
            name: words[0].into(),
            rank: number(1) as usize,
            ranks: number(2) as usize,
            deadline: Duration::from_millis(number(3)),
            place: words[4].into(),
        }
    }

    /// Meets the others by the longest deadline, and does what the task's name says. `begin` is the
    /// time of the last call.
    fn run(&self, begin: &mut Instant) -> Result<String> {
        let (kind, place) = self.place.split_once(':').expect("a place");
        let meeting = match kind {
            "tcp" => Rendezvous::tcp(place, self.rank, self.ranks)?,
            _ => Rendezvous::file(place, self.rank, self.ranks)?,
        };
        let members = meeting.with_deadline(self.deadline.max(Duration::from_millis(AMPLE))).meet()?;
        say("met");
        let device = device(self.name == "never_passes")?;
        let communicator = Arc::new(Communicator::nccl(&device, members)?.with_deadline(self.deadline));
        *begin = Instant::now();
        let ended = self.work(&communicator, begin);
        if self.name == "never_passes" {
            *begin = Instant::now();
        }
        drop(communicator);
        ended.map(|()| "done".into())
    }

    fn work(&self, communicator: &Arc<Communicator>, begin: &mut Instant) -> Result<()> {
        match &*self.name {
            "series" => series(communicator).and_then(|()| series(communicator)),
            "short" => short(communicator),
            "never_passes" => {
                short(communicator)?;
                // A message to itself needs no peer, so its call ends in any time.
                let engine = Arc::clone(communicator.engine());
                let hurried = Communicator::over(engine).with_deadline(Duration::from_millis(50));
                exchange(&hurried, self.rank, self.rank)
            }
            "for_ever" => loop {
                *begin = Instant::now();
                short(communicator)?;
            },
            "receives" => receive(communicator),
            "is_silent" => Err(failure(communicator)),
            "is_silent_after_all" => {
                short(communicator)?;
                Err(failure(communicator))
            }
            "is_aborted" => {
                let aborter = communicator.aborter();
                let waits = thread::spawn(move || {
                    thread::sleep(Duration::from_millis(20));
                    aborter.abort("the user said so");
                });
                let received = receive(communicator);
                waits.join().expect("no panic");
                // It stays aborted.
                received.map_err(|error| match receive(communicator) {
                    Err(again) if again.kind() == error.kind() => error,
                    other => panic!("{error}, then {other:?}"),
                })
            }
            "plans_by_rank" => {
                let (from, to) = (split(&[4, 6], "0:2"), split(&[6, 4], "0:2"));
                let plan = Redistribution::new(&from, [1, 0], &to, 4)?;
                let made = ShardExchange::in_pieces(communicator, &plan, 16 + self.rank as u64).map(drop);
                // It has failed for good.
                made.inspect_err(|error| assert!(communicator.engine().check().is_err(), "after {error}"))
            }
            other => panic!("there is no task {other}"),
        }
    }
}

fn device(never_passes: bool) -> Result<Device> {
    let soft = host(1, 0, Checks::NONE);
    match never_passes {
        true => Device::with_driver(Arc::new(NeverPasses(Arc::clone(&soft[0])))),
        false => Ok(devices(&soft)?.remove(0)),
    }
}

/// A software GPU whose events are never passed.
#[derive(Debug)]
struct NeverPasses(Arc<Soft>);

// SAFETY: all calls are those of one driver, and an event that is said not to be passed orders
// nothing.
unsafe impl Layer for NeverPasses {
    fn inner(&self) -> &dyn Driver {
        self.0.as_ref()
    }

    unsafe fn event_query(&self, _: EventHandle) -> Result<bool> {
        Ok(false)
    }
}

/// Receives from the next rank.
fn receive(communicator: &Communicator) -> Result<()> {
    let device = communicator.device();
    let mut array = device.alloc_array::<f32>(&[4])?;
    communicator.receive(&mut array, (communicator.rank() + 1) % communicator.ranks(), device.default_stream())
}

/// Sends to a rank, and receives from one.
fn exchange(communicator: &Communicator, to: usize, from: usize) -> Result<()> {
    let device = communicator.device();
    let (sent, mut got) = (device.alloc_array::<f32>(&[3])?, device.alloc_array::<f32>(&[3])?);
    communicator.exchange(&[(sent.view(), to)], &mut [(got.view_mut(), from)], device.default_stream())
}

/// Calls nothing until the engine fails.
fn failure(communicator: &Communicator) -> Error {
    loop {
        match communicator.engine().check() {
            Ok(()) => thread::sleep(Duration::from_millis(2)),
            Err(error) => return error,
        }
    }
}

/// Calls each function of NCCL, without a kernel.
fn short(communicator: &Communicator) -> Result<()> {
    let (device, rank, ranks) = (communicator.device(), communicator.rank(), communicator.ranks());
    let stream = device.default_stream();
    exchange(communicator, (rank + 1) % ranks, (rank + ranks - 1) % ranks)?;
    let mut array = device.alloc_array::<u8>(&[5])?;
    communicator.broadcast(&mut array, ranks - 1, stream)?;
    let (from, mut to) = (device.alloc_array::<i64>(&[7])?, device.alloc_array::<i64>(&[7])?);
    communicator.reduce(&from, &mut to, Combine::Max, 0, stream)?;
    communicator.all_reduce(&from, &mut to, Combine::Sum, stream)?;
    communicator.agree("place", &19)
}

/// Runs every operation.
fn series(communicator: &Arc<Communicator>) -> Result<()> {
    let (device, ranks) = (communicator.device(), communicator.ranks());
    let stream = device.default_stream();
    short(communicator)?;
    let (source, mut result) =
        (device.array(&[2 * ranks, 5], &vec![1_u8; 10 * ranks])?, device.alloc_array(&[2 * ranks, 5])?);
    communicator.all_to_all(&source, &mut result, stream)?;
    for root in 0..ranks {
        communicator.broadcast(&mut result, root, stream)?;
        communicator.reduce(&source, &mut result, Combine::Min, root, stream)?;
    }
    let (from, to) = (split(&[8, 6], "0:3"), split(&[6, 8], "0:3"));
    if ranks >= 3 {
        let source = Shard::of_whole(communicator, &from, &[1.0_f32; 48])?;
        let mut result = Shard::alloc(device, &to, communicator.rank())?;
        let plan = Redistribution::new(&from, [1, 0], &to, 4)?;
        ShardExchange::in_pieces(communicator, &plan, 16)?.launch(&source, &mut result)?;
    }
    communicator.wait(stream)
}
