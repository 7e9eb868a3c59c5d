//! `run`: a program with the software GPU as its `libcuda.so.1`. The program is this test itself,
//! in a process of its own.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Folder, Run, command, schemas, warpstride};
use crate::long::TOOLS;

/// The variable that says what the program does: `good`, `race`, `oob`, `read`, `leak`,
/// `unread`, `late`, `killed`, or one of the faults of [`faults_of_the_program_itself_are_found`].
const PROGRAM: &str = "WARPSTRIDE_TEST_PROGRAM";

/// Kernels that store their thread's number: apart, all at one place, and too far; one that loads,
/// and one that subtracts from a square.
const PTX: &CStr = c"
    .version 7.0
    .target sm_75
    .address_size 64
    .file 1 \"kernels/k.cu\"
    .visible .entry good(.param .u64 a) {
        .reg .b32 %r<2>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
        st.global.u32 [%rd2], %r1;
        ret;
    }
    .visible .entry race(.param .u64 a) {
        .reg .b32 %r<2>; .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x;
        .loc 1 7 3
        st.global.u32 [%rd1], %r1;
        ret;
    }
    .visible .entry oob(.param .u64 a) {
        .reg .b32 %r<2>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 64, %rd1;
        st.global.u32 [%rd2], %r1;
        ret;
    }
    .visible .entry read(.param .u64 a) {
        .reg .b32 %r<2>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
        ld.global.u32 %r1, [%rd2];
        ret;
    }
    .visible .entry rest(.param .u64 a) {
        .reg .f32 %f<2>; .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [a];
        mul.f32 %f1, 0f3F800800, 0f3F800800; sub.f32 %f1, %f1, 0f3F801000;
        st.global.f32 [%rd1], %f1;
        ret;
    }";

/// Threads of a launch, and the words of its buffer.
const THREADS: u32 = 64;

/// The functions of the driver that the program calls.
struct Driver(libloading::Library);

impl Driver {
    /// Loads the library as every CUDA program does.
    fn load() -> Self {
        // SAFETY: the library's initialisers do no harm, whichever driver it is.
        Self(unsafe { libloading::Library::new("libcuda.so.1") }.expect("a libcuda.so.1"))
    }

    /// Returns a function; `F` is its type in `cuda.h`.
    fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: each caller names the type that `cuda.h` declares.
        *unsafe { self.0.get::<F>(name) }.expect(name)
    }
}

