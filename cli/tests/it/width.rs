//! Text fits the terminal: no line of help, of a page or of a report is longer than it is wide. And
//! on a terminal, pages have emphasis, and `learn watch` has a screen of its own.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use textwrap::core::display_width;

use super::cuda_cpp::compilers;
use super::report::records;
use super::{Run, command, repository, soft, warpstride};
use crate::lessons;
use crate::long::short_or_long;

const WIDTHS: [usize; 3] = [80, 100, 120];

/// Returns whether a line may be longer than the terminal is wide: one path or address alone, which
/// cannot be copied from two lines.
fn is_unbreakable(line: &str) -> bool {
    let line = line.trim();
    !line.contains(char::is_whitespace) && line.contains('/')
}

#[track_caller]
fn assert_fits(what: &str, text: &str, width: usize) {
    for line in text.lines().filter(|line| !is_unbreakable(line)) {
        let columns = display_width(line);
        assert!(columns <= width, "{what}: {columns} columns of {width}: {line:?}");
    }
}

/// Runs a command with its output in a pipe, for a terminal of some width.
fn at(width: usize, folder: &Path, words: &[&str]) -> Run {
    let mut command = command(words);
    command.current_dir(folder).env("COLUMNS", width.to_string());
    with_a_compiler(&mut command);
    Run::of(&mut command)
}

fn with_a_compiler(command: &mut Command) {
    if let Some(nvrtc) = compilers().into_iter().find_map(|compiler| compiler.nvrtc) {
        command.env("WARPSTRIDE_NVRTC", nvrtc);
    }
}

/// Asserts that what a command prints and says fits every width.
#[track_caller]
fn assert_all_fit(folder: &Path, line: &str) {
    WIDTHS.iter().for_each(|&width| assert_fits_at(width, folder, line));
}

#[track_caller]
fn assert_fits_at(width: usize, folder: &Path, line: &str) {
    let run = at(width, folder, &line.split(' ').collect::<Vec<_>>());
    assert!(!run.stdout.is_empty() || !run.stderr.is_empty(), "{line} prints nothing");
    assert_fits(line, &run.stdout, width);
    assert_fits(line, &run.stderr, width);
}

/// Asserts that the help of a command fits, and that of the commands below it.
fn assert_help_fits(path: &[&str]) {
    let words: Vec<&str> = path.iter().copied().chain(["--help"]).collect();
    let text = |width| at(width, Path::new("."), &words).succeeded().stdout;
    WIDTHS.iter().for_each(|&width| assert_fits(&words.join(" "), &text(width), width));
    let text = text(100);
    let commands = text.split_once("Commands:\n").map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(""));
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    for name in names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help") {
        assert_help_fits(&[path, &[name]].concat());
    }
}

#[test]
fn the_help_of_every_command_fits() {
    assert_help_fits(&[]);
}

#[test]
fn every_page_and_hint_of_a_lesson_fits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    assert_all_fit(folder.path(), "learn show sectors");
    at(80, folder.path(), &["learn", "next"]).succeeded();
    for name in lessons::names() {
        assert_all_fit(folder.path(), &format!("--quiet learn show {name}"));
        // A hint more each time, and then all of them.
        (0..2).for_each(|_| assert_all_fit(folder.path(), &format!("learn hint {name}")));
    }
    assert_all_fit(folder.path(), "learn list");
}

#[test]
fn reports_fit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for line in [
        "--device soft compare",
        "--device soft --stats compare --shape 33,65 --dtype f64 --model h100",
        "--device soft explain --shape 64,1080,1920,3 --axes 0,3,1,2 --dtype u8",
        "--device soft explain --shape 40,30,20,10,5 --axes 4,2,0,3,1",
        "explain --shape 4096,4096 --axes 1,0 --from 0:16 --to 0:16 --cluster h100x8:2",
        "--device soft bench --all",
        "--device soft bench --list",
        "--device soft bench permute --shape 64,64,3 --axes 2,0,1 --dtype u8",
        "--device soft bench permute --random 1,40",
        "--device soft bench triad --elements 4096",
        "--device soft transfers",
        "--device soft pipeline --frames 4",
        "--device soft peaks",
        "--device soft alloc bench",
        "--device soft alloc replay --seed 1",
        "devices",
        "compare --variants none",
        "transpose missing.npy out.npy",
    ] {
        assert_all_fit(folder.path(), line);
    }
}

