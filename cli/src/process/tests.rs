use super::*;

#[test]
fn text_is_kept_though_its_stream_stays_open() {
    let (pieces, reading) = mpsc::channel();
    pieces.send(b"text".to_vec()).unwrap();
    assert_eq!(Reading(reading).text(Duration::ZERO), format!("text\n{OPEN}"));
}

#[test]
fn text_ends_at_its_most_bytes() {
    let reading = Reading::new(&b"text and more"[..], 4).unwrap();
    assert_eq!(reading.text(ANSWER), "text");
}

#[test]
#[cfg(unix)]
fn a_program_ends_with_all_that_it_starts() {
    let mut shell = command("sh");
    // The stream stays open for as long as the program that it has started.
    shell.args(["-c", "sleep 600 & echo started"]);
    let ended = run(shell, ANSWER, MOST).unwrap();
    assert_eq!((&*ended.stdout, ended.status.map(|status| status.success())), ("started\n", Some(true)));

    let mut shell = command("sh");
    shell.args(["-c", "sleep 600 & wait"]);
    let ended = run(shell, Duration::from_secs(1), MOST).unwrap();
    assert!(ended.status.is_none() && !ended.stdout.contains(OPEN));
}

#[test]
#[cfg(unix)]
fn a_folder_goes_only_if_the_process_dies_before_the_program_has_ended() {
    for dies in [false, true] {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a folder");
        std::fs::create_dir_all(folder.join("more")).unwrap();
        let mut command = bounded_in(&folder, "sh");
        command.args(["-c", if dies { "sleep 600" } else { "sleep 600 & true" }]);
        let mut child = start(command.stdout(Stdio::piped())).unwrap();
        if dies {
            // The system closes the pipe of a process that has died.
            drop(child.stdin.take());
        }
        let status = wait(&mut child, ANSWER).expect("it ends");
        // The stream is open until the watcher has killed what the program left running.
        child.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
        assert_eq!((status.success(), folder.exists()), (!dies, !dies));
    }
}

#[test]
fn a_program_that_is_not_there_is_told() {
    let missing = run(command("/nowhere/program"), ANSWER, MOST);
    assert_eq!(missing.err().map(|error| error.kind()), Some(io::ErrorKind::NotFound));
}

#[test]
#[cfg(unix)]
fn a_program_without_a_watcher_does_not_start() {
    let mut shell = command("sh");
    // As the shell says it for which the system starts no process.
    shell.args(["-c", "echo Cannot fork >&2; exit 125"]);
    let error = run(shell, ANSWER, MOST).err().expect("an error");
    assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::WouldBlock, "Cannot fork".to_owned()));
}