/// The program: a kernel by its name, on one block.
#[test]
fn program() {
    let Ok(name) = std::env::var(PROGRAM) else { return };
    let driver = Driver::load();
    let init: unsafe extern "C" fn(c_uint) -> c_int = driver.function("cuInit");
    let create: unsafe extern "C" fn(*mut *mut c_void, c_uint, c_int) -> c_int = driver.function("cuCtxCreate_v2");
    let load: unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> c_int = driver.function("cuModuleLoadData");
    let find: unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int =
        driver.function("cuModuleGetFunction");
    let alloc: unsafe extern "C" fn(*mut u64, usize) -> c_int = driver.function("cuMemAlloc_v2");
    let free: unsafe extern "C" fn(u64) -> c_int = driver.function("cuMemFree_v2");
    let synchronize: unsafe extern "C" fn() -> c_int = driver.function("cuCtxSynchronize");
    #[rustfmt::skip]
    let launch: unsafe extern "C" fn(
        *mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, *mut c_void, *mut *mut c_void, *mut *mut c_void,
    ) -> c_int = driver.function("cuLaunchKernel");

    let entry = match &*name {
        "race" => c"race",
        "oob" => c"oob",
        "read" => c"read",
        "rest" => c"rest",
        _ => c"good",
    };
    let null = std::ptr::null_mut();
    let (mut context, mut module, mut function, mut buffer) = (null, null, null, 0_u64);
    // SAFETY: the call has no pointer.
    let initialised = unsafe { init(0) };
    // SAFETY: the place is one for a handle.
    let created = unsafe { create(&raw mut context, 0, 0) };
    // SAFETY: as above, and the text ends in NUL.
    let loaded = unsafe { load(&raw mut module, PTX.as_ptr().cast()) };
    // SAFETY: as above, and the module is live.
    let found = unsafe { find(&raw mut function, module, entry.as_ptr()) };
    // SAFETY: the place is one for an address.
    let allocated = unsafe { alloc(&raw mut buffer, 4 * THREADS as usize) };
    assert_eq!([initialised, created, loaded, found, allocated], [0; 5]);
    let mut arguments = [(&raw mut buffer).cast::<c_void>()];
    for _ in 0..3 {
        // SAFETY: the function is live, and has one argument of the size of an address.
        let launched =
            unsafe { launch(function, 1, 1, 1, THREADS, 1, 1, 0, null, arguments.as_mut_ptr(), std::ptr::null_mut()) };
        assert_eq!(launched, 0);
    }
    plant(&name, &driver, buffer, |stream| {
        // SAFETY: as above, and the stream is live.
        unsafe { launch(function, 1, 1, 1, THREADS, 1, 1, 0, stream, arguments.as_mut_ptr(), std::ptr::null_mut()) }
    });
    println!("the program's own output");
    if name == "late" {
        return;
    }
    // SAFETY: neither call has a pointer.
    let synchronized = unsafe { synchronize() };
    assert_eq!(synchronized == 0, name != "oob" || std::env::var_os("WARPSTRIDE_RUN_CHECKS").is_some());
    if name == "killed" {
        let killed = Command::new("kill").args(["-s", "KILL", &std::process::id().to_string()]).status();
        panic!("a process goes on after SIGKILL: {killed:?}");
    }
    if name == "rest" {
        let download: unsafe extern "C" fn(*mut c_void, u64, usize) -> c_int = driver.function("cuMemcpyDtoH_v2");
        let mut rest = 0.0_f32;
        // SAFETY: the place has as many bytes.
        assert_eq!(unsafe { download((&raw mut rest).cast(), buffer, size_of_val(&rest)) }, 0);
        println!("the rest is {rest}");
    }
    if !matches!(&*name, "leak" | "double free" | "use after free") {
        // SAFETY: the address was allocated, and nothing uses it any more.
        unsafe { free(buffer) };
    }
}

/// Does what a faulty program does, with a launch that writes the buffer on a stream.
fn plant(fault: &str, driver: &Driver, buffer: u64, mut launch: impl FnMut(*mut c_void) -> c_int) {
    let free: unsafe extern "C" fn(u64) -> c_int = driver.function("cuMemFree_v2");
    let create: unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int = driver.function("cuStreamCreate");
    let wait: unsafe extern "C" fn(*mut c_void) -> c_int = driver.function("cuStreamSynchronize");
    let download: unsafe extern "C" fn(*mut c_void, u64, usize) -> c_int = driver.function("cuMemcpyDtoH_v2");
    let mut words = [0_u32; THREADS as usize];
    let mut read = || {
        // SAFETY: the place has as many bytes.
        unsafe { download(words.as_mut_ptr().cast(), buffer, 4 * words.len()) }
    };
    let streams = [(); 2].map(|()| {
        let mut stream = std::ptr::null_mut();
        // SAFETY: the place is one for a handle. The default stream does not wait for this one.
        assert_eq!(unsafe { create(&raw mut stream, 1) }, 0);
        stream
    });
    // The launches on the default stream have run.
    assert!(matches!(fault, "oob" | "late" | "unread") || read() == 0);
    match fault {
        "wrong stream" => assert_eq!(streams.map(&mut launch), [0; 2]),
        "missing wait" => assert_eq!([launch(streams[0]), read()], [0; 2]),
        // SAFETY: the stream is live.
        "wait" => assert_eq!([launch(streams[0]), unsafe { wait(streams[0]) }, read(), launch(streams[1])], [0; 4]),
        // SAFETY: the library checks each address.
        "double free" => assert_eq!([(); 2].map(|()| unsafe { free(buffer) }), [0, 1]),
        // SAFETY: as above.
        "use after free" => assert_eq!([unsafe { free(buffer) }, read()], [0, 1]),
        _ => {}
    }
}

