//! Follows an output: the time when it is on the disk, its owner, and the effect of signals and
//! pipes.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Folder, OLD, Run, command, npy, send};
use crate::executable;
use crate::long::wait_until;

/// A matrix and its transpose.
fn pair() -> [Vec<u8>; 2] {
    let rows: Vec<u8> = (0..6).collect();
    [npy("|u1", "(2, 3)", &rows), transposed(&[0, 3, 1, 4, 2, 5])]
}

/// As `numpy.save` writes it.
fn transposed(data: &[u8]) -> Vec<u8> {
    let text = format!("{:117}\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }");
    [b"\x93NUMPY\x01\x00\x76\x00".as_slice(), text.as_bytes(), data].concat()
}

#[test]
fn pipes_and_devices_are_written_into() {
    let [matrix, expected] = pair();
    let folder = Folder::with_input(&matrix);
    let to_stdout = folder.words("/dev/stdout".as_ref());
    let run = command(&to_stdout).output().expect("it starts");
    assert_eq!((run.status.code(), run.stdout), (Some(0), expected.clone()), "a pipe");

    let fifo = folder.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let mut child = command(folder.words(&fifo)).stderr(Stdio::null()).spawn().expect("a child");
    assert_eq!(fs::read(&fifo).expect("what was written"), expected, "a FIFO");
    assert!(child.wait().expect("its end").success());
    assert!(fs::symlink_metadata(&fifo).expect("it").file_type().is_fifo(), "it is still one");

    // Behind what is there, as the shell asked.
    let file = folder.path("both");
    let script = "exec > \"$1\"; printf before; \"$0\" --device soft transpose \"$2\" /dev/stdout; printf behind";
    let shell = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, env!("CARGO_BIN_EXE_warpstride")]).arg(&file).arg(folder.path("in.npy"));
        shell.stderr(Stdio::null()).status().expect("a shell")
    };
    assert!(shell(script).success());
    assert_eq!(fs::read(&file).expect("both"), [b"before", &*expected, b"behind"].concat(), "a file");
    // A reader that has enough.
    assert!(shell("\"$0\" --device soft transpose \"$2\" /dev/stdout | head -c 1 > \"$1\"").success());

    folder.transpose_to("/dev/null".as_ref()).succeeded();
    #[cfg(target_os = "linux")]
    folder
        .transpose_to(Path::new("/dev/full"))
        .failed(&["cannot write into /dev/full: no room is left there", "os error"]);
    folder.transpose_to(&folder.path("")).failed(&["not a file or a pipe"]);
}

#[test]
fn a_reader_that_leaves_a_pipe_of_its_name_is_a_failure() {
    let folder = Folder::with_input(&npy("|u1", "(1000, 1000)", &[7; 1_000_000]));
    let fifo = folder.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let words = folder.words(&fifo).into_iter().chain(["--json".into()]);
    let child = command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
    fs::File::open(&fifo).expect("it").read_exact(&mut [0; 10]).expect("its beginning");
    let ended = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(1) && said.contains("its reader has closed it"), "{said}");
    let document: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("a document");
    assert_eq!(document["error"]["kind"], "io");
}

