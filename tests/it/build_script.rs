//! The grounds of the decisions of `build.rs`: manifests, entries, and the right toolchain.

#![allow(dead_code, unreachable_pub)]

#[path = "../../build/entries.rs"]
mod entries;
#[path = "../../build/manifest.rs"]
mod manifest;
#[path = "../../build/toolchain.rs"]
mod toolchain;

use std::fs;
use std::path::Path;

use entries::Module;
use manifest::{Manifest, SOURCES, hash};
use warpstride::abi::{self, ENTRIES, Entry, Family};
use warpstride::ptx;

fn example() -> Manifest {
    let files = [("a".to_owned(), b"1".to_vec()), ("b".to_owned(), b"2".to_vec())];
    Manifest { ptx: hash(&files), ..Manifest::of(&files, "1.2.3", "--fast --small") }
}

#[test]
fn a_manifest_reads_what_it_writes() {
    assert_eq!(Manifest::parse(&example().render()), Ok(example()));
}

#[test]
fn a_damaged_manifest_says_what_is_wrong() {
    let text = example().render();
    let wrong = |text: &str| Manifest::parse(text).expect_err(text);
    assert!(wrong(&text.replace("rustc = 1.2.3\n", "")).contains("does not say rustc"));
    assert!(wrong(&format!("{text}ptx = 0\n")).contains("says ptx twice"));
    assert!(wrong(&format!("{text}colour = red\n")).contains("key \"colour\""));
    assert!(wrong(&format!("{text}<<<<<<<\n")).contains("no key in \"<<<<<<<\""));
}

#[test]
fn a_stale_manifest_says_what_changed() {
    let now = example();
    assert_eq!(Manifest { ptx: hash(&[]), ..example() }.check(&now), Ok(()), "the PTX itself is checked by its hash");
    let stale = |old: Manifest| old.check(&now).expect_err("it differs");
    assert!(stale(Manifest { sources: hash(&[]), ..example() }).contains("kernels/ or src/abi changed"));
    assert!(stale(Manifest { rustc: "1.2.2".to_owned(), ..example() }).contains("rustc (1.2.2, now 1.2.3) changed"));
    assert!(stale(Manifest { flags: "--fast".to_owned(), ..example() }).contains("flags (--fast, now --fast --small)"));
}

#[test]
fn the_hash_covers_paths_contents_and_where_they_end() {
    let of = |files: &[(&str, &str)]| {
        let files: Vec<_> = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
        Manifest::of(&files, "", "").sources
    };
    let all = [
        of(&[("a", "1"), ("b", "2")]),
        of(&[("a", "1"), ("b", "3")]),
        of(&[("a", "1"), ("c", "2")]),
        of(&[("a", "12"), ("b", "")]),
        of(&[("a", "1b 1\n2")]),
    ];
    for (i, one) in all.iter().enumerate() {
        assert!(!all[..i].contains(one), "two lists of files have one hash");
    }
}

#[test]
fn sources_are_every_file_in_one_order() {
    let root = tempfile::tempdir().expect("a folder");
    let sources = ["kernels/src/movement/tile.rs", "kernels/src/lib.rs", "kernels/Cargo.toml", "kernels/Cargo.lock"];
    for path in sources.into_iter().chain(["src/abi.rs", "src/abi/arithmetic.rs"]) {
        let at = root.path().join(path);
        fs::create_dir_all(at.parent().expect("it has one")).expect("a folder");
        fs::write(at, path).expect("a file");
    }
    for path in ["src/lib.rs", "kernels/src/.lib.rs.swp", "kernels/README.md"] {
        fs::write(root.path().join(path), "not a source of the kernels").expect("a file");
    }
    let found = manifest::sources(root.path()).expect("readable");
    let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
    let kernels = ["kernels/Cargo.lock", "kernels/Cargo.toml", "kernels/src/lib.rs", "kernels/src/movement/tile.rs"];
    assert_eq!(paths, [&kernels[..], &["src/abi.rs", "src/abi/arithmetic.rs"]].concat());
    assert!(found.iter().all(|(path, content)| path.as_bytes() == content));
}