/// The library that cargo has built last: beside the tests, or beside the command.
pub(crate) fn library() -> Option<PathBuf> {
    let tests = std::env::current_exe().expect("the test's own path");
    let folders = [tests.parent(), Path::new(env!("CARGO_BIN_EXE_warpstride")).parent()];
    let paths = folders.into_iter().flatten().map(|folder| folder.join("libwarpstride_cuda.so"));
    let built = paths.filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path))).max();
    if built.is_none() {
        let line = "the software GPU as libcuda is not built, and `run` is not tested with it; \
                    `cargo build -p warpstride-cuda` builds it";
        let is_required = std::env::var_os(TOOLS).is_some_and(|value| value == "required");
        assert!(!is_required, "{line}");
        eprintln!("{line}");
    }
    built.map(|(_, path)| path)
}

/// `run` with these options on the program, in a folder.
fn run(library: &Path, folder: &Folder, options: &str, program: &str) -> Run {
    let words = options.split_whitespace();
    let mut command = command(["run"].into_iter().chain(words).chain(["--"]));
    command.arg(std::env::current_exe().expect("the test's own path"));
    command.args(["--exact", "run_program::program", "--nocapture"]);
    Run::of(command.env(PROGRAM, program).env("WARPSTRIDE_LIBCUDA", library).current_dir(folder.path("")))
}

fn text(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.path(name)).expect(name)
}

fn document(folder: &Folder, name: &str) -> Value {
    serde_json::from_str(&text(folder, name)).expect(name)
}

#[test]
fn a_program_without_a_fault_ends_as_it_does() {
    let Some(library) = library() else { return };
    let folder = Folder::with("empty", "");
    let files = "--check all --model h100 --report --json out.json --junit out.xml --sarif out.sarif --ncu-csv out.csv";
    let said = ["0 findings in 3 launches of 1 kernel\n", "model ms", "PTX line 9: st.global.u32", "1.00x"];
    let ended = run(&library, &folder, files, "good").ended(0, &["the program's own output\n"], &said);
    assert!(!ended.stdout.contains("findings") && !ended.stderr.contains("without freeing"), "{}", ended.stderr);
    let report = document(&folder, "out.json");
    assert_eq!([&report["schema"], &report["status"], &report["launches"], &report["findings_total"]], [3, 0, 3, 0]);
    let process = &report["processes"][0];
    let kernel = &process["kernels"][0];
    assert_eq!(kernel["counters"]["global_store"]["sectors"], 3 * 8);
    assert_eq!((&kernel["model"]["launches"], &process["ended"]), (&3.into(), &true.into()));
    assert_eq!(process["calls"]["cuLaunchKernel"], 3);
    let junit = text(&folder, "out.xml");
    let junit = roxmltree::Document::parse(&junit).expect("XML");
    let case = junit.descendants().find(|node| node.has_tag_name("testcase")).expect("a case");
    assert_eq!((case.attribute("name"), case.has_children()), (Some("good"), false));
    assert_eq!(document(&folder, "out.sarif")["runs"][0]["results"], Value::Array(Vec::new()));
    schemas::followed_by(["out.xml", "out.sarif"].map(|name| folder.path(name)));
    let metric = "\"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum\",\"sector\",\"24\"";
    assert!(text(&folder, "out.csv").contains(metric), "{}", text(&folder, "out.csv"));
}

#[test]
fn a_launch_is_stopped_at_the_limit() {
    let Some(library) = library() else { return };
    let folder = Folder::with("empty", "");
    let said = ["the limit is 10: launch a smaller one, or raise `--limit`", "1 finding in 1 launch of 1 kernel"];
    // The program itself ends with an error, because its wait has failed.
    run(&library, &folder, "--limit 10", "good").ended(101, &[], &said);
    run(&library, &folder, "--limit 10000000000000", "good").ended(0, &[], &["0 findings"]);
}

