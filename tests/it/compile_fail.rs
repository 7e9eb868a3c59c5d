//! Attacks on the borrow rules, on copies in flight, and on the types of elements, that must not
//! compile, each in a file named by it.
//!
//! They are compiled against the crate that these tests were linked with. A file beside each holds
//! the first lines and the places of its errors and notes, as one compiler words them. Under any
//! other it is enough that there is an error, so that a new compiler with new words turns no test
//! red. `WARPSTRIDE_BLESS=1` rewrites the files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const BLESSED_WITH: &str = "rustc 1.95.";
const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// This code must compile, for the items that it uses: else attacks might fail for another reason.
const CONTROL: &str = "
use warpstride::memory::DeviceBuffer;

pub fn harmless(buffer: &mut DeviceBuffer<f32>) {
    println!(\"{:?}\", buffer.view(&[2, 3]).unwrap());
    buffer.upload_from(&[0.0; 6]).unwrap();
}
";

/// The attacks are on buffers and views, on copies, and on pipelines.
#[test]
fn attacks_do_not_compile() {
    for folder in if cfg!(feature = "pipeline") { &["", "transfer", "pipeline"][..] } else { &["", "transfer"] } {
        fail(folder);
    }
}

#[test]
fn integers_lack_the_operations_of_floats_and_bools_are_no_elements() {
    lack_a_trait("types");
}

/// Copies own only memory that is theirs, nothing reads write-combined memory back, and a scope
/// stays on its thread.
#[test]
fn copies_own_no_borrowed_memory_and_scopes_stay_on_their_thread() {
    lack_a_trait("transfer/types");
}

/// The attacks in a folder fail because a type lacks a trait, under any compiler.
#[track_caller]
fn lack_a_trait(folder: &str) {
    let errors = fail(folder);
    let mut firsts = errors.lines().filter(|line| line.starts_with("error"));
    assert!(firsts.all(|first| first.starts_with("error[E0277]")), "{errors}");
}

/// Compiles the attacks in a folder, compares their errors with what is beside them, and returns
/// all errors.
#[track_caller]
fn fail(folder: &str) -> String {
    let (compile, is_blessed) = (Compile::new(), compiler().starts_with(BLESSED_WITH));
    let mut all = String::new();
    for attack in attacks_in(&Path::new("tests/compile_fail").join(folder)) {
        let (found, record) = (compile.errors(&attack), Path::new(ROOT).join(&attack).with_extension("stderr"));
        assert!(!found.is_empty(), "{} compiles", attack.display());
        if env::var_os("WARPSTRIDE_BLESS").is_some() {
            fs::write(&record, &found).expect("writing the errors");
        }
        let expected = fs::read_to_string(record).expect("an attack has errors");
        assert!(found == expected || !is_blessed, "{} has\n{found}and not\n{expected}", attack.display());
        all += &found;
    }
    all
}

/// Attacks in a folder of the repository, sorted.
fn attacks_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(ROOT).join(folder)).expect("readable");
    let paths = entries.map(|attack| folder.join(attack.expect("readable").file_name()));
    let mut attacks: Vec<_> =
        paths.filter(|attack| attack.extension().is_some_and(|extension| extension == "rs")).collect();
    attacks.sort();
    attacks
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

    /// The errors of a library, up to where code would be generated.
    fn errors(&self, library: &Path) -> String {
        let beside = self.library.parent().expect("it lies in a folder");
        let output = Command::new(rustc())
            .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--cap-lints=allow", "-L"])
            .arg(format!("dependency={}", beside.display()))
            .arg("--extern")
            .arg(format!("warpstride={}", self.library.display()))
            .arg("--out-dir")
            .arg(self.folder.path())
            .arg(library)
            .current_dir(ROOT)
            .output()
            .expect("rustc runs, as it built this test");
        let told = String::from_utf8_lossy(&output.stderr);
        match errors(&told) {
            // A fault of the library has no place.
            errors if errors.is_empty() && !output.status.success() => told.into_owned(),
            errors => errors,
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

/// Returns the first line of each error, with its place, and of each note on a file of this crate,
/// whose lines move.
fn errors(message: &str) -> String {
    let lines: Vec<&str> = message.lines().map(str::trim_start).collect();
    let told = |pair: &[&str]| {
        let place = pair[1].strip_prefix("--> ")?.replace('\\', "/");
        let file = place.split(':').next().filter(|file| file.starts_with("src/"));
        let place = if pair[0].starts_with("error") { Some(&*place) } else { file };
        place.map(|place| format!("{}\n--> {place}\n", pair[0]))
    };
    lines.windows(2).filter_map(told).collect()
}

fn rustc() -> std::ffi::OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn compiler() -> String {
    let version = Command::new(rustc()).arg("--version").output().expect("rustc runs, as it built this test");
    String::from_utf8_lossy(&version.stdout).into_owned()
}
