//! Processes that meet. Threads are the ranks here, and children of this process where one is
//! killed.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use warpstride::distributed::{Lost, Members, Rendezvous};
use warpstride::{Error, ErrorKind, Result};

use crate::long::{PATIENCE, wait_until};

/// A deadline that is meant to expire.
const SHORT: Duration = Duration::from_millis(400);

/// A file that ranks meet by, in a folder that goes with it.
struct Place {
    _folder: TempDir,
    file: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { file: folder.path().join("job"), _folder: folder }
    }

    fn of(&self, rank: usize, ranks: usize) -> Rendezvous {
        Rendezvous::file(&self.file, rank, ranks).expect("a rank").with_deadline(PATIENCE)
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap_or_default()
    }

    /// Connects to rank 0 as a stranger does, once rank 0 has written the file.
    fn connect(&self) -> TcpStream {
        wait_until("rank 0 writes its file", || !self.text().is_empty());
        let text = self.text();
        TcpStream::connect(text.lines().nth(2).expect("an address")).expect("rank 0 listens")
    }
}

/// Runs each rank in a thread of its own, and returns what they return in the order of the ranks.
fn on_ranks<T: Send>(ranks: usize, act: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || act(rank))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank ends without a panic")).collect()
    })
}

/// Every operation once.
fn work(members: &Members) -> Result<()> {
    let id: Vec<u8> = (0..4096).map(|at| at as u8).collect();
    assert_eq!(members.broadcast((members.rank() == 0).then_some(&id))?, id);
    assert!(members.broadcast((members.rank() == 0).then_some(b""))?.is_empty());
    members.agree("plan", 7)?;
    members.barrier()?;
    assert_eq!(members.lost(), None);
    // Rank 0 keeps its members until the others are done with theirs.
    members.barrier()
}

#[track_caller]
fn fails<T>(result: Result<T>, kind: ErrorKind, parts: &[&str]) {
    let Err(error) = result else { panic!("no error with {parts:?}") };
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is not in {error}");
    }
}

fn loses(members: &Members) -> Lost {
    wait_until("a rank is lost", || members.lost().is_some());
    members.lost().expect("it was there")
}

#[test]
fn any_number_of_ranks_meets_and_works() {
    for ranks in (1..=9).chain([64]) {
        let place = Place::new();
        let done = on_ranks(ranks, |rank| {
            let members = place.of(rank, ranks).with_local_rank(rank % 2).meet()?;
            assert_eq!((members.rank(), members.ranks(), members.local_rank()), (rank, ranks, rank % 2));
            work(&members)
        });
        assert_eq!(done, vec![Ok(()); ranks]);
        assert!(!place.file.exists(), "rank 0 leaves its file");
    }
}

/// A port below those that systems give away, so that no other program here takes it meanwhile.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + (std::process::id() % 5_000) as u16 * 2;
    let ports = std::iter::from_fn(|| Some(first + NEXT.fetch_add(1, Ordering::Relaxed)));
    ports.into_iter().find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()).expect("a free port")
}

#[test]
fn ranks_meet_at_an_address_before_and_after_rank_0_listens() {
    for late in [0, 1] {
        let (address, early) = (format!("127.0.0.1:{}", port()), Barrier::new(2));
        let done = on_ranks(2, |rank| {
            if rank == late {
                early.wait();
                thread::sleep(Duration::from_millis(50));
            } else {
                early.wait();
            }
            let place = Rendezvous::tcp(&address, rank, 2)?.with_token("address").with_deadline(PATIENCE);
            work(&place.meet()?)
        });
        assert_eq!(done, [Ok(()), Ok(())]);
    }
}

#[test]
fn the_arguments_of_operations_are_checked() {
    let one = Place::new().of(0, 1).meet().expect("alone");
    fails(one.broadcast(None), ErrorKind::InvalidArgument, &["rank 0"]);
    fails(one.broadcast(Some(&[0; 4097])), ErrorKind::InvalidArgument, &["4096", "4097 bytes"]);
    fails(one.agree(&"x".repeat(257), 0), ErrorKind::InvalidArgument, &["257"]);
    work(&one).expect("alone");
    fails(Rendezvous::tcp("127.0.0.1:9", 2, 2), ErrorKind::InvalidArgument, &["rank 2"]);
    fails(Rendezvous::file("/", 0, 2), ErrorKind::InvalidArgument, &["`/`"]);
    fails(Place::new().of(0, 2).with_token(&"x".repeat(257)).meet(), ErrorKind::InvalidArgument, &["257"]);
}