#[test]
fn products_and_sums_are_fused_on_request() {
    let Some(library) = library() else { return };
    let folder = Folder::with("empty", "");
    run(&library, &folder, "", "rest").ended(0, &["the rest is 0\n"], &[]);
    run(&library, &folder, "--contract", "rest").ended(0, &["the rest is 0.000000059604645\n"], &[]);
}

#[test]
fn a_race_is_a_status_and_stands_at_its_line() {
    let Some(library) = library() else { return };
    let folder = Folder::with("empty", "");
    let options = "--check racecheck --github --junit out.xml --sarif out.sarif";
    let said = [
        "::error file=kernels/k.cu,line=7::racecheck: kernel ",
        "racecheck: kernel \"race\" at kernels/k.cu:7",
        "1 finding in 3 launches of 1 kernel, so the status is 86",
    ];
    run(&library, &folder, options, "race").ended(86, &["the program's own output\n"], &said);
    let log = document(&folder, "out.sarif");
    assert_eq!((&log["version"], log["runs"].as_array().map(Vec::len)), (&"2.1.0".into(), Some(1)));
    let result = &log["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"racecheck/global".into(), &"error".into()));
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "kernels/k.cu");
    assert_eq!(place["region"]["startLine"], 7);
    let driver = &log["runs"][0]["tool"]["driver"];
    assert_eq!((&driver["name"], &driver["rules"][0]["id"]), (&"warpstride".into(), &"racecheck/global".into()));
    let junit = text(&folder, "out.xml");
    let junit = roxmltree::Document::parse(&junit).expect("XML");
    let failure = junit.descendants().find(|node| node.has_tag_name("failure")).expect("a failure");
    assert!(failure.text().is_some_and(|text| text.starts_with("racecheck: ")), "{:?}", failure.text());
    schemas::followed_by(["out.xml", "out.sarif"].map(|name| folder.path(name)));
}

#[test]
fn an_access_out_of_bounds_is_found_with_and_without_its_checker() {
    let Some(library) = library() else { return };
    let folder = Folder::with("empty", "");
    let found = "--check memcheck --sarif out.sarif";
    run(&library, &folder, found, "oob").ended(86, &[], &["memcheck: kernel \"oob\"", "past the end of an allocation"]);
    let said = ["kernel \"oob\" stopped at", "1 finding in 1 launch of 1 kernel", "a launch before it stopped"];
    run(&library, &folder, "--sarif stopped.sarif", "oob").ended(86, &[], &said);
    for log in ["out.sarif", "stopped.sarif"] {
        assert_eq!(document(&folder, log)["runs"][0]["results"][0]["ruleId"], "memcheck/oob", "{log}");
    }
    schemas::followed_by(["out.sarif", "stopped.sarif"].map(|name| folder.path(name)));
}

#[test]
fn faults_of_the_program_itself_are_found() {
    let Some(library) = library() else { return };
    for (fault, rule, said) in [
        ("wrong stream", "racecheck/streams", "good on stream 0x"),
        ("missing wait", "racecheck/streams", "copying from a device to the host on the default stream reads the byte"),
        ("double free", "memcheck/double-free", "was freed already; free each allocation once"),
        ("use after free", "memcheck/use-after-free", "are in memory that the program has freed"),
        ("read", "initcheck/global", "initcheck: kernel \"read\""),
    ] {
        let folder = Folder::with("empty", "");
        let options = "--check all --sarif out.sarif --junit out.xml";
        run(&library, &folder, options, fault).ended(86, &["the program's own output\n"], &[said, "1 finding in"]);
        let results = &document(&folder, "out.sarif")["runs"][0]["results"];
        assert_eq!((&results[0]["ruleId"], results.as_array().map(Vec::len)), (&rule.into(), Some(1)), "{fault}");
        let junit = text(&folder, "out.xml");
        assert_eq!(junit.matches("<failure").count(), 1, "{fault}: {junit}");
        schemas::followed_by(["out.xml", "out.sarif"].map(|name| folder.path(name)));
    }
    let folder = Folder::with("empty", "");
    run(&library, &folder, "--check all", "wait").ended(0, &[], &["0 findings in 5 launches"]);
}

