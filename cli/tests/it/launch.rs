//! `launch`: the processes of a job on this host.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use warpstride::distributed::Rendezvous;

use super::{Run, command, send, warpstride};
use crate::long::{PATIENCE, wait_until};

/// The words that run a script of the shell as each of `ranks` ranks.
fn shell<'a>(ranks: &'a str, script: &'a str) -> [&'a str; 7] {
    ["launch", "-n", ranks, "--", "sh", "-c", script]
}

#[test]
fn ranks_have_their_variables_and_the_lines_their_place() {
    let script = "echo \"$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR ${#WARPSTRIDE_TOKEN}\"; \
                  test \"$MASTER_PORT\" -gt 0 && printf 'an error' >&2; read -r line || test -z \"$line$WARPSTRIDE_RANK\"";
    let run = Run::of(command(shell("3", script)).env("WARPSTRIDE_RANK", "7")).succeeded();
    assert_eq!(run.stdout, "0 3 0 3 127.0.0.1 32\n");
    let mut lines: Vec<_> = run.stderr.lines().collect();
    lines.sort_unstable();
    let of_ranks = ["[rank 1] 1 3 1 3 127.0.0.1 32", "[rank 1] an error", "[rank 2] 2 3 2 3 127.0.0.1 32"];
    assert_eq!(lines, [&["[rank 0] an error"], &of_ranks[..], &["[rank 2] an error"]].concat());
}

#[test]
fn lines_come_whole() {
    // A line in two writes, which others come between.
    let script = "i=0; while [ $i -lt 300 ]; do printf 'begin '; echo 'and end'; i=$((i+1)); done";
    let run = warpstride(shell("4", script)).succeeded();
    assert_eq!(run.stdout, "begin and end\n".repeat(300));
    for rank in 1..4 {
        let line = format!("[rank {rank}] begin and end");
        assert_eq!(run.stderr.lines().filter(|found| *found == line).count(), 300);
    }
    assert_eq!(run.stderr.lines().count(), 900);
}

#[test]
fn the_first_failure_is_the_status_and_ends_the_others() {
    // Rank 0 ends at SIGTERM, and rank 2 only at SIGKILL.
    let script = "case $RANK in 1) exit 3;; 2) trap '' TERM;; esac; echo started; sleep 600 & wait; sleep 600";
    let said = ["rank 1 ended with status 3; the others have 5 s to end\n", "error: rank 1 of 3 ended with status 3\n"];
    let run = warpstride(shell("3", script)).ended(3, &["started"], &said);
    assert!(!run.stderr.contains("rank 2 was"), "{}", run.stderr);
    let run = warpstride(shell("2", "test $RANK = 0 || kill -s KILL $$"));
    run.ended(137, &[], &["error: rank 1 of 2 was ended by signal 9 (SIGKILL)"]);
}

#[test]
fn a_program_that_is_not_there_is_one_error() {
    warpstride(["launch", "-n", "2", "no-such-program", "-x"]).failed(&["no program no-such-program", "PATH"]);
    warpstride(["launch", "-n", "2", "/nowhere/program"]).failed(&["no program /nowhere/program"]);
    assert_eq!(warpstride(["launch", "-n", "0", "true"]).code, Some(2));
    assert_eq!(warpstride(["launch", "true"]).code, Some(2));
    assert_eq!(warpstride(["launch", "-n", "2"]).code, Some(2));
}

#[test]
fn with_json_standard_output_is_one_document() {
    let words = shell("2", "echo a line");
    let run = warpstride([&["--json"], &words[..]].concat()).ended(0, &[], &["[rank 0] a line", "[rank 1] a line"]);
    assert_eq!(run.json()["ranks"], 2);
    // Options behind the program are its own.
    let run = warpstride(["launch", "-n", "1", "echo", "--json", "--device", "x"]).succeeded();
    assert_eq!(run.stdout, "--json --device x\n");
    let run = warpstride([&["--json"], &shell("1", "exit 4")[..]].concat()).ended(4, &[], &[]);
    assert_eq!(run.json()["error"]["message"], "rank 0 of 1 ended with status 4");
}

/// A script whose ranks write their process ids into a folder, and stay.
const STAYS: &str = "echo $$ > \"$FOLDER/draft-$RANK\"; mv \"$FOLDER/draft-$RANK\" \"$FOLDER/$RANK\"; sleep 600 & wait";

/// The process ids of two ranks, once both have written them.
fn ids(folder: &Path) -> Vec<String> {
    wait_until("both ranks run", || folder.join("0").exists() && folder.join("1").exists());
    let id = |rank| fs::read_to_string(folder.join(rank)).expect("an id").trim().to_owned();
    ["0", "1"].map(id).to_vec()
}

fn runs(id: &str) -> bool {
    let asked = Command::new("kill").args(["-0", id]).stderr(Stdio::null()).status();
    asked.expect("kill starts").success()
}

#[test]
fn signals_are_passed_on_and_no_rank_outlives_the_launcher() {
    for (signal, code) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut launcher = command(shell("2", STAYS));
        launcher.env("FOLDER", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut launcher = launcher.spawn().expect("it starts");
        let ids = ids(folder.path());
        send(signal, &launcher);
        assert_eq!(launcher.wait().expect("it ends").code(), code, "{signal}");
        wait_until("the ranks end", || !ids.iter().any(|id| runs(id)));
    }
}

#[test]
fn the_lines_of_a_rank_come_while_it_runs() {
    let mut launcher = command(shell("1", "echo first; sleep 600"));
    let mut launcher = launcher.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(launcher.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "first\n");
    send("TERM", &launcher);
    launcher.wait().expect("it ends");
}

/// The variable of a rank that is this test.
const IS_RANK: &str = "WARPSTRIDE_TEST_IS_RANK";

#[test]
fn ranks_meet() {
    if std::env::var_os(IS_RANK).is_some() {
        let job = Rendezvous::from_env().expect("the launcher's variables").with_deadline(PATIENCE);
        let members = job.meet().expect("all ranks come");
        assert_eq!((members.ranks(), members.local_rank()), (3, members.rank()));
        let words = members.broadcast((members.rank() == 0).then_some(b"words")).expect("all ranks call it");
        assert_eq!(words, b"words");
        return members.barrier().expect("all ranks call it");
    }
    let program = std::env::current_exe().expect("a name");
    let mut launcher = command(["launch", "-n", "3"]);
    launcher.arg(program).args(["--exact", "launch::ranks_meet"]).env(IS_RANK, "1");
    Run::of(&mut launcher).ended(0, &["1 passed"], &["[rank 1] ", "[rank 2] "]);
}
