//! `run-cu`: which compiler is taken, what is said of sources that do not compile, and lines and
//! names as the source has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::cuda_cpp::{Compiler, compilers, environments};
use super::{Folder, Run, command};
use crate::long::{is_long, short_or_long};

/// `cells[i] = i` for each thread, at line 4, and another kernel.
const FILL: &str = "namespace lesson {
__global__ void fill(int* cells) {
    int i = threadIdx.x;
    cells[i] = i;
}
}

template <typename T>
__device__ T twice(T value) {
    return 2 * value;
}

__global__ void count(int* cells, int* total) {
    cells[threadIdx.x] =
        twice(cells[threadIdx.x]);
    atomicAdd(total, 1);
}
";

impl Folder {
    fn with_source(source: impl AsRef<[u8]>) -> Self {
        Self::with("k.cu", source)
    }

    fn file(&self) -> PathBuf {
        self.path("k.cu")
    }

    /// Runs a kernel of the file in 32 threads through a compiler.
    fn run_by(&self, compiler: &Compiler, options: &[&str]) -> Run {
        let mut command = compiler.command(&self.file());
        command.args(["--grid", "1", "--block", "32"]).args(options);
        Run::of(&mut command)
    }
}

/// `atomicAdd` of doubles, as CUDA's guide writes it for older GPUs.
const GUIDE: &str = "__global__ void sum(double* total) {
    unsigned long long* address = (unsigned long long*)total;
    unsigned long long old = *address, assumed;
    do {
        assumed = old;
        old = atomicCAS(address, assumed, __double_as_longlong(1.0 + __longlong_as_double(assumed)));
    } while (assumed != old);
}
";

#[test]
fn the_first_load_of_a_loop_around_a_compare_and_swap_is_a_note() {
    for compiler in compilers() {
        let folder = Folder::with_source(GUIDE);
        let run = folder.run_by(&compiler, &["--arg", "f64[1]=zeros", "--check", "all"]).succeeded();
        assert!(run.stdout.contains("racecheck, a note: kernel \"sum\" at "), "{compiler:?}: {}", run.stdout);
        assert!(!run.stdout.contains("racecheck: "), "{compiler:?}: {}", run.stdout);
    }
}

/// Without the variables that lead to compilers, and with this `PATH`.
fn without_compilers(file: &Path, path: &Path) -> Command {
    let mut command = command(["--device", "soft", "run-cu", "--grid", "1", "--block", "32", "--arg", "i32[32]=zeros"]);
    command.args(["--entry", "fill"]).arg(file).env("PATH", path);
    for variable in ["WARPSTRIDE_NVRTC", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"] {
        command.env_remove(variable);
    }
    command
}

/// Returns whether the system's loader knows NVRTC, so that it is found without any variable.
fn loader_knows_nvrtc() -> bool {
    let folder = Folder::with_source(FILL);
    let known = Run::of(&mut without_compilers(&folder.file(), Path::new("/nowhere"))).code == Some(0);
    if known {
        eprintln!("the system's loader finds NVRTC, and what is said without a compiler is not checked");
    }
    known
}

#[test]
fn without_a_compiler_a_sentence_names_the_command_that_installs_one() {
    if loader_knows_nvrtc() {
        return;
    }
    let folder = Folder::with_source(FILL);
    let mut any = without_compilers(&folder.file(), Path::new("/nowhere"));
    any.arg("--quiet");
    Run::of(&mut any).failed(&["no compiler of CUDA C++ was found; install one with `pip install nvidia-cuda-nvrtc`"]);
    for (name, part) in
        [("nvrtc", "`pip install nvidia-cuda-nvrtc`"), ("clang", "no clang 14 or later was found in PATH")]
    {
        let mut one = without_compilers(&folder.file(), Path::new("/nowhere"));
        one.args(["--compiler", name]);
        Run::of(&mut one).failed(&[part]);
    }
    let mut named = without_compilers(&folder.file(), Path::new("/nowhere"));
    named.env("WARPSTRIDE_NVRTC", folder.file());
    Run::of(&mut named).failed(&["cannot load", "k.cu, which WARPSTRIDE_NVRTC names", "or unset the variable"]);
}