#[test]
fn memory_that_is_not_freed_is_a_note() {
    let Some(library) = library() else { return };
    let folder = Folder::with("empty", "");
    let said = ["the program ended without freeing 1 allocation, 256 bytes in all\n", "0 findings"];
    run(&library, &folder, "--sarif out.sarif", "leak").ended(0, &[], &said);
    let result = &document(&folder, "out.sarif")["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"memcheck/leak".into(), &"note".into()));
    schemas::followed_by([folder.path("out.sarif")]);
}

#[test]
fn bytes_that_nothing_reads_are_told() {
    let Some(library) = library() else { return };
    let folder = Folder::with("empty", "");
    let said = "no kernel and no copy read 256 bytes that were written to 1 allocation\n";
    run(&library, &folder, "--check initcheck --json-file out.json", "unread").ended(0, &[], &[said]);
    let memory = &document(&folder, "out.json")["processes"][0]["memory"];
    assert_eq!((&memory["unread"]["allocations"], &memory["unread"]["bytes"]), (&1.into(), &256.into()));
    // Without initcheck it is not known what kernels read.
    run(&library, &folder, "--check memcheck --json-file out.json", "unread").ended(0, &[], &["0 findings"]);
    assert_eq!(document(&folder, "out.json")["processes"][0]["memory"]["unread"], Value::Null);
}

#[test]
fn a_program_that_runs_no_kernel_fails() {
    let Some(library) = library() else { return };
    let folder = Folder::with("empty", "");
    run(&library, &folder, "", "late").ended(1, &[], &["ran no kernel: it waited for none of what 3 calls queued"]);
    let run = Run::of(command(["run", "--", "true"]).env("WARPSTRIDE_LIBCUDA", &library));
    run.failed(&["true did not use the software GPU", "cuInit"]);
}

#[test]
fn the_end_of_the_program_is_passed_on() {
    let Some(library) = library() else { return };
    let folder = Folder::with("empty", "");
    let said = ["0 findings in 3 launches of 1 kernel", "was ended by signal 9 (SIGKILL)", "ended from outside"];
    run(&library, &folder, "", "killed").ended(137, &[], &said);
    let run = Run::of(command(["run", "--", "sh", "-c", "exit 7"]).env("WARPSTRIDE_LIBCUDA", &library));
    run.ended(7, &[], &["error: sh ended with status 7"]);
    // The last process has no folder of temporary files left.
    let script = "TMPDIR=$PWD \"$0\" run -- sh -c 'kill -s TERM $PPID; exec sleep 600'; test $? = 143 && ls";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_warpstride")]).env("WARPSTRIDE_LIBCUDA", &library);
    assert_eq!(Run::of(shell.current_dir(folder.path(""))).succeeded().stdout, "empty\n");
}

#[test]
fn with_json_standard_output_is_one_document() {
    let Some(library) = library() else { return };
    let folder = Folder::with("empty", "");
    let run = run(&library, &folder, "--json", "good").ended(0, &[], &["the program's own output"]);
    assert_eq!(run.json()["launches"], 3);
}

#[test]
fn what_cannot_run_is_one_error() {
    let run = |words: &[&str]| Run::of(command(words).env("WARPSTRIDE_LIBCUDA", "/nowhere/lib.so"));
    run(&["run", "--", "true"]).failed(&["WARPSTRIDE_LIBCUDA=/nowhere/lib.so is not a file"]);
    run(&["run", "--", "no-such-program"]).failed(&["no program no-such-program"]);
    run(&["--device", "cuda", "run", "--", "true"]).failed(&["run is about the software GPU"]);
    run(&["run", "--sarif", "/nowhere/out.sarif", "--", "true"]).failed(&["/nowhere/out.sarif"]);
    for words in [&["run", "true"][..], &["run", "--"], &["run", "--check", "all,none", "--", "true"]] {
        assert_eq!(warpstride(words).code, Some(2), "{words:?}");
    }
}