/// Reports of GPUs have more columns than those of the software GPU.
#[test]
fn reports_of_every_recorded_run_fit() {
    let folder = repository().join("benches/record");
    for path in records(&folder) {
        let path = path.strip_prefix(&folder).expect("a record").to_str().expect("a name");
        assert_all_fit(&folder, &format!("report {path}"));
    }
    for [now, before] in [
        ["2026-11-21-h100/compare-f32-4096.json", "2026-11-21-h100/compare-f32-16384.json"],
        ["2026-11-25-h100/all.json", "2026-11-21-h100/operations.json"],
        ["2026-11-27-h100/guard.json", "2026-11-27-h100/guard-choice.json"],
    ] {
        assert_all_fit(&folder, &format!("report {now} --compare {before}"));
    }
}

#[test]
fn reports_of_kernels_fit() {
    let folder = learner();
    if compilers().is_empty() {
        return;
    }
    let run = "--device soft run-cu warpstride-lessons";
    for line in [
        &format!(
            "{run}/sectors/task.cu --grid 4 --block 256 --arg f32[1024]=zeros --arg f32[1024]=iota --arg i32:1024"
        ),
        &format!("{run}/banks/task.cu --grid 1 --block 32,32 --arg f32[32]=uninit --arg i32:4"),
        &format!(
            "{run}/tile/task.cu --grid 3,2 --block 32,32 --arg f32[6144]=uninit --arg f32[6144]=iota --arg i32:96 --arg \
             i32:64 --check all"
        ),
    ] {
        for report in ["--report --annotate", "--report --by instruction"] {
            assert_all_fit(folder.path(), &format!("{line} {report}"));
        }
    }
    // No figure of the source is left out, and a drawing has its rows in the order of addresses.
    let tiled = "--device soft run-cu warpstride-lessons/pad/task.cu --grid 3,2 --block 32,32 --arg f32[6144]=uninit \
                 --arg f32[6144]=iota --arg i32:96 --arg i32:64 --annotate";
    let text = at(80, folder.path(), &tiled.split(' ').collect::<Vec<_>>()).succeeded().stdout;
    let figures = "heat     executions lanes requests sectors/ideal wavefronts/ideal conflicts\n";
    assert!(text.contains(&format!("line  source\n{figures}")) && !text.contains("no room"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("########") && line.ends_with("32.00x      5952")), "{text}");
    // Lessons in Rust compile the crate.
    let is_kernel = |name: &String| !lessons::files(name).iter().any(|(file, _)| file == "task.rs");
    for (number, name) in lessons::names().iter().filter(|name| is_kernel(name)).enumerate() {
        // In the short form, a lesson is checked at one width, the next one at another.
        let widths = WIDTHS.iter().cycle().skip(number).take(short_or_long(1, WIDTHS.len()));
        widths.for_each(|&width| assert_fits_at(width, folder.path(), &format!("learn check {name}")));
    }
}

/// A folder with every lesson.
fn learner() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in lessons::names() {
        at(80, folder.path(), &["learn", "show", &name, "--folder", "warpstride-lessons"]).succeeded();
    }
    folder
}

#[test]
fn files_of_programs_keep_their_lines() {
    for words in [&["completions", "bash"][..], &["man"], &["ptx-forms"], &["--json", "bench", "--list"]] {
        let narrow = at(20, Path::new("."), words).succeeded().stdout;
        assert_eq!(narrow, warpstride(words).succeeded().stdout, "{words:?}");
    }
}

#[test]
fn a_pipe_has_no_width() {
    let text = soft("compare").succeeded().stdout;
    assert!(text.contains("load sectors/ideal   store sectors/ideal   bank conflicts"), "{text}");
    let narrow = at(80, Path::new("."), &["--device", "soft", "compare", "--model", "h100"]).succeeded().stdout;
    assert!(narrow.contains("The terminal has no room for these columns: kernel."), "{narrow}");
}