#[test]
fn missing_ranks_are_named_on_every_rank_that_came() {
    let sentence = |seconds: u64| format!("ranks 2 and 4 to 7 of 8 did not come within {seconds} s");
    let kinds = [ErrorKind::Deadline, ErrorKind::Peer, ErrorKind::Peer];
    // On a slow machine ranks 1 and 3 may come too late for the first deadlines.
    let is_told = [1, 8, 64].into_iter().any(|seconds| {
        let place = Place::new();
        let ends = on_ranks(3, |at| {
            // The others wait longer, so they learn the names from rank 0.
            let deadline = Duration::from_secs(if at == 0 { seconds } else { 2 * seconds });
            place.of([0, 1, 3][at], 8).with_deadline(deadline).meet().expect_err("ranks are missing")
        });
        let told = |(end, kind): (&Error, ErrorKind)| {
            let is_told = end.kind() == kind && end.to_string().contains(&sentence(seconds));
            is_told && end.to_string().contains("reaches rank 0 by the file")
        };
        ends.iter().zip(kinds).all(told)
    });
    assert!(is_told);
}

#[test]
fn a_rank_without_rank_0_ends_at_its_deadline() {
    let place = Place::new();
    let met = place.of(1, 2).with_deadline(SHORT).meet();
    fails(met, ErrorKind::Deadline, &["rank 1 of 2", "within 0.4 s", "has not written"]);
    let address = format!("127.0.0.1:{}", port());
    let met = Rendezvous::tcp(&address, 1, 2).expect("a rank").with_deadline(SHORT).meet();
    fails(met, ErrorKind::Deadline, &["rank 1 of 2", &address]);
}

#[test]
fn strangers_are_refused_by_name_and_the_job_goes_on() {
    let place = Place::new();
    thread::scope(|scope| {
        let first = scope.spawn(|| place.of(0, 3).with_token("job").meet().map(|members| (work(&members), members)));
        let refused = |rank, ranks, token: &str, part: &str| {
            let met = place.of(rank, ranks).with_token(token).meet();
            fails(met, ErrorKind::Peer, &["refuses rank", part]);
        };
        refused(1, 3, "jog", "its token is another one");
        refused(1, 3, "", "its token is another one");
        refused(1, 4, "job", "a job of 4 ranks, and rank 0 of one of 3");
        let one = scope.spawn(|| place.of(1, 3).with_token("job").meet().map(|members| (work(&members), members)));
        // Rank 1 may come after this one: then that one is refused.
        let again = scope.spawn(|| place.of(1, 3).with_token("job").meet().map(|members| (work(&members), members)));
        wait_until("one of the two is refused", || one.is_finished() || again.is_finished());
        let two = place.of(2, 3).with_token("job").meet().expect("rank 2 meets");
        work(&two).expect("rank 2 works");
        let [one, again] = [one, again].map(|thread| thread.join().expect("no panic"));
        let refused = if one.is_ok() { again } else { one };
        fails(refused.map(drop), ErrorKind::Peer, &["rank 1 has come already"]);
        first.join().expect("no panic").expect("rank 0 meets").0.expect("rank 0 works");
    });
}

#[test]
fn silence_and_garbage_do_not_keep_a_job_from_meeting() {
    let place = Place::new();
    thread::scope(|scope| {
        let first = scope.spawn(|| work(&place.of(0, 2).meet()?));
        // They stay connected until the ranks have met.
        let silent: Vec<TcpStream> = (0..100).map(|_| place.connect()).collect();
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], &[0xff; 64], &[44, 0, 1]] {
            let mut stranger = place.connect();
            stranger.write_all(garbage).expect("rank 0 takes bytes");
            let _ = stranger.shutdown(Shutdown::Write);
            let mut answer = Vec::new();
            // Rank 0 may close the connection with bytes unread, which is an error here.
            let _ = stranger.read_to_end(&mut answer);
        }
        // A hello of another version: the length, the kind, the name of the protocol, the version.
        let mut other = place.connect();
        other.write_all(b"\x0c\x00\x01WARPMEET\x02\x00\x00\x00").expect("rank 0 takes bytes");
        let mut answer = Vec::new();
        other.read_to_end(&mut answer).expect("an answer");
        assert!(String::from_utf8_lossy(&answer).contains("it speaks version 2 of the protocol"));
        work(&place.of(1, 2).meet().expect("rank 1 meets")).expect("rank 1 works");
        first.join().expect("no panic").expect("rank 0 works");
        drop(silent);
    });
}

