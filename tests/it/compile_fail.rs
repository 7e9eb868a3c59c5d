//! Attacks on the borrow rules, on copies in flight, and on the types of elements, that must not
//! compile, each in a file named by it.
//!
//! The long form holds the compiler's whole messages, by trybuild, which builds this crate and all
//! that it needs again. The short form compiles the same attacks against the crate that these tests
//! were linked with, and holds the messages' codes.
//!
//! The expected messages and codes are those of one compiler. Under any other it is enough that
//! there is one, so that a new compiler with new words turns no test red: the attacks are then
//! compiled from a copy, whose messages trybuild may overwrite. `TRYBUILD=overwrite` accepts new
//! messages for the files themselves.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::long::is_long;

const BLESSED_WITH: &str = "rustc 1.95.";
/// Where the attacks lie, for the run under another compiler.
const ATTACKS: &str = "WARPSTRIDE_ATTACKS";
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/compile_fail");
/// What must compile, for what it uses: else attacks might fail for another reason.
const CONTROL: &str = "
use warpstride::memory::DeviceBuffer;

fn harmless(buffer: &mut DeviceBuffer<f32>) {
    println!(\"{:?}\", buffer.view(&[2, 3]).unwrap());
    buffer.upload_from(&[0.0; 6]).unwrap();
}

fn main() {
    let _ = harmless;
}
";

#[test]
fn attacks_do_not_compile() {
    let attacks = env::var(ATTACKS).unwrap_or_else(|_| OWN.to_owned());
    if attacks == OWN && env::var_os("TRYBUILD").is_none() {
        if !is_long() {
            return with_their_codes();
        }
        if !compiler().starts_with(BLESSED_WITH) {
            return without_the_messages(Path::new(OWN));
        }
    }
    // From the package's folder: trybuild then holds the lines of attacks, and not the crate's.
    let attacks = Path::new(&attacks);
    let attacks = attacks.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(attacks);
    let cases = trybuild::TestCases::new();
    for folder in FOLDERS {
        cases.compile_fail(attacks.join(folder).join("*.rs"));
    }
}

/// The folders of the attacks whose messages are held: on buffers and views, on copies, and on
/// pipelines.
const FOLDERS: &[&str] = if cfg!(feature = "pipeline") { &["", "transfer", "pipeline"] } else { &["", "transfer"] };

/// Attacks in a folder, sorted.
fn attacks_in(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).expect("readable").map(|attack| attack.expect("readable").path());
    let mut attacks: Vec<_> =
        paths.filter(|attack| attack.extension().is_some_and(|extension| extension == "rs")).collect();
    attacks.sort();
    attacks
}

/// Compares the codes of each attack's errors with those of the expected message.
fn with_their_codes() {
    let (compile, is_blessed) = (Compile::new(), compiler().starts_with(BLESSED_WITH));
    for attack in FOLDERS.iter().flat_map(|folder| attacks_in(&Path::new(OWN).join(folder))) {
        let expected = codes(&fs::read_to_string(attack.with_extension("stderr")).expect("an attack has a message"));
        let found = compile.errors(&attack);
        assert!(!found.is_empty(), "{} compiles", attack.display());
        assert!(found == expected || !is_blessed, "{} has {found:?}, not {expected:?}", attack.display());
    }
}

/// Their messages quote the crate's text, of which the codes alone are held.
#[test]
fn integers_have_no_dot_product_and_bools_are_no_elements() {
    lack_a_trait("types");
}

/// Copies own only memory that is theirs, nothing reads write-combined memory back, and a scope
/// stays on its thread.
#[test]
fn copies_own_no_borrowed_memory_and_scopes_stay_on_their_thread() {
    lack_a_trait("transfer/types");
}

/// Compiles the attacks in a folder, whose only errors must be that a type lacks a trait.
#[track_caller]
fn lack_a_trait(folder: &str) {
    let compile = Compile::new();
    for attack in attacks_in(&Path::new(OWN).join(folder)) {
        let found = compile.errors(&attack);
        assert!(!found.is_empty() && found.iter().all(|code| code == "E0277"), "{}: {found:?}", attack.display());
    }
}

/// The compiler, the crate that these tests were linked with, and room.
struct Compile {
    library: PathBuf,
    folder: tempfile::TempDir,
}

impl Compile {
    fn new() -> Self {
        let mut folder = tempfile::tempdir().expect("a temporary folder");
        let control = folder.path().join("control.rs");
        fs::write(&control, CONTROL).expect("it can be written");
        // Other features, or none, may have left others.
        for library in libraries() {
            let compile = Compile { library, folder };
            if compile.errors(&control).is_empty() {
                return compile;
            }
            folder = compile.folder;
        }
        panic!("none of the libraries beside these tests compiles what must compile: run `cargo test` again")
    }

    /// The codes of the errors that a program has, up to where code would be generated.
    fn errors(&self, program: &Path) -> Vec<String> {
        let beside = self.library.parent().expect("it lies in a folder");
        let output = Command::new(rustc())
            .args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--cap-lints=allow", "-L"])
            .arg(format!("dependency={}", beside.display()))
            .arg("--extern")
            .arg(format!("warpstride={}", self.library.display()))
            .arg("--out-dir")
            .arg(self.folder.path())
            .arg(program)
            .output()
            .expect("rustc runs, as it built this test");
        let told = String::from_utf8_lossy(&output.stderr);
        match codes(&told) {
            // What is wrong with the library has no code.
            codes if codes.is_empty() && !output.status.success() => vec![told.into_owned()],
            codes => codes,
        }
    }
}

/// The crate as cargo compiled it, with whatever features, the newest first.
fn libraries() -> Vec<PathBuf> {
    let tests = env::current_exe().expect("this program");
    let beside = fs::read_dir(tests.parent().expect("target/PROFILE/deps")).expect("readable");
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libwarpstride-") && name.ends_with(".rlib")
    };
    let mut found: Vec<_> = beside.map(|entry| entry.expect("readable").path()).filter(is_ours).collect();
    found.sort_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok());
    found.reverse();
    found
}

/// `E0502` of each `error[E0502]`.
fn codes(message: &str) -> Vec<String> {
    let code = |line: &str| Some(line.strip_prefix("error[")?.split_once(']')?.0.to_owned());
    message.lines().filter_map(code).collect()
}

fn rustc() -> std::ffi::OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn compiler() -> String {
    let version = Command::new(rustc()).arg("--version").output().expect("rustc runs, as it built this test");
    String::from_utf8_lossy(&version.stdout).into_owned()
}

/// Runs this test again, over a copy.
fn without_the_messages(own: &Path) {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    let _ = fs::remove_dir_all(&copy);
    for folder in FOLDERS {
        let copy = copy.join(folder);
        fs::create_dir_all(&copy).expect("the target directory can be written to");
        for attack in attacks_in(&own.join(folder)) {
            fs::copy(&attack, copy.join(attack.file_name().expect("a file"))).expect("it can be copied");
        }
    }
    let status = Command::new(env::current_exe().expect("a path"))
        .args(["--exact", "compile_fail::attacks_do_not_compile"])
        .env(ATTACKS, &copy)
        .env("TRYBUILD", "overwrite")
        .status()
        .expect("this test runs");
    assert!(status.success(), "an attack compiles; see above");
}