#[test]
fn an_input_that_is_standard_output_stays() {
    let [matrix, _] = pair();
    let folder = Folder::with_input(&matrix);
    for name in ["/dev/stdout", "/dev/fd/1"] {
        let input = fs::OpenOptions::new().append(true).open(folder.path("in.npy")).expect("the input");
        let said = format!("the same file, {name};");
        Run::of(command(folder.words(name.as_ref())).stdout(input)).ended(1, &[], &[&said]);
        assert_eq!(fs::read(folder.path("in.npy")).expect("the input"), matrix);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_open_is_not_replaced_under_the_systems_names() {
    let [matrix, expected] = pair();
    let folder = Folder::with_input(&matrix);
    let log = folder.path("log");
    for name in ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"] {
        fs::write(&log, "before\n").expect("writing");
        let before = fs::metadata(&log).expect("it").ino();
        let file = fs::OpenOptions::new().append(true).open(&log).expect("it");
        let status = command(folder.words(name.as_ref())).stderr(file).status().expect("it starts");
        let text = fs::read_to_string(&log).expect("text");
        assert_eq!(status.code(), Some(1), "{text}");
        assert!(text.starts_with(&format!("before\nerror: cannot write {name}: it stands for a file")), "{text}");
        assert!(text.contains("pass /dev/stdout") && fs::metadata(&log).expect("it").ino() == before, "{text}");
    }
    // The array is written if standard output goes there too.
    let file = fs::File::create(&log).expect("it");
    let words = folder.words("/dev/stderr".as_ref()).into_iter().chain(["--quiet".into()]);
    let status = command(words).stderr(file.try_clone().expect("it")).stdout(file).status().expect("it starts");
    assert!(status.success());
    assert_eq!(fs::read(&log).expect("it"), expected);
}

#[test]
#[cfg(target_os = "linux")]
fn links_tell_what_the_systems_names_stand_for() {
    let [matrix, expected] = pair();
    let folder = Folder::with_input(&matrix);
    let system = tempfile::tempdir_in("/dev/shm").expect("a folder of the system's");
    let [there, link] = ["out", "link"].map(|name| system.path().join(name));
    fs::write(&there, OLD).expect("writing");
    let descriptor = folder.path("descriptor");
    std::os::unix::fs::symlink("/dev/fd/3", &descriptor).expect("a link");
    for name in [Path::new("/dev/fd/3"), &descriptor] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 3>>\"$FILE\"", env!("CARGO_BIN_EXE_warpstride")]);
        let why = format!("cannot write {}: it stands for a file", name.display());
        Run::of(shell.args(folder.words(name)).env("FILE", &there)).ended(1, &[], &[&why]);
        assert_eq!(fs::read(&there).expect("it"), OLD, "{}", name.display());
    }
    std::os::unix::fs::symlink(folder.path("out.npy"), &link).expect("a link");
    for name in ["/proc/self/cwd/out.npy", link.to_str().expect("text")] {
        folder.write("out.npy", OLD);
        folder.run(&format!("transpose in.npy {name}")).succeeded();
        assert_eq!(fs::read(folder.path("out.npy")).expect("it"), expected, "{name}");
    }
}

#[test]
fn nothing_else_goes_to_a_standard_output_that_an_array_goes_to() {
    let [matrix, expected] = pair();
    let folder = Folder::with_input(&matrix);
    let why = "/dev/stdout is standard output, where --json prints";
    let run = folder.run("transpose in.npy /dev/stdout --json").ended(1, &[], &[why]);
    assert_eq!(run.json()["error"]["kind"], "invalid_argument");

    folder.write("k.ptx", super::options::NOTHING.replace("()", "(.param .u64 a)"));
    let dumped = |more: &str| {
        let line = "--device soft run-ptx k.ptx --grid 1 --block 1 --arg npy:in.npy --dump 0=/dev/stdout";
        let mut command = command(format!("{line}{more}").split(' '));
        command.current_dir(folder.path("")).output().expect("it starts")
    };
    let run = dumped("");
    let text = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{text}");
    assert!(run.stdout.starts_with(b"\x93NUMPY") && run.stdout.ends_with(&matrix[matrix.len() - 6..]));
    assert_eq!(run.stdout.len(), expected.len(), "{:?}", String::from_utf8_lossy(&run.stdout));
    assert!(text.contains("global load"), "the table is a note: {text}");
    let twice = dumped(" --dump 0=/dev/fd/1");
    assert!(String::from_utf8_lossy(&twice.stderr).contains("is named twice"), "{twice:?}");
}

#[test]
fn a_link_to_a_file_stays_one() {
    let [matrix, expected] = pair();
    let folder = Folder::with_input(&matrix);
    let link = folder.path("link.npy");
    std::os::unix::fs::symlink(folder.path("out.npy"), &link).expect("a link");
    folder.transpose_to(&link).succeeded();
    assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    assert_eq!(fs::read(folder.path("out.npy")).expect("its target"), expected);
}

/// Returns whether the tests may give files away.
fn is_root(folder: &Folder) -> bool {
    fs::metadata(folder.path("in.npy")).expect("a file").uid() == 0
}

#[test]
fn owner_group_and_mode_stay() {
    let folder = Folder::with_input(&pair()[0]);
    let output = folder.path("out.npy");
    fs::set_permissions(&output, Permissions::from_mode(0o640)).expect("a mode");
    if is_root(&folder) {
        std::os::unix::fs::chown(&output, Some(1234), Some(1235)).expect("root may");
    }
    let before = fs::metadata(&output).expect("the old one");
    folder.transpose_to(&output).succeeded();
    let after = fs::metadata(&output).expect("the new one");
    assert_ne!(before.ino(), after.ino(), "it was replaced");
    assert_eq!((before.uid(), before.gid(), before.mode()), (after.uid(), after.gid(), after.mode()));
}