#[test]
fn files_of_former_runs_cost_tries_only() {
    // Nothing listens there, a silent program does, another protocol does, and other ranks wait.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (former, gone) = (Place::new(), TcpListener::bind("127.0.0.1:0").expect("a port"));
    let at = |listener: &TcpListener| {
        format!("warpstride rendezvous 1\n{:032x}\n{}\n", 7, listener.local_addr().expect("an address"))
    };
    let stale = [at(&gone), at(&silent), at(&other), String::new(), "warpstride rendezvous 2\n".into()];
    drop(gone);
    let talking = other.try_clone().expect("a listener");
    thread::spawn(move || {
        for stream in talking.incoming().flatten() {
            let _ = (&stream).write_all(b"220 mail\r\n");
        }
    });
    thread::scope(|scope| {
        let waiting = scope.spawn(|| former.of(0, 3).with_deadline(10 * SHORT).meet().map(drop));
        wait_until("the former run writes its file", || !former.text().is_empty());
        // The number of another run admits to none.
        let wrong =
            former.text().lines().nth(2).map(|address| format!("warpstride rendezvous 1\n{:032x}\n{address}\n", 7));
        for text in stale.into_iter().chain(wrong) {
            let place = Place::new();
            fs::write(&place.file, &text).expect("written");
            let done = on_ranks(2, |rank| {
                if rank == 0 {
                    thread::sleep(Duration::from_millis(100));
                }
                work(&place.of(rank, 2).meet()?)
            });
            assert_eq!(done, [Ok(()), Ok(())], "{text}");
        }
        fails(waiting.join().expect("no panic"), ErrorKind::Deadline, &["ranks 1 and 2 of 3"]);
    });
}

#[test]
fn a_file_with_other_content_is_kept() {
    let place = Place::new();
    fs::write(&place.file, "words of a person").expect("written");
    fails(place.of(0, 2).meet(), ErrorKind::InvalidArgument, &["other content"]);
    assert_eq!(place.text(), "words of a person");
}

#[test]
fn ranks_that_differ_are_named_on_every_rank() {
    let place = Place::new();
    let ends = on_ranks(5, |rank| -> Result<[Result<()>; 2]> {
        let members = place.of(rank, 5).meet()?;
        let plans = members.agree("plan", u64::from(rank == 2 || rank == 3));
        let calls = if rank == 4 { members.broadcast(None).map(drop) } else { members.barrier() };
        // Neither error is the end of the members.
        work(&members)?;
        Ok([plans, calls])
    });
    for end in ends {
        let [plans, calls] = end.expect("members");
        fails(plans, ErrorKind::Peer, &["ranks 2 and 3 have another plan than rank 0"]);
        fails(calls, ErrorKind::Peer, &["rank 0 is in a barrier, rank 4 is in a broadcast"]);
    }
}

#[test]
fn an_operation_names_the_ranks_that_do_not_call_it() {
    let (place, done) = (Place::new(), Barrier::new(3));
    let ends = on_ranks(3, |rank| -> Result<Result<()>> {
        let deadline = if rank == 0 { SHORT } else { PATIENCE };
        // Rank 0's deadline is that of operations, so nothing else may need as long.
        let members = meet_with(&place, rank, 3, deadline)?;
        let end = if rank == 2 { Ok(()) } else { members.barrier() };
        done.wait();
        // A rank that comes late has the same error, and the next operation has all ranks.
        let end = if rank == 2 { members.barrier() } else { end };
        done.wait();
        Ok(end)
    });
    for end in ends {
        // On a slow machine another rank may be late, too.
        let parts = ["a barrier failed: rank", "2 of 3 did not call it within 0.4 s"];
        fails(end.expect("members"), ErrorKind::Deadline, &parts);
    }
}

/// Meets also where a rank's deadline is so short that its first tries may expire.
fn meet_with(place: &Place, rank: usize, ranks: usize, deadline: Duration) -> Result<Members> {
    let begin = Instant::now();
    loop {
        let met = place.of(rank, ranks).with_deadline(deadline).meet();
        if met.is_ok() || begin.elapsed() > PATIENCE {
            return met;
        }
    }
}