#[test]
#[cfg(unix)]
fn a_pipe_in_place_of_nvrtc_is_refused() {
    let folder = Folder::with_source(FILL);
    let pipe = folder.path("libnvrtc.so");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts").success());
    let mut named = without_compilers(&folder.file(), Path::new("/nowhere"));
    named.env("WARPSTRIDE_NVRTC", &pipe);
    Run::of(&mut named).failed(&["libnvrtc.so, which WARPSTRIDE_NVRTC names: it is not a regular file"]);
}

/// The compiler's own program keeps a pipe open, so that the end of the pipe is its end.
#[test]
#[cfg(unix)]
fn a_signal_ends_the_compiler_with_all_that_it_started() {
    use std::io::{BufRead, BufReader, Read};

    let folder = Folder::with_source(FILL);
    let (bin, pipe, temporary) = (folder.path("bin"), folder.path("pipe"), folder.path("temporary"));
    fs::create_dir(&bin).expect("a folder");
    fs::create_dir(&temporary).expect("a folder");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts").success());
    let script = "#!/bin/sh
if [ \"$1\" = -dumpversion ]; then echo 15.0.0; exit; fi
exec 9>\"$COMPILER_PIPE\"
echo begun >&9
sleep 600
";
    crate::executable::script(&bin.join("clang"), script);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    for signal in ["TERM", "HUP", "INT", "QUIT", "KILL"] {
        let mut command = without_compilers(&folder.file(), Path::new(&path));
        command.args(["--quiet", "--compiler", "clang"]).env("COMPILER_PIPE", &pipe).env("TMPDIR", &temporary);
        let mut child = command.spawn().expect("the binary starts");
        let mut reader = BufReader::new(fs::File::open(&pipe).expect("a pipe"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        assert_eq!(line, "begun\n");
        crate::send(signal, &child);
        assert!(!child.wait().expect("it ends").success());
        assert_eq!(reader.read_to_string(&mut line).expect("the end of the pipe"), 0);
        let left = fs::read_dir(&temporary).expect("a folder").count();
        assert_eq!(left, 0, "{signal} leaves folders");
    }
}

#[test]
fn files_of_the_other_kind_are_told_apart() {
    let folder = Folder::with_source(FILL);
    folder.write("k.ptx", super::options::NOTHING);
    folder.run("run-ptx k.cu --grid 1 --block 1").failed(&["is CUDA C++; run it with run-cu"]);
    folder.run("run-cu k.ptx --grid 1 --block 1").failed(&["is PTX; run it with run-ptx"]);
}

#[test]
fn what_is_no_source_is_refused_before_any_compiler() {
    let refused = |bytes: &[u8], part: &str| {
        let folder = Folder::with_source(bytes);
        Run::of(&mut without_compilers(&folder.file(), Path::new("/nowhere"))).failed(&["k.cu", part]);
    };
    refused(b"// \xff\n", "check the path, and that it is CUDA C++ as text");
    refused(b"__global__ void k() {}\0", "has a zero byte and is not CUDA C++");
    refused(&vec![b' '; (16 << 20) + 1], "has more than 16 MiB and is not CUDA C++");
    Run::of(&mut without_compilers(Path::new("/nowhere/k.cu"), Path::new("/nowhere")))
        .failed(&["cannot read /nowhere/k.cu"]);
}

#[test]
fn lines_and_names_are_those_of_the_source() {
    for compiler in compilers() {
        let folder = Folder::with_source(FILL);
        let run = folder.run_by(&compiler, &["--entry", "fill", "--arg", "i32[32]=zeros", "--report-json"]);
        let document = run.ended(0, &[], &[" compiles "]).json();
        assert_eq!(document["compiler"]["name"], compiler.name);
        assert_eq!((&document["kernel"], &document["entry"]), (&"lesson::fill".into(), &"_ZN6lesson4fillEPi".into()));
        assert_eq!(lines(&document), ["k.cu:4"], "{compiler:?}");

        let arguments = ["--arg", "i32[32]=iota", "--arg", "i32[1]=zeros"];
        let run =
            folder.run_by(&compiler, &[&["--entry", "count", "--report-json"][..], &arguments].concat()).succeeded();
        let lines = lines(&run.json());
        let known = lines.iter().all(|line| ["k.cu:14", "k.cu:15", "k.cu:16"].contains(&&**line));
        assert!(known && lines.contains(&"k.cu:16".into()), "{compiler:?}: {lines:?}");

        let fault = folder.run_by(&compiler, &["--entry", "lesson::fill", "--arg", "i32[31]=zeros", "--quiet"]);
        fault.failed(&["kernel \"lesson::fill\" stopped", "k.cu:4", "out of bounds"]);
        let unnamed = folder.run_by(&compiler, &["--arg", "i32[31]=zeros", "--quiet"]);
        unnamed.failed(&["k.cu has 2 kernels; name one with --entry: ", "lesson::fill", "count"]);
    }
}

/// The places in the source that access memory, each once, by their files' names.
fn lines(document: &Value) -> Vec<String> {
    let instructions = document["instructions"].as_array().expect("instructions");
    let place = |instruction: &Value| {
        let source = instruction["source"].as_str().unwrap_or_else(|| panic!("no line: {instruction}"));
        source.rsplit('/').next().unwrap_or(source).to_owned()
    };
    let mut lines: Vec<String> = instructions.iter().map(place).collect();
    lines.sort();
    lines.dedup();
    lines
}

#[test]
fn errors_are_the_compilers_own() {
    for compiler in compilers() {
        let folder = Folder::with_source("__global__ void k(int* cells) {\n    cells[threadIdx.x] = nothing;\n}\n");
        let run = folder.run_by(&compiler, &["--arg", "i32[32]=zeros", "--quiet"]);
        assert_eq!((run.code, &*run.stdout), (Some(1), ""), "{}", run.stderr);
        let text = run.stderr;
        let [first, second] = [0, 1].map(|line| text.lines().nth(line).unwrap_or_default().to_owned());
        assert!(first.starts_with("error: ") && first.contains("k.cu line 2 does not compile with "), "{text}");
        assert!(second.contains("k.cu(2): error") || second.contains("k.cu:2:26: error"), "{text}");
        assert!(text.contains("\"nothing\"") || text.contains("'nothing'"), "{text}");
        let error = folder.run_by(&compiler, &["--arg", "i32[32]=zeros", "--json"]).json()["error"].take();
        assert_eq!(error["kind"], "invalid_argument");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(&second)), "{error}");
    }
}

#[test]
fn hostile_sources_end_with_a_message() {
    let nested = format!("__global__ void k(int* a) {{ a[0] = {}1{}; }}", "(".repeat(20_000), ")".repeat(20_000));
    let overflowing = format!("__global__ void k(int* a) {{ a[0] = {}1; }}", "!".repeat(3_000_000));
    let sources: [&[u8]; 8] = [
        overflowing.as_bytes(),
        b"#include \"/dev/zero\"\n",
        b"#include \"k.cu\"\n",
        b"template <int N> struct A { A<N + 1> a; }; __global__ void k(A<0> a) {}\n",
        b"__global__ void k() { asm(\"no.instruction;\"); }\n",
        b"",
        &[b'{'; 100_000],
        b"#error \x1b[31m\xc3\xa9\n",
    ];
    let compilers = compilers();
    for (number, compiler) in compilers.iter().enumerate() {
        // In the short form each source has one compiler, in turn.
        for source in sources.into_iter().skip(short_or_long(number, 0)).step_by(short_or_long(compilers.len(), 1)) {
            let run = Folder::with_source(source).run_by(compiler, &["--quiet"]);
            let start = String::from_utf8_lossy(&source[..source.len().min(40)]).into_owned();
            assert_eq!(run.code, Some(1), "{start} by {compiler:?}: {}", run.stderr);
            assert!(run.stderr.starts_with("error: ") && !run.stderr.contains('\x1b'), "{start}: {:?}", run.stderr);
            assert!(run.stderr.len() < 200 << 10, "{start}: {} bytes", run.stderr.len());
        }
        // A compiler that has the depth may take it.
        let run = Folder::with_source(&nested).run_by(compiler, &["--quiet", "--arg", "i32[1]=zeros"]);
        assert!(matches!(run.code, Some(0 | 1)), "{compiler:?}: {:?}, {}", run.code, run.stderr);
    }
}

/// Templates whose number doubles with each level.
#[test]
fn a_compiler_that_does_not_end_is_given_up() {
    if !is_long() {
        eprintln!("WARPSTRIDE_LONG=1 waits for a compiler's time limit");
        return;
    }
    let source =
        "template <int N, int M> struct F { static constexpr int v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; };
template <int M> struct F<0, M> { static constexpr int v = 1; };
__global__ void k(int* a) { a[0] = F<30, 0>::v; }
";
    for compiler in compilers() {
        let run = Folder::with_source(source).run_by(&compiler, &["--quiet", "--arg", "i32[1]=zeros"]);
        assert_eq!(run.code, Some(1), "{compiler:?}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: "), "{compiler:?}: {}", run.stderr);
    }
}