#[cfg(unix)]
mod terminal {
    use std::fs::{self, File, OpenOptions};
    use std::io::{PipeWriter, Read, Write};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Stdio};
    use std::sync::mpsc::{self, Receiver};
    use std::thread;

    use rustix::io::{FdFlags, fcntl_setfd};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

    use super::*;
    use crate::long::{PATIENCE, wait_until};

    /// A program on a terminal of 80 columns.
    struct Session {
        child: Child,
        keys: File,
        /// The program's side, whose modes it changes.
        side: File,
        printed: Receiver<String>,
        /// The printed text that no test has looked at yet.
        text: String,
    }

    impl Session {
        fn of(command: Command) -> Self {
            Self::to(command, None)
        }

        /// The same with its output in a pipe, if there is one.
        fn to(mut command: Command, pipe: Option<PipeWriter>) -> Self {
            let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
            // The program has its own side alone.
            fcntl_setfd(&terminal, FdFlags::CLOEXEC).expect("its flag");
            grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("its other side");
            let name = ptsname(&terminal, Vec::new()).expect("a name");
            let name = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
            // A test that has a terminal of its own keeps it.
            let side = OpenOptions::new().read(true).write(true).open(name).expect("the other side");
            let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
            tcsetwinsize(&side, size).expect("its size");
            let [stdin, stdout, stderr] = [(); 3].map(|()| side.try_clone().expect("a copy"));
            command.stdin(stdin).stdout(pipe.map_or(stdout.into(), Stdio::from)).stderr(stderr);
            let child = command.spawn().expect("it starts");
            let mut read = File::from(terminal);
            let keys = read.try_clone().expect("a copy");
            let (print, printed) = mpsc::channel();
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = read.read(&mut bytes) {
                    if print.send(String::from_utf8_lossy(&bytes[..count]).into_owned()).is_err() {
                        return;
                    }
                }
            });
            Self { child, keys, side, printed, text: String::new() }
        }

        /// Waits until something is printed, and returns what was printed up to there.
        #[track_caller]
        fn until(&mut self, part: &str) -> String {
            while !self.text.contains(part) {
                let more = self.printed.recv_timeout(PATIENCE);
                self.text += &more.unwrap_or_else(|error| panic!("no {part:?}: {error}: {}", self.text));
            }
            let (before, after) = self.text.split_once(part).expect("it was printed");
            let (before, after) = (before.to_owned() + part, after.to_owned());
            self.text = after;
            before
        }

        fn press(&mut self, key: &str) {
            self.keys.write_all(key.as_bytes()).expect("a key");
        }

        /// The last screen, which ends with a line that has `part`, and which is to fit the
        /// terminal.
        #[track_caller]
        fn shown(&mut self, part: &str) -> String {
            let text = self.until(part) + &self.until("\r\n");
            let screen = text.rsplit("\u{1b}[H\u{1b}[2J").next().expect("a screen").to_owned();
            assert!(screen.matches("\r\n").count() < 24, "it scrolls out of view: {screen}");
            screen
        }

        #[track_caller]
        fn pressed(&mut self, key: &str, part: &str) -> String {
            self.press(key);
            self.shown(part)
        }

        fn shows_keys(&self) -> bool {
            tcgetattr(&self.side).expect("its modes").local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
        }
    }

    /// The beginning of a page on a terminal.
    fn page(folder: &Path, variable: (&str, &str)) -> String {
        let mut command = command(["--quiet", "learn", "show", "sectors"]);
        command.current_dir(folder).env("TERM", "xterm").env(variable.0, variable.1);
        let mut session = Session::of(command);
        let text = session.until("Predict first");
        session.child.wait().expect("its end");
        text
    }

    #[test]
    fn a_page_has_emphasis_unless_colours_are_unwanted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let emphasised = page(folder.path(), ("TERM", "xterm"));
        assert!(emphasised.starts_with("\u{1b}[1m\u{1b}[4mSectors\u{1b}[0m\r\n"), "{emphasised:?}");
        assert_fits("the page", &emphasised, 80);
        for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let plain = page(folder.path(), variable);
            assert!(plain.starts_with("# Sectors\r\n") && !plain.contains('\u{1b}'), "{plain:?}");
            assert!(plain.contains("`copy_body`") && plain.contains("\n> **Predict first"), "{plain:?}");
            assert_fits("the page", &plain, 80);
        }
    }

    #[test]
    fn watching_has_a_screen_and_keys() {
        if compilers().is_empty() {
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = command(["--device", "soft", "learn", "watch"]);
        command.current_dir(folder.path()).env("TERM", "xterm");
        with_a_compiler(&mut command);
        let mut session = Session::of(command);
        let count = lessons::names().len();
        let screen = "\u{1b}[H\u{1b}[2J";
        assert_eq!(session.until("Lesson 0, "), format!("{screen}0 of {count} lessons are solved. Lesson 0, "));
        let text = session.shown("keys: h shows a hint");
        assert!(text.contains("1 row falls short; c shows the check") && !text.contains("FELL SHORT"), "{text}");
        assert!(text.contains("Thread, block, grid\u{1b}[0m"), "{text}");
        for (more, back) in [(" ", "b"), ("\r", "\u{1b}[A"), ("\u{1b}[B", "\u{1b}[5~"), ("\u{1b}[6~", "b")] {
            let text = session.pressed(more, "keys: h shows a hint");
            assert!(text.contains("Predict first") && text.contains("; back: b, Up, PgUp"), "{text}");
            let text = session.pressed(back, "keys: h shows a hint");
            assert!(text.contains("Thread, block, grid\u{1b}[0m") && !text.contains("back: b"), "{text}");
        }
        for (key, said) in [("x", "x is not a key here"), ("\u{1b}[C", "that is not a key here")] {
            let text = session.pressed(key, "keys: h shows a hint");
            assert!(text.contains(said) && text.contains("Thread, block, grid"), "{text}");
        }
        let mut text = session.pressed("a", "keys: h shows a hint");
        while !text.contains("FELL SHORT") {
            assert!(text.contains("more: space"), "{text}");
            text = session.pressed(" ", "keys: h shows a hint");
        }
        let text = session.pressed("h", "keys: h shows a hint");
        assert!(text.contains("Hint 1 of 3"), "{text}");
        session.pressed("p", "keys: h shows a hint");
        let text = session.pressed(" ", "keys: h shows a hint");
        assert!(text.contains("Predict first") && !text.contains("FELL SHORT"), "{text}");
        let text = session.pressed("c", "keys: h shows a hint");
        assert!(text.contains("FELL SHORT"), "{text}");
        let task = folder.path().join("warpstride-lessons/index/task.cu");
        let solution = lessons::text("index", "solution.cu");
        fs::write(task, &solution).expect("writing");
        let text = session.shown("keys: n shows the next lesson");
        assert!(text.contains("Lesson 0 is solved") && !text.contains("Predict"), "{text}");
        let text = session.pressed("?", "keys: n shows the next lesson");
        assert!(text.contains("? is not a key here"), "{text}");
        let text = session.pressed("s", "keys: n shows the next lesson");
        let solution = solution.replace('\n', "\r\n");
        assert!(text.contains("warpstride-lessons/index/solution.cu:") && text.contains(&solution), "{text}");
        session.press("n");
        session.until(&format!("{screen}1 of {count} lessons are solved. Lesson 1, "));
        session.until("keys: h shows a hint");
        assert!(!session.shows_keys(), "keys are not shown while it waits for them");
        session.press("q");
        assert!(session.child.wait().expect("its end").success());
        assert!(session.shows_keys(), "the terminal is as it was");
    }

    /// A session with a screen, which has shown the first check.
    fn with_a_screen(folder: &Path) -> Session {
        let mut command = command(["--device", "soft", "learn", "watch"]);
        command.current_dir(folder).env("TERM", "xterm").env("TMPDIR", folder);
        with_a_compiler(&mut command);
        let mut session = Session::of(command);
        session.shown("keys: h shows a hint");
        session
    }

    #[test]
    fn a_solved_lesson_is_checked_again_and_what_its_kernel_prints_is_shown() {
        if compilers().is_empty() {
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut session = with_a_screen(folder.path());
        let task = folder.path().join("warpstride-lessons/index/task.cu");
        let write = |text: &str| fs::write(&task, text).expect("writing");
        let (given, solution) = (lessons::text("index", "task.cu"), lessons::text("index", "solution.cu"));
        write(&solution.replacen("{\n", "{\n    if (blockIdx.x + threadIdx.x == 0) printf(\"it is %d\", n);\n", 1));
        let text = session.shown("keys: n shows the next lesson");
        assert!(text.contains("Lesson 0 is solved") && !text.contains("Predict"), "{text}");
        assert!(text.contains("\r\nThe kernel printed:\r\n\r\nit is 1000\r\n"), "{text}");
        write(&given);
        let text = session.shown("keys: n shows the next lesson, h a hint");
        assert!(text.contains("does not pass now") && !text.contains("printed"), "{text}");
        write(&solution);
        let text = session.shown("keys: n shows the next lesson, s a solution");
        assert!(text.contains("Lesson 0 is solved"), "{text}");
        session.press("q");
        assert!(session.child.wait().expect("its end").success());
    }

    #[test]
    fn a_key_ends_a_long_check() {
        if compilers().is_empty() {
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut session = with_a_screen(folder.path());
        let endless = "__global__ void number(int *out, int n) { while (true) out[0] += 1; }\n";
        fs::write(folder.path().join("warpstride-lessons/index/task.cu"), endless).expect("writing");
        session.until("the check runs; q ends");
        session.press("hn");
        session.press("q");
        assert!(session.child.wait().expect("its end").success());
        assert!(session.shows_keys(), "the terminal is as it was");
        drop(session.side);
        let rest: String = session.text + &session.printed.iter().collect::<String>();
        assert!(!rest.contains("keys: "), "the check has not ended: {rest}");
        let left: Vec<_> =
            fs::read_dir(folder.path()).expect("readable").map(|e| e.expect("an entry").file_name()).collect();
        assert_eq!(left, ["warpstride-lessons"], "a compiler's files are gone");
    }

    /// A session that waits for keys, in a group of processes of its own, as a shell makes it.
    fn watching(folder: &Path) -> Session {
        let mut command = command(["--device", "soft", "learn", "watch"]);
        command.current_dir(folder).process_group(0);
        with_a_compiler(&mut command);
        let mut session = Session::of(command);
        session.until("keys: h shows a hint");
        assert!(!session.shows_keys());
        session
    }

    #[test]
    fn a_signal_gives_the_terminal_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut session = watching(folder.path());
        crate::send("TERM", &session.child);
        session.child.wait().expect("its end");
        assert!(session.shows_keys());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn ctrl_c_gives_the_terminal_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // The tests may have been started to ignore the signal. The key makes it where the terminal
        // controls the program.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "env", "--default-signal=INT", env!("CARGO_BIN_EXE_warpstride")]);
        command.args(["--device", "soft", "learn", "watch"]).current_dir(folder.path());
        with_a_compiler(&mut command);
        let mut session = Session::of(command);
        let text = session.until("keys: h shows a hint");
        assert!(!session.shows_keys() && !text.contains("\u{1b}[?25l"), "the cursor stays: {text}");
        session.press("\u{3}");
        wait_until("it ends", || session.child.try_wait().expect("its state").is_some());
        let status = session.child.wait().expect("its end");
        // A shell calls that 130.
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2));
        assert!(session.shows_keys(), "the terminal is as it was");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_stopped_program_gives_the_terminal_back_until_it_continues() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut session = watching(folder.path());
        let status = format!("/proc/{}/stat", session.child.id());
        // The state follows the name in parentheses.
        let is_stopped = || fs::read_to_string(&status).expect("its state").contains(") T ");
        for _ in 0..2 {
            crate::send("TSTP", &session.child);
            wait_until("it is stopped", is_stopped);
            assert!(session.shows_keys(), "while it is stopped");
            crate::send("CONT", &session.child);
            wait_until("it takes keys again", || !session.shows_keys());
        }
        session.press("q");
        assert!(session.child.wait().expect("its end").success());
        assert!(session.shows_keys());
    }

    #[test]
    fn a_terminal_that_vanishes_ends_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut session = watching(folder.path());
        // The next text ends the thread that holds the terminal open.
        let (_, nothing) = mpsc::channel();
        drop(std::mem::replace(&mut session.printed, nothing));
        session.press("p");
        let Session { mut child, keys, side, .. } = session;
        drop((keys, side));
        child.wait().expect("its end");
    }

    #[test]
    fn a_pager_gets_a_page_that_fits_the_terminal() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = command(["--quiet", "learn", "show", "sectors"]);
        command.current_dir(folder.path());
        let (mut read, pipe) = std::io::pipe().expect("a pipe");
        let mut session = Session::to(command, Some(pipe));
        let mut page = String::new();
        read.read_to_string(&mut page).expect("the page");
        session.child.wait().expect("its end");
        assert!(page.starts_with("# Sectors\n") && !page.contains('\u{1b}'), "{page}");
        assert_fits("the page", &page, 80);
    }
}