#[test]
fn a_rank_that_leaves_is_not_lost_and_fails_what_waits_for_it() {
    for leaving in [0, 1] {
        let (place, left) = (Place::new(), Barrier::new(3));
        let ends = on_ranks(3, |rank| -> Result<Option<Error>> {
            let members = place.of(rank, 3).meet()?;
            members.barrier()?;
            if rank == leaving {
                drop(members);
                left.wait();
                return Ok(None);
            }
            let error = members.barrier().expect_err("a rank has left");
            assert_eq!(members.lost(), None);
            fails(members.agree("plan", 1), ErrorKind::Peer, &["has left the job"]);
            left.wait();
            Ok(Some(error))
        });
        for (rank, end) in ends.into_iter().enumerate() {
            let Some(error) = end.expect("members") else { continue };
            fails(Err::<(), _>(error), ErrorKind::Peer, &["a barrier failed", &format!("rank {leaving} has left")]);
            assert_ne!(rank, leaving);
        }
    }
}

#[test]
fn a_rank_that_aborts_or_panics_is_lost_to_all_others() {
    for (aborting, panics) in [(0, false), (2, false), (0, true), (1, true)] {
        let (place, done) = (Place::new(), Barrier::new(3));
        on_ranks(3, |rank| {
            let members = place.of(rank, 3).meet().expect("they meet");
            if rank == aborting {
                if panics {
                    let panicked = thread::scope(|scope| {
                        scope
                            .spawn(|| {
                                let _members = members;
                                panic!("a panic of the test")
                            })
                            .join()
                            .is_err()
                    });
                    assert!(panicked);
                } else {
                    members.tell_abort("no memory is left");
                    done.wait();
                    return;
                }
            } else {
                let reason = if panics { "a thread of it panicked" } else { "no memory is left" };
                fails(members.barrier(), ErrorKind::Peer, &[&format!("rank {aborting} is lost: it aborted"), reason]);
                let lost = loses(&members);
                assert_eq!((lost.rank, lost.reason), (aborting, format!("it aborted ({reason})")));
            }
            done.wait();
        });
    }
}

/// The variables of a child: the file that it meets by, and its rank.
const FILE: &str = "WARPSTRIDE_TEST_FILE";
const RANK: &str = "WARPSTRIDE_TEST_RANK";

/// Starts this test in another process, as a rank of a job of three.
fn start(file: &Path, rank: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("a name"));
    command.args(["--exact", "distributed::rendezvous::a_killed_process_is_lost_by_name_on_every_rank"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env(FILE, file).env(RANK, rank.to_string()).spawn().expect("it starts")
}

#[test]
fn a_killed_process_is_lost_by_name_on_every_rank() {
    if let Some(file) = std::env::var_os(FILE) {
        let rank = std::env::var(RANK).expect("a rank").parse().expect("a number");
        let members =
            Rendezvous::file(file, rank, 3).expect("a rank").with_deadline(PATIENCE).meet().expect("they meet");
        members.barrier().expect("all are there");
        thread::sleep(PATIENCE);
        return;
    }
    for killed in (0..10).map(|time| time % 3) {
        let place = Place::new();
        let mut child = start(&place.file, killed);
        let others: Vec<usize> = (0..3).filter(|&rank| rank != killed).collect();
        let met = Barrier::new(3);
        thread::scope(|scope| {
            let ends: Vec<_> = others
                .iter()
                .map(|&rank| {
                    let (place, met) = (&place, &met);
                    scope.spawn(move || {
                        let members = place.of(rank, 3).meet().expect("they meet");
                        members.barrier().expect("all are there");
                        met.wait();
                        // One waits in an operation, and all look.
                        let name = format!("rank {killed} is lost: its connection");
                        if rank != 1 {
                            fails(members.barrier(), ErrorKind::Peer, &[&name]);
                        }
                        let lost = loses(&members);
                        assert_eq!(lost.rank, killed, "{}", lost.reason);
                        met.wait();
                    })
                })
                .collect();
            met.wait();
            child.kill().expect("it runs");
            met.wait();
            ends.into_iter().for_each(|end| end.join().expect("no panic"));
        });
        child.wait().expect("it ended");
    }
}