#[test]
#[cfg(unix)]
fn a_header_that_is_a_pipe_without_a_writer_is_given_up() {
    if !is_long() {
        eprintln!("WARPSTRIDE_LONG=1 waits for a compiler's time limit");
        return;
    }
    let folder = Folder::with_source("#include \"pipe.h\"\n");
    let pipe = folder.path("pipe.h");
    assert!(Command::new("mkfifo").arg(pipe).status().expect("mkfifo starts").success());
    let (folder, compilers) = (&folder, compilers());
    // All compilers wait at once.
    std::thread::scope(|threads| {
        for compiler in &compilers {
            threads.spawn(move || {
                folder
                    .run_by(compiler, &["--quiet"])
                    .failed(&["k.cu does not compile with", "included files that never end"]);
            });
        }
    });
}

/// Macros that join megabytes of text, of which each byte is a number in PTX.
#[test]
fn ptx_without_measure_is_refused() {
    let mut source = format!("#define S0 \"{}\"\n", "a".repeat(64));
    (1..10).for_each(|i| source += &format!("#define S{i} S{0} S{0} S{0} S{0}\n", i - 1));
    // The short form has 5 MiB by one of the compilers, the long one 16 MiB by all.
    let text = short_or_long("S8 S7", "S9");
    source +=
        &format!("__device__ char text[] = {text};\n__global__ void k(char* a) {{ a[0] = text[threadIdx.x]; }}\n");
    for compiler in compilers().into_iter().take(short_or_long(1, usize::MAX)) {
        Folder::with_source(&source)
            .run_by(&compiler, &["--quiet"])
            .failed(&["makes more than 16 MiB of PTX from", "k.cu"]);
    }
}