#[test]
fn a_file_of_another_user_is_replaced_by_ones_own() {
    /// The user `nobody`: on every system a user without rights.
    const NOBODY: u32 = 65534;
    let folder = Folder::with_input(&pair()[0]);
    if !is_root(&folder) {
        eprintln!("not tried: only root can become another user, as CI is");
        return;
    }
    // The binary goes where another user may read it.
    let binary = folder.path("warpstride");
    executable::copy(env!("CARGO_BIN_EXE_warpstride").as_ref(), &binary);
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o777)).expect("a mode");
    let output = folder.path("out.npy");
    let run = || {
        let mut command = Command::new(&binary);
        Run::of(command.args(folder.words(&output)).uid(NOBODY).gid(NOBODY))
    };
    // It may be replaced by a user with the right to write into its folder, and not written.
    fs::set_permissions(&output, Permissions::from_mode(0o644)).expect("a mode");
    run().ended(1, &[], &["read-only"]);
    assert_eq!(fs::read(&output).expect("the old one"), OLD);

    std::os::unix::fs::chown(&output, Some(1234), Some(1235)).expect("root may");
    fs::set_permissions(&output, Permissions::from_mode(0o6666)).expect("a mode");
    // In a folder such as /tmp, only its owner may replace it.
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o1777)).expect("a mode");
    run().ended(1, &[], &["only owners may replace a file"]);
    assert_eq!(fs::read(&output).expect("the old one"), OLD);
    assert!(folder.names().iter().all(|name| !name.starts_with(".warpstride-")), "{:?}", folder.names());
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o777)).expect("a mode");
    run().succeeded();
    let after = fs::metadata(&output).expect("the new one");
    assert_eq!(
        (after.uid(), after.gid(), after.mode() & 0o7777),
        (NOBODY, NOBODY, 0o666),
        "and runs as that user only"
    );
}

/// A C library's `write` that notes the modes of files in the making, and an `fsync` that notes
/// what it is called for and waits while a file is there.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t write(int fd, const void *bytes, size_t count) {
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    readlink(link, path, sizeof path - 1);
    if (strstr(path, "/.warpstride-")) {
        struct stat there;
        fstat(fd, &there);
        FILE *modes = fopen(getenv("SHIM_MODES"), "a");
        fprintf(modes, "%o\n", there.st_mode & 07777);
        fclose(modes);
    }
    return syscall(SYS_write, fd, bytes, count);
}
int fsync(int fd) {
    char link[64], path[4096] = "", comm[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    readlink(link, path, sizeof path - 1);
    int threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        snprintf(link, sizeof link, "/proc/self/task/%.16s/comm", task->d_name);
        FILE *file = fopen(link, "r");
        if (file && fgets(comm, sizeof comm, file)) threads += !strcmp(comm, "signals\n");
        if (file) fclose(file);
    }
    closedir(tasks);
    FILE *log = fopen(getenv("SHIM_LOG"), "a");
    fprintf(log, "%s target:%d threads:%d\n", path, access(getenv("SHIM_TARGET"), F_OK) == 0, threads);
    fclose(log);
    while (access(getenv("SHIM_HOLD"), F_OK) == 0) usleep(1000);
    return syscall(SYS_fsync, fd);
}
"#;

/// A program whose `write` and `fsync` are those above.
struct Watched {
    folder: Folder,
    shim: PathBuf,
}

impl Watched {
    fn new() -> Self {
        let folder = Folder::with_input(&pair()[0]);
        let outside = folder.path("outside");
        fs::create_dir(&outside).expect("a folder");
        let (source, shim) = (outside.join("shim.c"), outside.join("shim.so"));
        fs::write(&source, SHIM).expect("writing");
        let mut compiler = Command::new("cc");
        // It is the compiler that Rust links with.
        Run::of(compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(&shim).arg(&source)).succeeded();
        Self { folder, shim }
    }

    fn command(&self, program: &str, words: &[OsString], target: &str) -> Command {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.env("LD_PRELOAD", &self.shim).env("SHIM_LOG", self.shim.with_file_name("log"));
        command.env("SHIM_TARGET", self.folder.path(target)).env("SHIM_HOLD", self.hold());
        command.env("SHIM_MODES", self.shim.with_file_name("modes"));
        command
    }