#[test]
fn the_committed_ptx_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).expect(path);
    let committed = Manifest::parse(&read("src/ptx/MANIFEST")).expect("a manifest");
    let ptx = manifest::ptx(&root.join("src/ptx")).expect("readable");
    assert_eq!(committed.ptx, hash(&ptx), "run scripts/bless-ptx");
    let files = manifest::sources(root).expect("readable");
    assert!(files.len() > SOURCES.len(), "a folder counts file by file");
    let now = Manifest::of(&files, toolchain::VERSION, &toolchain::flags());
    assert_eq!(committed.check(&now), Ok(()), "run scripts/bless-ptx");
}

/// The committed files hold the table's entries, each once, in its family's file, in the table's
/// order; and these are what a device loads.
#[test]
fn each_family_has_a_file_with_its_entries_in_order() {
    let files = manifest::ptx(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ptx")).expect("readable");
    let mut names: Vec<_> = Family::all().map(|family| format!("{}.ptx", family.stem())).collect();
    names.sort_unstable();
    assert_eq!(names, files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    for family in Family::all() {
        let name = format!("{}.ptx", family.stem());
        let (_, text) = files.iter().find(|(file, _)| *file == name).expect("as above");
        let text = str::from_utf8(text).expect("PTX is text");
        let module = Module::parse(text).expect("it is a module");
        let expected: Vec<Entry> = family.entries().map(|id| *id.entry()).collect();
        assert_eq!(module.take(&expected).as_ref(), Ok(&module.entries), "{name}: the order");
        for (id, entry) in family.entries().zip(&module.entries) {
            assert!(ptx::module(id).contains(entry), "{id} is another one in {name}");
        }
        let capability = expected.iter().map(|entry| entry.capability).max().expect("entries");
        let texts: Vec<_> = module.entries.iter().map(|entry| (*entry, None)).collect();
        assert_eq!(entries::render(module.header, capability, &texts), text, "{name}");
    }
}

/// Takes the entries of a text, which must be these.
fn take(text: &str, expected: &[Entry]) -> Result<usize, String> {
    Module::parse(text)?.take(expected).map(|found| found.len())
}

#[test]
fn entries_must_match_both_ways() {
    let text = ptx::text();
    assert_eq!(take(&text, ENTRIES), Ok(ENTRIES.len()));
    let wrong = |text: &str| take(text, ENTRIES).expect_err("the module differs");
    let (at, end) = text.split_at(text.rfind(".visible .entry").expect("entries"));
    let last = ENTRIES.last().expect("entries").name;
    assert!(wrong(at).contains(&format!("entry {last} of src/abi is missing")));
    let extra = format!("{at}{end}\n.visible .entry more(\n\t.param .b32 more_param_0\n)\n{{\n\tret;\n}}\n");
    assert!(wrong(&extra).contains("entry more of the PTX is not in src/abi"));
    let bytes = text.replace("naive_b8_param_0[64]", "naive_b8_param_0[56]");
    assert!(wrong(&bytes).contains("naive_b8 takes 56 bytes aligned to 8 in the PTX, but src/abi passes 64"));
    let align = text.replace(".align 8 .b8 copy_b128_param_0[", ".align 4 .b8 copy_b128_param_0[");
    assert!(
        wrong(&align).contains("copy_b128 takes 24 bytes aligned to 4 in the PTX, but src/abi passes 24 aligned to 8")
    );
    assert!(wrong(&text[..at.len() + 20]).contains("ends inside an entry"));
}

/// A function or a variable outside would be missing from the module that the device loads.
#[test]
fn an_entry_must_be_a_module_of_its_own() {
    let whole = ptx::text();
    let wrong = |text: &str| take(text, ENTRIES).expect_err("the modules are not whole");
    let variable = ".global .align 8 .b8 table[64];";
    let entry = ".visible .entry spin(";
    for text in [
        whole.replace(".address_size 64", &format!(".address_size 64\n{variable}")),
        whole.replace(entry, &format!("{variable}\n{entry}")),
        format!("{whole}{variable}\n"),
    ] {
        assert!(wrong(&text).contains(&format!("more than entries: {variable:?}")));
    }
    assert!(wrong(&format!("{whole}.func f()\n{{\n\tret;\n}}\n")).contains("more than entries: \".func f()\""));
    assert!(wrong(&whole[..whole.len() - 10]).contains("ends inside an entry"));
    assert!(wrong("").contains("no entry"));
    assert!(wrong(&whole.replace(".target sm_80\n", "")).contains("does not say its architecture"));
}

/// An entry that says too little would be refused by a driver, and one that says too much would be
/// kept from devices that have it.
#[test]
fn an_entry_says_which_architecture_it_needs() {
    let refused = |wrong: fn(&str) -> (u32, u32), name: &str| {
        let expected = ENTRIES.iter().map(|entry| Entry { capability: wrong(entry.name), ..*entry });
        let error = take(&ptx::text(), &expected.collect::<Vec<_>>()).expect_err("an entry says it wrongly");
        assert!(error.contains(name), "{error}");
    };
    refused(|_| (7, 5), "_hinted is for 7.5 in src/abi and has eviction policies, which need 8.0");
    refused(|_| (8, 0), "copy_b128 is for 8.0 in src/abi and has no eviction policies, which need 8.0");
}

#[test]
fn an_entry_takes_one_parameter() {
    let expected = [Entry { name: "k", param_bytes: 4, param_align: 4, capability: (7, 5) }];
    let module = |params: &str| format!(".version 7.4\n.target sm_75\n.visible .entry k({params})\n{{\n\tret;\n}}\n");
    assert_eq!(take(&module(".param .u32 k_param_0"), &expected), Ok(1));
    for params in ["", ".param .b32 k_param_0, .param .b32 k_param_1", ".param .b32 k_param_0,.param .b32 k_param_1"] {
        assert!(take(&module(params), &expected).expect_err(params).contains("entry k does not take one parameter"));
    }
}

/// A folder with a `rustc` that answers as told.
#[cfg(unix)]
fn fake(root: &Path, version: &str, with_source: bool) -> std::path::PathBuf {
    let bin = root.join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    let answer = format!(
        "#!/bin/sh\ncase $1 in\n--version) echo 'rustc {version} (0 2026)'; echo 'release: {version}' ;;\n*) echo '{}' ;;\nesac\n",
        root.display()
    );
    for tool in ["rustc", "cargo"] {
        crate::executable::script(&bin.join(tool), &answer);
    }
    if with_source {
        let core = root.join("lib/rustlib/src/rust/library/core/src");
        fs::create_dir_all(&core).expect("a folder");
        fs::write(core.join("lib.rs"), "").expect("a file");
    }
    bin
}

#[cfg(unix)]
#[test]
fn only_the_pinned_toolchain_with_its_source_is_taken() {
    use toolchain::{Toolchain, VERSION};

    let root = tempfile::tempdir().expect("a folder");
    let other = fake(&root.path().join("other"), "1.95.0", true);
    let nightly = fake(&root.path().join("nightly"), &format!("{VERSION}-nightly"), true);
    let sourceless = fake(&root.path().join("sourceless"), VERSION, false);
    let right = fake(&root.path().join("right"), VERSION, true);

    let found =
        Toolchain::among([other.clone(), nightly.clone(), sourceless.clone(), right.clone()]).expect("it is there");
    assert!(format!("{found:?}").contains(right.to_str().expect("plain names")), "{found:?}");
    let none = Toolchain::among([root.path().join("nowhere"), other, nightly]).expect_err("it is not there");
    assert_eq!(
        none,
        format!(
            "rustc {VERSION}, which compiles the kernels, was not found: run scripts/kernel-toolchain to install it"
        )
    );
    let half = Toolchain::among([sourceless]).expect_err("its source is missing");
    assert!(half.contains("lacks its library source") && half.contains("scripts/kernel-toolchain"), "{half}");
}