#[test]
fn what_a_kernel_prints_and_asserts_is_shown() {
    let text = "#include <cassert>\n#include <cstdint>\n#include <stdio.h>\n#include <cuda_runtime.h>
__global__ void k(uint32_t* cells) {
    if (threadIdx.x == 3) printf(\"thread %d of %s\\n\", threadIdx.x, \"k\");
    assert(cells[threadIdx.x] < 31);
}
";
    for compiler in compilers() {
        for (cells, code, said) in [
            ("u32[32]=zeros", 0, &["thread 3 of k\n"][..]),
            ("u32[32]=iota", 1, &["assertion `cells[threadIdx.x] < 31`", "k.cu:7"]),
        ] {
            Folder::with_source(text).run_by(&compiler, &["--arg", cells]).ended(code, &[], said);
        }
    }
}

#[test]
fn headers_beside_the_source_are_found() {
    for compiler in compilers() {
        let folder =
            Folder::with_source("#include \"cells.h\"\n__global__ void k(Cell* cells) { cells[threadIdx.x] = 7; }\n");
        folder.write("cells.h", "using Cell = int;\n");
        folder.run_by(&compiler, &["--arg", "i32[32]=zeros"]).succeeded();
    }
}

#[test]
#[cfg(unix)]
fn nvrtc_is_found_in_the_environment_at_hand() {
    if loader_knows_nvrtc() {
        return;
    }
    let folder = Folder::with_source(FILL);
    for environment in environments() {
        let bin = environment.join("bin");
        let mut by_variable = without_compilers(&folder.file(), Path::new("/nowhere"));
        by_variable.env("VIRTUAL_ENV", &environment);
        for mut command in [by_variable, without_compilers(&folder.file(), &bin)] {
            let document = Run::of(command.arg("--json")).succeeded().json();
            let path = document["compiler"]["path"].as_str().expect("a path").to_owned();
            assert!(Path::new(&path).starts_with(&environment), "{path}");
        }
    }
}

#[test]
#[cfg(unix)]
fn a_clang_that_is_too_old_or_crashes_is_told() {
    if loader_knows_nvrtc() {
        return;
    }
    let folder = Folder::with_source(FILL);
    let bin = folder.path("bin");
    fs::create_dir(&bin).expect("a folder");
    // The shell that bounds clang's memory.
    std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).expect("linking");
    let clang = |version: &str, does: &str| {
        let program = bin.join("clang");
        let script = format!("#!/bin/sh\nif [ \"$1\" = -dumpversion ]; then echo {version}; exit; fi\n{does}\n");
        crate::executable::script(&program, &script);
        let mut command = without_compilers(&folder.file(), &bin);
        command.args(["--quiet", "--compiler", "clang"]);
        Run::of(&mut command)
    };
    clang("15.0.0", "kill -SEGV $$").lines(&["k.cu does not compile with clang 15.0.0:", "it ended with signal: 11"]);
    clang("15.0.0", "echo trouble >&2; exit 3").lines(&["k.cu does not compile with clang 15.0.0:", "trouble"]);
    clang("15.0.0", "exit 0").failed(&["k.cu has no kernel"]);
    clang("15.0.0", "echo Cannot fork >&2; exit 125").failed(&["cannot start clang 15.0.0: Cannot fork"]);
    clang("13.0.1", "exit 0").failed(&["no clang 14 or later", "/clang answers that it is version \"13.0.1\")"]);
    clang("14; echo no more processes >&2; exit 2; echo", "exit 0").failed(&["/clang fails", "2: no more processes)"]);
}