    fn hold(&self) -> PathBuf {
        self.shim.with_file_name("hold")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.shim.with_file_name("log")).unwrap_or_default()
    }

    /// Starts `script`, in which `"$@"` is a transpose, and lets it write up to the first sync,
    /// where it waits.
    fn held(&self, script: &str) -> Child {
        fs::write(self.hold(), "").expect("writing");
        let _ = fs::remove_file(self.shim.with_file_name("log"));
        let program = ["-c".into(), script.into(), "sh".into(), env!("CARGO_BIN_EXE_warpstride").into()];
        let words = [&program[..], &self.folder.words(&self.folder.path("out.npy"))].concat();
        let child = self.command("sh", &words, "out.npy").spawn().expect("a child");
        wait_until("it writes", || self.log().ends_with('\n'));
        assert_eq!(self.temporary().len(), 1, "{:?}", self.folder.names());
        child
    }

    fn release(&self) {
        fs::remove_file(self.hold()).expect("removing");
    }

    fn temporary(&self) -> Vec<String> {
        self.folder.names().into_iter().filter(|name| name.starts_with(".warpstride-")).collect()
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_is_on_the_disk_before_it_takes_its_place() {
    let watched = Watched::new();
    let words = watched.folder.words(&watched.folder.path("new.npy"));
    Run::of(&mut watched.command(env!("CARGO_BIN_EXE_warpstride"), &words, "new.npy")).succeeded();
    let log = watched.log();
    let [file, folder] = *log.lines().collect::<Vec<_>>() else { panic!("two syncs: {log}") };
    assert!(file.contains("/.warpstride-") && file.contains(" target:0 "), "first the file, not there yet: {log}");
    let here = fs::canonicalize(watched.folder.path("")).expect("it");
    assert!(folder.as_bytes().starts_with(here.as_os_str().as_bytes()), "then the folder: {log}");
    assert!(folder.contains(" target:1 "), "with it: {log}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_private_output_is_private_while_it_is_written() {
    let watched = Watched::new();
    let modes = watched.shim.with_file_name("modes");
    for (name, before, while_written) in
        [("out.npy", Some(0o600), "600"), ("out.npy", Some(0o666), "600"), ("new.npy", None, "644")]
    {
        let output = watched.folder.path(name);
        if let Some(mode) = before {
            fs::set_permissions(&output, Permissions::from_mode(mode)).expect("a mode");
        }
        let words = [
            &["-c".into(), "umask 022; exec \"$@\"".into(), "sh".into(), env!("CARGO_BIN_EXE_warpstride").into()][..],
            &watched.folder.words(&output),
        ]
        .concat();
        Run::of(&mut watched.command("sh", &words, name)).succeeded();
        let seen = fs::read_to_string(&modes).expect("what was written");
        assert!(!seen.is_empty() && seen.lines().all(|mode| mode == while_written), "{name}: {seen}");
        let after = fs::metadata(&output).expect("the new one").mode() & 0o7777;
        assert_eq!(after, before.unwrap_or(0o644), "{name}");
        fs::remove_file(&modes).expect("removing");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_removes_what_is_not_complete_and_ends_the_program() {
    let watched = Watched::new();
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("QUIT", 3)] {
        // A user may run the tests with some signals ignored, as nohup does.
        let mut child = watched.held("exec env --default-signal \"$@\"");
        send(name, &child);
        assert_eq!(child.wait().expect("its end").signal(), Some(number));
        assert_eq!(watched.temporary(), [""; 0], "{name}");
        assert_eq!(fs::read(watched.folder.path("out.npy")).expect("the old one"), OLD);
        watched.release();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_that_is_ignored_stays_so() {
    let watched = Watched::new();
    for (script, ignored) in [("trap '' HUP INT; exec \"$@\"", &["HUP", "INT"][..]), ("exec nohup \"$@\"", &["HUP"])] {
        fs::write(watched.folder.path("out.npy"), OLD).expect("writing");
        let mut child = watched.held(script);
        for name in ignored {
            send(name, &child);
        }
        std::thread::sleep(Duration::from_millis(100));
        assert!(child.try_wait().expect("its state").is_none(), "{script}");
        watched.release();
        let mut said = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert!(child.wait().expect("its end").success(), "{script}: {said}");
        assert_eq!(fs::read(watched.folder.path("out.npy")).expect("the new one"), pair()[1]);
    }
    // The others still end it.
    let mut child = watched.held("trap '' HUP INT; exec \"$@\"");
    send("TERM", &child);
    assert_eq!(child.wait().expect("its end").signal(), Some(15));
    assert_eq!(watched.temporary(), [""; 0]);
}

#[test]
#[cfg(target_os = "linux")]
fn signals_are_watched_for_once() {
    let watched = Watched::new();
    watched.folder.write("k.ptx", super::options::NOTHING.replace("()", "(.param .u64 a)"));
    let line = "--device soft run-ptx k.ptx --grid 1 --block 1 --arg f32[4]=zeros --dump 0=a.npy --dump 0=b.npy \
                --dump 0=c.npy";
    let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
    let mut command = watched.command(env!("CARGO_BIN_EXE_warpstride"), &words, "a.npy");
    Run::of(command.current_dir(watched.folder.path(""))).succeeded();
    let log = watched.log();
    assert_eq!(log.lines().count(), 6, "{log}");
    // The thread may take its name later.
    assert!(log.lines().all(|line| line.ends_with(" threads:0") || line.ends_with(" threads:1")), "{log}");
}