/// `tex2D` in the header of NVRTC, and on line 2 of the user's file.
const TEXTURE: &str = "__global__ void k(cudaTextureObject_t texture, float* out) {
    out[threadIdx.x] += tex2D<float>(texture, threadIdx.x, 1);
}
";

/// The PTX that NVRTC makes of it, without what only a debugger reads.
const TEXTURE_PTX: &str = "
.version 8.4
.target sm_80
.address_size 64
.visible .entry _Z1kyPf(.param .u64 texture, .param .u64 out)
{
    .reg .f32 %f<8>; .reg .b32 %r<2>; .reg .b64 %rd<6>;
    .loc 1 1 0
    ld.param.u64 %rd1, [texture];
    ld.param.u64 %rd2, [out];
    .loc 1 2 5
    .loc 2 5174 1, function_name $L__info_string0, inlined_at 1 2 5
    .loc 2 5168 1, function_name $L__info_string1, inlined_at 2 5174 1
    mov.f32 %f2, 0f3F800000;
    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f2, %f2}];
    .loc 1 2 5
    st.global.f32 [%rd2], %f3;
    ret;
}
.file 1 \"/home/user/k.cu\"
.file 2 \"/home/user/__nv_nvrtc_builtin_header.h\"
";

#[test]
#[cfg(unix)]
fn a_refusal_names_the_users_line_in_place_of_the_headers() {
    let folder = Folder::with_source(TEXTURE);
    let bin = folder.path("bin");
    fs::create_dir(&bin).expect("a folder");
    let script = "#!/bin/sh\nif [ \"$1\" = -dumpversion ]; then echo 15.0.0; else cat \"$COMPILED\"; fi\n";
    crate::executable::script(&bin.join("clang"), script);
    folder.write("compiled.ptx", TEXTURE_PTX);
    let mut by_script = command(["--device", "soft", "run-cu", "--compiler", "clang"]);
    by_script.arg(folder.file()).env("COMPILED", folder.path("compiled.ptx"));
    by_script.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let by_nvrtc = compilers().into_iter().filter(|compiler| compiler.nvrtc.is_some());
    for mut command in by_nvrtc.map(|compiler| compiler.command(&folder.file())).chain([by_script]) {
        command.args(["--quiet", "--grid", "1", "--block", "32", "--arg", "u64:0", "--arg", "f32[32]=iota"]);
        Run::of(&mut command).failed(&["k.cu:2): it uses textures (`tex.2d`), which the software GPU does not have"]);
    }
}

/// A stack of more bytes than can be addressed stands for a system that starts no more threads.
#[test]
#[cfg(target_os = "linux")]
fn a_system_that_starts_nothing_is_not_taken_for_one_without_compilers() {
    let folder = Folder::with_source(FILL);
    let bin = folder.path("bin");
    fs::create_dir(&bin).expect("a folder");
    crate::executable::script(&bin.join("clang"), "#!/bin/sh\necho 15.0.0\n");
    for compiler in ["nvrtc", "clang"] {
        let mut command = without_compilers(&folder.file(), &bin);
        command.args(["--quiet", "--compiler", compiler]).env("RUST_MIN_STACK", (1_u64 << 50).to_string());
        let part = "cannot look for a compiler of CUDA C++, because the system starts no process or thread for it: ";
        Run::of(&mut command).failed(&[part, "`ulimit -u`"]);
    }
}

#[test]
#[cfg(unix)]
fn an_architecture_may_have_a_letter() {
    let folder = Folder::with_source(FILL);
    let bin = folder.path("bin");
    fs::create_dir(&bin).expect("a folder");
    let script = "#!/bin/sh\nif [ \"$1\" = -dumpversion ]; then echo 15.0.0; else echo \"$@\" >&2; exit 1; fi\n";
    crate::executable::script(&bin.join("clang"), script);
    for (architecture, version) in [("90", "78"), ("90a", "80"), ("100a", "87"), ("100f", "88")] {
        let mut command = without_compilers(&folder.file(), &bin);
        command.args(["--quiet", "--compiler", "clang", "--arch", &format!("sm_{architecture}")]);
        let said = Run::of(&mut command).stderr;
        assert!(said.contains(&format!("--cuda-gpu-arch=sm_{architecture} -Xclang")), "{said}");
        assert!(said.contains(&format!("+ptx{version} ")), "{said}");
    }
}

impl Run {
    /// It failed with lines that hold these parts.
    #[track_caller]
    fn lines(self, parts: &[&str]) {
        assert_eq!((self.code, &*self.stdout), (Some(1), ""), "{}", self.stderr);
        for (line, part) in parts.iter().enumerate() {
            assert!(self.stderr.lines().nth(line).is_some_and(|line| line.contains(part)), "{part:?}: {}", self.stderr);
        }
    }
}
